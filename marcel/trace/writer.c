/*
 * Start and end of a trace, and the kernel thread that maps chunks before they
 * are needed. It also writes down the time once a second, in case that the
 * process does not get to its end.
 */
#include "trace.h"

#include <marcel/errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/diag.h>
#include <base/hang.h>
#include <marcel/marcel.h>
#include "../os/os.h"
#include "file.h"
#include "record.h"

enum { CLOCK_S = 1 };

static struct {
	/* -: const while it runs    a: atomic */
	bool is_open;     /* -: there is a file */
	bool is_child;    /* -: of a process that has one */
	pthread_t writer; /* -: */
	sem_t wake;       /* a: something is wanted */
	ATOMIC(int) stop; /* a: relaxed; before a post of `wake` */
} trace;

/* --- the writer --- */

void marcel_trace_writer_wake(void)
{
	sem_post(&trace.wake);
}

static void refill(struct marcel_trace_ring *r, unsigned i)
{
	struct marcel_trace_head *full;

	if (!marcel_trace_ring_wants(r, &full))
		return;
	if (full != NULL)
		marcel_trace_file_unmap(full);
	marcel_trace_ring_give(r, marcel_trace_file_map(i));
}

/* TSan knows no sem_clockwait(); if this clock is set, no harm. */
static struct timespec from_now(time_t seconds)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += seconds;
	return ts;
}

/* Until somebody wants something (true), or until then. */
static bool sleep_until(const struct timespec *until)
{
	int rc;

	do
		rc = sem_timedwait(&trace.wake, until);
	while (rc < 0 && errno == EINTR);
	return rc == 0;
}

static bool is_over(const struct timespec *ts)
{
	struct timespec now = from_now(0);

	return now.tv_sec > ts->tv_sec ||
	       (now.tv_sec == ts->tv_sec && now.tv_nsec >= ts->tv_nsec);
}

static void *serve(void *arg)
{
	struct timespec due = from_now(CLOCK_S);

	(void)arg;
	os_thread_no_signals();
	while (load_relaxed(&trace.stop) == 0) {
		if (!sleep_until(&due) || is_over(&due)) {
			marcel_trace_file_append_clock(MARCEL_TRACE_CLOCKS);
			due = from_now(CLOCK_S);
		}
		for (int i = 0; i <= marcel_trace_rings.nvp; i++)
			refill(&marcel_trace_rings.all[i], (unsigned)i);
	}
	return NULL;
}

/* --- start --- */

/*
 * Whether the kernel has found the processor's counter to be steady and the
 * same on all CPUs: else it does not offer it as a clock.
 */
static bool ticks_are_steady(void)
{
	static const char path[] = "/sys/devices/system/clocksource/"
				   "clocksource0/available_clocksource";
	char line[256] = "";
	FILE *f = fopen(path, "re");
	bool is = f != NULL && fgets(line, sizeof(line), f) != NULL &&
		  CPU_TICKS_SOURCE[0] != 0 &&
		  strstr(line, CPU_TICKS_SOURCE) != NULL;

	if (f != NULL)
		fclose(f);
	return is;
}

static void unmap_rings(void)
{
	struct marcel_trace_rings *rs = &marcel_trace_rings;
	uintptr_t spare;

	for (int i = 0; i <= rs->nvp; i++) {
		struct marcel_trace_ring *r = &rs->all[i];

		spare = load_relaxed(&r->mail) & ~MARCEL_TRACE_FULL;
		if (spare != 0)
			marcel_trace_file_unmap((void *)spare);
		if (r->chunk != NULL)
			marcel_trace_file_unmap(r->chunk);
	}
	free(rs->all);
	rs->all = NULL;
}

static int map_rings(int nvp)
{
	struct marcel_trace_rings *rs = &marcel_trace_rings;
	size_t bytes = ((size_t)nvp + 1) * sizeof(*rs->all);
	int rc;

	rs->all = aligned_alloc(BASE_CACHE_PAIR, bytes);
	if (rs->all == NULL)
		return -ENOMEM;
	memset(rs->all, 0, bytes);
	rs->nvp = nvp;
	rs->nlanes = 0;
	rs->life++;
	for (int i = 0; i <= nvp; i++) {
		struct marcel_trace_ring *r = &rs->all[i];

		r->room = marcel_trace_file_room();
		r->chunk = marcel_trace_file_map((unsigned)i);
		store_relaxed(&r->mail,
			      (uintptr_t)marcel_trace_file_map((unsigned)i));
		if (r->chunk == NULL || load_relaxed(&r->mail) == 0) {
			rc = -errno;
			unmap_rings();
			return rc;
		}
	}
	return 0;
}

static int start_writer(void)
{
	int rc;

	store_relaxed(&trace.stop, 0);
	sem_init(&trace.wake, 0, 0);
	rc = os_thread_create(&trace.writer, serve, NULL);
	if (rc != 0)
		sem_destroy(&trace.wake);
	return -rc;
}

int marcel_trace_init(const char *path, size_t buffer, int nvp)
{
	int rc;

	if (path[0] == 0 || trace.is_child)
		return 0;
	marcel_trace_rings.ticks = ticks_are_steady();
	rc = marcel_trace_file_open(path, nvp, buffer);
	if (rc < 0)
		return rc;
	if ((rc = map_rings(nvp)) < 0)
		goto err_file;
	if ((rc = start_writer()) < 0)
		goto err_rings;
	trace.is_open = true;
	store_relaxed(&marcel_trace_here.on, 1);
	store_relaxed(&marcel_trace_switch.on, 1);
	fetch_or_relaxed(&marcel_watch.on, MARCEL_WATCH_TRACE);
	return 0;
err_rings:
	unmap_rings();
err_file:
	base_warn("marcel", "MARCEL_TRACE=%s: %s", path, strerror(-rc));
	marcel_trace_file_drop();
	return rc;
}

/* --- its end --- */

static void say_lost(void)
{
	struct marcel_trace_rings *rs = &marcel_trace_rings;
	uint64_t lost = 0;

	for (int i = 0; i <= rs->nvp; i++)
		lost += load_relaxed(&rs->all[i].lost);
	if (lost != 0)
		base_warn("marcel",
			  "MARCEL_TRACE=%s: %lu events are lost: the disk is "
			  "full, or MARCEL_TRACE_BUFFER too small",
			  marcel_trace_file_path(), (unsigned long)lost);
}

static void stop_recording(void)
{
	fetch_and_relaxed(&marcel_watch.on, ~(uint32_t)MARCEL_WATCH_TRACE);
	store_relaxed(&marcel_trace_switch.on, 0);
	store_relaxed(&marcel_trace_here.on, 0);
}

void marcel_trace_exit(void)
{
	if (!trace.is_open)
		return;
	stop_recording();
	/* Others may be about to write to the last ring. */
	base_spin_lock(&marcel_trace_rings.lock);
	base_spin_unlock(&marcel_trace_rings.lock);
	store_relaxed(&trace.stop, 1);
	marcel_trace_writer_wake();
	pthread_join(trace.writer, NULL);
	sem_destroy(&trace.wake);
	say_lost();
	unmap_rings();
	marcel_trace_file_close();
	trace.is_open = false;
}

/* What the parent had mapped is not mapped here. */
void marcel_trace_forked(void)
{
	if (!trace.is_open)
		return;
	stop_recording();
	base_spin_init(&marcel_trace_rings.lock, BASE_RANK_LEAF);
	marcel_trace_file_forked();
	trace.is_open = false;
	trace.is_child = true;
}

/* --- what is known later --- */

BASE_PUBLIC void marcel_trace_job(int rank, int size)
{
	if (trace.is_open)
		marcel_trace_file_name(rank, size);
}

/* What one takes in STRINGS. */
static size_t string_bytes(const char *text)
{
	return (sizeof(struct marcel_trace_string) + strlen(text) + 7) / 8 * 8;
}

BASE_PUBLIC void marcel_trace_names(enum marcel_trace_kind kind,
				    const char *const *names, uint32_t n)
{
	size_t bytes = 0;
	char *all, *to;

	if (!trace.is_open)
		return;
	for (uint32_t i = 0; i < n; i++)
		bytes += string_bytes(names[i]);
	all = to = calloc(1, bytes);
	for (uint32_t i = 0; all != NULL && i < n; i++) {
		struct marcel_trace_string *s = (void *)to;

		s->kind = (uint16_t)kind;
		s->bytes = (uint16_t)strlen(names[i]);
		s->id = i;
		memcpy(s->text, names[i], s->bytes);
		to += string_bytes(names[i]);
	}
	if (all != NULL)
		marcel_trace_file_append(MARCEL_TRACE_STRINGS, all, bytes);
	free(all);
}
