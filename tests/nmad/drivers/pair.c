/*
 * Every driver, beneath the core: what is posted arrives whole, once, at the
 * right peer, whatever its size and shape and whatever goes the other way at
 * the same time; a death is named. DRIVER is chosen by the build.
 */
#include "../fewer.h"
#include "job.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct nm_driver DRIVER;

static size_t largest(void)
{
	return DRIVER.max_small - sizeof(struct job_msg);
}

/* Sizes around everything that a driver may treat as a border. */
static size_t size_of(uint64_t number)
{
	static const size_t near[] = { 0,    32,   48,   464,  496,
				       1024, 4096, 8192, 16360 };
	size_t base = near[number % 9], size = base + number / 9 % 17;

	size = size > 8 && number % 2 ? size - 8 : size;
	return size <= largest() ? size : largest();
}

/* --- small packets --- */

struct counts {
	uint64_t sum[JOB_MAX];
};

static void verify(struct job *j, int from, const struct job_msg *m,
		   struct nm_pkt_in *in)
{
	struct counts *c = j->arg;

	JOB_CHECK(j, m->kind == (uint32_t)(from * JOB_MAX + j->rank));
	JOB_CHECK(j, job_is_pattern(m->number, m->data, m->length));
	c->sum[from] += m->number;
}

/* All send n packets to all; every number comes exactly once. */
static void all_to_all(struct job *j, uint64_t n, size_t (*size)(uint64_t))
{
	struct counts c = { { 0 } };
	uint64_t want = n * (uint64_t)(j->size - 1);

	j->recv = verify;
	j->arg = &c;
	for (uint64_t i = 1; i <= n; i++) {
		for (int r = 0; r < j->size; r++)
			if (r != j->rank)
				job_send(j, r,
					 (uint32_t)(j->rank * JOB_MAX + r), i,
					 size(i));
		if (i % 64 == 0)
			while (!job_idle(j))
				job_progress(j);
	}
	while (j->ngot < want || !job_idle(j))
		job_progress(j);
	job_meet(j);
	for (int r = 0; r < j->size; r++)
		JOB_CHECK(j, c.sum[r] == (r == j->rank ? 0 : n * (n + 1) / 2));
	JOB_CHECK(j, j->ngot == want);
}

static size_t size_eight(uint64_t number)
{
	return 8;
}

static size_t size_full(uint64_t number)
{
	return largest();
}

static void sizes_body(struct job *j)
{
	all_to_all(j, 5000 / FEWER, size_of);
}

static void many_body(struct job *j)
{
	all_to_all(j, 50000 / FEWER, size_eight);
}

static void full_body(struct job *j)
{
	all_to_all(j, 300, size_full);
}

TEST(packets_of_all_sizes_arrive_whole_both_ways)
{
	job_run(&DRIVER, 2, sizes_body, NULL);
}

TEST(many_packets_from_several_peers_arrive_once)
{
	job_run(&DRIVER, 3, many_body, NULL);
}

/*
 * A packet of more pieces than a system call takes, to one who says nothing
 * that could wake the sender's end.
 */
static void silence_body(struct job *j)
{
	struct counts c = { { 0 } };

	all_to_all(j, 1, size_eight);
	j->ngot = 0;
	j->arg = &c;
	job_meet(j);
	if (j->rank == 0)
		for (int r = 1; r < j->size; r++)
			job_send(j, r, (uint32_t)r, 1, largest());
	while (j->ngot < (j->rank == 0 ? 0 : 1) || !job_idle(j))
		job_progress(j);
	job_meet(j);
}

TEST(a_packet_of_many_pieces_leaves_though_nobody_answers)
{
	job_run(&DRIVER, 3, silence_body, NULL);
}

TEST(packets_of_the_largest_size_arrive_from_all)
{
	job_run(&DRIVER, 4, full_body, NULL);
}

/* Keeps up to 40 packets and lets another thread give them back. */
struct keeper {
	struct nm_pkt_in *kept[40];
	unsigned n;
	struct counts counts;
	struct job *job;
};

static void *give_back(void *arg)
{
	struct keeper *k = arg;

	for (unsigned i = 0; i < k->n; i += 2)
		k->job->driver->release(&k->job->rail, k->kept[i]);
	for (unsigned i = 1; i < k->n; i += 2)
		k->job->driver->release(&k->job->rail, k->kept[i]);
	return NULL;
}

static void keep(struct job *j, int from, const struct job_msg *m,
		 struct nm_pkt_in *in)
{
	struct keeper *k = j->arg;
	pthread_t t;

	JOB_CHECK(j, job_is_pattern(m->number, m->data, m->length));
	j->keep = true;
	k->kept[k->n++] = in;
	/* Shorter than the sender's share of its largest buffers. */
	if (k->n < (m->length > 400 ? 8 : 40))
		return;
	for (unsigned i = 0; i < k->n; i++) {
		m = (const void *)k->kept[i]->data;
		JOB_CHECK(j, job_is_pattern(m->number, m->data, m->length));
	}
	JOB_CHECK(j, pthread_create(&t, NULL, give_back, k) == 0);
	pthread_join(t, NULL);
	k->n = 0;
}

static void keep_body(struct job *j)
{
	struct keeper k = { .n = 0, .job = j };
	size_t large = largest() < 5000 ? largest() : 5000;

	j->recv = keep;
	j->arg = &k;
	for (uint64_t i = 1; i <= 2000; i++)
		job_send(j, 1 - j->rank, 0, i, i % 3 ? i % 300 : large);
	while (j->ngot < 2000 || !job_idle(j))
		job_progress(j);
	give_back(&k);
}

TEST(a_kept_packet_stays_as_it_came_until_anyone_releases_it)
{
	job_run(&DRIVER, 2, keep_body, NULL);
}

/* --- large transfers --- */

static void no_small(struct job *j, int from, const struct job_msg *m,
		     struct nm_pkt_in *in)
{
	JOB_CHECK(j, m->kind == 7);
	JOB_CHECK(j, job_is_pattern(m->number, m->data, m->length));
}

static const size_t sizes[] = { 1,       2,       7,       64,      1000,
				4095,    4097,    16384,   16385,   32768,
				32769,   65536,   65537,   131071,  131073,
				262144,  300001,  1048575, 1048577, 3000001,
				4194304, 16777216 };

enum { NSIZES = sizeof(sizes) / sizeof(sizes[0]), MARGIN = 64 };

/* A shape of user memory over one block: flat, pieces, or a walker. */
struct shape {
	struct iovec *iov;
	unsigned niov;
};

static int walk_shape(const void *what, size_t offset, size_t length,
		      nm_piece_fn each, void *arg)
{
	const struct shape *s = what;
	struct nm_data d = nm_data_iovec(s->iov, s->niov);

	return nm_data_walk(&d, offset, length, each, arg);
}

/*
 * Describe `bytes` of memory: kind 0 flat, 1 pieces of 8000 bytes, 2 a walker
 * over pieces of 100, each piece a few bytes apart. The memory has room.
 */
static struct nm_data describe(struct shape *s, int kind, unsigned char *base,
			       size_t bytes)
{
	size_t piece = kind == 1 ? 8000 : 100;

	s->iov = NULL;
	if (kind == 0)
		return nm_data_flat(base, bytes);
	s->niov = (unsigned)((bytes + piece - 1) / piece);
	s->iov = calloc(s->niov, sizeof(*s->iov));
	for (unsigned i = 0; i < s->niov; i++) {
		size_t at = i * piece;

		s->iov[i].iov_base = base + at + i * 5;
		s->iov[i].iov_len = bytes - at < piece ? bytes - at : piece;
	}
	return kind == 1 ? nm_data_iovec(s->iov, s->niov)
			 : nm_data_walker(s, bytes, walk_shape);
}

static size_t room_for(size_t bytes)
{
	return bytes + bytes / 20 + 4 * MARGIN;
}

/* Send and receive one transfer of this size with the peer at once. */
static void exchange(struct job *j, size_t size, int kind_out, int kind_in)
{
	struct job_large out, in;
	struct shape so, si;
	size_t odd = 1 + size % 13, skip = size % 29;
	unsigned char *from = malloc(room_for(size)), *to, *flat;
	uint64_t number = size * 4 + (uint64_t)j->rank;
	struct nm_data d;

	to = malloc(room_for(size));
	flat = malloc(size + skip);
	memset(to, 0xee, room_for(size));
	d = describe(&so, kind_out, from + odd, size + skip);
	job_pattern(number, flat, size + skip);
	nm_data_copy_in(&d, 0, flat, size + skip);
	job_large_send(j, 1 - j->rank, &out, d, skip, size);
	d = describe(&si, kind_in, to + odd, size + skip);
	job_large_recv(j, 1 - j->rank, &in, d, skip, size);
	job_send(j, 1 - j->rank, 7, size, 100);
	while (out.status == -EINPROGRESS || in.status == -EINPROGRESS)
		job_progress(j);
	JOB_CHECK(j, out.status == 0 && in.status == 0);

	job_pattern(number ^ 1, flat, size + skip);
	memset(flat, 0xee, skip);
	nm_data_copy_out(&d, 0, from, size + skip);
	JOB_CHECK(j, memcmp(from, flat, size + skip) == 0);
	for (size_t i = 0; i < odd; i++)
		JOB_CHECK(j, to[i] == 0xee);
	if (kind_in == 0)
		for (size_t i = 0; i < MARGIN; i++)
			JOB_CHECK(j, to[odd + size + skip + i] == 0xee);
	free(so.iov);
	free(si.iov);
	free(from);
	free(to);
	free(flat);
}

static void large_body(struct job *j)
{
	j->recv = no_small;
	for (unsigned i = 0; i < NSIZES; i++)
		exchange(j, sizes[i], 0, 0);
}

TEST(large_transfers_of_all_sizes_fill_their_place_and_no_byte_more)
{
	job_run(&DRIVER, 2, large_body, NULL);
}

static void shapes_body(struct job *j)
{
	j->recv = no_small;
	for (unsigned i = 0; i < NSIZES - 2; i += 2)
		for (int shape = 1; shape < 9; shape++)
			exchange(j, sizes[i], shape % 3, shape / 3);
}

TEST(data_in_pieces_goes_from_any_shape_to_any_shape)
{
	job_run(&DRIVER, 2, shapes_body, NULL);
}

/* More at once than any table of a driver's holds, with small ones between. */
static void crowd_body(struct job *j)
{
	enum { N = 200 };
	size_t size = 40000;
	struct job_large *all = calloc(2 * N, sizeof(*all));
	unsigned char *data = malloc(2 * N * size);
	int n = 0, peer = 1 - j->rank;

	j->recv = no_small;
	for (uint64_t i = 0; i < N; i++) {
		job_pattern(2 * i + (uint64_t)j->rank, data + i * size, size);
		job_large_send(j, peer, &all[n++],
			       nm_data_flat(data + i * size, size), 0, size);
		job_large_recv(j, peer, &all[n++],
			       nm_data_flat(data + (N + i) * size, size), 0,
			       size);
		job_send(j, peer, 7, i, 200);
	}
	for (int i = 0; i < n; i++)
		while (all[i].status == -EINPROGRESS)
			job_progress(j);
	for (uint64_t i = 0; i < N; i++) {
		uint64_t number = 2 * i + (uint64_t)peer;

		JOB_CHECK(j,
			  job_is_pattern(number, data + (N + i) * size, size));
	}
	free(data);
	free(all);
}

TEST(hundreds_of_large_transfers_at_once_all_end)
{
	job_run(&DRIVER, 2, crowd_body, NULL);
}

/* A receiver that takes less than was offered gets the beginning. */
static void less_body(struct job *j)
{
	size_t offered = 300000, taken = 123457;
	unsigned char *data = malloc(offered);
	struct job_large l;

	j->recv = no_small;
	if (j->rank == 0) {
		job_pattern(5, data, offered);
		job_large_send(j, 1, &l, nm_data_flat(data, offered), 0,
			       offered);
	} else {
		memset(data, 0xee, offered);
		job_large_recv(j, 0, &l, nm_data_flat(data, offered), 0, taken);
	}
	while (l.status == -EINPROGRESS)
		job_progress(j);
	JOB_CHECK(j, l.status == 0);
	if (j->rank == 1) {
		JOB_CHECK(j, job_is_pattern(5, data, taken));
		for (size_t i = taken; i < offered; i++)
			JOB_CHECK(j, data[i] == 0xee);
	}
	free(data);
}

TEST(a_shorter_receive_gets_the_beginning_only)
{
	job_run(&DRIVER, 2, less_body, NULL);
}

/* --- deaths --- */

static void count_only(struct job *j, int from, const struct job_msg *m,
		       struct nm_pkt_in *in)
{
}

/* Rank 1 is killed while it waits; the others hear of it, once. */
static void killed_body(struct job *j)
{
	j->recv = count_only;
	for (int r = 0; r < j->size; r++)
		if (r != j->rank)
			job_send(j, r, 0, 1, 100);
	while (j->ngot < 2)
		job_progress(j);
	job_meet(j);
	if (j->rank == 1)
		for (;;)
			pause();
	if (j->rank == 0)
		kill(j->pids[1], SIGKILL);
	while (j->deaths[1] == 0)
		job_progress(j);
	JOB_CHECK(j, j->death_error < 0);
	for (int i = 0; i < 1000; i++)
		job_progress(j);
	JOB_CHECK(j, j->deaths[1] == 1);
	JOB_CHECK(j, j->deaths[2 - j->rank] == 0);
	/* The living go on. */
	for (uint64_t i = 0; i < 1000; i++)
		job_send(j, 2 - j->rank, 0, i, 50);
	while (j->ngot < 1002 || !job_idle(j))
		job_progress(j);
}

TEST(a_killed_peer_is_reported_once_and_the_rest_go_on)
{
	job_run(&DRIVER, 3, killed_body, NULL);
}

/* Rank 1 dies in the middle of transfers in both directions. */
static void middle_body(struct job *j)
{
	size_t size = 8 << 20;
	unsigned char *data = calloc(2, size);
	struct job_large out, in;

	j->recv = count_only;
	for (int i = 0; i < 3; i++) {
		job_large_send(j, 1 - j->rank, &out, nm_data_flat(data, size),
			       0, size);
		job_large_recv(j, 1 - j->rank, &in,
			       nm_data_flat(data + size, size), 0, size);
		while (out.status == -EINPROGRESS ||
		       in.status == -EINPROGRESS) {
			job_progress(j);
			if (j->rank == 1 && i == 2 && in.started && out.started)
				kill(getpid(), SIGKILL);
			if (j->deaths[1])
				break;
		}
	}
	while (j->deaths[1] == 0)
		job_progress(j);
	JOB_CHECK(j, out.status != -EINPROGRESS || !out.started);
	JOB_CHECK(j, in.status != -EINPROGRESS || !in.started);
	free(data);
}

TEST(transfers_with_a_peer_that_dies_end_with_an_error)
{
	job_run(&DRIVER, 2, middle_body, NULL);
}

/* Packets that a peer has sent before it died are delivered first. */
static void last_words_body(struct job *j)
{
	j->recv = count_only;
	if (j->rank == 1) {
		for (uint64_t i = 0; i < 20; i++)
			job_send(j, 0, 0, i, 1000);
		while (!job_idle(j))
			job_progress(j);
		kill(getpid(), SIGKILL);
	}
	while (j->deaths[1] == 0)
		job_progress(j);
	JOB_CHECK(j, j->ngot == 20);
}

TEST(the_last_words_of_the_dead_arrive)
{
	job_run(&DRIVER, 2, last_words_body, NULL);
}

/* Nor is a transfer lost that was over on the side of the dead. */
static void last_gift_body(struct job *j)
{
	enum { BYTES = 300000 };
	unsigned char *data = malloc(BYTES);
	struct job_large l;

	j->recv = count_only;
	if (j->rank == 1) {
		job_pattern(7, data, BYTES);
		job_large_send(j, 0, &l, nm_data_flat(data, BYTES), 0, BYTES);
	} else {
		job_large_recv(j, 1, &l, nm_data_flat(data, BYTES), 0, BYTES);
	}
	while (l.status == -EINPROGRESS)
		job_progress(j);
	JOB_CHECK(j, l.status == 0);
	if (j->rank == 1)
		kill(getpid(), SIGKILL);
	JOB_CHECK(j, job_is_pattern(7, data, BYTES));
	while (j->deaths[1] == 0)
		job_progress(j);
	free(data);
}

TEST(what_was_transferred_before_a_death_is_there)
{
	job_run(&DRIVER, 2, last_gift_body, NULL);
}

/* A child of rank 1 lives on and holds copies of all its descriptors. */
static void orphan_recv(struct job *j, int from, const struct job_msg *m,
			struct nm_pkt_in *in)
{
	*(pid_t *)j->arg = (pid_t)m->number;
}

static void orphan_body(struct job *j)
{
	pid_t orphan = 0;

	j->recv = orphan_recv;
	j->arg = &orphan;
	job_send(j, 1 - j->rank, 0, 1, 10);
	while (j->ngot < 1 || !job_idle(j))
		job_progress(j);
	job_meet(j);
	if (j->rank == 1) {
		pid_t child = fork();

		if (child == 0)
			for (;;)
				pause();
		job_send(j, 0, 0, (uint64_t)child, 0);
		while (!job_idle(j))
			job_progress(j);
		kill(getpid(), SIGKILL);
	}
	while (j->deaths[1] == 0)
		job_progress(j);
	JOB_CHECK(j, orphan > 1);
	CHECK_INT(kill(orphan, SIGKILL), 0);
}

TEST(a_forked_child_does_not_hide_its_parents_death)
{
	job_run(&DRIVER, 2, orphan_body, NULL);
}

static void goodbye_body(struct job *j)
{
	j->recv = count_only;
	job_send(j, 1 - j->rank, 0, 1, 10);
	while (j->ngot < 1 || !job_idle(j))
		job_progress(j);
	job_meet(j);
	if (j->rank == 1) {
		j->driver->disconnect(&j->links[0]);
		j->driver->close(&j->rail);
		_exit(0);
	}
	/* Until it is gone; who is to be armed looks for deaths. */
	CHECK_INT(waitid(P_PID, (id_t)j->pids[1], NULL, WEXITED | WNOWAIT), 0);
	for (int i = 0; i < 100; i++) {
		j->driver->arm(&j->rail);
		job_progress(j);
	}
	CHECK_INT(j->deaths[1], 0);
	j->deaths[1] = 1; /* do not wait for it at the end */
}

TEST(a_peer_that_says_goodbye_is_not_dead)
{
	job_run(&DRIVER, 2, goodbye_body, NULL);
}

/* Segments of the last job; those of other jobs come and go meanwhile. */
static int leftovers(int size)
{
	DIR *dir = opendir("/dev/shm");
	unsigned long uid, ns;
	struct dirent *e;
	int n = 0, pid;

	CHECK(dir != NULL);
	while ((e = readdir(dir)) != NULL) {
		if (sscanf(e->d_name, "nmad-%lu-%lu-%d-", &uid, &ns, &pid) != 3)
			continue;
		for (int r = 0; r < size; r++)
			n += pid == job_pids[r];
	}
	closedir(dir);
	return n;
}

TEST(nothing_is_left_in_dev_shm_after_a_kill)
{
	job_run(&DRIVER, 2, last_words_body, NULL);
	CHECK_INT(leftovers(2), 0);
}
