/*
 * Whose wait a descriptor's events end. What is under <pioman/io.h>.
 */
#ifndef PIOMAN_IO_SET_H
#define PIOMAN_IO_SET_H

#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/list.h>

#include <pioman/cond.h>

/* What one waits for: a bit each. An error and a hang-up are both. */
enum piom_io_side {
	PIOM_IO_IN = 1,  /* to read, to accept; also urgent data */
	PIOM_IO_OUT = 2, /* to write, to be connected */
};

enum {
	PIOM_IO_FILE = 1, /* an answer: epoll cannot tell of this descriptor */
};

#define PIOM_IO_NEVER UINT64_MAX

/* How often each side had an event, as seen before a try. */
struct piom_io_seen {
	uint32_t in, out;
};

/* A thread that waits; on its stack. */
struct piom_io_wait {
	ATOMIC(bool) ended; /* a: relaxed; who sets it signals */
	piom_cond_t done;
};

/* A wait's place at one descriptor; on the same stack. l: the entry's lock */
struct piom_io_link {
	struct base_link link;     /* l: */
	struct piom_io_wait *wait; /* -: */
	int fd;                    /* -: */
	unsigned sides;            /* -: */
	bool gone;                 /* l: the descriptor was closed meanwhile */
};

/*
 * First of all, and before each try, so that what comes after it is not missed.
 * 0; -EBADF: no descriptor has this number, -EMFILE: pioman takes none so high;
 * -EPERM: pioman does not run; other -errno: the set cannot be had.
 */
int piom_io_look(int fd, struct piom_io_seen *out);

/*
 * Have events of fd end the wait. 0; -EAGAIN: one of `sides` had an event since
 * *seen, unless that is NULL, so try again; PIOM_IO_FILE; other -errno: as of
 * epoll_ctl(2). The wait is entered only if 0. After piom_io_look().
 */
int piom_io_enter(struct piom_io_link *l, struct piom_io_wait *w, int fd,
		  unsigned sides, const struct piom_io_seen *seen);

/* Afterwards nobody touches the link. Also if the wait has ended. */
void piom_io_leave(struct piom_io_link *l);

void piom_io_wait_init(struct piom_io_wait *w);

/* How many links are entered, just now. */
uint32_t piom_io_nwaits(void);

/* Whether t, of a queue, is the task that looks at the set. */
struct piom_task;
bool piom_io_is_set(const struct piom_task *t);

/* Until it has ended, or a time by base_now_ns() has come: false. */
bool piom_io_sleep(struct piom_io_wait *w, uint64_t deadline);

/*
 * Close fd; who waits for it is told that it is gone. 0, or -errno as of
 * close(2), and -EBADF if somebody else is closing it.
 */
int piom_io_close(int fd);

/*
 * Enter, sleep and leave for one descriptor, for ever. 0: try again; -EBADF: it
 * was closed; PIOM_IO_FILE; other -errno as above.
 */
int piom_io_await(int fd, unsigned side, const struct piom_io_seen *seen);

/*
 * piom_exit() in three steps: stop looking, false if somebody waits; go on
 * after all; give back what there is.
 */
bool piom_io_stop(void);
void piom_io_go_on(void);
void piom_io_exit(void);

/* In the child of a fork(): the set is the parent's, nobody waits. */
void piom_io_forked(void);

#endif
