/* nmad/data: messages of very many pieces, sent, received and cut. */
#include "../peers.h"

#include <errno.h>
#include <stdlib.h>

#include <nmad/stats.h>

enum { MANY = 50000, EACH = 13, COUNTERS = 64 };

/* Pieces of up to EACH bytes with gaps, some empty. */
struct many {
	unsigned char *memory;
	struct iovec list[MANY];
	struct nm_data data;
};

static struct many out, in;
static unsigned char plain[MANY * EACH];

static void cut(struct many *m)
{
	m->memory = malloc(MANY * EACH * 2);
	MUST(m->memory != NULL);
	memset(m->memory, 0xee, MANY * EACH * 2);
	for (int i = 0; i < MANY; i++) {
		m->list[i].iov_base = m->memory + i * EACH * 2;
		m->list[i].iov_len = same_random() % (EACH + 1);
	}
	m->data = nm_data_iovec(m->list, MANY);
}

/* Of so many bytes, as far as the receiver has room. */
static void exchange(size_t bytes, size_t room, nm_tag_t tag)
{
	struct nm_data from = out.data, to = in.data;
	struct nm_sr_request req[2];
	struct nm_sr_status status;

	from.length = bytes;
	to.length = room;
	paint(plain, bytes, tag);
	nm_data_copy_in(&from, 0, plain, bytes);
	MUST(nm_sr_irecv(session, peer, tag, NM_TAG_EXACT, &to, &req[1]) == 0);
	MUST(nm_sr_isend(session, peer, tag, &from, 0, &req[0]) == 0);
	status = wait_for(&req[1]);
	MUST(status.error == (room < bytes ? -EMSGSIZE : 0));
	MUST(status.length == (room < bytes ? room : bytes));
	MUST(wait_for(&req[0]).error == 0);
	nm_data_copy_out(&to, 0, plain, status.length);
	MUST(is_painted(plain, status.length, tag, nm_gate_rank(peer)));
}

/* Neither side's pieces begin or end where the other's do. */
RULE(very_many_pieces_arrive_in_very_many_others)
{
	size_t less;

	cut(&out);
	cut(&in);
	less = in.data.length < out.data.length ? in.data.length
						: out.data.length;
	exchange(less, in.data.length, 1);
	exchange(less, less, 2);
	exchange(1000, 1000, 3);
	exchange(less, less / 2, 4);
	exchange(less, 0, 5);
	for (int i = 0; i < MANY; i++)
		for (size_t k = in.list[i].iov_len; k < 2 * EACH; k++)
			MUST(((unsigned char *)in.list[i].iov_base)[k] == 0xee);
	free(out.memory);
	free(in.memory);
}

static uint64_t counted(const char *name)
{
	struct nm_counter all[COUNTERS];
	size_t n = nm_stats_read(all, COUNTERS);

	MUST(n <= COUNTERS);
	for (size_t i = 0; i < n; i++)
		if (strcmp(all[i].name, name) == 0)
			return all[i].value;
	MUST(!"a counter of this name");
	return 0;
}

/* One takes tens of kilobytes, as where memory is whole. */
RULE(there_is_no_system_call_for_every_few_pieces)
{
	uint64_t before = counted("sys_sends");
	size_t less;

	cut(&out);
	cut(&in);
	less = in.data.length < out.data.length ? in.data.length
						: out.data.length;
	exchange(less, less, 1);
	MUST(counted("sys_sends") - before < MANY / 200);
	free(out.memory);
	free(in.memory);
}
