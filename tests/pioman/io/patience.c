/* pioman/io/patience: how long an ltask is polled before it is armed. */
#include "../probe.h"

#include <base/clock.h>

#include "pipes.h"
#include "rounds.h"

/* With so many microseconds as PIOM_IDLE_US. */
static void begin(struct reader *r, const char *idle_us)
{
	with_option("PIOM_IDLE_US", idle_us);
	reader_init(r, NULL);
	piom_ltask_submit(&r->task);
}

/* Something is found by a VP that has polled for so long. */
static void come_after(struct reader *r, uint64_t vain_ns)
{
	int before = load_relaxed(&r->bytes);
	bool found;

	fake_be_vp(0);
	feed(r);
	while (load_relaxed(&r->bytes) == before)
		piom_poll_round(0, vain_ns, PIOM_POINT_IDLE, &found);
	CHECK_INT(load_relaxed(&r->bytes), before + 1);
}

/* --- history --- */

TEST(what_comes_soon_is_polled_for_a_little_longer_than_usual)
{
	struct reader r;

	begin(&r, "1000");
	come_after(&r, 10000);
	CHECK(pending_after(39999)); /* twice that, and 20 us */
	CHECK(!pending_after(40000));
	reader_end(&r);
}

TEST(what_comes_late_twice_is_not_polled_for)
{
	struct reader r;

	begin(&r, "100");
	come_after(&r, 10000);
	come_after(&r, 5000000);
	CHECK(pending_after(99999)); /* as long as is allowed */
	come_after(&r, 5000000);
	CHECK(!pending_after(1));
	reader_end(&r);
}

TEST(and_is_again_when_it_has_come_soon)
{
	struct reader r;

	begin(&r, "100");
	come_after(&r, 5000000);
	come_after(&r, 10);
	CHECK(pending_after(99999));
	reader_end(&r);
}

TEST(what_others_find_says_nothing_of_how_long_it_takes)
{
	struct reader r;

	begin(&r, "100");
	come_after(&r, PIOM_PASSING);
	come_after(&r, PIOM_TICK);
	come_after(&r, PIOM_LAST);
	CHECK(pending_after(99999));
	CHECK(!pending_after(100000));
	reader_end(&r);
}

/*
 * How long it was armed counts, too. It is patient, so that the watcher does
 * not arm it again.
 */
TEST(what_an_interrupt_brings_late_is_not_polled_for)
{
	struct timespec while_ = { 0, 1000000 };
	struct reader r;

	begin(&r, "100");
	CHECK_INT(piom_ltask_expect(&r.task, UINT64_MAX, PIOM_PATIENT), 0);
	for (int i = 0; i < 2; i++) {
		while (pending_after(PIOM_LAST))
			sched_yield();
		nanosleep(&while_, NULL);
		feed(&r);
		while (load_relaxed(&r.bytes) <= i)
			sched_yield();
	}
	while (pending_after(1))
		sched_yield(); /* the watcher is still there */
	reader_end(&r);
}

/* --- hints --- */

TEST(what_is_expected_late_is_not_polled_for)
{
	struct reader r;

	begin(&r, "100");
	CHECK(pending_after(1));
	CHECK_INT(piom_ltask_expect(&r.task, 100000000000, PIOM_NORMAL), 0);
	CHECK(!pending_after(1));
	reader_end(&r);
}

TEST(what_is_expected_later_than_any_clock_neither)
{
	struct reader r;

	begin(&r, "100");
	CHECK_INT(piom_ltask_expect(&r.task, UINT64_MAX - 1, PIOM_NORMAL), 0);
	CHECK(!pending_after(1));
	reader_end(&r);
}

TEST(what_is_expected_soon_is_polled_for_until_then)
{
	uint64_t due;
	struct reader r;
	bool polled;

	begin(&r, "1000000");
	do {
		due = base_now_ns() + 500000000;
		CHECK_INT(piom_ltask_expect(&r.task, 500000000, PIOM_NORMAL),
			  0);
		polled = pending_after(PIOM_TICK - 1);
	} while (base_now_ns() >= due); /* we had lost the CPU */
	CHECK(polled);
	CHECK_INT(piom_ltask_expect(&r.task, 0, PIOM_NORMAL), 0);
	while (pending_after(1))
		;
	reader_end(&r);
}

TEST(a_hint_is_over_when_something_has_come)
{
	struct reader r;

	begin(&r, "100");
	CHECK_INT(piom_ltask_expect(&r.task, 100000000000, PIOM_NORMAL), 0);
	come_after(&r, PIOM_PASSING);
	CHECK(pending_after(1));
	CHECK_INT(piom_ltask_expect(&r.task, 100000000000, PIOM_NORMAL), 0);
	CHECK_INT(piom_ltask_expect(&r.task, UINT64_MAX, PIOM_NORMAL), 0);
	CHECK(pending_after(1));
	reader_end(&r);
}

static enum piom_ltask_result run_and_hint(void *arg)
{
	struct reader *r = arg;
	enum piom_ltask_result result = reader_run(r);

	if (result == PIOM_LTASK_WORKED)
		CHECK_INT(
			piom_ltask_expect(&r->task, 100000000000, PIOM_NORMAL),
			0);
	return result;
}

TEST(who_finds_something_may_say_when_the_next_is_expected)
{
	struct piom_blocking how = { .delay_ns = PIOM_BLOCKING_AUTO };
	struct reader r;

	with_option("PIOM_IDLE_US", "100");
	reader_init_as(&r, run_and_hint, how);
	piom_ltask_submit(&r.task);
	come_after(&r, 1);
	CHECK(!pending_after(1));
	reader_end(&r);
}

TEST(a_hint_ends_with_its_submission)
{
	struct reader r;

	begin(&r, "100");
	CHECK_INT(piom_ltask_expect(&r.task, 100000000000, PIOM_URGENT), 0);
	CHECK_INT(piom_ltask_cancel(&r.task), 0);
	piom_ltask_submit(&r.task);
	CHECK(pending_after(1));
	CHECK(pending_after(PIOM_PASSING));
	reader_end(&r);
}

/* --- VPs that compute --- */

TEST(at_a_tick_what_is_not_due_is_left_to_the_next)
{
	struct reader r;

	begin(&r, "100");
	CHECK_INT(piom_ltask_expect(&r.task, 100000000000, PIOM_NORMAL), 0);
	CHECK(pending_after(PIOM_TICK));
	CHECK_INT(piom_ltask_expect(&r.task, 0, PIOM_NORMAL), 0);
	CHECK(!pending_after(PIOM_TICK));
	reader_end(&r);
}

TEST(what_is_patient_is_not_armed_by_who_computes)
{
	struct reader r;

	begin(&r, "100");
	CHECK_INT(piom_ltask_expect(&r.task, UINT64_MAX, PIOM_PATIENT), 0);
	CHECK(pending_after(PIOM_TICK));
	CHECK(pending_after(PIOM_PASSING));
	CHECK(!pending_after(PIOM_LAST));
	reader_end(&r);
}

TEST(what_is_urgent_is_armed_between_threads_too)
{
	struct reader r;

	begin(&r, "100");
	CHECK(pending_after(PIOM_PASSING));
	CHECK_INT(piom_ltask_expect(&r.task, UINT64_MAX, PIOM_URGENT), 0);
	CHECK(pending_after(1));
	CHECK(!pending_after(PIOM_PASSING));
	reader_end(&r);
}

TEST(a_hint_about_another_task_or_of_another_urgency_is_refused)
{
	struct probe p = { .answer = PIOM_LTASK_AGAIN };
	struct reader r;

	begin(&r, "100");
	CHECK_INT(piom_ltask_expect(&r.task, 1, PIOM_URGENT + 1), -EINVAL);
	CHECK_INT(piom_ltask_expect(&r.task, 1, PIOM_PATIENT - 1), -EINVAL);
	submit(&p, PIOM_LTASK_REPEAT, 0);
	CHECK_INT(piom_ltask_expect(&p.task, 1, PIOM_NORMAL), -EINVAL);
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
	reader_end(&r);
}
