/* aarch64. */
#ifndef MARCEL_ARCH_AARCH64_CPU_H
#define MARCEL_ARCH_AARCH64_CPU_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

static inline void cpu_relax(void)
{
	__asm__ volatile("isb" ::: "memory");
}

/* They count at 25 MHz to 1 GHz. */
#define CPU_TICKS_SOURCE "arch_sys_counter"
enum { CPU_TICKS_FEW = 1 << 8 };

static inline uint64_t cpu_ticks(void)
{
	uint64_t n;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(n));
	return n;
}

/* The offsets in the instructions below. */
enum { CPU_TLS_PINS = 16, CPU_TLS_HANDLER = 24 };

static inline void *cpu_tls_word(void)
{
	void *w, *base;

	__asm__ volatile("mrs %1, tpidr_el0\n\t"
			 "adrp %0, :gottprel:marcel_tls\n\t"
			 "ldr %0, [%0, :gottprel_lo12:marcel_tls]\n\t"
			 "ldr %0, [%1, %0]"
			 : "=&r"(w), "=&r"(base));
	return w;
}

static inline void cpu_tls_pin(int n)
{
	void *w, *base;

	__asm__ volatile("mrs %1, tpidr_el0\n\t"
			 "adrp %0, :gottprel:marcel_tls\n\t"
			 "ldr %0, [%0, :gottprel_lo12:marcel_tls]\n\t"
			 "add %1, %1, %0\n\t"
			 "ldr %w0, [%1, 16]\n\t"
			 "add %w0, %w0, %w2\n\t"
			 "str %w0, [%1, 16]"
			 : "=&r"(w), "=&r"(base)
			 : "r"(n)
			 : "memory");
}

static inline bool cpu_tls_in_handler(void)
{
	void *w, *base;

	__asm__ volatile("mrs %1, tpidr_el0\n\t"
			 "adrp %0, :gottprel:marcel_tls\n\t"
			 "ldr %0, [%0, :gottprel_lo12:marcel_tls]\n\t"
			 "add %1, %1, %0\n\t"
			 "ldr %0, [%1, 24]"
			 : "=&r"(w), "=&r"(base));
	return w != NULL;
}

static inline void *cpu_context_pc(const ucontext_t *uc)
{
	return (void *)uc->uc_mcontext.pc;
}

static inline char *cpu_context_sp(const ucontext_t *uc)
{
	return (char *)uc->uc_mcontext.sp;
}

/* A signal has come in a system call, just before or just behind. */
static inline bool cpu_context_in_call(const ucontext_t *uc)
{
	const uint32_t *pc = cpu_context_pc(uc);

	return pc[0] == 0xd4000001 || pc[-1] == 0xd4000001; /* svc #0 */
}

/*
 * A signal has come in a system call, or just before: true if that returns
 * EINTR now.
 */
static inline bool cpu_context_break_call(ucontext_t *uc)
{
	mcontext_t *m = &uc->uc_mcontext;
	const uint32_t *pc = (const uint32_t *)m->pc;

	if (pc[0] == 0xd4000001) { /* svc #0 */
		m->pc += 4;
		m->regs[0] = (uint64_t)-EINTR;
		return true;
	}
	return pc[-1] == 0xd4000001 && m->regs[0] == (uint64_t)-EINTR;
}

#endif
