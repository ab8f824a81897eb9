/*
 * Beginning and end of the world model: MPI_Init, MPI_Finalize, and what must
 * not happen outside.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <base/diag.h>
#include <base/option.h>
#include <marcel/marcel.h>
#include <marcel/settings.h>
#include <nmad/settings.h>
#include <pioman/settings.h>

#include "bodies.h"
#include "coll/choose.h"
#include "comm/comm.h"
#include "core/enter.h"
#include "env/error.h"
#include "env/leaks.h"
#include "proc/ending.h"
#include "proc/library.h"
#include "proc/pending.h"
#include "pt2pt/request.h"

struct madmpi_state madmpi_state = { ATOMIC_INIT(MADMPI_NEW),
				     ATOMIC_INIT(MADMPI_NEW) };
bool madmpi_checks = true, madmpi_checks_all;

static marcel_t main_thread; /* -: who called MPI_Init */

/* As the standard spells them, in the order of their handles. */
static const char *const initial_errhandlers[] = { "mpi_errors_are_fatal",
						   "mpi_errors_abort",
						   "mpi_errors_return", NULL };

static struct base_option options[] = {
	{ .name = "MADMPI_CHECK",
	  .kind = BASE_OPTION_INT,
	  .fallback = "1",
	  .max = 2,
	  .help = "whether MPI functions check their arguments; 2: "
		  "processes also check that their calls of a collective "
		  "operation, and the datatypes of each message, fit "
		  "together" },
	{ .name = "MADMPI_INITIAL_ERRHANDLER",
	  .kind = BASE_OPTION_CHOICE,
	  .fallback = "mpi_errors_are_fatal",
	  .choices = initial_errhandlers,
	  .help = "the error handler that MPI begins with" },
	{ .name = "MADMPI_LEAKS",
	  .kind = BASE_OPTION_BOOL,
	  .fallback = "0",
	  .help = "list at the end what the program has not freed" },
	{ .name = "MADMPI_STAY",
	  .kind = BASE_OPTION_BOOL,
	  .fallback = "0",
	  .help = "MPI_Finalize stays in the job, for sessions that begin "
		  "after it" },
	{ .name = "MADMPI_VERBOSE",
	  .kind = BASE_OPTION_BOOL,
	  .fallback = "0",
	  .help = "print these settings at the start" },
};

const struct base_option_table madmpi_options =
	BASE_OPTION_TABLE("madmpi", options);

/* In the order in which they are read. */
static const struct base_option_table *const tables[] = {
	&madmpi_options, &madmpi_coll_options
};

const struct base_option_table *madmpi_settings(enum madmpi_module module,
						size_t i)
{
	switch (module) {
	case MADMPI_OF_MARCEL:
		return marcel_settings(i);
	case MADMPI_OF_PIOMAN:
		return piom_settings(i);
	case MADMPI_OF_NMAD:
		return nm_settings(i);
	default:
		return i < BASE_ARRAY_LEN(tables) ? tables[i] : NULL;
	}
}

enum {
	OPTION_CHECK,
	OPTION_INITIAL_ERRHANDLER,
	OPTION_LEAKS,
	OPTION_STAY,
	OPTION_VERBOSE
};

int madmpi_initial_errhandler(void)
{
	struct base_option o = options[OPTION_INITIAL_ERRHANDLER];

	return base_option_read(&o) == 0 ? (int)o.value : 0;
}

void madmpi_enter_refuse(const char *function)
{
	const char *why = "before MPI_Init";

	madmpi_ending_wait();
	switch (load_relaxed(&madmpi_state.phase)) {
	case MADMPI_FORKED:
		why = "in a process made by fork(), which is no part of the "
		      "job";
		break;
	case MADMPI_STOPPING:
	case MADMPI_DOWN:
		why = load_relaxed(&madmpi_state.world) >= MADMPI_STOPPING
			      ? "after MPI_Finalize"
			      : "after MPI_Session_finalize";
		break;
	default:
		break;
	}
	base_warn("madmpi", "%s was called %s", function, why);
	if (load_relaxed(&madmpi_state.phase) == MADMPI_FORKED)
		_exit(1);
	madmpi_ending_exit(1);
}

int madmpi_options_load(void)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(tables); i++)
		if (base_option_load(tables[i]) < 0)
			return -EINVAL;
	madmpi_checks = options[OPTION_CHECK].value > 0;
	madmpi_checks_all = options[OPTION_CHECK].value > 1;
	if (!options[OPTION_VERBOSE].value)
		return 0;
	for (size_t i = 0; i < BASE_ARRAY_LEN(tables); i++)
		base_option_print(tables[i]);
	return 0;
}

bool madmpi_leaks_wanted(void)
{
	return options[OPTION_LEAKS].value;
}

static int start(const char *fn)
{
	struct madmpi_refusal why;
	int rc;

	if (!madmpi_library_get(MADMPI_USER_WORLD, &why))
		return madmpi_error(NULL, why.class, fn, "%s", why.text);
	rc = madmpi_comm_begin_world();
	if (rc == 0)
		return MPI_SUCCESS;
	madmpi_library_put(false);
	return madmpi_error_errno(NULL, rc, fn, "MPI_COMM_WORLD");
}

static int init(const char *fn, int *provided)
{
	int state = MADMPI_NEW, rc;

	if (!cas_relaxed(&madmpi_state.world, &state, MADMPI_STARTING))
		return madmpi_error(
			NULL, MPI_ERR_OTHER, fn, "MPI has already been %s",
			state == MADMPI_DOWN ? "finalized" : "initialized");
	rc = start(fn);
	store_relaxed(&madmpi_state.world,
		      rc == MPI_SUCCESS ? MADMPI_UP : MADMPI_NEW);
	if (rc != MPI_SUCCESS)
		return rc;
	main_thread = marcel_self();
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
	bool stay;
	int rc;

	if (load_relaxed(&madmpi_state.world) != MADMPI_UP)
		return madmpi_error(NULL, MPI_ERR_OTHER, "MPI_Finalize",
				    "the world model %s",
				    load_relaxed(&madmpi_state.world) ==
						    MADMPI_DOWN
					    ? "has been finalized already"
					    : "was not initialized");
	rc = madmpi_comm_farewell();
	if (rc != MPI_SUCCESS)
		return rc;
	stay = options[OPTION_STAY].value;
	rc = madmpi_pending_settle(&stay);
	if (rc != MPI_SUCCESS)
		return rc;
	madmpi_request_reap(NULL);
	madmpi_comm_end_world();
	store_relaxed(&madmpi_state.world, MADMPI_DOWN);
	rc = madmpi_library_put(!stay);
	return rc < 0 ? MPI_ERR_PENDING : MPI_SUCCESS;
}

/* MPI_Initialized */
int madmpi_initialized(int *flag)
{
	if (flag == NULL)
		return madmpi_null_arg(NULL, "MPI_Initialized", "flag");
	*flag = load_relaxed(&madmpi_state.world) >= MADMPI_UP;
	return MPI_SUCCESS;
}

/* MPI_Finalized */
int madmpi_finalized(int *flag)
{
	if (flag == NULL)
		return madmpi_null_arg(NULL, "MPI_Finalized", "flag");
	*flag = load_relaxed(&madmpi_state.world) == MADMPI_DOWN;
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
