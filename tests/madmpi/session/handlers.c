/*
 * Error handlers of sessions, and who is told of what.
 */
#include "session.h"

static int calls, last;
static MPI_Session told;

static void handler(MPI_Session *session, int *code, ...)
{
	calls++;
	last = class_of(*code);
	told = *session;
}

static int comm_calls;

static void comm_handler(MPI_Comm *comm, int *code, ...)
{
	comm_calls++;
	last = class_of(*code);
	EXPECT(*comm == MPI_COMM_NULL);
}

static void ignore(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
}

static void expect_told(int n, int class, MPI_Session s)
{
	EXPECT_INT(calls, n);
	EXPECT_INT(last, class);
	EXPECT(told == s);
}

/* A handler that is made before there is any session. */
static void a_handler_is_told_of_its_session(void)
{
	MPI_Errhandler e, same;
	MPI_Session s, t;
	MPI_Group g, part;
	int n;

	EXPECT_INT(MPI_Session_create_errhandler(handler, &e), MPI_SUCCESS);
	EXPECT_INT(MPI_Session_init(MPI_INFO_NULL, e, &s), MPI_SUCCESS);
	learn(s);
	t = session_of_errors_return();
	FAILS(MPI_Session_get_num_psets(s, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
	expect_told(1, MPI_ERR_ARG, s);
	FAILS(MPI_Session_get_num_psets(t, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
	EXPECT_INT(calls, 1);
	EXPECT_INT(MPI_Session_set_errhandler(t, e), MPI_SUCCESS);
	FAILS(MPI_Session_get_num_psets(t, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
	expect_told(2, MPI_ERR_ARG, t);
	EXPECT_INT(MPI_Session_get_errhandler(t, &same), MPI_SUCCESS);
	EXPECT(same == e);
	MPI_Errhandler_free(&same);
	EXPECT_INT(MPI_Session_call_errhandler(s, MPI_ERR_OTHER), MPI_SUCCESS);
	expect_told(3, MPI_ERR_OTHER, s);
	FAILS(MPI_Session_call_errhandler(s, -1), MPI_ERR_ARG);
	expect_told(4, MPI_ERR_ARG, s);
	/* It lives while a session has it. */
	MPI_Errhandler_free(&e);
	MPI_Session_set_errhandler(t, MPI_ERRORS_RETURN);
	FAILS(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 77, &n, NULL),
	      MPI_ERR_ARG);
	expect_told(5, MPI_ERR_ARG, s);
	/* And of its groups. */
	g = group_of(s, "mpi://WORLD");
	FAILS(MPI_Group_size(g, NULL), MPI_ERR_ARG);
	expect_told(6, MPI_ERR_ARG, s);
	FAILS(MPI_Group_incl(g, 1, &size, &part), MPI_ERR_RANK);
	expect_told(7, MPI_ERR_RANK, s);
	MPI_Group_free(&g);
	MPI_Session_finalize(&s);
	MPI_Session_finalize(&t);
}

static void a_failing_begin_is_told(void)
{
	MPI_Session s = MPI_SESSION_NULL;
	MPI_Errhandler e;
	MPI_Info info, gone;

	calls = 0;
	MPI_Session_create_errhandler(handler, &e);
	MPI_Info_create(&info);
	gone = info;
	MPI_Info_free(&info);
	FAILS(MPI_Session_init(gone, e, &s), MPI_ERR_INFO);
	expect_told(1, MPI_ERR_INFO, MPI_SESSION_NULL);
	FAILS(MPI_Session_init(MPI_INFO_NULL, e, NULL), MPI_ERR_ARG);
	expect_told(2, MPI_ERR_ARG, MPI_SESSION_NULL);
	EXPECT(s == MPI_SESSION_NULL);
	MPI_Errhandler_free(&e);
}

static void handlers_are_of_one_kind(void)
{
	MPI_Errhandler of_comm, of_session;
	MPI_Session s, t;
	MPI_Comm c;

	s = session_of_errors_return();
	MPI_Comm_create_errhandler(ignore, &of_comm);
	MPI_Session_create_errhandler(handler, &of_session);
	FAILS(MPI_Session_init(MPI_INFO_NULL, of_comm, &t), MPI_ERR_ERRHANDLER);
	FAILS(MPI_Session_set_errhandler(s, of_comm), MPI_ERR_ERRHANDLER);
	c = comm_of(s, "kinds");
	MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
	FAILS(MPI_Comm_set_errhandler(c, of_session), MPI_ERR_ERRHANDLER);
	MPI_Comm_free(&c);
	MPI_Session_finalize(&s);
	MPI_Errhandler_free(&of_comm);
	MPI_Errhandler_free(&of_session);
}

/* That of the communicator to be is told what goes wrong, and is its own. */
static void a_communicator_is_given_its_handler(void)
{
	MPI_Session s = session_of_errors_return();
	MPI_Group g = group_of(s, "mpi://WORLD");
	MPI_Comm c = MPI_COMM_NULL;
	MPI_Errhandler e, same;
	char tag[MPI_MAX_STRINGTAG_LEN + 1];

	memset(tag, 'x', sizeof(tag));
	tag[MPI_MAX_STRINGTAG_LEN] = '\0';
	MPI_Comm_create_errhandler(comm_handler, &e);
	FAILS(MPI_Comm_create_from_group(g, NULL, MPI_INFO_NULL, e, &c),
	      MPI_ERR_ARG);
	EXPECT_INT(comm_calls, 1);
	FAILS(MPI_Comm_create_from_group(g, tag, MPI_INFO_NULL, e, &c),
	      MPI_ERR_ARG);
	FAILS(MPI_Comm_create_from_group(MPI_GROUP_NULL, "tag", MPI_INFO_NULL,
					 e, &c),
	      MPI_ERR_GROUP);
	FAILS(MPI_Comm_create_from_group(g, "tag", MPI_INFO_NULL, e, NULL),
	      MPI_ERR_ARG);
	EXPECT_INT(comm_calls, 4);
	FAILS(MPI_Comm_create_from_group(g, "tag", MPI_INFO_NULL,
					 MPI_ERRHANDLER_NULL, &c),
	      MPI_ERR_ERRHANDLER);
	EXPECT_INT(comm_calls, 4);
	tag[MPI_MAX_STRINGTAG_LEN - 1] = '\0'; /* the longest */
	EXPECT_INT(MPI_Comm_create_from_group(g, tag, MPI_INFO_NULL, e, &c),
		   MPI_SUCCESS);
	MPI_Comm_get_errhandler(c, &same);
	EXPECT(same == e);
	MPI_Errhandler_free(&same);
	MPI_Errhandler_free(&e);
	MPI_Comm_free(&c);
	MPI_Group_free(&g);
	MPI_Session_finalize(&s);
}

static void sessions_have_numbers(void)
{
	MPI_Session s = session_of_errors_return();
	int number = MPI_Session_toint(s);

	EXPECT(number != 0 && number != MPI_Session_toint(MPI_SESSION_NULL));
	EXPECT(MPI_Session_fromint(number) == s);
	EXPECT(MPI_Session_fromint(MPI_Session_toint(MPI_SESSION_NULL)) ==
	       MPI_SESSION_NULL);
	MPI_Session_finalize(&s);
	EXPECT(MPI_Session_fromint(number) == NULL);
}

int main(void)
{
	setenv("MADMPI_INITIAL_ERRHANDLER", "mpi_errors_return", 1);
	a_handler_is_told_of_its_session();
	a_failing_begin_is_told();
	handlers_are_of_one_kind();
	a_communicator_is_given_its_handler();
	sessions_have_numbers();
	return 0;
}
