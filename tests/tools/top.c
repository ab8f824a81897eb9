/*
 * marcel-top tells what a process does, which does nothing for it.
 */
#include "../check.h"
#include "../run.h"

#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Run a program until it and its like have said `there`, so often; then these
 * commands, of which P is the program and TOP marcel-top; then its input ends.
 */
static struct run watch(const char *program, int there, const char *commands)
{
	char mine = 1, copy = 0;
	struct iovec from = { &mine, 1 }, to = { &copy, 1 };

	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1)
		check_skip("the kernel refuses process_vm_readv");
	return run(NULL,
		   "export MARCEL_TOP=1; TOP='%s'; d=$(mktemp -d); mkfifo "
		   "$d/in $d/out; "
		   "%s <$d/in >$d/out & P=$!; exec 3>$d/in 4<$d/out; n=0; "
		   "while [ $n -lt %d ] && read -r l <&4; do echo \"$l\"; "
		   "[ \"$l\" = there ] && n=$((n + 1)); done; "
		   "rm -r $d; { %s\n} 3>&- 4<&-; code=$?; exec 3>&-; "
		   "wait $P; exit $code",
		   run_path("TOP"), program, there, commands);
}

static struct run watch_target(const char *arguments, const char *commands)
{
	char program[512];

	snprintf(program, sizeof(program), "'%s' %s", run_path("TARGET"),
		 arguments);
	return watch(program, 1, commands);
}

/* What was printed after the program had said all. */
static const char *after(struct run r)
{
	const char *at = strstr(r.out, "there\n");

	CHECK(at != NULL);
	return at != NULL ? at + strlen("there\n") : "";
}

/* The line of the program, without its end and with that after it. */
static void agrees(struct run r, const char *begins, const char *more)
{
	const char *line = strstr(r.out, begins);
	char want[256];

	CHECK(line != NULL && line < after(r));
	if (line == NULL)
		return;
	snprintf(want, sizeof(want), "%.*s%s", (int)strcspn(line, "\n"), line,
		 more);
	CHECK(has(after(r), want));
}

TEST(counts_are_those_of_the_program)
{
	struct run r = watch_target("", "$TOP -b -n 1 -d 0.05 -p $P");

	CHECK_INT(r.code, 0);
	CHECK_STR(r.err, "");
	agrees(r, "threads: ", "");
	agrees(r, "sends ", " (+0/s)");
	agrees(r, "receives ", " (+0/s)");
	agrees(r, "unexpected ", " (+0/s)");
	CHECK(has(after(r), "rank 0 of 1, pid "));
}

/*
 * A sample of marcel-top, which is the end if there is none; one that is tried
 * again is shown when the commands have ended.
 */
#define SAMPLES                                                                \
	"rejected() { sed 's/^/# rejected: /' >&2; }; "                        \
	"sample() { o=$($TOP -b -p $P \"$@\") || exit; }; "

static void show_rejected(struct run r)
{
	const char *line = r.err;

	while ((line = strstr(line, "# ")) != NULL) {
		int n = (int)strcspn(line, "\n");

		printf("%.*s\n", n, line);
		line += n;
	}
}

/*
 * In some span: the one that waits may have to wait for a CPU first, and the
 * one that computes may lose its CPU while it polls between two slices.
 */
TEST(who_computes_does_so_and_who_has_nothing_to_do_does_not)
{
	struct run r = watch_target(
		"", SAMPLES
		"until sample -n 1 -d 0.1; case $o in "
		"*'  threads 0 %'*'  threads 100 %  ltasks 0 %  idle 0 %'*) ;; "
		"*'  threads 100 %  ltasks 0 %  idle 0 %'*'  threads 0 %'*) ;; "
		"*) false; esac; do echo \"$o\" | rejected; done; "
		"echo found");

	show_rejected(r);
	CHECK(has(after(r), "found\n"));
}

/*
 * It sleeps; and still does, not woken once, when it has been looked at: some
 * time, for who says that it sleeps may have lost its CPU before it does.
 */
TEST(who_is_looked_at_does_nothing_for_it)
{
	struct run r = watch_target(
		"still", SAMPLES
		"until sample -n 1 -d 0.05; "
		"[ $(echo \"$o\" | grep -c 'sleeping 100 %') = 2 ]; do "
		"echo \"$o\" | rejected; done; "
		"switches() { cat /proc/$P/task/*/status | grep ctxt; }; "
		"until before=$(switches); sample -n 3 -d 0.1; "
		"after=$(switches); [ \"$before\" = \"$after\" ]; do "
		"echo \"$before, then\n$after\" | rejected; done; "
		"echo undisturbed");

	show_rejected(r);
	CHECK(has(after(r), "undisturbed\n"));
}

TEST(ranks_of_a_job_are_shown_in_their_order)
{
	char program[1024];
	const char *first, *second;
	struct run r;

	snprintf(program, sizeof(program), "'%s' -n 2 '%s' still",
		 run_path("MPIRUN"), run_path("TARGET"));
	r = watch(program, 2, "$TOP -b -n 1 -d 0.05");
	first = strstr(after(r), "rank 0 of 2, ");
	second = strstr(after(r), "rank 1 of 2, ");
	CHECK(first != NULL && second > first);
}

TEST(what_ends_meanwhile_is_said_to_have_ended)
{
	struct run r = watch_target(
		"still", "{ $TOP -b -d 0.05 -p $P; echo \"=$?\"; } | "
			 "{ read -r l; kill $P; cat; }");

	CHECK(has(r.err, " has ended\n"));
	CHECK(has(r.out, "=0\n"));
}

static void refuses(const char *arguments, int code, const char *why)
{
	struct run r = run(NULL, "'%s' %s", run_path("TOP"), arguments);

	CHECK_INT(r.code, code);
	CHECK_STR(r.out, "");
	CHECK(has(r.err, why));
}

TEST(what_it_cannot_do_it_says)
{
	refuses("-b -d 0", 2, "-d 0: not a number from 0.05 to 3600");
	refuses("-b -n 1.5", 2, "-n 1.5: not a whole number from 1 to ");
	refuses("-b -n", 2, "-n: its value is missing");
	refuses("-b --pid", 2, "-p: its value is missing");
	refuses("--batch -xn1", 2, "-x: no such option");
	refuses("--batch=1", 2, "-b: it takes no value");
	refuses("--colour", 2, "--colour: no such option");
	refuses("-b 4711", 2, "4711: an argument of no option; -p takes");
	refuses("", 2, "the output is no terminal: -b prints");
	refuses("-b -p 999999999", 1, "999999999: there is no such process");
	refuses("-b -p $$", 1, "it does not use marcel");
}

TEST(whose_a_process_is_is_told_to_others)
{
	struct run r;

	if (geteuid() != 0)
		check_skip("only root may become somebody else");
	/* The file may lie where nobody else comes. */
	r = run(NULL,
		"d=$(mktemp -d) && chmod 755 $d && cp '%s' $d/top && "
		"setpriv --reuid=65534 --clear-groups $d/top -b -p $$; "
		"code=$?; rm -r $d; exit $code",
		run_path("TOP"));
	CHECK_INT(r.code, 1);
	CHECK(has(r.err, "only root, whose it is, may read it"));
}

/* These open themselves to nobody. */
static bool only_children_are_read(void)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (f == NULL)
		return false;
	if (fscanf(f, "%d", &scope) != 1)
		scope = 0;
	fclose(f);
	return scope > 0 && geteuid() != 0;
}

TEST(other_versions_are_not_guessed_at)
{
	struct run r;

	if (only_children_are_read())
		check_skip("Yama's ptrace_scope is not 0");
	r = watch(run_path("OTHER_VERSION"), 1,
		  "$TOP -b -n 1 -d 0.05 -p $P; echo \"=$?\"; "
		  "$TOP -b -n 1 -d 0.05");

	CHECK(has(r.err, "in version 99, and this marcel-top reads version 1"));
	CHECK(has(r.out, "=1\n"));
	CHECK(has(r.out, "(tools_top_other): its libmarcel offers"));
	r = watch(run_path("OTHER_NAMES"), 1,
		  "$TOP -b -n 1 -d 0.05 -p $P; echo \"=$?\"");
	CHECK(has(r.err, "it does not say where its \"vp.bytes\" is"));
	CHECK(has(r.out, "=1\n"));
}

/* --- the screen --- */

static char seen[1 << 16];
static size_t nseen;

/* Read on until that has come. */
static bool shows(int fd, const char *part)
{
	ssize_t n = 0;

	while (strstr(seen, part) == NULL && nseen + 1 < sizeof(seen) &&
	       (n = read(fd, seen + nseen, sizeof(seen) - 1 - nseen)) > 0) {
		nseen += (size_t)n;
		seen[nseen] = '\0';
	}
	return strstr(seen, part) != NULL;
}

TEST(a_screen_is_filled_and_no_more)
{
	struct winsize size = { .ws_row = 2, .ws_col = 10 };
	int fd, status = -1;
	pid_t pid = forkpty(&fd, NULL, NULL, &size);

	if (pid == 0) {
		execl(run_path("TOP"), "marcel-top", "-d", "0.05", NULL);
		_exit(127);
	}
	CHECK(pid > 0);
	/* Another screen; the line goes on below after ten characters. */
	CHECK(shows(fd, "\033[?1049h"));
	CHECK(shows(fd, "\033[Hmarcel-top\033[K"));
	CHECK(shows(fd, " more "));
	size.ws_col = 200;
	CHECK_INT(ioctl(fd, TIOCSWINSZ, &size), 0);
	CHECK(shows(fd, " s: "));
	CHECK_INT(write(fd, "q", 1), 1);
	CHECK(shows(fd, "\033[?1049l"));
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	close(fd);
}

TEST(a_screen_of_80_columns_has_all)
{
	static const char *const parts[] = { " foreign;",    " created ",
					     " interrupts ", " packets in ",
					     "  vp 1 ",      " sleeping " };
	struct run r = watch_target(
		"still", "export TOP P; script -qec 'stty cols 80 rows 24; "
			 "$TOP -d0.05 -n 2 -p $P' /dev/null");
	const char *c = strstr(after(r), "\033[H");
	int column = 0;

	CHECK_INT(r.code, 0);
	CHECK(c != NULL);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		CHECK(has(c, parts[i]));
	for (; *c != '\0'; c++) {
		column = *c == '\n' ? 0 : column + 1;
		/* \033[K and the return are not seen. */
		CHECK(column <= 80 + 4);
	}
}
