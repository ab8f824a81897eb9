/*
 * The one #if on the processor. Each <arch>/cpu.h gives cpu_relax() (a hint
 * inside spin loops) and cpu_tls_word() (see there).
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

#endif
