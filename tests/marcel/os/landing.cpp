/*
 * marcel/os/linux/landing.c: a thread that is ended where it computes leaves
 * the frames of C++ as by an exception; or it goes on, where that would end the
 * process.
 */
#include <cxxabi.h>
#include <stdlib.h>

#include "../with.h"

enum { ROUNDS = 10, SLICES = 10 };

static int begun, go, passed, undone;

static int get(int *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void set(int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static void with_slice(int nvp, void (*body)(void))
{
	setenv("MARCEL_TIMESLICE_US", "500", 1);
	undone = 0;
	with_vps(nvp, body);
	unsetenv("MARCEL_TIMESLICE_US");
}

#define TEST_ASYNC(name)                                                       \
	static void name##_body(void);                                         \
	TEST(name##_on_1_vp)                                                   \
	{                                                                      \
		with_slice(1, name##_body);                                    \
	}                                                                      \
	TEST(name##_on_2_vps)                                                  \
	{                                                                      \
		with_slice(2, name##_body);                                    \
	}                                                                      \
	static void name##_body(void)

struct undoes {
	~undoes()
	{
		set(&undone, get(&undone) + 1);
	}
};

static void spin(int *word)
{
	set(&begun, 1);
	while (get(word) == 0)
		;
}

/* The compiler does not see that it throws nothing. */
static void (*volatile spin_until)(int *word) = spin;

static int never;

/* There is no object, and the sanitizer sees a reference to it. */
__attribute__((no_sanitize("undefined"))) static void *computes(void *arg)
{
	undoes outer;

	marcel_setcanceltype(MARCEL_CANCEL_ASYNCHRONOUS, NULL);
	try {
		undoes inner;

		spin_until(&never);
	} catch (int) {
		CHECK(false);
	} catch (abi::__forced_unwind &) {
		CHECK_INT(get(&undone), 1);
		throw;
	}
	return arg;
}

static marcel_t start(const marcel_attr_t *attr, void *(*fn)(void *))
{
	marcel_t t;

	set(&begun, 0);
	CHECK_INT(marcel_create(&t, attr, fn, NULL), 0);
	while (get(&begun) == 0)
		marcel_yield();
	return t;
}

static void join(marcel_t t)
{
	void *value;

	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, MARCEL_CANCELED);
}

TEST_ASYNC(destructors_run)
{
	for (int i = 0; i < ROUNDS; i++) {
		marcel_t t = start(NULL, computes);

		undone = 0;
		CHECK_INT(marcel_cancel(t), 0);
		join(t);
		CHECK_INT(undone, 2);
	}
}

static void *takes_turns(void *arg)
{
	for (int i = 0; i < SLICES; i++)
		marcel_yield();
	return arg;
}

/* It is interrupted whenever another has its turn. */
static void goes_on(void *(*fn)(void *))
{
	marcel_attr_t attr;
	marcel_t t, other;

	set(&go, 0);
	set(&passed, 0);
	undone = 0;
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, marcel_nvp() - 1), 0);
	t = start(&attr, fn);
	CHECK_INT(marcel_cancel(t), 0);
	CHECK_INT(marcel_create(&other, &attr, takes_turns, NULL), 0);
	CHECK_INT(marcel_join(other, NULL), 0);
	CHECK_INT(get(&passed), 0);
	set(&go, 1);
	join(t);
	CHECK_INT(get(&passed), 1);
	CHECK_INT(undone, 1);
	CHECK_INT(marcel_attr_destroy(&attr), 0);
}

/* Between calls the compiler tells of no way out. */
static void *has_an_object(void *arg)
{
	undoes object;

	marcel_setcanceltype(MARCEL_CANCEL_ASYNCHRONOUS, NULL);
	set(&begun, 1);
	while (get(&go) == 0)
		;
	set(&passed, 1);
	spin_until(&never);
	return arg;
}

static void throws_nothing(int *word) noexcept
{
	spin_until(word);
	set(&passed, 1);
}

static void *below_noexcept(void *arg)
{
	undoes object;

	marcel_setcanceltype(MARCEL_CANCEL_ASYNCHRONOUS, NULL);
	throws_nothing(&go);
	spin_until(&never);
	return arg;
}

static void *swallows(void *arg)
{
	undoes object;

	marcel_setcanceltype(MARCEL_CANCEL_ASYNCHRONOUS, NULL);
	try {
		spin_until(&go);
	} catch (...) {
		CHECK(false);
	}
	set(&passed, 1);
	spin_until(&never);
	return arg;
}

/* What was thrown is there until it is caught, and destructors come first. */
struct computes_at_its_end {
	~computes_at_its_end()
	{
		spin_until(&go);
		set(&passed, 1);
	}
};

static void throw_past(void)
{
	computes_at_its_end object;

	throw 1;
}

static void *catches(void *arg)
{
	undoes object;

	marcel_setcanceltype(MARCEL_CANCEL_ASYNCHRONOUS, NULL);
	try {
		throw_past();
	} catch (int) {
	}
	spin_until(&never);
	return arg;
}

TEST_ASYNC(what_cannot_be_unwound_goes_on)
{
	goes_on(has_an_object);
	goes_on(below_noexcept);
	goes_on(swallows);
	goes_on(catches);
}
