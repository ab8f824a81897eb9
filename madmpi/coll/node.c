/*
 * How the memory of a node comes and goes, and how its processes wait.
 */
#include "coll/node.h"

#include <errno.h>
#include <stdlib.h>

#include <pioman/pioman.h>

#include "coll/choose.h"

/* --- waiting --- */

/* What is waited for. */
struct wait {
	piom_cond_t cond;
	const void *word;
	uint64_t number;
};

static void look(void *arg)
{
	struct wait *w = arg;

	if (!piom_cond_test(&w->cond) &&
	    madmpi_word_has_come(w->word, w->number))
		piom_cond_signal(&w->cond);
}

static bool has_come(struct wait *w)
{
	return madmpi_word_has_come(w->word, w->number);
}

/* 0, or -errno: that process is lost. */
static int receive_bell(struct madmpi_coll *c, int rank)
{
	struct nm_data nothing = nm_data_flat(NULL, 0);

	return nm_sr_recv(c->comm->coll, c->gate[rank], MADMPI_COLL_BELL,
			  NM_TAG_EXACT, &nothing, NULL);
}

static int sleep_until(struct madmpi_coll *c, int rank, struct wait *w)
{
	struct madmpi_line *l = &c->node->line[rank];
	int rc = 0;

	while (rc == 0) {
		madmpi_sleepers_join(l, c->rank);
		if (has_come(w) && madmpi_sleepers_leave(l, c->rank))
			return 0;
		rc = receive_bell(c, rank);
		if (has_come(w))
			return 0;
	}
	return rc;
}

static bool wait_slow(struct madmpi_coll *c, int rank, struct wait *w)
{
	struct madmpi_node *n = c->node;
	int rc;

	piom_cond_init(&w->cond);
	if (piom_cond_poll_on(&w->cond, look, w) == 0)
		return true;
	rc = (n->dead & 1u << rank) != 0 ? -ECONNRESET
					 : sleep_until(c, rank, w);
	if (rc == 0)
		return true;
	n->dead |= 1u << rank;
	madmpi_coll_fail(c, rc);
	return false;
}

/* False: that process is lost, and has not told. */
static bool wait_for(struct madmpi_coll *c, int rank, const void *word,
		     uint64_t number)
{
	struct wait w = { .word = word, .number = number };

	return likely(has_come(&w)) || wait_slow(c, rank, &w);
}

static void ring(struct madmpi_coll *c, uint32_t sleepers)
{
	struct nm_data nothing = nm_data_flat(NULL, 0);

	/* One that is gone is not told. */
	for (; sleepers != 0; sleepers &= sleepers - 1)
		nm_sr_send(c->comm->coll, c->gate[__builtin_ctz(sleepers)],
			   MADMPI_COLL_BELL, &nothing, 0);
}

static void tell(struct madmpi_coll *c, void *word, uint64_t number)
{
	uint32_t sleepers;

	madmpi_word_tell(word, number);
	sleepers = madmpi_sleepers_take(&c->node->line[c->rank]);
	if (unlikely(sleepers != 0))
		ring(c, sleepers);
}

/* --- parts --- */

static int number_of(const struct madmpi_coll *c, const struct madmpi_lane *l)
{
	return (int)(l - c->node->lane);
}

void madmpi_node_await_done(struct madmpi_coll *c, struct madmpi_lane *l,
			    int rank, uint64_t part)
{
	wait_for(c, rank, &c->node->line[rank].done[number_of(c, l)], part);
}

/* Others must have done with what is in the slot. */
static void wait_for_room(struct madmpi_coll *c, struct madmpi_lane *l,
			  uint64_t needed)
{
	for (int i = 0; i < c->size; i++)
		if (i != c->rank)
			madmpi_node_await_done(c, l, i, needed);
	l->low = needed;
}

struct madmpi_slot *madmpi_node_take(struct madmpi_coll *c,
				     struct madmpi_lane *l, uint64_t part)
{
	if (unlikely(part > l->low + l->n))
		wait_for_room(c, l, part - l->n);
	return madmpi_node_slot(l, c->rank, part);
}

void madmpi_node_tell(struct madmpi_coll *c, struct madmpi_slot *s,
		      uint64_t part, MPI_Count bytes)
{
	s->bytes = (uint32_t)bytes;
	s->error = (int16_t)c->error;
	s->call = madmpi_node_call(c);
	tell(c, &s->number, part);
}

struct madmpi_slot *madmpi_node_await(struct madmpi_coll *c,
				      struct madmpi_lane *l, int rank,
				      uint64_t part)
{
	struct madmpi_slot *s = madmpi_node_slot(l, rank, part);

	if (unlikely(!wait_for(c, rank, &s->number, part)))
		return s;
	if (unlikely(s->call != madmpi_node_call(c))) {
		madmpi_coll_fail(c, -EBADE);
	} else if (unlikely(s->error != 0)) {
		c->is_told |= c->error == 0;
		madmpi_coll_fail(c, s->error < 0 ? s->error : -EPROTO);
	}
	return s;
}

void madmpi_node_done_now(struct madmpi_coll *c, struct madmpi_lane *l,
			  uint64_t part)
{
	l->said = part;
	tell(c, &c->node->line[c->rank].done[number_of(c, l)], part);
}

void madmpi_node_done(struct madmpi_coll *c, struct madmpi_lane *l,
		      uint64_t part)
{
	if (part - l->said >= l->n / 2)
		madmpi_node_done_now(c, l, part);
}

/* --- its life --- */

static const char name[] = "memory of a node";

/* What is the same in all its processes, with certainty. */
static bool may_have(const struct madmpi_coll *c)
{
	return !madmpi_comm_is_inter(c->comm) && c->size > 1 &&
	       c->size <= MADMPI_NODE_MOST && madmpi_choose_node();
}

static int is_far(const struct madmpi_coll *c)
{
	for (int i = 0; i < c->size; i++)
		if (!nm_gate_is_near(c->gate[i]))
			return -EXDEV;
	return 0;
}

/* So many slots of so many bytes, from `at` on; how many bytes they take. */
static size_t lay(struct madmpi_lane *l, const struct madmpi_coll *c,
		  uint32_t n, uint32_t bytes, uintptr_t at)
{
	l->slots = (char *)at;
	l->n = n;
	l->bytes = bytes - (uint32_t)sizeof(struct madmpi_slot);
	l->next = 1;
	return (size_t)c->size * n * bytes;
}

/* Where all is in its segment, which need not be there yet; its size. */
static size_t lay_out(struct madmpi_node *n, const struct madmpi_coll *c)
{
	uintptr_t at = (uintptr_t)n->segment.at;
	size_t bytes = BASE_CACHE_PAIR;

	_Static_assert((int)MADMPI_SEGMENT_HEAD <= (int)BASE_CACHE_PAIR,
		       "lines are aligned");
	n->line = (struct madmpi_line *)(at + bytes);
	bytes += (size_t)c->size * sizeof(*n->line);
	bytes += lay(&n->lane[MADMPI_LITTLE], c, 64, 256, at + bytes);
	bytes += lay(&n->lane[MADMPI_MUCH], c, 8, 128 * 1024, at + bytes);
	return bytes;
}

/* Whether this process may read the memory of all: after a message of each. */
static bool reads_all(struct madmpi_coll *c)
{
	struct madmpi_type *byte = madmpi_type_of(MPI_BYTE);
	int to, from;

	for (int step = 1; step < c->size; step++) {
		to = (c->rank + step) % c->size;
		from = (c->rank - step + c->size) % c->size;
		madmpi_coll_exchange(c, NULL, 0, byte, to, NULL, 0, byte, from);
	}
	for (int i = 0; i < c->size; i++)
		if (i != c->rank && !nm_gate_can_copy(c->gate[i]))
			return false;
	return c->error == 0;
}

/* Who reads whom is asked only where all have the memory in common. */
static struct madmpi_node *make(struct madmpi_coll *c)
{
	struct madmpi_node *n = malloc(sizeof(*n)), made = { .dead = 0 };

	if (madmpi_segment_share(c, lay_out(&made, c), 0,
				 n == NULL ? -ENOMEM : is_far(c),
				 &made.segment) < 0) {
		free(n);
		return NULL;
	}
	made.reads = madmpi_segment_agree(c, &made.segment, reads_all(c)) > 0;
	lay_out(&made, c);
	*n = made;
	return n;
}

struct madmpi_node *madmpi_node_find(struct madmpi_comm *c)
{
	struct madmpi_coll x;

	if (c->blocking++ < MADMPI_NODE_AFTER)
		return NULL;
	madmpi_coll_begin(&x, name, c);
	if (c->hosts != NULL)
		madmpi_coll_in_host(&x);
	if (may_have(&x))
		c->node = make(&x);
	c->no_node = c->node == NULL;
	return c->node;
}

void madmpi_node_free(struct madmpi_node *n)
{
	if (n == NULL)
		return;
	madmpi_segment_drop(&n->segment);
	free(n);
}
