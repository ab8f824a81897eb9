/*
 * Shared memory of a window: a memfd of the first member, which the others open
 * through /proc/<pid>/fd/<fd>, so that nothing has a name and nothing can stay
 * behind. That they have found the right one they see by a nonce.
 *
 *   head: nonce, locks | part of rank 0 | part of rank 1 | ...
 */
#include "rma/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coll/coll.h"

enum { NONCE = 16 };

struct one_lock {
	struct base_spin spin;
} BASE_ALIGNED(BASE_CACHE_PAIR);

/* At the beginning of the memory. */
struct head {
	unsigned char nonce[NONCE];
	struct one_lock lock[]; /* by rank */
};

struct madmpi_shared {
	struct head *head; /* -: */
	size_t bytes;      /* -: of all */
	uint32_t me;       /* -: the name of this process, to locks */
};

/* What the first member tells the others. */
struct where {
	int32_t error, pid, fd;
	unsigned char nonce[NONCE];
};

static size_t round_up(size_t bytes, size_t to)
{
	return (bytes + to - 1) / to * to;
}

/*
 * Where the part of a member begins, that of rank `size` being the end. 0: it
 * is further than memory goes.
 */
static size_t offset_of(const struct madmpi_win *w, int rank, bool apart)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), at, bytes;

	at = round_up(sizeof(struct head) +
			      (size_t)w->size * sizeof(struct one_lock),
		      page);
	for (int i = 0; i < rank; i++) {
		bytes = (size_t)w->member[i].size;
		if (__builtin_add_overflow(at, bytes, &at) ||
		    at > (size_t)PTRDIFF_MAX - page)
			return 0;
		if (apart)
			at = round_up(at, page);
	}
	return at;
}

static int map(struct madmpi_shared *s, int fd)
{
	void *at =
		mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	s->head = at;
	return 0;
}

/* The first member. 0 or -errno; *fd is open, or -1. */
static int make(struct madmpi_shared *s, const struct madmpi_win *w, int *fd,
		struct where *where)
{
	int rc;

	*fd = memfd_create("madmpi", MFD_CLOEXEC);
	if (*fd < 0 || ftruncate(*fd, (off_t)s->bytes) < 0)
		return -errno;
	rc = map(s, *fd);
	if (rc < 0)
		return rc;
	if (getrandom(where->nonce, NONCE, 0) != NONCE)
		return -EIO;
	memcpy(s->head->nonce, where->nonce, NONCE);
	for (int i = 0; i < w->size; i++)
		base_spin_init(&s->head->lock[i].spin, BASE_RANK_NONE);
	where->pid = getpid();
	where->fd = *fd;
	return 0;
}

/* Each other one. */
static int find(struct madmpi_shared *s, const struct where *where)
{
	struct stat st;
	char path[64];
	int fd, rc;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", where->pid, where->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = fstat(fd, &st) < 0 || (size_t)st.st_size != s->bytes ? -ENXIO
								  : map(s, fd);
	close(fd);
	if (rc == 0 && memcmp(s->head->nonce, where->nonce, NONCE) != 0)
		rc = -ENXIO;
	return rc;
}

int madmpi_shared_make(const char *fn, struct madmpi_win *w,
		       struct madmpi_comm *comm, bool apart, int error)
{
	struct madmpi_shared *s = calloc(1, sizeof(*s));
	struct where where = { .error = s == NULL ? -ENOMEM : error };
	struct madmpi_coll c;
	int fd = -1, rc;

	if (where.error == 0) {
		s->me = BASE_SPIN_NAMES + (uint32_t)getpid();
		s->bytes = offset_of(w, w->size, apart);
		if (s->bytes == 0)
			where.error = -ENOMEM;
		else if (w->rank == 0)
			where.error = make(s, w, &fd, &where);
	}
	rc = where.error;
	madmpi_coll_begin(&c, fn, comm);
	madmpi_coll_tell(&c, &where, sizeof(where), 0);
	if (rc == 0)
		rc = c.error != 0 ? c.error : where.error;
	if (rc == 0 && w->rank != 0)
		rc = find(s, &where);
	rc = madmpi_coll_agree(fn, comm, rc);
	if (fd >= 0)
		close(fd);
	w->shared = s;
	if (rc != 0)
		madmpi_shared_drop(w);
	for (int i = 0; i < w->size && rc == 0; i++)
		if (w->member[i].size > 0)
			w->member[i].at =
				(char *)s->head + offset_of(w, i, apart);
	return rc;
}

void madmpi_shared_drop(struct madmpi_win *w)
{
	if (w->shared != NULL && w->shared->head != NULL)
		munmap(w->shared->head, w->shared->bytes);
	free(w->shared);
	w->shared = NULL;
}

/* So long it takes nobody who lives, most likely; milliseconds. */
enum { PATIENCE = 256 };

static bool has_died(uint32_t name)
{
	return name >= BASE_SPIN_NAMES &&
	       kill((pid_t)(name - BASE_SPIN_NAMES), 0) < 0 && errno == ESRCH;
}

/*
 * Of a lock in shared memory nobody waits on a futex: whoever has it is pinned,
 * and all others take turns in looking. Who dies with it leaves it to one of
 * these, and some elements as they were and others not.
 */
void madmpi_shared_lock(struct madmpi_shared *s, int rank)
{
	struct base_spin *spin = &s->head->lock[rank].spin;
	unsigned turn = 0, turns = 0;
	uint32_t holder;

	while (!base_spin_take(spin, 0, s->me)) {
		base_spin_turn(&turn);
		if (++turns % PATIENCE != 0)
			continue;
		holder = load_relaxed(&spin->word);
		if (has_died(holder) && base_spin_take(spin, holder, s->me))
			return;
	}
}

void madmpi_shared_unlock(struct madmpi_shared *s, int rank)
{
	base_spin_unlock(&s->head->lock[rank].spin);
}
