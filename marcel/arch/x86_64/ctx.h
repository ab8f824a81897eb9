/*
 * Context switch, x86-64 System V: inlined where a thread leaves.
 *
 * The frame of a context lies in the frame of the function that left, or at
 * the top of a new stack (see ctx.S):
 *
 *	sp ->	 0  where to go on
 *		 8  rsp
 *		16  rbp
 *		24  mxcsr (4 bytes), x87 control word (2), unused (2)
 *		32  of a new context: entry
 *
 * All other registers count as clobbered, so the compiler saves those that it
 * needs, in frames that unwinders understand. There is no call and no return:
 * a switch in a function of its own would leave the processor's stack of
 * return addresses one off, and every later return of the other thread would
 * be mispredicted. The control words are always stored, which is cheap, and
 * loaded only when they differ from the present ones, because loading stalls.
 */
#ifndef MARCEL_ARCH_X86_64_CTX_H
#define MARCEL_ARCH_X86_64_CTX_H

#include <stdint.h>

struct marcel_ctx_frame {
	void *pc, *sp, *bp;
	uint32_t mxcsr;
	uint16_t x87;
	void (*entry)(void *);
};

_Static_assert(sizeof(struct marcel_ctx_frame) == 40, "as drawn above");

/* Below this a saved context uses nothing of its stack. */
static inline char *marcel_ctx_low(const struct marcel_ctx *ctx)
{
	const struct marcel_ctx_frame *f = ctx->sp;
	char *low = (char *)f < (char *)f->sp ? (char *)f : (char *)f->sp;

	return low - 128; /* the red zone */
}

#ifdef __AVX512F__
#define MARCEL_CTX_AVX512                                                      \
	, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22",       \
		"xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", \
		"xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define MARCEL_CTX_AVX512
#endif

static inline __attribute__((always_inline)) void *
marcel_ctx_switch(struct marcel_ctx *from, const struct marcel_ctx *to,
		  void *value)
{
	struct marcel_ctx_frame here;
	struct marcel_ctx_frame *mine = &here, *there = to->sp;

	__asm__ volatile("leaq	1f(%%rip), %%rax\n\t"
			 "movq	%%rax, (%%rdi)\n\t"
			 "movq	%%rsp, 8(%%rdi)\n\t"
			 "movq	%%rbp, 16(%%rdi)\n\t"
			 "stmxcsr 24(%%rdi)\n\t"
			 "fnstcw	28(%%rdi)\n\t"
			 "movl	24(%%rdi), %%eax\n\t"
			 "movzwl	28(%%rdi), %%r8d\n\t"
			 "movq	%%rdi, (%%rcx)\n\t"
			 "movq	8(%%rsi), %%rsp\n\t"
			 "movq	16(%%rsi), %%rbp\n\t"
			 "cmpl	24(%%rsi), %%eax\n\t"
			 "jne	2f\n"
			 "3:\n\t"
			 "cmpw	28(%%rsi), %%r8w\n\t"
			 "jne	4f\n"
			 "5:\n\t"
			 "notrack jmp *(%%rsi)\n"
			 "2:\n\t"
			 "ldmxcsr 24(%%rsi)\n\t"
			 "jmp	3b\n"
			 "4:\n\t"
			 "fldcw	28(%%rsi)\n\t"
			 "jmp	5b\n"
			 "1:"
			 : "+d"(value), "+D"(mine), "+S"(there), "+c"(from)
			 :
			 : "rax", "rbx", "r8", "r9", "r10", "r11", "r12", "r13",
			   "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
			   "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
			   "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st",
			   "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)",
			   "st(7)", "cc", "memory" MARCEL_CTX_AVX512);
	return value;
}

#endif
