/*
 * Making calls, and ending them.
 */
#include "calls.h"

#include <pthread.h>

#include <base/clock.h>
#include <base/pin.h>
#include <base/spin.h>

#include "core.h"
#include "watch.h"

/* A holder is not preempted, and functions may bring calls for ever. */
enum { BATCH = 64 };

/* A message that has come, or what else a watcher is told of. */
struct note {
	/* l: core lock, until it is left; then the holder's of the calls */
	struct nm_call call;
	union {
		struct {
			struct nm_session *session;
			nm_arrival_fn fn;
			void *arg;
			struct nm_gate *gate;
			size_t length;
			uint32_t tag;
		};
		struct nm_sight sight;
	};
};

struct nm_watcher nm_watcher;

void nm_calls_init(struct nm_calls *calls)
{
	store_relaxed(&calls->held, 0);
	base_mpsc_init(&calls->due);
	store_relaxed(&calls->holder, 0);
	store_relaxed(&calls->left, 0);
	nm_chain_init(&calls->taken);
	base_mpsc_init(&calls->told);
	nm_chain_init(&calls->notes);
}

/* --- who makes them --- */

static bool enter(struct nm_calls *calls)
{
	uint32_t held = load_seq(&calls->held); /* order(due), pusher's look */

	if (held != 0)
		return false;
	base_pin();
	if (cas_acquire(&calls->held, &held, 1)) /* order(due) */
		return true;
	base_unpin();
	return false;
}

/* True: something was left meanwhile; the caller must try to enter again. */
static bool leave(struct nm_calls *calls)
{
	store_seq(&calls->held, 0); /* order(due) */
	base_unpin();
	return !base_mpsc_is_empty_seq(&calls->due); /* order(due) */
}

/* A pinned thread does not leave its kernel thread. */
static uintptr_t self(void)
{
	return (uintptr_t)pthread_self();
}

static void take(struct nm_calls *calls)
{
	base_mpsc_for_each (n, base_mpsc_take(&calls->due))
		nm_chain_append(&calls->taken, n);
}

/* The holder: at most so many. How many fewer it were. */
static int make(struct nm_core *core, int budget)
{
	struct nm_calls *calls = &core->calls;
	struct base_mpsc_node *n;

	store_relaxed(&calls->holder, self());
	for (take(calls); budget > 0; budget--, take(calls)) {
		struct nm_call *call;

		n = nm_chain_take(&calls->taken);
		if (n == NULL)
			break;
		call = container_of(n, struct nm_call, node);
		call->make(core, call);
	}
	store_relaxed(&calls->left, calls->taken.first != NULL);
	store_relaxed(&calls->holder, 0);
	return budget;
}

bool nm_calls_make(struct nm_core *core)
{
	int budget = BATCH;

	do {
		if (!enter(&core->calls))
			return budget < BATCH;
		budget = make(core, budget);
	} while (leave(&core->calls) && budget > 0);
	/* Others have waited long enough for us. */
	if (unlikely(budget == 0))
		piom_ltask_kick(&core->ltask);
	return true;
}

void nm_calls_leave(struct nm_core *core, struct nm_call *call)
{
	base_mpsc_push_seq(&core->calls.due, /* order(due), order(mpsc) */
			   &call->node);
}

/* --- messages that have come --- */

static void tell(struct nm_core *core, struct nm_call *call)
{
	struct note *note = container_of(call, struct note, call);
	struct nm_sr_status what = { .gate = note->gate,
				     .tag = note->tag,
				     .length = note->length,
				     .sent = note->length };
	struct nm_session *s = note->session;
	nm_arrival_fn fn = note->fn;
	void *arg = note->arg;
	const void *outer = base_pin_handler(&fn);

	base_mpsc_push(&core->calls.told, &call->node);
	fn(s, &what, arg);
	base_unpin_handler(outer);
}

static struct note *note_new(struct nm_core *core)
{
	struct nm_calls *calls = &core->calls;
	struct base_mpsc_node *n;

	if (calls->notes.first == NULL)
		base_mpsc_for_each (told, base_mpsc_take(&calls->told))
			nm_chain_append(&calls->notes, told);
	n = nm_chain_take(&calls->notes);
	if (n != NULL)
		return container_of(n, struct note, call.node);
	return nm_mem_get(&core->mem, nm_mem_class(sizeof(struct note)));
}

void nm_calls_note(struct nm_core *core, struct nm_session *s,
		   const struct nm_msg *msg)
{
	struct note *note = note_new(core);

	note->call.make = tell;
	note->session = s;
	note->fn = s->monitor;
	note->arg = s->monitor_arg;
	note->gate = msg->match.gate;
	note->length = msg->length;
	note->tag = msg->match.tag;
	nm_calls_leave(core, &note->call);
}

/* --- watching --- */

static void tell_sight(struct nm_core *core, struct nm_call *call)
{
	struct note *note = container_of(call, struct note, call);
	nm_watch_fn fn = load_relaxed(&nm_watcher.fn);
	struct nm_sight sight = note->sight;
	const void *outer = base_pin_handler(&fn);

	base_mpsc_push(&core->calls.told, &call->node);
	if (fn != NULL)
		fn(&sight);
	base_unpin_handler(outer);
}

void nm_calls_sight(struct nm_core *core, enum nm_watched what,
		    const struct nm_gate *gate, uint32_t tag, size_t length)
{
	struct note *note = note_new(core);

	note->call.make = tell_sight;
	note->sight = (struct nm_sight){ .what = what,
					 .rank = gate->rank,
					 .tag = tag,
					 .length = length,
					 .when_ns = base_now_ns() };
	nm_calls_leave(core, &note->call);
}

BASE_PUBLIC void nm_watch(unsigned kinds, nm_watch_fn fn)
{
	if (kinds != 0)
		store_relaxed(&nm_watcher.fn, fn);
	store_relaxed(&nm_watcher.kinds, kinds);
}

/* --- the end of them --- */

/* The holder: notes of the session are not told. How many calls remain. */
static int drop(struct nm_calls *calls, const struct nm_session *s)
{
	struct nm_chain all = calls->taken;
	struct base_mpsc_node *n;
	int remain = 0;

	if (all.first == NULL)
		return 0;
	nm_chain_init(&calls->taken);
	while ((n = nm_chain_take(&all)) != NULL) {
		struct nm_call *call = container_of(n, struct nm_call, node);

		if (call->make == tell &&
		    container_of(call, struct note, call)->session == s) {
			base_mpsc_push(&calls->told, n);
			continue;
		}
		nm_chain_append(&calls->taken, n);
		remain++;
	}
	return remain;
}

void nm_calls_settle(struct nm_core *core, struct nm_session *s)
{
	struct nm_calls *calls = &core->calls;
	unsigned turn = 0;

	if (load_relaxed(&calls->holder) == self()) {
		take(calls);
		drop(calls, s);
		return;
	}
	base_handler_check("nmad", "nm_session_unmonitor()");
	while (!enter(calls))
		base_spin_turn(&turn);
	take(calls);
	make(core, drop(calls, s));
	if (leave(calls) || load_relaxed(&calls->left) != 0)
		nm_calls_make(core);
}
