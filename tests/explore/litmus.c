/*
 * The explorer itself: small programs whose outcomes C11 fixes. Each must have
 * all of the outcomes that are allowed, and no other.
 */
#include "explore.h"

static ATOMIC(int) x, y;
static int r[4], data;

static int bit(int a, int b)
{
	return 2 * a + b;
}

static void two_results(void)
{
	explore_outcome((unsigned)bit(r[0], r[1]));
}

static void spawn(void (*a)(void *), void (*b)(void *))
{
	explore_name(&x, sizeof(x), "x");
	explore_name(&y, sizeof(y), "y");
	explore_name(&data, sizeof(data), "data");
	explore_spawn("a", a, NULL);
	explore_spawn("b", b, NULL);
	explore_finish(two_results);
}

/* --- store buffering: each stores, then looks at the other's word --- */

static void sb_a(void *arg)
{
	store_release(&x, 1);
	r[0] = load_acquire(&y);
}

static void sb_b(void *arg)
{
	store_release(&y, 1);
	r[1] = load_acquire(&x);
}

EXPLORE(release_and_acquire_let_both_miss_the_store)
{
	spawn(sb_a, sb_b);
	explore_outcomes(0xf);
}

static void sb_a_seq(void *arg)
{
	store_seq(&x, 1);
	r[0] = load_seq(&y);
}

static void sb_b_seq(void *arg)
{
	store_seq(&y, 1);
	r[1] = load_seq(&x);
}

EXPLORE(seq_cst_on_both_sides_lets_one_see)
{
	spawn(sb_a_seq, sb_b_seq);
	explore_outcomes(0xe);
}

EXPLORE(seq_cst_on_one_side_is_nothing)
{
	spawn(sb_a_seq, sb_b);
	explore_outcomes(0xf);
}

static void sb_b_rmw(void *arg)
{
	xchg_seq(&y, 1);
	r[1] = load_seq(&x);
}

EXPLORE(a_seq_cst_exchange_is_a_store_too)
{
	spawn(sb_a_seq, sb_b_rmw);
	explore_outcomes(0xe);
}

/* --- message passing --- */

static void mp_a(void *arg)
{
	store_relaxed(&x, 1);
	store_release(&y, 1);
}

static void mp_a_relaxed(void *arg)
{
	store_relaxed(&x, 1);
	store_relaxed(&y, 1);
}

static void mp_b(void *arg)
{
	r[0] = load_acquire(&y);
	r[1] = load_relaxed(&x);
}

static void mp_b_relaxed(void *arg)
{
	r[0] = load_relaxed(&y);
	r[1] = load_relaxed(&x);
}

EXPLORE(acquire_sees_what_was_before_the_release)
{
	spawn(mp_a, mp_b);
	explore_outcomes(0xb);
}

EXPLORE(without_release_it_does_not)
{
	spawn(mp_a_relaxed, mp_b);
	explore_outcomes(0xf);
}

EXPLORE(without_acquire_it_does_not)
{
	spawn(mp_a, mp_b_relaxed);
	explore_outcomes(0xf);
}

/* --- one word has one order --- */

static void rr_a(void *arg)
{
	store_relaxed(&x, 1);
}

static void rr_b(void *arg)
{
	r[0] = load_relaxed(&x);
	r[1] = load_relaxed(&x);
}

EXPLORE(a_word_never_goes_back)
{
	spawn(rr_a, rr_b);
	explore_outcomes(0xb);
}

static void add_twice(void *arg)
{
	fetch_add_relaxed(&x, 1);
	fetch_add_relaxed(&x, 1);
}

static void sum(void)
{
	explore_outcome((unsigned)load_relaxed(&x));
}

EXPLORE(read_modify_writes_are_never_lost)
{
	spawn(add_twice, add_twice);
	explore_finish(sum);
	explore_outcomes(1 << 4);
}

static void set_it(void *arg)
{
	store_relaxed(&x, 1);
}

static void replace_nothing(void *arg)
{
	int nothing = 0;

	r[1] = cas_relaxed(&x, &nothing, 2);
}

EXPLORE(a_compare_and_swap_comes_before_or_after_a_store)
{
	spawn(set_it, replace_nothing);
	explore_outcomes(0x3);
}

EXPLORE(whoever_is_picked_first)
{
	spawn(replace_nothing, set_it);
	explore_outcomes(0x3);
}

/* --- a release sequence goes on through others' read-modify-writes --- */

static void seq_write(void *arg)
{
	data = 1;
	store_release(&x, 1);
}

static void seq_read(void *arg)
{
	if (load_acquire(&x) == 2 && r[1] == 0)
		r[1] = data;
}

static void seq_outcome(void)
{
	explore_outcome((unsigned)r[1]);
}

static void pass_if_written(void *arg)
{
	int one = 1;

	cas_relaxed(&x, &one, 2);
}

EXPLORE(relaxed_read_modify_writes_pass_a_release_on)
{
	spawn(seq_write, pass_if_written);
	explore_spawn("c", seq_read, NULL);
	explore_finish(seq_outcome);
	explore_outcomes(3);
}

/* --- four threads: two writers, and readers that may disagree --- */

static void write_x(void *arg)
{
	store_release(&x, 1);
}

static void write_y(void *arg)
{
	store_release(&y, 1);
}

static void write_x_seq(void *arg)
{
	store_seq(&x, 1);
}

static void write_y_seq(void *arg)
{
	store_seq(&y, 1);
}

static void read_xy(void *arg)
{
	r[0] = load_seq(&x);
	r[1] = load_seq(&y);
}

static void read_yx(void *arg)
{
	r[2] = load_seq(&y);
	r[3] = load_seq(&x);
}

static void four_results(void)
{
	explore_outcome((unsigned)(4 * bit(r[0], r[1]) + bit(r[2], r[3])));
}

EXPLORE(readers_of_release_stores_may_disagree)
{
	spawn(write_x, write_y);
	explore_spawn("c", read_xy, NULL);
	explore_spawn("d", read_yx, NULL);
	explore_finish(four_results);
	explore_outcomes(0xffff);
}

EXPLORE(readers_of_seq_cst_stores_agree)
{
	spawn(write_x_seq, write_y_seq);
	explore_spawn("c", read_xy, NULL);
	explore_spawn("d", read_yx, NULL);
	explore_finish(four_results);
	explore_outcomes(0xffff & ~(1 << 10));
}

/* --- the rest --- */

static ATOMIC(uint32_t) word;

static void sleeper(void *arg)
{
	while (load_acquire(&word) == 0)
		explore_wait_while(&word, 0);
	r[0] = data;
}

static void waker(void *arg)
{
	data = 1;
	store_release(&word, 1);
	explore_wake(&word, 1);
}

EXPLORE(a_futex_loses_no_wake_up)
{
	spawn(sleeper, waker);
	explore_spurious(0, 1);
	explore_outcomes(1 << 2);
}

static void spinner(void *arg)
{
	while (load_acquire(&word) == 0)
		cpu_relax();
	r[0] = data;
}

static void gives_up(void *arg)
{
	for (int i = 0; i < 50; i++) {
		if (load_acquire(&word) != 0) {
			r[0] = 1;
			break;
		}
		cpu_relax();
	}
	r[1] = 1;
}

EXPLORE(an_endless_spin_ends_with_the_store)
{
	spawn(spinner, waker);
	explore_outcomes(1 << 2);
}

EXPLORE(a_bounded_spin_sees_it_or_gives_up)
{
	spawn(gives_up, waker);
	explore_outcomes(1 << 1 | 1 << 3);
}

static void chooser(void *arg)
{
	r[0] = explore_choose(2);
	r[1] = explore_choose(2);
}

static __thread int mine;

static void has_its_own(void *arg)
{
	explore_check(mine++ == 0);
	store_relaxed(&x, 1);
	explore_check(mine++ == 1);
	explore_park();
	explore_check(data == 1);
}

static void unparks(void *arg)
{
	has_its_own(NULL);
}

static void frees_both(void *arg)
{
	data = 1;
	explore_unpark(1, true);
	explore_unpark(2, true);
}

EXPLORE(choices_branch)
{
	spawn(chooser, rr_a);
	explore_outcomes(0xf);
}

EXPLORE(threads_have_thread_local_variables)
{
	spawn(has_its_own, unparks);
	explore_spawn("c", frees_both, NULL);
	explore_outcomes(1);
}

/* --- what must be reported --- */

static void plain_write(void *arg)
{
	data = 1;
	store_relaxed(&x, 1);
}

static void plain_read(void *arg)
{
	if (load_acquire(&x) == 1)
		r[0] = data;
}

EXPLORE(an_unordered_plain_read_is_a_race)
{
	spawn(plain_write, plain_read);
	explore_expect("data race on data");
}

static void writes_late(void *arg)
{
	if (load_relaxed(&x) == 1)
		data = 2;
}

static void reads_early(void *arg)
{
	r[0] = data;
	store_relaxed(&x, 1);
}

EXPLORE(an_unordered_plain_write_after_a_read_is_a_race)
{
	spawn(reads_early, writes_late);
	explore_expect("data race on data");
}

static void sleeps_on_word(void *arg)
{
	explore_wait_while(&word, 0);
}

static void wakes_first(void *arg)
{
	explore_wake(&word, 1);
	store_release(&word, 1);
}

EXPLORE(a_wake_before_the_store_is_lost)
{
	spawn(sleeps_on_word, wakes_first);
	explore_expect("lost wake-up");
}

static void touches(void *arg)
{
	while (load_acquire(&x) == 0)
		cpu_relax();
	store_release(&y, 1);
}

static void frees(void *arg)
{
	explore_gone(&y, sizeof(y));
	store_release(&x, 1);
}

static void touches_first(void *arg)
{
	store_release(&y, 1);
	store_relaxed(&x, 1);
}

static void frees_unordered(void *arg)
{
	if (load_acquire(&x) == 1)
		explore_gone(&y, sizeof(y));
}

EXPLORE(an_access_after_the_free_is_reported)
{
	spawn(touches, frees);
	explore_expect("has freed it");
}

static void forever(void *arg)
{
	while (load_relaxed(&x) != 2)
		cpu_relax();
}

EXPLORE(a_free_without_order_is_a_race)
{
	spawn(touches_first, frees_unordered);
	explore_expect("data race on y");
}

EXPLORE(a_spin_that_nobody_ends_is_reported)
{
	spawn(rr_a, forever);
	explore_expect("spins for ever");
}

static void adds_and_parks(void *arg)
{
	fetch_add_relaxed(&x, 1);
	explore_park();
}

static void adds(void *arg)
{
	fetch_add_relaxed(&x, 1);
}

static void adds_and_unparks(void *arg)
{
	fetch_add_relaxed(&y, 1);
	explore_unpark(1, true);
}

EXPLORE(a_second_unpark_before_the_park_is_reported)
{
	explore_spawn("S", adds_and_parks, NULL);
	explore_spawn("D", adds, NULL);
	explore_spawn("A", adds_and_unparks, NULL);
	explore_spawn("B", adds_and_unparks, NULL);
	explore_expect("unparked twice");
}

static void not_twice(void)
{
	explore_check(load_relaxed(&x) == 3);
}

EXPLORE(a_check_that_fails_is_reported)
{
	spawn(add_twice, rr_a);
	explore_finish(not_twice);
	explore_expect("does not hold");
}
