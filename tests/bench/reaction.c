/*
 * How long after an event a thread runs that waits for it in pioman, in us:
 * another process writes the time into a pipe at random moments. Beside it, in
 * turns, a kernel thread that sleeps in read() in the same place.
 *
 *   reaction [-n EVENTS] [-s SECONDS] [SITUATION [ENGINE [MODE]]]
 *
 * EVENTS (1,000) or SECONDS (10) end a case. SITUATION: idle; computing: a
 * thread on each VP, user threads or, with engine pthread, kernel threads;
 * favoured: the same, but the user thread that waits is favoured when it is
 * woken; crowded: as many processes as there are CPUs spin. "all" stands for
 * any.
 *
 * Of each case lines "WHO_ENGINE_MODE VALUE us", the median, "..._p99" and
 * "..._most"; WHO is a user thread, a foreign one, or bare read(). Who cannot
 * wait so has none.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/compiler.h>

#include <marcel/marcel.h>
#include <pioman/pioman.h>

#include "measure.h"

enum {
	EVENTS_MAX = 100000,
	GAP_MIN_US = 100, /* between an answer and the next event */
	GAP_SPAN_US = 3000,
	PATIENCE_MS = 20000,
	WARM_UP = 5,
	THREADS_MAX = 256,
};

enum who { USER, FOREIGN, BARE, WHOS };

static const char *const names[] = { "user", "foreign", "bare" };

static int events = 1000, seconds = 10;

/* Pipes: a time stamp to each waiter, 0 for its end; a byte as the answer. */
static int to[WHOS][2], answers[2];

/* Who waits, and what it has seen. */
struct waiter {
	enum who who;
	int n;
	double us[EVENTS_MAX];
};

static struct waiter waiters[WHOS];

/* --- the other process --- */

static uint64_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static void send_to(enum who who, uint64_t stamp)
{
	must(write(to[who][1], &stamp, sizeof(stamp)) == sizeof(stamp),
	     "write");
}

static void await_answer(void)
{
	struct pollfd p = { .fd = answers[0], .events = POLLIN };
	char byte;

	if (poll(&p, 1, PATIENCE_MS) == 1 && read(answers[0], &byte, 1) == 1)
		return;
	fprintf(stderr, "reaction: no answer after %d s\n", PATIENCE_MS / 1000);
	kill(getppid(), SIGTERM);
	_exit(1);
}

static void send_all(uint64_t seed)
{
	uint64_t begin = now_ns(), state = seed;
	struct timespec gap = { 0, 0 };

	for (int i = 0; i < events + WARM_UP; i++) {
		if (now_ns() - begin > (uint64_t)seconds * 1000000000u)
			break;
		for (int who = 0; who < WHOS; who++) {
			gap.tv_nsec = (long)(GAP_MIN_US +
					     draw(&state) % GAP_SPAN_US) *
				      1000;
			nanosleep(&gap, NULL);
			send_to(who, now_ns());
			await_answer();
		}
	}
	for (int who = 0; who < WHOS; who++)
		send_to(who, 0);
}

static pid_t start_process(void (*fn)(uint64_t), uint64_t arg)
{
	pid_t pid = fork();

	must(pid >= 0, "fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn(arg);
		_exit(0);
	}
	return pid;
}

static void spin(uint64_t arg)
{
	for (;;)
		(void)arg;
}

/* --- who waits --- */

/* False: that was the end. */
static int note(struct waiter *w, uint64_t stamp, uint64_t now)
{
	if (stamp == 0)
		return 0;
	if (w->n < EVENTS_MAX)
		w->us[w->n++] = (double)(now - stamp) * 1e-3;
	must(write(answers[1], "x", 1) == 1, "write");
	return 1;
}

static void *wait_bare(void *arg)
{
	struct waiter *w = arg;
	uint64_t stamp;

	do
		must(read(to[BARE][0], &stamp, sizeof(stamp)) == sizeof(stamp),
		     "read");
	while (note(w, stamp, now_ns()));
	return NULL;
}

struct event {
	struct piom_ltask task;
	int fd;
	piom_cond_t come;
	uint64_t stamp;
};

static enum piom_ltask_result look(void *arg)
{
	struct event *e = arg;

	if (read(e->fd, &e->stamp, sizeof(e->stamp)) != sizeof(e->stamp))
		return PIOM_LTASK_AGAIN;
	piom_cond_signal(&e->come);
	return PIOM_LTASK_DONE;
}

static void *wait_in_pioman(void *arg)
{
	struct piom_blocking how = { .delay_ns = PIOM_BLOCKING_AUTO };
	struct waiter *w = arg;
	struct event e = { .fd = to[w->who][0] };
	uint64_t now;

	how.fd = e.fd;
	do {
		piom_cond_init(&e.come);
		piom_ltask_init(&e.task, look, &e, PIOM_LTASK_REPEAT, NULL);
		must(piom_ltask_set_blocking(&e.task, &how) == 0,
		     "set_blocking");
		piom_ltask_submit(&e.task);
		piom_cond_wait(&e.come);
		now = now_ns();
		piom_ltask_wait(&e.task);
	} while (note(w, e.stamp, now));
	return NULL;
}

/* --- what the machine does meanwhile --- */

static atomic_int over;

static void *compute(void *arg)
{
	while (!atomic_load_explicit(&over, memory_order_relaxed))
		;
	return arg;
}

struct load {
	int n;
	int foreign;
	marcel_t user[THREADS_MAX];
	pthread_t kernel[THREADS_MAX];
};

static void start_load(struct load *l, const char *engine)
{
	marcel_attr_t attr;

	l->n = marcel_nvp() < THREADS_MAX ? marcel_nvp() : THREADS_MAX;
	l->foreign = strcmp(engine, "pthread") == 0;
	atomic_store(&over, 0);
	marcel_attr_init(&attr);
	for (int i = 0; i < l->n; i++) {
		marcel_attr_setvp(&attr, i);
		if (l->foreign)
			must(pthread_create(&l->kernel[i], NULL, compute,
					    NULL) == 0,
			     "thread");
		else
			must(marcel_create(&l->user[i], &attr, compute, NULL) ==
				     0,
			     "marcel_create");
	}
	marcel_attr_destroy(&attr);
}

static void stop_load(struct load *l)
{
	atomic_store(&over, 1);
	for (int i = 0; i < l->n; i++) {
		if (l->foreign)
			pthread_join(l->kernel[i], NULL);
		else
			marcel_join(l->user[i], NULL);
	}
}

/* --- cases --- */

static const char *const situations[] = { "idle", "computing", "favoured",
					  "crowded" };
static const char *const engines[] = { "marcel", "pthread", "none" };
static const char *const modes[] = { "auto", "poll", "interrupt" };

enum { IDLE, COMPUTING, FAVOURED, CROWDED, SITUATIONS };

/* As long as a waiter needs to answer, and more. */
#define FAVOUR_NS 1000000

static void print(struct waiter *w, const char *engine, const char *mode)
{
	const char *who = names[w->who];
	double *us = w->us + WARM_UP;
	int n = w->n - WARM_UP;

	if (n <= 0)
		return;
	qsort(us, (size_t)n, sizeof(us[0]), by_value);
	printf("%s_%s_%s %.1f us\n", who, engine, mode, us[n / 2]);
	printf("%s_%s_%s_p99 %.1f us\n", who, engine, mode, us[n * 99 / 100]);
	printf("%s_%s_%s_most %.1f us\n", who, engine, mode, us[n - 1]);
}

static void open_pipes(void)
{
	for (int who = 0; who < WHOS; who++) {
		must(pipe2(to[who], O_CLOEXEC) == 0, "pipe");
		if (who != BARE)
			must(fcntl(to[who][0], F_SETFL, O_NONBLOCK) == 0,
			     "fcntl");
		waiters[who].who = who;
		waiters[who].n = 0;
	}
	must(pipe2(answers, O_CLOEXEC) == 0, "pipe");
}

static void close_pipes(void)
{
	for (int who = 0; who < WHOS; who++) {
		close(to[who][0]);
		close(to[who][1]);
	}
	close(answers[0]);
	close(answers[1]);
}

/* The user thread of the three is main. */
static void wait_all(pid_t sender)
{
	pthread_t foreign, bare;
	int status;

	must(pthread_create(&foreign, NULL, wait_in_pioman,
			    &waiters[FOREIGN]) == 0,
	     "thread");
	must(pthread_create(&bare, NULL, wait_bare, &waiters[BARE]) == 0,
	     "thread");
	wait_in_pioman(&waiters[USER]);
	pthread_join(foreign, NULL);
	pthread_join(bare, NULL);
	must(waitpid(sender, &status, 0) == sender && status == 0, "sender");
}

static void measure(int situation, const char *engine, const char *mode)
{
	long cpus = situation == CROWDED ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
	static struct load load;
	pid_t spinner[THREADS_MAX], sender;

	open_pipes();
	/* Before there are other threads; what comes too soon is WARM_UP. */
	sender = start_process(send_all, now_ns());
	cpus = cpus < THREADS_MAX ? cpus : THREADS_MAX;
	for (long i = 0; i < cpus; i++)
		spinner[i] = start_process(spin, 0);
	setenv("PIOM_ENGINE", engine, 1);
	setenv("PIOM_MODE", mode, 1);
	must(marcel_init(NULL) == 0, "marcel_init");
	must(piom_init() == 0, "piom_init");
	if (situation == FAVOURED)
		must(marcel_favour_woken(marcel_self(), FAVOUR_NS) == 0,
		     "favour");
	if (situation == COMPUTING || situation == FAVOURED)
		start_load(&load, engine);
	wait_all(sender);
	if (situation == COMPUTING || situation == FAVOURED)
		stop_load(&load);
	must(piom_exit() == 0, "piom_exit");
	must(marcel_end() == 0, "marcel_end");
	for (long i = 0; i < cpus; i++) {
		kill(spinner[i], SIGKILL);
		waitpid(spinner[i], NULL, 0);
	}
	close_pipes();
	for (int who = 0; who < WHOS; who++)
		print(&waiters[who], engine, mode);
	fflush(stdout);
}

/* Whether it is the one that is meant; without a word all are. */
static int is_meant(const char *name, const char *word)
{
	return word == NULL || strcmp(word, "all") == 0 ||
	       strcmp(word, name) == 0;
}

int main(int argc, char **argv)
{
	const char *words[3] = { NULL, NULL, NULL };
	int option;

	while ((option = getopt(argc, argv, "n:s:")) != -1) {
		if (option == 'n')
			events = atoi(optarg);
		else if (option == 's')
			seconds = atoi(optarg);
		else
			events = 0;
	}
	if (events < 1 || events > EVENTS_MAX - WARM_UP || seconds < 1 ||
	    argc - optind > 3) {
		fprintf(stderr, "reaction [-n EVENTS] [-s SECONDS] "
				"[SITUATION [ENGINE [MODE]]]\n");
		return 2;
	}
	for (int i = optind; i < argc; i++)
		words[i - optind] = argv[i];
	for (int i = 0; i < 9 * SITUATIONS; i++)
		if (is_meant(situations[i / 9], words[0]) &&
		    is_meant(engines[i / 3 % 3], words[1]) &&
		    is_meant(modes[i % 3], words[2]))
			measure(i / 9, engines[i / 3 % 3], modes[i % 3]);
	return 0;
}
