/*
 * A link is lost while its peer lives: the gate goes on over others, and what
 * was under way on the lost one is sent again over those.
 *
 *   A                                        B
 *   its driver tells: unsure of 7 and 8;
 *   dead. 9 was formed, and has not left
 *   -- LOST(rail) ---------------------->    nm_lost_heard(): its side of the
 *   -- RESENT(7), (8), (UNSENT) -------->    link is given up; its driver
 * tells: 8 have arrived, 0 to 7, and it is unsure of 3. So 7 is dropped, 8 and
 * 9 are taken
 *   <---------------------- RESENT(3) --     and so is B's, here
 *
 * Each packet counts once:
 *
 *  - it is in the network of one link, or in memory of ours (struct nm_doubt),
 *    and what the driver does not report has arrived;
 *  - a RESENT is looked at when our side of that link is dead, so that no more
 *    can come over it, and until then held (gate->held). Packets come in their
 *    order, so those below link->arrived have been taken, and no others. An
 *    UNSENT one has never been in the network of that link;
 *  - a RESENT is a packet of another link, and if that one is lost may be in
 *    doubt itself: then it is put into a RESENT of that one, which is decided
 *    upon in the same way, and then what is in it. A link is lost once, so this
 *    ends; nm_rails_link() leaves room for it in all packets.
 *
 * Nobody relies on the order of packets. Parts of bodies are with redo.c.
 *
 * The link leaves the gate as soon as the core hears of its loss: from its
 * rail's owner (nm_lost_dead(), nm_lost_unsure(), or a part that ended with it)
 * or from the peer. Its owner keeps what he finds formed for it, as UNSENT.
 *
 * What has come over it counts, however its loss is heard of: it is over
 * (gate->over) when it is dead here and its last packet has been heard. A gate
 * without links sends nothing, and ends when all of them are over.
 *
 * Called with the core lock held, but for nm_doubt_new() and nm_lost_carried().
 *                                          Design: doc/nmad.md, "A lost rail"
 */
#include "core.h"
#include "lost.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- the rail's owner: packets in doubt, in memory of his --- */

struct nm_doubt *nm_doubt_new(struct nm_link *link, size_t length)
{
	struct nm_rail *rail = link->rail;
	unsigned class = nm_mem_class(sizeof(struct nm_doubt) + length);
	struct nm_doubt *d;

	base_mpsc_for_each (n, base_mpsc_take(&rail->settled)) {
		d = container_of(n, struct nm_doubt, event.node);
		nm_mem_put(&rail->mem, d->class, d);
	}
	d = nm_mem_get(&rail->mem, class);
	memset(d, 0, sizeof(*d));
	base_link_init(&d->answer.on);
	d->answer.kind = NM_WIRE_KIND_RESENT;
	d->link = link;
	d->data = nm_data_flat(d->bytes, length);
	d->class = (uint8_t) class;
	return d;
}

void nm_lost_carried(struct nm_doubt *d)
{
	base_mpsc_push(&d->link->rail->settled,
		       &d->event.node); /* order(mpsc) */
}

/* --- the gate --- */

static unsigned bit_of(const struct nm_link *link)
{
	return 1u << link->rail->index;
}

static void say(const struct nm_gate *gate, const struct nm_link *link,
		int error)
{
	char names[NM_RAILS_MAX * 16] = "";
	size_t at = 0;

	for (int i = 0; i < gate->nlinks && at < sizeof(names); i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s",
				       i > 0 ? "+" : "",
				       gate->links[i]->rail->driver->name);
	base_warn("nmad",
		  "rank %d: lost rail %d (%s) to rank %d: %s; going on over %s",
		  gate->core->rank, link->rail->index, link->rail->driver->name,
		  gate->rank, strerror(-error), names);
}

/* Links that were spare: somebody may wait for the death of the peer. */
static void connect_links(struct nm_pass *pass, struct nm_gate *gate,
			  unsigned before)
{
	for (int i = 0; gate->awaited && i < gate->nlinks; i++)
		if (!(before & bit_of(gate->links[i])))
			nm_submit_connect(pass, gate->links[i]);
}

static void tell_peer(struct nm_gate *gate, const struct nm_link *link)
{
	nm_out_reply(gate, NM_WIRE_KIND_LOST, (uint64_t)link->rail->index, 0);
}

void nm_lost(struct nm_pass *pass, struct nm_link *link, int error, bool heard)
{
	struct nm_gate *gate = link->gate;
	unsigned before = 0;

	if (gate->error != 0 || (gate->lost & bit_of(link)))
		return;
	for (int i = 0; i < gate->nlinks; i++)
		before |= bit_of(gate->links[i]);
	gate->lost |= (uint8_t)bit_of(link);
	if (gate->first_error == 0 && error != -EHOSTUNREACH)
		gate->first_error = error;
	nm_gate_relink(gate);
	if (gate->nlinks == 0)
		return;
	/* It was never to be had: that is no loss. */
	if (error != -EHOSTUNREACH) {
		nm_count(&pass->core->stats.lost);
		say(gate, link, error);
	}
	if (!heard)
		tell_peer(gate, link);
	connect_links(pass, gate, before);
	if (gate->gathers || nm_gate_has_output(gate))
		nm_out_activate(gate);
}

int nm_lost_heard(struct nm_pass *pass, struct nm_gate *gate, unsigned rail)
{
	struct nm_core *core = pass->core;
	struct nm_link *link = nm_gate_link(gate, rail);

	if (rail >= (unsigned)core->nrails)
		return -EBADMSG;
	if (core->rails[rail].driver == NULL)
		return 0;
	if (link == NULL || !link->may_lose)
		return -EBADMSG;
	if (gate->lost & bit_of(link))
		return 0;
	link->lose.kind = NM_POST_LOSE;
	nm_chain_append(&pass->posts, &link->lose.node);
	nm_lost(pass, link, -ECONNRESET, true);
	return 0;
}

/* --- our packets --- */

void nm_lost_unsure(struct nm_pass *pass, struct nm_doubt *d)
{
	struct nm_gate *gate = d->link->gate;

	if (gate->error != 0) {
		nm_lost_carried(d);
		return;
	}
	nm_lost(pass, d->link, d->link->error, false);
	nm_out_answer(gate, &d->answer);
}

void nm_lost_add(struct nm_gate *gate, struct nm_pkt *pkt, struct nm_answer *a)
{
	struct nm_doubt *d = container_of(a, struct nm_doubt, answer);
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RESENT,
				   .flags = d->unsent ? NM_WIRE_UNSENT : 0,
				   .rail = (uint8_t)d->link->rail->index,
				   .seq = d->number,
				   .tail_len = (uint32_t)d->data.length };

	if (pkt->nchunks > 0)
		return;
	base_check(pkt->length + NM_WIRE_RESENT + d->data.length <=
		   pkt->link->rail->largest);
	base_list_remove(&a->on);
	nm_pending_add(gate->core, -1);
	nm_count(&gate->core->stats.resent_out);
	nm_pkt_put_part(pkt, &c, &d->data);
	pkt->post.kind = NM_POST_RESENT;
	pkt->doubt = d;
}

void nm_lost_forget(struct nm_answer *a)
{
	nm_lost_carried(container_of(a, struct nm_doubt, answer));
}

/* --- the peer's --- */

/* In a packet that is no other: its only chunk. */
static int find_resent(const struct nm_pkt_in *in, struct nm_wire_chunk *c)
{
	size_t at = NM_WIRE_HEAD;
	struct nm_wire_head h;

	if (nm_wire_get_head(in->data, in->length, &h) < 0 || h.nchunks != 1 ||
	    nm_wire_get_chunk(in->data, in->length, &at, c) < 0 ||
	    c->kind != NM_WIRE_KIND_RESENT || at != in->length)
		return -EBADMSG;
	return 0;
}

int nm_lost_unwrap(struct nm_pass *pass, struct nm_gate *gate,
		   struct nm_pkt_in *in)
{
	struct nm_wire_chunk c;
	struct nm_link *link;

	if (find_resent(in, &c) < 0 || nm_lost_heard(pass, gate, c.rail) < 0)
		return -EBADMSG;
	link = nm_gate_link(gate, c.rail);
	if (!(c.flags & NM_WIRE_UNSENT)) {
		if (link == NULL)
			return -EBADMSG;
		if (!(gate->over & bit_of(link))) {
			nm_chain_append(&gate->held, &in->event.node);
			return -EINPROGRESS;
		}
		if ((int32_t)(c.seq - link->arrived) < 0)
			return -EALREADY;
	}
	nm_count(&pass->core->stats.resent_in);
	in->data = c.tail;
	in->length = c.tail_len;
	return 0;
}

/* Those that were held are looked at again; some may have to wait on. */
static void look_again(struct nm_pass *pass, struct nm_gate *gate)
{
	struct nm_chain held = gate->held;
	struct base_mpsc_node *n;

	if (held.first == NULL)
		return;
	nm_chain_init(&gate->held);
	while ((n = nm_chain_take(&held)) != NULL)
		nm_in_held(pass, container_of(n, struct nm_pkt_in, event.node));
}

void nm_lost_dead(struct nm_pass *pass, struct nm_link *link)
{
	struct nm_gate *gate = link->gate;

	gate->over |= (uint8_t)bit_of(link);
	if (link->may_lose && gate->error == 0) {
		nm_lost(pass, link, link->error, false);
		look_again(pass, gate);
	}
	if (!link->may_lose || gate->over == gate->reach)
		nm_gate_fail(pass, gate,
			     gate->first_error != 0 ? gate->first_error
						    : link->error);
}

void nm_lost_fail(struct nm_pass *pass, struct nm_gate *gate)
{
	struct base_mpsc_node *n;

	while ((n = nm_chain_take(&gate->held)) != NULL)
		nm_chain_append(&pass->release, n);
}
