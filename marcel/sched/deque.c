/*
 * Arrays of the deques: straight from the operating system, because a wake-up
 * may grow one in a place where libc's allocator must not be called.
 */
#include "deque.h"

#include "../os/os.h"

static size_t array_bytes(int64_t size)
{
	return sizeof(struct marcel_deque_array) +
	       (size_t)size * sizeof(ATOMIC(void *));
}

struct marcel_deque_array *marcel_deque_array_new(int64_t size)
{
	struct marcel_deque_array *a = os_map(array_bytes(size));

	if (a != NULL)
		a->size = size;
	return a;
}

void marcel_deque_array_free(struct marcel_deque_array *a)
{
	os_unmap(a, array_bytes(a->size));
}
