/*
 * Which algorithm for which size: all choices of the library in one place.
 */
#include "coll/choose.h"

#include "coll/coll.h"

/* Beyond: least data per process instead of fewest steps. */
enum {
	BCAST_BYTES = 128 * 1024,
	ALLREDUCE_BYTES = 64 * 1024,
	ALLGATHER_BYTES = 64 * 1024, /* of all processes together */
};

#define IF_IT_COMMUTES "forced, if it commutes"

const struct madmpi_algorithm madmpi_algorithms[] = {
	{ "barrier", "dissemination", "always", "log p", "log p", "0" },
	{ "bcast", "binomial", "up to 128 KiB, or p <= 3", "log p", "log p",
	  "n log p" },
	{ "bcast", "scatter_ring", "else", "2(p - 1)", "2(p - 1)",
	  "2(p - 1) (n / p)" },
	{ "reduce", "binomial", "if it commutes, or to rank 0", "log p",
	  "log p", "n log p" },
	{ "reduce", "by_rank_0", "else", "log p + 1", "log p", "n log p" },
	{ "allreduce", "doubling",
	  "up to 64 KiB, or p <= 2, or it does not commute", "log p + e",
	  "log p", "n log p" },
	{ "allreduce", "ring", "else", "2(p - 1)", "2(p - 1)",
	  "2(p - 1) (n / p)", IF_IT_COMMUTES },
	{ "gather", "linear", "always", "(p - 1) / 32", "p - 1", "(p - 1) n" },
	{ "scatter", "linear", "always", "(p - 1) / 32", "p - 1", "(p - 1) n" },
	{ "allgather", "bruck", "up to 64 KiB in all, and p > 2", "log p",
	  "log p", "(p - 1) n" },
	{ "allgather", "ring", "else", "p - 1", "p - 1", "(p - 1) n" },
	{ "allgatherv", "ring", "always", "p - 1", "p - 1", "(p - 1) n" },
	{ "alltoall", "pairwise", "not in place", "p - 1", "p - 1",
	  "(p - 1) n" },
	{ "alltoall", "swap", "in place", "p", "p - 1", "(p - 1) n" },
	{ "reduce_scatter", "pairwise", "if it commutes", "p - 1", "p - 1",
	  "(p - 1) n", IF_IT_COMMUTES },
	{ "reduce_scatter", "reduce", "else", "log p + (p - 1) / 32", "p - 1",
	  "p n log p" },
	{ "scan", "doubling", "always", "log p", "log p", "n log p" },
};
const size_t madmpi_algorithms_n = BASE_ARRAY_LEN(madmpi_algorithms);

/* Of those with a choice, in the order of the table; 0 is no choice. */
static const char *const of_bcast[] = { "auto", "binomial", "scatter_ring",
					NULL };
static const char *const of_allreduce[] = { "auto", "doubling", "ring", NULL };
static const char *const of_allgather[] = { "auto", "bruck", "ring", NULL };
static const char *const of_reduce_scatter[] = { "auto", "pairwise", "reduce",
						 NULL };

enum { BCAST, ALLREDUCE, ALLGATHER, REDUCE_SCATTER };

static struct base_option options[] = {
	[BCAST] = { .name = "MADMPI_COLL_BCAST",
		    .kind = BASE_OPTION_CHOICE,
		    .fallback = "auto",
		    .choices = of_bcast,
		    .help = "the algorithm of MPI_Bcast" },
	[ALLREDUCE] = { .name = "MADMPI_COLL_ALLREDUCE",
			.kind = BASE_OPTION_CHOICE,
			.fallback = "auto",
			.choices = of_allreduce,
			.help = "the one of MPI_Allreduce, ring if the "
				"operation commutes" },
	[ALLGATHER] = { .name = "MADMPI_COLL_ALLGATHER",
			.kind = BASE_OPTION_CHOICE,
			.fallback = "auto",
			.choices = of_allgather,
			.help = "the one of MPI_Allgather" },
	[REDUCE_SCATTER] = { .name = "MADMPI_COLL_REDUCE_SCATTER",
			     .kind = BASE_OPTION_CHOICE,
			     .fallback = "auto",
			     .choices = of_reduce_scatter,
			     .help = "the one of MPI_Reduce_scatter, pairwise "
				     "if the operation commutes" },
};

const struct base_option_table madmpi_coll_options =
	BASE_OPTION_TABLE("madmpi/coll", options);

/* What is forced, else one of the first two: the second is for much data. */
static long choose(int operation, bool much)
{
	long forced = options[operation].value;

	return forced != 0 ? forced : 1 + much;
}

madmpi_bcast_fn madmpi_choose_bcast(const struct madmpi_coll *c,
				    MPI_Count bytes)
{
	static const madmpi_bcast_fn fns[] = { NULL, madmpi_bcast_binomial,
					       madmpi_bcast_scatter_ring };

	return fns[choose(BCAST, c->size > 3 && bytes > BCAST_BYTES)];
}

/* The ring adds in another order, and cuts only what it can count. */
madmpi_allreduce_fn madmpi_choose_allreduce(const struct madmpi_coll *c,
					    MPI_Count n,
					    const struct madmpi_type *t,
					    const struct madmpi_op *op)
{
	static const madmpi_allreduce_fn fns[] = { NULL,
						   madmpi_allreduce_doubling,
						   madmpi_allreduce_ring };

	if (!op->commutes)
		return madmpi_allreduce_doubling;
	return fns[choose(ALLREDUCE, c->size > 2 && n >= c->size &&
					     n * t->size > ALLREDUCE_BYTES)];
}

/* `bytes` from each process. */
madmpi_allgather_fn madmpi_choose_allgather(const struct madmpi_coll *c,
					    MPI_Count bytes)
{
	static const madmpi_allgather_fn fns[] = { NULL, madmpi_allgather_bruck,
						   madmpi_allgather_ring };

	return fns[choose(ALLGATHER,
			  c->size <= 2 || bytes * c->size > ALLGATHER_BYTES)];
}

/* Pairwise adds in another order. */
bool madmpi_choose_pairwise(const struct madmpi_op *op)
{
	return op->commutes && choose(REDUCE_SCATTER, false) == 1;
}
