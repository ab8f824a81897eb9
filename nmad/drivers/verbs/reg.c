/*
 * A registration is in one of these states, by what it is on:
 *
 *                      +--------------- find ---------------+
 *                      v                                    |
 *   making ---> kept, has users -- last put --> kept, idle -+
 *     |                |                            |
 *     | cannot be      | its memory is gone         | so is this one's, or
 *     | kept           v                            v others need the room
 *     +------> not kept, has users -- last put --> trash --> taken back
 *
 * Kept is what the table has. Idle ones are listed by when their last user let
 * go of them; what is unmapped while it is being made is not kept, so a list
 * has those that are.
 *
 * It covers the pages that its first user named, and no more (why: unmap.c):
 * those of several may overlap, and the table tells one that covers all. One
 * that lies within a new one is not needed any more.
 */
#include "reg.h"

#include <marcel/errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/diag.h>
#include <base/list.h>
#include <base/spin.h>

#include "ranges.h"
#include "unmap.h"

enum {
	ROOM = 4096,
	FIND_TURNS = 16,   /* some us */
	MAKE_TURNS = 1000, /* some 10 ms */
};

struct entry {
	/* -: const once made  l: nm_verbs_unmap_lock */
	struct verbs_reg reg; /* -: first, for its users have only this */
	struct base_link on;  /* l: making, idle or trash */
	unsigned users;       /* l: */
	bool is_kept;         /* l: in the table */
	bool is_gone;         /* l: what is being made was unmapped */
	bool is_watched;      /* -: */
};

struct verbs_regs {
	/* -: const once open  l: nm_verbs_unmap_lock */
	struct ibv_pd *pd;              /* -: */
	struct verbs_regs_how how;      /* -: but l: wake */
	uintptr_t page;                 /* -: bytes of one */
	bool keeps;                     /* -: what is unmapped is told */
	bool fails;                     /* -: of who cleans: that was said */
	struct verbs_watcher watcher;   /* -: */
	struct verbs_ranges table;      /* l: */
	struct base_list making;        /* l: */
	struct base_list idle;          /* l: first, whose end of use is longest
					 * ago */
	struct base_list trash;         /* l: for clean() */
	struct verbs_reg_counts counts; /* l: but what the table knows */
};

static struct entry *entry_on(struct base_link *n)
{
	return container_of(n, struct entry, on);
}

static size_t bytes_of(const struct entry *e)
{
	return e->reg.end - e->reg.begin;
}

static bool overlaps(const struct entry *e, uintptr_t begin, uintptr_t end)
{
	return e->reg.begin < end && begin < e->reg.end;
}

/* --- finding --- */

static struct entry *find(struct verbs_regs *regs, const void *p, size_t bytes,
			  unsigned turns)
{
	uintptr_t begin = (uintptr_t)p;
	struct entry *e;

	/* What is told is out of the table: the lock comes after. */
	if (!regs->keeps || !nm_verbs_unmap_is_told(turns))
		return NULL;
	base_spin_lock(&nm_verbs_unmap_lock);
	e = nm_verbs_ranges_find(&regs->table, begin, begin + bytes);
	if (e != NULL) {
		if (e->users++ == 0)
			base_list_remove(&e->on);
		regs->counts.found++;
	}
	base_spin_unlock(&nm_verbs_unmap_lock);
	return e;
}

struct verbs_reg *nm_verbs_reg_find(struct verbs_regs *regs, const void *p,
				    size_t bytes)
{
	struct entry *e = find(regs, p, bytes, FIND_TURNS);

	return e != NULL ? &e->reg : NULL;
}

static void wake_locked(struct verbs_regs *regs)
{
	if (regs->how.wake != NULL)
		regs->how.wake(regs->how.arg);
}

void nm_verbs_reg_put(struct verbs_regs *regs, struct verbs_reg *reg)
{
	struct entry *e = container_of(reg, struct entry, reg);

	base_spin_lock(&nm_verbs_unmap_lock);
	base_check(e->users > 0);
	if (--e->users == 0) {
		base_list_push_back(e->is_kept ? &regs->idle : &regs->trash,
				    &e->on);
		if (!e->is_kept)
			wake_locked(regs);
	}
	base_spin_unlock(&nm_verbs_unmap_lock);
}

/* It has just left the table. */
static void retire_locked(struct verbs_regs *regs, struct entry *e)
{
	e->is_kept = false;
	if (e->users == 0) {
		base_list_remove(&e->on);
		base_list_push_back(&regs->trash, &e->on);
	}
}

/* --- what unmap.c asks --- */

static bool leaves_as_gone(void *of, void *arg)
{
	struct verbs_regs *regs = arg;

	retire_locked(regs, of);
	regs->counts.unmapped++;
	return true;
}

static void gone(struct verbs_watcher *w, uintptr_t begin, uintptr_t end)
{
	struct verbs_regs *regs = container_of(w, struct verbs_regs, watcher);

	nm_verbs_ranges_take(&regs->table, begin, end, leaves_as_gone, regs);
	if (!base_list_is_empty(&regs->trash))
		wake_locked(regs);
	base_list_for_each (n, &regs->making) {
		if (overlaps(entry_on(n), begin, end))
			entry_on(n)->is_gone = true;
	}
}

static uintptr_t wants(struct verbs_watcher *w, uintptr_t at, uintptr_t *next)
{
	struct verbs_regs *regs = container_of(w, struct verbs_regs, watcher);
	uintptr_t reach = nm_verbs_ranges_reach(&regs->table, at, next);

	base_list_for_each (n, &regs->making) {
		const struct verbs_reg *r = &entry_on(n)->reg;

		if (r->begin > at && r->begin < *next)
			*next = r->begin;
		if (r->begin <= at && r->end > reach)
			reach = r->end;
	}
	return reach;
}

/* --- taking back --- */

static void take_back(struct verbs_regs *regs, struct entry *e)
{
	int rc = nm_verbs_lib.dereg_mr(e->reg.mr);

	if (rc != 0 && !regs->fails) {
		regs->fails = true;
		base_warn("nmad", "ibverbs: memory stays registered: %s",
			  strerror(rc));
	}
	if (e->is_watched)
		nm_verbs_unmap_unwatch(e->reg.begin, e->reg.end);
	base_spin_lock(&nm_verbs_unmap_lock);
	regs->counts.pinned -= bytes_of(e);
	base_spin_unlock(&nm_verbs_unmap_lock);
	free(e);
}

void nm_verbs_regs_clean(struct verbs_regs *regs)
{
	for (;;) {
		struct base_link *n;

		base_spin_lock(&nm_verbs_unmap_lock);
		n = base_list_take_front(&regs->trash);
		base_spin_unlock(&nm_verbs_unmap_lock);
		if (n == NULL)
			return;
		take_back(regs, entry_on(n));
	}
}

/* --- making room --- */

static bool leaves_if_it_is(void *of, void *arg)
{
	return of == arg;
}

/* False: all are in use. */
static bool evict_locked(struct verbs_regs *regs)
{
	struct base_link *n = base_list_first(&regs->idle);
	struct entry *e;

	if (n == NULL)
		return false;
	e = entry_on(n);
	nm_verbs_ranges_take(&regs->table, e->reg.begin, e->reg.end,
			     leaves_if_it_is, e);
	retire_locked(regs, e);
	regs->counts.evicted++;
	return true;
}

static bool evict(struct verbs_regs *regs)
{
	bool any;

	base_spin_lock(&nm_verbs_unmap_lock);
	any = evict_locked(regs);
	base_spin_unlock(&nm_verbs_unmap_lock);
	nm_verbs_regs_clean(regs);
	return any;
}

/* Count these bytes as pinned, if the limit allows. */
static bool reserve(struct verbs_regs *regs, size_t bytes)
{
	bool fits = false;

	if (bytes > regs->how.limit)
		return false;
	do {
		base_spin_lock(&nm_verbs_unmap_lock);
		fits = regs->counts.pinned <= regs->how.limit - bytes;
		if (fits)
			regs->counts.pinned += bytes;
		base_spin_unlock(&nm_verbs_unmap_lock);
	} while (!fits && evict(regs));
	return fits;
}

/* --- making --- */

static int try_register(struct verbs_regs *regs, struct entry *e, int access)
{
	e->reg.mr = nm_verbs_lib.reg_mr(regs->pd, (void *)e->reg.begin,
					bytes_of(e), access);
	return e->reg.mr != NULL ? 0 : -errno;
}

/*
 * -errno. What may only be read now might be written later, of which nobody is
 * told: it is not kept.
 */
static int register_entry(struct verbs_regs *regs, struct entry *e, bool *keep)
{
	const int readable = IBV_ACCESS_REMOTE_READ;
	const int writable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	int rc;

	do
		rc = try_register(regs, e, readable | writable);
	while (rc == -ENOMEM && evict(regs));
	if (rc < 0 && rc != -ENOMEM) {
		*keep = false;
		rc = try_register(regs, e, readable);
	}
	return rc;
}

/*
 * Before its memory is registered, so that whatever is done to that after it
 * was pinned is told: to us among those in the making, or in the table later.
 */
static void begin_to_watch(struct verbs_regs *regs, struct entry *e)
{
	base_spin_lock(&nm_verbs_unmap_lock);
	base_list_push_back(&regs->making, &e->on);
	base_spin_unlock(&nm_verbs_unmap_lock);
	e->is_watched = regs->keeps &&
			nm_verbs_unmap_watch(e->reg.begin, e->reg.end) == 0;
}

struct cover {
	struct verbs_regs *regs;
	const struct verbs_reg *by;
};

static bool leaves_as_covered(void *of, void *arg)
{
	const struct cover *c = arg;
	struct entry *e = of;

	if (e->reg.begin < c->by->begin || c->by->end < e->reg.end)
		return false;
	retire_locked(c->regs, e);
	c->regs->counts.evicted++;
	return true;
}

static void keep_locked(struct verbs_regs *regs, struct entry *e)
{
	struct cover cover = { regs, &e->reg };

	nm_verbs_ranges_take(&regs->table, e->reg.begin, e->reg.end,
			     leaves_as_covered, &cover);
	if (regs->table.n == regs->table.room && !evict_locked(regs))
		return;
	nm_verbs_ranges_put(&regs->table, e->reg.begin, e->reg.end, e);
	e->is_kept = true;
}

/* Its first user's. */
static void publish(struct verbs_regs *regs, struct entry *e, bool keep)
{
	base_spin_lock(&nm_verbs_unmap_lock);
	base_list_remove(&e->on);
	if (keep && e->is_watched && !e->is_gone)
		keep_locked(regs, e);
	regs->counts.made++;
	base_spin_unlock(&nm_verbs_unmap_lock);
}

static struct entry *new_entry(struct verbs_regs *regs, const void *p,
			       size_t bytes)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->reg.begin = (uintptr_t)p & -regs->page;
	e->reg.end = ((uintptr_t)p + bytes + regs->page - 1) & -regs->page;
	e->users = 1;
	base_link_init(&e->on);
	return e;
}

static void refuse(struct verbs_regs *regs, struct entry *e, size_t reserved)
{
	base_spin_lock(&nm_verbs_unmap_lock);
	if (e != NULL)
		base_list_remove(&e->on);
	regs->counts.pinned -= reserved;
	regs->counts.refused++;
	base_spin_unlock(&nm_verbs_unmap_lock);
	if (e != NULL && e->is_watched)
		nm_verbs_unmap_unwatch(e->reg.begin, e->reg.end);
	free(e);
}

struct verbs_reg *nm_verbs_reg_make(struct verbs_regs *regs, const void *p,
				    size_t bytes, int *error)
{
	struct entry *e = find(regs, p, bytes, MAKE_TURNS);
	bool keep = true;
	int rc;

	if (e != NULL)
		return &e->reg;
	nm_verbs_regs_clean(regs);
	e = new_entry(regs, p, bytes);
	if (e == NULL || !reserve(regs, bytes_of(e))) {
		refuse(regs, e, 0);
		*error = -ENOMEM;
		return NULL;
	}
	begin_to_watch(regs, e);
	rc = register_entry(regs, e, &keep);
	if (rc < 0) {
		refuse(regs, e, bytes_of(e));
		*error = rc;
		return NULL;
	}
	publish(regs, e, keep);
	nm_verbs_regs_clean(regs);
	return &e->reg;
}

/* --- opening --- */

struct verbs_regs *nm_verbs_regs_open(struct ibv_pd *pd,
				      const struct verbs_regs_how *how)
{
	struct verbs_regs *regs = calloc(1, sizeof(*regs));

	if (regs == NULL)
		return NULL;
	if (nm_verbs_ranges_init(&regs->table, how->keep ? ROOM : 1) < 0) {
		free(regs);
		return NULL;
	}
	base_list_init(&regs->making);
	base_list_init(&regs->idle);
	base_list_init(&regs->trash);
	regs->pd = pd;
	regs->how = *how;
	regs->page = (uintptr_t)sysconf(_SC_PAGESIZE);
	regs->watcher.gone = gone;
	regs->watcher.wants = wants;
	regs->keeps = how->keep &&
		      nm_verbs_unmap_open(&regs->watcher, how->loud) == 0;
	return regs;
}

void nm_verbs_regs_hush(struct verbs_regs *regs)
{
	base_spin_lock(&nm_verbs_unmap_lock);
	regs->how.wake = NULL;
	base_spin_unlock(&nm_verbs_unmap_lock);
}

static bool leaves_at_the_end(void *of, void *arg)
{
	struct entry *e = of;

	e->users = 0;
	retire_locked(arg, e);
	return true;
}

/* Also what offers use that nobody has answered: they come to nothing. */
void nm_verbs_regs_close(struct verbs_regs *regs)
{
	while (evict(regs))
		;
	base_spin_lock(&nm_verbs_unmap_lock);
	nm_verbs_ranges_take(&regs->table, 0, UINTPTR_MAX, leaves_at_the_end,
			     regs);
	base_spin_unlock(&nm_verbs_unmap_lock);
	nm_verbs_regs_clean(regs);
	base_check(regs->table.n == 0);
	if (regs->keeps)
		nm_verbs_unmap_close(&regs->watcher);
	nm_verbs_ranges_exit(&regs->table);
	free(regs);
}

struct verbs_reg_counts nm_verbs_reg_counts(struct verbs_regs *regs)
{
	struct verbs_reg_counts counts;

	base_spin_lock(&nm_verbs_unmap_lock);
	counts = regs->counts;
	counts.kept = regs->table.n;
	base_spin_unlock(&nm_verbs_unmap_lock);
	return counts;
}

void nm_verbs_regs_check(struct verbs_regs *regs)
{
	base_spin_lock(&nm_verbs_unmap_lock);
	nm_verbs_ranges_check(&regs->table);
	for (unsigned i = 0; i < regs->table.n; i++) {
		const struct verbs_range *r = &regs->table.range[i];
		const struct entry *e = r->of;

		base_check(e->is_kept && e->is_watched);
		base_check(r->begin == e->reg.begin && r->end == e->reg.end);
		base_check((e->users == 0) == base_link_is_on(&e->on));
	}
	base_spin_unlock(&nm_verbs_unmap_lock);
}
