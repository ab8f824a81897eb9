/*
 * Events go into rings: those of a VP into its own, those of kernel threads
 * that drive none into one that they share.
 *
 * Whoever writes to a VP's ring is inside the runtime, so that no tick takes
 * the VP from it between two words of a record.
 */
#include "record.h"

#include <string.h>
#include <sys/prctl.h>

#include <base/clock.h>
#include <base/spin.h>
#include "../os/os.h"
#include "../sched/enter.h"
#include "trace.h"

BASE_PUBLIC struct marcel_trace_switch marcel_trace_switch;
struct marcel_trace_switch marcel_trace_here;

struct marcel_trace_rings marcel_trace_rings = {
	.lock = BASE_SPIN_INIT(BASE_RANK_LEAF),
};

enum {
	TEXT_PER_RECORD = 16,
	TEXT_MAX = 32,
	LANES = 0x10000 - MARCEL_TRACE_FOREIGN,
};

/* What one event takes at most. */
struct event {
	struct marcel_trace_record r[1 + TEXT_MAX / TEXT_PER_RECORD];
	unsigned n;
};

BASE_PUBLIC uint64_t marcel_trace_now(void)
{
	return likely(marcel_trace_rings.ticks) ? cpu_ticks() : base_now_ns();
}

/* --- rings --- */

/* Room for n records in a row, or NULL: they are lost. */
static inline struct marcel_trace_record *take(struct marcel_trace_ring *r,
					       unsigned n)
{
	struct marcel_trace_head *h = r->chunk;
	uint64_t used = load_relaxed(&h->used);

	if (unlikely(used + n * sizeof(struct marcel_trace_record) > r->room)) {
		if (!marcel_trace_ring_turn(r)) {
			store_relaxed(&h->lost, load_relaxed(&h->lost) + 1);
			store_relaxed(&r->lost, load_relaxed(&r->lost) + 1);
			return NULL;
		}
		marcel_trace_writer_wake();
		h = r->chunk;
		used = 0;
	}
	return (struct marcel_trace_record *)((char *)(h + 1) + used);
}

/* They are written: whoever maps the file, or reads it later, may see them. */
static inline void put(struct marcel_trace_ring *r, unsigned n)
{
	struct marcel_trace_head *h = r->chunk;

	store_light(&h->used, load_relaxed(&h->used) +
				      n * sizeof(struct marcel_trace_record));
}

static inline void fill(struct marcel_trace_record *r,
			enum marcel_trace_kind kind, unsigned lane, uint32_t a,
			uint64_t b)
{
	r->kind = (uint16_t)kind;
	r->lane = (uint16_t)lane;
	r->a = a;
	r->b = b;
	r->time = marcel_trace_now();
}

static inline void fill_more(struct marcel_trace_record *r, unsigned lane,
			     uint32_t a, uint64_t b, uint64_t c)
{
	r->c = c;
	r->kind = MARCEL_TRACE_MORE;
	r->lane = (uint16_t)lane;
	r->a = a;
	r->b = b;
}

static void fill_text(struct event *e, enum marcel_trace_kind kind,
		      unsigned lane, uint64_t b, const char *text)
{
	size_t length = strnlen(text, TEXT_MAX);
	uint64_t words[TEXT_MAX / sizeof(uint64_t)] = { 0 };

	memcpy(words, text, length);
	fill(&e->r[0], kind, lane, (uint32_t)length, b);
	e->n = 1;
	for (size_t i = 0; i < length; i += TEXT_PER_RECORD)
		fill_more(&e->r[e->n++], lane, 0, words[i / 8 + 1],
			  words[i / 8]);
}

static void write_event(struct marcel_trace_ring *r, const struct event *e)
{
	struct marcel_trace_record *to = take(r, e->n);

	if (to == NULL)
		return;
	memcpy(to, e->r, e->n * sizeof(e->r[0]));
	put(r, e->n);
}

/* --- kernel threads without a VP --- */

/* The caller's lane; *is_new: it has recorded nothing in this file. */
static unsigned lane_here(bool *is_new)
{
	struct marcel_trace_rings *rs = &marcel_trace_rings;
	uint32_t life = rs->life << 16;

	*is_new = (marcel_tls.lane & 0xffff0000) != life;
	if (*is_new) {
		uint32_t n = rs->nlanes < LANES - 1 ? rs->nlanes++ : LANES - 1;

		marcel_tls.lane = life | (MARCEL_TRACE_FOREIGN + n);
	}
	return marcel_tls.lane & 0xffff;
}

/* Which kernel thread this is, and which user thread it runs, if any. */
static void introduce(struct marcel_trace_ring *r, unsigned lane, bool is_new)
{
	struct marcel_lwp *l = marcel_tls.lwp;
	struct event e;
	char name[TEXT_MAX] = "";

	if (is_new) {
		prctl(PR_GET_NAME, name);
		fill_text(&e, MARCEL_TRACE_LANE, lane, (uint64_t)os_tid(),
			  name);
		write_event(r, &e);
	}
	if (l == NULL || load_relaxed(&l->self) == &l->idle)
		return;
	fill(&e.r[0], MARCEL_TRACE_RUN, lane, 0,
	     (uintptr_t)load_relaxed(&l->self));
	e.n = 1;
	write_event(r, &e);
}

/* The lane of e is yet to be set. */
static BASE_NOINLINE void write_foreign(struct event *e)
{
	struct marcel_trace_rings *rs = &marcel_trace_rings;
	unsigned lane;
	bool is_new;

	base_spin_lock(&rs->lock);
	if (load_relaxed(&marcel_trace_here.on) != 0) {
		lane = lane_here(&is_new);
		introduce(&rs->all[rs->nvp], lane, is_new);
		for (unsigned i = 0; i < e->n; i++)
			e->r[i].lane = (uint16_t)lane;
		e->r[0].time = marcel_trace_now();
		write_event(&rs->all[rs->nvp], e);
	}
	base_spin_unlock(&rs->lock);
}

static BASE_NOINLINE void put_foreign(enum marcel_trace_kind kind, uint32_t a,
				      uint64_t b)
{
	struct event e = { .n = 1 };

	fill(&e.r[0], kind, 0, a, b);
	write_foreign(&e);
}

/* --- marcel's --- */

static inline void put_vp(struct marcel_vp *vp, enum marcel_trace_kind kind,
			  uint32_t a, uint64_t b)
{
	struct marcel_trace_ring *r = &marcel_trace_rings.all[vp->id];
	struct marcel_trace_record *to = take(r, 1);

	if (unlikely(to == NULL))
		return;
	fill(to, kind, (unsigned)vp->id, a, b);
	put(r, 1);
}

BASE_NOINLINE void marcel_trace_vp_put(struct marcel_vp *vp,
				       enum marcel_trace_kind kind, uint32_t a,
				       uint64_t b)
{
	if (unlikely(vp == NULL))
		put_foreign(kind, a, b);
	else
		put_vp(vp, kind, a, b);
}

BASE_NOINLINE void marcel_trace_vp_enters(struct marcel_vp *vp,
					  struct marcel_thread *t)
{
	if (t == vp->idle)
		put_vp(vp, MARCEL_TRACE_IDLE, 0, 0);
	else
		put_vp(vp, MARCEL_TRACE_RUN, 0, (uintptr_t)t);
}

BASE_NOINLINE void marcel_trace_vp_text(struct marcel_vp *vp,
					enum marcel_trace_kind kind,
					struct marcel_thread *t,
					const char *text)
{
	struct event e;

	fill_text(&e, kind, vp != NULL ? (unsigned)vp->id : 0, (uintptr_t)t,
		  text);
	if (vp == NULL)
		write_foreign(&e);
	else
		write_event(&marcel_trace_rings.all[vp->id], &e);
}

BASE_NOINLINE void marcel_trace_vp_leaves(struct marcel_vp *vp,
					  struct marcel_thread *self,
					  enum marcel_trace_kind what,
					  struct marcel_thread *next)
{
	const char *why;

	if (what == MARCEL_TRACE_BLOCK) {
		why = marcel_waits_name(marcel_thread_waits_for(self));
		marcel_trace_vp_text(vp, what, self, why != NULL ? why : "");
	} else if (what != MARCEL_TRACE_NONE) {
		put_vp(vp, what, 0, (uintptr_t)self);
	}
	marcel_trace_vp_enters(vp, next);
}

void marcel_trace_text(enum marcel_trace_kind kind, struct marcel_thread *t,
		       const char *text)
{
	uint32_t was = 0;
	struct marcel_vp *vp = marcel_nest(&was);

	marcel_trace_vp_text(vp, kind, t, text);
	marcel_unnest(vp, was);
}

void marcel_trace_main(struct marcel_vp *vp, struct marcel_thread *t)
{
	char name[MARCEL_NAME_MAX];

	if (!marcel_trace_is_here())
		return;
	marcel_thread_get_name(t, name);
	put_vp(vp, MARCEL_TRACE_NEW, 0, (uintptr_t)t);
	marcel_trace_vp_text(vp, MARCEL_TRACE_NAME, t,
			     name[0] != 0 ? name : "main");
	put_vp(vp, MARCEL_TRACE_RUN, 0, (uintptr_t)t);
}

/* --- everybody's --- */

BASE_PUBLIC void marcel_trace_put(enum marcel_trace_kind kind, uint32_t a,
				  uint64_t b)
{
	uint32_t was = 0;
	struct marcel_vp *vp = marcel_nest(&was);

	if (unlikely(vp == NULL)) {
		put_foreign(kind, a, b);
		return;
	}
	put_vp(vp, kind, a, b);
	marcel_unnest(vp, was);
}

BASE_PUBLIC void marcel_trace_put_more(enum marcel_trace_kind kind, uint32_t a,
				       uint64_t b, uint32_t more_a,
				       uint64_t more_b, uint64_t more_c)
{
	uint32_t was = 0;
	struct marcel_vp *vp = marcel_nest(&was);
	unsigned lane = vp != NULL ? (unsigned)vp->id : 0;
	struct event e = { .n = 2 };

	fill(&e.r[0], kind, lane, a, b);
	fill_more(&e.r[1], lane, more_a, more_b, more_c);
	if (unlikely(vp == NULL)) {
		write_foreign(&e);
		return;
	}
	write_event(&marcel_trace_rings.all[vp->id], &e);
	marcel_unnest(vp, was);
}
