/*
 * What surrounds the real sources of pioman/ltask in the explorer: a machine of
 * one level with one queue, conditions of one word, a VP that may sleep.
 */
#ifndef TESTS_EXPLORE_LTASK_WORLD_H
#define TESTS_EXPLORE_LTASK_WORLD_H

#include "explore.h"

#include "../../pioman/stats.h"

/* Nobody reads what is counted: that would be steps and nothing else. */
#define piom_stats_add(to, n)        ((void)(to), (void)(n))
#define piom_stats_skip(vp)          ((void)(vp))
#define piom_stats_armed(s, fired)   ((void)(s), (void)(fired))
#define piom_stats_unarmed(s, fired) ((void)(s), (void)(fired))

#include "../../pioman/ltask/queue.c"
#include "../../pioman/ltask/ltask.c"

struct piom piom = { .start = 1, .engine = PIOM_ENGINE_NONE };

static struct marcel_level level;
static struct piom_queue q;

/* A condition is one word; its value says that it is signalled. */
struct word {
	ATOMIC(uint64_t) value;
} BASE_MAY_ALIAS;

void piom_cond_init(piom_cond_t *c)
{
	store_relaxed(&((struct word *)c)->value, 0);
}

int piom_cond_test(const piom_cond_t *c)
{
	return load_acquire(&((struct word *)c)->value) != 0; /* order(done) */
}

void piom_cond_signal(piom_cond_t *c)
{
	xchg_release(&((struct word *)c)->value, 1); /* order(done) */
}

void piom_cond_wait(piom_cond_t *c)
{
	while (!piom_cond_test(c))
		explore_relax();
}

struct piom_tree piom_tree = { .first = { &q } };

struct piom_queue *piom_tree_cover(const marcel_vpset_t *set)
{
	return &q;
}

int marcel_nvp(void)
{
	return 1;
}

int piom_any_idle(void)
{
	return 1;
}

struct marcel_level *marcel_topo_vp(int vp)
{
	return &level;
}

#ifndef EXPLORE_PTHREAD
struct piom_sleeper piom_timer; /* there is none */

void piom_point_pthread_kick(const struct marcel_level *l)
{
}
#endif

/* The sleeping VP of the scenarios about order(idle). */
static ATOMIC(uint32_t) asleep;

void marcel_kick(struct marcel_level *l)
{
	if (load_seq(&asleep) != 0) { /* order(idle) */
		store_relaxed(&asleep, 0);
		explore_wake(&asleep, 1);
	}
}

/* --- ltasks of the scenarios --- */

static struct piom_ltask tasks[2];
static int inside, runs[2];

/* Plain variables: the explorer sees if two run at once or unordered. */
static enum piom_ltask_result count(void *arg)
{
	int *n = arg;

	inside++;
	explore_check(inside == 1);
	++*n;
	inside--;
	return PIOM_LTASK_AGAIN;
}

static void setup(unsigned options)
{
	explore_name(&q.word, sizeof(q.word), "word");
	explore_name(&q.submitted, sizeof(q.submitted), "submitted");
	explore_name(&q.length, sizeof(q.length), "length");
	explore_name(&asleep, sizeof(asleep), "asleep");
	piom_queue_init(&q, NULL, &level);
	for (int i = 0; i < 2; i++) {
		explore_name(&tasks[i], sizeof(tasks[i]), "task %d", i + 1);
		piom_ltask_init(&tasks[i], count, &runs[i], options, NULL);
	}
}

static bool has_ended(struct piom_task *t)
{
	uint16_t state = load_relaxed(&t->state);

	return state == PIOM_STATE_DONE || state == PIOM_STATE_CANCELLED;
}

/*
 * The canceller's turn of waiting ends when what it waits for has come: the
 * explorer knows no fairness between two words.
 */
void piom_wait_relax(void)
{
	struct piom_task *t = task_of(&tasks[0]);

	if (has_ended(t))
		while (!piom_cond_test(&t->done))
			explore_relax();
	else
		while (load_acquire(&q.word) &
		       PIOM_QUEUE_HELD) /* order(hold) */
			explore_relax();
}

/* A VP that has polled in vain for long enough, and sleeps if it may. */
static inline void dozing_vp(void *arg)
{
	piom_queue_run(&q, 0, PIOM_LAST, PIOM_POINT_IDLE);
	store_seq(&asleep, 1); /* order(idle) */
	if (!piom_queue_keeps_awake(&q))
		explore_wait_while(&asleep, 1);
	store_relaxed(&asleep, 0);
}

#endif
