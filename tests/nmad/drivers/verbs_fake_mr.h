/*
 * An adapter that registers memory: it notes what number stands at the
 * beginning of each page. Memory that is new has zeroes there, and who uses
 * such a page first puts a number there that no other page ever had
 * (fake_use()): a registration is of the memory that is mapped now if and only
 * if the numbers are the same.
 */
#ifndef TESTS_NMAD_DRIVERS_VERBS_FAKE_MR_H
#define TESTS_NMAD_DRIVERS_VERBS_FAKE_MR_H

#include "../../check.h"

#include <errno.h>
#include <stdlib.h>

#include <base/atomic.h>

#include "../../../nmad/drivers/verbs/reg.h"

enum { PAGE = 4096 };

struct fake_mr {
	struct ibv_mr mr; /* first */
	bool may_write;
	size_t n;
	uint64_t number[];
};

static struct {
	ATOMIC(uint64_t) numbers; /* a: */
	ATOMIC(uint64_t) pinned;  /* a: bytes */
	ATOMIC(uint64_t) tries;   /* a: */
	uint64_t limit;           /* 0: none; bytes that the kernel allows */
	bool refuses_writing;
	void (*meanwhile)(void); /* while the next is registered; or NULL */
} fake;

static inline uint64_t *fake_number(uintptr_t page)
{
	return (uint64_t *)page;
}

static inline uintptr_t page_of(const void *p)
{
	return (uintptr_t)p & -(uintptr_t)PAGE;
}

/* Of the pages of these bytes, those that are new. */
static inline void fake_use(const void *p, size_t bytes)
{
	for (uintptr_t at = page_of(p); at < (uintptr_t)p + bytes; at += PAGE)
		if (*fake_number(at) == 0)
			*fake_number(at) =
				fetch_add_relaxed(&fake.numbers, 1) + 1;
}

static struct ibv_mr *fake_reg_mr(struct ibv_pd *pd, void *p, size_t bytes,
				  int access)
{
	bool may_write = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
	struct fake_mr *f;

	(void)pd;
	fetch_add_relaxed(&fake.tries, 1);
	errno = EFAULT;
	if (may_write && fake.refuses_writing)
		return NULL;
	errno = ENOMEM;
	if (fake.limit != 0 && load_relaxed(&fake.pinned) + bytes > fake.limit)
		return NULL;
	f = malloc(sizeof(*f) + bytes / PAGE * sizeof(f->number[0]));
	CHECK(f != NULL && bytes % PAGE == 0 && (uintptr_t)p % PAGE == 0);
	f->mr.addr = p;
	f->mr.length = bytes;
	f->may_write = may_write;
	f->n = bytes / PAGE;
	for (size_t i = 0; i < f->n; i++)
		f->number[i] = *fake_number((uintptr_t)p + i * PAGE);
	fetch_add_relaxed(&fake.pinned, bytes);
	if (fake.meanwhile != NULL) {
		void (*fn)(void) = fake.meanwhile;

		fake.meanwhile = NULL;
		fn();
	}
	return &f->mr;
}

static int fake_dereg_mr(struct ibv_mr *mr)
{
	fetch_sub_relaxed(&fake.pinned, mr->length);
	mr->addr = NULL;
	free(mr);
	return 0;
}

/* Of these bytes, and of the memory that is there now. */
static inline bool fake_is_right(const struct verbs_reg *reg, const void *p,
				 size_t bytes)
{
	struct fake_mr *f = (struct fake_mr *)reg->mr;

	if ((uintptr_t)f->mr.addr != reg->begin || reg->begin > (uintptr_t)p ||
	    f->mr.length != reg->end - reg->begin ||
	    reg->end < (uintptr_t)p + bytes)
		return false;
	for (uintptr_t at = page_of(p); at < (uintptr_t)p + bytes; at += PAGE)
		if (f->number[(at - reg->begin) / PAGE] != *fake_number(at))
			return false;
	return true;
}

static inline void fake_install(void)
{
	nm_verbs_lib.reg_mr = fake_reg_mr;
	nm_verbs_lib.dereg_mr = fake_dereg_mr;
	fake.limit = 0;
	fake.refuses_writing = false;
}

#endif
