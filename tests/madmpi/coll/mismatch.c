/*
 * With MADMPI_CHECK=2 processes that call what does not fit together are told,
 * all of them, and nothing hangs. The last process is the one that differs.
 *
 * Without arguments every case in every form: each returns the class of its
 * error in all processes, and what comes next works. With the name of a case
 * that one, blocking, whose error ends the job. With "unchecked" rank 0 does
 * not say what it calls.
 */
#include "../program.h"
#include "../two_groups.h"

enum form { BLOCKING, NONBLOCKING, PERSISTENT, NFORMS };

enum { MOST = 64 };

static int in[4 * MOST], out[4 * MOST];
static MPI_Request request, *const r = &request;
static int odd;    /* this process differs */
static int tested; /* errors are asked for by MPI_Test */

#define FORMS(form, name, lower, ...)                                          \
	((form) == BLOCKING ? MPI_##name(__VA_ARGS__)                          \
	 : (form) == NONBLOCKING                                               \
		 ? MPI_I##lower(__VA_ARGS__, r)                                \
		 : MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, r))

static int function(enum form form, MPI_Comm comm)
{
	if (odd)
		return FORMS(form, Barrier, barrier, comm);
	return FORMS(form, Allreduce, allreduce, in, out, 1, MPI_INT, MPI_SUM,
		     comm);
}

static int root(enum form form, MPI_Comm comm)
{
	return FORMS(form, Bcast, bcast, in, 1, MPI_INT, !odd, comm);
}

static int op(enum form form, MPI_Comm comm)
{
	return FORMS(form, Reduce, reduce, in, out, 1, MPI_INT,
		     odd ? MPI_MAX : MPI_SUM, 0, comm);
}

static int count(enum form form, MPI_Comm comm)
{
	return FORMS(form, Scan, scan, in, out, odd ? 3 : 2, MPI_INT, MPI_SUM,
		     comm);
}

static int type(enum form form, MPI_Comm comm)
{
	return FORMS(form, Bcast, bcast, in, odd ? 1 : 2,
		     odd ? MPI_DOUBLE : MPI_INT, 0, comm);
}

static int part(enum form form, MPI_Comm comm)
{
	return FORMS(form, Gather, gather, in, odd ? 1 : 2, MPI_INT, out, 2,
		     MPI_INT, 0, comm);
}

static int none_of_some(enum form form, MPI_Comm comm)
{
	int counts[MOST], displs[MOST] = { 0 };

	for (int i = 0; i < size; i++)
		counts[i] = 1;
	return FORMS(form, Gatherv, gatherv, in, !odd, MPI_INT, out, counts,
		     displs, MPI_INT, 0, comm);
}

static int more_of_some(enum form form, MPI_Comm comm)
{
	int counts[MOST] = { 0 }, displs[MOST] = { 0 };

	counts[0] = 1 + odd;
	for (int i = 1; i < size; i++)
		counts[i] = 1;
	return FORMS(form, Scatterv, scatterv, in, counts, displs, MPI_INT, out,
		     1 + odd, MPI_INT, 0, comm);
}

static int pair(enum form form, MPI_Comm comm)
{
	int s[MOST], n[MOST], displs[MOST] = { 0 };

	for (int i = 0; i < size; i++)
		s[i] = n[i] = 1;
	s[0] = odd ? 0 : 1;
	return FORMS(form, Alltoallv, alltoallv, in, s, displs, MPI_INT, out, n,
		     displs, MPI_INT, comm);
}

static int counts(enum form form, MPI_Comm comm)
{
	int n[MOST], displs[MOST];

	for (int i = 0; i < size; i++) {
		n[i] = 1;
		displs[i] = 2 * i;
	}
	n[0] = 1 + odd;
	return FORMS(form, Allgatherv, allgatherv, in, 1, MPI_INT, out, n,
		     displs, MPI_INT, comm);
}

/* As long together. */
static int shares(enum form form, MPI_Comm comm)
{
	int n[MOST];

	for (int i = 0; i < size; i++)
		n[i] = 1;
	n[0] += odd;
	n[1] -= odd;
	return FORMS(form, Reduce_scatter, reduce_scatter, in, out, n, MPI_INT,
		     MPI_SUM, comm);
}

static int neighbours(enum form form, MPI_Comm comm)
{
	if (odd)
		return FORMS(form, Neighbor_alltoall, neighbor_alltoall, in, 1,
			     MPI_INT, out, 1, MPI_INT, comm);
	return FORMS(form, Neighbor_allgather, neighbor_allgather, in, 1,
		     MPI_INT, out, 1, MPI_INT, comm);
}

static const struct mismatch {
	const char *name;
	int (*call)(enum form form, MPI_Comm comm);
	int class;
} cases[] = {
	{ "function", function, MPI_ERR_OTHER },
	{ "root", root, MPI_ERR_ROOT },
	{ "op", op, MPI_ERR_OP },
	{ "count", count, MPI_ERR_COUNT },
	{ "type", type, MPI_ERR_TYPE },
	{ "part", part, MPI_ERR_COUNT },
	{ "none_of_some", none_of_some, MPI_ERR_COUNT },
	{ "more_of_some", more_of_some, MPI_ERR_COUNT },
	{ "pair", pair, MPI_ERR_COUNT },
	{ "counts", counts, MPI_ERR_COUNT },
	{ "shares", shares, MPI_ERR_COUNT },
	{ "neighbours", neighbours, MPI_ERR_OTHER },
};

/* As many calls, and their kinds in another order. */
static int order(enum form form, MPI_Comm comm)
{
	int rc = MPI_SUCCESS;

	if (odd)
		rc = MPI_Barrier(comm);
	MPI_Barrier_init(comm, MPI_INFO_NULL, r);
	if (!odd)
		rc = MPI_Barrier(comm);
	(void)form;
	MPI_Request_free(r);
	return rc;
}

static const struct mismatch order_case = { "order", order, MPI_ERR_OTHER };

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* --- between two groups --- */

static int inter_function(enum form form, MPI_Comm comm)
{
	if (first)
		return FORMS(form, Barrier, barrier, comm);
	return FORMS(form, Allreduce, allreduce, in, out, 1, MPI_INT, MPI_SUM,
		     comm);
}

static int inter_root(enum form form, MPI_Comm comm)
{
	/* Of one process only that one can be the root: then nobody is. */
	int one = (first ? nmine : nothers) == 1;
	int as = mine == 0 && !one ? MPI_ROOT : MPI_PROC_NULL;

	return FORMS(form, Bcast, bcast, in, 1, MPI_INT,
		     first ? as : odd && !one, comm);
}

static int inter_nobody(enum form form, MPI_Comm comm)
{
	return FORMS(form, Bcast, bcast, in, 1, MPI_INT,
		     first ? MPI_PROC_NULL : 0, comm);
}

static int inter_count(enum form form, MPI_Comm comm)
{
	return FORMS(form, Allreduce, allreduce, in, out, 1 + first, MPI_INT,
		     MPI_SUM, comm);
}

static int inter_pair(enum form form, MPI_Comm comm)
{
	return FORMS(form, Alltoall, alltoall, in, 1 + first, MPI_INT, out, 1,
		     MPI_INT, comm);
}

static const struct mismatch inter_cases[] = {
	{ "inter_function", inter_function, MPI_ERR_OTHER },
	{ "inter_root", inter_root, MPI_ERR_ROOT },
	{ "inter_nobody", inter_nobody, MPI_ERR_ROOT },
	{ "inter_count", inter_count, MPI_ERR_COUNT },
	{ "inter_pair", inter_pair, MPI_ERR_COUNT },
};

enum { INTER_CASES = sizeof(inter_cases) / sizeof(inter_cases[0]) };

/* --- all of them --- */

/* The error of what has begun, asked for in the way that `tested` says. */
static int ended(MPI_Request *r)
{
	int flag = 0, rc;

	if (!tested)
		return class_of(MPI_Wait(r, MPI_STATUS_IGNORE));
	do
		rc = MPI_Test(r, &flag, MPI_STATUS_IGNORE);
	while (!flag);
	return class_of(rc);
}

/* And once more, if it is persistent. */
static int run(const struct mismatch *m, enum form form, MPI_Comm comm)
{
	int rc = m->call(form, comm);

	if (form == BLOCKING)
		return class_of(rc);
	EXPECT_INT(rc, MPI_SUCCESS);
	if (form == PERSISTENT) {
		MPI_Start(r);
		EXPECT_INT(ended(r), m->class);
		MPI_Start(r);
	}
	rc = ended(r);
	if (form == PERSISTENT)
		MPI_Request_free(r);
	return rc;
}

static void all_fail(const struct mismatch *m, int n, MPI_Comm comm)
{
	int one = 1, sum = 0, got;

	for (int i = 0; i < n; i++)
		for (enum form form = 0; form < NFORMS; form++) {
			tested = i % 2;
			got = run(&m[i], form, comm);
			if (got != m[i].class)
				fprintf(stderr, "%s, form %d\n", m[i].name,
					(int)form);
			EXPECT_INT(got, m[i].class);
		}
	EXPECT_INT(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm),
		   MPI_SUCCESS);
	EXPECT(sum > 0);
}

/* A blocking call and one that is not are two. */
static void forms_do_not_fit(MPI_Comm comm)
{
	int rc;

	if (odd) {
		MPI_Ibarrier(comm, r);
		rc = MPI_Wait(r, MPI_STATUS_IGNORE);
	} else {
		rc = MPI_Barrier(comm);
	}
	FAILS(rc, MPI_ERR_OTHER);
}

/* However many have fitted before: after some, processes share memory. */
static void forms_never_fit(MPI_Comm comm)
{
	MPI_Comm other;

	MPI_Comm_dup(comm, &other);
	for (int i = 0; i < 12; i++) {
		forms_do_not_fit(other);
		EXPECT_INT(MPI_Barrier(other), MPI_SUCCESS);
	}
	MPI_Comm_free(&other);
}

/* Nor does what makes communicators. */
static void others_do_not_fit(MPI_Comm comm)
{
	MPI_Comm made = MPI_COMM_NULL;
	int rc;

	rc = odd ? MPI_Comm_dup(comm, &made) : MPI_Barrier(comm);
	FAILS(rc, MPI_ERR_OTHER);
	rc = odd ? MPI_Barrier(comm) : MPI_Comm_split(comm, 0, 0, &made);
	FAILS(rc, MPI_ERR_OTHER);
	if (odd) {
		MPI_Comm_idup(comm, &made, r);
		rc = MPI_Wait(r, MPI_STATUS_IGNORE);
	} else {
		rc = MPI_Comm_dup(comm, &made);
	}
	FAILS(rc, MPI_ERR_OTHER);
	EXPECT(made == MPI_COMM_NULL);
}

/* Of two groups whose leaders meet, one has a member that calls another one. */
static void groups_do_not_fit(MPI_Comm comm)
{
	MPI_Comm half, made = MPI_COMM_NULL;
	int in_first, place, members, rc;

	MPI_Comm_rank(comm, &place);
	in_first = place % 2 == 0;
	MPI_Comm_split(comm, !in_first, 0, &half);
	MPI_Comm_rank(half, &place);
	MPI_Comm_size(half, &members);
	if (in_first && place == 1)
		rc = MPI_Barrier(half);
	else
		rc = MPI_Intercomm_create(half, 0, comm, in_first, 0, &made);
	if (in_first && members > 1)
		FAILS(rc, MPI_ERR_OTHER);
	else
		EXPECT_INT(rc, MPI_SUCCESS);
	if (made != MPI_COMM_NULL)
		MPI_Comm_free(&made);
	MPI_Comm_free(&half);
}

/* --- calls in another order --- */

enum { PAIR = 2 };

static int barrier(enum form form, MPI_Comm comm, MPI_Request *r)
{
	return FORMS(form, Barrier, barrier, comm);
}

static int broadcast(enum form form, MPI_Comm comm, MPI_Request *r)
{
	return FORMS(form, Bcast, bcast, in, 1, MPI_INT, 0, comm);
}

static int neighbor(enum form form, MPI_Comm comm, MPI_Request *r)
{
	return FORMS(form, Neighbor_allgather, neighbor_allgather, in, 1,
		     MPI_INT, out, 1, MPI_INT, comm);
}

typedef int order_fn(enum form form, MPI_Comm comm, MPI_Request *r);

/* The last process makes two calls in the other order: both fail. */
static void one_order_fails(order_fn *call[PAIR], const enum form form[PAIR],
			    MPI_Comm comm)
{
	MPI_Request r[PAIR] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL };
	int rc[PAIR], i;

	for (int step = 0; step < PAIR; step++) {
		i = odd ? PAIR - 1 - step : step;
		rc[i] = call[i](form[i], comm, &r[i]);
	}
	for (int step = 0; step < PAIR; step++) {
		i = odd ? PAIR - 1 - step : step;
		if (form[i] == PERSISTENT)
			MPI_Start(&r[i]);
		EXPECT_INT(form[i] == BLOCKING ? class_of(rc[i]) : ended(&r[i]),
			   MPI_ERR_OTHER);
		if (form[i] == PERSISTENT)
			MPI_Request_free(&r[i]);
	}
}

/* Of each pair of forms, and of neighbours too. */
static void calls_in_another_order_fail(MPI_Comm comm)
{
	order_fn *other[] = { broadcast, neighbor };

	for (int i = 0; i < 2; i++)
		for (enum form a = 0; a < NFORMS; a++)
			for (enum form b = 0; b < NFORMS; b++) {
				tested = !tested;
				one_order_fails(
					(order_fn *[]){ barrier, other[i] },
					(enum form[]){ a, b }, comm);
			}
	EXPECT_INT(MPI_Barrier(comm), MPI_SUCCESS);
}

/* Persistent operations may start in another order in each process. */
static void starts_in_another_order_fit(MPI_Comm comm)
{
	MPI_Request r[PAIR];

	barrier(PERSISTENT, comm, &r[0]);
	broadcast(PERSISTENT, comm, &r[1]);
	MPI_Start(&r[odd]);
	MPI_Start(&r[!odd]);
	EXPECT_INT(MPI_Wait(&r[0], MPI_STATUS_IGNORE), MPI_SUCCESS);
	EXPECT_INT(MPI_Wait(&r[1], MPI_STATUS_IGNORE), MPI_SUCCESS);
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[1]);
}

/* What is put together otherwise, and what has another name. */
static void what_is_the_same_fits(MPI_Comm comm)
{
	int lengths[2] = { 1, 3 }, places[2] = { 0, 1 };
	MPI_Datatype four, dup;

	MPI_Type_indexed(2, lengths, places, MPI_INT, &four);
	MPI_Type_commit(&four);
	EXPECT_INT(MPI_Bcast(in, odd ? 1 : 4, odd ? four : MPI_INT, 0, comm),
		   MPI_SUCCESS);
	MPI_Type_free(&four);
	MPI_Type_dup(MPI_INT, &dup);
	EXPECT_INT(MPI_Bcast(in, 4, odd ? dup : MPI_INT, 0, comm), MPI_SUCCESS);
	MPI_Type_free(&dup);
	EXPECT_INT(MPI_Gather(in, 16, MPI_PACKED, out, 4, MPI_INT, 0, comm),
		   MPI_SUCCESS);
	EXPECT_INT(MPI_Gather(rank == 0 ? MPI_IN_PLACE : in, rank == 0 ? 7 : 1,
			      MPI_INT, out, 1, MPI_INT, 0, comm),
		   MPI_SUCCESS);
}

static MPI_Comm ring(MPI_Comm comm)
{
	int periodic = 1;
	MPI_Comm made;

	MPI_Cart_create(comm, 1, &size, &periodic, 0, &made);
	return made;
}

static int one_by_name(const char *name)
{
	for (int i = 0; i < CASES; i++)
		if (strcmp(cases[i].name, name) == 0)
			cases[i].call(BLOCKING, MPI_COMM_WORLD);
	if (strcmp(order_case.name, name) == 0)
		order_case.call(BLOCKING, MPI_COMM_WORLD);
	two_groups_begin();
	for (int i = 0; i < INTER_CASES; i++)
		if (strcmp(inter_cases[i].name, name) == 0)
			inter_cases[i].call(BLOCKING, inter);
	return 0; /* which is wrong */
}

/* --- a process that does not say what it calls --- */

static void do_without_check(void)
{
	const char *number = getenv("PMI_RANK");

	if (number != NULL && atoi(number) == 0)
		setenv("MADMPI_CHECK", "1", 1);
}

/* Data come instead of its words: to some at once, to others never. */
static int none_waits_for_unchecked(void)
{
	MPI_Group all, checked;
	MPI_Comm ours = MPI_COMM_SELF, across;
	int rc;

	EXPECT(size > 3);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	rc = MPI_Bcast(in, 1, MPI_INT, 0, MPI_COMM_WORLD);
	FAILS(rc, rank == 0 ? MPI_SUCCESS : MPI_ERR_COUNT);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_excl(all, 1, (int[]){ 0 }, &checked);
	if (rank > 0)
		MPI_Comm_create_group(MPI_COMM_WORLD, checked, 0, &ours);
	MPI_Intercomm_create(ours, 0, MPI_COMM_WORLD, rank == 0, 0, &across);
	MPI_Comm_set_errhandler(across, MPI_ERRORS_RETURN);
	rc = MPI_Bcast(in, 1, MPI_INT, rank == 0 ? MPI_ROOT : 0, across);
	FAILS(rc, rank == 0 ? MPI_SUCCESS : MPI_ERR_OTHER);
	MPI_Comm_free(&across);
	if (rank > 0)
		MPI_Comm_free(&ours);
	MPI_Group_free(&checked);
	MPI_Group_free(&all);
	/* A barrier is a mismatch, too. */
	return MPI_Finalize();
}

int main(int argc, char **argv)
{
	int is_unchecked = argc > 1 && strcmp(argv[1], "unchecked") == 0;
	MPI_Comm comm;

	if (is_unchecked)
		do_without_check();
	program_begin(&argc, &argv);
	odd = rank == size - 1;
	EXPECT(size > 1 && size <= MOST);
	if (is_unchecked)
		return none_waits_for_unchecked();
	if (argc > 1)
		return one_by_name(argv[1]);
	comm = ring(MPI_COMM_WORLD);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	all_fail(cases, CASES, comm);
	forms_never_fit(comm);
	others_do_not_fit(comm);
	groups_do_not_fit(comm);
	calls_in_another_order_fail(comm);
	starts_in_another_order_fit(comm);
	what_is_the_same_fits(comm);
	two_groups_begin();
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
	all_fail(inter_cases, INTER_CASES, inter);
	two_groups_end();
	MPI_Comm_free(&comm);
	return program_end("mismatch");
}
