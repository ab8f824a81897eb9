/* nmad/core/session.c: which sessions there are, by number and by name. */
#include "../../check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <nmad/nmad.h>

#include "../../../nmad/core/core.h"
#include "chain.h"
#include "mock.h"

extern const struct nm_strategy *const nm_strategies[];

static const struct nm_driver mock = { .name = "mock" };
static struct nm_core core;
static struct nm_session *first, *second;

/* Of the name "heat"; another hash would part processes of different builds. */
static const uint64_t heat = 0xab5936e0ab44d152u;

static void setup(void)
{
	mock_core(&core, &mock, 1000);
	nm_core_self = &core;
}

static void teardown(void)
{
	nm_core_self = NULL;
	nm_core_exit(&core);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

/* Whose a number is, by what core/session.h draws. */
static unsigned bits(uint64_t id)
{
	return (unsigned)(id >> 62);
}

TEST(no_number_is_a_names_and_no_names_is_another_one)
{
	for (int i = 0; i < 1000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "name %d", i);
		CHECK_INT(bits(nm_session_id_of(name)), 2);
		CHECK_INT(bits(nm_session_new_id()), 0);
		CHECK(nm_session_new_id() >= (uint64_t)1 << 40);
	}
	core.rank = (1 << 22) - 2;
	CHECK_INT(bits(nm_session_new_id()), 0);
	for (uint64_t low = 0; low < 64; low++)
		CHECK_INT(
			nm_session_open((uint64_t)2 << 62 | low << 56, &first),
			-EINVAL);
}

TEST(a_name_has_the_same_number_everywhere)
{
	CHECK(nm_session_id_of("heat") == heat);
	CHECK(nm_session_id_of("heaT") != heat);
	CHECK(nm_session_id_of("heat ") != heat);
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

TEST(a_hundred_thousand_names_have_as_many_numbers)
{
	enum { MANY = 100000 };
	uint64_t *ids = malloc(MANY * sizeof(*ids));

	for (int i = 0; i < MANY; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%d", i);
		ids[i] = nm_session_id_of(name);
	}
	qsort(ids, MANY, sizeof(*ids), compare);
	for (int i = 1; i < MANY; i++)
		CHECK(ids[i] != ids[i - 1]);
	free(ids);
}

/* Open with the number of another, and read what is said about it. */
static int open_alike(uint64_t id, const char *name, char *said, size_t room)
{
	int saved = dup(STDERR_FILENO), ends[2], rc;
	ssize_t n;

	CHECK_INT(pipe(ends), 0);
	CHECK(dup2(ends[1], STDERR_FILENO) >= 0);
	rc = nm_core_session_open_name(&core, id, name, &second);
	CHECK(dup2(saved, STDERR_FILENO) >= 0);
	close(ends[1]);
	n = read(ends[0], said, room - 1);
	said[n > 0 ? n : 0] = '\0';
	close(ends[0]);
	close(saved);
	return rc;
}

TEST(two_names_with_one_number_are_not_one_session)
{
	uint64_t id = nm_session_id_of("one");
	char said[500];

	CHECK_INT(nm_session_open_name("one", &first), 0);
	CHECK_INT(open_alike(id, "other", said, sizeof(said)), -ENOTUNIQ);
	CHECK(strstr(said, "\"one\"") != NULL);
	CHECK(strstr(said, "\"other\"") != NULL);
	CHECK_INT(open_alike(id, "one", said, sizeof(said)), -EEXIST);
	CHECK_STR(said, "");
	CHECK_INT(nm_session_close(first), 0);
	CHECK_INT(open_alike(id, "other", said, sizeof(said)), 0);
	CHECK_STR(said, "");
	CHECK_INT(nm_session_close(second), 0);
}

TEST(a_name_is_neither_missing_nor_empty_nor_too_long)
{
	char name[NM_SESSION_NAME_MAX + 2];

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	first = NULL;
	CHECK_INT(nm_session_open_name(NULL, &first), -EINVAL);
	CHECK_INT(nm_session_open_name("", &first), -EINVAL);
	CHECK_INT(nm_session_open_name("x", NULL), -EINVAL);
	CHECK_INT(nm_session_open_name(name, &first), -ENAMETOOLONG);
	CHECK_PTR(first, NULL);
	name[NM_SESSION_NAME_MAX] = '\0';
	CHECK_INT(nm_session_open_name(name, &first), 0);
	CHECK_INT(nm_session_open_name(name, &second), -EEXIST);
	name[NM_SESSION_NAME_MAX - 1] = '\0';
	CHECK_INT(nm_session_open_name(name, &second), 0);
	CHECK_INT(nm_session_close(first), 0);
	CHECK_INT(nm_session_close(second), 0);
	nm_core_self = NULL;
	CHECK_INT(nm_session_open_name("x", &first), -EINVAL);
}

/* The caller's memory is his own again. */
TEST(a_name_is_copied)
{
	char name[] = "mine";

	CHECK_INT(nm_session_open_name(name, &first), 0);
	strcpy(name, "your");
	CHECK_STR(first->name, "mine");
	CHECK_INT(nm_session_open_name("mine", &second), -EEXIST);
	CHECK_INT(nm_session_close(first), 0);
}

/* --- the table by number --- */

enum { TABLE_MANY = 100000, TABLE_LONGEST = 12 };

/* How many sessions a look-up compares until it finds this one. */
static int steps(uint64_t id)
{
	struct nm_session *s = nm_session_find(&core, id);

	return s != NULL ? chain_steps(&core.by_id, &s->by_id)
			 : TABLE_LONGEST + 1;
}

/* As nm_session_new_id() gives them to two ranks. */
static uint64_t table_id(int i)
{
	return (uint64_t)(1 + i % 2) << 40 | (uint64_t)i / 2;
}

TEST(a_look_up_among_a_hundred_thousand_sessions_compares_a_few)
{
	struct nm_session **s = malloc(TABLE_MANY * sizeof(*s));
	int while_growing = 0, longest = 0;

	for (int i = 0; i < TABLE_MANY; i++) {
		CHECK_INT(nm_core_session_open(&core, table_id(i), &s[i]), 0);
		while_growing += core.by_id.old.slots != NULL;
		CHECK_PTR(nm_session_find(&core, table_id(i)), s[i]);
		CHECK_PTR(nm_session_find(&core, table_id(i / 2)), s[i / 2]);
		CHECK_PTR(nm_session_find(&core, table_id(0)), s[0]);
		CHECK_PTR(nm_session_find(&core, table_id(i + 1)), NULL);
	}
	CHECK(while_growing > 0);
	for (int i = 0; i < TABLE_MANY; i++)
		if (steps(table_id(i)) > longest)
			longest = steps(table_id(i));
	CHECK(longest <= TABLE_LONGEST);
	base_hash_check(&core.by_id);
	for (int i = 0; i < TABLE_MANY; i += 2)
		CHECK_INT(nm_core_session_close(s[i]), 0);
	for (int i = 0; i < TABLE_MANY; i++)
		CHECK_PTR(nm_session_find(&core, table_id(i)),
			  i % 2 == 0 ? NULL : s[i]);
	for (int i = 1; i < TABLE_MANY; i += 2)
		CHECK_INT(nm_core_session_close(s[i]), 0);
	CHECK_INT((int)core.by_id.count, 0);
	free(s);
}

/* One is closed before the old index has been emptied. */
TEST(a_session_is_closed_while_the_table_grows)
{
	struct nm_session *s[1000];
	int n = 0;

	do
		CHECK_INT(nm_core_session_open(&core, table_id(n), &s[n]), 0);
	while (core.by_id.old.slots == NULL && ++n < 1000);
	CHECK(n < 1000);
	for (int i = n; i >= 0; i--) {
		CHECK_INT(nm_core_session_close(s[i]), 0);
		CHECK_PTR(nm_session_find(&core, table_id(i)), NULL);
		if (i > 0)
			CHECK_PTR(nm_session_find(&core, table_id(i - 1)),
				  s[i - 1]);
	}
}
