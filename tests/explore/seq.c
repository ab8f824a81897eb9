/*
 * The order S of seq_cst accesses. C11 asks that one order of all of them
 * agrees with what happened before what, with the order of writes to each
 * word, and with what each load read: a load that did not see a write comes
 * before it. That order need not be the one in which we make the steps, so it
 * is kept as a graph: an access that would close a circle is not allowed.
 *
 *	sb:	a: x = 1; read y -> 0		b: y = 1; read x -> 0 ?
 *		x=1 --> y->0 --> y=1 --> x->0 --> x=1	a circle
 */
#include "internal.h"

#include <string.h>

enum { WORDS = SEQ_MAX / 64 };

static bool has(const struct seq_set *s, int i)
{
	return s->bits[i / 64] >> (i % 64) & 1;
}

static void add(struct seq_set *s, int i)
{
	s->bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static void join(struct seq_set *to, const struct seq_set *from)
{
	for (int i = 0; i < WORDS; i++)
		to->bits[i] |= from->bits[i];
}

static bool meet(const struct seq_set *a, const struct seq_set *b)
{
	for (int i = 0; i < WORDS; i++)
		if ((a->bits[i] & b->bits[i]) != 0)
			return true;
	return false;
}

void seq_join(struct seq_set *to, const struct seq_set *from)
{
	join(to, from);
}

/* The seq_cst writes that a load of message m would come before. */
static void missed(const struct loc *l, int m, struct seq_set *out)
{
	memset(out, 0, sizeof(*out));
	for (int i = m + 1; i < l->n; i++)
		if (l->msg[i].seq > 0)
			add(out, l->msg[i].seq);
}

bool seq_may_load(const struct thread *t, int loc, int m)
{
	const struct loc *l = &X->loc[loc];
	struct seq_set before = t->view.seq, after;

	join(&before, &l->msg[m].view.seq);
	missed(l, m, &after);
	for (int i = 1; i <= X->seqs; i++)
		if (has(&after, i) &&
		    (has(&before, i) || meet(&X->seq_after[i], &before)))
			return false;
	return true;
}

/* A new access, later than `before` and earlier than `after`. */
static int insert(struct thread *t, const struct seq_set *before,
		  const struct seq_set *after)
{
	int e = ++X->seqs;
	struct seq_set *mine = &X->seq_after[e];

	if (e == SEQ_MAX)
		explore_fail("more than %d seq_cst accesses", SEQ_MAX - 1);
	*mine = *after;
	for (int i = 1; i < e; i++)
		if (has(after, i))
			join(mine, &X->seq_after[i]);
	for (int i = 1; i < e; i++) {
		if (!has(before, i) && !meet(&X->seq_after[i], before))
			continue;
		join(&X->seq_after[i], mine);
		add(&X->seq_after[i], e);
	}
	add(&t->view.seq, e);
	return e;
}

void seq_load(struct thread *t, int loc, int m)
{
	struct loc *l = &X->loc[loc];
	struct seq_set before = t->view.seq, after;

	missed(l, m, &after);
	add(&l->seq_accesses, insert(t, &before, &after));
}

int seq_write(struct thread *t, int loc)
{
	struct loc *l = &X->loc[loc];
	struct seq_set before = t->view.seq, none = { { 0 } };
	int e;

	join(&before, &l->seq_accesses);
	e = insert(t, &before, &none);
	add(&l->seq_accesses, e);
	return e;
}
