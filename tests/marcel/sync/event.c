/* sync/event.c: one-shot completions. */
#include "crowd.h"

#include <errno.h>

enum { GROUP = 5 };

/* One waiter and one setter a round; the waiter's page goes at once. */
struct rounds {
	struct slot {
		marcel_event_t event;
		int data; /* plain: the event gives the order */
	} * slot[ROUNDS];
};

static void wait_and_unmap(struct rounds *r)
{
	for (int n = 0; n < ROUNDS; n++) {
		marcel_event_wait(&r->slot[n]->event);
		CHECK_INT(r->slot[n]->data, n);
		page_free(r->slot[n]);
	}
}

static void waiter_or_setter(void *arg, int i)
{
	struct rounds *r = arg;

	if (i == 0) {
		wait_and_unmap(r);
		return;
	}
	for (int n = 0; n < ROUNDS; n++) {
		r->slot[n]->data = n;
		marcel_event_set(&r->slot[n]->event);
		if (n % 3 == 0)
			marcel_yield();
	}
}

TEST(waiter_sees_what_came_before_the_set_and_may_unmap_at_once)
{
	static const struct crowd pairs[] = {
		{ 1, 2, 0 }, { VPS_MANY, 2, 0 }, { 1, 1, 1 }, { 1, 0, 2 }
	};
	static struct rounds r;

	for (size_t c = 0; c < BASE_ARRAY_LEN(pairs); c++) {
		for (int n = 0; n < ROUNDS; n++)
			r.slot[n] = page_new();
		crowd_run(&pairs[c], waiter_or_setter, &r);
	}
}

TEST(a_set_event_stays_set_until_init)
{
	marcel_event_t e = MARCEL_EVENT_INIT;

	vps_start(1);
	CHECK(!marcel_event_test(&e));
	marcel_event_set(&e);
	CHECK(marcel_event_test(&e));
	marcel_event_wait(&e);
	marcel_event_wait(&e);
	CHECK(marcel_event_test(&e));
	marcel_event_init(&e);
	CHECK(!marcel_event_test(&e));
	vps_stop();
}

struct freed {
	marcel_event_t event;
	struct marcel_event_call call;
};

static int ncalled;

static void unmap(struct marcel_event_call *call)
{
	ncalled++;
	page_free((void *)((char *)call - offsetof(struct freed, call)));
}

TEST(a_function_is_called_when_it_is_set_and_may_unmap_it)
{
	struct freed *f = page_new();

	vps_start(1);
	ncalled = 0;
	f->call.fn = unmap;
	CHECK_INT(marcel_event_call(&f->event, &f->call), 0);
	CHECK(!marcel_event_test(&f->event));
	CHECK_INT(ncalled, 0);
	marcel_event_set(&f->event);
	CHECK_INT(ncalled, 1);
	vps_stop();
}

TEST(what_is_set_calls_nothing)
{
	marcel_event_t e = MARCEL_EVENT_INIT;
	struct marcel_event_call call = { unmap };

	vps_start(1);
	ncalled = 0;
	marcel_event_set(&e);
	CHECK_INT(marcel_event_call(&e, &call), -EALREADY);
	CHECK(marcel_event_test(&e));
	CHECK_INT(ncalled, 0);
	vps_stop();
}

TEST(wait_any_returns_the_lowest_that_is_set_and_passes_over_null)
{
	marcel_event_t e[GROUP] = { MARCEL_EVENT_INIT };
	marcel_event_t *all[GROUP] = { NULL, &e[1], &e[2], NULL, &e[4] };

	vps_start(1);
	marcel_event_set(&e[4]);
	CHECK_INT(marcel_event_wait_any(all, GROUP), 4);
	marcel_event_set(&e[2]);
	CHECK_INT(marcel_event_wait_any(all, GROUP), 2);
	marcel_event_set(&e[1]);
	CHECK_INT(marcel_event_wait_any(all, GROUP), 1);
	vps_stop();
}

static void *set_third(void *arg)
{
	marcel_event_set(&((marcel_event_t *)arg)[2]);
	return NULL;
}

TEST(events_that_were_not_set_are_free_after_wait_any)
{
	marcel_event_t e[GROUP] = { MARCEL_EVENT_INIT };
	marcel_event_t *all[GROUP];
	marcel_t t;

	for (int i = 0; i < GROUP; i++)
		all[i] = &e[i];
	vps_start(1);
	CHECK_INT(marcel_create(&t, NULL, set_third, e), 0);
	CHECK_INT(marcel_event_wait_any(all, GROUP), 2);
	CHECK_INT(marcel_join(t, NULL), 0);
	for (int i = 0; i < GROUP; i++)
		CHECK_INT(e[i].marcel_word, i == 2);
	vps_stop();
}

/*
 * GROUP setters set an event each, in every round; one thread takes them with
 * wait_any until all have come, and unmaps each as soon as it is found.
 */
struct group_rounds {
	marcel_event_t *event[ROUNDS][GROUP];
	int data[ROUNDS][GROUP];
	marcel_sem_t go[GROUP];
};

static void take_round(struct group_rounds *g, int n)
{
	marcel_event_t *left[GROUP];
	size_t i;

	memcpy(left, g->event[n], sizeof(left));
	for (int taken = 0; taken < GROUP; taken++) {
		i = marcel_event_wait_any(left, GROUP);
		CHECK(i < GROUP && left[i] != NULL);
		CHECK(marcel_event_test(left[i]));
		CHECK_INT(g->data[n][i], n);
		page_free(left[i]);
		left[i] = NULL;
	}
}

static void any_of_group(void *arg, int i)
{
	struct group_rounds *g = arg;

	for (int n = 0; n < ROUNDS; n++) {
		if (i == 0) {
			for (int k = 0; k < GROUP; k++)
				marcel_sem_post(&g->go[k]);
			take_round(g, n);
		} else {
			marcel_sem_wait(&g->go[i - 1]);
			g->data[n][i - 1] = n;
			marcel_event_set(g->event[n][i - 1]);
		}
	}
}

TEST(wait_any_with_many_setters_at_once)
{
	static const struct crowd mixes[] = { { 1, 1 + GROUP, 0 },
					      { VPS_MANY, 1 + GROUP, 0 },
					      { 2, GROUP - 1, 2 },
					      { 1, 0, 1 + GROUP } };
	static struct group_rounds g;

	for (size_t c = 0; c < BASE_ARRAY_LEN(mixes); c++) {
		for (int n = 0; n < ROUNDS; n++)
			for (int k = 0; k < GROUP; k++)
				g.event[n][k] = page_new();
		for (int k = 0; k < GROUP; k++)
			marcel_sem_init(&g.go[k], 0, 0);
		crowd_run(&mixes[c], any_of_group, &g);
	}
}
