/* What has to do with the kernel: sleeps, blocking calls, forks, its threads.
 */
#include "stress.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <marcel/io.h>

static FILE *nowhere;

static void op_sleep(struct actor *a)
{
	struct timespec t = soon(a, CLOCK_MONOTONIC);

	if (one_in(a, 2))
		MUST_INT(marcel_clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
						&t, NULL),
			 0);
	else
		marcel_usleep(draw_below(a, 100));
}

/* The kernel's own sleep, which no wrapper sees. */
static void sleep_in_kernel(struct actor *a)
{
	struct timespec t = { .tv_nsec = draw_below(a, 50000) };

	syscall(SYS_nanosleep, &t, NULL);
}

static void op_section(struct actor *a)
{
	marcel_blocking_begin();
	if (one_in(a, 2))
		sleep_in_kernel(a);
	errno = a->id;
	marcel_blocking_end();
	MUST_INT(errno, a->id);
}

static void op_unannounced(struct actor *a)
{
	sleep_in_kernel(a);
}

/* For some slices. */
static void op_compute(struct actor *a)
{
	uint64_t n = draw_below(a, 1000000), sum = 0;

	for (uint64_t i = 0; i < n; i++) {
		sum += i;
		__asm__ volatile("" : "+r"(sum));
	}
	MUST(n == 0 || sum == n * (n - 1) / 2);
}

/* Interrupted anywhere, libc's own locks stay whole. */
static void op_libc(struct actor *a)
{
	enum { PIECES = 16, MOST = 2000 };
	unsigned char *piece[PIECES];
	size_t bytes[PIECES];

	for (int i = 0; i < PIECES; i++) {
		bytes[i] = 1 + draw_below(a, MOST);
		piece[i] = malloc(bytes[i]);
		MUST(piece[i] != NULL);
		memset(piece[i], i, bytes[i]);
		MUST(fprintf(nowhere, "%d: %zu\n", a->id, bytes[i]) > 0);
	}
	stir(a);
	for (int i = 0; i < PIECES; i++) {
		MUST(piece[i][0] == i && piece[i][bytes[i] - 1] == i);
		free(piece[i]);
	}
}

/* --- where libc calls the program while it holds locks --- */

static int one_object(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	op_compute(arg);
	return 0;
}

static void op_objects(struct actor *a)
{
	void *object;

	MUST_INT(dl_iterate_phdr(one_object, a), 0);
	object = dlopen("libdl.so.2", RTLD_NOW);
	MUST(object != NULL);
	MUST_INT(dlclose(object), 0);
}

/* For some slices, too: the array is too large for one. */
static int by_value(const void *x, const void *y)
{
	const unsigned *a = x, *b = y;

	return *a < *b ? -1 : *a > *b;
}

static void op_sort(struct actor *a)
{
	enum { N = 20000 };
	unsigned *v = malloc(N * sizeof(*v)), sum = 0;

	MUST(v != NULL);
	for (int i = 0; i < N; i++)
		sum += v[i] = draw_below(a, 1000000);
	qsort(v, N, sizeof(*v), by_value);
	for (int i = 0; i < N; i++) {
		MUST(i == 0 || v[i - 1] <= v[i]);
		sum -= v[i];
	}
	MUST_INT(sum, 0);
	free(v);
}

/* --- a pipe between two threads --- */

struct pipe_end {
	int fd;
	uint64_t value;
};

static void *write_value(void *arg)
{
	struct pipe_end *e = arg;

	marcel_yield();
	MUST_INT(marcel_write(e->fd, &e->value, sizeof(e->value)),
		 sizeof(e->value));
	return NULL;
}

static void op_pipe(struct actor *a)
{
	struct pipe_end e = { .value = draw(a) };
	uint64_t got = 0;
	int fds[2];
	marcel_t t;

	MUST_INT(pipe2(fds, O_CLOEXEC), 0);
	e.fd = fds[1];
	MUST_INT(marcel_create(&t, NULL, write_value, &e), 0);
	MUST_INT(marcel_read(fds[0], &got, sizeof(got)), sizeof(got));
	MUST(got == e.value);
	MUST_INT(marcel_join(t, NULL), 0);
	close(fds[0]);
	close(fds[1]);
}

/* --- children of the process --- */

enum { CHILDS = 10 };

static ATOMIC(int) ran_in_child;

static void *add_one(void *arg)
{
	marcel_yield();
	fetch_add_relaxed(&ran_in_child, 1);
	return arg;
}

static int make_in_child(void)
{
	marcel_t t[CHILDS];

	for (int i = 0; i < CHILDS; i++)
		if (marcel_create(&t[i], NULL, add_one, NULL) != 0)
			return 2;
	for (int i = 0; i < CHILDS; i++)
		if (marcel_join(t[i], NULL) != 0)
			return 3;
	return load_relaxed(&ran_in_child) != CHILDS || marcel_nvp() != 1 ? 4
									  : 0;
}

static int look_in_child(void)
{
	marcel_mutex_t m = MARCEL_MUTEX_INITIALIZER;

	/*
	 * TSan's own allocator may be locked by a thread that is not here, and
	 * whatever is called may need it.
	 */
	if (BASE_TSAN)
		return 0;
	if (marcel_is_running() || marcel_current_vp() != -1)
		return 1;
	if (marcel_mutex_lock(&m) != 0 || marcel_mutex_unlock(&m) != 0 ||
	    marcel_yield() != 0)
		return 1;
	/* ASan's may be locked as well, and only malloc() needs it. */
	if (BASE_ASAN)
		return 0;
	free(malloc(100));
	return make_in_child();
}

static void op_fork(struct actor *a)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(600); /* a hang is to be seen */
		_exit(look_in_child());
	}
	MUST(pid > 0);
	MUST_INT(marcel_waitpid(pid, &status, 0), pid);
	MUST_INT(status, 0);
}

/*
 * Kernel threads that come and go. Who waits for what needs user threads parks:
 * in a section it might hold the last kernel thread that they have.
 */

struct visitor {
	struct actor a;
	marcel_sem_t done;
};

static void *be_foreign(void *arg)
{
	struct visitor *v = arg;

	for (int i = 0; i < 3; i++)
		act(&v->a);
	MUST_INT(marcel_sem_post(&v->done), 0);
	return arg;
}

static void op_foreign(struct actor *a)
{
	struct visitor v = { .a = { .random = draw(a),
				    .id = a->id,
				    .depth = DEPTH_MAX,
				    .foreign = true } };
	pthread_t p;

	MUST_INT(marcel_sem_init(&v.done, 0, 0), 0);
	MUST_INT(pthread_create(&p, NULL, be_foreign, &v), 0);
	MUST_INT(marcel_sem_wait(&v.done), 0);
	marcel_blocking_begin();
	MUST_INT(pthread_join(p, NULL), 0);
	marcel_blocking_end();
	MUST_INT(marcel_sem_destroy(&v.done), 0);
}

void kernel_begin(void)
{
	nowhere = fopen("/dev/null", "we");
	MUST(nowhere != NULL);
}

void kernel_over(void)
{
	fclose(nowhere);
}

const struct op kernel_ops[] = {
	{ "sleep", op_sleep, 6, false, false },
	{ "blocking section", op_section, 6, false, false },
	{ "unannounced sleep", op_unannounced, 1, false, false },
	{ "compute", op_compute, 3, false, false },
	{ "malloc and stdio", op_libc, 6, false, false },
	/* TSan does not see the locks of the dynamic linker. */
	{ "objects", op_objects, BASE_TSAN ? 0 : 1, false, false },
	{ "sort", op_sort, 1, false, false },
	{ "pipe", op_pipe, 4, true, false },
	{ "fork", op_fork, 1, true, false },
	{ "foreign thread", op_foreign, 2, true, true },
	{ NULL, NULL, 0, false, false },
};
