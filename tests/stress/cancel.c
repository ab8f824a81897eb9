/*
 * Threads that are cancelled where they wait, before, while and after they are
 * granted what they wait for: they have it, or it is still there; and their
 * handlers run once, or not at all.
 */
#include "stress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <marcel/io.h>

static const struct timespec far_off = { .tv_sec = (time_t)1 << 40 };

struct victim {
	struct actor a;
	const struct way *way;
	bool sheltered; /* until it has what it waits for */
	bool took;      /* that */
	ATOMIC(struct marcel_thread *) self;
	ATOMIC(int) handled;
	marcel_sem_t over; /* it ends; for who joins a foreign one */
	/* what it waits for */
	marcel_sem_t sem;
	marcel_mutex_t mutex;
	marcel_cond_t cond;
	int tokens;
	marcel_event_t event;
	marcel_t child;
	int fds[2];
};

/*
 * wait: returns when it was granted. take_back: whether it still is, and then
 * not any more. needs: a wait that, when all LWPs are used up, only a grant
 * ends. users: not for foreign threads.
 */
struct way {
	void (*begin)(struct victim *v);
	void (*wait)(struct victim *v);
	void (*grant)(struct victim *v);
	bool (*take_back)(struct victim *v);
	void (*end)(struct victim *v);
	bool needs, users;
};

/* --- semaphore --- */

static void begin_sem(struct victim *v)
{
	MUST_INT(marcel_sem_init(&v->sem, 0, 0), 0);
}

static void wait_sem(struct victim *v)
{
	MUST_INT(one_in(&v->a, 2) ? marcel_sem_wait(&v->sem)
				  : marcel_sem_timedwait(&v->sem, &far_off),
		 0);
}

static void grant_sem(struct victim *v)
{
	MUST_INT(marcel_sem_post(&v->sem), 0);
}

static bool take_back_sem(struct victim *v)
{
	return marcel_sem_trywait(&v->sem) == 0;
}

static void end_sem(struct victim *v)
{
	MUST_INT(marcel_sem_destroy(&v->sem), 0);
}

/* --- condition --- */

static void begin_cond(struct victim *v)
{
	marcel_mutexattr_t attr;

	MUST_INT(marcel_mutexattr_init(&attr), 0);
	MUST_INT(marcel_mutexattr_settype(&attr, MARCEL_MUTEX_ERRORCHECK), 0);
	MUST_INT(marcel_mutex_init(&v->mutex, &attr), 0);
	MUST_INT(marcel_cond_init(&v->cond, NULL), 0);
	v->tokens = 0;
}

/* Whoever comes out of the wait holds it. */
static void let_go_of(void *mutex)
{
	MUST_INT(marcel_mutex_unlock(mutex), 0);
}

static void take_token(struct victim *v, struct actor *a)
{
	MUST_INT(marcel_mutex_lock(&v->mutex), 0);
	marcel_cleanup_push(let_go_of, &v->mutex);
	while (v->tokens == 0)
		MUST_INT(one_in(a, 2) ? marcel_cond_wait(&v->cond, &v->mutex)
				      : marcel_cond_timedwait(
						&v->cond, &v->mutex, &far_off),
			 0);
	v->tokens--;
	marcel_cleanup_pop(1);
}

static void wait_cond(struct victim *v)
{
	take_token(v, &v->a);
}

static void grant_cond(struct victim *v)
{
	MUST_INT(marcel_mutex_lock(&v->mutex), 0);
	v->tokens++;
	MUST_INT(marcel_cond_signal(&v->cond), 0);
	MUST_INT(marcel_mutex_unlock(&v->mutex), 0);
}

static bool take_back_cond(struct victim *v)
{
	return v->tokens > 0 && v->tokens-- > 0;
}

static void end_cond(struct victim *v)
{
	MUST_INT(marcel_cond_destroy(&v->cond), 0);
	MUST_INT(marcel_mutex_destroy(&v->mutex), 0);
}

/* --- join --- */

static void *wait_for_event(void *arg)
{
	marcel_event_wait(arg);
	return arg;
}

static void begin_join(struct victim *v)
{
	v->event = (marcel_event_t){ 0 };
	MUST_INT(marcel_create(&v->child, NULL, wait_for_event, &v->event), 0);
}

static void wait_join(struct victim *v)
{
	MUST_INT(one_in(&v->a, 2)
			 ? marcel_join(v->child, NULL)
			 : marcel_timedjoin_np(v->child, NULL, &far_off),
		 0);
}

static void grant_join(struct victim *v)
{
	marcel_event_set(&v->event);
}

static bool take_back_join(struct victim *v)
{
	bool granted = marcel_event_test(&v->event);

	if (v->took)
		return false;
	if (!granted)
		marcel_event_set(&v->event);
	MUST_INT(marcel_join(v->child, NULL), 0);
	return granted;
}

/* --- read --- */

static void begin_read(struct victim *v)
{
	MUST_INT(pipe2(v->fds, O_CLOEXEC), 0);
}

static void wait_read(struct victim *v)
{
	char c;

	MUST_INT(marcel_read(v->fds[0], &c, 1), 1);
}

static void grant_read(struct victim *v)
{
	MUST_INT(marcel_write(v->fds[1], "", 1), 1);
}

static bool take_back_read(struct victim *v)
{
	struct pollfd p = { .fd = v->fds[0], .events = POLLIN };
	char c;

	if (marcel_poll(&p, 1, 0) != 1)
		return false;
	MUST_INT(marcel_read(v->fds[0], &c, 1), 1);
	return true;
}

static void end_read(struct victim *v)
{
	close(v->fds[0]);
	close(v->fds[1]);
}

/* --- sleep, and no wait at all --- */

static void wait_sleep(struct victim *v)
{
	MUST_INT(marcel_nanosleep(&far_off, NULL), 0);
}

static void begin_test(struct victim *v)
{
	v->event = (marcel_event_t){ 0 };
}

static void wait_test(struct victim *v)
{
	while (!marcel_event_test(&v->event)) {
		stir(&v->a);
		marcel_usleep(10);
		marcel_testcancel();
	}
}

/* Ends where it computes, in the middle of a slice, or now and then. */
static void wait_compute(struct victim *v)
{
	int old;

	MUST_INT(marcel_setcanceltype(MARCEL_CANCEL_ASYNCHRONOUS, &old), 0);
	for (unsigned n = 1; !marcel_event_test(&v->event); n++) {
		for (int i = 0; i < 200; i++)
			__asm__ volatile("");
		if (n % 64 == 0)
			marcel_yield();
		if (n % 4096 == 0)
			marcel_testcancel();
	}
	MUST_INT(marcel_setcanceltype(MARCEL_CANCEL_DEFERRED, &old), 0);
	MUST_INT(old, MARCEL_CANCEL_ASYNCHRONOUS);
}

static bool take_back_test(struct victim *v)
{
	return marcel_event_test(&v->event) && !v->took;
}

static const struct way ways[] = {
	{ begin_sem, wait_sem, grant_sem, take_back_sem, end_sem },
	{ begin_cond, wait_cond, grant_cond, take_back_cond, end_cond },
	{ begin_join, wait_join, grant_join, take_back_join },
	{ begin_read, wait_read, grant_read, take_back_read, end_read,
	  .needs = true, .users = true },
	{ .wait = wait_sleep },
	{ begin_test, wait_test, grant_join, take_back_test },
	{ begin_test, wait_compute, grant_join, take_back_test },
};

/* --- the one that is cancelled --- */

static void handle(void *arg)
{
	struct victim *v = arg;

	stir(&v->a);
	fetch_add_relaxed(&v->handled, 1);
}

static void say_over(void *arg)
{
	struct victim *v = arg;

	MUST_INT(marcel_sem_post(&v->over), 0);
}

static void wait_as_drawn(struct victim *v)
{
	int old;

	if (v->sheltered)
		MUST_INT(marcel_setcancelstate(MARCEL_CANCEL_DISABLE, &old), 0);
	stir(&v->a);
	v->way->wait(v);
	v->took = true;
	if (!v->sheltered)
		return;
	marcel_testcancel();
	MUST_INT(marcel_setcancelstate(MARCEL_CANCEL_ENABLE, &old), 0);
	MUST_INT(old, MARCEL_CANCEL_DISABLE);
	marcel_testcancel();
}

static void *be_victim(void *arg)
{
	struct victim *v = arg;

	store_release(&v->self, marcel_self());
	marcel_cleanup_push(say_over, v);
	marcel_cleanup_push(handle, v);
	wait_as_drawn(v);
	marcel_cleanup_pop(0);
	marcel_cleanup_pop(1);
	return v;
}

/* --- who cancels it --- */

/* A foreign one may have ended by itself as soon as it was granted. */
static void cancel_and_grant(struct actor *a, struct victim *v, bool grant,
			     bool grant_first)
{
	if (grant && grant_first) {
		v->way->grant(v);
		stir(a);
	}
	MUST_INT(marcel_cancel(load_acquire(&v->self)), 0);
	stir(a);
	if (grant && !grant_first)
		v->way->grant(v);
}

static void held_to_account(struct victim *v, void *value, bool granted)
{
	bool canceled = value == MARCEL_CANCELED, left = false;

	MUST(canceled || value == v);
	MUST_INT(load_relaxed(&v->handled), canceled);
	if (v->way->take_back != NULL)
		left = v->way->take_back(v);
	MUST_INT(v->took + left, granted);
	MUST(canceled || v->took);
	MUST(!v->sheltered || v->took);
	if (v->way->end != NULL)
		v->way->end(v);
	MUST_INT(marcel_sem_destroy(&v->over), 0);
}

static void draw_victim(struct actor *a, struct victim *v, bool is_foreign)
{
	*v = (struct victim){ .a = { .random = draw(a), .id = a->id } };
	do
		v->way = &ways[draw_below(a, BASE_ARRAY_LEN(ways))];
	while (is_foreign && v->way->users);
	v->sheltered = v->way->grant != NULL && one_in(a, 4);
	MUST_INT(marcel_sem_init(&v->over, 0, 0), 0);
	if (v->way->begin != NULL)
		v->way->begin(v);
}

static bool draw_grant(struct actor *a, struct victim *v)
{
	return v->way->needs || v->sheltered ||
	       (v->way->grant != NULL && one_in(a, 2));
}

static void op_cancel(struct actor *a)
{
	struct victim v;
	bool granted;
	marcel_t t;
	void *value;

	draw_victim(a, &v, false);
	granted = draw_grant(a, &v);
	MUST_INT(marcel_create(&t, NULL, be_victim, &v), 0);
	store_release(&v.self, t);
	stir(a);
	cancel_and_grant(a, &v, granted, one_in(a, 2));
	if (one_in(a, 4))
		MUST_INT(marcel_cancel(t), 0);
	MUST_INT(marcel_join(t, &value), 0);
	held_to_account(&v, value, granted);
}

static void op_cancel_foreign(struct actor *a)
{
	struct victim v;
	bool granted;
	pthread_t p;
	void *value;

	draw_victim(a, &v, true);
	granted = draw_grant(a, &v);
	MUST_INT(pthread_create(&p, NULL, be_victim, &v), 0);
	while (load_acquire(&v.self) == NULL)
		marcel_usleep(10);
	stir(a);
	cancel_and_grant(a, &v, granted, false);
	MUST_INT(marcel_sem_wait(&v.over), 0);
	marcel_blocking_begin();
	MUST_INT(pthread_join(p, &value), 0);
	marcel_blocking_end();
	held_to_account(&v, value, granted);
}

/* --- two wait for one signal, and one of them is cancelled --- */

static void *be_waiter(void *arg)
{
	struct victim *v = arg;
	struct actor a = { .random = v->a.random };

	take_token(v, &a);
	return v;
}

static void op_cancel_one_of_two(struct actor *a)
{
	struct victim v = { .a = { .random = draw(a), .id = a->id } };
	bool grant_first = one_in(a, 2);
	marcel_t t[2];
	void *value, *other;

	begin_cond(&v);
	for (int i = 0; i < 2; i++)
		MUST_INT(marcel_create(&t[i], NULL, be_waiter, &v), 0);
	stir(a);
	if (grant_first)
		grant_cond(&v);
	MUST_INT(marcel_cancel(t[0]), 0);
	stir(a);
	if (!grant_first)
		grant_cond(&v);
	MUST_INT(marcel_join(t[0], &value), 0);
	/* Who is cancelled leaves the signal to the other. */
	if (value != MARCEL_CANCELED)
		MUST_INT(marcel_cancel(t[1]), 0);
	MUST_INT(marcel_join(t[1], &other), 0);
	MUST((value == MARCEL_CANCELED) != (other == MARCEL_CANCELED));
	MUST_INT(v.tokens, 0);
	end_cond(&v);
}

const struct op cancel_ops[] = {
	{ "cancel", op_cancel, 10, true, false },
	{ "cancel a foreign thread", op_cancel_foreign, 2, true, true },
	{ "cancel one of two", op_cancel_one_of_two, 5, true, false },
	{ NULL, NULL, 0, false, false },
};
