/*
 * Datatypes against a plain reference: a random type is built by the library's
 * constructors and, beside it, as the list of its basic elements.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bodies.h"
#include "datatype/build.h"
#include "datatype/type.h"

#include "../../check.h"

#define MOST 600 /* basic elements of a type */

/* One basic element of a type map. */
struct element {
	long disp;
	int size;
};

struct model {
	int n;
	struct element e[MOST];
	long lb, ub;
	int align;
	bool is_bounded; /* by resized */
};

static long number(long below)
{
	return (long)(check_random() % (uint64_t)below);
}

static long extent(const struct model *m)
{
	return m->ub - m->lb;
}

/* Append `count` copies of `of`, the first at disp. */
static bool model_add(struct model *m, const struct model *of, long disp,
		      long count, bool *first)
{
	long at, lb, ub;

	if (m->n + of->n * count > MOST)
		return false;
	for (long i = 0; i < count; i++) {
		at = disp + i * extent(of);
		lb = at + of->lb;
		ub = at + of->ub;
		for (int k = 0; k < of->n; k++) {
			m->e[m->n] = of->e[k];
			m->e[m->n++].disp += at;
		}
		if (*first || (of->is_bounded && !m->is_bounded)) {
			m->lb = lb;
			m->ub = ub;
		} else if (of->is_bounded == m->is_bounded) {
			m->lb = lb < m->lb ? lb : m->lb;
			m->ub = ub > m->ub ? ub : m->ub;
		}
		m->is_bounded |= of->is_bounded;
		m->align = of->align > m->align ? of->align : m->align;
		*first = false;
	}
	return true;
}

static const struct {
	MPI_Datatype type;
	int size;
} basics[] = {
	{ MPI_CHAR, 1 },   { MPI_SHORT, 2 },        { MPI_INT, 4 },
	{ MPI_DOUBLE, 8 }, { MPI_LONG_DOUBLE, 16 }, { MPI_C_BOOL, 1 },
};

static MPI_Datatype random_type(int depth, struct model *m);

static MPI_Datatype random_basic(struct model *m)
{
	long i = number(BASE_ARRAY_LEN(basics));

	*m = (struct model){ .n = 1, .align = basics[i].size };
	m->e[0].size = basics[i].size;
	m->ub = basics[i].size;
	return basics[i].type;
}

static bool random_vector(MPI_Datatype old, const struct model *of,
			  struct model *m, MPI_Datatype *out)
{
	long n = number(5), block = number(4), stride = number(9) - 2;
	bool first = true, in_bytes = number(2);
	long bytes = in_bytes ? stride * 3 : stride * extent(of);

	for (long i = 0; i < n; i++)
		if (!model_add(m, of, i * bytes, block, &first))
			return false;
	if (in_bytes)
		CHECK_INT(madmpi_type_create_hvector(n, block, bytes, old, out,
						     false),
			  0);
	else
		CHECK_INT(madmpi_type_vector(n, block, stride, old, out, false),
			  0);
	return true;
}

static bool random_indexed(MPI_Datatype old, const struct model *of,
			   struct model *m, MPI_Datatype *out)
{
	int blocks[16], displs[16], n = (int)number(number(2) ? 5 : 17);
	MPI_Count bytes[16];
	bool first = true, in_bytes = number(2), alike = number(2);

	for (int i = 0; i < n; i++) {
		blocks[i] = alike ? 1 : (int)number(4);
		displs[i] = (int)number(12) - 3 + (alike ? 5 * i : 0);
		bytes[i] = displs[i] * 5;
		if (!model_add(m, of,
			       in_bytes ? bytes[i] : displs[i] * extent(of),
			       blocks[i], &first))
			return false;
	}
	if (in_bytes)
		CHECK_INT(madmpi_type_create_hindexed(n,
						      madmpi_array_int(blocks),
						      bytes, old, out, false),
			  0);
	else
		CHECK_INT(madmpi_type_indexed(n, madmpi_array_int(blocks),
					      madmpi_array_int(displs), old,
					      out, false),
			  0);
	return true;
}

static bool random_struct(int depth, struct model *m, MPI_Datatype *out)
{
	static struct model part[8];
	MPI_Count blocks[3], displs[3];
	MPI_Datatype types[3];
	int n = 1 + (int)number(3), made = 0;
	bool first = true, good = true;
	long over;

	for (; made < n && good; made++) {
		types[made] = random_type(depth - 1, &part[depth]);
		blocks[made] = number(3);
		displs[made] = number(60);
		good = model_add(m, &part[depth], displs[made], blocks[made],
				 &first);
	}
	if (good)
		CHECK_INT(madmpi_type_create_struct(n,
						    madmpi_array_count(blocks),
						    displs, types, out, false),
			  0);
	over = extent(m) % m->align;
	if (over > 0 && !m->is_bounded)
		m->ub += m->align - over;
	for (int i = 0; i < made; i++)
		if (!madmpi_handle_is_constant(types[i]))
			madmpi_type_free(&types[i]);
	return good;
}

/* A type of at most this depth; types without data happen too. */
static MPI_Datatype random_type(int depth, struct model *m)
{
	struct model *of = malloc(sizeof(*of));
	MPI_Datatype old, made = MPI_DATATYPE_NULL;
	bool first = true, good = true;
	long count;

	if (depth == 0) {
		free(of);
		return random_basic(m);
	}
	memset(m, 0, sizeof(*m));
	m->align = 1;
	old = random_type(depth - 1, of);
	switch (number(5)) {
	case 0:
		count = number(5);
		good = model_add(m, of, 0, count, &first);
		if (good)
			CHECK_INT(madmpi_type_contiguous(count, old, &made,
							 false),
				  0);
		break;
	case 1:
		good = random_vector(old, of, m, &made);
		break;
	case 2:
		good = random_indexed(old, of, m, &made);
		break;
	case 3:
		good = random_struct(depth, m, &made);
		break;
	case 4:
		*m = *of;
		m->lb = number(20) - 10;
		m->ub = m->lb + number(40);
		m->is_bounded = true;
		CHECK_INT(madmpi_type_create_resized(old, m->lb, extent(m),
						     &made, false),
			  0);
		break;
	}
	if (!madmpi_handle_is_constant(old))
		madmpi_type_free(&old);
	free(of);
	return good ? made : random_type(depth, m);
}

/* A buffer with a guard of its own size around what the type may touch. */
struct arena {
	unsigned char *memory;
	size_t bytes;
	unsigned char *base;
};

static struct arena arena_new(const struct model *m, long count)
{
	struct arena a;
	long low = 0, high = 0;

	for (long i = 0; i < count; i++)
		for (int k = 0; k < m->n; k++) {
			long at = i * extent(m) + m->e[k].disp;

			low = at < low ? at : low;
			at += m->e[k].size;
			high = at > high ? at : high;
		}
	a.bytes = (size_t)(high - low) + 128;
	a.memory = malloc(a.bytes);
	a.base = a.memory + 64 - low;
	for (size_t i = 0; i < a.bytes; i++)
		a.memory[i] = (unsigned char)check_random();
	return a;
}

static size_t model_pack(const struct model *m, long count,
			 const unsigned char *base, unsigned char *to)
{
	size_t n = 0;

	for (long i = 0; i < count; i++)
		for (int k = 0; k < m->n; k++) {
			memcpy(to + n, base + i * extent(m) + m->e[k].disp,
			       (size_t)m->e[k].size);
			n += (size_t)m->e[k].size;
		}
	return n;
}

static void model_unpack(const struct model *m, long count, unsigned char *base,
			 const unsigned char *from)
{
	for (long i = 0; i < count; i++)
		for (int k = 0; k < m->n; k++) {
			memcpy(base + i * extent(m) + m->e[k].disp, from,
			       (size_t)m->e[k].size);
			from += m->e[k].size;
		}
}

struct collected {
	unsigned char *at;
};

static int collect(void *arg, void *piece, size_t bytes)
{
	struct collected *c = arg;

	memcpy(c->at, piece, bytes);
	c->at += bytes;
	return 0;
}

#define ROUNDS 400
#define ROOM   (4 * MOST * 16)

static struct model m;
static unsigned char want[ROOM], got[ROOM];

static void end(MPI_Datatype handle)
{
	if (!madmpi_handle_is_constant(handle))
		CHECK_INT(madmpi_type_free(&handle), 0);
}

TEST(bounds_and_size_follow_from_the_type_map)
{
	MPI_Datatype handle;
	MPI_Count lb, x, size;

	madmpi_type_init();
	for (int round = 0; round < ROUNDS; round++) {
		handle = random_type((int)number(5), &m);
		long bytes = 0;

		for (int k = 0; k < m.n; k++)
			bytes += m.e[k].size;
		CHECK_INT(madmpi_type_size(handle, &size), 0);
		CHECK_INT(size, bytes);
		CHECK_INT(madmpi_type_get_extent(handle, &lb, &x), 0);
		CHECK_INT(lb, m.lb);
		CHECK_INT(x, extent(&m));
		CHECK_INT(madmpi_type_of(handle)->elements, m.n);
		end(handle);
	}
	madmpi_type_exit();
}

TEST(packed_bytes_are_those_of_the_type_map_in_its_order)
{
	madmpi_type_init();
	for (int round = 0; round < ROUNDS; round++) {
		MPI_Datatype handle = random_type((int)number(5), &m);
		struct madmpi_type *t = madmpi_type_of(handle);
		long count = number(4);
		struct arena a = arena_new(&m, count);
		size_t n = model_pack(&m, count, a.base, want);

		madmpi_pack_bytes(a.base, count, t, got);
		CHECK_INT(t->size * count, n);
		CHECK(memcmp(got, want, n) == 0);
		free(a.memory);
		end(handle);
	}
	madmpi_type_exit();
}

/* Other data, into `copy` by the model and into the arena in random parts. */
static void unpack_in_parts(unsigned char *base, long count,
			    struct madmpi_type *t, const struct model *of,
			    unsigned char *copy, const struct arena *a)
{
	struct madmpi_layout l;
	struct nm_data d = madmpi_layout_data(&l, base, count, t);
	size_t at = 0, part;

	for (size_t i = 0; i < ROOM; i++)
		want[i] = (unsigned char)check_random();
	model_unpack(of, count, copy + (a->base - a->memory), want);
	for (; at < d.length; at += part) {
		part = 1 + (size_t)number((long)(d.length - at));
		nm_data_copy_in(&d, at, want + at, part);
	}
}

TEST(unpacking_touches_the_elements_and_nothing_else)
{
	madmpi_type_init();
	for (int round = 0; round < ROUNDS; round++) {
		MPI_Datatype handle = random_type((int)number(5), &m);
		struct madmpi_type *t = madmpi_type_of(handle);
		long count = number(4);
		struct arena a = arena_new(&m, count);
		unsigned char *copy = malloc(a.bytes);

		memcpy(copy, a.memory, a.bytes);
		for (size_t i = 0; i < ROOM; i++)
			want[i] = (unsigned char)check_random();
		model_unpack(&m, count, copy + (a.base - a.memory), want);
		madmpi_unpack_bytes(want, a.base, count, t);
		CHECK(memcmp(a.memory, copy, a.bytes) == 0);
		unpack_in_parts(a.base, count, t, &m, copy, &a);
		CHECK(memcmp(a.memory, copy, a.bytes) == 0);
		free(copy);
		free(a.memory);
		end(handle);
	}
	madmpi_type_exit();
}

TEST(a_walk_may_begin_and_end_at_any_byte)
{
	madmpi_type_init();
	for (int round = 0; round < ROUNDS; round++) {
		MPI_Datatype handle = random_type((int)number(5), &m);
		struct madmpi_type *t = madmpi_type_of(handle);
		long count = number(4);
		struct arena a = arena_new(&m, count);
		long n = (long)model_pack(&m, count, a.base, want);
		struct madmpi_layout l;
		struct nm_data d = madmpi_layout_data(&l, a.base, count, t);

		CHECK_INT(d.length, n);
		for (int i = 0; i < 8 && n > 0; i++) {
			long from = number(n), bytes = number(n - from) + 1;
			struct collected c = { got };

			if (!madmpi_data_is_walked(&d))
				memcpy(got, (char *)d.base + from,
				       (size_t)bytes);
			else
				d.walker->walk(d.what, (size_t)from,
					       (size_t)bytes, collect, &c);
			CHECK(memcmp(got, want + from, (size_t)bytes) == 0);
			memset(got, 0, (size_t)bytes);
			nm_data_copy_out(&d, (size_t)from, got, (size_t)bytes);
			CHECK(memcmp(got, want + from, (size_t)bytes) == 0);
		}
		free(a.memory);
		end(handle);
	}
	madmpi_type_exit();
}

TEST(elements_of_a_part_end_where_basic_elements_end)
{
	madmpi_type_init();
	for (int round = 0; round < ROUNDS; round++) {
		MPI_Datatype handle = random_type((int)number(5), &m);
		struct madmpi_type *t = madmpi_type_of(handle);
		MPI_Count back;
		long bytes = 0;

		for (int k = 0; k < m.n; k++) {
			CHECK_INT(madmpi_type_elements(t, bytes), k);
			CHECK_INT(madmpi_type_bytes_of_elements(t, k, &back),
				  0);
			CHECK_INT(back, bytes);
			if (m.e[k].size > 1)
				CHECK_INT(madmpi_type_elements(t, bytes + 1),
					  -1);
			bytes += m.e[k].size;
		}
		CHECK_INT(madmpi_type_elements(t, 2 * bytes), 2 * m.n);
		end(handle);
	}
	madmpi_type_exit();
}

TEST(contiguous_data_travel_as_one_piece)
{
	MPI_Datatype row, matrix, column;
	struct madmpi_layout l;
	struct nm_data d;
	char buf[1000];

	madmpi_type_init();
	CHECK_INT(madmpi_type_contiguous(10, MPI_INT, &row, false), 0);
	CHECK_INT(madmpi_type_vector(5, 1, 1, row, &matrix, false), 0);
	d = madmpi_layout_data(&l, buf, 3, madmpi_type_of(matrix));
	CHECK_INT(d.kind, NM_DATA_FLAT);
	CHECK_INT(d.length, 600);
	CHECK_INT(madmpi_type_vector(5, 1, 10, MPI_INT, &column, false), 0);
	d = madmpi_layout_data(&l, buf, 1, madmpi_type_of(column));
	CHECK_INT(d.kind, NM_DATA_COPY);
	end(row);
	end(matrix);
	end(column);
	madmpi_type_exit();
}

TEST(a_freed_type_lives_as_long_as_types_made_of_it)
{
	MPI_Datatype inner, outer;
	int data[12] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, out[4];

	madmpi_type_init();
	CHECK_INT(madmpi_type_vector(2, 1, 2, MPI_INT, &inner, false), 0);
	CHECK_INT(madmpi_type_create_hvector(2, 1, 24, inner, &outer, false),
		  0);
	end(inner);
	madmpi_pack_bytes(data, 1, madmpi_type_of(outer), out);
	CHECK_INT(out[0], 0);
	CHECK_INT(out[1], 2);
	CHECK_INT(out[2], 6);
	CHECK_INT(out[3], 8);
	end(outer);
	CHECK(madmpi_type_of(outer) == NULL);
	madmpi_type_exit();
}

TEST(a_type_too_large_for_63_bits_is_refused)
{
	struct madmpi_type *t;
	MPI_Count bytes;

	madmpi_type_init();
	t = madmpi_type_of(MPI_DOUBLE);
	CHECK(madmpi_type_bytes(t, (MPI_Count)1 << 61, &bytes) < 0);
	CHECK_INT(madmpi_type_bytes(t, 1 << 20, &bytes), 0);
	CHECK_INT(bytes, 8 << 20);
	madmpi_type_exit();
}

TEST(a_type_that_nests_too_deep_is_refused)
{
	struct madmpi_type *t[MADMPI_TYPE_DEEPEST + 1], *more;
	struct madmpi_part parts[2] = { { .count = 1 },
					{ .disp = 1000, .count = 1 } };
	char from[2000] = { 0 }, to[2000];

	madmpi_type_init();
	t[0] = parts[1].type = madmpi_type_of(MPI_CHAR);
	for (int i = 1; i <= MADMPI_TYPE_DEEPEST; i++) {
		parts[0].type = t[i - 1];
		parts[1].disp = 2 * i;
		from[2 * i] = (char)i;
		CHECK_INT(madmpi_type_build(parts, 2, false, &t[i]), 0);
	}
	parts[0].type = t[MADMPI_TYPE_DEEPEST];
	CHECK_INT(madmpi_type_build(parts, 2, false, &more), -ELOOP);
	madmpi_pack_bytes(from, 1, t[MADMPI_TYPE_DEEPEST], to);
	for (int i = 0; i <= MADMPI_TYPE_DEEPEST; i++)
		CHECK_INT(to[i], (char)i);
	for (int i = 1; i <= MADMPI_TYPE_DEEPEST; i++)
		madmpi_type_put(t[i]);
	madmpi_type_exit();
}

TEST(copies_between_layouts_keep_the_order_of_the_data)
{
	MPI_Datatype a, b;
	int from[12], to[12];

	madmpi_type_init();
	for (int i = 0; i < 12; i++) {
		from[i] = i;
		to[i] = -1;
	}
	CHECK_INT(madmpi_type_vector(3, 2, 4, MPI_INT, &a, false), 0);
	CHECK_INT(madmpi_type_vector(6, 1, 2, MPI_INT, &b, false), 0);
	madmpi_copy_bytes(from, 1, madmpi_type_of(a), to, 1, madmpi_type_of(b));
	for (int i = 0; i < 6; i++) {
		CHECK_INT(to[2 * i], (i / 2) * 4 + i % 2);
		CHECK_INT(to[2 * i + 1], -1);
	}
	end(a);
	end(b);
	madmpi_type_exit();
}

/* How many objects hold each other, from this one on. */
static int chain(const struct madmpi_type *t)
{
	int n = 0;

	for (; t != NULL; t = t->original)
		n++;
	return n;
}

TEST(what_is_told_again_and_again_holds_the_first_only)
{
	MPI_Datatype row, type, told, dup;

	madmpi_type_init();
	CHECK_INT(madmpi_type_vector(2, 1, 2, MPI_INT, &row, false), 0);
	CHECK_INT(madmpi_type_contiguous(2, row, &type, false), 0);
	end(row);
	for (int i = 0; i < 10; i++) {
		CHECK_INT(madmpi_type_get_contents_c(type, 1, 0, 0, 1,
						     (int[1]){ 0 }, NULL, NULL,
						     &told),
			  0);
		end(type);
		CHECK_INT(chain(madmpi_type_of(told)), 2);
		CHECK_INT(madmpi_type_contiguous(2, told, &type, false), 0);
		end(told);
	}
	CHECK_INT(madmpi_type_dup(type, &dup), 0);
	CHECK_INT(madmpi_type_dup(dup, &told), 0);
	CHECK_INT(chain(madmpi_type_of(told)), 2);
	CHECK_INT(madmpi_type_of(told)->depth, madmpi_type_of(dup)->depth);
	end(dup);
	CHECK(madmpi_type_of(dup) == NULL);
	end(told);
	end(type);
	madmpi_type_exit();
}

/* { int, double } with a gap between. */
static MPI_Datatype new_struct(void)
{
	MPI_Count blocks[] = { 1, 1 }, displs[] = { 0, 8 };
	MPI_Datatype types[] = { MPI_INT, MPI_DOUBLE }, made;

	CHECK_INT(madmpi_type_create_struct(2, madmpi_array_count(blocks),
					    displs, types, &made, false),
		  0);
	return made;
}

/* One loop of n over the two blocks, whatever the type was made with. */
static void check_loop(MPI_Datatype handle, MPI_Count count, MPI_Count n)
{
	const struct madmpi_type *t = madmpi_type_of(handle);
	struct madmpi_step s = madmpi_type_step(t, 0, count);

	CHECK_INT(s.count, n);
	CHECK_INT(s.nbody, 2);
	CHECK_INT(s.size, 12);
	CHECK(s.body != NULL && s.body->body == NULL);
}

TEST(types_of_several_blocks_repeat_without_a_loop_of_one)
{
	int sizes[] = { 7, 9 }, sub[] = { 3, 1 }, starts[] = { 1, 2 };
	MPI_Datatype pair, t, row;

	madmpi_type_init();
	pair = new_struct();
	check_loop(pair, 5, 5);
	CHECK_INT(madmpi_type_vector(6, 1, 2, pair, &t, false), 0);
	check_loop(t, 1, 6);
	end(t);
	CHECK_INT(madmpi_type_create_hvector(6, 1, 100, pair, &t, false), 0);
	check_loop(t, 1, 6);
	end(t);
	CHECK_INT(madmpi_type_create_subarray(2, madmpi_array_int(sizes),
					      madmpi_array_int(sub),
					      madmpi_array_int(starts),
					      MPI_ORDER_C, pair, &t, false),
		  0);
	check_loop(t, 1, 3);
	end(t);
	CHECK_INT(madmpi_type_create_resized(pair, 0, 32, &t, false), 0);
	check_loop(t, 5, 5);
	end(t);
	CHECK_INT(madmpi_type_contiguous(4, pair, &row, false), 0);
	CHECK_INT(madmpi_type_vector(3, 1, 1, row, &t, false), 0);
	check_loop(t, 2, 24);
	end(t);
	end(row);
	end(pair);
	madmpi_type_exit();
}

TEST(bounds_of_the_data_are_checked_like_those_of_the_type)
{
	const MPI_Count far = (MPI_Count)1 << 62;
	MPI_Count one = 1, at = far;
	struct madmpi_part p = { far, 1, NULL };
	struct madmpi_type *type;
	MPI_Datatype t, away;

	madmpi_type_init();
	CHECK_INT(madmpi_type_create_hindexed(1, madmpi_array_count(&one), &at,
					      MPI_INT, &away, false),
		  0);
	CHECK_INT(madmpi_type_create_resized(away, 0, 4, &t, false), 0);
	end(away);
	p.type = madmpi_type_of(t);
	CHECK_INT(madmpi_type_build(&p, 1, false, &type), -EOVERFLOW);
	CHECK_INT(madmpi_type_build_vector(2, 1, far, p.type, &type),
		  -EOVERFLOW);
	CHECK_INT(madmpi_type_build_vector(2, 1, -far, p.type, &type), 0);
	CHECK_INT(type->true_lb, 0);
	CHECK_INT(type->true_ub, far + 4);
	madmpi_type_put(type);
	end(t);
	/* Regular, and too wide to go on. */
	CHECK_INT(madmpi_type_create_hvector(2, 1, far, MPI_CHAR, &away, false),
		  0);
	CHECK_INT(madmpi_type_create_resized(away, 0, 1, &t, false), 0);
	end(away);
	CHECK_INT(madmpi_type_contiguous(2, t, &away, false), 0);
	CHECK_INT(madmpi_type_of(away)->true_ub, far + 2);
	CHECK_INT(madmpi_type_of(away)->steps->count, 2);
	end(t);
	end(away);
	madmpi_type_exit();
}

TEST(a_struct_at_the_end_of_all_addresses_has_no_room_for_its_padding)
{
	struct madmpi_part parts[] = { { INT64_MAX - 23, 1, NULL },
				       { INT64_MAX - 15, 1, NULL } };
	struct madmpi_type *t;

	madmpi_type_init();
	parts[0].type = madmpi_type_of(MPI_DOUBLE);
	parts[1].type = madmpi_type_of(MPI_CHAR);
	CHECK_INT(madmpi_type_build(parts, 2, true, &t), 0);
	CHECK_INT(t->ub, INT64_MAX - 7);
	madmpi_type_put(t);
	parts[0].disp += 8;
	parts[1].disp += 8;
	CHECK_INT(madmpi_type_build(parts, 2, false, &t), 0);
	CHECK_INT(t->ub, INT64_MAX - 6);
	madmpi_type_put(t);
	CHECK_INT(madmpi_type_build(parts, 2, true, &t), -EOVERFLOW);
	madmpi_type_exit();
}
