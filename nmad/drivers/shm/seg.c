/*
 * Segments: made, found by peers, mapped, and gone without a trace whatever
 * kills whom.
 *
 * A segment is a memfd, which peers open through /proc/<pid>/fd/<fd>: nothing
 * has a name, nothing can stay behind. Where that is not to be had (no /proc),
 * it is a file in /dev/shm, which the last peer to map it unlinks; one left
 * behind by a process that was killed before is removed by the next process
 * of that user that makes a segment.
 *
 * That two processes may reach each other is decided by what they see: the
 * same kernel (boot id), the same process numbers (PID namespace), and the
 * same nonce in the mapped memory as in the address.
 */
#include "shm.h"

#include <dirent.h>
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

#include <base/diag.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

static void host_name(char host[static 40])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	memset(host, 0, 40);
	if (fd >= 0) {
		n = read(fd, host, 39);
		close(fd);
	}
	if (n <= 0)
		gethostname(host, 39);
}

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
	unsigned salt;

	sweep(addr);
	memcpy(&salt, addr->nonce, sizeof(salt));
	snprintf(addr->name, sizeof(addr->name), "/nmad-%lu-%lu-%d-%x",
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
	again = open(path, O_RDWR | O_CLOEXEC);
	if (again < 0) {
		close(fd);
		return -1;
	}
	close(again);
	return fd;
}

/*
 * The ring's pages now, and not one by one under the first messages, some
 * microseconds each. An older kernel knows no such advice.
 */
static void touch_ring(struct shm_seg *seg)
{
	madvise(seg, offsetof(struct shm_seg, ctl), MADV_POPULATE_WRITE);
}

static int fill(struct shm *shm, struct shm_addr *addr)
{
	struct shm_seg *seg;
	int rc;

	/* posix_fallocate: a full /dev/shm is an error here, no SIGBUS later */
	rc = shm->name[0] ? posix_fallocate(shm->fd, 0, (off_t)shm->bytes)
			  : -ftruncate(shm->fd, (off_t)shm->bytes);
	if (rc != 0)
		return rc > 0 ? -rc : -errno;
	seg = mmap(NULL, shm->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		   shm->fd, 0);
	if (seg == MAP_FAILED)
		return -errno;
	shm->seg = seg;
	touch_ring(seg);
	seg->version = SHM_VERSION;
	memcpy(seg->nonce, addr->nonce, SHM_NONCE);
	seg->rank = shm->rank;
	seg->nranks = shm->nranks;
	seg->magic = SHM_MAGIC;
	return 0;
}

static void remove_names(const char *name)
{
	shm_unlink(name);
	nm_shm_bell_unlink(name);
}

int nm_shm_seg_make(struct shm *shm, struct shm_addr *addr)
{
	int rc;

	memset(addr, 0, sizeof(*addr));
	addr->magic = SHM_MAGIC;
	addr->version = SHM_VERSION;
	addr->pid = getpid();
	host_name(addr->host);
	pid_namespace(addr->pidns);
	if (getrandom(addr->nonce, SHM_NONCE, 0) != SHM_NONCE)
		return -EIO;
	shm->bytes =
		sizeof(struct shm_seg) + shm->nranks * sizeof(struct shm_note);
	addr->bytes = shm->bytes;
	shm->fd = -1;
	if (nm_shm_options[SHM_OPT_SEGMENT].value == 0)
		shm->fd = make_memfd();
	if (shm->fd < 0)
		shm->fd = make_file(shm, addr);
	addr->fd = shm->fd;
	rc = shm->fd < 0 ? -errno : fill(shm, addr);
	if (rc < 0) {
		base_warn("nmad", "shm: cannot make a segment of %zu bytes: %s",
			  shm->bytes, strerror(-rc));
		nm_shm_seg_drop(shm);
		return rc;
	}
	nm_shm_bell_make(shm, addr);
	return 0;
}

void nm_shm_seg_drop(struct shm *shm)
{
	if (shm->seg != NULL)
		munmap(shm->seg, shm->bytes);
	if (shm->name[0])
		remove_names(shm->name);
	nm_shm_bell_drop(shm);
	if (shm->fd >= 0)
		close(shm->fd);
	shm->seg = NULL;
	shm->name[0] = 0;
	shm->fd = -1;
}

static bool same_host(const struct shm_addr *addr)
{
	uint64_t pidns[2];
	char host[40];

	host_name(host);
	pid_namespace(pidns);
	return memcmp(host, addr->host, sizeof(host)) == 0 &&
	       memcmp(pidns, addr->pidns, sizeof(pidns)) == 0;
}

int nm_shm_seg_map(struct shm *shm, struct shm_peer *p,
		   const struct shm_addr *addr)
{
	char path[64];
	struct stat st;
	struct shm_seg *seg;
	uint64_t unit, others;
	int fd;

	if (addr->magic != SHM_MAGIC || addr->version != SHM_VERSION ||
	    addr->bytes <
		    sizeof(*seg) + shm->nranks * sizeof(struct shm_note) ||
	    memchr(addr->name, 0, sizeof(addr->name)) == NULL ||
	    !same_host(addr))
		return -EHOSTUNREACH;
	if (addr->name[0]) {
		fd = shm_open(addr->name, O_RDWR, 0);
	} else {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", addr->pid,
			 addr->fd);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	if (fd < 0)
		return -EHOSTUNREACH;
	seg = MAP_FAILED;
	if (fstat(fd, &st) == 0 && (uint64_t)st.st_size >= addr->bytes)
		seg = mmap(NULL, addr->bytes, PROT_READ | PROT_WRITE,
			   MAP_SHARED, fd, 0);
	close(fd);
	if (seg == MAP_FAILED)
		return -EHOSTUNREACH;
	if (seg->magic != SHM_MAGIC ||
	    memcmp(seg->nonce, addr->nonce, SHM_NONCE) != 0 ||
	    seg->rank != (uint32_t)p->link->rank) {
		munmap(seg, addr->bytes);
		return -EHOSTUNREACH;
	}
	touch_ring(seg);
	p->seg = seg;
	p->bytes = addr->bytes;
	unit = nm_shm_bell_know(shm, p, addr) ? 1 : SHM_DEAF + 1;
	others = fetch_add_relaxed(&seg->mapped, unit) % SHM_DEAF;
	if (others + 2 == shm->nlocal && addr->name[0])
		remove_names(addr->name);
	return 0;
}

void nm_shm_seg_unmap(struct shm_peer *p)
{
	munmap(p->seg, p->bytes);
	p->seg = NULL;
}
