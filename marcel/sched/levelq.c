/*
 * Queues of levels. Real-time threads that are ready anywhere are counted in
 * one word more, so that a VP that picks need not look at its levels.
 */
#include "levelq.h"

#include "vp.h"

void marcel_levelq_init(struct marcel_levelq *q)
{
	base_spin_init(&q->lock, BASE_RANK_RUNQ);
	for (int i = 0; i < MARCEL_BANDS; i++)
		base_list_init(&q->list[i]);
	store_relaxed(&q->length, 0);
	store_relaxed(&q->bands, 0);
}

void marcel_levelq_push(struct marcel_levelq *q, struct marcel_thread *t)
{
	enum marcel_band band = marcel_thread_band(t);

	base_spin_lock(&q->lock);
	base_list_push_back(&q->list[band], &t->link);
	store_relaxed(&q->bands, load_relaxed(&q->bands) | 1u << band);
	if (unlikely(band == MARCEL_BAND_REALTIME))
		fetch_add_relaxed(&marcel_sched.before_switch,
				  MARCEL_BEFORE_URGENT);
	/* order(idle): the pusher looks for sleepers next. */
	store_seq(&q->length, load_relaxed(&q->length) + 1);
	base_spin_unlock(&q->lock);
}

/* The list's band counts: that of the thread may have changed meanwhile. */
static void remove_locked(struct marcel_levelq *q, enum marcel_band band,
			  struct base_link *n)
{
	base_list_remove(n);
	if (base_list_is_empty(&q->list[band]))
		store_relaxed(&q->bands,
			      load_relaxed(&q->bands) & ~(1u << band));
	if (unlikely(band == MARCEL_BAND_REALTIME))
		fetch_sub_relaxed(&marcel_sched.before_switch,
				  MARCEL_BEFORE_URGENT);
	store_relaxed(&q->length, load_relaxed(&q->length) - 1);
}

struct marcel_thread *marcel_levelq_take_slow(struct marcel_levelq *q,
					      enum marcel_band band, int vp)
{
	struct marcel_thread *t;

	base_spin_lock(&q->lock);
	base_list_for_each (n, &q->list[band]) {
		t = container_of(n, struct marcel_thread, link);
		if (vp >= 0 && !marcel_thread_may_run(t, vp))
			continue;
		remove_locked(q, band, n);
		base_spin_unlock(&q->lock);
		return t;
	}
	base_spin_unlock(&q->lock);
	return NULL;
}

bool marcel_levelq_has_for(struct marcel_levelq *q, enum marcel_band band,
			   int vp)
{
	bool found = false;

	if (!marcel_levelq_has(q, band))
		return false;
	base_spin_lock(&q->lock);
	base_list_for_each (n, &q->list[band]) {
		found = vp < 0 ||
			marcel_thread_may_run(
				container_of(n, struct marcel_thread, link),
				vp);
		if (found)
			break;
	}
	base_spin_unlock(&q->lock);
	return found;
}

/* Who is wanted of those in a queue. */
struct search {
	int vp; /* it may run there; -1: anywhere */
	struct marcel_lwp *l;
	bool by;
};

/* Take out the first that fits, of any band; or NULL. */
static struct marcel_thread *take_locked(struct marcel_levelq *q,
					 bool (*fits)(struct marcel_thread *t,
						      const struct search *s),
					 const struct search *s)
{
	for (unsigned band = 0; band < MARCEL_BANDS; band++) {
		base_list_for_each (n, &q->list[band]) {
			struct marcel_thread *t =
				container_of(n, struct marcel_thread, link);

			if (!fits(t, s))
				continue;
			remove_locked(q, band, n);
			return t;
		}
	}
	return NULL;
}

static bool is_kept(struct marcel_thread *t, const struct search *s)
{
	return marcel_levelq_is_kept(t, s->l, s->by) &&
	       (s->vp < 0 || marcel_thread_may_run(t, s->vp));
}

struct marcel_thread *marcel_levelq_take_kept(struct marcel_levelq *q, int vp,
					      struct marcel_lwp *l, bool by)
{
	struct search s = { .vp = vp, .l = l, .by = by };
	struct marcel_thread *t;

	if (load_relaxed(&q->length) == 0)
		return NULL;
	base_spin_lock(&q->lock);
	t = take_locked(q, is_kept, &s);
	base_spin_unlock(&q->lock);
	return t;
}

/*
 * Under the lock, so that who waits no more and then takes the lock has been
 * let loose or will not be.
 */
static bool may_go_loose(struct marcel_thread *t, const struct search *s)
{
	struct marcel_lwp *l = t->rest->lwp;

	(void)s;
	return marcel_thread_has(t, MARCEL_F_KEPT) &&
	       t->rest->interrupted != NULL && load_relaxed(&l->self) == t &&
	       load_relaxed(&l->waits) != 0 && load_relaxed(&l->is_given) == 0;
}

struct marcel_lwp *marcel_levelq_let_loose(struct marcel_levelq *q)
{
	struct marcel_lwp *l = NULL;
	struct marcel_thread *t;

	if (load_relaxed(&q->length) == 0)
		return NULL;
	base_spin_lock(&q->lock);
	t = take_locked(q, may_go_loose, NULL);
	if (t != NULL) {
		l = t->rest->lwp;
		store_relaxed(&l->is_loose, 1);
	}
	base_spin_unlock(&q->lock);
	return l;
}

bool marcel_levelq_claim(struct marcel_levelq *q, struct marcel_lwp *l)
{
	bool may;

	base_spin_lock(&q->lock);
	may = load_relaxed(&l->waits) != 0 && load_relaxed(&l->is_loose) == 0;
	if (may)
		store_relaxed(&l->is_given, 1);
	base_spin_unlock(&q->lock);
	return may;
}

void marcel_levelq_settle(struct marcel_levelq *q, struct marcel_lwp *l)
{
	base_spin_lock(&q->lock);
	store_relaxed(&l->is_given, 0);
	base_spin_unlock(&q->lock);
}

bool marcel_levelq_fetch(struct marcel_levelq *q, struct marcel_thread *t,
			 int vp)
{
	bool found = false;

	if (load_relaxed(&q->length) == 0)
		return false;
	base_spin_lock(&q->lock);
	for (unsigned band = 0; band < MARCEL_BANDS && !found; band++) {
		base_list_for_each (n, &q->list[band])
			found |= n == &t->link &&
				 (vp < 0 || marcel_thread_may_run(t, vp));
		if (found)
			remove_locked(q, band, &t->link);
	}
	base_spin_unlock(&q->lock);
	return found;
}

bool marcel_levelq_look(struct marcel_levelq *q, int vp)
{
	bool found = false;

	if (load_seq(&q->length) == 0) /* order(idle) */
		return false;
	base_spin_lock(&q->lock);
	for (int band = 0; band < MARCEL_BANDS && !found; band++)
		base_list_for_each (n, &q->list[band])
			found |= marcel_thread_may_run(
				container_of(n, struct marcel_thread, link),
				vp);
	base_spin_unlock(&q->lock);
	return found;
}
