/*
 * Which algorithm for which size: all choices of the library in one place.
 */
#include "coll/choose.h"

#include "coll/coll.h"
#include "coll/hosts.h"
#include "coll/node.h"

/* Beyond: least data per process instead of fewest steps. */
enum {
	BCAST_BYTES = 128 * 1024,
	ALLREDUCE_BYTES = 64 * 1024,
	ALLGATHER_BYTES = 64 * 1024, /* of all processes together */
};

/*
 * In a node, through slots up to here: bytes of a process' part, or of all
 * parts where there are several; of two processes, and of more.
 */
enum {
	BCAST_SHARED = 16 * 1024,
	BCAST_SHARED_MORE = 64 * 1024,
	REDUCE_SHARED = 8 * 1024,
	GATHER_SHARED = 16 * 1024,
	GATHER_SHARED_MORE = 256 * 1024,
	SCATTER_SHARED = 8 * 1024,
	SCATTER_SHARED_MORE = 64 * 1024,
	ALLGATHER_SHARED = 8 * 1024,
	ALLTOALL_SHARED = 16 * 1024,
	ALLTOALL_SHARED_MORE = 32 * 1024,
};

#define IF_IT_COMMUTES "forced, if it commutes"

/* Of a node; these go before the others. */
#define IN_A_NODE "blocking, on one node, up to 32 processes"
#define IF_BASIC  IN_A_NODE ", a basic type"
#define IF_READS  IN_A_NODE " that may read each other's memory"

/* Of several hosts; then these go before all others. */
#define OF_HOSTS "several hosts, not each with one process only"
#define IF_ORDER OF_HOSTS ", if it commutes, or hosts have consecutive ranks"

const struct madmpi_algorithm madmpi_algorithms[] = {
	{ "barrier", "hosts", OF_HOSTS, "log h + 2", "log h", "0", OF_HOSTS },
	{ "barrier", "shared", IN_A_NODE, "1", "0", "0", IN_A_NODE },
	{ "barrier", "dissemination", "else", "log p", "log p", "0" },
	{ "bcast", "hosts", OF_HOSTS, "log h + 2", "log h", "n log h",
	  OF_HOSTS },
	{ "bcast", "shared",
	  IN_A_NODE ", up to 16 KiB; if p > 2 to 64, or all "
		    "where there is no direct way",
	  "1", "0", "n", IN_A_NODE },
	{ "bcast", "direct", IF_READS ", if p > 2", "2", "0", "n", IF_READS },
	{ "bcast", "binomial", "else up to 128 KiB, or p <= 3", "log p",
	  "log p", "n log p" },
	{ "bcast", "scatter_ring", "else", "2(p - 1)", "2(p - 1)",
	  "2(p - 1) (n / p)" },
	{ "reduce", "hosts", IF_ORDER, "log h + 3", "log h + 1", "n log h + n",
	  IF_ORDER },
	{ "reduce", "shared", IF_BASIC, "2", "0", "2n", IF_BASIC },
	{ "reduce", "direct",
	  IF_BASIC ", beyond 8 KiB if p = 2 and they may "
		   "read each other's memory",
	  "2", "0", "(p - 1) n", IF_READS ", a basic type" },
	{ "reduce", "binomial", "else if it commutes, or to rank 0", "log p",
	  "log p", "n log p", "forced, if it commutes, or to rank 0" },
	{ "reduce", "by_rank_0", "else", "log p + 1", "log p", "n log p" },
	{ "allreduce", "hosts", IF_ORDER, "log h + 4", "log h + 1",
	  "n log h + n", IF_ORDER },
	{ "allreduce", "shared", IF_BASIC, "2", "0", "2n", IF_BASIC },
	{ "allreduce", "doubling", "else up to 64 KiB, or it does not commute",
	  "log p + e", "log p", "n log p" },
	{ "allreduce", "ring", "else", "2(p - 1)", "2(p - 1)",
	  "2(p - 1) (n / p)", IF_IT_COMMUTES },
	{ "gather", "shared", IN_A_NODE ", up to 256 KiB, 16 if p = 2", "1",
	  "0", "(p - 1) n", IN_A_NODE },
	{ "gather", "linear", "else", "(p - 1) / 32", "p - 1", "(p - 1) n" },
	{ "scatter", "shared", IN_A_NODE ", up to 8 KiB, or 64 in all if p > 2",
	  "1", "0", "(p - 1) n", IN_A_NODE },
	{ "scatter", "direct", IF_READS ", if p > 2", "2", "0", "n", IF_READS },
	{ "scatter", "linear", "else", "(p - 1) / 32", "p - 1", "(p - 1) n" },
	{ "allgather", "shared", IN_A_NODE ", up to 8 KiB, or p > 2", "1", "0",
	  "(p - 1) n", IN_A_NODE },
	{ "allgather", "direct", IF_READS ", else", "2", "0", "(p - 1) n",
	  IF_READS },
	{ "allgather", "bruck", "else up to 64 KiB in all, and p > 2", "log p",
	  "log p", "(p - 1) n" },
	{ "allgather", "ring", "else", "p - 1", "p - 1", "(p - 1) n" },
	{ "allgatherv", "ring", "always", "p - 1", "p - 1", "(p - 1) n" },
	{ "alltoall", "shared", IN_A_NODE ", up to 32 KiB in all, 16 if p = 2",
	  "1", "0", "(p - 1) n", IN_A_NODE },
	{ "alltoall", "direct", IF_READS ", not in place", "2", "0",
	  "(p - 1) n", IF_READS ", not in place" },
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
					  "hosts", NULL };
static const char *const of_bcast[] = { "auto",   "binomial", "scatter_ring",
					"shared", "direct",   "hosts",
					NULL };
static const char *const of_reduce[] = { "auto",   "binomial", "shared",
					 "direct", "hosts",    NULL };
static const char *const of_allreduce[] = { "auto",   "doubling", "ring",
					    "shared", "hosts",    NULL };
enum { RING = 2 };
static const char *const of_gather[] = { "auto", "linear", "shared", NULL };
static const char *const of_scatter[] = { "auto", "linear", "shared", "direct",
					  NULL };
static const char *const of_allgather[] = { "auto",   "bruck",  "ring",
					    "shared", "direct", NULL };
static const char *const of_alltoall[] = { "auto", "pairwise", "shared",
					   "direct", NULL };
static const char *const of_reduce_scatter[] = { "auto", "pairwise", "reduce",
						 NULL };

enum {
	BARRIER,
	BCAST,
	REDUCE,
	ALLREDUCE,
	GATHER,
	SCATTER,
	ALLGATHER,
	ALLTOALL,
	REDUCE_SCATTER
};

static struct base_option options[] = {
	[BARRIER] = { .name = "MADMPI_COLL_BARRIER",
		      .kind = BASE_OPTION_CHOICE,
		      .fallback = "auto",
		      .choices = of_barrier,
		      .help = "the algorithm of MPI_Barrier; shared: where "
			      "processes share memory; direct: where they may "
			      "also read each other's" },
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
	[GATHER] = { .name = "MADMPI_COLL_GATHER",
		     .kind = BASE_OPTION_CHOICE,
		     .fallback = "auto",
		     .choices = of_gather,
		     .help = "the one of MPI_Gather" },
	[SCATTER] = { .name = "MADMPI_COLL_SCATTER",
		      .kind = BASE_OPTION_CHOICE,
		      .fallback = "auto",
		      .choices = of_scatter,
		      .help = "the one of MPI_Scatter" },
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

/*
 * Where among the choices is what needs the memory of a node, or hosts; 0:
 * nowhere.
 */
static const struct {
	long shared, direct, hosts;
} in_node[BASE_ARRAY_LEN(options)] = {
	[BARRIER] = { 2, 0, 3 },   [BCAST] = { 3, 4, 5 },
	[REDUCE] = { 2, 3, 4 },    [ALLREDUCE] = { 3, 0, 4 },
	[GATHER] = { 2, 0, 0 },    [SCATTER] = { 2, 3, 0 },
	[ALLGATHER] = { 3, 4, 0 }, [ALLTOALL] = { 2, 3, 0 },
};

const struct base_option_table madmpi_coll_options =
	BASE_OPTION_TABLE("madmpi/coll", options);

static bool reads(const struct madmpi_coll *c)
{
	return c->node != NULL && c->node->reads;
}

/* Each step of what goes by hosts is what is best. */
static long forced_of(int operation)
{
	long forced = options[operation].value;

	return forced == in_node[operation].hosts ? 0 : forced;
}

/* Not within a step of it; `op` is NULL of what reduces nothing. */
static bool by_hosts(const struct madmpi_coll *c, int operation,
		     const struct madmpi_op *op)
{
	const struct madmpi_hosts *h = c->comm->hosts;

	return unlikely(h != NULL) && c->gate == c->comm->local_gate &&
	       forced_of(operation) == 0 &&
	       (op == NULL || op->commutes || h->in_order);
}

static bool is_in_node(int operation, long choice)
{
	return choice != 0 && (choice == in_node[operation].shared ||
			       choice == in_node[operation].direct);
}

bool madmpi_choose_node(void)
{
	for (int i = 0; i < (int)BASE_ARRAY_LEN(options); i++)
		if (is_in_node(i, options[i].value) ||
		    (forced_of(i) == 0 && in_node[i].shared != 0))
			return true;
	return false;
}

/*
 * What each process has for another one, or for all: which way it goes, if not
 * forced, is said for a node that has both of the others.
 */
static enum madmpi_route choose_route(const struct madmpi_coll *c,
				      int operation, enum madmpi_route best)
{
	long forced = forced_of(operation);

	if (c->node == NULL)
		return MADMPI_BY_MESSAGES;
	if (forced != 0)
		best = !is_in_node(operation, forced) ? MADMPI_BY_MESSAGES
		       : forced == in_node[operation].shared ? MADMPI_SHARED
							     : MADMPI_DIRECT;
	return best == MADMPI_DIRECT && !reads(c) ? MADMPI_BY_MESSAGES : best;
}

static bool choose_shared(const struct madmpi_coll *c, int operation)
{
	return choose_route(c, operation, MADMPI_SHARED) == MADMPI_SHARED;
}

/*
 * By messages: what is forced, else one of the first two; the second is for
 * much data.
 */
static long choose(int operation, bool much)
{
	long forced = forced_of(operation);

	return forced != 0 && !is_in_node(operation, forced) ? forced
							     : 1 + much;
}

/* --- what is best --- */

/* Through slots up to so many bytes, else otherwise; none are no operation. */
static enum madmpi_route by_size(MPI_Count bytes, MPI_Count shared,
				 enum madmpi_route beyond)
{
	if (bytes == 0)
		return MADMPI_BY_MESSAGES;
	return bytes <= shared ? MADMPI_SHARED : beyond;
}

/* A large message to one is copied by both ends, half each. */
static enum madmpi_route bcast_route(const struct madmpi_coll *c,
				     MPI_Count bytes)
{
	if (c->size == 2)
		return by_size(bytes, BCAST_SHARED, MADMPI_BY_MESSAGES);
	return by_size(bytes, BCAST_SHARED_MORE,
		       reads(c) ? MADMPI_DIRECT : MADMPI_SHARED);
}

/* Among more, all add. */
static enum madmpi_route reduce_route(const struct madmpi_coll *c,
				      MPI_Count bytes)
{
	return by_size(bytes, REDUCE_SHARED,
		       c->size == 2 && reads(c) ? MADMPI_DIRECT
						: MADMPI_SHARED);
}

static enum madmpi_route gather_route(const struct madmpi_coll *c,
				      MPI_Count bytes)
{
	return by_size(bytes, c->size == 2 ? GATHER_SHARED : GATHER_SHARED_MORE,
		       MADMPI_BY_MESSAGES);
}

static enum madmpi_route scatter_route(const struct madmpi_coll *c,
				       MPI_Count bytes)
{
	if (c->size == 2)
		return by_size(bytes, SCATTER_SHARED, MADMPI_BY_MESSAGES);
	return by_size(bytes, SCATTER_SHARED_MORE / c->size, MADMPI_DIRECT);
}

static enum madmpi_route allgather_route(const struct madmpi_coll *c,
					 MPI_Count bytes)
{
	return by_size(bytes, ALLGATHER_SHARED,
		       c->size == 2 ? MADMPI_DIRECT : MADMPI_SHARED);
}

static enum madmpi_route alltoall_route(const struct madmpi_coll *c,
					MPI_Count bytes)
{
	MPI_Count most = c->size == 2 ? ALLTOALL_SHARED : ALLTOALL_SHARED_MORE;

	return by_size(bytes, most / c->size, MADMPI_DIRECT);
}

madmpi_barrier_fn madmpi_choose_barrier(const struct madmpi_coll *c)
{
	if (by_hosts(c, BARRIER, NULL))
		return madmpi_barrier_hosts;
	return choose_shared(c, BARRIER) ? madmpi_barrier_shared
					 : madmpi_barrier_dissemination;
}

madmpi_bcast_fn madmpi_choose_bcast(const struct madmpi_coll *c,
				    MPI_Count bytes)
{
	static const madmpi_bcast_fn fns[] = { NULL, madmpi_bcast_binomial,
					       madmpi_bcast_scatter_ring };

	if (by_hosts(c, BCAST, NULL))
		return madmpi_bcast_hosts;
	switch (choose_route(c, BCAST, bcast_route(c, bytes))) {
	case MADMPI_SHARED:
		return madmpi_bcast_shared;
	case MADMPI_DIRECT:
		return madmpi_bcast_direct;
	case MADMPI_BY_MESSAGES:
		break;
	}
	return fns[choose(BCAST, c->size > 3 && bytes > BCAST_BYTES)];
}

/* Its elements lie side by side in a slot. */
static bool is_basic(const struct madmpi_type *t)
{
	return t->basic != MADMPI_NOT_BASIC && madmpi_type_is_flat(t, 2);
}

madmpi_reduce_fn madmpi_choose_reduce(const struct madmpi_coll *c, MPI_Count n,
				      const struct madmpi_type *t,
				      const struct madmpi_op *op)
{
	enum madmpi_route route = MADMPI_BY_MESSAGES;

	if (by_hosts(c, REDUCE, op))
		return madmpi_reduce_hosts;
	if (is_basic(t))
		route = choose_route(c, REDUCE, reduce_route(c, n * t->size));
	return route == MADMPI_SHARED   ? madmpi_reduce_shared
	       : route == MADMPI_DIRECT ? madmpi_reduce_direct
					: madmpi_reduce_binomial;
}

/* A ring that is forced is not for what does not commute. */
bool madmpi_choose_allreduce_shared(const struct madmpi_coll *c,
				    const struct madmpi_type *t,
				    const struct madmpi_op *op)
{
	bool no_ring = options[ALLREDUCE].value == RING && !op->commutes;

	return is_basic(t) &&
	       (choose_shared(c, ALLREDUCE) || (no_ring && c->node));
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

	if (by_hosts(c, ALLREDUCE, op))
		return madmpi_allreduce_hosts;
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

	return fns[choose(ALLGATHER,
			  c->size <= 2 || bytes * c->size > ALLGATHER_BYTES)];
}

bool madmpi_choose_gather_shared(const struct madmpi_coll *c, MPI_Count bytes)
{
	return choose_route(c, GATHER, gather_route(c, bytes)) == MADMPI_SHARED;
}

enum madmpi_route madmpi_choose_allgather_route(const struct madmpi_coll *c,
						MPI_Count bytes)
{
	return choose_route(c, ALLGATHER, allgather_route(c, bytes));
}

enum madmpi_route madmpi_choose_scatter(const struct madmpi_coll *c,
					MPI_Count bytes)
{
	return choose_route(c, SCATTER, scatter_route(c, bytes));
}

enum madmpi_route madmpi_choose_alltoall(const struct madmpi_coll *c,
					 MPI_Count bytes)
{
	return choose_route(c, ALLTOALL, alltoall_route(c, bytes));
}

/* Pairwise adds in another order. */
bool madmpi_choose_pairwise(const struct madmpi_op *op)
{
	return op->commutes && choose(REDUCE_SCATTER, false) == 1;
}
