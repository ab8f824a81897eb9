/*
 * Windows, for arguments.c: what some calls need before and after. The objects
 * are its own.
 */
#ifndef TESTS_MADMPI_ENV_ARGUMENTS_WIN_H
#define TESTS_MADMPI_ENV_ARGUMENTS_WIN_H

/* Epochs: what a call has not ended, or has begun, is ended after it. */

static void lock_all(void)
{
	MPI_Win_lock_all(0, right.win);
}

static void end_lock_all(int rc)
{
	(void)rc;
	MPI_Win_unlock_all(right.win);
}

static void end_all_locked(int rc)
{
	if (rc == MPI_SUCCESS)
		end_lock_all(rc);
}

static void end_unlock_all(int rc)
{
	if (rc != MPI_SUCCESS)
		end_lock_all(rc);
}

static void lock(void)
{
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, right.win);
}

static void end_lock(int rc)
{
	if (rc == MPI_SUCCESS)
		MPI_Win_unlock(0, right.win);
}

static void end_unlock(int rc)
{
	end_lock(rc == MPI_SUCCESS ? MPI_ERR_OTHER : MPI_SUCCESS);
}

static void post(void)
{
	MPI_Win_post(right.group, 0, right.win);
}

static void post_and_start(void)
{
	post();
	MPI_Win_start(right.group, 0, right.win);
}

static void post_start_complete(void)
{
	post_and_start();
	MPI_Win_complete(right.win);
}

static void end_wait(int rc)
{
	if (rc != MPI_SUCCESS)
		MPI_Win_wait(right.win);
}

/* Whether it was over is in the first result. */
static void end_test(int rc)
{
	end_wait(rc != MPI_SUCCESS || !results.i[0] ? MPI_ERR_OTHER
						    : MPI_SUCCESS);
}

static void end_complete(int rc)
{
	if (rc != MPI_SUCCESS)
		MPI_Win_complete(right.win);
	MPI_Win_wait(right.win);
}

static void end_start(int rc)
{
	if (rc != MPI_SUCCESS)
		MPI_Win_start(right.group, 0, right.win);
	end_complete(MPI_ERR_OTHER);
}

static void end_post(int rc)
{
	if (rc == MPI_SUCCESS)
		end_start(MPI_ERR_OTHER);
}

static void win_attach(void)
{
	MPI_Win_attach(right.dynamic, memory, 64);
}

static void end_win_attach(int rc)
{
	if (rc == MPI_SUCCESS)
		MPI_Win_detach(right.dynamic, memory);
}

static void end_win_detach(int rc)
{
	end_win_attach(rc == MPI_SUCCESS ? MPI_ERR_OTHER : MPI_SUCCESS);
}

#endif
