/* Any other processor. */
#ifndef MARCEL_ARCH_GENERIC_CPU_H
#define MARCEL_ARCH_GENERIC_CPU_H

static inline void cpu_relax(void)
{
	__asm__ volatile("" ::: "memory");
}

#endif
