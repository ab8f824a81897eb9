/*
 * nmad/drivers/shm: the words by which two processes share a large transfer
 * and a lent buffer, and say goodbye. Both "processes" are threads here; the
 * segment is the same memory for both.
 *
 * covers: shm-account, shm-buf, shm-head, shm-left, shm-pkt, shm-tail
 */
#include "explore.h"

#include <stdlib.h>

#include "../../nmad/drivers/shm/large.c"
#include "../../nmad/drivers/shm/shm.c"

enum { SENDER, RECEIVER, SIDES, BLOCKS = 3, CHUNKS = SHM_DEPTH + 2 };

/* Each side's own; the transfers are in the receiver's. Not put back. */
static struct shm_seg *segs[SIDES], *seg;
static struct shm shms[SIDES];
static struct shm_peer peers[SIDES]; /* of the side, the other one */
static struct nm_link channels[SIDES];
static struct nm_xfer xfers[SIDES];
static bool over[SIDES];
static int source[CHUNKS], target[CHUNKS];

__attribute__((constructor)) static void make_segments(void)
{
	for (int side = 0; side < SIDES; side++) {
		segs[side] = calloc(1, sizeof(*seg) + 64);
		if (segs[side] == NULL)
			abort();
	}
	seg = segs[RECEIVER];
}

/* --- what surrounds it --- */

static int side_of(const struct nm_xfer *x)
{
	return (int)(x - xfers);
}

/* The user's memory is his again. */
void nm_rail_xfer_done(struct nm_rail *rail, struct nm_xfer *x, int status)
{
	over[side_of(x)] = true;
	for (int i = 0; i < CHUNKS; i++) {
		if (side_of(x) == SENDER)
			source[i] = -1;
		else if (i < (int)x->length)
			explore_check(target[i] == 100 + i);
	}
}

static void copy(int i)
{
	target[i] = source[i];
}

int nm_shm_cma_move(struct nm_xfer *x, size_t offset, size_t length,
		    uint64_t remote, bool push)
{
	for (size_t i = offset; i < offset + length; i++)
		copy((int)i);
	return 0;
}

/* A chunk holds the number of what was put there. */
void nm_data_copy_out_on(const struct nm_data *data,
			 struct nm_data_place *place, size_t offset, void *to,
			 size_t bytes)
{
	*(int *)to = source[offset / SHM_CHUNK];
}

void nm_data_copy_in_on(const struct nm_data *data, struct nm_data_place *place,
			size_t offset, const void *from, size_t bytes)
{
	target[offset / SHM_CHUNK] = *(const int *)from;
}

/* What the byte in the pipe is for. */
void nm_shm_bell_ring(struct shm *shm, struct shm_peer *p)
{
	if (shm_bell_take(&p->seg->bell))
		explore_wake(&p->seg->bell.asleep, 1);
}

void nm_shm_bell_self(struct shm *shm)
{
}

static struct shm_x *sx_of(int side)
{
	return (struct shm_x *)xfers[side].drv;
}

static void set_up(uint32_t nblocks, bool pipe)
{
	struct shm_ctl *ctl = &seg->ctl[0];

	store_relaxed(&ctl->claim, 0);
	store_relaxed(&ctl->error, 0);
	store_relaxed(&ctl->pulled, 0);
	store_relaxed(&ctl->pushed, 0);
	store_relaxed(&ctl->head, 0);
	store_relaxed(&ctl->tail, 0);
	store_relaxed(&ctl->left, 0);
	explore_name(&ctl->claim, 8, "claim");
	explore_name(&ctl->pulled, 4, "pulled");
	explore_name(&ctl->pushed, 4, "pushed");
	explore_name(&ctl->head, 4, "head");
	explore_name(&ctl->tail, 4, "tail");
	explore_name(&ctl->left, 4, "left");
	explore_name(seg->chunk, sizeof(seg->chunk), "chunks");
	explore_name(source, sizeof(source), "source");
	explore_name(target, sizeof(target), "target");
	shms[RECEIVER].ctls.sender[0] = &peers[RECEIVER];
	for (int i = 0; i < CHUNKS; i++)
		source[i] = 100 + i;
	for (int side = 0; side < SIDES; side++) {
		struct shm_x *sx = sx_of(side);

		base_list_init(&shms[side].active);
		shms[side].several = false;
		shms[side].seg = segs[side];
		store_relaxed(&segs[side]->bell.asleep, 0);
		peers[side].seg = segs[!side];
		peers[side].light = true;
		channels[side].conn = &peers[side];
		xfers[side].link = &channels[side];
		xfers[side].length = nblocks;
		sx->sender = side == SENDER;
		sx->pipe = pipe;
		sx->block = 1;
		sx->nblocks = nblocks;
		sx->length = pipe ? (uint64_t)nblocks * SHM_CHUNK : nblocks;
		sx->ctl = ctl;
		sx->remote = 1;
		base_list_push_back(&shms[side].active, &sx->link);
	}
}

static void run(void *arg)
{
	int side = (int)(intptr_t)arg;

	while (!over[side])
		if (!step(&shms[side], sx_of(side), BLOCKS_A_POLL))
			cpu_relax();
	if (side == SENDER)
		return;
	/* The block serves another transfer when its sender has left. */
	ctl_reap(&shms[side]);
	if (shms[side].ctls.nlinger == 0)
		explore_gone(&seg->ctl[0], sizeof(seg->ctl[0]));
}

static void both(void)
{
	explore_spawn("sender", run, (void *)SENDER);
	explore_spawn("receiver", run, (void *)RECEIVER);
}

EXPLORE(blocks_are_copied_once_by_either_side)
{
	set_up(BLOCKS, false);
	both();
}

/* As poll() and then arm() have it: who has looked in vain sleeps. */
static void run_and_sleep(void *arg)
{
	int side = (int)(intptr_t)arg;
	struct shm_bell *bell = &segs[side]->bell;

	while (!over[side]) {
		if (step(&shms[side], sx_of(side), BLOCKS_A_POLL))
			continue;
		shm_bell_set(bell);
		if (may_move(sx_of(side)))
			shm_bell_unset(bell);
		else
			explore_wait_while(&bell->asleep, 1);
	}
}

/* Without the barrier, for which explore/bell stands. */
static void both_and_sleep(uint32_t nblocks)
{
	set_up(nblocks, false);
	for (int side = 0; side < SIDES; side++) {
		peers[side].light = false;
		explore_name(&segs[side]->bell.asleep, 4, "asleep%d", side);
	}
	explore_spawn("sender", run_and_sleep, (void *)SENDER);
	explore_spawn("receiver", run_and_sleep, (void *)RECEIVER);
}

EXPLORE(who_waits_for_the_last_block_is_told)
{
	both_and_sleep(BLOCKS);
}

EXPLORE(who_may_not_copy_is_told)
{
	both_and_sleep(BLOCKS);
	sx_of(SENDER)->remote = 0;
}

EXPLORE(who_finds_all_taken_is_told)
{
	both_and_sleep(BLOCKS);
	for (int side = 0; side < SIDES; side++)
		shms[side].several = true;
}

EXPLORE(chunks_are_seen_whole)
{
	set_up(2, true);
	both();
}

EXPLORE(chunks_are_emptied_before_they_are_filled_again)
{
	set_up(CHUNKS, true);
	/* One is through; the ring is full of the next; one is to follow. */
	for (int i = 0; i < CHUNKS - 1; i++)
		*(int *)seg->chunk[0][i % SHM_DEPTH] = source[i];
	sx_of(SENDER)->mine = CHUNKS - 1;
	store_relaxed(&seg->ctl[0].tail, CHUNKS - 1);
	sx_of(RECEIVER)->mine = 1;
	store_relaxed(&seg->ctl[0].head, 1);
	target[0] = source[0];
	both();
}

/* --- a lent buffer comes back --- */

static struct nm_rail rails[SIDES];
static struct shm_pkt packet;

static void reads_and_gives_back(void *arg)
{
	packet.in.drv = &seg->back[0];
	packet.number = 1;
	explore_check(seg->buf[0][0] == 1);
	shm_release(&rails[SENDER], &packet.in);
}

static void takes_again(void *arg)
{
	if (buf_is_back(&shms[RECEIVER], 0))
		seg->buf[0][0] = 2;
}

EXPLORE(a_buffer_is_reused_when_it_has_been_read)
{
	set_up(BLOCKS, false);
	rails[SENDER].drv = &shms[SENDER];
	shms[RECEIVER].lending.holder[0] = &peers[RECEIVER];
	shms[RECEIVER].lending.number[0] = 1;
	shms[RECEIVER].lending.nlent = 1;
	peers[RECEIVER].nbufs = 1;
	store_relaxed(&seg->back[0], 0);
	seg->buf[0][0] = 1;
	explore_name(&seg->back[0], sizeof(seg->back[0]), "back");
	explore_name(&seg->buf[0], sizeof(seg->buf[0]), "buffer");
	explore_spawn("receiver", reads_and_gives_back, NULL);
	explore_spawn("owner", takes_again, NULL);
}

/* --- a received packet comes back --- */

static struct shm_pkt packets[2];

static void reads_and_releases(void *arg)
{
	explore_check(packets[0].data[0] == 1);
	shm_release(&rails[RECEIVER], &packets[0].in);
}

static void receives_again(void *arg)
{
	packet_find(&shms[RECEIVER])->data[0] = 2;
}

EXPLORE(a_packet_is_reused_when_it_has_been_read)
{
	set_up(BLOCKS, false);
	shms[RECEIVER].packets = packets;
	packets[0].data[0] = 1;
	store_relaxed(&packets[0].busy, 1);
	explore_name(packets, sizeof(packets), "packets");
	explore_spawn("reader", reads_and_releases, NULL);
	explore_spawn("rail's owner", receives_again, NULL);
}
