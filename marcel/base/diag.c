/*
 * Messages, checks and dumps. Nothing here allocates or takes a lock, so all
 * of it may be called from a signal handler.
 */
#include <base/diag.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/atomic.h>
#include <base/hang.h>

enum { LINE_MAX_ = 1024 };

/*
 * The whole text, whatever the pipe does; errors have nowhere to go. Not by
 * write(), which is a wrapper that lets others run meanwhile.
 */
static void write_all(const char *text, size_t len)
{
	int saved = errno;

	while (len > 0) {
		long n = syscall(SYS_write, STDERR_FILENO, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		text += n;
		len -= (size_t)n;
	}
	errno = saved;
}

static void vwarn(const char *module, const char *fmt, va_list ap)
{
	char line[LINE_MAX_];
	int head = snprintf(line, sizeof(line), "%s[%d]: ", module, getpid());
	size_t len = (size_t)head;
	int body = vsnprintf(line + len, sizeof(line) - len - 1, fmt, ap);

	if (body > 0)
		len += (size_t)body;
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	write_all(line, len);
}

BASE_PUBLIC void base_warn(const char *module, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vwarn(module, fmt, ap);
	va_end(ap);
}

BASE_PUBLIC void base_fatal(const char *module, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vwarn(module, fmt, ap);
	va_end(ap);
	abort();
}

BASE_PUBLIC void base_check_failed(const char *what, const char *file, int line)
{
	base_fatal("check", "%s:%d: %s does not hold", file, line, what);
}

/* --- dumps --- */

struct sink {
	char *out;
	size_t len, room; /* room: bytes that fit, without the final 0 */
};

static void put(struct sink *s, char c)
{
	if (s->len < s->room)
		s->out[s->len++] = c;
}

static void put_text(struct sink *s, const char *text, int width)
{
	size_t len = strlen(text);

	for (; width > (int)len; width--)
		put(s, ' ');
	for (size_t i = 0; i < len; i++)
		put(s, text[i]);
}

static void put_number(struct sink *s, unsigned long v, unsigned base,
		       bool negative, int width)
{
	char text[24];
	char *p = text + sizeof(text) - 1;

	*p = 0;
	do
		*--p = "0123456789abcdef"[v % base];
	while ((v /= base) != 0);
	if (negative)
		*--p = '-';
	put_text(s, p, width);
}

static void put_signed(struct sink *s, long v, int width)
{
	unsigned long u = v < 0 ? 0 - (unsigned long)v : (unsigned long)v;

	put_number(s, u, 10, v < 0, width);
}

BASE_PUBLIC size_t base_format(char *out, size_t bytes, const char *fmt,
			       va_list ap)
{
	struct sink s = { out, 0, bytes - 1 };

	for (; *fmt; fmt++) {
		int width = 0;
		bool is_long = false;

		if (*fmt != '%') {
			put(&s, *fmt);
			continue;
		}
		for (fmt++; *fmt >= '0' && *fmt <= '9'; fmt++)
			width = width * 10 + (*fmt - '0');
		for (; *fmt == 'l' || *fmt == 'z'; fmt++)
			is_long = true;
		if (*fmt == 'd') {
			put_signed(&s,
				   is_long ? va_arg(ap, long) : va_arg(ap, int),
				   width);
		} else if (*fmt == 'u' || *fmt == 'x') {
			put_number(&s,
				   is_long ? va_arg(ap, unsigned long)
					   : va_arg(ap, unsigned),
				   *fmt == 'u' ? 10 : 16, false, width);
		} else if (*fmt == 'p') {
			put_text(&s, "0x", 0);
			put_number(&s, (unsigned long)va_arg(ap, void *), 16,
				   false, width);
		} else if (*fmt == 's') {
			put_text(&s, va_arg(ap, const char *), width);
		} else if (*fmt == 'c') {
			put(&s, (char)va_arg(ap, int));
		} else {
			put(&s, '%');
			if (*fmt == 0)
				break;
		}
	}
	out[s.len] = 0;
	return s.len;
}

BASE_PUBLIC void base_dump(const char *fmt, ...)
{
	char line[512];
	va_list ap;
	size_t len;

	va_start(ap, fmt);
	len = base_format(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	line[len++] = '\n';
	write_all(line, len);
}

/*
 * The dumpers, in order. Added and removed while a layer starts or stops, by
 * one thread at a time; a handler that runs meanwhile sees a whole chain,
 * because each link is one word. Who removes one waits for the dumps that may
 * have seen it: a store-load race, order(dumping).
 */
static ATOMIC(struct base_dumper *) dumpers; /* a: order(dump) */
static ATOMIC(int) dumping; /* a: dumps under way; order(dumping) */

BASE_PUBLIC void base_dumper_add(struct base_dumper *d)
{
	struct base_dumper *p = load_relaxed(&dumpers), *last = NULL;

	store_relaxed(&d->next, NULL);
	for (; p != NULL; p = load_relaxed(&p->next))
		last = p;
	if (last == NULL)
		store_release(&dumpers, d); /* order(dump): *d */
	else
		store_release(&last->next, d); /* order(dump): *d */
}

BASE_PUBLIC void base_dumper_remove(struct base_dumper *d)
{
	struct base_dumper *p = load_relaxed(&dumpers);
	struct base_dumper *next = load_relaxed(&d->next);

	if (p == d)
		store_seq(&dumpers, next); /* order(dumping) */
	for (; p != NULL; p = load_relaxed(&p->next))
		if (load_relaxed(&p->next) == d)
			store_seq(&p->next, next); /* order(dumping) */
	while (load_seq(&dumping) != 0)            /* order(dumping) */
		sched_yield();
}

void base_dump_forked(void)
{
	store_relaxed(&dumping, 0);
}

void base_dumpers_walk(void (*fn)(struct base_dumper *d, void *arg), void *arg)
{
	struct base_dumper *d;

	fetch_add_seq(&dumping, 1); /* order(dumping) */
	d = load_seq(&dumpers);     /* order(dump), order(dumping) */
	while (d != NULL) {
		fn(d, arg);
		d = load_seq(&d->next); /* order(dump), order(dumping) */
	}
	fetch_sub_release(&dumping, 1); /* order(dumping): all of it */
}

static void dump_one(struct base_dumper *d, void *arg)
{
	(void)arg;
	base_dump("-- %s", d->name);
	d->fn(d->arg);
}

BASE_PUBLIC void base_dump_all(void)
{
	base_dump("==== state of process %d", getpid());
	base_dumpers_walk(dump_one, NULL);
	base_dump("==== end of state of process %d", getpid());
}

BASE_PUBLIC void base_tell(struct base_teller *t, const char *fmt, ...)
{
	char text[500];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	t->line(t, text);
}
