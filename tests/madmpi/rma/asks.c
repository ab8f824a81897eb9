/*
 * The target of accumulates asks for a message that comes only after they are
 * done, and asks in vain until then: whoever serves them must go on meanwhile,
 * on the only VP and where nothing else interrupts (MARCEL_TIMESLICE_US=0).
 */
#include "../program.h"

enum { WAYS = 6 };

static int in;

/* Whether the message is there; what is left is received here. */
static int ask(int way, MPI_Request *r)
{
	int flag = 0, i;
	MPI_Message message;

	switch (way) {
	case 0:
		MPI_Iprobe(1, way, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		if (flag)
			MPI_Recv(&in, 1, MPI_INT, 1, way, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		break;
	case 1:
		MPI_Improbe(1, way, MPI_COMM_WORLD, &flag, &message,
			    MPI_STATUS_IGNORE);
		if (flag)
			MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
		break;
	case 2:
		MPI_Test(r, &flag, MPI_STATUS_IGNORE);
		break;
	case 3:
		MPI_Testall(1, r, &flag, MPI_STATUSES_IGNORE);
		break;
	case 4:
		MPI_Testany(1, r, &i, &flag, MPI_STATUS_IGNORE);
		break;
	default:
		MPI_Testsome(1, r, &flag, &i, MPI_STATUSES_IGNORE);
	}
	return flag;
}

int main(int argc, char **argv)
{
	int mine = 0, one = 1, old;
	MPI_Request r;
	MPI_Aint at;
	MPI_Win win;

	program_begin(&argc, &argv);
	EXPECT_INT(size, 2);
	/* What is attached by and by, the target serves. */
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_attach(win, &mine, sizeof(mine));
	MPI_Get_address(&mine, &at);
	MPI_Bcast(&at, 1, MPI_AINT, 0, MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < 10 * WAYS; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 1) {
			MPI_Fetch_and_op(&one, &old, MPI_INT, 0, at, MPI_SUM,
					 win);
			MPI_Win_flush(0, win);
			EXPECT_INT(old, i);
			MPI_Send(&i, 1, MPI_INT, 0, i % WAYS, MPI_COMM_WORLD);
			continue;
		}
		in = -1;
		if (i % WAYS >= 2)
			MPI_Irecv(&in, 1, MPI_INT, 1, i % WAYS, MPI_COMM_WORLD,
				  &r);
		while (!ask(i % WAYS, &r))
			;
		EXPECT_INT(in, i);
	}
	MPI_Win_unlock_all(win);
	MPI_Win_detach(win, &mine);
	MPI_Win_free(&win);
	return program_end("asks");
}
