/*
 * The table of ranges against a list of them that is walked.
 */
#include "../../check.h"

#include <stdlib.h>

#include "../../../nmad/drivers/verbs/ranges.h"

enum { ROOM = 60, SPACE = 200, ROUNDS = 20000 };

static struct one {
	uintptr_t begin, end;
	bool is_in, is_named;
} ones[ROOM];

static bool leaves_if_named(void *of, void *arg)
{
	struct one *one = of;

	(void)arg;
	CHECK(one->is_in);
	one->is_in = !one->is_named;
	return one->is_named;
}

static void draw(uintptr_t *begin, uintptr_t *end)
{
	*begin = check_random() % SPACE;
	*end = *begin + 1 + check_random() % 20;
}

static void put_one(struct verbs_ranges *r)
{
	for (int i = 0; i < ROOM; i++) {
		if (ones[i].is_in)
			continue;
		draw(&ones[i].begin, &ones[i].end);
		ones[i].is_in = true;
		ones[i].is_named = check_random() % 2;
		nm_verbs_ranges_put(r, ones[i].begin, ones[i].end, &ones[i]);
		return;
	}
}

static void take_some(struct verbs_ranges *r)
{
	uintptr_t begin, end;
	bool was[ROOM];

	draw(&begin, &end);
	for (int i = 0; i < ROOM; i++)
		was[i] = ones[i].is_in;
	nm_verbs_ranges_take(r, begin, end, leaves_if_named, NULL);
	for (int i = 0; i < ROOM; i++)
		CHECK_INT(ones[i].is_in,
			  was[i] && !(ones[i].is_named && ones[i].begin < end &&
				      begin < ones[i].end));
}

static void look_for_one(const struct verbs_ranges *r)
{
	uintptr_t begin, end;
	struct one *found;
	bool there = false;

	draw(&begin, &end);
	found = nm_verbs_ranges_find(r, begin, end);
	for (int i = 0; i < ROOM; i++)
		there = there || (ones[i].is_in && ones[i].begin <= begin &&
				  end <= ones[i].end);
	CHECK_INT(found != NULL, there);
	if (found != NULL)
		CHECK(found->is_in && found->begin <= begin &&
		      end <= found->end);
}

static void reach_from_one(const struct verbs_ranges *r)
{
	uintptr_t at, end, reach, next, until;

	draw(&at, &end);
	until = reach = at;
	next = end;
	for (int i = 0; i < ROOM; i++) {
		if (!ones[i].is_in)
			continue;
		if (ones[i].begin <= at && ones[i].end > reach)
			reach = ones[i].end;
		if (ones[i].begin > at && ones[i].begin < next)
			next = ones[i].begin;
	}
	until = end;
	CHECK_INT(nm_verbs_ranges_reach(r, at, &until), reach);
	if (reach == at)
		CHECK_INT(until, next);
}

TEST(ranges_are_found_put_and_taken_like_in_a_list)
{
	struct verbs_ranges r;

	CHECK_INT(nm_verbs_ranges_init(&r, ROOM), 0);
	for (int i = 0; i < ROUNDS; i++) {
		if (check_random() % 4 == 0)
			take_some(&r);
		else
			put_one(&r);
		nm_verbs_ranges_check(&r);
		look_for_one(&r);
		reach_from_one(&r);
	}
	nm_verbs_ranges_exit(&r);
}
