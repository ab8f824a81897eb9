/* x86-64. */
#ifndef MARCEL_ARCH_X86_64_CPU_H
#define MARCEL_ARCH_X86_64_CPU_H

static inline void cpu_relax(void)
{
	__builtin_ia32_pause();
}

#endif
