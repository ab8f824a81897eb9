/*
 * The command line of mpirun.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

/* clang-format off */
static const char help[] =
	"usage: mpirun [options] program [arguments] [: [options] program ...]\n"
	"       mpirun -configfile FILE\n"
	"Start programs on this machine, as one MPI job.\n"
	"\n"
	"Of a program, each after a colon has its own:\n"
	"  -n N, -np N          number of processes (1)\n"
	"  -soft LIST           the largest number up to N that the list has, such as\n"
	"                       2:8:2,16 (first:last:step)\n"
	"  -x VAR=VALUE         set an environment variable in the processes\n"
	"  -x VAR               pass one on; it must be set (all are passed anyway)\n"
	"  -wdir DIR, --wdir DIR\n"
	"                       the directory to start in\n"
	"  -path DIRS           where to look for the program, instead of PATH\n"
	"\n"
	"Of the job:\n"
	"  --bind-to core|hwthread|l3cache|numa|package|none\n"
	"                       give each process one of these, round and round (none)\n"
	"  --report-bindings    say which CPUs each process may use\n"
	"  --initial-errhandler NAME, -initial-errhandler NAME\n"
	"                       the error handler that MPI begins with:\n"
	"                       mpi_errors_are_fatal (the default), mpi_errors_abort\n"
	"                       or mpi_errors_return\n"
	"  --tag-output         write \"[rank] \" before every line\n"
	"  --output-filename DIR\n"
	"                       write to DIR/rank.N/stdout and stderr instead\n"
	"  --timeout S          end the job after S seconds, with exit code 124\n"
	"  --keep-going         when a process dies, go on without it\n"
	"  -configfile FILE     a line of the file for each program; # begins a comment\n"
	"  -h, --help           this text\n"
	"  --version            the version\n"
	"\n"
	"The exit code is the first bad one of a process, 128 + the signal if one\n"
	"killed it, or what MPI_Abort was given. When a process dies, the others are\n"
	"ended, but with --keep-going only by MPI_Abort, --timeout and signals to mpirun.\n"
	"Standard input goes to rank 0. Several machines: srun, mpiexec.hydra, or Open\n"
	"MPI's mpirun.\n";
/* clang-format on */

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

/* One more variable for the ranks of a program, instead of what it is here. */
static void environment(struct program *p, const char *text)
{
	const char *equals = strchr(text, '=');
	char *var;

	if (equals == text || *text == '\0')
		usage("-x %s: expected VAR or VAR=VALUE", text);
	if (equals == NULL) {
		if (getenv(text) == NULL)
			usage("-x %s: it is not set in the environment", text);
		return;
	}
	var = must(strdup(text));
	for (int i = 0; i < p->nenv; i++)
		if (strncmp(p->env[i], text, (size_t)(equals + 1 - text)) ==
		    0) {
			free(p->env[i]);
			p->env[i] = var;
			return;
		}
	p->env = must(realloc(p->env, (size_t)(p->nenv + 1) * sizeof(char *)));
	p->env[p->nenv++] = var;
}

/* "first[:last[:step]],...": the largest of these numbers up to `most`. */
static int largest(const char *text, int most)
{
	const char *at = text;
	int best = 0;

	for (;;) {
		long n[3] = { 0, 0, 1 };
		int have = 0;
		char *end;

		do {
			n[have] = strtol(at, &end, 10);
			if (*at < '0' || *at > '9' || n[have] > RANKS_MAX)
				usage("-soft %s: expected numbers or "
				      "first:last:step, with commas",
				      text);
			at = end + (*end == ':');
		} while (++have < 3 && *end == ':');
		if ((*end != ',' && *end != '\0') || n[2] == 0)
			usage("-soft %s: expected numbers or first:last:step, "
			      "with commas",
			      text);
		if (have == 1)
			n[1] = n[0];
		for (; n[0] <= n[1]; n[0] += n[2])
			if (n[0] <= most && n[0] > best)
				best = (int)n[0];
		if (*end == '\0')
			return best;
		at = end + 1;
	}
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

/* What other launchers have, and what there is here instead. */
static void refuse(const char *name)
{
	static const char *const hosts[] = {
		"-host",        "--host",        "-hosts",     "--hosts",
		"-H",           "-hostfile",     "--hostfile", "-f",
		"-machinefile", "--machinefile", "-ppn",       "-arch",
		"-file",
	};
	static const struct {
		const char *name, *instead;
	} others[] = {
		{ "-env", "-x VAR=VALUE" }, { "-genv", "-x VAR=VALUE" },
		{ "-l", "--tag-output" },   { "-prepend-rank", "--tag-output" },
		{ "-wd", "-wdir DIR" },     { "-bind-to", "--bind-to" },
	};

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		if (strcmp(name, hosts[i]) == 0)
			usage("%s: mpirun starts processes on this machine; on "
			      "others srun (Slurm), mpiexec.hydra or Open "
			      "MPI's "
			      "mpirun do",
			      name);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(name, others[i].name) == 0)
			usage("unknown option %s: here it is %s", name,
			      others[i].instead);
	usage("unknown option %s", name);
}

static bool is(const char *name, const char *one, const char *other)
{
	return strcmp(name, one) == 0 || strcmp(name, other) == 0;
}

/* An option with a value; `text` is the value. False: no such option. */
static bool valued(struct options *o, const char *name, const char *text)
{
	struct program *p = &o->programs[o->nprograms - 1];

	if (is(name, "-n", "-np"))
		p->ranks = number(name, text, 1, RANKS_MAX);
	else if (strcmp(name, "-soft") == 0)
		p->soft = text;
	else if (strcmp(name, "-x") == 0)
		environment(p, text);
	else if (is(name, "-wdir", "--wdir"))
		p->dir = text;
	else if (strcmp(name, "-path") == 0)
		p->path = text;
	else if (strcmp(name, "--bind-to") == 0)
		bind_to(o, text);
	else if (is(name, "-initial-errhandler", "--initial-errhandler"))
		initial_errhandler(text);
	else if (strcmp(name, "--output-filename") == 0)
		o->output = text;
	else if (strcmp(name, "--timeout") == 0)
		o->timeout_s = number(name, text, 1, 1000000);
	else
		return false;
	if (*text == '\0')
		usage("%s: its value is empty", name);
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
	} else if (is(name, "-h", "--help")) {
		fputs(help, stdout);
		exit(0);
	} else if (strcmp(name, "--version") == 0) {
		printf("mpirun (madmpi) %s\n", MADMPI_VERSION);
		exit(0);
	} else {
		refuse(name);
	}
}

static bool takes_value(const char *name)
{
	static const char *const names[] = {
		"-n",
		"-np",
		"-soft",
		"-x",
		"-wdir",
		"--wdir",
		"-path",
		"--bind-to",
		"--output-filename",
		"--timeout",
		"-initial-errhandler",
		"--initial-errhandler",
	};

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

/* Words up to a NULL: the options of a program, and the program. */
static void program(struct options *o, char **words)
{
	struct program *p;
	size_t room = (size_t)(o->nprograms + 1) * sizeof(*p);
	int i = 0;

	o->programs = must(realloc(o->programs, room));
	p = &o->programs[o->nprograms++];
	*p = (struct program){ .ranks = 1, .first = o->ranks };
	for (; words[i] != NULL && words[i][0] == '-'; i++) {
		if (strcmp(words[i], "--") == 0) {
			i++;
			break;
		}
		if (with_equals(o, words[i]))
			continue;
		if (!takes_value(words[i])) {
			plain(o, words[i]);
			continue;
		}
		if (words[i + 1] == NULL)
			usage("%s: its value is missing", words[i]);
		valued(o, words[i], words[i + 1]);
		i++;
	}
	if (words[i] == NULL || words[i][0] == '\0')
		usage("the program to run is missing");
	p->argv = words + i;
	if (p->soft != NULL) {
		int n = largest(p->soft, p->ranks);

		if (n == 0)
			usage("-soft %s: it has no number from 1 to %d (-n)",
			      p->soft, p->ranks);
		p->ranks = n;
	}
	o->ranks += p->ranks;
	if (o->ranks > RANKS_MAX)
		usage("-n: more than %d processes in all", RANKS_MAX);
}

/* The words of a line, split at blanks; '...' and "..." hold them together. */
static char **split(char *line)
{
	char **words = must(calloc(strlen(line) / 2 + 2, sizeof(*words)));
	char *to = line, *at = line;

	for (size_t n = 0;; n++) {
		char quote = 0;

		at += strspn(at, " \t\r\n");
		if (*at == '\0')
			return words;
		words[n] = to;
		for (; *at != '\0' && (quote || !strchr(" \t\r\n", *at)); at++)
			if (quote ? *at == quote : strchr("'\"", *at) != NULL)
				quote = quote ? 0 : *at;
			else
				*to++ = *at;
		if (quote)
			usage("-configfile: %c is not closed in: %s", quote,
			      words[n]);
		at += *at != '\0';
		*to++ = '\0';
	}
}

/* One line; its words stay, since they are the program's arguments. */
static void configured(struct options *o, const char *line)
{
	if (line[strspn(line, " \t\r")] != '\0')
		program(o, split(must(strdup(line))));
}

/* A line for each program; what ends with a backslash goes on. */
static void configfile(struct options *o, const char *name)
{
	FILE *f = fopen(name, "re");
	char *text = NULL, *whole = NULL;
	size_t room = 0, have = 0;
	ssize_t n;

	if (f == NULL)
		usage("-configfile %s: %s", name, strerror(errno));
	while ((n = getline(&text, &room, f)) >= 0) {
		if (n > 0 && text[n - 1] == '\n')
			text[--n] = '\0';
		if (have == 0 && text[strspn(text, " \t")] == '#')
			continue;
		whole = must(realloc(whole, have + (size_t)n + 1));
		memcpy(whole + have, text, (size_t)n + 1);
		have += (size_t)n;
		if (have > 0 && whole[have - 1] == '\\') {
			whole[have - 1] = ' ';
			continue;
		}
		configured(o, whole);
		have = 0;
	}
	if (have > 0) /* there is no next line that it could go on with */
		configured(o, whole);
	if (ferror(f))
		usage("-configfile %s: %s", name, strerror(errno));
	if (o->nprograms == 0)
		usage("-configfile %s: it names no program", name);
	free(text);
	free(whole);
	fclose(f);
}

void options_parse(struct options *o, int argc, char **argv)
{
	int from = 1;

	*o = (struct options){ .ranks = 0 };
	if (argc > 1 && strcmp(argv[1], "-configfile") == 0) {
		if (argc != 3)
			usage("-configfile: expected a file and nothing else");
		configfile(o, argv[2]);
	} else {
		for (int i = 1; i < argc; i++) {
			if (strcmp(argv[i], ":") != 0)
				continue;
			argv[i] = NULL;
			program(o, argv + from);
			from = i + 1;
		}
		program(o, argv + from);
	}
	if (o->tag_output && o->output != NULL)
		usage("--tag-output: what --output-filename writes has no "
		      "tags");
}
