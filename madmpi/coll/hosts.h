/*
 * How the processes of a communicator are spread over hosts, as the launcher
 * says: all know it alike from the beginning, and nobody has to be asked.
 *
 * A collective operation that knows it goes in three steps, each by what is
 * best among those who take part in it: within each host, through its memory if
 * it has become a node (node.h); among the hosts' leaders, the first process of
 * each, by messages; within each host again. What a step has to do with, the
 * members of struct madmpi_coll say, as between two groups.
 */
#ifndef MADMPI_COLL_HOSTS_H
#define MADMPI_COLL_HOSTS_H

#include "coll/coll.h"

/* Some of the processes, by rank among these. */
struct madmpi_members {
	struct nm_gate **gate;
	int n, rank; /* of this process, if it is one of them */
};

/* Constant. */
struct madmpi_hosts {
	struct madmpi_members leaders; /* one of each host: by number of it */
	struct madmpi_members here;    /* of this host */
	int *host;                     /* by rank: the number of its host */
	int *place;                    /* by rank: its rank there */
	bool in_order; /* the ranks of each host are neighbours */
};

/*
 * Of these gates, one of which is this process'. *out is NULL if all are on one
 * host, or each is on one of its own. 0 or -ENOMEM.
 */
int madmpi_hosts_new(struct nm_gate **gate, int size, int rank,
		     struct madmpi_hosts **out);

#endif
