/*
 * Serving requests. nmad tells of each that comes, and a thread takes them in
 * the order in which they came; it is favoured when it is woken, so it goes on
 * at once where all the program's threads compute (core/background.h).
 *
 * It waits for what has to come from the origin, or has to go there, which the
 * origin has posted with the request: so that depends on the networks alone,
 * not on what the program does, and ends if the origin dies. It never waits for
 * a lock of the window's: who cannot have it is put on a list.
 *
 * Whoever has asked for a lock, or is to complete an epoch, is watched. When it
 * dies nobody waits for it any more: those that do are told that it has died.
 * What it has sent before comes before its death (<nmad/event.h> tells of both
 * in that order): it is buried when all its requests have been served, so that
 * a lock that it gave back is free, and an epoch that it completed is complete.
 */
#include "rma/serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/diag.h>
#include <nmad/nmad.h>

#include "env/error.h"
#include "rma/combine.h"
#include "rma/serving.h"
#include "rma/type.h"
#include "rma/wire.h"

enum {
	FAVOUR_NS = 200 * 1000,
	NOT_COUNTED = 64,
	SHORT = sizeof(struct madmpi_rma_head) + MADMPI_RMA_INLINE,
};

/* --- messages --- */

static struct nm_session *session(const struct madmpi_win *w)
{
	return w->comm->p2p;
}

static void send(struct madmpi_win *w, struct nm_gate *to, nm_tag_t tag,
		 const struct nm_data *d)
{
	struct nm_sr_request req;

	/* A dead origin hears nothing. */
	if (nm_sr_isend(session(w), to, tag, d, 0, &req) == 0)
		madmpi_serve_wait(w->serve, &req);
}

static void reply(struct madmpi_win *w, const struct nm_data *d)
{
	struct madmpi_serve *s = w->serve;

	send(w, s->now.gate, MADMPI_RMA_REPLY | s->now.head->id, d);
}

static void reply_word(struct madmpi_win *w, int rank, uint32_t id, int fault)
{
	madmpi_rma_word_t word = (madmpi_rma_word_t)fault;
	struct nm_data d = nm_data_flat(&word, sizeof(word));

	send(w, w->comm->gate[rank], MADMPI_RMA_REPLY | id, &d);
}

/* All before it is done, or has failed. */
static void reply_fault(struct madmpi_win *w)
{
	struct madmpi_serve *s = w->serve;
	struct origin *o = &s->origin[s->now.rank];
	int fault = o->fault;

	o->fault = MPI_SUCCESS;
	reply_word(w, s->now.rank, s->now.head->id, fault);
}

static void reply_nothing(struct madmpi_win *w)
{
	struct nm_data nothing = nm_data_flat(NULL, 0);

	reply(w, &nothing);
}

/* The payload, which lies in the request or comes by itself. */
static bool receive(struct madmpi_win *w, const struct nm_data *into)
{
	struct madmpi_serve *s = w->serve;
	const struct madmpi_rma_head *h = s->now.head;
	struct nm_sr_request req;
	struct nm_sr_status st;

	if (h->inlined == 0) {
		if (nm_sr_irecv(session(w), s->now.gate,
				MADMPI_RMA_BODY | h->id, NM_TAG_EXACT, into,
				&req) != 0)
			return false;
		madmpi_serve_wait(s, &req);
		nm_sr_status(&req, &st);
		return st.error == 0;
	}
	if (into->length >= h->inlined)
		nm_data_copy_in(into, 0, s->now.payload, h->inlined);
	return into->length >= h->inlined;
}

static void say_why(struct madmpi_win *w, int error)
{
	struct madmpi_serve *s = w->serve;
	madmpi_rma_word_t word = (madmpi_rma_word_t)-error;
	struct nm_data d = nm_data_flat(&word, sizeof(word));

	send(w, s->now.gate, MADMPI_RMA_WHY | s->now.head->id, &d);
}

/*
 * It cannot be done, -errno: the origin hears of it instead of the answer, or
 * when it asks next.
 */
static void refuse(struct madmpi_win *w, int error, bool has_payload,
		   bool is_answered)
{
	struct madmpi_serve *s = w->serve;
	struct origin *o = &s->origin[s->now.rank];
	struct nm_data nothing = nm_data_flat(NULL, 0);

	if (has_payload && s->now.head->inlined == 0)
		receive(w, &nothing);
	if (is_answered) {
		say_why(w, error);
		reply_nothing(w);
	} else if (o->fault == MPI_SUCCESS) {
		o->fault = madmpi_error_class_of_errno(error);
	}
}

static struct nm_data data_of(struct madmpi_win *w,
			      struct madmpi_layout *layout)
{
	struct madmpi_serve *s = w->serve;
	const struct madmpi_rma_head *h = s->now.head;

	return madmpi_layout_slice(layout, s->now.place, (MPI_Count)h->count,
				   s->now.type, (MPI_Count)h->from,
				   (MPI_Count)h->bytes);
}

/* --- each kind of requests --- */

static void put(struct madmpi_win *w)
{
	struct madmpi_layout layout;
	struct nm_data d;

	if (w->serve->now.place == NULL) {
		refuse(w, w->serve->now.error, true, false);
		return;
	}
	d = data_of(w, &layout);
	receive(w, &d);
}

static void get(struct madmpi_win *w)
{
	struct madmpi_layout layout;
	struct nm_data d;

	if (w->serve->now.place == NULL) {
		refuse(w, w->serve->now.error, false, true);
		return;
	}
	d = data_of(w, &layout);
	reply(w, &d);
}

/* `in` and `before` are memory for what is combined, `before` if asked for. */
static void combine(struct madmpi_win *w, const struct madmpi_op *op,
		    struct madmpi_type *elem, const void *in, void *before)
{
	struct nm_data answer;
	struct madmpi_layout layout;
	struct nm_data d = data_of(w, &layout);

	marcel_mutex_lock(&w->mutex);
	madmpi_rma_combine(op, elem, in, &d, d.length, before);
	marcel_mutex_unlock(&w->mutex);
	if (before == NULL)
		return;
	answer = nm_data_flat(before, d.length);
	reply(w, &answer);
}

static void accumulate(struct madmpi_win *w)
{
	struct madmpi_serve *s = w->serve;
	const struct madmpi_rma_head *h = s->now.head;
	bool answers = h->kind == MADMPI_RMA_GET_ACCUMULATE;
	struct madmpi_op *op = madmpi_op_of((MPI_Op)(uintptr_t)h->op);
	struct madmpi_type *elem = madmpi_rma_told_element(h->elem);
	bool has_payload = op != madmpi_rma_no_op();
	bool is_long = has_payload && h->inlined == 0;
	void *in = is_long ? malloc(h->bytes) : NULL;
	void *before = answers ? malloc(h->bytes) : NULL;
	struct nm_data into = nm_data_flat(in, h->bytes);

	if (s->now.place == NULL)
		refuse(w, s->now.error, has_payload, answers);
	else if (op == NULL || elem == NULL)
		refuse(w, -EPROTOTYPE, has_payload, answers);
	else if ((is_long && in == NULL) || (answers && before == NULL))
		refuse(w, -ENOMEM, has_payload, answers);
	else if (!is_long || receive(w, &into))
		combine(w, op, elem, is_long ? in : s->now.payload, before);
	free(in);
	free(before);
}

static void swap(struct madmpi_win *w)
{
	struct madmpi_serve *s = w->serve;
	struct madmpi_type *elem = madmpi_rma_told_element(s->now.head->elem);
	struct madmpi_layout layout;
	struct nm_data d, answer;
	_Alignas(64) char before[MADMPI_RMA_ELEMENT];

	if (s->now.place == NULL || elem == NULL) {
		refuse(w, elem ? s->now.error : -EPROTOTYPE, true, true);
		return;
	}
	d = data_of(w, &layout);
	marcel_mutex_lock(&w->mutex);
	madmpi_rma_swap(elem, s->now.payload, s->now.payload + elem->size, &d,
			before);
	marcel_mutex_unlock(&w->mutex);
	answer = nm_data_flat(before, d.length);
	reply(w, &answer);
}

/* --- origins that die --- */

/* nmad's: it has died, or the window ends. */
static void watch_over(struct nm_sr_request *never, void *arg)
{
	struct watch *x = arg;
	struct madmpi_serve *s = x->serve;
	struct nm_sr_status st;

	nm_sr_status(never, &st);
	if (st.error != -ECANCELED) {
		store_relaxed(&x->died, true);
		fetch_add_relaxed(&s->ndied, 1);
		piom_sem_post(&s->work);
	}
	piom_sem_post(&s->unwatched);
}

static void watch_begin(struct madmpi_win *w, int rank, struct watch *x)
{
	struct nm_data nothing = nm_data_flat(NULL, 0);
	int rc;

	x->serve = w->serve;
	rc = nm_sr_irecv(session(w), w->comm->gate[rank], MADMPI_RMA_NEVER,
			 NM_TAG_EXACT, &nothing, &x->never);
	base_check(rc == 0);
	nm_sr_on_done(&x->never, watch_over, x);
}

int madmpi_serve_watch(struct madmpi_win *w, int rank)
{
	struct origin *o = &w->serve->origin[rank];
	int rc = 0;

	if (rank == w->rank)
		return 0;
	marcel_mutex_lock(&w->serve->mutex);
	if (o->watch == NULL) {
		o->watch = calloc(1, sizeof(*o->watch));
		if (o->watch == NULL)
			rc = -ENOMEM;
		else
			watch_begin(w, rank, o->watch);
	}
	marcel_mutex_unlock(&w->serve->mutex);
	return rc;
}

/* Nobody is watched any more. */
static void unwatch_all(struct madmpi_win *w)
{
	struct madmpi_serve *s = w->serve;

	for (int i = 0; i < w->size; i++)
		if (s->origin[i].watch != NULL)
			nm_sr_cancel(&s->origin[i].watch->never);
	for (int i = 0; i < w->size; i++)
		if (s->origin[i].watch != NULL)
			piom_sem_wait(&s->unwatched);
}

static bool has_died(struct madmpi_serve *s, const struct origin *o)
{
	bool died;

	marcel_mutex_lock(&s->mutex);
	died = o->watch != NULL && load_relaxed(&o->watch->died);
	marcel_mutex_unlock(&s->mutex);
	return died;
}

/* --- the lock --- */

static bool may_have(const struct madmpi_serve *s, bool exclusive)
{
	return !s->exclusive && (!exclusive || s->nshared == 0);
}

static void grant(struct madmpi_win *w, int rank, uint32_t id, bool exclusive)
{
	struct madmpi_serve *s = w->serve;

	if (exclusive)
		s->exclusive = true;
	else
		s->nshared++;
	s->origin[rank].has = exclusive ? ALONE : SHARED;
	/* What has failed before is no matter of the lock. */
	reply_word(w, rank, id, MPI_SUCCESS);
}

/* It will not have the lock, which somebody died with. */
static void deny(struct madmpi_win *w, int rank, uint32_t id)
{
	reply_word(w, rank, id, madmpi_error_class_of_errno(-ECONNRESET));
}

/* In the order in which they came, so that nobody waits for ever. */
static void lock(struct madmpi_win *w)
{
	struct madmpi_serve *s = w->serve;
	const struct madmpi_rma_head *h = s->now.head;
	bool exclusive = h->count != 0;
	struct candidate *c;

	if (s->orphaned) {
		deny(w, s->now.rank, h->id);
		return;
	}
	if (madmpi_serve_watch(w, s->now.rank) < 0) {
		reply_nothing(w);
		return;
	}
	if (has_died(s, &s->origin[s->now.rank]))
		return;
	if (base_list_is_empty(&s->waiting) && may_have(s, exclusive)) {
		grant(w, s->now.rank, h->id, exclusive);
		return;
	}
	c = malloc(sizeof(*c));
	if (c == NULL) {
		reply_nothing(w);
		return;
	}
	*c = (struct candidate){ .rank = s->now.rank,
				 .id = h->id,
				 .exclusive = exclusive };
	base_link_init(&c->on);
	base_list_push_back(&s->waiting, &c->on);
}

/* Those that have waited longest, if they may have it now. */
static void grant_next(struct madmpi_win *w)
{
	struct madmpi_serve *s = w->serve;
	struct candidate *c;
	struct base_link *n;

	while ((n = base_list_first(&s->waiting)) != NULL) {
		c = container_of(n, struct candidate, on);
		if (!may_have(s, c->exclusive))
			return;
		base_list_remove(n);
		if (!has_died(s, &s->origin[c->rank]))
			grant(w, c->rank, c->id, c->exclusive);
		free(c);
	}
}

static void unlock(struct madmpi_win *w)
{
	struct madmpi_serve *s = w->serve;
	struct origin *o = &s->origin[s->now.rank];

	if (o->has == ALONE)
		s->exclusive = false;
	else if (o->has == SHARED)
		s->nshared--;
	o->has = NOTHING;
	reply_fault(w);
	grant_next(w);
}

/* It waits no more; or, if `rank` is negative, everybody is told so. */
static void stop_waiting(struct madmpi_win *w, int rank)
{
	struct base_list all;
	struct base_link *n;

	base_list_init(&all);
	while ((n = base_list_take_front(&w->serve->waiting)) != NULL)
		base_list_push_back(&all, n);
	while ((n = base_list_take_front(&all)) != NULL) {
		struct candidate *c = container_of(n, struct candidate, on);

		if (rank >= 0 && c->rank != rank) {
			base_list_push_back(&w->serve->waiting, n);
			continue;
		}
		if (rank < 0)
			deny(w, c->rank, c->id);
		free(c);
	}
}

/* --- one request --- */

static void (*const handlers[MADMPI_RMA_KINDS])(struct madmpi_win *w) = {
	[MADMPI_RMA_PUT] = put,
	[MADMPI_RMA_GET] = get,
	[MADMPI_RMA_ACCUMULATE] = accumulate,
	[MADMPI_RMA_GET_ACCUMULATE] = accumulate,
	[MADMPI_RMA_SWAP] = swap,
	[MADMPI_RMA_FLUSH] = reply_fault,
	[MADMPI_RMA_LOCK] = lock,
	[MADMPI_RMA_UNLOCK] = unlock,
	[MADMPI_RMA_COMPLETE] = madmpi_serve_complete,
};

static bool moves_data(const struct madmpi_rma_head *h)
{
	return h->kind <= MADMPI_RMA_SWAP;
}

/* What programs send again and again is described alike. */
static struct madmpi_type *described(struct madmpi_serve *s)
{
	size_t bytes = s->now.head->described;

	if (s->told != NULL && bytes == s->told_bytes &&
	    memcmp(s->told_by, s->now.described, bytes) == 0)
		return s->told;
	free(s->told);
	free(s->told_by);
	s->told = NULL;
	s->told_by = malloc(bytes);
	if (s->told_by == NULL ||
	    madmpi_rma_described(s->now.described, bytes, &s->told) < 0) {
		s->now.error = -ENOMEM;
		return NULL;
	}
	memcpy(s->told_by, s->now.described, bytes);
	s->told_bytes = bytes;
	return s->told;
}

/* Where it is to happen; no place if that is not in the window, say. */
static void find_place(struct madmpi_win *w)
{
	struct madmpi_serve *s = w->serve;
	const struct madmpi_rma_head *h = s->now.head;
	MPI_Count low, high;

	s->now.place = NULL;
	s->now.error = -ERANGE;
	s->now.type = h->type ? madmpi_type_of((MPI_Datatype)(uintptr_t)h->type)
			      : described(s);
	if (s->now.type == NULL)
		return;
	madmpi_win_hull(s->now.type, (MPI_Count)h->count, &low, &high);
	if (!madmpi_win_find(w, (MPI_Aint)h->disp, low, high, &s->now.place))
		s->now.place = NULL;
}

/* So many bytes have come, and are in the buffer, but for what is `cut`. */
static void serve(struct madmpi_win *w, struct nm_gate *from, size_t bytes,
		  bool cut)
{
	struct madmpi_serve *s = w->serve;
	struct madmpi_rma_head *h = (void *)s->buffer;

	if (bytes < sizeof(*h) || h->kind >= MADMPI_RMA_KINDS ||
	    bytes != sizeof(*h) + h->described + h->inlined) {
		base_warn("madmpi", "rank %d: what rank %d sent is no request",
			  nm_rank(), nm_gate_rank(from));
		return;
	}
	s->now.head = h;
	s->now.described = s->buffer + sizeof(*h);
	s->now.payload = s->now.described + h->described;
	s->now.gate = from;
	s->now.rank = madmpi_comm_rank_of(w->comm, from);
	s->now.place = NULL;
	s->now.error = -ENOMEM;
	if (moves_data(h) && !cut)
		find_place(w);
	handlers[h->kind](w);
}

/* --- the thread --- */

/* nmad's: something has come that nobody waits for by its number. */
static void arrived(struct nm_session *session, const struct nm_sr_status *what,
		    void *arg)
{
	struct madmpi_win *w = arg;

	(void)session;
	if (what->tag == MADMPI_RMA_HEAD) {
		fetch_add_relaxed(&w->serve->ncome, 1);
		piom_sem_post(&w->serve->work);
	}
}

/* False: no memory; there is some for a request without a description. */
static bool make_room(struct madmpi_serve *s, size_t bytes)
{
	void *larger;

	if (bytes <= s->room)
		return true;
	larger = realloc(s->buffer, bytes);
	if (larger == NULL)
		return false;
	s->buffer = larger;
	s->room = bytes;
	return true;
}

/* The next request into the buffer. */
static void take(struct madmpi_win *w, struct nm_message *message,
		 const struct nm_sr_status *what)
{
	struct madmpi_serve *s = w->serve;
	struct nm_sr_request req;
	struct nm_sr_status st;
	struct nm_data into;

	make_room(s, what->length);
	into = nm_data_flat(s->buffer, s->room);
	nm_sr_mrecv(message, &into, &req);
	/* A short request is there, and may end what MPI_Win_test asks for. */
	if (what->length <= SHORT)
		nm_sr_wait(&req);
	else
		madmpi_serve_wait(s, &req);
	nm_sr_status(&req, &st);
	if (st.error == 0 || st.error == -EMSGSIZE)
		serve(w, what->gate, st.sent, st.error != 0);
}

/* The first request of those from there. False: there is none. */
static bool take_from(struct madmpi_win *w, struct nm_gate *from)
{
	struct nm_message *message;
	struct nm_sr_status what;

	if (nm_sr_mprobe(session(w), from, MADMPI_RMA_HEAD, NM_TAG_EXACT,
			 &message, &what) != 0)
		return false;
	w->serve->ntaken++;
	take(w, message, &what);
	return true;
}

/*
 * Who died with the lock may have left anything behind: nobody gets it again.
 * Those that have it, too, go on.
 */
static void bury(struct madmpi_win *w)
{
	struct madmpi_serve *s = w->serve;

	for (int i = 0; i < w->size; i++) {
		if (s->origin[i].gone || !has_died(s, &s->origin[i]))
			continue;
		while (take_from(w, w->comm->gate[i]))
			;
		s->nburied++;
		stop_waiting(w, i);
		s->orphaned |= s->origin[i].has != NOTHING;
		madmpi_serve_gone(s, &s->origin[i]);
	}
	if (s->orphaned)
		stop_waiting(w, -1);
	else
		grant_next(w);
}

/*
 * Serve what has come when MPI_Win_test asks, and little more: origins that
 * send on and on must not keep it from an answer. The first look polls. A
 * request may be found before arrived() has counted it.
 */
static void catch_up(struct madmpi_win *w)
{
	struct madmpi_serve *s = w->serve;
	bool found = take_from(w, NM_ANY_GATE);
	int left = (int)(load_relaxed(&s->ncome) - s->ntaken) + NOT_COUNTED;

	for (; found && left > 0; left--)
		found = take_from(w, NM_ANY_GATE);
	madmpi_serve_caught_up(s);
}

static void *run(void *arg)
{
	struct madmpi_win *w = arg;

	marcel_setpriority(marcel_self(), MARCEL_PRIORITY_NORMAL);
	marcel_favour_woken(marcel_self(), FAVOUR_NS);
	for (;;) {
		piom_sem_wait(&w->serve->work);
		if (load_relaxed(&w->serve->ndied) != w->serve->nburied)
			bury(w);
		if (load_relaxed(&w->serve->asked)) {
			catch_up(w);
		} else if (!take_from(w, NM_ANY_GATE) &&
			   load_relaxed(&w->serve->closing)) {
			return NULL;
		}
	}
}

static int start_thread(struct madmpi_win *w)
{
	marcel_attr_t attr;
	int rc;

	marcel_attr_init(&attr);
	marcel_attr_setname(&attr, "madmpi-rma");
	marcel_attr_setpriority(&attr, MARCEL_PRIORITY_REALTIME);
	rc = marcel_create(&w->serve->thread, &attr, run, w);
	marcel_attr_destroy(&attr);
	return -rc;
}

static void serve_free(struct madmpi_serve *s, int size)
{
	struct base_link *n;

	while ((n = base_list_take_front(&s->waiting)) != NULL)
		free(container_of(n, struct candidate, on));
	free(s->told);
	free(s->told_by);
	free(s->buffer);
	for (int i = 0; s->origin != NULL && i < size; i++)
		free(s->origin[i].watch);
	free(s->origin);
	free(s);
}

int madmpi_serve_start(struct madmpi_win *w)
{
	struct madmpi_serve *s = calloc(1, sizeof(*s));
	int rc = -ENOMEM;

	if (s == NULL)
		return rc;
	base_list_init(&s->waiting);
	piom_sem_init(&s->work, 0);
	marcel_mutex_init(&s->mutex, NULL);
	piom_sem_init(&s->unwatched, 0);
	s->origin = calloc((size_t)w->size, sizeof(*s->origin));
	w->serve = s;
	if (s->origin != NULL && make_room(s, SHORT))
		rc = start_thread(w);
	if (rc < 0) {
		serve_free(s, w->size);
		w->serve = NULL;
	}
	return rc;
}

void madmpi_serve_open(struct madmpi_win *w)
{
	nm_session_monitor(session(w), arrived, w);
}

void madmpi_serve_stop(struct madmpi_win *w)
{
	struct madmpi_serve *s = w->serve;

	nm_session_unmonitor(session(w));
	store_relaxed(&s->closing, true);
	piom_sem_post(&s->work);
	marcel_join(s->thread, NULL);
	unwatch_all(w);
	serve_free(s, w->size);
	w->serve = NULL;
}
