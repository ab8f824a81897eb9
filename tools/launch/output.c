/*
 * What the ranks print, line by line: lines of different ranks never mix. A
 * sink is written only as far as it takes data at once, so that a reader who
 * sleeps stops the ranks that print and not the job's service.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job.h"

enum {
	SINK_FULL = 1 << 18, /* bytes waiting, after which ranks wait */
	CHUNK = 4096,        /* a ready pipe takes as much without blocking */
};

bool sink_is_full(const struct sink *s)
{
	return s->len - s->at >= SINK_FULL;
}

static void sink_put(struct sink *s, const char *text, size_t n)
{
	if (s->broken != 0)
		return;
	if (s->at == s->len)
		s->at = s->len = 0;
	if (s->len + n > s->room) {
		s->room = 2 * (s->len + n);
		s->buf = must(realloc(s->buf, s->room));
	}
	memcpy(s->buf + s->len, text, n);
	s->len += n;
}

void sink_flush(struct sink *s)
{
	while (s->at < s->len) {
		struct pollfd w = { .fd = s->fd, .events = POLLOUT };
		size_t n = s->len - s->at;
		ssize_t wrote;

		if (poll(&w, 1, 0) <= 0)
			return;
		wrote = write(s->fd, s->buf + s->at, n < CHUNK ? n : CHUNK);
		if (wrote < 0 && (errno == EINTR || errno == EAGAIN))
			return;
		if (wrote < 0) {
			s->broken = errno;
			s->at = s->len = 0;
			return;
		}
		s->at += (size_t)wrote;
	}
}

/* Those above a file. */
static void make_directories(char *path)
{
	char *at = path;

	while ((at = strchr(at + 1, '/')) != NULL) {
		*at = '\0';
		if (mkdir(path, 0777) != 0 && errno != EEXIST) {
			say("--output-filename: cannot make %s: %s", path,
			    strerror(errno));
			exit(1);
		}
		*at = '/';
	}
}

int output_open(const struct job *j, int rank, const char *name)
{
	char path[PATH_MAX];
	int fd, n;

	if (j->opt.output == NULL)
		return -1;
	n = snprintf(path, sizeof(path), "%s/rank.%d/%s", j->opt.output, rank,
		     name);
	if (n >= (int)sizeof(path)) {
		say("--output-filename: the name is too long");
		exit(1);
	}
	make_directories(path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd >= 0)
		return fd;
	say("--output-filename: cannot write %s: %s", path, strerror(errno));
	exit(1);
}

/* One line, or a part of one. */
static void put_line(struct job *j, struct stream *s, int rank,
		     const char *text, size_t n)
{
	char tag[16];

	if (j->opt.tag_output && !s->in_line)
		sink_put(s->sink, tag,
			 (size_t)snprintf(tag, sizeof(tag), "[%d] ", rank));
	sink_put(s->sink, text, n);
	s->in_line = text[n - 1] != '\n';
}

/* All whole lines that have come, and a part that fills the buffer. */
static void put_lines(struct job *j, struct stream *s, int rank)
{
	size_t at = 0;
	char *end;

	while ((end = memchr(s->buf + at, '\n', s->len - at)) != NULL) {
		size_t n = (size_t)(end + 1 - (s->buf + at));

		put_line(j, s, rank, s->buf + at, n);
		at += n;
	}
	if (at == 0 && s->len == sizeof(s->buf)) {
		put_line(j, s, rank, s->buf, s->len);
		at = s->len;
	}
	s->len -= at;
	memmove(s->buf, s->buf + at, s->len);
}

void stream_show_partial(struct job *j, struct stream *s, int rank)
{
	s->flush_at = 0;
	if (s->len > 0)
		put_line(j, s, rank, s->buf, s->len);
	s->len = 0;
}

/* The end of what this rank prints: the last line may lack its newline. */
static void stream_close(struct job *j, struct stream *s, int rank)
{
	stream_show_partial(j, s, rank);
	if (s->in_line && j->opt.tag_output)
		put_line(j, s, rank, "\n", 1);
	close(s->fd);
	s->fd = -1;
}

/* One read. False: nothing more is there now. */
static bool read_some(struct job *j, struct stream *s, int rank)
{
	ssize_t n = read(s->fd, s->buf + s->len, sizeof(s->buf) - s->len);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return false;
	if (n <= 0) {
		stream_close(j, s, rank);
		return false;
	}
	s->len += (size_t)n;
	put_lines(j, s, rank);
	s->flush_at =
		s->len > 0 && isatty(s->sink->fd) ? now_ms() + PARTIAL_MS : 0;
	return true;
}

void stream_read(struct job *j, struct stream *s, int rank)
{
	if (s->fd >= 0)
		read_some(j, s, rank);
}

/* All ranks have ended: what they printed is in the pipe. */
void stream_finish(struct job *j, struct stream *s, int rank)
{
	while (s->fd >= 0 && !sink_is_full(s->sink) && read_some(j, s, rank))
		;
	if (s->fd >= 0 && !sink_is_full(s->sink))
		stream_close(j, s, rank);
}
