/*
 * See landing.h. The table, as gcc and clang write it:
 *
 *	encoding of the landing pads' base	OMIT: the function's begin
 *	encoding of types			OMIT, or then where they end
 *	encoding of call sites			ULEB128 or UDATA4
 *	bytes of call sites
 *	  begin, bytes, landing pad or 0, action (ULEB128)	in order
 *	actions
 *	  filter (SLEB128), distance of the next from here or 0 (SLEB128)
 *	types, the first one last; what a filter > 0 counts
 *
 * Action 0 only runs destructors; others are their place + 1. The type of
 * catch (...) is 0. That is also how clang writes noexcept.
 */
#include "landing.h"

#include <string.h>

#include <base/compiler.h>

enum {
	ABSPTR = 0,
	ULEB128 = 1,
	UDATA4 = 3,
	SDATA4 = 11,
	SDATA8 = 12,
	OMIT = 255,
};

static uint64_t get_uleb128(const uint8_t **p)
{
	uint64_t v = 0;
	uint8_t byte;

	for (unsigned shift = 0;; shift += 7) {
		byte = *(*p)++;
		if (shift < 64)
			v |= (uint64_t)(byte & 127) << shift;
		if (!(byte & 128))
			return v;
	}
}

static int64_t get_sleb128(const uint8_t **p)
{
	const uint8_t *begin = *p;
	uint64_t v = get_uleb128(p);
	unsigned bits = 7 * (unsigned)(*p - begin);

	if (bits < 64 && ((*p)[-1] & 64))
		v |= ~(uint64_t)0 << bits;
	return (int64_t)v;
}

static uint64_t get(const uint8_t **p, uint8_t encoding)
{
	uint32_t v;

	if (encoding == ULEB128)
		return get_uleb128(p);
	memcpy(&v, *p, sizeof(v));
	*p += sizeof(v);
	return v;
}

/* What types end, if there are any. */
struct types {
	const uint8_t *end;
	uint8_t encoding;
};

/* Whether the type of this filter is not the one of catch (...). */
static bool is_narrow(const struct types *t, uint64_t filter)
{
	static const uint8_t zeros[8];
	size_t bytes;

	switch (t->encoding & 15) {
	case UDATA4:
	case SDATA4:
		bytes = 4;
		break;
	case ABSPTR:
	case SDATA8:
		bytes = 8;
		break;
	default:
		return false;
	}
	return t->encoding != OMIT &&
	       memcmp(t->end - filter * bytes, zeros, bytes) != 0;
}

/* Only destructors and catches of some types: not what keeps or ends all. */
static bool throws_on(const struct types *t, const uint8_t *actions,
		      uint64_t action)
{
	const uint8_t *p = actions + action - 1, *here;
	int64_t filter, next;

	if (action == 0)
		return true;
	for (;;) {
		filter = get_sleb128(&p);
		here = p;
		next = get_sleb128(&p);
		if (filter < 0 ||
		    (filter > 0 && !is_narrow(t, (uint64_t)filter)))
			return false;
		if (next == 0)
			return true;
		p = here + next;
	}
}

bool os_landing_passes(const void *lsda, uintptr_t offset, bool exact)
{
	const uint8_t *p = lsda, *end;
	struct types types = { 0 };
	uint64_t bytes, action;
	uint8_t encoding;

	if (p == NULL)
		return true;
	if (*p++ != OMIT)
		return false;
	types.encoding = *p++;
	if (types.encoding != OMIT) {
		bytes = get_uleb128(&p);
		types.end = p + bytes;
	}
	encoding = *p++;
	if (encoding != ULEB128 && encoding != UDATA4)
		return false;
	bytes = get_uleb128(&p);
	end = p + bytes;
	while (p < end) {
		uint64_t begin = get(&p, encoding), pad;

		bytes = get(&p, encoding);
		pad = get(&p, encoding);
		action = get_uleb128(&p);
		if (offset - begin < bytes)
			return pad == 0 ||
			       (!exact && throws_on(&types, end, action));
	}
	return false;
}
