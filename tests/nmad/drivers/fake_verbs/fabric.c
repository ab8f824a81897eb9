#include "fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "object.h"

#define FOLDER "/dev/shm"
#define PREFIX "fake_verbs2." /* the number changes with the layout */

/* Bytes of the file that are locked: each slot's, and one who comes or goes. */
enum { FV_JOINING = FV_SLOTS };

struct fv_fabric *fv_fabric;
struct fv_slot *fv_me;

static int file = -1;
static char path[PATH_MAX];

/* Free pieces of the arena, in order; private: the owner alone allocates. */
struct piece {
	uint64_t at;
	size_t bytes;
};
static struct piece *pieces;
static size_t npieces;
static struct fv_lock arena_lock;

uint64_t fv_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* --- POSIX locks: gone with their process --- */

static int lock_byte(int fd, int byte, int cmd, short type)
{
	struct flock l = { .l_type = type,
			   .l_whence = SEEK_SET,
			   .l_start = byte,
			   .l_len = 1 };
	int rc;

	do
		rc = fcntl(fd, cmd, &l);
	while (rc != 0 && errno == EINTR);
	return rc != 0 ? errno : cmd == F_GETLK && l.l_type != F_UNLCK;
}

static bool byte_is_held(int fd, int byte)
{
	return lock_byte(fd, byte, F_GETLK, F_WRLCK) == 1;
}

bool fv_fabric_lives(uint32_t id)
{
	uint32_t slot = id % FV_SLOTS;

	/* One's own lock is no obstacle to oneself: it would seem free. */
	if (fv_me == &fv_fabric->slots[slot])
		return load_relaxed(&fv_me->id) == id;
	return load_acquire(&fv_fabric->slots[slot].id) == id &&
	       byte_is_held(file, (int)slot);
}

/* --- locks --- */

/* Before a slot is taken, a lock's owner is this one. */
enum { FV_NOBODY_YET = UINT32_MAX };

static uint32_t my_id(void)
{
	return fv_me != NULL ? load_relaxed(&fv_me->id) : FV_NOBODY_YET;
}

bool fv_lock_try(struct fv_lock *lock)
{
	uint32_t nobody = 0;

	return load_relaxed(&lock->owner) == 0 &&
	       cas_acquire(&lock->owner, &nobody, my_id());
}

static bool take_over(struct fv_lock *lock)
{
	uint32_t owner = load_relaxed(&lock->owner);

	return owner != 0 && owner != FV_NOBODY_YET &&
	       !fv_fabric_lives(owner) &&
	       cas_acquire(&lock->owner, &owner, my_id());
}

void fv_lock(struct fv_lock *lock)
{
	for (unsigned n = 1; !fv_lock_try(lock); n++) {
		if (n % 64 == 0)
			sched_yield();
		if (n % 1024 == 0 && take_over(lock))
			return;
	}
}

void fv_unlock(struct fv_lock *lock)
{
	store_release(&lock->owner, 0);
}

/* --- sleeping --- */

static long futex(void *word, int op, uint32_t value, const struct timespec *t)
{
	return syscall(SYS_futex, word, op, value, t, NULL, 0);
}

void fv_wake(struct fv_slot *slot)
{
	fetch_add_release(&slot->wake, 1);
	futex(&slot->wake, FUTEX_WAKE, INT_MAX, NULL);
}

void fv_sleep(uint32_t seen, long us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	futex(&fv_me->wake, FUTEX_WAIT, seen, us < 0 ? NULL : &t);
}

/* --- the arena --- */

static size_t rounded(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

uint64_t fv_arena_get(size_t bytes)
{
	uint64_t at = 0;

	bytes = rounded(bytes);
	fv_lock(&arena_lock);
	for (size_t i = 0; i < npieces && at == 0; i++) {
		if (pieces[i].bytes < bytes)
			continue;
		at = pieces[i].at;
		pieces[i].at += bytes;
		pieces[i].bytes -= bytes;
		if (pieces[i].bytes == 0)
			memmove(&pieces[i], &pieces[i + 1],
				(--npieces - i) * sizeof(*pieces));
	}
	fv_unlock(&arena_lock);
	if (at != 0)
		memset(fv_at(at), 0, bytes);
	return at;
}

static void join_pieces(size_t i)
{
	if (i + 1 < npieces &&
	    pieces[i].at + pieces[i].bytes == pieces[i + 1].at) {
		pieces[i].bytes += pieces[i + 1].bytes;
		memmove(&pieces[i + 1], &pieces[i + 2],
			(--npieces - i - 1) * sizeof(*pieces));
	}
}

void fv_arena_put(uint64_t at, size_t bytes)
{
	size_t i = 0;

	fv_lock(&arena_lock);
	pieces = realloc(pieces, (npieces + 1) * sizeof(*pieces));
	while (i < npieces && pieces[i].at < at)
		i++;
	memmove(&pieces[i + 1], &pieces[i], (npieces++ - i) * sizeof(*pieces));
	pieces[i] = (struct piece){ at, rounded(bytes) };
	join_pieces(i);
	if (i > 0)
		join_pieces(i - 1);
	fv_unlock(&arena_lock);
}

static void arena_init(void)
{
	fv_arena_put((uint64_t)(fv_me->arena - (char *)fv_fabric), FV_ARENA);
}

static void arena_exit(void)
{
	free(pieces);
	pieces = NULL;
	npieces = 0;
}

/* --- joining and leaving --- */

static bool is_deserted(int fd)
{
	for (int i = 0; i < FV_SLOTS; i++)
		if (byte_is_held(fd, i))
			return false;
	return true;
}

/* Files of jobs whose last process was killed. */
static void sweep(void)
{
	char prefix[64], name[PATH_MAX];
	struct stat s;
	DIR *folder = opendir(FOLDER);
	struct dirent *e;
	int fd;

	snprintf(prefix, sizeof(prefix), PREFIX "%u.", (unsigned)getuid());
	while (folder != NULL && (e = readdir(folder)) != NULL) {
		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
			continue;
		snprintf(name, sizeof(name), FOLDER "/%s", e->d_name);
		fd = open(name, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		/* Still linked, so that the name is this file's. */
		if (lock_byte(fd, FV_JOINING, F_SETLK, F_WRLCK) == 0 &&
		    fstat(fd, &s) == 0 && s.st_nlink > 0 && is_deserted(fd))
			unlink(name);
		close(fd);
	}
	if (folder != NULL)
		closedir(folder);
}

static void name_file(void)
{
	const char *job = getenv("FAKE_VERBS_JOB");

	snprintf(path, sizeof(path), FOLDER "/" PREFIX "%u.%d%s%s",
		 (unsigned)getuid(), (int)getsid(0), job != NULL ? "." : "",
		 job != NULL ? job : "");
}

/* Open it, new or not, with the right to join. 0, or errno. */
static int open_file(void)
{
	struct stat s;

	for (;;) {
		file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (file < 0)
			return errno;
		if (lock_byte(file, FV_JOINING, F_SETLKW, F_WRLCK) == 0 &&
		    fstat(file, &s) == 0 && s.st_nlink > 0)
			break;
		/* The last one has just left and removed it. */
		close(file);
	}
	if (s.st_size == 0 && ftruncate(file, sizeof(struct fv_fabric)) != 0)
		return errno;
	return 0;
}

/*
 * Who was here before is dead, but somebody may be about to deliver to it: they
 * compare numbers under each queue pair's lock.
 */
static void clear_slot(struct fv_slot *slot)
{
	for (int i = 0; i < FV_QPS; i++) {
		struct fv_end *e = &slot->ends[i];

		if (load_relaxed(&e->qpn) == 0)
			continue;
		fv_lock(&e->lock);
		store_relaxed(&e->qpn, 0);
		fv_unlock(&e->lock);
	}
	for (int i = 0; i < FV_MRS; i++)
		if (load_relaxed(&slot->mrs[i].key) != 0)
			store_relaxed(&slot->mrs[i].key, 0);
	for (int i = 0; i < FV_DEVICES; i++) {
		store_relaxed(&slot->down[i], 0);
		store_relaxed(&slot->fatal[i], 0);
	}
	fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  slot->arena - (char *)fv_fabric, FV_ARENA);
}

static int take_slot(void)
{
	for (uint32_t i = 0; i < FV_SLOTS; i++) {
		/* One after the other, so that a dead one's rests a while. */
		uint32_t n = (fv_fabric->generation + i) % FV_SLOTS;
		struct fv_slot *slot = &fv_fabric->slots[n];

		if (lock_byte(file, (int)n, F_SETLK, F_WRLCK) != 0)
			continue;
		fv_fabric->generation += i + 1;
		/* fv_lock() needs an id that nobody has had. */
		store_release(&slot->id,
			      n + (fv_fabric->generation + 1) * FV_SLOTS);
		fv_me = slot;
		fv_me->pid = getpid();
		fv_me->base = fv_fabric;
		clear_slot(slot);
		return 0;
	}
	return EUSERS;
}

int fv_fabric_join(void)
{
	int error;

	sweep();
	name_file();
	error = open_file();
	if (error != 0)
		return error;
	fv_fabric = mmap(NULL, sizeof(struct fv_fabric), PROT_READ | PROT_WRITE,
			 MAP_SHARED, file, 0);
	if (fv_fabric == MAP_FAILED) {
		error = errno;
		goto err_close;
	}
	madvise(fv_fabric, sizeof(struct fv_fabric), MADV_DONTDUMP);
	error = take_slot();
	if (error != 0)
		goto err_unmap;
	lock_byte(file, FV_JOINING, F_SETLK, F_UNLCK);
	/* Where Yama wants children only. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	arena_init();
	return 0;

err_unmap:
	munmap(fv_fabric, sizeof(struct fv_fabric));
err_close:
	fv_fabric = NULL;
	close(file);
	file = -1;
	return error;
}

static void forget(void)
{
	munmap(fv_fabric, sizeof(struct fv_fabric));
	close(file); /* which gives up our locks of it */
	file = -1;
	fv_fabric = NULL;
	fv_me = NULL;
	arena_exit();
}

void fv_fabric_leave(void)
{
	lock_byte(file, FV_JOINING, F_SETLKW, F_WRLCK);
	clear_slot(fv_me);
	store_release(&fv_me->id, 0);
	/* Locks of our own do not seem held to us. */
	if (is_deserted(file))
		unlink(path);
	forget();
}

/* Who exits without having closed. */
__attribute__((destructor)) static void leave(void)
{
	if (fv_me == NULL)
		return;
	lock_byte(file, FV_JOINING, F_SETLKW, F_WRLCK);
	if (is_deserted(file))
		unlink(path);
	lock_byte(file, FV_JOINING, F_SETLK, F_UNLCK);
}

/* A child has nothing of this. */
static void forked(void)
{
	if (fv_me != NULL)
		forget();
	fv_objects_forget();
}

__attribute__((constructor)) static void arrive(void)
{
	pthread_atfork(NULL, NULL, forked);
}
