/* base/list.h: the rules that its users rely on. */
#include "../check.h"

#include <base/list.h>

struct item {
	int value;
	struct base_link link;
};

TEST(takes_come_in_the_order_of_pushes)
{
	struct base_list l;
	struct item items[3] = { { .value = 0 },
				 { .value = 1 },
				 { .value = 2 } };

	base_list_init(&l);
	for (int i = 0; i < 3; i++)
		base_list_push_back(&l, &items[i].link);
	for (int i = 0; i < 3; i++) {
		CHECK_PTR(base_list_first(&l), &items[i].link);
		CHECK_PTR(base_list_take_front(&l), &items[i].link);
	}
	CHECK(base_list_is_empty(&l));
	CHECK_PTR(base_list_take_front(&l), NULL);
}

TEST(a_removed_link_is_on_no_list)
{
	struct base_list l;
	struct item item = { .value = 7 };

	base_list_init(&l);
	base_link_init(&item.link);
	CHECK(!base_link_is_on(&item.link));
	base_list_push_front(&l, &item.link);
	CHECK(base_link_is_on(&item.link));
	base_list_remove(&item.link);
	CHECK(!base_link_is_on(&item.link));
	base_list_remove(&item.link);
	CHECK(base_list_is_empty(&l));
}

TEST(splice_keeps_the_order_and_empties_the_source)
{
	struct base_list a, b;
	struct item items[4] = { { 0 }, { 1 }, { 2 }, { 3 } };

	base_list_init(&a);
	base_list_init(&b);
	for (int i = 0; i < 4; i++)
		base_list_push_back(i < 2 ? &a : &b, &items[i].link);
	base_list_splice_back(&a, &b);
	CHECK(base_list_is_empty(&b));
	for (int i = 0; i < 4; i++)
		CHECK_PTR(base_list_take_front(&a), &items[i].link);
	base_list_splice_back(&a, &b);
	CHECK(base_list_is_empty(&a));
}
