/*
 * What the compiler offers beyond C11, under names that say why it is used.
 */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Two writers never share this many bytes: the line and its prefetch twin. */
#define BASE_CACHE_LINE 64
#define BASE_CACHE_PAIR 128

#define BASE_ALIGNED(n)   __attribute__((aligned(n)))
#define BASE_NOINLINE     __attribute__((noinline))
#define BASE_INLINE       static inline __attribute__((always_inline))
#define BASE_COLD         __attribute__((cold, noinline))
#define BASE_NORETURN     __attribute__((noreturn))
#define BASE_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define BASE_MAY_ALIAS    __attribute__((may_alias))
#define BASE_UNUSED       __attribute__((unused))
#define BASE_USED         __attribute__((used)) /* by what is not C */
#define BASE_NO_ASAN      __attribute__((no_sanitize("address", "undefined")))

/* gcc would move what such a function reads to its callers. */
#ifdef __clang__
#define BASE_NO_TSAN __attribute__((no_sanitize("thread")))
#else
#define BASE_NO_TSAN __attribute__((no_sanitize("thread"), noipa))
#endif

/* Symbols are hidden unless they say this; it stands on definitions. */
#define BASE_PUBLIC __attribute__((visibility("default")))
/*
 * A variable of the same library: reached without its table of addresses, for
 * which -fvisibility=hidden is not enough where it is only declared.
 */
#define BASE_HIDDEN __attribute__((visibility("hidden")))

/* For what the compiler cannot know: x, which has no side effects, is true. */
#define base_assume(x)                                                         \
	do {                                                                   \
		if (!(x))                                                      \
			__builtin_unreachable();                               \
	} while (0)

/* The struct that holds this member; a null pointer is not allowed. */
#define container_of(ptr, type, member)                                        \
	((type *)((char *)(ptr)-offsetof(type, member)))

#define BASE_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* gcc 12 has no __has_feature. */
#ifdef __has_feature
#define BASE_HAS_FEATURE(x) __has_feature(x)
#else
#define BASE_HAS_FEATURE(x) 0
#endif

#if defined __SANITIZE_ADDRESS__ || BASE_HAS_FEATURE(address_sanitizer)
#define BASE_ASAN 1
#else
#define BASE_ASAN 0
#endif

/* The explorer takes TSan's instrumentation, but is another runtime. */
#if !defined BASE_EXPLORE &&                                                   \
	(defined __SANITIZE_THREAD__ || BASE_HAS_FEATURE(thread_sanitizer))
#define BASE_TSAN 1
#else
#define BASE_TSAN 0
#endif

#endif
