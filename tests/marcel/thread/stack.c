/* marcel/thread/stack.c: stacks are reused, coloured and guarded. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/compiler.h>
#include "../with.h"
#include "../../../marcel/os/os.h"
#include "../../../marcel/sched/vp.h"
#include "../../../marcel/thread/stack.h"

static void *place(void *arg)
{
	(void)arg;
	return __builtin_frame_address(0);
}

TEST(a_hot_stack_serves_the_next_thread)
{
	struct marcel_config config = { .nvp = 1 };
	void *first, *next;
	marcel_t t;

	CHECK_INT(marcel_init(&config), 0);
	CHECK_INT(marcel_create(&t, NULL, place, NULL), 0);
	CHECK_INT(marcel_join(t, &first), 0);
	for (int i = 0; i < 1000; i++) {
		CHECK_INT(marcel_create(&t, NULL, place, NULL), 0);
		CHECK_INT(marcel_join(t, &next), 0);
		CHECK_PTR(next, first);
	}
	CHECK_INT(marcel_end(), 0);
}

/* With the scheduler out of the way. */
enum { MANY = 200 };

TEST(stacks_do_not_overlap_and_have_their_room)
{
	static const size_t sizes[] = { 16384, 65536, 80000, 300000, 5000000 };
	struct marcel_stack *s[MANY];

	CHECK_INT(marcel_stack_init(65536), 0);
	for (unsigned k = 0; k < BASE_ARRAY_LEN(sizes); k++) {
		for (int i = 0; i < MANY; i++) {
			s[i] = marcel_stack_get(NULL, sizes[k]);
			CHECK(s[i] != NULL);
			CHECK(s[i]->bytes >= sizes[k]);
			CHECK(s[i]->is_guarded);
			CHECK(marcel_stack_is_guard(s[i], s[i]->low - 1));
			CHECK(!marcel_stack_is_guard(s[i], s[i]->low));
			memset(s[i]->low, i, 64);
			memset((char *)s[i] - 64, i, 64);
		}
		for (int i = 0; i < MANY; i++) {
			CHECK_INT(s[i]->low[63], (char)i);
			CHECK_INT(((char *)s[i])[-64], (char)i);
			marcel_stack_put(NULL, s[i]);
		}
	}
	marcel_stack_exit();
}

TEST(the_tops_of_stacks_differ_in_their_cache_sets)
{
	unsigned seen[64] = { 0 };

	CHECK_INT(marcel_stack_init(65536), 0);
	for (int i = 0; i < 64; i++) {
		struct marcel_stack *s = marcel_stack_get(NULL, 65536);

		CHECK(s != NULL);
		seen[(uintptr_t)s / 64 % 64]++;
	}
	for (int i = 0; i < 64; i++)
		CHECK(seen[i] <= 8);
	marcel_stack_exit();
}

TEST(a_guard_that_the_kernel_cannot_read_is_believed)
{
	int fds[2];
	char *p = os_map(os_page_size());

	CHECK_INT(pipe(fds), 0);
	CHECK_INT(write(fds[1], p, 1), 1);
	if (os_guard_probe()) {
		CHECK_INT(os_guard_install(p, os_page_size()), 0);
		CHECK_INT(write(fds[1], p, 1), -1);
	}
	os_unmap(p, os_page_size());
	p = os_map(os_page_size());
	CHECK_INT(os_guard_protect(p, os_page_size()), 0);
	CHECK_INT(write(fds[1], p, 1), -1);
	os_unmap(p, os_page_size());
	close(fds[0]);
	close(fds[1]);
}
