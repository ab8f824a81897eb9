/*
 * Memory of others: put, got, added to. In a member's window lie a counter,
 * words that all add to, and a slot for each member to put into.
 */
#include "traffic.h"

#include <stdlib.h>

enum { COUNTER = 1, SUMS = 64, SLOT = 16 << 10, AHEAD = COUNTER + SUMS };

enum how { BY_FENCE, BY_LOCK_ALL, BY_LOCK, HOWS };

size_t onesided_bytes(int size)
{
	return 8 * ((size_t)AHEAD + (size_t)SLOT * (size_t)size);
}

/* Words that `from` puts at `to`, 0 for some. */
static int length_of(uint64_t key, int from, int to)
{
	uint64_t lot = mix(key, (uint64_t)(from * 64 + to));

	if (draw_below(&lot, 3) == 0)
		return 0;
	return (int)draw_below(&lot, 1u << (1 + draw_below(&lot, 14))) + 1;
}

static uint64_t key_of(uint64_t key, int from, int to)
{
	return mix(~key, (uint64_t)(from * 64 + to));
}

static void begin(struct group *g, enum how how)
{
	if (how == BY_LOCK_ALL)
		MPI_Win_lock_all(0, g->win);
}

/* All of all members is where it belongs. */
static void sync_all(struct group *g, enum how how)
{
	if (how == BY_FENCE) {
		MPI_Win_fence(0, g->win);
		return;
	}
	if (how == BY_LOCK_ALL) {
		MPI_Win_flush_all(g->win);
		MPI_Win_sync(g->win);
	}
	MPI_Barrier(g->comm);
	if (how == BY_LOCK_ALL)
		MPI_Win_sync(g->win);
}

static void end(struct group *g, enum how how)
{
	if (how == BY_LOCK_ALL)
		MPI_Win_unlock_all(g->win);
}

static void enter(struct group *g, enum how how, int to)
{
	if (how == BY_LOCK)
		MPI_Win_lock(MPI_LOCK_SHARED, to, 0, g->win);
	counts[ONESIDED]++;
}

static void leave(struct group *g, enum how how, int to)
{
	if (how == BY_LOCK)
		MPI_Win_unlock(to, g->win);
}

static void put_all(struct group *g, enum how how, uint64_t key,
		    uint64_t *const *bufs)
{
	for (int to = 0; to < g->size; to++) {
		int n = length_of(key, g->rank, to);

		for (int i = 0; i < n; i++)
			bufs[to][i] = word(key_of(key, g->rank, to), (size_t)i);
		if (n == 0)
			continue;
		enter(g, how, to);
		MPI_Put(bufs[to], n, MPI_UINT64_T, to,
			AHEAD + (MPI_Aint)SLOT * g->rank, n, MPI_UINT64_T,
			g->win);
		leave(g, how, to);
	}
}

/* What `from` has put at `at`, seen from there or from afar. */
static void compare(const struct group *g, uint64_t key, int from, int at,
		    const uint64_t *in, const char *what)
{
	int n = length_of(key, from, at);

	for (int i = 0; i < n; i++)
		if (in[i] != word(key_of(key, from, at), (size_t)i))
			fail(g, __FILE__, __LINE__,
			     "%s of %d words from %d in the window of %d: "
			     "another word %d",
			     what, n, from, at, i);
}

/* From each the slot of another. */
static void get_all(struct group *g, enum how how, uint64_t key, int shift,
		    uint64_t *const *bufs)
{
	for (int at = 0; at < g->size; at++) {
		int from = (at + shift) % g->size;
		int n = length_of(key, from, at);

		if (n == 0)
			continue;
		enter(g, how, at);
		MPI_Get(bufs[at], n, MPI_UINT64_T, at,
			AHEAD + (MPI_Aint)SLOT * from, n, MPI_UINT64_T, g->win);
		leave(g, how, at);
	}
}

static void add_all(struct group *g, enum how how, uint64_t key, uint64_t *buf)
{
	for (int i = 0; i < SUMS; i++)
		buf[i] = word(mix(key, (uint64_t)g->rank), (size_t)i);
	for (int to = 0; to < g->size; to++) {
		enter(g, how, to);
		MPI_Accumulate(buf, SUMS, MPI_UINT64_T, to, COUNTER, SUMS,
			       MPI_UINT64_T, MPI_SUM, g->win);
		leave(g, how, to);
	}
}

static void check_sums(const struct group *g, uint64_t key)
{
	for (int i = 0; i < SUMS; i++) {
		uint64_t sum = 0;

		for (int r = 0; r < g->size; r++)
			sum += word(mix(key, (uint64_t)r), (size_t)i);
		MUST_INT(g, g->memory[COUNTER + i], sum);
	}
}

/* What was there is less than what all have added in the end, and grows. */
static void count_up(struct group *g, uint64_t key)
{
	int n = 1 + (int)(key % 8);
	uint64_t one = 1, was, last = 0, base = g->adds;

	g->adds += (uint64_t)n * (uint64_t)g->size;
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, g->win);
	for (int i = 0; i < n; i++) {
		MPI_Fetch_and_op(&one, &was, MPI_UINT64_T, 0, 0, MPI_SUM,
				 g->win);
		MPI_Win_flush(0, g->win);
		counts[ONESIDED]++;
		MUST(g, was >= base && was < g->adds);
		MUST(g, i == 0 || was > last);
		last = was;
	}
	MPI_Win_unlock(0, g->win);
}

void onesided(struct group *g)
{
	uint64_t lot = lot_of(g, 7), key = draw(&lot);
	enum how how = (enum how)draw_below(&lot, HOWS);
	int shift = (int)draw_below(&lot, (unsigned)g->size);
	uint64_t **bufs = must_alloc(g, sizeof(*bufs) * (size_t)g->size);

	for (int i = 0; i < g->size; i++)
		bufs[i] = must_alloc(g, 8 * (size_t)SLOT + 8);
	for (int i = 0; i < SUMS; i++)
		g->memory[COUNTER + i] = 0;
	begin(g, how);
	sync_all(g, how);
	put_all(g, how, key, bufs);
	sync_all(g, how);
	for (int from = 0; from < g->size; from++)
		compare(g, key, from, g->rank,
			g->memory + AHEAD + (size_t)SLOT * (size_t)from, "put");
	get_all(g, how, key, shift, bufs);
	sync_all(g, how);
	for (int at = 0; at < g->size; at++)
		compare(g, key, (at + shift) % g->size, at, bufs[at], "get");
	add_all(g, how, key, bufs[0]);
	sync_all(g, how);
	check_sums(g, key);
	sync_all(g, how);
	end(g, how);
	if (how == BY_FENCE)
		MPI_Win_fence(MPI_MODE_NOSUCCEED, g->win);
	count_up(g, key);
	MPI_Barrier(g->comm);
	if (g->rank == 0)
		MUST_INT(g, g->memory[0], g->adds);
	MPI_Barrier(g->comm);
	for (int i = 0; i < g->size; i++)
		free(bufs[i]);
	free(bufs);
}
