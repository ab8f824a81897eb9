/*
 * drivers/shm: memory and bell are open to the user of the job only, and what
 * lies where the memory is to be found is used only if it is the maker's.
 * Processes of the same user are no strangers: they could trace us.
 */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../nmad/drivers/shm/shm.h"
#include "shm_both.h"

enum { STRANGER = 65534 };

/* Rank 0 has joined, rank 1 not yet. */
static struct shm_addr begin(bool file)
{
	struct shm_addr a;

	setenv("NMAD_SHM_SEGMENT", file ? "file" : "memfd", 1);
	open_one(0);
	open_one(1);
	unsetenv("NMAD_SHM_SEGMENT");
	memcpy(&a, rails[0].addr, sizeof(a));
	CHECK_INT(a.name[0] != 0, file);
	CHECK_INT(nm_driver_shm.join(&rails[0], &a, sizeof(a)), 0);
	return a;
}

static void end(void)
{
	nm_driver_shm.close(&rails[0]);
	nm_driver_shm.close(&rails[1]);
}

/* Whether rank 1, which is told this, maps what it finds there. */
static bool takes(const struct shm_addr *told)
{
	const struct shm *shm = rails[1].drv;

	CHECK_INT(nm_driver_shm.join(&rails[1], told, sizeof(*told)), 0);
	return shm->arena != NULL;
}

/* --- from outside --- */

static int open_fd(const struct shm_addr *a, int fd, int how)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", a->pid, fd);
	return open(path, how | O_CLOEXEC | O_NONBLOCK);
}

/* The first thing in which another user succeeds; 0: in nothing. */
static int intrude(const struct shm_addr *a, char *secret)
{
	char byte;
	struct iovec mine = { &byte, 1 }, its = { secret, 1 };

	if (setgroups(0, NULL) < 0 || setgid(STRANGER) < 0 ||
	    setuid(STRANGER) < 0)
		return -1;
	if (open_fd(a, a->fd, O_RDONLY) >= 0 || open_fd(a, a->fd, O_RDWR) >= 0)
		return 1;
	if (open_fd(a, a->bell.fd, O_RDONLY) >= 0 ||
	    open_fd(a, a->bell.fd, O_WRONLY) >= 0)
		return 2;
	if (a->name[0] && (shm_open(a->name, O_RDONLY, 0) >= 0 ||
			   shm_open(a->name, O_RDWR, 0) >= 0))
		return 3;
	if (a->name[0] && shm_unlink(a->name) == 0)
		return 4;
	if (process_vm_readv(a->pid, &mine, 1, &its, 1, 0) >= 0 ||
	    process_vm_writev(a->pid, &mine, 1, &its, 1, 0) >= 0)
		return 5;
	return 0;
}

static void keeps_out(bool file)
{
	struct shm_addr a = begin(file);
	struct shm *shm = rails[0].drv;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(intrude(&a, (char *)shm->secret) & 0xff);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(takes(&a));
	end();
	CHECK(WIFEXITED(status));
	if (WEXITSTATUS(status) == 0xff)
		check_skip("only root can become another user");
	CHECK_INT(WEXITSTATUS(status), 0);
}

TEST(another_user_reaches_neither_memory_nor_bell)
{
	keeps_out(false);
	keeps_out(true);
}

/* What is in the list of /dev/shm tells nothing that is to be known. */
TEST(the_name_of_the_file_is_chosen_anew_and_says_nothing_of_the_nonce)
{
	struct shm_addr a = begin(true), b;
	unsigned long salt, again;
	unsigned char part[sizeof(salt)];
	struct stat st;
	int fd;

	fd = shm_open(a.name, O_RDWR, 0);
	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	close(fd);
	CHECK_INT(st.st_mode & 07777, 0600);
	CHECK_INT(sscanf(strrchr(a.name, '-'), "-%lx", &salt), 1);
	memcpy(part, &salt, sizeof(part));
	CHECK(memcmp(part, a.nonce, 4) != 0);
	CHECK(takes(&a));
	CHECK(shm_open(a.name, O_RDWR, 0) < 0 && errno == ENOENT);
	end();
	b = begin(true);
	CHECK_INT(sscanf(strrchr(b.name, '-'), "-%lx", &again), 1);
	CHECK(salt != again);
	end();
}

/* --- what is not the maker's --- */

enum forgery {
	COPY,
	OWNER,
	READABLE,
	WRITABLE,
	SHORT,
	EMPTY,
	LINK,
	FIFO,
	ENDS
};

/* The head of the memory as it is, word for word, in this file. */
static void copy_head(int fd, const struct shm_addr *a, enum forgery kind)
{
	const struct shm *shm = rails[0].drv;
	size_t bytes = sizeof(struct shm_arena) + 2 * sizeof(struct shm_card);

	CHECK_INT(ftruncate(fd, (off_t)a->bytes - (kind == SHORT)), 0);
	if (kind != EMPTY)
		CHECK_INT(pwrite(fd, shm->arena, bytes, 0), bytes);
	CHECK_INT(fchmod(fd, kind == READABLE   ? 0640
			     : kind == WRITABLE ? 0606
						: 0600),
		  0);
	if (kind == OWNER && fchown(fd, STRANGER, (gid_t)-1) < 0)
		CHECK_INT(ftruncate(fd, 0), 0); /* none of ours: nor is this */
}

/* A file with a name that the others are told. */
static void forge_file(struct shm_addr *a, enum forgery kind)
{
	char path[80], to[100];
	int fd;

	snprintf(a->name, sizeof(a->name), "/nmad-test-%d", (int)getpid());
	snprintf(path, sizeof(path), "/dev/shm%s", a->name);
	snprintf(to, sizeof(to), "%s-to", path);
	if (kind == FIFO) {
		CHECK_INT(mkfifo(path, 0600), 0);
		return;
	}
	fd = open(kind == LINK ? to : path, O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0);
	copy_head(fd, a, kind);
	close(fd);
	if (kind == LINK)
		CHECK_INT(symlink(to, path), 0);
}

static void remove_file(const struct shm_addr *a)
{
	char to[100];

	snprintf(to, sizeof(to), "%s-to", a->name);
	shm_unlink(to);
	shm_unlink(a->name);
}

TEST(a_file_with_the_right_name_is_used_only_if_it_is_the_makers)
{
	for (int kind = COPY; kind < ENDS; kind++) {
		struct shm_addr a = begin(true);
		bool taken;

		forge_file(&a, kind);
		taken = takes(&a);
		remove_file(&a);
		end();
		CHECK_INT(taken, kind == COPY);
	}
}

/* As if the maker's number, or that of its descriptor, were another's now. */
TEST(a_descriptor_with_the_right_number_is_used_only_if_it_is_the_makers)
{
	for (int kind = COPY; kind < LINK; kind++) {
		struct shm_addr a = begin(false);
		bool taken;

		a.fd = memfd_create("forged", MFD_CLOEXEC);
		copy_head(a.fd, &a, kind);
		taken = takes(&a);
		close(a.fd);
		end();
		CHECK_INT(taken, kind == COPY);
	}
}

/* Its number may have gone to another descriptor since. */
TEST(a_bell_that_is_another_pipe_is_not_rung)
{
	struct shm_addr a = begin(false);
	struct shm_where_bell where = a.bell;
	int ends[2];
	char byte;

	CHECK_INT(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	where.fd = ends[1];
	CHECK_INT(nm_shm_bell_open(a.pid, &where), -ENOENT);
	where.fd = a.fd;
	CHECK_INT(nm_shm_bell_open(a.pid, &where), -ENOENT);
	CHECK(read(ends[0], &byte, 1) < 0 && errno == EAGAIN);
	close(ends[0]);
	close(ends[1]);
	CHECK(takes(&a));
	end();
}
