/* Threads that begin, end and take turns. */

enum { CROWD = 1000 };

static void *nothing(void *arg)
{
	return arg;
}

static double create_join(long ops)
{
	double start = now_ns();
	rt_thread t;

	for (long i = 0; i < ops; i++) {
		must(rt_create(&t, NULL, nothing, NULL));
		must(rt_join(&t));
	}
	return (now_ns() - start) / (double)ops;
}

static rt_thread *threads_new(long n)
{
	/* No bytes but zeros is what a thread is before it is made. */
	return (rt_thread *)must_have(calloc((size_t)n, sizeof(rt_thread)));
}

/* All are created, then all are joined. */
static double fork_join_with(const rt_attr *a, long ops)
{
	rt_thread *t = threads_new(ops);
	double start, ns;

	start = now_ns();
	for (long i = 0; i < ops; i++)
		must(rt_create(&t[i], a, nothing, NULL));
	for (long i = 0; i < ops; i++)
		must(rt_join(&t[i]));
	ns = (now_ns() - start) / (double)ops;
	free(t);
	return ns;
}

static double fork_join(long ops)
{
	return fork_join_with(NULL, ops);
}

static double fork_join_sized(long ops, size_t stack)
{
	rt_attr a;

	must(rt_attr_init(&a, stack, -1));
	return fork_join_with(&a, ops);
}

static double fork_join_16k(long ops)
{
	return fork_join_sized(ops, 16 << 10);
}

static double fork_join_1m(long ops)
{
	return fork_join_sized(ops, 1 << 20);
}

/* Nobody waits for them: for tools/bench/run.py counts. */
static double create_only(long ops)
{
	rt_thread *t = threads_new(ops);
	double start = now_ns();

	for (long i = 0; i < ops; i++)
		must(rt_create(&t[i], NULL, nothing, NULL));
	report("create_only", (now_ns() - start) / (double)ops, "ns");
	_exit(0);
}

/* What the threads that take turns share. */
struct turns {
	rt_barrier line; /* the first and the last wait of all */
	long each;
	double from, to;
};

static void *yielder(void *arg)
{
	struct turns *s = (struct turns *)arg;

	if (rt_barrier_wait(&s->line))
		s->from = now_ns();
	for (long i = 0; i < s->each; i++)
		rt_yield();
	if (rt_barrier_wait(&s->line))
		s->to = now_ns();
	return NULL;
}

static double yield_with(const rt_attr *a, long ops, int threads)
{
	static rt_thread t[CROWD];
	struct turns s;

	s.each = ops / threads;
	must(rt_barrier_init(&s.line, (unsigned)threads));
	for (int i = 0; i < threads; i++)
		must(rt_create(&t[i], a, yielder, &s));
	for (int i = 0; i < threads; i++)
		must(rt_join(&t[i]));
	return (s.to - s.from) / (double)(s.each * threads);
}

static double yield_2(long ops)
{
	return yield_with(NULL, ops, 2);
}

static double yield_1000(long ops)
{
	return yield_with(NULL, ops, CROWD);
}

/* Two that have a kernel thread each, on the same worker. */
static double yield_private(long ops)
{
	rt_attr a;

	if (!RT_PRIVATE)
		return NAN;
	must(rt_attr_init(&a, 0, 0));
	must(rt_attr_private(&a));
	return yield_with(&a, ops, 2);
}
