/*
 * Registered memory: what the adapter may read and write. Registering costs a
 * system call that pins every page, so what has been registered is kept, by
 * address range, until it is unmapped (unmap.h) or others need the room.
 *
 * A registration has users: who found it or made it. It is taken back when its
 * range is unmapped, or when it is the one that was used longest ago and the
 * limit on pinned memory is reached, but never before its last user has let go
 * of it. One that cannot be kept is nobody else's, and taken back when he does.
 *
 * Taking back may sleep, so it is for nm_verbs_regs_clean(), and whoever makes
 * one.
 *
 * One instance for each protection domain.
 */
#ifndef NMAD_DRIVERS_VERBS_REG_H
#define NMAD_DRIVERS_VERBS_REG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib.h"

struct verbs_regs;

/* A registration in use; constant until it is put back. */
struct verbs_reg {
	uintptr_t begin, end; /* what it covers: whole pages */
	struct ibv_mr *mr;
};

/*
 * How to keep them. `limit`: bytes that may be pinned at once, in whole pages;
 * SIZE_MAX: whatever the kernel allows. `keep`: false: none is kept. `loud`:
 * say why, where none can be. wake(arg): there is something to clean; called
 * with a spinlock held, by any thread, where it must neither allocate, nor
 * wait, nor take a lock: a write to an eventfd.
 */
struct verbs_regs_how {
	size_t limit;
	bool keep, loud;
	void (*wake)(void *arg);
	void *arg;
};

/*
 * NULL: no memory. May allocate, as may close, which takes all registrations
 * back; their users do not put them back then. After hush() nobody is woken any
 * more.
 */
struct verbs_regs *nm_verbs_regs_open(struct ibv_pd *pd,
				      const struct verbs_regs_how *how);
void nm_verbs_regs_hush(struct verbs_regs *regs);
void nm_verbs_regs_close(struct verbs_regs *regs);

/*
 * One that covers [p, p + bytes), which becomes the caller's until he puts it
 * back; NULL: there is none that is known to be of the memory that is mapped
 * there now. Any thread; neither allocates nor takes a lock of libc's: a system
 * call or two.
 */
struct verbs_reg *nm_verbs_reg_find(struct verbs_regs *regs, const void *p,
				    size_t bytes);
void nm_verbs_reg_put(struct verbs_regs *regs, struct verbs_reg *reg);

/*
 * Find it or register it, for the caller as above. Only where one may sleep and
 * allocate (the clerk). NULL: the kernel refuses, or the limit is reached by
 * what is in use: *error is -errno. What may only be read is registered for
 * that.
 */
struct verbs_reg *nm_verbs_reg_make(struct verbs_regs *regs, const void *p,
				    size_t bytes, int *error);

/* Take back what nobody may use any more. Where one may sleep and allocate. */
void nm_verbs_regs_clean(struct verbs_regs *regs);

/* Ends the process if something is wrong. */
void nm_verbs_regs_check(struct verbs_regs *regs);

/* What there is and was, for statistics and tests. */
struct verbs_reg_counts {
	size_t pinned; /* bytes, now */
	unsigned kept; /* registrations, now */
	uint64_t found, made, unmapped, evicted, refused;
};
struct verbs_reg_counts nm_verbs_reg_counts(struct verbs_regs *regs);

#endif
