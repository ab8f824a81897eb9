/*
 * The command line of nm-sample.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/option.h>

#include "sample.h"

/* clang-format off */
static const char help[] =
	"usage: mpirun -n 2 nm-sample [options] FILE\n"
	"Measure how fast each rail of NMAD_DRIVER is and write that to FILE, for\n"
	"NMAD_SAMPLING=FILE: by it nmad cuts large messages over several rails, and\n"
	"decides from which size on a message waits for its receiver.\n"
	"\n"
	"Examples:\n"
	"  mpirun -n 2 nm-sample here.rails            measure\n"
	"  NMAD_SAMPLING=here.rails mpirun -n 2 ./solver\n"
	"                                              use it\n"
	"  NMAD_DRIVER=tcp:eth0+tcp:eth1 mpirun -n 2 nm-sample --plot two.svg two.rails\n"
	"                                              two rails, and a picture of them\n"
	"\n"
	"Options:\n"
	"  --time MS            about how long a rail is measured, 1 to 600000 (1000);\n"
	"                       a first look at all sizes may take four times as long\n"
	"  --max BYTES          the largest body, 64k to 16m (4m)\n"
	"  --rounds N           how often all sizes are measured, if there is time (50)\n"
	"  --plot PICTURE       draw samples, thresholds and the share of each rail in\n"
	"                       large bodies; .png or .svg; rank 0 needs gnuplot\n"
	"  -h, --help           this text\n"
	"  --version            the version\n"
	"\n"
	"Rank 0 measures each rail with the lowest other rank to which it leads, with\n"
	"itself where there is none, and writes. The processes may be on several\n"
	"machines. Sizes begin at 0 bytes and double. Of each the least time of some\n"
	"pings counts: whatever else the machine does only adds.\n"
	"\n"
	"The exit code is\n"
	"  0                    if the file is written\n"
	"  1                    if nothing could be measured, written or drawn\n"
	"  2                    for a bad argument\n";
/* clang-format on */

void say(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "nm-sample: %s\n", text);
}

static void __attribute__((format(printf, 1, 2), noreturn))
usage(const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	say("%s (see nm-sample --help)", text);
	exit(EXIT_USAGE);
}

static void __attribute__((noreturn)) print(const char *text)
{
	if (fputs(text, stdout) < 0 || fflush(stdout) != 0) {
		perror("nm-sample");
		exit(EXIT_BAD);
	}
	exit(0);
}

struct number {
	const char *option;
	long *value;
	bool suffix;
	long min, max;
};

static void set_number(const struct number *n, const char *text)
{
	long v;

	if (base_parse_long(text, n->suffix, &v) < 0 || v < n->min ||
	    v > n->max)
		usage("%s %s: expected a number from %ld to %ld", n->option,
		      text, n->min, n->max);
	*n->value = v;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && strcmp(text + n - m, end) == 0;
}

static void set_picture(struct options *o, const char *text)
{
	if (!ends_with(text, ".png") && !ends_with(text, ".svg"))
		usage("--plot %s: expected a name that ends with .png or .svg",
		      text);
	o->picture = text;
}

/* False: no such option. `text` is NULL at the end of the line. */
static bool set(struct options *o, const char *option, const char *text)
{
	const struct number numbers[] = {
		{ "--time", &o->time_ms, false, 1, 600000 },
		{ "--max", &o->max, true, 64 << 10, 16 << 20 },
		{ "--rounds", &o->rounds, false, 1, 1000000 },
	};
	const struct number *n = NULL;

	for (size_t i = 0; i < BASE_ARRAY_LEN(numbers); i++)
		if (strcmp(option, numbers[i].option) == 0)
			n = &numbers[i];
	if (n == NULL && strcmp(option, "--plot") != 0)
		return false;
	if (text == NULL)
		usage("%s: its value is missing", option);
	if (n != NULL)
		set_number(n, text);
	else
		set_picture(o, text);
	return true;
}

void options_parse(struct options *o, int argc, char **argv)
{
	*o = (struct options){ .time_ms = 1000, .max = 4 << 20, .rounds = 50 };
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-h") == 0 ||
		    strcmp(argv[i], "--help") == 0)
			print(help);
		if (strcmp(argv[i], "--version") == 0)
			print("nm-sample (nmad) " NMAD_VERSION "\n");
		if (set(o, argv[i], argv[i + 1])) {
			i++;
			continue;
		}
		if (argv[i][0] == '-')
			usage("unknown option %s", argv[i]);
		if (o->file != NULL)
			usage("%s: the file to write is %s already", argv[i],
			      o->file);
		o->file = argv[i];
	}
	if (o->file == NULL || o->file[0] == 0)
		usage("the file to write is missing");
}
