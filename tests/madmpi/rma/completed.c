/*
 * The end of access epochs as MPI_Win_test sees it. A test plays the thread
 * that serves: what that does happens where a function of the library is about
 * to wait or to lock. Or it plays the network, for the real thread.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "rma/serving.h"

#include "../../check.h"

static struct origin origins[2];
static struct madmpi_serve s;
static struct madmpi_win w;

static bool plays_thread;
static int nwaits;
static bool is_late; /* the thread catches up before the next lock */

static void begin(void)
{
	memset(origins, 0, sizeof(origins));
	memset(&s, 0, sizeof(s));
	marcel_mutex_init(&s.mutex, NULL);
	piom_sem_init(&s.work, 0);
	s.origin = origins;
	w.serve = &s;
	plays_thread = true;
	nwaits = 0;
	is_late = false;
}

static void complete(int rank)
{
	s.now.rank = rank;
	madmpi_serve_complete(&w);
}

/* The linker calls these instead (--wrap). */
#define SEEN __attribute__((visibility("default")))

int __real_marcel_mutex_lock(marcel_mutex_t *mutex);
SEEN int __wrap_marcel_mutex_lock(marcel_mutex_t *mutex);
void __real_piom_cond_wait(piom_cond_t *cond);
SEEN void __wrap_piom_cond_wait(piom_cond_t *cond);

int __wrap_marcel_mutex_lock(marcel_mutex_t *mutex)
{
	if (is_late) {
		is_late = false;
		madmpi_serve_caught_up(&s);
	}
	return __real_marcel_mutex_lock(mutex);
}

/* One origin completes, and the thread has served everything a bit later. */
void __wrap_piom_cond_wait(piom_cond_t *cond)
{
	if (plays_thread) {
		complete(nwaits++);
		is_late = nwaits == 1;
	}
	__real_piom_cond_wait(cond);
}

TEST(question_is_answered_if_a_completion_wakes_the_asker_first)
{
	const int ranks[] = { 0, 1 };

	begin();
	CHECK_INT(madmpi_serve_completed(&w, ranks, 2, false), -EAGAIN);
	CHECK_INT(nwaits, 1);
}

/* --- the network --- */

/* Requests that are still to be found: no data, or the end of an epoch. */
static ATOMIC(int) nto_come;
static bool brings_end;

int __wrap_nm_sr_mprobe(struct nm_session *session, struct nm_gate *from,
			nm_tag_t tag, nm_tag_t mask, struct nm_message **out,
			struct nm_sr_status *status);
int __wrap_nm_sr_mrecv(struct nm_message *message, const struct nm_data *data,
		       struct nm_sr_request *req);
int __wrap_nm_sr_is_complete(const struct nm_sr_request *req);
void __wrap_nm_sr_wait(struct nm_sr_request *req);
void __wrap_nm_sr_status(const struct nm_sr_request *req,
			 struct nm_sr_status *out);
int __wrap_nm_gate_rank(const struct nm_gate *gate);

static const struct madmpi_rma_head end = { .kind = MADMPI_RMA_COMPLETE };

int __wrap_nm_sr_mprobe(struct nm_session *session, struct nm_gate *from,
			nm_tag_t tag, nm_tag_t mask, struct nm_message **out,
			struct nm_sr_status *status)
{
	(void)session, (void)from, (void)tag, (void)mask;
	*out = NULL;
	memset(status, 0, sizeof(*status));
	status->length = sizeof(end);
	if (load_relaxed(&nto_come) == 0)
		return -EAGAIN;
	fetch_sub_relaxed(&nto_come, 1);
	return 0;
}

int __wrap_nm_sr_mrecv(struct nm_message *message, const struct nm_data *data,
		       struct nm_sr_request *req)
{
	(void)message, (void)req;
	nm_data_copy_in(data, 0, &end, sizeof(end));
	return 0;
}

int __wrap_nm_sr_is_complete(const struct nm_sr_request *req)
{
	(void)req;
	return !brings_end;
}

/* Others go on meanwhile. */
void __wrap_nm_sr_wait(struct nm_sr_request *req)
{
	(void)req;
	for (int i = 0; i < 1000; i++)
		marcel_yield();
}

int __wrap_nm_gate_rank(const struct nm_gate *gate)
{
	(void)gate;
	return 0;
}

/* If the origin has died, nothing is done for the request. */
void __wrap_nm_sr_status(const struct nm_sr_request *req,
			 struct nm_sr_status *out)
{
	(void)req;
	memset(out, 0, sizeof(*out));
	out->sent = sizeof(end);
	out->error = brings_end ? 0 : -ECONNRESET;
}

/* Of the thread, while n requests come. */
static int answer(int n)
{
	static int inverse[] = { 0 };
	static struct madmpi_group group = { .inverse = inverse };
	static struct madmpi_comm comm = { .group = &group, .peers = &group };
	const int ranks[] = { 0 };
	int rc;

	w = (struct madmpi_win){ .comm = &comm, .size = 1 };
	plays_thread = false;
	CHECK_INT(marcel_init(NULL), 0);
	CHECK_INT(madmpi_serve_start(&w), 0);
	store_relaxed(&nto_come, n);
	rc = madmpi_serve_completed(&w, ranks, 1, false);
	store_relaxed(&nto_come, 0);
	madmpi_serve_stop(&w);
	CHECK_INT(marcel_end(), 0);
	return rc;
}

TEST(question_is_answered_although_requests_never_end)
{
	brings_end = false;
	CHECK_INT(answer(INT_MAX), -EAGAIN);
}

/* It is there, and is only to be copied. */
TEST(question_waits_for_a_request_that_is_being_received)
{
	brings_end = true;
	CHECK_INT(answer(1), 0);
}
