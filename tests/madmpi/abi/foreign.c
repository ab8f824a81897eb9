/*
 * A program built with nothing of this library: its header is made from the
 * tables of the ABI, and it is bound when it calls. It calls all functions of
 * the table in a place that is never reached, and one that no library has.
 */
#include "tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(x)                                                              \
	do {                                                                   \
		if (!(x)) {                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,     \
				#x);                                           \
			exit(1);                                               \
		}                                                              \
	} while (0)

static int rank, size, seen;

static void handler(MPI_Comm *comm, int *code, ...)
{
	EXPECT(*comm == MPI_COMM_WORLD);
	seen = *code;
}

static void keep_larger(void *in, void *inout, int *n, MPI_Datatype *type)
{
	EXPECT(*type == MPI_INT);
	for (int i = 0; i < *n; i++)
		if (((int *)in)[i] > ((int *)inout)[i])
			((int *)inout)[i] = ((int *)in)[i];
}

static void messages(void)
{
	int out[3] = { rank, 20, 30 }, in[3] = { -1, -1, -1 };
	MPI_Count n = -1;
	MPI_Datatype every_other;
	MPI_Request r;
	MPI_Status st;

	MPI_Type_vector(2, 1, 2, MPI_INT, &every_other);
	MPI_Type_commit(&every_other);
	MPI_Irecv(in, 1, every_other, MPI_ANY_SOURCE, MPI_ANY_TAG,
		  MPI_COMM_WORLD, &r);
	MPI_Send_c(out, 2, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD);
	MPI_Wait(&r, &st);
	EXPECT(r == MPI_REQUEST_NULL);
	EXPECT(st.MPI_SOURCE == (rank + size - 1) % size && st.MPI_TAG == 7);
	EXPECT(in[0] == st.MPI_SOURCE && in[1] == -1 && in[2] == 20);
	MPI_Get_count_c(&st, MPI_INT, &n);
	EXPECT(n == 2);
	MPI_Type_free(&every_other);
	EXPECT(every_other == MPI_DATATYPE_NULL);
	MPI_Send(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
}

static void collectives(void)
{
	int largest = -1, sum = rank;
	MPI_Op op;

	MPI_Op_create(keep_larger, 1, &op);
	MPI_Allreduce(&rank, &largest, 1, MPI_INT, op, MPI_COMM_WORLD);
	EXPECT(largest == size - 1);
	MPI_Op_free(&op);
	MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	EXPECT(sum == size * (size - 1) / 2);
}

static void objects(void)
{
	MPI_Errhandler e;
	int *ub, flag, key;
	void *value;
	MPI_Comm dup;

	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &ub, &flag);
	EXPECT(flag && *ub >= 32767);
	MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key,
			       NULL);
	MPI_Comm_set_attr(MPI_COMM_WORLD, key, &key);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Comm_get_attr(dup, key, &value, &flag);
	EXPECT(flag && value == &key);
	MPI_Comm_free(&dup);
	MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
	MPI_Comm_free_keyval(&key);
	EXPECT(key == MPI_KEYVAL_INVALID);
	MPI_Comm_create_errhandler(handler, &e);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, e);
	MPI_Errhandler_free(&e);
	EXPECT(MPI_Send(&key, 1, MPI_INT, size, 0, MPI_COMM_WORLD) ==
		       MPI_ERR_RANK &&
	       seen == MPI_ERR_RANK);
}

int main(int argc, char **argv)
{
	int major = -1, minor = -1, provided = -1;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
	EXPECT(provided >= MPI_THREAD_SINGLE);
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Abi_get_version(&major, &minor);
	EXPECT(major == 1 && minor >= 0);
	if (argc == 2 && strcmp(argv[1], "all") == 0)
		call_all();
	if (argc == 2 && strcmp(argv[1], "later") == 0)
		MPI_Function_of_a_later_standard();
	messages();
	collectives();
	objects();
	MPI_Finalize();
	puts("fine");
	return 0;
}
