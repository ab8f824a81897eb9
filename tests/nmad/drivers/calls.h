/*
 * The system calls that the calling kernel thread makes between two points, as
 * the kernel counts them: by its "syscall user dispatch" each becomes a SIGSYS,
 * whose handler counts the call and makes it. x86-64, Linux 5.11.
 */
#ifndef TESTS_NMAD_DRIVERS_CALLS_H
#define TESTS_NMAD_DRIVERS_CALLS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <base/compiler.h>

enum { CALLS_DISPATCH = 59, CALLS_OFF = 0, CALLS_ON = 1 };

static volatile char calls_blocked; /* the kernel reads it at each call */
static volatile uint64_t calls_seen;
static volatile long calls_last;

#if defined(__x86_64__)

/* What the kernel takes; libc's has another shape. */
struct calls_action {
	void (*handler)(int, siginfo_t *, void *);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

/* The one place that may make a call at any time: the handler's return. */
void calls_restorer(void);
__asm__(".text\n"
	"calls_restorer:\n"
	"	mov $15, %eax\n"
	"	syscall\n"
	"	nop\n");

static long calls_make(const greg_t *r)
{
	register long r10 __asm__("r10") = r[REG_R10];
	register long r8 __asm__("r8") = r[REG_R8];
	register long r9 __asm__("r9") = r[REG_R9];
	long rc;

	__asm__ volatile("syscall"
			 : "=a"(rc)
			 : "0"(r[REG_RAX]), "D"(r[REG_RDI]), "S"(r[REG_RSI]),
			   "d"(r[REG_RDX]), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return rc;
}

static void calls_on_one(int sig, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig;
	calls_blocked = 0;
	calls_seen++;
	calls_last = info->si_syscall;
	r[REG_RAX] = calls_make(r);
	calls_blocked = 1;
}

/* False: this kernel, or what runs us, cannot. */
static inline bool calls_begin(void)
{
	struct calls_action a = { calls_on_one,
				  SA_SIGINFO | 0x04000000 /* SA_RESTORER */,
				  calls_restorer, 0 };

	if (BASE_TSAN || syscall(SYS_rt_sigaction, SIGSYS, &a, NULL, 8) < 0 ||
	    prctl(CALLS_DISPATCH, CALLS_ON, calls_restorer, 16UL,
		  &calls_blocked) < 0)
		return false;
	calls_blocked = 1;
	return true;
}

static inline void calls_end(void)
{
	calls_blocked = 0;
	prctl(CALLS_DISPATCH, CALLS_OFF, 0UL, 0UL, 0UL);
}

#else

static inline bool calls_begin(void)
{
	return false;
}

static inline void calls_end(void)
{
}

#endif

#endif
