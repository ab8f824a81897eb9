/*
 * A trace in memory, as marcel/trace/format.h says that it is read. Whatever is
 * not so fails the test.
 */
#ifndef TESTS_MARCEL_TRACE_READER_H
#define TESTS_MARCEL_TRACE_READER_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/trace.h>
#include "../../../marcel/trace/format.h"
#include "../../check.h"

struct trace_event {
	const struct marcel_trace_record *r, *more; /* more: or NULL */
	unsigned ring;
	uint64_t lost; /* of its ring, between it and its next */
	char text[64]; /* of the records behind it */
};

struct trace {
	char *data;
	size_t bytes;
	const struct marcel_trace_header *header;
	struct trace_event *events;
	size_t n;
	uint64_t lost;
	int nends, nclocks, nmodules;
};

static inline bool trace_has_text(unsigned kind)
{
	return kind == MARCEL_TRACE_LANE || kind == MARCEL_TRACE_NAME ||
	       kind == MARCEL_TRACE_BLOCK;
}

static inline void trace_more(struct trace_event *e,
			      const struct marcel_trace_record *r)
{
	size_t at = (size_t)(r - e->r - 1) * 16;

	if (e->more == NULL)
		e->more = r;
	CHECK(at + 16 < sizeof(e->text));
	memcpy(e->text + at, &r->c, 8);
	memcpy(e->text + at + 8, &r->b, 8);
}

static inline void trace_read_events(struct trace *t,
				     const struct marcel_trace_chunk *c)
{
	const struct marcel_trace_record *r = (const void *)(c + 1);
	size_t n = c->used / sizeof(*r);

	CHECK_INT(c->used % sizeof(*r), 0);
	CHECK(c->ring <= t->header->nvp);
	for (size_t i = 0; i < n; i++) {
		struct trace_event *e = &t->events[t->n];

		CHECK(r[i].kind != MARCEL_TRACE_NONE);
		if (r[i].kind == MARCEL_TRACE_MORE) {
			CHECK(i > 0);
			CHECK_INT(r[i].lane, e[-1].r->lane);
			trace_more(e - 1, &r[i]);
			continue;
		}
		*e = (struct trace_event){ .r = &r[i], .ring = c->ring };
		CHECK(c->ring == t->header->nvp
			      ? r[i].lane >= MARCEL_TRACE_FOREIGN
			      : r[i].lane == c->ring);
		t->n++;
	}
	for (size_t i = 0; i < t->n; i++)
		if (trace_has_text(t->events[i].r->kind))
			CHECK_INT(strlen(t->events[i].text), t->events[i].r->a);
	if (n > 0)
		t->events[t->n - 1].lost = c->lost;
	t->lost += c->lost;
}

static inline void trace_read_chunks(struct trace *t)
{
	size_t at = t->header->align;

	while (at + sizeof(struct marcel_trace_chunk) <= t->bytes) {
		const struct marcel_trace_chunk *c =
			(const void *)(t->data + at);

		if (c->magic != MARCEL_TRACE_CHUNK) {
			at += t->header->align;
			continue;
		}
		CHECK_INT(c->offset, at);
		CHECK_INT(c->bytes % t->header->align, 0);
		CHECK(sizeof(*c) + c->used <= c->bytes);
		if (c->type == MARCEL_TRACE_EVENTS)
			trace_read_events(t, c);
		t->nends += c->type == MARCEL_TRACE_END;
		t->nclocks += c->type == MARCEL_TRACE_CLOCKS;
		t->nmodules += c->type == MARCEL_TRACE_MODULES;
		at += c->bytes;
	}
}

static inline void trace_load(struct trace *t, const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;

	CHECK(fd >= 0);
	CHECK_INT(fstat(fd, &st), 0);
	memset(t, 0, sizeof(*t));
	t->bytes = (size_t)st.st_size;
	t->data = aligned_alloc(16, (t->bytes + 15) / 16 * 16);
	t->events = calloc(t->bytes / sizeof(struct marcel_trace_record),
			   sizeof(*t->events));
	CHECK(t->data != NULL && t->events != NULL);
	CHECK_INT(read(fd, t->data, t->bytes), t->bytes);
	close(fd);
	t->header = (const void *)t->data;
	CHECK_INT(memcmp(t->header->magic, MARCEL_TRACE_MAGIC, 8), 0);
	CHECK_INT(t->header->version, MARCEL_TRACE_VERSION);
	CHECK_INT(t->header->record_bytes, sizeof(struct marcel_trace_record));
	trace_read_chunks(t);
}

static inline void trace_free(struct trace *t)
{
	free(t->data);
	free(t->events);
}

#endif
