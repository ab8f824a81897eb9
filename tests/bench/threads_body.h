/*
 * The measured programs of threads.c, included once per thread library: P(x)
 * is marcel_x or pthread_x. Each function returns ns per operation.
 */

static void *P(bench_nothing)(void *arg)
{
	return arg;
}

static double P(bench_create_join)(long ops)
{
	double start = now_ns();
	P(t) t;

	for (long i = 0; i < ops; i++) {
		must(P(create)(&t, NULL, P(bench_nothing), NULL));
		must(P(join)(t, NULL));
	}
	return (now_ns() - start) / (double)ops;
}

/* All are created, then all are joined. */
static double P(bench_fork_join)(long ops)
{
	P(t) *t = malloc((size_t)ops * sizeof(*t));
	double start, ns;

	if (t == NULL)
		must(ENOMEM);
	start = now_ns();
	for (long i = 0; i < ops; i++)
		must(P(create)(&t[i], NULL, P(bench_nothing), NULL));
	for (long i = 0; i < ops; i++)
		must(P(join)(t[i], NULL));
	ns = (now_ns() - start) / (double)ops;
	free(t);
	return ns;
}

/* What the threads of one program share. */
struct P(shared) {
	P(barrier_t) begin;
	long each; /* per thread */
	double from, to;
	P(sem_t) sem[2];
};

static void *P(bench_yielder)(void *arg)
{
	struct P(shared) *s = arg;

	if (P(barrier_wait)(&s->begin) != 0)
		s->from = now_ns();
	for (long i = 0; i < s->each; i++)
		P(yield)();
	if (P(barrier_wait)(&s->begin) != 0)
		s->to = now_ns();
	return NULL;
}

static double P(bench_yield)(long ops, int threads)
{
	struct P(shared) s = { .each = ops / threads };
	static P(t) t[THREADS];

	must(P(barrier_init)(&s.begin, NULL, (unsigned)threads));
	for (int i = 0; i < threads; i++)
		must(P(create)(&t[i], NULL, P(bench_yielder), &s));
	for (int i = 0; i < threads; i++)
		must(P(join)(t[i], NULL));
	must(P(barrier_destroy)(&s.begin));
	return (s.to - s.from) / (double)(s.each * threads);
}

static double P(bench_yield_2)(long ops)
{
	return P(bench_yield)(ops, 2);
}

static double P(bench_yield_1000)(long ops)
{
	return P(bench_yield)(ops, THREADS);
}

static void *P(bench_poster)(void *arg)
{
	struct P(shared) *s = arg;

	for (long i = 0; i < s->each; i++) {
		P(sem_wait)(&s->sem[1]);
		P(sem_post)(&s->sem[0]);
	}
	return NULL;
}

static double P(bench_sem)(long ops)
{
	struct P(shared) s = { .each = ops / 2 };
	double start;
	P(t) t;

	for (int i = 0; i < 2; i++)
		must(P(sem_init)(&s.sem[i], 0, 0));
	must(P(create)(&t, NULL, P(bench_poster), &s));
	start = now_ns();
	for (long i = 0; i < s.each; i++) {
		P(sem_post)(&s.sem[1]);
		P(sem_wait)(&s.sem[0]);
	}
	s.to = now_ns();
	must(P(join)(t, NULL));
	return (s.to - start) / (double)(s.each * 2);
}
