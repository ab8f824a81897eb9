/* sync/sem.c */
#include "crowd.h"

#include <errno.h>
#include <limits.h>

static int value_of(marcel_sem_t *s)
{
	int v = -1;

	CHECK_INT(marcel_sem_getvalue(s, &v), 0);
	return v;
}

TEST(the_value_counts_posts_less_waits)
{
	marcel_sem_t s;

	CHECK_INT(marcel_sem_init(&s, 0, 2), 0);
	CHECK_INT(value_of(&s), 2);
	CHECK_INT(marcel_sem_wait(&s), 0);
	CHECK_INT(marcel_sem_trywait(&s), 0);
	CHECK_INT(marcel_sem_trywait(&s), EAGAIN);
	CHECK_INT(value_of(&s), 0);
	CHECK_INT(marcel_sem_post(&s), 0);
	CHECK_INT(value_of(&s), 1);
	CHECK_INT(marcel_sem_destroy(&s), 0);
}

TEST(values_and_arguments_are_checked)
{
	marcel_sem_t s;

	CHECK_INT(marcel_sem_init(&s, 1, 0), ENOTSUP);
	CHECK_INT(marcel_sem_init(&s, 0, (unsigned)INT32_MAX + 1), EINVAL);
	CHECK_INT(marcel_sem_init(&s, 0, INT32_MAX), 0);
	CHECK_INT(marcel_sem_post(&s), EOVERFLOW);
	CHECK_INT(value_of(&s), INT32_MAX);
	CHECK_INT(marcel_sem_wait(&s), 0);
	CHECK_INT(marcel_sem_post(&s), 0);
}

struct queue {
	marcel_sem_t s;
	ATOMIC(int) arrived;
	int next;
};

static void wait_in_order(void *arg, int i)
{
	struct queue *q = arg;

	fetch_add_relaxed(&q->arrived, 1);
	marcel_sem_wait(&q->s);
	CHECK_INT(q->next, i);
	q->next++;
}

TEST(a_post_frees_who_waits_longest)
{
	struct crowd_member m[CROWD_MAX];
	marcel_t t[CROWD_MAX];
	struct queue q = { .next = 0 };

	marcel_sem_init(&q.s, 0, 0);
	sole_vp_start();
	for (int i = 0; i < CROWD_MAX; i++) {
		m[i] = (struct crowd_member){ wait_in_order, &q, i };
		marcel_create(&t[i], NULL, crowd_main, &m[i]);
		while (load_relaxed(&q.arrived) <= i)
			marcel_yield();
	}
	CHECK_INT(marcel_sem_destroy(&q.s), EBUSY);
	CHECK_INT(value_of(&q.s), 0);
	for (int i = 0; i < CROWD_MAX; i++) {
		marcel_sem_post(&q.s);
		/* Given to the waiter: nobody else can have it. */
		CHECK_INT(marcel_sem_trywait(&q.s), EAGAIN);
		marcel_join(t[i], NULL);
	}
	CHECK_INT(q.next, CROWD_MAX);
	vps_stop();
}

struct pool {
	marcel_sem_t s;
	ATOMIC(int) inside;
	int max;
};

static void enter_pool(void *arg, int i)
{
	struct pool *p = arg;

	for (int n = 0; n < ROUNDS; n++) {
		marcel_sem_wait(&p->s);
		CHECK(fetch_add_relaxed(&p->inside, 1) < p->max);
		if ((n + i) % 3 == 0)
			marcel_yield();
		fetch_sub_relaxed(&p->inside, 1);
		marcel_sem_post(&p->s);
	}
}

TEST(never_more_threads_inside_than_the_value)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		for (int max = 1; max <= 3; max += 2) {
			struct pool p = { .max = max };

			marcel_sem_init(&p.s, 0, max);
			crowd_run(&crowds[c], enter_pool, &p);
			CHECK_INT(value_of(&p.s), max);
			CHECK_INT(marcel_sem_destroy(&p.s), 0);
		}
	}
}

/* Posted once, waited for once, and then its page is gone. */
struct once_posted {
	struct posted {
		marcel_sem_t s;
		int data;
	} * page[ROUNDS];
};

static void wait_or_post(void *arg, int i)
{
	struct once_posted *o = arg;

	for (int n = 0; n < ROUNDS; n++) {
		if (i == 0) {
			marcel_sem_wait(&o->page[n]->s);
			CHECK_INT(o->page[n]->data, n);
			page_free(o->page[n]);
		} else {
			o->page[n]->data = n;
			marcel_sem_post(&o->page[n]->s);
			if (n % 3 == 0)
				marcel_yield();
		}
	}
}

TEST(a_semaphore_may_be_unmapped_right_after_the_last_wait)
{
	static const struct crowd pairs[] = { { 1, 2, 0 },
					      { VPS_MANY, 2, 0 },
					      { 1, 1, 1 } };
	static struct once_posted o;

	for (size_t c = 0; c < BASE_ARRAY_LEN(pairs); c++) {
		for (int n = 0; n < ROUNDS; n++)
			o.page[n] = page_new();
		crowd_run(&pairs[c], wait_or_post, &o);
	}
}
