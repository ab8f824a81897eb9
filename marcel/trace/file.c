/*
 * The file of a trace.
 *
 * Chunks are had by moving its end, one atomic addition, so several kernel
 * threads may append. Those of events are mapped, and their room on the disk is
 * allocated before: a full disk is an error here, and no SIGBUS of who writes.
 *
 * Names are looked up in the folder that was found at the start: the program
 * may go to another.
 */
#include "file.h"

#include <marcel/errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/clock.h>
#include <base/diag.h>
#include "../os/os.h"
#include "record.h"
#include "trace.h"

enum {
	PATH_ROOM = 4096,
	NAME_ROOM = 256,
	SUFFIX_ROOM = 32,
	PAYLOAD_MAX = 1 << 20,
};

static struct {
	/* -: const while it is open    w: who starts, names or ends it
	 * a: atomic */
	int fd, dir;                       /* -: */
	const char *path;                  /* -: the option's */
	char base[NAME_ROOM];              /* -: without rank */
	char now[NAME_ROOM + SUFFIX_ROOM]; /* w: what it is called */
	size_t align, chunk;               /* -: */
	ATOMIC(uint64_t) end; /* a: relaxed; where the next chunk begins */
	char last[PATH_ROOM]; /* w: the path of this process's last file */
	unsigned lives;       /* w: so many of this path, one by one */
	bool is_named;        /* w: it has its last name */
	struct marcel_trace_header header; /* w: */
} file = { .fd = -1, .dir = -1 };

const char *marcel_trace_file_path(void)
{
	return file.path;
}

size_t marcel_trace_file_room(void)
{
	return file.chunk - sizeof(struct marcel_trace_head);
}

static size_t aligned(size_t bytes)
{
	return (bytes + file.align - 1) / file.align * file.align;
}

/* --- clocks --- */

static uint64_t realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The best of some tries: none was interrupted between the two. */
static struct marcel_trace_clock read_clocks(void)
{
	struct marcel_trace_clock best = { 0 };
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 8; i++) {
		uint64_t before = marcel_trace_now(), ns = base_now_ns(),
			 after = marcel_trace_now();

		if (after - before >= least)
			continue;
		least = after - before;
		best.ticks = before + least / 2;
		best.monotonic = ns;
	}
	best.realtime = realtime_ns() - (base_now_ns() - best.monotonic);
	return best;
}

/* --- chunks --- */

struct marcel_trace_head *marcel_trace_file_map(unsigned ring)
{
	off_t at = (off_t)fetch_add_relaxed(&file.end, file.chunk);
	struct marcel_trace_head *h;
	int rc;

	do
		rc = posix_fallocate(file.fd, at, (off_t)file.chunk);
	while (rc == EINTR);
	if (rc != 0) {
		errno = rc;
		return NULL;
	}
	h = mmap(NULL, file.chunk, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd,
		 at);
	if (h == MAP_FAILED)
		return NULL;
	/* A child has none of it, though it may not know that it is one. */
	madvise(h, file.chunk, MADV_DONTFORK);
	/* Each page is written to: MAP_POPULATE only has them read. */
	memset(h, 0, file.chunk);
	h->type = MARCEL_TRACE_EVENTS;
	h->bytes = file.chunk;
	h->ring = ring;
	h->offset = (uint64_t)at;
	h->magic = MARCEL_TRACE_CHUNK;
	return h;
}

void marcel_trace_file_unmap(struct marcel_trace_head *h)
{
	size_t used = aligned(sizeof(*h) + load_relaxed(&h->used));
	off_t at = (off_t)h->offset;

	munmap(h, file.chunk);
	if (used < file.chunk) /* not every file system can */
		fallocate(file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  at + (off_t)used, (off_t)(file.chunk - used));
}

/* Head last: who reads meanwhile sees all of it or none. */
void marcel_trace_file_append(enum marcel_trace_chunk_type type,
			      const void *data, size_t bytes)
{
	struct marcel_trace_chunk h = { .magic = MARCEL_TRACE_CHUNK,
					.type = type,
					.used = bytes };
	off_t at;

	h.bytes = aligned(sizeof(h) + bytes);
	at = (off_t)fetch_add_relaxed(&file.end, h.bytes);
	h.offset = (uint64_t)at;
	if (pwrite(file.fd, data, bytes, at + (off_t)sizeof(h)) !=
		    (ssize_t)bytes ||
	    pwrite(file.fd, &h, sizeof(h), at) != sizeof(h))
		return; /* nothing is lost but this: readers go on behind it */
}

void marcel_trace_file_append_clock(enum marcel_trace_chunk_type type)
{
	struct marcel_trace_clock c = read_clocks();

	marcel_trace_file_append(type, &c, sizeof(c));
}

/* Which of these mappings hold code. */
void marcel_trace_file_append_modules(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4352], *text = malloc(PAYLOAD_MAX), mode[5];
	size_t used = 0, n;

	while (maps != NULL && text != NULL &&
	       fgets(line, sizeof(line), maps) != NULL) {
		n = strlen(line);
		if (sscanf(line, "%*s %4s", mode) == 1 && mode[2] == 'x' &&
		    used + n <= PAYLOAD_MAX) {
			memcpy(text + used, line, n);
			used += n;
		}
	}
	if (used != 0)
		marcel_trace_file_append(MARCEL_TRACE_MODULES, text, used);
	free(text);
	if (maps != NULL)
		fclose(maps);
}

/* --- its name --- */

static int refuse(const char *path, int error)
{
	base_warn("marcel", "MARCEL_TRACE=%s: cannot be written: %s", path,
		  error == EEXIST ? "no regular file" : strerror(error));
	return -error;
}

/* Nothing is put in the place of what is no file. */
static int check_target(const char *name)
{
	struct stat st;

	if (fstatat(file.dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	return S_ISREG(st.st_mode) ? 0 : EEXIST;
}

/* Folder and name of the path. 0, or what is wrong with it. */
static int find(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;
	char dir[PATH_ROOM] = ".";
	size_t n = slash != NULL ? (size_t)(slash - path) : 0;

	if (name[0] == 0)
		return EISDIR;
	if (strlen(path) >= PATH_ROOM || strlen(name) + SUFFIX_ROOM > NAME_ROOM)
		return ENAMETOOLONG;
	if (slash != NULL)
		snprintf(dir, sizeof(dir), "%.*s", (int)(n == 0 ? 1 : n), path);
	file.dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (file.dir < 0)
		return errno;
	snprintf(file.base, sizeof(file.base), "%s", name);
	/* The process has had a runtime before: not in the place of that. */
	if (strcmp(file.last, path) != 0)
		file.lives = 0;
	if (file.lives > 0)
		snprintf(file.base + strlen(name), SUFFIX_ROOM / 2, "-%u",
			 file.lives + 1);
	return check_target(file.base);
}

static void write_header(void)
{
	if (pwrite(file.fd, &file.header, sizeof(file.header), 0) < 0)
		base_warn("marcel", "MARCEL_TRACE=%s: no header: %s", file.path,
			  strerror(errno));
}

void marcel_trace_file_name(int rank, int size)
{
	char name[NAME_ROOM + SUFFIX_ROOM];
	int error;

	if (file.is_named)
		return;
	file.is_named = true;
	file.header.rank = size > 0 ? rank : -1;
	file.header.size = size;
	write_header();
	snprintf(name, sizeof(name), size > 1 ? "%s.%d" : "%s", file.base,
		 rank);
	error = check_target(name);
	if (error == 0 && renameat(file.dir, file.now, file.dir, name) < 0)
		error = errno;
	if (error != 0)
		base_warn("marcel",
			  "MARCEL_TRACE=%s: the trace stays in %s, "
			  "as %s is not to be had: %s",
			  file.path, file.now, name, strerror(error));
}

/* --- open, close --- */

static void fill_header(int nvp)
{
	struct marcel_trace_header *h = &file.header;

	memset(h, 0, sizeof(*h));
	memcpy(h->magic, MARCEL_TRACE_MAGIC, sizeof(h->magic));
	h->version = MARCEL_TRACE_VERSION;
	h->align = (uint32_t)file.align;
	h->rank = -1;
	h->pid = (uint32_t)getpid();
	h->nvp = (uint32_t)nvp;
	h->clock =
		marcel_trace_rings.ticks ? MARCEL_TRACE_CPU : MARCEL_TRACE_NS;
	h->record_bytes = sizeof(struct marcel_trace_record);
	h->start = read_clocks();
	gethostname(h->host, sizeof(h->host) - 1);
	snprintf(h->program, sizeof(h->program), "%s",
		 program_invocation_short_name);
}

/*
 * Make a file under a name that is free. On another machine or in another
 * container a process may have this pid and use FILE.pPID: this function takes
 * FILE.pPID.1 then. Returns 0 or an error number.
 */
static int make_file(void)
{
	size_t n = (size_t)snprintf(file.now, sizeof(file.now), "%s.p%d",
				    file.base, getpid());

	for (unsigned i = 1;; i++) {
		file.fd = openat(file.dir, file.now,
				 O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (file.fd >= 0)
			return 0;
		if (errno != EEXIST)
			return errno;
		snprintf(file.now + n, sizeof(file.now) - n, ".%u", i);
	}
}

int marcel_trace_file_open(const char *path, int nvp, size_t chunk)
{
	int error;

	file.path = path;
	file.align = os_page_size() > 4096 ? os_page_size() : 4096;
	file.chunk = aligned(chunk);
	file.is_named = false;
	store_relaxed(&file.end, file.align);
	if ((error = find(path)) != 0)
		goto err_dir;
	if ((error = make_file()) != 0)
		goto err_dir;
	if (ftruncate(file.fd, (off_t)file.align) < 0) {
		error = errno;
		goto err_file;
	}
	fill_header(nvp);
	write_header();
	marcel_trace_file_append_modules();
	file.lives++;
	strcpy(file.last, path);
	return 0;
err_file:
	unlinkat(file.dir, file.now, 0);
	close(file.fd);
err_dir:
	if (file.dir >= 0)
		close(file.dir);
	file.fd = file.dir = -1;
	return refuse(path, error);
}

static void close_both(void)
{
	close(file.fd);
	close(file.dir);
	file.fd = file.dir = -1;
}

void marcel_trace_file_drop(void)
{
	unlinkat(file.dir, file.now, 0);
	close_both();
}

void marcel_trace_file_forked(void)
{
	close_both();
}

void marcel_trace_file_close(void)
{
	marcel_trace_file_append_modules();
	marcel_trace_file_append_clock(MARCEL_TRACE_END);
	marcel_trace_file_name(-1, 0);
	close_both();
}
