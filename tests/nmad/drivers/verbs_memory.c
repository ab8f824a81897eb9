/*
 * drivers/verbs: memory that is registered is kept, and is right whatever is
 * done to it: large transfers from and to buffers that are unmapped, mapped
 * again, moved and emptied between them, each byte looked at. Over the
 * libibverbs of fake_verbs/, which ends who uses a registration of pages that
 * are gone.
 */
#include "job.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../nmad/drivers/verbs/verbs.h"
#include "fake_verbs/fake_verbs.h"
#include "verbs_forbid.h"

extern const struct nm_driver nm_driver_ibverbs;

enum {
	PAGE = 4096,
	LARGEST = 1 << 20,
	PLACE = LARGEST + 2 * PAGE, /* bytes of a buffer's memory */
	BUFFERS = 6,
	WINDOW = 2, /* transfers each way at once */
};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { TRANSFERS = 40 };
#else
enum { TRANSFERS = 150 };
#endif

struct buffer {
	unsigned char *at; /* PLACE bytes */
	bool busy;
};

struct way {
	struct job_large large;
	struct buffer *buffer;
	unsigned char *data;
	uint64_t number;
	size_t bytes;
};

static struct buffer buffers[BUFFERS];
static struct way outs[WINDOW], ins[WINDOW];
static uint64_t stream; /* this rank's random numbers */

static uint64_t draw(uint64_t below)
{
	uint64_t z = stream += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	return (z >> 20) % below;
}

/* --- what may happen to a buffer --- */

static void *map(void *at)
{
	void *p =
		mmap(at, PLACE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void gone(const void *at, size_t bytes)
{
	fake_verbs()->gone(at, bytes);
}

static void replace_a_page(struct buffer *b)
{
	unsigned char *p = b->at + draw(PLACE / PAGE) * PAGE;

	CHECK(munmap(p, PAGE) == 0);
	gone(p, PAGE);
	CHECK(mmap(p, PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
}

/* Elsewhere, or where another was. What is in pieces does not move. */
static void move(struct buffer *b)
{
	unsigned char *to = map(NULL), *from = b->at;

	if (mremap(from, PLACE, PLACE, MREMAP_MAYMOVE | MREMAP_FIXED, to) !=
	    to) {
		CHECK(munmap(from, PLACE) == 0);
		map(to);
	}
	gone(from, PLACE);
	gone(to, PLACE);
	b->at = to;
}

static void change(struct buffer *b)
{
	switch (draw(8)) {
	case 0: /* the same place */
		CHECK(munmap(b->at, PLACE) == 0);
		gone(b->at, PLACE);
		b->at = map(b->at);
		break;
	case 1: /* likely the same place */
		CHECK(munmap(b->at, PLACE) == 0);
		gone(b->at, PLACE);
		b->at = map(NULL);
		break;
	case 2:
		gone(map(b->at), PLACE);
		break;
	case 3:
		CHECK(madvise(b->at, PLACE, MADV_DONTNEED) == 0);
		gone(b->at, PLACE);
		break;
	case 4:
		replace_a_page(b);
		break;
	case 5:
		move(b);
		break;
	default:
		break; /* it is found as it was */
	}
}

/* --- transfers --- */

/* Both ranks know the size of each. */
static size_t size_of(uint64_t number)
{
	uint64_t z = number * 0x9e3779b97f4a7c15u;

	return 65536 + (z ^ z >> 31) % (LARGEST - 65536);
}

static struct buffer *choose(void)
{
	struct buffer *b;

	do
		b = &buffers[draw(BUFFERS)];
	while (b->busy);
	b->busy = true;
	change(b);
	return b;
}

static void prepare(struct job *j, struct way *w, uint64_t i, bool sends)
{
	int from = sends ? j->rank : 1 - j->rank;

	w->number = 2 * i + (uint64_t)from;
	w->bytes = size_of(w->number);
	w->buffer = choose();
	w->data = w->buffer->at + draw(2 * PAGE);
}

static void begin(struct job *j, uint64_t i)
{
	struct way *out = &outs[i % WINDOW], *in = &ins[i % WINDOW];

	prepare(j, out, i, true);
	job_pattern(out->number, out->data, out->bytes);
	job_large_send(j, 1 - j->rank, &out->large,
		       nm_data_flat(out->data, out->bytes), 0, out->bytes);
	prepare(j, in, i, false);
	memset(in->data, 0xee, in->bytes);
	job_large_recv(j, 1 - j->rank, &in->large,
		       nm_data_flat(in->data, in->bytes), 0, in->bytes);
}

static void end(struct job *j, uint64_t i)
{
	struct way *out = &outs[i % WINDOW], *in = &ins[i % WINDOW];

	while (out->large.status == -EINPROGRESS ||
	       in->large.status == -EINPROGRESS)
		job_progress(j);
	JOB_CHECK(j, out->large.status == 0 && in->large.status == 0);
	JOB_CHECK(j, job_is_pattern(in->number, in->data, in->bytes));
	JOB_CHECK(j, job_is_pattern(out->number, out->data, out->bytes));
	out->buffer->busy = in->buffer->busy = false;
}

static void print_counts(struct job *j, const char *name)
{
	struct verbs *v = j->rail.drv;
	struct verbs_reg_counts c = nm_verbs_reg_counts(v->regs);

	nm_verbs_regs_check(v->regs);
	if (j->rank != 0)
		return;
	printf("# %s: %llu found, %llu made, %llu unmapped, %llu evicted, %llu "
	       "refused; %zu KB pinned\n",
	       name, (unsigned long long)c.found, (unsigned long long)c.made,
	       (unsigned long long)c.unmapped, (unsigned long long)c.evicted,
	       (unsigned long long)c.refused, c.pinned / 1024);
	fflush(stdout);
}

static void no_small(struct job *j, int from, const struct job_msg *m,
		     struct nm_pkt_in *in)
{
	JOB_CHECK(j, m->kind == 0);
}

static void body(struct job *j)
{
	const char *name = j->arg;

	j->recv = no_small;
	stream = check_random() + (uint64_t)j->rank * 1000003;
	for (int i = 0; i < BUFFERS; i++)
		buffers[i] = (struct buffer){ map(NULL), false };
	for (uint64_t i = 0; i < TRANSFERS + WINDOW; i++) {
		if (i >= WINDOW)
			end(j, i - WINDOW);
		if (i < TRANSFERS)
			begin(j, i);
	}
	print_counts(j, name);
	job_meet(j);
	for (int i = 0; i < BUFFERS; i++)
		munmap(buffers[i].at, PLACE);
}

static void pinned_is_nothing(struct job *j)
{
	struct fake_verbs_counts c;

	fake_verbs()->counts(&c);
	JOB_CHECK(j, c.pinned == 0 && c.mrs == 0);
}

static void run(const char *name)
{
	job_closed = pinned_is_nothing;
	job_run(&nm_driver_ibverbs, 2, body, (void *)(uintptr_t)name);
}

TEST(what_is_registered_follows_what_is_mapped)
{
	run("kept");
}

TEST(without_userfaultfd_what_is_registered_is_right)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (!forbid())
			_exit(77);
		run("no userfaultfd");
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		check_skip("no seccomp");
	CHECK_INT(status, 0);
}

/* Room for the driver's own, and 1.5 MB. */
TEST(what_the_kernel_does_not_let_us_pin_goes_all_the_same)
{
	setenv("FAKE_VERBS_MEMLOCK", "8500000", 1);
	run("little may be locked");
	unsetenv("FAKE_VERBS_MEMLOCK");
}

TEST(no_more_is_pinned_than_is_allowed)
{
	setenv("NMAD_IBVERBS_PINNED", "3M", 1);
	run("3 MB");
	setenv("NMAD_IBVERBS_PINNED", "300k", 1);
	run("300 KB");
	unsetenv("NMAD_IBVERBS_PINNED");
}
