/*
 * Data races. The compiler instruments plain accesses of the scenario and of
 * what it includes as for a thread sanitizer; its calls end here. Each byte
 * remembers its last write and each thread's last read as (thread, clock); an
 * access that is not ordered after those by views is a race, whatever the
 * interleaving was.
 *
 * Atomic accesses count as reads: a word that is initialised, reused or freed
 * while another thread may still use it is a race, too.
 */
#include "internal.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 1 << 13 };

struct byte {
	uint8_t writer;
	bool gone;
	uint16_t write; /* 0: never */
	uint16_t read[THREADS_MAX];
};

/* Eight bytes of memory; most are a word of which no part is used alone. */
struct cell {
	uintptr_t addr;
	uint64_t life; /* of another execution: empty */
	const void *write_pc, *read_pc[THREADS_MAX];
	/* the last access: who, and what it has read and written since */
	uint8_t thread, read, written; /* a bit a byte */
	uint8_t used;                  /* those that are used, as one */
	bool apart;                    /* until some are used without others */
	uint16_t now;
	struct byte one;
	struct byte byte[8]; /* once they are apart */
};

static struct shadow {
	uint64_t life;
	struct cell cell[CELLS];
} * shadow;

void race_init(void)
{
	shadow = calloc(1, sizeof(*shadow));
	if (shadow == NULL)
		abort();
}

void race_reset(void)
{
	shadow->life++;
}

static struct cell *cell_of(uintptr_t addr)
{
	size_t i = (addr >> 3) * 0x9E3779B97F4A7C15u >> 51;
	struct cell *c;

	for (int n = 0; n < CELLS; n++, i++) {
		c = &shadow->cell[i % CELLS];
		if (c->life == shadow->life && c->addr == addr)
			return c;
		if (c->life != shadow->life) {
			memset(c, 0, offsetof(struct cell, byte));
			c->life = shadow->life;
			c->addr = addr;
			return c;
		}
	}
	explore_fail("more memory than the explorer watches");
}

static const char *const kinds[] = { "read", "written", "used as atomic",
				     "freed" };

static void report(const void *p, enum race kind, const void *pc, int other,
		   const char *did, const void *other_pc)
{
	char name[64], here[256], there[256];

	snprintf(X->error_more, sizeof(X->error_more), "%s%s\n%s%s",
		 pc ? "now at " : "", trace_source(pc, here, sizeof(here)),
		 other_pc ? "before at " : "",
		 trace_source(other_pc, there, sizeof(there)));
	explore_fail("data race on %s: %s by %s, %s by %s, and nothing "
		     "orders them",
		     trace_address(p, name, sizeof(name)), kinds[kind],
		     self()->name, did, X->thread[other].name);
}

static void check_byte(const struct cell *c, const struct byte *b, unsigned i,
		       enum race kind, const void *pc)
{
	const struct view *v = &self()->view;
	const char *p = (const char *)c->addr + i;
	char name[64];

	if (b->gone)
		explore_fail("%s is %s by %s after %s has freed it",
			     trace_address(p, name, sizeof(name)), kinds[kind],
			     self()->name, X->thread[b->writer].name);
	if (b->write > v->clock[b->writer])
		report(p, kind, pc, b->writer, "written", c->write_pc);
	if (kind == RACE_READ || kind == RACE_ATOMIC)
		return;
	for (int t = 0; t < THREADS_MAX; t++)
		if (b->read[t] > v->clock[t])
			report(p, kind, pc, t, "read or used as atomic",
			       c->read_pc[t]);
}

static void note_byte(struct cell *c, struct byte *b, enum race kind,
		      const void *pc)
{
	uint16_t now = self()->view.clock[X->current];

	if (kind == RACE_READ || kind == RACE_ATOMIC) {
		b->read[X->current] = now;
		c->read_pc[X->current] = pc;
		return;
	}
	b->write = now;
	b->writer = (uint8_t)X->current;
	b->gone = kind == RACE_GONE;
	c->write_pc = pc;
}

static void use_byte(struct cell *c, struct byte *b, unsigned i, enum race kind,
		     const void *pc)
{
	/* An earlier execution has begun with the same, and found none. */
	if (X->depth >= X->fresh)
		check_byte(c, b, i, kind, pc);
	note_byte(c, b, kind, pc);
}

static void use(struct cell *c, unsigned bytes, enum race kind, const void *pc)
{
	if (!c->apart && (c->used == 0 || c->used == bytes)) {
		c->used = (uint8_t)bytes;
		use_byte(c, &c->one, (unsigned)__builtin_ctz(bytes), kind, pc);
		return;
	}
	for (unsigned i = 0; i < 8 && !c->apart; i++)
		c->byte[i] = c->used >> i & 1 ? c->one : (struct byte){ 0 };
	c->apart = true;
	for (unsigned i = 0; i < 8; i++)
		if (bytes >> i & 1)
			use_byte(c, &c->byte[i], i, kind, pc);
}

/* Whether the thread has just done the same: nothing is news. */
static bool is_known(struct cell *c, unsigned bytes, enum race kind)
{
	uint16_t now = self()->view.clock[X->current];

	if (c->thread != X->current || c->now != now || kind == RACE_GONE) {
		c->thread = (uint8_t)X->current;
		c->now = now;
		c->read = c->written = 0;
	}
	if ((bytes &
	     ~(kind == RACE_WRITE ? c->written : c->read | c->written)) == 0)
		return true;
	if (kind == RACE_WRITE)
		c->written |= bytes;
	else if (kind != RACE_GONE)
		c->read |= bytes;
	return false;
}

void race_access(const void *p, size_t bytes, enum race kind, const void *pc)
{
	uintptr_t a = (uintptr_t)p, end = a + bytes;

	if (X == NULL || X->outcome != RUNNING || thread_is_tls(p))
		return;
	/* What setup does comes before everything. */
	if (!X->running && X->depth == 0 && kind != RACE_GONE)
		return;
	while (a < end) {
		struct cell *c = cell_of(a & ~(uintptr_t)7);
		unsigned from = a & 7;
		unsigned to = end - a < 8 - from ? from + (end - a) : 8;
		unsigned those = (0xffu >> (8 - to)) & (0xffu << from);

		a += to - from;
		if (!is_known(c, those, kind))
			use(c, those, kind, pc);
	}
}

/* --- what the compiler calls --- */

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *pc)
{
}

void __tsan_func_exit(void)
{
}

#define HERE __builtin_return_address(0)

/* clang-format off */
#define ACCESS(name, bytes, kind)                                              \
	void name(void *p);                                                    \
	void name(void *p)                                                     \
	{                                                                      \
		race_access(p, bytes, kind, HERE);                             \
	}
#define ACCESSES(bytes)                                                        \
	ACCESS(__tsan_read##bytes, bytes, RACE_READ)                           \
	ACCESS(__tsan_write##bytes, bytes, RACE_WRITE)                         \
	ACCESS(__tsan_unaligned_read##bytes, bytes, RACE_READ)                 \
	ACCESS(__tsan_unaligned_write##bytes, bytes, RACE_WRITE)

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
/* clang-format on */

void __tsan_read_range(void *p, size_t bytes);
void __tsan_write_range(void *p, size_t bytes);

void __tsan_read_range(void *p, size_t bytes)
{
	race_access(p, bytes, RACE_READ, HERE);
}

void __tsan_write_range(void *p, size_t bytes)
{
	race_access(p, bytes, RACE_WRITE, HERE);
}
