/*
 * A rank, as a rule on one of several hosts (tools/lab/net), for hosts.c,
 * dead_host.c and others: which drivers it has chosen, what its interfaces have
 * carried, what it does when a cable is pulled. Lines that begin with "net: "
 * are orders to the lab.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/compiler.h>
#include <marcel/marcel.h>
#include <nmad/nmad.h>

#include "../../../nmad/core/core.h"

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

/* Segments that the kernel has sent again, of all connections. */
static unsigned long sent_again(void)
{
	FILE *f = fopen("/proc/net/snmp", "re");
	unsigned long n = 0;
	char line[512];

	MUST(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line,
			   "Tcp: %*d %*d %*d %*d %*d %*d %*d %*d %*d "
			   "%*d %*d %lu",
			   &n) == 1)
			break;
	fclose(f);
	return n;
}

static void order(const char *what)
{
	printf("net: %s\n", what);
	fflush(stdout);
}

/* --- what it is told to do --- */

/* Which driver leads to whom, and that messages of all sizes go that way. */
static void who(void)
{
	enum { BYTES = 300000 };
	int size = nm_size(), me = nm_rank();
	unsigned char *out = malloc(BYTES), *in = malloc(BYTES);
	char line[256];
	int n;

	n = snprintf(line, sizeof(line), "rank %d:", me);
	for (int r = 0; r < size; r++) {
		const struct nm_gate *gate = nm_gate_of(r);

		for (int i = 0; i < gate->nlinks; i++)
			n += snprintf(line + n, sizeof(line) - (size_t)n,
				      "%s%s", i == 0 ? " " : "+",
				      gate->links[i]->rail->driver->name);
	}
	puts(line);
	paint(out, BYTES, (uint64_t)me);
	for (int step = 0; step < size; step++)
		for (size_t bytes = 1; bytes <= BYTES; bytes = bytes * 7 + 1) {
			int to = (me + step) % size;
			int from = (me + size - step) % size;
			struct nm_sr_request sent, got;

			memset(in, 0, BYTES);
			irecv(from, TAG_BODY, in, bytes, &got);
			isend(to, TAG_BODY, out, bytes, &sent);
			MUST(end_of(&sent) == 0);
			MUST(end_of(&got) == 0);
			check(in, bytes, (uint64_t)from);
		}
	free(out);
	free(in);
}

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

/* A rail is pulled for good while messages pass; all end, and with an error. */
static void cut(const char *how, size_t bytes)
{
	unsigned char *buf = malloc(bytes);
	int rc;

	MUST(pass(buf, bytes, 4) == 0);
	if (nm_rank() == 0)
		order(how);
	do
		rc = pass(buf, bytes, 4);
	while (rc == 0);
	MUST(rc == -ECONNRESET);
	MUST(send_to(!nm_rank(), TAG_BODY, buf, bytes) == -ECONNRESET);
	nm_abort(3, "a message has ended with an error");
}

/* The other host falls silent, and nobody sends but (`after`) rank 0 once. */
static void silent(const char *how, bool after)
{
	struct nm_sr_request req;

	MUST(pass((unsigned char[8]){ 0 }, 8, 1) == 0);
	irecv(!nm_rank(), TAG_BODY, NULL, 0, &req);
	if (nm_rank() == 0) {
		order(how);
		while (after && send_to(1, TAG_DONE, NULL, 0) == 0)
			marcel_usleep(50000);
	}
	MUST(end_of(&req) == -ECONNRESET);
	nm_abort(3, "a message has ended with an error");
}

/* The other host was silent before anybody called it. */
static void first(bool sends)
{
	int rc;

	if (sends)
		rc = send_to(!nm_rank(), TAG_BODY, NULL, 0);
	else
		rc = 0;
	if (rc == 0)
		rc = recv_from(!nm_rank(), TAG_BODY, NULL, 0);
	MUST(rc == -ECONNRESET);
	nm_abort(3, "a message has ended with an error");
}

/* Somebody stops this process, and lets it go on after so long. */
static void stop_for(unsigned seconds)
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (pid == 0) {
		kill(getppid(), SIGSTOP);
		sleep(seconds);
		kill(getppid(), SIGCONT);
		_exit(0);
	}
	MUST(waitpid(pid, NULL, 0) == pid);
}

/* What a receive that is not over has written: no program may look. */
BASE_NO_TSAN static bool has_begun(const volatile unsigned char *buf)
{
	return buf[1] != 0;
}

/* Rank 1 stops while rank 0 waits for it, in a receive or a large send. */
static void stop(const char *when)
{
	enum { SECONDS = 5, BYTES = 64 << 20 };
	bool body = strcmp(when, "body") == 0, call = strcmp(when, "call") == 0;
	unsigned char *buf = malloc(BYTES);
	struct nm_sr_request req;

	if (!call)
		MUST(pass(buf, 8, 1) == 0);
	paint(buf, BYTES, 1);
	if (nm_rank() == 0 && body)
		MUST(send_to(1, TAG_BODY, buf, BYTES) == 0);
	if (nm_rank() == 1 && body) {
		memset(buf, 0, BYTES);
		irecv(0, TAG_BODY, buf, BYTES, &req);
		while (!has_begun(buf))
			marcel_usleep(1000);
		stop_for(SECONDS);
		MUST(end_of(&req) == 0);
		check(buf, BYTES, 1);
	} else if (nm_rank() == 1) {
		stop_for(SECONDS);
	}
	MUST(pass(buf, 8, 1) == 0);
	free(buf);
}

enum { SMALL = 1000 }; /* such a message leaves without an answer */

/* Messages until the kernel had to repeat one; `back` ends the fault then. */
static void send_through(unsigned char *buf, const char *back)
{
	unsigned long before = sent_again();
	struct nm_sr_request req;
	bool healed = false;

	for (uint64_t i = 0; !healed; i++) {
		paint(buf, SMALL, i);
		isend(1, TAG_BODY, buf, SMALL, &req);
		while (!nm_sr_is_complete(&req) && sent_again() == before)
			marcel_usleep(1000);
		healed = sent_again() != before;
		if (healed)
			order(back);
		MUST(end_of(&req) == 0);
	}
	MUST(send_to(1, TAG_BODY, NULL, 0) == 0);
}

static void recv_through(unsigned char *buf)
{
	struct nm_sr_request req;
	struct nm_sr_status status;

	for (uint64_t i = 0;; i++) {
		irecv(0, TAG_BODY, buf, SMALL, &req);
		MUST(end_of(&req) == 0);
		nm_sr_status(&req, &status);
		if (status.length == 0)
			return;
		check(buf, SMALL, i);
	}
}

/* A fault that ends before the kernel gives up: no message is lost. */
static void heal(const char *how, const char *back, size_t bytes)
{
	unsigned char *buf = malloc(bytes);

	MUST(pass(buf, bytes, 4) == 0);
	if (nm_rank() == 0) {
		order(how);
		send_through(buf, back);
	} else {
		recv_through(buf);
	}
	MUST(pass(buf, bytes, 4) == 0);
	free(buf);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (nm_init() < 0)
		return 4;
	MUST(nm_session_open(7, &session) == 0);
	if (strcmp(what, "who") == 0)
		who();
	else if (strcmp(what, "count") == 0 && argc == 4)
		count(strtoul(argv[2], NULL, 0), atoi(argv[3]));
	else if (strcmp(what, "cut") == 0 && argc == 4)
		cut(argv[2], strtoul(argv[3], NULL, 0));
	else if (strcmp(what, "heal") == 0 && argc == 5)
		heal(argv[2], argv[3], strtoul(argv[4], NULL, 0));
	else if (strcmp(what, "listen") == 0 && argc == 4)
		silent(argv[2], atoi(argv[3]) != 0);
	else if (strcmp(what, "first") == 0 && argc == 3)
		first(strcmp(argv[2], "send") == 0);
	else if (strcmp(what, "stop") == 0 && argc == 3)
		stop(argv[2]);
	else if (strcmp(what, "leave") != 0)
		MUST(!"who, count, cut, heal, listen, first, stop or leave");
	MUST(nm_session_close(session) == 0);
	MUST(nm_exit() == 0);
	return 0;
}
