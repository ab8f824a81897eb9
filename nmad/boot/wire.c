/*
 * Messages of PMI: wire.h.
 */
#include "wire.h"

#include <ctype.h>
#include <marcel/errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include <base/diag.h>
#include <base/option.h>

enum {
	PATIENCE_S = 30, /* for the first answer: is it PMI at all? */
	PREFIX = 6,      /* characters of the length before a PMI-2 message */
	NEVER = -1,      /* a deadline: what is here, and -EAGAIN */
};

/* --- bytes --- */

static int gone(int err)
{
	if (err == 0 || err == ECONNRESET || err == EPIPE)
		base_warn("nmad", "the launcher closed the connection PMI_FD");
	else
		base_warn("nmad", "lost the launcher (PMI_FD): %s",
			  strerror(err));
	return -ECONNRESET;
}

static int send_all(struct nm_boot_wire *w, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(w->fd, text, n, MSG_NOSIGNAL);

		if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
			struct pollfd poll_fd = { .fd = w->fd,
						  .events = POLLOUT };

			poll(&poll_fd, 1, -1);
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
static int wait_for_bytes(struct nm_boot_wire *w, long deadline)
{
	struct pollfd poll_fd = { .fd = w->fd, .events = POLLIN };

	for (;;) {
		long left = deadline ? deadline - now_ms() : -1;
		int n;

		if (deadline && left <= 0) {
			base_warn("nmad",
				  "PMI_FD=%d gave no answer within %d s: is "
				  "it a launcher's?",
				  w->fd, PATIENCE_S);
			return -ETIMEDOUT;
		}
		n = poll(&poll_fd, 1, (int)left);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return gone(errno);
	}
}

static int refill(struct nm_boot_wire *w, long deadline)
{
	for (;;) {
		int rc = deadline == NEVER ? 0 : wait_for_bytes(w, deadline);
		ssize_t n;

		if (rc != 0)
			return rc;
		n = recv(w->fd, w->in, sizeof(w->in), MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN && deadline == NEVER)
			return -EAGAIN;
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return gone(n < 0 ? errno : 0);
		w->at = 0;
		w->end = (size_t)n;
		return 0;
	}
}

static int next_byte(struct nm_boot_wire *w, long deadline, char *out)
{
	if (w->at == w->end) {
		int rc = refill(w, deadline);

		if (rc != 0)
			return rc;
	}
	*out = w->in[w->at++];
	return 0;
}

/* --- messages --- */

/* What has come is a whole message: -EAGAIN if not, or -EPROTO. */
static int is_whole(struct nm_boot_wire *w)
{
	long n;
	char *end;

	if (!w->prefixed || w->have < PREFIX)
		return -EAGAIN;
	w->line[w->have] = '\0';
	if (w->have == PREFIX) {
		n = strtol(w->line, &end, 10);
		end += strspn(end, " ");
		if (end != w->line + PREFIX || n <= 0 ||
		    n >= (long)sizeof(w->line) - PREFIX) {
			base_warn("nmad",
				  "the launcher sent \"%s\": expected the "
				  "length of a message, below %zu",
				  w->line, sizeof(w->line) - PREFIX);
			return -EPROTO;
		}
		w->need = (size_t)n + PREFIX;
	}
	if (w->have < w->need)
		return -EAGAIN;
	memmove(w->line, w->line + PREFIX, w->have + 1 - PREFIX);
	return 0;
}

/* The next message into w->line, without its newline or length. */
static int read_line(struct nm_boot_wire *w, long deadline)
{
	int rc;

	do {
		char c;

		rc = next_byte(w, deadline, &c);
		if (rc != 0)
			return rc;
		if (c == '\n' && !w->prefixed) {
			w->line[w->have] = '\0';
			break;
		}
		if (w->have == sizeof(w->line) - 1) {
			base_warn("nmad",
				  "the launcher sent a line of more than %d "
				  "bytes: \"%.60s...\"",
				  NM_BOOT_WIRE_MAX - 1, w->line);
			return -EPROTO;
		}
		w->line[w->have++] = isprint((unsigned char)c) ? c : '?';
		rc = is_whole(w);
	} while (rc == -EAGAIN);
	if (rc == 0)
		w->have = 0;
	return rc;
}

int nm_boot_wire_read(struct nm_boot_wire *w)
{
	return read_line(w, now_ms() + PATIENCE_S * 1000L);
}

bool nm_boot_wire_field(const struct nm_boot_wire *w, const char *name,
			char *out, size_t room)
{
	const char *between = w->prefixed ? ";" : " ";
	size_t len = strlen(name), n;
	const char *at = w->line;

	while (*at != '\0') {
		at += strspn(at, between);
		n = strcspn(at, between);
		if (n > len && at[len] == '=' && memcmp(at, name, len) == 0) {
			n -= len + 1;
			snprintf(out, room, "%.*s", (int)n, at + len + 1);
			return n < room;
		}
		at += n;
	}
	return false;
}

int nm_boot_wire_unexpected(const struct nm_boot_wire *w, const char *asked,
			    const char *want)
{
	base_warn("nmad", "the launcher answered \"%.200s\" to %s: expected %s",
		  w->line, asked, want);
	return -EPROTO;
}

int nm_boot_wire_kind(const struct nm_boot_wire *w, const char *asked,
		      const char *reply)
{
	char kind[64], want[80];

	if (nm_boot_wire_field(w, "cmd", kind, sizeof(kind)) &&
	    strcmp(kind, reply) == 0)
		return 0;
	snprintf(want, sizeof(want), "cmd=%s", reply);
	return nm_boot_wire_unexpected(w, asked, want);
}

bool nm_boot_wire_number(const struct nm_boot_wire *w, const char *name,
			 long *out)
{
	char text[32];

	return nm_boot_wire_field(w, name, text, sizeof(text)) &&
	       base_parse_long(text, false, out) == 0;
}

/* The request as it travels: its length, or -1. */
static int format(const struct nm_boot_wire *w, char *out, size_t room,
		  const char *fmt, va_list ap)
{
	size_t before = w->prefixed ? PREFIX : 0;
	char prefix[PREFIX + 1];
	int n = vsnprintf(out + before, room - before, fmt, ap);

	base_check(n > 0 && (size_t)n < room - before);
	if (w->prefixed) {
		snprintf(prefix, sizeof(prefix), "%-6d", n);
		memcpy(out, prefix, PREFIX);
	}
	return n + (int)before;
}

static int exchange(struct nm_boot_wire *w, const char *reply, long deadline,
		    const char *fmt, va_list ap)
{
	char text[NM_BOOT_WIRE_MAX], *what = text + (w->prefixed ? PREFIX : 0);
	int n = format(w, text, sizeof(text), fmt, ap);
	int rc = w->asked ? read_line(w, 0) : 0; /* it is forgotten */

	w->asked = false;
	if (rc == 0)
		rc = send_all(w, text, (size_t)n);
	if (rc == 0)
		rc = read_line(w, deadline);
	if (rc != 0)
		return rc;
	text[n] = '\0';
	what[strcspn(what, " ;\n")] = '\0';
	return nm_boot_wire_kind(w, what, reply);
}

int nm_boot_wire_ask(struct nm_boot_wire *w, const char *reply, const char *fmt,
		     ...)
{
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = exchange(w, reply, 0, fmt, ap);
	va_end(ap);
	return rc;
}

int nm_boot_wire_ask_first(struct nm_boot_wire *w, const char *reply,
			   const char *fmt, ...)
{
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = exchange(w, reply, now_ms() + PATIENCE_S * 1000L, fmt, ap);
	va_end(ap);
	return rc;
}

int nm_boot_wire_greet(struct nm_boot_wire *w, int version, int subversion)
{
	long got = 0, code = -1;
	char want[48];
	int rc = nm_boot_wire_ask_first(
		w, "response_to_init",
		"cmd=init pmi_version=%d pmi_subversion=%d\n", version,
		subversion);

	if (rc != 0)
		return rc;
	if (nm_boot_wire_number(w, "rc", &code) && code == 0 &&
	    nm_boot_wire_number(w, "pmi_version", &got) && got == version)
		return 0;
	snprintf(want, sizeof(want), "pmi_version=%d and rc=0", version);
	return nm_boot_wire_unexpected(w, "cmd=init", want);
}

/* So short a message is sent as a whole or not at all. */
int nm_boot_wire_post(struct nm_boot_wire *w, const char *fmt, ...)
{
	char text[NM_BOOT_WIRE_SHORT];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = format(w, text, sizeof(text), fmt, ap);
	va_end(ap);
	if (w->asked) {
		int rc = read_line(w, NEVER);

		if (rc != 0)
			return rc;
		w->asked = false;
	}
	if (send(w->fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) != n)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN
							 : gone(errno);
	w->asked = true;
	return 0;
}

int nm_boot_wire_poll(struct nm_boot_wire *w, const char *reply)
{
	int rc = read_line(w, NEVER);

	if (rc != 0)
		return rc;
	w->asked = false;
	return nm_boot_wire_kind(w, "cmd=get", reply);
}

void nm_boot_wire_say(const struct nm_boot_wire *w, const char *fmt, ...)
{
	char text[NM_BOOT_WIRE_SHORT];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = format(w, text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)!send(w->fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* --- the environment --- */

int nm_boot_wire_variable(const char *name, long min, long max, long *out)
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

int nm_boot_wire_take(long fd)
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
