/*
 * Progress: entering the core, deciding, and doing what was decided.
 *
 * Anyone may come here: a caller with a request, a poller with a rail's news.
 * Nobody waits, unless NMAD_LOCK says so. Under the lock everything that was
 * left is taken in and the free links get their packets; afterwards, without
 * the lock, requests are completed and rails are driven, which may bring news,
 * and so on until nothing is left that is this caller's to do. Last come
 * functions of the user's that wait for what was completed (calls.h).
 */
#include "core.h"
#include "trace.h"

#include <errno.h>
#include <sys/eventfd.h>

#include <base/pin.h>
#include <base/spin.h>
#include <marcel/wait.h>
#include <pioman/pioman.h>

enum {
	/* Calls of the match tables; they double, at least. A pass may bring
	 * 32 packets, of many messages each; what finds no room is parked. */
	ROOM_MORE = 4096,
	POLL_EVERY = 16, /* passes: polled though nothing came */
};

static void pass_init(struct nm_pass *pass, struct nm_core *core, bool polls)
{
	pass->core = core;
	pass->polls = polls;
	pass->kick = false;
	nm_chain_init(&pass->posts);
	nm_chain_init(&pass->done);
	nm_chain_init(&pass->release);
}

/* --- under the lock --- */

static void want_memory(struct nm_core *core)
{
	store_relaxed(&core->low, 1);
	if (core->refill_asked)
		return;
	core->refill_asked = true;
	marcel_event_set(&core->refill);
}

static void decide(struct nm_pass *pass, struct nm_news *news,
		   struct nm_req *req)
{
	struct nm_core *core = pass->core;
	uint32_t wish = nm_core_heed(&core->lock);
	struct base_mpsc_node *e;

	base_mpsc_for_each (n, base_mpsc_take(&core->freed))
		nm_msg_free(core, container_of(n, struct nm_msg, free));
	base_mpsc_for_each (n, base_mpsc_take(&core->lock.submit))
		nm_submit_take(pass, container_of(n, struct nm_req, node));
	base_mpsc_for_each (n, base_mpsc_take(&core->lock.events))
		nm_in_event(pass, container_of(n, struct nm_event, node));
	if (news != NULL)
		while ((e = nm_chain_take(&news->events)) != NULL)
			nm_in_event(pass,
				    container_of(e, struct nm_event, node));
	if (req != NULL)
		nm_submit_take(pass, req);
	if ((pass->polls || (wish & NM_WISH_POLL)) &&
	    load_relaxed(&core->bursting) != 0)
		nm_burst_end(core);
	if (!base_list_is_empty(&core->active))
		nm_out_form(pass);
	if (unlikely(core->match.is_low))
		want_memory(core);
}

static bool is_for_itself(const struct nm_rail *rail)
{
	return rail->driver->caps & NM_CAP_SELF;
}

/* Coarse: the lock is the rails', too, so they are driven under it. */
static void drive_all(struct nm_pass *pass, struct nm_news *news)
{
	struct base_mpsc_node *n;

	while ((n = nm_chain_take(&pass->posts)) != NULL) {
		struct nm_event *e = container_of(n, struct nm_event, node);
		struct nm_rail *rail = nm_post_rail(e);

		nm_count(&rail->stats->taken);
		nm_rail_drive(rail, e, is_for_itself(rail), news);
	}
}

/* --- without the lock --- */

/* The last access to the request is the signal. */
static void complete(struct nm_core *core, struct nm_req *req)
{
	if (req->copy_from != NULL) {
		nm_data_copy_in(&req->data, 0, req->copy_from, req->length);
		if (req->msg != NULL)
			base_mpsc_push(&core->freed, &req->msg->free);
	}
	nm_trace_done(req);
	piom_cond_signal(&req->done);
}

static void complete_sent(struct nm_core *core, struct nm_news *news)
{
	struct base_mpsc_node *n;

	while ((n = nm_chain_take(&news->sent)) != NULL) {
		struct nm_req *req = container_of(n, struct nm_req, node);

		if (!(req->flags & NM_REQ_SYNC) || nm_req_part(req))
			complete(core, req);
	}
}

/*
 * Offload (RenPar 2009, section 4.2): to copy a large packet into the network,
 * or into the kernel, takes the sender longer than to wake a VP that has
 * nothing to do. Not if he waits for it at once, nor who polls himself.
 */
static bool is_left_to_idle(const struct nm_pass *pass,
			    const struct nm_event *e)
{
	const struct nm_pkt *pkt = container_of(e, const struct nm_pkt, post);

	return pass->core->config.offload != 0 && e->kind == NM_POST_PKT &&
	       !pass->polls && !pkt->now &&
	       pkt->length >= pass->core->config.offload && piom_any_idle();
}

static void carry_out(struct nm_pass *pass, struct nm_news *news)
{
	struct base_mpsc_node *n;

	/* Before we copy, so that he does so beside us. */
	if (unlikely(pass->kick))
		piom_ltask_kick(&pass->core->ltask);
	while ((n = nm_chain_take(&pass->done)) != NULL) {
		struct nm_req *req = container_of(n, struct nm_req, node);

		if (req == news->own && req->msg != NULL)
			news->copies = true;
		else
			complete(pass->core, req);
	}
	while ((n = nm_chain_take(&pass->release)) != NULL) {
		struct nm_pkt_in *in =
			container_of(n, struct nm_pkt_in, event.node);

		if (unlikely(in->event.kind == NM_EVENT_PART_IN))
			nm_medium_copy(in);
		in->link->rail->driver->release(in->link->rail, in);
	}
	while ((n = nm_chain_take(&pass->posts)) != NULL) {
		struct nm_event *e = container_of(n, struct nm_event, node);
		struct nm_rail *rail = nm_post_rail(e);

		if (unlikely(is_left_to_idle(pass, e))) {
			nm_rail_push(&rail->lock, &e->node);
			piom_ltask_kick(&pass->core->ltask);
		} else {
			nm_rail_run(rail, e, is_for_itself(rail), news);
		}
	}
	complete_sent(pass->core, news);
}

/* Whoever polls: the ltask may have been at rest. */
static void kick(struct nm_core *core, struct nm_news *news)
{
	if (likely(!news->kick))
		return;
	news->kick = false;
	piom_ltask_kick(&core->ltask);
}

/* The core is busy: leave all to its holder. False: there was nothing. */
BASE_INLINE bool leave_to_holder(struct nm_core *core, struct nm_news *news,
				 struct nm_req *req)
{
	bool left = req != NULL || news->events.first != NULL || news->hungry;
	struct base_mpsc_node *n;

	while ((n = nm_chain_take(&news->events)) != NULL)
		nm_core_push(&core->lock.events, n);
	if (news->hungry)
		nm_core_ask(&core->lock, NM_WISH_TURN);
	news->hungry = false;
	if (req != NULL)
		nm_core_push(&core->lock.submit, &req->node);
	return left;
}

/* Release, under any scheme, and go on. True: the caller must enter again. */
static bool finish(struct nm_pass *pass, struct nm_news *news)
{
	struct nm_core *core = pass->core;
	bool again;

	if (core->lock.scheme == NM_LOCK_COARSE)
		drive_all(pass, news);
	again = nm_core_end(&core->lock);
	carry_out(pass, news);
	kick(core, news);
	return again || news->events.first != NULL || news->hungry;
}

/* But for `deferred`, for who has found the core busy or not alone. */
static BASE_COLD bool run_waiting(struct nm_core *core, struct nm_news *news,
				  struct nm_req *req, bool polls)
{
	struct nm_pass pass;
	bool again, entered = false;

	nm_core_check_lost(&core->lock);
	do {
		bool busy, got = nm_core_wait(&core->lock, news->waits, &busy);

		if (busy)
			nm_count_shared(&core->stats.lock_busy);
		if (!got) {
			again = leave_to_holder(core, news, req);
			req = NULL;
			continue;
		}
		nm_count(&core->stats.lock_taken);
		entered = true;
		news->hungry = false;
		pass_init(&pass, core, polls);
		decide(&pass, news, req);
		req = NULL;
		again = finish(&pass, news);
	} while (again);
	return entered;
}

bool nm_core_run(struct nm_core *core, struct nm_news *news, struct nm_req *req)
{
	bool polls = req == NULL;
	struct nm_pass pass;
	bool again, entered = false;

	do {
		if (!nm_core_enter(&core->lock)) {
			if (unlikely(core->lock.scheme != NM_LOCK_DEFERRED)) {
				entered |= run_waiting(core, news, req, polls);
				break;
			}
			nm_count_shared(&core->stats.lock_busy);
			again = leave_to_holder(core, news, req);
			req = NULL;
			continue;
		}
		nm_count(&core->stats.lock_taken);
		entered = true;
		news->hungry = false;
		pass_init(&pass, core, polls);
		decide(&pass, news, req);
		req = NULL;
		again = nm_core_leave(&core->lock);
		carry_out(&pass, news);
		kick(core, news);
	} while (again || news->events.first != NULL || news->hungry);
	nm_calls_look(core);
	return entered;
}

/* The caller's frame holds news from here until base_unpin(). */
static inline void pin(struct nm_core *core, struct nm_news *news)
{
	bool waits = core->lock.scheme != NM_LOCK_DEFERRED && !base_is_pinned();

	base_pin();
	nm_news_init(news, waits);
}

void nm_core_submit(struct nm_core *core, struct nm_req *req)
{
	struct nm_news news;
	bool large = req->data.length > NM_KICK_BYTES;

	pin(core, &news);
	news.own = req;
	news.copies = false;
	nm_core_run(core, &news, req);
	base_unpin();
	if (unlikely(news.copies))
		complete(core, req);
	if (unlikely(load_relaxed(&core->low) != 0) && !base_in_handler())
		nm_core_refill(core, false);
	/* Large messages take several steps; somebody idle may take them. */
	if (unlikely(large) && load_relaxed(&core->pending) != 0)
		piom_ltask_kick(&core->ltask);
}

/*
 * Whether the rail must be owned and polled. Most often nothing has come, and
 * then two loads say so; every now and then it is polled all the same, for
 * what a driver does besides.
 */
static bool is_due(struct nm_rail *rail)
{
	const struct nm_driver *driver = rail->driver;
	uint32_t skipped;

	if (!nm_rail_is_quiet(rail))
		return true;
	if (driver->caps & NM_CAP_SELF)
		return false;
	if (driver->peek == NULL || driver->peek(rail))
		return true;
	skipped = load_relaxed(&rail->skipped) + 1;
	store_relaxed(&rail->skipped, skipped % POLL_EVERY);
	return skipped == POLL_EVERY;
}

void nm_core_hurry(struct nm_core *core)
{
	struct nm_news news;

	/* Who is inside may be about to let gather what we have left him. */
	if (likely(load_relaxed(&core->bursting) == 0 &&
		   load_relaxed(&core->lock.held) != NM_LOCK_HELD))
		return;
	nm_core_ask(&core->lock, NM_WISH_POLL);
	pin(core, &news);
	nm_core_run(core, &news, NULL);
	base_unpin();
}

/* Of the rails that are polled, a bit each. */
static unsigned which_are_due(struct nm_core *core)
{
	unsigned due = 0;

	for (int i = 0; i < core->npolled; i++)
		due |= (unsigned)is_due(core->polled[i]) << i;
	return due;
}

static bool poll_rails(struct nm_core *core, unsigned due)
{
	struct nm_news news;
	bool moved = false;

	pin(core, &news);
	for (; due != 0; due &= due - 1)
		moved |= nm_rail_run(core->polled[__builtin_ctz(due)], NULL,
				     true, &news);
	complete_sent(core, &news);
	if (news.events.first != NULL || news.hungry ||
	    !nm_core_is_heeded(&core->lock))
		moved |= nm_core_run(core, &news, NULL);
	kick(core, &news);
	base_unpin();
	return moved;
}

bool nm_core_progress(struct nm_core *core)
{
	unsigned due = which_are_due(core);
	bool moved = false;

	if (due != 0 || !nm_core_is_heeded(&core->lock))
		moved = poll_rails(core, due);
	if (load_relaxed(&core->bursting) != 0)
		nm_core_hurry(core);
	if (unlikely(nm_calls_are_due(core)))
		moved |= nm_calls_make(core);
	return moved;
}

bool nm_core_is_quiet(struct nm_core *core)
{
	if (load_relaxed(&core->pending) != 0 ||
	    !nm_core_is_heeded(&core->lock) || nm_calls_are_due(core) ||
	    load_relaxed(&core->calls.held) != 0)
		return false;
	for (int i = 0; i < core->npolled; i++)
		if (!nm_rail_is_quiet(core->polled[i]))
			return false;
	return true;
}

/* --- nobody polls any more --- */

/* Once is enough, until the next arming: then the rail is looked at anyhow. */
void nm_core_nudge(struct nm_core *core)
{
	if (load_relaxed(&core->nudged) == 0 &&
	    xchg_relaxed(&core->nudged, 1) == 0)
		eventfd_write(core->event, 1);
}

/* Who owned a rail meanwhile may have looked before, or not at all. */
void nm_core_look(struct nm_core *core)
{
	nm_core_progress(core);
	for (int i = 0; i < core->npolled; i++) {
		struct nm_rail *rail = core->polled[i];

		if (rail->driver->peek != NULL && rail->driver->peek(rail))
			nm_core_nudge(core);
	}
}

/*
 * Each rail promises that what comes makes its descriptor readable. What we
 * give it later, in whatever thread, is looked at by who gives it:
 * nm_rail_run() nudges if it must be polled for. `nudged` is cleared before we
 * own the rails: who has owned one before us, and did not nudge because of it,
 * has left it busy, which we see; who owns one after us sees it cleared.
 */
int nm_core_arm(struct nm_core *core)
{
	struct nm_news news;
	eventfd_t times;
	int rc = 0;

	/* Who has said it may not have written: then that is yet to come. */
	if (load_relaxed(&core->nudged) != 0 &&
	    eventfd_read(core->event, &times) == 0)
		store_relaxed(&core->nudged, 0);
	pin(core, &news);
	for (int i = 0; i < core->npolled && rc == 0; i++)
		rc = nm_rail_arm(core->polled[i], &news);
	complete_sent(core, &news);
	if (news.events.first != NULL || news.hungry ||
	    !nm_core_is_heeded(&core->lock)) {
		nm_core_run(core, &news, NULL);
		rc = -EAGAIN;
	}
	base_unpin();
	if (load_relaxed(&core->bursting) != 0) {
		nm_core_hurry(core);
		rc = -EAGAIN;
	}
	if (unlikely(nm_calls_are_due(core))) {
		nm_calls_make(core);
		rc = -EAGAIN;
	}
	return rc;
}

/* --- waiting for the lock: nothing else of nmad's is held --- */

void nm_core_lock(struct nm_core *core)
{
	unsigned turn = 0;

	for (base_pin(); !nm_core_try(&core->lock); base_pin()) {
		base_unpin();
		nm_core_check_lost(&core->lock);
		nm_count_shared(&core->stats.lock_busy);
		base_spin_turn(&turn);
	}
	nm_count(&core->stats.lock_taken);
}

void nm_core_settle(struct nm_core *core, struct nm_pass *pass)
{
	pass_init(pass, core, true);
	decide(pass, NULL, NULL);
}

void nm_core_unlock(struct nm_core *core, struct nm_pass *pass)
{
	struct nm_news news;

	nm_news_init(&news, false);
	if (!base_list_is_empty(&core->active))
		nm_out_form(pass);
	if (finish(pass, &news))
		nm_core_run(core, &news, NULL);
	base_unpin();
	nm_calls_look(core);
}

void nm_core_refill(struct nm_core *core, bool answered)
{
	struct nm_pass pass;

	nm_core_lock(core);
	nm_core_settle(core, &pass);
	if (answered)
		core->refill_asked = false;
	nm_count(&core->stats.refills);
	if (nm_match_reserve(&core->match, ROOM_MORE) == 0) {
		store_relaxed(&core->low, 0);
		nm_submit_resume(&pass);
		nm_in_resume(&pass);
		/* Perhaps nobody else comes who would see it. */
		if (unlikely(core->match.is_low))
			want_memory(core);
	}
	nm_core_unlock(core, &pass);
}
