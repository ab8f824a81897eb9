/* marcel/thread/look.c: the list of threads, and what one is and has. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <base/atomic.h>
#include "../with.h"

enum { MANY = 30 };

static marcel_sem_t gate;

static void *wait_at_gate(void *arg)
{
	marcel_sem_wait(&gate);
	return arg;
}

static marcel_t make(const char *name, void *(*fn)(void *), void *arg)
{
	marcel_attr_t attr;
	marcel_t t;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setname(&attr, name), 0);
	CHECK_INT(marcel_create(&t, &attr, fn, arg), 0);
	CHECK_INT(marcel_attr_destroy(&attr), 0);
	return t;
}

/* --- the list --- */

struct found {
	marcel_t t;
	int times;
	struct marcel_info info;
};

static int find(const struct marcel_info *info, void *arg)
{
	struct found *f = arg;

	if (info->id != f->t)
		return 0;
	f->times++;
	f->info = *info;
	return 0;
}

static struct marcel_info look(marcel_t t)
{
	struct found f = { .t = t };
	struct marcel_info alone;

	CHECK_INT(marcel_threads(find, &f), 0);
	CHECK_INT(f.times, 1);
	CHECK_INT(marcel_getinfo(t, &alone), 0);
	CHECK(alone.id == t);
	CHECK_INT(alone.kind, f.info.kind);
	CHECK_STR(alone.name, f.info.name);
	return alone;
}

static void until_it_waits(marcel_t t)
{
	while (look(t).state != MARCEL_STATE_WAITING)
		marcel_yield();
}

TEST_VPS(every_thread_is_seen_once_with_what_it_does)
{
	marcel_t t[MANY], me = marcel_self();
	struct marcel_info i;

	CHECK_INT(marcel_sem_init(&gate, 0, 0), 0);
	for (int n = 0; n < MANY; n++)
		t[n] = make("waiter", wait_at_gate, NULL);
	for (int n = 0; n < MANY; n++) {
		until_it_waits(t[n]);
		i = look(t[n]);
		CHECK_STR(i.name, "waiter");
		CHECK_STR(i.waits, "semaphore");
		CHECK_INT(i.kind, MARCEL_KIND_USER);
		CHECK_INT(i.vp, -1);
	}
	i = look(me);
	CHECK_INT(i.kind, MARCEL_KIND_MAIN);
	CHECK_INT(i.state, MARCEL_STATE_RUNNING);
	CHECK_INT(i.vp, 0);
	CHECK(i.waits == NULL);
	for (int n = 0; n < MANY; n++)
		CHECK_INT(marcel_sem_post(&gate), 0);
	for (int n = 0; n < MANY; n++) {
		while (look(t[n]).state != MARCEL_STATE_ENDED)
			marcel_yield();
		CHECK_INT(marcel_join(t[n], NULL), 0);
		i.kind = MARCEL_KIND_MAIN;
		CHECK_INT(marcel_getinfo(t[n], &i), ESRCH);
		CHECK_INT(i.kind, MARCEL_KIND_MAIN);
	}
}

static int stop_at_third(const struct marcel_info *info, void *arg)
{
	int *n = arg;

	(void)info;
	return ++*n == 3 ? 42 : 0;
}

TEST_VPS(the_answer_of_the_function_ends_the_list)
{
	marcel_t t[5];
	int n = 0;

	CHECK_INT(marcel_sem_init(&gate, 0, 0), 0);
	for (int i = 0; i < 5; i++)
		t[i] = make("", wait_at_gate, NULL);
	CHECK_INT(marcel_threads(stop_at_third, &n), 42);
	CHECK_INT(n, 3);
	for (int i = 0; i < 5; i++)
		CHECK_INT(marcel_sem_post(&gate), 0);
	for (int i = 0; i < 5; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

static void look_at_one_that_never_ran(void)
{
	marcel_attr_t attr;
	size_t bytes;
	void *low;
	marcel_t t;

	CHECK_INT(marcel_sem_init(&gate, 0, 0), 0);
	t = make("", wait_at_gate, NULL);
	CHECK_INT(look(t).state, MARCEL_STATE_NEW);
	CHECK_INT(marcel_getattr_np(t, &attr), 0);
	CHECK_INT(marcel_attr_getstack(&attr, &low, &bytes), 0);
	CHECK(low == NULL);
	CHECK_INT(bytes, 65536);
	until_it_waits(t);
	CHECK_INT(marcel_sem_post(&gate), 0);
	CHECK_INT(look(t).state, MARCEL_STATE_READY);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(new_and_ready_threads_are_told_apart)
{
	without_ticks(look_at_one_that_never_ran);
}

static ATOMIC(int) stop;

static void *nothing(void *arg)
{
	return arg;
}

static void *make_and_join(void *arg)
{
	marcel_t t;

	while (!load_relaxed(&stop)) {
		t = make("short", nothing, NULL);
		marcel_yield();
		CHECK_INT(marcel_join(t, NULL), 0);
	}
	return arg;
}

TEST_VPS(who_stays_is_seen_once_while_others_come_and_go)
{
	enum { MAKERS = 4, LOOKS = 2000 / FEWER };
	marcel_t stays, makers[MAKERS];

	store_relaxed(&stop, 0);
	CHECK_INT(marcel_sem_init(&gate, 0, 0), 0);
	stays = make("stays", wait_at_gate, NULL);
	until_it_waits(stays);
	for (int i = 0; i < MAKERS; i++)
		makers[i] = make("maker", make_and_join, NULL);
	for (int i = 0; i < LOOKS; i++) {
		struct marcel_info info = look(stays);

		CHECK_STR(info.name, "stays");
		CHECK_INT(info.state, MARCEL_STATE_WAITING);
		CHECK_STR(info.waits, "semaphore");
		marcel_yield();
	}
	store_relaxed(&stop, 1);
	for (int i = 0; i < MAKERS; i++)
		CHECK_INT(marcel_join(makers[i], NULL), 0);
	CHECK_INT(marcel_sem_post(&gate), 0);
	CHECK_INT(marcel_join(stays, NULL), 0);
}

struct foreign {
	ATOMIC(marcel_t) self;
	marcel_sem_t leave;
};

static void *be_foreign(void *arg)
{
	struct foreign *f = arg;
	marcel_t me = marcel_self();

	CHECK_INT(look(me).kind, MARCEL_KIND_FOREIGN);
	CHECK_INT(look(me).state, MARCEL_STATE_RUNNING);
	store_release(&f->self, me);
	marcel_sem_wait(&f->leave);
	return NULL;
}

TEST_VPS(foreign_threads_see_and_are_seen)
{
	struct foreign f = { .self = ATOMIC_INIT(NULL) };
	struct marcel_info i;
	pthread_t t;

	CHECK_INT(marcel_sem_init(&f.leave, 0, 0), 0);
	CHECK_INT(pthread_create(&t, NULL, be_foreign, &f), 0);
	while (load_acquire(&f.self) == NULL)
		marcel_yield();
	do
		i = look(load_relaxed(&f.self));
	while (i.state != MARCEL_STATE_WAITING);
	CHECK_INT(i.kind, MARCEL_KIND_FOREIGN);
	CHECK_STR(i.waits, "semaphore");
	CHECK_INT(marcel_sem_post(&f.leave), 0);
	CHECK_INT(pthread_join(t, NULL), 0);
}

/* --- attributes --- */

static bool is_within(const marcel_attr_t *attr, const void *p)
{
	size_t bytes;
	void *low;

	CHECK_INT(marcel_attr_getstack(attr, &low, &bytes), 0);
	return (const char *)p >= (char *)low &&
	       (const char *)p < (char *)low + bytes;
}

static void *look_at_myself(void *arg)
{
	marcel_attr_t *attr = arg;

	CHECK_INT(marcel_getattr_np(marcel_self(), attr), 0);
	CHECK(is_within(attr, __builtin_frame_address(0)));
	marcel_sem_wait(&gate);
	return NULL;
}

TEST_VPS(attributes_of_a_running_thread_are_found)
{
	marcel_attr_t attr, mine, seen;
	char name[MARCEL_NAME_MAX];
	void *low, *low2;
	size_t bytes, guard;
	marcel_vpset_t set;
	marcel_t t;
	int state;

	CHECK_INT(marcel_sem_init(&gate, 0, 0), 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setname(&attr, "one"), 0);
	CHECK_INT(marcel_attr_setstacksize(&attr, 200000), 0);
	CHECK_INT(marcel_attr_setvp(&attr, marcel_nvp() - 1), 0);
	CHECK_INT(marcel_create(&t, &attr, look_at_myself, &mine), 0);
	until_it_waits(t);
	CHECK_INT(marcel_getattr_np(t, &seen), 0);
	CHECK_INT(marcel_attr_getname(&seen, name, sizeof(name)), 0);
	CHECK_STR(name, "one");
	CHECK_INT(marcel_attr_getdetachstate(&seen, &state), 0);
	CHECK_INT(state, MARCEL_CREATE_JOINABLE);
	CHECK_INT(marcel_attr_getstack(&seen, &low, &bytes), 0);
	CHECK(bytes >= 200000);
	CHECK_INT(marcel_attr_getstack(&mine, &low2, &bytes), 0);
	CHECK_PTR(low, low2);
	CHECK_INT(marcel_attr_getguardsize(&seen, &guard), 0);
	CHECK_INT(guard % 4096, 0);
	CHECK_INT(marcel_attr_getvpset(&seen, &set), 0);
	for (int i = 0; i < marcel_nvp(); i++)
		CHECK_INT(marcel_vpset_has(&set, i), i == marcel_nvp() - 1);
	CHECK_INT(marcel_detach(t), 0);
	CHECK_INT(marcel_getattr_np(t, &seen), 0);
	CHECK_INT(marcel_attr_getdetachstate(&seen, &state), 0);
	CHECK_INT(state, MARCEL_CREATE_DETACHED);
	CHECK_INT(marcel_sem_post(&gate), 0);
}

/* What was found makes another of the kind, on a stack of its own. */
TEST_VPS(a_thread_like_another_has_its_own_stack)
{
	marcel_attr_t first, second;
	void *low, *low2;
	size_t bytes;
	marcel_t t[2];

	CHECK_INT(marcel_sem_init(&gate, 0, 0), 0);
	CHECK_INT(marcel_create(&t[0], NULL, wait_at_gate, NULL), 0);
	until_it_waits(t[0]);
	CHECK_INT(marcel_getattr_np(t[0], &first), 0);
	CHECK_INT(marcel_create(&t[1], &first, wait_at_gate, NULL), 0);
	until_it_waits(t[1]);
	CHECK_INT(marcel_getattr_np(t[1], &second), 0);
	CHECK_INT(marcel_attr_getstack(&first, &low, &bytes), 0);
	CHECK_INT(marcel_attr_getstack(&second, &low2, &bytes), 0);
	CHECK(low != low2);
	for (int i = 0; i < 2; i++)
		CHECK_INT(marcel_sem_post(&gate), 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

static void *foreign_attr(void *arg)
{
	marcel_vpset_t set;
	marcel_attr_t attr;

	(void)arg;
	CHECK_INT(marcel_getattr_np(marcel_self(), &attr), 0);
	CHECK(is_within(&attr, __builtin_frame_address(0)));
	CHECK_INT(marcel_attr_getvpset(&attr, &set), 0);
	return NULL;
}

TEST_VPS(kernel_threads_have_attributes_too)
{
	marcel_attr_t attr;
	pthread_t t;

	CHECK_INT(marcel_getattr_np(marcel_self(), &attr), 0);
	CHECK(is_within(&attr, __builtin_frame_address(0)));
	CHECK_INT(pthread_create(&t, NULL, foreign_attr, NULL), 0);
	CHECK_INT(pthread_join(t, NULL), 0);
}

TEST_VPS(who_has_ended_has_no_attributes)
{
	marcel_attr_t attr, none;
	marcel_vpset_t set;
	char name[MARCEL_NAME_MAX];
	size_t bytes;
	void *low;
	marcel_t t;

	t = make("a name", nothing, NULL);
	while (look(t).state != MARCEL_STATE_ENDED)
		marcel_yield();
	CHECK_INT(marcel_getattr_np(t, &attr), ESRCH);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(marcel_getattr_np(t, &attr), ESRCH);

	memset(&none, 0, sizeof(none));
	CHECK_INT(marcel_attr_getname(&none, name, sizeof(name)), EINVAL);
	CHECK_INT(marcel_attr_getvpset(&none, &set), EINVAL);
	CHECK_INT(marcel_attr_getstack(&none, &low, &bytes), EINVAL);
	CHECK_INT(marcel_attr_getguardsize(&none, &bytes), EINVAL);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setname(&attr, "a name"), 0);
	CHECK_INT(marcel_attr_getname(&attr, name, 6), ERANGE);
	CHECK_INT(marcel_attr_getname(&attr, name, 7), 0);
	CHECK_STR(name, "a name");
	CHECK_STR(marcel_state_name((enum marcel_state)99), "?");
}
