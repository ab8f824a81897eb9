/*
 * Protection domains and registrations.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "object.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* Makes an rkey of an lkey, so that neither passes for the other. */
#define RKEY (1u << 31)

static ATOMIC(uint32_t) pds;
/* Where to look next, and what makes keys differ; under the lock. */
static struct fv_lock mr_lock;
static uint32_t next_mr, key_generation;

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct fv_pd *pd;

	FV_CALLED(alloc_pd);
	if (fv_is_fatal(fv_context(context)->device)) {
		errno = EIO;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	pd->ibv.context = context;
	pd->ibv.handle = fetch_add_relaxed(&pds, 1);
	fetch_add_relaxed(&fv_context(context)->users, 1);
	FV_MORE(pds);
	return &pd->ibv;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct fv_pd *p = (struct fv_pd *)pd;

	FV_CALLED(dealloc_pd);
	if (load_relaxed(&p->users) != 0)
		return EBUSY;
	fetch_sub_relaxed(&fv_context(pd->context)->users, 1);
	free(p);
	FV_LESS(pds);
	return 0;
}

/* Is it mapped, and as the device needs it? 0, or errno. */
static int fault_in(void *addr, size_t length, int access)
{
	void *begin = (void *)(uintptr_t)fv_page_of((uintptr_t)addr);
	size_t bytes = fv_pages((uintptr_t)addr, length);

	if (length == 0 || madvise(begin, bytes, MADV_POPULATE_WRITE) == 0)
		return 0;
	if (!(access & IBV_ACCESS_LOCAL_WRITE) &&
	    madvise(begin, bytes, MADV_POPULATE_READ) == 0)
		return 0;
	/* An old kernel. */
	if (errno == EINVAL && msync(begin, bytes, MS_ASYNC) == 0)
		return 0;
	return errno == ENOMEM ? EFAULT : errno;
}

static int pin(uint64_t bytes)
{
	uint64_t limit = (uint64_t)fv_setting(FV_SET_MEMLOCK);

	if (fetch_add_relaxed(&fv_counts.pinned, bytes) + bytes <= limit)
		return 0;
	fetch_sub_relaxed(&fv_counts.pinned, bytes);
	return ENOMEM;
}

/* Of the table; NULL: it is full. */
static struct fv_mr *new_entry(uint32_t *key)
{
	struct fv_mr *m = NULL;

	fv_lock(&mr_lock);
	for (uint32_t i = 0; i < FV_MRS && m == NULL; i++) {
		uint32_t n = (next_mr + i) % FV_MRS;

		if (load_relaxed(&fv_me->mrs[n].key) != 0)
			continue;
		m = &fv_me->mrs[n];
		next_mr = n + 1;
		/* An old key of this entry means nothing. */
		key_generation = key_generation % 255 + 1;
		*key = n << 8 | key_generation;
		/* Taken, but no key that anybody has. */
		store_relaxed(&m->key, UINT32_MAX);
	}
	fv_unlock(&mr_lock);
	return m;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
				 int access)
{
	struct fv_context *c = fv_context(pd->context);
	int error = EIO;
	struct fv_mr *m;
	struct ibv_mr *mr;
	uint32_t key = 0;

	FV_CALLED(reg_mr);
	if (fv_is_fatal(c->device))
		goto err;
	error = EINVAL;
	if ((access & IBV_ACCESS_REMOTE_WRITE) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		goto err;
	error = fault_in(addr, length, access);
	if (error != 0)
		goto err;
	error = pin(fv_pages((uintptr_t)addr, length));
	if (error != 0)
		goto err;
	error = ENOMEM;
	m = new_entry(&key);
	if (m == NULL)
		goto err_unpin;
	m->device = c->device;
	m->pd = pd->handle;
	m->access = (uint32_t)access;
	m->addr = (uintptr_t)addr;
	m->length = length;
	store_relaxed(&m->gone, UINT64_MAX);
	store_relaxed(&m->gone_end, 0);
	store_release(&m->key, key);
	mr = calloc(1, sizeof(*mr));
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	mr->handle = key >> 8;
	mr->lkey = key;
	mr->rkey = key | RKEY;
	fetch_add_relaxed(&((struct fv_pd *)pd)->users, 1);
	FV_MORE(mrs);
	return mr;

err_unpin:
	fetch_sub_relaxed(&fv_counts.pinned, fv_pages((uintptr_t)addr, length));
err:
	errno = error;
	return NULL;
}

/* Nobody uses the key any more: neither we nor who delivers to us. */
static void wait_for_users(void)
{
	fv_lock(&fv_list_lock);
	for (struct fv_qp *q = fv_qp_list; q != NULL; q = q->next) {
		fv_lock(&q->sq_lock);
		fv_unlock(&q->sq_lock);
		fv_lock(&q->end->lock);
		fv_unlock(&q->end->lock);
	}
	fv_unlock(&fv_list_lock);
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct fv_mr *m = &fv_me->mrs[mr->handle];

	FV_CALLED(dereg_mr);
	/* The entry is not free before they have finished. */
	store_relaxed(&m->key, UINT32_MAX);
	wait_for_users();
	store_relaxed(&m->key, 0);
	fetch_sub_relaxed(&fv_counts.pinned, fv_pages(m->addr, m->length));
	fetch_sub_relaxed(&((struct fv_pd *)mr->pd)->users, 1);
	free(mr);
	FV_LESS(mrs);
	return 0;
}

void fv_mr_gone(const void *at, size_t bytes)
{
	uint64_t begin = (uintptr_t)at, end = begin + bytes;

	fv_lock(&mr_lock);
	for (uint32_t i = 0; i < FV_MRS && fv_me != NULL; i++) {
		struct fv_mr *m = &fv_me->mrs[i];

		if (load_acquire(&m->key) == 0 || m->addr >= end ||
		    m->addr + m->length <= begin)
			continue;
		if (begin < load_relaxed(&m->gone))
			store_relaxed(&m->gone, begin);
		if (end > load_relaxed(&m->gone_end))
			store_relaxed(&m->gone_end, end);
	}
	fv_unlock(&mr_lock);
}

/* A program may not use what it has registered of other pages. */
static void look_for_gone(const struct fv_mr *m, uint64_t addr, uint64_t length)
{
	if (addr >= load_relaxed(&m->gone_end) ||
	    addr + length <= load_relaxed(&m->gone))
		return;
	fprintf(stderr,
		"fake_verbs: a registration is used of pages that are gone\n");
	abort();
}

bool fv_mr_covers(struct fv_slot *slot, uint32_t key, uint32_t device,
		  uint32_t pd, uint64_t addr, uint64_t length, uint32_t access)
{
	bool is_remote =
		access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	const struct fv_mr *m = &slot->mrs[key >> 8 & (FV_MRS - 1)];

	if (!(key & RKEY) == is_remote)
		return false;
	key &= ~RKEY;
	if (key >> 8 >= FV_MRS || key == 0 || load_acquire(&m->key) != key ||
	    m->device != device || m->pd != pd ||
	    (m->access & access) != access || addr < m->addr ||
	    length > m->length || addr - m->addr > m->length - length)
		return false;
	look_for_gone(m, addr, length);
	return true;
}
