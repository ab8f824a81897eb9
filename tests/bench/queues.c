/*
 * Submit + run + completion seen, through the queue of each level of the
 * machine's tree (Cluster 2009, tables I and II), in ns; who runs what many may
 * run; and many that submit at once, to queues of their own and to one.
 *
 *   queues [-m MS] self first|last      the VP that submits polls, too
 *   queues [-m MS] others first|last    VPs that are idle run it
 *   queues [-m MS] line first|last      what a cache line takes to another VP:
 *                                       five more than one's own is the target
 *   queues [-m MS] contention WHOSE     1, 2, 4 ... all VPs submit and poll at
 *                                       once: ltasks of the own VP through its
 *                                       queue (own) or that of the machine
 *                                       (machine), or of any VP (any)
 *
 * Each measurement takes MS (20). Lines "NAME VALUE UNIT": LEVEL_of_VPS, and
 * even_LEVEL_of_VPS, of an equal share how much that VP ran which ran least;
 * submit_VPS.
 *
 * MARCEL_TOPOLOGY="package:2 core:4 pu:1" has it run as if on another machine;
 * with more VPs than CPUs the kernel's slices are part of all figures.
 */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

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

/* --- names of queues --- */

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

static void print(const char *before, const struct marcel_level *level,
		  double value, const char *unit)
{
	printf("%s%s%u_of_%d %.4f %s\n", before, marcel_level_name(level->kind),
	       level->index, count_vps(level), value, unit);
	fflush(stdout);
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

/* The least of the VPs that could run it, of an equal share; -1: of one VP. */
static double evenness(const struct row *r, int but)
{
	long all = r->c.runs[VPS_MAX], least = -1, n = 0;

	for (int vp = 0; vp < marcel_nvp(); vp++) {
		all += r->c.runs[vp];
		if (!marcel_vpset_has(&r->level->vps, vp) || vp == but)
			continue;
		n++;
		if (least < 0 || r->c.runs[vp] < least)
			least = r->c.runs[vp];
	}
	return n > 1 ? (double)least * (double)n / (double)all : -1;
}

static void measure_row(const struct marcel_level *level, int vp, int polls)
{
	static struct row r;
	double even;
	marcel_t t;

	r.level = level;
	r.polls = polls;
	begin_on(&t, vp, measure, &r);
	marcel_join(t, NULL);
	print("", level, median(r.ns, REPEATS), "ns");
	even = evenness(&r, polls ? -1 : vp);
	if (even >= 0)
		print("even_", level, even, "share");
}

static void measure_line(const struct marcel_level *level, int vp)
{
	static struct line l;
	marcel_t t;

	l.other = first_of(level);
	begin_on(&t, vp, measure_there, &l);
	marcel_join(t, NULL);
	print("", level, median(l.ns, REPEATS), "ns");
}

enum who { SELF, OTHERS, LINE };

/* From the leaves up, each queue that this VP can use in this way. */
static void measure_levels(const struct marcel_level *level, int vp,
			   enum who who)
{
	int inside = marcel_vpset_has(&level->vps, vp);

	for (unsigned i = 0; i < level->nchildren; i++)
		measure_levels(level->children[i], vp, who);
	if (who == LINE && !inside)
		measure_line(level, vp);
	if (who == SELF && inside)
		measure_row(level, vp, 1);
	if (who == OTHERS && count_vps(level) > inside)
		measure_row(level, vp, 0);
}

static void levels(enum who who, int last)
{
	start("tree");
	measure_levels(marcel_topo_machine(), last ? marcel_nvp() - 1 : 0, who);
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

static void contention(const char *queues, enum target target)
{
	double ns[REPEATS];

	start(queues);
	for (int n = 1; n <= marcel_nvp();
	     n = n < marcel_nvp() && 2 * n > marcel_nvp() ? marcel_nvp()
							  : 2 * n) {
		contend(n, target);
		for (int i = 0; i < REPEATS; i++)
			ns[i] = contend(n, target);
		printf("submit_%d %.4f ns\n", n, median(ns, REPEATS));
		fflush(stdout);
	}
	stop();
}

/* Whether there is such a thing. */
static int run(const char *what, const char *which)
{
	static const char *const whose[] = { "self", "others", "line" };
	static const struct {
		const char *name, *queues;
		enum target target;
	} kinds[] = {
		{ "own", "tree", OWN },
		{ "machine", "machine", OWN },
		{ "any", "tree", ANY },
	};
	int last = strcmp(which, "last") == 0, is_contention;

	for (int i = SELF; i <= LINE; i++) {
		if (strcmp(what, whose[i]) != 0 ||
		    (!last && strcmp(which, "first") != 0))
			continue;
		levels(i, last);
		return 1;
	}
	is_contention = strcmp(what, "contention") == 0;
	for (int i = 0; is_contention && i < 3; i++) {
		if (strcmp(which, kinds[i].name) != 0)
			continue;
		contention(kinds[i].queues, kinds[i].target);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "m:")) != -1)
		slice_ns = option == 'm' ? (uint64_t)atoi(optarg) * 1000000 : 0;
	/* VPs that have run out of ltasks look for the next. */
	setenv("MARCEL_SPIN_US", "1000000", 0);
	if (slice_ns > 0 && argc - optind == 2 &&
	    run(argv[optind], argv[optind + 1]))
		return 0;
	fprintf(stderr, "queues [-m MS] self|others|line first|last\n"
			"queues [-m MS] contention own|machine|any\n");
	return 2;
}
