/*
 * The command line of heat.
 */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"usage: mpirun -n N heat [options] picture\n"
	"Spread the heat of a picture (PGM or PPM) over the plane.\n"
	"\n"
	"  --tiles RxC    cut it into R rows of C tiles, a user thread each "
	"(8x8)\n"
	"  --steps S      so many steps (100)\n"
	"  --out PREFIX   write PREFIX.pgm and PREFIX.png (heat-out)\n"
	"  --verify       compare with a sequential run, bit for bit\n"
	"  --single       no threads: one tile a process, for comparison\n";

enum { SIDE_MAX = 4096, STEPS_MAX = 100000000 };

/* A number from 1 to max up to `end`; 0: it is none. */
static int number(const char *text, char end, int max, const char **rest)
{
	char *stop;
	long n;

	errno = 0;
	n = strtol(text, &stop, 10);
	if (*text < '0' || *text > '9' || errno != 0 || n < 1 || n > max ||
	    *stop != end)
		return 0;
	*rest = stop + 1;
	return (int)n;
}

/* The value of an option. Returns what was expected if it is wrong. */
static const char *set(struct options *o, const char *name, const char *value)
{
	const char *rest = value;

	if (strcmp(name, "--tiles") == 0) {
		o->rows = number(value, 'x', SIDE_MAX, &rest);
		o->cols = number(rest, '\0', SIDE_MAX, &rest);
		if (o->rows == 0 || o->cols == 0)
			return "rows and columns, such as 32x32, each at most "
			       "4096";
	} else if (strcmp(name, "--steps") == 0) {
		o->steps = number(value, '\0', STEPS_MAX, &rest);
		if (o->steps == 0)
			return "a number from 1 to 100000000";
	} else if (*value == '\0') {
		return "the beginning of a file name";
	} else {
		o->out = value;
	}
	return NULL;
}

static int is_valued(const char *name)
{
	return strcmp(name, "--tiles") == 0 || strcmp(name, "--steps") == 0 ||
	       strcmp(name, "--out") == 0;
}

/* What is wrong, in `why`; 0: nothing. */
static int parse(struct options *o, int argc, char **argv, char *why,
		 size_t room)
{
	for (int i = 1; i < argc; i++) {
		const char *expected = NULL;

		if (strcmp(argv[i], "--verify") == 0) {
			o->verify = 1;
		} else if (strcmp(argv[i], "--single") == 0) {
			o->single = 1;
		} else if (is_valued(argv[i])) {
			const char *value = i + 1 < argc ? argv[i + 1] : "";

			expected = set(o, argv[i], value);
			if (expected != NULL)
				return snprintf(why, room,
						"%s \"%s\": expected %s",
						argv[i], value, expected);
			i++;
		} else if (argv[i][0] == '-' || o->picture != NULL) {
			return snprintf(why, room, "unexpected \"%s\"",
					argv[i]);
		} else {
			o->picture = argv[i];
		}
	}
	if (o->picture == NULL)
		return snprintf(why, room, "the picture is missing");
	return 0;
}

int options_parse(struct options *o, int argc, char **argv, int speaks)
{
	char why[512];

	*o = (struct options){
		.rows = 8, .cols = 8, .steps = 100, .out = "heat-out"
	};
	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		if (speaks)
			fputs(help, stdout);
		return -1;
	}
	if (parse(o, argc, argv, why, sizeof(why)) == 0)
		return 0;
	if (speaks)
		fprintf(stderr, "heat: %s (see heat --help)\n", why);
	return 2;
}
