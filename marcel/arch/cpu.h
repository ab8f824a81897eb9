/*
 * The one #if on the processor. Each <arch>/cpu.h gives
 *
 * cpu_relax()       a hint inside spin loops;
 * cpu_tls_word()    the first word of the thread-local block marcel_tls, read
 *                   anew each time: a user thread that parks may go on on
 *                   another kernel thread, and compilers keep the address of
 *                   thread-local variables across calls;
 * cpu_tls_pin(n)    adds n to the int at byte CPU_TLS_PINS of that block, for
 *                   the kernel thread that it runs on;
 * cpu_tls_in_handler()
 *                   whether the word at byte CPU_TLS_HANDLER there is not 0;
 * cpu_word_is(a, v) whether load_light(a) is v; where possible in one
 *                   instruction, as compilers load into a register first;
 * cpu_ticks()       a counter that costs little to read. Another CPU's may
 *                   differ. CPU_TICKS_FEW of them are some microseconds or
 *                   less. CPU_TICKS_SOURCE is what Linux calls it as a clock;
 * cpu_context_sp()  the stack pointer that a signal interrupted, NULL if not
 *                   known.
 */
#ifndef MARCEL_ARCH_CPU_H
#define MARCEL_ARCH_CPU_H

#if defined __x86_64__
#include "x86_64/cpu.h"
#elif defined __aarch64__
#include "aarch64/cpu.h"
#else
#include "generic/cpu.h"
#endif

#ifndef cpu_word_is
#define cpu_word_is(a, v) (load_light(a) == (v))
#endif

#endif
