/*
 * Raising events: a queue between nmad's handlers and a thread.
 *
 * The queue is bounded; what finds it full is dropped, and told of before the
 * next callback. The thread is there while the library is and somebody has
 * registered; what happens meanwhile waits for it.
 */
#include <pioman/cond.h>

#include <base/diag.h>

#include "core/background.h"
#include "tool/event.h"
#include "tool/tool.h"

enum { QUEUED_MAX = 1024, KINDS = 6 };

struct base_spin madmpi_event_lock = BASE_SPIN_INIT(BASE_RANK_LEAF);

struct kind {
	struct base_list on; /* registrations; not yet made: no next */
	uint64_t ndropped;   /* events, ever */
};

/* l: all, the events' lock */
static struct {
	struct kind kinds[KINDS];
	size_t nhandles;  /* registrations that the program has not freed */
	unsigned dropped; /* kinds of events since drops were last told */
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

static struct kind *kind_locked(enum nm_watched what)
{
	unsigned i = (unsigned)__builtin_ctz(what);

	base_check(i < KINDS);
	if (events.kinds[i].on.head.next == NULL)
		base_list_init(&events.kinds[i].on);
	return &events.kinds[i];
}

static void drop_locked(const struct nm_sight *s)
{
	kind_locked(s->what)->ndropped++;
	events.dropped |= s->what;
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

/* nmad tells of the kinds that have a callback. */
static void watch_locked(void)
{
	unsigned kinds = 0;

	for (unsigned i = 0; i < KINDS; i++)
		if (!base_list_is_empty(&kind_locked(1u << i)->on))
			kinds |= 1u << i;
	nm_watch(kinds, seen);
}

void madmpi_event_forget_dropped_locked(struct madmpi_registration *r)
{
	r->ndropped = kind_locked(r->what)->ndropped;
}

/* It stays where it is while it is called; next() calls this again. */
void madmpi_event_turn_locked(struct madmpi_registration *r)
{
	bool wanted = !r->is_freed && callback_locked(r) != NULL;

	if (r->is_called || wanted == base_link_is_on(&r->on))
		return;
	if (wanted) {
		madmpi_event_forget_dropped_locked(r);
		base_list_push_back(&kind_locked(r->what)->on, &r->on);
	} else {
		base_list_remove(&r->on);
	}
	watch_locked();
}

/* --- the thread calls --- */

/* Those on the list have a callback. */
static bool wants_locked(const struct madmpi_registration *r,
			 const struct nm_sight *s)
{
	if (s == NULL)
		return r->dropped != NULL &&
		       r->ndropped < kind_locked(r->what)->ndropped;
	return (MPI_Count)s->when_ns >= r->since;
}

/*
 * The next one of a kind behind `last` that wants to be called, for s or, NULL,
 * because something was dropped; the call of `last` is over.
 */
static struct madmpi_registration *next(enum nm_watched what,
					struct madmpi_registration *last,
					const struct nm_sight *s,
					struct madmpi_event_callback *out)
{
	struct madmpi_registration *r = NULL, *over = NULL;
	const struct base_link *end;
	struct base_link *n;

	base_spin_lock(&madmpi_event_lock);
	end = &kind_locked(what)->on.head;
	n = last != NULL ? last->on.next : end->next;
	if (last != NULL) {
		last->is_called = false;
		madmpi_event_turn_locked(last);
		over = last->is_freed ? last : NULL;
	}
	for (; n != end && r == NULL; n = n->next) {
		r = container_of(n, struct madmpi_registration, on);
		if (!wants_locked(r, s))
			r = NULL;
	}
	if (r != NULL) {
		*out = *callback_locked(r);
		r->is_called = true;
	}
	base_spin_unlock(&madmpi_event_lock);
	if (over != NULL)
		madmpi_event_release(over, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
	return r;
}

static void tell_dropped_of(enum nm_watched what)
{
	struct madmpi_registration *r = NULL;
	struct madmpi_event_callback c;
	MPI_T_event_dropped_cb_function *fn;
	uint64_t count;

	while ((r = next(what, r, NULL, &c)) != NULL) {
		base_spin_lock(&madmpi_event_lock);
		count = kind_locked(what)->ndropped - r->ndropped;
		fn = r->dropped;
		madmpi_event_forget_dropped_locked(r);
		base_spin_unlock(&madmpi_event_lock);
		if (fn != NULL && count > 0)
			fn((MPI_Count)count, (MPI_T_event_registration)r, 0,
			   MPI_T_CB_REQUIRE_MPI_RESTRICTED, c.user_data);
	}
}

static void tell_dropped(void)
{
	unsigned kinds;

	base_spin_lock(&madmpi_event_lock);
	kinds = events.dropped;
	events.dropped = 0;
	base_spin_unlock(&madmpi_event_lock);
	for (; kinds != 0; kinds &= kinds - 1)
		tell_dropped_of(kinds & -kinds);
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
	while ((r = next(i.sight.what, r, &i.sight, &c)) != NULL)
		c.fn((MPI_T_event_instance)&i, (MPI_T_event_registration)r,
		     MPI_T_CB_REQUIRE_MPI_RESTRICTED, c.user_data);
	store_relaxed(&i.object.kind, (uint32_t)MADMPI_FREED);
	return true;
}

static int run(struct madmpi_background *b)
{
	bool is_noted;

	(void)b;
	do {
		piom_sem_wait(&raiser.bell);
		is_noted = madmpi_background_call();
		while (raise_one())
			;
		if (is_noted)
			madmpi_background_called();
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
	events.nhandles++;
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
	events.nhandles--;
	madmpi_event_turn_locked(r);
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
	any = events.nhandles > 0;
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
