/* nmad/core/ids.c: a number finds its object and nothing else. */
#include "../../check.h"

#include <stdlib.h>

#include "../../../nmad/core/ids.h"

static struct nm_mem mem;
static struct nm_ids *ids;

static void setup(void)
{
	nm_mem_init(&mem);
	ids = malloc(sizeof(*ids));
	nm_ids_init(ids, &mem);
}

static void teardown(void)
{
	nm_mem_exit(&mem);
	free(ids);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

TEST(every_number_finds_its_own_object)
{
	enum { N = 5000 };
	static uint64_t numbers[N];
	static int objects[N];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++) {
			numbers[i] = nm_ids_get(ids, &objects[i]);
			CHECK(numbers[i] != 0);
		}
		for (int i = 0; i < N; i++)
			CHECK_PTR(nm_ids_find(ids, numbers[i]), &objects[i]);
		for (int i = 0; i < N; i++)
			nm_ids_put(ids, numbers[i]);
	}
}

TEST(a_number_that_was_given_back_finds_nothing_even_if_its_place_is_used)
{
	int a, b;
	uint64_t first = nm_ids_get(ids, &a), second;

	nm_ids_put(ids, first);
	CHECK_PTR(nm_ids_find(ids, first), NULL);
	second = nm_ids_get(ids, &b);
	CHECK_PTR(nm_ids_find(ids, first), NULL);
	CHECK_PTR(nm_ids_find(ids, second), &b);
	nm_ids_put(ids, second);
}

TEST(made_up_numbers_find_nothing)
{
	CHECK_PTR(nm_ids_find(ids, 0), NULL);
	CHECK_PTR(nm_ids_find(ids, UINT64_MAX), NULL);
	nm_ids_get(ids, &mem);
	for (int i = 0; i < 1000; i++) {
		uint64_t r = check_random();

		if (r >> 32 != 1)
			CHECK_PTR(nm_ids_find(ids, r), NULL);
	}
}
