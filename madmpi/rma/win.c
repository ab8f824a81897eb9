/*
 * The life of a window. Who makes one, and the others, go through the same
 * steps, and tell each other how they went: a window is made everywhere, or
 * nowhere.
 */
#include "rma/win.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bodies.h"
#include "coll/coll.h"
#include "coll/segment.h"
#include "comm/spot.h"
#include "core/pool.h"
#include "env/error.h"
#include "info/info.h"
#include "pt2pt/message.h"
#include "rma/op.h"
#include "rma/serve.h"
#include "rma/shared.h"

static struct madmpi_pool pool;

/* What the program asks for. */
struct wish {
	const char *fn;
	struct madmpi_comm *parent;
	int flavor;
	void *base;
	MPI_Aint size, unit;
	MPI_Info info;
};

/* What each process tells of itself. */
struct card {
	int64_t size, unit;
	uint64_t base;   /* its address, if it is the program's */
	uint64_t ids[2]; /* of the first one: those of the sessions */
	int32_t shares;  /* 0: it wants no shared memory */
	int32_t apart;   /* parts may lie apart */
	uint64_t align;  /* what it asks for, of memory that is allocated */
	struct madmpi_spot spot;
};

/* --- arguments --- */

int madmpi_check_win(const char *fn, MPI_Win win, struct madmpi_win **out)
{
	*out = madmpi_win_of(win);
	if (likely(*out != NULL))
		return MPI_SUCCESS;
	return madmpi_error(NULL, MPI_ERR_WIN, fn, "win %p is %s", (void *)win,
			    win == MPI_WIN_NULL ? "MPI_WIN_NULL"
						: "not a window");
}

int madmpi_check_target(const char *fn, const struct madmpi_win *w, int rank)
{
	if (likely(rank >= 0 && rank < w->size) || rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	return madmpi_error(w->comm, MPI_ERR_RANK, fn,
			    "the target is rank %d, but the window has %d "
			    "process%s",
			    rank, w->size, w->size > 1 ? "es" : "");
}

int madmpi_check_assert(const char *fn, const struct madmpi_win *w, int assert,
			int allowed)
{
	if (likely((assert & ~allowed) == 0))
		return MPI_SUCCESS;
	return madmpi_error(w->comm, MPI_ERR_ASSERT, fn,
			    "assert is 0x%x, of which 0x%x is not allowed here",
			    (unsigned)assert, (unsigned)(assert & ~allowed));
}

int madmpi_win_refuse(const char *fn, const struct madmpi_win *w,
		      const char *why)
{
	return madmpi_error(w->comm, MPI_ERR_RMA_SYNC, fn, "%s", why);
}

static int check_wish(const struct wish *x, MPI_Comm comm,
		      struct madmpi_comm **c, MPI_Win *win)
{
	struct madmpi_info *hints;
	int rc = madmpi_check_comm(x->fn, comm, c);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_intra(x->fn, *c);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_info(*c, x->fn, x->info, &hints);
	if (rc != MPI_SUCCESS)
		return rc;
	if (x->size < 0)
		return madmpi_error(*c, MPI_ERR_SIZE, x->fn,
				    "size is negative (%lld)",
				    (long long)x->size);
	if (x->unit <= 0)
		return madmpi_error(*c, MPI_ERR_DISP, x->fn,
				    "disp_unit is %lld, not positive",
				    (long long)x->unit);
	return win != NULL ? MPI_SUCCESS : madmpi_null_arg(*c, x->fn, "win");
}

/* --- places --- */

void madmpi_win_hull(const struct madmpi_type *t, MPI_Count count,
		     MPI_Count *low, MPI_Count *high)
{
	MPI_Count span;

	*low = *high = 0;
	if (count == 0 || t->size == 0)
		return;
	if (__builtin_mul_overflow(madmpi_type_extent(t), count - 1, &span) ||
	    __builtin_add_overflow(t->true_lb, span < 0 ? span : 0, low) ||
	    __builtin_add_overflow(t->true_ub, span > 0 ? span : 0, high)) {
		*low = INT64_MIN; /* in no window */
		*high = INT64_MAX;
	}
}

/* Regions that touch are as good as one. */
static bool is_attached(struct madmpi_win *w, uintptr_t low, uintptr_t high)
{
	uintptr_t at = low, end;

	marcel_mutex_lock(&w->mutex);
	while (at < high && (end = madmpi_win_attached_from(w, at)) != at)
		at = end;
	marcel_mutex_unlock(&w->mutex);
	return low <= high && at >= high;
}

bool madmpi_win_find(struct madmpi_win *w, MPI_Aint disp, MPI_Count low,
		     MPI_Count high, char **out)
{
	MPI_Count from, to;

	if (w->is_abandoned)
		return false;
	if (__builtin_add_overflow(disp, low, &from) ||
	    __builtin_add_overflow(disp, high, &to))
		return false;
	if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC) {
		if (!is_attached(w, (uintptr_t)from, (uintptr_t)to))
			return false;
		*out = (char *)disp;
		return true;
	}
	if (from < 0 || to > w->member[w->rank].size)
		return false;
	*out = (char *)((uintptr_t)w->member[w->rank].at + (uintptr_t)disp);
	return true;
}

/* --- making one --- */

static void free_memory(struct madmpi_win *w)
{
	madmpi_shared_drop(w);
	free(w->owned);
	madmpi_win_detach_all(w);
	free(w->targets);
	free(w->member);
	madmpi_win_forget_hints(w);
}

/* Without sessions, memory, and anybody else. 0 or -ENOMEM. */
static int win_new(const struct wish *x, struct madmpi_win **out)
{
	struct madmpi_win *w = madmpi_pool_get(&pool);
	struct madmpi_object object;

	if (w == NULL)
		return -ENOMEM;
	object = w->object;
	memset(w, 0, sizeof(*w));
	w->object = object;
	if (madmpi_comm_new_like(x->parent, &w->comm) < 0)
		goto err_pool;
	w->size = w->comm->size;
	w->rank = w->comm->rank;
	w->member = calloc((size_t)w->size, sizeof(*w->member));
	w->targets = calloc((size_t)w->size, sizeof(*w->targets));
	if (w->member == NULL || w->targets == NULL)
		goto err_memory;
	base_spin_init(&w->lock, BASE_RANK_LEAF);
	marcel_mutex_init(&w->mutex, NULL);
	for (int i = 0; i < w->size; i++)
		marcel_mutex_init(&w->targets[i].flushing, NULL);
	w->flavor = x->flavor;
	w->model = MPI_WIN_UNIFIED;
	w->unit = (int)x->unit;
	w->comm->win = w;
	*out = w;
	return 0;

err_memory:
	free_memory(w);
	madmpi_comm_put(w->comm);
err_pool:
	madmpi_pool_put(&pool, w);
	return -ENOMEM;
}

/* The error handler is not the parent's, but that which all begin with. */
static void set_errhandler(struct madmpi_win *w)
{
	struct madmpi_errhandler *old = w->comm->errhandler;

	w->comm->errhandler = madmpi_errhandler_of_comm(NULL);
	madmpi_errhandler_put(old);
}

static void fill_card(const struct wish *x, struct card *card)
{
	memset(card, 0, sizeof(*card));
	card->size = x->size;
	card->unit = x->unit;
	card->base = (uintptr_t)x->base;
	card->shares = !madmpi_win_info_says(x->info, "alloc_shm", "false");
	card->apart = madmpi_win_info_says(x->info, "alloc_shared_noncontig",
					   "true") ||
		      x->flavor == MPI_WIN_FLAVOR_ALLOCATE;
	card->align = madmpi_info_alignment(x->info);
	madmpi_spot_find(&card->spot);
	if (x->parent->rank == 0)
		madmpi_comm_new_ids(card->ids);
}

/* What all have said. */
static void take_cards(struct madmpi_win *w, const struct card *cards,
		       bool *share, bool *apart)
{
	*share = *apart = true;
	for (int i = 0; i < w->size; i++) {
		const struct card *c = &cards[i];

		*share &= c->shares &&
			  madmpi_spot_share_host(&c->spot, &cards[0].spot);
		*apart &= c->apart != 0;
		w->member[i].size = (MPI_Aint)c->size;
		w->member[i].unit = (MPI_Aint)c->unit;
		w->member[i].its = (uintptr_t)c->base;
		if (w->align < c->align)
			w->align = (size_t)c->align;
	}
}

/* Memory of its own, or the program's. 0 or -ENOMEM. */
static int find_memory(const struct wish *x, struct madmpi_win *w)
{
	w->member[w->rank].at = x->base;
	if (x->flavor != MPI_WIN_FLAVOR_ALLOCATE)
		return 0;
	if (posix_memalign(&w->owned, w->align, (size_t)x->size + 1) != 0)
		return -ENOMEM;
	w->member[w->rank].at = w->owned;
	return 0;
}

/*
 * The kernel copies to a member's memory without asking that member (direct.c).
 * So a process does that only if it knows that all members have the window: a
 * member without it uses its memory for something else. A process that has come
 * through this further vote knows that. Other processes that have the window
 * send requests, which a member without it refuses.
 */
static void agree_to_copies(struct madmpi_coll *c, struct madmpi_win *w)
{
	bool has_it = c->error == 0;

	if (madmpi_coll_least(c, 0) == 0 || !has_it)
		return;
	for (int i = 0; i < w->size; i++)
		w->member[i].its = 0;
	c->error = 0;
	c->is_told = false;
}

/*
 * Every process makes these steps, whatever has failed; without memory for it
 * w is NULL. Returns true if the others may have the window although this
 * process does not.
 */
static bool build(struct madmpi_coll *c, const struct wish *x,
		  struct madmpi_win *w, const struct card *cards)
{
	bool must = x->flavor == MPI_WIN_FLAVOR_SHARED, share, apart = false;
	int rc = madmpi_coll_errno(c), made;

	if (rc == 0) {
		take_cards(w, cards, &share, &apart);
		rc = madmpi_comm_open(w->comm, cards[0].ids);
	}
	if (must || x->flavor == MPI_WIN_FLAVOR_ALLOCATE) {
		made = rc == 0 && !share ? -EXDEV : rc;
		made = madmpi_shared_make(c, w, apart, made);
		if (made == 0)
			w->is_shared = true;
		else if (must && rc == 0)
			rc = made;
	}
	if (rc == 0 && !w->is_shared)
		rc = find_memory(x, w);
	if (rc == 0)
		rc = madmpi_serve_start(w);
	made = madmpi_coll_least(c, rc);
	if (made < 0)
		madmpi_coll_fail(c, made);
	if (x->flavor == MPI_WIN_FLAVOR_CREATE)
		agree_to_copies(c, w);
	return rc == 0 && c->error == -ECONNRESET;
}

/* Requests may have it still: their errors are nobody's but the handler's. */
static void leave_comm(struct madmpi_win *w)
{
	madmpi_object_let_go(&w->comm->object);
	base_spin_lock(&w->comm->lock);
	w->comm->win = NULL;
	base_spin_unlock(&w->comm->lock);
	madmpi_comm_put(w->comm);
}

static void win_end(struct madmpi_win *w)
{
	if (w->serve != NULL)
		madmpi_serve_stop(w);
	madmpi_rma_reap(w);
	if (w->started != NULL)
		madmpi_group_put(w->started);
	if (w->posted != NULL)
		madmpi_group_put(w->posted);
	for (int i = 0; i < w->size; i++)
		marcel_mutex_destroy(&w->targets[i].flushing);
	marcel_mutex_destroy(&w->mutex);
	free_memory(w);
	leave_comm(w);
}

static int report(struct madmpi_coll *c)
{
	if (c->error == -EXDEV)
		return madmpi_error(c->comm, MPI_ERR_RMA_SHARED, c->function,
				    "not all processes are on one host");
	return madmpi_coll_end(c);
}

/*
 * A process has died in the last step, so some processes may have the window
 * and others not. This one does not: it tells the first barrier of the window,
 * and answers requests until MPI ends, so that nobody waits for it.
 */
static void abandon(struct madmpi_win *w)
{
	w->is_abandoned = true;
	madmpi_serve_open(w);
	madmpi_win_fail_barrier(w);
	madmpi_object_let_go(&w->object);
}

static int create(const struct wish *x, MPI_Win *win)
{
	struct card mine, *cards;
	struct madmpi_win *w = NULL;
	struct madmpi_coll c;
	bool others_may_have_it;

	if (!madmpi_coll_begin_call(&c, x->fn, x->parent))
		return madmpi_coll_end(&c);
	cards = malloc((size_t)x->parent->size * sizeof(mine));
	if (cards == NULL || win_new(x, &w) < 0)
		madmpi_coll_fail(&c, -ENOMEM);
	fill_card(x, &mine);
	madmpi_coll_allgather_bytes(&c, &mine, sizeof(mine), cards);
	others_may_have_it = build(&c, x, w, cards);
	free(cards);
	if (c.error == 0) {
		set_errhandler(w);
		madmpi_win_hint(w, x->info);
		madmpi_serve_open(w);
		*win = (MPI_Win)w;
		return MPI_SUCCESS;
	}
	if (others_may_have_it) {
		abandon(w);
	} else if (w != NULL) {
		win_end(w);
		madmpi_pool_put(&pool, w);
	}
	return report(&c);
}

/* MPI_Win_create, MPI_Win_create_c */
int madmpi_win_create(void *base, MPI_Aint size, MPI_Aint disp_unit,
		      MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
	struct wish x = { .fn = "MPI_Win_create",
			  .flavor = MPI_WIN_FLAVOR_CREATE,
			  .base = base,
			  .size = size,
			  .unit = disp_unit,
			  .info = info };
	int rc = check_wish(&x, comm, &x.parent, win);

	return rc ? rc : create(&x, win);
}

/* MPI_Win_create_dynamic */
int madmpi_win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
	struct wish x = { .fn = "MPI_Win_create_dynamic",
			  .flavor = MPI_WIN_FLAVOR_DYNAMIC,
			  .unit = 1,
			  .info = info };
	int rc = check_wish(&x, comm, &x.parent, win);

	return rc ? rc : create(&x, win);
}

static int allocate(struct wish *x, MPI_Comm comm, void *baseptr, MPI_Win *win)
{
	int rc = check_wish(x, comm, &x->parent, win);
	const struct madmpi_win *w;

	if (rc == MPI_SUCCESS && baseptr == NULL)
		rc = madmpi_null_arg(x->parent, x->fn, "baseptr");
	if (rc == MPI_SUCCESS)
		rc = create(x, win);
	if (rc != MPI_SUCCESS)
		return rc;
	w = madmpi_win_of(*win);
	memcpy(baseptr, &w->member[w->rank].at, sizeof(void *));
	return MPI_SUCCESS;
}

/* MPI_Win_allocate, MPI_Win_allocate_c */
int madmpi_win_allocate(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info,
			MPI_Comm comm, void *baseptr, MPI_Win *win)
{
	struct wish x = { .fn = "MPI_Win_allocate",
			  .flavor = MPI_WIN_FLAVOR_ALLOCATE,
			  .size = size,
			  .unit = disp_unit,
			  .info = info };

	return allocate(&x, comm, baseptr, win);
}

/* MPI_Win_allocate_shared, MPI_Win_allocate_shared_c */
int madmpi_win_allocate_shared(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info,
			       MPI_Comm comm, void *baseptr, MPI_Win *win)
{
	struct wish x = { .fn = "MPI_Win_allocate_shared",
			  .flavor = MPI_WIN_FLAVOR_SHARED,
			  .size = size,
			  .unit = disp_unit,
			  .info = info };

	return allocate(&x, comm, baseptr, win);
}

/* --- its end --- */

/* An epoch that no call would end any more. */
static bool is_busy(struct madmpi_win *w)
{
	bool busy;

	base_spin_lock(&w->lock);
	busy = w->epoch >= MADMPI_EPOCH_STARTED || w->posted != NULL;
	base_spin_unlock(&w->lock);
	return busy;
}

/* MPI_Win_free */
int madmpi_win_free(MPI_Win *win)
{
	const char *fn = "MPI_Win_free";
	struct madmpi_win *w;
	int rc, one;

	if (win == NULL)
		return madmpi_null_arg(NULL, fn, "win");
	rc = madmpi_check_win(fn, *win, &w);
	if (rc != MPI_SUCCESS)
		return rc;
	if (is_busy(w))
		return madmpi_win_refuse(fn, w, "an epoch has not been ended");
	rc = madmpi_attrs_delete(fn, (struct madmpi_bearer){ .comm = w->comm });
	if (rc != MPI_SUCCESS)
		return rc;
	/* The others wait for this one, and it ends, however that went. */
	rc = madmpi_win_flush_targets(fn, w, 0, w->size);
	one = madmpi_win_barrier(fn, w);
	if (one != MPI_SUCCESS)
		return one;
	win_end(w);
	madmpi_pool_put(&pool, w);
	*win = MPI_WIN_NULL;
	return rc;
}

void madmpi_win_give_up(struct madmpi_win *w)
{
	madmpi_attrs_delete("MPI_Session_finalize",
			    (struct madmpi_bearer){ .comm = w->comm });
	win_end(w);
	madmpi_pool_put(&pool, w);
}

void madmpi_win_init(void)
{
	madmpi_pool_init(&pool, MADMPI_WIN, sizeof(struct madmpi_win));
	madmpi_rma_init();
}

static void reap(struct madmpi_object *o)
{
	win_end(container_of(o, struct madmpi_win, object));
}

void madmpi_win_exit(void)
{
	madmpi_pool_walk(&pool, reap);
	madmpi_pool_exit(&pool);
	madmpi_rma_exit();
}
