/*
 * Parts of bodies whose rail is lost: they are offered anew, over another, and
 * begin from their beginning.
 *
 *   sender                                 receiver
 *   offered over R --- RTS ------------->  R is dead here, or dies before the
 *                  <-- RTR(AGAIN) -------  RTR has left: wanted, but not over R
 *   granted over R <-- RTR --------------
 *   R is dead here, then or later:
 *   offered anew   --- OFFER(id, R2) --->  it is over: RTR(0)
 *                                          else, as soon as its driver has let
 *                                          go of it: granted anew, over R2
 *                  <-- RTR --------------
 *
 * Each offer is answered by one RTR, and an offer is made anew only when the
 * last was answered:
 *
 *  - a sender's part is on gate->offers until the answer comes, then with the
 *    driver of the rail that was offered, then over; and offered anew when it
 *    leaves that driver unfinished, or when the answer is for a rail that is
 *    lost here;
 *  - a receiver's part is with the driver of the rail that was offered last, or
 *    held for its turn there; or stranded: with none, the last offer answered,
 *    or about to be, and the next one will come. For it was in the hands of
 *    the sender, who has heard, or will hear, that the rail is lost; and he
 *    still has the part, because his driver said that it is over only if the
 *    receiver's has said so, too, or was sure to (drivers/driver.h);
 *  - what is offered anew has been granted, so its message was matched, and a
 *    part that is not known here any more is over.
 *
 * What no driver has is ended with the gate by the core, nm_redo_fail().
 *
 * Called with the core lock held.             Design: doc/nmad.md, "A lost
 * rail"
 */
#include "core.h"
#include "part.h"

#include <errno.h>
#include <string.h>

static struct nm_link *link_of(const struct nm_part *p)
{
	return &p->rail->links[p->trans->gate->rank];
}

/* As a driver gets it for the first time. */
static void begin_anew(struct nm_part *p, struct nm_rail *rail)
{
	p->rail = rail;
	p->x.link = link_of(p);
	p->x.place = (struct nm_data_place){ 0 };
	p->x.mine.length = 0;
	p->x.awaited = NULL;
	p->x.is_ready = false;
	p->x.lost = false;
	p->x.status = 0;
	memset(p->x.drv, 0, sizeof(p->x.drv));
}

/* --- the sender --- */

static void offer(struct nm_part *p)
{
	struct nm_gate *gate = p->trans->gate;

	base_list_push_back(&gate->offers, &p->on);
	if (gate->nlinks == 0)
		return; /* it ends with the gate */
	nm_part_taken(p);
	nm_part_withdraw(p);
	begin_anew(p, gate->links[0]->rail);
	if (p->rail->driver->xfer_offer != NULL)
		p->rail->driver->xfer_offer(&p->x);
	nm_part_given(p);
	nm_count(&gate->core->stats.redone);
	p->granted = false;
	p->rtr.part = p;
	p->rtr_queued = true;
	nm_out_answer(gate, &p->rtr);
}

int nm_redo_granted(struct nm_pass *pass, struct nm_part *p, bool again)
{
	struct nm_gate *gate = p->trans->gate;
	int rc = 0;

	if (again)
		rc = nm_lost_heard(pass, gate, (unsigned)p->rail->index);
	offer(p);
	return rc;
}

/* --- the receiver --- */

bool nm_redo_may(const struct nm_gate *gate, unsigned rail)
{
	return nm_gate_link(gate, rail) != NULL && !(gate->lost & 1u << rail);
}

/* What was offered last is wanted, over that rail. */
static void grant(struct nm_pass *pass, struct nm_part *p)
{
	struct nm_gate *gate = p->trans->gate;

	begin_anew(p, &gate->core->rails[p->offer_rail]);
	p->x.peers = p->offer;
	p->let_go = p->stranded = p->offered = false;
	p->heard_ready = false;
	/* They are offered in the order in which they were granted. */
	base_list_remove(&p->on);
	base_list_push_back(&gate->wanted, &p->on);
	if (nm_redo_may(gate, p->offer_rail))
		nm_part_grant(pass, p);
	else
		nm_redo_strand(pass, p);
}

void nm_redo_strand(struct nm_pass *pass, struct nm_part *p)
{
	p->let_go = true;
	if (p->heard_ready != p->x.is_ready)
		return;
	p->stranded = true;
	if (!p->x.is_ready) {
		p->rtr_queued = true;
		nm_out_answer(p->trans->gate, &p->rtr);
	}
	if (p->offered)
		grant(pass, p);
}

static struct nm_part *find(const struct nm_gate *gate, uint64_t id)
{
	base_list_for_each (n, &gate->wanted) {
		struct nm_part *p = container_of(n, struct nm_part, on);

		if (p->rtr.id == id)
			return p;
	}
	return NULL;
}

int nm_redo_heard(struct nm_pass *pass, struct nm_gate *gate,
		  const struct nm_wire_chunk *c)
{
	struct nm_part *p = find(gate, c->id);

	if (p == NULL) {
		nm_part_refuse(gate, c->id, 0);
		return 0;
	}
	/* The last offer has been answered, and there was no other since. */
	if (p->rtr_queued || p->offered || (!p->stranded && !p->heard_ready) ||
	    c->rail >= (unsigned)gate->core->nrails)
		return -EBADMSG;
	p->offered = true;
	p->offer_rail = c->rail;
	p->offer.length = c->tail_len;
	memcpy(p->offer.bytes, c->tail, c->tail_len);
	if (nm_lost_heard(pass, gate, (unsigned)p->rail->index) < 0)
		return -EBADMSG;
	if (p->stranded)
		grant(pass, p);
	return 0;
}

/* --- both --- */

bool nm_redo_lost(struct nm_pass *pass, struct nm_part *p)
{
	struct nm_gate *gate = p->trans->gate;
	struct nm_link *link = link_of(p);

	if (gate->error != 0)
		return false;
	nm_lost(pass, link, link->error, false);
	if (p->trans->is_send)
		offer(p);
	else
		nm_redo_strand(pass, p);
	return true;
}

void nm_redo_fail(struct nm_pass *pass, struct nm_gate *gate)
{
	struct base_link *n = gate->wanted.head.next, *next;

	for (; n != &gate->wanted.head; n = next) {
		struct nm_part *p = container_of(n, struct nm_part, on);

		next = n->next;
		if (p->let_go)
			nm_part_over(pass, p, -ECONNRESET);
	}
}
