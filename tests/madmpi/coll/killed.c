/*
 * A process is killed in the midst of a collective operation: the others get an
 * error, or the right result if that does not depend on it; nobody hangs, and
 * all may go on without it.
 *
 * Ranks 0 to 2 of MPI_COMM_WORLD live. Each of the others has an operation to
 * die in, with two or all of them, one after the other: which one, in which
 * form, with how much data, in whose place and at which step follow from its
 * rank and the first argument. If that is "first", each dies at the next step
 * of a barrier that is the first one to use the memory of a node. If it is
 * "hosts", ranks 0 and 1 are taken to be on one host, all others on another. If
 * it is "rounds", each dies in a call of several rounds, at a step that follows
 * from its rank and the second argument.
 */
#include <dlfcn.h>
#include <nmad/nmad.h>
#include <nmad/sendrecv.h>
#include <pioman/cond.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../program.h"
#include "calls.h"

static MPI_Comm living;

enum { LIVING = 3, FORM_COUNT = 3, SMALL = 5, LARGE = 20000, SHARED = 10 };

/* --- dying --- */

/* Steps of a collective are calls of these; -1: not now. */
static atomic_int steps_left = -1;

static void die(void)
{
	kill(getpid(), SIGKILL);
}

static void step(void)
{
	if (atomic_load(&steps_left) >= 0 &&
	    atomic_fetch_sub(&steps_left, 1) == 0)
		die();
}

/* Our own definitions of them go before the library's. */
#define SEEN __attribute__((visibility("default")))

SEEN int nm_sr_isend(struct nm_session *s, struct nm_gate *to, nm_tag_t tag,
		     const struct nm_data *data, unsigned flags,
		     struct nm_sr_request *req)
{
	static int (*next)(struct nm_session *, struct nm_gate *, nm_tag_t,
			   const struct nm_data *, unsigned,
			   struct nm_sr_request *);

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "nm_sr_isend");
	step();
	return next(s, to, tag, data, flags, req);
}

static int has_hosts;

SEEN int nm_gate_host(const struct nm_gate *gate)
{
	return has_hosts && nm_gate_rank(gate) >= 2;
}

SEEN void nm_sr_wait(struct nm_sr_request *req)
{
	static void (*next)(struct nm_sr_request *);

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "nm_sr_wait");
	step();
	next(req);
}

SEEN int piom_cond_poll_on(piom_cond_t *c, piom_look_fn look, void *arg)
{
	static int (*next)(piom_cond_t *, piom_look_fn, void *);

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "piom_cond_poll_on");
	step();
	return next(c, look, arg);
}

SEEN int nm_gate_read(const struct nm_gate *gate, const struct nm_data *d,
		      size_t offset, size_t length, uint64_t remote)
{
	static int (*next)(const struct nm_gate *, const struct nm_data *,
			   size_t, size_t, uint64_t);

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "nm_gate_read");
	step();
	return next(gate, d, offset, length, remote);
}

/*
 * The rank that mpirun knows is a process that never dies, so that the job goes
 * on: it says the goodbye of the one that runs the program. But not of one that
 * was to live, or that has ended in another way: mpirun is to name it.
 */
static void guard(void)
{
	static const char goodbye[] = "cmd=finalize\n";
	const char *fd = getenv("PMI_FD"), *number = getenv("PMI_RANK");
	int lives = number == NULL || atoi(number) < LIVING;
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return;
	}
	while (waitpid(pid, &status, 0) != pid)
		continue;
	if (WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	if (WTERMSIG(status) != SIGKILL || lives)
		kill(getpid(), WTERMSIG(status));
	if (fd == NULL || write(atoi(fd), goodbye, strlen(goodbye)) < 0)
		_exit(1);
	_exit(0);
}

/* --- in a ring --- */

static int neighbor_allgather(struct call *x, enum form form)
{
	return FORMS(form, Neighbor_allgather, neighbor_allgather, x->in, x->n,
		     x->type, x->out, x->n, x->type, x->comm);
}

static int neighbor_allgatherv(struct call *x, enum form form)
{
	x->counts[0] = x->counts[1] = x->n;
	return FORMS(form, Neighbor_allgatherv, neighbor_allgatherv, x->in,
		     x->n, x->type, x->out, x->counts, x->displs, x->type,
		     x->comm);
}

static int neighbor_alltoall(struct call *x, enum form form)
{
	return FORMS(form, Neighbor_alltoall, neighbor_alltoall, x->in, x->n,
		     x->type, x->out, x->n, x->type, x->comm);
}

static int neighbor_alltoallv(struct call *x, enum form form)
{
	x->counts[0] = x->counts[1] = x->n;
	return FORMS(form, Neighbor_alltoallv, neighbor_alltoallv, x->in,
		     x->counts, x->displs, x->type, x->out, x->counts,
		     x->displs, x->type, x->comm);
}

static int neighbor_alltoallw(struct call *x, enum form form)
{
	MPI_Aint displs[2] = { 0, x->bdispls[1] };
	MPI_Datatype types[2] = { x->type, x->type };

	x->counts[0] = x->counts[1] = x->n;
	return FORMS(form, Neighbor_alltoallw, neighbor_alltoallw, x->in,
		     x->counts, displs, types, x->out, x->counts, displs, types,
		     x->comm);
}

static const struct operation of_neighbours[] = {
	{ "neighbor_allgather", neighbor_allgather, 0, 0, 0, 0 },
	{ "neighbor_allgatherv", neighbor_allgatherv, 0, 0, 0, 0 },
	{ "neighbor_alltoall", neighbor_alltoall, 0, 0, 0, 0 },
	{ "neighbor_alltoallv", neighbor_alltoallv, 0, 0, 0, 0 },
	{ "neighbor_alltoallw", neighbor_alltoallw, 0, 0, 0, 0 },
};

enum { RINGS = sizeof(of_neighbours) / sizeof(of_neighbours[0]) };

/* --- one death --- */

struct death {
	int victim; /* in MPI_COMM_WORLD */
	enum form form;
	int n;     /* how many take part */
	int place; /* its rank among them */
	int step;
	int first; /* how many are in the first of two groups; 0: one group */
	int in_ring;
	int before; /* blocking operations */
	struct call x;
};

/* In one group each operation in each form; then in a ring; in two groups. */
static void plan(struct death *d, int i, int seed)
{
	int salt = i + seed, more = i - FORM_COUNT * OPERATIONS;

	*d = (struct death){ .victim = LIVING + i, .before = SHARED };
	d->form = (enum form)(i / OPERATIONS % FORM_COUNT);
	d->n = LIVING + salt % 2;
	d->place = salt / 2 % d->n;
	d->step = salt * 7 % 5;
	d->x.op = &operations[i % OPERATIONS];
	if (more >= 0)
		d->form = (enum form)(salt % FORM_COUNT);
	if (more >= 0 && more < RINGS) {
		d->in_ring = 1;
		d->x.op = &of_neighbours[more];
	}
	if (more >= RINGS) {
		d->x.op = &operations[(more - RINGS) % OPERATIONS];
		d->first = d->x.op->within_one_group ? 0 : 1 + salt % 2;
	}
	d->x.kind = INTS;
	if (d->x.op->has_root)
		d->x.root = d->first ? 0 : salt / 3 % d->n;
	d->x.n = salt % 3 == 0 ? LARGE : SMALL;
	d->x.seed = salt;
}

/* The last of four; the memory is made by the ninth operation. */
static void plan_first(struct death *d, int i, int seed)
{
	(void)seed;
	*d = (struct death){ .victim = LIVING + i, .before = 7 };
	d->n = LIVING + 1;
	d->place = LIVING;
	d->step = i;
	d->x.op = &operations[0];
	d->x.n = SMALL;
}

/* Of the communicator one of another kind, instead. */
static void change(struct death *d)
{
	int one = 1, me, leader;
	MPI_Comm all = d->x.comm, half;

	if (d->in_ring) {
		MPI_Cart_create(all, 1, &d->n, &one, 0, &d->x.comm);
	} else if (d->first > 0) {
		MPI_Comm_rank(all, &me);
		leader = me < d->first ? d->first : 0;
		MPI_Comm_split(all, me < d->first, me, &half);
		MPI_Intercomm_create(half, 0, all, leader, 0, &d->x.comm);
		MPI_Comm_free(&half);
	} else {
		return;
	}
	MPI_Comm_free(&all);
}

static void unite(struct death *d)
{
	int members[LIVING + 1], living = 0;
	MPI_Group world, group;

	for (int r = 0; r < d->n; r++)
		members[r] = r == d->place ? d->victim : living++;
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, d->n, members, &group);
	EXPECT_INT(MPI_Comm_create_group(MPI_COMM_WORLD, group, d->victim,
					 &d->x.comm),
		   MPI_SUCCESS);
	MPI_Group_free(&group);
	MPI_Group_free(&world);
	/* Blocking operations use shared memory then, where there is some. */
	for (int i = 0; i < d->before && d->form == BLOCKING; i++)
		EXPECT_INT(MPI_Barrier(d->x.comm), MPI_SUCCESS);
}

static int run(struct call *x, enum form form)
{
	int rc = MPI_SUCCESS;

	if (form != PERSISTENT)
		rc = x->op->call(x, form);
	else
		MPI_Start(&x->request);
	return form == BLOCKING ? rc : MPI_Wait(&x->request, MPI_STATUS_IGNORE);
}

static void expect_the_end(const struct death *d, int rc, const char *right)
{
	int class = class_of(rc);
	int wrong = class == MPI_SUCCESS
			    ? memcmp(d->x.out, right, d->x.bytes) != 0
			    : class != MPI_ERR_PROC_ABORTED;

	/* Nobody leaves a barrier into which he has not come. */
	if (d->step == 0 && d->x.op->call == barrier)
		wrong |= class == MPI_SUCCESS;
	if (wrong)
		fprintf(stderr,
			"%s (form %d, n %d, root %d, first %d) with %d of %d "
			"killed at "
			"step %d: class %d\n",
			d->x.op->name, (int)d->form, d->x.n, d->x.root,
			d->first, d->place, d->n, d->step, class);
	EXPECT(!wrong);
}

static void carry_out(struct death *d)
{
	char *right;
	int rc;

	unite(d);
	change(d);
	call_make(&d->x);
	right = malloc(d->x.bytes);
	EXPECT(right != NULL);
	if (d->form == PERSISTENT)
		EXPECT_INT(d->x.op->call(&d->x, PERSISTENT), MPI_SUCCESS);
	call_fill(&d->x);
	EXPECT_INT(run(&d->x, d->form), MPI_SUCCESS);
	memcpy(right, d->x.out, d->x.bytes);
	call_fill(&d->x);
	/* In shared memory he has come before he first waits. */
	if (rank == d->victim && d->step == 0 && d->form == BLOCKING)
		die();
	if (rank == d->victim)
		atomic_store(&steps_left, d->step);
	rc = run(&d->x, d->form);
	if (rank == d->victim)
		die(); /* there were fewer */
	expect_the_end(d, rc, right);
	for (int i = 0; i < 2 && d->before < SHARED; i++)
		FAILS(MPI_Barrier(d->x.comm), MPI_ERR_PROC_ABORTED);
	if (d->form == PERSISTENT)
		MPI_Request_free(&d->x.request);
	free(right);
	call_drop(&d->x);
	MPI_Comm_free(&d->x.comm);
}

/* --- calls of several rounds --- */

/* A call has made one of the two here, or none: both are null then. */
struct made {
	MPI_Comm comm;
	MPI_Win win;
	int bytes; /* of each process, in the window */
};

/* More than a request for it carries. */
enum { LENT = 3 * 4096 };

static char lent[LENT]; /* to a window */

static int next_of(const struct death *d)
{
	int me;

	MPI_Comm_rank(d->x.comm, &me);
	return (me + 1) % d->n;
}

static int win_create(struct death *d, struct made *m)
{
	memset(lent, 0, LENT);
	m->bytes = LENT;
	return MPI_Win_create(lent, LENT, 1, MPI_INFO_NULL, d->x.comm, &m->win);
}

static int win_create_dynamic(struct death *d, struct made *m)
{
	return MPI_Win_create_dynamic(MPI_INFO_NULL, d->x.comm, &m->win);
}

static int win_allocate(struct death *d, struct made *m)
{
	void *memory;

	m->bytes = 16;
	return MPI_Win_allocate(16, 1, MPI_INFO_NULL, d->x.comm, &memory,
				&m->win);
}

static int win_allocate_shared(struct death *d, struct made *m)
{
	void *memory;

	m->bytes = 16;
	return MPI_Win_allocate_shared(16, 1, MPI_INFO_NULL, d->x.comm, &memory,
				       &m->win);
}

static int split_type(struct death *d, struct made *m)
{
	return MPI_Comm_split_type(d->x.comm, MPI_COMM_TYPE_SHARED, 0,
				   MPI_INFO_NULL, &m->comm);
}

static int cart_create(struct death *d, struct made *m)
{
	int no = 0;

	return MPI_Cart_create(d->x.comm, 1, &d->n, &no, 1, &m->comm);
}

static int graph_create(struct death *d, struct made *m)
{
	int ends[LIVING + 1], to[LIVING + 1];

	for (int i = 0; i < d->n; i++) {
		ends[i] = i + 1;
		to[i] = (i + 2) % d->n;
	}
	return MPI_Graph_create(d->x.comm, d->n, ends, to, 1, &m->comm);
}

/* Each describes an edge of another, so that edges travel. */
static int dist_graph_create(struct death *d, struct made *m)
{
	int from = next_of(d), to = (from + 1) % d->n, one = 1;

	return MPI_Dist_graph_create(d->x.comm, 1, &from, &one, &to, &one,
				     MPI_INFO_NULL, 1, &m->comm);
}

static int dist_graph_create_adjacent(struct death *d, struct made *m)
{
	int to = next_of(d), from = (to + d->n - 2) % d->n, one = 1;

	return MPI_Dist_graph_create_adjacent(d->x.comm, 1, &from, &one, 1, &to,
					      &one, MPI_INFO_NULL, 1, &m->comm);
}

static int comm_split(struct death *d, struct made *m)
{
	return MPI_Comm_split(d->x.comm, 0, 0, &m->comm);
}

static int comm_dup(struct death *d, struct made *m)
{
	return MPI_Comm_dup(d->x.comm, &m->comm);
}

static int comm_idup(struct death *d, struct made *m)
{
	MPI_Request request;

	EXPECT_INT(MPI_Comm_idup(d->x.comm, &m->comm, &request), MPI_SUCCESS);
	return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Ranks 0 and 1, and the others; the leaders are 1 and 3. */
static int intercomm_create_from_groups(struct death *d, struct made *m)
{
	int ranks[] = { 0, 1, 2, 3 }, world_ranks[LIVING + 1], me, upper, rc;
	MPI_Group all, first, world, local, remote;
	MPI_Session session;

	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
	MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
	MPI_Comm_group(d->x.comm, &all);
	MPI_Comm_group(MPI_COMM_WORLD, &first);
	MPI_Group_translate_ranks(all, d->n, ranks, first, world_ranks);
	MPI_Group_free(&first);
	MPI_Comm_rank(d->x.comm, &me);
	upper = me >= 2 ? 2 : 0;
	MPI_Group_incl(world, 2, world_ranks + upper, &local);
	MPI_Group_incl(world, 2, world_ranks + 2 - upper, &remote);
	rc = MPI_Intercomm_create_from_groups(local, 1, remote, 1, "killed",
					      MPI_INFO_NULL, MPI_ERRORS_RETURN,
					      &m->comm);
	if (m->comm != MPI_COMM_NULL)
		MPI_Comm_free(&m->comm);
	MPI_Group_free(&remote);
	MPI_Group_free(&local);
	MPI_Group_free(&all);
	MPI_Group_free(&world);
	MPI_Session_finalize(&session);
	return rc;
}

static const struct {
	const char *name;
	int (*call)(struct death *d, struct made *m);
	int is_told_all; /* every process needs what each has */
} of_rounds[] = {
	{ "win_create", win_create, 1 },
	{ "win_create_dynamic", win_create_dynamic, 1 },
	{ "win_allocate", win_allocate, 1 },
	{ "win_allocate_shared", win_allocate_shared, 1 },
	{ "split_type", split_type, 1 },
	{ "cart_create", cart_create, 1 },
	{ "graph_create", graph_create, 1 },
	{ "dist_graph_create", dist_graph_create, 1 },
	{ "dist_graph_create_adjacent", dist_graph_create_adjacent, 1 },
	{ "split", comm_split, 1 },
	{ "dup", comm_dup, 0 },
	{ "idup", comm_idup, 0 },
	{ "intercomm_create_from_groups", intercomm_create_from_groups, 0 },
};

enum { ROUNDS = sizeof(of_rounds) / sizeof(of_rounds[0]), STRIDE = 3 };

static void plan_rounds(struct death *d, int i, int seed)
{
	*d = (struct death){ .victim = LIVING + i, .n = LIVING + 1 };
	d->step = i / ROUNDS * STRIDE + seed;
	d->place = (i / ROUNDS + i) % d->n;
}

/* A byte, and all of them. The member may lack the window. */
static void put(const struct made *m, int r)
{
	static char ones[LENT];
	int class;

	memset(ones, 1, LENT);
	if (m->bytes > 0) {
		MPI_Put(ones, 1, MPI_CHAR, r, 0, 1, MPI_CHAR, m->win);
		MPI_Put(ones, m->bytes, MPI_CHAR, r, 0, m->bytes, MPI_CHAR,
			m->win);
	}
	class = class_of(MPI_Win_unlock(r, m->win));
	EXPECT(class == MPI_SUCCESS || class == MPI_ERR_RMA_RANGE);
}

/*
 * The members that have a window can use it among each other, and no barrier of
 * it succeeds. A member may lack it: of that one they get a lock at least. One
 * that dies after the call may give a lock before: so its end is waited for.
 */
static void use_without_the_dead(const struct death *d, const struct made *m)
{
	MPI_Win win = m->win;

	FAILS(MPI_Recv(NULL, 0, MPI_BYTE, d->place, 0, d->x.comm,
		       MPI_STATUS_IGNORE),
	      MPI_ERR_PROC_ABORTED);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	for (int r = 0; r < d->n; r++) {
		int rc = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, r, 0, win);

		EXPECT_INT(class_of(rc),
			   r == d->place ? MPI_ERR_PROC_ABORTED : MPI_SUCCESS);
		if (rc == MPI_SUCCESS)
			put(m, r);
	}
	for (int i = 0; i < 2; i++)
		FAILS(MPI_Win_fence(0, win), MPI_ERR_PROC_ABORTED);
	FAILS(MPI_Win_free(&win), MPI_ERR_PROC_ABORTED);
}

static void carry_out_rounds(struct death *d)
{
	int call = (d->victim - LIVING) % ROUNDS, class;
	struct made m = { MPI_COMM_NULL, MPI_WIN_NULL, 0 };

	unite(d);
	if (rank == d->victim && d->step == 0)
		die();
	if (rank == d->victim)
		atomic_store(&steps_left, d->step - 1);
	class = class_of(of_rounds[call].call(d, &m));
	if (rank == d->victim)
		die();
	if (class != MPI_ERR_PROC_ABORTED &&
	    (class != MPI_SUCCESS ||
	     (d->step == 0 && of_rounds[call].is_told_all)))
		fprintf(stderr, "%s with %d killed at step %d: class %d\n",
			of_rounds[call].name, d->place, d->step, class);
	EXPECT(class == MPI_ERR_PROC_ABORTED ||
	       (class == MPI_SUCCESS &&
		(d->step > 0 || !of_rounds[call].is_told_all)));
	/* At once: another process may still wait inside of the call. */
	if (m.win != MPI_WIN_NULL)
		use_without_the_dead(d, &m);
	/* All have come through as many steps of the parent. */
	for (int i = 0; i < 2; i++)
		FAILS(MPI_Barrier(d->x.comm), MPI_ERR_PROC_ABORTED);
	if (m.comm != MPI_COMM_NULL)
		MPI_Comm_free(&m.comm);
	MPI_Comm_free(&d->x.comm);
	/* All have put. Nobody has to a process that got an error. */
	MPI_Barrier(living);
	if (m.bytes == LENT && m.win == MPI_WIN_NULL)
		EXPECT(lent[0] == 0 && memcmp(lent, lent + 1, LENT - 1) == 0);
}

static const struct mode {
	const char *name;
	void (*plan)(struct death *d, int i, int seed);
	void (*carry_out)(struct death *d);
} modes[] = {
	{ "first", plan_first, carry_out },
	{ "rounds", plan_rounds, carry_out_rounds },
	{ "", plan, carry_out },
};

static const struct mode *mode_named(const char *name)
{
	const struct mode *m = modes;

	while (m->name[0] != '\0' && strcmp(m->name, name) != 0)
		m++;
	return m;
}

int main(int argc, char **argv)
{
	const struct mode *mode = mode_named(argc > 1 ? argv[1] : "");
	int seed = argc > 1 ? atoi(argv[argc - 1]) : 0, all = 0;
	MPI_Group world, group;
	struct death d;

	has_hosts = argc > 1 && strcmp(argv[1], "hosts") == 0;
	guard();
	program_begin(&argc, &argv);
	EXPECT(size > LIVING);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (rank >= LIVING) {
		mode->plan(&d, rank - LIVING, seed);
		mode->carry_out(&d);
	}
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, LIVING, (int[]){ 0, 1, 2 }, &group);
	MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &living);
	for (int i = 0; i < size - LIVING; i++) {
		mode->plan(&d, i, seed);
		if (rank < d.n - 1)
			mode->carry_out(&d);
		EXPECT_INT(
			MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, living),
			MPI_SUCCESS);
		EXPECT_INT(all, 0 + 1 + 2);
	}
	if (rank == 0)
		printf("killed: ok, %d times\n", size - LIVING);
	MPI_Group_free(&group);
	MPI_Group_free(&world);
	MPI_Comm_free(&living);
	return MPI_Finalize();
}
