/*
 * marcel/sched/deque.h: every entry is taken once, by its owner or by a thief,
 * and whoever takes it sees what was written to it before the push; also while
 * the array grows.
 *
 * covers: deque, deque_array, deque_reuse, steal
 */
#include "explore.h"

#include "../../marcel/sched/deque.h"

enum { ENTRIES = 4, SLOTS = 4, ARRAYS = 3 };

static struct marcel_deque deque;
/* Room for arrays with their slots. */
static char arrays[ARRAYS][sizeof(struct marcel_deque_array) +
			   SLOTS * sizeof(void *)] BASE_ALIGNED(8);
static int narrays;
static bool no_memory;

static struct {
	int pushed, taken;
} entries[ENTRIES];

struct marcel_deque_array *marcel_deque_array_new(int64_t size)
{
	struct marcel_deque_array *a;

	if (no_memory || size > SLOTS)
		return NULL;
	a = (void *)arrays[narrays++];
	a->size = size;
	a->older = NULL;
	return a;
}

void marcel_deque_array_free(struct marcel_deque_array *a)
{
}

static void set_up(int64_t size)
{
	explore_name(&deque.top, 8, "top");
	explore_name(&deque.bottom, 8, "bottom");
	explore_name(&deque.array, 8, "array");
	for (int i = 0; i < ARRAYS; i++)
		explore_name(arrays[i], sizeof(arrays[i]), "array %d", i);
	for (int i = 0; i < ENTRIES; i++)
		explore_name(&entries[i], sizeof(entries[i]), "entry %d", i);
	marcel_deque_init(&deque, size);
}

static bool push(int i)
{
	entries[i].pushed++;
	return marcel_deque_push(&deque, &entries[i]);
}

/* Plain accesses: taken twice or unseen is a race or a wrong count. */
static bool took(void *x)
{
	int i;

	if (x == NULL)
		return false;
	i = (int)((char *)x - (char *)entries) / (int)sizeof(entries[0]);
	explore_check(entries[i].pushed == 1);
	explore_check(entries[i].taken == 0);
	entries[i].taken++;
	return true;
}

static void steal(void *arg)
{
	took(marcel_deque_steal(&deque));
}

static void push_two(void *arg)
{
	push(0);
	push(1);
}

static void push_two_take_newest(void *arg)
{
	push_two(arg);
	took(marcel_deque_take_newest(&deque));
	took(marcel_deque_take_newest(&deque));
}

static void push_one_take_newest(void *arg)
{
	push(0);
	took(marcel_deque_take_newest(&deque));
}

static void push_two_take_oldest(void *arg)
{
	push_two(arg);
	took(marcel_deque_take_oldest(&deque));
	took(marcel_deque_take_oldest(&deque));
}

static void push_two_take_both_ends(void *arg)
{
	push_two(arg);
	took(marcel_deque_take_newest(&deque));
	took(marcel_deque_take_oldest(&deque));
}

static void take_newest_of_one_push_and_again(void *arg)
{
	push_one_take_newest(arg);
	push(1);
	push(2);
	took(marcel_deque_take_newest(&deque));
}

/* The array has two slots: the third entry reuses one or makes it grow. */
static void push_three(void *arg)
{
	push_two(arg);
	push(2);
}

/* One, then two at once: the array grows with one that nobody sees yet. */
static void push_two_at_once(void *arg)
{
	int64_t b;

	push(0);
	b = load_relaxed(&deque.bottom);
	for (int i = 1; i <= 2; i++) {
		entries[i].pushed++;
		explore_check(marcel_deque_place(&deque, b, &entries[i]));
		b++;
	}
	marcel_deque_publish(&deque, b);
}

static void push_while_there_is_room(void *arg)
{
	no_memory = true;
	push_two(arg);
	if (!push(2))
		entries[2].pushed = 0;
}

/* What nobody has taken is still there, once. */
static void all_once(void)
{
	while (took(marcel_deque_steal(&deque)))
		;
	for (int i = 0; i < ENTRIES; i++)
		explore_check(entries[i].taken == entries[i].pushed);
}

EXPLORE(a_thief_sees_what_was_pushed)
{
	set_up(SLOTS);
	explore_spawn("owner", push_two, NULL);
	explore_spawn("thief", steal, NULL);
	explore_finish(all_once);
}

EXPLORE(the_last_entry_is_the_owners_or_a_thiefs)
{
	set_up(SLOTS);
	explore_spawn("owner", push_one_take_newest, NULL);
	explore_spawn("thief", steal, NULL);
	explore_spawn("other thief", steal, NULL);
	explore_finish(all_once);
}

EXPLORE(the_newest_and_two_thieves)
{
	set_up(SLOTS);
	explore_spawn("owner", push_two_take_newest, NULL);
	explore_spawn("thief", steal, NULL);
	explore_spawn("other thief", steal, NULL);
	explore_finish(all_once);
}

EXPLORE(the_oldest_and_two_thieves)
{
	set_up(SLOTS);
	explore_spawn("owner", push_two_take_oldest, NULL);
	explore_spawn("thief", steal, NULL);
	explore_spawn("other thief", steal, NULL);
	explore_finish(all_once);
}

EXPLORE(the_newest_then_the_oldest_and_a_thief)
{
	set_up(SLOTS);
	explore_spawn("owner", push_two_take_both_ends, NULL);
	explore_spawn("thief", steal, NULL);
	explore_finish(all_once);
}

EXPLORE(what_the_owner_took_last_does_not_come_back)
{
	set_up(SLOTS);
	explore_spawn("owner", take_newest_of_one_push_and_again, NULL);
	explore_spawn("thief", steal, NULL);
	explore_finish(all_once);
}

EXPLORE(a_thief_may_look_at_an_array_that_is_outgrown)
{
	set_up(2);
	explore_spawn("owner", push_three, NULL);
	explore_spawn("thief", steal, NULL);
	explore_spawn("other thief", steal, NULL);
	explore_finish(all_once);
}

EXPLORE(thieves_see_what_was_pushed_at_once)
{
	set_up(2);
	explore_spawn("owner", push_two_at_once, NULL);
	explore_spawn("thief", steal, NULL);
	explore_spawn("other thief", steal, NULL);
	explore_finish(all_once);
}

EXPLORE(a_slot_is_reused_when_its_thief_has_read_it)
{
	set_up(2);
	explore_spawn("owner", push_while_there_is_room, NULL);
	explore_spawn("thief", steal, NULL);
	explore_spawn("other thief", steal, NULL);
	explore_finish(all_once);
}
