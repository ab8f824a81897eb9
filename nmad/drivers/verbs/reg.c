#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <base/list.h>
#include <base/spin.h>

#include "reg.h"

struct entry {
	/* -: const once made  l: regs->lock */
	struct verbs_reg reg;   /* -: first, its users have only this */
	struct base_link trash; /* l: regs->trash */
};

struct verbs_regs {
	/* -: const once open  l: lock */
	struct base_spin lock;
	struct ibv_pd *pd;              /* -: */
	struct verbs_regs_how how;      /* -: */
	uintptr_t page;                 /* -: bytes of one */
	struct base_list trash;         /* l: for clean() */
	struct verbs_reg_counts counts; /* l: */
};

static size_t bytes_of(const struct entry *e)
{
	return e->reg.end - e->reg.begin;
}

struct verbs_reg *nm_verbs_reg_find(struct verbs_regs *regs, const void *p,
				    size_t bytes)
{
	(void)regs;
	(void)p;
	(void)bytes;
	return NULL;
}

void nm_verbs_reg_put(struct verbs_regs *regs, struct verbs_reg *reg)
{
	struct entry *e = container_of(reg, struct entry, reg);

	base_spin_lock(&regs->lock);
	base_list_push_back(&regs->trash, &e->trash);
	base_spin_unlock(&regs->lock);
	regs->how.wake(regs->how.arg);
}

void nm_verbs_regs_clean(struct verbs_regs *regs)
{
	for (;;) {
		struct base_link *n;
		struct entry *e;

		base_spin_lock(&regs->lock);
		n = base_list_take_front(&regs->trash);
		base_spin_unlock(&regs->lock);
		if (n == NULL)
			return;
		e = container_of(n, struct entry, trash);
		nm_verbs_lib.dereg_mr(e->reg.mr);
		base_spin_lock(&regs->lock);
		regs->counts.pinned -= bytes_of(e);
		base_spin_unlock(&regs->lock);
		free(e);
	}
}

/* --- making --- */

static bool reserve(struct verbs_regs *regs, size_t bytes)
{
	bool fits;

	base_spin_lock(&regs->lock);
	fits = regs->counts.pinned <= regs->how.limit &&
	       bytes <= regs->how.limit - regs->counts.pinned;
	if (fits)
		regs->counts.pinned += bytes;
	base_spin_unlock(&regs->lock);
	return fits;
}

/* -errno */
static int register_entry(struct verbs_regs *regs, struct entry *e)
{
	const int readable = IBV_ACCESS_REMOTE_READ;
	const int writable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	void *begin = (void *)e->reg.begin;

	e->reg.mr = nm_verbs_lib.reg_mr(regs->pd, begin, bytes_of(e),
					readable | writable);
	if (e->reg.mr == NULL && errno != ENOMEM)
		e->reg.mr = nm_verbs_lib.reg_mr(regs->pd, begin, bytes_of(e),
						readable);
	return e->reg.mr != NULL ? 0 : -errno;
}

struct verbs_reg *nm_verbs_reg_make(struct verbs_regs *regs, const void *p,
				    size_t bytes, int *error)
{
	struct entry *e = calloc(1, sizeof(*e));
	int rc = -ENOMEM;

	if (e == NULL) {
		*error = -ENOMEM;
		return NULL;
	}
	e->reg.begin = (uintptr_t)p & -regs->page;
	e->reg.end = ((uintptr_t)p + bytes + regs->page - 1) & -regs->page;
	nm_verbs_regs_clean(regs);
	if (reserve(regs, bytes_of(e))) {
		rc = register_entry(regs, e);
		base_spin_lock(&regs->lock);
		if (rc < 0)
			regs->counts.pinned -= bytes_of(e);
		else
			regs->counts.made++;
		base_spin_unlock(&regs->lock);
	}
	if (rc == 0)
		return &e->reg;
	base_spin_lock(&regs->lock);
	regs->counts.refused++;
	base_spin_unlock(&regs->lock);
	free(e);
	*error = rc;
	return NULL;
}

/* --- opening --- */

struct verbs_regs *nm_verbs_regs_open(struct ibv_pd *pd,
				      const struct verbs_regs_how *how)
{
	struct verbs_regs *regs = calloc(1, sizeof(*regs));

	if (regs == NULL)
		return NULL;
	base_spin_init(&regs->lock, BASE_RANK_LEAF);
	base_list_init(&regs->trash);
	regs->pd = pd;
	regs->how = *how;
	regs->page = (uintptr_t)sysconf(_SC_PAGESIZE);
	return regs;
}

void nm_verbs_regs_close(struct verbs_regs *regs)
{
	nm_verbs_regs_clean(regs);
	free(regs);
}

struct verbs_reg_counts nm_verbs_reg_counts(struct verbs_regs *regs)
{
	struct verbs_reg_counts counts;

	base_spin_lock(&regs->lock);
	counts = regs->counts;
	base_spin_unlock(&regs->lock);
	return counts;
}
