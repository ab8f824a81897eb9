/*
 * Programs that end while MPI is in use, one by name: how exit() is called, by
 * which kind of thread, and what others do meanwhile. ending.py says what each
 * of them ends with.
 *
 * usage: ending ENDER OTHERS CODE
 */
#include <marcel/marcel.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OTHERS = 4 };

static atomic_int in_mpi, last_words, too_late;
static int code;

/* Of AddressSanitizer: a thread that exit() stops has memory of its own. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

/*
 * Each has been in MPI when exit() is called, and calls it for ever. They
 * yield, since TSan has no time slices.
 */
static void *talk(void *arg)
{
	int x = 0;

	for (int i = 0;; i++) {
		MPI_Sendrecv_replace(&x, 1, MPI_INT, 0, (int)(intptr_t)arg, 0,
				     (int)(intptr_t)arg, MPI_COMM_SELF,
				     MPI_STATUS_IGNORE);
		if (i == 10)
			atomic_fetch_add(&in_mpi, 1);
		marcel_yield();
	}
	return NULL;
}

/* The same, of functions that do not communicate. */
static void *ask(void *arg)
{
	int size;

	atomic_fetch_add(&in_mpi, 1);
	for (;;) {
		MPI_Comm_size(MPI_COMM_WORLD, &size);
		marcel_yield();
	}
	return arg;
}

static void start(int user, void *(*fn)(void *), void *arg)
{
	pthread_t p;
	marcel_t m;

	if (user ? marcel_create(&m, NULL, fn, arg)
		 : pthread_create(&p, NULL, fn, arg))
		_exit(9);
}

static void *exits(void *arg)
{
	exit(code);
	return arg;
}

/* --- exit handlers --- */

static void finalizes(void)
{
	int flag, x = 3;

	MPI_Finalized(&flag);
	if (flag)
		return;
	MPI_Sendrecv_replace(&x, 1, MPI_INT, 0, 77, 0, 77, MPI_COMM_SELF,
			     MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
}

static void talks(void)
{
	int x = 3, sum;

	MPI_Sendrecv_replace(&x, 1, MPI_INT, 0, 77, 0, 77, MPI_COMM_SELF,
			     MPI_STATUS_IGNORE);
	MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* The other threads use MPI, and cannot go on without it. */
static void goes_on(void)
{
	for (int i = 0; i < 100; i++)
		sched_yield();
	printf("last words\n");
}

static void *asks_until_the_end(void *arg)
{
	int size, flag = 0;

	atomic_fetch_add(&in_mpi, 1);
	while (!atomic_load(&last_words)) {
		MPI_Finalized(&flag); /* allowed at any time */
		marcel_yield();
	}
	atomic_fetch_add(&too_late, 1);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	return arg;
}

static void lets_others_call(void)
{
	atomic_store(&last_words, 1);
	while (atomic_load(&too_late) < OTHERS)
		marcel_yield();
	for (int i = 0; i < 1000; i++)
		marcel_yield();
}

static int is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static int is_late(const char *others)
{
	return is(others, "posix_late") || is(others, "user_late");
}

static void start_others(const char *others)
{
	int n = OTHERS;

	if (is(others, "posix") || is(others, "user"))
		for (intptr_t i = 0; i < n; i++)
			start(is(others, "user"), i % 2 ? talk : ask,
			      (void *)i);
	else if (is_late(others))
		for (int i = 0; i < n; i++)
			start(is(others, "user_late"), asks_until_the_end,
			      NULL);
	else
		n = 0;
	while (atomic_load(&in_mpi) < n)
		marcel_yield();
}

/* At the end of the last session the process stays in the job until exit(). */
static int in_a_session(const char *ender, const char *others)
{
	MPI_Session session;

	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
	atexit(lets_others_call);
	start_others(others);
	MPI_Session_finalize(&session);
	if (!is(ender, "session")) {
		start(is(ender, "session_user"), exits, NULL);
		for (;;)
			marcel_yield();
	}
	return code;
}

int main(int argc, char **argv)
{
	const char *ender = argv[1], *others = argv[2];

	if (argc != 4)
		return 77;
	code = atoi(argv[3]);
	if (strncmp(ender, "session", 7) == 0)
		return in_a_session(ender, others);
	if (is_late(others))
		atexit(lets_others_call);
	if (is(others, "finalizes_before") || is(ender, "handler"))
		atexit(finalizes);
	if (is(others, "talks_before"))
		atexit(talks);
	MPI_Init(NULL, NULL);
	if (is(others, "finalizes_after"))
		atexit(finalizes);
	if (is(others, "talks_after"))
		atexit(talks);
	if (is(others, "user") || is(others, "posix"))
		atexit(goes_on);
	start_others(others);
	if (is_late(others) && !is(ender, "handler"))
		MPI_Finalize();
	if (is(ender, "finalized"))
		MPI_Finalize();
	if (is(ender, "exit"))
		exit(code);
	if (is(ender, "_exit"))
		_exit(code);
	if (is(ender, "quick_exit"))
		quick_exit(code);
	if (is(ender, "user") || is(ender, "posix")) {
		start(is(ender, "user"), exits, NULL);
		for (;;)
			marcel_yield();
	}
	return code;
}
