/*
 * Communicators that are duplicated in the background: what is copied, and as
 * of when; many at once, among other requests and other operations; the parent
 * is freed meanwhile; it goes on while nobody calls MPI; a copy that fails in
 * one process ends all the same in the others.
 */
#include "../program.h"

enum { N = 50 };

/* Messages of one are not those of another, and all are in it. */
static void use(MPI_Comm comm, int number)
{
	int n, r, sum = 0, got = -1;

	EXPECT(comm != MPI_COMM_NULL);
	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &r);
	EXPECT(n == size && r == rank);
	MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, comm);
	EXPECT_INT(sum, n * number);
	MPI_Sendrecv(&number, 1, MPI_INT, (r + 1) % n, 0, &got, 1, MPI_INT,
		     (r + n - 1) % n, 0, comm, MPI_STATUS_IGNORE);
	EXPECT_INT(got, number);
}

static void one(void)
{
	MPI_Comm comm;
	MPI_Request r;
	int result;

	EXPECT_INT(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &r), MPI_SUCCESS);
	EXPECT(r != MPI_REQUEST_NULL);
	EXPECT_INT(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EXPECT(r == MPI_REQUEST_NULL);
	use(comm, 1);
	MPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
	EXPECT_INT(result, MPI_CONGRUENT);
	MPI_Comm_free(&comm);
}

/* All at once, with collectives of the parent in between; waited for anyhow. */
static void many(void)
{
	MPI_Comm comm[N];
	MPI_Request r[N + 1];
	int sum, got = -1, done = 0, index;

	MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, 77,
		  MPI_COMM_WORLD, &r[N]);
	for (int i = 0; i < N; i++) {
		MPI_Comm_idup(MPI_COMM_WORLD, &comm[i], &r[i]);
		MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		EXPECT_INT(sum, i * size);
	}
	for (; done < N / 2; done++) {
		MPI_Waitany(N, r, &index, MPI_STATUS_IGNORE);
		EXPECT(index >= 0 && index < N);
	}
	MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 77, MPI_COMM_WORLD);
	MPI_Waitall(N + 1, r, MPI_STATUSES_IGNORE);
	EXPECT_INT(got, (rank + size - 1) % size);
	for (int i = N - 1; i >= 0; i--)
		use(comm[i], i);
	for (int i = 0; i < N; i++)
		MPI_Comm_free(&comm[i]);
}

/* Copies of copies; each parent is freed as soon as its child is begun. */
static void generations(void)
{
	MPI_Comm parent, child;
	MPI_Request r;

	MPI_Comm_dup(MPI_COMM_WORLD, &parent);
	for (int i = 0; i < N; i++) {
		MPI_Comm_idup(parent, &child, &r);
		MPI_Comm_free(&parent);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		parent = child;
	}
	use(parent, 5);
	MPI_Comm_free(&parent);
}

/* --- what is copied --- */

static int copied, deleted, failing;

static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out,
		int *flag)
{
	(void)comm;
	(void)keyval;
	(void)extra;
	copied++;
	*(void **)out = (char *)in + 1;
	*flag = 1;
	return failing ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int delete (MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)comm;
	(void)keyval;
	(void)value;
	(void)extra;
	deleted++;
	return MPI_SUCCESS;
}

/* What there is when it is called, and not what is set later. */
static void attributes_and_hints(void)
{
	MPI_Comm parent, comm;
	MPI_Info info, told;
	MPI_Request r;
	char text[8];
	int keyval, flag, room = sizeof(text);
	void *value;

	MPI_Comm_create_keyval(copy, delete, &keyval, NULL);
	MPI_Comm_dup(MPI_COMM_WORLD, &parent);
	MPI_Comm_set_attr(parent, keyval, (void *)100);
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
	MPI_Comm_idup_with_info(parent, info, &comm, &r);
	EXPECT_INT(copied, 1);
	MPI_Comm_set_attr(parent, keyval, (void *)200);
	MPI_Info_set(info, "mpi_assert_no_any_tag", "false");
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Comm_get_attr(comm, keyval, &value, &flag);
	EXPECT(flag && value == (void *)101);
	MPI_Comm_get_info(comm, &told);
	MPI_Info_get_string(told, "mpi_assert_no_any_tag", &room, text, &flag);
	EXPECT(flag && strcmp(text, "true") == 0);
	MPI_Info_free(&told);
	MPI_Info_free(&info);
	MPI_Comm_free(&comm);
	MPI_Comm_free(&parent);
	MPI_Comm_free_keyval(&keyval);
	EXPECT_INT(deleted, 3);
}

/* In the first process the attribute cannot be copied. */
static void a_copy_that_fails(void)
{
	MPI_Comm parent, comm = MPI_COMM_WORLD;
	MPI_Request r;
	int keyval, rc;

	MPI_Comm_create_keyval(copy, delete, &keyval, NULL);
	MPI_Comm_dup(MPI_COMM_WORLD, &parent);
	MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
	MPI_Comm_set_attr(parent, keyval, NULL);
	failing = rank == 0;
	rc = MPI_Comm_idup(parent, &comm, &r);
	EXPECT((rc == MPI_SUCCESS) == (rank != 0));
	if (rank == 0) {
		EXPECT(comm == MPI_COMM_NULL);
	} else {
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		EXPECT(comm != MPI_COMM_NULL);
		MPI_Comm_free(&comm);
	}
	rc = MPI_Comm_dup(parent, &comm);
	EXPECT((rc == MPI_SUCCESS) == (rank != 0));
	EXPECT((comm == MPI_COMM_NULL) == (rank == 0));
	if (rank != 0)
		MPI_Comm_free(&comm);
	failing = 0;
	MPI_Comm_free(&parent);
	MPI_Comm_free_keyval(&keyval);
}

/*
 * Rank 0 computes; what the others wait for needs nobody's call there, but
 * ticks, which there are none of with TSan.
 */
#ifndef __SANITIZE_THREAD__
static void while_the_root_computes(void)
{
	MPI_Request r, release;
	MPI_Comm comm;
	int go = 0;

	if (rank == 0)
		MPI_Irecv(&go, 1, MPI_INT, size - 1, 3, MPI_COMM_WORLD,
			  &release);
	MPI_Comm_idup(MPI_COMM_WORLD, &comm, &r);
	/* The memory changes when the others are through. */
	if (rank == 0)
		while (*(volatile int *)&go == 0)
			;
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	if (rank == size - 1) {
		go = 1;
		MPI_Send(&go, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
	}
	if (rank == 0)
		MPI_Wait(&release, MPI_STATUS_IGNORE);
	use(comm, 9);
	MPI_Comm_free(&comm);
}
#endif

/* The two groups are the lower and the upper half. */
static void of_two_groups(void)
{
	MPI_Comm half, inter, comm;
	MPI_Request r;
	int low = rank < size / 2, n, got = -1;

	MPI_Comm_split(MPI_COMM_WORLD, low, 0, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 4,
			     &inter);
	MPI_Comm_idup(inter, &comm, &r);
	MPI_Comm_free(&inter);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Comm_remote_size(comm, &n);
	EXPECT_INT(n, low ? size - size / 2 : size / 2);
	MPI_Comm_rank(comm, &n);
	if (n == 0) {
		MPI_Sendrecv(&rank, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0,
			     comm, MPI_STATUS_IGNORE);
		EXPECT_INT(got, low ? size / 2 : 0);
	}
	MPI_Comm_free(&comm);
	MPI_Comm_free(&half);
}

static void wrong(void)
{
	MPI_Comm comm, *none = NULL;
	MPI_Request r, *nowhere = NULL;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	FAILS(MPI_Comm_idup(MPI_COMM_NULL, &comm, &r), MPI_ERR_COMM);
	FAILS(MPI_Comm_idup(MPI_COMM_WORLD, none, &r), MPI_ERR_ARG);
	FAILS(MPI_Comm_idup(MPI_COMM_WORLD, &comm, nowhere), MPI_ERR_ARG);
	FAILS(MPI_Comm_idup_with_info(MPI_COMM_WORLD, (MPI_Info)MPI_INT, &comm,
				      &r),
	      MPI_ERR_INFO);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	one();
	many();
	generations();
	attributes_and_hints();
	a_copy_that_fails();
	if (size > 1) {
#ifndef __SANITIZE_THREAD__
		while_the_root_computes();
#endif
		of_two_groups();
	}
	wrong();
	return program_end("idup");
}
