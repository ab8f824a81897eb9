/*
 * Buffered sends and their buffers.
 */
#include "pt2pt/bsend.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include <base/clock.h>
#include <pioman/pioman.h>

#include "bodies.h"
#include "comm/comm.h"
#include "core/background.h"
#include "core/wait.h"
#include "env/error.h"
#include "pt2pt/message.h"
#include "pt2pt/request.h"
#include "session/session.h"

/* A message in a buffer; its bytes are behind it. */
struct buffered {
	struct base_link on; /* l: the buffer's */
	bool is_awaited;     /* l: who waits for it takes it out */
	struct madmpi_comm *comm;
	struct nm_sr_request nm;
	unsigned char *end;           /* of its bytes */
	struct madmpi_signature sent; /* with MADMPI_CHECK=2 it travels, too */
	unsigned char bytes[];
};

enum {
	ALIGN = 16,
	PATIENCE_NS = 1000000000, /* for room to come back */
	LOOK_NS = 1000000,
};

_Static_assert(offsetof(struct buffered, bytes) ==
		       offsetof(struct buffered, sent) +
			       sizeof(struct madmpi_signature),
	       "a signature and its data are one piece");
_Static_assert(sizeof(struct buffered) + ALIGN <= MPI_BSEND_OVERHEAD,
	       "what programs add for each message");

static struct madmpi_buffer process;

void madmpi_buffer_init(struct madmpi_buffer *b)
{
	marcel_mutex_init(&b->mutex, NULL);
	marcel_cond_init(&b->dropped, NULL);
	base_list_init(&b->messages);
	b->base = NULL;
	b->size = 0;
	b->nput = b->ndropped = 0;
}

static bool is_automatic(const struct madmpi_buffer *b)
{
	return b->base == MPI_BUFFER_AUTOMATIC;
}

static struct buffered *oldest(struct madmpi_buffer *b)
{
	struct base_link *n = base_list_first(&b->messages);

	return n != NULL ? container_of(n, struct buffered, on) : NULL;
}

/* It has left: a failure is nobody's, since the send was complete before. */
static void drop(struct madmpi_buffer *b, struct buffered *m)
{
	struct madmpi_comm *comm = m->comm;

	base_list_remove(&m->on);
	b->ndropped++;
	if (is_automatic(b))
		free(m);
	madmpi_comm_put(comm);
}

static bool has_left(const struct buffered *m)
{
	return m != NULL && nm_sr_is_complete(&m->nm);
}

/* Room comes back from the oldest on, up to the first that has not left. */
static void reap(struct madmpi_buffer *b)
{
	struct buffered *m;

	while (has_left(m = oldest(b)) && !m->is_awaited)
		drop(b, m);
}

/*
 * The first `last` messages leave. Nothing is held meanwhile: a buffered send
 * is local, and it may be what lets the others leave.
 */
static void flush(struct madmpi_buffer *b, uint64_t last)
{
	while (b->ndropped < last) {
		struct buffered *m = oldest(b);

		if (m->is_awaited) {
			madmpi_cond_wait(&b->dropped, &b->mutex);
			continue;
		}
		m->is_awaited = true;
		marcel_mutex_unlock(&b->mutex);
		nm_sr_wait(&m->nm);
		marcel_mutex_lock(&b->mutex);
		drop(b, m);
		marcel_cond_broadcast(&b->dropped);
	}
}

static void flush_all(struct madmpi_buffer *b)
{
	while (oldest(b) != NULL)
		flush(b, b->nput);
}

void madmpi_buffer_empty(struct madmpi_buffer *b)
{
	marcel_mutex_lock(&b->mutex);
	flush_all(b);
	b->base = NULL;
	marcel_mutex_unlock(&b->mutex);
}

void madmpi_buffer_exit(struct madmpi_buffer *b)
{
	madmpi_buffer_empty(b);
	marcel_cond_destroy(&b->dropped);
	marcel_mutex_destroy(&b->mutex);
}

static unsigned char *aligned(unsigned char *p)
{
	return (unsigned char *)(((uintptr_t)p + ALIGN - 1) &
				 ~(uintptr_t)(ALIGN - 1));
}

/* Behind the youngest; at the beginning, if that is too close to the end. */
static struct buffered *find_room(struct madmpi_buffer *b, size_t bytes)
{
	size_t need = sizeof(struct buffered) + bytes;
	unsigned char *end = b->base + b->size, *first = aligned(b->base), *at;
	struct buffered *m = oldest(b), *last;

	if (m == NULL)
		return first <= end && (size_t)(end - first) >= need
			       ? (struct buffered *)(void *)first
			       : NULL;
	last = container_of(b->messages.head.prev, struct buffered, on);
	at = aligned(last->end);
	if (last < m) /* it has gone round */
		end = (unsigned char *)m;
	if (at <= end && (size_t)(end - at) >= need)
		return (struct buffered *)(void *)at;
	if (last < m || (size_t)((unsigned char *)m - first) < need)
		return NULL;
	return (struct buffered *)(void *)first;
}

static int start(const struct madmpi_message *m, struct buffered *to,
		 size_t bytes)
{
	struct nm_data data = nm_data_flat(to->bytes, bytes);

	if (unlikely(madmpi_checks_all)) {
		to->sent = madmpi_signature_of(m->type, m->count);
		data = nm_data_flat(&to->sent, sizeof(to->sent) + bytes);
	}
	to->is_awaited = false;
	to->comm = m->comm;
	to->end = to->bytes + bytes;
	base_link_init(&to->on);
	madmpi_pack_bytes(m->buf, m->count, m->type, to->bytes);
	return nm_sr_isend(m->comm->p2p, m->comm->gate[m->peer],
			   madmpi_tag(m->tag), &data, 0, &to->nm);
}

/* NULL: there is no room, whatever has left. */
static struct buffered *make_room(struct madmpi_buffer *b, size_t bytes)
{
	struct buffered *to;

	reap(b);
	if (is_automatic(b))
		return malloc(sizeof(*to) + bytes);
	to = find_room(b, bytes);
	if (to != NULL || oldest(b) == NULL || nm_sr_test(&oldest(b)->nm) < 0)
		return to;
	reap(b);
	return find_room(b, bytes);
}

/*
 * Behind what is there. -EINVAL, -ENOMEM or what the send says; -ENOBUFS: even
 * the empty buffer is too small; -EBUSY: it is too full; -EAGAIN: one has just
 * left, perhaps somebody is about to take it out.
 */
static int put(struct madmpi_buffer *b, const struct madmpi_message *m,
	       size_t bytes)
{
	struct buffered *to = make_room(b, bytes);
	int rc;

	if (to == NULL && is_automatic(b))
		return -ENOMEM;
	if (to == NULL &&
	    (oldest(b) == NULL || sizeof(*to) + bytes > (size_t)b->size))
		return -ENOBUFS;
	if (to == NULL)
		return has_left(oldest(b)) ? -EAGAIN : -EBUSY;
	rc = start(m, to, bytes);
	if (rc == 0) {
		madmpi_comm_get(m->comm);
		base_list_push_back(&b->messages, &to->on);
		b->nput++;
	} else if (is_automatic(b)) {
		free(to);
	}
	return rc;
}

/* With its mutex held, if it has memory. */
static bool lock_used(struct madmpi_buffer *b)
{
	marcel_mutex_lock(&b->mutex);
	if (b->base != NULL)
		return true;
	marcel_mutex_unlock(&b->mutex);
	return false;
}

bool madmpi_buffer_is_attached(struct madmpi_buffer *b, MPI_Count *size)
{
	if (b == NULL)
		b = &process;
	if (!lock_used(b))
		return false;
	*size = b->size;
	marcel_mutex_unlock(&b->mutex);
	return true;
}

int madmpi_buffer_pending(struct madmpi_buffer *b, bool cancel)
{
	int n = 0;

	if (b == NULL)
		b = &process;
	marcel_mutex_lock(&b->mutex);
	base_list_for_each (on, &b->messages) {
		struct buffered *m = container_of(on, struct buffered, on);

		n += !has_left(m);
		if (cancel)
			nm_sr_cancel(&m->nm);
	}
	marcel_mutex_unlock(&b->mutex);
	return n;
}

/* The communicator's, else its session's, else the process's, locked; NULL. */
static struct madmpi_buffer *lock_nearest(struct madmpi_comm *c)
{
	if (lock_used(&c->buffer))
		return &c->buffer;
	if (c->session != NULL && lock_used(&c->session->buffer))
		return &c->session->buffer;
	return lock_used(&process) ? &process : NULL;
}

/*
 * What was received has left, but a sender hears of that later than the
 * receiver, who may have told others since, and later still if the thread that
 * heard of it has no core just now. So, a full buffer is given some time.
 */
static bool is_patient(uint64_t *until)
{
	uint64_t now = base_now_ns();
	piom_cond_t never;

	if (*until == 0)
		*until = now + PATIENCE_NS;
	if (now >= *until)
		return false;
	piom_cond_init(&never);
	(void)piom_cond_wait_until(&never, now + LOOK_NS);
	return true;
}

int madmpi_bsend_message(const char *fn, const struct madmpi_message *m)
{
	size_t bytes = (size_t)(m->count * m->type->size);
	struct madmpi_buffer *b;
	uint64_t until = 0;
	MPI_Count size;
	int rc;

	do {
		b = lock_nearest(m->comm);
		if (b == NULL)
			return madmpi_error(m->comm, MPI_ERR_BUFFER, fn,
					    "no buffer is attached");
		rc = put(b, m, bytes);
		if (rc == -EAGAIN && oldest(b)->is_awaited)
			madmpi_cond_wait(&b->dropped, &b->mutex);
		size = b->size;
		marcel_mutex_unlock(&b->mutex);
	} while (rc == -EAGAIN || (rc == -EBUSY && is_patient(&until)));
	if (rc == -ENOBUFS || rc == -EBUSY)
		return madmpi_error(m->comm, MPI_ERR_BUFFER, fn,
				    "a message of %zu bytes, and %d of "
				    "overhead, finds no room in the buffer of "
				    "%lld",
				    bytes, MPI_BSEND_OVERHEAD, (long long)size);
	return rc == 0 ? MPI_SUCCESS
		       : madmpi_error_errno(m->comm, rc, fn, "send");
}

void madmpi_bsend_init_process(void)
{
	madmpi_buffer_init(&process);
}

void madmpi_bsend_empty_process(void)
{
	madmpi_buffer_empty(&process);
}

void madmpi_bsend_exit_process(void)
{
	madmpi_buffer_exit(&process);
}

/* --- sends --- */

/* MPI_Bsend, MPI_Bsend_c */
int madmpi_bsend(const void *buf, MPI_Count count, MPI_Datatype datatype,
		 int dest, int tag, MPI_Comm comm)
{
	struct madmpi_message m;
	int rc = madmpi_message_open("MPI_Bsend", MADMPI_SEND, buf, count,
				     datatype, dest, tag, comm, &m);

	if (rc != MPI_SUCCESS || dest == MPI_PROC_NULL)
		return rc;
	return madmpi_bsend_message("MPI_Bsend", &m);
}

/* MPI_Ibsend, MPI_Ibsend_c: complete when it returns. */
int madmpi_ibsend(const void *buf, MPI_Count count, MPI_Datatype datatype,
		  int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	const char *fn = "MPI_Ibsend";
	struct madmpi_request *r;
	struct madmpi_message m;
	int rc = madmpi_message_open(fn, MADMPI_SEND, buf, count, datatype,
				     dest, tag, comm, &m);

	if (rc != MPI_SUCCESS)
		return rc;
	if (request == NULL)
		return madmpi_null_arg(m.comm, fn, "request");
	r = madmpi_request_new(fn, MADMPI_REQUEST_NOTHING, &m, &rc);
	if (r == NULL)
		return rc;
	if (dest != MPI_PROC_NULL)
		rc = madmpi_bsend_message(fn, &m);
	if (rc == MPI_SUCCESS)
		*request = (MPI_Request)r;
	else
		madmpi_request_put(r);
	return rc;
}

/* --- buffers --- */

/* A place for one, and whose: of neither, the process's. */
struct place {
	const char *fn;
	struct madmpi_comm *comm;
	struct madmpi_session *session;
	struct madmpi_buffer *b;
};

static int wrong(const struct place *p, int class, const char *text)
{
	if (p->session != NULL)
		return madmpi_session_error(p->session, class, p->fn, "%s",
					    text);
	return madmpi_error(p->comm, class, p->fn, "%s", text);
}

static struct place of_process(const char *fn)
{
	return (struct place){ .fn = fn, .b = &process };
}

static int of_comm(const char *fn, MPI_Comm comm, struct place *p)
{
	int rc = madmpi_check_comm(fn, comm, &p->comm);

	p->fn = fn;
	p->session = NULL;
	if (rc == MPI_SUCCESS)
		p->b = &p->comm->buffer;
	return rc;
}

static int of_session(const char *fn, MPI_Session session, struct place *p)
{
	int rc = madmpi_check_session(fn, session, &p->session);

	p->fn = fn;
	p->comm = NULL;
	if (rc == MPI_SUCCESS)
		p->b = &p->session->buffer;
	return rc;
}

static int attach(const struct place *p, void *memory, MPI_Count size)
{
	struct madmpi_buffer *b = p->b;
	bool used;

	if (memory == NULL)
		return wrong(p, MPI_ERR_BUFFER, "buffer is a null pointer");
	if (size < 0)
		return wrong(p, MPI_ERR_ARG, "size is negative");
	marcel_mutex_lock(&b->mutex);
	used = b->base != NULL;
	if (!used) {
		b->base = memory;
		b->size = memory == MPI_BUFFER_AUTOMATIC ? 0 : size;
	}
	marcel_mutex_unlock(&b->mutex);
	return used ? wrong(p, MPI_ERR_BUFFER, "a buffer is attached already")
		    : MPI_SUCCESS;
}

/* Blocks until all in it has left. */
static int detach(const struct place *p, void *addr, MPI_Count *size)
{
	struct madmpi_buffer *b = p->b;
	MPI_Count size_of = 0;
	void *base = NULL;

	if (addr == NULL || size == NULL)
		return wrong(p, MPI_ERR_ARG,
			     addr ? "size is a null pointer"
				  : "buffer_addr is a null pointer");
	if (lock_used(b)) {
		flush_all(b);
		/* Somebody else may have detached it. */
		base = b->base;
		size_of = b->size;
		b->base = NULL;
		marcel_mutex_unlock(&b->mutex);
	}
	if (base == NULL)
		return wrong(p, MPI_ERR_BUFFER, "no buffer is attached");
	*(void **)addr = base;
	*size = size_of;
	return MPI_SUCCESS;
}

static int flush_it(struct madmpi_buffer *b)
{
	if (lock_used(b)) {
		flush(b, b->nput);
		marcel_mutex_unlock(&b->mutex);
	}
	return MPI_SUCCESS;
}

/* A flush in the background. */
struct iflush {
	struct madmpi_background b;
	struct madmpi_session *session; /* whose it is: a reference, or NULL */
	struct madmpi_buffer *of;
	uint64_t last; /* what was there when it was called */
};

static int iflush_run(struct madmpi_background *b)
{
	struct iflush *f = container_of(b, struct iflush, b);

	marcel_mutex_lock(&f->of->mutex);
	flush(f->of, f->last);
	marcel_mutex_unlock(&f->of->mutex);
	return 0;
}

static void iflush_release(struct madmpi_operation *op)
{
	struct iflush *f =
		container_of(madmpi_background_of(op), struct iflush, b);

	madmpi_session_put(f->session);
	free(f);
}

static int iflush(const struct place *p, MPI_Request *request)
{
	struct madmpi_buffer *of = p->b;
	struct iflush *f;

	if (request == NULL)
		return wrong(p, MPI_ERR_ARG, "request is a null pointer");
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return wrong(p, MPI_ERR_NO_MEM, "no memory for a request");
	f->b.run = iflush_run;
	f->b.op.release = iflush_release;
	f->b.op.may_stay = true;
	f->of = of;
	f->session = p->session;
	if (f->session != NULL)
		madmpi_object_get(&f->session->object);
	marcel_mutex_lock(&of->mutex);
	f->last = of->nput;
	marcel_mutex_unlock(&of->mutex);
	return madmpi_background_start(p->fn, p->comm ? p->comm : madmpi_self,
				       &f->b, request);
}

/* MPI_Buffer_attach, MPI_Buffer_attach_c */
int madmpi_buffer_attach(void *buffer, MPI_Count size)
{
	struct place p = of_process("MPI_Buffer_attach");

	return attach(&p, buffer, size);
}

/* MPI_Buffer_detach, MPI_Buffer_detach_c */
int madmpi_buffer_detach(void *buffer_addr, MPI_Count *size)
{
	struct place p = of_process("MPI_Buffer_detach");

	return detach(&p, buffer_addr, size);
}

/* MPI_Buffer_flush */
int madmpi_buffer_flush(void)
{
	return flush_it(&process);
}

/* MPI_Buffer_iflush */
int madmpi_buffer_iflush(MPI_Request *request)
{
	struct place p = of_process("MPI_Buffer_iflush");

	return iflush(&p, request);
}

/* MPI_Comm_attach_buffer, MPI_Comm_attach_buffer_c */
int madmpi_comm_attach_buffer(MPI_Comm comm, void *buffer, MPI_Count size)
{
	struct place p;
	int rc = of_comm("MPI_Comm_attach_buffer", comm, &p);

	return rc ? rc : attach(&p, buffer, size);
}

/* MPI_Comm_detach_buffer, MPI_Comm_detach_buffer_c */
int madmpi_comm_detach_buffer(MPI_Comm comm, void *buffer_addr, MPI_Count *size)
{
	struct place p;
	int rc = of_comm("MPI_Comm_detach_buffer", comm, &p);

	return rc ? rc : detach(&p, buffer_addr, size);
}

/* MPI_Comm_flush_buffer */
int madmpi_comm_flush_buffer(MPI_Comm comm)
{
	struct place p;
	int rc = of_comm("MPI_Comm_flush_buffer", comm, &p);

	return rc ? rc : flush_it(p.b);
}

/* MPI_Comm_iflush_buffer */
int madmpi_comm_iflush_buffer(MPI_Comm comm, MPI_Request *request)
{
	struct place p;
	int rc = of_comm("MPI_Comm_iflush_buffer", comm, &p);

	return rc ? rc : iflush(&p, request);
}

/* MPI_Session_attach_buffer, MPI_Session_attach_buffer_c */
int madmpi_session_attach_buffer(MPI_Session session, void *buffer,
				 MPI_Count size)
{
	struct place p;
	int rc = of_session("MPI_Session_attach_buffer", session, &p);

	return rc ? rc : attach(&p, buffer, size);
}

/* MPI_Session_detach_buffer, MPI_Session_detach_buffer_c */
int madmpi_session_detach_buffer(MPI_Session session, void *buffer_addr,
				 MPI_Count *size)
{
	struct place p;
	int rc = of_session("MPI_Session_detach_buffer", session, &p);

	return rc ? rc : detach(&p, buffer_addr, size);
}

/* MPI_Session_flush_buffer */
int madmpi_session_flush_buffer(MPI_Session session)
{
	struct place p;
	int rc = of_session("MPI_Session_flush_buffer", session, &p);

	return rc ? rc : flush_it(p.b);
}

/* MPI_Session_iflush_buffer */
int madmpi_session_iflush_buffer(MPI_Session session, MPI_Request *request)
{
	struct place p;
	int rc = of_session("MPI_Session_iflush_buffer", session, &p);

	return rc ? rc : iflush(&p, request);
}
