/*
 * What a message costs besides its own work, between two processes in the
 * steady state, exactly: locks, memory and system calls, by nmad's counters and
 * by the kernel's own count. Nobody polls but who tests (PIOM_ENGINE=none, one
 * VP), so that nothing else is counted.
 */
#include "../../check.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <nmad/nmad.h>

#include "../../../nmad/core/core.h"
#include "calls.h"

enum {
	ROUNDS = 50,
	FIRST = 20, /* rounds before, which connect and fill pools */
	N = 8,
	BYTES = 1000,
	SESSION = 7,
	MEETING = 1000, /* tag */
	COUNTERS = 64,
};

static struct nm_session *session;
static struct nm_gate *peer;
static bool dear; /* a packet takes a system call */
static struct nm_sr_request in[N], out[N];
static char text[2][N][BYTES];

/* --- what was asked of malloc, by all that is linked in --- */

static ATOMIC(uint64_t) nallocs;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
BASE_PUBLIC void *__wrap_malloc(size_t n);
BASE_PUBLIC void *__wrap_calloc(size_t n, size_t size);
BASE_PUBLIC void *__wrap_realloc(void *p, size_t n);
BASE_PUBLIC void *__wrap_aligned_alloc(size_t align, size_t n);

void *__wrap_malloc(size_t n)
{
	fetch_add_relaxed(&nallocs, 1);
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	fetch_add_relaxed(&nallocs, 1);
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	fetch_add_relaxed(&nallocs, 1);
	return __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
	fetch_add_relaxed(&nallocs, 1);
	return __real_aligned_alloc(align, n);
}

/* --- what is counted from begin() to end(), over several of them --- */

static struct nm_counter spent[COUNTERS], before[COUNTERS];
static size_t ncounters;
static uint64_t spent_calls, spent_allocs, allocs_before;
static bool kernel_counts;

static void begin(void)
{
	ncounters = nm_stats_read(before, COUNTERS);
	allocs_before = load_relaxed(&nallocs);
	calls_seen = 0;
	kernel_counts = calls_begin();
}

static void end(void)
{
	struct nm_counter now[COUNTERS];

	calls_end();
	spent_calls += calls_seen;
	spent_allocs += load_relaxed(&nallocs) - allocs_before;
	nm_stats_read(now, COUNTERS);
	for (size_t i = 0; i < ncounters; i++)
		spent[i].value += now[i].value - before[i].value;
}

static void reset(void)
{
	ncounters = nm_stats_read(spent, COUNTERS);
	CHECK(ncounters <= COUNTERS);
	for (size_t i = 0; i < ncounters; i++)
		spent[i].value = 0;
	spent_calls = spent_allocs = 0;
}

static uint64_t count(const char *name)
{
	for (size_t i = 0; i < ncounters; i++)
		if (strcmp(spent[i].name, name) == 0)
			return spent[i].value;
	check_fail(__FILE__, __LINE__, "no counter %s", name);
}

/* No memory, and no system calls but these. */
static void check_quiet(uint64_t calls)
{
	CHECK_INT(spent_allocs, 0);
	CHECK_INT(count("blocks"), 0);
	CHECK_INT(count("slabs"), 0);
	CHECK_INT(count("refills"), 0);
	if (kernel_counts && spent_calls != calls)
		check_fail(__FILE__, __LINE__,
			   "%lu system calls, not %lu; the last was %ld",
			   spent_calls, calls, calls_last);
}

static uint64_t counted_calls(void)
{
	return count("sys_sends") + count("sys_receives") + count("sys_looks") +
	       count("sys_copies") + count("sys_bells");
}

/* --- messages --- */

static void post_receives(int n, size_t bytes)
{
	for (int i = 0; i < n; i++) {
		struct nm_data d = nm_data_flat(text[0][i], bytes);

		CHECK_INT(nm_sr_irecv(session, peer, (nm_tag_t)i, NM_TAG_EXACT,
				      &d, &in[i]),
			  0);
	}
}

static void post_sends(int n, size_t bytes)
{
	for (int i = 0; i < n; i++) {
		struct nm_data d = nm_data_flat(text[1][i], bytes);

		CHECK_INT(nm_sr_isend(session, peer, (nm_tag_t)i, &d,
				      NM_SEND_NOW, &out[i]),
			  0);
	}
}

/* The other has come here, too. */
static void meet(void)
{
	struct nm_data nothing = nm_data_flat(NULL, 0);
	struct nm_sr_request said, heard;

	CHECK_INT(nm_sr_irecv(session, peer, MEETING, NM_TAG_EXACT, &nothing,
			      &heard),
		  0);
	CHECK_INT(nm_sr_isend(session, peer, MEETING, &nothing, NM_SEND_NOW,
			      &said),
		  0);
	nm_sr_wait(&said);
	nm_sr_wait(&heard);
}

/* Only the tests are counted, not the time between them. */
static void test_until_complete(struct nm_sr_request *r)
{
	int rc;

	do {
		begin();
		rc = nm_sr_test(r);
		end();
		if (rc == -EAGAIN)
			sched_yield();
	} while (rc == -EAGAIN);
	CHECK_INT(rc, 0);
}

static void exchange(int n, size_t bytes)
{
	post_receives(n, bytes);
	meet();
	post_sends(n, bytes);
	for (int i = 0; i < n; i++) {
		nm_sr_wait(&out[i]);
		nm_sr_wait(&in[i]);
	}
	meet();
}

static void setup(void)
{
	CHECK_INT(nm_init(), 0);
	CHECK_INT(nm_size(), 2);
	peer = nm_gate_of(1 - nm_rank());
	dear = peer->links[0]->rail->driver->caps & NM_CAP_DEAR;
	CHECK_INT(nm_session_open(SESSION, &session), 0);
	for (int i = 0; i < FIRST; i++)
		exchange(N, i % 2 == 0 ? 8 : BYTES);
	reset();
}

static void teardown(void)
{
	CHECK_INT(nm_session_close(session), 0);
	CHECK_INT(nm_exit(), 0);
}

/* --- rules --- */

static void receive_rounds(size_t bytes)
{
	for (int round = 0; round < ROUNDS; round++) {
		begin();
		post_receives(N, bytes);
		end();
		meet();
		post_sends(N, bytes);
		for (int i = 0; i < N; i++) {
			nm_sr_wait(&out[i]);
			nm_sr_wait(&in[i]);
		}
		meet();
	}
	CHECK_INT(count("lock_taken"), ROUNDS * N);
	CHECK_INT(count("receives"), ROUNDS * N);
	CHECK_INT(count("lock_busy") + count("rail_taken"), 0);
	check_quiet(0);
	reset();
}

/* The lock once, the rail once, a packet, and for that what the network takes.
 */
static void send_rounds(size_t bytes)
{
	for (int round = 0; round < ROUNDS; round++) {
		post_receives(N, bytes);
		meet();
		begin();
		post_sends(N, bytes);
		end();
		for (int i = 0; i < N; i++) {
			CHECK(nm_sr_is_complete(&out[i]));
			nm_sr_wait(&in[i]);
		}
		meet();
	}
	CHECK_INT(count("lock_taken"), ROUNDS * N);
	CHECK_INT(count("rail_taken"), ROUNDS * N);
	CHECK_INT(count("packets_out"), ROUNDS * N);
	CHECK_INT(count("eager_out"), ROUNDS * N);
	CHECK_INT(count("lock_busy") + count("rail_busy"), 0);
	CHECK_INT(count("sys_sends"), dear ? ROUNDS * N : 0);
	check_quiet(dear ? ROUNDS * N : 0);
	reset();
}

/* To and fro: nobody looks for what comes but by the tests that are counted. */
static void there_and_back(size_t bytes)
{
	if (nm_rank() == 0)
		post_sends(1, bytes);
	test_until_complete(&in[0]);
	post_receives(1, bytes);
	if (nm_rank() == 1)
		post_sends(1, bytes);
	CHECK_INT(nm_sr_is_complete(&out[0]), 1);
}

/* However often it is looked for, the core is entered once. */
static void arrival_rounds(size_t bytes)
{
	post_receives(1, bytes);
	meet();
	there_and_back(bytes); /* the first may have come when we met */
	reset();
	for (int round = 0; round < ROUNDS; round++)
		there_and_back(bytes);
	CHECK_INT(count("packets_in"), ROUNDS);
	CHECK_INT(count("eager_in"), ROUNDS);
	CHECK_INT(count("lock_taken"), ROUNDS);
	CHECK_INT(count("lock_busy") + count("rail_busy"), 0);
	CHECK_INT(count("unexpected") + count("early"), 0);
	CHECK_INT(count("sys_sends") + count("sys_bells"), 0);
	check_quiet(counted_calls());
	if (nm_rank() == 0)
		post_sends(1, bytes);
	nm_sr_wait(&in[0]);
	if (nm_rank() == 1)
		post_sends(1, bytes);
	meet();
	reset();
}

/* Submitted by pushing on a list; who leaves the core then does them all. */
static void while_the_core_is_busy(void)
{
	struct nm_pass pass;

	nm_core_lock(nm_core_self);
	nm_core_settle(nm_core_self, &pass);
	begin();
	post_receives(N, 8);
	end();
	CHECK_INT(count("lock_taken"), 0);
	CHECK_INT(count("lock_busy"), 2 * N);
	CHECK_INT(count("receives"), 0);
	check_quiet(0);
	reset();
	begin();
	nm_core_unlock(nm_core_self, &pass);
	end();
	CHECK_INT(count("lock_taken"), 1);
	CHECK_INT(count("receives"), N);
	check_quiet(0);
	meet();
	post_sends(N, 8);
	for (int i = 0; i < N; i++)
		nm_sr_wait(&in[i]);
	meet();
}

TEST(a_message_costs_a_lock_a_side_and_neither_memory_nor_system_calls)
{
	static const size_t sizes[] = { 0, 8, BYTES };

	setup();
	for (int i = 0; i < 3; i++) {
		receive_rounds(sizes[i]);
		send_rounds(sizes[i]);
		arrival_rounds(sizes[i]);
	}
	while_the_core_is_busy();
	if (!kernel_counts)
		printf("# system calls: by nmad's counters only\n");
}

/*
 * A call takes 64 pieces; if they are small, what it takes are bytes. A process
 * joins its job once: this one goes on where the one before has left off.
 */
TEST(a_message_of_small_pieces_takes_system_calls_for_its_bytes)
{
	enum { PIECES = 65536, PIECE = 8, GAP = 8 };
	static char from[PIECES * (PIECE + GAP)], to[sizeof(from)];
	static struct iovec iov[2][PIECES];
	struct nm_sr_request sent, got;
	struct nm_data d;

	reset();
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (char)(i / 5 + (size_t)nm_rank());
	for (size_t i = 0; i < PIECES; i++) {
		iov[0][i].iov_base = from + i * (PIECE + GAP);
		iov[1][i].iov_base = to + i * (PIECE + GAP);
		iov[0][i].iov_len = iov[1][i].iov_len = PIECE;
	}
	d = nm_data_iovec(iov[1], PIECES);
	CHECK_INT(nm_sr_irecv(session, peer, 1, NM_TAG_EXACT, &d, &got), 0);
	meet();
	d = nm_data_iovec(iov[0], PIECES);
	begin();
	CHECK_INT(nm_sr_isend(session, peer, 1, &d, NM_SEND_NOW, &sent), 0);
	nm_sr_wait(&sent);
	nm_sr_wait(&got);
	end();
	CHECK(count("sys_sends") < PIECES / 64);
	for (size_t i = 0; i < sizeof(to); i++) {
		bool is_piece = i % (PIECE + GAP) < PIECE;

		CHECK_INT(to[i],
			  is_piece ? (char)(i / 5 + 1 - (size_t)nm_rank()) : 0);
	}
	meet();
	teardown();
}
