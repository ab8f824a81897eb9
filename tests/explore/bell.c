/*
 * nmad/drivers/shm/bell.h: a receiver that sleeps is woken by whoever fills a
 * slot of its ring, however the two meet, whether it sleeps for the first time
 * or has just changed its mind, and though others have rung meanwhile.
 *
 * covers: doorbell
 */
#include "explore.h"

#include "../../nmad/drivers/shm/bell.h"

enum { SLOTS = 8, SENDERS = 2 };

static ATOMIC(uint64_t) head, tail, claim[SLOTS];
static struct shm_slot slot[SLOTS];
static struct shm_ring_rx rx;
static struct shm_ring_tx tx[SENDERS];
static struct shm_bell bell;
static ATOMIC(uint32_t) bytes; /* in the pipe */
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

/* As nm_shm_bell_arm(): the pipe is emptied, then it is set. */
static void receiver(void *arg)
{
	while (poll_all(), received < wanted) {
		xchg_relaxed(&bytes, 0);
		if (shm_bell_set(&bell, &rx))
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
	shm_bell_set(&bell, &rx);
	receiver(arg);
}

EXPLORE(a_bell_that_was_set_in_vain_loses_nothing)
{
	set_up(2, false);
	explore_spawn("receiver", changes_its_mind, NULL);
	explore_spawn("sender 0", sender, (void *)0);
	explore_spawn("sender 1", sender, (void *)1);
}
