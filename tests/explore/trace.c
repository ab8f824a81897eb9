/*
 * What happened, for people: names of memory, and the schedule of the
 * execution that failed.
 */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char __executable_start[];

static const char *const orders[] = { "relaxed", "consume", "acquire",
				      "release", "acq_rel", "seq" };

const char *explore_file(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

void explore_name(const void *p, size_t bytes, const char *fmt, ...)
{
	struct name *n = &X->name[X->names];
	va_list ap;

	if (X->named)
		return; /* the same as in the first execution */
	if (X->names == NAMES_MAX)
		explore_fail("more than %d names", NAMES_MAX);
	X->names++;
	n->p = p;
	n->bytes = bytes;
	va_start(ap, fmt);
	vsnprintf(n->text, sizeof(n->text), fmt, ap);
	va_end(ap);
}

/* The smallest thing that holds p: "node 2", "list+8", else the number. */
const char *trace_address(const void *p, char *out, size_t bytes)
{
	const struct name *best = NULL;

	for (int i = 0; i < X->names; i++) {
		const struct name *n = &X->name[i];

		if ((const char *)p >= n->p &&
		    (const char *)p < n->p + n->bytes &&
		    (best == NULL || n->bytes < best->bytes))
			best = n;
	}
	if (best == NULL)
		snprintf(out, bytes, "%p", p);
	else if (best->p == p)
		snprintf(out, bytes, "%s", best->text);
	else
		snprintf(out, bytes, "%s+%d", best->text,
			 (int)((const char *)p - best->p));
	return out;
}

/* "file:line (inlined by) ..."; empty if nobody can tell. */
const char *trace_source(const void *pc, char *out, size_t bytes)
{
	char cmd[256], line[128];
	size_t len = 0;
	FILE *f;

	out[0] = 0;
	if (pc == NULL)
		return out;
	snprintf(cmd, sizeof(cmd), "addr2line -s -i -e /proc/%d/exe %#lx 2>&-",
		 getpid(),
		 (unsigned long)((const char *)pc - __executable_start - 1));
	f = popen(cmd, "r");
	if (f == NULL)
		return out;
	while (fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, " \n")] = 0;
		if (len < bytes)
			len += (size_t)snprintf(out + len, bytes - len, "%s%s",
						len > 0 ? ", in " : "", line);
	}
	pclose(f);
	return out;
}

void trace_add(const char *what, const struct explore_site *s, int loc,
	       int order)
{
	struct trace *e = &X->trace[X->traces];

	if (X->traces == (int)(sizeof(X->trace) / sizeof(X->trace[0])))
		explore_fail("an execution does not end");
	X->traces++;
	memset(e, 0, sizeof(*e));
	e->thread = (uint8_t)X->current;
	e->what = what;
	e->site = s;
	e->loc = loc;
	e->order = order;
}

void trace_read(int msg, uint64_t got)
{
	struct trace *e = &X->trace[X->traces - 1];

	e->reads = true;
	e->msg = msg;
	e->newest = X->loc[e->loc].n - 1;
	e->got = got;
}

void trace_write(uint64_t put)
{
	struct trace *e = &X->trace[X->traces - 1];

	e->writes = true;
	e->put = put;
}

static const char *value(uint64_t v, char *out, size_t bytes)
{
	trace_address((const void *)(uintptr_t)v, out, bytes);
	if (strncmp(out, "0x", 2) == 0 || strncmp(out, "(nil)", 5) == 0)
		snprintf(out, bytes, v < 65536 ? "%llu" : "%#llx",
			 (unsigned long long)v);
	return out;
}

static void print_one(int i, const struct trace *e)
{
	char what[32], where[64], got[64], put[64], values[160], text[32];

	snprintf(what, sizeof(what), "%s%s%s", e->what,
		 e->order >= 0 && e->site->line ? "_" : "",
		 e->order >= 0 && e->site->line ? orders[e->order] : "");
	where[0] = values[0] = 0;
	if (e->loc >= 0) {
		trace_address(X->loc[e->loc].addr, where, sizeof(where));
		if (where[0] == '0' && e->site != NULL)
			snprintf(where, sizeof(where), "%s", e->site->expr);
	}
	value(e->got, got, sizeof(got));
	value(e->put, put, sizeof(put));
	if (e->reads && e->writes)
		snprintf(values, sizeof(values), "%s -> %s", got, put);
	else if (e->writes)
		snprintf(values, sizeof(values), "= %s", put);
	else if (e->reads && e->msg < e->newest)
		snprintf(values, sizeof(values), "%s (old; newest is %s)", got,
			 value(X->loc[e->loc].msg[e->newest].value, text,
			       sizeof(text)));
	else if (e->reads)
		snprintf(values, sizeof(values), "%s", got);
	printf("# %4d  %-12s %-18s %-16s %-24s", i + 1,
	       X->thread[e->thread].name, what, where, values);
	if (e->site != NULL && e->site->line)
		printf(" %s:%d", explore_file(e->site->file), e->site->line);
	printf("\n");
}

void trace_print(void)
{
	for (int i = 0; i < X->traces; i++)
		print_one(i, &X->trace[i]);
}
