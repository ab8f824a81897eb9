/*
 * Which algorithm for which size: all choices of the library in one place.
 */
#include "coll/choose.h"

#include "coll/coll.h"
#include "coll/node.h"

/* Beyond: least data per process instead of fewest steps. */
enum {
	BCAST_BYTES = 128 * 1024,
	ALLREDUCE_BYTES = 64 * 1024,
	ALLGATHER_BYTES = 64 * 1024, /* of all processes together */
};

/*
 * Of each process; beyond, one copy by the kernel is faster than two. Of a
 * broadcast only to one: among more, all but the root copy at once.
 */
enum {
	BCAST_SHARED = 8 * 1024,
	ALLGATHER_SHARED = 8 * 1024,        /* of two processes */
	ALLGATHER_SHARED_MORE = 256 * 1024, /* of more */
	ALLTOALL_SHARED_MORE = 256 * 1024,  /* of more, all parts of one */
	ALLTOALL_SHARED = 16 * 1024,        /* of two, both parts together */
};

#define IF_IT_COMMUTES "forced, if it commutes"

/* "Shared" goes before the others. */
#define IN_A_NODE "blocking, on one node, up to 32 processes"
#define IF_BASIC  IN_A_NODE ", a basic type"

const struct madmpi_algorithm madmpi_algorithms[] = {
	{ "barrier", "shared", IN_A_NODE, "1", "0", "0", IN_A_NODE },
	{ "barrier", "dissemination", "else", "log p", "log p", "0" },
	{ "bcast", "shared", IN_A_NODE ", up to 8 KiB, or p > 2", "1", "0", "n",
	  IN_A_NODE },
	{ "bcast", "binomial", "else up to 128 KiB, or p <= 3", "log p",
	  "log p", "n log p" },
	{ "bcast", "scatter_ring", "else", "2(p - 1)", "2(p - 1)",
	  "2(p - 1) (n / p)" },
	{ "reduce", "shared", IF_BASIC, "2", "0", "2n", IF_BASIC },
	{ "reduce", "binomial", "else if it commutes, or to rank 0", "log p",
	  "log p", "n log p", "forced, if it commutes, or to rank 0" },
	{ "reduce", "by_rank_0", "else", "log p + 1", "log p", "n log p" },
	{ "allreduce", "shared", IF_BASIC, "2", "0", "2n", IF_BASIC },
	{ "allreduce", "doubling", "else up to 64 KiB, or it does not commute",
	  "log p + e", "log p", "n log p" },
	{ "allreduce", "ring", "else", "2(p - 1)", "2(p - 1)",
	  "2(p - 1) (n / p)", IF_IT_COMMUTES },
	{ "gather", "linear", "always", "(p - 1) / 32", "p - 1", "(p - 1) n" },
	{ "scatter", "linear", "always", "(p - 1) / 32", "p - 1", "(p - 1) n" },
	{ "allgather", "shared", IN_A_NODE ", up to 256 KiB, 8 if p = 2", "1",
	  "0", "(p - 1) n", IN_A_NODE },
	{ "allgather", "bruck", "else up to 64 KiB in all, and p > 2", "log p",
	  "log p", "(p - 1) n" },
	{ "allgather", "ring", "else", "p - 1", "p - 1", "(p - 1) n" },
	{ "allgatherv", "ring", "always", "p - 1", "p - 1", "(p - 1) n" },
	{ "alltoall", "shared", IN_A_NODE ", up to 256 KiB in all, 16 if p = 2",
	  "1", "0", "(p - 1) n", IN_A_NODE },
	{ "alltoall", "pairwise", "else not in place", "p - 1", "p - 1",
	  "(p - 1) n", "forced, if not in place" },
	{ "alltoall", "swap", "else", "p", "p - 1", "(p - 1) n" },
	{ "reduce_scatter", "pairwise", "if it commutes", "p - 1", "p - 1",
	  "(p - 1) n", IF_IT_COMMUTES },
	{ "reduce_scatter", "reduce", "else", "log p + (p - 1) / 32", "p - 1",
	  "p n log p" },
	{ "scan", "doubling", "always", "log p", "log p", "n log p" },
};
const size_t madmpi_algorithms_n = BASE_ARRAY_LEN(madmpi_algorithms);

/* Of those with a choice, in the order of the table; 0 is no choice. */
static const char *const of_barrier[] = { "auto", "dissemination", "shared",
					  NULL };
static const char *const of_bcast[] = { "auto", "binomial", "scatter_ring",
					"shared", NULL };
static const char *const of_reduce[] = { "auto", "binomial", "shared", NULL };
static const char *const of_allreduce[] = { "auto", "doubling", "ring",
					    "shared", NULL };
enum { RING = 2 };
static const char *const of_allgather[] = { "auto", "bruck", "ring", "shared",
					    NULL };
static const char *const of_alltoall[] = { "auto", "pairwise", "shared", NULL };
static const char *const of_reduce_scatter[] = { "auto", "pairwise", "reduce",
						 NULL };

enum { BARRIER, BCAST, REDUCE, ALLREDUCE, ALLGATHER, ALLTOALL, REDUCE_SCATTER };

static struct base_option options[] = {
	[BARRIER] = { .name = "MADMPI_COLL_BARRIER",
		      .kind = BASE_OPTION_CHOICE,
		      .fallback = "auto",
		      .choices = of_barrier,
		      .help = "the algorithm of MPI_Barrier; shared: where "
			      "processes share memory" },
	[BCAST] = { .name = "MADMPI_COLL_BCAST",
		    .kind = BASE_OPTION_CHOICE,
		    .fallback = "auto",
		    .choices = of_bcast,
		    .help = "the one of MPI_Bcast" },
	[REDUCE] = { .name = "MADMPI_COLL_REDUCE",
		     .kind = BASE_OPTION_CHOICE,
		     .fallback = "auto",
		     .choices = of_reduce,
		     .help = "the one of MPI_Reduce" },
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
	[ALLTOALL] = { .name = "MADMPI_COLL_ALLTOALL",
		       .kind = BASE_OPTION_CHOICE,
		       .fallback = "auto",
		       .choices = of_alltoall,
		       .help = "the one of MPI_Alltoall" },
	[REDUCE_SCATTER] = { .name = "MADMPI_COLL_REDUCE_SCATTER",
			     .kind = BASE_OPTION_CHOICE,
			     .fallback = "auto",
			     .choices = of_reduce_scatter,
			     .help = "the one of MPI_Reduce_scatter, pairwise "
				     "if the operation commutes" },
};

/* The place of "shared" among the choices. */
static const long shared_of[BASE_ARRAY_LEN(options)] = {
	[BARRIER] = 2,   [BCAST] = 3,     [REDUCE] = 2,
	[ALLREDUCE] = 3, [ALLGATHER] = 3, [ALLTOALL] = 2,
};

const struct base_option_table madmpi_coll_options =
	BASE_OPTION_TABLE("madmpi/coll", options);

bool madmpi_choose_node(void)
{
	for (int i = 0; i < (int)BASE_ARRAY_LEN(shared_of); i++)
		if (options[i].value == 0 || options[i].value == shared_of[i])
			return true;
	return false;
}

/* Through the memory of a node, which not everybody has. */
static bool choose_shared(const struct madmpi_coll *c, int operation,
			  bool faster)
{
	long forced = options[operation].value;

	return c->node != NULL &&
	       (forced == 0 ? faster : forced == shared_of[operation]);
}

/*
 * By messages: what is forced, else one of the first two; the second is for
 * much data.
 */
static long choose(int operation, bool much)
{
	long forced = options[operation].value;

	return forced != 0 && forced != shared_of[operation] ? forced
							     : 1 + much;
}

bool madmpi_choose_barrier_shared(const struct madmpi_coll *c)
{
	return choose_shared(c, BARRIER, true);
}

madmpi_bcast_fn madmpi_choose_bcast(const struct madmpi_coll *c,
				    MPI_Count bytes)
{
	static const madmpi_bcast_fn fns[] = { NULL, madmpi_bcast_binomial,
					       madmpi_bcast_scatter_ring };

	if (bytes > 0 &&
	    choose_shared(c, BCAST, c->size > 2 || bytes <= BCAST_SHARED))
		return madmpi_bcast_shared;
	return fns[choose(BCAST, c->size > 3 && bytes > BCAST_BYTES)];
}

/* Its elements lie side by side in a slot. */
static bool is_basic(const struct madmpi_type *t)
{
	return t->basic != MADMPI_NOT_BASIC && madmpi_type_is_flat(t, 2);
}

bool madmpi_choose_reduce_shared(const struct madmpi_coll *c,
				 const struct madmpi_type *t)
{
	return is_basic(t) && choose_shared(c, REDUCE, true);
}

/* A ring that is forced is not for what does not commute. */
bool madmpi_choose_allreduce_shared(const struct madmpi_coll *c,
				    const struct madmpi_type *t,
				    const struct madmpi_op *op)
{
	bool no_ring = options[ALLREDUCE].value == RING && !op->commutes;

	return is_basic(t) &&
	       (choose_shared(c, ALLREDUCE, true) || (no_ring && c->node));
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
	return fns[choose(ALLREDUCE,
			  n >= c->size && n * t->size > ALLREDUCE_BYTES)];
}

/* `bytes` from each process. */
madmpi_allgather_fn madmpi_choose_allgather(const struct madmpi_coll *c,
					    MPI_Count bytes)
{
	static const madmpi_allgather_fn fns[] = { NULL, madmpi_allgather_bruck,
						   madmpi_allgather_ring };

	if (choose_shared(c, ALLGATHER,
			  bytes <= (c->size > 2 ? ALLGATHER_SHARED_MORE
						: ALLGATHER_SHARED)))
		return madmpi_allgather_shared;
	return fns[choose(ALLGATHER,
			  c->size <= 2 || bytes * c->size > ALLGATHER_BYTES)];
}

bool madmpi_choose_alltoall_shared(const struct madmpi_coll *c, MPI_Count bytes)
{
	MPI_Count all;

	return !__builtin_mul_overflow(bytes, c->size, &all) &&
	       choose_shared(c, ALLTOALL,
			     all <= (c->size > 2 ? ALLTOALL_SHARED_MORE
						 : ALLTOALL_SHARED));
}

/* Pairwise adds in another order. */
bool madmpi_choose_pairwise(const struct madmpi_op *op)
{
	return op->commutes && choose(REDUCE_SCATTER, false) == 1;
}
