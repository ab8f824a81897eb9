/*
 * A program that calls MPI_Finalize while something is pending: pending KIND
 * HOW [CODE], or pending dies KIND RANK STEP; pending.py says how each has to
 * end.
 */
#include <dlfcn.h>
#include <marcel/marcel.h>
#include <mpi.h>
#include <nmad/nmad.h>
#include <nmad/sendrecv.h>
#include <pioman/pioman.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG = 3, BIG = 4 << 20, MANY = 4000, SMALL = 1000, POLLS = 64 };

static int rank, size, peer; /* the peer: the next one, oneself if alone */
static char big[BIG];
static int x, y = 7;
static MPI_Request request = MPI_REQUEST_NULL;

static void fail(const char *what)
{
	fprintf(stderr, "rank %d: wrong: %s\n", rank, what);
	exit(9);
}

/* --- calls of the library that the program sees --- */

/* Our own definitions of them go before the library's. */
#define SEEN __attribute__((visibility("default")))

static int (*next_isend)(struct nm_session *, struct nm_gate *, nm_tag_t,
			 const struct nm_data *, unsigned,
			 struct nm_sr_request *);
static void (*next_wait)(struct nm_sr_request *);
static int (*next_poll)(void);
static int (*next_init)(void);
static int (*next_exit)(void);

static __attribute__((constructor)) void find_next(void)
{
	*(void **)&next_isend = dlsym(RTLD_NEXT, "nm_sr_isend");
	*(void **)&next_wait = dlsym(RTLD_NEXT, "nm_sr_wait");
	*(void **)&next_poll = dlsym(RTLD_NEXT, "piom_poll");
	*(void **)&next_init = dlsym(RTLD_NEXT, "nm_init");
	*(void **)&next_exit = dlsym(RTLD_NEXT, "nm_exit");
}

/* Steps of a round are calls of nm_sr_isend() and nm_sr_wait(); -1: not now. */
static atomic_int steps_left = -1;

static void step(void)
{
	if (atomic_load(&steps_left) >= 0 &&
	    atomic_fetch_sub(&steps_left, 1) == 0)
		kill(getpid(), SIGKILL);
}

/*
 * A thread of the program's that begins when its process comes to a point of
 * MPI_Init or MPI_Finalize. It passes that point once the thread has run.
 */
enum point { NOWHERE, STARTING, FIRST_ROUND, LATER_ROUND, LEAVING };

static atomic_int begins_at = NOWHERE;
static atomic_bool finalizing, has_run;
static void (*thread)(void);

static void *run_thread(void *arg)
{
	atomic_store(&has_run, true);
	thread();
	return arg;
}

static void come_to(enum point point)
{
	int at = (int)point;
	marcel_attr_t attr;
	marcel_t t;

	if ((point != STARTING && !atomic_load(&finalizing)) ||
	    !atomic_compare_exchange_strong(&begins_at, &at, NOWHERE))
		return;
	marcel_attr_init(&attr);
	marcel_attr_setdetachstate(&attr, MARCEL_CREATE_DETACHED);
	if (marcel_create(&t, &attr, run_thread, NULL) != 0)
		fail("no thread");
	while (!atomic_load(&has_run))
		marcel_yield();
}

SEEN int nm_sr_isend(struct nm_session *s, struct nm_gate *to, nm_tag_t tag,
		     const struct nm_data *data, unsigned flags,
		     struct nm_sr_request *req)
{
	step();
	return next_isend(s, to, tag, data, flags, req);
}

SEEN void nm_sr_wait(struct nm_sr_request *req)
{
	step();
	come_to(FIRST_ROUND);
	next_wait(req);
}

/* Between rounds. */
static atomic_int polls;

SEEN int piom_poll(void)
{
	atomic_fetch_add(&polls, 1);
	come_to(LATER_ROUND);
	return next_poll();
}

SEEN int nm_init(void)
{
	come_to(STARTING);
	return next_init();
}

SEEN int nm_exit(void)
{
	come_to(LEAVING);
	return next_exit();
}

/* --- operations that the program has to complete --- */

static void irecv(void)
{
	MPI_Irecv(&x, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, &request);
}

static void irecv_any(void)
{
	MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
		  &request);
}

static void irecv_in_dup(void)
{
	static MPI_Comm dup; /* only one process calls what follows it */

	MPI_Comm_dup(MPI_COMM_SELF, &dup);
	MPI_Irecv(&x, 1, MPI_INT, 0, TAG, dup, &request);
}

static void persistent(void)
{
	MPI_Recv_init(&x, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, &request);
	MPI_Start(&request);
}

static void isendrecv(void)
{
	MPI_Isendrecv(&y, 1, MPI_INT, peer, TAG, &x, 1, MPI_INT, peer, TAG + 1,
		      MPI_COMM_WORLD, &request);
}

static void precv(void)
{
	MPI_Precv_init(&x, 1, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD,
		       MPI_INFO_NULL, &request);
	MPI_Start(&request);
}

static void ibarrier(void)
{
	MPI_Ibarrier(MPI_COMM_WORLD, &request);
}

static void ibcast(void)
{
	MPI_Ibcast(&x, 1, MPI_INT, peer, MPI_COMM_WORLD, &request);
}

static void barrier_init(void)
{
	MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
	MPI_Start(&request);
}

/* --- operations that no other process waits for --- */

static void isend(void)
{
	MPI_Isend(big, BIG, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &request);
}

static void isend_freed(void)
{
	isend();
	MPI_Request_free(&request);
}

static void issend(void)
{
	MPI_Issend(&y, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, &request);
}

static void isends(void)
{
	for (int i = 0; i < MANY; i++)
		MPI_Isend(big, SMALL, MPI_BYTE, peer, TAG, MPI_COMM_WORLD,
			  &request);
}

static void bsend(void)
{
	static char buffer[BIG + MPI_BSEND_OVERHEAD];

	MPI_Buffer_attach(buffer, sizeof(buffer));
	MPI_Bsend(big, BIG, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
}

static void bsend_of_world(void)
{
	static char buffer[BIG + MPI_BSEND_OVERHEAD];

	MPI_Comm_attach_buffer(MPI_COMM_WORLD, buffer, sizeof(buffer));
	MPI_Bsend(big, BIG, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
}

static void iflush(void)
{
	bsend();
	MPI_Buffer_iflush(&request);
}

static void irecv_freed(void)
{
	irecv();
	MPI_Request_free(&request);
}

static void isendrecv_freed(void)
{
	isendrecv();
	MPI_Request_free(&request);
}

static void psend(void)
{
	MPI_Psend_init(&y, 1, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD,
		       MPI_INFO_NULL, &request);
	MPI_Start(&request);
}

static int of_status(void *extra, MPI_Status *status)
{
	(void)extra;
	(void)status;
	return MPI_SUCCESS;
}

static int of_nothing(void *extra)
{
	(void)extra;
	return MPI_SUCCESS;
}

static int of_flag(void *extra, int complete)
{
	(void)extra;
	(void)complete;
	return MPI_SUCCESS;
}

static void grequest(void)
{
	MPI_Grequest_start(of_status, of_nothing, of_flag, NULL, &request);
}

static const struct kind {
	const char *name;
	void (*start)(void);
	bool can_cancel;
} kinds[] = {
	{ "irecv", irecv, true },
	{ "irecv_any", irecv_any, true },
	{ "irecv_in_dup", irecv_in_dup, true },
	{ "persistent", persistent, true },
	{ "isendrecv", isendrecv, true },
	{ "precv", precv, false },
	{ "ibarrier", ibarrier, false },
	{ "ibcast", ibcast, false },
	{ "barrier_init", barrier_init, false },
	{ "isend", isend, true },
	{ "isend_freed", isend_freed, false },
	{ "issend", issend, true },
	{ "isends", isends, false },
	{ "bsend", bsend, false },
	{ "bsend_of_world", bsend_of_world, false },
	{ "iflush", iflush, false },
	{ "irecv_freed", irecv_freed, false },
	{ "isendrecv_freed", isendrecv_freed, false },
	{ "psend", psend, false },
	{ "grequest", grequest, false },
};

static const struct kind *kind_of(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	fail("no such kind");
	return NULL;
}

/* --- how it goes on --- */

/* The process with the operation gets the error, each time. */
static void expect_refusal(void)
{
	int class = MPI_SUCCESS, flag = -1;

	MPI_Error_class(MPI_Finalize(), &class);
	MPI_Finalized(&flag);
	if (class != MPI_ERR_PENDING || flag != 0)
		fail("MPI_Finalize does not say MPI_ERR_PENDING");
}

static void finalize(void)
{
	if (MPI_Finalize() != MPI_SUCCESS)
		fail("MPI_Finalize fails");
}

static void return_errors(void)
{
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

/* One process has it pending; `how` it goes on. */
static void one(const struct kind *k, const char *how, int code)
{
	bool returns = strcmp(how, "finalizes") != 0;

	if (returns)
		return_errors();
	if (rank == 0)
		k->start();
	if (rank == 0 && returns) {
		expect_refusal();
		expect_refusal();
	}
	if (rank == 0 && strcmp(how, "exits") == 0)
		exit(code);
	if (rank == 0 && strcmp(how, "cancels") == 0) {
		MPI_Cancel(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		if (strcmp(k->name, "persistent") == 0)
			MPI_Request_free(&request);
	}
	finalize();
}

/* Every process has one pending that others can complete. */
static void meet(void)
{
	int before = (rank + size - 1) % size;
	MPI_Request others[2];

	return_errors();
	if (rank == 0)
		ibarrier();
	else
		MPI_Irecv(&x, 1, MPI_INT, before, TAG, MPI_COMM_WORLD,
			  &request);
	expect_refusal();
	MPI_Isend(&y, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, &others[0]);
	if (rank == 0)
		MPI_Irecv(&x, 1, MPI_INT, before, TAG, MPI_COMM_WORLD,
			  &others[1]);
	else
		MPI_Ibarrier(MPI_COMM_WORLD, &others[1]);
	MPI_Waitall(2, others, MPI_STATUSES_IGNORE);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (x != y)
		fail("another value came");
	finalize();
}

/* --- operations that complete by themselves --- */

/* The last process receives what the others have sent and freed. */
static void late(void)
{
	int last = size - 1, sources = size > 1 ? last : 1;

	memset(big, rank + 1, BIG);
	if (rank != last || size == 1) {
		MPI_Isend(big, BIG, MPI_BYTE, last, TAG, MPI_COMM_WORLD,
			  &request);
		MPI_Request_free(&request);
	}
	for (int i = 0; rank == last && i < sources; i++) {
		static char got[BIG];

		MPI_Recv(got, BIG, MPI_BYTE, i, TAG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		if (got[0] != i + 1 || got[BIG - 1] != i + 1)
			fail("another message came");
	}
	finalize();
}

/* The data come to a receive that was freed, before MPI_Finalize returns. */
static void comes(void)
{
	if (rank == 0) {
		irecv();
		MPI_Request_free(&request);
	}
	if (rank == (size > 1 ? 1 : 0)) {
		MPI_Isend(&y, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request);
		MPI_Request_free(&request);
	}
	finalize();
	if (rank == 0 && x != y)
		fail("nothing came");
}

static void barriers(void)
{
	static MPI_Comm dup;

	ibarrier();
	MPI_Ibcast(&x, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
	MPI_Comm_idup(MPI_COMM_WORLD, &dup, &request);
	finalize();
}

static int say_finalizing(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm;
	(void)key;
	(void)value;
	(void)extra;
	atomic_store(&polls, 0);
	atomic_store(&finalizing, true);
	return MPI_SUCCESS;
}

static void watch_finalize(enum point point, void (*fn)(void))
{
	int key;

	thread = fn;
	atomic_store(&begins_at, (int)point);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, say_finalizing, &key,
			       NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, key, &key);
}

static void through_several_rounds(void)
{
	while (!atomic_load(&finalizing) || atomic_load(&polls) < POLLS)
		marcel_yield();
}

static marcel_sem_t summed;

static void post_late(void)
{
	through_several_rounds();
	marcel_sem_post(&summed);
}

static void sum(const int *in, int *inout, int n)
{
	for (int i = 0; i < n; i++)
		inout[i] += in[i];
}

/* The last process is at work through several rounds. */
static void slow_sum(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	if (rank == size - 1)
		through_several_rounds();
	sum(in, inout, *n);
}

/* Another thread of the program is. */
static void waiting_sum(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	if (rank == size - 1)
		marcel_sem_wait(&summed);
	sum(in, inout, *n);
}

static void sum_all(MPI_User_function *fn)
{
	MPI_Op op;

	MPI_Op_create(fn, 1, &op);
	MPI_Iallreduce(&y, &x, 1, MPI_INT, op, MPI_COMM_WORLD, &request);
	finalize();
	if (x != y * size)
		fail("another sum came");
}

static void works(void)
{
	watch_finalize(NOWHERE, NULL);
	sum_all(slow_sum);
}

static void works_elsewhere(void)
{
	marcel_sem_init(&summed, 0, 0);
	watch_finalize(LATER_ROUND, post_late);
	sum_all(waiting_sum);
}

/* Puts that nobody has waited for. */
static void puts_left(void)
{
	MPI_Info info;
	MPI_Win win;

	MPI_Info_create(&info);
	MPI_Info_set(info, "alloc_shm", "false");
	MPI_Win_create(big, BIG, 1, info, MPI_COMM_WORLD, &win);
	MPI_Info_free(&info);
	MPI_Win_lock_all(0, win);
	if (rank == 0)
		MPI_Rput(&y, 1, MPI_INT, peer, 0, 1, MPI_INT, win, &request);
	finalize();
	memcpy(&x, big, sizeof(x));
	if (rank == 1 && x != y)
		fail("nothing was put");
}

/* The process cannot leave the job, and says so when it exits. */
static void nm_session(void)
{
	struct nm_session *s;

	return_errors();
	if (rank == 0 && nm_session_open(1, &s) != 0)
		fail("nm_session_open fails");
	if (MPI_Finalize() != (rank == 0 ? MPI_ERR_PENDING : MPI_SUCCESS))
		fail("MPI_Finalize returns something else");
}

/* --- sessions --- */

static MPI_Comm begin_session(MPI_Session *s)
{
	MPI_Comm c;
	MPI_Group g;

	if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, s) !=
	    MPI_SUCCESS)
		fail("MPI_Session_init fails");
	MPI_Group_from_session_pset(*s, "mpi://WORLD", &g);
	MPI_Comm_create_from_group(g, "pending", MPI_INFO_NULL,
				   MPI_ERRORS_RETURN, &c);
	MPI_Group_free(&g);
	return c;
}

static void end_session(MPI_Session *s, MPI_Comm *c)
{
	MPI_Comm_disconnect(c);
	if (MPI_Session_finalize(s) != MPI_SUCCESS)
		fail("MPI_Session_finalize fails");
}

/* The receive is of no session any more, and no message comes. */
static void in_session(void)
{
	MPI_Session s;
	MPI_Comm c = begin_session(&s);

	MPI_Comm_rank(c, &rank);
	if (rank == 0)
		MPI_Irecv(&x, 1, MPI_INT, 0, TAG, c, &request);
	end_session(&s, &c);
}

static atomic_bool is_over;

static void whole_session(void)
{
	MPI_Session s;
	MPI_Comm c = begin_session(&s);

	MPI_Barrier(c);
	end_session(&s, &c);
	atomic_store(&is_over, true);
}

/* Each process is in MPI_Init when one of its threads begins a session. */
static void session_early(void)
{
	marcel_init(NULL);
	thread = whole_session;
	atomic_store(&begins_at, STARTING);
	MPI_Init(NULL, NULL);
	while (!atomic_load(&is_over))
		marcel_yield();
	finalize();
}

/* Rank 0 is in MPI_Finalize when one of its threads meets the others. */
static void session_before(void)
{
	if (rank == 0)
		watch_finalize(FIRST_ROUND, whole_session);
	else
		whole_session();
	finalize();
	while (!atomic_load(&is_over))
		marcel_yield();
}

/* The others are in MPI_Finalize when their threads meet rank 0. */
static void session_after_refusal(void)
{
	return_errors();
	if (rank == 0) {
		irecv();
		expect_refusal();
		whole_session();
		MPI_Cancel(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		watch_finalize(LATER_ROUND, whole_session);
	}
	finalize();
	while (!atomic_load(&is_over))
		marcel_yield();
}

static void expect_no_session(void)
{
	MPI_Session s;

	if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s) !=
	    MPI_ERR_OTHER)
		fail("MPI_Session_init does not fail");
	atomic_store(&is_over, true);
}

/* MPI_Finalize leaves while a thread waits, or comes; it ends that thread's
 * wait, since it waits for the thread's end. */
static void no_session(enum point point)
{
	watch_finalize(point, expect_no_session);
	if (rank == 0 && point == LATER_ROUND)
		isend();
	finalize();
	if (!atomic_load(&is_over))
		fail("the thread has not ended");
}

static void session_waits(void)
{
	no_session(LATER_ROUND);
}

static void session_late(void)
{
	no_session(LEAVING);
}

static const struct {
	const char *name;
	void (*run)(void);
} all_together[] = {
	{ "meet", meet },
	{ "late", late },
	{ "comes", comes },
	{ "barriers", barriers },
	{ "works", works },
	{ "works_elsewhere", works_elsewhere },
	{ "puts", puts_left },
	{ "nm_session", nm_session },
	{ "session_before", session_before },
	{ "session_after_refusal", session_after_refusal },
	{ "session_waits", session_waits },
	{ "session_late", session_late },
};

/* --- a death --- */

/* To the process that dies: an error ends it. */
static void isend_freed_to(int victim)
{
	peer = victim;
	isend_freed();
}

/*
 * One process dies in MPI_Finalize; the others come out of it, and say so. One
 * that could not leave the job does not end by itself then.
 */
static void dies(const char *kind, int victim, int at)
{
	int left = 0;

	return_errors();
	if (strcmp(kind, "isend_freed") != 0)
		kind_of(kind)->start();
	else if (rank != victim)
		isend_freed_to(victim);
	if (rank == victim)
		atomic_store(&steps_left, at);
	while (left == 0) {
		MPI_Finalize();
		MPI_Finalized(&left);
	}
	printf("out\n");
	fflush(stdout);
	while (strcmp(kind, "isend_freed") != 0)
		pause();
}

int main(int argc, char **argv)
{
	const char *name = argv[1], *how = argc > 2 ? argv[2] : "";

	if (strcmp(name, "session") == 0) {
		in_session();
		return 0;
	}
	if (strcmp(name, "session_early") == 0) {
		session_early();
		return 0;
	}
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	peer = (rank + 1) % size;
	for (size_t i = 0; i < sizeof(all_together) / sizeof(all_together[0]);
	     i++)
		if (strcmp(all_together[i].name, name) == 0) {
			all_together[i].run();
			return 0;
		}
	if (strcmp(name, "dies") == 0) {
		dies(how, atoi(argv[3]), atoi(argv[4]));
		return 0;
	}
	one(kind_of(name), how, argc > 3 ? atoi(argv[3]) : 0);
	return 0;
}
