/*
 * A job that measures its rails at the start, whatever it finds: all processes
 * know the same of them, and use all of them as before. Between simulated rails
 * nothing is faster than the simulation allows (MB in NMAD_DRIVER's order in
 * BANDWIDTHS, with commas between; 0: not simulated).
 */
#include "../../check.h"

#include <stdio.h>
#include <stdlib.h>

#include <nmad/nmad.h>

#include "../../../nmad/core/core.h"

enum { SESSION = 7 };

/* What a process knows: numbers only. */
struct known {
	int n[NM_RAILS_MAX][2];
	double points[NM_RAILS_MAX][2][2 * NM_CURVE_POINTS];
	size_t eager_max; /* for the last other rank */
};

static struct known mine, theirs;

static void copy_curve(const struct nm_curve *c, int *n, double *points)
{
	*n = c == NULL ? 0 : c->n;
	for (int i = 0; i < *n; i++) {
		points[2 * i] = c->at[i].bytes;
		points[2 * i + 1] = c->at[i].ns;
	}
}

static void look(struct known *k)
{
	const struct nm_core *core = nm_core_self;

	memset(k, 0, sizeof(*k));
	for (int i = 0; i < core->nrails; i++) {
		const struct nm_rail *rail = &core->rails[i];

		copy_curve(rail->curve, &k->n[i][0], k->points[i][0]);
		copy_curve(rail->eager, &k->n[i][1], k->points[i][1]);
		CHECK(rail->eager == NULL || rail->curve != NULL);
		/* What is known of it was found on it. */
		if (nm_rank() == 0)
			CHECK(rail->curve == NULL || rail->nbytes > 0);
	}
	for (int rank = 0; rank < nm_size(); rank++)
		if (rank != nm_rank())
			k->eager_max =
				load_relaxed(&core->gates[rank].eager_max);
}

/* A message from everybody to rank 0, in parts if it is cut. */
static void compare(struct nm_session *s)
{
	struct nm_data in = nm_data_flat(&theirs, sizeof(theirs));
	struct nm_data out = nm_data_flat(&mine, sizeof(mine));
	struct nm_sr_request req;

	if (nm_rank() != 0) {
		CHECK_INT(nm_sr_isend(s, nm_gate_of(0), 1, &out, 0, &req), 0);
		nm_sr_wait(&req);
		return;
	}
	for (int rank = 1; rank < nm_size(); rank++) {
		CHECK_INT(nm_sr_irecv(s, nm_gate_of(rank), 1, NM_TAG_EXACT, &in,
				      &req),
			  0);
		nm_sr_wait(&req);
		CHECK(memcmp(&mine, &theirs, sizeof(mine)) == 0);
	}
}

/* All rails that lead there, of the weight of the first. */
static void check_gate(struct nm_gate *gate)
{
	int weight = gate->links[0]->rail->driver->weight, n = 0;

	for (int i = 0; i < gate->core->nrails; i++) {
		struct nm_rail *rail = &gate->core->rails[i];

		if (rail->driver == NULL || rail->driver->weight != weight ||
		    !rail->driver->reaches(rail, gate->rank))
			continue;
		CHECK(n < gate->nlinks);
		CHECK_PTR(gate->links[n++], &rail->links[gate->rank]);
	}
	CHECK_INT(gate->nlinks, n);
}

/* ns for so many bytes, of which 1000 take at least 1000000 / MB ns. */
static void check_speed(const struct nm_rail *rail, long mb)
{
	if (rail->curve == NULL || mb == 0)
		return;
	for (int i = 1; i < rail->curve->n; i++)
		CHECK(rail->curve->at[i].ns + 1 >=
		      (rail->curve->at[i].bytes - 1) * 1000 / (double)mb);
}

TEST(all_processes_know_the_same_of_their_rails_and_use_all_of_them)
{
	const char *mb = getenv("BANDWIDTHS");
	struct nm_session *s;

	CHECK_INT(nm_init(), 0);
	CHECK_INT(nm_session_open(SESSION, &s), 0);
	look(&mine);
	compare(s);
	for (int rank = 0; rank < nm_size(); rank++)
		check_gate(nm_gate_of(rank));
	for (int i = nm_core_self->first_listed; mb != NULL; i++) {
		CHECK(i < nm_core_self->nrails);
		check_speed(&nm_core_self->rails[i], atol(mb));
		mb = strchr(mb, ',');
		mb += mb != NULL;
	}
	CHECK_INT(nm_session_close(s), 0);
	CHECK_INT(nm_exit(), 0);
}
