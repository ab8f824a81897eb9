/*
 * The arithmetic of a cut: curves, and bodies over links that are unequal, busy
 * or not worth it. Numbers only, no clock.
 */
#include "../../../nmad/strategies/split.h"

#include "../../check.h"

#include <errno.h>

enum { LINKS = 8 };

static struct nm_curve curves[LINKS];
static struct nm_split_link links[LINKS];
static size_t out[LINKS];

/* A link of so much latency and bandwidth, free after `wait`; all in ns. */
static void line(int i, double latency, double ns_per_byte, double wait)
{
	curves[i] = (struct nm_curve){ 0 };
	CHECK_INT(nm_curve_add(&curves[i], 0, latency), 0);
	CHECK_INT(nm_curve_add(&curves[i], 1e6, latency + 1e6 * ns_per_byte),
		  0);
	links[i].curve = &curves[i];
	links[i].wait_ns = wait;
}

static double end_of(int i)
{
	if (out[i] == 0)
		return 0;
	return links[i].wait_ns + nm_curve_ns(&curves[i], (double)out[i]);
}

static bool is_near(double a, double b)
{
	return a - b < 2 && b - a < 2;
}

static int cut(int n, size_t length)
{
	size_t sum = 0;
	int used = nm_split_cut(links, n, length, out), seen = 0;

	for (int i = 0; i < n; i++) {
		sum += out[i];
		seen += out[i] > 0;
	}
	CHECK_INT(sum, length);
	CHECK_INT(used, seen);
	return used;
}

TEST(a_curve_is_straight_between_its_points_and_its_mean_beyond)
{
	struct nm_curve c = { 0 };

	CHECK_INT(nm_curve_add(&c, 0, 100), 0);
	CHECK_INT(nm_curve_add(&c, 1000, 200), 0);
	CHECK_INT(nm_curve_add(&c, 2000, 1100), 0);
	CHECK(nm_curve_ns(&c, 0) == 100);
	CHECK(nm_curve_ns(&c, 500) == 150);
	CHECK(nm_curve_ns(&c, 1500) == 650);
	CHECK(nm_curve_ns(&c, 4000) == 2100);
	CHECK(nm_curve_bytes(&c, 0) == 0);
	CHECK(nm_curve_bytes(&c, 100) == 0);
	for (int bytes = 0; bytes < 8000; bytes += 250)
		CHECK(is_near(nm_curve_bytes(&c, nm_curve_ns(&c, bytes)),
			      bytes));
}

TEST(a_point_that_is_not_beyond_the_last_is_refused)
{
	struct nm_curve c = { 0 };

	CHECK_INT(nm_curve_add(&c, 1, 1), -EINVAL); /* not at 0 */
	CHECK_INT(nm_curve_add(&c, 0, -1), -EINVAL);
	CHECK_INT(nm_curve_add(&c, 0, 5), 0);
	CHECK_INT(nm_curve_add(&c, 0, 6), -EINVAL);
	CHECK_INT(nm_curve_add(&c, 1, 5), -EINVAL);
	CHECK_INT(nm_curve_add(&c, 1, 4), -EINVAL);
	CHECK_INT(c.n, 1);
	for (int i = 1; i < NM_CURVE_POINTS; i++)
		CHECK_INT(nm_curve_add(&c, i, 5 + i), 0);
	CHECK_INT(nm_curve_add(&c, 99, 99), -EINVAL);
}

TEST(measured_times_make_a_curve_of_all_their_points)
{
	static const double got[] = { 100, 90, 90, 80, 200, 150 };
	static const double want[] = { 77, 78, 79, 80, 149, 150 };
	struct nm_curve c = { .n = 6 }, same = { 0 };

	for (int i = 0; i < 6; i++) {
		c.at[i].bytes = i * 100;
		c.at[i].ns = got[i];
	}
	nm_curve_level(&c);
	CHECK_INT(c.n, 6);
	for (int i = 0; i < 6; i++) {
		CHECK(c.at[i].bytes == i * 100 && c.at[i].ns == want[i]);
		c.at[i].ns = i < 4 ? 0 : 5; /* a clock that stands still */
	}
	nm_curve_level(&c);
	for (int i = 0; i < 6; i++)
		CHECK_INT(nm_curve_add(&same, c.at[i].bytes, c.at[i].ns), 0);
	c.n = 0;
	nm_curve_level(&c);
	CHECK_INT(c.n, 0);
}

static void curve_of(struct nm_curve *c, const double points[][2], int n)
{
	*c = (struct nm_curve){ 0 };
	for (int i = 0; i < n; i++)
		CHECK_INT(nm_curve_add(c, points[i][0], points[i][1]), 0);
}

TEST(a_curve_crosses_another_where_it_begins_to_take_longer_to_its_end)
{
	static const double low[][2] = { { 0, 100 }, { 1000, 200 } };
	static const double high[][2] = { { 0, 300 }, { 1000, 400 } };
	static const double steep[][2] = { { 0, 100 }, { 1000, 1100 } };
	static const double flat[][2] = { { 0, 500 }, { 9000, 1400 } };
	/* Longer around 100 already, where it does not count. */
	static const double hill[][2] = {
		{ 0, 400 }, { 100, 700 }, { 400, 701 }, { 600, 1200 }
	};
	static const double even[][2] = { { 0, 500 }, { 1000, 1500 } };
	struct nm_curve a, b;

	curve_of(&a, low, 2);
	curve_of(&b, high, 2);
	CHECK(nm_curve_crossing(&a, &b) == 1000);
	CHECK(nm_curve_crossing(&b, &a) == 0);
	CHECK(nm_curve_crossing(&a, &a) == 1000);
	curve_of(&a, steep, 2);
	curve_of(&b, flat, 2);
	CHECK(is_near(nm_curve_crossing(&a, &b), 400 / 0.9));
	CHECK(nm_curve_crossing(&b, &a) == 9000);
	curve_of(&a, hill, 4);
	curve_of(&b, even, 2);
	CHECK(is_near(nm_curve_crossing(&a, &b), 400 + 200 * 199. / 299));
}

static void any_curve(struct nm_curve *c)
{
	double bytes = 0, ns = (double)(check_random() % 1000);
	int n = 2 + (int)(check_random() % (NM_CURVE_POINTS - 1));

	*c = (struct nm_curve){ 0 };
	for (int i = 0; i < n; i++) {
		CHECK_INT(nm_curve_add(c, bytes, ns), 0);
		bytes += (double)(1 + check_random() % 1000);
		ns += (double)(1 + check_random() % 1000);
	}
}

TEST(beyond_the_crossing_of_any_two_curves_the_first_takes_longer)
{
	for (int round = 0; round < 20000; round++) {
		struct nm_curve a, b;
		double x, end;

		any_curve(&a);
		any_curve(&b);
		end = a.at[a.n - 1].bytes;
		x = nm_curve_crossing(&a, &b);
		CHECK(x >= 0 && x <= end);
		if (x > 0 && x < end)
			CHECK(is_near(nm_curve_ns(&a, x), nm_curve_ns(&b, x)));
		if (x == end)
			CHECK(nm_curve_ns(&a, x) <= nm_curve_ns(&b, x));
		for (int i = 1; i < 50 && x < end; i++) {
			double at = x + (end - x) * i / 50;

			CHECK(nm_curve_ns(&a, at) > nm_curve_ns(&b, at) - 1);
		}
	}
}

TEST(a_large_body_is_cut_in_the_ratio_of_the_bandwidths)
{
	line(0, 0, 1, 0);
	line(1, 0, 3, 0);
	CHECK_INT(cut(2, 4 << 20), 2);
	CHECK(out[1] % 64 == 0);
	CHECK((1 << 20) - (int)out[1] < 64 && out[1] <= 1 << 20);
}

TEST(equal_links_get_equal_parts)
{
	for (int i = 0; i < LINKS; i++)
		line(i, 2000, 1, 0);
	CHECK_INT(cut(LINKS, 8 << 20), LINKS);
	for (int i = 0; i < LINKS; i++)
		CHECK(is_near((double)out[i] / 512, (1 << 20) / 512));
}

TEST(a_short_body_goes_over_the_link_that_ends_it_first)
{
	line(0, 50000, 1, 0);
	line(1, 1000, 2, 0);
	CHECK_INT(cut(2, 16384), 1);
	CHECK_INT(out[1], 16384);
	CHECK_INT(cut(2, 1 << 20), 2);
	line(0, 0, 1, 0);
	line(1, 0, 1, 0);
	CHECK_INT(cut(2, 2 * NM_SPLIT_PART_MIN - 1000), 1);
	CHECK_INT(cut(2, 2 * NM_SPLIT_PART_MIN + 1000), 2);
	CHECK_INT(cut(2, 1), 1);
	CHECK_INT(cut(2, 0), 0);
}

TEST(a_busy_link_pays_until_it_is_free_and_counts_if_that_is_soon)
{
	line(0, 0, 1, 300000);
	line(1, 0, 1, 0);
	CHECK_INT(cut(2, 1000000), 2);
	CHECK(is_near(end_of(0) / 64, end_of(1) / 64));
	CHECK(out[1] > out[0] + 299000 && out[1] < out[0] + 301000);
	links[0].wait_ns = 990000;
	CHECK_INT(cut(2, 1000000), 1);
	CHECK_INT(out[1], 1000000);
	links[0].wait_ns = 0;
	links[1].wait_ns = 2e6;
	CHECK_INT(cut(2, 1000000), 1);
	CHECK_INT(out[0], 1000000);
}

/*
 * The first would end it first, but not soon: the others have done with it
 * before that one has moved enough for a part.
 */
TEST(the_best_alone_is_left_out_where_the_others_together_are_sooner)
{
	line(0, 59000, 0.041, 0);
	line(1, 0, 0.105, 0);
	line(2, 0, 0.105, 0);
	CHECK_INT(cut(3, 1000000), 2);
	CHECK_INT(out[0], 0);
	CHECK(is_near(end_of(1) / 64, end_of(2) / 64));
	CHECK(is_near(end_of(1) / 64, 52500. / 64));
}

/* When all of the links could have moved it, parts of any size allowed. */
static double soonest(int n, double length)
{
	double soon = 0, late = 1e12;

	while (late - soon > 1) {
		double middle = (soon + late) / 2, sum = 0;

		for (int i = 0; i < n; i++)
			sum += nm_curve_bytes(&curves[i],
					      middle - links[i].wait_ns);
		if (sum < length)
			soon = middle;
		else
			late = middle;
	}
	return late;
}

/*
 * Whatever the links, nobody is late, no link alone would be sooner, and for
 * each that is left out the others move less than a smallest part.
 */
TEST(all_that_take_part_end_together_and_as_soon_as_can_be)
{
	for (int round = 0; round < 20000; round++) {
		int n = 1 + (int)(check_random() % LINKS), used;
		size_t length =
			1 + check_random() % (64 << check_random() % 21);
		double last = 0, alone = 0, slowest = 0;

		for (int i = 0; i < n; i++) {
			double slope =
				0.01 + (double)(check_random() % 1000) / 100;

			line(i, (double)(check_random() % 100000), slope,
			     (double)(check_random() % 3 == 0
					      ? check_random() % 10000000
					      : 0));
			if (slope > slowest)
				slowest = slope;
		}
		used = cut(n, length);
		for (int i = 0; i < n; i++) {
			double one = links[i].wait_ns +
				     nm_curve_ns(&curves[i], (double)length);

			if (i == 0 || one < alone)
				alone = one;
			if (end_of(i) > last)
				last = end_of(i);
			CHECK(used == 1 || out[i] == 0 ||
			      out[i] >= NM_SPLIT_PART_MIN - 64);
		}
		CHECK(last <= alone + 64 * LINKS * slowest + 2);
		CHECK(last <= soonest(n, (double)length) +
				      (NM_SPLIT_PART_MIN + 64) * n * slowest +
				      2);
		for (int i = 0; i < n; i++)
			CHECK(out[i] == 0 ||
			      last - end_of(i) <= 64 * LINKS * slowest + 2);
	}
}

/* --- parts that are packets --- */

static double alone(int n, size_t length)
{
	double least = 0;

	for (int i = 0; i < n; i++) {
		double ns = links[i].wait_ns +
			    nm_curve_ns(&curves[i], (double)length);

		if (i == 0 || ns < least)
			least = ns;
	}
	return least;
}

static int cut_packets(int n, size_t length)
{
	return nm_split_packets(links, n, length, alone(n, length), out);
}

/* The paper's networks: 2.3 us and 1.2 GB/s, packets of up to 32 KB. */
static void two_of_the_paper(void)
{
	for (int i = 0; i < 2; i++) {
		line(i, 2300, 1 / 1.2, 0);
		links[i].most = 32768;
	}
}

TEST(a_message_is_cut_into_packets_from_16_KB_to_twice_what_one_takes)
{
	two_of_the_paper();
	CHECK_INT(cut_packets(2, 8192), 0);
	CHECK_INT(cut_packets(2, 16383), 0);
	for (size_t length = 16384; length <= 65536; length += 1024) {
		CHECK_INT(cut_packets(2, length), 2);
		CHECK_INT(out[0] + out[1], length);
		CHECK(out[0] - length / 2 + 64 <= 128);
	}
	CHECK_INT(cut_packets(2, 65536 + 128), 0);
	links[1].most = 16384;
	CHECK_INT(cut_packets(2, 32768), 2);
	CHECK_INT(cut_packets(2, 32768 + 256), 0);
}

TEST(where_handing_over_takes_longer_than_what_is_won_nothing_is_cut)
{
	for (int i = 0; i < 2; i++) {
		line(i, 1000, 0.1, 0);
		links[i].most = 1 << 20;
	}
	/* Half of a message is 3 us sooner at 60,000 bytes. */
	CHECK_INT(cut_packets(2, 32768), 0);
	CHECK_INT(cut_packets(2, 59000), 0);
	CHECK_INT(cut_packets(2, 61000), 2);
	two_of_the_paper();
	CHECK_INT(nm_split_packets(links, 2, 16384, 12200, out), 2);
	CHECK_INT(nm_split_packets(links, 2, 16384, 12100, out), 0);
}

TEST(a_link_that_is_busy_gets_less_of_a_message_or_nothing)
{
	two_of_the_paper();
	links[0].wait_ns = 5000;
	CHECK_INT(cut_packets(2, 32768), 2);
	/* 5 us more, at 1.2 GB/s; a part begins at a line. */
	CHECK(out[1] - out[0] >= 6000 - 128 && out[1] - out[0] <= 6000 + 128);
	links[0].wait_ns = 15000;
	CHECK_INT(cut_packets(2, 32768), 0);
}

TEST(packets_together_are_sooner_by_what_it_costs_to_hand_them_over)
{
	int cuts = 0;

	for (int round = 0; round < 20000; round++) {
		int n = 2 + (int)(check_random() % (LINKS - 1)), used;
		size_t length = 1 + check_random() % (1 << 17);

		for (int i = 0; i < n; i++) {
			line(i, (double)(check_random() % 20000),
			     0.01 + (double)(check_random() % 300) / 100,
			     (double)(check_random() % 3 == 0
					      ? check_random() % 100000
					      : 0));
			links[i].most = check_random() % (1 << 17);
		}
		used = cut_packets(n, length);
		if (used == 0)
			continue;
		cuts++;
		CHECK(used > 1);
		CHECK(nm_split_ns(links, n, out) + NM_SPLIT_HANDING_NS <
		      alone(n, length));
		for (int i = 0; i < n; i++) {
			CHECK(end_of(i) <= nm_split_ns(links, n, out));
			CHECK(out[i] <= links[i].most);
		}
	}
	CHECK(cuts > 100);
}
