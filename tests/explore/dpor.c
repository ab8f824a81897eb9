/*
 * Dynamic partial-order reduction with source sets (Abdulla, Aronis, Jonsson,
 * Sagonas, "Optimal dynamic partial order reduction"): who is to be tried at a
 * node besides the thread that was picked first.
 *
 * A step comes before another if that is the same thread's, reads what it has
 * written, wakes where it slept, or if both write the same word. Two steps race
 * if neither comes before the other but for what they do to one word:
 *
 *	x: writes	e: writes		both orders differ
 *	x: loads	e: adds a message	x might have seen it
 *	x: adds one	e: a cas that failed	it might have done its work
 *
 * Then what came between them, as far as it does not come after x, and e can be
 * made before x: one of the threads that can begin with that is to be tried at
 * the node of x. Steps that earlier executions have made have been looked at.
 */
#include "internal.h"

void dpor_join(struct steps *to, const struct steps *from)
{
	/* Without branches, so that compilers do many at once. */
	for (int i = 0; i < CLOCKS; i++)
		to->of[i] = to->of[i] < from->of[i] ? from->of[i] : to->of[i];
}

static const struct step *step_of(int number)
{
	return &X->node[number - 1].step;
}

static bool is_in(const struct steps *s, int number)
{
	return s->of[step_of(number)->thread] >= number;
}

static bool has_any(const struct steps *s, const int first[THREADS_MAX])
{
	for (int t = 1; t <= X->threads; t++)
		if (first[t] > 0 && s->of[t] >= first[t])
			return true;
	return false;
}

/* Whether the option of step `number` is tried at the node, or need not be. */
static bool is_tried(const struct node *n, int number)
{
	const struct node *at = &X->node[number - 1];
	const struct option *o = &at->option[at->cur];

	if (n->threads >> o->thread & 1)
		return true;
	for (int i = 0; i < n->nsleep; i++)
		if (n->sleep[i].thread == o->thread &&
		    n->sleep[i].how == o->how)
			return true;
	return false;
}

/* Step x races with the one that is being made, before which is `before`. */
static void race(int x, const struct steps *before)
{
	struct node *n = &X->node[x - 1];
	int first[THREADS_MAX] = { 0 }; /* steps that need not wait for x */
	int who = 0;

	for (int i = x + 1; i <= X->depth; i++) {
		const struct step *s = step_of(i);
		const struct steps *after = i == X->depth ? before : &s->after;

		if (first[s->thread] > 0 || is_in(after, x))
			continue;
		if (!has_any(after, first)) {
			if (is_tried(n, i))
				return;
			who = s->thread;
		}
		first[s->thread] = i;
	}
	n->threads |= 1u << who;
	n->todo |= 1u << who;
}

static void race_if(int x, const struct steps *before)
{
	if (x > 0 && X->depth >= X->fresh && !is_in(before, x))
		race(x, before);
}

static bool adds_message(const struct op *op, const struct option *o)
{
	return op->kind == OP_STORE || op->kind == OP_RMW ||
	       (op->kind == OP_CAS && o->how == WRITES);
}

static void writes(struct thread *t, struct loc *l, const struct option *o)
{
	race_if(l->last_write, &t->before);
	if (l->last_write > 0)
		dpor_join(&t->before, &step_of(l->last_write)->after);
	if (adds_message(&t->op, o))
		for (int x = l->last_load; x > 0; x = step_of(x)->load_before)
			race_if(x, &t->before);
	l->last_write = X->depth;
}

static void loads(struct thread *t, struct loc *l, const struct option *o)
{
	int from = l->msg[o->how].step;

	if (t->op.kind == OP_CAS)
		race_if(l->msg[l->n - 1].step, &t->before);
	if (from > 0)
		dpor_join(&t->before, &step_of(from)->after);
	X->node[X->depth - 1].step.load_before = l->last_load;
	l->last_load = X->depth;
}

void dpor_step(struct node *n)
{
	const struct option *o = &n->option[n->cur];
	struct thread *t = &X->thread[o->thread];
	struct loc *l = &X->loc[o->loc];

	n->step.thread = o->thread;
	if (o->writes)
		writes(t, l, o);
	else if (t->op.kind == OP_LOAD || t->op.kind == OP_CAS)
		loads(t, l, o);
	t->before.of[o->thread] = (uint16_t)X->depth;
	n->step.after = t->before;
}
