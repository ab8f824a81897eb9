/*
 * nmad's core: who finds the core, a rail or a link's turn taken leaves his
 * request there and goes; it is carried out all the same. Two threads submit
 * at once; the network takes packets at once, or later when it is polled.
 * What gathers, burst.c, and what was left to an idle VP, leaves when he polls
 * who was told to. With NMAD_LOCK fine and coarse some wait for each other and
 * some may not: as little is lost.
 *
 * covers: core, rail, hungry, mpsc
 */
#include "explore.h"

#include "../../nmad/core/stats.h"

/* Counters, relaxed and of no consequence: no steps of their own. */
#define nm_count(to)        ((void)(to))
#define nm_count_shared(to) ((void)(to))

#include "../../nmad/core/lock.c"
#include "../../nmad/core/progress.c"
#include "../../nmad/core/rail.c"
#include "../../nmad/core/out.c"
#include "../../nmad/core/burst.c"

enum { REQS = 3 };

static struct nm_core core;
static struct nm_gate gate;
static struct nm_rail rail;
static struct nm_link link;
static struct nm_pkt pkt;
static struct nm_session session;
static struct nm_req reqs[REQS];
static int nsent;    /* the rail's owner's */
static bool posting; /* the network keeps packets until it is polled */

/* --- what surrounds the real sources --- */

void *nm_mem_get(struct nm_mem *m, unsigned class)
{
	return &pkt;
}

unsigned nm_mem_class(size_t bytes)
{
	return 0;
}

void nm_submit_take(struct nm_pass *pass, struct nm_req *req)
{
	nm_out_send(pass, req);
}

/* The request is the user's again: who still touches it errs. */
void piom_cond_signal(piom_cond_t *c)
{
	struct nm_req *req = container_of(c, struct nm_req, done);

	explore_gone(req, sizeof(*req));
}

static bool idle;

int piom_any_idle(void)
{
	return idle;
}

/* What was done before a kick is there for the run that follows it. */
static ATOMIC(uint32_t) kicked;

void piom_ltask_kick(struct piom_ltask *t)
{
	store_release(&kicked, 1);
}

/* In a handler, or with a lock further up the stack. */
static __thread int pins;

void base_pin(void)
{
	pins++;
}

void base_unpin(void)
{
	pins--;
}

bool base_is_pinned(void)
{
	return pins != 0;
}

void base_spin_turn(unsigned *turn)
{
	explore_relax();
}

/* Time stands still. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
	*out = (struct timespec){ .tv_sec = 1 };
	return 0;
}

static void pack(struct nm_link *l, struct nm_pkt *p)
{
	struct base_link *n = base_list_take_front(&l->gate->out);

	if (n == NULL)
		return;
	nm_chain_append(&p->reqs,
			&container_of(n, struct nm_req, send.on)->node);
	p->nchunks++;
}

static int post_send(struct nm_link *l, struct nm_pkt *p)
{
	nsent++;
	return posting ? NM_POSTED : NM_SENT;
}

static bool poll_driver(struct nm_rail *r, int budget)
{
	if (link.posted == NULL)
		return false;
	nm_rail_sent(r, &pkt);
	return true;
}

/* No peer is lost here. */
void nm_gate_mourn(struct nm_gate *g, int error)
{
	explore_fail("a peer is lost: %d", error);
}

bool nm_req_part(struct nm_req *req)
{
	return true;
}

void nm_pkt_seal(struct nm_pkt *p, uint32_t credit)
{
}

bool nm_pkt_fits(const struct nm_pkt *p, size_t header,
		 const struct nm_data *data)
{
	return true;
}

void nm_pkt_put(struct nm_pkt *p, const struct nm_wire_chunk *c,
		const struct nm_data *data)
{
}

#define UNREACHED(type, name, ...)                                             \
	type name(__VA_ARGS__)                                                 \
	{                                                                      \
		explore_fail("%s is not part of this scenario", #name);        \
	}

UNREACHED(void, marcel_event_set, marcel_event_t *e)
UNREACHED(void, nm_data_copy_in, const struct nm_data *d, size_t offset,
	  const void *from, size_t bytes)
UNREACHED(bool, nm_calls_make, struct nm_core *c)
UNREACHED(void, nm_in_event, struct nm_pass *pass, struct nm_event *e)
UNREACHED(void, nm_in_resume, struct nm_pass *pass)
UNREACHED(int, nm_match_reserve, struct nm_match *m, size_t n)
UNREACHED(void, nm_msg_free, struct nm_core *c, struct nm_msg *msg)
UNREACHED(void, nm_submit_resume, struct nm_pass *pass)
UNREACHED(bool, nm_medium_cut, struct nm_gate *g, struct nm_pkt *first,
	  struct nm_req *req, const struct nm_wire_chunk *c)
UNREACHED(bool, nm_medium_left, struct nm_req *req, int error)
UNREACHED(void, nm_lost_carried, struct nm_doubt *d)
UNREACHED(struct nm_doubt *, nm_doubt_new, struct nm_link *l, size_t length)
UNREACHED(size_t, nm_pkt_length, const struct nm_pkt *p)
UNREACHED(void, nm_pkt_copy, const struct nm_pkt *p, void *to)
UNREACHED(void, nm_medium_copy, struct nm_pkt_in *in)

static const struct nm_driver driver = {
	.name = "paper",
	.max_small = 1024,
	.post_send = post_send,
	.poll = poll_driver,
};
static const struct nm_strategy strategy = { .name = "paper", .pack = pack };

/* --- one process, one peer, one rail --- */

static void set_up_with(enum nm_lock_scheme scheme)
{
	nm_core_lock_init(&core.lock, scheme);
	base_mpsc_init(&core.freed);
	core.config.strategy = &strategy;
	for (int kind = 0; kind < NM_MATCH_TABLES; kind++)
		core.match.tables[kind].now.size = 1 << 20; /* room enough */
	base_list_init(&core.active);
	base_list_init(&core.gathering);
	core.polled[0] = &rail;
	core.npolled = 1;
	gate.core = &core;
	gate.links[0] = &link;
	gate.nlinks = 1;
	gate.cut_min = SIZE_MAX;
	nm_chain_init(&gate.posts);
	base_list_init(&gate.answers);
	base_list_init(&gate.out);
	base_link_init(&gate.active);
	core.config.window = 1 << 20;
	rail.driver = &driver;
	rail.core = &core;
	nm_rail_lock_init(&rail.lock, scheme);
	nm_chain_init(&rail.stuck);
	link.gate = &gate;
	link.rail = &rail;
	link.pkt = &pkt;
	link.conn = &link; /* nobody is asked to connect */
	base_list_init(&link.xfers);
	pkt.link = &link;
	for (int i = 0; i < REQS; i++) {
		reqs[i].gate = &gate;
		reqs[i].session = &session;
		explore_name(&reqs[i], sizeof(reqs[i]), "request %d", i);
	}
	explore_name(&core.lock.held, 4, "core held");
	explore_name(&core.lock.submit, 8, "submissions");
	explore_name(&core.lock.again, 4, "core again");
	explore_name(&core.hunger, sizeof(core.hunger), "hungry");
	explore_name(&rail.lock.owned, 4, "rail owned");
	explore_name(&rail.lock.posts, 8, "rail posts");
	explore_name(&link.turn, sizeof(link.turn), "turn");
	explore_name(&pkt, sizeof(pkt), "packet");
	explore_name(&gate, sizeof(gate), "gate");
}

static void set_up(void)
{
	set_up_with(NM_LOCK_DEFERRED);
}

static void submit(void *arg)
{
	nm_core_submit(&core, &reqs[(int)(intptr_t)arg]);
}

static void poll_once(void *arg)
{
	nm_core_progress(&core);
}

static void submit_pinned(void *arg)
{
	base_pin();
	submit(arg);
}

static void poll_pinned(void *arg)
{
	base_pin();
	poll_once(arg);
}

/* Nothing is left anywhere, and nobody is inside. */
static void nothing_left(int sent)
{
	bool outer = core.lock.scheme == NM_LOCK_COARSE;

	explore_check(nsent == sent);
	explore_check(base_list_is_empty(&gate.out));
	explore_check(load_relaxed(&core.lock.held) ==
		      (outer ? NM_LOCK_OUTER : NM_LOCK_FREE));
	explore_check(load_relaxed(&rail.lock.owned) ==
		      (outer ? NM_LOCK_OUTER : NM_LOCK_FREE));
	explore_check(base_mpsc_is_empty(&core.lock.submit));
	explore_check(base_mpsc_is_empty(&rail.lock.posts));
}

static void two_sent(void)
{
	nothing_left(2);
	explore_check(load_relaxed(&link.turn.busy) == 0);
}

static void two_posted(void)
{
	nothing_left(2);
	explore_check(link.posted == &pkt);
}

/* Coarse: who may not wait cannot even poll while another sends; next time. */
static void two_posted_if_polled_on(void)
{
	if (nsent == 1) {
		explore_check(!nm_core_is_quiet(&core));
		nm_core_progress(&core);
	}
	two_posted();
}

EXPLORE(who_finds_it_busy_may_go_away)
{
	set_up();
	explore_spawn("one", submit, (void *)0);
	explore_spawn("two", submit, (void *)1);
	explore_finish(two_sent);
}

EXPLORE(the_end_of_a_turn_is_heard_of)
{
	set_up();
	posting = true;
	nm_core_submit(&core, &reqs[0]);
	explore_spawn("sender", submit, (void *)1);
	explore_spawn("poller", poll_once, NULL);
	explore_finish(two_posted);
}

/* --- what gathers --- */

EXPLORE(what_gathers_leaves_when_who_was_kicked_polls)
{
	set_up();
	gate.is_dear = true;
	gate.burst = FREE;
	core.burst_last = base_now_ns(); /* dense: the next comes at once */
	store_relaxed(&core.bursting, 1);
	explore_name(&core.bursting, 4, "bursting");
	nm_core_submit(&core, &reqs[0]);
	explore_check(gate.gathers && load_relaxed(&kicked) != 0);
	explore_spawn("sender", submit, (void *)1);
	explore_spawn("poller", poll_once, NULL);
	explore_finish(two_sent);
}

/* --- what is left to an idle VP --- */

/* The ltask, as often as it was kicked. */
static void poll_if_kicked(void *arg)
{
	while (xchg_acquire(&kicked, 0) != 0)
		nm_core_progress(&core);
}

static void two_sent_if_polled_on(void)
{
	poll_if_kicked(NULL);
	two_sent();
}

EXPLORE(what_is_left_to_the_idle_leaves_when_who_was_kicked_polls)
{
	set_up();
	idle = true;
	core.config.offload = 1;
	pkt.length = 1;
	nm_core_submit(&core, &reqs[0]);
	explore_check(nsent == 0 && load_relaxed(&kicked) != 0);
	explore_name(&kicked, 4, "kicked");
	explore_spawn("sender", submit, (void *)1);
	explore_spawn("idle", poll_if_kicked, NULL);
	explore_finish(two_sent_if_polled_on);
}

/* --- who waits, NMAD_LOCK --- */

static void two_senders(enum nm_lock_scheme scheme)
{
	set_up_with(scheme);
	explore_spawn("one", submit, (void *)0);
	explore_spawn("two", submit, (void *)1);
	explore_finish(two_sent);
}

/* Who may not wait leaves his request to one who may, or to nobody. */
static void a_handler_sends(enum nm_lock_scheme scheme)
{
	set_up_with(scheme);
	explore_spawn("thread", submit, (void *)0);
	explore_spawn("handler", submit_pinned, (void *)1);
	explore_finish(two_sent);
}

/* It finds that a packet has left, for which a message waits. */
static void a_handler_polls(enum nm_lock_scheme scheme)
{
	set_up_with(scheme);
	posting = true;
	nm_core_submit(&core, &reqs[0]);
	explore_spawn("thread", submit, (void *)1);
	explore_spawn("handler", poll_pinned, NULL);
	explore_finish(scheme == NM_LOCK_COARSE ? two_posted_if_polled_on
						: two_posted);
}

EXPLORE(fine_two_send)
{
	two_senders(NM_LOCK_FINE);
}

EXPLORE(fine_a_handler_sends)
{
	a_handler_sends(NM_LOCK_FINE);
}

EXPLORE(fine_a_handler_polls)
{
	a_handler_polls(NM_LOCK_FINE);
}

EXPLORE(coarse_two_send)
{
	two_senders(NM_LOCK_COARSE);
}

EXPLORE(coarse_a_handler_sends)
{
	a_handler_sends(NM_LOCK_COARSE);
}

EXPLORE(coarse_a_handler_polls)
{
	a_handler_polls(NM_LOCK_COARSE);
}
