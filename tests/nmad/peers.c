/*
 * One process or two that use nmad as programs do.
 */
#include "peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pattern.h"

const char *current = "";
struct nm_session *session;
uint64_t session_id = 100, same_random_stream;
struct nm_gate *peer;

void peers_failed(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: rank %d: %s does not hold (%s)\n", file, line,
		nm_rank(), what, current);
	nm_abort(1, "a test failed");
}

uint64_t same_random(void)
{
	uint64_t z = same_random_stream += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Of the message with this number, from this rank. */
static uint64_t pattern_of(uint32_t number, int rank)
{
	return (uint64_t)number << 8 | (unsigned)rank;
}

void paint(unsigned char *p, size_t bytes, uint32_t number)
{
	pattern(pattern_of(number, nm_rank()), p, bytes);
}

bool is_painted(const unsigned char *p, size_t bytes, uint32_t number, int rank)
{
	return is_pattern(pattern_of(number, rank), p, bytes);
}

/* --- one message at a time --- */

/* Of all priorities: nothing that is asked here depends on them. */
void isend_bytes(struct nm_sr_request *req, nm_tag_t tag, const void *data,
		 size_t bytes, unsigned flags)
{
	struct nm_data d = nm_data_flat(data, bytes);

	MUST(nm_sr_isend_priority(session, peer, tag, &d, flags,
				  (int)(tag % 16) + NM_PRIORITY_MIN, req) == 0);
}

void irecv_bytes(struct nm_sr_request *req, struct nm_gate *from, nm_tag_t tag,
		 nm_tag_t mask, void *data, size_t bytes)
{
	struct nm_data d = nm_data_flat(data, bytes);

	MUST(nm_sr_irecv(session, from, tag, mask, &d, req) == 0);
}

struct nm_sr_status wait_for(struct nm_sr_request *req)
{
	struct nm_sr_status status;

	nm_sr_wait(req);
	MUST(nm_sr_is_complete(req));
	nm_sr_status(req, &status);
	return status;
}

void meet(nm_tag_t tag)
{
	struct nm_sr_request out, in;

	irecv_bytes(&in, peer, tag, NM_TAG_EXACT, NULL, 0);
	isend_bytes(&out, tag, NULL, 0, 0);
	MUST(wait_for(&out).error == 0);
	MUST(wait_for(&in).error == 0);
}

/* --- start and end --- */

static void finish(void)
{
	current = "the end";
	MUST(nm_exit() == 0);
}

/* Rank 0 tells its seed. */
static void share_seed(void)
{
	uint64_t *seed = &same_random_stream;
	struct nm_sr_request req;

	*seed = check_random();
	if (nm_size() == 1)
		return;
	MUST(nm_session_open(99, &session) == 0);
	if (nm_rank() == 0)
		isend_bytes(&req, 0, seed, sizeof(*seed), 0);
	else
		irecv_bytes(&req, peer, 0, NM_TAG_EXACT, seed, sizeof(*seed));
	MUST(wait_for(&req).error == 0);
	MUST(nm_session_close(session) == 0);
}

static void setup(void)
{
	static bool started;

	if (!started) {
		started = true;
		MUST(nm_init() == 0);
		MUST(nm_size() <= 2);
		/* One process speaks TAP. */
		if (nm_rank() > 0)
			MUST(dup2(STDERR_FILENO, STDOUT_FILENO) >= 0);
		peer = nm_gate_of(nm_size() - 1 - nm_rank());
		MUST(peer != NULL);
		share_seed();
		atexit(finish);
	}
	MUST(nm_session_open(++session_id, &session) == 0);
}

static void teardown(void)
{
	meet(0xfffffff0);
	MUST(nm_session_close(session) == 0);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}
