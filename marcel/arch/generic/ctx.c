/*
 * Context switch by ucontext: for processors without a ctx.S, and to compare.
 *
 * A saved context lies on its own stack: on top of it before it first runs,
 * else in the frame of marcel_ctx_switch(). Each switch costs a system call,
 * because ucontext saves the signal mask.
 */
#include "../ctx.h"

#include <fenv.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include <base/atomic.h>

struct saved {
	ucontext_t uc;
	void *value; /* what the next switch to it hands over */
	void (*entry)(void *);
};

/* In libc, the same for all. */
static ATOMIC(const void *) base; /* a: relaxed */

const void *marcel_ctx_base(void)
{
	return load_relaxed(&base);
}

/* makecontext() hands over ints only. */
static void first(unsigned high, unsigned low)
{
	struct saved *s =
		(struct saved *)(uintptr_t)((uint64_t)high << 32 | low);

	store_relaxed(&base, __builtin_return_address(0));
	fesetenv(FE_DFL_ENV);
	s->entry(s->value);
}

void marcel_ctx_make(struct marcel_ctx *ctx, void *top, void (*entry)(void *))
{
	uintptr_t place = ((uintptr_t)top - sizeof(struct saved)) & ~63UL;
	struct saved *s = (struct saved *)place;

	getcontext(&s->uc);
	/* Only where it ends matters: the stack goes down from here. */
	s->uc.uc_stack.ss_sp = (char *)s - 4096;
	s->uc.uc_stack.ss_size = 4096;
	s->uc.uc_link = NULL;
	s->entry = entry;
	makecontext(&s->uc, (void (*)(void))first, 2,
		    (unsigned)((uint64_t)place >> 32), (unsigned)place);
	ctx->sp = s;
}

void *marcel_ctx_switch(struct marcel_ctx *from, const struct marcel_ctx *to,
			void *value)
{
	struct saved here, *there = to->sp;

	from->sp = &here;
	there->value = value;
	swapcontext(&here.uc, &there->uc);
	return here.value;
}
