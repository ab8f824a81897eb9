/*
 * What the sources under test call outside of themselves. Weak: a scenario
 * that includes the real thing uses that.
 */
#include "internal.h"

#include <stdio.h>
#include <time.h>

#include <base/diag.h>

#define WEAK __attribute__((weak))

void os_futex_wait(void *word, uint32_t value);
void os_futex_wake(void *word, int n);
bool os_futex_wait_until(void *word, uint32_t value, clockid_t clock,
			 const struct timespec *abs);

WEAK void os_futex_wait(void *word, uint32_t value)
{
	explore_wait_while(word, value);
}

/* The time has come. */
WEAK bool os_futex_wait_until(void *word, uint32_t value, clockid_t clock,
			      const struct timespec *abs)
{
	return false;
}

WEAK void os_futex_wake(void *word, int n)
{
	explore_wake(word, n);
}

/* First word of the library's thread-local block: no VP. */
WEAK void *explore_tls_word(void)
{
	return NULL;
}

WEAK void base_check_failed(const char *what, const char *file, int line)
{
	explore_fail("%s:%d: %s does not hold", explore_file(file), line, what);
}

WEAK void base_fatal(const char *module, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	explore_fail("%s: %s", module, text);
}

/* Nobody is favoured. */
struct marcel_thread;
void marcel_thread_favour_woken(struct marcel_thread *t);

WEAK void marcel_thread_favour_woken(struct marcel_thread *t)
{
}

/* Nobody is cancelled. */
bool marcel_cancel_is_due(struct marcel_thread *t);

WEAK bool marcel_cancel_is_due(struct marcel_thread *t)
{
	return false;
}

/* No tick comes. */
void base_pin(void);
void base_unpin(void);
const void *base_pin_handler(const void *fn);
void base_unpin_handler(const void *outer);
bool base_in_handler(void);
void base_handler_check(const char *module, const char *what);

WEAK void base_pin(void)
{
}

WEAK void base_unpin(void)
{
}

const void *base_pin_handler(const void *fn)
{
	return NULL;
}

void base_unpin_handler(const void *outer)
{
}

bool base_in_handler(void)
{
	return false;
}

void base_handler_check(const char *module, const char *what)
{
}
