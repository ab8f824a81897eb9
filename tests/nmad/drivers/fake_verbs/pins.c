/*
 * Real registrations pin their pages: what is mapped there later is not what
 * the device reaches. Here an access goes to what is mapped; so that a stale
 * registration is noticed all the same, we remember in which frames of memory
 * the pages were, and look again when they are used. (The kernel may move a
 * page that nobody has pinned, when it is short of large ones: then this is a
 * false alarm.)
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "object.h"

/* Of a page, as /proc/PID/pagemap has it. */
#define PRESENT (UINT64_C(1) << 63)
#define FRAME   ((UINT64_C(1) << 55) - 1)

/* How many it could read: less than n, none at all. */
static size_t frames_of(int pagemap, uint64_t page, uint64_t *out, size_t n)
{
	ssize_t got = pread(pagemap, out, n * sizeof(*out),
			    (off_t)(page / FV_PAGE * sizeof(*out)));

	for (size_t i = 0; i < n; i++)
		out[i] = out[i] & PRESENT ? out[i] & FRAME : 0;
	return got < 0 ? 0 : (size_t)got / sizeof(*out);
}

uint64_t fv_pins_get(uint64_t addr, uint64_t length)
{
	size_t n = fv_pages(addr, length) / FV_PAGE;
	uint64_t at, *frames;
	int fd;

	if (fv_setting(FV_SET_PINS) == 0 || n == 0)
		return 0;
	at = fv_arena_get(n * sizeof(*frames));
	if (at == 0)
		return 0;
	frames = fv_at(at);
	fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && frames_of(fd, fv_page_of(addr), frames, n) == n &&
	    frames[0] != 0) {
		close(fd);
		return at;
	}
	if (fd >= 0)
		close(fd);
	fv_arena_put(at, n * sizeof(*frames));
	return 0;
}

void fv_pins_put(uint64_t at, uint64_t addr, uint64_t length)
{
	if (at != 0)
		fv_arena_put(at, fv_pages(addr, length) / FV_PAGE *
					 sizeof(uint64_t));
}

bool fv_pins_hold(const struct fv_slot *slot, const struct fv_mr *m,
		  uint64_t addr, uint64_t length)
{
	const uint64_t *want = fv_at(m->frames);
	uint64_t page = fv_page_of(addr), end = page + fv_pages(addr, length);
	uint64_t frames[256];
	bool holds = true;
	char name[32];
	size_t n;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/pagemap", (int)slot->pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true; /* it is dead, or we have no descriptor */
	want += (page - fv_page_of(m->addr)) / FV_PAGE;
	for (; page < end && holds; page += n * FV_PAGE, want += n) {
		n = (end - page) / FV_PAGE;
		n = n < 256 ? n : 256;
		if (frames_of(fd, page, frames, n) < n)
			break;
		for (size_t i = 0; i < n; i++)
			holds = holds && frames[i] == want[i];
	}
	close(fd);
	if (!holds)
		fprintf(stderr,
			"fake_verbs: process %d: a registration of %#llx, %llu "
			"bytes, is stale\n",
			(int)slot->pid, (unsigned long long)m->addr,
			(unsigned long long)m->length);
	return holds;
}
