/*
 * nmad/drivers/shm/bell.h: a receiver that sleeps is woken by whoever fills a
 * slot of its ring, however the two meet, whether it sleeps for the first time
 * or has just changed its mind, and though others have rung meanwhile; and a
 * sender that sleeps for want of room is woken by who makes some. So is one
 * whose packet lies behind that of a sender who would wake nobody.
 *
 * covers: doorbell, followed, room
 */
#include "explore.h"

#include "../../nmad/drivers/shm/bell.h"

enum { SLOTS = 8, SENDERS = 2 };

typedef ATOMIC(uint32_t) pipe_t;

static ATOMIC(uint64_t) head, tail, claim[SLOTS];
static struct shm_slot slot[SLOTS];
static struct shm_ring_rx rx;
static struct shm_ring_tx tx[SENDERS];
static struct shm_bell bell;
static pipe_t bytes; /* in the pipe */
static int received, wanted;

/* load_newest_light() is what the barrier makes of it. */
bool nm_shm_bell_barrier(void)
{
	return true;
}

static void set_up(int packets, bool light)
{
	struct shm_ring ring = { (void *)&head, (void *)&tail, (void *)claim,
				 slot, SLOTS };

	explore_name(&head, sizeof(head), "head");
	explore_name(&tail, sizeof(tail), "tail");
	explore_name(claim, sizeof(claim), "claim");
	explore_name(slot, sizeof(slot), "slots");
	explore_name(&bell.asleep, sizeof(bell.asleep), "asleep");
	explore_name(&bytes, sizeof(bytes), "pipe");
	shm_ring_rx_init(&rx, ring);
	for (int i = 0; i < SENDERS; i++)
		shm_ring_tx_init(&tx[i], ring, (uint32_t)i, SLOTS);
	bell.barrier = light;
	wanted = packets;
}

/* A sender looks at `asleep` in the cheap way, or pays. */
static void send_one(int who)
{
	uint64_t t;

	explore_check(shm_ring_claim(&tx[who], &t));
	shm_ring_slot(&tx[who], t)->data[0] = 1;
	shm_ring_fill(&tx[who], t, 1, 1);
	if (!shm_bell_is_wanted(&bell, bell.barrier) || !shm_bell_take(&bell))
		return;
	fetch_add_relaxed(&bytes, 1);
	explore_wake(&bytes, 1);
}

static void sender(void *arg)
{
	send_one((int)(intptr_t)arg);
}

static void sends_two(void *arg)
{
	send_one(0);
	send_one(0);
}

static void poll_all(void)
{
	unsigned word;

	while (shm_ring_peek(&rx, &word) != NULL) {
		shm_ring_pop(&rx);
		received++;
	}
}

/* As nm_shm_bell_set(): the pipe is emptied, then it is set. */
static void receiver(void *arg)
{
	while (poll_all(), received < wanted) {
		xchg_relaxed(&bytes, 0);
		shm_bell_set(&bell);
		if (shm_bell_look(&bell, &rx))
			explore_wait_while(&bytes, 0);
	}
}

EXPLORE(who_fills_a_slot_wakes_the_sleeper)
{
	set_up(1, true);
	explore_spawn("receiver", receiver, NULL);
	explore_spawn("sender", sender, (void *)0);
}

EXPLORE(who_has_no_barrier_pays_for_it_himself)
{
	set_up(1, false);
	explore_spawn("receiver", receiver, NULL);
	explore_spawn("sender", sender, (void *)0);
}

EXPLORE(two_senders_ring_once_and_neither_is_lost)
{
	set_up(2, true);
	explore_spawn("receiver", receiver, NULL);
	explore_spawn("sender 0", sender, (void *)0);
	explore_spawn("sender 1", sender, (void *)1);
}

EXPLORE(a_second_packet_finds_the_receiver_awake_or_wakes_it)
{
	set_up(2, false);
	explore_spawn("receiver", receiver, NULL);
	explore_spawn("sender", sends_two, NULL);
}

/* It was set, a packet was there, it was taken back. */
static void changes_its_mind(void *arg)
{
	shm_bell_set(&bell);
	shm_bell_look(&bell, &rx);
	receiver(arg);
}

EXPLORE(a_bell_that_was_set_in_vain_loses_nothing)
{
	set_up(2, false);
	explore_spawn("receiver", changes_its_mind, NULL);
	explore_spawn("sender 0", sender, (void *)0);
	explore_spawn("sender 1", sender, (void *)1);
}

/* --- a sender who tells nobody, for nobody waits for what he sends --- */

static bool heard; /* the other one */

static void sends_silently(void *arg)
{
	uint64_t t;

	explore_check(shm_ring_claim(&tx[0], &t));
	shm_ring_fill(&tx[0], t, 1, 1);
	if (!shm_ring_is_followed(&tx[0], t) ||
	    !shm_bell_is_wanted(&bell, bell.barrier) || !shm_bell_take(&bell))
		return;
	fetch_add_relaxed(&bytes, 1);
	explore_wake(&bytes, 1);
}

static void poll_for_other(void)
{
	struct shm_slot *s;
	unsigned word;

	while ((s = shm_ring_peek(&rx, &word)) != NULL) {
		heard |= s->rank == 1;
		shm_ring_pop(&rx);
	}
}

static void waits_for_other(void *arg)
{
	while (poll_for_other(), !heard) {
		xchg_relaxed(&bytes, 0);
		shm_bell_set(&bell);
		if (shm_bell_look(&bell, &rx))
			explore_wait_while(&bytes, 0);
	}
}

EXPLORE(who_tells_nobody_tells_for_those_behind_him)
{
	set_up(2, true);
	heard = false;
	explore_spawn("receiver", waits_for_other, NULL);
	explore_spawn("silent", sends_silently, NULL);
	explore_spawn("sender", sender, (void *)1);
}

/* --- room --- */

static struct {
	struct shm_bell bell;
	struct shm_note note;
	struct shm_ring_rx rx; /* nothing comes */
	struct shm_slot slot;
	ATOMIC(uint64_t) head, tail, claim[1];
	pipe_t bytes;
} hungry;

/* The ring of two slots is full. */
static void set_up_full(bool light)
{
	struct shm_ring ring = { (void *)&hungry.head, (void *)&hungry.tail,
				 (void *)hungry.claim, &hungry.slot, 1 };
	uint64_t t;

	set_up(3, light);
	explore_name(&bell.hungry, sizeof(bell.hungry), "hungry");
	explore_name(&hungry, sizeof(hungry), "the sender's");
	shm_ring_rx_init(&hungry.rx, ring);
	hungry.bell.barrier = light;
	ring = rx.ring;
	ring.nslots = 2;
	shm_ring_rx_init(&rx, ring);
	shm_ring_tx_init(&tx[0], ring, 0, 2);
	for (int i = 0; i < 2; i++) {
		explore_check(shm_ring_claim(&tx[0], &t));
		shm_ring_fill(&tx[0], t, 1, 1);
	}
}

static void ring(struct shm_bell *b, pipe_t *pipe)
{
	if (!shm_bell_is_wanted(b, bell.barrier) || !shm_bell_take(b))
		return;
	fetch_add_relaxed(pipe, 1);
	explore_wake(pipe, 1);
}

/* As shm_arm(). */
static void falls_asleep_hungry(void)
{
	xchg_relaxed(&hungry.bytes, 0);
	shm_bell_set(&hungry.bell);
	shm_bell_hunger(&bell, &hungry.note);
}

static void sends_a_third(void *arg)
{
	uint64_t t;

	while (!shm_ring_claim(&tx[0], &t)) {
		falls_asleep_hungry();
		if (!shm_bell_look(&hungry.bell, &hungry.rx))
			continue;
		if (shm_ring_has_room(&tx[0]))
			shm_bell_unset(&hungry.bell);
		else
			explore_wait_while(&hungry.bytes, 0);
	}
	shm_ring_fill(&tx[0], t, 1, 1);
	ring(&bell, &bytes);
}

static void feed(void)
{
	if (!shm_bell_is_hungry(&bell, bell.barrier))
		return;
	shm_bell_feed(&bell);
	if (load_relaxed(&hungry.note.hungry) != 0)
		ring(&hungry.bell, &hungry.bytes);
}

/* As shm_poll() and shm_arm(). */
static void makes_room(void *arg)
{
	while (poll_all(), received < wanted) {
		feed();
		xchg_relaxed(&bytes, 0);
		shm_bell_set(&bell);
		if (!shm_bell_look(&bell, &rx))
			continue;
		if (shm_bell_is_hungry(&bell, bell.barrier))
			shm_bell_unset(&bell);
		else
			explore_wait_while(&bytes, 0);
	}
}

EXPLORE(who_sleeps_for_want_of_room_is_woken_for_it)
{
	set_up_full(true);
	explore_spawn("receiver", makes_room, NULL);
	explore_spawn("sender", sends_a_third, NULL);
}

EXPLORE(without_barriers_too)
{
	set_up_full(false);
	explore_spawn("receiver", makes_room, NULL);
	explore_spawn("sender", sends_a_third, NULL);
}

/* --- a buffer, which comes back later than its packet was taken --- */

static ATOMIC(uint32_t) busy; /* the buffer's */

static void needs_a_buffer(void *arg)
{
	while (load_acquire(&busy)) {
		falls_asleep_hungry();
		if (!shm_bell_look(&hungry.bell, &hungry.rx))
			continue;
		if (!load_acquire(&busy))
			shm_bell_unset(&hungry.bell);
		else
			explore_wait_while(&hungry.bytes, 0);
	}
}

/* It polls, then the packet is released: as shm_release(), and the next poll.*/
static void gives_it_back(void *arg)
{
	feed();
	store_release(&busy, 0);
	feed();
}

static void set_up_busy(bool light)
{
	set_up_full(light);
	explore_name(&busy, sizeof(busy), "busy");
	store_relaxed(&busy, 1);
}

EXPLORE(who_was_rung_too_early_is_rung_again)
{
	set_up_busy(true);
	explore_spawn("receiver", gives_it_back, NULL);
	explore_spawn("sender", needs_a_buffer, NULL);
}

EXPLORE(who_was_rung_too_early_is_rung_again_without_barriers)
{
	set_up_busy(false);
	explore_spawn("receiver", gives_it_back, NULL);
	explore_spawn("sender", needs_a_buffer, NULL);
}
