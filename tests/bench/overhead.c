/*
 * What pioman costs where nothing happens, and what waiting costs, in ns, lines
 * "NAME VALUE ns":
 *
 *   overhead poll        piom_poll() with all queues empty, for each engine
 *                        (EuroPVM/MPI 2007, table 2: 38 without threads, 85 on
 *                        one VP, 142 on many): ENGINE_WHERE
 *   overhead blocking    a system call that does not sleep (call); the same in
 *                        a section, with nobody else (section) and with a
 *                        thread that is ready to go on (ready); a section in
 *                        which a byte is waited for that such a thread then
 *                        sends, through a spare kernel thread (sleep; the
 *                        paper: 1,680)
 *   overhead wait HOW    two threads in turns, each waiting for the other
 *                        (RenPar 2009, figure 6: passive costs 750 more), of
 *                        one VP, of two, or foreign
 *   overhead late HOW    an ltask that ends only so many us after it has been
 *                        submitted: how late who waits for it notices, late_US
 *
 * HOW is a PIOM_WAIT.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/compiler.h>

#include <marcel/marcel.h>
#include <pioman/pioman.h>

#include "measure.h"

enum { REPEATS = 9, BATCH = 16, SLICE_NS = 10000000, FDS = 2 };

static void start(int nvp, const char *engine, const char *wait)
{
	struct marcel_config config = { .nvp = nvp };

	setenv("PIOM_ENGINE", engine, 1);
	setenv("PIOM_WAIT", wait, 1);
	must(marcel_init(&config) == 0, "marcel_init");
	must(piom_init() == 0, "piom_init");
}

static void stop(void)
{
	must(piom_exit() == 0, "piom_exit");
	must(marcel_end() == 0, "marcel_end");
}

static void print(const char *name, double *ns)
{
	printf("%s %.4f ns\n", name, median(ns, REPEATS));
	fflush(stdout);
}

/* fn() again and again for some time, REPEATS times: ns each. */
static void repeat(void (*fn)(void), double *ns)
{
	uint64_t begin, now;
	long n;

	for (int r = -1; r < REPEATS; r++) {
		n = 0;
		begin = now_ns();
		do {
			for (int i = 0; i < BATCH; i++)
				fn();
			n += BATCH;
			now = now_ns();
		} while (now - begin < SLICE_NS);
		if (r >= 0)
			ns[r] = (double)(now - begin) / (double)n;
	}
}

static void on_vp(marcel_t *t, int vp, void *(*fn)(void *), void *arg)
{
	marcel_attr_t attr;

	marcel_attr_init(&attr);
	marcel_attr_setvp(&attr, vp);
	must(marcel_create(t, &attr, fn, arg) == 0, "marcel_create");
	marcel_attr_destroy(&attr);
}

/* --- poll --- */

static void poll_once(void)
{
	piom_poll();
}

static void *poll_much(void *ns)
{
	repeat(poll_once, ns);
	return NULL;
}

static void polls(const char *wait)
{
	static const struct {
		const char *engine, *name;
		int nvp; /* 0: as many as there are */
		int foreign;
	} kinds[] = {
		{ "none", "none_one_vp", 1, 0 },
		{ "marcel", "marcel_one_vp", 1, 0 },
		{ "marcel", "marcel_all_vps", 0, 0 },
		{ "pthread", "pthread_user_thread", 0, 0 },
		{ "pthread", "pthread_foreign_thread", 0, 1 },
	};
	double ns[REPEATS];
	pthread_t t;

	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++) {
		start(kinds[i].nvp, kinds[i].engine, wait);
		if (kinds[i].foreign) {
			must(pthread_create(&t, NULL, poll_much, ns) == 0,
			     "thread");
			pthread_join(t, NULL);
		} else {
			poll_much(ns);
		}
		print(kinds[i].name, ns);
		stop();
	}
}

/* --- blocking --- */

static int back[FDS];

/* The kernel's own, where read() would be a section already. */
static void call(void)
{
	syscall(SYS_getppid);
}

static void section(void)
{
	marcel_blocking_begin();
	call();
	marcel_blocking_end();
}

static void sleep_once(void)
{
	char byte;

	marcel_blocking_begin();
	must(syscall(SYS_read, back[0], &byte, 1) == 1, "read");
	marcel_blocking_end();
}

static int over;

static void *stay_ready(void *arg)
{
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		marcel_yield();
	return arg;
}

/* It may get ahead by what a pipe holds; it must not sleep then. */
static void *send_on(void *arg)
{
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		must(syscall(SYS_write, back[1], "x", 1) == 1 ||
			     errno == EAGAIN,
		     "write");
		marcel_yield();
	}
	return arg;
}

/* Beside such a thread on the same VP, or alone. */
static void section_beside(void *(*other)(void *), void (*fn)(void),
			   const char *name)
{
	double ns[REPEATS];
	marcel_t t;

	__atomic_store_n(&over, 0, __ATOMIC_RELAXED);
	if (other != NULL)
		on_vp(&t, 0, other, NULL);
	repeat(fn, ns);
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	if (other != NULL)
		marcel_join(t, NULL);
	print(name, ns);
}

static void blocking(const char *wait)
{
	must(pipe2(back, O_CLOEXEC) == 0, "pipe");
	must(fcntl(back[1], F_SETFL, O_NONBLOCK) == 0, "pipe");
	start(1, "marcel", wait);
	section_beside(NULL, call, "call");
	section_beside(NULL, section, "section");
	section_beside(stay_ready, section, "ready");
	section_beside(send_on, sleep_once, "sleep");
	stop();
	for (int i = 0; i < FDS; i++)
		close(back[i]);
}

/* --- wait --- */

struct pair {
	piom_cond_t go, back;
	double ns[REPEATS];
};

static void answer_one(struct pair *p)
{
	piom_cond_wait(&p->go);
	piom_cond_init(&p->go);
	piom_cond_signal(&p->back);
}

static void ask_one(struct pair *p)
{
	piom_cond_signal(&p->go);
	piom_cond_wait(&p->back);
	piom_cond_init(&p->back);
}

enum { TURNS = 2000 };

static void *answer(void *arg)
{
	for (int i = 0; i < (REPEATS + 1) * TURNS; i++)
		answer_one(arg);
	return NULL;
}

static void *ask(void *arg)
{
	struct pair *p = arg;
	uint64_t begin = 0;

	for (int r = -1; r < REPEATS; r++) {
		begin = now_ns();
		for (int i = 0; i < TURNS; i++)
			ask_one(p);
		if (r >= 0)
			p->ns[r] = (double)(now_ns() - begin) / TURNS;
	}
	return NULL;
}

/* ns there and back; vp -1: foreign threads. */
static void in_turns(int one, int other, const char *name)
{
	static struct pair p;
	pthread_t k[2];
	marcel_t t[2];

	piom_cond_init(&p.go);
	piom_cond_init(&p.back);
	if (one < 0) {
		must(pthread_create(&k[0], NULL, answer, &p) == 0, "thread");
		must(pthread_create(&k[1], NULL, ask, &p) == 0, "thread");
		for (int i = 0; i < 2; i++)
			pthread_join(k[i], NULL);
	} else {
		on_vp(&t[0], other, answer, &p);
		on_vp(&t[1], one, ask, &p);
		for (int i = 0; i < 2; i++)
			marcel_join(t[i], NULL);
	}
	print(name, p.ns);
}

static void turns(const char *wait)
{
	start(1, "marcel", wait);
	in_turns(0, 0, "one_vp");
	stop();
	start(0, "marcel", wait);
	if (marcel_nvp() > 1)
		in_turns(0, 1, "two_vps");
	in_turns(-1, -1, "foreign");
	stop();
}

/* --- late --- */

struct late {
	struct piom_ltask task;
	uint64_t due, ended;
};

static enum piom_ltask_result end_late(void *arg)
{
	struct late *l = arg;
	uint64_t now = now_ns();

	if (now < l->due)
		return PIOM_LTASK_AGAIN;
	l->ended = now;
	return PIOM_LTASK_DONE;
}

static void late_by(int us)
{
	double ns[REPEATS], each[TURNS / 10];
	struct late l;
	char name[64];

	piom_ltask_init(&l.task, end_late, &l, PIOM_LTASK_REPEAT, NULL);
	for (int r = 0; r < REPEATS; r++) {
		for (int i = 0; i < TURNS / 10; i++) {
			l.due = now_ns() + (uint64_t)us * 1000;
			piom_ltask_submit(&l.task);
			piom_ltask_wait(&l.task);
			each[i] = (double)(now_ns() - l.due);
		}
		ns[r] = median(each, TURNS / 10);
	}
	snprintf(name, sizeof(name), "late_%d", us);
	print(name, ns);
}

/* One VP, which polls whoever waits how. */
static void late(const char *wait)
{
	static const int us[] = { 0, 2, 5, 10, 50 };

	start(1, "marcel", wait);
	for (size_t k = 0; k < BASE_ARRAY_LEN(us); k++)
		late_by(us[k]);
	stop();
}

static int is_wait(const char *how)
{
	static const char *const waits[] = { "auto", "active", "passive",
					     "spin" };

	for (size_t i = 0; i < BASE_ARRAY_LEN(waits); i++)
		if (strcmp(how, waits[i]) == 0)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(const char *wait);
		int waits; /* HOW is to be said */
	} parts[] = { { "poll", polls, 0 },
		      { "blocking", blocking, 0 },
		      { "wait", turns, 1 },
		      { "late", late, 1 } };

	for (size_t i = 0; i < BASE_ARRAY_LEN(parts); i++) {
		if (argc != 2 + parts[i].waits ||
		    strcmp(argv[1], parts[i].name) != 0 ||
		    (parts[i].waits && !is_wait(argv[2])))
			continue;
		parts[i].fn(parts[i].waits ? argv[2] : "auto");
		return 0;
	}
	fprintf(stderr, "overhead poll|blocking\n"
			"overhead wait|late auto|active|passive|spin\n");
	return 2;
}
