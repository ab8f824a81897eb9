/*
 * A status that the program fills says what was put into it, and one field
 * leaves the others alone. Fortran's statuses say the same.
 */
#include "../program.h"

static void fields(MPI_Status *st)
{
	int source, tag, error;

	MPI_Status_set_source(st, 5);
	MPI_Status_set_tag(st, MPI_ANY_TAG);
	MPI_Status_set_error(st, MPI_ERR_IO);
	MPI_Status_get_source(st, &source);
	MPI_Status_get_tag(st, &tag);
	MPI_Status_get_error(st, &error);
	EXPECT(source == 5 && st->MPI_SOURCE == 5);
	EXPECT(tag == MPI_ANY_TAG && st->MPI_TAG == MPI_ANY_TAG);
	EXPECT(error == MPI_ERR_IO && st->MPI_ERROR == MPI_ERR_IO);
}

static void cancelled(MPI_Status *st)
{
	int flag;

	for (int wanted = 1; wanted >= 0; wanted--) {
		MPI_Status_set_cancelled(st, wanted);
		MPI_Test_cancelled(st, &flag);
		EXPECT_INT(flag != 0, wanted);
	}
}

/* Elements are basic ones: of pairs, two each. */
static void elements(MPI_Status *st)
{
	MPI_Count large = (MPI_Count)1 << 40, elements;
	MPI_Datatype pair;
	int n;

	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	MPI_Status_set_elements(st, pair, 6);
	MPI_Get_count(st, pair, &n);
	EXPECT_INT(n, 3);
	MPI_Get_elements(st, pair, &n);
	EXPECT_INT(n, 6);
	MPI_Status_set_elements(st, pair, 5);
	MPI_Get_count(st, pair, &n);
	EXPECT_INT(n, MPI_UNDEFINED);
	MPI_Status_set_elements_x(st, pair, large);
	MPI_Get_elements_x(st, pair, &elements);
	EXPECT_INT(elements, large);
	MPI_Get_elements(st, pair, &n);
	EXPECT_INT(n, MPI_UNDEFINED);
	MPI_Type_free(&pair);
	FAILS(MPI_Status_set_elements(st, MPI_INT, -1), MPI_ERR_COUNT);
	FAILS(MPI_Status_set_elements(st, MPI_DATATYPE_NULL, 1), MPI_ERR_TYPE);
}

/* Check every field of a status. */
static void says_all(const MPI_Status *st, int cancelled, MPI_Count count)
{
	MPI_Count n;
	int flag;

	EXPECT_INT(st->MPI_SOURCE, 5);
	EXPECT_INT(st->MPI_TAG, 1 << 30);
	EXPECT_INT(st->MPI_ERROR, MPI_ERR_IO);
	MPI_Test_cancelled(st, &flag);
	EXPECT_INT(flag != 0, cancelled);
	MPI_Get_count_c(st, MPI_BYTE, &n);
	EXPECT_INT(n, count);
}

static void through_fortran(int cancelled, MPI_Count count)
{
	MPI_Fint f[MPI_F_STATUS_SIZE], f_again[MPI_F_STATUS_SIZE];
	MPI_F08_status f08, f08_again;
	MPI_Status st, back;

	memset(&st, 0xa5, sizeof(st));
	MPI_Status_set_source(&st, 5);
	MPI_Status_set_tag(&st, 1 << 30);
	MPI_Status_set_error(&st, MPI_ERR_IO);
	MPI_Status_set_cancelled(&st, cancelled);
	MPI_Status_set_elements_c(&st, MPI_BYTE, count);
	EXPECT_INT(MPI_Status_c2f(&st, f), MPI_SUCCESS);
	EXPECT(f[MPI_F_SOURCE] == 5 && f[MPI_F_TAG] == 1 << 30);
	EXPECT_INT(f[MPI_F_ERROR], MPI_ERR_IO);
	EXPECT_INT(MPI_Status_f2c(f, &back), MPI_SUCCESS);
	says_all(&back, cancelled, count);
	EXPECT_INT(MPI_Status_c2f08(&st, &f08), MPI_SUCCESS);
	EXPECT(f08.MPI_SOURCE == 5 && f08.MPI_TAG == 1 << 30);
	EXPECT_INT(f08.MPI_ERROR, MPI_ERR_IO);
	memset(&back, 0, sizeof(back));
	EXPECT_INT(MPI_Status_f082c(&f08, &back), MPI_SUCCESS);
	says_all(&back, cancelled, count);
	EXPECT_INT(MPI_Status_f2f08(f, &f08_again), MPI_SUCCESS);
	EXPECT_INT(MPI_Status_f082f(&f08_again, f_again), MPI_SUCCESS);
	EXPECT_INT(MPI_Status_f082f(&f08, f), MPI_SUCCESS);
	EXPECT(memcmp(&f08, &f08_again, sizeof(f08)) == 0);
	EXPECT(memcmp(f, f_again, sizeof(f)) == 0);
	EXPECT_INT(PMPI_Status_f2c(f_again, &back), MPI_SUCCESS);
	says_all(&back, cancelled, count);
}

/* The statuses of a cancelled receive and of one that completed. */
static void of_receives(void)
{
	MPI_Fint f[MPI_F_STATUS_SIZE];
	MPI_Request request;
	MPI_Status st, back;
	int flag, n, x[3] = { 1, 2, 3 }, y[4];

	MPI_Irecv(y, 4, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
	MPI_Cancel(&request);
	MPI_Wait(&request, &st);
	MPI_Status_c2f(&st, f);
	MPI_Status_f2c(f, &back);
	MPI_Test_cancelled(&back, &flag);
	EXPECT(flag);
	MPI_Sendrecv(x, 3, MPI_INT, 0, 77, y, 4, MPI_INT, 0, MPI_ANY_TAG,
		     MPI_COMM_SELF, &st);
	MPI_Status_c2f(&st, f);
	EXPECT(f[MPI_F_SOURCE] == 0 && f[MPI_F_TAG] == 77);
	MPI_Status_f2c(f, &back);
	MPI_Get_count(&back, MPI_INT, &n);
	EXPECT_INT(n, 3);
	MPI_Test_cancelled(&back, &flag);
	EXPECT(!flag);
}

/* A status that is ignored cannot be converted, and no result is written. */
static void ignored_by_fortran(void)
{
	MPI_Fint mine[MPI_F_STATUS_SIZE] = { 7 }, *f = MPI_F_STATUS_IGNORE;
	MPI_F08_status f08 = { .MPI_SOURCE = 7 };
	MPI_Status st = { .MPI_SOURCE = 7 };

	EXPECT(MPI_F_STATUS_IGNORE != MPI_F_STATUSES_IGNORE);
	EXPECT(MPI_F08_STATUS_IGNORE != MPI_F08_STATUSES_IGNORE);
	FAILS(MPI_Status_f2c(MPI_F_STATUS_IGNORE, &st), MPI_ERR_ARG);
	FAILS(MPI_Status_f2c(MPI_F_STATUSES_IGNORE, &st), MPI_ERR_ARG);
	FAILS(MPI_Status_f2c(NULL, &st), MPI_ERR_ARG);
	FAILS(MPI_Status_f082c(MPI_F08_STATUS_IGNORE, &st), MPI_ERR_ARG);
	FAILS(MPI_Status_f082c(MPI_F08_STATUSES_IGNORE, &st), MPI_ERR_ARG);
	FAILS(MPI_Status_c2f(MPI_STATUS_IGNORE, mine), MPI_ERR_ARG);
	FAILS(MPI_Status_c2f(&st, MPI_F_STATUS_IGNORE), MPI_ERR_ARG);
	FAILS(MPI_Status_c2f08(MPI_STATUSES_IGNORE, &f08), MPI_ERR_ARG);
	FAILS(MPI_Status_c2f08(&st, MPI_F08_STATUSES_IGNORE), MPI_ERR_ARG);
	FAILS(MPI_Status_f2f08(MPI_F_STATUS_IGNORE, &f08), MPI_ERR_ARG);
	FAILS(MPI_Status_f082f(MPI_F08_STATUS_IGNORE, mine), MPI_ERR_ARG);
	EXPECT(mine[0] == 7 && st.MPI_SOURCE == 7 && f08.MPI_SOURCE == 7);
	/* A Fortran binding has an object of its own. */
	MPI_F_STATUS_IGNORE = mine;
	FAILS(MPI_Status_c2f(&st, mine), MPI_ERR_ARG);
	MPI_F_STATUS_IGNORE = f;
	EXPECT_INT(MPI_Status_c2f(&st, mine), MPI_SUCCESS);
}

int main(int argc, char **argv)
{
	MPI_Status st;

	memset(&st, 0, sizeof(st));
	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	fields(&st);
	cancelled(&st);
	elements(&st);
	fields(&st);
	for (int i = 0; i < 2; i++) {
		through_fortran(i, 0);
		through_fortran(i, ((MPI_Count)1 << 31) + 1);
		through_fortran(i, (MPI_Count)1 << 62);
	}
	of_receives();
	ignored_by_fortran();
	return program_end("status");
}
