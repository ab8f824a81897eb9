/* Objects that all actors share: exclusion, and nothing lost or had twice. */
#include "stress.h"

#include <errno.h>

enum { CELLS = 6, UNITS = 3, SLOTS = 8, TOKENS = 4 };

/* --- mutexes of each kind, and spinlocks --- */

static struct cell {
	marcel_mutex_t mutex;
	marcel_spin_t spin;
	int kind;
	struct actor *owner;
	long count;
	ATOMIC(long) had;
} cells[CELLS];

static void be_alone(struct actor *a, struct cell *c)
{
	MUST(c->owner == NULL);
	c->owner = a;
	stir(a);
	MUST(c->owner == a);
	c->owner = NULL;
	c->count++;
	fetch_add_relaxed(&c->had, 1);
}

/* One of the ways to get it: 0, or it was not to be had. */
static int lock_somehow(struct actor *a, marcel_mutex_t *m)
{
	struct timespec t;
	int rc;

	switch (draw_below(a, 6)) {
	case 0:
		rc = marcel_mutex_trylock(m);
		MUST(rc == 0 || rc == EBUSY);
		return rc;
	case 1:
		t = soon(a, CLOCK_REALTIME);
		rc = marcel_mutex_timedlock(m, &t);
		MUST(rc == 0 || rc == ETIMEDOUT);
		return rc;
	default:
		MUST_INT(marcel_mutex_lock(m), 0);
		return 0;
	}
}

static void op_mutex(struct actor *a)
{
	struct cell *c = &cells[draw_below(a, CELLS - 1)];
	unsigned again;

	if (lock_somehow(a, &c->mutex) != 0)
		return;
	if (c->kind == MARCEL_MUTEX_RECURSIVE)
		for (again = draw_below(a, 3); again > 0; again--) {
			MUST_INT(lock_somehow(a, &c->mutex), 0);
			MUST_INT(marcel_mutex_unlock(&c->mutex), 0);
		}
	if (c->kind == MARCEL_MUTEX_ERRORCHECK)
		MUST_INT(marcel_mutex_lock(&c->mutex), EDEADLK);
	be_alone(a, c);
	MUST_INT(marcel_mutex_unlock(&c->mutex), 0);
}

static void op_spin(struct actor *a)
{
	struct cell *c = &cells[CELLS - 1];

	if (one_in(a, 4)) {
		int rc = marcel_spin_trylock(&c->spin);

		MUST(rc == 0 || rc == EBUSY);
		if (rc != 0)
			return;
	} else {
		MUST_INT(marcel_spin_lock(&c->spin), 0);
	}
	be_alone(a, c);
	MUST_INT(marcel_spin_unlock(&c->spin), 0);
}

static void cells_begin(void)
{
	static const int kinds[] = { MARCEL_MUTEX_NORMAL,
				     MARCEL_MUTEX_RECURSIVE,
				     MARCEL_MUTEX_ERRORCHECK };
	marcel_mutexattr_t attr;

	MUST_INT(marcel_mutexattr_init(&attr), 0);
	for (int i = 0; i < CELLS; i++) {
		cells[i] = (struct cell){ .kind = kinds[i % 3] };
		marcel_mutexattr_settype(&attr, cells[i].kind);
		MUST_INT(marcel_mutex_init(&cells[i].mutex, &attr), 0);
		MUST_INT(marcel_spin_init(&cells[i].spin, 0), 0);
	}
}

static void cells_end(void)
{
	for (int i = 0; i < CELLS; i++) {
		MUST_INT(cells[i].count, load_relaxed(&cells[i].had));
		MUST_INT(marcel_mutex_destroy(&cells[i].mutex), 0);
		MUST_INT(marcel_spin_destroy(&cells[i].spin), 0);
	}
}

/* --- a semaphore lets so many in --- */

static marcel_sem_t units;
static ATOMIC(int) inside;

static bool take_unit(struct actor *a)
{
	struct timespec t;
	int rc;

	switch (draw_below(a, 5)) {
	case 0:
		rc = marcel_sem_trywait(&units);
		MUST(rc == 0 || rc == EAGAIN);
		return rc == 0;
	case 1:
		t = soon(a, CLOCK_MONOTONIC);
		rc = marcel_sem_clockwait(&units, CLOCK_MONOTONIC, &t);
		MUST(rc == 0 || rc == ETIMEDOUT);
		return rc == 0;
	default:
		MUST_INT(marcel_sem_wait(&units), 0);
		return true;
	}
}

static void op_sem(struct actor *a)
{
	if (!take_unit(a))
		return;
	MUST(fetch_add_relaxed(&inside, 1) < UNITS);
	stir(a);
	MUST(fetch_sub_relaxed(&inside, 1) > 0);
	MUST_INT(marcel_sem_post(&units), 0);
}

/* --- a bounded buffer: who gives, takes; who takes, gives --- */

static struct {
	marcel_mutex_t m;
	marcel_cond_t full, empty;
	uint64_t slot[SLOTS];
	unsigned first, n;
	uint64_t sum; /* of what lies in it */
	ATOMIC(uint64_t) given, taken;
} buffer;

static void wait_for(struct actor *a, marcel_cond_t *c)
{
	struct timespec t = soon(a, CLOCK_REALTIME);
	int rc;

	if (one_in(a, 3)) {
		rc = marcel_cond_timedwait(c, &buffer.m, &t);
		MUST(rc == 0 || rc == ETIMEDOUT);
	} else {
		MUST_INT(marcel_cond_wait(c, &buffer.m), 0);
	}
}

static void tell(struct actor *a, marcel_cond_t *c)
{
	bool all = one_in(a, 8), outside = one_in(a, 2);

	if (outside)
		MUST_INT(marcel_mutex_unlock(&buffer.m), 0);
	MUST_INT(all ? marcel_cond_broadcast(c) : marcel_cond_signal(c), 0);
	if (!outside)
		MUST_INT(marcel_mutex_unlock(&buffer.m), 0);
}

static void give(struct actor *a)
{
	uint64_t token = draw(a);

	MUST_INT(marcel_mutex_lock(&buffer.m), 0);
	while (buffer.n == SLOTS)
		wait_for(a, &buffer.full);
	buffer.slot[(buffer.first + buffer.n++) % SLOTS] = token;
	buffer.sum += token;
	fetch_add_relaxed(&buffer.given, token);
	tell(a, &buffer.empty);
}

static void take(struct actor *a)
{
	uint64_t token;

	MUST_INT(marcel_mutex_lock(&buffer.m), 0);
	while (buffer.n == 0)
		wait_for(a, &buffer.empty);
	token = buffer.slot[buffer.first++ % SLOTS];
	buffer.n--;
	buffer.sum -= token;
	fetch_add_relaxed(&buffer.taken, token);
	tell(a, &buffer.full);
}

static void op_give_and_take(struct actor *a)
{
	give(a);
	stir(a);
	take(a);
}

static void op_take_and_give(struct actor *a)
{
	take(a);
	stir(a);
	give(a);
}

static void buffer_begin(struct actor *a)
{
	MUST_INT(marcel_mutex_init(&buffer.m, NULL), 0);
	MUST_INT(marcel_cond_init(&buffer.full, NULL), 0);
	MUST_INT(marcel_cond_init(&buffer.empty, NULL), 0);
	buffer.first = buffer.n = 0;
	buffer.sum = 0;
	store_relaxed(&buffer.given, 0);
	store_relaxed(&buffer.taken, 0);
	for (int i = 0; i < TOKENS; i++)
		give(a);
}

static void buffer_end(void)
{
	uint64_t sum = 0;

	MUST_INT(buffer.n, TOKENS);
	for (unsigned i = 0; i < buffer.n; i++)
		sum += buffer.slot[(buffer.first + i) % SLOTS];
	MUST(sum == buffer.sum);
	MUST(sum == load_relaxed(&buffer.given) - load_relaxed(&buffer.taken));
	MUST_INT(marcel_cond_destroy(&buffer.full), 0);
	MUST_INT(marcel_cond_destroy(&buffer.empty), 0);
	MUST_INT(marcel_mutex_destroy(&buffer.m), 0);
}

/* --- a page that all read and some write --- */

static struct {
	marcel_rwlock_t l;
	uint64_t word[4];
	uint64_t edition;
	ATOMIC(uint64_t) writes;
} book;

static bool open_book(struct actor *a, bool to_write)
{
	struct timespec t = soon(a, CLOCK_REALTIME);
	int rc;

	switch (draw_below(a, 5)) {
	case 0:
		rc = to_write ? marcel_rwlock_trywrlock(&book.l)
			      : marcel_rwlock_tryrdlock(&book.l);
		MUST(rc == 0 || rc == EBUSY);
		return rc == 0;
	case 1:
		rc = to_write ? marcel_rwlock_timedwrlock(&book.l, &t)
			      : marcel_rwlock_timedrdlock(&book.l, &t);
		MUST(rc == 0 || rc == ETIMEDOUT);
		return rc == 0;
	default:
		rc = to_write ? marcel_rwlock_wrlock(&book.l)
			      : marcel_rwlock_rdlock(&book.l);
		MUST_INT(rc, 0);
		return true;
	}
}

static void op_read(struct actor *a)
{
	uint64_t was;

	if (!open_book(a, false))
		return;
	was = book.word[0];
	stir(a);
	for (int i = 0; i < 4; i++)
		MUST(book.word[i] == was);
	MUST_INT(marcel_rwlock_unlock(&book.l), 0);
}

static void op_write(struct actor *a)
{
	uint64_t v = draw(a);

	if (!open_book(a, true))
		return;
	book.word[0] = v;
	stir(a);
	for (int i = 1; i < 4; i++)
		book.word[i] = v;
	book.edition++;
	fetch_add_relaxed(&book.writes, 1);
	MUST_INT(marcel_rwlock_unlock(&book.l), 0);
}

void locks_begin(struct actor *a)
{
	cells_begin();
	MUST_INT(marcel_sem_init(&units, 0, UNITS), 0);
	buffer_begin(a);
	draw_rwlock(a, &book.l);
	book.edition = 0;
	store_relaxed(&book.writes, 0);
}

void locks_end(void)
{
	int value;

	cells_end();
	MUST_INT(load_relaxed(&inside), 0);
	MUST_INT(marcel_sem_getvalue(&units, &value), 0);
	MUST_INT(value, UNITS);
	MUST_INT(marcel_sem_destroy(&units), 0);
	buffer_end();
	MUST(book.edition == load_relaxed(&book.writes));
	MUST_INT(marcel_rwlock_destroy(&book.l), 0);
}

const struct op lock_ops[] = {
	{ "mutex", op_mutex, 20, false, false },
	{ "spinlock", op_spin, 5, false, false },
	{ "semaphore", op_sem, 10, false, false },
	{ "give and take", op_give_and_take, 10, false, false },
	{ "take and give", op_take_and_give, 10, false, false },
	{ "read", op_read, 10, false, false },
	{ "write", op_write, 5, false, false },
	{ NULL, NULL, 0, false, false },
};
