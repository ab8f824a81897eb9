/* A thousand user threads in each of two ranks, each blocking in MPI alone. */
#include <marcel/marcel.h>
#include <mpi.h>

static void *chat(void *arg)
{
	int rank, got, tag = (int)(long)arg;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Sendrecv(&rank, 1, MPI_INT, !rank, tag, &got, 1, MPI_INT, !rank,
		     tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return got == !rank ? NULL : arg;
}

int main(int argc, char **argv)
{
	marcel_t t[1000];

	MPI_Init(&argc, &argv);
	for (long i = 0; i < 1000; i++)
		marcel_create(&t[i], NULL, chat, (void *)i);
	for (int i = 0; i < 1000; i++)
		marcel_join(t[i], NULL);
	return MPI_Finalize();
}
