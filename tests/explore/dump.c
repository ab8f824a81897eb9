/*
 * marcel/base/diag.c: a dump that runs while a layer starts calls only through
 * dumpers that it sees whole.
 *
 * covers: dump
 */
#include "explore.h"

#include "../../marcel/base/diag.c"

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
