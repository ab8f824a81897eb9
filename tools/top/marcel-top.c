/*
 * marcel-top: what the processes on this host that use marcel do right now.
 *
 * What a VP does is a sample: while a round lasts each VP is looked at some
 * hundred times, at random moments. So a process that is watched does nothing
 * for it, takes no time stamps and has no switch for them.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <base/clock.h>

#include "top.h"

enum { LOOKS = 200, LOOKS_NS_MIN = 1000000 };

/* clang-format off */
static const char help[] =
	"usage: " MARCEL_TOP " [options]\n"
	"Show what the virtual processors of running processes do: run threads, poll\n"
	"(ltasks), look for work (idle), sleep; their threads by state; and how often\n"
	"threads are switched, ltasks polled, messages sent.\n"
	"\n"
	"Examples:\n"
	"  mpirun -n 4 ./program & " MARCEL_TOP "\n"
	"                       all ranks, while they run\n"
	"  " MARCEL_TOP " -b -n 1 -p 4711\n"
	"                       one process, for a script\n"
	"\n"
	"Options:\n"
	"  -b, --batch          print, instead of a screen, which q ends\n"
	"  -d, --delay S        seconds that a round lasts, 0.05 to 3600 (1)\n"
	"  -n, --rounds N       so many rounds, then the end (no end)\n"
	"  -p, --pid PID        this process only\n"
	"  -h, --help           this text\n"
	"  --version            the version\n"
	"\n"
	"The exit code is\n"
	"  0                    if all is well, or the process of -p has ended\n"
	"  1                    if that cannot be looked at\n"
	"  2                    for a bad argument\n";
/* clang-format on */

static struct {
	bool batch;
	double seconds;
	long rounds; /* 0: no end */
	pid_t pid;   /* 0: all */
} options = { .seconds = 1 };

static volatile sig_atomic_t stop, resized;

/* --- the command line --- */

static void __attribute__((format(printf, 2, 3), noreturn))
die(int code, const char *fmt, ...)
{
	va_list ap;

	fputs(MARCEL_TOP ": ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(code);
}

static double number(const char *option, const char *text, double low,
		     double high, bool whole)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end != '\0' || !(value >= low && value <= high) ||
	    (whole && value != (double)(long)value))
		die(2, "%s %s: not a %snumber from %g to %.0f", option, text,
		    whole ? "whole " : "", low, high);
	return value;
}

enum { VERSION = 256 }; /* has no letter */

static const struct option known[] = {
	{ "batch", no_argument, NULL, 'b' },
	{ "delay", required_argument, NULL, 'd' },
	{ "rounds", required_argument, NULL, 'n' },
	{ "pid", required_argument, NULL, 'p' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, VERSION },
	{ NULL, 0, NULL, 0 },
};

/* What getopt_long() does not take: `arg`, if there is no letter for it. */
static void refuse(int why, const char *arg)
{
	if (optopt == 0 || optopt == VERSION)
		die(2, "%s: no such option; see --help", arg);
	if (why == ':')
		die(2, "-%c: its value is missing", optopt);
	die(2, "-%c: %s; see --help", optopt,
	    optopt == 'b' || optopt == 'h' ? "it takes no value"
					   : "no such option");
}

static void read_options(int argc, char **argv)
{
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":bd:n:p:h", known, NULL)) != -1)
		switch (c) {
		case 'b':
			options.batch = true;
			break;
		case 'd':
			options.seconds =
				number("-d", optarg, 0.05, 3600, false);
			break;
		case 'n':
			options.rounds =
				(long)number("-n", optarg, 1, 1e9, true);
			break;
		case 'p':
			options.pid =
				(pid_t)number("-p", optarg, 1, 1 << 30, true);
			break;
		case 'h':
			fputs(help, stdout);
			exit(0);
		case VERSION:
			puts(MARCEL_TOP " " MARCEL_VERSION);
			exit(0);
		default:
			refuse(c, argv[optind - 1]);
		}
	if (optind < argc)
		die(2, "%s: an argument of no option; -p takes a process",
		    argv[optind]);
}

/* --- the screen --- */

static struct {
	bool on, keys;
	struct termios before;
} screen;

static void on_stop(int sig)
{
	(void)sig;
	stop = 1;
}

static void on_resize(int sig)
{
	(void)sig;
	resized = 1;
}

/* Another screen, so that what was there before comes back; no cursor. */
static void screen_open(void)
{
	struct termios raw;

	screen.keys = tcgetattr(STDIN_FILENO, &screen.before) == 0;
	if (screen.keys) {
		raw = screen.before;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VSUSP] = _POSIX_VDISABLE;
		raw.c_cc[VMIN] = 0;
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	fputs("\033[?1049h\033[?25l\033[2J", stdout);
	fflush(stdout);
	screen.on = true;
}

static void screen_close(void)
{
	if (!screen.on)
		return;
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	if (screen.keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
	screen.on = false;
}

static struct place place(void)
{
	struct place p = { .out = stdout };
	struct winsize size;

	if (options.batch)
		return p;
	p.rows = 24;
	p.columns = 80;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 &&
	    size.ws_col > 0) {
		p.rows = size.ws_row;
		p.columns = size.ws_col;
	}
	return p;
}

/* Until then, or a key or a signal. */
static void wait_ns(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000) };
	struct pollfd in = { .fd = screen.keys ? STDIN_FILENO : -1,
			     .events = POLLIN };
	char key;

	if (ppoll(&in, 1, &t, NULL) <= 0 || in.revents == 0)
		return;
	if (read(STDIN_FILENO, &key, 1) != 1)
		screen.keys = false; /* it was closed */
	else if (key == 'q' || key == 'Q')
		stop = 1;
}

/* --- a round --- */

static bool is_open(const struct process *p)
{
	return p->trouble[0] == '\0';
}

static void begin(struct process *list, double now)
{
	for (struct process *p = list; p != NULL; p = p->next) {
		for (int i = 0; i < p->nvp; i++)
			memset(p->vps[i].seen, 0, sizeof(p->vps[i].seen));
		if (is_open(p) && p->at <= 0)
			look_at_counts(p, now);
	}
}

static void look(struct process *list)
{
	for (struct process *p = list; p != NULL; p = p->next)
		if (is_open(p))
			look_at_vps(p);
}

static double now_s(void)
{
	return (double)base_now_ns() / 1e9;
}

/* Looks at moments that keep no step with anything that happens regularly. */
static void look_around(struct process *list)
{
	uint64_t ns = (uint64_t)(options.seconds * 1e9), gap = ns / LOOKS;
	uint64_t end = base_now_ns() + ns;

	if (gap < LOOKS_NS_MIN)
		gap = LOOKS_NS_MIN;
	while (!stop && !resized) {
		uint64_t now = base_now_ns();
		uint64_t next = gap / 2 + (uint64_t)rand() % gap;

		look(list);
		if (now >= end)
			return;
		wait_ns(now + next > end ? end - now : next);
	}
}

static void end(struct process *list, double now)
{
	for (struct process *p = list; p != NULL; p = p->next)
		p->is_shown =
			!is_open(p) || look_at_counts(p, now) || !is_open(p);
}

/* The process that was asked for: it is there, and can be looked at. */
static void check_wanted(const struct process *list, bool was_there)
{
	if (options.pid == 0)
		return;
	if (list == NULL && was_there) {
		screen_close();
		fprintf(stderr, MARCEL_TOP ": %d has ended\n",
			(int)options.pid);
		exit(0);
	}
	if (list != NULL && is_open(list))
		return;
	screen_close();
	if (list == NULL)
		die(1, "%d: there is no such process", (int)options.pid);
	die(1, "%d (%s): %s", (int)options.pid, list->name, list->trouble);
}

int main(int argc, char **argv)
{
	struct sigaction stops = { .sa_handler = on_stop };
	struct sigaction resizes = { .sa_handler = on_resize };
	struct process *list = NULL;
	double began;

	read_options(argc, argv);
	if (!options.batch && !isatty(STDOUT_FILENO))
		die(2, "the output is no terminal: -b prints");
	find_processes(&list, options.pid);
	check_wanted(list, false);
	if (!options.batch) {
		sigaction(SIGINT, &stops, NULL);
		sigaction(SIGTERM, &stops, NULL);
		sigaction(SIGHUP, &stops, NULL);
		sigaction(SIGQUIT, &stops, NULL);
		sigaction(SIGWINCH, &resizes, NULL);
		atexit(screen_close);
		screen_open();
	}
	for (long i = 0; !stop && (i < options.rounds || !options.rounds);
	     i++) {
		struct place where;

		began = now_s();
		begin(list, began);
		look_around(list);
		resized = 0;
		end(list, now_s());
		check_wanted(list, true);
		where = place();
		show_processes(&where, list, now_s() - began);
		find_processes(&list, options.pid);
		check_wanted(list, true);
	}
	forget_processes(&list);
	return 0;
}
