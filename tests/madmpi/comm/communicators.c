/*
 * Communicators and groups: who is in them, and that their messages do not mix.
 */
#include "../program.h"

#include <limits.h>

static void predefined_ones(void)
{
	char name[MPI_MAX_OBJECT_NAME];
	MPI_Comm dup;
	int r, n, result;

	MPI_Comm_rank(MPI_COMM_SELF, &r);
	MPI_Comm_size(MPI_COMM_SELF, &n);
	EXPECT_INT(r, 0);
	EXPECT_INT(n, 1);
	MPI_Comm_get_name(MPI_COMM_WORLD, name, &n);
	EXPECT(strcmp(name, "MPI_COMM_WORLD") == 0);
	EXPECT_INT(n, 14);
	MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result);
	EXPECT_INT(result, MPI_IDENT);
	MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_SELF, &result);
	EXPECT_INT(result, size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL);
	MPI_Comm_dup(MPI_COMM_SELF, &dup);
	MPI_Comm_size(dup, &n);
	EXPECT_INT(n, 1);
	MPI_Comm_free(&dup);
}

static void messages_stay_in_their_communicator(void)
{
	int next = (rank + 1) % size, previous = (rank - 1 + size) % size;
	int out[2] = { 1, 2 }, in[2] = { 0, 0 }, flag;
	MPI_Comm dup;
	MPI_Request r[2], s[2];

	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Irecv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
		  MPI_COMM_WORLD, &r[0]);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Isend(&out[1], 1, MPI_INT, next, 5, dup, &s[1]);
	MPI_Barrier(dup);
	MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
	EXPECT_INT(flag, 0);
	MPI_Barrier(dup);
	MPI_Irecv(&in[1], 1, MPI_INT, previous, 5, dup, &r[1]);
	MPI_Wait(&r[1], MPI_STATUS_IGNORE);
	EXPECT_INT(in[1], 2);
	MPI_Isend(&out[0], 1, MPI_INT, next, 5, MPI_COMM_WORLD, &s[0]);
	MPI_Wait(&r[0], MPI_STATUS_IGNORE);
	EXPECT_INT(in[0], 1);
	MPI_Waitall(2, s, MPI_STATUSES_IGNORE);
	MPI_Comm_free(&dup);
	EXPECT(dup == MPI_COMM_NULL);
}

static void split_orders_by_key_then_rank(void)
{
	int color = rank % 2, n, r, sum = 0, want = 0, members = 0, source;
	MPI_Status st;
	MPI_Comm part, none;

	for (int i = rank % 2; i < size; i += 2, members++)
		want += i;
	MPI_Comm_split(MPI_COMM_WORLD, color, -rank, &part);
	MPI_Comm_size(part, &n);
	MPI_Comm_rank(part, &r);
	EXPECT_INT(n, members);
	EXPECT_INT(r, members - 1 - rank / 2);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, part);
	EXPECT_INT(sum, want);
	/* Sources are ranks of this communicator. */
	MPI_Sendrecv(&rank, 1, MPI_INT, (r + 1) % n, 1, &source, 1, MPI_INT,
		     MPI_ANY_SOURCE, 1, part, &st);
	EXPECT_INT(st.MPI_SOURCE, (r - 1 + n) % n);
	EXPECT_INT(source, 2 * (members - 1 - st.MPI_SOURCE) + rank % 2);
	MPI_Comm_free(&part);
	MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 3, 0, &none);
	EXPECT((none == MPI_COMM_NULL) == (rank == 0));
	if (none != MPI_COMM_NULL) {
		MPI_Comm_size(none, &n);
		EXPECT_INT(n, size - 1);
		MPI_Comm_free(&none);
	}
}

/* The group of these ranges against that of the ranks one by one. */
static void check_ranges(MPI_Group world, int n, int ranges[][3], int in)
{
	MPI_Group got, want;
	int ranks[64], count = 0, result;

	for (int i = 0; i < n; i++)
		for (int r = ranges[i][0], last = ranges[i][1];
		     ranges[i][2] > 0 ? r <= last : r >= last;
		     r += ranges[i][2])
			ranks[count++] = r;
	if (in) {
		MPI_Group_range_incl(world, n, ranges, &got);
		MPI_Group_incl(world, count, ranks, &want);
	} else {
		MPI_Group_range_excl(world, n, ranges, &got);
		MPI_Group_excl(world, count, ranks, &want);
	}
	MPI_Group_compare(got, want, &result);
	EXPECT_INT(result, MPI_IDENT);
	MPI_Group_free(&got);
	MPI_Group_free(&want);
}

static int range_error(MPI_Group world, int first, int last, int stride)
{
	int range[1][3] = { { first, last, stride } }, class;
	MPI_Group none = MPI_GROUP_NULL;

	MPI_Error_class(MPI_Group_range_incl(world, 1, range, &none), &class);
	EXPECT(none == MPI_GROUP_NULL);
	return class;
}

static void ranges_are_ranks(void)
{
	int last = size - 1, twice[2][3] = { { 0, last, 1 }, { 0, 0, 1 } };
	int up[1][3] = { { 0, last, 2 } }, down[1][3] = { { last, 0, -1 } };
	int two[2][3] = { { last, last, -7 }, { 0, last - 1, 1 } };
	MPI_Group world, none = MPI_GROUP_NULL;
	int class;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int in = 0; in < 2; in++) {
		check_ranges(world, 0, NULL, in);
		check_ranges(world, 1, up, in);
		check_ranges(world, 1, down, in);
		if (size > 1)
			check_ranges(world, 2, two, in);
	}
	EXPECT_INT(range_error(world, 0, last, 0), MPI_ERR_ARG);
	EXPECT_INT(range_error(world, 0, size, 1), MPI_ERR_RANK);
	EXPECT_INT(range_error(world, -1, last, 1), MPI_ERR_RANK);
	EXPECT_INT(range_error(world, 0, 2 * size, size), MPI_ERR_RANK);
	EXPECT_INT(range_error(world, 0, INT_MAX, 1), MPI_ERR_RANK);
	MPI_Error_class(MPI_Group_range_excl(world, 2, twice, &none), &class);
	EXPECT_INT(class, MPI_ERR_RANK);
	MPI_Error_class(MPI_Group_range_incl(world, -1, up, &none), &class);
	EXPECT_INT(class, MPI_ERR_ARG);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Group_free(&world);
}

static void groups_are_sets_with_an_order(void)
{
	MPI_Group world, even, odd, all, none, back;
	int ranks[64], out[64], n = 0, result, r;

	EXPECT(size <= 64);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	for (int i = size - 1; i >= 0; i--)
		if (i % 2 == 0)
			ranks[n++] = i;
	MPI_Group_incl(world, n, ranks, &even);
	MPI_Group_excl(world, n, ranks, &odd);
	MPI_Group_union(even, odd, &all);
	MPI_Group_size(all, &r);
	EXPECT_INT(r, size);
	MPI_Group_compare(all, world, &result);
	EXPECT_INT(result, size <= 2 ? MPI_IDENT : MPI_SIMILAR);
	MPI_Group_intersection(even, odd, &none);
	MPI_Group_size(none, &r);
	EXPECT_INT(r, 0);
	EXPECT(none == MPI_GROUP_EMPTY);
	MPI_Group_difference(all, even, &back);
	MPI_Group_compare(back, odd, &result);
	EXPECT_INT(result, MPI_IDENT);
	MPI_Group_rank(even, &r);
	EXPECT_INT(r, rank % 2 ? MPI_UNDEFINED : n - 1 - rank / 2);
	MPI_Group_translate_ranks(world, n, ranks, even, out);
	for (int i = 0; i < n; i++)
		EXPECT_INT(out[i], i);
	MPI_Group_translate_ranks(even, 1, out, odd, ranks);
	EXPECT_INT(ranks[0], MPI_UNDEFINED);
	MPI_Group_free(&world);
	MPI_Group_free(&even);
	MPI_Group_free(&odd);
	MPI_Group_free(&all);
	if (back != MPI_GROUP_EMPTY)
		MPI_Group_free(&back);
}

static void a_group_becomes_a_communicator(void)
{
	MPI_Group world, some;
	MPI_Comm comm;
	int ranks[64], n = 0, sum = -1, r;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	for (int i = size - 1; i >= 0; i -= 2)
		ranks[n++] = i;
	MPI_Group_incl(world, n, ranks, &some);
	MPI_Comm_create(MPI_COMM_WORLD, some, &comm);
	EXPECT((comm == MPI_COMM_NULL) == ((size - 1 - rank) % 2 != 0));
	if (comm != MPI_COMM_NULL) {
		MPI_Comm_rank(comm, &r);
		EXPECT_INT(ranks[r], rank);
		MPI_Allreduce(&(int){ 1 }, &sum, 1, MPI_INT, MPI_SUM, comm);
		EXPECT_INT(sum, n);
		MPI_Comm_free(&comm);
	}
	MPI_Group_free(&some);
	MPI_Group_free(&world);
}

static void a_freed_communicator_lives_until_its_messages_are_done(void)
{
	int next = (rank + 1) % size, previous = (rank - 1 + size) % size;
	int out = 9, in = 0;
	MPI_Comm dup;
	MPI_Request r[2];

	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Irecv(&in, 1, MPI_INT, previous, 1, dup, &r[0]);
	MPI_Isend(&out, 1, MPI_INT, next, 1, dup, &r[1]);
	MPI_Comm_free(&dup);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	EXPECT_INT(in, 9);
}

static void many_communicators_come_and_go(void)
{
	MPI_Comm comm[50];
	int sum;

	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 50; i++)
			MPI_Comm_dup(i ? comm[i - 1] : MPI_COMM_WORLD,
				     &comm[i]);
		for (int i = 49; i >= 0; i--) {
			MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, comm[i]);
			EXPECT_INT(sum, i * size);
			MPI_Comm_free(&comm[i]);
		}
	}
}

static void children_inherit_the_error_handler(void)
{
	MPI_Errhandler e;
	MPI_Comm dup;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_get_errhandler(dup, &e);
	EXPECT(e == MPI_ERRORS_RETURN);
	MPI_Errhandler_free(&e);
	MPI_Comm_free(&dup);
}

/* --- made by their members only --- */

/* Those of rank >= first, in the opposite order. */
static MPI_Group upper(int first)
{
	MPI_Group world, group;
	int ranks[64], n = 0;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	for (int i = size - 1; i >= first; i--)
		ranks[n++] = i;
	MPI_Group_incl(world, n, ranks, &group);
	MPI_Group_free(&world);
	return group;
}

/* The others do something else meanwhile, and join in none of it. */
static void members_make_their_own(void)
{
	int first = size > 1 ? 1 : 0, n = size - first, r, sum, one = 1, class;
	MPI_Group group = upper(first), none = MPI_GROUP_EMPTY;
	MPI_Comm comm = MPI_COMM_WORLD;

	for (int i = 0; i < 20; i++) {
		if (rank < first)
			break;
		MPI_Comm_create_group(MPI_COMM_WORLD, group, i % 3, &comm);
		MPI_Comm_rank(comm, &r);
		EXPECT_INT(r, size - 1 - rank);
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
		EXPECT_INT(sum, n);
		MPI_Comm_free(&comm);
	}
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	EXPECT_INT(sum, size);
	MPI_Comm_create_group(MPI_COMM_WORLD, none, 0, &comm);
	EXPECT(comm == MPI_COMM_NULL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Error_class(MPI_Comm_create_group(MPI_COMM_WORLD, group, -1, &comm),
			&class);
	EXPECT_INT(class, MPI_ERR_TAG);
	MPI_Error_class(
		MPI_Comm_create_group(MPI_COMM_WORLD, MPI_GROUP_NULL, 0, &comm),
		&class);
	EXPECT_INT(class, MPI_ERR_GROUP);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Group_free(&group);
}

static void who_shares_memory(void)
{
	MPI_Comm comm, none = MPI_COMM_WORLD;
	int n, r, class;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank,
			    MPI_INFO_NULL, &comm);
	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &r);
	EXPECT_INT(n, size); /* the tests run on one machine */
	EXPECT_INT(r, size - 1 - rank);
	MPI_Comm_free(&comm);
	MPI_Comm_split_type(MPI_COMM_WORLD,
			    rank == 0 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0,
			    MPI_INFO_NULL, &comm);
	EXPECT((comm == MPI_COMM_NULL) == (rank == 0));
	if (rank != 0) {
		MPI_Comm_size(comm, &n);
		EXPECT_INT(n, size - 1);
		MPI_Comm_free(&comm);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Error_class(MPI_Comm_split_type(MPI_COMM_WORLD, 12345, 0,
					    MPI_INFO_NULL, &none),
			&class);
	EXPECT_INT(class, MPI_ERR_ARG);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* --- hints --- */

static int hint_is(MPI_Comm comm, const char *key, const char *wanted)
{
	char value[16];
	int room = sizeof(value), flag;
	MPI_Info info;

	MPI_Comm_get_info(comm, &info);
	MPI_Info_get_string(info, key, &room, value, &flag);
	MPI_Info_free(&info);
	return wanted == NULL ? !flag : flag && strcmp(value, wanted) == 0;
}

static void hints_are_kept(void)
{
	MPI_Comm dup, again;
	MPI_Info info;
	int class;

	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
	MPI_Info_set(info, "mpi_assert_exact_length", "perhaps");
	MPI_Info_set(info, "of somebody else", "true");
	MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &dup);
	EXPECT(hint_is(dup, "mpi_assert_no_any_tag", "true"));
	EXPECT(hint_is(dup, "mpi_assert_exact_length", NULL));
	EXPECT(hint_is(dup, "of somebody else", NULL));
	EXPECT(hint_is(MPI_COMM_WORLD, "mpi_assert_no_any_tag", NULL));
	MPI_Info_set(info, "mpi_assert_no_any_tag", "false");
	MPI_Info_set(info, "mpi_assert_allow_overtaking", "true");
	MPI_Comm_set_info(dup, info);
	EXPECT(hint_is(dup, "mpi_assert_no_any_tag", "false"));
	EXPECT(hint_is(dup, "mpi_assert_allow_overtaking", "true"));
	MPI_Comm_dup(dup, &again);
	EXPECT(hint_is(again, "mpi_assert_allow_overtaking", NULL));
	MPI_Comm_free(&again);
	MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
	MPI_Error_class(MPI_Comm_set_info(dup, MPI_INFO_NULL), &class);
	EXPECT_INT(class, MPI_ERR_INFO);
	MPI_Error_class(MPI_Comm_dup_with_info(dup, (MPI_Info)MPI_INT, &again),
			&class);
	EXPECT_INT(class, MPI_ERR_INFO);
	MPI_Info_free(&info);
	MPI_Comm_free(&dup);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	predefined_ones();
	messages_stay_in_their_communicator();
	split_orders_by_key_then_rank();
	groups_are_sets_with_an_order();
	ranges_are_ranks();
	members_make_their_own();
	who_shares_memory();
	hints_are_kept();
	a_group_becomes_a_communicator();
	a_freed_communicator_lives_until_its_messages_are_done();
	many_communicators_come_and_go();
	children_inherit_the_error_handler();
	return program_end("communicators");
}
