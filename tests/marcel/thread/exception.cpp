/* marcel/thread/exception.h: exceptions belong to the thread that has them. */
#include <exception>
#include <stdexcept>
#include <string>

#include "../with.h"

enum { THREADS = 1000 / FEWER, ROUNDS = 3 };

/* Yields while something passes, and while it handles an exception of its own.
 */
struct yielder {
	long self;
	int passing; /* exceptions; the end of a thread is none */

	yielder(long n, int passing_) : self(n), passing(passing_)
	{
	}
	~yielder()
	{
		CHECK_INT(std::uncaught_exceptions(), passing);
		marcel_yield();
		try {
			throw self + 1;
		} catch (long caught) {
			CHECK_INT(std::uncaught_exceptions(), passing);
			marcel_yield();
			CHECK_INT(caught, self + 1);
		}
		marcel_yield();
		CHECK_INT(std::uncaught_exceptions(), passing);
	}
};

static void throw_through(long self)
{
	yielder y(self, 1);

	throw std::runtime_error(std::to_string(self));
}

static void handle(long self)
{
	try {
		throw_through(self);
	} catch (std::runtime_error &e) {
		marcel_yield();
		try {
			throw self;
		} catch (long inner) {
			marcel_yield();
			CHECK_INT(inner, self);
		}
		marcel_yield();
		CHECK(std::to_string(self) == e.what());
		throw; /* what the thread handles, and no other */
	}
}

static void *handle_often(void *arg)
{
	long self = (long)arg, caught = 0;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK(std::current_exception() == nullptr);
		try {
			handle(self);
		} catch (std::exception &e) {
			marcel_yield();
			CHECK(std::to_string(self) == e.what());
			caught++;
		}
		CHECK_INT(std::uncaught_exceptions(), 0);
		marcel_yield();
	}
	return (void *)caught;
}

static void run_all()
{
	static marcel_t t[THREADS];
	void *caught;

	for (long i = 0; i < THREADS; i++)
		CHECK_INT(marcel_create(&t[i], NULL, handle_often,
					(void *)(10 * i)),
			  0);
	for (long i = 0; i < THREADS; i++) {
		CHECK_INT(marcel_join(t[i], &caught), 0);
		CHECK_INT((long)caught, ROUNDS);
	}
}

TEST_VPS(threads_that_handle_exceptions_do_not_meet)
{
	run_all();
}

TEST(threads_that_handle_exceptions_do_not_meet_on_2_vps)
{
	with_vps(2, run_all);
}

static void *handle_once(void *)
{
	return handle_often((void *)5);
}

/* A join inside a handler runs the newest seed at once, and comes back. */
TEST_VPS(main_may_join_while_it_handles_an_exception)
{
	try {
		throw 3;
	} catch (int three) {
		marcel_t t;
		void *caught;

		CHECK_INT(marcel_create(&t, NULL, handle_once, NULL), 0);
		CHECK_INT(marcel_join(t, &caught), 0);
		CHECK_INT((long)caught, ROUNDS);
		CHECK_INT(three, 3);
		CHECK(std::current_exception() != nullptr);
	}
	CHECK(std::current_exception() == nullptr);
}

static void *exit_while_handling(void *value)
{
	try {
		throw 7;
	} catch (int) {
		yielder y(0, 0);

		marcel_exit(value);
	}
	return NULL;
}

static void *look(void *)
{
	return (void *)(long)(std::current_exception() != nullptr ||
			      std::uncaught_exceptions() != 0);
}

TEST_VPS(exit_in_a_handler_leaves_no_exception_behind)
{
	for (int i = 0; i < 20; i++) {
		marcel_t t[2];
		void *value;

		CHECK_INT(
			marcel_create(&t[0], NULL, exit_while_handling, &value),
			0);
		CHECK_INT(marcel_create(&t[1], NULL, look, NULL), 0);
		CHECK_INT(marcel_join(t[1], &value), 0);
		CHECK_PTR(value, NULL);
		CHECK_INT(marcel_join(t[0], &value), 0);
		CHECK_PTR(value, &value);
		CHECK_INT(marcel_create(&t[1], NULL, look, NULL), 0);
		CHECK_INT(marcel_join(t[1], &value), 0);
		CHECK_PTR(value, NULL);
	}
}
