/*
 * Running the program of a type to copy: no call for a block, and blocks of
 * usual sizes are moved by the loads and stores of their size.
 *
 * All is written once, for both directions, and compiled for each: `in` is a
 * constant in whatever is inlined. At the two ends of a copy, where only a part
 * of something is wanted, a cursor counts the bytes; whatever is whole between
 * them has its place on the other side by the program itself.
 */
#include "datatype/copy.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* Where a copy is: bytes to pass over, bytes to move, and the other side. */
struct cursor {
	MPI_Count skip;
	MPI_Count left;
	char *flat;
};

INLINE void move(char *user, char *flat, size_t bytes, bool in)
{
	if (in)
		memcpy(user, flat, bytes);
	else
		memcpy(flat, user, bytes);
}

/*
 * n blocks whose size is known to the compiler, `stride` bytes apart in the
 * layout and `gap` on the other side. Four at a time.
 */
INLINE void move_fixed(char *user, MPI_Aint stride, MPI_Count n, char *flat,
		       MPI_Aint gap, size_t size, bool in)
{
	for (; n >= 4; n -= 4, user += 4 * stride, flat += 4 * gap) {
		move(user, flat, size, in);
		move(user + stride, flat + gap, size, in);
		move(user + 2 * stride, flat + 2 * gap, size, in);
		move(user + 3 * stride, flat + 3 * gap, size, in);
	}
	for (; n > 0; n--, user += stride, flat += gap)
		move(user, flat, size, in);
}

/* clang-format off */
#define SIZES(X) X(1) X(2) X(4) X(8) X(12) X(16) X(24) X(32)
/* clang-format on */

/* n whole blocks, without gaps on the other side. */
INLINE void move_blocks(char *user, MPI_Aint stride, MPI_Count n, char *flat,
			size_t size, bool in)
{
	switch (size) {
#define CASE(size)                                                             \
	case size:                                                             \
		move_fixed(user, stride, n, flat, size, size, in);             \
		return;
		SIZES(CASE)
#undef CASE
	}
	for (; n > 0; n--, user += stride, flat += size)
		move(user, flat, size, in);
}

/* n whole blocks, each at a place of its own. */
INLINE void move_fixed_listed(char *user, const MPI_Aint *places, MPI_Count n,
			      char *flat, size_t size, bool in)
{
	for (; n >= 4; n -= 4, places += 4, flat += 4 * size) {
		move(user + places[0], flat, size, in);
		move(user + places[1], flat + size, size, in);
		move(user + places[2], flat + 2 * size, size, in);
		move(user + places[3], flat + 3 * size, size, in);
	}
	for (; n > 0; n--, places++, flat += size)
		move(user + *places, flat, size, in);
}

INLINE void move_listed(char *user, const MPI_Aint *places, MPI_Count n,
			char *flat, size_t size, bool in)
{
	switch (size) {
#define CASE(size)                                                             \
	case size:                                                             \
		move_fixed_listed(user, places, n, flat, size, in);            \
		return;
		SIZES(CASE)
#undef CASE
	}
	move_fixed_listed(user, places, n, flat, size, in);
}

/* One block, or two, as the steps of irregular types have them. */
INLINE void move_few(char *user, MPI_Aint stride, MPI_Count n, char *flat,
		     size_t size, bool in)
{
	switch (size) {
#define CASE(size)                                                             \
	case size:                                                             \
		move(user, flat, size, in);                                    \
		if (n == 2)                                                    \
			move(user + stride, flat + size, size, in);            \
		return;
		SIZES(CASE)
#undef CASE
	}
	move(user, flat, size, in);
	if (n == 2)
		move(user + stride, flat + size, size, in);
}

/* And with gaps. */
INLINE void move_spread(char *user, MPI_Aint stride, MPI_Count n, char *flat,
			MPI_Aint gap, size_t size, bool in)
{
	switch (size) {
#define CASE(size)                                                             \
	case size:                                                             \
		move_fixed(user, stride, n, flat, gap, size, in);              \
		return;
		SIZES(CASE)
#undef CASE
	}
	for (; n > 0; n--, user += stride, flat += gap)
		move(user, flat, size, in);
}

static void whole_in(const struct madmpi_step *s, uint32_t n, uintptr_t base,
		     char *flat);
static void whole_out(const struct madmpi_step *s, uint32_t n, uintptr_t base,
		      char *flat);

enum {
	FEW = 8,    /* blocks of a body that are taken one after the other */
	AHEAD = 64, /* repetitions of it that the caches are sure to hold */
};

/*
 * A few blocks, between which there are none of the next repetition: their
 * order may be changed, even where they overlap.
 */
static bool is_few_blocks(const struct madmpi_step *s, uint32_t n,
			  MPI_Aint stride)
{
	MPI_Aint low = s->disp, high = s->disp + s->size;

	if (n > FEW)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (s[i].body != NULL || s[i].count > 1)
			return false;
		low = s[i].disp < low ? s[i].disp : low;
		if (s[i].disp + s[i].size > high)
			high = s[i].disp + s[i].size;
	}
	return high - low <= (stride < 0 ? -stride : stride);
}

/*
 * n whole repetitions of a step, from number `first` on. Those of a few blocks,
 * such as structs, are moved block by block: the first of all of them, then the
 * second, ...
 */
INLINE void whole_step(const struct madmpi_step *s, uintptr_t base,
		       MPI_Count first, MPI_Count n, char *flat, bool in)
{
	const struct madmpi_step *b = s->body;
	uintptr_t at = base + (uintptr_t)(s->disp + first * s->stride);
	MPI_Count some;

	if (s->places != NULL) {
		move_listed((char *)(base + (uintptr_t)s->disp),
			    s->places + first, n, flat, (size_t)s->size, in);
	} else if (b == NULL) {
		move_blocks((char *)at, s->stride, n, flat, (size_t)s->size,
			    in);
	} else if (s->nbody == 1 && b->body == NULL && b->places == NULL) {
		for (; n > 0; n--, at += (uintptr_t)s->stride, flat += s->size)
			move_blocks((char *)(at + (uintptr_t)b->disp),
				    b->stride, b->count, flat, (size_t)b->size,
				    in);
	} else if (n > 1 && is_few_blocks(b, s->nbody, s->stride)) {
		for (; n > 0; n -= some) {
			some = n < AHEAD ? n : AHEAD;
			for (uint32_t i = 0; i < s->nbody; i++)
				move_spread((char *)(at + (uintptr_t)b[i].disp),
					    s->stride, some, flat + b[i].before,
					    s->size, (size_t)b[i].size, in);
			at += (uintptr_t)(some * s->stride);
			flat += some * s->size;
		}
	} else {
		for (; n > 0; n--, at += (uintptr_t)s->stride, flat += s->size)
			(in ? whole_in : whole_out)(b, s->nbody, at, flat);
	}
}

INLINE void whole_list(const struct madmpi_step *s, uint32_t n, uintptr_t base,
		       char *flat, bool in)
{
	for (; n > 0; n--, s++) {
		if (s->body == NULL && s->count <= 2)
			move_few((char *)(base + (uintptr_t)s->disp), s->stride,
				 s->count, flat + s->before, (size_t)s->size,
				 in);
		else
			whole_step(s, base, 0, s->count, flat + s->before, in);
	}
}

static void whole_in(const struct madmpi_step *s, uint32_t n, uintptr_t base,
		     char *flat)
{
	whole_list(s, n, base, flat, true);
}

static void whole_out(const struct madmpi_step *s, uint32_t n, uintptr_t base,
		      char *flat)
{
	whole_list(s, n, base, flat, false);
}

static void list_in(const struct madmpi_step *s, uint32_t n, uintptr_t base,
		    struct cursor *c);
static void list_out(const struct madmpi_step *s, uint32_t n, uintptr_t base,
		     struct cursor *c);

/* One repetition, of which only a part is wanted. */
INLINE void copy_part(const struct madmpi_step *s, uintptr_t at,
		      struct cursor *c, bool in)
{
	MPI_Count part = s->size - c->skip;

	if (s->body != NULL) {
		(in ? list_in : list_out)(s->body, s->nbody, at, c);
		return;
	}
	if (part > c->left)
		part = c->left;
	move((char *)(at + (uintptr_t)c->skip), c->flat, (size_t)part, in);
	c->flat += part;
	c->left -= part;
	c->skip = 0;
}

INLINE uintptr_t place_of(const struct madmpi_step *s, uintptr_t base,
			  MPI_Count i)
{
	MPI_Aint at = s->places != NULL ? s->places[i] : i * s->stride;

	return base + (uintptr_t)(s->disp + at);
}

/* Part of a repetition at the beginning, whole ones, part of one at the end. */
INLINE void copy_step(const struct madmpi_step *s, uintptr_t base,
		      struct cursor *c, bool in)
{
	MPI_Count i = 0, whole;

	if (unlikely(c->skip >= s->size)) {
		i = c->skip / s->size;
		c->skip -= i * s->size;
	}
	if (unlikely(c->skip > 0))
		copy_part(s, place_of(s, base, i++), c, in);
	whole = likely((s->count - i) * s->size <= c->left) ? s->count - i
							    : c->left / s->size;
	whole_step(s, base, i, whole, c->flat, in);
	c->flat += whole * s->size;
	c->left -= whole * s->size;
	i += whole;
	if (unlikely(i < s->count && c->left > 0))
		copy_part(s, place_of(s, base, i), c, in);
}

/* The rest of a step that is cut, all that are whole, the beginning of one. */
INLINE void copy_list(const struct madmpi_step *s, uint32_t n, uintptr_t base,
		      struct cursor *c, bool in)
{
	const struct madmpi_step *last = &s[n - 1];
	uint32_t i = 0, end = n;
	MPI_Count to;

	if (c->skip > 0) {
		i = madmpi_step_find(s, n, &c->skip);
		copy_step(&s[i++], base, c, in);
		if (i == n || c->left == 0)
			return;
	}
	to = s[i].before + c->left; /* where it ends, among these steps */
	if (to < last->before + last->count * last->size)
		end = madmpi_step_find(s, n, &to);
	to = (end < n ? s[end].before
		      : last->before + last->count * last->size) -
	     s[i].before;
	(in ? whole_in : whole_out)(&s[i], end - i, base,
				    c->flat - s[i].before);
	c->flat += to;
	c->left -= to;
	if (end < n && c->left > 0)
		copy_step(&s[end], base, c, in);
}

static void list_in(const struct madmpi_step *s, uint32_t n, uintptr_t base,
		    struct cursor *c)
{
	copy_list(s, n, base, c, true);
}

static void list_out(const struct madmpi_step *s, uint32_t n, uintptr_t base,
		     struct cursor *c)
{
	copy_list(s, n, base, c, false);
}

void madmpi_layout_copy(const void *what, size_t offset, size_t length,
			void *flat, bool in)
{
	const struct madmpi_layout *l = what;
	struct madmpi_step all = madmpi_type_step(l->type, 0, l->count);
	struct cursor c = { .skip = l->start + (MPI_Count)offset,
			    .left = (MPI_Count)length,
			    .flat = flat };

	if (length > 0)
		(in ? list_in : list_out)(&all, 1, l->base, &c);
}
