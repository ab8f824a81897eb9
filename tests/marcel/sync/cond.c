/* sync/cond.c */
#include "crowd.h"

#include <errno.h>

struct gate {
	marcel_mutex_t m;
	marcel_cond_t c;
	ATOMIC(int) waiting; /* in the condition, once the mutex is free */
	int let;             /* how many may go */
	int gone;
	int order[CROWD_MAX];
};

static void wait_at_gate(void *arg, int i)
{
	struct gate *g = arg;

	marcel_mutex_lock(&g->m);
	fetch_add_relaxed(&g->waiting, 1);
	do
		CHECK_INT(marcel_cond_wait(&g->c, &g->m), 0);
	while (g->let == 0);
	g->let--;
	g->order[g->gone++] = i;
	marcel_mutex_unlock(&g->m);
}

/* Start n user threads that wait, in the order of their numbers. */
static void fill_gate(struct gate *g, struct crowd_member *m, marcel_t *t,
		      int n)
{
	for (int i = 0; i < n; i++) {
		m[i] = (struct crowd_member){ wait_at_gate, g, i };
		marcel_create(&t[i], NULL, crowd_main, &m[i]);
		while (load_relaxed(&g->waiting) <= i)
			marcel_yield();
	}
}

TEST(a_signal_wakes_one_and_who_waits_longest)
{
	struct crowd_member m[CROWD_MAX];
	marcel_t t[CROWD_MAX];
	struct gate g = { .m = MARCEL_MUTEX_INITIALIZER };

	sole_vp_start();
	fill_gate(&g, m, t, CROWD_MAX);
	for (int i = 0; i < CROWD_MAX; i++) {
		marcel_mutex_lock(&g.m);
		CHECK_INT(g.gone, i);
		g.let = 2;
		/* With the mutex and without: both must wake exactly one. */
		if (i % 2)
			marcel_cond_signal(&g.c);
		marcel_mutex_unlock(&g.m);
		if (i % 2 == 0)
			marcel_cond_signal(&g.c);
		marcel_join(t[i], NULL);
		CHECK_INT(g.let, 1);
	}
	for (int i = 0; i < CROWD_MAX; i++)
		CHECK_INT(g.order[i], i);
	CHECK_INT(marcel_cond_destroy(&g.c), 0);
	CHECK_INT(marcel_mutex_destroy(&g.m), 0);
	vps_stop();
}

static void check_broadcast(bool locked)
{
	struct crowd_member m[CROWD_MAX];
	marcel_t t[CROWD_MAX];
	struct gate g = { .m = MARCEL_MUTEX_INITIALIZER };

	sole_vp_start();
	fill_gate(&g, m, t, CROWD_MAX);
	CHECK_INT(marcel_cond_destroy(&g.c), EBUSY);
	marcel_mutex_lock(&g.m);
	g.let = CROWD_MAX;
	if (locked)
		marcel_cond_broadcast(&g.c);
	marcel_mutex_unlock(&g.m);
	if (!locked)
		marcel_cond_broadcast(&g.c);
	/* Nobody is in it any more, though nobody has run yet. */
	CHECK_INT(marcel_cond_destroy(&g.c), 0);
	for (int i = 0; i < CROWD_MAX; i++)
		marcel_join(t[i], NULL);
	for (int i = 0; i < CROWD_MAX; i++)
		CHECK_INT(g.order[i], i);
	vps_stop();
}

TEST(a_broadcast_wakes_all_in_order)
{
	check_broadcast(true);
	check_broadcast(false);
}

TEST(a_signal_without_waiters_is_nothing)
{
	marcel_cond_t c = MARCEL_COND_INITIALIZER;
	marcel_condattr_t attr = { { 0 } };
	int shared;

	CHECK_INT(marcel_cond_signal(&c), 0);
	CHECK_INT(marcel_cond_broadcast(&c), 0);
	CHECK_INT(marcel_cond_destroy(&c), 0);
	CHECK_INT(marcel_cond_init(&c, NULL), 0);
	CHECK_INT(marcel_cond_init(&c, &attr), EINVAL);
	CHECK_INT(marcel_condattr_setpshared(&attr, 0), EINVAL);
	CHECK_INT(marcel_condattr_init(&attr), 0);
	CHECK_INT(marcel_condattr_setpshared(&attr, MARCEL_PROCESS_PRIVATE), 0);
	CHECK_INT(marcel_condattr_setpshared(&attr, MARCEL_PROCESS_SHARED),
		  ENOTSUP);
	CHECK_INT(marcel_condattr_setpshared(&attr, 3), EINVAL);
	CHECK_INT(marcel_condattr_getpshared(&attr, &shared), 0);
	CHECK_INT(shared, MARCEL_PROCESS_PRIVATE);
	CHECK_INT(marcel_condattr_destroy(&attr), 0);
	CHECK_INT(marcel_condattr_getpshared(&attr, &shared), EINVAL);
}

/* A bounded buffer: every item comes out once, in the order of its maker. */
enum { ITEMS = ROUNDS, BUFFER = 3 };

struct buffer {
	marcel_mutex_t m;
	marcel_cond_t not_full, not_empty;
	int item[BUFFER], n, first;
	int makers;
	int next_of[CROWD_MAX];
	long taken, total;
	bool loud; /* broadcast where a signal is enough */
};

static void put(struct buffer *b, int item)
{
	marcel_mutex_lock(&b->m);
	while (b->n == BUFFER)
		marcel_cond_wait(&b->not_full, &b->m);
	b->item[(b->first + b->n++) % BUFFER] = item;
	if (b->loud)
		marcel_cond_broadcast(&b->not_empty);
	marcel_mutex_unlock(&b->m);
	if (!b->loud)
		marcel_cond_signal(&b->not_empty);
}

/* False: all items have been taken. */
static bool take(struct buffer *b)
{
	int maker, item;

	marcel_mutex_lock(&b->m);
	while (b->n == 0 && b->taken < b->total)
		marcel_cond_wait(&b->not_empty, &b->m);
	if (b->n == 0) {
		marcel_mutex_unlock(&b->m);
		return false;
	}
	maker = b->item[b->first] / ITEMS;
	item = b->item[b->first] % ITEMS;
	CHECK_INT(item, b->next_of[maker]);
	b->next_of[maker]++;
	b->first = (b->first + 1) % BUFFER;
	b->n--;
	if (++b->taken == b->total)
		marcel_cond_broadcast(&b->not_empty);
	if (b->loud)
		marcel_cond_broadcast(&b->not_full);
	else
		marcel_cond_signal(&b->not_full);
	marcel_mutex_unlock(&b->m);
	return true;
}

static void make_or_take(void *arg, int i)
{
	struct buffer *b = arg;

	if (i % 2 == 0)
		for (int n = 0; n < ITEMS; n++)
			put(b, i / 2 * ITEMS + n);
	else
		while (take(b))
			;
}

TEST(no_item_of_a_bounded_buffer_is_lost)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		for (int loud = 0; loud < 2; loud++) {
			struct buffer b = { .loud = loud };

			b.total = (long)ITEMS * (crowd_size(&crowds[c]) / 2);
			crowd_run(&crowds[c], make_or_take, &b);
			CHECK_INT(b.taken, b.total);
			CHECK_INT(marcel_cond_destroy(&b.not_full), 0);
			CHECK_INT(marcel_cond_destroy(&b.not_empty), 0);
			CHECK_INT(marcel_mutex_destroy(&b.m), 0);
		}
	}
}

/* Two threads in turn; the condition's page goes with each round. */
struct turns {
	marcel_mutex_t m;
	marcel_cond_t *c[ROUNDS];
	bool flag[ROUNDS];
};

static void wait_or_broadcast(void *arg, int i)
{
	struct turns *t = arg;

	for (int n = 0; n < ROUNDS; n++) {
		marcel_mutex_lock(&t->m);
		if (i != n % 2) {
			while (!t->flag[n])
				marcel_cond_wait(t->c[n], &t->m);
		} else {
			t->flag[n] = true;
			marcel_cond_broadcast(t->c[n]);
			page_free(t->c[n]);
		}
		marcel_mutex_unlock(&t->m);
	}
}

TEST(a_condition_may_be_unmapped_right_after_its_broadcast)
{
	static const struct crowd pairs[] = { { 1, 2, 0 },
					      { VPS_MANY, 2, 0 },
					      { 1, 1, 1 } };

	for (size_t c = 0; c < BASE_ARRAY_LEN(pairs); c++) {
		static struct turns t;

		t = (struct turns){ .m = MARCEL_MUTEX_INITIALIZER };
		for (int n = 0; n < ROUNDS; n++)
			t.c[n] = page_new();
		crowd_run(&pairs[c], wait_or_broadcast, &t);
	}
}

struct typed {
	marcel_mutex_t m;
	marcel_cond_t c;
	bool go;
	int trylock;
};

static void typed_init(struct typed *t, int type)
{
	marcel_mutexattr_t attr;

	*t = (struct typed){ .go = false };
	marcel_mutexattr_init(&attr);
	marcel_mutexattr_settype(&attr, type);
	marcel_mutex_init(&t->m, &attr);
}

TEST(wait_without_the_mutex_is_eperm)
{
	struct typed t;

	for (int type = 0; type < 3; type++) {
		typed_init(&t, type);
		vps_start(1);
		CHECK_INT(marcel_cond_wait(&t.c, &t.m), EPERM);
		CHECK_INT(marcel_cond_destroy(&t.c), 0);
		CHECK_INT(marcel_mutex_destroy(&t.m), 0);
		vps_stop();
	}
}

static void *let_go(void *arg)
{
	struct typed *t = arg;

	t->trylock = marcel_mutex_trylock(&t->m);
	t->go = true;
	marcel_cond_signal(&t->c);
	marcel_mutex_unlock(&t->m);
	return NULL;
}

TEST(wait_frees_a_recursive_mutex_and_gets_it_back_as_often)
{
	struct typed t;
	marcel_t other;

	typed_init(&t, MARCEL_MUTEX_RECURSIVE);
	vps_start(1);
	for (int i = 0; i < 3; i++)
		marcel_mutex_lock(&t.m);
	CHECK_INT(marcel_create(&other, NULL, let_go, &t), 0);
	while (!t.go)
		CHECK_INT(marcel_cond_wait(&t.c, &t.m), 0);
	CHECK_INT(t.trylock, 0);
	for (int i = 0; i < 3; i++)
		CHECK_INT(marcel_mutex_unlock(&t.m), 0);
	CHECK_INT(marcel_mutex_unlock(&t.m), EPERM);
	CHECK_INT(marcel_join(other, NULL), 0);
	vps_stop();
}
