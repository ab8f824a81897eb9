/*
 * What waits for a gate leaves by its priority, among equals as it came; the
 * one that has waited longest is passed NM_LEVELS_PATIENCE times at most.
 *
 * Envelopes of a session are matched in their order, so an urgent message would
 * only be parked at the peer if it left before those that precede it in its
 * session. These leave first, whatever their priority, but of their payload
 * only what is short: the rest goes by rendezvous, as if there were no credit.
 * Messages of other sessions stay where they are.
 *
 *   gate->out      A1 B1 A2 B2 A3      as they came: sessions A and B
 *   gate->levels   3: B2   0: A1 B1 A2 A3
 *   peer->last_out of A: A1 A2 A3, of B: B1 B2; rings, by their last
 *
 *   leaves         B1's envelope, B2, A1, A2, A3
 *
 * Bodies come in the order in which their receiver grants them, core/grant.h.
 */
#include "../core/levels.h"
#include "../core/core.h"
#include "split.h"
#include "strategy.h"

/* Payload up to this costs no more than being announced and asked for. */
enum { SHORT = 1024 };

static struct nm_req **last_of(struct nm_gate *gate, const struct nm_req *req)
{
	return &req->session->peers[gate->rank].last_out;
}

static void make_levels(struct nm_gate *gate)
{
	struct nm_mem *mem = &gate->core->mem;

	gate->levels = nm_mem_get(mem, nm_mem_class(sizeof(*gate->levels)));
	nm_levels_init(gate->levels);
}

/* What is urgent waits for no others to join it. */
static void prio_queued(struct nm_gate *gate, struct nm_req *req)
{
	struct nm_req **last = last_of(gate, req);

	if (unlikely(gate->levels == NULL))
		make_levels(gate);
	if (req->send.priority > 0)
		req->flags |= NM_REQ_NOW;
	nm_levels_put(gate->levels, &req->send.level, req->send.priority);
	req->send.behind = req;
	if (*last != NULL) {
		req->send.behind = (*last)->send.behind;
		(*last)->send.behind = req;
	}
	*last = req;
}

/* It is the first of its session. */
static void prio_unqueued(struct nm_gate *gate, struct nm_req *req)
{
	struct nm_req **last = last_of(gate, req);

	base_check((*last)->send.behind == req);
	if (*last == req)
		*last = NULL;
	else
		(*last)->send.behind = req->send.behind;
	nm_levels_take(gate->levels, &req->send.level, req->send.priority,
		       base_list_first(&gate->out) == &req->send.on);
}

/* Whose turn it is. NULL: nothing waits. */
static struct nm_req *most_urgent(const struct nm_gate *gate)
{
	struct base_link *n;

	if (base_list_is_empty(&gate->out))
		return NULL;
	if (nm_levels_is_due(gate->levels))
		return container_of(base_list_first(&gate->out), struct nm_req,
				    send.on);
	n = nm_levels_first(gate->levels);
	return container_of(n, struct nm_req, send.level);
}

/*
 * Its payload shall not go before what is behind it; nor take the last quarter
 * of the window, without which what is urgent could not leave at once.
 */
static bool yields(const struct nm_gate *gate, const struct nm_req *req,
		   const struct nm_req *urgent)
{
	uint64_t window = gate->core->config.window;

	if (req->data.length <= SHORT)
		return false;
	return req->send.priority < urgent->send.priority ||
	       (req->send.priority <= 0 &&
		gate->credit_used + req->data.length > window - window / 4);
}

static bool add(struct nm_gate *gate, struct nm_pkt *pkt)
{
	struct nm_req *urgent, *req;

	if (!base_list_is_empty(&gate->answers))
		return nm_out_add(gate, pkt);
	urgent = most_urgent(gate);
	if (urgent == NULL)
		return false;
	req = (*last_of(gate, urgent))->send.behind;
	return nm_out_add_send(gate, pkt, req, yields(gate, req, urgent));
}

static void prio_pack(struct nm_link *link, struct nm_pkt *pkt)
{
	bool dear = link->rail->driver->caps & NM_CAP_DEAR;

	while (add(link->gate, pkt) && dear)
		;
}

const struct nm_strategy nm_strategy_prio = {
	.name = "prio",
	.gathers = true,
	.bodies = 2, /* one is asked for while the other is moved */
	.queued = prio_queued,
	.unqueued = prio_unqueued,
	.pack = prio_pack,
	.cut = nm_split_body,
	.cut_eager = nm_split_eager,
};
