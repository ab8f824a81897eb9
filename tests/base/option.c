/* base/option.c: values are read whole or refused. */
#include "../check.h"

#include <errno.h>
#include <stdlib.h>

#include <base/option.h>

static const char *const modes[] = { "auto", "poll", NULL };

static struct base_option options[] = {
	{ "T_INT", BASE_OPTION_INT, "5", 0, 10, NULL, "a number" },
	{ "T_SIZE", BASE_OPTION_SIZE, "64k", 0, 1 << 30, NULL, "a size" },
	{ "T_BOOL", BASE_OPTION_BOOL, "1", 0, 0, NULL, "a switch" },
	{ "T_MODE", BASE_OPTION_CHOICE, "auto", 0, 0, modes, "a choice" },
	{ "T_WORD", BASE_OPTION_INT, "best", 0, 9, NULL, "or best", "best" },
};

static const struct base_option_table table =
	BASE_OPTION_TABLE("test", options);

static int load(const char *name, const char *value)
{
	int rc;

	setenv(name, value, 1);
	rc = base_option_load(&table);
	unsetenv(name);
	return rc;
}

TEST(defaults_hold_when_nothing_is_set)
{
	CHECK_INT(base_option_load(&table), 0);
	CHECK_INT(options[0].value, 5);
	CHECK_INT(options[1].value, 65536);
	CHECK_INT(options[2].value, 1);
	CHECK_INT(options[3].value, 0);
	CHECK(!options[0].is_set);
}

TEST(values_of_the_environment_win)
{
	CHECK_INT(load("T_INT", "10"), 0);
	CHECK_INT(options[0].value, 10);
	CHECK(options[0].is_set);
	CHECK_INT(load("T_SIZE", "2M"), 0);
	CHECK_INT(options[1].value, 2 << 20);
	CHECK_INT(load("T_MODE", "poll"), 0);
	CHECK_INT(options[3].value, 1);
}

TEST(a_number_may_have_a_word_instead)
{
	char allowed[100];

	CHECK_INT(base_option_load(&table), 0);
	CHECK(options[4].value == BASE_OPTION_WORD);
	CHECK_INT(load("T_WORD", "9"), 0);
	CHECK_INT(options[4].value, 9);
	CHECK_INT(load("T_WORD", "best"), 0);
	CHECK(options[4].value == BASE_OPTION_WORD);
	CHECK_INT(load("T_WORD", "bes"), -EINVAL);
	CHECK_INT(load("T_WORD", "best "), -EINVAL);
	CHECK_INT(load("T_INT", "best"), -EINVAL);
	base_option_allowed(&options[4], allowed, sizeof(allowed));
	CHECK_STR(allowed, "not a whole number from 0 to 9, nor best");
}

TEST(nonsense_is_refused)
{
	CHECK_INT(load("T_INT", "11"), -EINVAL);
	CHECK_INT(load("T_INT", "-1"), -EINVAL);
	CHECK_INT(load("T_INT", "5x"), -EINVAL);
	CHECK_INT(load("T_INT", " 5"), -EINVAL);
	CHECK_INT(load("T_INT", "99999999999999999999"), -EINVAL);
	CHECK_INT(load("T_SIZE", "9999999999999g"), -EINVAL);
	CHECK_INT(load("T_SIZE", "k"), -EINVAL);
	CHECK_INT(load("T_BOOL", "yes"), -EINVAL);
	CHECK_INT(load("T_MODE", "Poll"), -EINVAL);
}

TEST(a_bad_value_leaves_the_default_and_says_what_is_allowed)
{
	char allowed[100];

	setenv("T_MODE", "Poll", 1);
	CHECK_INT(base_option_read(&options[3]), -EINVAL);
	CHECK_STR(base_option_text(&options[3]), "Poll");
	CHECK_INT(options[3].value, 0);
	CHECK(options[3].is_set);
	unsetenv("T_MODE");
	base_option_allowed(&options[3], allowed, sizeof(allowed));
	CHECK_STR(allowed, "not one of auto, poll");
	base_option_allowed(&options[0], allowed, sizeof(allowed));
	CHECK_STR(allowed, "not a whole number from 0 to 10");
	CHECK_INT(base_option_read(&options[3]), 0);
	CHECK_STR(base_option_text(&options[3]), "auto");
}
