/*
 * A memfd of the first process, which the others open through
 * /proc/<pid>/fd/<fd>, so that nothing has a name and nothing can stay behind.
 * That they have found the right one they see by a nonce at its beginning.
 *
 * Whether it is used is said there, too: processes that die meanwhile may leave
 * some of the others with all that was to be heard, and others without. Who has
 * it knows that everybody has mapped the memory, and says yes; who has not says
 * no. What is said first holds, and nobody has said yes where some have not
 * mapped it. Then they may agree on one number more in the same way, for which
 * those that are not of one host have sent each other nothing.
 */
#include "coll/segment.h"

#include <marcel/errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/atomic.h>

#include "coll/coll.h"

enum { NONCE = 16 };

enum { OPEN, NO, YES }; /* from YES on: and the least number */

typedef ATOMIC(uint32_t) word_t;

/* At the beginning of the memory. */
struct head {
	unsigned char nonce[NONCE]; /* -: */
	/* a: relaxed, nothing is found by them */
	word_t is_used;
	word_t number;
};

_Static_assert(sizeof(struct head) <= MADMPI_SEGMENT_HEAD, "it is the rest's");

/* What the first process tells the others. */
struct where {
	int32_t error, pid, fd;
	unsigned char nonce[NONCE];
};

static uintptr_t round_up(uintptr_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/*
 * Reserve addresses for so many bytes, aligned to more than a page. Returns the
 * first one, or MAP_FAILED.
 */
static void *reserve(size_t bytes, size_t align, size_t page)
{
	size_t room = round_up(bytes, page) + align - page, rest;
	char *low = mmap(NULL, room, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at, *end;

	if (low == MAP_FAILED)
		return low;
	at = (char *)round_up((uintptr_t)low, align);
	end = at + round_up(bytes, page);
	rest = room - (size_t)(end - low);
	if (at > low)
		munmap(low, (size_t)(at - low));
	if (rest > 0)
		munmap(end, rest);
	return at;
}

static int map(struct madmpi_segment *s, int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int flags = MAP_SHARED, err;
	void *at, *place = NULL;

	if (s->align > page) {
		place = reserve(s->bytes, s->align, page);
		flags |= MAP_FIXED;
	}
	if (place == MAP_FAILED)
		return -errno;
	at = mmap(place, s->bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (at == MAP_FAILED) {
		err = errno;
		if (place != NULL)
			munmap(place, s->bytes);
		return -err;
	}
	s->at = at;
	return 0;
}

/* The first process. 0 or -errno; *fd is open, or -1. */
static int make(struct madmpi_segment *s, int *fd, struct where *where)
{
	int rc;

	*fd = memfd_create("madmpi", MFD_CLOEXEC);
	if (*fd < 0 || fchmod(*fd, 0600) < 0 ||
	    ftruncate(*fd, (off_t)s->bytes) < 0)
		return -errno;
	rc = map(s, *fd);
	if (rc < 0)
		return rc;
	if (getrandom(where->nonce, NONCE, 0) != NONCE)
		return -EIO;
	memcpy(s->at, where->nonce, NONCE);
	where->pid = getpid();
	where->fd = *fd;
	return 0;
}

/* Whatever has that number now; nobody but its user may write there. */
static bool may_be_it(const struct stat *st, size_t bytes)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
	       (st->st_mode & (S_IRWXG | S_IRWXO)) == 0 &&
	       (size_t)st->st_size == bytes;
}

/* Each other one. */
static int find(struct madmpi_segment *s, const struct where *where)
{
	struct stat st;
	char path[64];
	int fd, rc;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", where->pid, where->fd);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	rc = fstat(fd, &st) < 0 || !may_be_it(&st, s->bytes) ? -ENXIO
							     : map(s, fd);
	close(fd);
	if (rc == 0 && memcmp(s->at, where->nonce, NONCE) != 0) {
		madmpi_segment_drop(s); /* it is somebody else's */
		rc = -ENXIO;
	}
	return rc;
}

/* By who has it mapped: what is said first; the same for all. */
static int settle(word_t *word, int least)
{
	uint32_t said = least >= 0 ? YES + (uint32_t)least : NO, before = OPEN;

	if (!cas_relaxed(word, &before, said))
		said = before;
	if (said >= YES)
		return (int)(said - YES);
	return least < 0 ? least : -ECONNRESET;
}

int madmpi_segment_share(struct madmpi_coll *c, size_t bytes, size_t align,
			 int mine, struct madmpi_segment *out)
{
	struct madmpi_segment s = { .bytes = bytes, .align = align };
	struct where where = { .error = mine };
	int fd = -1, rc;

	if (mine == 0 && c->rank == 0)
		where.error = make(&s, &fd, &where);
	rc = where.error;
	madmpi_bcast_binomial(c, &where, sizeof(where),
			      madmpi_type_of(MPI_BYTE), 0);
	if (rc == 0)
		rc = madmpi_coll_errno(c);
	if (rc == 0)
		rc = where.error;
	if (rc == 0 && c->rank != 0)
		rc = find(&s, &where);
	rc = madmpi_coll_least(c, rc);
	if (s.at != NULL)
		rc = settle(&((struct head *)s.at)->is_used, rc);
	if (fd >= 0)
		close(fd);
	if (rc == 0)
		*out = s;
	else
		madmpi_segment_drop(&s);
	return rc;
}

int madmpi_segment_agree(struct madmpi_coll *c, const struct madmpi_segment *s,
			 int mine)
{
	struct head *h = s->at;

	return settle(&h->number, madmpi_coll_least(c, mine));
}

void madmpi_segment_drop(struct madmpi_segment *s)
{
	if (s->at != NULL)
		munmap(s->at, s->bytes);
	s->at = NULL;
}
