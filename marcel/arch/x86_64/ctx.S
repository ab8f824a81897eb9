/*
 * Context switch, x86-64 System V. The frame of a context, from its stack
 * pointer upwards:
 *
 *	sp ->	 0  mxcsr (4 bytes), x87 control word (2), unused (2)
 *		 8  r15
 *		16  r14
 *		24  r13
 *		32  r12
 *		40  rbx
 *		48  rbp
 *		56  where to go on
 *		64  the caller's frame; a multiple of 16 bytes in a new context
 *
 * The control words are always stored, which is cheap, and loaded only when
 * they differ from the present ones, because loading stalls. The way out is an
 * indirect jump: a return to another stack is always mispredicted.
 */
	.text

/* void *marcel_ctx_switch(from: rdi, to: rsi, value: rdx) */
	.globl	marcel_ctx_switch
	.hidden	marcel_ctx_switch
	.type	marcel_ctx_switch, @function
	.p2align 6
marcel_ctx_switch:
	.cfi_startproc
	endbr64
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbx, 0
	pushq	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r12, 0
	pushq	%r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r13, 0
	pushq	%r14
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r14, 0
	pushq	%r15
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r15, 0
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	stmxcsr	(%rsp)
	fnstcw	4(%rsp)
	movl	(%rsp), %eax
	movzwl	4(%rsp), %ecx

	/* Both stacks hold the same frame, so the CFI above stays true. */
	movq	%rsp, (%rdi)
	movq	(%rsi), %rsp

	cmpl	(%rsp), %eax
	jne	1f
2:	cmpw	4(%rsp), %cx
	jne	3f
4:	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%r15
	.cfi_adjust_cfa_offset -8
	.cfi_restore r15
	popq	%r14
	.cfi_adjust_cfa_offset -8
	.cfi_restore r14
	popq	%r13
	.cfi_adjust_cfa_offset -8
	.cfi_restore r13
	popq	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore r12
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbx
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbp
	movq	%rdx, %rax
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	.cfi_register rip, rcx
	notrack jmp *%rcx
	.cfi_endproc
	.size	marcel_ctx_switch, . - marcel_ctx_switch

	.cfi_startproc
	.cfi_def_cfa rsp, 64
	.cfi_offset rbp, -16
	.cfi_offset rbx, -24
	.cfi_offset r12, -32
	.cfi_offset r13, -40
	.cfi_offset r14, -48
	.cfi_offset r15, -56
1:	ldmxcsr	(%rsp)
	jmp	2b
3:	fldcw	4(%rsp)
	jmp	4b
	.cfi_endproc

/* void marcel_ctx_make(ctx: rdi, top: rsi, entry: rdx) */
	.globl	marcel_ctx_make
	.hidden	marcel_ctx_make
	.type	marcel_ctx_make, @function
	.p2align 4
marcel_ctx_make:
	.cfi_startproc
	endbr64
	andq	$-16, %rsi
	leaq	first(%rip), %rax
	xorl	%ecx, %ecx
	movq	%rax, -8(%rsi)
	movq	%rcx, -16(%rsi)			/* rbp: end of the frame chain */
	movq	%rdx, -32(%rsi)			/* r12: entry */
	movl	$0x1f80, -64(%rsi)
	movl	$0x037f, -60(%rsi)
	subq	$64, %rsi
	movq	%rsi, (%rdi)
	ret
	.cfi_endproc
	.size	marcel_ctx_make, . - marcel_ctx_make

/* The first frame of every new context; unwinding ends here. */
	.type	first, @function
	.p2align 4
first:
	.cfi_startproc
	.cfi_undefined rip
	movq	%rax, %rdi
	call	*%r12
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
