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

/* Whatever the links, nobody is late, and no link alone would be sooner. */
TEST(all_that_take_part_end_together_and_sooner_than_one_alone)
{
	for (int round = 0; round < 20000; round++) {
		int n = 1 + (int)(check_random() % LINKS), used;
		size_t length = 1 + check_random() % (64 << 20);
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
		for (int i = 0; i < n; i++)
			CHECK(out[i] == 0 ||
			      last - end_of(i) <= 64 * LINKS * slowest + 2);
	}
}
