/*
 * The algorithms of collective operations.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../../madmpi/coll/choose.h"
#include "info.h"

/* The option that says which one of the operation, or NULL: it has one only. */
static struct base_option *option_of(const char *operation)
{
	const struct base_option_table *t = &madmpi_coll_options;

	for (size_t i = 0; i < t->n; i++)
		if (strcasecmp(t->options[i].name + strlen("MADMPI_COLL_"),
			       operation) == 0)
			return &t->options[i];
	return NULL;
}

/* The one that the environment forces on the same operation, or NULL. */
static const struct madmpi_algorithm *
forced_instead(const struct madmpi_algorithm *a)
{
	struct base_option *o = option_of(a->operation);

	if (o == NULL || base_option_read(o) < 0 || o->value == 0)
		return NULL;
	for (size_t i = 0; i < madmpi_algorithms_n; i++) {
		const struct madmpi_algorithm *f = &madmpi_algorithms[i];

		if (strcmp(f->operation, a->operation) == 0 &&
		    strcmp(f->name, o->choices[o->value]) == 0)
			return f;
	}
	return NULL;
}

/* When it is used, in view of the environment. */
static const char *when(const struct madmpi_algorithm *a)
{
	const struct madmpi_algorithm *f = forced_instead(a);

	if (f == NULL)
		return a->when;
	if (f->only != NULL)
		return f == a ? f->only : "else";
	return f == a ? "forced" : "never";
}

void algorithms_print(void)
{
	printf("algorithms of collective operations, what they cost p "
	       "processes of h hosts and n bytes, and when they are used\n"
	       "  %-15s %-14s %-21s %-9s %-17s\n",
	       "", "", "steps", "messages", "bytes");
	for (size_t i = 0; i < madmpi_algorithms_n; i++) {
		const struct madmpi_algorithm *a = &madmpi_algorithms[i];

		printf("  %-15s %-14s %-21s %-9s %-17s %s\n", a->operation,
		       a->name, a->steps, a->messages, a->bytes, when(a));
	}
}
