/*
 * An ltask that reads bytes out of a pipe and answers AGAIN when there is none,
 * for tests of what arms it and what wakes it.
 */
#ifndef TESTS_PIOMAN_IO_PIPES_H
#define TESTS_PIOMAN_IO_PIPES_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <base/atomic.h>
#include <pioman/pioman.h>

struct reader {
	struct piom_ltask task;
	int fd[2];
	ATOMIC(int) runs;
	ATOMIC(int) bytes;
	piom_cond_t *got; /* signalled at each byte, if not NULL */
	bool unasked;     /* nothing is awaited: it answers QUIET */
};

static inline enum piom_ltask_result reader_run(void *arg)
{
	struct reader *r = arg;
	char byte;

	fetch_add_relaxed(&r->runs, 1);
	if (read(r->fd[0], &byte, 1) != 1)
		return r->unasked ? PIOM_LTASK_QUIET : PIOM_LTASK_AGAIN;
	fetch_add_relaxed(&r->bytes, 1);
	if (r->got != NULL)
		piom_cond_signal(r->got);
	return PIOM_LTASK_WORKED;
}

/* By another function, which calls reader_run(); `how` without the descriptor.
 */
static inline void reader_init_as(struct reader *r, piom_ltask_fn fn,
				  struct piom_blocking how)
{
	store_relaxed(&r->runs, 0);
	store_relaxed(&r->bytes, 0);
	r->got = NULL;
	r->unasked = false;
	CHECK_INT(pipe2(r->fd, O_NONBLOCK | O_CLOEXEC), 0);
	how.fd = r->fd[0];
	piom_ltask_init(&r->task, fn, r, PIOM_LTASK_REPEAT, NULL);
	CHECK_INT(piom_ltask_set_blocking(&r->task, &how), 0);
}

static inline void reader_init(struct reader *r, int (*arm)(void *arg))
{
	reader_init_as(r, reader_run,
		       (struct piom_blocking){
			       .arm = arm, .delay_ns = PIOM_BLOCKING_AUTO });
}

static inline void reader_end(struct reader *r)
{
	CHECK_INT(piom_ltask_cancel(&r->task), 0);
	close(r->fd[0]);
	close(r->fd[1]);
}

static inline void feed(struct reader *r)
{
	CHECK_INT(write(r->fd[1], "x", 1), 1);
}

#endif
