/* aarch64. */
#ifndef MARCEL_ARCH_AARCH64_CPU_H
#define MARCEL_ARCH_AARCH64_CPU_H

static inline void cpu_relax(void)
{
	__asm__ volatile("isb" ::: "memory");
}

#endif
