/*
 * What the program has made and not freed. Only handles of the program count:
 * an object that it has freed, and that another one still holds, is not listed,
 * nor is anything of the library's own.
 */
#include "env/leaks.h"

#include <stdarg.h>
#include <stdio.h>

#include <base/diag.h>

#include "coll/op.h"
#include "comm/comm.h"
#include "comm/keyval.h"
#include "core/pool.h"
#include "datatype/type.h"
#include "env/error.h"
#include "info/info.h"
#include "pt2pt/request.h"
#include "rma/win.h"
#include "session/session.h"

enum { SHOWN = 4, ONE = 208, COMM_TEXT = 96 };

/* Those of one kind, found so far. */
static struct {
	int n;
	char shown[SHOWN * (ONE + 2)];
	size_t length;
} found;

static void begin(void)
{
	found.n = 0;
	found.length = 0;
	found.shown[0] = '\0';
}

static void add(const char *fmt, ...) BASE_PRINTF(1, 2);

static void add(const char *fmt, ...)
{
	char one[ONE];
	va_list ap;

	if (found.n++ >= SHOWN)
		return;
	va_start(ap, fmt);
	vsnprintf(one, sizeof(one), fmt, ap);
	va_end(ap);
	found.length += (size_t)snprintf(found.shown + found.length,
					 sizeof(found.shown) - found.length,
					 "%s%s", found.n > 1 ? "; " : "", one);
}

static void end(const char *what, const char *several)
{
	if (found.n == 0)
		return;
	base_warn("madmpi", "rank %d has not freed %d %s: %s%s", nm_rank(),
		  found.n, found.n > 1 ? several : what, found.shown,
		  found.n > SHOWN ? "; ..." : "");
}

static const char *processes(int n)
{
	return n == 1 ? "process" : "processes";
}

/* "name" of 3 processes, or without a name. */
static const char *comm_text(const struct madmpi_comm *c, char out[COMM_TEXT])
{
	bool has_name = c->name[0] != '\0';

	snprintf(out, COMM_TEXT, "%s%.64s%s%d %s", has_name ? "\"" : "",
		 c->name, has_name ? "\" of " : "", c->size,
		 processes(c->size));
	return out;
}

/* --- each kind of objects --- */

static void add_comm(struct madmpi_object *o)
{
	struct madmpi_comm *c = container_of(o, struct madmpi_comm, object);
	char text[COMM_TEXT];

	if (!c->is_predefined && c->win == NULL && !madmpi_object_is_let_go(o))
		add("%s", comm_text(c, text));
}

static void add_group(struct madmpi_object *o)
{
	struct madmpi_group *g = container_of(o, struct madmpi_group, object);

	if (load_relaxed(&g->handles) > 0)
		add("%d %s", g->size, processes(g->size));
}

static void add_type(struct madmpi_object *o)
{
	struct madmpi_type *t = container_of(o, struct madmpi_type, object);

	/* One without contents is a part of another one, and never a handle. */
	if (madmpi_object_is_let_go(o) || t->contents == NULL ||
	    madmpi_type_is_predefined(t))
		return;
	add("%s%.64s%s%lld bytes with extent %lld%s", t->given ? "\"" : "",
	    t->given ? t->given : "", t->given ? "\" of " : "",
	    (long long)t->size, (long long)madmpi_type_extent(t),
	    load_relaxed(&t->committed) ? "" : ", not committed");
}

static void add_op(struct madmpi_object *o)
{
	struct madmpi_op *op = container_of(o, struct madmpi_op, object);

	if (!madmpi_object_is_let_go(o))
		add(op->commutes ? "one that commutes"
				 : "one that does not commute");
}

static void add_errhandler(struct madmpi_object *o)
{
	struct madmpi_errhandler *e =
		container_of(o, struct madmpi_errhandler, object);

	if (load_relaxed(&e->handles) > 0)
		add("function %p", (void *)(uintptr_t)e->fn.comm);
}

static void add_info(struct madmpi_object *o)
{
	char text[ONE];

	if (madmpi_info_describe(o, text, sizeof(text)))
		add("%s", text);
}

static void add_message(struct madmpi_object *o)
{
	char text[ONE];

	madmpi_matched_describe(o, text, sizeof(text));
	add("%s", text);
}

static void add_win(struct madmpi_object *o)
{
	struct madmpi_win *w = container_of(o, struct madmpi_win, object);
	char text[COMM_TEXT];

	add("%lld bytes, among %s", (long long)w->member[w->rank].size,
	    comm_text(w->comm, text));
}

static const char *state_of(const struct madmpi_request *r)
{
	if (r->what == MADMPI_REQUEST_IDLE)
		return "persistent, not started";
	if (madmpi_request_is_complete(r))
		return madmpi_request_is_persistent(r) ? "persistent, complete"
						       : "complete";
	return madmpi_request_is_persistent(r) ? "persistent, active"
					       : "active";
}

/* "any", or the number. */
static const char *number(int n, int any, char out[16])
{
	snprintf(out, 16, n == any ? "any" : "%d", n);
	return out;
}

/* " of 4 bytes" of a message that was started, else nothing. */
static const char *size_of(const struct madmpi_request *r, char out[32])
{
	out[0] = '\0';
	if (r->what == MADMPI_REQUEST_SEND || r->what == MADMPI_REQUEST_RECV)
		snprintf(out, 32, " of %zu bytes", nm_sr_bytes(&r->nm));
	return out;
}

/* Of a message; a send that was complete from the start was buffered. */
static void describe_transfer(const struct madmpi_request *r, const char *comm,
			      char *out, size_t room)
{
	enum madmpi_request_what what = r->repeat ? r->repeat->what : r->what;
	bool is_recv = what == MADMPI_REQUEST_RECV;
	char peer[16], tag[16], size[32];

	snprintf(out, room, "%s%s %s rank %s with tag %s, among %s: %s",
		 is_recv ? "receive" : "send", size_of(r, size),
		 is_recv ? "from" : "to", number(r->peer, MPI_ANY_SOURCE, peer),
		 number(r->tag, MPI_ANY_TAG, tag), comm, state_of(r));
}

void madmpi_request_describe(const struct madmpi_request *r, char *out,
			     size_t room)
{
	char text[COMM_TEXT];
	const char *comm = comm_text(r->comm, text);

	if (r->own != NULL && r->peer == MPI_PROC_NULL)
		snprintf(out, room, "%s among %s: %s", r->own->function, comm,
			 state_of(r));
	else if (r->own != NULL)
		snprintf(out, room, "%s with rank %d and tag %d, among %s: %s",
			 r->own->function, r->peer, r->tag, comm, state_of(r));
	else if (r->peer == MPI_PROC_NULL)
		snprintf(out, room, "message with MPI_PROC_NULL: %s",
			 state_of(r));
	else
		describe_transfer(r, comm, out, room);
}

static void add_request(struct madmpi_object *o)
{
	char text[ONE];

	madmpi_request_describe(container_of(o, struct madmpi_request, object),
				text, sizeof(text));
	add("%s", text);
}

static const struct {
	enum madmpi_kind kind;
	const char *what, *several;
	void (*add)(struct madmpi_object *o);
} kinds[] = {
	{ MADMPI_COMM, "communicator", "communicators", add_comm },
	{ MADMPI_GROUP, "group", "groups", add_group },
	{ MADMPI_TYPE, "datatype", "datatypes", add_type },
	{ MADMPI_OP, "operation", "operations", add_op },
	{ MADMPI_ERRHANDLER, "error handler", "error handlers",
	  add_errhandler },
	{ MADMPI_INFO, "info object", "info objects", add_info },
	{ MADMPI_WIN, "window", "windows", add_win },
	{ MADMPI_REQUEST, "request", "requests", add_request },
	{ MADMPI_MESSAGE, "matched message", "matched messages", add_message },
};

/* --- what is no object --- */

static void add_keyvals(void)
{
	static const char *const of[] = {
		[MADMPI_KEYVAL_COMM] = "communicators",
		[MADMPI_KEYVAL_TYPE] = "datatypes",
		[MADMPI_KEYVAL_WIN] = "windows",
	};
	enum madmpi_keyval_kind kind;
	int number = MADMPI_KEYVAL_FIRST;

	while ((number = madmpi_keyval_kept(number, &kind)) >= 0)
		add("%d, for %s", number++, of[kind]);
}

static void add_buffer(struct madmpi_object *o)
{
	struct madmpi_comm *c =
		o != NULL ? container_of(o, struct madmpi_comm, object) : NULL;
	char text[COMM_TEXT];
	MPI_Count size;

	if (!madmpi_buffer_is_attached(c != NULL ? &c->buffer : NULL, &size))
		return;
	if (c != NULL)
		add("%lld bytes, of %s", (long long)size, comm_text(c, text));
	else
		add("%lld bytes", (long long)size);
}

void madmpi_leaks_report(void)
{
	struct madmpi_pool *pool;

	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++) {
		pool = madmpi_pool_of(kinds[i].kind);
		begin();
		if (pool != NULL)
			madmpi_pool_walk(pool, kinds[i].add);
		end(kinds[i].what, kinds[i].several);
	}
	begin();
	add_keyvals();
	end("keyval", "keyvals");
	begin();
	add_buffer(NULL);
	madmpi_pool_walk(madmpi_pool_of(MADMPI_COMM), add_buffer);
	end("attached buffer", "attached buffers");
}

void madmpi_leaks_session(struct madmpi_session *s)
{
	begin();
	base_list_for_each (n, &s->comms)
		add_comm(&container_of(n, struct madmpi_comm, on)->object);
	end("communicator of a session", "communicators of a session");
	begin();
	base_list_for_each (n, &s->comms) {
		struct madmpi_comm *c = container_of(n, struct madmpi_comm, on);

		if (c->win != NULL)
			add_win(&c->win->object);
	}
	end("window of a session", "windows of a session");
	begin();
	base_list_for_each (n, &s->groups)
		add_group(&container_of(n, struct madmpi_group, on)->object);
	end("group of a session", "groups of a session");
}
