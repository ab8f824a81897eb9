/* drivers/shm/ring.h: what the ring promises when senders are slow or dead. */
#include "../../check.h"

#include <stdlib.h>

#include "../../../nmad/drivers/shm/ring.h"

enum { N = 16, QUOTA = 4 };

static ATOMIC(uint64_t) head, tail, claims[N];
static struct shm_slot *slots;
static struct shm_ring_rx rx;
static struct shm_ring_tx tx[8];

static void setup(void)
{
	struct shm_ring ring;

	memset(&head, 0, sizeof(head));
	memset(&tail, 0, sizeof(tail));
	memset(claims, 0, sizeof(claims));
	slots = aligned_alloc(BASE_CACHE_LINE, N * sizeof(*slots));
	memset(slots, 0, N * sizeof(*slots));
	ring.head = (void *)&head;
	ring.tail = (void *)&tail;
	ring.claim = (void *)claims;
	ring.slot = slots;
	ring.nslots = N;
	shm_ring_rx_init(&rx, ring);
	for (uint32_t r = 0; r < 8; r++)
		shm_ring_tx_init(&tx[r], ring, r, QUOTA);
}

static void teardown(void)
{
	free(slots);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

static bool send(uint32_t rank, unsigned char byte)
{
	uint64_t t;

	if (!shm_ring_claim(&tx[rank], &t))
		return false;
	shm_ring_slot(&tx[rank], t)->data[0] = byte;
	shm_ring_fill(&tx[rank], t, 1, 1);
	return true;
}

/* The byte that comes next, or -1. */
static int receive(void)
{
	unsigned word;
	struct shm_slot *s = shm_ring_peek(&rx, &word);
	int byte;

	if (s == NULL)
		return -1;
	CHECK_INT(shm_ring_kind(word), 1);
	CHECK_INT(shm_ring_length(word), 1);
	byte = s->data[0];
	shm_ring_pop(&rx);
	return byte;
}

TEST(packets_come_in_the_order_of_their_claims)
{
	uint64_t first, second;

	CHECK(shm_ring_claim(&tx[0], &first));
	CHECK(shm_ring_claim(&tx[1], &second));
	shm_ring_slot(&tx[1], second)->data[0] = 2;
	shm_ring_fill(&tx[1], second, 1, 1);
	CHECK_INT(receive(), -1); /* the first is not filled */
	shm_ring_slot(&tx[0], first)->data[0] = 1;
	shm_ring_fill(&tx[0], first, 1, 1);
	CHECK_INT(receive(), 1);
	CHECK_INT(receive(), 2);
	CHECK_INT(receive(), -1);
}

TEST(nobody_gets_more_than_his_share_and_all_get_theirs)
{
	for (uint32_t r = 0; r < N / QUOTA; r++) {
		for (int i = 0; i < QUOTA; i++)
			CHECK(send(r, (unsigned char)(r * QUOTA) + i));
		CHECK(!send(r, 0));
	}
	CHECK(!send(7, 0)); /* full */
	for (int i = 0; i < N; i++)
		CHECK_INT(receive(), i);
	CHECK_INT(receive(), -1);
	for (uint32_t r = 0; r < N / QUOTA; r++)
		CHECK(send(r, 9));
}

TEST(a_ring_goes_round_many_times_with_idle_and_busy_senders)
{
	unsigned char sent = 0, got = 0;

	for (int i = 0; i < 20 * N; i++) {
		/* Sender 5 sends rarely: its idea of the ring is old. */
		CHECK(send(i % 37 == 0 ? 5 : i % 3, sent++));
		if (i % 2) {
			CHECK_INT(receive(), got++);
			CHECK_INT(receive(), got++);
		}
	}
	CHECK_INT(receive(), -1);
	CHECK_INT(sent, got);
}

TEST(a_claimed_slot_names_its_owner_and_can_be_skipped)
{
	uint64_t t;

	CHECK(send(0, 1));
	CHECK(shm_ring_claim(&tx[3], &t)); /* and dies */
	CHECK(send(1, 2));
	CHECK_INT(shm_ring_end(&rx) - rx.head, 3);
	CHECK_INT(receive(), 1);
	CHECK_INT(receive(), -1);
	CHECK_INT(shm_ring_claimer(&rx), 3);
	shm_ring_pop(&rx);
	CHECK_INT(receive(), 2);
	CHECK_INT(shm_ring_claimer(&rx), -1);
	/* The slot serves the next ones. */
	for (int i = 0; i < 3 * N; i++) {
		CHECK(send(i % 3, (unsigned char)i));
		CHECK_INT(receive(), (unsigned char)i);
	}
}
