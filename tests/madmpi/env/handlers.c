/*
 * Error handlers: which one is called, with what, how long they live, and what
 * they may do; errors of messages, by themselves and among several requests.
 */
#include "../program.h"

#include <pthread.h>

enum { TAG = 5, ROUNDS = 2000, MANY = 100000 };

static MPI_Comm seen_comm;
static int seen, calls;

static void note(MPI_Comm *comm, int *code, ...)
{
	seen_comm = *comm;
	seen = *code;
	calls++;
}

static void was_called(MPI_Comm comm, int class)
{
	EXPECT_INT(calls, 1);
	EXPECT(seen_comm == comm);
	EXPECT_INT(class_of(seen), class);
	calls = 0;
}

static MPI_Comm dup_with(MPI_Comm of, MPI_Comm_errhandler_function *fn)
{
	MPI_Errhandler e;
	MPI_Comm dup;

	MPI_Comm_dup(of, &dup);
	MPI_Comm_create_errhandler(fn, &e);
	MPI_Comm_set_errhandler(dup, e);
	MPI_Errhandler_free(&e);
	EXPECT(e == MPI_ERRHANDLER_NULL);
	return dup;
}

static MPI_Errhandler handler_of(MPI_Comm comm)
{
	MPI_Errhandler e = MPI_ERRHANDLER_NULL;

	EXPECT_INT(MPI_Comm_get_errhandler(comm, &e), MPI_SUCCESS);
	return e;
}

/* --- which one --- */

static void those_of_the_standard_are_known_by_name(void)
{
	const MPI_Errhandler all[] = { MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ABORT,
				       MPI_ERRORS_RETURN };
	MPI_Comm dup;

	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	for (int i = 0; i < 3; i++) {
		MPI_Errhandler e = all[i];

		MPI_Comm_set_errhandler(dup, e);
		EXPECT(handler_of(dup) == all[i]);
		EXPECT_INT(MPI_Errhandler_free(&e), MPI_SUCCESS);
		EXPECT(e == MPI_ERRHANDLER_NULL);
		EXPECT(handler_of(dup) == all[i]);
	}
	MPI_Comm_free(&dup);
}

static void a_copy_has_the_handler_and_then_its_own(void)
{
	MPI_Comm dup = dup_with(MPI_COMM_WORLD, note), copy, part, by_group;
	MPI_Group group;
	MPI_Errhandler e;

	MPI_Comm_dup(dup, &copy);
	MPI_Comm_split(dup, 0, 0, &part);
	MPI_Comm_group(dup, &group);
	MPI_Comm_create_group(dup, group, 0, &by_group);
	MPI_Group_free(&group);
	e = handler_of(dup);
	EXPECT(e != MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
	FAILS(MPI_Send(&calls, 1, MPI_INT, size, TAG, dup), MPI_ERR_RANK);
	EXPECT_INT(calls, 0);
	FAILS(MPI_Send(&calls, 1, MPI_INT, size, TAG, copy), MPI_ERR_RANK);
	was_called(copy, MPI_ERR_RANK);
	FAILS(MPI_Bcast(&calls, 1, MPI_INT, size, part), MPI_ERR_ROOT);
	was_called(part, MPI_ERR_ROOT);
	FAILS(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
	EXPECT_INT(calls, 0);
	FAILS(MPI_Send(&calls, -1, MPI_INT, 0, TAG, by_group), MPI_ERR_COUNT);
	was_called(by_group, MPI_ERR_COUNT);
	EXPECT(handler_of(part) == e);
	/* One for each time that it was asked for. */
	MPI_Errhandler_free(&e);
	e = handler_of(copy);
	MPI_Errhandler_free(&e);
	e = handler_of(copy);
	MPI_Errhandler_free(&e);
	MPI_Comm_free(&dup);
	MPI_Comm_free(&copy);
	MPI_Comm_free(&by_group);
	FAILS(MPI_Send(&calls, 1, MPI_INT, size, TAG, part), MPI_ERR_RANK);
	was_called(part, MPI_ERR_RANK);
	MPI_Comm_free(&part);
}

/* MPI_COMM_SELF's, if it has got one; MPI_COMM_WORLD's before that. */
static void what_concerns_no_communicator(void)
{
	MPI_Errhandler e;
	int n;

	MPI_Comm_create_errhandler(note, &e);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, e);
	FAILS(MPI_Type_size(MPI_DATATYPE_NULL, &n), MPI_ERR_TYPE);
	was_called(MPI_COMM_WORLD, MPI_ERR_TYPE);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, e);
	FAILS(MPI_Type_size(MPI_DATATYPE_NULL, &n), MPI_ERR_TYPE);
	was_called(MPI_COMM_SELF, MPI_ERR_TYPE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	FAILS(MPI_Group_size(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
	was_called(MPI_COMM_SELF, MPI_ERR_GROUP);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	FAILS(MPI_Group_size(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
	EXPECT_INT(calls, 0);
	MPI_Errhandler_free(&e);
}

static void called_by_the_program(void)
{
	MPI_Comm dup = dup_with(MPI_COMM_WORLD, note);
	int class, code;

	MPI_Add_error_class(&class);
	MPI_Add_error_code(class, &code);
	EXPECT_INT(MPI_Comm_call_errhandler(dup, MPI_ERR_SPAWN), MPI_SUCCESS);
	was_called(dup, MPI_ERR_SPAWN);
	EXPECT_INT(MPI_Comm_call_errhandler(dup, code), MPI_SUCCESS);
	EXPECT_INT(seen, code);
	was_called(dup, class);
	MPI_Remove_error_code(code);
	MPI_Remove_error_class(class);
	FAILS(MPI_Comm_call_errhandler(dup, code), MPI_ERR_ARG);
	was_called(dup, MPI_ERR_ARG);
	MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
	EXPECT_INT(MPI_Comm_call_errhandler(dup, MPI_ERR_OTHER), MPI_SUCCESS);
	MPI_Comm_free(&dup);
}

/* --- what one may do --- */

static int depth, deepest;

/* An error in a handler calls it again, with what it has got since. */
static void fails_itself(MPI_Comm *comm, int *code, ...)
{
	int n;

	(void)code;
	calls++;
	if (++depth > deepest)
		deepest = depth;
	MPI_Comm_size(*comm, &n);
	EXPECT_INT(n, size);
	if (depth < 4)
		FAILS(MPI_Send(&n, 1, MPI_INT, size, TAG, *comm), MPI_ERR_RANK);
	else
		MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
	depth--;
}

static void frees_it(MPI_Comm *comm, int *code, ...)
{
	calls++;
	EXPECT_INT(class_of(*code), MPI_ERR_TAG);
	MPI_Comm_free(comm);
}

static void handlers_use_mpi(void)
{
	MPI_Comm dup = dup_with(MPI_COMM_WORLD, fails_itself);

	calls = 0;
	FAILS(MPI_Send(&calls, 1, MPI_INT, 0, -7, dup), MPI_ERR_TAG);
	EXPECT_INT(calls, 4);
	EXPECT_INT(deepest, 4);
	EXPECT(handler_of(dup) == MPI_ERRORS_RETURN);
	FAILS(MPI_Send(&calls, 1, MPI_INT, 0, -7, dup), MPI_ERR_TAG);
	EXPECT_INT(calls, 4);
	MPI_Comm_free(&dup);
	dup = dup_with(MPI_COMM_WORLD, frees_it);
	FAILS(MPI_Send(&calls, 1, MPI_INT, 0, -7, dup), MPI_ERR_TAG);
	EXPECT_INT(calls, 5);
	calls = 0;
}

/* --- errors of messages --- */

/* Four numbers, and room for two; the other way round all goes well. */
static void truncated(MPI_Comm comm, MPI_Request r[2], int in[4])
{
	static int out[4] = { 1, 2, 3, 4 };
	int next = (rank + 1) % size, previous = (rank + size - 1) % size;

	MPI_Irecv(in, 2, MPI_INT, previous, TAG, comm, &r[0]);
	MPI_Irecv(in + 2, 2, MPI_INT, previous, TAG + 1, comm, &r[1]);
	MPI_Send(out, 4, MPI_INT, next, TAG, comm);
	MPI_Send(out, 1, MPI_INT, next, TAG + 1, comm);
}

static void of_one_request(void)
{
	MPI_Comm dup = dup_with(MPI_COMM_WORLD, note);
	int in[4], flag = 0;
	MPI_Request r[2];
	MPI_Status st;

	truncated(dup, r, in);
	FAILS(MPI_Wait(&r[0], &st), MPI_ERR_TRUNCATE);
	was_called(dup, MPI_ERR_TRUNCATE);
	EXPECT(r[0] == MPI_REQUEST_NULL);
	EXPECT(in[0] == 1 && in[1] == 2);
	MPI_Wait(&r[1], &st);
	EXPECT(in[2] == 1 && calls == 0);
	/* Nobody but the request knows the communicator now. */
	truncated(dup, r, in);
	MPI_Wait(&r[1], &st);
	MPI_Comm_free(&dup);
	while (!flag)
		if (class_of(MPI_Test(&r[0], &flag, &st)) != MPI_SUCCESS)
			break;
	EXPECT_INT(calls, 1);
	EXPECT_INT(class_of(seen), MPI_ERR_TRUNCATE);
	calls = 0;
}

static void check_statuses(const MPI_Status st[2])
{
	EXPECT_INT(class_of(st[0].MPI_ERROR), MPI_ERR_TRUNCATE);
	EXPECT_INT(st[1].MPI_ERROR, MPI_SUCCESS);
	EXPECT_INT(st[1].MPI_TAG, TAG + 1);
}

static void of_several_requests(void)
{
	MPI_Comm dup = dup_with(MPI_COMM_WORLD, note);
	int in[4], flag = 0, n = 0, done = 0, index[2];
	MPI_Request r[2];
	MPI_Status st[2];

	truncated(dup, r, in);
	FAILS(MPI_Waitall(2, r, st), MPI_ERR_IN_STATUS);
	was_called(dup, MPI_ERR_IN_STATUS);
	check_statuses(st);
	EXPECT(r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL);
	truncated(dup, r, in);
	FAILS(MPI_Waitall(2, r, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
	was_called(dup, MPI_ERR_IN_STATUS);
	truncated(dup, r, in);
	while (!flag)
		if (class_of(MPI_Testall(2, r, &flag, st)) != MPI_SUCCESS)
			break;
	was_called(dup, MPI_ERR_IN_STATUS);
	check_statuses(st);
	truncated(dup, r, in);
	while (done < 2) {
		int rc = MPI_Waitsome(2, r, &n, index, st), bad = 0;

		for (int i = 0; i < n; i++) {
			int error = class_of(st[i].MPI_ERROR);

			EXPECT_INT(error, index[i] == 0 ? MPI_ERR_TRUNCATE
							: MPI_SUCCESS);
			bad += error != MPI_SUCCESS;
		}
		EXPECT_INT(class_of(rc), bad ? MPI_ERR_IN_STATUS : MPI_SUCCESS);
		done += n;
	}
	was_called(dup, MPI_ERR_IN_STATUS);
	truncated(dup, r, in);
	MPI_Wait(&r[1], MPI_STATUS_IGNORE);
	FAILS(MPI_Waitany(2, r, &n, st), MPI_ERR_TRUNCATE);
	EXPECT_INT(n, 0);
	was_called(dup, MPI_ERR_TRUNCATE);
	MPI_Comm_free(&dup);
}

/* It is like any other receive. */
static void by_a_persistent_request(MPI_Datatype type, int class)
{
	char out[4] = { 1, 2, 3, 4 };
	int whole = calls_are_compared() ? MPI_ERR_TYPE : MPI_SUCCESS;
	MPI_Request r;
	int in[8];

	MPI_Recv_init(in, 1, type, 0, TAG, MPI_COMM_SELF, &r);
	for (int i = 0; i < 3; i++) {
		MPI_Start(&r);
		MPI_Send(out, i == 1 ? 4 : 3, MPI_CHAR, 0, TAG, MPI_COMM_SELF);
		FAILS(MPI_Wait(&r, MPI_STATUS_IGNORE), i == 1 ? whole : class);
	}
	MPI_Request_free(&r);
	MPI_Irecv(in, 1, type, 0, TAG, MPI_COMM_SELF, &r);
	MPI_Send(out, 3, MPI_CHAR, 0, TAG, MPI_COMM_SELF);
	FAILS(MPI_Wait(&r, MPI_STATUS_IGNORE), class);
}

/* Three bytes are no number of four; only what lies in pieces is looked at. */
static void an_element_that_is_cut(void)
{
	char out[4] = { 1, 2, 3, 4 };
	int whole = calls_are_compared() ? MPI_ERR_TYPE : MPI_SUCCESS;
	MPI_Datatype apart;
	MPI_Request r;
	MPI_Status st;
	int in[8];

	MPI_Type_vector(2, 1, 2, MPI_INT, &apart);
	MPI_Type_commit(&apart);
	MPI_Isend(out, 3, MPI_CHAR, 0, TAG, MPI_COMM_SELF, &r);
	FAILS(MPI_Recv(in, 1, apart, 0, TAG, MPI_COMM_SELF, &st), MPI_ERR_TYPE);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Irecv(in, 1, apart, 0, TAG, MPI_COMM_SELF, &r);
	MPI_Send(out, 3, MPI_CHAR, 0, TAG, MPI_COMM_SELF);
	FAILS(MPI_Waitall(1, &r, &st), MPI_ERR_IN_STATUS);
	EXPECT_INT(class_of(st.MPI_ERROR), MPI_ERR_TYPE);
	FAILS(MPI_Sendrecv(out, 3, MPI_CHAR, 0, TAG, in, 1, apart, 0, TAG,
			   MPI_COMM_SELF, &st),
	      MPI_ERR_TYPE);
	FAILS(MPI_Sendrecv(out, 4, MPI_CHAR, 0, TAG, in, 1, apart, 0, TAG,
			   MPI_COMM_SELF, &st),
	      whole);
	by_a_persistent_request(MPI_INT, whole);
	by_a_persistent_request(apart, MPI_ERR_TYPE);
	MPI_Type_free(&apart);
}

/* --- many of them --- */

static void made_and_freed(void)
{
	MPI_Errhandler e;
	MPI_Comm dup;

	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	for (int i = 0; i < MANY; i++) {
		MPI_Comm_create_errhandler(note, &e);
		MPI_Comm_set_errhandler(dup, e);
		MPI_Errhandler_free(&e);
	}
	FAILS(MPI_Send(&calls, 1, MPI_INT, size, TAG, dup), MPI_ERR_RANK);
	was_called(dup, MPI_ERR_RANK);
	MPI_Comm_free(&dup);
}

static MPI_Comm common;

static void quiet(MPI_Comm *comm, int *code, ...)
{
	EXPECT(*comm == common);
	EXPECT_INT(class_of(*code), MPI_ERR_RANK);
}

static void *changes(void *arg)
{
	MPI_Errhandler e;

	for (int i = 0; i < ROUNDS; i++) {
		MPI_Comm_create_errhandler(quiet, &e);
		MPI_Comm_set_errhandler(common, i % 2 ? e : MPI_ERRORS_RETURN);
		MPI_Errhandler_free(&e);
	}
	return arg;
}

/* It is there while it is called, whoever gives the communicator another. */
static void while_others_change_it(void)
{
	MPI_Errhandler e;
	pthread_t t;
	int x = 0;

	MPI_Comm_dup(MPI_COMM_WORLD, &common);
	pthread_create(&t, NULL, changes, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		FAILS(MPI_Send(&x, 1, MPI_INT, size, TAG, common),
		      MPI_ERR_RANK);
		e = handler_of(common);
		MPI_Errhandler_free(&e);
	}
	pthread_join(t, NULL);
	MPI_Comm_free(&common);
}

#ifdef MPI_ABI_VERSION
static int file_calls;

static void note_file(MPI_File *file, int *code, ...)
{
	EXPECT(*file == MPI_FILE_NULL);
	seen = *code;
	file_calls++;
}

static void file_handler_was_called(int class)
{
	EXPECT_INT(file_calls, 1);
	EXPECT_INT(class_of(seen), class);
	file_calls = 0;
}

static MPI_Errhandler file_handler(void)
{
	MPI_Errhandler e = MPI_ERRHANDLER_NULL;

	EXPECT_INT(MPI_File_get_errhandler(MPI_FILE_NULL, &e), MPI_SUCCESS);
	return e;
}

static int open_file(void)
{
	MPI_File file = MPI_FILE_NULL;
	int rc = MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDONLY,
			       MPI_INFO_NULL, &file);

	EXPECT(file == MPI_FILE_NULL);
	return class_of(rc);
}

/* There are no files: what fails for that goes to the handler of none. */
static void of_no_file(void)
{
	MPI_Errhandler e, same, of_comm;

	EXPECT(file_handler() == MPI_ERRORS_RETURN);
	EXPECT_INT(open_file(), MPI_ERR_UNSUPPORTED_OPERATION);
	FAILS(MPI_Register_datarep("tape", NULL, NULL, NULL, NULL),
	      MPI_ERR_UNSUPPORTED_OPERATION);
	EXPECT_INT(MPI_File_create_errhandler(note_file, &e), MPI_SUCCESS);
	EXPECT_INT(MPI_File_set_errhandler(MPI_FILE_NULL, e), MPI_SUCCESS);
	same = file_handler();
	EXPECT(same == e);
	MPI_Errhandler_free(&same);
	MPI_Errhandler_free(&e);
	EXPECT_INT(open_file(), MPI_ERR_UNSUPPORTED_OPERATION);
	file_handler_was_called(MPI_ERR_UNSUPPORTED_OPERATION);
	EXPECT_INT(MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_NO_SPACE),
		   MPI_SUCCESS);
	file_handler_was_called(MPI_ERR_NO_SPACE);
	FAILS(MPI_File_set_errhandler((MPI_File)MPI_COMM_WORLD,
				      MPI_ERRORS_RETURN),
	      MPI_ERR_FILE);
	file_handler_was_called(MPI_ERR_FILE);
	MPI_Comm_create_errhandler(note, &of_comm);
	FAILS(MPI_File_set_errhandler(MPI_FILE_NULL, of_comm),
	      MPI_ERR_ERRHANDLER);
	file_handler_was_called(MPI_ERR_ERRHANDLER);
	MPI_Errhandler_free(&of_comm);
	EXPECT_INT(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN),
		   MPI_SUCCESS);
	EXPECT_INT(open_file(), MPI_ERR_UNSUPPORTED_OPERATION);
	EXPECT_INT(file_calls + calls, 0);
}
#endif

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
#ifdef MPI_ABI_VERSION
	of_no_file();
#endif
	what_concerns_no_communicator();
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	those_of_the_standard_are_known_by_name();
	a_copy_has_the_handler_and_then_its_own();
	called_by_the_program();
	handlers_use_mpi();
	of_one_request();
	of_several_requests();
	an_element_that_is_cut();
	made_and_freed();
	while_others_change_it();
	return program_end("handlers");
}
