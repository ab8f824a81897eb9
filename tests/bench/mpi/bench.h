/*
 * What the MPI benchmarks share. Each is a program of its own:
 *
 *   PROGRAM [-c CASE,...] [-r N] [-m MS] [-u US] [-b BYTES] [-t KIND] [-f US]
 *           [NUMBER ...]
 *
 *   -c   these cases only
 *   -r   repetitions, of which the median is shown
 *   -m   how many ms a repetition lasts, about
 *   -u   how many us are computed
 *   -b   bytes of a message
 *   -t   threads: "user" ones of our library, or the system's, "kernel"
 *   -f   user threads that communicate are favoured so long when woken
 *
 * and has those of them that make sense for it: struct bench_program says
 * which, and what the numbers are. Rank 0 prints lines "name value unit"; a
 * name is SERIES_X, with X one of the numbers, where there is an x axis.
 * tools/bench/run.py reads them. A program looks at what it has received and
 * ends the job if that is wrong. Plain MPI-3, so that peers compile the same
 * source, and what is of MPI-4 is left out where that is not there; compiled
 * with -DBENCH_USER_THREADS and -lmarcel it has user threads.
 */
#ifndef BENCH_MPI_H
#define BENCH_MPI_H

#include <limits.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef BENCH_USER_THREADS
enum { BENCH_USER = 1 };
#else
enum { BENCH_USER = 0 };
#endif

enum { BENCH_NUMBERS = 16 };

/* What a program has; constant. */
struct bench_program {
	const char *name;
	const char *cases;   /* all, separated by commas; NULL: has none */
	const char *options; /* of r, m, u, b, t, f */
	const char *what;    /* the numbers are; NULL: has none */
	int ranks_least, ranks_most;
	long least, most; /* of a number */
	int repeat;       /* these are defaults */
	double ms, us;
	size_t bytes;
	long numbers[BENCH_NUMBERS]; /* until the first 0 */
};

/* What was asked for; written by bench_start(). */
static struct {
	const struct bench_program *program;
	int rank, size;
	const char *cases; /* NULL: all */
	int repeat, user;
	double ms, us, favour;
	size_t bytes;
	int n; /* numbers */
	long numbers[BENCH_NUMBERS];
} bench;

static int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median; sorts the values. */
static inline double bench_median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), bench_compare);
	return values[n / 2];
}

/* "8B", "4K", "1M" in out. */
static inline const char *bench_size(char out[16], size_t bytes)
{
	if (bytes >= 1 << 20)
		snprintf(out, 16, "%zuM", bytes >> 20);
	else if (bytes >= 1 << 10)
		snprintf(out, 16, "%zuK", bytes >> 10);
	else
		snprintf(out, 16, "%zuB", bytes);
	return out;
}

/* Rank 0 prints a line "name value unit"; the others do nothing. */
__attribute__((format(printf, 3, 4))) static inline void
bench_say(double value, const char *unit, const char *name, ...)
{
	va_list args;

	if (bench.rank != 0)
		return;
	va_start(args, name);
	vprintf(name, args);
	va_end(args);
	printf(" %.6g %s\n", value, unit);
	fflush(stdout);
}

/* The job ends. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void
bench_fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s, rank %d: ", bench.program->name, bench.rank);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

static inline void bench_usage(void)
{
	const struct bench_program *p = bench.program;

	fprintf(stderr, "usage: %s", p->name);
	if (p->cases != NULL)
		fprintf(stderr, " [-c CASE,...]");
	for (const char *o = p->options; *o != '\0'; o++)
		fprintf(stderr, " [-%c %s]", *o,
			*o == 'r'   ? "REPETITIONS"
			: *o == 'm' ? "MS"
			: *o == 'u' ? "US"
			: *o == 'f' ? "US"
			: *o == 'b' ? "BYTES"
				    : "user|kernel");
	if (p->what != NULL)
		fprintf(stderr, " [%s ...]", p->what);
	if (p->cases != NULL)
		fprintf(stderr, "\ncases: %s", p->cases);
	fprintf(stderr, "\n");
}

/*
 * Wrong arguments, which all ranks see: one message, and the job ends with exit
 * code 2.
 */
__attribute__((format(printf, 1, 2), noreturn)) static inline void
bench_refuse(const char *format, ...)
{
	va_list args;

	if (bench.rank == 0) {
		fprintf(stderr, "%s: ", bench.program->name);
		va_start(args, format);
		vfprintf(stderr, format, args);
		va_end(args);
		fputc('\n', stderr);
		bench_usage();
	}
	MPI_Finalize();
	exit(2);
}

static inline long bench_number(const char *text, const char *what, long least,
				long most)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end != '\0' || n < least || n > most)
		bench_refuse("%s '%s' is not a number from %ld to %ld", what,
			     text, least, most);
	return n;
}

/* Whether a list, separated by commas, has these n characters in it. */
static inline int bench_listed(const char *list, const char *word, size_t n)
{
	for (;;) {
		size_t length = strcspn(list, ",");

		if (length == n && strncmp(list, word, n) == 0)
			return 1;
		if (list[length] == '\0')
			return 0;
		list += length + 1;
	}
}

/* Whether this case was asked for. */
static inline int bench_case(const char *name)
{
	return bench.cases == NULL ||
	       bench_listed(bench.cases, name, strlen(name));
}

static inline void bench_choose(const char *list)
{
	bench.cases = list;
	for (;;) {
		size_t length = strcspn(list, ",");

		if (!bench_listed(bench.program->cases, list, length))
			bench_refuse("no case '%.*s'", (int)length, list);
		if (list[length] == '\0')
			return;
		list += length + 1;
	}
}

static inline void bench_kind(const char *kind)
{
	bench.user = strcmp(kind, "user") == 0;
	if (!bench.user && strcmp(kind, "kernel") != 0)
		bench_refuse("threads are 'user' or 'kernel', not '%s'", kind);
	if (bench.user && !BENCH_USER)
		bench_refuse("compiled without user threads");
}

static inline void bench_option(int option)
{
	switch (option) {
	case 'c':
		bench_choose(optarg);
		break;
	case 'r':
		bench.repeat = (int)bench_number(optarg, "-r", 1, 1000000);
		break;
	case 'm':
		bench.ms = (double)bench_number(optarg, "-m", 1, 1000000);
		break;
	case 'u':
		bench.us = (double)bench_number(optarg, "-u", 0, 100000000);
		break;
	case 'b':
		bench.bytes = (size_t)bench_number(optarg, "-b", 1, INT_MAX);
		break;
	case 't':
		bench_kind(optarg);
		break;
	case 'f':
		bench.favour = (double)bench_number(optarg, "-f", 1, 1000000);
		break;
	case ':':
		bench_refuse("-%c needs a value", optopt);
	default:
		bench_refuse("it has no option -%c", optopt);
	}
}

static inline void bench_numbers(int argc, char **argv)
{
	const struct bench_program *p = bench.program;

	if (argc > 0 && p->what == NULL)
		bench_refuse("'%s': it takes no numbers", argv[0]);
	if (argc > BENCH_NUMBERS)
		bench_refuse("at most %d numbers", BENCH_NUMBERS);
	if (argc == 0) {
		memcpy(bench.numbers, p->numbers, sizeof(bench.numbers));
		while (bench.n < BENCH_NUMBERS && bench.numbers[bench.n] != 0)
			bench.n++;
	}
	for (; bench.n < argc; bench.n++)
		bench.numbers[bench.n] =
			bench_number(argv[bench.n], p->what, p->least, p->most);
}

static inline void bench_arguments(int argc, char **argv)
{
	const struct bench_program *p = bench.program;
	char known[32] = "+:", one[3] = "?:";
	int option;

	if (p->cases != NULL)
		strcat(known, "c:");
	for (const char *o = p->options; *o != '\0'; o++) {
		one[0] = *o;
		strcat(known, one);
	}
	opterr = 0;
	while ((option = getopt(argc, argv, known)) != -1)
		bench_option(option);
	if (bench.favour > 0 && !bench.user)
		bench_refuse("-f is about user threads");
	bench_numbers(argc - optind, argv + optind);
}

/* MPI_Init() too, with MPI_THREAD_MULTIPLE for a program that has threads. */
static inline void bench_start(int argc, char **argv,
			       const struct bench_program *program)
{
	int want = strchr(program->options, 't') != NULL ? MPI_THREAD_MULTIPLE
							 : MPI_THREAD_SINGLE;
	int provided;

	bench.program = program;
	bench.repeat = program->repeat;
	bench.user = BENCH_USER;
	bench.ms = program->ms;
	bench.us = program->us;
	bench.bytes = program->bytes;
	MPI_Init_thread(&argc, &argv, want, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &bench.size);
	bench_arguments(argc, argv);
	if (provided < want)
		bench_refuse("this MPI has no MPI_THREAD_MULTIPLE");
	if (bench.size < program->ranks_least ||
	    bench.size > program->ranks_most)
		bench_refuse("%d to %d ranks, not %d", program->ranks_least,
			     program->ranks_most, bench.size);
}

static inline void *bench_alloc(size_t bytes)
{
	void *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

	if (p == NULL)
		bench_fail("no memory for %zu bytes", bytes);
	memset(p, 1, bytes);
	return p;
}

/* The value at a rank, for all. */
static inline double bench_of(double value, int rank)
{
	MPI_Bcast(&value, 1, MPI_DOUBLE, rank, MPI_COMM_WORLD);
	return value;
}

/* Does nothing else for so long. */
static inline void bench_compute(double us)
{
	double end = MPI_Wtime() + us * 1e-6;

	while (MPI_Wtime() < end)
		;
}

/* --- What is sent, and looked at where it arrives --- */

static inline char bench_byte(size_t i, long seed)
{
	return (char)(i * 31 + (i >> 8) + (size_t)seed * 7);
}

static inline void bench_fill(char *buf, size_t bytes, long seed)
{
	for (size_t i = 0; i < bytes; i++)
		buf[i] = bench_byte(i, seed);
}

/* All of it, but for the first and the last byte, which are bench_stamp()'s. */
static inline void bench_check(const char *buf, size_t bytes, long seed)
{
	for (size_t i = 1; i + 1 < bytes; i++)
		if (buf[i] != bench_byte(i, seed))
			bench_fail("byte %zu of %zu is not what was sent", i,
				   bytes);
}

/* The nth message: cheap enough to be part of what is measured. */
static inline void bench_stamp(char *buf, size_t bytes, long n)
{
	buf[0] = (char)n;
	buf[bytes - 1] = (char)n;
}

static inline void bench_stamped(const char *buf, size_t bytes, long n)
{
	if (buf[0] != (char)n || buf[bytes - 1] != (char)n)
		bench_fail("message %ld of %zu bytes is another one", n, bytes);
}

/* --- Time --- */

/* Rounds of something that all ranks do, with what arg is. */
typedef void bench_fn(void *arg, long rounds);

/* s, of rank 0; all begin at once. */
static inline double bench_once(bench_fn *fn, void *arg, long rounds)
{
	double begin;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	fn(arg, rounds);
	return MPI_Wtime() - begin;
}

/* How many rounds last bench.ms; the same at all ranks. */
static inline long bench_rounds(bench_fn *fn, void *arg)
{
	double ms;
	long n = 1;

	for (;;) {
		ms = 1e3 * bench_of(bench_once(fn, arg, n), 0);
		if (ms * 4 >= bench.ms || n >= 1l << 30)
			break;
		n *= 2;
	}
	n = (long)((double)n * bench.ms / ms);
	return n < 1 ? 1 : n;
}

/* us a round: the median of bench.repeat repetitions. All ranks call it. */
static inline double bench_time(bench_fn *fn, void *arg)
{
	double *us = bench_alloc(sizeof(*us) * (size_t)bench.repeat), median;
	long rounds = bench_rounds(fn, arg);

	for (int r = 0; r < bench.repeat; r++)
		us[r] = bench_once(fn, arg, rounds) * 1e6 / (double)rounds;
	median = bench_of(bench_median(us, bench.repeat), 0);
	free(us);
	return median;
}

#endif
