/*
 * Shared words. A field that two threads touch is an ATOMIC(T) and is touched
 * only by the accessors below, whose names carry the memory order, so that
 * `x->word++` does not compile. A release that pairs with an acquire has a
 * name, order(name), at both ends and in doc/memory-order.md.
 *
 * This is the only file of the libraries that says memory_order_*. The
 * explorer (tests/explore) compiles the same sources with BASE_EXPLORE and
 * gives its own accessors, which branch over every value that the memory model
 * allows a load to see.
 *
 * `a` is a pointer to the ATOMIC(T) field; `e` a pointer to a plain T.
 * cas_*: true if the word was *e and is now v; otherwise *e is what was seen.
 */
#ifndef BASE_ATOMIC_H
#define BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define ATOMIC(T)                                                              \
	struct {                                                               \
		_Atomic(T) raw;                                                \
	}

/* Static initialiser of an ATOMIC(T). */
#define ATOMIC_INIT(x)                                                         \
	{                                                                      \
		(x)                                                            \
	}

#ifdef BASE_EXPLORE
#include "explore_atomic.h"
#else
#define base_load_(a, o)     atomic_load_explicit(&(a)->raw, o)
#define base_store_(a, v, o) atomic_store_explicit(&(a)->raw, v, o)
#define base_xchg_(a, v, o)  atomic_exchange_explicit(&(a)->raw, v, o)
#define base_cas_(a, e, v, o, f)                                               \
	atomic_compare_exchange_strong_explicit(&(a)->raw, e, v, o, f)
#define base_casw_(a, e, v, o, f)                                              \
	atomic_compare_exchange_weak_explicit(&(a)->raw, e, v, o, f)
#define base_add_(a, v, o) atomic_fetch_add_explicit(&(a)->raw, v, o)
#define base_sub_(a, v, o) atomic_fetch_sub_explicit(&(a)->raw, v, o)
#define base_or_(a, v, o)  atomic_fetch_or_explicit(&(a)->raw, v, o)
#define base_and_(a, v, o) atomic_fetch_and_explicit(&(a)->raw, v, o)
#endif

#define load_relaxed(a) base_load_(a, memory_order_relaxed)
#define load_acquire(a) base_load_(a, memory_order_acquire)
#define load_seq(a)     base_load_(a, memory_order_seq_cst)

/*
 * seq_cst against code of the same kernel thread (a signal handler), and
 * against who has the kernel run a barrier on every CPU (os_barrier_all)
 * between a store and a load of its own: here no more than release and acquire,
 * and order for the compiler.
 */
#ifdef BASE_EXPLORE
#define load_light(a)     load_seq(a)
#define store_light(a, v) store_seq(a, v)
#else
#define load_light(a) load_acquire(a)
#define store_light(a, v)                                                      \
	do {                                                                   \
		__asm__ volatile("" ::: "memory");                             \
		store_release(a, v);                                           \
		__asm__ volatile("" ::: "memory");                             \
	} while (0)
#endif

/*
 * As a read-modify-write that changes nothing and releases, against one who has
 * the kernel run a barrier on every CPU between his read-modify-write of the
 * word and what he looks at next: here a load, and order for the compiler.
 */
#ifdef BASE_EXPLORE
#define load_newest_light(a) base_or_(a, 0, memory_order_release)
#else
#define load_newest_light(a)                                                   \
	({                                                                     \
		__asm__ volatile("" ::: "memory");                             \
		load_relaxed(a);                                               \
	})
#endif

#define store_relaxed(a, v) base_store_(a, v, memory_order_relaxed)
#define store_release(a, v) base_store_(a, v, memory_order_release)
/*
 * BASE_SEQ_FENCE: for qemu-user (7.2) on x86, where an LDAR may be done before
 * the STLR that precedes it, which no ARM does.
 */
#ifdef BASE_SEQ_FENCE
#define store_seq(a, v)                                                        \
	do {                                                                   \
		base_store_(a, v, memory_order_seq_cst);                       \
		atomic_thread_fence(memory_order_seq_cst);                     \
	} while (0)
#else
#define store_seq(a, v) base_store_(a, v, memory_order_seq_cst)
#endif

#define xchg_relaxed(a, v) base_xchg_(a, v, memory_order_relaxed)
#define xchg_acquire(a, v) base_xchg_(a, v, memory_order_acquire)
#define xchg_release(a, v) base_xchg_(a, v, memory_order_release)
#define xchg_acq_rel(a, v) base_xchg_(a, v, memory_order_acq_rel)
#define xchg_seq(a, v)     base_xchg_(a, v, memory_order_seq_cst)

/* On failure: relaxed after relaxed and release, else the acquiring half. */
#define cas_relaxed(a, e, v)                                                   \
	base_cas_(a, e, v, memory_order_relaxed, memory_order_relaxed)
#define cas_acquire(a, e, v)                                                   \
	base_cas_(a, e, v, memory_order_acquire, memory_order_acquire)
#define cas_release(a, e, v)                                                   \
	base_cas_(a, e, v, memory_order_release, memory_order_relaxed)
#define cas_acq_rel(a, e, v)                                                   \
	base_cas_(a, e, v, memory_order_acq_rel, memory_order_acquire)
#define cas_seq(a, e, v)                                                       \
	base_cas_(a, e, v, memory_order_seq_cst, memory_order_seq_cst)

/* May fail though the word was *e: for loops. */
#define cas_weak_relaxed(a, e, v)                                              \
	base_casw_(a, e, v, memory_order_relaxed, memory_order_relaxed)
#define cas_weak_acquire(a, e, v)                                              \
	base_casw_(a, e, v, memory_order_acquire, memory_order_acquire)
#define cas_weak_release(a, e, v)                                              \
	base_casw_(a, e, v, memory_order_release, memory_order_relaxed)
#define cas_weak_acq_rel(a, e, v)                                              \
	base_casw_(a, e, v, memory_order_acq_rel, memory_order_acquire)
#define cas_weak_seq(a, e, v)                                                  \
	base_casw_(a, e, v, memory_order_seq_cst, memory_order_seq_cst)

#define fetch_add_relaxed(a, v) base_add_(a, v, memory_order_relaxed)
#define fetch_add_acquire(a, v) base_add_(a, v, memory_order_acquire)
#define fetch_add_release(a, v) base_add_(a, v, memory_order_release)
#define fetch_add_acq_rel(a, v) base_add_(a, v, memory_order_acq_rel)
#define fetch_add_seq(a, v)     base_add_(a, v, memory_order_seq_cst)

#define fetch_sub_relaxed(a, v) base_sub_(a, v, memory_order_relaxed)
#define fetch_sub_acquire(a, v) base_sub_(a, v, memory_order_acquire)
#define fetch_sub_release(a, v) base_sub_(a, v, memory_order_release)
#define fetch_sub_acq_rel(a, v) base_sub_(a, v, memory_order_acq_rel)
#define fetch_sub_seq(a, v)     base_sub_(a, v, memory_order_seq_cst)

#define fetch_or_relaxed(a, v) base_or_(a, v, memory_order_relaxed)
#define fetch_or_acquire(a, v) base_or_(a, v, memory_order_acquire)
#define fetch_or_release(a, v) base_or_(a, v, memory_order_release)
#define fetch_or_acq_rel(a, v) base_or_(a, v, memory_order_acq_rel)
#define fetch_or_seq(a, v)     base_or_(a, v, memory_order_seq_cst)

#define fetch_and_relaxed(a, v) base_and_(a, v, memory_order_relaxed)
#define fetch_and_acquire(a, v) base_and_(a, v, memory_order_acquire)
#define fetch_and_release(a, v) base_and_(a, v, memory_order_release)
#define fetch_and_acq_rel(a, v) base_and_(a, v, memory_order_acq_rel)
#define fetch_and_seq(a, v)     base_and_(a, v, memory_order_seq_cst)

#endif
