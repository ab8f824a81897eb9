/*
 * A report on threads that do not move. A thread waits for at most one other:
 * the owner of a lock, or whom it joins. So cycles are found by going from one
 * to the next; each is told once, by the thread of the lowest address.
 *
 * Whoever may still move may end a wait while it is told of, and its object may
 * be unmapped then: so objects are copied by the kernel, which finds out, and
 * threads are only those that there were at the beginning: these descriptors
 * stay what they are.
 */
#include "blame.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <base/diag.h>
#include "../sched/vp.h"
#include "../sync/look.h"
#include "../sync/mutex.h"
#include "../sync/timed.h"
#include "look.h"

enum {
	THREADS_MAX = 1000, /* that are told of */
	CYCLE_MAX = 1000,   /* longer ones are not found */
	EVENTS_MAX = 4,     /* of those that one thread waits for */
	WORDS = 300,
};

/* All that there were, by address. One report at a time. */
static struct {
	struct marcel_thread **thread;
	size_t n, room;
} all;

static void count_thread(struct marcel_thread *t, void *arg)
{
	(void)t;
	++*(size_t *)arg;
}

static void note_thread(struct marcel_thread *t, void *arg)
{
	(void)arg;
	if (all.n < all.room && load_relaxed(&t->state) != MARCEL_T_FREE)
		all.thread[all.n++] = t;
}

static int by_address(const void *a, const void *b)
{
	const struct marcel_thread *const *s = a, *const *t = b;

	return *s < *t ? -1 : *s > *t;
}

static bool note_all(void)
{
	all.n = all.room = 0;
	marcel_thread_walk(count_thread, &all.room);
	all.thread = calloc(all.room + 1, sizeof(*all.thread));
	if (all.thread == NULL)
		return false;
	marcel_thread_walk(note_thread, NULL);
	qsort(all.thread, all.n, sizeof(*all.thread), by_address);
	return true;
}

/* t, or NULL: it is no thread. */
static struct marcel_thread *known(struct marcel_thread *t)
{
	return t != NULL && bsearch(&t, all.thread, all.n, sizeof(*all.thread),
				    by_address) != NULL
		       ? t
		       : NULL;
}

/* Copy what may be gone. False: it is, and *out is all zero. */
static bool peek(void *out, const void *at, size_t bytes)
{
	struct iovec here = { out, bytes }, there = { (void *)at, bytes };

	memset(out, 0, bytes);
	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) ==
	       (ssize_t)bytes;
}

/* Words that are put together; what does not fit is left out. */
struct words {
	char text[WORDS];
	size_t length;
};

static BASE_PRINTF(2, 3) void add(struct words *w, const char *fmt, ...)
{
	size_t room = sizeof(w->text) - w->length;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(w->text + w->length, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		w->length += (size_t)n < room ? (size_t)n : room - 1;
}

static void add_thread(struct words *w, struct marcel_thread *t)
{
	char name[MARCEL_NAME_MAX];

	marcel_thread_get_name(t, name);
	add(w, "thread %p", (void *)t);
	if (name[0] != '\0' || marcel_thread_has(t, MARCEL_F_MAIN))
		add(w, " \"%s\"", name[0] != '\0' ? name : "main");
}

/* A constant of a library that may be gone. */
static void add_call(struct words *w, struct marcel_thread *t)
{
	const char *call = load_relaxed(&t->rest->call);
	char name[64];

	if (call == NULL)
		return;
	for (size_t i = 0; i < sizeof(name); i++)
		if (!peek(&name[i], call + i, 1) || name[i] == '\0')
			break;
	name[sizeof(name) - 1] = '\0';
	if (name[0] != '\0')
		add(w, " in %s", name);
}

/* --- whom a thread waits for --- */

/* A condition's waiter that was signalled waits for the mutex. */
static struct marcel_mutex *mutex_of(uint64_t word)
{
	struct marcel_waiter w;

	if (marcel_waits_kind(word) == MARCEL_WAITS_MUTEX)
		return marcel_waits_object(word);
	return marcel_waits_kind(word) == MARCEL_WAITS_CONDITION &&
			       peek(&w, marcel_waits_object(word), sizeof(w)) &&
			       w.timer == NULL
		       ? w.mutex
		       : NULL;
}

static struct marcel_thread *owner_of(const struct marcel_mutex *mutex)
{
	struct marcel_mutex m;

	peek(&m, mutex, sizeof(m));
	return known(load_relaxed(&m.owner));
}

/* The writer that is known. */
static struct marcel_thread *look_at_rwlock(const void *lock, unsigned *readers)
{
	marcel_rwlock_t l;

	peek(&l, lock, sizeof(l));
	return known(marcel_rwlock_look(&l, readers));
}

static struct marcel_thread *waits_for(struct marcel_thread *t)
{
	uint64_t word = marcel_thread_waits_for(t);
	void *object = marcel_waits_object(word);
	struct marcel_mutex *m;
	unsigned readers;

	if (load_relaxed(&t->state) != MARCEL_T_PARKED || object == NULL)
		return NULL;
	switch (marcel_waits_kind(word)) {
	case MARCEL_WAITS_JOIN:
		return known(object);
	case MARCEL_WAITS_READ_LOCK:
	case MARCEL_WAITS_WRITE_LOCK:
		return look_at_rwlock(object, &readers);
	default:
		m = mutex_of(word);
		return m != NULL ? owner_of(m) : NULL;
	}
}

/* --- what it waits for, in words --- */

struct asked {
	const void *event;
	char text[WORDS];
	int rank;
	bool found;
};

static void ask(struct base_dumper *d, void *arg)
{
	struct asked *a = arg;

	if (!a->found && d->hang != NULL && d->hang->name != NULL)
		a->found = d->hang->name(d->arg, a->event, a->text,
					 sizeof(a->text), &a->rank);
}

static int add_event(struct words *w, const void *event)
{
	struct asked a = { .event = event, .rank = -1 };

	base_dumpers_walk(ask, &a);
	if (a.found)
		add(w, "%s", a.text);
	else
		add(w, "event %p", event);
	return a.rank;
}

/* If there are several, other ranks may end it, too. */
static int add_events(struct words *w, const void *events)
{
	int rank = -1, shown = 0;
	struct marcel_events e;
	const void *event;

	peek(&e, events, sizeof(e));
	add(w, "any of %zu events", e.n);
	for (size_t i = 0; i < e.n && shown < EVENTS_MAX; i++) {
		if (!peek(&event, &e.event[i], sizeof(event)))
			break;
		if (event == NULL)
			continue;
		add(w, shown++ == 0 ? ": " : "; ");
		rank = add_event(w, event);
	}
	return e.n == 1 ? rank : -1;
}

static void add_owner(struct words *w, struct marcel_thread *owner)
{
	if (owner == NULL)
		return;
	add(w, ", held by ");
	add_thread(w, owner);
	if (!marcel_thread_is_alive(owner))
		add(w, ", which has ended");
}

static void add_rwlock(struct words *w, uint64_t word)
{
	void *lock = marcel_waits_object(word);
	unsigned readers;
	struct marcel_thread *writer = look_at_rwlock(lock, &readers);

	add(w, "%s %p", marcel_waits_name(word), lock);
	add_owner(w, writer);
	if (readers > 0)
		add(w, ", held by %u reader(s)", readers);
}

static void add_condition(struct words *w, const void *record)
{
	struct marcel_waiter waiter;
	struct marcel_timed d;

	peek(&waiter, record, sizeof(waiter));
	if (waiter.timer == NULL) {
		add(w, "mutex %p, after a condition", (void *)waiter.mutex);
		add_owner(w, owner_of(waiter.mutex));
		return;
	}
	peek(&d, container_of(waiter.timer, struct marcel_timed, timer),
	     sizeof(d));
	add(w, "condition %p (with mutex %p)", (void *)d.guard,
	    (void *)waiter.mutex);
}

static void add_barrier(struct words *w, const void *barrier)
{
	unsigned come, count;
	marcel_barrier_t b;

	peek(&b, barrier, sizeof(b));
	marcel_barrier_look(&b, &come, &count);
	add(w, "barrier %p: %u of %u have come", barrier, come, count);
}

/* The rank that could end the wait, or -1. */
static int add_wait(struct words *w, uint64_t word)
{
	void *object = marcel_waits_object(word);
	struct marcel_thread *t = object;

	switch (marcel_waits_kind(word)) {
	case MARCEL_WAITS_MUTEX:
		add(w, "mutex %p", object);
		add_owner(w, owner_of(object));
		break;
	case MARCEL_WAITS_CONDITION:
		add_condition(w, object);
		break;
	case MARCEL_WAITS_BARRIER:
		add_barrier(w, object);
		break;
	case MARCEL_WAITS_READ_LOCK:
	case MARCEL_WAITS_WRITE_LOCK:
		add_rwlock(w, word);
		break;
	case MARCEL_WAITS_JOIN:
		add(w, "the end of ");
		if (known(t) != NULL)
			add_thread(w, t);
		else
			add(w, "thread %p", object);
		break;
	case MARCEL_WAITS_EVENT:
		return add_event(w, object);
	case MARCEL_WAITS_EVENTS:
		return add_events(w, object);
	case MARCEL_WAITS_NONE:
		add(w, "somebody to wake it");
		break;
	default:
		add(w, "%s", marcel_waits_name(word));
		if (object != NULL)
			add(w, " %p", object);
	}
	return -1;
}

/* --- a thread --- */

static void tell_thread(struct base_teller *teller, struct marcel_thread *t)
{
	struct words w = { .length = 0 };
	bool polls = marcel_thread_has(t, MARCEL_F_POLLS);
	struct marcel_info info;
	int rank = -1;

	if (!marcel_thread_look(t, &info) || info.state == MARCEL_STATE_ENDED)
		return;
	add_thread(&w, t);
	add_call(&w, t);
	if (info.state == MARCEL_STATE_WAITING || polls) {
		add(&w, " waits for ");
		rank = add_wait(&w, marcel_thread_waits_for(t));
		if (polls)
			add(&w, "; it polls");
	} else {
		add(&w, " is %s%s", marcel_state_name(info.state),
		    info.kind == MARCEL_KIND_FOREIGN ? ", foreign" : "");
	}
	base_tell(teller, "%s", w.text);
	if (rank >= 0 && teller->edge != NULL)
		teller->edge(teller, rank, w.text);
}

/* --- cycles --- */

/* The threads on it, if t is the first of them by address; else 0. */
static unsigned cycle_of(struct marcel_thread *t)
{
	struct marcel_thread *at = waits_for(t);
	unsigned n = 1;

	for (; at != NULL && at != t && n < CYCLE_MAX; at = waits_for(at)) {
		if (at < t)
			return 0;
		n++;
	}
	return at == t ? n : 0;
}

/* What `before` waits for is what t has, or its end. */
static void tell_link(struct base_teller *teller, struct marcel_thread *before,
		      struct marcel_thread *t)
{
	uint64_t has = marcel_thread_waits_for(before);
	struct words w = { .length = 0 };

	add(&w, "  ");
	add_thread(&w, t);
	if (mutex_of(has) != NULL)
		add(&w, " holds mutex %p and", (void *)mutex_of(has));
	else if (marcel_waits_kind(has) != MARCEL_WAITS_JOIN)
		add(&w, " holds lock %p and", marcel_waits_object(has));
	add(&w, " waits for ");
	add_wait(&w, marcel_thread_waits_for(t));
	base_tell(teller, "%s", w.text);
}

static void tell_cycle(struct base_teller *teller, struct marcel_thread *t)
{
	unsigned n = cycle_of(t);
	struct marcel_thread *before = t, *at = t;

	if (n == 0)
		return;
	base_tell(teller,
		  "a cycle of %u thread(s), none of which can go on:", n);
	for (unsigned i = 1; i < n && before != NULL; i++)
		before = waits_for(before);
	for (unsigned i = 0; i < n && before != NULL && at != NULL; i++) {
		tell_link(teller, before, at);
		before = at;
		at = waits_for(at);
	}
}

static void tell_layer(struct base_dumper *d, void *arg)
{
	if (d->hang != NULL && d->hang->tell != NULL)
		d->hang->tell(d->arg, arg);
}

void marcel_blame(struct base_teller *t)
{
	size_t shown;

	if (!note_all()) {
		base_tell(t, "no memory for a list of threads");
		return;
	}
	shown = all.n < THREADS_MAX ? all.n : THREADS_MAX;
	for (size_t i = 0; i < shown; i++)
		tell_thread(t, all.thread[i]);
	if (shown < all.n)
		base_tell(t, "and %zu more threads", all.n - shown);
	for (size_t i = 0; i < all.n; i++)
		tell_cycle(t, all.thread[i]);
	free(all.thread);
	base_dumpers_walk(tell_layer, t);
}
