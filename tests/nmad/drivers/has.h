/*
 * What a process has of the kernel's for its peers.
 */
#ifndef TESTS_NMAD_DRIVERS_HAS_H
#define TESTS_NMAD_DRIVERS_HAS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct has {
	unsigned sockets, pidfds, pipes, fds;
	unsigned maps;   /* of memory that is shared with the others */
	size_t bytes;    /* addresses that they take */
	unsigned queues; /* of RDMA devices, that are mapped */
};

static inline bool starts(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static inline void *has_opened(void *stream, const char *path)
{
	if (stream == NULL) {
		perror(path);
		abort();
	}
	return stream;
}

/* What marcel's monitor looks at now and then: marcel/os/linux/thread.c. */
static inline bool is_monitors(const char *what)
{
	static const char *const looks[] = { "/proc/%*d/task/%*d/stat%n",
					     "/proc/%*d/task/%*d/syscall%n",
					     "/proc/%*d/status%n" };

	for (int i = 0; i < 3; i++) {
		int end = 0;

		if (sscanf(what, looks[i], &end) == 0 && end > 0 &&
		    what[end] == '\0')
			return true;
	}
	return false;
}

/* But for that by which this looks, and the monitor's. */
static inline void count_fds(struct has *h)
{
	const char *path = "/proc/self/fd";
	DIR *dir = has_opened(opendir(path), path);
	struct dirent *e;
	char what[64];

	while ((e = readdir(dir)) != NULL) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, what,
				       sizeof(what) - 1);

		if (n < 0)
			continue;
		what[n] = 0;
		if (atoi(e->d_name) == dirfd(dir) || is_monitors(what))
			continue;
		h->fds++;
		h->sockets += starts(what, "socket:");
		h->pidfds += starts(what, "anon_inode:[pidfd]") ||
			     starts(what, "pidfd:");
		h->pipes += starts(what, "pipe:");
	}
	closedir(dir);
}

static inline void count_maps(struct has *h)
{
	const char *path = "/proc/self/maps";
	FILE *f = has_opened(fopen(path, "r"), path);
	unsigned long from, to;
	char line[512];

	while (fgets(line, sizeof(line), f) != NULL) {
		h->queues += strstr(line, "/infiniband/uverbs") != NULL;
		if (strstr(line, "/memfd:nmad") == NULL ||
		    sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		h->maps++;
		h->bytes += to - from;
	}
	fclose(f);
}

static inline struct has look(void)
{
	struct has h = { 0 };

	count_fds(&h);
	count_maps(&h);
	return h;
}

#endif
