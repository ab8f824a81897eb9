/*
 * The command line of mpirun.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

static const char help[] =
	"usage: mpirun [options] program [arguments]\n"
	"Start a program N times on this machine, as one MPI job.\n"
	"\n"
	"  -n N, -np N          number of processes (1)\n"
	"  -x VAR=VALUE         set an environment variable in the processes\n"
	"  -x VAR               pass one on; it must be set (all are passed "
	"anyway)\n"
	"  --bind-to core|hwthread|l3cache|numa|package|none\n"
	"                       give each process one of these, round and "
	"round (none)\n"
	"  --report-bindings    say which CPUs each process may use\n"
	"  --initial-errhandler mpi_errors_are_fatal|mpi_errors_abort|"
	"mpi_errors_return\n"
	"                       the error handler that MPI begins with "
	"(mpi_errors_are_fatal)\n"
	"  --tag-output         write \"[rank] \" before every line\n"
	"  --timeout S          end the job after S seconds, with exit code "
	"124\n"
	"  --keep-going         when a process dies, go on without it\n"
	"  -h, --help           this text\n"
	"  --version            the version\n"
	"\n"
	"The exit code is the first bad one of a process, 128 + the signal if "
	"one\nkilled it, or what MPI_Abort was given. When a process dies, the "
	"others are\nended, but with --keep-going only by MPI_Abort, --timeout "
	"and signals to mpirun.\nStandard input goes to rank 0.\n";

static void __attribute__((format(printf, 1, 2), noreturn))
usage(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	say("%s (see mpirun --help)", text);
	exit(EXIT_USAGE);
}

static int number(const char *option, const char *text, int min, int max)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 ||
	    n < min || n > max)
		usage("%s %s: expected a number from %d to %d", option, text,
		      min, max);
	return (int)n;
}

static void environment(const char *text)
{
	const char *equals = strchr(text, '=');
	char *name;

	if (equals == text || *text == '\0')
		usage("-x %s: expected VAR or VAR=VALUE", text);
	if (equals == NULL) {
		if (getenv(text) == NULL)
			usage("-x %s: it is not set in the environment", text);
		return;
	}
	name = must(strndup(text, (size_t)(equals - text)));
	if (setenv(name, equals + 1, 1) != 0)
		usage("-x %s: %s", text, strerror(errno));
	free(name);
}

static void bind_to(struct options *o, const char *text)
{
	if (!bind_named(text, &o->bind))
		usage("--bind-to %s: expected core, hwthread, l3cache, numa, "
		      "package or none",
		      text);
}

/* As the standard spells them; the library looks at the variable. */
static void initial_errhandler(const char *text)
{
	static const char *const words[] = { "mpi_errors_are_fatal",
					     "mpi_errors_abort",
					     "mpi_errors_return" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(text, words[i]) == 0) {
			if (setenv("MADMPI_INITIAL_ERRHANDLER", text, 1) != 0)
				must(NULL);
			return;
		}
	usage("--initial-errhandler %s: expected mpi_errors_are_fatal, "
	      "mpi_errors_abort or mpi_errors_return",
	      text);
}

/* An option with a value; `text` is the value. False: no such option. */
static bool valued(struct options *o, const char *name, const char *text)
{
	if (strcmp(name, "-n") == 0 || strcmp(name, "-np") == 0)
		o->ranks = number(name, text, 1, RANKS_MAX);
	else if (strcmp(name, "-x") == 0)
		environment(text);
	else if (strcmp(name, "--bind-to") == 0)
		bind_to(o, text);
	else if (strcmp(name, "-initial-errhandler") == 0 ||
		 strcmp(name, "--initial-errhandler") == 0)
		initial_errhandler(text);
	else if (strcmp(name, "--timeout") == 0)
		o->timeout_s = number(name, text, 1, 1000000);
	else
		return false;
	return true;
}

static void plain(struct options *o, const char *name)
{
	if (strcmp(name, "--tag-output") == 0) {
		o->tag_output = true;
	} else if (strcmp(name, "--report-bindings") == 0) {
		o->report = true;
	} else if (strcmp(name, "--keep-going") == 0) {
		o->keep_going = true;
	} else if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0) {
		fputs(help, stdout);
		exit(0);
	} else if (strcmp(name, "--version") == 0) {
		printf("mpirun (madmpi) %s\n", MADMPI_VERSION);
		exit(0);
	} else {
		usage("unknown option %s", name);
	}
}

static bool takes_value(const char *name)
{
	static const char *const names[] = { "-n",
					     "-np",
					     "-x",
					     "--bind-to",
					     "--timeout",
					     "-initial-errhandler",
					     "--initial-errhandler" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* "--timeout=5" is "--timeout 5". */
static bool with_equals(struct options *o, const char *arg)
{
	const char *equals = strchr(arg, '=');
	char *name;
	bool known;

	if (strncmp(arg, "--", 2) != 0 || equals == NULL)
		return false;
	name = must(strndup(arg, (size_t)(equals - arg)));
	known = valued(o, name, equals + 1);
	free(name);
	return known;
}

void options_parse(struct options *o, int argc, char **argv)
{
	int i = 1;

	*o = (struct options){ .ranks = 1 };
	for (; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (with_equals(o, argv[i]))
			continue;
		if (!takes_value(argv[i]))
			plain(o, argv[i]);
		else if (i + 1 == argc)
			usage("%s: its value is missing", argv[i]);
		else {
			valued(o, argv[i], argv[i + 1]);
			i++;
		}
	}
	if (i >= argc || argv[i][0] == '\0')
		usage("the program to run is missing");
	o->argv = argv + i;
}
