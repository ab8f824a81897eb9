/*
 * Which thread ends the process.
 */
#include "proc/ending.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <base/atomic.h>
#include <marcel/marcel.h>
#include <nmad/nmad.h>

/* The thread in exit(), which never leaves it; NULL: none that we know of. */
static ATOMIC(struct marcel_thread *) ender; /* a: set once, by itself */

/*
 * A user thread parks, since the thread in exit() may need its VP. A foreign
 * thread sleeps in the kernel, since marcel may stop meanwhile.
 */
static void BASE_NORETURN wait_for_ever(void)
{
	marcel_sem_t never;

	marcel_sem_init(&never, 0, 0);
	while (marcel_current_vp() >= 0)
		marcel_sem_wait(&never);
	for (;;)
		pause();
}

void madmpi_ending_begin(void)
{
	struct marcel_thread *none = NULL;

	if (!cas_relaxed(&ender, &none, marcel_self()))
		madmpi_ending_wait();
}

bool madmpi_ending_has_begun(void)
{
	return load_relaxed(&ender) != NULL;
}

void madmpi_ending_wait(void)
{
	struct marcel_thread *t = load_relaxed(&ender);

	if (t != NULL && !marcel_equal(t, marcel_self()))
		wait_for_ever();
}

void madmpi_ending_exit(int code)
{
	madmpi_ending_wait();
	if (!madmpi_ending_has_begun())
		exit(code);
	fflush(NULL);
	nm_abort(code, NULL);
}

void madmpi_ending_forked(void)
{
	store_relaxed(&ender, NULL);
}
