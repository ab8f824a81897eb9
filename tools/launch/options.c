/*
 * The command line of mpirun: one table of options, from which it is read,
 * --help is printed (help.c) and shells complete (complete.c).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

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

/* What other launchers have, and what there is here instead. */
static void __attribute__((noreturn)) refuse(const char *name)
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

/* --- what each option does: its name as it was written, its value --- */

static struct program *last(struct options *o)
{
	return &o->programs[o->nprograms - 1];
}

static void set_n(struct options *o, const char *name, const char *text)
{
	last(o)->ranks = number(name, text, 1, RANKS_MAX);
}

static void set_soft(struct options *o, const char *name, const char *text)
{
	last(o)->soft = text;
}

static void set_x(struct options *o, const char *name, const char *text)
{
	environment(last(o), text);
}

static void set_wdir(struct options *o, const char *name, const char *text)
{
	last(o)->dir = text;
}

static void set_path(struct options *o, const char *name, const char *text)
{
	last(o)->path = text;
}

static void set_bind(struct options *o, const char *name, const char *text)
{
	bind_named(text, &o->bind);
}

static void set_report(struct options *o, const char *name, const char *text)
{
	o->report = true;
}

static void set_tag(struct options *o, const char *name, const char *text)
{
	o->tag_output = true;
}

static void set_output(struct options *o, const char *name, const char *text)
{
	o->output = text;
}

static void set_timeout(struct options *o, const char *name, const char *text)
{
	o->timeout_s = number(name, text, 1, 1000000);
}

static void set_going(struct options *o, const char *name, const char *text)
{
	o->keep_going = true;
}

/* The library looks at the variable. */
static void set_handler(struct options *o, const char *name, const char *text)
{
	if (setenv("MADMPI_INITIAL_ERRHANDLER", text, 1) != 0)
		must(NULL);
}

static void set_config(struct options *o, const char *name, const char *text)
{
	usage("-configfile: expected a file and nothing else");
}

static void __attribute__((noreturn)) finish(void)
{
	if (fflush(stdout) != 0 || ferror(stdout)) {
		say("standard output: %s", strerror(errno));
		exit(1);
	}
	exit(0);
}

static void set_help(struct options *o, const char *name, const char *text)
{
	help_print();
	finish();
}

static void set_version(struct options *o, const char *name, const char *text)
{
	printf("mpirun (madmpi) %s\n", MADMPI_VERSION);
	finish();
}

/* clang-format off */
const struct option option_table[] = {
	{ OF_PROGRAM, { "-n", "-np" }, "N", TAKES_TEXT, NULL, set_n,
	  "number of processes (1)" },
	{ OF_PROGRAM, { "-soft" }, "LIST", TAKES_TEXT, NULL, set_soft,
	  "the largest number up to N that the list has, such as\n"
	  "2:8:2,16 (first:last:step)" },
	{ OF_PROGRAM, { "-x" }, "VAR[=VALUE]", TAKES_VARIABLE, NULL, set_x,
	  "set an environment variable in the processes; without a\n"
	  "value it must be set here (all that are set are passed on)" },
	{ OF_PROGRAM, { "-wdir", "--wdir" }, "DIR", TAKES_DIRECTORY, NULL,
	  set_wdir, "the directory to start in" },
	{ OF_PROGRAM, { "-path" }, "DIRS", TAKES_DIRECTORY, NULL, set_path,
	  "where to look for the program, instead of PATH" },
	{ OF_PLACE, { "--bind-to" }, "PLACE", TAKES_WORD,
	  "core|hwthread|l3cache|numa|package|none", set_bind,
	  "give each process one of these, round and round (none):" },
	{ OF_PLACE, { "--report-bindings" }, NULL, TAKES_NOTHING, NULL,
	  set_report, "say which CPUs each process may use" },
	{ OF_OUTPUT, { "--tag-output" }, NULL, TAKES_NOTHING, NULL, set_tag,
	  "write \"[rank] \" before every line" },
	{ OF_OUTPUT, { "--output-filename" }, "DIR", TAKES_DIRECTORY, NULL,
	  set_output, "write to DIR/rank.N/stdout and stderr instead" },
	{ OF_END, { "--timeout" }, "S", TAKES_TEXT, NULL, set_timeout,
	  "end the job after S seconds, with exit code 124" },
	{ OF_END, { "--keep-going" }, NULL, TAKES_NOTHING, NULL, set_going,
	  "go on without a process that dies" },
	{ OF_END, { "--initial-errhandler", "-initial-errhandler" }, "NAME",
	  TAKES_WORD,
	  "mpi_errors_are_fatal|mpi_errors_abort|mpi_errors_return",
	  set_handler,
	  "the error handler that MPI begins with\n"
	  "(mpi_errors_are_fatal):" },
	{ OF_ELSE, { "-configfile" }, "FILE", TAKES_FILE, NULL, set_config,
	  "a line of the file for each program, with its options;\n"
	  "# begins a comment; nothing else is on the command line" },
	{ OF_ELSE, { "-h", "--help" }, NULL, TAKES_NOTHING, NULL, set_help,
	  "this text" },
	{ OF_ELSE, { "--version" }, NULL, TAKES_NOTHING, NULL, set_version,
	  "the version" },
	{ .help = NULL },
};
/* clang-format on */

const struct option *option_named(const char *name)
{
	for (const struct option *t = option_table; t->help != NULL; t++)
		for (int i = 0; i < 2; i++)
			if (t->names[i] != NULL &&
			    strcmp(t->names[i], name) == 0)
				return t;
	return NULL;
}

/* "a, b or c" */
void option_words(const struct option *t, char *out, size_t room)
{
	const char *from = t->words;
	size_t n = 0;

	for (; *from != '\0' && n + 8 < room; from++) {
		if (*from != '|')
			out[n++] = *from;
		else if (strchr(from + 1, '|') != NULL)
			n += (size_t)sprintf(out + n, ", ");
		else
			n += (size_t)sprintf(out + n, " or ");
	}
	out[n] = '\0';
}

static void check_word(const struct option *t, const char *name,
		       const char *text)
{
	const char *at = t->words;
	char all[256];

	for (;; at++) {
		size_t n = strcspn(at, "|");

		if (n == strlen(text) && strncmp(at, text, n) == 0)
			return;
		at += n;
		if (*at == '\0')
			break;
	}
	option_words(t, all, sizeof(all));
	usage("%s %s: expected %s", name, text, all);
}

static void set(struct options *o, const struct option *t, const char *name,
		const char *text)
{
	if (t->takes == TAKES_WORD)
		check_word(t, name, text);
	t->set(o, name, text);
	if (text != NULL && *text == '\0')
		usage("%s: its value is empty", name);
}

/* "--timeout=5" is "--timeout 5". */
static bool with_equals(struct options *o, const char *arg)
{
	const char *equals = strchr(arg, '=');
	const struct option *t;
	char *name;

	if (strncmp(arg, "--", 2) != 0 || equals == NULL)
		return false;
	name = must(strndup(arg, (size_t)(equals - arg)));
	t = option_named(name);
	if (t != NULL && t->value != NULL)
		set(o, t, name, equals + 1);
	free(name);
	return t != NULL && t->value != NULL;
}

/* The option at words[0]; how many words it takes. */
static int option(struct options *o, char **words)
{
	const struct option *t = option_named(words[0]);

	if (with_equals(o, words[0]))
		return 1;
	if (t == NULL)
		refuse(words[0]);
	if (t->value == NULL) {
		set(o, t, words[0], NULL);
		return 1;
	}
	if (words[1] == NULL)
		usage("%s: its value is missing", words[0]);
	set(o, t, words[0], words[1]);
	return 2;
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
	while (words[i] != NULL && words[i][0] == '-') {
		if (strcmp(words[i], "--") == 0) {
			i++;
			break;
		}
		i += option(o, words + i);
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
	if (argc > 1 && strcmp(argv[1], "--complete") == 0) {
		complete(argv + 2);
		finish();
	}
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
