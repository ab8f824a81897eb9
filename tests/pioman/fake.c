#include "fake.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <base/atomic.h>
#include <base/clock.h>
#include <base/compiler.h>

static struct {
	struct marcel_level *machine;
	struct marcel_level *leaves[MARCEL_VP_MAX];
	int nvp;
	ATOMIC(struct marcel_level *) kicked;
	ATOMIC(unsigned) kicks;
	bool has_room;
} fake;

static __thread int vp = -1;

static struct marcel_level *build(const unsigned *arity,
				  struct marcel_level *parent, unsigned depth)
{
	struct marcel_level *l = calloc(1, sizeof(*l));

	l->kind = depth == 0      ? MARCEL_LEVEL_MACHINE
		  : arity[0] == 0 ? MARCEL_LEVEL_VP
				  : MARCEL_LEVEL_PACKAGE;
	l->parent = parent;
	l->nchildren = arity[0];
	l->vp = -1;
	if (arity[0] == 0) {
		l->vp = fake.nvp++;
		l->index = (unsigned)l->vp;
		fake.leaves[l->vp] = l;
		marcel_vpset_add(&l->vps, l->vp);
		return l;
	}
	l->children = calloc(arity[0], sizeof(struct marcel_level *));
	for (unsigned i = 0; i < arity[0]; i++) {
		l->children[i] = build(arity + 1, l, depth + 1);
		for (int w = 0; w < MARCEL_VPSET_WORDS; w++)
			l->vps.bits[w] |= l->children[i]->vps.bits[w];
	}
	return l;
}

void fake_machine(const unsigned *arity)
{
	fake.nvp = 0;
	fake.machine = build(arity, NULL, 0);
	fake_be_vp(0);
}

static void destroy(struct marcel_level *l)
{
	for (unsigned i = 0; i < l->nchildren; i++)
		destroy(l->children[i]);
	free(l->children);
	free(l);
}

void fake_machine_free(void)
{
	destroy(fake.machine);
	fake.machine = NULL;
	fake.nvp = 0;
}

void fake_be_vp(int as)
{
	vp = as;
}

struct marcel_level *fake_kicked(void)
{
	return load_relaxed(&fake.kicked);
}

unsigned fake_kicks(void)
{
	return load_relaxed(&fake.kicks);
}

struct marcel_level *fake_level(int of, int up)
{
	struct marcel_level *l = fake.leaves[of];

	while (up-- > 0)
		l = l->parent;
	return l;
}

/* --- what pioman sees of marcel --- */

struct marcel_level *marcel_topo_machine(void)
{
	return fake.machine;
}

struct marcel_level *marcel_topo_vp(int of)
{
	return of >= 0 && of < fake.nvp ? fake.leaves[of] : NULL;
}

struct marcel_level *marcel_topo_cover(const marcel_vpset_t *set)
{
	struct marcel_level *l;
	int first = 0;

	while (first < fake.nvp && !marcel_vpset_has(set, first))
		first++;
	if (first == fake.nvp)
		return NULL;
	for (l = fake.leaves[first]; l->parent != NULL; l = l->parent) {
		bool covered = true;

		for (int i = 0; i < fake.nvp; i++)
			if (marcel_vpset_has(set, i))
				covered &= marcel_vpset_has(&l->vps, i);
		if (covered)
			break;
	}
	return l;
}

const char *marcel_level_name(enum marcel_level_kind kind)
{
	return kind == MARCEL_LEVEL_MACHINE ? "machine" : "level";
}

int marcel_is_running(void)
{
	return fake.machine != NULL;
}

int marcel_nvp(void)
{
	return fake.nvp;
}

int marcel_current_vp(void)
{
	return vp;
}

void marcel_kick(struct marcel_level *level)
{
	store_relaxed(&fake.kicked, level);
	fetch_add_relaxed(&fake.kicks, 1);
}

int marcel_others_ready(void)
{
	return 0;
}

void fake_room(bool has_room)
{
	fake.has_room = has_room;
}

int marcel_is_oversubscribed(void)
{
	return !fake.has_room;
}

int marcel_yield(void)
{
	return sched_yield();
}

int marcel_vp_cpu(int of)
{
	return of;
}

int marcel_any_idle(void)
{
	return 0;
}

int marcel_kernel_thread(pthread_t *out, void *(*fn)(void *), void *arg)
{
	return -pthread_create(out, NULL, fn, arg);
}

int marcel_hook_add(enum marcel_hook_point point, struct marcel_hook *hook)
{
	(void)point;
	(void)hook;
	return 0;
}

int marcel_hook_remove(enum marcel_hook_point point, struct marcel_hook *hook)
{
	(void)point;
	(void)hook;
	return 0;
}

/* --- events: a word and yields --- */

struct word {
	ATOMIC(uint64_t) value;
} BASE_MAY_ALIAS;

static struct word *word_of(const marcel_event_t *e)
{
	return (struct word *)e;
}

void marcel_event_init(marcel_event_t *e)
{
	store_relaxed(&word_of(e)->value, 0);
}

int marcel_event_test(const marcel_event_t *e)
{
	return load_acquire(&word_of(e)->value) != 0;
}

void marcel_event_set(marcel_event_t *e)
{
	xchg_release(&word_of(e)->value, 1);
}

void marcel_event_wait(marcel_event_t *e)
{
	while (!marcel_event_test(e))
		sched_yield();
}

size_t marcel_event_wait_any(marcel_event_t *const events[], size_t n)
{
	for (;; sched_yield())
		for (size_t i = 0; i < n; i++)
			if (events[i] != NULL && marcel_event_test(events[i]))
				return i;
}

int marcel_event_wait_until(marcel_event_t *e, uint64_t ns)
{
	while (!marcel_event_test(e)) {
		if (base_now_ns() >= ns)
			return -ETIMEDOUT;
		sched_yield();
	}
	return 0;
}

size_t marcel_event_wait_any_until(marcel_event_t *const events[], size_t n,
				   uint64_t ns)
{
	for (; base_now_ns() < ns; sched_yield())
		for (size_t i = 0; i < n; i++)
			if (events[i] != NULL && marcel_event_test(events[i]))
				return i;
	return n;
}
