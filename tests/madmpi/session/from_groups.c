/*
 * MPI_Intercomm_create_from_groups: two groups without a communicator between
 * them.
 */
#include "session.h"

static MPI_Group world, low, high, mine, other;
static int is_low, nlow;

/* The two halves of the processes, the second one not the smaller. */
static void halve(MPI_Session s)
{
	int first[1][3] = { { 0, size / 2 - 1, 1 } };
	int second[1][3] = { { size / 2, size - 1, 1 } };

	world = group_of(s, "mpi://WORLD");
	MPI_Group_range_incl(world, 1, first, &low);
	MPI_Group_range_incl(world, 1, second, &high);
	nlow = size / 2;
	is_low = rank < nlow;
	mine = is_low ? low : high;
	other = is_low ? high : low;
}

static int create(int local_leader, MPI_Group remote, int remote_leader,
		  MPI_Comm *out)
{
	return MPI_Intercomm_create_from_groups(
		mine, local_leader, remote, remote_leader, "meet",
		MPI_INFO_NULL, MPI_ERRORS_RETURN, out);
}

static void expect_inter(MPI_Comm c)
{
	int flag = 0, n, sum = -1, one = 1;
	MPI_Comm both;

	MPI_Comm_test_inter(c, &flag);
	EXPECT(flag);
	MPI_Comm_size(c, &n);
	EXPECT_INT(n, is_low ? nlow : size - nlow);
	MPI_Comm_remote_size(c, &n);
	EXPECT_INT(n, is_low ? size - nlow : nlow);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c);
	EXPECT_INT(sum, n);
	MPI_Intercomm_merge(c, !is_low, &both);
	expect_works(both, size);
	MPI_Comm_rank(both, &n);
	EXPECT_INT(n, rank);
	MPI_Comm_free(&both);
}

static void two_groups_meet(void)
{
	MPI_Comm c = MPI_COMM_NULL;

	EXPECT_INT(create(0, other, 0, &c), MPI_SUCCESS);
	expect_inter(c);
	MPI_Comm_free(&c);
}

/* The remote group matters to the leader only. */
static void leaders_know_the_other_group(void)
{
	int ours = (is_low ? nlow : size - nlow) - 1, rank_here;
	int theirs = (is_low ? size - nlow : nlow) - 1;
	MPI_Comm c = MPI_COMM_NULL;

	MPI_Group_rank(mine, &rank_here);
	if (rank_here == ours)
		EXPECT_INT(create(ours, other, theirs, &c), MPI_SUCCESS);
	else
		EXPECT_INT(create(ours, MPI_GROUP_NULL, -7, &c), MPI_SUCCESS);
	expect_inter(c);
	MPI_Comm_free(&c);
}

static void none_with_nobody(void)
{
	MPI_Comm c = MPI_COMM_WORLD;

	EXPECT_INT(create(0, MPI_GROUP_EMPTY, 0, &c), MPI_SUCCESS);
	EXPECT(c == MPI_COMM_NULL);
}

/* All of the group hear of what its leader has found. */
static void errors_are_the_groups(void)
{
	MPI_Comm c = MPI_COMM_NULL;

	FAILS(create(-1, other, 0, &c), MPI_ERR_RANK);
	FAILS(create(0, other, size, &c), MPI_ERR_RANK);
	FAILS(create(0, world, 0, &c), MPI_ERR_GROUP);
	FAILS(create(0, MPI_GROUP_NULL, 0, &c), MPI_ERR_GROUP);
	EXPECT(c == MPI_COMM_NULL);
}

int main(void)
{
	MPI_Session s;

	setenv("MADMPI_INITIAL_ERRHANDLER", "mpi_errors_return", 1);
	s = session_of_errors_return();
	learn(s);
	halve(s);
	two_groups_meet();
	leaders_know_the_other_group();
	none_with_nobody();
	errors_are_the_groups();
	MPI_Group_free(&world);
	MPI_Group_free(&low);
	MPI_Group_free(&high);
	MPI_Session_finalize(&s);
	return 0;
}
