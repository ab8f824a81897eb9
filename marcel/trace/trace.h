/*
 * Events of marcel's own, which know the VP that they are of.
 */
#ifndef MARCEL_TRACE_TRACE_H
#define MARCEL_TRACE_TRACE_H

#include <base/trace.h>
#include "../sched/vp.h"

/* marcel_trace_switch, for this library. */
extern BASE_HIDDEN struct marcel_trace_switch marcel_trace_here;

/* record.c: the slow halves of those below; the caller drives vp. */
void marcel_trace_vp_put(struct marcel_vp *vp, enum marcel_trace_kind kind,
			 uint32_t a, uint64_t b);
void marcel_trace_vp_text(struct marcel_vp *vp, enum marcel_trace_kind kind,
			  struct marcel_thread *t, const char *text);
void marcel_trace_vp_enters(struct marcel_vp *vp, struct marcel_thread *t);
void marcel_trace_vp_leaves(struct marcel_vp *vp, struct marcel_thread *self,
			    enum marcel_trace_kind what,
			    struct marcel_thread *next);

static inline bool marcel_trace_is_here(void)
{
	return unlikely(load_relaxed(&marcel_trace_here.on) != 0);
}

/* Something happens on vp, which the caller drives; NULL: it has none. */
static inline void marcel_trace_vp(struct marcel_vp *vp,
				   enum marcel_trace_kind kind, uint32_t a,
				   const void *b)
{
	if (marcel_trace_is_here())
		marcel_trace_vp_put(vp, kind, a, (uintptr_t)b);
}

/* vp runs t from now on, or is idle. */
static inline void marcel_trace_enter(struct marcel_vp *vp,
				      struct marcel_thread *t)
{
	if (marcel_trace_is_here())
		marcel_trace_vp_enters(vp, t);
}

/*
 * vp runs next from now on, in the place of self. what: why, BLOCK, YIELD or
 * ENDED, or NONE, if self is no thread or that was told before.
 */
static inline void marcel_trace_leave(struct marcel_vp *vp,
				      struct marcel_thread *self,
				      enum marcel_trace_kind what,
				      struct marcel_thread *next)
{
	if (marcel_trace_is_here())
		marcel_trace_vp_leaves(vp, self, what, next);
}

/* Something about t by a text, by anyone. */
void marcel_trace_text(enum marcel_trace_kind kind, struct marcel_thread *t,
		       const char *text);

/* main is there, and runs on vp. */
void marcel_trace_main(struct marcel_vp *vp, struct marcel_thread *t);

/*
 * The runtime starts, with that many VPs: events are recorded from now on if
 * `file` is not empty. 0 or -errno, and what is wrong has been said. buffer:
 * bytes of a chunk.
 */
int marcel_trace_init(const char *file, size_t buffer, int nvp);

/* No thread but the caller is left: the file is complete. */
void marcel_trace_exit(void);

/* In a child of fork(), which records nothing, whatever runtime it starts. */
void marcel_trace_forked(void);

#endif
