/*
 * RDMA between two areas of memory that are unmapped, mapped over, moved and
 * given back between the transfers: every byte arrives, and where it belongs.
 * On whatever libibverbs the loader finds. A device that writes to physical
 * pages, as the real ones do, shows a registration of pages that have gone.
 */
#include "fake_verbs/ends.h"

#include <stdio.h>
#include <sys/mman.h>

#include "../../../nmad/drivers/verbs/reg.h"

enum { PAGE = 4096, PAGES = 8, BYTES = PAGES * PAGE, ROUNDS = 150 };

/* One side. */
struct side {
	struct end end;
	struct verbs_regs *regs;
	char *area;
};

static char *map(void *at)
{
	char *p =
		mmap(at, BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void move_here(char *page)
{
	char *from = map(NULL);

	memset(from, 1, PAGE);
	CHECK_PTR(mremap(from, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page),
		  page);
	munmap(from, BYTES);
}

/* Half of the times not at all. */
static void change(struct side *s)
{
	char *page = s->area + check_random() % PAGES * PAGE;

	switch (check_random() % 10) {
	case 0:
		CHECK_INT(munmap(s->area, BYTES), 0);
		CHECK_PTR(map(s->area), s->area);
		break;
	case 1:
		map(s->area);
		break;
	case 2:
		CHECK_INT(madvise(page, PAGE, MADV_DONTNEED), 0);
		break;
	case 3:
		CHECK_INT(madvise(page, PAGE, MADV_FREE), 0);
		break;
	case 4:
		move_here(page);
		break;
	default:
		break;
	}
}

static struct verbs_reg *get(struct side *s, const void *p, size_t bytes)
{
	struct verbs_reg *reg = nm_verbs_reg_find(s->regs, p, bytes);
	int error = 0;

	if (reg == NULL)
		reg = nm_verbs_reg_make(s->regs, p, bytes, &error);
	CHECK_INT(error, 0);
	return reg;
}

/* `by` writes its bytes to the other side's, or reads those into its own. */
static void transfer(struct side *by, char *mine, struct side *other,
		     char *theirs, size_t bytes, bool writes)
{
	struct verbs_reg *local = get(by, mine, bytes);
	struct verbs_reg *remote = get(other, theirs, bytes);
	struct ibv_sge sge = { (uintptr_t)mine, (uint32_t)bytes,
			       local->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = writes ? IBV_WR_RDMA_WRITE
						   : IBV_WR_RDMA_READ,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)theirs;
	wr.wr.rdma.rkey = remote->mr->rkey;
	CHECK_INT(ibv_post_send(by->end.qp, &wr, &bad), 0);
	ends_expect(by->end.scq, 1, IBV_WC_SUCCESS);
	nm_verbs_reg_put(by->regs, local);
	nm_verbs_reg_put(other->regs, remote);
}

static void one_round(struct side *a, struct side *b, unsigned number)
{
	size_t bytes = 1 + check_random() % (BYTES / 2);
	char *mine = a->area + check_random() % (BYTES - bytes);
	char *theirs = b->area + check_random() % (BYTES - bytes);
	bool writes = check_random() % 2;
	char *from = writes ? mine : theirs, *to = writes ? theirs : mine;

	change(a);
	change(b);
	ends_fill((unsigned char *)from, bytes, number);
	memset(to, 0, bytes);
	transfer(a, mine, b, theirs, bytes, writes);
	CHECK(ends_is_filled((unsigned char *)to, bytes, number));
}

static void side_open(struct side *s)
{
	struct verbs_regs_how how = { .limit = SIZE_MAX,
				      .keep = true,
				      .loud = true };

	s->regs = nm_verbs_regs_open(s->end.pd, &how);
	CHECK(s->regs != NULL);
	s->area = map(NULL);
}

static void side_close(struct side *s)
{
	struct verbs_reg_counts c = nm_verbs_reg_counts(s->regs);

	printf("# %d transfers: %llu found, %llu made, %llu unmapped\n", ROUNDS,
	       (unsigned long long)c.found, (unsigned long long)c.made,
	       (unsigned long long)c.unmapped);
	CHECK((c.found > 0) == (c.unmapped > 0));
	nm_verbs_regs_check(s->regs);
	nm_verbs_regs_close(s->regs);
	munmap(s->area, BYTES);
}

TEST(every_byte_arrives_in_the_memory_that_is_there)
{
	struct side a = { 0 }, b = { 0 };

	ends_load();
	ends_open(&a.end, &b.end);
	side_open(&a);
	side_open(&b);
	for (unsigned i = 0; i < ROUNDS; i++)
		one_round(&a, &b, i);
	side_close(&a);
	side_close(&b);
	ends_close(&a.end, &b.end);
}
