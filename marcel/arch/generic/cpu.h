/* Any other processor. */
#ifndef MARCEL_ARCH_GENERIC_CPU_H
#define MARCEL_ARCH_GENERIC_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <ucontext.h>

#include <base/clock.h>

static inline void cpu_relax(void)
{
	__asm__ volatile("" ::: "memory");
}

#define CPU_TICKS_SOURCE ""
enum { CPU_TICKS_FEW = 5000 };

static inline uint64_t cpu_ticks(void)
{
	return base_now_ns();
}

/* Out of line, in arch/generic/tls.c: no caller can keep the address. */
void *cpu_tls_word(void);
void cpu_tls_pin(int n);
bool cpu_tls_in_handler(void);

enum {
	CPU_TLS_PINS = 2 * sizeof(void *),
	CPU_TLS_HANDLER = CPU_TLS_PINS + 2 * sizeof(int)
};

/* Unknown. */
static inline void *cpu_context_pc(const ucontext_t *uc)
{
	(void)uc;
	return NULL;
}

/* Unknown: the fault's address alone has to tell. */
static inline char *cpu_context_sp(const ucontext_t *uc)
{
	(void)uc;
	return NULL;
}

/* Unknown. */
static inline bool cpu_context_in_call(const ucontext_t *uc)
{
	(void)uc;
	return false;
}

/* Unknown: only a call that does not begin again is broken. */
static inline bool cpu_context_break_call(ucontext_t *uc)
{
	(void)uc;
	return true;
}

#endif
