/*
 * The test harness: TEST defines and registers a test, CHECK_* say what must
 * hold, the program prints TAP. A failed CHECK ends its test, not the program.
 *
 *   prog            run all tests
 *   prog NAME ...   run only these
 *   prog -NAME ...  run all but these
 *   TEST_SEED=n     seed of check_random(), printed by every run
 *   TEST_TIMEOUT=s  seconds after which the program dumps its state and dies:
 *                   120 for each test, or never with TEST_MINUTES
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Whether an emulator runs us: tools/aarch64.ini says so. */
#ifndef EMULATED
#define EMULATED 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct check_test {
	const char *name;
	void (*fn)(void);
	struct check_test *next;
};

void check_register(struct check_test *t);
void check_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), noreturn));
/* End the running test: it cannot be made here, for this reason. */
void check_skip(const char *reason) __attribute__((noreturn));
/* Deterministic for one TEST_SEED; one stream for the whole program. */
uint64_t check_random(void);
/* Seconds that a test may take, or 0. */
unsigned check_limit(void);
/*
 * What is done after every test, told whether that has failed: by the thread
 * that ends it. Before main() runs, or by a test.
 */
void check_after(void (*after)(bool failed));
/* Set up and tear down around every test; optional, before main() runs. */
void check_fixture(void (*setup)(void), void (*teardown)(void));

#ifdef __cplusplus
}
#endif

/* clang-format off */
#define TEST(name)                                                             \
	static void name(void);                                                \
	__attribute__((constructor)) static void name##_register(void)         \
	{                                                                      \
		static struct check_test t = { #name, name, 0 };               \
		check_register(&t);                                            \
	}                                                                      \
	static void name(void)
/* clang-format on */

#define CHECK(x) ((x) ? (void)0 : check_fail(__FILE__, __LINE__, "%s", #x))

#define CHECK_INT(got, want)                                                   \
	do {                                                                   \
		long long check_g = (long long)(got);                          \
		long long check_w = (long long)(want);                         \
		if (check_g != check_w)                                        \
			check_fail(__FILE__, __LINE__,                         \
				   "%s is %lld, not %s (%lld)", #got, check_g, \
				   #want, check_w);                            \
	} while (0)

#define CHECK_PTR(got, want)                                                   \
	do {                                                                   \
		const void *check_g = (got);                                   \
		const void *check_w = (want);                                  \
		if (check_g != check_w)                                        \
			check_fail(__FILE__, __LINE__,                         \
				   "%s is %p, not %s (%p)", #got, check_g,     \
				   #want, check_w);                            \
	} while (0)

#define CHECK_STR(got, want)                                                   \
	do {                                                                   \
		const char *check_g = (got);                                   \
		const char *check_w = (want);                                  \
		if (strcmp(check_g, check_w) != 0)                             \
			check_fail(__FILE__, __LINE__,                         \
				   "%s is \"%s\", not \"%s\"", #got, check_g,  \
				   check_w);                                   \
	} while (0)

#endif
