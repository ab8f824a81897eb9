/*
 * A kernel thread wakes who waits on an idle worker, or where threads compute;
 * these are preempted. And what announced blocking costs where nothing sleeps.
 */

enum {
	WAKES = 200,
	SLICES = 60,
	SECTIONS = 300000,
	SPAN_US = 10,
	SLEEP_US = 2000,
	WORKERS_MAX = 256
};

#define FAVOUR_NS UINT64_C(60000000000)

struct waker {
	sem_t ready; /* to the kernel thread: the other is about to wait */
	rt_sem sem;
	double posted;
	int idle_us;
};

static void *wake(void *arg)
{
	struct waker *w = (struct waker *)arg;
	double until;

	use_cpus(workers, CPU_SETSIZE);
	for (int i = 0; i < WAKES; i++) {
		while (sem_wait(&w->ready) != 0)
			;
		if (w->idle_us > SPAN_US)
			usleep((useconds_t)w->idle_us);
		until = now_ns() + SPAN_US * 1e3;
		while (now_ns() < until)
			;
		w->posted = now_ns();
		rt_sem_post(&w->sem);
	}
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *x, int n)
{
	qsort(x, (size_t)n, sizeof(*x), by_value);
	return x[n / 2];
}

/* us from post to awake, after so long a time with nothing to do. */
static double wake_after(int idle_us)
{
	double us[WAKES];
	struct waker w;
	pthread_t t;

	w.idle_us = idle_us;
	must(rt_sem_init(&w.sem));
	sem_init(&w.ready, 0, 0);
	must(pthread_create(&t, NULL, wake, &w));
	for (int i = 0; i < WAKES; i++) {
		sem_post(&w.ready);
		rt_sem_wait(&w.sem);
		us[i] = (now_ns() - w.posted) * 1e-3;
	}
	must(pthread_join(t, NULL));
	return median(us, WAKES);
}

static void wake_up(void)
{
	if (!RT_FOREIGN)
		return;
	report("wake_soon", wake_after(0), "us");
	report("wake_late", wake_after(SLEEP_US), "us");
}

static int computed_enough;

static void *compute_on(void *arg)
{
	while (!__atomic_load_n(&computed_enough, __ATOMIC_RELAXED))
		;
	return arg;
}

/* As many threads compute as there are workers. */
static void wake_busy(void)
{
	rt_thread t[WORKERS_MAX];

	if (!RT_FOREIGN || !RT_PREEMPTS || workers > WORKERS_MAX)
		return;
	__atomic_store_n(&computed_enough, 0, __ATOMIC_RELAXED);
	for (int i = 0; i < workers; i++)
		must(rt_create(&t[i], NULL, compute_on, NULL));
	report("wake_busy", wake_after(SLEEP_US), "us");
	if (RT_FAVOURS) {
		must(rt_favour(FAVOUR_NS));
		report("wake_favoured", wake_after(SLEEP_US), "us");
		must(rt_favour(0));
	}
	__atomic_store_n(&computed_enough, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < workers; i++)
		must(rt_join(&t[i]));
}

/* ns for a section in which nothing sleeps. */
static double section(long ops)
{
	double start = now_ns();

	for (long i = 0; i < ops; i++) {
		rt_section_begin();
		rt_section_end();
	}
	return (now_ns() - start) / (double)ops;
}

/* With nobody else, and where another is ready to go on meanwhile. */
static void blocking(void)
{
	long ops = ops_or(SECTIONS);
	rt_attr a;
	rt_thread t;

	if (!RT_SECTIONS)
		return;
	section(ops);
	report("blocking", section(ops), "ns");
	if (workers > 1)
		return;
	__atomic_store_n(&computed_enough, 0, __ATOMIC_RELAXED);
	must(rt_attr_init(&a, 0, 0));
	must(rt_create(&t, &a, compute_on, NULL));
	report("blocking_beside", section(ops), "ns");
	__atomic_store_n(&computed_enough, 1, __ATOMIC_RELAXED);
	must(rt_join(&t));
}

/* Two threads compute, and say when they were last seen to. */
static struct {
	int who;
	double when[2];
	int n;
	double gap[SLICES];
} slices;

static void *compute(void *arg)
{
	int me = arg != NULL, other, n;
	double t;

	do {
		other = __atomic_load_n(&slices.who, __ATOMIC_RELAXED) != me;
		n = __atomic_load_n(&slices.n, __ATOMIC_RELAXED);
		t = now_ns();
		if (other && n < SLICES) {
			slices.gap[n] = t - slices.when[!me];
			__atomic_store_n(&slices.n, n + 1, __ATOMIC_RELAXED);
			__atomic_store_n(&slices.who, me, __ATOMIC_RELAXED);
		}
		__atomic_store(&slices.when[me], &t, __ATOMIC_RELAXED);
	} while (n < SLICES);
	return NULL;
}

/* us from the last of one thread to the first of the next, on one CPU. */
static void preempt(void)
{
	rt_thread t[2];

	if (!RT_PREEMPTS || workers > 1)
		return;
	slices.n = 0;
	slices.when[0] = now_ns();
	for (int i = 0; i < 2; i++)
		must(rt_create(&t[i], NULL, compute, i == 0 ? NULL : t));
	for (int i = 0; i < 2; i++)
		must(rt_join(&t[i]));
	report("preempt", median(slices.gap, SLICES) * 1e-3, "us");
}
