/*
 * What this process, and those that it forks, say on stderr meanwhile.
 */
#ifndef TESTS_NMAD_DRIVERS_SAID_H
#define TESTS_NMAD_DRIVERS_SAID_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../check.h"

static int said_fd = -1, said_before = -1;

/*
 * From now on. Of several who write at once each appends: the kernel keeps the
 * offset that they share from two of them for files on a disk only.
 */
static inline void said_begin(void)
{
	said_fd = memfd_create("said", MFD_CLOEXEC);
	CHECK(said_fd >= 0);
	CHECK_INT(fcntl(said_fd, F_SETFL, O_APPEND), 0);
	fflush(stderr);
	said_before = dup(STDERR_FILENO);
	CHECK(dup2(said_fd, STDERR_FILENO) >= 0);
}

/* All of it, to be freed; nothing is kept from now on. */
static inline char *said_end(void)
{
	off_t bytes = lseek(said_fd, 0, SEEK_END);
	char *text = calloc(1, (size_t)bytes + 1);

	dup2(said_before, STDERR_FILENO);
	CHECK(pread(said_fd, text, (size_t)bytes, 0) == bytes);
	close(said_before);
	close(said_fd);
	said_fd = said_before = -1;
	return text;
}

/* How often the text has that part. */
static inline unsigned said_count(const char *text, const char *part)
{
	unsigned n = 0;

	while ((text = strstr(text, part)) != NULL) {
		text += strlen(part);
		n++;
	}
	return n;
}

/* It does, so many times; else what was said is shown. */
static inline void said_times(const char *text, const char *part, unsigned n)
{
	unsigned got = said_count(text, part);

	if (got != n)
		check_fail(__FILE__, __LINE__,
			   "\"%s\" %u times, not %u, in:\n%s", part, got, n,
			   text);
}

#endif
