/*
 * Raising events: a queue between nmad's handlers and a thread.
 *
 * The queue is bounded; what finds it full is dropped, and told of before the
 * next callback. The thread is there while the library is and somebody has
 * registered; what happens meanwhile waits for it.
 */
#include <pioman/cond.h>

#include "core/background.h"
#include "tool/event.h"
#include "tool/tool.h"

enum { QUEUED_MAX = 1024, KINDS = 6 };

_Static_assert(1 << (KINDS - 1) == NM_SAW_LOST, "the kinds that nmad has");

struct base_spin madmpi_event_lock = BASE_SPIN_INIT(BASE_RANK_LEAF);

/* l: all, the events' lock */
static struct {
	struct base_list all;    /* of registrations; not yet made: no next */
	size_t listeners[KINDS]; /* of them, not freed, by kind */
	struct nm_sight sight[QUEUED_MAX];
	unsigned first, n;
	bool is_open; /* the bell may be rung */
} events;

static struct {
	struct madmpi_background background; /* -: once started */
	marcel_mutex_t mutex;
	bool runs;           /* l: of the mutex */
	ATOMIC(int) is_open; /* a: a hint: the mutex may be used */
	piom_sem_t bell;     /* there is something to do */
	ATOMIC(int) ending;  /* a: ordered by the bell */
} raiser = { .mutex = MARCEL_MUTEX_INITIALIZER };

/* --- nmad tells --- */

/* The callback with the lowest level that is enough, or NULL. */
static const struct madmpi_event_callback *
callback_locked(const struct madmpi_registration *r)
{
	for (int i = MADMPI_EVENT_RESTRICTED; i < MADMPI_EVENT_LEVELS; i++)
		if (r->callback[i].fn != NULL)
			return &r->callback[i];
	return NULL;
}

static void drop_locked(const struct nm_sight *s)
{
	base_list_for_each (n, &events.all) {
		struct madmpi_registration *r =
			container_of(n, struct madmpi_registration, on);

		if (r->what == s->what && r->dropped != NULL &&
		    callback_locked(r) != NULL && r->ndropped < INT64_MAX)
			r->ndropped++;
	}
}

/* A handler. */
static void seen(const struct nm_sight *s)
{
	bool ring;

	base_spin_lock(&madmpi_event_lock);
	ring = events.is_open && events.n == 0;
	if (events.n == QUEUED_MAX)
		drop_locked(s);
	else
		events.sight[(events.first + events.n++) % QUEUED_MAX] = *s;
	base_spin_unlock(&madmpi_event_lock);
	if (ring)
		piom_sem_post(&raiser.bell);
}

/* nmad tells of the kinds that somebody listens to. */
static void watch_locked(void)
{
	unsigned kinds = 0;

	for (unsigned i = 0; i < KINDS; i++)
		if (events.listeners[i] > 0)
			kinds |= 1u << i;
	nm_watch(kinds, seen);
}

static size_t *listeners_of(const struct madmpi_registration *r)
{
	return &events.listeners[__builtin_ctz(r->what)];
}

/* --- the thread calls --- */

static bool wants_locked(const struct madmpi_registration *r,
			 const struct nm_sight *s)
{
	if (r->is_freed)
		return false;
	if (s == NULL)
		return r->ndropped > 0 && r->dropped != NULL;
	return r->what == s->what && (MPI_Count)s->when_ns >= r->since;
}

/*
 * The next one behind `last` that wants to be called, for s or, NULL, because
 * something was dropped; the call of `last` is over.
 */
static struct madmpi_registration *next(struct madmpi_registration *last,
					const struct nm_sight *s,
					struct madmpi_event_callback *out)
{
	struct madmpi_registration *r = NULL, *over = NULL;
	struct base_link *n;

	base_spin_lock(&madmpi_event_lock);
	n = last != NULL ? last->on.next : events.all.head.next;
	if (last != NULL) {
		last->is_called = false;
		if (last->is_freed) {
			base_list_remove(&last->on);
			over = last;
		}
	}
	for (; n != &events.all.head && r == NULL; n = n->next) {
		const struct madmpi_event_callback *c;

		r = container_of(n, struct madmpi_registration, on);
		c = wants_locked(r, s) ? callback_locked(r) : NULL;
		if (c != NULL) {
			*out = *c;
			r->is_called = true;
		} else {
			r = NULL;
		}
	}
	base_spin_unlock(&madmpi_event_lock);
	if (over != NULL)
		madmpi_event_release(over, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
	return r;
}

static void tell_dropped(void)
{
	struct madmpi_registration *r = NULL;
	struct madmpi_event_callback c;
	MPI_T_event_dropped_cb_function *fn;
	MPI_Count count;

	while ((r = next(r, NULL, &c)) != NULL) {
		base_spin_lock(&madmpi_event_lock);
		count = r->ndropped;
		fn = r->dropped;
		r->ndropped = 0;
		base_spin_unlock(&madmpi_event_lock);
		if (fn != NULL)
			fn(count, (MPI_T_event_registration)r, 0,
			   MPI_T_CB_REQUIRE_MPI_RESTRICTED, c.user_data);
	}
}

static bool take(struct nm_sight *out)
{
	bool any;

	base_spin_lock(&madmpi_event_lock);
	any = events.n > 0;
	if (any) {
		*out = events.sight[events.first];
		events.first = (events.first + 1) % QUEUED_MAX;
		events.n--;
	}
	base_spin_unlock(&madmpi_event_lock);
	return any;
}

/* One event, unless no tool is there any more. False: there is none. */
static bool raise_one(void)
{
	struct madmpi_registration *r = NULL;
	struct madmpi_event_instance i;
	struct madmpi_event_callback c;

	tell_dropped();
	if (!take(&i.sight))
		return false;
	if (madmpi_tool_check() != MPI_SUCCESS)
		return true;
	madmpi_object_init(&i.object, MADMPI_T_INSTANCE);
	while ((r = next(r, &i.sight, &c)) != NULL)
		c.fn((MPI_T_event_instance)&i, (MPI_T_event_registration)r,
		     MPI_T_CB_REQUIRE_MPI_RESTRICTED, c.user_data);
	store_relaxed(&i.object.kind, (uint32_t)MADMPI_FREED);
	return true;
}

static int run(struct madmpi_background *b)
{
	(void)b;
	do {
		piom_sem_wait(&raiser.bell);
		while (raise_one())
			;
	} while (!load_relaxed(&raiser.ending));
	return 0;
}

/* --- who listens --- */

/* Once the library is up. */
static int start(void)
{
	int rc = 0;

	if (!load_relaxed(&raiser.is_open))
		return 0;
	marcel_mutex_lock(&raiser.mutex);
	if (load_relaxed(&raiser.is_open) && !raiser.runs) {
		raiser.background.run = run;
		rc = madmpi_background_run(&raiser.background);
		raiser.runs = rc == 0;
	}
	marcel_mutex_unlock(&raiser.mutex);
	return rc;
}

/* The library may come up meanwhile: it sees r, or we see that it is up. */
int madmpi_event_listen(struct madmpi_registration *r)
{
	int rc;

	base_spin_lock(&madmpi_event_lock);
	if (events.all.head.next == NULL)
		base_list_init(&events.all);
	base_list_push_back(&events.all, &r->on);
	if ((*listeners_of(r))++ == 0)
		watch_locked();
	base_spin_unlock(&madmpi_event_lock);
	rc = start();
	if (rc < 0) {
		base_spin_lock(&madmpi_event_lock);
		madmpi_event_end_locked(r); /* it has no callback yet */
		base_spin_unlock(&madmpi_event_lock);
	}
	return rc;
}

bool madmpi_event_end_locked(struct madmpi_registration *r)
{
	r->is_freed = true;
	if (--*listeners_of(r) == 0)
		watch_locked();
	if (!r->is_called)
		base_list_remove(&r->on);
	return !r->is_called;
}

/* --- the library begins and ends --- */

int madmpi_event_init(void)
{
	bool any;

	piom_sem_init(&raiser.bell, 0);
	store_relaxed(&raiser.ending, 0);
	store_relaxed(&raiser.is_open, 1);
	base_spin_lock(&madmpi_event_lock);
	if (events.all.head.next == NULL)
		base_list_init(&events.all);
	any = !base_list_is_empty(&events.all);
	events.n = 0; /* nobody waits for what was before */
	events.is_open = true;
	base_spin_unlock(&madmpi_event_lock);
	return any ? start() : 0;
}

void madmpi_event_exit(void)
{
	base_spin_lock(&madmpi_event_lock);
	events.is_open = false;
	base_spin_unlock(&madmpi_event_lock);
	marcel_mutex_lock(&raiser.mutex);
	store_relaxed(&raiser.is_open, 0);
	raiser.runs = false;
	marcel_mutex_unlock(&raiser.mutex);
	store_relaxed(&raiser.ending, 1);
	piom_sem_post(&raiser.bell);
}
