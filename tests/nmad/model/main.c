/*
 *   model [--seed S] [--programmes N]
 *
 * Random programmes over nmad, by one process or by the ranks of a job on one
 * host, held to account by judge.c. The driver, strategy and so on are the
 * environment's. Programme i is drawn from the seed S + i; a failure says how
 * to have the same drawn again. The seed gives what the ranks do, not how they
 * meet: so try again with --programmes, if one alone does not fail.
 *
 * A programme has three parts. In the first all threads of a rank carry out
 * what is drawn. In the second one thread gives up the receives that still
 * wait, and receives, in one of several ways, what has not been received: what
 * will come it knows from the plan. Then all meet, and judge.
 */
#include "model.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <marcel/marcel.h>
#include <nmad/nmad.h>

#include "data.h"

enum { CONTROL = 1, FIRST_SESSION = 100, OVER = 1 << 30 };

#define MUST(x) ((x) ? (void)0 : fail(__FILE__, __LINE__, #x))

/* What all ranks see. */
struct world {
	ATOMIC(uint32_t) now; /* the last date */
	/* The operation that each thread is at. */
	ATOMIC(int) at[MODEL_RANKS][MODEL_THREADS];
	struct model model;
};

/* What an operation needs while it goes on. */
struct live {
	struct nm_sr_request req;
	struct model_buffer buffer;
	bool waits; /* the request is posted, and not known to be complete */
};

static struct world *world;
static struct model *m;
static struct live live[MODEL_THREADS][MODEL_OPS];
static struct nm_session *sessions[MODEL_SESSIONS], *control;
static int me;
static marcel_sem_t over; /* of a thread */
static uint64_t seed, programmes = 100;
static struct {
	unsigned sent, received, given_up, too_late, found, not_found, cut,
		posted_before;
} counts;

/* --- when something is wrong --- */

extern char **environ;

static void fail(const char *file, int line, const char *what)
	__attribute__((noreturn));

static void fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: rank %d: %s\n# again: ", file, line, me, what);
	for (char **e = environ; *e != NULL; e++)
		if (strncmp(*e, "NMAD_", 5) == 0 ||
		    strncmp(*e, "PIOM_", 5) == 0 ||
		    strncmp(*e, "MARCEL_", 7) == 0)
			fprintf(stderr, "%s ", *e);
	fprintf(stderr, "mpirun -n %d model --seed %llu --programmes 1\n",
		nm_size(), m ? (unsigned long long)m->seed : 0);
	nm_abort(1, "a test failed");
}

static void fail_at(const char *file, int line, const char *what, int number)
	__attribute__((noreturn));

static void fail_at(const char *file, int line, const char *what, int number)
{
	char text[1000];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s: ", what);

	model_tell(m, number, text + n, sizeof(text) - n);
	fail(file, line, text);
}

/* As MUST, of an operation of this rank. */
#define MUST_OF(t, i, x)                                                       \
	((x) ? (void)0                                                         \
	     : fail_at(__FILE__, __LINE__, #x, model_number(me, t, i)))

static uint32_t now(void)
{
	return fetch_add_seq(&world->now, 1) + 1;
}

/* --- what came of an operation --- */

/* The message of that rank to this one that has this envelope and length. */
static int find(int from, const struct model_op *op, uint32_t tag,
		size_t length)
{
	for (int t = 0; t < m->threads[from]; t++)
		for (int i = 0; i < m->thread[from][t].n; i++) {
			const struct model_op *s = &m->thread[from][t].ops[i];

			if (s->kind == MODEL_SEND && s->peer == me &&
			    s->session == op->session && s->tag == tag &&
			    s->length == length)
				return model_number(from, t, i);
		}
	return -1;
}

/* Bytes of a message: no two have the same. */
static uint64_t painted(int number)
{
	uint64_t stream = m->seed * 1000003 + (unsigned)number;

	return (uint64_t)model_pick(&stream, 1u << 31) << 32 |
	       model_pick(&stream, 1u << 31);
}

static void received(int t, int i)
{
	struct model_op *op = &m->thread[me][t].ops[i];
	struct live *l = &live[t][i];
	struct nm_sr_status s;
	int number;

	nm_sr_status(&l->req, &s);
	MUST_OF(t, i, s.gate != NULL);
	number = find(nm_gate_rank(s.gate), op, s.tag, s.sent);
	MUST_OF(t, i, number >= 0);
	op->got = number;
	MUST_OF(t, i, s.length == (s.sent < op->length ? s.sent : op->length));
	MUST_OF(t, i, s.error == (s.sent > op->length ? -EMSGSIZE : 0));
	MUST_OF(t, i,
		model_buffer_holds(&l->buffer, painted(number), s.length));
}

/* Its request is complete. */
static void completed(int t, int i)
{
	struct model_op *op = &m->thread[me][t].ops[i];
	struct live *l = &live[t][i];
	struct nm_sr_status s;

	op->done = now();
	l->waits = false;
	nm_sr_status(&l->req, &s);
	if (op->kind != MODEL_SEND)
		received(t, i);
	else
		MUST_OF(t, i, s.error == 0);
	model_buffer_free(&l->buffer);
}

static void await(int t, int i)
{
	if (!live[t][i].waits)
		return;
	nm_sr_wait(&live[t][i].req);
	completed(t, i);
}

/* --- operations --- */

static struct nm_gate *gate_of(const struct model_op *op)
{
	return op->peer == MODEL_ANY ? NM_ANY_GATE : nm_gate_of(op->peer);
}

static nm_tag_t mask_of(const struct model_op *op)
{
	return op->any_tag ? NM_TAG_ANY : NM_TAG_EXACT;
}

static void do_send(int t, int i)
{
	struct model_op *op = &m->thread[me][t].ops[i];
	struct live *l = &live[t][i];

	model_buffer_new(&l->buffer, op->shape, op->length);
	model_buffer_paint(&l->buffer, painted(model_number(me, t, i)));
	op->begin = now();
	MUST(nm_sr_isend_priority(sessions[op->session], nm_gate_of(op->peer),
				  op->tag, &l->buffer.data, op->flags,
				  op->priority, &l->req) == 0);
	op->end = now();
	l->waits = true;
}

static void do_recv(int t, int i)
{
	struct model_op *op = &m->thread[me][t].ops[i];
	struct live *l = &live[t][i];

	model_buffer_new(&l->buffer, op->shape, op->length);
	op->begin = now();
	MUST(nm_sr_irecv(sessions[op->session], gate_of(op), op->tag,
			 mask_of(op), &l->buffer.data, &l->req) == 0);
	op->end = now();
	l->waits = true;
}

static void do_cancel(int t, int i)
{
	struct model_op *op = &m->thread[me][t].ops[i];
	struct live *l = &live[t][op->target];
	struct nm_sr_status s;
	bool over_before = !l->waits;
	int rc;

	/* Its memory may be another's: the message it had, or was given up. */
	op->begin = now();
	rc = nm_sr_cancel(&l->req);
	op->end = now();
	op->got = rc == 0 ? 0 : -1;
	if (rc != 0) {
		MUST_OF(t, i, rc == -EALREADY);
		return;
	}
	MUST_OF(t, i, !over_before);
	nm_sr_wait(&l->req);
	l->waits = false;
	nm_sr_status(&l->req, &s);
	MUST_OF(t, i, s.error == -ECANCELED);
	MUST_OF(t, i, model_buffer_holds(&l->buffer, 0, 0));
	model_buffer_free(&l->buffer);
}

static void found(int t, int i, const struct nm_sr_status *s)
{
	struct model_op *op = &m->thread[me][t].ops[i];

	MUST_OF(t, i, s->gate != NULL);
	MUST_OF(t, i, s->length == s->sent);
	op->got = find(nm_gate_rank(s->gate), op, s->tag, s->sent);
	MUST_OF(t, i, op->got >= 0);
}

/* May wait for one. */
static void do_probe(int t, int i, bool waits)
{
	struct model_op *op = &m->thread[me][t].ops[i];
	struct nm_sr_status s;
	int rc;

	op->begin = now();
	rc = (waits ? nm_sr_probe_wait : nm_sr_probe)(
		sessions[op->session], gate_of(op), op->tag, mask_of(op), &s);
	op->end = now();
	if (rc == 0)
		found(t, i, &s);
	else
		MUST_OF(t, i, rc == -EAGAIN && !waits);
}

static void do_mprobe(int t, int i)
{
	struct model_op *op = &m->thread[me][t].ops[i];
	struct live *l = &live[t][i];
	struct nm_message *message;
	struct nm_sr_status s;
	int rc;

	op->begin = now();
	rc = nm_sr_mprobe(sessions[op->session], gate_of(op), op->tag,
			  mask_of(op), &message, &s);
	op->end = now();
	if (rc != 0) {
		MUST_OF(t, i, rc == -EAGAIN);
		return;
	}
	found(t, i, &s);
	model_buffer_new(&l->buffer, op->shape, op->length);
	MUST_OF(t, i, nm_sr_mrecv(message, &l->buffer.data, &l->req) == 0);
	l->waits = true;
}

static void do_test(int t, int i)
{
	int target = m->thread[me][t].ops[i].target;

	if (live[t][target].waits && nm_sr_test(&live[t][target].req) == 0)
		completed(t, target);
}

/*
 * A user thread does not give its CPU away, as it could not be sure to have it
 * again in that time slice, and the others of its VP would not run either.
 */
static void give_way(int t)
{
	if (m->thread[me][t].foreign)
		sched_yield();
	else
		marcel_yield();
}

static void do_await(int t, int i)
{
	const struct model_op *op = &m->thread[me][t].ops[i];

	while (load_acquire(&world->at[op->peer][op->tag]) < op->target)
		give_way(t);
}

static void carry_out(int t, int i)
{
	store_release(&world->at[me][t], i);
	switch (m->thread[me][t].ops[i].kind) {
	case MODEL_SEND:
		do_send(t, i);
		break;
	case MODEL_RECV:
		do_recv(t, i);
		break;
	case MODEL_CANCEL:
		do_cancel(t, i);
		break;
	case MODEL_PROBE:
		do_probe(t, i, false);
		break;
	case MODEL_MPROBE:
		do_mprobe(t, i);
		break;
	case MODEL_TEST:
		do_test(t, i);
		break;
	case MODEL_AWAIT:
		do_await(t, i);
		break;
	default:
		give_way(t);
	}
}

static void *thread_main(void *arg)
{
	int t = (int)(intptr_t)arg, n = m->thread[me][t].n;

	for (int i = 0; i < n; i++)
		carry_out(t, i);
	store_release(&world->at[me][t], OVER);
	if (t > 0)
		MUST(marcel_sem_post(&over) == 0);
	return NULL;
}

/* Main waits in marcel's way, so that its VP polls while the others wait. */
static void first_part(void)
{
	pthread_t foreign[MODEL_THREADS];
	marcel_t users[MODEL_THREADS];

	for (int t = 1; t < m->threads[me]; t++)
		MUST((m->thread[me][t].foreign
			      ? pthread_create(&foreign[t], NULL, thread_main,
					       (void *)(intptr_t)t)
			      : marcel_create(&users[t], NULL, thread_main,
					      (void *)(intptr_t)t)) == 0);
	thread_main(0);
	for (int t = 1; t < m->threads[me]; t++)
		MUST(marcel_sem_wait(&over) == 0);
	for (int t = 1; t < m->threads[me]; t++)
		MUST((m->thread[me][t].foreign
			      ? pthread_join(foreign[t], NULL)
			      : marcel_join(users[t], NULL)) == 0);
}

/* --- the end of a programme --- */

/* Another operation of the first thread, to be carried out. */
static int append(const struct model_op *op)
{
	struct model_thread *th = &m->thread[me][0];

	MUST(th->n < MODEL_OPS);
	th->ops[th->n] = *op;
	return th->n++;
}

/*
 * Those that still wait, in any order. Of other threads' receives it is as if
 * these had cancelled them: the operation is theirs.
 */
static void give_up_receives(uint64_t *stream)
{
	static int left[MODEL_THREADS * MODEL_OPS];
	int n = 0;

	for (int t = 0; t < m->threads[me]; t++)
		for (int i = 0; i < m->thread[me][t].n; i++)
			if (m->thread[me][t].ops[i].kind == MODEL_RECV &&
			    live[t][i].waits)
				left[n++] = t * MODEL_OPS + i;
	while (n > 0) {
		int k = (int)model_pick(stream, (unsigned)n);
		int t = left[k] / MODEL_OPS, target = left[k] % MODEL_OPS;
		struct model_thread *th = &m->thread[me][t];

		left[k] = left[--n];
		MUST(th->n < MODEL_OPS);
		th->ops[th->n] = (struct model_op){ .kind = MODEL_CANCEL,
						    .target = target };
		do_cancel(t, th->n++);
	}
	for (int t = 0; t < m->threads[me]; t++)
		for (int i = 0; i < m->thread[me][t].n; i++)
			if (m->thread[me][t].ops[i].kind != MODEL_SEND)
				await(t, i);
}

static bool is_taken(int number)
{
	for (int t = 0; t < m->threads[me]; t++)
		for (int i = 0; i < m->thread[me][t].n; i++) {
			const struct model_op *op = &m->thread[me][t].ops[i];

			if ((op->kind == MODEL_RECV ||
			     op->kind == MODEL_MPROBE) &&
			    op->got == number)
				return true;
		}
	return false;
}

/* The messages of a session that nobody has got. */
static int untaken(int session, int list[])
{
	int n = 0;

	for (int r = 0; r < m->ranks; r++)
		for (int t = 0; t < m->threads[r]; t++)
			for (int i = 0; i < m->thread[r][t].n; i++) {
				struct model_op *op = &m->thread[r][t].ops[i];
				int number = model_number(r, t, i);

				if (op->kind == MODEL_SEND && op->peer == me &&
				    op->session == session && !is_taken(number))
					list[n++] = number;
			}
	return n;
}

/*
 * A receive for each, all alike in whether they name source and tag, so that
 * none can take what another one needs.
 */
static void receive_all(int list[], int n, unsigned how, uint64_t *stream)
{
	int first = m->thread[me][0].n;

	for (; n > 0; n--) {
		int k = (int)model_pick(stream, (unsigned)n);
		const struct model_op *send = model_op(m, list[k]);
		struct model_op op = { .kind = MODEL_RECV,
				       .session = send->session,
				       .shape = (uint8_t)model_pick(stream, 8),
				       .tag = send->tag,
				       .any_tag = how & 1,
				       .got = -1 };

		op.length = model_pick(stream, 4)
				    ? MODEL_BYTES / 4
				    : model_length(stream, m->large);
		op.peer = how & 2 ? MODEL_ANY : (int8_t)model_rank_of(list[k]);
		list[k] = list[n - 1];
		do_recv(0, append(&op));
	}
	while (first < m->thread[me][0].n)
		await(0, first++);
}

/* Probe, and take what was found, by a receive or by its handle. */
static void receive_found(int session, int n, uint64_t *stream)
{
	for (; n > 0; n--) {
		struct model_op op = { .kind = MODEL_PROBE,
				       .session = (uint8_t)session,
				       .peer = MODEL_ANY,
				       .any_tag = true,
				       .got = -1 };
		int i = append(&op);
		const struct model_op *send;

		do_probe(0, i, true);
		send = model_op(m, m->thread[me][0].ops[i].got);
		op.kind = model_pick(stream, 2) ? MODEL_RECV : MODEL_MPROBE;
		if (model_pick(stream, 2)) {
			op.peer = (int8_t)model_rank_of(
				m->thread[me][0].ops[i].got);
			op.any_tag = false;
			op.tag = send->tag;
		}
		op.length = send->length;
		op.shape = (uint8_t)model_pick(stream, 8);
		i = append(&op);
		(op.kind == MODEL_RECV ? do_recv : do_mprobe)(0, i);
		MUST_OF(0, i, live[0][i].waits);
		await(0, i);
	}
}

static void second_part(void)
{
	static int list[MODEL_RANKS * MODEL_THREADS * MODEL_OPS];
	uint64_t stream = m->seed ^ (uint64_t)(me + 1) << 40;
	struct nm_sr_status s;

	give_up_receives(&stream);
	for (int session = 0; session < m->sessions; session++) {
		int n = untaken(session, list);
		unsigned how = model_pick(&stream, 6);

		if (how < 4)
			receive_all(list, n, how, &stream);
		else
			receive_found(session, n, &stream);
	}
	for (int t = 0; t < m->threads[me]; t++)
		for (int i = 0; i < m->thread[me][t].n; i++)
			await(t, i);
	for (int session = 0; session < m->sessions; session++)
		MUST(nm_sr_probe(sessions[session], NM_ANY_GATE, 0, NM_TAG_ANY,
				 &s) == -EAGAIN);
}

/* --- all ranks --- */

static void tell(int rank, const void *what, size_t bytes)
{
	struct nm_data d = nm_data_flat(what, bytes);

	MUST(nm_sr_send(control, nm_gate_of(rank), 1, &d, 0) == 0);
}

static void hear(int rank, void *what, size_t bytes)
{
	struct nm_data d = nm_data_flat(what, bytes);

	MUST(nm_sr_recv(control, nm_gate_of(rank), 1, NM_TAG_EXACT, &d, NULL) ==
	     0);
}

static void meet(void)
{
	for (int r = 1; r < nm_size() && me == 0; r++)
		hear(r, NULL, 0);
	for (int r = 1; r < nm_size() && me == 0; r++)
		tell(r, NULL, 0);
	if (me > 0) {
		tell(0, NULL, 0);
		hear(0, NULL, 0);
	}
}

/* Rank 0 makes it; the others find it through /proc. */
static void open_world(void)
{
	int where[2] = { getpid(), -1 };
	char path[64];

	if (me == 0) {
		where[1] = memfd_create("model", MFD_CLOEXEC);
		MUST(where[1] >= 0);
		MUST(ftruncate(where[1], sizeof(*world)) == 0);
		for (int r = 1; r < nm_size(); r++)
			tell(r, where, sizeof(where));
	} else {
		hear(0, where, sizeof(where));
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", where[0],
			 where[1]);
		where[1] = open(path, O_RDWR | O_CLOEXEC);
		MUST(where[1] >= 0);
	}
	world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED,
		     where[1], 0);
	MUST(world != MAP_FAILED);
	meet();
	MUST(close(where[1]) == 0);
}

/* What there was to judge, in all: a run in which nothing meets shows nothing.
 */
static void count(void)
{
	for (int t = 0; t < m->threads[me]; t++)
		for (int i = 0; i < m->thread[me][t].n; i++) {
			const struct model_op *op = &m->thread[me][t].ops[i];
			bool has = op->got >= 0;

			switch (op->kind) {
			case MODEL_SEND:
				counts.sent++;
				break;
			case MODEL_CANCEL:
				counts.given_up += has;
				counts.too_late += !has;
				break;
			case MODEL_PROBE:
			case MODEL_MPROBE:
				counts.found += has;
				counts.not_found += !has;
				break;
			case MODEL_RECV:
				counts.received += has;
				if (has &&
				    model_op(m, op->got)->length > op->length)
					counts.cut++;
				if (has &&
				    op->end < model_op(m, op->got)->begin)
					counts.posted_before++;
				break;
			default:
				break;
			}
		}
}

static void programme(uint64_t i)
{
	const char *wrong;

	if (me == 0) {
		model_draw(&world->model, seed + i, nm_size());
		store_release(&world->now, 0);
		for (int r = 0; r < MODEL_RANKS; r++)
			for (int t = 0; t < MODEL_THREADS; t++)
				store_release(&world->at[r][t], 0);
	}
	meet();
	m = &world->model;
	for (int s = 0; s < m->sessions; s++)
		MUST(nm_session_open(FIRST_SESSION + i * MODEL_SESSIONS +
					     (unsigned)s,
				     &sessions[s]) == 0);
	first_part();
	second_part();
	meet();
	count();
	for (int s = 0; s < m->sessions; s++) {
		wrong = model_judge(m, me, s);
		if (wrong != NULL)
			fail(__FILE__, __LINE__, wrong);
		MUST(nm_session_close(sessions[s]) == 0);
	}
	meet();
}

static void arguments(int argc, char **argv)
{
	static const struct option known[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "programmes", required_argument, NULL, 'p' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	seed = (uint64_t)time(NULL) * 1000003 % 1000000000;
	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == '?')
			exit(2);
		*(c == 's' ? &seed : &programmes) = strtoull(optarg, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	arguments(argc, argv);
	MUST(nm_init() == 0);
	me = nm_rank();
	MUST(nm_size() <= MODEL_RANKS);
	MUST(marcel_sem_init(&over, 0, 0) == 0);
	MUST(nm_session_open(CONTROL, &control) == 0);
	open_world();
	if (me == 0)
		printf("# --seed %llu --programmes %llu\n",
		       (unsigned long long)seed,
		       (unsigned long long)programmes);
	fflush(stdout);
	for (uint64_t i = 0; i < programmes; i++)
		programme(i);
	printf("# rank %d: sent %u; received %u, posted before it was sent %u, "
	       "cut %u; cancels %u, too late %u; probes %u, in vain %u\n",
	       me, counts.sent, counts.received, counts.posted_before,
	       counts.cut, counts.given_up, counts.too_late, counts.found,
	       counts.not_found);
	MUST(marcel_sem_destroy(&over) == 0);
	MUST(nm_session_close(control) == 0);
	return nm_exit() == 0 ? 0 : 1;
}
