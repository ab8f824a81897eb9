/*
 * Few threads around an object that one of them unmaps as soon as it may: the
 * waiter that was let go, or who is last to hold it.
 */
#include "stress.h"

#include <errno.h>

enum { TEAM_MAX = 5 };

struct team {
	void *object; /* a page */
	void (*fn)(struct actor *a, void *object, int i);
};

struct member {
	struct team *team;
	struct actor a;
	int i;
	marcel_t thread;
};

static void *member_main(void *arg)
{
	struct member *m = arg;

	m->team->fn(&m->a, m->team->object, m->i);
	return NULL;
}

/* fn in size threads, of which the caller is number 0. */
static void play(struct actor *a, int size, void *object,
		 void (*fn)(struct actor *, void *, int))
{
	struct team team = { object, fn };
	struct member m[TEAM_MAX];

	for (int i = 1; i < size; i++) {
		m[i] = (struct member){ .team = &team, .i = i };
		m[i].a.random = draw(a);
		m[i].a.id = a->id;
		MUST_INT(marcel_create(&m[i].thread, NULL, member_main, &m[i]),
			 0);
	}
	fn(a, object, 0);
	for (int i = 1; i < size; i++)
		MUST_INT(marcel_join(m[i].thread, NULL), 0);
}

static int draw_size(struct actor *a)
{
	return 2 + (int)draw_below(a, TEAM_MAX - 1);
}

/* --- barrier: SERIAL unmaps --- */

static void meet(struct actor *a, void *object, int i)
{
	int rc;

	stir(a);
	rc = marcel_barrier_wait(object);
	MUST(rc == 0 || rc == MARCEL_BARRIER_SERIAL_THREAD);
	if (rc == 0)
		return;
	MUST_INT(marcel_barrier_destroy(object), 0);
	page_free(object);
}

static void op_barrier(struct actor *a)
{
	int size = draw_size(a);
	void *object = page_new();

	MUST_INT(marcel_barrier_init(object, NULL, (unsigned)size), 0);
	play(a, size, object, meet);
}

/* --- event and semaphore: the waiter unmaps --- */

static void set_or_wait(struct actor *a, void *object, int i)
{
	stir(a);
	if (i != 0) {
		marcel_event_set(object);
		return;
	}
	marcel_event_wait(object);
	MUST(marcel_event_test(object));
	page_free(object);
}

static void op_event(struct actor *a)
{
	play(a, 2, page_new(), set_or_wait);
}

static void post_or_wait(struct actor *a, void *object, int i)
{
	struct timespec t;
	int rc = ETIMEDOUT;

	stir(a);
	if (i != 0) {
		MUST_INT(marcel_sem_post(object), 0);
		return;
	}
	while (rc == ETIMEDOUT) {
		t = soon(a, CLOCK_REALTIME);
		rc = marcel_sem_timedwait(object, &t);
	}
	MUST_INT(rc, 0);
	MUST_INT(marcel_sem_destroy(object), 0);
	page_free(object);
}

static void op_sem_once(struct actor *a)
{
	void *object = page_new();

	MUST_INT(marcel_sem_init(object, 0, 0), 0);
	play(a, 2, object, post_or_wait);
}

/* --- mutex and read-write lock: the last to hold it unmaps --- */

struct held {
	marcel_mutex_t m;
	marcel_rwlock_t l;
	int left;
};

static void hold_mutex(struct actor *a, void *object, int i)
{
	struct held *h = object;
	bool last;

	MUST_INT(marcel_mutex_lock(&h->m), 0);
	stir(a);
	last = --h->left == 0;
	MUST_INT(marcel_mutex_unlock(&h->m), 0);
	if (!last)
		return;
	MUST_INT(marcel_mutex_destroy(&h->m), 0);
	page_free(h);
}

static void op_last_of_mutex(struct actor *a)
{
	int size = draw_size(a);
	struct held *h = page_new();

	MUST_INT(marcel_mutex_init(&h->m, NULL), 0);
	h->left = size;
	play(a, size, h, hold_mutex);
}

static void hold_rwlock(struct actor *a, void *object, int i)
{
	struct held *h = object;
	bool last;

	if (i % 2 == 0) {
		MUST_INT(marcel_rwlock_rdlock(&h->l), 0);
		MUST(h->left > 0);
		stir(a);
		MUST_INT(marcel_rwlock_unlock(&h->l), 0);
	}
	MUST_INT(marcel_rwlock_wrlock(&h->l), 0);
	last = --h->left == 0;
	MUST_INT(marcel_rwlock_unlock(&h->l), 0);
	if (!last)
		return;
	MUST_INT(marcel_rwlock_destroy(&h->l), 0);
	page_free(h);
}

static void op_last_of_rwlock(struct actor *a)
{
	int size = draw_size(a);
	struct held *h = page_new();

	draw_rwlock(a, &h->l);
	h->left = size;
	play(a, size, h, hold_rwlock);
}

/* --- condition: who was let go unmaps it --- */

struct called {
	marcel_mutex_t *m;
	marcel_cond_t *c;
	bool flag;
};

static void call_or_wait(struct actor *a, void *object, int i)
{
	struct called *s = object;

	stir(a);
	MUST_INT(marcel_mutex_lock(s->m), 0);
	if (i != 0) {
		s->flag = true;
		MUST_INT(one_in(a, 2) ? marcel_cond_signal(s->c)
				      : marcel_cond_broadcast(s->c),
			 0);
	} else {
		while (!s->flag)
			MUST_INT(marcel_cond_wait(s->c, s->m), 0);
		MUST_INT(marcel_cond_destroy(s->c), 0);
		page_free(s->c);
	}
	MUST_INT(marcel_mutex_unlock(s->m), 0);
}

static void op_cond_once(struct actor *a)
{
	marcel_mutex_t m = MARCEL_MUTEX_INITIALIZER;
	struct called s = { .m = &m, .c = page_new() };

	MUST_INT(marcel_cond_init(s.c, NULL), 0);
	play(a, 2, &s, call_or_wait);
	MUST_INT(marcel_mutex_destroy(&m), 0);
}

/* --- once: who did not run it unmaps --- */

struct started {
	marcel_once_t once;
	int runs; /* plain: once gives the order */
};

struct starter {
	struct started *s;
	bool ran;
};

static marcel_key_t starter_key;

static void start(void)
{
	struct starter *me = marcel_getspecific(starter_key);

	marcel_yield();
	me->s->runs++;
	me->ran = true;
}

static void start_once(struct actor *a, void *object, int i)
{
	struct starter me = { .s = object };

	MUST_INT(marcel_setspecific(starter_key, &me), 0);
	stir(a);
	MUST_INT(marcel_once(&me.s->once, start), 0);
	MUST_INT(marcel_setspecific(starter_key, NULL), 0);
	if (me.ran)
		return;
	MUST_INT(me.s->runs, 1);
	page_free(me.s);
}

static void op_once(struct actor *a)
{
	play(a, 2, page_new(), start_once);
}

/* --- all of it --- */

void teams_begin(void)
{
	MUST_INT(marcel_key_create(&starter_key, NULL), 0);
}

void teams_over(void)
{
	MUST_INT(marcel_key_delete(starter_key), 0);
}

const struct op team_ops[] = {
	{ "barrier", op_barrier, 4, true, false },
	{ "event", op_event, 6, true, false },
	{ "last wait of a semaphore", op_sem_once, 4, true, false },
	{ "last unlock of a mutex", op_last_of_mutex, 4, true, false },
	{ "last unlock of a rwlock", op_last_of_rwlock, 4, true, false },
	{ "last wait of a condition", op_cond_once, 4, true, false },
	{ "once", op_once, 4, true, false },
	{ NULL, NULL, 0, false, false },
};
