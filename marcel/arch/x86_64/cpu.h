/* x86-64. */
#ifndef MARCEL_ARCH_X86_64_CPU_H
#define MARCEL_ARCH_X86_64_CPU_H

#include <stdint.h>
#include <ucontext.h>

static inline void cpu_relax(void)
{
	__builtin_ia32_pause();
}

enum { CPU_TICKS_FEW = 1 << 14 };

static inline uint64_t cpu_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

static inline void *cpu_tls_word(void)
{
	void *w;

	__asm__ volatile("movq marcel_tls@gottpoff(%%rip), %0\n\t"
			 "movq %%fs:(%0), %0"
			 : "=r"(w));
	return w;
}

static inline void *cpu_context_pc(const ucontext_t *uc)
{
	return (void *)uc->uc_mcontext.gregs[REG_RIP];
}

static inline char *cpu_context_sp(const ucontext_t *uc)
{
	return (char *)uc->uc_mcontext.gregs[REG_RSP];
}

#endif
