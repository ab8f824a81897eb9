/*
 * Sessions without MPI_Init: process sets, groups and communicators from them,
 * several sessions at a time, and what happens when one ends.
 */
#include "session.h"

static void no_world_in_a_session(void)
{
	MPI_Session s = session_of_errors_return();
	int flag = 1, n;

	learn(s);
	EXPECT_INT(MPI_Initialized(&flag), MPI_SUCCESS);
	EXPECT_INT(flag, 0);
	MPI_Finalized(&flag);
	EXPECT_INT(flag, 0);
	FAILS(MPI_Comm_size(MPI_COMM_WORLD, &n), MPI_ERR_COMM);
	FAILS(MPI_Comm_size(MPI_COMM_SELF, &n), MPI_ERR_COMM);
	FAILS(MPI_Finalize(), MPI_ERR_OTHER);
	EXPECT_INT(MPI_Session_finalize(&s), MPI_SUCCESS);
	EXPECT(s == MPI_SESSION_NULL);
}

static int number_of(MPI_Info info, const char *key)
{
	char value[MPI_MAX_INFO_VAL] = "";
	int room = sizeof(value), flag = 0;

	MPI_Info_get_string(info, key, &room, value, &flag);
	EXPECT(flag);
	MPI_Info_free(&info);
	return atoi(value);
}

static void process_sets_are_named(void)
{
	MPI_Session s = session_of_errors_return();
	int n = 0, length = 0, found = 0;
	char name[MPI_MAX_PSET_NAME_LEN], part[4];
	MPI_Info info;

	EXPECT_INT(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n), 0);
	EXPECT(n >= 2);
	for (int i = 0; i < n; i++) {
		length = 0; /* asks for the need alone */
		MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &length, NULL);
		EXPECT(length > (int)sizeof(part));
		found = length;
		length = sizeof(part);
		MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &length, part);
		EXPECT_INT(length, found);
		EXPECT(strcmp(part, "mpi") == 0);
		length = sizeof(name);
		MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &length, name);
		EXPECT_INT(length, strlen(name) + 1);
		EXPECT_INT(MPI_Session_get_pset_info(s, name, &info), 0);
		EXPECT_INT(number_of(info, "mpi_size"),
			   strcmp(name, "mpi://WORLD") == 0 ? size : 1);
	}
	FAILS(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, n, &length, name),
	      MPI_ERR_ARG);
	FAILS(MPI_Session_get_pset_info(s, "mpi://MOON", &info), MPI_ERR_ARG);
	MPI_Session_finalize(&s);
}

static void sets_become_groups(void)
{
	MPI_Session s = session_of_errors_return();
	MPI_Group world = group_of(s, "mpi://WORLD");
	MPI_Group again = group_of(s, "MPI://world"), none = MPI_GROUP_EMPTY;
	MPI_Group self = group_of(s, "mpi://SELF");
	int n, relation, zero = 0, where = -1;

	MPI_Group_size(world, &n);
	EXPECT_INT(n, size);
	MPI_Group_size(self, &n);
	EXPECT_INT(n, 1);
	MPI_Group_translate_ranks(self, 1, &zero, world, &where);
	EXPECT_INT(where, rank);
	MPI_Group_compare(world, again, &relation);
	EXPECT_INT(relation, MPI_IDENT);
	FAILS(MPI_Group_from_session_pset(s, "mpi://MOON", &none), MPI_ERR_ARG);
	EXPECT(none == MPI_GROUP_NULL);
	MPI_Group_free(&world);
	MPI_Group_free(&again);
	MPI_Group_free(&self);
	MPI_Session_finalize(&s);
}

static void the_level_is_told(void)
{
	MPI_Session s = MPI_SESSION_NULL;
	char value[64] = "";
	int room = sizeof(value), flag = 0;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "thread_level", "MPI_THREAD_OF_GOLD");
	FAILS(MPI_Session_init(info, MPI_ERRORS_RETURN, &s),
	      MPI_ERR_INFO_VALUE);
	MPI_Info_set(info, "thread_level", "MPI_THREAD_SINGLE");
	EXPECT_INT(MPI_Session_init(info, MPI_ERRORS_RETURN, &s), MPI_SUCCESS);
	MPI_Info_free(&info);
	EXPECT_INT(MPI_Session_get_info(s, &info), MPI_SUCCESS);
	MPI_Info_get_string(info, "thread_level", &room, value, &flag);
	EXPECT(flag && strcmp(value, "MPI_THREAD_MULTIPLE") == 0);
	MPI_Info_free(&info);
	MPI_Session_finalize(&s);
}

static void groups_become_communicators(void)
{
	MPI_Session s = session_of_errors_return();
	MPI_Group world = group_of(s, "mpi://WORLD"), odd, self;
	int ranges[1][3] = { { 1, size - 1, 2 } }, n = 0, relation;
	MPI_Comm all = comm_from(world, "all"), some = MPI_COMM_NULL, alone;
	MPI_Group of_all;

	MPI_Comm_rank(all, &n);
	EXPECT_INT(n, rank);
	expect_works(all, size);
	MPI_Comm_group(all, &of_all);
	MPI_Group_compare(of_all, world, &relation);
	EXPECT_INT(relation, MPI_IDENT);
	MPI_Group_free(&of_all);
	self = group_of(s, "mpi://SELF");
	alone = comm_from(self, "alone");
	expect_works(alone, 1);
	MPI_Group_free(&self);
	/* Only the members call. */
	if (size > 1) {
		MPI_Group_range_incl(world, 1, ranges, &odd);
		if (rank % 2 == 1) {
			some = comm_from(odd, "odd");
			expect_works(some, size / 2);
			MPI_Comm_free(&some);
		} else {
			FAILS(MPI_Comm_create_from_group(
				      odd, "odd", MPI_INFO_NULL,
				      MPI_ERRORS_RETURN, &some),
			      MPI_ERR_GROUP);
		}
		MPI_Group_free(&odd);
	}
	some = all;
	EXPECT_INT(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "none",
					      MPI_INFO_NULL, MPI_ERRORS_RETURN,
					      &some),
		   MPI_SUCCESS);
	EXPECT(some == MPI_COMM_NULL);
	MPI_Comm_free(&alone);
	MPI_Comm_free(&all);
	MPI_Group_free(&world);
	MPI_Session_finalize(&s);
}

/* The first member goes ahead; nobody takes what is of another call. */
static void a_tag_may_come_again(void)
{
	MPI_Session s = session_of_errors_return();
	MPI_Group world = group_of(s, "mpi://WORLD"), most;
	MPI_Comm c[40], of_most;
	int first = 0;

	for (int i = 0; i < 40; i++)
		c[i] = comm_from(world, "again");
	for (int i = 39; i >= 0; i--) {
		expect_works(c[i], size);
		MPI_Comm_free(&c[i]);
	}
	/* The same one for other members is another one. */
	if (size > 2) {
		MPI_Group_excl(world, 1, &first, &most);
		if (rank > 0)
			of_most = comm_from(most, "again");
		c[0] = comm_from(world, "again");
		expect_works(c[0], size);
		if (rank > 0) {
			expect_works(of_most, size - 1);
			MPI_Comm_free(&of_most);
		}
		MPI_Comm_free(&c[0]);
		MPI_Group_free(&most);
	}
	MPI_Group_free(&world);
	MPI_Session_finalize(&s);
}

/* Messages of one session are not another's, whatever they look like. */
static void sessions_are_worlds_of_their_own(void)
{
	MPI_Session s[3];
	MPI_Comm c[3];
	static const int numbers[] = { 0, 1, 2 };
	int to = (rank + 1) % size, from = (rank + size - 1) % size;

	for (int i = 0; i < 3; i++) {
		s[i] = session_of_errors_return();
		c[i] = comm_of(s[i], "mine");
	}
	for (int i = 0; i < 3; i++) {
		MPI_Request r[3];
		int in = -1;

		for (int k = 2; k >= 0; k--)
			MPI_Isend(&numbers[k], 1, MPI_INT, to, 5, c[k], &r[k]);
		for (int k = 0; k < 3; k++) {
			MPI_Recv(&in, 1, MPI_INT, from, 5, c[k],
				 MPI_STATUS_IGNORE);
			EXPECT_INT(in, k);
		}
		MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
	}
	/* One ends, the others go on. */
	MPI_Comm_free(&c[1]);
	EXPECT_INT(MPI_Session_finalize(&s[1]), MPI_SUCCESS);
	expect_works(c[0], size);
	expect_works(c[2], size);
	MPI_Comm_free(&c[0]);
	MPI_Session_finalize(&s[0]);
	expect_works(c[2], size);
	MPI_Comm_free(&c[2]);
	MPI_Session_finalize(&s[2]);
}

static void objects_of_two_sessions_do_not_meet(void)
{
	MPI_Session s = session_of_errors_return();
	MPI_Session t = session_of_errors_return();
	MPI_Group g = group_of(s, "mpi://WORLD"),
		  h = group_of(t, "mpi://WORLD");
	MPI_Comm c = comm_from(g, "c"), d = comm_from(h, "d"), dup, bad;
	MPI_Group made;
	int relation, zero = 0;

	FAILS(MPI_Group_union(g, h, &made), MPI_ERR_GROUP);
	FAILS(MPI_Group_intersection(g, h, &made), MPI_ERR_GROUP);
	FAILS(MPI_Group_difference(h, g, &made), MPI_ERR_GROUP);
	FAILS(MPI_Group_compare(g, h, &relation), MPI_ERR_GROUP);
	FAILS(MPI_Group_translate_ranks(g, 1, &zero, h, &relation),
	      MPI_ERR_GROUP);
	FAILS(MPI_Comm_compare(c, d, &relation), MPI_ERR_COMM);
	FAILS(MPI_Comm_create(c, h, &bad), MPI_ERR_GROUP);
	FAILS(MPI_Comm_create_group(c, h, 0, &bad), MPI_ERR_GROUP);
	/* What is made of an object belongs to the same session. */
	MPI_Comm_dup(c, &dup);
	MPI_Comm_group(dup, &made);
	FAILS(MPI_Group_compare(made, h, &relation), MPI_ERR_GROUP);
	EXPECT_INT(MPI_Group_compare(made, g, &relation), MPI_SUCCESS);
	MPI_Group_free(&made);
	MPI_Group_incl(g, 1, &zero, &made);
	FAILS(MPI_Group_compare(made, h, &relation), MPI_ERR_GROUP);
	MPI_Group_free(&made);
	/* Nobody's meets everybody's. */
	EXPECT_INT(MPI_Group_union(MPI_GROUP_EMPTY, h, &made), MPI_SUCCESS);
	MPI_Group_free(&made);
	MPI_Comm_free(&dup);
	MPI_Comm_free(&c);
	MPI_Comm_free(&d);
	MPI_Group_free(&g);
	MPI_Group_free(&h);
	MPI_Session_finalize(&s);
	MPI_Session_finalize(&t);
}

static int deleted;

static int count(MPI_Comm c, int keyval, void *value, void *extra)
{
	(void)c, (void)keyval, (void)value, (void)extra;
	deleted++;
	return MPI_SUCCESS;
}

/* What the program has not freed goes with its session. */
static void a_session_takes_its_objects_along(void)
{
	MPI_Session s = session_of_errors_return(), gone;
	MPI_Session t = session_of_errors_return();
	MPI_Group g = group_of(s, "mpi://WORLD"), twice;
	MPI_Comm c = comm_from(g, "left"), dup;
	int keyval, n;

	MPI_Comm_dup(c, &dup);
	MPI_Comm_group(c, &twice);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count, &keyval, NULL);
	MPI_Comm_set_attr(c, keyval, NULL);
	MPI_Comm_free_keyval(&keyval);
	expect_works(c, size);
	gone = s;
	EXPECT_INT(MPI_Session_finalize(&s), MPI_SUCCESS);
	EXPECT_INT(deleted, 1);
	FAILS(MPI_Comm_size(c, &n), MPI_ERR_COMM);
	FAILS(MPI_Comm_size(dup, &n), MPI_ERR_COMM);
	FAILS(MPI_Group_size(g, &n), MPI_ERR_GROUP);
	FAILS(MPI_Session_get_num_psets(gone, MPI_INFO_NULL, &n),
	      MPI_ERR_SESSION);
	FAILS(MPI_Session_finalize(&gone), MPI_ERR_SESSION);
	c = comm_of(t, "left");
	expect_works(c, size);
	MPI_Comm_free(&c);
	MPI_Session_finalize(&t);
}

/* A window is nobody's any more, and its memory no longer served. */
static void a_session_takes_its_windows_along(void)
{
	MPI_Session s = session_of_errors_return();
	MPI_Session t = session_of_errors_return();
	MPI_Comm c = comm_of(s, "windows");
	int mine = 0, x = 1, next = (rank + 1) % size;
	MPI_Win kept[2];
	MPI_Group g;
	void *at;

	MPI_Win_create(&mine, sizeof(mine), 1, MPI_INFO_NULL, c, &kept[0]);
	MPI_Win_allocate(sizeof(mine), 1, MPI_INFO_NULL, c, &at, &kept[1]);
	MPI_Win_fence(0, kept[0]);
	MPI_Put(&x, 1, MPI_INT, next, 0, 1, MPI_INT, kept[0]);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, kept[0]);
	EXPECT_INT(mine, 1);
	EXPECT_INT(MPI_Session_finalize(&s), MPI_SUCCESS);
	for (int i = 0; i < 2; i++)
		FAILS(MPI_Win_get_group(kept[i], &g), MPI_ERR_WIN);
	MPI_Session_finalize(&t);
}

/* Processes end and begin sessions when they like: nobody waits for that. */
static void some_end_before_others(void)
{
	MPI_Session s = session_of_errors_return(), t;
	MPI_Comm c = comm_of(s, "first"), d;

	MPI_Comm_free(&c);
	if (rank % 2 == 0) {
		MPI_Session_finalize(&s); /* its last one */
		t = session_of_errors_return();
	} else {
		t = session_of_errors_return();
	}
	d = comm_of(t, "second");
	expect_works(d, size);
	if (rank % 2 == 1)
		MPI_Session_finalize(&s);
	MPI_Comm_free(&d);
	MPI_Session_finalize(&t);
}

static void a_session_has_a_number_while_it_lives(void)
{
	MPI_Session s, kept;
	MPI_Fint number;

	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
	kept = s;
	number = MPI_Session_c2f(s);
	EXPECT(number != 0);
	EXPECT_INT(MPI_Session_toint(s), number);
	EXPECT(MPI_Session_f2c(number) == s);
	EXPECT(MPI_Session_fromint(number) == s);
	EXPECT_INT(MPI_Session_finalize(&s), MPI_SUCCESS);
	EXPECT(MPI_Session_f2c(number) == NULL);
	EXPECT_INT(MPI_Session_c2f(kept), 0);
}

int main(void)
{
	/* Errors of no object return: there is no MPI_COMM_SELF. */
	setenv("MADMPI_INITIAL_ERRHANDLER", "mpi_errors_return", 1);
	no_world_in_a_session();
	a_session_has_a_number_while_it_lives();
	process_sets_are_named();
	sets_become_groups();
	the_level_is_told();
	groups_become_communicators();
	a_tag_may_come_again();
	sessions_are_worlds_of_their_own();
	objects_of_two_sessions_do_not_meet();
	a_session_takes_its_objects_along();
	a_session_takes_its_windows_along();
	some_end_before_others();
	return 0;
}
