/*
 * A program that interrupts itself at each instruction. x86-64: the processor's
 * trap flag raises SIGTRAP behind every one.
 */
#ifndef TESTS_MARCEL_TRAP_H
#define TESTS_MARCEL_TRAP_H

enum { TRAP_FLAG = 0x100 }; /* 0: no more. A handler may clear it, too. */

static inline void trap(unsigned long flag)
{
	__asm__ volatile("sub $128, %%rsp\n\t" /* the red zone */
			 "pushf\n\t"
			 "andq %1, (%%rsp)\n\t"
			 "orq %0, (%%rsp)\n\t"
			 "popf\n\t"
			 "add $128, %%rsp"
			 :
			 : "r"(flag), "r"(~(unsigned long)TRAP_FLAG)
			 : "memory", "cc");
}

#endif
