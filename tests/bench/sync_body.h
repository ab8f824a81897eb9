/*
 * The measured programs of sync.c, included once per thread library: P(x) is
 * marcel_x or pthread_x. Each function returns ns per operation.
 */

static void P(bench_go)(void *(*fn)(void *), void *arg, int n)
{
	P(t) t[THREADS];

	for (int i = 0; i < n; i++)
		must(P(create)(&t[i], NULL, fn, arg));
	for (int i = 0; i < n; i++)
		must(P(join)(t[i], NULL));
}

static double P(bench_uncontended)(long ops)
{
	P(mutex_t) m;
	double start;

	must(P(mutex_init)(&m, NULL));
	start = now_ns();
	for (long i = 0; i < ops; i++) {
		P(mutex_lock)(&m);
		P(mutex_unlock)(&m);
	}
	return (now_ns() - start) / (double)ops;
}

/* What the threads of one program share. */
struct P(shared) {
	P(mutex_t) m;
	P(cond_t) c;
	P(barrier_t) b;
	long ops; /* per thread */
	int turn, threads;
	long counter;
	double from, to;
};

/* The first and the last wait of all: threads are up, threads still are. */
static void P(bench_line)(struct P(shared) * s, double *at)
{
	if (P(barrier_wait)(&s->b) != 0)
		*at = now_ns();
}

static double P(bench_threads)(struct P(shared) * s, void *(*fn)(void *),
			       int threads, long ops)
{
	must(P(mutex_init)(&s->m, NULL));
	must(P(cond_init)(&s->c, NULL));
	must(P(barrier_init)(&s->b, NULL, (unsigned)threads));
	s->threads = threads;
	s->ops = ops / threads;
	P(bench_go)(fn, s, threads);
	return (s->to - s->from) / (double)(s->ops * threads);
}

static void *P(ping_pong)(void *arg)
{
	struct P(shared) *s = arg;
	int me;

	P(mutex_lock)(&s->m);
	me = s->turn++ % 2;
	P(mutex_unlock)(&s->m);
	P(bench_line)(s, &s->from);
	P(mutex_lock)(&s->m);
	for (long i = 0; i < s->ops; i++) {
		while (s->counter % 2 != me)
			P(cond_wait)(&s->c, &s->m);
		s->counter++;
		P(cond_signal)(&s->c);
	}
	P(mutex_unlock)(&s->m);
	P(bench_line)(s, &s->to);
	return NULL;
}

static void *P(short_section)(void *arg)
{
	struct P(shared) *s = arg;

	P(bench_line)(s, &s->from);
	for (long i = 0; i < s->ops; i++) {
		P(mutex_lock)(&s->m);
		s->counter++;
		P(mutex_unlock)(&s->m);
	}
	P(bench_line)(s, &s->to);
	return NULL;
}

static void *P(yielding_section)(void *arg)
{
	struct P(shared) *s = arg;

	P(bench_line)(s, &s->from);
	for (long i = 0; i < s->ops; i++) {
		P(mutex_lock)(&s->m);
		s->counter++;
		P(yield)();
		P(mutex_unlock)(&s->m);
	}
	P(bench_line)(s, &s->to);
	return NULL;
}

static void *P(barriers)(void *arg)
{
	struct P(shared) *s = arg;

	P(bench_line)(s, &s->from);
	for (long i = 0; i < s->ops; i++)
		P(barrier_wait)(&s->b);
	P(bench_line)(s, &s->to);
	return NULL;
}

static double P(bench_ping_pong)(long ops)
{
	struct P(shared) s = { .turn = 0 };

	return P(bench_threads)(&s, P(ping_pong), 2, ops);
}

static double P(bench_short)(long ops)
{
	struct P(shared) s = { .turn = 0 };

	return P(bench_threads)(&s, P(short_section), THREADS, ops);
}

static double P(bench_yielding)(long ops)
{
	struct P(shared) s = { .turn = 0 };

	return P(bench_threads)(&s, P(yielding_section), THREADS, ops);
}

/* Per barrier of THREADS threads. */
static double P(bench_barrier)(long ops)
{
	struct P(shared) s = { .turn = 0 };

	return P(bench_threads)(&s, P(barriers), THREADS, ops) * THREADS;
}
