/*
 * User threads that run operations of requests.
 */
#include "core/background.h"

#include <base/list.h>
#include <base/spin.h>
#include <pioman/cond.h>

#include "env/error.h"

/* How long a thread may go before others each time that it is woken. */
enum { FAVOUR_NS = 200 * 1000 };

struct madmpi_background_count madmpi_background_count;

/* Of threads, ever; each posts when it is about to end. */
static ATOMIC(uint64_t) started;
static piom_sem_t ended;

/* A thread that runs an operation. */
struct runner {
	struct base_link on;
	marcel_t self;
};

static struct {
	struct base_spin lock;
	struct base_list all; /* l: runners */
	unsigned calls;       /* l: of the program's functions, just now */
} runners;

static struct madmpi_outcome outcome(const struct madmpi_operation *op,
				     const struct madmpi_request *r)
{
	const struct madmpi_background *b =
		madmpi_background_of((struct madmpi_operation *)op);
	struct madmpi_outcome o = madmpi_outcome_empty();

	(void)r;
	o.error = b->error;
	o.operation = op->function;
	o.why = b->why;
	return o;
}

static void *run(void *arg)
{
	struct madmpi_background *b = arg;
	struct nm_sr_request *waited = b->waited;
	struct runner me = { .self = marcel_self() };
	int error;

	base_spin_lock(&runners.lock);
	base_list_push_back(&runners.all, &me.on);
	base_spin_unlock(&runners.lock);
	marcel_setpriority(marcel_self(), MARCEL_PRIORITY_NORMAL);
	marcel_favour_woken(marcel_self(), FAVOUR_NS);
	error = b->run(b);
	if (waited != NULL) {
		b->error = error;
		/* The request is its owner's now, and b with it. */
		nm_sr_general_end(waited, 0);
	}
	base_spin_lock(&runners.lock);
	base_list_remove(&me.on);
	base_spin_unlock(&runners.lock);
	fetch_sub_relaxed(&madmpi_background_count.threads, 1);
	/* Nor does this thread use nmad any more. */
	piom_sem_post(&ended);
	return NULL;
}

int madmpi_background_run(struct madmpi_background *b)
{
	marcel_attr_t attr;
	marcel_t t;
	int rc;

	marcel_attr_init(&attr);
	marcel_attr_setname(&attr, "madmpi");
	marcel_attr_setdetachstate(&attr, MARCEL_CREATE_DETACHED);
	marcel_attr_setpriority(&attr, MARCEL_PRIORITY_REALTIME);
	fetch_add_relaxed(&madmpi_background_count.threads, 1);
	rc = marcel_create_first(&t, &attr, run, b);
	if (rc == 0)
		fetch_add_relaxed(&started, 1);
	else
		fetch_sub_relaxed(&madmpi_background_count.threads, 1);
	marcel_attr_destroy(&attr);
	return -rc;
}

static int start(const char *fn, struct madmpi_operation *op,
		 struct madmpi_request *r)
{
	struct madmpi_background *b = madmpi_background_of(op);
	int rc;

	b->error = 0;
	b->why = NULL;
	b->waited = &r->nm;
	rc = madmpi_background_run(b);
	return rc < 0 ? madmpi_error_errno(r->comm, rc, fn,
					   "a thread for the operation")
		      : MPI_SUCCESS;
}

/* The request, or NULL and *rc. */
static struct madmpi_request *adopt(const char *fn, struct madmpi_comm *c,
				    struct madmpi_background *b, int *rc)
{
	struct madmpi_request *r;

	b->op.outcome = outcome;
	*rc = MPI_SUCCESS;
	r = madmpi_request_adopt(fn, c, &b->op, rc);
	if (r == NULL)
		b->op.release(&b->op);
	return r;
}

int madmpi_background_start(const char *fn, struct madmpi_comm *c,
			    struct madmpi_background *b, MPI_Request *request)
{
	int rc;
	struct madmpi_request *r = adopt(fn, c, b, &rc);

	if (r == NULL)
		return rc;
	rc = start(fn, &b->op, r);
	if (rc == MPI_SUCCESS)
		*request = (MPI_Request)r;
	else
		madmpi_request_put(r);
	return rc;
}

int madmpi_background_repeat(const char *fn, struct madmpi_comm *c,
			     struct madmpi_background *b, MPI_Request *request)
{
	struct madmpi_request *r;
	int rc;

	b->op.start = start;
	r = adopt(fn, c, b, &rc);
	if (r != NULL)
		*request = (MPI_Request)r;
	return rc;
}

bool madmpi_background_runs(const struct madmpi_request *r)
{
	return r->own != NULL && r->own->outcome == outcome;
}

static bool waits(const struct runner *r)
{
	struct marcel_info info;

	return marcel_getinfo(r->self, &info) == 0 &&
	       info.state == MARCEL_STATE_WAITING;
}

/*
 * A thread that has not begun, or is about to end, is in no list and works. No
 * thread begins or ends a call of the program's, or ends, while this looks.
 */
bool madmpi_background_works(void)
{
	uint32_t waiting = 0;
	bool works;

	base_spin_lock(&runners.lock);
	base_list_for_each (on, &runners.all)
		waiting += waits(container_of(on, struct runner, on));
	works = runners.calls > 0 ||
		waiting < load_relaxed(&madmpi_background_count.threads);
	base_spin_unlock(&runners.lock);
	return works;
}

static void add_calls(int n)
{
	base_spin_lock(&runners.lock);
	runners.calls += (unsigned)n;
	base_spin_unlock(&runners.lock);
}

bool madmpi_background_call(void)
{
	bool any = load_relaxed(&madmpi_background_count.threads) > 0;

	if (any)
		add_calls(1);
	return any;
}

void madmpi_background_called(void)
{
	add_calls(-1);
}

void madmpi_background_init(void)
{
	base_spin_init(&runners.lock, BASE_RANK_LEAF);
	base_list_init(&runners.all);
	piom_sem_init(&ended, 0);
	store_relaxed(&started, 0);
}

void madmpi_background_exit(void)
{
	for (uint64_t n = load_relaxed(&started); n > 0; n--)
		piom_sem_wait(&ended);
}
