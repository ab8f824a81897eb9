/*
 * marcel/base/diag.c, pool.c: a dump that runs while a layer starts or a pool
 * grows calls only through dumpers, and walks only objects, that it sees
 * whole; after a dumper is removed no dump reads what it tells of.
 *
 * covers: dump, dumping
 */
#include "explore.h"

#include <stdlib.h>

#include "../../marcel/base/diag.c"

static char memory[4096];
static size_t used;

static void *take(size_t bytes)
{
	void *p = memory + used;

	used += (bytes + 63) / 64 * 64;
	explore_check(used <= sizeof(memory));
	return p;
}

#define malloc(bytes)               take(bytes)
#define aligned_alloc(align, bytes) take(bytes)
#include "../../marcel/base/pool.c"

int sched_yield(void)
{
	explore_relax();
	return 0;
}

static struct base_dumper dumpers_of[2];
static int told[2];

/* What it would print goes nowhere. */
ssize_t write(int fd, const void *text, size_t bytes)
{
	return (ssize_t)bytes;
}

static void tell(void *arg)
{
	int *n = arg;

	explore_check(*n == 1);
}

static void add_two(void *arg)
{
	for (int i = 0; i < 2; i++) {
		told[i] = 1;
		dumpers_of[i].name = "layer";
		dumpers_of[i].fn = tell;
		dumpers_of[i].arg = &told[i];
		base_dumper_add(&dumpers_of[i]);
	}
}

static void dump(void *arg)
{
	base_dump_all();
}

EXPLORE(a_dumper_is_seen_whole)
{
	explore_name(dumpers_of, sizeof(dumpers_of), "dumpers");
	explore_name(told, sizeof(told), "told");
	explore_spawn("adder", add_two, NULL);
	explore_spawn("dump", dump, NULL);
}

/* The last first, as layers stop: then one behind another is removed. */
static void remove_both(void *arg)
{
	for (int i = 2; i-- > 0;) {
		base_dumper_remove(&dumpers_of[i]);
		explore_gone(&dumpers_of[i], sizeof(dumpers_of[i]));
		explore_gone(&told[i], sizeof(told[i]));
	}
}

EXPLORE(a_removed_dumper_tells_no_more)
{
	explore_name(dumpers_of, sizeof(dumpers_of), "dumpers");
	explore_name(&dumping, sizeof(dumping), "dumping");
	add_two(NULL);
	explore_spawn("remover", remove_both, NULL);
	explore_spawn("dump", dump, NULL);
}

static struct base_pool pool;

static void get_three(void *arg)
{
	for (int i = 0; i < 3; i++)
		explore_check(base_pool_get(&pool) != NULL);
}

/* Two in each slab, on a line of their own, but for their first word 0. */
static void see_one(void *object, void *arg)
{
	explore_check(((uintptr_t *)object)[1] == 0);
}

static void walk_all(void *arg)
{
	base_pool_walk(&pool, see_one, NULL);
}

EXPLORE(a_walk_sees_whole_slabs)
{
	explore_name(&pool, sizeof(pool), "pool");
	explore_name(memory, sizeof(memory), "memory");
	base_pool_init(&pool, 64, 64);
	pool.per_slab = 2;
	explore_spawn("owner", get_three, NULL);
	explore_spawn("walk", walk_all, NULL);
}
