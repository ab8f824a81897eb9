#include "after.h"

#include "../madmpi/program.h"

enum { LARGE = 300000, TAG = 77, RANKS = 16 };

/* Of whom is lost nothing comes, and nothing gets there. */
static void ask_the_lost(const struct view *v, int peer)
{
	static char large[LARGE];
	MPI_Message message;
	MPI_Request request;
	int flag = 0, rc;

	FAILS(MPI_Recv(large, 1, MPI_CHAR, peer, TAG, MPI_COMM_WORLD,
		       MPI_STATUS_IGNORE),
	      MPI_ERR_PROC_ABORTED);
	FAILS(MPI_Ssend(large, 1, MPI_CHAR, peer, TAG, MPI_COMM_WORLD),
	      MPI_ERR_PROC_ABORTED);
	FAILS(MPI_Send(large, LARGE, MPI_CHAR, peer, TAG, MPI_COMM_WORLD),
	      MPI_ERR_PROC_ABORTED);
	MPI_Irecv(large, LARGE, MPI_CHAR, peer, TAG, MPI_COMM_WORLD, &request);
	FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_PROC_ABORTED);
	FAILS(MPI_Probe(peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
	      MPI_ERR_PROC_ABORTED);
	FAILS(MPI_Mprobe(peer, TAG, MPI_COMM_WORLD, &message,
			 MPI_STATUS_IGNORE),
	      MPI_ERR_PROC_ABORTED);
	rc = MPI_Iprobe(peer, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	EXPECT_INT(class_of(rc), MPI_ERR_PROC_ABORTED);
	(void)v;
}

/* Nobody sends with this tag, and one who could have is lost. */
static void ask_anyone(void)
{
	MPI_Request request;
	int flag = 0, got;

	for (int i = 0; i < 2; i++)
		FAILS(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG + 1,
			       MPI_COMM_WORLD, MPI_STATUS_IGNORE),
		      MPI_ERR_PROC_ABORTED);
	MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
		  &request);
	FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_PROC_ABORTED);
	FAILS(MPI_Probe(MPI_ANY_SOURCE, TAG + 1, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE),
	      MPI_ERR_PROC_ABORTED);
	FAILS(MPI_Iprobe(MPI_ANY_SOURCE, TAG + 1, MPI_COMM_WORLD, &flag,
			 MPI_STATUS_IGNORE),
	      MPI_ERR_PROC_ABORTED);
}

/* All of them are told, also who has nothing to do with the lost. */
static void collectives_of_all(const struct view *v)
{
	int wanted = v->some_is_lost ? MPI_ERR_PROC_ABORTED : MPI_SUCCESS;
	MPI_Request request;
	int sum = 0;

	FAILS(MPI_Barrier(v->world), wanted);
	FAILS(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, v->world),
	      wanted);
	MPI_Ibarrier(v->world, &request);
	FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), wanted);
}

static MPI_Comm unite(const struct view *v)
{
	int members[RANKS], n = 0;
	MPI_Group world, group;
	MPI_Comm comm;

	for (int r = 0; r < v->size; r++)
		if (v->with_me[r])
			members[n++] = r;
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, n, members, &group);
	FAILS(MPI_Comm_create_group(MPI_COMM_WORLD, group, TAG, &comm),
	      MPI_SUCCESS);
	MPI_Group_free(&group);
	MPI_Group_free(&world);
	return comm;
}

static void exchange(MPI_Comm comm)
{
	static char out[LARGE], in[LARGE];
	int me, n;

	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &n);
	for (int bytes = 1; bytes <= LARGE;
	     bytes = bytes == 1 ? LARGE : LARGE + 1) {
		memset(out, me + 1, (size_t)bytes);
		FAILS(MPI_Sendrecv(out, bytes, MPI_CHAR, (me + 1) % n, TAG, in,
				   bytes, MPI_CHAR, (me + n - 1) % n, TAG, comm,
				   MPI_STATUS_IGNORE),
		      MPI_SUCCESS);
		EXPECT_INT(in[bytes - 1], (me + n - 1) % n + 1);
	}
}

/* They know nothing of who is lost: a receive from any of them waits. */
static void anyone_of_the_living(MPI_Comm comm)
{
	int me, n, got = -1, flag = 1, sum = 0;

	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &n);
	FAILS(MPI_Iprobe(MPI_ANY_SOURCE, TAG, comm, &flag, MPI_STATUS_IGNORE),
	      MPI_SUCCESS);
	EXPECT_INT(flag, 0);
	FAILS(MPI_Barrier(comm), MPI_SUCCESS);
	if (me > 0)
		FAILS(MPI_Send(&me, 1, MPI_INT, 0, TAG, comm), MPI_SUCCESS);
	for (int i = 1; i < n && me == 0; i++) {
		FAILS(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG, comm,
			       MPI_STATUS_IGNORE),
		      MPI_SUCCESS);
		sum += got;
	}
	EXPECT(me != 0 || sum == n * (n - 1) / 2);
}

static void communicators_of(MPI_Comm living)
{
	MPI_Comm twin, half;
	int sum = 0, n;

	MPI_Comm_size(living, &n);
	FAILS(MPI_Allreduce(&(int){ 1 }, &sum, 1, MPI_INT, MPI_SUM, living),
	      MPI_SUCCESS);
	EXPECT_INT(sum, n);
	FAILS(MPI_Comm_dup(living, &twin), MPI_SUCCESS);
	FAILS(MPI_Barrier(twin), MPI_SUCCESS);
	FAILS(MPI_Comm_split(twin, 0, 0, &half), MPI_SUCCESS);
	anyone_of_the_living(half);
	MPI_Comm_free(&half);
	MPI_Comm_free(&twin);
}

static void windows_of(MPI_Comm living)
{
	int *memory, me, n;
	MPI_Win win;

	MPI_Comm_rank(living, &me);
	MPI_Comm_size(living, &n);
	FAILS(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, living,
			       &memory, &win),
	      MPI_SUCCESS);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	FAILS(MPI_Win_fence(0, win), MPI_SUCCESS);
	FAILS(MPI_Put(&me, 1, MPI_INT, (me + 1) % n, 0, 1, MPI_INT, win),
	      MPI_SUCCESS);
	FAILS(MPI_Win_fence(0, win), MPI_SUCCESS);
	EXPECT_INT(*memory, (me + n - 1) % n);
	FAILS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win), MPI_SUCCESS);
	FAILS(MPI_Win_unlock(0, win), MPI_SUCCESS);
	FAILS(MPI_Win_free(&win), MPI_SUCCESS);
}

static void sessions_of(MPI_Comm living)
{
	MPI_Session session;
	MPI_Group group;
	MPI_Comm comm;

	FAILS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session),
	      MPI_SUCCESS);
	MPI_Comm_group(living, &group);
	FAILS(MPI_Comm_create_from_group(group, "the living", MPI_INFO_NULL,
					 MPI_ERRORS_RETURN, &comm),
	      MPI_SUCCESS);
	FAILS(MPI_Barrier(comm), MPI_SUCCESS);
	MPI_Comm_free(&comm);
	MPI_Group_free(&group);
	FAILS(MPI_Session_finalize(&session), MPI_SUCCESS);
}

void after_fault(const struct view *v, bool with_session)
{
	MPI_Comm living;

	rank = v->rank;
	size = v->size;
	for (int r = 0; r < size; r++)
		if (v->lost[r])
			ask_the_lost(v, r);
	if (v->loses_any)
		ask_anyone();
	collectives_of_all(v);
	living = unite(v);
	exchange(living);
	communicators_of(living);
	windows_of(living);
	if (with_session)
		sessions_of(living);
	MPI_Comm_free(&living);
}
