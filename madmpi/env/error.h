/*
 * Errors: what went wrong becomes an MPI error class, a message that names the
 * function, the argument and its value, and a call of the error handler.
 */
#ifndef MADMPI_ENV_ERROR_H
#define MADMPI_ENV_ERROR_H

#include <base/compiler.h>
#include <mpi.h>

#include "core/object.h"

struct madmpi_comm;
struct madmpi_session;

enum madmpi_errhandler_how {
	MADMPI_ERRORS_FATAL,
	MADMPI_ERRORS_ABORT,
	MADMPI_ERRORS_RETURN,
	MADMPI_ERRORS_CALL, /* fn */
};

/* An error handler. The three predefined ones are never freed. */
struct madmpi_errhandler {
	struct madmpi_object object;
	enum madmpi_errhandler_how how; /* -: */
	enum madmpi_kind of; /* -: whose errors fn takes: MADMPI_COMM ... */
	union {
		MPI_Comm_errhandler_function *comm;
		MPI_Session_errhandler_function *session;
		MPI_Win_errhandler_function *win;
		MPI_File_errhandler_function *file;
	} fn;                /* -: as `of` says */
	ATOMIC(int) handles; /* a: that the program has; nothing hangs on it */
};

/* Whose handler is told of what concerns no communicator; NULL: the initial. */
struct madmpi_comm *madmpi_error_comm(void);

/* The object behind a handle, or NULL if it is not an error handler. */
struct madmpi_errhandler *madmpi_errhandler_of(MPI_Errhandler handle);

/* The same, if it is one for such objects. */
struct madmpi_errhandler *madmpi_errhandler_for(MPI_Errhandler handle,
						enum madmpi_kind of);
MPI_Errhandler madmpi_errhandler_handle(struct madmpi_errhandler *e);

/* The handler of a communicator, with a reference; of none for NULL. */
struct madmpi_errhandler *madmpi_errhandler_of_comm(struct madmpi_comm *c);

/* Of this communicator from now on. */
void madmpi_errhandler_give(struct madmpi_comm *c, struct madmpi_errhandler *e);

/* Communicators end: this is the handler where there is none, from now on. */
void madmpi_errhandler_remains(struct madmpi_errhandler *e);

/* Nothing happens to the predefined ones. */
void madmpi_errhandler_get(struct madmpi_errhandler *e);
void madmpi_errhandler_put(struct madmpi_errhandler *e);

/*
 * Report an error of class `code` in the MPI function `function`, which the
 * text explains. Calls the error handler of comm, or of MPI_COMM_SELF where no
 * communicator is known (NULL; of MPI_COMM_WORLD if the program has given none
 * to MPI_COMM_SELF), and returns `code` if that returns.
 */
int madmpi_error(struct madmpi_comm *comm, int code, const char *function,
		 const char *fmt, ...) BASE_PRINTF(4, 5) BASE_COLD;

/* The same, by the handler of a session. */
int madmpi_session_error(struct madmpi_session *session, int code,
			 const char *function, const char *fmt, ...)
	BASE_PRINTF(4, 5) BASE_COLD;

/* The same, by this handler, of what is not made yet: it gets a null handle. */
int madmpi_error_by(struct madmpi_errhandler *e, int code, const char *function,
		    const char *fmt, ...) BASE_PRINTF(4, 5) BASE_COLD;

/* The same for an argument `name` that is a null pointer: MPI_ERR_ARG. */
int madmpi_null_arg(struct madmpi_comm *comm, const char *function,
		    const char *name) BASE_COLD;

/* The same for a cause that came from below as a negative errno. */
int madmpi_error_errno(struct madmpi_comm *comm, int err, const char *function,
		       const char *what) BASE_COLD;

/* The same for a function that has no body. */
int madmpi_unsupported(struct madmpi_comm *comm,
		       const char *function) BASE_COLD;

/* The same for a function of files, by the handler of MPI_FILE_NULL. */
int madmpi_file_unsupported(const char *function) BASE_COLD;

/* The class for a negative errno; MPI_SUCCESS for 0. */
int madmpi_error_class_of_errno(int err);

/* One of the standard's, or of the program's. */
bool madmpi_error_is_code(int code);

/* The highest code in use: what MPI_LASTUSEDCODE shows. */
extern int madmpi_last_used_code;

/* Of a code of the program's: its class, or -1; its string, if it is one. */
int madmpi_user_error_class(int code);
bool madmpi_user_error_string(int code, char string[MPI_MAX_ERROR_STRING]);

/* "MPI_ERR_RANK" and "invalid rank"; NULL if there is no such class. */
const char *madmpi_error_name(int code);
const char *madmpi_error_text(int code);

#endif
