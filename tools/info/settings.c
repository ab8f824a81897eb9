/*
 * The settings: each module's own tables, read as the module reads them.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/option.h>

#include "../../madmpi/core/state.h"
#include "info.h"

/* Not of a table, and not read by the libraries' settings. */
static const struct {
	const char *module, *name, *fallback, *help;
} others[] = {
	{ "mpicc", "MADMPI_CC", "cc", "the compiler behind mpicc" },
	{ "mpicc", "MADMPI_CXX", "c++", "the one behind mpicxx" },
	{ "mpirun", "MARCEL_DEADLOCK_FD", "",
	  "set by mpirun for marcel: where a rank answers if it can go on" },
	{ "mpirun", "NMAD_KEY_FD", "",
	  "set by mpirun for nmad: where the job's key is read from" },
};

typedef bool (*table_fn)(const struct base_option_table *table, void *arg);

/* Calls fn for every table; false if it was false for one. */
static bool each_table(table_fn fn, void *arg)
{
	const struct base_option_table *t;
	bool all = true;

	for (size_t m = 0; m < MADMPI_MODULES; m++)
		for (size_t i = 0; (t = madmpi_settings(m, i)) != NULL; i++)
			all &= fn(t, arg);
	return all;
}

static bool print_one(struct base_option *o)
{
	bool good = base_option_read(o) == 0;
	const char *text = base_option_text(o);
	char allowed[320];

	if (good)
		snprintf(allowed, sizeof(allowed), "%s", o->help);
	else
		base_option_allowed(o, allowed, sizeof(allowed));
	printf("  %-20s %-10s %-12s %s\n", o->name, *text ? text : "-",
	       !good       ? "BAD"
	       : o->is_set ? "environment"
			   : "default",
	       allowed);
	return good;
}

static bool print_table(const struct base_option_table *table, void *arg)
{
	const char **module = arg;
	bool good = true;

	if (*module == NULL || strcmp(*module, table->module) != 0)
		printf("settings of %s\n", table->module);
	*module = table->module;
	for (size_t i = 0; i < table->n; i++)
		good &= print_one(&table->options[i]);
	return good;
}

/* False if the variable, of `len` bytes, is one of the table. */
static bool lacks(const struct base_option_table *table, void *arg)
{
	const char *variable = arg;
	size_t len = strcspn(variable, "=");

	for (size_t i = 0; i < table->n; i++)
		if (strlen(table->options[i].name) == len &&
		    strncmp(table->options[i].name, variable, len) == 0)
			return false;
	return true;
}

static bool is_ours(char *variable)
{
	static const char *const prefixes[] = { "MARCEL_", "PIOM_", "NMAD_",
						"MADMPI_" };
	size_t len = strcspn(variable, "=");

	for (size_t i = 0; i < BASE_ARRAY_LEN(others); i++)
		if (strlen(others[i].name) == len &&
		    strncmp(others[i].name, variable, len) == 0)
			return false;
	for (size_t i = 0; i < BASE_ARRAY_LEN(prefixes); i++)
		if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* Nobody reads them: most likely a slip of the pen. */
static bool print_unknown(void)
{
	bool good = true;

	for (char **v = environ; *v != NULL; v++) {
		if (!is_ours(*v) || !each_table(lacks, *v))
			continue;
		if (good)
			printf("variables that nothing reads\n");
		printf("  %s\n", *v);
		good = false;
	}
	return good;
}

bool settings_print(void)
{
	const char *module = NULL;
	bool good = each_table(print_table, &module);

	return print_unknown() && good;
}

static bool list_table(const struct base_option_table *table, void *arg)
{
	char allowed[320];

	(void)arg;
	for (size_t i = 0; i < table->n; i++) {
		const struct base_option *o = &table->options[i];

		base_option_allowed(o, allowed, sizeof(allowed));
		printf("%s\t%s\t%s\t%s\t%s\n", table->module, o->name,
		       o->fallback,
		       o->kind == BASE_OPTION_STRING ? "" : allowed, o->help);
	}
	return true;
}

void settings_list(void)
{
	each_table(list_table, NULL);
	for (size_t i = 0; i < BASE_ARRAY_LEN(others); i++)
		printf("%s\t%s\t%s\t\t%s\n", others[i].module, others[i].name,
		       others[i].fallback, others[i].help);
}
