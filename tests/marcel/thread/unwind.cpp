/* marcel/thread/exit.c: the end of a thread runs what C++ has to run. */
#include <cxxabi.h>
#include <exception>
#include <pthread.h>
#include <stdlib.h>

#include "../child.h"
#include "../with.h"

enum { LOG = 16 };

/* Who ran, in order; one thread at a time writes. */
static int order[LOG], norder;

static void note(void *arg)
{
	CHECK(norder < LOG);
	order[norder++] = (int)(long)arg;
}

struct noted {
	long number;

	explicit noted(long n) : number(n)
	{
	}
	~noted()
	{
		marcel_yield();
		note((void *)number);
	}
};

static void check_order(const int *want, int n)
{
	CHECK_INT(norder, n);
	for (int i = 0; i < n; i++)
		CHECK_INT(order[i], want[i]);
}

static void *exit_deep(void *value)
{
	noted two(2);

	marcel_cleanup_push(note, (void *)1);
	noted zero(0);
	marcel_exit(value);
	marcel_cleanup_pop(0);
	return NULL;
}

/* There is no object, and the sanitizer sees a reference to it. */
__attribute__((no_sanitize("undefined"))) static void *rethrow(void *value)
{
	noted four(4);

	try {
		exit_deep(value);
	} catch (abi::__forced_unwind &) {
		note((void *)3);
		throw;
	}
	return NULL;
}

static void *rethrow_all(void *value)
{
	noted six(6);

	try {
		rethrow(value);
	} catch (...) {
		note((void *)5);
		throw;
	}
	return NULL;
}

static const int all[] = { 0, 1, 2, 3, 4, 5, 6 };

TEST_VPS(exit_runs_destructors_and_handlers_innermost_first)
{
	for (int i = 0; i < 50; i++) {
		marcel_t t;
		void *value;

		norder = 0;
		CHECK_INT(marcel_create(&t, NULL, rethrow_all, &value), 0);
		CHECK_INT(marcel_join(t, &value), 0);
		CHECK_PTR(value, &value);
		check_order(all, 7);
	}
}

TEST_VPS(exit_of_a_foreign_thread_runs_destructors)
{
	pthread_t t;
	void *value;

	norder = 0;
	CHECK_INT(pthread_create(&t, NULL, rethrow_all, &value), 0);
	CHECK_INT(pthread_join(t, &value), 0);
	CHECK_PTR(value, &value);
	check_order(all, 7);
}

static void *exit_below_catch(void *arg)
{
	try {
		marcel_cleanup_push(note, (void *)1);
		throw arg;
		marcel_cleanup_pop(0);
	} catch (void *caught) {
		return caught;
	}
	return NULL;
}

TEST_VPS(an_exception_runs_the_handlers_that_it_passes)
{
	marcel_t t;
	void *value;

	norder = 0;
	CHECK_INT(marcel_create(&t, NULL, exit_below_catch, &value), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, &value);
	CHECK_INT(norder, 1);
}

/* --- how processes end --- */

struct says {
	~says()
	{
		fprintf(stderr, "destroyed\n");
	}
};

static void init_or_die()
{
	struct marcel_config config = {};

	config.nvp = 2;
	if (marcel_init(&config) != 0)
		_exit(9);
}

static void exit_main()
{
	says s;

	init_or_die();
	marcel_exit(NULL);
}

TEST(exit_of_main_runs_its_destructors)
{
	CHECK_INT(in_child(exit_main), 0);
	CHECK_STR(said, "destroyed\n");
}

static void *swallow(void *arg)
{
	try {
		marcel_exit(arg);
	} catch (...) {
	}
	return arg;
}

static void run_swallow()
{
	marcel_t t;

	init_or_die();
	marcel_create(&t, NULL, swallow, NULL);
	marcel_join(t, NULL);
}

TEST(who_keeps_the_end_of_a_thread_is_told)
{
	int status = in_child(run_swallow);

	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGABRT);
	CHECK(strstr(said, "catch (...)") != NULL);
}

static void terminated()
{
	_exit(7);
}

static void *throw_all(void *)
{
	throw 1;
}

static void run_throw()
{
	marcel_t t;

	std::set_terminate(terminated);
	init_or_die();
	marcel_create(&t, NULL, throw_all, NULL);
	marcel_join(t, NULL);
}

TEST(an_exception_that_nobody_catches_terminates)
{
	int status = in_child(run_throw);

	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 7);
}

static void *wait_deep(void *arg)
{
	noted two(2);

	marcel_cleanup_push(note, (void *)1);
	noted zero(0);
	marcel_sem_wait((marcel_sem_t *)arg);
	marcel_cleanup_pop(0);
	return NULL;
}

TEST_VPS(who_is_cancelled_runs_its_destructors)
{
	static const int want[] = { 0, 1, 2 };
	marcel_sem_t sem;
	void *value;
	marcel_t t;

	norder = 0;
	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	CHECK_INT(marcel_create(&t, NULL, wait_deep, &sem), 0);
	CHECK_INT(marcel_cancel(t), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, MARCEL_CANCELED);
	check_order(want, 3);
	CHECK_INT(marcel_sem_destroy(&sem), 0);
}
