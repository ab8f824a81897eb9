/*
 * mpirun: start N processes on this machine as one MPI job. No daemon: this
 * process serves them, forwards their output and our signals, and waits in one
 * poll() for whatever comes next.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

enum { KEY_BYTES = 16 };

static const int forwarded[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
				 SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT };

/* --- shared with the other files --- */

long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000 + 1;
}

static void vsay(const char *fmt, va_list ap)
{
	char text[1024];
	int n = snprintf(text, sizeof(text), "mpirun: ");

	vsnprintf(text + n, sizeof(text) - (size_t)n - 1, fmt, ap);
	strcat(text, "\n");
	(void)!write(STDERR_FILENO, text, strlen(text));
}

void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsay(fmt, ap);
	va_end(ap);
}

void *must(void *memory)
{
	if (memory != NULL)
		return memory;
	say("out of memory");
	exit(1);
}

static void vfail(struct job *j, int code, const char *fmt, va_list ap)
{
	if (j->failed)
		return;
	j->failed = true;
	j->code = code;
	vsay(fmt, ap);
	if (j->running > 1)
		say("ending the other ranks");
	children_signal(j, SIGTERM);
	children_signal(j, SIGCONT); /* a stopped one would not see it */
	j->kill_at = now_ms() + GRACE_MS;
}

void job_fail(struct job *j, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfail(j, code, fmt, ap);
	va_end(ap);
}

/* A job that was told to end does not go on. */
void rank_fail(struct job *j, struct rank *r, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!j->opt.keep_going || j->interrupts > 0) {
		vfail(j, code, fmt, ap);
	} else if (!j->failed && !r->failed) {
		r->failed = true;
		if (j->code == 0)
			j->code = code;
		vsay(fmt, ap);
		pmi_without(j, r);
	}
	va_end(ap);
}

/* --- signals --- */

static int open_signals(struct job *j)
{
	sigset_t set;
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaddset(&set, forwarded[i]);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	sigaddset(&set, SIGPIPE); /* a closed reader is an errno for us */
	sigprocmask(SIG_BLOCK, &set, &j->old_mask);
	sigaction(SIGCHLD, &dfl, &j->old_chld);
	if (fd < 0) {
		say("cannot listen to signals: %s", strerror(errno));
		exit(1);
	}
	return fd;
}

/* The first time is a request, the second an order, the third is done. */
static void interrupt(struct job *j, int sig)
{
	j->interrupts++;
	if (j->interrupts == 1) {
		children_signal(j, sig);
	} else if (j->interrupts == 2) {
		job_fail(j, 128 + sig, "ended by a second signal, %d (%s)", sig,
			 strsignal(sig));
	} else {
		children_signal(j, SIGKILL);
	}
}

static void take_signal(struct job *j, int sig)
{
	switch (sig) {
	case SIGCHLD:
		children_reap(j);
		break;
	case SIGINT:
	case SIGTERM:
	case SIGHUP:
	case SIGQUIT:
		interrupt(j, sig);
		break;
	case SIGTSTP:
		children_signal(j, sig);
		raise(SIGSTOP);
		break;
	case SIGUSR2:
		if (hang_ask(j))
			break;
		children_signal(j, sig);
		break;
	default:
		children_signal(j, sig);
	}
}

static void take_signals(struct job *j, int fd)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) == sizeof(info))
		take_signal(j, (int)info.ssi_signo);
}

/* --- the terminal --- */

static bool may_read_tty(const struct job *j)
{
	return j->tty_to >= 0 && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void close_tty(struct job *j)
{
	close(j->tty_to);
	j->tty_to = -1;
}

static void read_tty(struct job *j)
{
	ssize_t n = read(STDIN_FILENO, j->tty_buf, sizeof(j->tty_buf));

	if (n > 0)
		j->tty_len = (size_t)n;
	else if (n == 0 || errno != EINTR)
		close_tty(j);
}

static void pass_tty(struct job *j)
{
	ssize_t n = write(j->tty_to, j->tty_buf, j->tty_len);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		close_tty(j);
	} else if (n > 0) {
		j->tty_len -= (size_t)n;
		memmove(j->tty_buf, j->tty_buf + n, j->tty_len);
	}
}

/* --- deadlines --- */

static void sooner(long *first, long at)
{
	if (at != 0 && (*first == 0 || at < *first))
		*first = at;
}

/* The poll time-out until the next deadline: ms, or -1. */
static int patience(const struct job *j)
{
	long first = 0, left;

	sooner(&first, j->kill_at);
	sooner(&first, j->end_at);
	sooner(&first, j->hang_due);
	for (int i = 0; i < j->opt.ranks; i++) {
		struct rank *r = &j->ranks[i];

		sooner(&first, r->lost_at ? r->lost_at + LOST_MS : 0);
		sooner(&first, r->out[0].flush_at);
		sooner(&first, r->out[1].flush_at);
	}
	if (first == 0)
		return -1;
	left = first - now_ms();
	return left > 0 ? (int)left : 0;
}

static void look_at_rank(struct job *j, struct rank *r, long now)
{
	for (int i = 0; i < 2; i++)
		if (r->out[i].flush_at != 0 && now >= r->out[i].flush_at)
			stream_show_partial(j, &r->out[i], r->number);
	if (r->lost_at == 0 || now < r->lost_at + LOST_MS)
		return;
	if (child_is_exiting(r)) {
		r->lost_at = now; /* its end will tell its code */
	} else {
		r->lost_at = 0;
		rank_fail(j, r, 1,
			  "rank %d (pid %d) has closed its connection without "
			  "MPI_Finalize",
			  r->number, r->pid);
	}
}

static void look_at_clock(struct job *j)
{
	long now = now_ms();

	for (int i = 0; i < j->opt.ranks; i++)
		look_at_rank(j, &j->ranks[i], now);
	hang_look(j, now);
	if (j->end_at != 0 && now >= j->end_at) {
		j->end_at = 0;
		job_fail(j, EXIT_TIMEOUT, "not done after %d s (--timeout)",
			 j->opt.timeout_s);
	}
	if (j->kill_at != 0 && now >= j->kill_at) {
		j->kill_at = 0;
		children_signal(j, SIGKILL);
	}
}

/* --- the loop --- */

/* What to wait for: signals, the sinks, the terminal, four a rank. */
enum { AT_SIGNAL, AT_SINK, AT_TTY = AT_SINK + 2, AT_RANKS, EACH = 4 };

static void want(struct pollfd *w, int fd, short events)
{
	w->fd = fd;
	w->events = events;
	w->revents = 0;
}

static void prepare(struct job *j, struct pollfd *w, int signals)
{
	want(&w[AT_SIGNAL], signals, POLLIN);
	for (int i = 0; i < 2; i++) {
		struct sink *s = &j->sinks[i];

		want(&w[AT_SINK + i], s->at < s->len ? s->fd : -1, POLLOUT);
	}
	if (j->tty_len > 0)
		want(&w[AT_TTY], j->tty_to, POLLOUT);
	else
		want(&w[AT_TTY], may_read_tty(j) ? STDIN_FILENO : -1, POLLIN);
	w += AT_RANKS;
	for (int r = 0; r < j->opt.ranks; r++, w += EACH) {
		struct rank *k = &j->ranks[r];

		want(&w[0], k->pmi, POLLIN);
		want(&w[3], k->hang_fd, POLLIN);
		for (int i = 0; i < 2; i++)
			want(&w[1 + i],
			     sink_is_full(k->out[i].sink) ? -1 : k->out[i].fd,
			     POLLIN);
	}
}

/* Nobody reads any more: the ranks that print on get SIGPIPE, as usual. */
static void drop_output(struct job *j, int which)
{
	struct sink *s = &j->sinks[which];

	if (s->broken != EPIPE && s->broken != EBADF)
		say("cannot write to %s: %s", s->name, strerror(s->broken));
	for (int r = 0; r < j->opt.ranks; r++) {
		struct stream *out = &j->ranks[r].out[which];

		if (out->fd >= 0)
			close(out->fd);
		out->fd = -1;
		out->flush_at = 0;
	}
	if (s->broken != EPIPE && j->code == 0)
		j->code = 1;
	s->fd = -1;
}

static void flush(struct job *j)
{
	for (int i = 0; i < 2; i++) {
		if (j->sinks[i].fd < 0)
			continue;
		sink_flush(&j->sinks[i]);
		if (j->sinks[i].broken != 0)
			drop_output(j, i);
	}
}

/* Output first: what a rank printed comes before what is said about it. */
static void serve(struct job *j, const struct pollfd *w)
{
	const struct pollfd *of = w + AT_RANKS;

	for (int r = 0; r < j->opt.ranks; r++, of += EACH)
		for (int i = 0; i < 2; i++)
			if (of[1 + i].revents != 0)
				stream_read(j, &j->ranks[r].out[i], r);
	flush(j);
	of = w + AT_RANKS;
	for (int r = 0; r < j->opt.ranks; r++, of += EACH) {
		if (of->revents != 0)
			pmi_serve(j, &j->ranks[r]);
		if (of[3].revents != 0 && j->ranks[r].hang_fd >= 0)
			hang_serve(j, &j->ranks[r]);
	}
	if (w[AT_TTY].revents != 0 && j->tty_len > 0)
		pass_tty(j);
	else if (w[AT_TTY].revents != 0 && j->tty_to >= 0)
		read_tty(j);
	if (w[AT_SIGNAL].revents != 0)
		take_signals(j, w[AT_SIGNAL].fd);
	look_at_clock(j);
}

/* All ranks have ended; true when all they have printed is written. */
static bool finished(struct job *j)
{
	bool more = false;

	if (j->running > 0)
		return false;
	for (int r = 0; r < j->opt.ranks; r++)
		for (int i = 0; i < 2; i++)
			stream_finish(j, &j->ranks[r].out[i], r);
	flush(j);
	for (int i = 0; i < 2; i++)
		more |= j->sinks[i].at < j->sinks[i].len;
	for (int r = 0; r < j->opt.ranks; r++)
		more |= j->ranks[r].out[0].fd >= 0 ||
			j->ranks[r].out[1].fd >= 0;
	return !more || j->interrupts > 2;
}

static void run(struct job *j, int signals)
{
	size_t n = AT_RANKS + EACH * (size_t)j->opt.ranks;
	struct pollfd *w = must(calloc(n, sizeof(*w)));

	while (!finished(j)) {
		prepare(j, w, signals);
		if (poll(w, n, patience(j)) < 0 && errno != EINTR) {
			say("cannot wait: %s", strerror(errno));
			exit(1);
		}
		serve(j, w);
	}
	free(w);
}

/* --- start --- */

/*
 * Who started us may have closed 0, 1 or 2. Nothing of ours may come to lie
 * there: the ranks get pipes in these places, over whatever is in them.
 */
static void fill_standard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			exit(1); /* there is nowhere to say it */
}

/* A key that only the processes of this job know. */
static int make_key(void)
{
	unsigned char key[KEY_BYTES];
	int fd = memfd_create("madmpi-job-key", MFD_CLOEXEC);

	if (fd < 0 || getrandom(key, sizeof(key), 0) != sizeof(key) ||
	    pwrite(fd, key, sizeof(key), 0) != sizeof(key)) {
		say("cannot make the job's key: %s", strerror(errno));
		exit(1);
	}
	return fd;
}

static void init(struct job *j)
{
	char host[32] = "localhost";
	struct sink out = { .fd = STDOUT_FILENO, .name = "standard output" };
	struct sink err = { .fd = STDERR_FILENO, .name = "standard error" };
	char mapping[48];

	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, " =\n")] = '\0';
	j->sinks[0] = out;
	j->sinks[1] = err;
	j->tty_to = -1;
	j->key_fd = make_key();
	j->members = j->opt.ranks;
	snprintf(j->kvs_name, sizeof(j->kvs_name), "kvs_%d_%s", getpid(), host);
	snprintf(mapping, sizeof(mapping), "(vector,(0,1,%d))", j->opt.ranks);
	pmi_define(j, "PMI_process_mapping", mapping);
	j->ranks = must(calloc((size_t)j->opt.ranks, sizeof(*j->ranks)));
	for (int r = 0; r < j->opt.ranks; r++) {
		j->ranks[r].number = r;
		j->ranks[r].pmi = j->ranks[r].hang_fd = -1;
		j->ranks[r].out[0].fd = j->ranks[r].out[1].fd = -1;
		j->ranks[r].out[0].sink = &j->sinks[0];
		j->ranks[r].out[1].sink = &j->sinks[1];
	}
}

/* Four descriptors a rank are ours; the ranks get the old limit back. */
static void raise_limit(struct job *j)
{
	rlim_t needed = EACH * (rlim_t)j->opt.ranks + 32;
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &j->old_limit);
	limit = j->old_limit;
	if (limit.rlim_cur >= needed)
		return;
	limit.rlim_cur = needed;
	if (limit.rlim_max < needed || setrlimit(RLIMIT_NOFILE, &limit) != 0) {
		say("-n %d needs %lu descriptors, but the limit (ulimit -Hn) "
		    "is %lu",
		    j->opt.ranks, (unsigned long)needed,
		    (unsigned long)limit.rlim_max);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	static struct job job;
	struct job *j = &job;
	int signals;

	fill_standard();
	options_parse(&j->opt, argc, argv);
	raise_limit(j);
	init(j);
	signals = open_signals(j);
	if (j->opt.timeout_s > 0)
		j->end_at = now_ms() + j->opt.timeout_s * 1000L;
	bind_find(j);
	children_start(j);
	run(j, signals);
	pmi_forget(j);
	free(j->places);
	free(j->ranks);
	free(j->sinks[0].buf);
	free(j->sinks[1].buf);
	return j->code;
}
