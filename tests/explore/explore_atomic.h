/*
 * The accessors of <base/atomic.h> as the explorer gives them: each is a step
 * of the calling thread. Values travel as 64 bits, so T is an integer, an enum
 * or a pointer.
 */
#ifndef TESTS_EXPLORE_ATOMIC_H
#define TESTS_EXPLORE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where an accessor stands and what it is called there. */
struct explore_site {
	const char *what;
	const char *expr;
	const char *file;
	int line;
};

enum explore_rmw {
	EXPLORE_XCHG,
	EXPLORE_ADD,
	EXPLORE_SUB,
	EXPLORE_OR,
	EXPLORE_AND,
};

uint64_t explore_load(const void *word, size_t size, memory_order o,
		      const struct explore_site *s);
void explore_store(void *word, size_t size, uint64_t v, memory_order o,
		   const struct explore_site *s);
uint64_t explore_rmw(void *word, size_t size, enum explore_rmw op, uint64_t v,
		     memory_order o, const struct explore_site *s);
bool explore_cas(void *word, size_t size, uint64_t *expected, uint64_t v,
		 memory_order o, memory_order fail, bool weak,
		 const struct explore_site *s);
void explore_relax(void);

/* Is it the access with this number that is to be weaker (mutate.py)? */
bool explore_mutant(int number);

/* The processor's header is not included; this is its part. */
void *explore_tls_word(void);

static inline void cpu_relax(void)
{
	explore_relax();
}

/* Each look is long after the last. */
static const uint64_t CPU_TICKS_FEW;

static inline uint64_t cpu_ticks(void)
{
	return 0;
}

#define cpu_word_is(a, v) (load_light(a) == (v))

static inline void *cpu_tls_word(void)
{
	return explore_tls_word();
}

enum { CPU_TLS_PINS = 16, CPU_TLS_HANDLER = 24 };

/* No tick comes. */
static inline void cpu_tls_pin(int n)
{
	(void)n;
}

static inline bool cpu_tls_in_handler(void)
{
	return false;
}

/* clang-format off */
#define explore_type_(a) __typeof__((void)0, (a)->raw)

#define explore_site_(what, a)                                                 \
	({                                                                     \
		static const struct explore_site site_ = { what, #a, __FILE__, \
							   __LINE__ };         \
		&site_;                                                        \
	})

#define explore_rmw_(what, a, op, v, o)                                        \
	({                                                                     \
		__typeof__(a) a_ = (a);                                        \
		(explore_type_(a_))explore_rmw(                                \
			(void *)a_, sizeof(a_->raw), op,                       \
			(uint64_t)(explore_type_(a_))(v), o,                   \
			explore_site_(what, a));                               \
	})

#define explore_cas_(what, a, e, v, o, f, weak)                                \
	({                                                                     \
		__typeof__(a) a_ = (a);                                        \
		__typeof__(e) e_ = (e);                                        \
		uint64_t old_ = (uint64_t)*e_;                                 \
		bool done_ = explore_cas(                                      \
			(void *)a_, sizeof(a_->raw), &old_,                    \
			(uint64_t)(explore_type_(a_))(v), o, f, weak,          \
			explore_site_(what, a));                               \
		if (!done_)                                                    \
			*e_ = (explore_type_(a_))old_;                         \
		done_;                                                         \
	})

#define base_load_(a, o)                                                       \
	({                                                                     \
		__typeof__(a) a_ = (a);                                        \
		(explore_type_(a_))explore_load((const void *)a_,              \
						sizeof(a_->raw), o,            \
						explore_site_("load", a));     \
	})
#define base_store_(a, v, o)                                                   \
	({                                                                     \
		__typeof__(a) a_ = (a);                                        \
		explore_store((void *)a_, sizeof(a_->raw),                     \
			      (uint64_t)(explore_type_(a_))(v), o,             \
			      explore_site_("store", a));                      \
	})
#define base_xchg_(a, v, o) explore_rmw_("xchg", a, EXPLORE_XCHG, v, o)
#define base_cas_(a, e, v, o, f) explore_cas_("cas", a, e, v, o, f, false)
#define base_casw_(a, e, v, o, f) explore_cas_("cas_weak", a, e, v, o, f, true)
#define base_add_(a, v, o) explore_rmw_("fetch_add", a, EXPLORE_ADD, v, o)
#define base_sub_(a, v, o) explore_rmw_("fetch_sub", a, EXPLORE_SUB, v, o)
#define base_or_(a, v, o) explore_rmw_("fetch_or", a, EXPLORE_OR, v, o)
#define base_and_(a, v, o) explore_rmw_("fetch_and", a, EXPLORE_AND, v, o)
/* clang-format on */

#endif
