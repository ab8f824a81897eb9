/*
 * The arena: made, found by the others, mapped part by part, and gone without a
 * trace whatever kills whom.
 *
 * It is a memfd of the lowest rank of the host, which the others open through
 * /proc/<pid>/fd/<fd> when they join: nothing has a name, nothing can stay
 * behind. Where that is not to be had (no /proc), it is a file in /dev/shm,
 * which the last of them to join unlinks; one left behind by a process that was
 * killed before is removed by the next process of that user that makes one.
 *
 * That two processes may reach each other is decided by what they see: both see
 * the same kernel (boot id) and the same process numbers (PID namespace) as the
 * maker, and the maker's nonce, which came through the launcher, in the memory
 * that they share. When one uses the other, its segment must name it, and its
 * process number be that of the process (bell.c, cma.c): a number may have gone
 * to another process since.
 */
#include "shm.h"

#include <dirent.h>
#include <marcel/errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/diag.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

static void pid_namespace(uint64_t id[static 2])
{
	struct stat st;

	id[0] = id[1] = 0;
	if (stat("/proc/self/ns/pid", &st) == 0) {
		id[0] = st.st_dev;
		id[1] = st.st_ino;
	}
}

/* Remove files of processes of ours that no longer live. */
static void sweep(const struct shm_addr *addr)
{
	DIR *dir = opendir("/dev/shm");
	struct dirent *e;

	if (dir == NULL)
		return;
	while ((e = readdir(dir)) != NULL) {
		unsigned long uid, ns;
		char path[300];
		int pid;

		if (sscanf(e->d_name, "nmad-%lu-%lu-%d-", &uid, &ns, &pid) != 3)
			continue;
		if (uid != getuid() || ns != addr->pidns[1] ||
		    kill(pid, 0) == 0 || errno != ESRCH)
			continue;
		snprintf(path, sizeof(path), "/%s", e->d_name);
		shm_unlink(path);
	}
	closedir(dir);
}

static int make_file(struct shm *shm, struct shm_addr *addr)
{
	unsigned long salt; /* anybody may see it, and nothing of the nonce */

	sweep(addr);
	if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return -1;
	snprintf(addr->name, sizeof(addr->name), "/nmad-%lu-%lu-%d-%lx",
		 (unsigned long)getuid(), (unsigned long)addr->pidns[1],
		 (int)getpid(), salt);
	memcpy(shm->name, addr->name, sizeof(shm->name));
	return shm_open(addr->name, O_RDWR | O_CREAT | O_EXCL, 0600);
}

/* A memfd that peers will be able to open, or -1. */
static int make_memfd(void)
{
	int fd = memfd_create("nmad", MFD_CLOEXEC);
	char path[64];
	int again;

	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	again = fchmod(fd, 0600) < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
	if (again < 0) {
		close(fd);
		return -1;
	}
	close(again);
	return fd;
}

/* --- sizes --- */

static size_t round_up(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

static size_t head_bytes(const struct shm *shm)
{
	return round_up(sizeof(struct shm_arena) +
			shm->nlocal * sizeof(struct shm_card));
}

static size_t seg_bytes(const struct shm *shm)
{
	return round_up(sizeof(struct shm_seg) +
			shm->nlocal * sizeof(struct shm_note));
}

static size_t seg_offset(const struct shm *shm, uint32_t index)
{
	return head_bytes(shm) + index * shm->bytes;
}

/* --- mapping --- */

static void *map(const struct shm *shm, size_t offset, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			shm->fd, (off_t)offset);

	return at == MAP_FAILED ? NULL : at;
}

/* My part. posix_fallocate: a full /dev/shm is an error here, no SIGBUS later
 */
static void *map_mine(const struct shm *shm, size_t offset, size_t bytes)
{
	int rc = 0;

	if (shm->name[0])
		rc = posix_fallocate(shm->fd, (off_t)offset, (off_t)bytes);
	errno = rc;
	return rc == 0 ? map(shm, offset, bytes) : NULL;
}

/*
 * The ring's pages now, and not one by one under the first messages, some
 * microseconds each. An older kernel knows no such advice.
 */
static void touch_ring(struct shm_seg *seg)
{
	madvise(seg, offsetof(struct shm_seg, ctl), MADV_POPULATE_WRITE);
}

/* --- making it --- */

static int fill(struct shm *shm, const struct shm_addr *addr)
{
	if (ftruncate(shm->fd, (off_t)addr->bytes) < 0)
		return -errno;
	shm->arena = map_mine(shm, 0, head_bytes(shm));
	if (shm->arena == NULL)
		return -errno;
	shm->arena->version = SHM_VERSION;
	memcpy(shm->arena->nonce, addr->nonce, SHM_NONCE);
	shm->arena->magic = SHM_MAGIC;
	return 0;
}

static int cannot(struct shm *shm, const char *what, int rc)
{
	base_warn("nmad", "shm: cannot %s: %s", what, strerror(-rc));
	nm_shm_arena_drop(shm);
	return rc;
}

int nm_shm_arena_make(struct shm *shm, struct shm_addr *addr)
{
	int rc;

	memset(addr, 0, sizeof(*addr));
	addr->magic = SHM_MAGIC;
	addr->version = SHM_VERSION;
	addr->pid = getpid();
	addr->uid = geteuid();
	addr->bell = shm->bell_at;
	base_host_id(addr->host);
	pid_namespace(addr->pidns);
	if (getrandom(addr->nonce, SHM_NONCE, 0) != SHM_NONCE)
		return -EIO;
	addr->bytes = seg_offset(shm, shm->nlocal);
	if (nm_shm_options[SHM_OPT_SEGMENT].value == 0)
		shm->fd = make_memfd();
	if (shm->fd < 0)
		shm->fd = make_file(shm, addr);
	addr->fd = shm->fd;
	rc = shm->fd < 0 ? -errno : fill(shm, addr);
	return rc < 0 ? cannot(shm, "make a file of memory", rc) : 0;
}

void nm_shm_arena_drop(struct shm *shm)
{
	if (shm->seg != NULL)
		munmap(shm->seg, shm->bytes);
	if (shm->arena != NULL)
		munmap(shm->arena, head_bytes(shm));
	if (shm->name[0])
		shm_unlink(shm->name);
	if (shm->fd >= 0)
		close(shm->fd);
	shm->seg = NULL;
	shm->arena = NULL;
	shm->name[0] = 0;
	shm->fd = -1;
}

/* --- joining --- */

static bool same_host(const struct shm_addr *addr)
{
	uint64_t pidns[2];
	char host[BASE_HOST_ID];

	base_host_id(host);
	pid_namespace(pidns);
	return memcmp(host, addr->host, sizeof(host)) == 0 &&
	       memcmp(pidns, addr->pidns, sizeof(pidns)) == 0;
}

static int open_file(struct shm *shm, const struct shm_addr *addr)
{
	char path[64];

	if (addr->name[0]) {
		memcpy(shm->name, addr->name, sizeof(shm->name));
		return shm_open(addr->name, O_RDWR, 0);
	}
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", addr->pid, addr->fd);
	/* Whatever has that number now: nothing happens by opening it. */
	return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Memory of the maker's user, and nobody else can write there. */
static bool is_safe(const struct stat *st, const struct shm_addr *addr)
{
	return S_ISREG(st->st_mode) && st->st_uid == addr->uid &&
	       (st->st_mode & (S_IRWXG | S_IRWXO)) == 0 &&
	       (uint64_t)st->st_size >= addr->bytes;
}

/* The maker's memory: false if we do not share it. */
static bool find(struct shm *shm, const struct shm_addr *addr)
{
	struct stat st;

	if (addr->magic != SHM_MAGIC || addr->version != SHM_VERSION ||
	    addr->bytes != seg_offset(shm, shm->nlocal) ||
	    memchr(addr->name, 0, sizeof(addr->name)) == NULL ||
	    !same_host(addr))
		return false;
	shm->fd = open_file(shm, addr);
	if (shm->fd >= 0 && fstat(shm->fd, &st) == 0 && is_safe(&st, addr))
		shm->arena = map(shm, 0, head_bytes(shm));
	return shm->arena != NULL && shm->arena->magic == SHM_MAGIC &&
	       memcmp(shm->arena->nonce, addr->nonce, SHM_NONCE) == 0;
}

/*
 * Whether all can ring each other: I can open the maker's bell, and who can
 * open that one can open mine. What is not so is known before anybody sleeps.
 */
static bool is_deaf(const struct shm_addr *addr)
{
	int fd = nm_shm_bell_open(addr->pid, &addr->bell);

	if (fd < 0)
		return true;
	close(fd);
	return getuid() != addr->uid || geteuid() != addr->uid ||
	       prctl(PR_GET_DUMPABLE) != 1;
}

static void leave_card(struct shm *shm)
{
	struct shm_card *card = &shm->arena->card[shm->index];

	card->rank = shm->rank;
	card->pid = getpid();
	card->secret = (uint64_t)(uintptr_t)shm->secret;
	card->bell = shm->bell_at;
	card->there = 1;
}

int nm_shm_arena_join(struct shm *shm, const struct shm_addr *addr)
{
	struct shm_seg *seg;

	if (shm->arena == NULL && !find(shm, addr)) {
		shm->name[0] = 0; /* not ours to unlink */
		nm_shm_arena_drop(shm);
		return 0;
	}
	seg = map_mine(shm, seg_offset(shm, shm->index), shm->bytes);
	if (seg == NULL)
		return cannot(shm, "map my segment", -errno);
	shm->seg = seg;
	touch_ring(seg);
	seg->version = SHM_VERSION;
	memcpy(seg->nonce, shm->secret, SHM_NONCE);
	seg->rank = shm->rank;
	seg->nranks = shm->nranks;
	seg->bell.barrier = shm->barrier;
	seg->magic = SHM_MAGIC;
	if (is_deaf(addr))
		store_relaxed(&shm->arena->deaf, 1);
	if (!shm->barrier)
		store_relaxed(&shm->arena->heavy, 1);
	leave_card(shm);
	if (fetch_add_relaxed(&shm->arena->joined, 1) + 1 == shm->nlocal &&
	    shm->name[0])
		shm_unlink(shm->name);
	if (shm->index > 0)
		shm->name[0] = 0; /* the maker's, if some never join */
	return 0;
}

void nm_shm_arena_init(struct shm *shm)
{
	shm->fd = -1;
	shm->bytes = seg_bytes(shm);
}

/* --- a peer's segment --- */

int nm_shm_seg_map(struct shm *shm, struct shm_peer *p)
{
	const struct shm_card *card = &shm->arena->card[p->index];
	struct shm_seg *seg = map(shm, seg_offset(shm, p->index), shm->bytes);

	if (seg == NULL)
		return -EAGAIN;
	if (seg->magic == SHM_MAGIC && seg->version == SHM_VERSION &&
	    seg->rank == card->rank) {
		touch_ring(seg);
		p->seg = seg;
		return 0;
	}
	munmap(seg, shm->bytes);
	base_warn("nmad", "shm: the segment of rank %u is none", card->rank);
	return -EPROTO;
}

void nm_shm_seg_unmap(struct shm *shm, struct shm_peer *p)
{
	munmap(p->seg, shm->bytes);
	p->seg = NULL;
}
