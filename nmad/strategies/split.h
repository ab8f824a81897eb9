/*
 * Cutting a body. All but the last is pure arithmetic: no lock, no clock.
 *
 * A curve tells how long a body of so many bytes takes over a link: straight
 * lines between its points, of which the first is at 0 bytes, and beyond the
 * last a line as steep as from the first to the last. Both coordinates of each
 * point are larger than those of the one before.
 */
#ifndef NMAD_STRATEGIES_SPLIT_H
#define NMAD_STRATEGIES_SPLIT_H

#include <stddef.h>

struct nm_gate;
struct nm_share;

enum {
	NM_CURVE_POINTS = 16,
	/* A smaller part is not worth its token, its answer and its end. */
	NM_SPLIT_PART_MIN = 8192,
	/* What it costs to hand a packet to an idle core, and to wait for two
	 * packets instead of one. */
	NM_SPLIT_HANDING_NS = 3000,
};

struct nm_curve {
	int n;
	struct {
		double bytes, ns;
	} at[NM_CURVE_POINTS];
};

/* Append a point. 0, or -EINVAL: not beyond the last, or one too many. */
int nm_curve_add(struct nm_curve *c, double bytes, double ns);

/*
 * Points with times as they were measured, whatever they are, become a curve
 * with the same bytes: what more bytes can be moved in, fewer can, a ns sooner.
 */
void nm_curve_level(struct nm_curve *c);

/*
 * The bytes beyond which the first takes longer than the second, up to the end
 * of the first: its last point if it takes no longer there, 0 if it always
 * does. Of eager messages and bodies it is where rendezvous begins to pay.
 */
double nm_curve_crossing(const struct nm_curve *first,
			 const struct nm_curve *second);

/* The time for so many bytes, and the bytes for so much time, or 0. */
double nm_curve_ns(const struct nm_curve *c, double bytes);
double nm_curve_bytes(const struct nm_curve *c, double ns);

struct nm_split_link {
	const struct nm_curve *curve; /* of at least two points */
	double wait_ns;               /* until the link is free */
	size_t most;                  /* bytes of a packet: nm_split_packets */
};

/*
 * Cut `length` bytes so that all links that take part end at the same time, and
 * that as soon as can be: out[i] for link i, which add up to `length`. Parts
 * below NM_SPLIT_PART_MIN are not made: a link that would get less takes no
 * part. A body that one link alone ends sooner is not cut. The number of links
 * that get anything.
 */
int nm_split_cut(const struct nm_split_link *links, int n, size_t length,
		 size_t *out);

/* When all have done with what they got of a cut. */
double nm_split_ns(const struct nm_split_link *links, int n, const size_t *out);

/*
 * The same for a message whose parts are packets, which takes so long if it is
 * not cut. 0: it shall not be: it takes no longer, or a part is too large.
 */
int nm_split_packets(const struct nm_split_link *links, int n, size_t length,
		     double otherwise_ns, size_t *out);

/*
 * The slot cut_eager(). Only worth it with somebody to copy the other part:
 * one core alone would copy one after the other, and that is what takes time.
 * So nothing is cut where no VP is idle.
 */
int nm_split_eager(struct nm_gate *gate, size_t length, struct nm_share *out);

/* The slot cut() of a strategy: the gate's links by their rails' curves. */
int nm_split_body(struct nm_gate *gate, size_t length, struct nm_share *out);

#endif
