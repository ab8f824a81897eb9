/*
 * A status that the program fills says what was put into it, and one field
 * leaves the others alone.
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
	return program_end("status");
}
