/*
 * What a blocked thread costs: memory, resident and in page tables, the time to
 * make and block one and to wake and join it, and the CPU that is burnt while
 * all are blocked. Stacks have 64 KiB, the thread's own frame a little less
 * than 1 KiB.
 */

enum { FRAME = 900, BATCH = 1000, IDLE_MS = 500 };

static struct {
	rt_sem gate, batch;
	long blocked;
} room;

static void *block(void *arg)
{
	char frame[FRAME];

	memset(frame, 1, sizeof(frame));
	if (__atomic_add_fetch(&room.blocked, 1, __ATOMIC_RELAXED) % BATCH == 0)
		rt_sem_post(&room.batch);
	__asm__ volatile("" : : "r"(frame) : "memory");
	rt_sem_wait(&room.gate);
	__asm__ volatile("" : : "r"(frame) : "memory");
	return NULL;
}

/* Bytes resident and in page tables. */
static double memory_used(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char text[128];
	double bytes = 0;
	long kb;

	while (f != NULL && fgets(text, sizeof(text), f) != NULL)
		if (sscanf(text, "VmRSS: %ld", &kb) == 1 ||
		    sscanf(text, "VmPTE: %ld", &kb) == 1)
			bytes += (double)kb * 1024;
	if (f != NULL)
		fclose(f);
	return bytes;
}

static void blocked_round(rt_thread *t, long n, int shown)
{
	double memory = memory_used(), start = now_ns(), made;
	rt_attr a;

	must(rt_attr_init(&a, 64 << 10, -1));
	for (long i = 0; i < n; i++) {
		must(rt_create(&t[i], &a, block, NULL));
		if (i % BATCH == BATCH - 1)
			rt_sem_wait(&room.batch);
	}
	made = now_ns() - start;
	memory = memory_used() - memory;
	start = now_ns();
	for (long i = 0; i < n; i++)
		rt_sem_post(&room.gate);
	for (long i = 0; i < n; i++)
		must(rt_join(&t[i]));
	if (!shown)
		return;
	report("blocked_memory", memory / (double)n, "B");
	report("create_block", made / (double)n, "ns");
	report("wake_join", (now_ns() - start) / (double)n, "ns");
}

/* The first round, as nothing is as yet at hand. */
static void blocked(void)
{
	long n = ops_or(RT_MANY) / BATCH * BATCH;
	rt_thread *t = threads_new(n);

	memset((void *)t, 1, (size_t)n * sizeof(*t));
	memset((void *)t, 0, (size_t)n * sizeof(*t));
	must(rt_sem_init(&room.gate));
	must(rt_sem_init(&room.batch));
	blocked_round(t, n, 1);
	free(t);
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void idle(void)
{
	rt_thread t[HERD];
	double cpu;

	must(rt_sem_init(&room.gate));
	must(rt_sem_init(&room.batch));
	for (int i = 0; i < HERD; i++)
		must(rt_create(&t[i], NULL, block, NULL));
	rt_sleep_ms(100);
	cpu = cpu_seconds();
	rt_sleep_ms(IDLE_MS);
	report("idle", (cpu_seconds() - cpu) * 1e6 / IDLE_MS, "ms/s");
	for (int i = 0; i < HERD; i++)
		rt_sem_post(&room.gate);
	for (int i = 0; i < HERD; i++)
		must(rt_join(&t[i]));
}
