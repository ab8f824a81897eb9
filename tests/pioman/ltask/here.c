/*
 * pioman/ltask/tree.c, point/marcel.c: queues and polls on this machine,
 * whichever it is, by what the kernel says of its nodes.
 */
#include "../with.h"

#include "../../../pioman/ltask/tree.h"
#include "../../marcel/here.h"

static unsigned node[MARCEL_VP_MAX]; /* of the kernel's, by VP */

static void start(void)
{
	struct marcel_config config = { 0 };

	setenv("PIOM_ENGINE", "marcel", 1);
	unsetenv("MARCEL_NVP"); /* one for each CPU, or none is bound */
	CHECK_INT(marcel_init(&config), 0);
	CHECK_INT(piom_init(), 0);
	on_each_vp(note_node, node);
}

static void stop(void)
{
	CHECK_INT(piom_exit(), 0);
	CHECK_INT(marcel_end(), 0);
}

__attribute__((constructor)) static void before_each_test(void)
{
	check_fixture(start, stop);
}

/* --- the queues --- */

TEST(each_level_has_a_queue_below_that_of_its_parent)
{
	for (int vp = 0; vp < marcel_nvp(); vp++) {
		struct marcel_level *l = marcel_topo_vp(vp);
		struct piom_queue *q = piom_tree_leaf(vp);

		for (; l->parent != NULL; l = l->parent, q = q->parent) {
			CHECK_PTR(q->level, l);
			CHECK_INT(q->siblings, l->parent->nchildren);
		}
		CHECK_PTR(q, piom_tree_machine());
		CHECK_PTR(q->parent, NULL);
	}
}

static marcel_vpset_t vps_of_node(unsigned n)
{
	marcel_vpset_t set;

	marcel_vpset_zero(&set);
	for (int vp = 0; vp < marcel_nvp(); vp++)
		if (node[vp] == n)
			marcel_vpset_add(&set, vp);
	return set;
}

/* Below the queue of a node are the VPs that the kernel counts to it. */
TEST(the_vps_of_a_node_have_a_queue_in_common)
{
	for (int vp = 0; vp < marcel_nvp(); vp++) {
		marcel_vpset_t set = vps_of_node(node[vp]);
		struct piom_queue *q = piom_tree_cover(&set);

		CHECK_INT(memcmp(&q->level->vps, &set, sizeof(set)), 0);
	}
}

/* --- where they run --- */

struct look {
	struct piom_ltask task;
	struct here at;
	ATOMIC(int) ran;
};

static enum piom_ltask_result look_round(void *arg)
{
	struct look *l = arg;

	l->at = here();
	store_release(&l->ran, 1);
	return PIOM_LTASK_DONE;
}

/* Waits for it without running it. */
static void submit(struct look *l, const marcel_vpset_t *set)
{
	store_relaxed(&l->ran, 0);
	piom_ltask_init(&l->task, look_round, l, PIOM_LTASK_ONESHOT, set);
	piom_ltask_submit(&l->task);
	while (load_acquire(&l->ran) == 0)
		sched_yield();
	piom_ltask_wait(&l->task);
}

TEST(what_one_vp_may_run_runs_on_its_cpu)
{
	for (int vp = 1; vp < marcel_nvp(); vp++) {
		struct look l;
		marcel_vpset_t set;

		marcel_vpset_zero(&set);
		marcel_vpset_add(&set, vp);
		until_others_sleep();
		submit(&l, &set);
		CHECK_INT(l.at.cpu, marcel_vp_cpu(vp));
	}
}

TEST(what_a_node_may_run_runs_there)
{
	for (int vp = 1; vp < marcel_nvp(); vp++) {
		struct look l;
		marcel_vpset_t set = vps_of_node(node[vp]);

		until_others_sleep();
		submit(&l, &set);
		CHECK_INT(l.at.node, node[vp]);
	}
}

/* Its submitter computes, and all others sleep. */
static void *submit_for_all(void *arg)
{
	struct look l;

	until_others_sleep();
	submit(&l, NULL);
	CHECK_INT(l.at.node, here().node);
	return arg;
}

TEST(what_all_may_run_runs_near_its_submitter)
{
	on_each_vp(submit_for_all, NULL);
}

/* --- who polls --- */

enum { POLLS = 200 };

struct count {
	struct piom_ltask task;
	unsigned polls, elsewhere, node;
};

static enum piom_ltask_result count_polls(void *arg)
{
	struct count *c = arg;

	c->elsewhere += here().node != c->node;
	return ++c->polls < POLLS ? PIOM_LTASK_WORKED : PIOM_LTASK_DONE;
}

/* One for each VP, and all idle VPs poll at a time. */
TEST(what_a_node_polls_is_polled_nowhere_else)
{
	static struct count c[MARCEL_VP_MAX];

	for (int vp = 0; vp < marcel_nvp(); vp++) {
		marcel_vpset_t set = vps_of_node(node[vp]);

		c[vp] = (struct count){ .node = node[vp] };
		piom_ltask_init(&c[vp].task, count_polls, &c[vp],
				PIOM_LTASK_REPEAT, &set);
		piom_ltask_submit(&c[vp].task);
	}
	for (int vp = 0; vp < marcel_nvp(); vp++) {
		piom_ltask_wait(&c[vp].task);
		CHECK_INT(c[vp].polls, POLLS);
		CHECK_INT(c[vp].elsewhere, 0);
	}
}
