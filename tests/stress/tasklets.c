/* Tasklets: each schedule is seen by a run, and none meets its like. */
#include "stress.h"

enum { TASKLETS = 6, TYPES = 2, AGAIN = 16 };

struct type {
	marcel_tasklet_type_t type;
	ATOMIC(int) running;
};

/*
 * Whoever schedules it takes a number first, and a run sees the numbers that
 * were taken before.
 */
struct task {
	marcel_tasklet_t tasklet;
	struct type *type; /* -: or NULL */
	int vp;            /* -: or -1 */
	ATOMIC(int) running;
	ATOMIC(uint64_t) numbers, seen;
};

static struct type types[TYPES];
static struct task tasks[TASKLETS];

static void schedule(struct task *t, bool high)
{
	fetch_add_relaxed(&t->numbers, 1);
	MUST_INT(high ? marcel_tasklet_hi_schedule(&t->tasklet)
		      : marcel_tasklet_schedule(&t->tasklet),
		 0);
}

static void run(void *arg)
{
	struct task *t = arg;
	uint64_t n = load_relaxed(&t->numbers);

	MUST_INT(fetch_add_relaxed(&t->running, 1), 0);
	if (t->type != NULL)
		MUST_INT(fetch_add_relaxed(&t->type->running, 1), 0);
	if (t->vp >= 0)
		MUST_INT(marcel_current_vp(), t->vp);
	if (n % AGAIN == 0)
		schedule(t, false);
	store_relaxed(&t->seen, n);
	if (t->type != NULL)
		fetch_sub_relaxed(&t->type->running, 1);
	fetch_sub_relaxed(&t->running, 1);
}

static void op_schedule(struct actor *a)
{
	struct task *t = &tasks[draw_below(a, TASKLETS)];

	for (unsigned n = 1 + draw_below(a, 4); n > 0; n--) {
		schedule(t, one_in(a, 4));
		stir(a);
	}
}

static void op_disable(struct actor *a)
{
	struct task *t = &tasks[draw_below(a, TASKLETS)];

	MUST_INT(marcel_tasklet_disable(&t->tasklet), 0);
	MUST_INT(load_relaxed(&t->running), 0);
	schedule(t, one_in(a, 4));
	stir(a);
	MUST_INT(load_relaxed(&t->running), 0);
	MUST_INT(marcel_tasklet_enable(&t->tasklet), 0);
}

/* --- one of one's own, which is unmapped after its kill --- */

struct own {
	marcel_tasklet_t tasklet;
	marcel_sem_t runs;
	long n; /* plain: it runs on one VP at a time */
};

static void post(void *arg)
{
	struct own *o = arg;

	o->n++;
	MUST_INT(marcel_sem_post(&o->runs), 0);
}

static void op_own(struct actor *a)
{
	struct own *o = page_new();
	int schedules = 1 + (int)draw_below(a, 4), runs = 0;

	MUST_INT(marcel_sem_init(&o->runs, 0, 0), 0);
	MUST_INT(marcel_tasklet_init(&o->tasklet, post, o), 0);
	for (int i = 0; i < schedules; i++) {
		MUST_INT(marcel_tasklet_schedule(&o->tasklet), 0);
		if (one_in(a, 2))
			continue;
		MUST_INT(marcel_sem_wait(&o->runs), 0);
		runs++;
	}
	MUST_INT(marcel_tasklet_kill(&o->tasklet), 0);
	while (marcel_sem_trywait(&o->runs) == 0)
		runs++;
	MUST_INT(runs, o->n);
	MUST(runs <= schedules);
	MUST_INT(marcel_sem_destroy(&o->runs), 0);
	page_free(o);
}

/* --- all of it --- */

void tasklets_begin(struct actor *a)
{
	marcel_vpset_t set;

	for (int i = 0; i < TYPES; i++)
		types[i] = (struct type){ 0 };
	for (int i = 0; i < TASKLETS; i++) {
		struct task *t = &tasks[i];

		*t = (struct task){ .vp = -1 };
		if (i % 3 < TYPES)
			t->type = &types[i % 3];
		MUST_INT(marcel_tasklet_init(&t->tasklet, run, t), 0);
		MUST_INT(marcel_tasklet_set_type(
				 &t->tasklet,
				 t->type != NULL ? &t->type->type : NULL),
			 0);
		if (one_in(a, 2))
			continue;
		t->vp = (int)draw_below(a, (unsigned)marcel_nvp());
		marcel_vpset_zero(&set);
		marcel_vpset_add(&set, t->vp);
		MUST_INT(marcel_tasklet_set_vpset(&t->tasklet, &set), 0);
	}
}

/* Nobody schedules any more but they themselves. */
void tasklets_end(void)
{
	for (int i = 0; i < TASKLETS; i++) {
		struct task *t = &tasks[i];

		while (load_relaxed(&t->seen) < load_relaxed(&t->numbers))
			marcel_usleep(50);
		MUST_INT(marcel_tasklet_kill(&t->tasklet), 0);
		MUST_INT(load_relaxed(&t->running), 0);
	}
}

const struct op tasklet_ops[] = {
	{ "tasklet", op_schedule, 8, false, false },
	{ "disabled tasklet", op_disable, 4, false, false },
	{ "own tasklet", op_own, 6, false, false },
	{ NULL, NULL, 0, false, false },
};
