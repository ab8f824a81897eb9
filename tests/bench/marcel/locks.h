/* Threads that lock and wake one another. */

enum { HERD = 64 };

struct shared {
	rt_mutex m;
	rt_cond c;
	rt_barrier b;
	rt_sem sem[2];
	long ops; /* per thread */
	int turn;
	long counter;
	double from, to;
};

static void *poster(void *arg)
{
	struct shared *s = (struct shared *)arg;

	for (long i = 0; i < s->ops; i++) {
		rt_sem_wait(&s->sem[1]);
		rt_sem_post(&s->sem[0]);
	}
	return NULL;
}

static void *starter(void *arg)
{
	struct shared *s = (struct shared *)arg;

	s->from = now_ns();
	for (long i = 0; i < s->ops; i++) {
		rt_sem_post(&s->sem[1]);
		rt_sem_wait(&s->sem[0]);
	}
	s->to = now_ns();
	return NULL;
}

/* By semaphores, on these two workers; -1: wherever. */
static double hand_over_between(long ops, int first, int second)
{
	struct shared s;
	rt_attr a[2];
	rt_thread t[2];

	s.ops = ops / 2;
	for (int i = 0; i < 2; i++)
		must(rt_sem_init(&s.sem[i]));
	if (rt_attr_init(&a[0], 0, first) != 0 ||
	    rt_attr_init(&a[1], 0, second) != 0)
		return NAN;
	must(rt_create(&t[0], &a[0], poster, &s));
	must(rt_create(&t[1], &a[1], starter, &s));
	for (int i = 0; i < 2; i++)
		must(rt_join(&t[i]));
	return (s.to - s.from) / (double)(s.ops * 2);
}

static double hand_over(long ops)
{
	return hand_over_between(ops, -1, -1);
}

static double hand_over_pinned(long ops)
{
	return hand_over_between(ops, 0, workers - 1);
}

static double uncontended(long ops)
{
	rt_mutex m;
	double start;

	must(rt_mutex_init(&m));
	start = now_ns();
	for (long i = 0; i < ops; i++) {
		rt_mutex_lock(&m);
		rt_mutex_unlock(&m);
	}
	return (now_ns() - start) / (double)ops;
}

/* The first and the last wait of all: threads are up, threads still are. */
static void line(struct shared *s, double *at)
{
	if (rt_barrier_wait(&s->b))
		*at = now_ns();
}

static double among(void *(*fn)(void *), int threads, long ops)
{
	struct shared s;
	rt_thread t[HERD];

	must(rt_mutex_init(&s.m));
	must(rt_cond_init(&s.c));
	must(rt_barrier_init(&s.b, (unsigned)threads));
	s.turn = 0;
	s.counter = 0;
	s.ops = ops / threads;
	for (int i = 0; i < threads; i++)
		must(rt_create(&t[i], NULL, fn, &s));
	for (int i = 0; i < threads; i++)
		must(rt_join(&t[i]));
	return (s.to - s.from) / (double)(s.ops * threads);
}

static void *turn_about(void *arg)
{
	struct shared *s = (struct shared *)arg;
	int me;

	rt_mutex_lock(&s->m);
	me = s->turn++ % 2;
	rt_mutex_unlock(&s->m);
	line(s, &s->from);
	rt_mutex_lock(&s->m);
	for (long i = 0; i < s->ops; i++) {
		while (s->counter % 2 != me)
			rt_cond_wait(&s->c, &s->m);
		s->counter++;
		rt_cond_signal(&s->c);
	}
	rt_mutex_unlock(&s->m);
	line(s, &s->to);
	return NULL;
}

static void *short_section(void *arg)
{
	struct shared *s = (struct shared *)arg;

	line(s, &s->from);
	for (long i = 0; i < s->ops; i++) {
		rt_mutex_lock(&s->m);
		s->counter++;
		rt_mutex_unlock(&s->m);
	}
	line(s, &s->to);
	return NULL;
}

static void *yielding_section(void *arg)
{
	struct shared *s = (struct shared *)arg;

	line(s, &s->from);
	for (long i = 0; i < s->ops; i++) {
		rt_mutex_lock(&s->m);
		s->counter++;
		rt_yield();
		rt_mutex_unlock(&s->m);
	}
	line(s, &s->to);
	return NULL;
}

static void *barriers(void *arg)
{
	struct shared *s = (struct shared *)arg;

	line(s, &s->from);
	for (long i = 0; i < s->ops; i++)
		(void)rt_barrier_wait(&s->b);
	line(s, &s->to);
	return NULL;
}

static double mutex_cond(long ops)
{
	return among(turn_about, 2, ops);
}

static double mutex_short(long ops)
{
	return among(short_section, HERD, ops);
}

static double mutex_yielding(long ops)
{
	return among(yielding_section, HERD, ops);
}

/* Per barrier of all. */
static double barrier(long ops)
{
	return among(barriers, HERD, ops) * HERD;
}
