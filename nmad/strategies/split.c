/*
 * Several rails: a large body is cut so that all of them end together. Packets
 * are formed as `fifo` forms them, for whichever link is free.
 */
#include "split.h"

#include <errno.h>
#include <stdbool.h>

#include <base/clock.h>
#include <pioman/pioman.h>

#include "../core/core.h"
#include "strategy.h"

enum {
	STEPS = 48, /* of a bisection: to less than a byte */
	ALIGN = 64, /* parts begin at lines of the cache */
};

int nm_curve_add(struct nm_curve *c, double bytes, double ns)
{
	bool good = bytes >= 0 && ns >= 0 && c->n < NM_CURVE_POINTS;

	if (good && c->n == 0)
		good = bytes == 0;
	else if (good)
		good = bytes > c->at[c->n - 1].bytes && ns > c->at[c->n - 1].ns;
	if (!good)
		return -EINVAL;
	c->at[c->n].bytes = bytes;
	c->at[c->n].ns = ns;
	c->n++;
	return 0;
}

void nm_curve_level(struct nm_curve *c)
{
	double below = 0;

	for (int i = c->n - 1; i-- > 0;)
		if (c->at[i].ns >= c->at[i + 1].ns)
			c->at[i].ns = c->at[i + 1].ns - 1;
	if (c->n > 0 && c->at[0].ns < 0)
		below = -c->at[0].ns;
	for (int i = 0; i < c->n; i++)
		c->at[i].ns += below;
}

/* Of the line that begins at point i. */
static double ns_per_byte(const struct nm_curve *c, int i)
{
	int from = i < c->n - 1 ? i : 0, to = i < c->n - 1 ? i + 1 : i;

	return (c->at[to].ns - c->at[from].ns) /
	       (c->at[to].bytes - c->at[from].bytes);
}

double nm_curve_ns(const struct nm_curve *c, double bytes)
{
	int i = 0;

	while (i < c->n - 1 && bytes > c->at[i + 1].bytes)
		i++;
	return c->at[i].ns + (bytes - c->at[i].bytes) * ns_per_byte(c, i);
}

double nm_curve_bytes(const struct nm_curve *c, double ns)
{
	int i = 0;

	if (ns <= c->at[0].ns)
		return 0;
	while (i < c->n - 1 && ns > c->at[i + 1].ns)
		i++;
	return c->at[i].bytes + (ns - c->at[i].ns) / ns_per_byte(c, i);
}

/* The largest point of the curve below `bytes`, which is more than 0. */
static double point_below(const struct nm_curve *c, double bytes)
{
	int i = c->n - 1;

	while (c->at[i].bytes >= bytes)
		i--;
	return c->at[i].bytes;
}

/* How much sooner the first ends. */
static double lead(const struct nm_curve *first, const struct nm_curve *second,
		   double bytes)
{
	return nm_curve_ns(second, bytes) - nm_curve_ns(first, bytes);
}

/* Down from the end; both are straight between two points of either. */
double nm_curve_crossing(const struct nm_curve *first,
			 const struct nm_curve *second)
{
	double high = first->at[first->n - 1].bytes;
	double late = -lead(first, second, high);

	if (late <= 0)
		return high;
	while (high > 0) {
		double a = point_below(first, high);
		double b = point_below(second, high);
		double low = a > b ? a : b;
		double soon = lead(first, second, low);

		if (soon >= 0)
			return low + (high - low) * soon / (soon + late);
		high = low;
		late = -soon;
	}
	return 0;
}

/* The link that ends it first if it takes all, and when. */
static int best_alone(const struct nm_split_link *links, int n, double length,
		      double *ns)
{
	int best = 0;

	for (int i = 0; i < n; i++) {
		double end =
			links[i].wait_ns + nm_curve_ns(links[i].curve, length);

		if (i == 0 || end < *ns) {
			best = i;
			*ns = end;
		}
	}
	return best;
}

static double bytes_by(const struct nm_split_link *link, double ns)
{
	return nm_curve_bytes(link->curve, ns - link->wait_ns);
}

/* What those of the set move by then. */
static double sum_by(const struct nm_split_link *links, int n, unsigned set,
		     double ns)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		if (set & 1u << i)
			sum += bytes_by(&links[i], ns);
	return sum;
}

/* When they are all done with `length` bytes, not after `late`. */
static double end_of(const struct nm_split_link *links, int n, unsigned set,
		     double length, double late)
{
	double soon = 0;

	for (int step = 0; step < STEPS; step++) {
		double middle = (soon + late) / 2;

		if (sum_by(links, n, set, middle) < length)
			soon = middle;
		else
			late = middle;
	}
	return late;
}

/* Which of the set gets least by then, if too little for a part; -1: none. */
static int too_small(const struct nm_split_link *links, int n, unsigned set,
		     double end)
{
	double least = NM_SPLIT_PART_MIN;
	int found = -1;

	for (int i = 0; i < n; i++) {
		double bytes = bytes_by(&links[i], end);

		if ((set & 1u << i) && bytes < least) {
			least = bytes;
			found = i;
		}
	}
	return found;
}

/*
 * Who of all the links takes part, and when they end: those that get enough, if
 * that is before `late`, else the best alone.
 */
static unsigned choose(const struct nm_split_link *links, int n, double length,
		       int best, double late, double *end)
{
	unsigned set = (1u << n) - 1;
	int out;

	do {
		*end = end_of(links, n, set, length, late);
		out = too_small(links, n, set, *end);
		if (out >= 0)
			set &= ~(1u << out);
	} while (out >= 0);
	if (set == 0 || sum_by(links, n, set, late) < length)
		return 1u << best;
	return set;
}

int nm_split_cut(const struct nm_split_link *links, int n, size_t length,
		 size_t *out)
{
	double late = 0, end;
	int best = best_alone(links, n, (double)length, &late), used = 0;
	unsigned set = choose(links, n, (double)length, best, late, &end);
	int rest = __builtin_ctz(set);
	size_t left = length;

	for (int i = 0; i < n; i++) {
		size_t bytes = 0;

		if (i != rest && (set & 1u << i))
			bytes = (size_t)bytes_by(&links[i], end) &
				~(size_t)(ALIGN - 1);
		if (bytes > left)
			bytes = left;
		out[i] = bytes;
		left -= bytes;
	}
	out[rest] += left;
	for (int i = 0; i < n; i++)
		used += out[i] > 0;
	return used;
}

double nm_split_ns(const struct nm_split_link *links, int n, const size_t *out)
{
	double late = 0;

	for (int i = 0; i < n; i++) {
		double end = links[i].wait_ns +
			     nm_curve_ns(links[i].curve, (double)out[i]);

		if (out[i] > 0 && end > late)
			late = end;
	}
	return late;
}

int nm_split_packets(const struct nm_split_link *links, int n, size_t length,
		     double otherwise_ns, size_t *out)
{
	int used = nm_split_cut(links, n, length, out);

	if (used < 2 ||
	    nm_split_ns(links, n, out) + NM_SPLIT_HANDING_NS >= otherwise_ns)
		return 0;
	for (int i = 0; i < n; i++)
		if (out[i] > links[i].most)
			return 0;
	return used;
}

/* --- the gate's links as the arithmetic sees them --- */

/* Of the bodies that it has still to move. */
static double wait_for(const struct nm_rail *rail, double now)
{
	double wait = rail->nparts > 0 ? rail->free_ns - now : 0;

	return wait > 0 ? wait : 0;
}

/* Without a curve for each nothing can be said. */
static bool look_at(const struct nm_gate *gate, struct nm_split_link *links)
{
	double now = (double)base_now_ns();

	for (int i = 0; i < gate->nlinks; i++) {
		const struct nm_rail *rail = gate->links[i]->rail;

		if (rail->curve == NULL)
			return false;
		links[i].curve = rail->curve;
		links[i].wait_ns = wait_for(rail, now);
	}
	return true;
}

int nm_split_body(struct nm_gate *gate, size_t length, struct nm_share *out)
{
	struct nm_split_link links[NM_GATE_LINKS] = { 0 };
	size_t bytes[NM_GATE_LINKS];
	int n = 0;

	if (gate->nlinks == 1 || !look_at(gate, links))
		return 0;
	nm_split_cut(links, gate->nlinks, length, bytes);
	for (int i = 0; i < gate->nlinks; i++)
		if (bytes[i] > 0)
			out[n++] = (struct nm_share){ i, bytes[i] };
	return n;
}

/* The links that may have a packet now; which of the gate's: `at`. */
static int look_at_free(const struct nm_gate *gate, struct nm_split_link *links,
			int *at)
{
	double now = (double)base_now_ns();
	int n = 0;

	for (int i = 0; i < gate->nlinks; i++) {
		const struct nm_rail *rail = gate->links[i]->rail;
		size_t room = rail->max_small - NM_WIRE_HEAD -
			      NM_WIRE_EAGER_PART_SYNC;
		size_t most = nm_rail_threshold(rail);

		if (!nm_turn_is_free(&gate->links[i]->turn))
			continue;
		links[n].curve = rail->eager;
		links[n].wait_ns = wait_for(rail, now);
		links[n].most = most < room ? most : room;
		at[n++] = i;
	}
	return n;
}

/* As one packet, or by rendezvous. */
static double uncut_ns(const struct nm_gate *gate,
		       const struct nm_split_link *free, int n, size_t length)
{
	struct nm_split_link links[NM_GATE_LINKS] = { 0 };
	size_t bytes[NM_GATE_LINKS];
	double ns = 0;

	if (length <= load_relaxed(&gate->eager_max)) {
		best_alone(free, n, (double)length, &ns);
		return ns;
	}
	look_at(gate, links);
	nm_split_cut(links, gate->nlinks, length, bytes);
	return nm_split_ns(links, gate->nlinks, bytes);
}

int nm_split_eager(struct nm_gate *gate, size_t length, struct nm_share *out)
{
	struct nm_split_link links[NM_GATE_LINKS] = { 0 };
	size_t bytes[NM_GATE_LINKS], most = 0;
	int at[NM_GATE_LINKS], n, parts = 0;

	if (!piom_any_idle())
		return 0;
	n = look_at_free(gate, links, at);
	for (int i = 0; i < n; i++)
		most += links[i].most;
	if (n < 2 || length > most ||
	    nm_split_packets(links, n, length, uncut_ns(gate, links, n, length),
			     bytes) == 0)
		return 0;
	for (int i = 0; i < n; i++)
		if (bytes[i] > 0)
			out[parts++] = (struct nm_share){ at[i], bytes[i] };
	return parts;
}

const struct nm_strategy nm_strategy_split = {
	.name = "split",
	.plain = true,
	.pack = nm_fifo_pack,
	.cut = nm_split_body,
	.cut_eager = nm_split_eager,
};
