/*
 * The memory model: words are lists of messages, threads have views.
 */
#include "internal.h"

#include <string.h>

static bool acquires(memory_order o)
{
	return o == memory_order_acquire || o == memory_order_acq_rel ||
	       o == memory_order_seq_cst;
}

static bool releases(memory_order o)
{
	return o == memory_order_release || o == memory_order_acq_rel ||
	       o == memory_order_seq_cst;
}

void view_join(struct view *to, const struct view *from)
{
	/* Without branches, so that compilers do many at once. */
	for (int i = 0; i < CLOCKS; i++)
		to->clock[i] = to->clock[i] < from->clock[i] ? from->clock[i]
							     : to->clock[i];
	for (int i = 0; i < LOCS_MAX; i++)
		to->seen[i] = to->seen[i] < from->seen[i] ? from->seen[i]
							  : to->seen[i];
	seq_join(&to->seq, &from->seq);
}

static uint64_t mask(uint64_t v, size_t size)
{
	return size >= 8 ? v : v & ((UINT64_C(1) << size * 8) - 1);
}

static uint64_t in_memory(const struct loc *l)
{
	uint64_t v = 0;

	if (l->size == 8)
		memcpy(&v, l->addr, 8);
	else if (l->size == 4)
		memcpy(&v, l->addr, 4);
	else
		memcpy(&v, l->addr, l->size);
	return v;
}

/* The words of a new execution start with what setup left in memory. */
static int loc_new(const void *addr, size_t size)
{
	struct loc *l = &X->loc[X->locs];

	if (X->locs == LOCS_MAX)
		explore_fail("more than %d atomic words", LOCS_MAX);
	l->addr = addr;
	l->size = (unsigned)size;
	l->n = 1;
	l->first = 0;
	l->last_write = l->last_load = 0;
	memset(&l->seq_accesses, 0, sizeof(l->seq_accesses));
	memset(&l->msg[0], 0, sizeof(l->msg[0]));
	l->msg[0].value = in_memory(l);
	return X->locs++;
}

/* The number of the word that holds these bytes. */
static int loc_search(const void *addr, size_t size)
{
	uint8_t *guess = &X->loc_guess[((uintptr_t)addr >> 2) % GUESSES];
	int i = *guess;

	if (i < X->locs && X->loc[i].addr == addr && X->loc[i].size == size)
		return i;
	for (i = 0; i < X->locs; i++)
		if ((const char *)addr >= (const char *)X->loc[i].addr &&
		    (const char *)addr + size <=
			    (const char *)X->loc[i].addr + X->loc[i].size)
			break;
	if (i == X->locs)
		i = loc_new(addr, size);
	*guess = (uint8_t)i;
	return i;
}

/*
 * The word that holds these bytes. If memory is not what was last written, it
 * has been used for something else since: what it says now is the beginning of
 * a new life, and race.c knows whether the user had a right to it.
 */
static int loc_find(const void *addr, size_t size, unsigned *shift)
{
	int i = loc_search(addr, size);
	struct loc *l = &X->loc[i];
	uint64_t now;

	if (shift != NULL)
		*shift = 8 *
			 (unsigned)((const char *)addr - (const char *)l->addr);
	else if (l->addr != addr || l->size != size)
		explore_fail("one atomic word, used with two sizes");
	now = in_memory(l);
	if (now != l->msg[l->n - 1].value) {
		if (l->n == MSGS_MAX)
			explore_fail("too many stores to one word");
		memset(&l->msg[l->n], 0, sizeof(l->msg[0]));
		l->msg[l->n].value = now;
		l->first = l->n++;
	}
	return i;
}

/* --- the two things a step can do --- */

static uint64_t read_msg(struct thread *t, int loc, int m, memory_order o)
{
	struct loc *l = &X->loc[loc];

	trace_read(m, l->msg[m].value);
	t->view.seen[loc] = (uint8_t)m;
	if (acquires(o))
		view_join(&t->view, &l->msg[m].view);
	return l->msg[m].value;
}

/* A load, or a compare-and-swap that fails. */
static uint64_t load_msg(struct thread *t, int loc, int m, memory_order o)
{
	uint64_t v = read_msg(t, loc, m, o);

	if (o == memory_order_seq_cst)
		seq_load(t, loc, m);
	return v;
}

/* `continues`: an RMW, which is part of the release sequence it reads from. */
static void append_msg(struct thread *t, int loc, uint64_t v, memory_order o,
		       bool continues)
{
	struct loc *l = &X->loc[loc];
	struct msg *m = &l->msg[l->n];

	if (l->n == MSGS_MAX)
		explore_fail("too many stores to one word");
	v = mask(v, l->size);
	trace_write(v);
	memset(m, 0, sizeof(*m));
	m->value = v;
	m->step = X->depth;
	if (o == memory_order_seq_cst)
		m->seq = seq_write(t, loc);
	t->view.seen[loc] = (uint8_t)l->n;
	if (releases(o))
		m->view = t->view;
	if (continues)
		view_join(&m->view, &m[-1].view);
	if (releases(o))
		t->view.clock[X->current]++;
	l->n++;
	memcpy((void *)l->addr, &v, l->size);
	thread_wake_spinners(loc);
}

/* --- spin loops --- */

static void spin_add(struct thread *t, int loc, int msg)
{
	int i = 0;

	while (i < t->nspin && t->spin[i].loc != loc)
		i++;
	if (i == SPIN_MAX)
		return;
	if (i == t->nspin)
		t->nspin++;
	t->spin[i].loc = loc;
	t->spin[i].msg = msg;
}

/* The loop is over: the thread did something else. */
static void spin_leave(struct thread *t)
{
	if (t->spin_forced)
		search_end(CUT); /* the option SPIN_OUT leads here, too */
	t->spin_out = false;
	t->spins = 0;
	t->nspin = 0;
}

/* While it spins to no end, a thread sees what it saw; -1: no such loop. */
static int spin_again(struct thread *t, int loc)
{
	if (!t->spin_out)
		return -1;
	for (int i = 0; i < t->nspin; i++)
		if (t->spin[i].loc == loc)
			return t->spin[i].msg;
	spin_leave(t);
	return -1;
}

void thread_wake_spinners(int loc)
{
	for (int i = 1; i <= X->threads; i++) {
		struct thread *t = &X->thread[i];

		for (int k = 0; k < t->nspin && t->state == SPINNING; k++)
			if (t->spin[k].loc == loc)
				t->state = READY;
	}
}

/* If there is news, the next look sees at least one piece of it. */
static bool spin_has_news(struct thread *t)
{
	int news[SPIN_MAX], n = 0, k, step;

	for (int i = 0; i < t->nspin; i++)
		if (X->loc[t->spin[i].loc].n > t->spin[i].msg + 1)
			news[n++] = i;
	if (n == 0)
		return false;
	k = news[explore_choose(n)];
	t->view.seen[t->spin[k].loc] = (uint8_t)(t->spin[k].msg + 1);
	step = X->loc[t->spin[k].loc].msg[t->spin[k].msg + 1].step;
	if (step > 0)
		dpor_join(&t->before, &X->node[step - 1].step.after);
	return true;
}

void explore_relax(void)
{
	struct thread *t = self();

	if (!X->running)
		return;
	if (t->spin_out || t->nspin == 0) {
		if (++t->spins < SPINS_MAX)
			return;
		if (t->spin_forced || t->nspin == 0)
			explore_fail("%s spins for ever", t->name);
		search_end(CUT); /* as good as waiting: the other option */
	}
	t->op = (struct op){ .kind = OP_RELAX };
	t->state = PENDING;
	search_next();
	if (t->how == SPIN_OUT) {
		t->spin_out = true;
		return;
	}
	if (!spin_has_news(t)) {
		t->state = SPINNING;
		search_next();
		if (t->spin_forced)
			return;
		spin_has_news(t);
	}
	t->nspin = 0;
}

/* --- accesses --- */

static int newest(int loc)
{
	return X->loc[loc].n - 1;
}

/* Wait for our turn. In setup and finish it is always ours. */
static void announce(struct thread *t, const struct op *op)
{
	const struct loc *l = &X->loc[op->loc];

	t->op = *op;
	if (X->running) {
		t->state = PENDING;
		search_next();
	} else if (op->kind == OP_LOAD ||
		   (op->kind == OP_CAS &&
		    l->msg[newest(op->loc)].value != op->expected)) {
		t->how = (uint8_t)newest(op->loc);
	} else {
		t->how = WRITES;
	}
	if (op->site != NULL)
		trace_add(op->site->what, op->site, op->loc, (int)op->order);
	race_access(l->addr, l->size, RACE_ATOMIC, NULL);
}

uint64_t explore_load(const void *word, size_t size, memory_order o,
		      const struct explore_site *s)
{
	struct thread *t = self();
	int loc = loc_find(word, size, NULL);
	int m = spin_again(t, loc);

	if (m >= 0)
		return X->loc[loc].msg[m].value;
	announce(t,
		 &(struct op){
			 .kind = OP_LOAD, .loc = loc, .order = o, .site = s });
	spin_add(t, loc, t->how);
	return load_msg(t, loc, t->how, o);
}

void explore_store(void *word, size_t size, uint64_t v, memory_order o,
		   const struct explore_site *s)
{
	struct thread *t = self();
	int loc = loc_find(word, size, NULL);

	spin_leave(t);
	announce(t,
		 &(struct op){
			 .kind = OP_STORE, .loc = loc, .order = o, .site = s });
	append_msg(t, loc, v, o, false);
}

uint64_t explore_rmw(void *word, size_t size, enum explore_rmw op, uint64_t v,
		     memory_order o, const struct explore_site *s)
{
	struct thread *t = self();
	int loc = loc_find(word, size, NULL);
	uint64_t old;

	spin_leave(t);
	announce(t,
		 &(struct op){
			 .kind = OP_RMW, .loc = loc, .order = o, .site = s });
	old = read_msg(t, loc, newest(loc), o);
	if (op == EXPLORE_ADD)
		v = old + v;
	else if (op == EXPLORE_SUB)
		v = old - v;
	else if (op == EXPLORE_OR)
		v = old | v;
	else if (op == EXPLORE_AND)
		v = old & v;
	append_msg(t, loc, v, o, true);
	return old;
}

bool explore_cas(void *word, size_t size, uint64_t *expected, uint64_t v,
		 memory_order o, memory_order fail, bool weak,
		 const struct explore_site *s)
{
	struct thread *t = self();
	int loc = loc_find(word, size, NULL);
	uint64_t want = mask(*expected, size);
	int m = spin_again(t, loc);

	if (m >= 0 && X->loc[loc].msg[m].value != want) {
		*expected = X->loc[loc].msg[m].value;
		return false;
	}
	if (m >= 0)
		spin_leave(t);
	announce(t, &(struct op){ .kind = OP_CAS,
				  .loc = loc,
				  .order = o,
				  .fail = fail,
				  .weak = weak,
				  .expected = want,
				  .site = s });
	if (t->how == WRITES) {
		spin_leave(t);
		read_msg(t, loc, newest(loc), o);
		append_msg(t, loc, v, o, true);
		return true;
	}
	if (t->how == SPURIOUS) {
		t->spurious_cas--;
		t->how = (uint8_t)newest(loc);
	}
	spin_add(t, loc, t->how);
	*expected = load_msg(t, loc, t->how, fail);
	return false;
}

/* --- sleeping --- */

void explore_wait_while(const void *word, uint32_t value)
{
	static const struct explore_site site = { "sleep", "word", "", 0 };
	struct thread *t = self();
	struct op op = { .kind = OP_WAIT, .site = &site };
	uint64_t now;

	op.loc = loc_find(word, 4, &op.shift);
	spin_leave(t);
	announce(t, &op);
	now = X->loc[op.loc].msg[newest(op.loc)].value;
	trace_read(newest(op.loc), now);
	t->view.seen[op.loc] = (uint8_t)newest(op.loc); /* by the kernel */
	if (t->how == SPURIOUS) {
		t->spurious_futex--;
		return;
	}
	if ((uint32_t)(now >> op.shift) != value)
		return;
	if (!X->running)
		explore_fail("sleeps where nobody can wake it");
	t->state = FUTEX;
	search_next();
	trace_add("woken", NULL, op.loc, -1);
}

void explore_wake(const void *word, int n)
{
	static const struct explore_site site = { "wake", "word", "", 0 };
	struct thread *t = self();
	struct op op = { .kind = OP_WAKE, .n = n, .site = &site };
	int skip;

	op.loc = loc_find(word, 4, &op.shift);
	spin_leave(t);
	announce(t, &op);
	skip = t->how == WRITES ? 0 : t->how;
	for (int i = 1; i <= X->threads && n > 0; i++) {
		struct thread *w = &X->thread[i];

		if (w->state != FUTEX || w->op.loc != op.loc || skip-- > 0)
			continue;
		w->state = READY;
		dpor_join(&w->before, &t->before);
		n--;
	}
}

/*
 * Who comes first of two that unpark, and of one and the thread that parks,
 * makes a difference: each is a step that conflicts with the others.
 */
static void touch_token(int thread)
{
	struct op op = { .kind = OP_WAKE };

	op.loc = loc_find(&X->token_word[thread], 4, NULL);
	if (X->running)
		announce(self(), &op);
}

void explore_park(void)
{
	struct thread *t = self();

	spin_leave(t);
	touch_token(X->current);
	trace_add("park", NULL, -1, -1);
	if (!t->token) {
		if (!X->running)
			explore_fail("parks where nobody can unpark it");
		t->state = PARKED;
		search_next();
		trace_add("unparked", NULL, -1, -1);
	}
	t->token = false;
	view_join(&t->view, &t->token_view);
	dpor_join(&t->before, &t->token_before);
}

void explore_unpark(int thread, bool ordered)
{
	struct thread *t = self();
	struct thread *w = &X->thread[thread];

	spin_leave(t);
	touch_token(thread);
	trace_add("unpark", NULL, -1, -1);
	trace_write((uint64_t)thread);
	if (w->token)
		explore_fail("%s is unparked twice", w->name);
	w->token = true;
	w->token_before = t->before;
	memset(&w->token_view, 0, sizeof(w->token_view));
	if (ordered) {
		w->token_view = t->view;
		t->view.clock[X->current]++;
	}
	if (w->state == PARKED)
		w->state = READY;
}

int explore_choose(int n)
{
	struct thread *t = self();

	if (!X->running || n < 2)
		return 0;
	t->op = (struct op){ .kind = OP_CHOOSE, .n = n };
	t->state = PENDING;
	search_next();
	trace_add("choose", NULL, -1, -1);
	trace_write(t->how);
	return t->how;
}

void explore_gone(const void *p, size_t bytes)
{
	trace_add("free", NULL, -1, -1);
	race_access(p, bytes, RACE_GONE, __builtin_return_address(0));
}
