/*
 * What pioman costs where nothing happens, and what waiting costs, in ns:
 *
 *   poll      piom_poll() with all queues empty, for each engine (EuroPVM/MPI
 *             2007, table 2: 38 without threads, 85 on one VP, 142 on many)
 *   blocking  a section around a system call that does not sleep, with nobody
 *             else and with a thread that is ready to go on; and a section in
 *             which a byte is waited for that such a thread then sends, through
 *             a spare kernel thread (the paper: 1,680)
 *   wait      two threads in turns, each waiting for the other, for each
 *             PIOM_WAIT (RenPar 2009, figure 6: passive costs 750 more)
 *   late      an ltask that ends only so many us after its submission is waited
 *             for: how late that is noticed
 *
 *   overhead [PART ...]     all, if none is named
 */
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

static void print(const char *what, const char *how, double *ns)
{
	qsort(ns, REPEATS, sizeof(ns[0]), by_value);
	printf("%-34s %-24s %10.1f  (%.1f .. %.1f)\n", what, how,
	       ns[REPEATS / 2], ns[0], ns[REPEATS - 1]);
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

static void polls(void)
{
	static const struct {
		const char *engine, *what;
		int nvp; /* 0: as many as there are */
		int foreign;
	} kinds[] = {
		{ "none", "none, 1 VP", 1, 0 },
		{ "marcel", "marcel, 1 VP", 1, 0 },
		{ "marcel", "marcel, all VPs", 0, 0 },
		{ "pthread", "pthread, user thread", 0, 0 },
		{ "pthread", "pthread, foreign thread", 0, 1 },
	};
	double ns[REPEATS];
	pthread_t t;

	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++) {
		start(kinds[i].nvp, kinds[i].engine, "auto");
		if (kinds[i].foreign) {
			must(pthread_create(&t, NULL, poll_much, ns) == 0,
			     "thread");
			pthread_join(t, NULL);
		} else {
			poll_much(ns);
		}
		print("empty poll", kinds[i].what, ns);
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

static void *send_on(void *arg)
{
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		must(syscall(SYS_write, back[1], "x", 1) == 1, "write");
		marcel_yield();
	}
	return arg;
}

/* Beside such a thread on the same VP, or alone. */
static void section_beside(void *(*other)(void *), void (*fn)(void),
			   const char *what, const char *how)
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
	print(what, how, ns);
}

static void blocking(void)
{
	must(pipe2(back, O_CLOEXEC) == 0, "pipe");
	start(1, "marcel", "auto");
	section_beside(NULL, call, "system call", "no section");
	section_beside(NULL, section, "the same", "in a section, alone");
	section_beside(stay_ready, section, "the same", "another is ready");
	section_beside(send_on, sleep_once, "it sleeps for a byte",
		       "which another sends");
	stop();
	for (int i = 0; i < FDS; i++)
		close(back[i]);
}

/* --- wait --- */

static const char *const waits[] = { "auto", "active", "passive", "spin" };

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
static void in_turns(int one, int other, const char *wait, const char *what)
{
	static struct pair p;
	pthread_t k[2];
	marcel_t t[2];
	char how[64];

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
	snprintf(how, sizeof(how), "PIOM_WAIT=%s", wait);
	print(what, how, p.ns);
}

static void turns(void)
{
	for (int i = 0; i < 4; i++) {
		start(1, "marcel", waits[i]);
		in_turns(0, 0, waits[i], "in turns, threads of one VP");
		stop();
	}
	for (int i = 0; i < 4; i++) {
		start(0, "marcel", waits[i]);
		if (marcel_nvp() > 1)
			in_turns(0, 1, waits[i], "in turns, of two VPs");
		stop();
	}
	for (int i = 0; i < 4; i++) {
		start(0, "marcel", waits[i]);
		in_turns(-1, -1, waits[i], "in turns, foreign threads");
		stop();
	}
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

static void late_by(int us, const char *wait)
{
	double ns[REPEATS], each[TURNS / 10];
	struct late l;
	char what[64], how[64];

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
	snprintf(what, sizeof(what), "noticed, due after %d us", us);
	snprintf(how, sizeof(how), "PIOM_WAIT=%s", wait);
	print(what, how, ns);
}

/* One VP, which polls whoever waits how. */
static void late(void)
{
	static const int us[] = { 0, 2, 5, 10, 50 };

	for (size_t k = 0; k < BASE_ARRAY_LEN(us); k++) {
		for (int i = 0; i < 4; i++) {
			start(1, "marcel", waits[i]);
			late_by(us[k], waits[i]);
			stop();
		}
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} parts[] = { { "poll", polls },
		      { "blocking", blocking },
		      { "wait", turns },
		      { "late", late } };
	int known = argc < 2;

	printf("# ns: median (least .. most) of %d\n", REPEATS);
	for (size_t i = 0; i < BASE_ARRAY_LEN(parts); i++) {
		int wanted = argc < 2;

		for (int k = 1; k < argc; k++)
			wanted |= strcmp(argv[k], parts[i].name) == 0;
		known |= wanted;
		if (wanted)
			parts[i].fn();
	}
	if (known)
		return 0;
	fprintf(stderr, "overhead [poll] [blocking] [wait] [late]\n");
	return 2;
}
