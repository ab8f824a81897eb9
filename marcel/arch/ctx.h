/*
 * The context switch: what a thread is while it does not run.
 *
 * A context is a pointer to a frame on its stack. Everything else (registers,
 * the floating-point control words, the address to go on at) lies there, as
 * each implementation draws it: x86_64/ctx.h and .S, aarch64/ctx.S and, slow
 * but portable, generic/ctx.c.
 */
#ifndef MARCEL_ARCH_CTX_H
#define MARCEL_ARCH_CTX_H

#include <stddef.h>

struct marcel_ctx {
	void *sp;
};

/*
 * Make a context that, when first entered, calls entry(value) on the stack
 * that ends at `top`; value is what its first marcel_ctx_switch() hands over.
 * entry must not return. Control words start at the processor's defaults.
 */
void marcel_ctx_make(struct marcel_ctx *ctx, void *top, void (*entry)(void *));

/*
 * Save the caller in *from and go on where *to was saved. Returns when
 * somebody switches to *from; the result is the value that this switch gave.
 * *from may be entered by another kernel thread as soon as that one knows it,
 * so the caller tells nobody before it has left: see sched/switch.h.
 */
#if defined __x86_64__ && !defined MARCEL_CTX_UCONTEXT && !defined BASE_EXPLORE
#include "x86_64/ctx.h"
#else
void *marcel_ctx_switch(struct marcel_ctx *from, const struct marcel_ctx *to,
			void *value);

/*
 * Below this a saved context uses nothing of its stack: sp, but that what
 * ucontext calls so lies above the end of a frame.
 */
static inline char *marcel_ctx_low(const struct marcel_ctx *ctx)
{
	return (char *)ctx->sp - 512;
}
#endif

/*
 * Where the first function of a context would return to, which unwinders take
 * for one more frame; NULL: to nowhere, as they know. Once one was entered.
 */
#ifdef MARCEL_CTX_UCONTEXT
const void *marcel_ctx_base(void);
#else
static inline const void *marcel_ctx_base(void)
{
	return NULL;
}
#endif

#endif
