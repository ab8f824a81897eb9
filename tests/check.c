/*
 * main() of every test program. A failed check ends the program's current
 * test by longjmp when it is the main thread's; elsewhere it ends the program,
 * because the other threads of the test cannot be unwound.
 */
#include "check.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct check_test *tests, **last = &tests;
static void (*fixture_setup)(void), (*fixture_teardown)(void);
static void (*after_each)(bool failed);
static jmp_buf out;
static void *test_stack; /* of the frame that runs the tests */
static const char *current = "(none)";
static uint64_t random_state;
static int failures;

enum { FAILED = 1, SKIPPED = 2 };

void check_register(struct check_test *t)
{
	*last = t;
	last = &t->next;
}

void check_fixture(void (*setup)(void), void (*teardown)(void))
{
	fixture_setup = setup;
	fixture_teardown = teardown;
}

void check_after(void (*after)(bool failed))
{
	after_each = after;
}

static volatile bool is_over;

/* Whether this frame stands on the stack that runs the tests. */
static bool on_test_stack(void)
{
	char *here = __builtin_frame_address(0);

	return here < (char *)test_stack && (char *)test_stack - here < 1 << 20;
}

void check_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	printf("# %s:%d: ", file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	if (on_test_stack()) {
		while (is_over) /* what another has failed, who ends us */
			pause();
		longjmp(out, FAILED);
	}
	is_over = true;
	printf("not ok - %s (failed outside the main thread)\n", current);
	fflush(stdout);
	if (after_each)
		after_each(true);
	_exit(1);
}

void check_skip(const char *reason)
{
	printf("# skipped: %s\n", reason);
	longjmp(out, SKIPPED);
}

/* splitmix64 */
uint64_t check_random(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

unsigned check_limit(void)
{
	const char *seconds = getenv("TEST_TIMEOUT");

	if (seconds != NULL)
		return (unsigned)atoi(seconds);
	return getenv("TEST_MINUTES") != NULL ? 0 : 120;
}

static void timed_out(int sig)
{
	static const char text[] = "# timed out\n";
	ssize_t n = write(STDOUT_FILENO, text, sizeof(text) - 1);

	(void)n;
	signal(sig, SIG_DFL);
	abort();
}

static void run(struct check_test *t, int number)
{
	volatile int how = setjmp(out);

	current = t->name;
	if (how == 0) {
		if (fixture_setup)
			fixture_setup();
		t->fn();
		if (fixture_teardown)
			fixture_teardown();
	}
	if (after_each)
		after_each(how == FAILED);
	if (how == FAILED)
		failures++;
	printf("%s %d - %s%s\n", how == FAILED ? "not ok" : "ok", number,
	       t->name, how == SKIPPED ? " # SKIP" : "");
	fflush(stdout);
}

/* Those that are named; with -NAMEs alone, all others. */
static bool wanted(const char *name, int argc, char **argv)
{
	bool all = true;

	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-' && strcmp(argv[i] + 1, name) == 0)
			return false;
		if (strcmp(argv[i], name) == 0)
			return true;
		all = all && argv[i][0] == '-';
	}
	return all;
}

int main(int argc, char **argv)
{
	const char *seed = getenv("TEST_SEED");
	int number = 0, ran = 0;

	random_state =
		seed ? strtoull(seed, NULL, 0)
		     : (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
	printf("# TEST_SEED=%llu\n", (unsigned long long)random_state);
	for (struct check_test *t = tests; t; t = t->next)
		ran += wanted(t->name, argc, argv);
	if (ran == 0) {
		printf("Bail out! no such test\n");
		return 2;
	}
	printf("1..%d\n", ran);
	fflush(stdout);
	signal(SIGALRM, timed_out);
	test_stack = __builtin_frame_address(0);
	for (struct check_test *t = tests; t; t = t->next) {
		if (!wanted(t->name, argc, argv))
			continue;
		alarm(check_limit());
		run(t, ++number);
	}
	return failures > 0;
}
