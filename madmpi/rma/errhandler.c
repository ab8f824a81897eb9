/*
 * Error handlers of windows: those of the communicators that are their own.
 */
#include "env/error.h"

#include "bodies.h"
#include "rma/win.h"

/* MPI_Win_set_errhandler */
int madmpi_win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler)
{
	const char *fn = "MPI_Win_set_errhandler";
	struct madmpi_errhandler *e;
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);

	if (rc != MPI_SUCCESS)
		return rc;
	e = madmpi_errhandler_for(errhandler, MADMPI_WIN);
	if (e == NULL)
		return madmpi_error(w->comm, MPI_ERR_ERRHANDLER, fn,
				    "%p is not an error handler of windows",
				    (void *)errhandler);
	madmpi_errhandler_give(w->comm, e);
	return MPI_SUCCESS;
}

/* MPI_Win_get_errhandler */
int madmpi_win_get_errhandler(MPI_Win win, MPI_Errhandler *errhandler)
{
	const char *fn = "MPI_Win_get_errhandler";
	struct madmpi_errhandler *e;
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);

	if (rc != MPI_SUCCESS)
		return rc;
	if (errhandler == NULL)
		return madmpi_null_arg(w->comm, fn, "errhandler");
	e = madmpi_errhandler_of_comm(w->comm);
	fetch_add_relaxed(&e->handles, 1);
	*errhandler = madmpi_errhandler_handle(e);
	return MPI_SUCCESS;
}

/* MPI_Win_call_errhandler */
int madmpi_win_call_errhandler(MPI_Win win, int errorcode)
{
	const char *fn = "MPI_Win_call_errhandler";
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);

	if (rc != MPI_SUCCESS)
		return rc;
	if (!madmpi_error_is_code(errorcode))
		return madmpi_error(w->comm, MPI_ERR_ARG, fn,
				    "errorcode %d is unknown", errorcode);
	madmpi_error(w->comm, errorcode, fn, "called by the program");
	return MPI_SUCCESS;
}
