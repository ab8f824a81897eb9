/*
 * User threads, pthreads and threads of C++, all at once, and who of them
 * completes what others have left.
 */
#include "kinds.h"

#include <pthread.h>
#include <thread>
#include <vector>

enum { EACH = 8 };

static void all_kinds_at_once()
{
	std::vector<talker> t(3 * EACH);
	std::vector<marcel_t> user(EACH);
	std::vector<pthread_t> posix(EACH);
	std::vector<std::thread> standard;

	talkers_init(t.data(), 3 * EACH);
	for (int i = 0; i < EACH; i++) {
		EXPECT_INT(marcel_create(&user[i], NULL, talk, &t[i]), 0);
		EXPECT_INT(pthread_create(&posix[i], NULL, talk, &t[EACH + i]),
			   0);
		standard.emplace_back(talk, &t[2 * EACH + i]);
	}
	for (int i = 0; i < EACH; i++) {
		EXPECT_INT(marcel_join(user[i], NULL), 0);
		EXPECT_INT(pthread_join(posix[i], NULL), 0);
		standard[i].join();
	}
	talkers_exit(t.data(), 3 * EACH);
}

static void by_user_thread(void *(*fn)(void *), void *arg)
{
	marcel_t t;

	EXPECT_INT(marcel_create(&t, NULL, fn, arg), 0);
	EXPECT_INT(marcel_join(t, NULL), 0);
}

static void by_posix_thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	EXPECT_INT(pthread_create(&t, NULL, fn, arg), 0);
	EXPECT_INT(pthread_join(t, NULL), 0);
}

static void by_standard_thread(void *(*fn)(void *), void *arg)
{
	std::thread(fn, arg).join();
}

/* Each kind completes the requests of each kind. */
static void requests_outlive_their_threads()
{
	static void (*const by[])(void *(*)(void *), void *) = {
		by_user_thread, by_posix_thread, by_standard_thread
	};
	std::vector<legacy> l(1);

	for (auto first : by)
		for (auto second : by) {
			first(leave_requests, l.data());
			second(complete_requests, l.data());
		}
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	ask_about_threads(1);
	all_kinds_at_once();
	requests_outlive_their_threads();
	ask_about_threads(1);
	return program_end("kinds");
}
