/* Threads that are made, joined in any way by anybody, detached, unwound. */
#include "stress.h"

#include <errno.h>
#include <stdlib.h>

enum { CHILDREN = 6, BOXES = 4 };

static ATOMIC(long) made, ended, joined, detached, exits, unwound;
static ATOMIC(long) values_set, values_destroyed;
static marcel_key_t key;

struct child {
	struct actor a;
	marcel_t thread;
	uint64_t value; /* what it returns */
	bool detached, exits;
	int acts;
};

static void *end_child(struct child *c)
{
	void *value = (void *)(uintptr_t)c->value;

	if (c->detached)
		free(c);
	fetch_add_release(&ended, 1); /* for threads_end() */
	return value;
}

static void at_unwinding(void *arg)
{
	stir(arg);
	fetch_add_relaxed(&unwound, 1);
}

static void exit_child(struct child *c)
{
	struct actor a = c->a;

	fetch_add_relaxed(&exits, 1);
	marcel_cleanup_push(at_unwinding, &a);
	marcel_exit(end_child(c));
	marcel_cleanup_pop(0);
}

static void *child_main(void *arg)
{
	struct child *c = arg;

	for (int i = 0; i < c->acts; i++)
		act(&c->a);
	if (c->exits)
		exit_child(c);
	return end_child(c);
}

static void draw_attr(struct actor *a, marcel_attr_t *attr)
{
	MUST_INT(marcel_attr_init(attr), 0);
	if (one_in(a, 6))
		MUST_INT(marcel_attr_setstacksize(
				 attr, (size_t)(64 + draw_below(a, 512)) << 10),
			 0);
	if (one_in(a, 4))
		MUST_INT(marcel_attr_setvp(
				 attr,
				 (int)draw_below(a, (unsigned)marcel_nvp())),
			 0);
	if (one_in(a, 8))
		MUST_INT(marcel_attr_setname(attr, "child"), 0);
}

static struct child *child_new(struct actor *a, bool detached_child, int depth)
{
	struct child *c = calloc(1, sizeof(*c));
	marcel_attr_t attr;
	bool at_once = one_in(a, 2);
	marcel_t t;

	MUST(c != NULL);
	c->a.random = draw(a);
	c->a.id = a->id;
	c->a.depth = depth;
	c->value = draw(a);
	c->detached = detached_child;
	c->exits = one_in(a, 4);
	c->acts = (int)draw_below(a, 4);
	draw_attr(a, &attr);
	if (detached_child && at_once)
		marcel_attr_setdetachstate(&attr, MARCEL_CREATE_DETACHED);
	fetch_add_relaxed(&made, 1);
	MUST_INT(marcel_create(&t, one_in(a, 3) || at_once ? &attr : NULL,
			       child_main, c),
		 0);
	if (detached_child) {
		fetch_add_relaxed(&detached, 1);
		if (!at_once) {
			stir(a);
			MUST_INT(marcel_detach(t), 0);
		}
		return NULL;
	}
	c->thread = t;
	return c;
}

static void child_join(struct actor *a, struct child *c)
{
	void *got = NULL;
	struct timespec t;
	int rc;

	switch (draw_below(a, 4)) {
	case 0:
		while ((rc = marcel_tryjoin_np(c->thread, &got)) == EBUSY)
			one_in(a, 8) ? marcel_usleep(50) : marcel_yield();
		break;
	case 1:
		do {
			t = soon(a, CLOCK_REALTIME);
			rc = marcel_timedjoin_np(c->thread, &got, &t);
		} while (rc == ETIMEDOUT);
		break;
	default:
		rc = marcel_join(c->thread, &got);
		break;
	}
	MUST_INT(rc, 0);
	MUST((uint64_t)(uintptr_t)got == c->value);
	fetch_add_relaxed(&joined, 1);
	free(c);
}

static void op_children(struct actor *a)
{
	struct child *c[CHILDREN];
	int n = 1 + (int)draw_below(a, CHILDREN);

	for (int i = 0; i < n; i++) {
		c[i] = child_new(a, false, a->depth + 1);
		if (one_in(a, 4))
			stir(a);
	}
	/* The newest first, or in the order of their creation. */
	if (one_in(a, 2))
		for (int i = n; i-- > 0;)
			child_join(a, c[i]);
	else
		for (int i = 0; i < n; i++)
			child_join(a, c[i]);
}

static void op_detached(struct actor *a)
{
	child_new(a, true, a->depth + 1);
}

/*
 * Joined by whoever finds them. They themselves wait for nobody's end, so that
 * nobody waits for its own.
 */

static ATOMIC(struct child *) boxes[BOXES];

static void op_box(struct actor *a)
{
	struct child *mine = child_new(a, false, DEPTH_MAX);
	struct child *other = xchg_acq_rel(&boxes[draw_below(a, BOXES)], mine);

	if (other != NULL)
		child_join(a, other);
}

/* --- what belongs to a thread --- */

static void destroy_value(void *value)
{
	free(value);
	fetch_add_relaxed(&values_destroyed, 1);
}

static void op_key(struct actor *a)
{
	uint64_t want = draw(a);
	uint64_t *p = marcel_getspecific(key);

	if (p == NULL) {
		p = malloc(sizeof(*p));
		MUST(p != NULL);
		fetch_add_relaxed(&values_set, 1);
		MUST_INT(marcel_setspecific(key, p), 0);
	}
	*p = want;
	*marcel_errno_location() = (int)(want & 0xff);
	marcel_yield();
	MUST_INT(*marcel_errno_location(), want & 0xff);
	MUST(marcel_getspecific(key) == p && *p == want);
}

static void op_yield(struct actor *a)
{
	for (unsigned n = draw_below(a, 20); n > 0; n--)
		MUST_INT(marcel_yield(), 0);
}

/* Main does not end. */
static void free_own_value(void)
{
	void *value = marcel_getspecific(key);

	if (value != NULL)
		destroy_value(value);
	MUST_INT(marcel_setspecific(key, NULL), 0);
}

void threads_begin(void)
{
	MUST_INT(marcel_key_create(&key, destroy_value), 0);
}

/* The actors have ended; detached threads are waited for by marcel_end(). */
void threads_end(void)
{
	struct actor a = { .random = 1 };

	/* They may be of the idle band just now. */
	while (load_acquire(&ended) < load_relaxed(&made))
		marcel_usleep(50);
	for (int i = 0; i < BOXES; i++) {
		struct child *c = xchg_acquire(&boxes[i], NULL);

		if (c != NULL)
			child_join(&a, c);
	}
	MUST_INT(load_relaxed(&made),
		 load_relaxed(&joined) + load_relaxed(&detached));
	free_own_value();
}

/* Every thread has ended, and the runtime. */
void threads_over(void)
{
	MUST_INT(load_relaxed(&unwound), load_relaxed(&exits));
	MUST_INT(load_relaxed(&values_destroyed), load_relaxed(&values_set));
	MUST_INT(marcel_key_delete(key), 0);
}

const struct op thread_ops[] = {
	{ "children", op_children, 12, true, false },
	{ "detached child", op_detached, 4, true, false },
	{ "children in boxes", op_box, 8, true, false },
	{ "key and errno", op_key, 6, false, false },
	{ "yield", op_yield, 10, false, false },
	{ NULL, NULL, 0, false, false },
};
