/*
 * Bringing MPI up and down.
 *
 * Who starts marcel becomes its first thread and must not end before it. The
 * first thread of the process does not; for any other one a thread of our own,
 * the keeper, joins the job, stays, and leaves it.
 */
#include "proc/library.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/diag.h>
#include <base/trace.h>
#include <marcel/marcel.h>
#include <nmad/nmad.h>
#include <pioman/pioman.h>

#include "coll/op.h"
#include "comm/comm.h"
#include "core/background.h"
#include "core/enter.h"
#include "core/state.h"
#include "datatype/type.h"
#include "env/error.h"
#include "env/leaks.h"
#include "part/part.h"
#include "proc/ending.h"
#include "proc/pending.h"
#include "pt2pt/request.h"
#include "rma/win.h"
#include "session/letter.h"
#include "tool/event.h"

/*
 * A new user passes it. The thread that brings MPI up holds it, and
 * MPI_Finalize does while it finds out whether it leaves the job.
 *
 * It is not held while the process leaves the job, which ends marcel and so
 * waits for the user threads of the program. One of those that comes then, or
 * has waited here, finds MADMPI_STOPPING and is refused: if it waited for the
 * end, each would wait for the other.
 */
static marcel_mutex_t gate = MARCEL_MUTEX_INITIALIZER;
static int users;        /* l: the world model, sessions */
static bool is_joined;   /* l: the network is up */
static bool had_session; /* l: */
static bool has_begun;   /* l: MPI was up once, or tried to come up */
static int left_size;    /* l: of the job that was left; 0: none was */
static bool is_stuck;    /* l: it could not be left; then never written */

static struct {
	bool is_used; /* l: of the gate */
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t said;
	int answer; /* of its mutex: of nm_init(), of nm_exit(); 1: none yet */
	marcel_sem_t end;
} keeper = { .mutex = PTHREAD_MUTEX_INITIALIZER,
	     .said = PTHREAD_COND_INITIALIZER,
	     .answer = 1 };

bool madmpi_library_close(void)
{
	bool may;

	marcel_mutex_lock(&gate);
	may = !had_session;
	if (!may)
		marcel_mutex_unlock(&gate);
	return may;
}

void madmpi_library_reopen(void)
{
	marcel_mutex_unlock(&gate);
}

/* --- joining and leaving the job --- */

/*
 * A process in exit() does not wait for its user threads, some of which may
 * wait for ever: it leaves the job, and marcel runs until the end. (If not this
 * thread has started marcel, it cannot end it, either.)
 */
static int leave(void)
{
	if (madmpi_ending_has_begun())
		marcel_init(NULL);
	return nm_exit();
}

static void answer(int rc)
{
	pthread_mutex_lock(&keeper.mutex);
	keeper.answer = rc;
	pthread_cond_signal(&keeper.said);
	pthread_mutex_unlock(&keeper.mutex);
}

static int hear(void)
{
	int rc;

	pthread_mutex_lock(&keeper.mutex);
	while ((rc = keeper.answer) > 0)
		pthread_cond_wait(&keeper.said, &keeper.mutex);
	keeper.answer = 1;
	pthread_mutex_unlock(&keeper.mutex);
	return rc;
}

static void *keep(void *arg)
{
	int rc = nm_init();

	if (rc == 0)
		marcel_sem_init(&keeper.end, 0, 0);
	answer(rc);
	if (rc < 0)
		return arg;
	marcel_sem_wait(&keeper.end);
	answer(leave());
	if (marcel_is_running())
		madmpi_ending_wait();
	return arg;
}

static int join_by_keeper(void)
{
	int rc = -pthread_create(&keeper.thread, NULL, keep, NULL);

	if (rc < 0)
		return rc;
	rc = hear();
	if (rc < 0)
		pthread_join(keeper.thread, NULL);
	keeper.is_used = rc == 0;
	return rc;
}

static int join(void)
{
	return gettid() == getpid() ? nm_init() : join_by_keeper();
}

static int leave_job(void)
{
	int rc;

	if (!keeper.is_used)
		return leave();
	marcel_sem_post(&keeper.end);
	rc = hear();
	if (!madmpi_ending_has_begun())
		pthread_join(keeper.thread, NULL);
	keeper.is_used = false;
	return rc;
}

/* --- up and down --- */

static int stop_parts(void)
{
	int rc;

	if (!madmpi_pending_tell()) {
		is_stuck = true;
		return -EBUSY;
	}
	madmpi_request_reap(NULL);
	madmpi_part_exit();
	madmpi_event_exit();
	madmpi_background_exit();
	madmpi_request_reap_complete();
	madmpi_win_exit();
	madmpi_bsend_exit_process();
	madmpi_letters_exit();
	madmpi_comm_exit();
	rc = leave_job();
	if (rc < 0) {
		/* Memory that somebody may still write to is left alone. */
		is_stuck = rc == -EBUSY;
		if (is_stuck)
			base_warn("madmpi",
				  "the end of MPI: sessions of nmad are still "
				  "in use");
		return rc;
	}
	madmpi_matched_exit();
	madmpi_request_exit();
	madmpi_op_exit();
	madmpi_type_exit();
	return 0;
}

/* The phase is MADMPI_STOPPING. Opens the gate, and closes it at the end. */
static int stop(void)
{
	int rc;

	is_joined = false;
	left_size = nm_size();
	marcel_mutex_unlock(&gate);
	rc = stop_parts();
	marcel_mutex_lock(&gate);
	return rc;
}

/* The code as processes can return it: an error never looks like success. */
static int exit_code(int code)
{
	return (code & 255) != 0 ? code & 255 : 1;
}

void madmpi_kill(int code, const char *why)
{
	/* A call that the end of MPI has made fail is no reason to abort. */
	if (load_relaxed(&madmpi_state.phase) != MADMPI_UP)
		madmpi_ending_wait();
	if (nm_size() > 0)
		nm_abort(exit_code(code), why);
	base_warn("madmpi", "%s", why);
	madmpi_ending_exit(exit_code(code));
}

/*
 * The child of a fork has no network and no right to our sockets; nor has it
 * the thread that may have held the gate.
 */
static void forked(void)
{
	int state = load_relaxed(&madmpi_state.phase);

	madmpi_ending_forked();
	gate = (marcel_mutex_t)MARCEL_MUTEX_INITIALIZER;
	is_joined = is_stuck = false;
	if (state == MADMPI_STARTING || state == MADMPI_UP ||
	    state == MADMPI_STOPPING)
		store_relaxed(&madmpi_state.phase, MADMPI_FORKED);
}

/*
 * exit() has begun, and more of the program's exit handlers follow. They may
 * call MPI if it is up, and so may other threads.
 */
static void exit_begins(int status, void *arg)
{
	(void)status;
	(void)arg;
	madmpi_ending_begin();
}

/* Why a process that exits is still in the midst of MPI. */
static const char *why_not_left(void)
{
	if (madmpi_pending_refused())
		return "the process exits although MPI_Finalize has failed, as "
		       "operations were not complete";
	if (load_relaxed(&madmpi_state.world) == MADMPI_UP)
		return "the process exits without MPI_Finalize";
	return "the process exits without MPI_Session_finalize";
}

static void exit_in_midst(int status)
{
	store_relaxed(&madmpi_state.phase, MADMPI_STOPPING);
	fflush(NULL);
	nm_abort(exit_code(status), why_not_left());
}

/*
 * The exit handlers of the program have run: a process that ends in the midst
 * of MPI leaves others waiting for it; after the last session it is time to
 * leave the job. Another thread may begin a session, or end the last one, until
 * this one holds the gate.
 */
static void exit_ends(int status, void *arg)
{
	int phase;

	(void)arg;
	if (!has_begun)
		return;
	madmpi_ending_begin();
	phase = load_relaxed(&madmpi_state.phase);
	if (phase == MADMPI_UP)
		exit_in_midst(status);
	if (phase != MADMPI_DOWN && phase != MADMPI_STOPPING)
		return;
	fflush(NULL);
	marcel_mutex_lock(&gate);
	if (load_relaxed(&madmpi_state.phase) == MADMPI_UP)
		exit_in_midst(status);
	if (is_joined) {
		store_relaxed(&madmpi_state.phase, MADMPI_STOPPING);
		stop();
	}
	marcel_mutex_unlock(&gate);
	if (is_stuck)
		nm_abort(exit_code(status), "the process could not leave the "
					    "job");
}

static bool refuse(struct madmpi_refusal *out, const char *what, int error)
{
	out->class = MPI_ERR_OTHER;
	if (error < 0)
		out->class = madmpi_error_class_of_errno(error);
	snprintf(out->text, sizeof(out->text), "%s%s%s", what,
		 error < 0 ? ": " : "", error < 0 ? strerror(-error) : "");
	return false;
}

/* What this module is made of, once the network is up. 0 or -errno. */
static int make_parts(void)
{
	int rc;

	madmpi_type_init();
	madmpi_op_init();
	madmpi_request_init();
	madmpi_matched_init();
	madmpi_bsend_init_process();
	madmpi_background_init();
	madmpi_win_init();
	rc = madmpi_event_init();
	if (rc == 0)
		rc = madmpi_comm_init();
	return rc < 0 ? rc : madmpi_letters_init();
}

/*
 * Handlers run in the reverse order of registration: this one is registered
 * before the program can register any, and runs after all of them, those of
 * the destructors of its static C++ objects included. (If the program loads
 * the library at run time, those registered before that run later.)
 */
static __attribute__((constructor(101))) void watch_exit(void)
{
	on_exit(exit_ends, NULL);
}

/* Before anything that a child should know of. */
static void hook(void)
{
	if (has_begun)
		return;
	pthread_atfork(NULL, NULL, forked);
	on_exit(exit_begins, NULL);
	has_begun = true;
}

/* From now on calls of MPI are refused, so learn of exit() early. */
static void hook_end(void)
{
	static bool hooked;

	if (!hooked)
		on_exit(exit_begins, NULL);
	hooked = true;
}

static bool start(struct madmpi_refusal *out)
{
	int rc = madmpi_options_load();

	if (left_size > 1)
		return refuse(out,
			      "MPI_Finalize has left the job, which cannot be "
			      "joined again; with MADMPI_STAY=1 it stays",
			      0);
	if (rc == 0)
		rc = join();
	if (rc == -EINVAL) /* whoever reads it has said which */
		return refuse(out,
			      "a setting is not allowed: see the message "
			      "before this one",
			      0);
	if (rc < 0)
		return refuse(out, "the network cannot be started", rc);
	marcel_trace_names(MARCEL_TRACE_MPI_ENTER, madmpi_function_names,
			   madmpi_functions);
	rc = make_parts();
	if (rc < 0)
		return refuse(out, "MPI_COMM_SELF", rc);
	is_joined = true;
	had_session = false;
	return true;
}

bool madmpi_library_get(enum madmpi_user user, struct madmpi_refusal *out)
{
	bool up = true;
	int phase;

	marcel_mutex_lock(&gate);
	phase = load_relaxed(&madmpi_state.phase);
	if (phase == MADMPI_FORKED) {
		up = refuse(out, "a child of fork() is no part of the job", 0);
	} else if (phase == MADMPI_STOPPING) {
		up = refuse(out, "the process is leaving the job", 0);
	} else if (!is_joined) {
		hook();
		store_relaxed(&madmpi_state.phase, MADMPI_STARTING);
		up = start(out);
		if (!up)
			store_relaxed(&madmpi_state.phase, phase);
	}
	if (up) {
		users++;
		had_session |= user == MADMPI_USER_SESSION;
		store_relaxed(&madmpi_state.phase, MADMPI_UP);
	}
	marcel_mutex_unlock(&gate);
	return up;
}

int madmpi_library_put(bool leave)
{
	int rc = 0;

	if (!leave)
		marcel_mutex_lock(&gate);
	if (users == 1 && madmpi_leaks_wanted())
		madmpi_leaks_report();
	if (--users == 0) {
		hook_end();
		store_relaxed(&madmpi_state.phase, MADMPI_STOPPING);
		if (leave)
			rc = stop();
		else
			madmpi_bsend_empty_process();
		store_relaxed(&madmpi_state.phase, MADMPI_DOWN);
	}
	marcel_mutex_unlock(&gate);
	return rc;
}
