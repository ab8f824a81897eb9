/*
 * nmad/drivers/shm/ring.h: two peers fill one ring: each packet arrives once
 * and whole, in its sender's order, and no slot is written while it is read.
 *
 * covers: ring, ring-free
 */
#include "explore.h"

#include "../../nmad/drivers/shm/ring.h"

enum { SLOTS = 8, SENDERS = 2 };

static ATOMIC(uint64_t) head, tail, claim[SLOTS];
static struct shm_slot slot[SLOTS];
static struct shm_ring_rx rx;
static struct shm_ring_tx tx[SENDERS];
static int sent[SENDERS], received[SENDERS];

/* Setup has used the ring before: `used` packets of sender 1 went through. */
static void set_up(int used)
{
	struct shm_ring ring = { (void *)&head, (void *)&tail, (void *)claim,
				 slot, SLOTS };
	unsigned word;
	uint64_t t = 0;

	explore_name(&head, sizeof(head), "head");
	explore_name(&tail, sizeof(tail), "tail");
	explore_name(claim, sizeof(claim), "claim");
	for (int i = 0; i < SLOTS; i++)
		explore_name(&slot[i], sizeof(slot[i]), "slot %d", i);
	shm_ring_rx_init(&rx, ring);
	for (int i = 0; i < SENDERS; i++)
		shm_ring_tx_init(&tx[i], ring, (uint32_t)i, SLOTS);
	for (int i = 0; i < used; i++) {
		shm_ring_claim(&tx[1], &t);
		shm_ring_fill(&tx[1], t, 0, 1);
		shm_ring_peek(&rx, &word);
		shm_ring_pop(&rx);
	}
}

static bool send_one(int who)
{
	uint64_t t;

	if (!shm_ring_claim(&tx[who], &t))
		return false;
	shm_ring_slot(&tx[who], t)->data[0] = (unsigned char)sent[who];
	sent[who]++;
	shm_ring_fill(&tx[who], t, 1, 1);
	return true;
}

static void sender(void *arg)
{
	send_one((int)(intptr_t)arg);
	send_one((int)(intptr_t)arg);
}

static bool receive_one(void)
{
	unsigned word;
	struct shm_slot *s = shm_ring_peek(&rx, &word);

	if (s == NULL)
		return false;
	explore_check(shm_ring_kind(word) == 1 && shm_ring_length(word) == 1);
	explore_check(s->data[0] == received[s->rank]);
	received[s->rank]++;
	shm_ring_pop(&rx);
	return true;
}

static void receiver(void *arg)
{
	receive_one();
	receive_one();
}

static void all_came(void)
{
	while (receive_one())
		;
	for (int i = 0; i < SENDERS; i++)
		explore_check(received[i] == sent[i]);
}

EXPLORE(packets_come_whole_and_in_order)
{
	set_up(0);
	explore_spawn("sender 0", sender, (void *)0);
	explore_spawn("sender 1", sender, (void *)1);
	explore_spawn("receiver", receiver, NULL);
	explore_finish(all_came);
}

/* The ring is full; a slot is free when the receiver has read it. */
static void send_if_there_is_room(void *arg)
{
	send_one(0);
	send_one(0);
}

EXPLORE(a_slot_is_reused_when_it_has_been_read)
{
	set_up(3);
	for (int i = 0; i < SLOTS; i++)
		explore_check(send_one(1));
	explore_check(!send_one(0));
	explore_spawn("sender", send_if_there_is_room, NULL);
	explore_spawn("receiver", receiver, NULL);
	explore_finish(all_came);
}
