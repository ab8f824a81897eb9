/*
 * The server's side of the PMI-1 wire protocol: a request is a line of
 * fields "name=value", its answer another. What ranks put is seen by all at
 * once; the barrier is what they wait for.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "job.h"

enum { KVSNAME_MAX = 256, KEY_MAX = 64, VALUE_MAX = 1024 };

/* A value; the key is text, the value stands behind it. */
struct kvs_entry {
	struct kvs_entry *next;
	const char *value;
	char key[];
};

/* --- the values --- */

static struct kvs_entry **kvs_slot(struct job *j, const char *key)
{
	unsigned h = 5381;
	struct kvs_entry **e;

	for (const char *c = key; *c != '\0'; c++)
		h = h * 33 + (unsigned char)*c;
	e = &j->kvs[h % KVS_BUCKETS];
	while (*e != NULL && strcmp((*e)->key, key) != 0)
		e = &(*e)->next;
	return e;
}

static bool kvs_put(struct job *j, const char *key, const char *value)
{
	size_t k = strlen(key) + 1, v = strlen(value) + 1;
	struct kvs_entry **slot = kvs_slot(j, key), *e;

	if (*slot != NULL)
		return false;
	e = must(malloc(sizeof(*e) + k + v));
	e->next = NULL;
	memcpy(e->key, key, k);
	e->value = memcpy(e->key + k, value, v);
	*slot = e;
	return true;
}

void pmi_define(struct job *j, const char *key, const char *value)
{
	kvs_put(j, key, value);
}

void pmi_forget(struct job *j)
{
	for (int i = 0; i < KVS_BUCKETS; i++) {
		struct kvs_entry *e, *next;

		for (e = j->kvs[i]; e != NULL; e = next) {
			next = e->next;
			free(e);
		}
		j->kvs[i] = NULL;
	}
}

/* --- requests and answers --- */

static void disconnect(struct rank *r)
{
	close(r->pmi);
	r->pmi = -1;
}

static void __attribute__((format(printf, 3, 4)))
answer(struct job *j, struct rank *r, const char *fmt, ...)
{
	char text[LINE];
	va_list ap;
	ssize_t n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (r->pmi < 0 ||
	    send(r->pmi, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) == n)
		return;
	/* A dead rank is noticed when it is reaped; a live one must read. */
	if (errno == EAGAIN)
		rank_fail(j, r, 1,
			  "rank %d (pid %d) does not read mpirun's answers",
			  r->number, r->pid);
}

/* The value of a field, cut out of `line`. NULL: it is not there. */
static const char *field(const char *line, const char *name, char *out,
			 size_t room)
{
	size_t len = strlen(name), n;

	while (*line != '\0') {
		line += strspn(line, " ");
		n = strcspn(line, " ");
		if (n > len && line[len] == '=' &&
		    strncmp(line, name, len) == 0) {
			n -= len + 1;
			if (n >= room)
				return NULL;
			memcpy(out, line + len + 1, n);
			out[n] = '\0';
			return out;
		}
		line += n;
	}
	return NULL;
}

static void do_init(struct job *j, struct rank *r, const char *line)
{
	char text[16];
	bool one = field(line, "pmi_version", text, sizeof(text)) != NULL &&
		   strcmp(text, "1") == 0;

	if (r->left) {
		rank_fail(j, r, 1,
			  "rank %d starts a second MPI program; a rank is one "
			  "program",
			  r->number);
		return;
	}
	j->joined += !r->joined;
	r->joined = true;
	answer(j, r,
	       "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=%d\n",
	       one ? 0 : -1);
	for (int i = 0; i < j->opt.ranks && j->joined == 1; i++)
		if (j->ranks[i].pid == 0 && !j->ranks[i].joined)
			rank_fail(j, &j->ranks[i], 1,
				  "rank %d has ended before MPI_Init, but rank "
				  "%d has called it",
				  i, r->number);
}

static void do_maxes(struct job *j, struct rank *r, const char *line)
{
	(void)line;
	answer(j, r,
	       "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d rc=0\n",
	       KVSNAME_MAX, KEY_MAX, VALUE_MAX);
}

static void do_appnum(struct job *j, struct rank *r, const char *line)
{
	(void)line;
	answer(j, r, "cmd=appnum appnum=%d rc=0\n", r->program);
}

static void do_universe(struct job *j, struct rank *r, const char *line)
{
	(void)line;
	answer(j, r, "cmd=universe_size size=%d rc=0\n", j->opt.ranks);
}

static void do_kvsname(struct job *j, struct rank *r, const char *line)
{
	(void)line;
	answer(j, r, "cmd=my_kvsname kvsname=%s rc=0\n", j->kvs_name);
}

static void do_put(struct job *j, struct rank *r, const char *line)
{
	char key[KEY_MAX], value[VALUE_MAX];
	const char *msg = "success";

	if (field(line, "key", key, sizeof(key)) == NULL)
		msg = "key_missing_or_too_long";
	else if (field(line, "value", value, sizeof(value)) == NULL)
		msg = "value_missing_or_too_long";
	else if (!kvs_put(j, key, value))
		msg = "duplicate_key";
	answer(j, r, "cmd=put_result rc=%d msg=%s\n",
	       strcmp(msg, "success") == 0 ? 0 : -1, msg);
}

static void do_get(struct job *j, struct rank *r, const char *line)
{
	char key[KEY_MAX];
	struct kvs_entry *e = NULL;

	if (field(line, "key", key, sizeof(key)) != NULL)
		e = *kvs_slot(j, key);
	if (e != NULL)
		answer(j, r, "cmd=get_result rc=0 msg=success value=%s\n",
		       e->value);
	else
		answer(j, r,
		       "cmd=get_result rc=-1 msg=key_not_found "
		       "value=unknown\n");
}

static void unknown(struct job *j, struct rank *r, const char *line)
{
	rank_fail(j, r, 1,
		  "rank %d (pid %d) sent \"%.80s\", which is no request that "
		  "mpirun knows",
		  r->number, r->pid, line);
	pmi_without(j, r);
}

/* All who can come have: they may go on. */
static void release(struct job *j)
{
	j->waiting = 0;
	for (int i = 0; i < j->opt.ranks; i++) {
		struct rank *r = &j->ranks[i];
		bool in = r->in_barrier;

		r->in_barrier = false;
		if (in)
			answer(j, r, "cmd=barrier_out rc=0\n");
	}
}

/* Nobody may wait for a rank that will not come. */
static void never(struct job *j)
{
	int in = -1, gone = -1;

	for (int i = 0; i < j->opt.ranks; i++)
		if (j->ranks[i].in_barrier)
			in = i;
		else if (j->ranks[i].gone)
			gone = i;
	job_fail(j, 1,
		 "rank %d waits for all ranks, but rank %d has left the job",
		 in, gone);
}

static void check_barrier(struct job *j)
{
	if (j->waiting == 0)
		return;
	if (j->members < j->opt.ranks && !j->opt.keep_going)
		never(j);
	else if (j->waiting == j->members)
		release(j);
}

static void do_barrier(struct job *j, struct rank *r, const char *line)
{
	(void)line;
	if (r->gone) {
		unknown(j, r, "cmd=barrier_in after cmd=finalize");
		return;
	}
	j->waiting += !r->in_barrier;
	r->in_barrier = true;
	check_barrier(j);
}

static void leave(struct job *j, struct rank *r)
{
	if (r->gone)
		return;
	r->gone = true;
	j->members--;
	j->waiting -= r->in_barrier;
	r->in_barrier = false;
	check_barrier(j);
}

void pmi_without(struct job *j, struct rank *r)
{
	if (r->pmi >= 0)
		disconnect(r);
	leave(j, r);
}

static void do_finalize(struct job *j, struct rank *r, const char *line)
{
	(void)line;
	answer(j, r, "cmd=finalize_ack rc=0\n");
	r->left = true;
	leave(j, r);
}

static void do_abort(struct job *j, struct rank *r, const char *line)
{
	char text[16];
	int code = 1;

	if (field(line, "exitcode", text, sizeof(text)) != NULL)
		code = atoi(text);
	job_fail(j, (code & 255) != 0 ? code & 255 : 1,
		 "rank %d (pid %d) has aborted the job with code %d", r->number,
		 r->pid, code);
}

static void do_publish(struct job *j, struct rank *r, const char *line)
{
	char what[32];

	if (field(line, "cmd", what, sizeof(what)) == NULL)
		return;
	what[strcspn(what, "_")] = '\0';
	answer(j, r, "cmd=%s_result rc=-1 msg=not_offered info=not_offered\n",
	       what);
}

static const struct {
	const char *name;
	void (*fn)(struct job *j, struct rank *r, const char *line);
} requests[] = {
	{ "init", do_init },
	{ "get_maxes", do_maxes },
	{ "get_appnum", do_appnum },
	{ "get_universe_size", do_universe },
	{ "get_my_kvsname", do_kvsname },
	{ "put", do_put },
	{ "get", do_get },
	{ "barrier_in", do_barrier },
	{ "finalize", do_finalize },
	{ "abort", do_abort },
	{ "publish_name", do_publish },
	{ "lookup_name", do_publish },
	{ "unpublish_name", do_publish },
};

static void request(struct job *j, struct rank *r, const char *line)
{
	char name[32];

	if (field(line, "cmd", name, sizeof(name)) != NULL) {
		for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]);
		     i++) {
			if (strcmp(requests[i].name, name) != 0)
				continue;
			requests[i].fn(j, r, line);
			return;
		}
	}
	unknown(j, r, line);
}

static void lost(struct rank *r)
{
	disconnect(r);
	if (r->joined && !r->left)
		r->lost_at = now_ms();
}

/* All whole lines in r->in. */
static void take_lines(struct job *j, struct rank *r)
{
	size_t at = 0;
	char *end;

	while (r->pmi >= 0 &&
	       (end = memchr(r->in + at, '\n', r->len - at)) != NULL) {
		*end = '\0';
		request(j, r, r->in + at);
		at = (size_t)(end + 1 - r->in);
	}
	r->len -= at;
	memmove(r->in, r->in + at, r->len);
	if (r->pmi >= 0 && r->len == sizeof(r->in)) {
		r->in[80] = '\0';
		unknown(j, r, r->in);
	}
}

void pmi_serve(struct job *j, struct rank *r)
{
	while (r->pmi >= 0) {
		ssize_t n = recv(r->pmi, r->in + r->len, sizeof(r->in) - r->len,
				 MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			lost(r);
			return;
		}
		r->len += (size_t)n;
		take_lines(j, r);
	}
}
