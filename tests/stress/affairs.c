/*
 * What threads tell one another to do: take a signal, run elsewhere or sooner,
 * have the processor next. Each is done, by whom it was told to, where it may.
 */
#include "stress.h"

#include <errno.h>
#include <signal.h>

#include <marcel/signal.h>

enum { FAVOUR_NS = 5000000 }; /* at most */

static marcel_vpset_t draw_set(struct actor *a)
{
	marcel_vpset_t set;

	marcel_vpset_zero(&set);
	marcel_vpset_add(&set, (int)draw_below(a, (unsigned)marcel_nvp()));
	for (int i = 0; i < marcel_nvp(); i++)
		if (one_in(a, 4))
			marcel_vpset_add(&set, i);
	return set;
}

static marcel_vpset_t all_vps(void)
{
	marcel_vpset_t set;

	marcel_vpset_zero(&set);
	for (int i = 0; i < marcel_nvp(); i++)
		marcel_vpset_add(&set, i);
	return set;
}

/* Others that are to act meanwhile may have any priority. */
static void pause_for_others(struct actor *a)
{
	one_in(a, 2) ? marcel_usleep(20) : marcel_yield();
}

/* --- one that does what others want --- */

struct servant {
	struct actor a;
	marcel_t self; /* -: once it says that it runs */
	marcel_sem_t runs;
	ATOMIC(int) stop;
	/* signals */
	ATOMIC(int) handled;
	bool blocks; /* its own */
	/* places: which of `sets` was told, and which was to be told next */
	marcel_vpset_t sets[8];
	ATOMIC(int) told, telling;
};

static marcel_key_t key;

static void handle(int signal)
{
	struct servant *s = marcel_getspecific(key);

	MUST(s != NULL && marcel_equal(marcel_self(), s->self));
	MUST(!s->blocks);
	MUST_INT(signal, SIGUSR2);
	/* No switch: at a tick it may have interrupted anything. */
	fetch_add_relaxed(&s->handled, 1);
}

static void block_for_a_while(struct servant *s)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	MUST_INT(marcel_sigmask(SIG_BLOCK, &set, &old), 0);
	s->blocks = true;
	for (int i = 0; i < 3; i++)
		stir(&s->a);
	s->blocks = false;
	if (one_in(&s->a, 2)) {
		MUST_INT(marcel_sigmask(SIG_SETMASK, &old, NULL), 0);
		return;
	}
	MUST_INT(marcel_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	MUST_INT(marcel_sigpending(&set), 0);
}

/* After a switch it is where it was last told to be. */
static void look_where_it_is(struct servant *s)
{
	int n = load_acquire(&s->told), vp;

	MUST_INT(marcel_yield(), 0);
	vp = marcel_current_vp();
	if (n > 0 && load_relaxed(&s->telling) == n)
		MUST(marcel_vpset_has(&s->sets[n], vp));
}

static void *serve(void *arg)
{
	struct servant *s = arg;
	int error;

	s->self = marcel_self();
	MUST_INT(marcel_setspecific(key, s), 0);
	MUST_INT(marcel_sem_post(&s->runs), 0);
	while (load_acquire(&s->stop) == 0) {
		error = (int)draw_below(&s->a, 100);
		*marcel_errno_location() = error;
		look_where_it_is(s);
		MUST_INT(*marcel_errno_location(), error);
		if (one_in(&s->a, 4))
			block_for_a_while(s);
		stir(&s->a);
		marcel_usleep(draw_below(&s->a, 30));
	}
	MUST_INT(marcel_setspecific(key, NULL), 0);
	return s;
}

static void servant_new(struct actor *a, struct servant *s)
{
	marcel_t t;

	*s = (struct servant){ .a = { .random = draw(a), .id = a->id } };
	MUST_INT(marcel_sem_init(&s->runs, 0, 0), 0);
	MUST_INT(marcel_create(&t, NULL, serve, s), 0);
	MUST_INT(marcel_sem_wait(&s->runs), 0);
}

static void servant_end(struct servant *s)
{
	void *value;

	store_release(&s->stop, 1);
	MUST_INT(marcel_join(s->self, &value), 0);
	MUST(value == s);
	MUST_INT(marcel_sem_destroy(&s->runs), 0);
}

/* Each is handled before the next is sent, so none can be merged. */
static void op_kill(struct actor *a)
{
	struct servant s;
	int n = 1 + (int)draw_below(a, 4);

	servant_new(a, &s);
	for (int i = 1; i <= n; i++) {
		MUST_INT(marcel_kill(s.self, SIGUSR2), 0);
		while (load_relaxed(&s.handled) < i)
			pause_for_others(a);
	}
	servant_end(&s);
	MUST_INT(load_relaxed(&s.handled), n);
}

static void op_place(struct actor *a)
{
	struct servant s;

	servant_new(a, &s);
	for (int i = 1; i < (int)BASE_ARRAY_LEN(s.sets); i++) {
		s.sets[i] = draw_set(a);
		store_relaxed(&s.telling, i);
		MUST_INT(marcel_setaffinity(s.self, &s.sets[i]), 0);
		store_release(&s.told, i);
		pause_for_others(a);
	}
	servant_end(&s);
}

static int draw_priority(struct actor *a)
{
	return (int)draw_below(a, 3) + MARCEL_PRIORITY_IDLE;
}

/* ns; 0 ends it. */
static uint64_t draw_favour(struct actor *a)
{
	return one_in(a, 4) ? 0 : draw_below(a, FAVOUR_NS);
}

static void op_priority(struct actor *a)
{
	struct servant s;
	int want, got;

	servant_new(a, &s);
	for (int i = 0; i < 6; i++) {
		if (one_in(a, 4))
			MUST_INT(marcel_favour(s.self, draw_favour(a)), 0);
		want = draw_priority(a);
		MUST_INT(marcel_setpriority(s.self, want), 0);
		MUST_INT(marcel_getpriority(s.self, &got), 0);
		MUST_INT(got, want);
		pause_for_others(a);
	}
	servant_end(&s);
}

/* --- oneself --- */

static void op_own_place(struct actor *a)
{
	marcel_vpset_t set = draw_set(a), got, all = all_vps();

	if (a->is_main) { /* it has one place only */
		marcel_vpset_zero(&set);
		marcel_vpset_add(&set, 0);
	}
	MUST_INT(marcel_setaffinity(marcel_self(), &set), 0);
	for (int i = 0; i < 4; i++) {
		MUST(marcel_vpset_has(&set, marcel_current_vp()));
		stir(a);
	}
	MUST_INT(marcel_getaffinity(marcel_self(), &got), 0);
	for (int i = 0; i < marcel_nvp(); i++)
		MUST_INT(marcel_vpset_has(&got, i), marcel_vpset_has(&set, i));
	MUST_INT(marcel_setaffinity(marcel_self(), &all), 0);
}

static void op_own_priority(struct actor *a)
{
	int want = draw_priority(a), got;

	MUST_INT(marcel_setpriority(marcel_self(), want), 0);
	for (int i = 0; i < 4; i++)
		stir(a);
	MUST_INT(marcel_getpriority(marcel_self(), &got), 0);
	MUST_INT(got, want);
	MUST_INT(marcel_setpriority(marcel_self(), MARCEL_PRIORITY_NORMAL), 0);
}

/* Anyone may say so, and of anyone; a foreign thread is always normal. */
static void op_favour(struct actor *a)
{
	marcel_t t;
	uint64_t ns;

	for (unsigned n = 1 + draw_below(a, 4); n > 0; n--) {
		t = one_in(a, 4) ? marcel_self() : draw_actor(a);
		ns = draw_favour(a);
		if (t == NULL)
			MUST_INT(marcel_favour(t, ns), ESRCH);
		else if (marcel_equal(t, marcel_self()) && a->foreign)
			MUST_INT(marcel_favour(t, ns), ENOTSUP);
		else
			MUST_INT(marcel_favour(t, ns), 0);
		stir(a);
	}
}

static void op_yield_to(struct actor *a)
{
	int rc;

	for (unsigned n = 1 + draw_below(a, 10); n > 0; n--) {
		marcel_t t = draw_actor(a);

		if (t == NULL)
			continue;
		rc = marcel_yield_to(t);
		MUST(rc == 0 || rc == ESRCH);
	}
}

void affairs_begin(void)
{
	struct sigaction sa = { .sa_handler = handle };

	MUST_INT(marcel_key_create(&key, NULL), 0);
	MUST_INT(sigaction(SIGUSR2, &sa, NULL), 0);
}

void affairs_over(void)
{
	MUST_INT(marcel_key_delete(key), 0);
}

const struct op affair_ops[] = {
	{ "signals", op_kill, 4, true, false },
	{ "another's place", op_place, 4, true, false },
	{ "another's priority", op_priority, 4, true, false },
	{ "own place", op_own_place, 6, false, true },
	{ "own priority", op_own_priority, 6, false, true },
	{ "favour", op_favour, 6, false, false },
	{ "yield to", op_yield_to, 6, false, false },
	{ NULL, NULL, 0, false, false },
};
