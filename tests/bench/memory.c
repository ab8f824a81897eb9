/*
 * Memory that N requests cost the receiver beside what the program itself holds
 * for them, its requests and buffers: by the growth of the process's
 * resident memory, and by nmad's account, of its blocks and of the indexes of
 * its match tables. tests/bench/mpi/memory.c does the same through MPI.
 *
 *   posted_same, posted_tags           receives, all of one tag or a tag each
 *   unexpected_same, unexpected_tags   messages that nobody has asked for
 *
 *   mpirun -n 2 bench_memory PATTERN N [BYTES]       bytes of a message; 1
 */
#include <string.h>

#include <nmad/nmad.h>

#include "../../nmad/core/core.h"
#include "measure.h"

enum { WARM = 1000, TOKEN = 1 << 30 };

struct memory {
	double resident, blocks, tables; /* bytes */
};

static struct nm_session *session;
static struct nm_gate *peer;
static struct nm_sr_request *reqs;
static char *buf;
static size_t length = 1;
static bool tags, unexpected;

static struct memory memory_now(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	struct memory m = { .blocks = (double)nm_core_self->mem.taken };
	const struct nm_match *match = &nm_core_self->match;
	double more;
	char line[256];

	must(f != NULL, "/proc/self/status");
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "RssAnon: %lf", &more) == 1 ||
		    sscanf(line, "RssShmem: %lf", &more) == 1)
			m.resident += more;
	fclose(f);
	m.resident *= 1024;
	for (int i = 0; i < NM_MATCH_TABLES; i++) {
		const struct base_hash *h = &match->tables[i];

		m.tables += (double)(h->now.size + h->old.size) *
			    sizeof(struct base_hash_slot);
	}
	return m;
}

static struct nm_data data_of(long i)
{
	return nm_data_flat(&buf[(size_t)i * length], length);
}

static nm_tag_t tag_of(long i)
{
	return tags ? (nm_tag_t)i : 0;
}

static void send_all(long n)
{
	for (long i = 0; i < n; i++) {
		struct nm_data d = data_of(i);

		buf[(size_t)i * length] = (char)i;
		nm_sr_isend(session, peer, tag_of(i), &d, 0, &reqs[i]);
	}
}

static void post_all(long n)
{
	for (long i = 0; i < n; i++) {
		struct nm_data d = data_of(i);

		nm_sr_irecv(session, peer, tag_of(i), NM_TAG_EXACT, &d,
			    &reqs[i]);
	}
}

/* A message by which the other one is told to go on. */
static void token(int from)
{
	struct nm_data d = nm_data_flat(NULL, 0);

	if (nm_rank() == from)
		nm_sr_send(session, peer, TOKEN, &d, 0);
	else
		nm_sr_recv(session, peer, TOKEN, NM_TAG_EXACT, &d, NULL);
}

/* What the receiver's memory has grown by while all were there. */
static struct memory once(long n)
{
	struct memory before = memory_now(), now = before;

	if (nm_rank() == 0) {
		if (!unexpected)
			token(1);
		send_all(n);
		if (unexpected)
			token(0);
	} else if (unexpected) {
		token(0); /* behind all others */
		now = memory_now();
		post_all(n);
	} else {
		post_all(n);
		now = memory_now();
		token(1);
	}
	for (long i = 0; i < n; i++) {
		nm_sr_wait(&reqs[i]);
		must(nm_rank() == 0 || buf[(size_t)i * length] == (char)i,
		     "not what was sent");
	}
	now.resident -= before.resident;
	now.blocks -= before.blocks;
	now.tables -= before.tables;
	return now;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 0;
	struct memory grown;

	if (argc > 3)
		length = strtoul(argv[3], NULL, 10);
	must(n > 0 && length > 0, "memory PATTERN N [BYTES]");
	unexpected = strncmp(argv[1], "unexpected", 10) == 0;
	tags = strstr(argv[1], "_tags") != NULL;
	must(nm_init() == 0 && nm_size() == 2, "nm_init, 2 ranks");
	peer = nm_gate_of(!nm_rank());
	must(nm_session_open(1, &session) == 0, "nm_session_open");
	reqs = malloc(sizeof(*reqs) * (size_t)n);
	buf = malloc(length * (size_t)n);
	must(reqs != NULL && buf != NULL, "malloc");
	memset(reqs, 1, sizeof(*reqs) * (size_t)n);
	memset(buf, -1, length * (size_t)n);
	once(n < WARM ? n : WARM);
	grown = once(n);
	if (nm_rank() == 1)
		printf("%s %.1f bytes\n%s_blocks %.1f bytes\n"
		       "%s_tables %.1f bytes\n",
		       argv[1], grown.resident / (double)n, argv[1],
		       grown.blocks / (double)n, argv[1],
		       grown.tables / (double)n);
	free(buf);
	free(reqs);
	nm_session_close(session);
	return nm_exit() < 0;
}
