/* x86-64. */
#ifndef MARCEL_ARCH_X86_64_CPU_H
#define MARCEL_ARCH_X86_64_CPU_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include <base/compiler.h>

static inline void cpu_relax(void)
{
	__builtin_ia32_pause();
}

#define CPU_TICKS_SOURCE "tsc"
enum { CPU_TICKS_FEW = 1 << 14 };

static inline uint64_t cpu_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

/* The offsets in the instructions below. */
enum { CPU_TLS_PINS = 16, CPU_TLS_HANDLER = 24 };

static inline void *cpu_tls_word(void)
{
	void *w;

	__asm__ volatile("movq marcel_tls@gottpoff(%%rip), %0\n\t"
			 "movq %%fs:(%0), %0"
			 : "=r"(w));
	return w;
}

static inline void cpu_tls_pin(int n)
{
	void *w;

	__asm__ volatile("movq marcel_tls@gottpoff(%%rip), %0\n\t"
			 "addl %1, %%fs:16(%0)"
			 : "=&r"(w)
			 : "ri"(n)
			 : "cc", "memory");
}

static inline bool cpu_tls_in_handler(void)
{
	void *w;
	bool is;

	__asm__ volatile("movq marcel_tls@gottpoff(%%rip), %0\n\t"
			 "cmpq $0, %%fs:24(%0)"
			 : "=&r"(w), "=@ccne"(is));
	return is;
}

#if !BASE_TSAN /* that follows every access */
#define cpu_word_is(a, v) cpu_long_is(a, v)
static inline bool cpu_long_is(const void *a, uintptr_t v)
{
	bool is;

	__asm__ volatile("cmpq %2, %1"
			 : "=@cce"(is)
			 : "m"(*(const uintptr_t *)a), "r"(v)
			 : "memory");
	return is;
}
#endif

static inline void *cpu_context_pc(const ucontext_t *uc)
{
	return (void *)uc->uc_mcontext.gregs[REG_RIP];
}

static inline char *cpu_context_sp(const ucontext_t *uc)
{
	return (char *)uc->uc_mcontext.gregs[REG_RSP];
}

/* A signal has come in a system call, just before or just behind. */
static inline bool cpu_context_in_call(const ucontext_t *uc)
{
	const unsigned char *pc = cpu_context_pc(uc);

	return (pc[0] == 0x0f && pc[1] == 0x05) || /* syscall */
	       (pc[-2] == 0x0f && pc[-1] == 0x05);
}

/*
 * A signal has come in a system call, or just before: true if that returns
 * EINTR now.
 */
static inline bool cpu_context_break_call(ucontext_t *uc)
{
	greg_t *r = uc->uc_mcontext.gregs;
	const unsigned char *pc = (const unsigned char *)r[REG_RIP];

	if (pc[0] == 0x0f && pc[1] == 0x05) { /* syscall */
		r[REG_RIP] += 2;
		r[REG_RAX] = -EINTR;
		return true;
	}
	return pc[-2] == 0x0f && pc[-1] == 0x05 && r[REG_RAX] == -EINTR;
}

#endif
