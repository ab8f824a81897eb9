/*
 * The error handler of MPI_FILE_NULL. There are no files, but errors of all
 * functions of files go to this handler, as those of MPI_File_open do in the
 * standard. It is MPI_ERRORS_RETURN until the program sets another one.
 */
#include "env/error.h"

#include <base/spin.h>

#include "bodies.h"

static struct {
	struct base_spin lock;
	struct madmpi_errhandler *e; /* l: a reference; NULL: never set */
} no_file = { .lock = BASE_SPIN_INIT(BASE_RANK_LEAF) };

/* The handler, with a reference. */
static struct madmpi_errhandler *get(void)
{
	struct madmpi_errhandler *e;

	base_spin_lock(&no_file.lock);
	e = no_file.e != NULL ? no_file.e
			      : madmpi_errhandler_of(MPI_ERRORS_RETURN);
	madmpi_errhandler_get(e);
	base_spin_unlock(&no_file.lock);
	return e;
}

static void set(struct madmpi_errhandler *e)
{
	struct madmpi_errhandler *old;

	madmpi_errhandler_get(e);
	base_spin_lock(&no_file.lock);
	old = no_file.e;
	no_file.e = e;
	base_spin_unlock(&no_file.lock);
	if (old != NULL)
		madmpi_errhandler_put(old);
}

static int report(int code, const char *fn, const char *what)
{
	struct madmpi_errhandler *e = get();

	madmpi_error_by(e, code, fn, "%s", what);
	madmpi_errhandler_put(e);
	return code;
}

int madmpi_file_unsupported(const char *function)
{
	return report(MPI_ERR_UNSUPPORTED_OPERATION, function,
		      "this library does not have files");
}

static int bad_file(const char *fn)
{
	return report(MPI_ERR_FILE, fn,
		      "this library does not have files other than "
		      "MPI_FILE_NULL");
}

/* MPI_File_set_errhandler */
int madmpi_file_set_errhandler(MPI_File file, MPI_Errhandler errhandler)
{
	const char *fn = "MPI_File_set_errhandler";
	struct madmpi_errhandler *e;

	if (file != MPI_FILE_NULL)
		return bad_file(fn);
	e = madmpi_errhandler_for(errhandler, MADMPI_FILE);
	if (e == NULL)
		return report(MPI_ERR_ERRHANDLER, fn,
			      "errhandler is not an error handler of files");
	set(e);
	return MPI_SUCCESS;
}

/* MPI_File_get_errhandler */
int madmpi_file_get_errhandler(MPI_File file, MPI_Errhandler *errhandler)
{
	const char *fn = "MPI_File_get_errhandler";
	struct madmpi_errhandler *e;

	if (file != MPI_FILE_NULL)
		return bad_file(fn);
	if (errhandler == NULL)
		return report(MPI_ERR_ARG, fn, "errhandler is a null pointer");
	e = get();
	fetch_add_relaxed(&e->handles, 1);
	*errhandler = madmpi_errhandler_handle(e);
	return MPI_SUCCESS;
}

/* MPI_File_call_errhandler */
int madmpi_file_call_errhandler(MPI_File fh, int errorcode)
{
	const char *fn = "MPI_File_call_errhandler";

	if (fh != MPI_FILE_NULL)
		return bad_file(fn);
	if (!madmpi_error_is_code(errorcode))
		return report(MPI_ERR_ARG, fn, "errorcode is unknown");
	report(errorcode, fn, "called by the program");
	return MPI_SUCCESS;
}
