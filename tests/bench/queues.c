/*
 * Submit + run + completion seen, through the queue of each level of the
 * machine's tree (Cluster 2009, tables I and II), in ns; who runs what many may
 * run; and many that submit at once, to queues of their own and to one. Beside
 * the queue of another VP: what a cache line takes to go there, five of which
 * are to be all that it takes longer than one's own.
 *
 *   queues [MS]     of each measurement; 20, if nothing is said
 *
 * MARCEL_TOPOLOGY="package:2 core:4 pu:1" has it run as if on another machine;
 * with more VPs than CPUs the kernel's slices are part of all figures.
 */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <base/compiler.h>

#include <marcel/marcel.h>
#include <pioman/pioman.h>

#include "measure.h"

enum { REPEATS = 9, VPS_MAX = 256, LOOKS = 64 };

static uint64_t slice_ns = 20000000;

/* An ltask and where it ran how often. One of its kind runs at a time. */
struct counted {
	struct piom_ltask task;
	long runs[VPS_MAX + 1]; /* the last: by no VP */
};

static enum piom_ltask_result count(void *arg)
{
	struct counted *c = arg;
	int vp = marcel_current_vp();

	c->runs[vp >= 0 && vp < VPS_MAX ? vp : VPS_MAX]++;
	return PIOM_LTASK_DONE;
}

static void start(const char *queues)
{
	must(marcel_init(NULL) == 0, "marcel_init");
	setenv("PIOM_QUEUES", queues, 1);
	must(piom_init() == 0, "piom_init");
	must(marcel_nvp() <= VPS_MAX, "too many VPs");
}

static void stop(void)
{
	must(piom_exit() == 0, "piom_exit");
	must(marcel_end() == 0, "marcel_end");
}

/* fn on a VP, in a thread that stays there. */
static void begin_on(marcel_t *t, int vp, void *(*fn)(void *), void *arg)
{
	marcel_attr_t attr;

	marcel_attr_init(&attr);
	marcel_attr_setvp(&attr, vp);
	must(marcel_create(t, &attr, fn, arg) == 0, "marcel_create");
	marcel_attr_destroy(&attr);
}

/* If VPs share CPUs, who waits in place keeps off who is waited for. */
static void give_way(int looks)
{
	if (looks % LOOKS == LOOKS - 1 && marcel_is_oversubscribed())
		sched_yield();
}

/* Submit and see it done, again and again for slice_ns: ns each. */
static double ns_each(struct counted *c, int polls)
{
	uint64_t begin = now_ns(), now;
	long n = 0;

	do {
		for (int i = 0; i < 16; i++, n++) {
			piom_ltask_submit(&c->task);
			if (polls)
				piom_poll();
			for (int k = 0; !piom_ltask_test(&c->task); k++) {
				give_way(k);
				if (polls)
					piom_poll();
			}
		}
		now = now_ns();
	} while (now - begin < slice_ns);
	return (double)(now - begin) / (double)n;
}

/* --- a cache line to another VP --- */

enum { HERE, THERE, OVER };

struct line {
	_Alignas(BASE_CACHE_PAIR) atomic_int at;
	_Alignas(BASE_CACHE_PAIR) int other;
	double ns[REPEATS];
};

static void *send_back(void *arg)
{
	struct line *l = arg;
	int at, k = 0;

	while ((at = atomic_load(&l->at)) != OVER) {
		if (at == THERE)
			atomic_store(&l->at, HERE);
		else
			give_way(k++);
	}
	return NULL;
}

static double ns_there(struct line *l)
{
	uint64_t begin = now_ns(), now;
	long n = 0;

	do {
		for (int i = 0; i < 16; i++, n += 2) {
			atomic_store(&l->at, THERE);
			for (int k = 0; atomic_load(&l->at) != HERE; k++)
				give_way(k);
		}
		now = now_ns();
	} while (now - begin < slice_ns);
	return (double)(now - begin) / (double)n;
}

static void *measure_there(void *arg)
{
	struct line *l = arg;
	marcel_t t;

	atomic_store(&l->at, HERE);
	begin_on(&t, l->other, send_back, l);
	for (int i = 0; i < REPEATS; i++)
		l->ns[i] = ns_there(l);
	atomic_store(&l->at, OVER);
	marcel_join(t, NULL);
	return NULL;
}

static void measure_line(int vp, int other)
{
	static struct line l;
	marcel_t t;

	l.other = other;
	begin_on(&t, vp, measure_there, &l);
	marcel_join(t, NULL);
	printf(" %9.1f", median(l.ns, REPEATS));
}

/* --- tables I and II --- */

struct row {
	const struct marcel_level *level;
	int polls; /* the submitter too */
	struct counted c;
	double ns[REPEATS];
};

static void *measure(void *arg)
{
	struct row *r = arg;

	piom_ltask_init(&r->c.task, count, &r->c, PIOM_LTASK_ONESHOT,
			&r->level->vps);
	ns_each(&r->c, r->polls);
	memset(r->c.runs, 0, sizeof(r->c.runs));
	for (int i = 0; i < REPEATS; i++)
		r->ns[i] = ns_each(&r->c, r->polls);
	return NULL;
}

/* How the runs are spread over the VPs that could run it. */
static void print_shares(const struct row *r, int but)
{
	double all = (double)r->c.runs[VPS_MAX], share[VPS_MAX];
	char text[32] = "";
	int n = 0;

	for (int vp = 0; vp < marcel_nvp(); vp++)
		all += (double)r->c.runs[vp];
	for (int vp = 0; vp < marcel_nvp(); vp++)
		if (marcel_vpset_has(&r->level->vps, vp) && vp != but)
			share[n++] = 100 * (double)r->c.runs[vp] / all;
	if (n > 1) {
		qsort(share, (size_t)n, sizeof(share[0]), by_value);
		snprintf(text, sizeof(text), "%.0f..%.0f", share[0],
			 share[n - 1]);
	}
	printf(" %9s", text);
}

static void measure_row(const struct marcel_level *level, int vp, int polls)
{
	static struct row r;
	char text[64];
	marcel_t t;

	r.level = level;
	r.polls = polls;
	begin_on(&t, vp, measure, &r);
	marcel_join(t, NULL);
	qsort(r.ns, REPEATS, sizeof(r.ns[0]), by_value);
	snprintf(text, sizeof(text), "(%.0f..%.0f)", r.ns[0],
		 r.ns[REPEATS - 1]);
	printf(" %9.1f %-18s", r.ns[REPEATS / 2], text);
	print_shares(&r, polls ? -1 : vp);
}

static int count_vps(const struct marcel_level *level)
{
	int n = 0;

	for (int vp = 0; vp < marcel_nvp(); vp++)
		n += marcel_vpset_has(&level->vps, vp);
	return n;
}

static int first_of(const struct marcel_level *level)
{
	int vp = 0;

	while (!marcel_vpset_has(&level->vps, vp))
		vp++;
	return vp;
}

static void table(const struct marcel_level *level, int vp)
{
	int inside = marcel_vpset_has(&level->vps, vp), n = count_vps(level);

	for (unsigned i = 0; i < level->nchildren; i++)
		table(level->children[i], vp);
	printf("%-8s%3u %4d", marcel_level_name(level->kind), level->index, n);
	if (inside)
		measure_row(level, vp, 1);
	else
		printf(" %9s %28s", "-", "");
	if (n > inside)
		measure_row(level, vp, 0);
	if (!inside)
		measure_line(vp, first_of(level));
	printf("\n");
	fflush(stdout);
}

static void tables(void)
{
	int last;

	start("tree");
	last = marcel_nvp() - 1;
	for (int vp = 0; vp <= last; vp += last > 0 ? last : 1) {
		printf("\nsubmitted by VP %d of %d%s; ns: median, least .. "
		       "most "
		       "of %d\n",
		       vp, marcel_nvp(),
		       marcel_is_oversubscribed() ? ", more VPs than CPUs" : "",
		       REPEATS);
		printf("%-16s %38s %38s %9s\n", "queue of    VPs",
		       "who submits polls too   % of each VP",
		       "others run it           % of each VP", "a line");
		table(marcel_topo_machine(), vp);
	}
	stop();
}

/* --- many at once --- */

enum target { OWN, ANY }; /* the VP's own ltask, or one that any VP may run */

struct many {
	struct counted c;
	enum target target;
	int vp;
	double ns;
	marcel_barrier_t *together;
};

static void *submit_much(void *arg)
{
	struct many *m = arg;
	marcel_vpset_t own;

	marcel_vpset_zero(&own);
	marcel_vpset_add(&own, m->vp);
	piom_ltask_init(&m->c.task, count, &m->c, PIOM_LTASK_ONESHOT,
			m->target == OWN ? &own : NULL);
	marcel_barrier_wait(m->together);
	m->ns = ns_each(&m->c, 1);
	return NULL;
}

/* ns from submission to completion, the mean of the threads; so many VPs. */
static double contend(int n, enum target target)
{
	static struct many all[VPS_MAX];
	marcel_barrier_t together;
	marcel_t t[VPS_MAX];
	double sum = 0;

	marcel_barrier_init(&together, NULL, (unsigned)n);
	for (int i = 0; i < n; i++) {
		all[i].target = target;
		all[i].vp = i;
		all[i].together = &together;
		begin_on(&t[i], i, submit_much, &all[i]);
	}
	for (int i = 0; i < n; i++) {
		marcel_join(t[i], NULL);
		sum += all[i].ns;
	}
	marcel_barrier_destroy(&together);
	return sum / n;
}

static void contention(void)
{
	static const struct {
		const char *queues, *what;
		enum target target;
	} kinds[] = {
		{ "tree", "own VP, its own queue", OWN },
		{ "machine", "own VP, machine's queue", OWN },
		{ "tree", "any VP, machine's queue", ANY },
	};
	double ns[REPEATS];

	printf("\nas many VPs submit and poll at once; ns for each ltask: "
	       "median, least .. most of %d\n",
	       REPEATS);
	for (int k = 0; k < 3; k++) {
		start(kinds[k].queues);
		for (int n = 1; n <= marcel_nvp();
		     n = n < marcel_nvp() && 2 * n > marcel_nvp() ? marcel_nvp()
								  : 2 * n) {
			contend(n, kinds[k].target);
			for (int i = 0; i < REPEATS; i++)
				ns[i] = contend(n, kinds[k].target);
			qsort(ns, REPEATS, sizeof(ns[0]), by_value);
			printf("%-26s%4d VPs %10.1f  (%.1f .. %.1f)\n",
			       kinds[k].what, n, ns[REPEATS / 2], ns[0],
			       ns[REPEATS - 1]);
			fflush(stdout);
		}
		stop();
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		slice_ns = (uint64_t)atoi(argv[1]) * 1000000;
	if (argc > 2 || slice_ns == 0) {
		fprintf(stderr, "queues [MS]\n");
		return 2;
	}
	/* VPs that have run out of ltasks look for the next. */
	setenv("MARCEL_SPIN_US", "1000000", 0);
	tables();
	contention();
	return 0;
}
