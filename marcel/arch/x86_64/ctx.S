/*
 * The beginning of a context, x86-64 System V: ctx.h draws its frame. A new
 * stack, from its top downwards; the top is a multiple of 16:
 *
 *	top -  8  return address of entry, in `first`: unwinding ends there
 *	top - 16  unused
 *	top - 24  entry
 *	top - 32  mxcsr, x87 control word: the processor's defaults
 *	top - 40  rbp: 0, the end of the chain of frames
 *	top - 48  rsp: top - 8, as after a call
 *	top - 56  where to go on: `first`
 *
 * Once rsp is loaded the frame lies below it, in the red zone.
 */
	.text

/* void marcel_ctx_make(ctx: rdi, top: rsi, entry: rdx) */
	.globl	marcel_ctx_make
	.hidden	marcel_ctx_make
	.type	marcel_ctx_make, @function
	.p2align 4
marcel_ctx_make:
	.cfi_startproc
	endbr64
	andq	$-16, %rsi
	leaq	ended(%rip), %rax
	leaq	first(%rip), %rcx
	movq	%rax, -8(%rsi)
	leaq	-8(%rsi), %rax
	movq	%rdx, -24(%rsi)
	movl	$0x1f80, -32(%rsi)
	movl	$0x037f, -28(%rsi)
	movq	$0, -40(%rsi)
	movq	%rax, -48(%rsi)
	movq	%rcx, -56(%rsi)
	subq	$56, %rsi
	movq	%rsi, (%rdi)
	ret
	.cfi_endproc
	.size	marcel_ctx_make, . - marcel_ctx_make

/* Entered by a switch: rsi is the frame, rdx the value. */
	.type	first, @function
	.p2align 4
first:
	.cfi_startproc
	.cfi_undefined rip
	movq	%rdx, %rdi
	notrack jmp *32(%rsi)
ended:
	ud2
	.cfi_endproc
	.size	first, . - first

	.section .note.GNU-stack, "", @progbits

#if defined __CET__ && (__CET__ & 1)
/* Indirect branch tracking holds; shadow stacks would need a switch, too. */
	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 1, 0
#endif
