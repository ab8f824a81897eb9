/*
 * Large messages from rank 0 to rank 1, every byte of which is looked at, and
 * what the interfaces have carried of them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nmad/nmad.h>

enum { RAILS = 4, TAG_BODY = 1, TAG_DONE };

#define MUST(x) ((x) ? (void)0 : failed(__LINE__, #x))

static struct nm_session *session;

static void __attribute__((noreturn)) failed(int line, const char *what)
{
	fprintf(stderr, "host_rank.c:%d: rank %d: %s does not hold\n", line,
		nm_rank(), what);
	nm_abort(1, "a test failed");
}

/* --- messages whose every byte is known --- */

static void paint(unsigned char *to, size_t bytes, uint64_t number)
{
	uint64_t z = number * 0x9e3779b97f4a7c15u + 1;

	for (size_t i = 0; i < bytes; i++) {
		z = z * 6364136223846793005u + 1442695040888963407u;
		to[i] = (unsigned char)(z >> 56);
	}
}

static void check(const unsigned char *got, size_t bytes, uint64_t number)
{
	static unsigned char *want;

	want = realloc(want, bytes + 1);
	paint(want, bytes, number);
	MUST(memcmp(want, got, bytes) == 0);
}

static void isend(int to, nm_tag_t tag, const void *from, size_t bytes,
		  struct nm_sr_request *req)
{
	struct nm_data data = nm_data_flat(from, bytes);

	MUST(nm_sr_isend(session, nm_gate_of(to), tag, &data, 0, req) == 0);
}

static void irecv(int from, nm_tag_t tag, void *to, size_t bytes,
		  struct nm_sr_request *req)
{
	struct nm_data data = nm_data_flat(to, bytes);

	MUST(nm_sr_irecv(session, nm_gate_of(from), tag, NM_TAG_EXACT, &data,
			 req) == 0);
}

static int end_of(struct nm_sr_request *req)
{
	struct nm_sr_status status;

	nm_sr_wait(req);
	nm_sr_status(req, &status);
	return status.error;
}

static int send_to(int to, nm_tag_t tag, const void *from, size_t bytes)
{
	struct nm_sr_request req;

	isend(to, tag, from, bytes, &req);
	return end_of(&req);
}

static int recv_from(int from, nm_tag_t tag, void *to, size_t bytes)
{
	struct nm_sr_request req;

	irecv(from, tag, to, bytes, &req);
	return end_of(&req);
}

/* Rank 0 sends, rank 1 looks at every byte and says so at the end. */
static int pass(unsigned char *buf, size_t bytes, int n)
{
	int rc = 0;

	for (int i = 0; i < n && rc == 0; i++) {
		if (nm_rank() == 0) {
			paint(buf, bytes, (uint64_t)i);
			rc = send_to(1, TAG_BODY, buf, bytes);
		} else {
			memset(buf, 0, bytes);
			rc = recv_from(0, TAG_BODY, buf, bytes);
			if (rc == 0)
				check(buf, bytes, (uint64_t)i);
		}
	}
	if (rc == 0)
		rc = nm_rank() == 0 ? recv_from(1, TAG_DONE, NULL, 0)
				    : send_to(0, TAG_DONE, NULL, 0);
	return rc;
}

/* --- what the host says --- */

/* Bytes that have left by the interface; 0 if there is none. */
static uint64_t sent_by(int rail)
{
	uint64_t bytes = 0;
	char path[80];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/eth%d/statistics/tx_bytes",
		 rail);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	MUST(fscanf(f, "%" SCNu64, &bytes) == 1);
	fclose(f);
	return bytes;
}

/* --- what it is told to do --- */

/* How many bytes leave by which interface for so many messages. */
static void count(size_t bytes, int n)
{
	unsigned char *buf = malloc(bytes);
	uint64_t before[RAILS];

	for (int i = 0; i < RAILS; i++)
		before[i] = sent_by(i);
	MUST(pass(buf, bytes, n) == 0);
	for (int i = 0; i < RAILS && nm_rank() == 0; i++)
		printf("eth%d %" PRIu64 "\n", i, sent_by(i) - before[i]);
	free(buf);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (nm_init() < 0)
		return 4;
	MUST(nm_session_open(7, &session) == 0);
	MUST(strcmp(what, "count") == 0 && argc == 4);
	count(strtoul(argv[2], NULL, 0), atoi(argv[3]));
	MUST(nm_session_close(session) == 0);
	MUST(nm_exit() == 0);
	return 0;
}
