/*
 * Beginning and end: MPI_Init, MPI_Finalize, and what must not happen outside.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <base/diag.h>
#include <base/option.h>
#include <marcel/marcel.h>
#include <nmad/nmad.h>

#include "bodies.h"
#include "coll/op.h"
#include "comm/comm.h"
#include "core/background.h"
#include "core/enter.h"
#include "datatype/type.h"
#include "env/error.h"
#include "env/leaks.h"
#include "pt2pt/request.h"

struct madmpi_state madmpi_state = { ATOMIC_INIT(MADMPI_NEW) };
bool madmpi_checks = true;

static marcel_t main_thread; /* -: who called MPI_Init */

/* As the standard spells them, in the order of their handles. */
static const char *const initial_errhandlers[] = { "mpi_errors_are_fatal",
						   "mpi_errors_abort",
						   "mpi_errors_return", NULL };

static struct base_option options[] = {
	{ .name = "MADMPI_CHECK",
	  .kind = BASE_OPTION_BOOL,
	  .fallback = "1",
	  .help = "whether MPI functions check their arguments" },
	{ .name = "MADMPI_INITIAL_ERRHANDLER",
	  .kind = BASE_OPTION_CHOICE,
	  .fallback = "mpi_errors_are_fatal",
	  .choices = initial_errhandlers,
	  .help = "the error handler that MPI begins with" },
	{ .name = "MADMPI_LEAKS",
	  .kind = BASE_OPTION_BOOL,
	  .fallback = "0",
	  .help = "list at the end what the program has not freed" },
	{ .name = "MADMPI_VERBOSE",
	  .kind = BASE_OPTION_BOOL,
	  .fallback = "0",
	  .help = "print these settings at the start" },
};

const struct base_option_table madmpi_options =
	BASE_OPTION_TABLE("madmpi", options);

enum { OPTION_CHECK, OPTION_INITIAL_ERRHANDLER, OPTION_LEAKS, OPTION_VERBOSE };

int madmpi_initial_errhandler(void)
{
	struct base_option o = options[OPTION_INITIAL_ERRHANDLER];

	return base_option_read(&o) == 0 ? (int)o.value : 0;
}

void madmpi_enter_refuse(const char *function)
{
	const char *why = "before MPI_Init";

	switch (load_relaxed(&madmpi_state.phase)) {
	case MADMPI_FORKED:
		why = "in a process made by fork(), which is no part of the "
		      "job";
		break;
	case MADMPI_STOPPING:
	case MADMPI_DOWN:
		why = "after MPI_Finalize";
		break;
	default:
		break;
	}
	base_warn("madmpi", "%s was called %s", function, why);
	if (load_relaxed(&madmpi_state.phase) == MADMPI_FORKED)
		_exit(1);
	exit(1);
}

/* The code as processes can return it: an error never looks like success. */
static int exit_code(int code)
{
	return (code & 255) != 0 ? code & 255 : 1;
}

void madmpi_kill(int code, const char *why)
{
	if (nm_size() > 0)
		nm_abort(exit_code(code), why);
	base_warn("madmpi", "%s", why);
	exit(exit_code(code));
}

/* The child of a fork has no network and no right to our sockets. */
static void forked(void)
{
	int state = load_relaxed(&madmpi_state.phase);

	if (state == MADMPI_STARTING || state == MADMPI_UP ||
	    state == MADMPI_STOPPING)
		store_relaxed(&madmpi_state.phase, MADMPI_FORKED);
}

/* A process that exits without MPI_Finalize leaves others waiting for it. */
static void exiting(int status, void *arg)
{
	(void)arg;
	if (load_relaxed(&madmpi_state.phase) != MADMPI_UP)
		return;
	store_relaxed(&madmpi_state.phase, MADMPI_STOPPING);
	fflush(NULL);
	nm_abort(exit_code(status), "the process exits without MPI_Finalize");
}

static int start(const char *fn)
{
	static bool hooked;
	int rc;

	if (base_option_load(&madmpi_options) < 0)
		return madmpi_error(NULL, MPI_ERR_OTHER, fn,
				    "an environment variable has a value that "
				    "is not allowed");
	madmpi_checks = options[OPTION_CHECK].value;
	if (options[OPTION_VERBOSE].value)
		base_option_print(&madmpi_options);
	rc = nm_init();
	if (rc == -EINVAL) /* whoever reads it has said which */
		return madmpi_error(NULL, MPI_ERR_OTHER, fn,
				    "a setting is not allowed: see the message "
				    "before this one");
	if (rc < 0)
		return madmpi_error_errno(NULL, rc, fn,
					  "the network cannot be started");
	madmpi_errhandler_init();
	madmpi_type_init();
	madmpi_op_init();
	madmpi_request_init();
	madmpi_matched_init();
	madmpi_bsend_init_process();
	madmpi_background_init();
	rc = madmpi_comm_init();
	if (rc < 0)
		return madmpi_error_errno(NULL, rc, fn, "MPI_COMM_WORLD");
	main_thread = marcel_self();
	if (!hooked) {
		pthread_atfork(NULL, NULL, forked);
		on_exit(exiting, NULL);
		hooked = true;
	}
	return MPI_SUCCESS;
}

static int init(const char *fn, int *provided)
{
	int state = MADMPI_NEW, rc;

	if (!cas_relaxed(&madmpi_state.phase, &state, MADMPI_STARTING))
		return madmpi_error(
			NULL, MPI_ERR_OTHER, fn, "MPI has already been %s",
			state == MADMPI_DOWN ? "finalized" : "initialized");
	rc = start(fn);
	if (rc != MPI_SUCCESS)
		return rc;
	store_relaxed(&madmpi_state.phase, MADMPI_UP);
	if (provided != NULL)
		*provided = MPI_THREAD_MULTIPLE;
	return MPI_SUCCESS;
}

/* MPI_Init */
int madmpi_init(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return init("MPI_Init", NULL);
}

/* MPI_Init_thread */
int madmpi_init_thread(int *argc, char ***argv, int required, int *provided)
{
	const char *fn = "MPI_Init_thread";

	(void)argc;
	(void)argv;
	if (required != MPI_THREAD_SINGLE && required != MPI_THREAD_FUNNELED &&
	    required != MPI_THREAD_SERIALIZED &&
	    required != MPI_THREAD_MULTIPLE)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "required is %d, which is no level",
				    required);
	if (provided == NULL)
		return madmpi_null_arg(NULL, fn, "provided");
	return init(fn, provided); /* every level is the highest one */
}

/* MPI_Finalize */
int madmpi_finalize(void)
{
	int rc = madmpi_comm_farewell();

	if (rc != MPI_SUCCESS)
		return rc;
	if (options[OPTION_LEAKS].value)
		madmpi_leaks_report();
	store_relaxed(&madmpi_state.phase, MADMPI_STOPPING);
	madmpi_request_reap();
	madmpi_background_exit();
	madmpi_bsend_exit_process();
	madmpi_comm_exit();
	rc = nm_exit();
	if (rc < 0) {
		/* Memory that somebody may still write to is left alone. */
		base_warn("madmpi",
			  "MPI_Finalize: operations were not completed");
		store_relaxed(&madmpi_state.phase, MADMPI_DOWN);
		return MPI_ERR_PENDING;
	}
	madmpi_matched_exit();
	madmpi_request_exit();
	madmpi_op_exit();
	madmpi_type_exit();
	store_relaxed(&madmpi_state.phase, MADMPI_DOWN);
	return MPI_SUCCESS;
}

/* MPI_Initialized */
int madmpi_initialized(int *flag)
{
	if (flag == NULL)
		return madmpi_null_arg(NULL, "MPI_Initialized", "flag");
	*flag = load_relaxed(&madmpi_state.phase) >= MADMPI_UP;
	return MPI_SUCCESS;
}

/* MPI_Finalized */
int madmpi_finalized(int *flag)
{
	if (flag == NULL)
		return madmpi_null_arg(NULL, "MPI_Finalized", "flag");
	*flag = load_relaxed(&madmpi_state.phase) == MADMPI_DOWN;
	return MPI_SUCCESS;
}

/* MPI_Query_thread */
int madmpi_query_thread(int *provided)
{
	if (provided == NULL)
		return madmpi_null_arg(NULL, "MPI_Query_thread", "provided");
	*provided = MPI_THREAD_MULTIPLE;
	return MPI_SUCCESS;
}

/* MPI_Is_thread_main */
int madmpi_is_thread_main(int *flag)
{
	if (flag == NULL)
		return madmpi_null_arg(NULL, "MPI_Is_thread_main", "flag");
	*flag = marcel_equal(marcel_self(), main_thread) != 0;
	return MPI_SUCCESS;
}

/* MPI_Abort: the whole job, whatever the communicator. */
int madmpi_abort(MPI_Comm comm, int errorcode)
{
	char why[64];

	(void)comm;
	snprintf(why, sizeof(why), "MPI_Abort was called with %d", errorcode);
	madmpi_kill(errorcode, why);
}
