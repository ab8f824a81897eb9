/*
 * The PMI-1 wire protocol as a client: a request is one line of text on the
 * socket PMI_FD, or on a connection to PMI_PORT, its answer another. Servers
 * differ in the order of the fields, so answers are read by name. Spoken by our
 * mpirun, by Hydra and by Slurm (srun --mpi=pmi2).
 *
 *   cmd=init pmi_version=1 pmi_subversion=1  -> cmd=response_to_init ... rc=0
 *   cmd=get_appnum                           -> cmd=appnum rc=0 appnum=N
 *   cmd=get kvsname=K key=N                  -> cmd=get_result rc=0 value=V
 *   cmd=barrier_in                           -> cmd=barrier_out
 */
#include "pmi.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <base/diag.h>
#include <base/option.h>

#include "boot.h"

enum {
	LINE = 4096,         /* bytes of a line, its newline included */
	KVS_MAX = 256,       /* of the name of the job's space of values */
	RANKS_MAX = 1 << 20, /* more than this is nonsense */
	PATIENCE_S = 30,     /* for the first answer: is it PMI at all? */
};

/* The connection. One user at a time; fd is constant, abort uses only that. */
struct pmi {
	int fd;
	size_t at, end; /* what has come and is not read: in[at..end) */
	char in[LINE];
	size_t have;     /* characters of the line that comes */
	char line[LINE]; /* the last answer, or that */
	bool asked;      /* an answer comes that nobody waits for */
	char kvs[KVS_MAX + 1];
	long value_max; /* characters, as the launcher says */
};

/* --- lines --- */

static int gone(int err)
{
	if (err == 0 || err == ECONNRESET || err == EPIPE)
		base_warn("nmad", "the launcher closed the connection PMI_FD");
	else
		base_warn("nmad", "lost the launcher (PMI_FD): %s",
			  strerror(err));
	return -ECONNRESET;
}

static int send_all(struct pmi *p, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(p->fd, text, n, MSG_NOSIGNAL);

		if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
			struct pollfd w = { .fd = p->fd, .events = POLLOUT };

			poll(&w, 1, -1);
			continue;
		}
		if (sent < 0)
			return gone(errno);
		text += sent;
		n -= (size_t)sent;
	}
	return 0;
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Wait until bytes come; deadline 0: for ever. */
static int wait_for_bytes(struct pmi *p, long deadline)
{
	struct pollfd w = { .fd = p->fd, .events = POLLIN };

	for (;;) {
		long left = deadline ? deadline - now_ms() : -1;
		int n;

		if (deadline && left <= 0) {
			base_warn("nmad",
				  "PMI_FD=%d gave no answer within %d s: is "
				  "it a launcher's?",
				  p->fd, PATIENCE_S);
			return -ETIMEDOUT;
		}
		n = poll(&w, 1, (int)left);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return gone(errno);
	}
}

enum { NEVER = -1 }; /* a deadline: what is here, and -EAGAIN */

static int refill(struct pmi *p, long deadline)
{
	for (;;) {
		int rc = deadline == NEVER ? 0 : wait_for_bytes(p, deadline);
		ssize_t n;

		if (rc != 0)
			return rc;
		n = recv(p->fd, p->in, sizeof(p->in), MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN && deadline == NEVER)
			return -EAGAIN;
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return gone(n < 0 ? errno : 0);
		p->at = 0;
		p->end = (size_t)n;
		return 0;
	}
}

/* The next line into p->line, without its newline. */
static int read_line(struct pmi *p, long deadline)
{
	for (;;) {
		char c;

		if (p->at == p->end) {
			int rc = refill(p, deadline);

			if (rc != 0)
				return rc;
		}
		c = p->in[p->at++];
		if (c == '\n')
			break;
		if (p->have == sizeof(p->line) - 1) {
			base_warn("nmad",
				  "the launcher sent a line of more than %d "
				  "bytes: \"%.60s...\"",
				  LINE - 1, p->line);
			return -EPROTO;
		}
		p->line[p->have++] = isprint((unsigned char)c) ? c : '?';
	}
	p->line[p->have] = '\0';
	p->have = 0;
	return 0;
}

/* The value of field `name` of the last answer. False: none, or too long. */
static bool field(const struct pmi *p, const char *name, char *out, size_t room)
{
	size_t len = strlen(name), n;
	const char *at = p->line;

	while (*at != '\0') {
		at += strspn(at, " ");
		n = strcspn(at, " ");
		if (n > len && at[len] == '=' && memcmp(at, name, len) == 0) {
			n -= len + 1;
			snprintf(out, room, "%.*s", (int)n, at + len + 1);
			return n < room;
		}
		at += n;
	}
	return false;
}

static int unexpected(const struct pmi *p, const char *asked, const char *want)
{
	base_warn("nmad", "the launcher answered \"%.200s\" to %s: expected %s",
		  p->line, asked, want);
	return -EPROTO;
}

static int check_kind(const struct pmi *p, const char *asked, const char *reply)
{
	char kind[64], want[80];

	if (field(p, "cmd", kind, sizeof(kind)) && strcmp(kind, reply) == 0)
		return 0;
	snprintf(want, sizeof(want), "cmd=%s", reply);
	return unexpected(p, asked, want);
}

/* Send one request and read its answer, which must be of kind `reply`. */
static int ask(struct pmi *p, const char *reply, long deadline, const char *fmt,
	       ...) BASE_PRINTF(4, 5);

static int ask(struct pmi *p, const char *reply, long deadline, const char *fmt,
	       ...)
{
	char text[LINE];
	va_list ap;
	int n, rc;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	base_check(n > 0 && (size_t)n < sizeof(text));
	rc = p->asked ? read_line(p, 0) : 0; /* it is forgotten */
	p->asked = false;
	if (rc == 0)
		rc = send_all(p, text, (size_t)n);
	if (rc == 0)
		rc = read_line(p, deadline);
	if (rc != 0)
		return rc;
	text[strcspn(text, " \n")] = '\0';
	return check_kind(p, text, reply);
}

/* A whole number of the last answer. */
static bool number(const struct pmi *p, const char *name, long *out)
{
	char text[32];

	return field(p, name, text, sizeof(text)) &&
	       base_parse_long(text, false, out) == 0;
}

/* --- who shares a host --- */

/* One "(first,nodes,each)" at *at, behind its comma. */
static bool read_block(const char **at, long block[3])
{
	static const char before[] = "(,,", after[] = ",,)";

	for (int i = 0; i < 3; i++) {
		char *end;

		if ((*at)[0] != before[i] || !isdigit((unsigned char)(*at)[1]))
			return false;
		errno = 0;
		block[i] = strtol(*at + 1, &end, 10);
		if (errno != 0 || block[i] > RANKS_MAX || *end != after[i])
			return false;
		*at = end;
	}
	++*at;
	return block[1] > 0 && block[2] > 0;
}

/* Place ranks as one block says, until all are placed. */
static int place(const long block[3], int size, int *node, int placed)
{
	for (long n = 0; n < block[1]; n++)
		for (long i = 0; i < block[2] && placed < size; i++)
			node[placed++] = (int)(block[0] + n);
	return placed;
}

int nm_boot_pmi_mapping(const char *text, int size, int *node)
{
	static const char head[] = "(vector,";
	int placed = 0;

	if (strncmp(text, head, sizeof(head) - 1) != 0)
		return -EPROTO;
	while (placed < size) {
		const char *at = text + sizeof(head) - 1;
		long block[3];

		for (;;) {
			if (!read_block(&at, block))
				return -EPROTO;
			placed = place(block, size, node, placed);
			if (at[0] == ')' && at[1] == '\0')
				break;
			if (*at++ != ',')
				return -EPROTO;
		}
	}
	return 0;
}

/* --- opening --- */

/* The variable as a number of min..max, or -EINVAL and a message. */
static int variable(const char *name, long min, long max, long *out)
{
	const char *text = getenv(name);

	if (text == NULL) {
		base_warn("nmad",
			  "%s is not set: it comes with the launcher's PMI_FD "
			  "or PMI_PORT",
			  name);
		return -EINVAL;
	}
	if (base_parse_long(text, false, out) == 0 && *out >= min &&
	    *out <= max)
		return 0;
	base_warn("nmad", "%s=\"%.80s\": expected a number from %ld to %ld",
		  name, text, min, max);
	return -EINVAL;
}

/* -EBADF if the number names no open socket: a launcher's it cannot be. */
static int take_socket(long fd)
{
	struct stat st;

	if (fstat((int)fd, &st) == 0 && S_ISSOCK(st.st_mode)) {
		fcntl((int)fd, F_SETFD, FD_CLOEXEC);
		return 0;
	}
	base_warn("nmad",
		  "PMI_FD=%ld is not an open socket: the launcher's "
		  "connection was not inherited",
		  fd);
	return -EBADF;
}

/* The key on a descriptor, if our launcher gave one. */
static int take_key(struct nm_boot *b)
{
	long fd;
	ssize_t n;
	int rc;

	if (getenv("NMAD_KEY_FD") == NULL)
		return 0;
	rc = variable("NMAD_KEY_FD", 0, RANKS_MAX, &fd);
	if (rc != 0)
		return rc;
	do
		n = pread((int)fd, b->info.key, NM_BOOT_KEY_BYTES, 0);
	while (n < 0 && errno == EINTR);
	if (n != NM_BOOT_KEY_BYTES) {
		base_warn("nmad",
			  "NMAD_KEY_FD=%ld: expected %d bytes of job key, got "
			  "%zd%s%s",
			  fd, NM_BOOT_KEY_BYTES, n < 0 ? 0 : n,
			  n < 0 ? ": " : "", n < 0 ? strerror(errno) : "");
		return -EINVAL;
	}
	close((int)fd);
	b->has_key = true;
	return 0;
}

static int greet(struct pmi *p)
{
	long deadline = now_ms() + PATIENCE_S * 1000L, version = 0, code = -1;
	int rc = ask(p, "response_to_init", deadline,
		     "cmd=init pmi_version=1 pmi_subversion=1\n");

	if (rc != 0)
		return rc;
	if (!number(p, "rc", &code) || code != 0 ||
	    !number(p, "pmi_version", &version) || version != 1)
		return unexpected(p, "cmd=init", "pmi_version=1 and rc=0");
	rc = ask(p, "maxes", 0, "cmd=get_maxes\n");
	if (rc != 0)
		return rc;
	if (!number(p, "vallen_max", &p->value_max) || p->value_max < 64)
		return unexpected(p, "cmd=get_maxes", "vallen_max=N, N >= 64");
	rc = ask(p, "my_kvsname", 0, "cmd=get_my_kvsname\n");
	if (rc != 0)
		return rc;
	if (!field(p, "kvsname", p->kvs, sizeof(p->kvs)))
		return unexpected(p, "cmd=get_my_kvsname", "kvsname=NAME");
	return 0;
}

/* Launchers of one program may not know. */
static int learn_appnum(struct nm_boot *b)
{
	struct pmi *p = b->priv;
	long code = 0, n = -1;
	int rc = ask(p, "appnum", 0, "cmd=get_appnum\n");

	if (rc != 0)
		return rc;
	if (number(p, "rc", &code) && code != 0)
		n = -1;
	else if (!number(p, "appnum", &n) || n < -1 || n > RANKS_MAX)
		return unexpected(p, "cmd=get_appnum", "appnum=N");
	b->info.appnum = (int)n;
	return 0;
}

/* What `get` was answered. */
static int value(const struct pmi *p, char *out, size_t room)
{
	long code = -1;

	if (number(p, "rc", &code) && code != 0)
		return -ENOENT;
	if (!field(p, "value", out, room))
		return unexpected(p, "cmd=get", "value=TEXT");
	return 0;
}

/* What each rank leaves is told apart by the rank, before its name. */
static int pmi_get(struct nm_boot *b, int rank, const char *name, char *out,
		   size_t room)
{
	struct pmi *p = b->priv;
	int rc = ask(p, "get_result", 0, "cmd=get kvsname=%s key=%d.%s\n",
		     p->kvs, rank, name);

	return rc == 0 ? value(p, out, room) : rc;
}

/* A line so short is sent as a whole or not at all. */
static int pmi_ask(struct nm_boot *b, int rank, const char *name)
{
	struct pmi *p = b->priv;
	char text[KVS_MAX + NM_BOOT_NAME_MAX + 48];
	int n = snprintf(text, sizeof(text), "cmd=get kvsname=%s key=%d.%s\n",
			 p->kvs, rank, name);

	if (p->asked) {
		int rc = read_line(p, NEVER);

		if (rc != 0)
			return rc;
		p->asked = false;
	}
	if (send(p->fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) != n)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN
							 : gone(errno);
	p->asked = true;
	return 0;
}

static int pmi_answer(struct nm_boot *b, char *out, size_t room)
{
	struct pmi *p = b->priv;
	int rc = read_line(p, NEVER);

	if (rc != 0)
		return rc;
	p->asked = false;
	rc = check_kind(p, "cmd=get", "get_result");
	return rc == 0 ? value(p, out, room) : rc;
}

/* Without a mapping nobody shares a host: slower, and right. */
static int learn_nodes(struct nm_boot *b)
{
	struct pmi *p = b->priv;
	char text[LINE];
	int rc;

	b->node = calloc((size_t)b->info.size, sizeof(*b->node));
	if (b->node == NULL)
		return -ENOMEM;
	rc = ask(p, "get_result", 0,
		 "cmd=get kvsname=%s key=PMI_process_mapping\n", p->kvs);
	if (rc == 0)
		rc = value(p, text, sizeof(text));
	if (rc == -ENOENT) {
		base_warn("nmad", "the launcher does not say which ranks "
				  "share a host; treating all as apart");
		for (int r = 0; r < b->info.size; r++)
			b->node[r] = r;
		return 0;
	}
	if (rc == 0)
		rc = nm_boot_pmi_mapping(text, b->info.size, b->node);
	else
		return rc;
	if (rc != 0)
		base_warn("nmad",
			  "PMI_process_mapping is \"%.200s\": expected "
			  "(vector,(first node,nodes,ranks per node),...)",
			  text);
	return rc;
}

/* PMI_PORT=host:port. The connection closes on exec. */
static int dial(long *fd)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list, *a;
	char host[256];
	const char *text = getenv("PMI_PORT"), *colon = strrchr(text, ':');
	int rc = EAI_NONAME, s = -1;

	snprintf(host, sizeof(host), "%.*s",
		 colon != NULL ? (int)(colon - text) : 0, text);
	if (host[0] != '\0')
		rc = getaddrinfo(host, colon + 1, &hints, &list);
	if (rc != 0) {
		base_warn("nmad", "PMI_PORT=\"%.200s\": expected host:port: %s",
			  text, gai_strerror(rc));
		return -EINVAL;
	}
	errno = 0;
	for (a = list; a != NULL && s < 0; a = a->ai_next) {
		s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (s >= 0 && connect(s, a->ai_addr, a->ai_addrlen) != 0) {
			close(s);
			s = -1;
		}
	}
	freeaddrinfo(list);
	if (s < 0) {
		base_warn("nmad", "PMI_PORT=%.200s: no connection: %m", text);
		return -ECONNRESET;
	}
	*fd = s;
	return 0;
}

/* Say which process has connected; three lines say what PMI_FD has beside. */
static int introduce(struct nm_boot *b, long id)
{
	long deadline = now_ms() + PATIENCE_S * 1000L, size = 0, rank = -1;
	struct pmi *p = b->priv;
	int rc = ask(p, "initack", deadline, "cmd=initack pmiid=%ld\n", id);

	for (int i = 0; i < 3 && rc == 0; i++) {
		rc = read_line(p, deadline);
		if (rc == 0)
			rc = check_kind(p, "cmd=initack", "set");
		if (rc == 0 && !number(p, "size", &size))
			(void)number(p, "rank", &rank);
	}
	if (rc != 0)
		return rc;
	if (size < 1 || size > RANKS_MAX || rank < 0 || rank >= size)
		return unexpected(p, "cmd=initack", "size=N and rank=R, R < N");
	b->info.rank = (int)rank;
	b->info.size = (int)size;
	return 0;
}

static int find_launcher(long *fd, long *size, long *rank, long *id)
{
	int rc;

	if (getenv("PMI_FD") == NULL && getenv("PMI_PORT") != NULL) {
		rc = variable("PMI_ID", 0, RANKS_MAX, id);
		return rc == 0 ? dial(fd) : rc;
	}
	rc = variable("PMI_FD", 0, RANKS_MAX, fd);
	if (rc == 0)
		rc = take_socket(*fd);
	if (rc == 0)
		rc = variable("PMI_SIZE", 1, RANKS_MAX, size);
	return rc == 0 ? variable("PMI_RANK", 0, *size - 1, rank) : rc;
}

static int pmi_open(struct nm_boot *b)
{
	long fd, rank = 0, size = 1, id = -1;
	struct pmi *p;
	int rc = find_launcher(&fd, &size, &rank, &id);

	if (rc != 0)
		return rc;
	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		close((int)fd);
		return -ENOMEM;
	}
	p->fd = (int)fd;
	b->priv = p;
	b->info.rank = (int)rank;
	b->info.size = (int)size;
	rc = take_key(b);
	if (rc == 0 && id >= 0)
		rc = introduce(b, id);
	if (rc == 0)
		rc = greet(p);
	if (rc == 0)
		rc = learn_appnum(b);
	if (rc == 0)
		rc = learn_nodes(b);
	if (rc != 0) {
		close(p->fd);
		free(p);
	}
	return rc;
}

/* --- the rest --- */

static int pmi_put(struct nm_boot *b, const char *name, const char *text)
{
	struct pmi *p = b->priv;
	long code = -1;
	int rc;

	if ((long)strlen(text) >= p->value_max) {
		base_warn("nmad",
			  "the value of \"%s\" has %zu characters: the "
			  "launcher allows %ld",
			  name, strlen(text), p->value_max - 1);
		return -EPROTO;
	}
	rc = ask(p, "put_result", 0, "cmd=put kvsname=%s key=%d.%s value=%s\n",
		 p->kvs, b->info.rank, name, text);
	if (rc != 0)
		return rc;
	if (!number(p, "rc", &code) || code != 0)
		return unexpected(p, "cmd=put", "rc=0");
	return 0;
}

static int pmi_fence(struct nm_boot *b)
{
	return ask(b->priv, "barrier_out", 0, "cmd=barrier_in\n");
}

/* One send of one line, no answer: another thread may be in the middle. */
static void pmi_abort(struct nm_boot *b, int code)
{
	struct pmi *p = b->priv;
	char text[64];
	int n = snprintf(text, sizeof(text), "cmd=abort exitcode=%d\n", code);

	(void)!send(p->fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int pmi_close(struct nm_boot *b, bool forked)
{
	struct pmi *p = b->priv;
	int rc = forked ? 0 : ask(p, "finalize_ack", 0, "cmd=finalize\n");

	close(p->fd);
	free(p);
	return rc;
}

const struct nm_boot_client nm_boot_pmi = {
	.name = "pmi",
	.open = pmi_open,
	.put = pmi_put,
	.fence = pmi_fence,
	.get = pmi_get,
	.ask = pmi_ask,
	.answer = pmi_answer,
	.abort = pmi_abort,
	.close = pmi_close,
};
