/*
 * What the algorithms of collective operations cost with up to 1,024 processes,
 * held against the formulas of the table (madmpi/coll/choose.c), and whether
 * their results are right.
 *
 * All processes are threads of this one, each with a communicator of its own
 * that says which rank it is. The library above nmad is the real one; in place
 * of nmad's requests are those below, which pair a send with a receive, move
 * the data and count. Each process has a clock of steps: a message takes one,
 * from when both of its ends have come to it, and who waits for it goes on
 * then. So nothing is sent before somebody receives it, and an algorithm that
 * relies on memory for messages in between gets stuck.
 */
#include <errno.h>
#include <marcel/marcel.h>
#include <stdlib.h>

#include "bodies.h"
#include "coll/choose.h"
#include "coll/coll.h"

#include "../../check.h"
#include "formula.h"

/* --- the network --- */

/* A send or a receive: in the memory of nmad's request. */
struct half {
	struct half *next; /* in the line of its pair */
	struct process *owner;
	struct nm_data data;
	nm_tag_t tag;
	bool is_send, is_over;
	int error;
	long step; /* when it was begun, then when it was over */
};

_Static_assert(sizeof(struct half) <= sizeof(struct nm_sr_request),
	       "a request has room for it");

/* In one direction. */
struct traffic {
	long messages, bytes;
};

struct process {
	/* -: const  l: lock  o: its thread's, then main's */
	struct madmpi_comm comm;    /* o: */
	MPI_Comm handle;            /* -: */
	marcel_t thread;            /* main's */
	marcel_sem_t over;          /* what it awaits */
	const struct half *awaited; /* l: */
	long step;                  /* o: its clock */
	struct traffic sent, got;   /* l: */
	uint32_t *out, *in;         /* o: */
	int rank;                   /* -: */
	int error;                  /* o: of the operation */
	bool is_wrong;              /* o: not the result */
};

static struct world {
	int p;
	struct process *processes;
	struct nm_gate **gates;
	struct half **lines; /* l: [from * p + to]: either sends or receives */
	marcel_mutex_t lock;
} world;

static struct half *half_of(struct nm_sr_request *req)
{
	return (struct half *)req->nm_words;
}

static void end(struct half *h, long step, int error)
{
	h->step = step;
	h->error = error;
	h->is_over = true;
	if (h->owner->awaited == h) {
		h->owner->awaited = NULL;
		marcel_sem_post(&h->owner->over);
	}
}

static void count(struct traffic *t, size_t bytes)
{
	t->messages++;
	t->bytes += (long)bytes;
}

static void meet(struct half *s, struct half *r)
{
	long step = 1 + (s->step > r->step ? s->step : r->step);
	size_t bytes = s->data.length;
	char *tmp = malloc(bytes + 1);

	count(&s->owner->sent, bytes);
	count(&r->owner->got, bytes);
	if (tmp != NULL && bytes == r->data.length && s->tag == r->tag) {
		nm_data_copy_out(&s->data, 0, tmp, bytes);
		nm_data_copy_in(&r->data, 0, tmp, bytes);
		end(s, step, 0);
		end(r, step, 0);
	} else {
		end(s, step, -EMSGSIZE);
		end(r, step, -EMSGSIZE);
	}
	free(tmp);
}

/* Line up, or take the first that waits for it. */
static void post(struct half *h, int from, int to)
{
	struct half **line =
		&world.lines[(size_t)from * (size_t)world.p + (size_t)to];
	struct half *first;

	marcel_mutex_lock(&world.lock);
	first = *line;
	if (first != NULL && first->is_send != h->is_send) {
		*line = first->next;
		meet(h->is_send ? h : first, h->is_send ? first : h);
	} else {
		while (*line != NULL)
			line = &(*line)->next;
		*line = h;
	}
	marcel_mutex_unlock(&world.lock);
}

/* The session of a communicator is its process, the gate of a rank is too. */
static void begin(struct nm_sr_request *req, struct nm_session *s, nm_tag_t tag,
		  const struct nm_data *data, bool is_send)
{
	struct process *me = (struct process *)s;

	*half_of(req) = (struct half){ .owner = me,
				       .data = *data,
				       .tag = tag,
				       .is_send = is_send,
				       .step = me->step };
}

/* The linker puts these in place of nmad's. */
int __wrap_nm_sr_isend(struct nm_session *s, struct nm_gate *to, nm_tag_t tag,
		       const struct nm_data *data, unsigned flags,
		       struct nm_sr_request *req);
int __wrap_nm_sr_irecv(struct nm_session *s, struct nm_gate *from, nm_tag_t tag,
		       nm_tag_t mask, const struct nm_data *data,
		       struct nm_sr_request *req);
void __wrap_nm_sr_wait(struct nm_sr_request *req);
void __wrap_nm_sr_status(const struct nm_sr_request *req,
			 struct nm_sr_status *out);

int __wrap_nm_sr_isend(struct nm_session *s, struct nm_gate *to, nm_tag_t tag,
		       const struct nm_data *data, unsigned flags,
		       struct nm_sr_request *req)
{
	(void)flags;
	begin(req, s, tag, data, true);
	post(half_of(req), ((struct process *)s)->rank,
	     ((struct process *)to)->rank);
	return 0;
}

int __wrap_nm_sr_irecv(struct nm_session *s, struct nm_gate *from, nm_tag_t tag,
		       nm_tag_t mask, const struct nm_data *data,
		       struct nm_sr_request *req)
{
	begin(req, s, tag, data, false);
	post(half_of(req), ((struct process *)from)->rank,
	     ((struct process *)s)->rank);
	return mask == NM_TAG_EXACT ? 0 : -EINVAL;
}

void __wrap_nm_sr_wait(struct nm_sr_request *req)
{
	struct half *h = half_of(req);
	struct process *me = h->owner;
	bool is_over;

	marcel_mutex_lock(&world.lock);
	is_over = h->is_over;
	me->awaited = is_over ? NULL : h;
	marcel_mutex_unlock(&world.lock);
	if (!is_over)
		marcel_sem_wait(&me->over);
	me->step = h->step > me->step ? h->step : me->step;
}

void __wrap_nm_sr_status(const struct nm_sr_request *req,
			 struct nm_sr_status *out)
{
	const struct half *h = half_of((struct nm_sr_request *)req);

	*out = (struct nm_sr_status){ .error = h->error,
				      .sent = h->data.length };
}

/* --- the operations --- */

/* One operation of all processes. */
struct job {
	int root, count; /* of elements, of all the data or of a part */
	MPI_Op op;
	uint32_t *sums;      /* over ranks 0 to r: [r * width + i] */
	int width;           /* of what is reduced */
	ATOMIC(int) entered; /* a: a barrier; no order hangs on it */
};

static struct job job;

/* What rank r has at place i. */
static uint32_t value(int r, int i)
{
	return ((uint32_t)r + 1) * 2654435761u ^ (uint32_t)i * 40503u;
}

/* Two functions a x + b modulo 2^16, one after the other. */
static uint32_t after(uint32_t f, uint32_t g)
{
	uint32_t a = (f & 0xffff) * (g & 0xffff);
	uint32_t b = (g & 0xffff) * (f >> 16) + (g >> 16);

	return (a & 0xffff) | b << 16;
}

static void apply(void *in, void *inout, int *n, MPI_Datatype *t)
{
	uint32_t *x = in, *y = inout;

	(void)t;
	for (int i = 0; i < *n; i++)
		y[i] = after(x[i], y[i]);
}

static uint32_t combine(uint32_t x, uint32_t y)
{
	return job.op == MPI_SUM ? x + y : after(x, y);
}

/* n elements from place `at` on, which are rank r's from place `from` on. */
static void expect(struct process *me, int at, int r, int from, int n)
{
	for (int i = 0; i < n; i++)
		if (me->in[at + i] != value(r, from + i))
			me->is_wrong = true;
}

static void expect_sums(struct process *me, int r, int from, int n)
{
	for (int i = 0; i < n; i++)
		if (me->in[i] != job.sums[r * job.width + from + i])
			me->is_wrong = true;
}

static void run_barrier(struct process *me)
{
	fetch_add_relaxed(&job.entered, 1);
	me->error = madmpi_barrier(me->handle);
	me->is_wrong = load_relaxed(&job.entered) != world.p;
}

static void run_bcast(struct process *me)
{
	bool is_root = me->rank == job.root;

	me->error = madmpi_bcast(is_root ? me->out : me->in, job.count,
				 MPI_UINT32_T, job.root, me->handle);
	if (!is_root)
		expect(me, 0, job.root, 0, job.count);
}

static void run_reduce(struct process *me)
{
	me->error = madmpi_reduce(me->out, me->in, job.count, MPI_UINT32_T,
				  job.op, job.root, me->handle);
	if (me->rank == job.root)
		expect_sums(me, world.p - 1, 0, job.count);
}

static void run_allreduce(struct process *me)
{
	me->error = madmpi_allreduce(me->out, me->in, job.count, MPI_UINT32_T,
				     job.op, me->handle);
	expect_sums(me, world.p - 1, 0, job.count);
}

static void run_scan(struct process *me)
{
	me->error = madmpi_scan(me->out, me->in, job.count, MPI_UINT32_T,
				job.op, me->handle);
	expect_sums(me, me->rank, 0, job.count);
}

static void run_exscan(struct process *me)
{
	me->error = madmpi_exscan(me->out, me->in, job.count, MPI_UINT32_T,
				  job.op, me->handle);
	if (me->rank > 0)
		expect_sums(me, me->rank - 1, 0, job.count);
}

static void run_gather(struct process *me)
{
	me->error =
		madmpi_gather(me->out, job.count, MPI_UINT32_T, me->in,
			      job.count, MPI_UINT32_T, job.root, me->handle);
	for (int r = 0; r < world.p && me->rank == job.root; r++)
		expect(me, r * job.count, r, 0, job.count);
}

static void run_scatter(struct process *me)
{
	me->error =
		madmpi_scatter(me->out, job.count, MPI_UINT32_T, me->in,
			       job.count, MPI_UINT32_T, job.root, me->handle);
	expect(me, 0, job.root, me->rank * job.count, job.count);
}

static void run_allgather(struct process *me)
{
	me->error = madmpi_allgather(me->out, job.count, MPI_UINT32_T, me->in,
				     job.count, MPI_UINT32_T, me->handle);
	for (int r = 0; r < world.p; r++)
		expect(me, r * job.count, r, 0, job.count);
}

/* Parts of the same length, the last one in front. */
static void run_allgatherv(struct process *me)
{
	int *counts = malloc(2 * (size_t)world.p * sizeof(*counts));
	int *displs = counts + world.p;

	for (int r = 0; r < world.p; r++) {
		counts[r] = job.count;
		displs[r] = (world.p - 1 - r) * job.count;
	}
	me->error = madmpi_allgatherv(me->out, job.count, MPI_UINT32_T, me->in,
				      madmpi_array_int(counts),
				      madmpi_array_int(displs), MPI_UINT32_T,
				      me->handle);
	for (int r = 0; r < world.p; r++)
		expect(me, displs[r], r, 0, job.count);
	free(counts);
}

static void expect_alltoall(struct process *me)
{
	for (int r = 0; r < world.p; r++)
		expect(me, r * job.count, r, me->rank * job.count, job.count);
}

static void run_alltoall(struct process *me)
{
	me->error = madmpi_alltoall(me->out, job.count, MPI_UINT32_T, me->in,
				    job.count, MPI_UINT32_T, me->handle);
	expect_alltoall(me);
}

static void run_alltoall_in_place(struct process *me)
{
	for (int i = 0; i < world.p * job.count; i++)
		me->in[i] = value(me->rank, i);
	me->error = madmpi_alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, me->in,
				    job.count, MPI_UINT32_T, me->handle);
	expect_alltoall(me);
}

static void run_reduce_scatter(struct process *me)
{
	me->error = madmpi_reduce_scatter_block(
		me->out, me->in, job.count, MPI_UINT32_T, job.op, me->handle);
	expect_sums(me, world.p - 1, me->rank * job.count, job.count);
}

/* --- which operation shows which algorithm --- */

enum kind {
	NOTHING, /* no data */
	WHOLE,   /* as many elements as processes */
	PARTS,   /* a part of so few elements for each */
};

enum { PART = 2 };

struct probe {
	const char *operation, *name;
	void (*run)(struct process *me);
	enum kind kind;
	int roots;     /* from rank 0 on: 0, p - 1 */
	bool reduces;  /* with a sum */
	bool in_order; /* or with what does not commute */
	int first;     /* root, in `roots` */
	int exact;     /* with fewer processes it may take fewer steps */
};

static const struct probe probes[] = {
	{ "barrier", "dissemination", run_barrier, NOTHING, 1 },
	{ "bcast", "binomial", run_bcast, WHOLE, 2 },
	{ "bcast", "scatter_ring", run_bcast, WHOLE, 2 },
	{ "reduce", "binomial", run_reduce, WHOLE, 2, .reduces = true },
	{ "reduce", "binomial", run_reduce, WHOLE, 1, .in_order = true },
	{ "reduce", "by_rank_0", run_reduce, WHOLE, 2, .in_order = true,
	  .first = 1 },
	{ "allreduce", "doubling", run_allreduce, WHOLE, 1, .reduces = true,
	  .in_order = true },
	{ "allreduce", "ring", run_allreduce, WHOLE, 1, .reduces = true },
	{ "gather", "linear", run_gather, PARTS, 2 },
	{ "scatter", "linear", run_scatter, PARTS, 2 },
	{ "allgather", "bruck", run_allgather, PARTS, 1 },
	{ "allgather", "ring", run_allgather, PARTS, 1 },
	{ "allgatherv", "ring", run_allgatherv, PARTS, 1 },
	{ "alltoall", "pairwise", run_alltoall, PARTS, 1 },
	/* Of two, each rests while the other does. */
	{ "alltoall", "swap", run_alltoall_in_place, PARTS, 1, .exact = 3 },
	{ "reduce_scatter", "pairwise", run_reduce_scatter, PARTS, 1,
	  .reduces = true },
	{ "reduce_scatter", "reduce", run_reduce_scatter, PARTS, 1,
	  .reduces = true, .in_order = true },
	{ "scan", "doubling", run_scan, WHOLE, 1, .reduces = true,
	  .in_order = true },
	{ "scan", "doubling", run_exscan, WHOLE, 1, .reduces = true,
	  .in_order = true },
};

static const struct madmpi_algorithm *row_of(const struct probe *p)
{
	for (size_t i = 0; i < madmpi_algorithms_n; i++)
		if (strcmp(madmpi_algorithms[i].operation, p->operation) == 0 &&
		    strcmp(madmpi_algorithms[i].name, p->name) == 0)
			return &madmpi_algorithms[i];
	return NULL;
}

static bool has_probe(const struct madmpi_algorithm *a)
{
	for (size_t k = 0; k < BASE_ARRAY_LEN(probes); k++)
		if (row_of(&probes[k]) == a)
			return true;
	return false;
}

/*
 * What sends no messages, as memory is shared, has no network to be put on;
 * what crosses hosts is counted by hosts.c.
 */
TEST(every_algorithm_is_looked_at)
{
	for (size_t k = 0; k < BASE_ARRAY_LEN(probes); k++)
		CHECK(row_of(&probes[k]) != NULL);
	for (size_t i = 0; i < madmpi_algorithms_n; i++) {
		const struct madmpi_algorithm *a = &madmpi_algorithms[i];

		CHECK(formula_value(a->steps, 1024, 8) > 0);
		CHECK(formula_value(a->bytes, 1024, 8) >= 0);
		if (formula_value(a->messages, 1024, 8) > 0 &&
		    strcmp(a->name, "hosts") != 0 && !has_probe(a))
			check_fail(__FILE__, __LINE__, "%s, %s: no probe",
				   a->operation, a->name);
	}
}

/* As MADMPI_COLL_...=name, where there is a choice. */
static void force(const struct probe *p)
{
	const struct base_option_table *t = &madmpi_coll_options;

	for (size_t i = 0; i < t->n; i++) {
		struct base_option *o = &t->options[i];
		const char *of = o->name + strlen("MADMPI_COLL_");

		for (long k = 1;
		     strcasecmp(of, p->operation) == 0 && o->choices[k] != NULL;
		     k++)
			if (strcmp(o->choices[k], p->name) == 0)
				o->value = k;
	}
}

/* --- all processes --- */

static void world_open(int p)
{
	size_t n = (size_t)p, elements = (size_t)(PART * p);

	world.p = p;
	world.processes = calloc(n, sizeof(*world.processes));
	world.gates = calloc(n, sizeof(*world.gates));
	world.lines = calloc(n * n, sizeof(*world.lines));
	job.sums = malloc(n * elements * sizeof(*job.sums));
	for (int r = 0; r < p; r++) {
		struct process *me = &world.processes[r];

		world.gates[r] = (struct nm_gate *)me;
		madmpi_object_init(&me->comm.object, MADMPI_COMM);
		me->comm.rank = r;
		me->comm.size = me->comm.npeers = p;
		me->comm.gate = me->comm.local_gate = world.gates;
		me->comm.coll = (struct nm_session *)me;
		me->comm.no_node = true;
		me->handle = (MPI_Comm)&me->comm;
		me->rank = r;
		marcel_sem_init(&me->over, 0, 0);
		me->out = malloc(elements * sizeof(*me->out));
		me->in = malloc(elements * sizeof(*me->in));
		for (size_t i = 0; i < elements; i++)
			me->out[i] = value(r, (int)i);
	}
}

static void world_close(void)
{
	for (int r = 0; r < world.p; r++) {
		marcel_sem_destroy(&world.processes[r].over);
		free(world.processes[r].out);
		free(world.processes[r].in);
	}
	free(job.sums);
	free(world.lines);
	free(world.gates);
	free(world.processes);
}

/* What the reductions have to come to. */
static void add_up(void)
{
	for (int r = 0; r < world.p; r++) {
		const uint32_t *out = world.processes[r].out;
		uint32_t *s = job.sums + (size_t)r * (size_t)job.width;

		for (int i = 0; i < job.width; i++)
			s[i] = r == 0 ? out[i]
				      : combine(s[i - job.width], out[i]);
	}
}

static const struct probe *now;

static void *run_one(void *arg)
{
	now->run(arg);
	return NULL;
}

static void run_all(const struct probe *p)
{
	now = p;
	force(p);
	store_relaxed(&job.entered, 0);
	for (int r = 0; r < world.p; r++) {
		struct process *me = &world.processes[r];

		me->step = 0;
		me->sent = me->got = (struct traffic){ 0, 0 };
		memset(me->in, 0, (size_t)(PART * world.p) * sizeof(*me->in));
		CHECK_INT(marcel_create(&me->thread, NULL, run_one, me), 0);
	}
	for (int r = 0; r < world.p; r++)
		marcel_join(world.processes[r].thread, NULL);
}

/* --- what it has cost --- */

static struct process *most(long (*of)(const struct process *))
{
	struct process *found = world.processes;

	for (int r = 1; r < world.p; r++)
		if (of(&world.processes[r]) > of(found))
			found = &world.processes[r];
	return found;
}

static long steps(const struct process *me)
{
	return me->step;
}

static long messages(const struct process *me)
{
	return me->sent.messages > me->got.messages ? me->sent.messages
						    : me->got.messages;
}

static long bytes(const struct process *me)
{
	return me->sent.bytes > me->got.bytes ? me->sent.bytes : me->got.bytes;
}

/* Of the process that has most; `exactly`, or no more than the formula says. */
static void compare(const struct madmpi_algorithm *a, const char *what,
		    const char *formula, long (*of)(const struct process *),
		    bool exactly)
{
	long n = job.count * (long)sizeof(uint32_t);
	long want = formula_value(formula, world.p, n), got = of(most(of));

	if (got > want || (exactly && got < want))
		check_fail(__FILE__, __LINE__,
			   "%s, %s, p = %d, n = %ld, root %d: %ld %s, not "
			   "%s = %ld",
			   a->operation, a->name, world.p, n, job.root, got,
			   what, formula, want);
}

static void results_are_right(const struct madmpi_algorithm *a)
{
	long sent = 0, got = 0;

	for (int r = 0; r < world.p; r++) {
		const struct process *me = &world.processes[r];

		sent += me->sent.messages;
		got += me->got.messages;
		if (me->error != MPI_SUCCESS || me->is_wrong)
			check_fail(__FILE__, __LINE__,
				   "%s, %s, p = %d, root %d: rank %d has error "
				   "%d, or not the result",
				   a->operation, a->name, world.p, job.root, r,
				   me->error);
	}
	CHECK_INT(sent, got);
	for (int i = 0; i < world.p * world.p; i++)
		CHECK_PTR(world.lines[i], NULL);
}

static void one(const struct probe *p, MPI_Op op, int root)
{
	const struct madmpi_algorithm *a = row_of(p);

	job.op = op;
	job.root = root;
	job.count = p->kind == NOTHING ? 0 : p->kind == WHOLE ? world.p : PART;
	job.width = p->kind == WHOLE ? world.p : PART * world.p;
	if (op != MPI_OP_NULL)
		add_up();
	run_all(p);
	results_are_right(a);
	compare(a, "steps", a->steps, steps, world.p >= p->exact);
	compare(a, "messages", a->messages, messages, true);
	compare(a, "bytes", a->bytes, bytes, true);
}

static void costs_are_the_formulas(int p)
{
	MPI_Op composed;

	CHECK_INT(madmpi_op_create(apply, 0, &composed), MPI_SUCCESS);
	world_open(p);
	for (size_t k = 0; k < BASE_ARRAY_LEN(probes); k++) {
		const struct probe *b = &probes[k];

		for (int i = b->first; i < b->roots; i++) {
			int root = i * (p - 1);

			if (!b->reduces && !b->in_order)
				one(b, MPI_OP_NULL, root);
			if (b->reduces)
				one(b, MPI_SUM, root);
			if (b->in_order)
				one(b, composed, root);
		}
	}
	world_close();
	CHECK_INT(madmpi_op_free(&composed), MPI_SUCCESS);
}

TEST(costs_with_few)
{
	costs_are_the_formulas(2);
	costs_are_the_formulas(3);
	costs_are_the_formulas(4);
	costs_are_the_formulas(7);
	costs_are_the_formulas(8);
	costs_are_the_formulas(16);
}

TEST(costs_with_a_hundred)
{
	costs_are_the_formulas(64);
	costs_are_the_formulas(100);
	costs_are_the_formulas(256);
}

TEST(costs_with_a_thousand)
{
	costs_are_the_formulas(1000);
	costs_are_the_formulas(1024);
}

static void setup(void)
{
	CHECK_INT(marcel_init(NULL), 0);
	madmpi_type_init();
	madmpi_op_init();
	marcel_mutex_init(&world.lock, NULL);
}

static void teardown(void)
{
	marcel_mutex_destroy(&world.lock);
	madmpi_op_exit();
	madmpi_type_exit();
	CHECK_INT(marcel_end(), 0);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}
