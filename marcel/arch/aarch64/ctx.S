/*
 * Context switch, aarch64 AAPCS64. The frame of a context, from its stack
 * pointer upwards:
 *
 *	sp ->	  0  fpcr
 *		  8  unused
 *		 16  x19, x20
 *		 32  x21, x22
 *		 48  x23, x24
 *		 64  x25, x26
 *		 80  x27, x28
 *		 96  x29, x30: frame pointer, where to go on
 *		112  d8, d9
 *		128  d10, d11
 *		144  d12, d13
 *		160  d14, d15
 *		176  the caller's frame; a multiple of 16 bytes
 *
 * The control word is always stored and loaded only when it differs from the
 * present one. The way out is an indirect jump, because a return to another
 * stack is always mispredicted; but where every target of a jump must be
 * marked (BTI) and those of returns need not be, it is a return.
 */
	.text

#if defined __ARM_FEATURE_BTI_DEFAULT
#define LEAVE	ret
#else
#define LEAVE	br	x30
#endif

/* void *marcel_ctx_switch(from: x0, to: x1, value: x2) */
	.globl	marcel_ctx_switch
	.hidden	marcel_ctx_switch
	.type	marcel_ctx_switch, %function
	.p2align 6
marcel_ctx_switch:
	.cfi_startproc
	hint	34				/* bti c */
	sub	sp, sp, #176
	.cfi_def_cfa_offset 176
	stp	x19, x20, [sp, #16]
	stp	x21, x22, [sp, #32]
	stp	x23, x24, [sp, #48]
	stp	x25, x26, [sp, #64]
	stp	x27, x28, [sp, #80]
	stp	x29, x30, [sp, #96]
	stp	d8, d9, [sp, #112]
	stp	d10, d11, [sp, #128]
	stp	d12, d13, [sp, #144]
	stp	d14, d15, [sp, #160]
	.cfi_offset x19, -160
	.cfi_offset x20, -152
	.cfi_offset x21, -144
	.cfi_offset x22, -136
	.cfi_offset x23, -128
	.cfi_offset x24, -120
	.cfi_offset x25, -112
	.cfi_offset x26, -104
	.cfi_offset x27, -96
	.cfi_offset x28, -88
	.cfi_offset x29, -80
	.cfi_offset x30, -72
	.cfi_offset d8, -64
	.cfi_offset d9, -56
	.cfi_offset d10, -48
	.cfi_offset d11, -40
	.cfi_offset d12, -32
	.cfi_offset d13, -24
	.cfi_offset d14, -16
	.cfi_offset d15, -8
	mrs	x9, fpcr
	str	x9, [sp]

	/* Both stacks hold the same frame, so the CFI above stays true. */
	mov	x10, sp
	str	x10, [x0]
	ldr	x10, [x1]
	mov	sp, x10

	ldr	x10, [sp]
	cmp	x9, x10
	b.eq	1f
	msr	fpcr, x10
1:	ldp	x19, x20, [sp, #16]
	ldp	x21, x22, [sp, #32]
	ldp	x23, x24, [sp, #48]
	ldp	x25, x26, [sp, #64]
	ldp	x27, x28, [sp, #80]
	ldp	x29, x30, [sp, #96]
	ldp	d8, d9, [sp, #112]
	ldp	d10, d11, [sp, #128]
	ldp	d12, d13, [sp, #144]
	ldp	d14, d15, [sp, #160]
	mov	x0, x2
	add	sp, sp, #176
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	LEAVE
	.cfi_endproc
	.size	marcel_ctx_switch, . - marcel_ctx_switch

/* void marcel_ctx_make(ctx: x0, top: x1, entry: x2) */
	.globl	marcel_ctx_make
	.hidden	marcel_ctx_make
	.type	marcel_ctx_make, %function
	.p2align 4
marcel_ctx_make:
	.cfi_startproc
	hint	34
	and	x1, x1, #-16
	sub	x1, x1, #176
	adr	x9, first
	str	xzr, [x1]				/* fpcr: the defaults */
	str	x2, [x1, #16]				/* x19: entry */
	stp	xzr, x9, [x1, #96]			/* end of the frames */
	str	x1, [x0]
	ret
	.cfi_endproc
	.size	marcel_ctx_make, . - marcel_ctx_make

/* The first frame of every new context; unwinding ends here. */
	.type	first, %function
	.p2align 4
first:
	.cfi_startproc
	.cfi_undefined x30
	blr	x19
	brk	#1
	.cfi_endproc
	.size	first, . - first

	.section .note.GNU-stack, "", %progbits

#if defined __ARM_FEATURE_BTI_DEFAULT
	.section .note.gnu.property, "a"
	.p2align 3
	.word	4, 16, 5
	.asciz	"GNU"
	.word	0xc0000000, 4, 1, 0
#endif
