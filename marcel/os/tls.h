/*
 * All that the libraries keep in a kernel thread's own storage: one block of
 * the initial-exec model, small enough for a library that is dlopened.
 *
 * `lwp` is first, because cpu_tls_word() reads it. Nothing here may be touched
 * through an address that was taken before a context switch; so code that can
 * migrate uses cpu_tls_word(), and the rest functions that are not inlined.
 */
#ifndef MARCEL_OS_TLS_H
#define MARCEL_OS_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../arch/cpu.h"

struct marcel_lwp;
struct marcel_thread;

struct marcel_tls {
	struct marcel_lwp *lwp;     /* this kernel thread, if it is ours */
	struct marcel_thread *self; /* a foreign thread's descriptor */
	volatile int pins;   /* cpu_tls_pin(); the tick's handler reads it */
	volatile int locks;  /* that it holds: os/linux/front_lock.c */
	const void *handler; /* it runs one: base_pin_handler() */
	volatile bool asked; /* for the kernel thread, by another */
	bool makes_own;      /* in os_thread_create() */
	int bound;           /* 1 + the CPU that it is bound to; or 0 */
	uint32_t lane;       /* of events: trace/record.c; or 0 */
};

_Static_assert(offsetof(struct marcel_tls, pins) == CPU_TLS_PINS,
	       "where the processor's cpu_tls_pin() looks for them");
_Static_assert(offsetof(struct marcel_tls, handler) == CPU_TLS_HANDLER,
	       "where the processor's cpu_tls_in_handler() looks");
_Static_assert(sizeof(struct marcel_tls) <= 128,
	       "a dlopened library gets little thread-local storage");

/* errno's place, by a declaration that does not promise a constant. */
extern int *marcel_os_errno(void) __asm__("__errno_location");

extern __thread struct marcel_tls marcel_tls
	__attribute__((visibility("hidden")));

#endif
