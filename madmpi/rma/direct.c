/*
 * Operations that the origin carries out itself: on its own memory, and on that
 * of others where all share it, or the kernel copies.
 *
 * Elements are combined a few at a time under a lock of the target's: of its
 * window where messages come, too; and in the shared memory otherwise, where
 * it is a spinlock, since whoever has it is pinned and moves a few kilobytes.
 *
 * Not by atomic instructions of the processor: all that combines elements of a
 * type would have to do so, each element by itself. A megabyte of doubles is
 * added in 80 us under the lock, and takes 370 us by compare-and-swap; of the
 * 1,400 instructions of MPI_Fetch_and_op() 45 are the lock's.
 */
#include "rma/op.h"

#include <string.h>

#include "env/error.h"
#include "rma/combine.h"
#include "rma/shared.h"

enum { STAGE = 4096 };

static void lock(const struct madmpi_rma_call *c)
{
	if (c->win->shared != NULL)
		madmpi_shared_lock(c->win, c->target);
	else
		marcel_mutex_lock(&c->win->mutex);
}

static void unlock(const struct madmpi_rma_call *c)
{
	if (c->win->shared != NULL)
		madmpi_shared_unlock(c->win, c->target);
	else
		marcel_mutex_unlock(&c->win->mutex);
}

/* Bytes [at, at + n) of a side, in *layout or not; nothing if it has none. */
static struct nm_data part(struct madmpi_layout *layout,
			   const struct madmpi_side *side, MPI_Count at,
			   MPI_Count n)
{
	if (side->type == NULL)
		return nm_data_flat(NULL, 0);
	return madmpi_layout_slice(layout, side->buf, side->count, side->type,
				   at, n);
}

static void combine(const struct madmpi_rma_call *c,
		    const struct madmpi_side *there)
{
	MPI_Count most = STAGE / c->elem->size * c->elem->size, n;
	_Alignas(64) char in[STAGE], before[STAGE];
	struct madmpi_layout layouts[3];
	struct nm_data from, to, at_target;

	for (MPI_Count at = 0; at < c->bytes; at += n) {
		n = c->bytes - at < most ? c->bytes - at : most;
		from = part(&layouts[0], &c->origin, at, n);
		to = part(&layouts[1], &c->result, at, n);
		at_target = part(&layouts[2], there, at, n);
		nm_data_copy_out(&from, 0, in, from.length);
		lock(c);
		madmpi_rma_combine(c->op, c->elem, in, &at_target, (size_t)n,
				   to.length > 0 ? before : NULL);
		unlock(c);
		nm_data_copy_in(&to, 0, before, to.length);
	}
}

static void swap(const struct madmpi_rma_call *c,
		 const struct madmpi_side *there)
{
	struct madmpi_side compare = { c->compare, 1, c->elem };
	_Alignas(64) char old[MADMPI_RMA_ELEMENT], new[MADMPI_RMA_ELEMENT],
		before[MADMPI_RMA_ELEMENT];
	struct madmpi_layout layout;
	struct nm_data d;

	d = part(&layout, &compare, 0, c->bytes);
	nm_data_copy_out(&d, 0, old, d.length);
	d = part(&layout, &c->origin, 0, c->bytes);
	nm_data_copy_out(&d, 0, new, d.length);
	d = part(&layout, there, 0, c->bytes);
	lock(c);
	madmpi_rma_swap(c->elem, old, new, &d, before);
	unlock(c);
	d = part(&layout, &c->result, 0, c->bytes);
	nm_data_copy_in(&d, 0, before, d.length);
}

int madmpi_rma_direct(const struct madmpi_rma_call *c)
{
	struct madmpi_side there = c->there;
	struct madmpi_win *w = c->win;
	MPI_Count low, high;
	char *place;

	madmpi_win_hull(there.type, there.count, &low, &high);
	if (c->target != w->rank)
		place = w->member[c->target].at + c->disp;
	else if (!madmpi_win_find(w, c->disp, low, high, &place))
		return madmpi_error(w->comm, MPI_ERR_RMA_RANGE, c->fn,
				    "%lld bytes at address 0x%llx of rank %d "
				    "are not attached",
				    (long long)(high - low),
				    (long long)(c->disp + low), c->target);
	there.buf = place;
	switch (c->kind) {
	case MADMPI_RMA_PUT:
		madmpi_copy_bytes(c->origin.buf, c->origin.count,
				  c->origin.type, place, there.count,
				  there.type);
		break;
	case MADMPI_RMA_GET:
		madmpi_copy_bytes(place, there.count, there.type,
				  (void *)c->result.buf, c->result.count,
				  c->result.type);
		break;
	case MADMPI_RMA_SWAP:
		swap(c, &there);
		break;
	default:
		combine(c, &there);
	}
	return MPI_SUCCESS;
}

/* By where the member has it itself, whose address is only counted with. */
static struct nm_data its_part(struct madmpi_layout *layout,
			       const struct madmpi_rma_call *c)
{
	struct madmpi_side there = c->there;

	there.buf =
		(void *)(c->win->member[c->target].its + (uintptr_t)c->disp);
	return part(layout, &there, 0, c->bytes);
}

/*
 * Only what is large: a call of the kernel costs more than a message that
 * shares a packet with others. If the target is gone, or has no such memory, it
 * is a message that tells.
 */
bool madmpi_rma_reach(const struct madmpi_rma_call *c)
{
	struct nm_gate *gate = c->win->comm->gate[c->target];
	bool is_put = c->kind == MADMPI_RMA_PUT;
	struct madmpi_layout layouts[2];
	struct nm_data mine, its;
	uint64_t at;

	if (c->bytes <= MADMPI_RMA_INLINE || c->kind > MADMPI_RMA_GET ||
	    c->win->member[c->target].its == 0)
		return false;
	mine = part(&layouts[0], is_put ? &c->origin : &c->result, 0, c->bytes);
	its = its_part(&layouts[1], c);
	if (mine.kind != NM_DATA_FLAT || its.kind != NM_DATA_FLAT)
		return false;
	at = (uintptr_t)its.base;
	if (is_put)
		return nm_gate_write(gate, &mine, 0, mine.length, at) == 0;
	return nm_gate_read(gate, &mine, 0, mine.length, at) == 0;
}
