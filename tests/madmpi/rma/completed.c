/*
 * The end of access epochs as MPI_Win_test sees it. The test plays the thread
 * that serves: what that does happens where a function of the library is about
 * to wait or to lock.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "rma/serving.h"

#include "../../check.h"

static struct origin origins[2];
static struct madmpi_serve s;
static struct madmpi_win w;

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
	complete(nwaits++);
	is_late = nwaits == 1;
	__real_piom_cond_wait(cond);
}

TEST(question_is_answered_if_a_completion_wakes_the_asker_first)
{
	const int ranks[] = { 0, 1 };

	begin();
	CHECK_INT(madmpi_serve_completed(&w, ranks, 2, false), -EAGAIN);
	CHECK_INT(nwaits, 1);
}
