/*
 * nmad/core/await.h: who waits for an announced receive sees that the message
 * is there, or is woken by its sender, whether there was a place for it before
 * he waited or not.
 *
 * covers: awaited
 */
#include "explore.h"

#include "../../nmad/core/await.h"

static struct nm_awaited word;
static struct nm_await request;
static ATOMIC(uint32_t) envelope, body, rung; /* a: in place of the orders */

/* What the scenarios leave of ring and account: nothing but the words. */
static void set_up(void)
{
	explore_name(&word, sizeof(word), "word");
	explore_name(&request, sizeof(request), "request");
	explore_name(&envelope, sizeof(envelope), "envelope");
	explore_name(&body, sizeof(body), "body");
	explore_name(&rung, sizeof(rung), "rung");
}

static void tell(void)
{
	if (!nm_awaited_ask(&word))
		return;
	xchg_release(&rung, 1); /* a pipe, which orders */
	explore_wake(&rung, 1);
}

static void sends(void *arg)
{
	store_relaxed(&envelope, 1);
	tell();
	store_relaxed(&body, 1);
	tell();
}

static bool all_is_there(void)
{
	return load_relaxed(&envelope) != 0 && load_relaxed(&body) != 0;
}

/* Once it is rung it looks again. */
static void sleep_until_it_is_there(void)
{
	while (!all_is_there()) {
		explore_wait_while(&rung, 0);
		xchg_acquire(&rung, 0);
	}
}

static void waits(void *arg)
{
	nm_awaited_set(&word);
	sleep_until_it_is_there();
}

EXPLORE(who_waits_sees_it_or_is_woken)
{
	set_up();
	explore_spawn("sender", sends, NULL);
	explore_spawn("waits", waits, NULL);
}

/* --- before there is a place, or after --- */

static void announces_and_is_sent_to(void *arg)
{
	store_relaxed(&word.is, 0);
	nm_await_announce(&request, &word);
	sends(NULL);
}

static void waits_early(void *arg)
{
	if (nm_await_begin(&request))
		explore_check(load_relaxed(&word.is) == 1);
	sleep_until_it_is_there();
}

EXPLORE(who_waits_before_it_is_announced_is_woken)
{
	set_up();
	explore_spawn("announces", announces_and_is_sent_to, NULL);
	explore_spawn("waits", waits_early, NULL);
}
