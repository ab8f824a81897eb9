/*
 * madmpi/coll/slots.h: who waits for a slot sees what is in it, asleep or
 * awake; whose slot it is does not write it again before it was read; and there
 * is one message for each that was asked for, or taken back.
 *
 * covers: coll-slot, coll-bell
 */
#include "explore.h"

#include "../../madmpi/coll/slots.h"

enum { PROCESSES = 3 };

static struct madmpi_line line[PROCESSES];
static ATOMIC(uint64_t) number; /* of the slot of process 0 */
static int data;                /* in it */
static ATOMIC(uint32_t) messages[PROCESSES][PROCESSES]; /* to, from */

static void set_up(void)
{
	explore_name(line, sizeof(line), "lines");
	explore_name(&number, sizeof(number), "number");
	explore_name(&data, sizeof(data), "data");
	explore_name(messages, sizeof(messages), "messages");
}

/* As node.c does. A message orders nothing here. */
static void tell(int me, void *word, uint64_t to)
{
	uint32_t sleepers;

	madmpi_word_tell(word, to);
	sleepers = madmpi_sleepers_take(&line[me]);
	for (; sleepers != 0; sleepers &= sleepers - 1) {
		int i = __builtin_ctz(sleepers);

		explore_check(fetch_add_relaxed(&messages[i][me], 1) == 0);
		explore_wake(&messages[i][me], 1);
	}
}

static void receive(int me, int from)
{
	while (xchg_relaxed(&messages[me][from], 0) == 0)
		explore_wait_while(&messages[me][from], 0);
}

static void wait_for(int me, int rank, void *word, uint64_t to)
{
	while (!madmpi_word_has_come(word, to)) {
		madmpi_sleepers_join(&line[rank], me);
		if (madmpi_word_has_come(word, to) &&
		    madmpi_sleepers_leave(&line[rank], me))
			return;
		receive(me, rank);
	}
}

/* --- the slot is told of once, and the reader may be in any state --- */

static void writes(void *arg)
{
	data = 7;
	tell(0, &number, 1);
}

static void reads(void *arg)
{
	int me = (int)(intptr_t)arg;

	wait_for(me, 0, &number, 1);
	explore_check(data == 7);
}

static void nothing_is_left(void)
{
	for (int i = 0; i < PROCESSES; i++)
		explore_check(load_relaxed(&messages[i][0]) == 0);
}

EXPLORE(who_waits_for_a_slot_sees_what_is_in_it)
{
	set_up();
	explore_spawn("writer", writes, NULL);
	explore_spawn("reader", reads, (void *)1);
	explore_finish(nothing_is_left);
}

EXPLORE(two_that_sleep_get_a_message_each)
{
	set_up();
	explore_spawn("writer", writes, NULL);
	explore_spawn("reader 1", reads, (void *)1);
	explore_spawn("reader 2", reads, (void *)2);
	explore_finish(nothing_is_left);
}

/* --- it is written again: of one slot each part needs the one before --- */

static void writes_two(void *arg)
{
	writes(arg);
	wait_for(0, 1, &line[1].done[0], 1);
	data = 8;
	tell(0, &number, 2);
}

static void reads_two(void *arg)
{
	reads(arg);
	tell(1, &line[1].done[0], 1);
	wait_for(1, 0, &number, 2);
	explore_check(data == 8);
}

EXPLORE(a_slot_is_written_again_when_it_was_read)
{
	set_up();
	explore_spawn("writer", writes_two, NULL);
	explore_spawn("reader", reads_two, (void *)1);
	explore_finish(nothing_is_left);
}

/* --- a message that comes for a part that was not waited for --- */

static void tells_twice(void *arg)
{
	tell(0, &line[0].done[0], 1);
	data = 7;
	tell(0, &number, 1);
}

EXPLORE(who_was_rung_for_another_word_sleeps_again)
{
	set_up();
	explore_spawn("writer", tells_twice, NULL);
	explore_spawn("reader", reads, (void *)1);
	explore_finish(nothing_is_left);
}

/* --- however long nobody has written there --- */

static const uint64_t late = 3000000000; /* parts */

static void writes_late(void *arg)
{
	data = 7;
	tell(0, &number, late);
}

static void reads_late(void *arg)
{
	wait_for(1, 0, &number, late);
	explore_check(data == 7);
}

EXPLORE(a_slot_that_was_left_alone_for_long_is_waited_for)
{
	set_up();
	explore_spawn("writer", writes_late, NULL);
	explore_spawn("reader", reads_late, NULL);
	explore_finish(nothing_is_left);
}
