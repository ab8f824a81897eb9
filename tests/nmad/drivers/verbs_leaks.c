/*
 * drivers/verbs: who connects and goes leaves nothing behind, however often:
 * no queue pair, address or registration of the adapter, no pinned byte, no
 * descriptor, thread or mapping. ROUNDS says how often. Over the libibverbs of
 * fake_verbs/, which counts.
 */
#include "job.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../tasks.h"
#include "fake_verbs/fake_verbs.h"
#include "verbs_talk.h"

extern const struct nm_driver nm_driver_ibverbs;

enum { BYTES = 100000, TALKS = 10 };

/* A sanitizer maps memory of its own. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 30, MAPPINGS = 1 << 20 };
#else
enum { ROUNDS = 100, MAPPINGS = 20 /* the C library keeps more, or fewer */ };
#endif

static int rounds(void)
{
	const char *text = getenv("ROUNDS");

	return text != NULL ? atoi(text) : ROUNDS;
}

/* --- what there is --- */

static int entries(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;

	CHECK(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	int c, n = 0;

	CHECK(f != NULL);
	while ((c = fgetc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static long resident_kb(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long all, pages;

	CHECK(f != NULL && fscanf(f, "%ld %ld", &all, &pages) == 2);
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void nothing_is_left(struct job *j)
{
	static int descriptors, threads, maps;
	struct fake_verbs_counts c = counts();
	int step = rounds() / 10;

	JOB_CHECK(j, c.contexts + c.pds + c.mrs + c.cqs + c.channels + c.srqs +
				     c.qps + c.ahs ==
			     0);
	JOB_CHECK(j, c.pinned == 0 && c.waiting == 0 && c.unread == 0);
	/* What is kept by the C library is there after some rounds. */
	if (j->round == step) {
		descriptors = entries("/proc/self/fd");
		threads = kernel_threads();
		maps = mappings();
	}
	if (step == 0 || j->round % step != 0)
		return;
	if (j->rank == 0)
		printf("# %d rounds: %d descriptors, %d threads, %d mappings, "
		       "%ld KB resident; %llu queue pairs made, %llu "
		       "registrations, %llu addresses\n",
		       j->round, entries("/proc/self/fd") - 3, kernel_threads(),
		       mappings(), resident_kb(),
		       (unsigned long long)c.calls.create_qp,
		       (unsigned long long)c.calls.reg_mr,
		       (unsigned long long)c.calls.create_ah);
	JOB_CHECK(j, entries("/proc/self/fd") == descriptors);
	JOB_CHECK(j, kernel_threads() == threads);
	JOB_CHECK(j, mappings() <= maps + MAPPINGS);
}

/* --- a round --- */

static void look_at(struct job *j, int from, const struct job_msg *m,
		    struct nm_pkt_in *in)
{
	JOB_CHECK(j, job_is_pattern(m->number, m->data, m->length));
}

static void exchange(struct job *j, unsigned char *data)
{
	struct job_large in, out;
	int peer = 1 - j->rank;

	job_pattern((uint64_t)j->round, data, BYTES);
	memset(data + BYTES, 0, BYTES);
	job_large_send(j, peer, &out, nm_data_flat(data, BYTES), 0, BYTES);
	job_large_recv(j, peer, &in, nm_data_flat(data + BYTES, BYTES), 0,
		       BYTES);
	while (out.status == -EINPROGRESS || in.status == -EINPROGRESS)
		job_progress(j);
	JOB_CHECK(j, out.status == 0 && in.status == 0);
	JOB_CHECK(j, job_is_pattern((uint64_t)j->round, data + BYTES, BYTES));
}

static void talk(struct job *j, unsigned char *data)
{
	uint64_t want = j->ngot + TALKS;

	for (uint64_t i = 0; i < TALKS; i++)
		job_send(j, 1 - j->rank, 0, i, 100 * i);
	while (j->ngot < want || !job_idle(j))
		job_progress(j);
	if (j->round % 4 == 0)
		exchange(j, data);
	JOB_CHECK(j, j->deaths[1 - j->rank] == 0);
	JOB_CHECK(j, counts().qps == 2); /* the clerk's, and the peer's */
}

static void body(struct job *j)
{
	unsigned char *data = malloc(2 * BYTES);

	j->recv = look_at;
	for (int i = 1; i < rounds(); i++) {
		talk(j, data);
		job_reopen(j);
	}
	talk(j, data);
	free(data);
}

/* Small, and without a choice: rounds are short. */
static void settle(void)
{
	setenv("NMAD_IBVERBS_RECEIVES", "128", 1);
	setenv("FAKE_VERBS_DEVICES", "1", 1);
	job_closed = nothing_is_left;
}

TEST(who_connects_and_goes_leaves_nothing_behind)
{
	settle();
	job_run(&nm_driver_ibverbs, 2, body, NULL);
}

/* --- nobody to talk to --- */

static void alone(struct job *j)
{
	for (int i = 1; i < rounds(); i++)
		job_reopen(j);
}

TEST(who_opens_and_closes_leaves_nothing_behind)
{
	settle();
	job_connects_late = true;
	job_run(&nm_driver_ibverbs, 1, alone, NULL);
}
