/*
 * A process that cannot do its part of a collective operation tells the others
 * with what it sends: whose result depends on it gets the error, nobody hangs,
 * and the communicator is as good as before.
 */
#include <sys/mman.h>

#include "../program.h"

enum form { BLOCKING, NONBLOCKING, PERSISTENT, NFORMS };
enum what { REDUCE, ALLREDUCE, SCAN, EXSCAN, BLOCK, WHATS };
enum { MOST = 64, PAGE = 4096 };

static MPI_Comm comm;
static MPI_Op sum;
static MPI_Datatype two, apart;

/*
 * Elements of two integers whose distance no memory can be found for, so that a
 * process which has them there cannot have a copy.
 */
static int *near;

static void make_apart(void)
{
	int one[2] = { 1, 1 };
	MPI_Datatype type;
	MPI_Aint at[2];
	char *far;

	near = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	far = mmap((void *)0x10000000, PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT((void *)near != MAP_FAILED && (void *)far != MAP_FAILED);
	EXPECT((char *)near - far > 1l << 45 || far - (char *)near > 1l << 45);
	at[0] = 0;
	at[1] = far - (char *)near;
	MPI_Type_create_hindexed(2, one, at, MPI_INT, &type);
	MPI_Type_create_resized(type, 0, 2 * sizeof(int), &apart);
	MPI_Type_commit(&apart);
	MPI_Type_free(&type);
	MPI_Type_contiguous(2, MPI_INT, &two);
	MPI_Type_commit(&two);
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	int *a = in, *b = inout;

	(void)type;
	for (int i = 0; i < 2 * *n; i++)
		b[i] += a[i];
}

#define FORMS(form, name, lower, ...)                                          \
	((form) == BLOCKING ? MPI_##name(__VA_ARGS__)                          \
	 : (form) == NONBLOCKING                                               \
		 ? MPI_I##lower(__VA_ARGS__, r)                                \
		 : MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, r))

/* The end of what has begun so: its class. */
static int end(enum form form, int rc, MPI_Request *r)
{
	if (form == PERSISTENT)
		MPI_Start(r);
	if (form != BLOCKING)
		rc = MPI_Wait(r, MPI_STATUS_IGNORE);
	if (form == PERSISTENT)
		MPI_Request_free(r);
	return class_of(rc);
}

static int reduce(enum what what, enum form form, const int *in, int *out,
		  MPI_Datatype t)
{
	MPI_Request request, *r = &request;
	int rc;

	if (what == REDUCE)
		rc = FORMS(form, Reduce, reduce, in, out, 1, t, sum, 0, comm);
	else if (what == ALLREDUCE)
		rc = FORMS(form, Allreduce, allreduce, in, out, 1, t, sum,
			   comm);
	else if (what == SCAN)
		rc = FORMS(form, Scan, scan, in, out, 1, t, sum, comm);
	else if (what == EXSCAN)
		rc = FORMS(form, Exscan, exscan, in, out, 1, t, sum, comm);
	else
		rc = FORMS(form, Reduce_scatter_block, reduce_scatter_block, in,
			   out, 1, t, sum, comm);
	return end(form, rc, r);
}

/* Of 1 + rank from each: what comes out in this process; -1: nothing. */
static int result(enum what what)
{
	if (what == REDUCE && rank > 0)
		return -1;
	if (what == SCAN)
		return (rank + 1) * (rank + 2) / 2;
	if (what == EXSCAN)
		return rank > 0 ? rank * (rank + 1) / 2 : -1;
	return size * (size + 1) / 2;
}

static int depends(enum what what, int on)
{
	if (what == REDUCE)
		return rank == 0;
	if (what == SCAN || what == EXSCAN)
		return rank > on;
	return 1;
}

static void all_is_well(void)
{
	int in = 1, out = 0;

	EXPECT_INT(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm),
		   MPI_SUCCESS);
	EXPECT_INT(out, size);
}

static void one_has_no_memory(enum what what, enum form form, int which)
{
	int in[2 * MOST], out[2] = { -1, -1 }, class;

	for (int i = 0; i < 2 * size; i++)
		in[i] = 1 + rank;
	if (rank == which)
		class = reduce(what, form, near, near + 2 * MOST, apart);
	else
		class = reduce(what, form, in, out, two);
	if (rank == which || depends(what, which))
		EXPECT_INT(class, MPI_ERR_NO_MEM);
	else
		EXPECT(class == MPI_SUCCESS || class == MPI_ERR_NO_MEM);
	if (class == MPI_SUCCESS)
		EXPECT(out[0] == result(what) && out[1] == result(what));
}

/* And those behind it in the tree. */
static void one_expects_less(enum form form, int which)
{
	int n = rank == which ? 2 : 4, class, below = which & -which;
	int buf[4] = { rank, rank, rank, rank };
	MPI_Request request, *r = &request;

	class = end(form, FORMS(form, Bcast, bcast, buf, n, MPI_INT, 0, comm),
		    r);
	if (rank >= which && rank < which + below)
		EXPECT_INT(class, MPI_ERR_TRUNCATE);
	else
		EXPECT(class == MPI_SUCCESS && buf[0] == 0 && buf[3] == 0);
}

/* What has no data can be wrong, too. */
static void of_empty_messages(enum form form, int which)
{
	int scounts[MOST] = { 0 }, rcounts[MOST] = { 0 }, displs[MOST] = { 0 };
	int in[2] = { 0 }, out[2], class;
	MPI_Request request, *r = &request;

	scounts[which] = rank == (which + size - 1) % size ? 2 : 0;
	rcounts[(which + size - 1) % size] = rank == which;
	class = end(form,
		    FORMS(form, Alltoallv, alltoallv, in, scounts, displs,
			  MPI_INT, out, rcounts, displs, MPI_INT, comm),
		    r);
	if (rank == which || rank == (which + 2) % size)
		EXPECT_INT(class, MPI_ERR_TRUNCATE);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	EXPECT(size <= MOST);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Op_create(add, 1, &sum);
	make_apart();
	for (enum form form = 0; form < NFORMS; form++)
		for (int which = 0; which < size; which++) {
			for (enum what what = 0; what < WHATS; what++)
				one_has_no_memory(what, form, which);
			if (which > 0)
				one_expects_less(form, which);
			if (size > 2)
				of_empty_messages(form, which);
			all_is_well();
		}
	MPI_Op_free(&sum);
	MPI_Type_free(&two);
	MPI_Type_free(&apart);
	MPI_Comm_free(&comm);
	return program_end("failures");
}
