/*
 * A process dies: whoever is left and listens is told who it was, once.
 */
#include "../dies.h"
#include "../program.h"

#include <marcel/marcel.h>

static marcel_sem_t told;
static int lost = -1;

static void note(MPI_T_event_instance e, MPI_T_event_registration r,
		 MPI_T_cb_safety level, void *arg)
{
	int none;

	(void)r, (void)level, (void)arg;
	EXPECT_INT(lost, -1);
	EXPECT_INT(MPI_T_event_copy(e, &lost), MPI_SUCCESS);
	EXPECT_INT(MPI_T_event_read(e, 1, &none), MPI_T_ERR_INVALID_INDEX);
	marcel_sem_post(&told);
}

int main(int argc, char **argv)
{
	MPI_T_event_registration r;
	int provided, index, victim;

	dies_begin();
	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	marcel_sem_init(&told, 0, 0);
	MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
	EXPECT_INT(MPI_T_event_get_index("nmad_lost", &index), MPI_SUCCESS);
	MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &r);
	MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_MPI_RESTRICTED,
				      MPI_INFO_NULL, NULL, note);
	victim = size - 1;
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == victim)
		dies();
	FAILS(MPI_Recv(&index, 1, MPI_INT, victim, 0, MPI_COMM_WORLD,
		       MPI_STATUS_IGNORE),
	      MPI_ERR_PROC_ABORTED);
	marcel_sem_wait(&told);
	EXPECT_INT(lost, victim);
	EXPECT_INT(MPI_T_event_handle_free(r, NULL, NULL), MPI_SUCCESS);
	MPI_T_finalize();
	if (rank == 0)
		printf("death: ok on %d\n", size);
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
