/*
 * What the kernel has: found out by trying, as the runtime does.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../../marcel/os/os.h"
#include "info.h"

static void line(const char *what, bool has, const char *use)
{
	printf("  %-20s %-4s %s\n", what, has ? "yes" : "no", use);
}

struct policies {
	bool idle, real_time;
};

/* On a kernel thread of its own, which may not get back. */
static void *try_policies(void *arg)
{
	struct sched_param one = { .sched_priority = 1 }, none = { 0 };
	struct policies *p = arg;

	p->real_time = sched_setscheduler(0, SCHED_FIFO, &one) == 0;
	p->idle = sched_setscheduler(0, SCHED_IDLE, &none) == 0;
	return NULL;
}

static bool has_nowait(void)
{
	struct iovec to = { .iov_base = &(char){ 0 }, .iov_len = 1 };
	int fds[2];
	bool has;

	if (pipe(fds) < 0)
		return false;
	has = preadv2(fds[0], &to, 1, -1, RWF_NOWAIT) < 0 && errno == EAGAIN;
	close(fds[0]);
	close(fds[1]);
	return has;
}

static bool has_one_copy(void)
{
	char from = 1, to = 0;
	struct iovec here = { &to, 1 }, there = { &from, 1 };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

static long mappings(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	long n = -1;

	if (f == NULL)
		return -1;
	if (fscanf(f, "%ld", &n) != 1)
		n = -1;
	fclose(f);
	return n;
}

void kernel_print(void)
{
	struct policies p = { 0 };
	struct utsname name;
	pthread_t t;

	uname(&name);
	printf("kernel %s %s\n", name.sysname, name.release);
	if (pthread_create(&t, NULL, try_policies, &p) == 0)
		pthread_join(t, NULL);
	line("membarrier", os_barrier_init(),
	     "a VP is taken from a call that sleeps unannounced");
	line("MADV_GUARD_INSTALL", os_guard_probe(),
	     "guards that cost no mapping");
	line("SCHED_IDLE", p.idle, "spares for calls that sleep run last");
	line("real time", p.real_time, "SCHED_FIFO is allowed; not used");
	line("RWF_NOWAIT", has_nowait(), "reads from pipes are tried first");
	line("process_vm_readv", has_one_copy(),
	     "large messages between processes are copied once");
	printf("  %-20s %ld\n", "mappings", mappings());
}
