/*
 * Random types in messages: sent as one type, received as another one of the
 * same signature, in whole or in part. Beside each type stands the list of its
 * basic elements. All processes draw the same lots; each sends to the next.
 */
#include "../program.h"

enum {
	MOST = 300,      /* elements of a type */
	ARENA = 1 << 19, /* bytes on each side of where a buffer begins */
	ROUNDS = 150 / FEWER,
};

static const struct {
	MPI_Datatype type;
	int size;
} kinds[] = {
	{ MPI_CHAR, 1 },  { MPI_SHORT, 2 },  { MPI_INT, 4 },
	{ MPI_FLOAT, 4 }, { MPI_DOUBLE, 8 }, { MPI_LONG_DOUBLE, 16 },
};

struct model {
	int n;
	struct {
		long disp;
		int kind;
	} e[MOST];
	long extent; /* of the type itself: what the library says */
};

static unsigned lot = 7;

static int number(int below)
{
	lot = lot * 1103515245 + 12345;
	return (int)((lot >> 16) % (unsigned)below);
}

/* Append `count` of another model from disp on. False: too many. */
static int add(struct model *m, const struct model *of, long disp, int count)
{
	if (m->n + of->n * count > MOST)
		return 0;
	for (int i = 0; i < count; i++)
		for (int k = 0; k < of->n; k++) {
			m->e[m->n] = of->e[k];
			m->e[m->n++].disp += disp + i * of->extent;
		}
	return 1;
}

static int random_vector(MPI_Datatype old, const struct model *of,
			 struct model *m, MPI_Datatype *out)
{
	int n = 1 + number(5), block = number(4), good = 1;
	long stride = number(60) - 20;

	for (int i = 0; i < n; i++)
		good = good && add(m, of, i * stride, block);
	MPI_Type_create_hvector(n, block, stride, old, out);
	return good;
}

static int random_indexed(MPI_Datatype old, const struct model *of,
			  struct model *m, MPI_Datatype *out)
{
	int blocks[9], displs[9], n = number(10), block = number(3), good = 1;
	int alike = number(2);

	for (int i = 0; i < n; i++) {
		blocks[i] = alike ? block : number(3);
		displs[i] = number(3) ? 2 * i : number(20) - 4;
		good = good && add(m, of, displs[i] * of->extent, blocks[i]);
	}
	if (alike)
		MPI_Type_create_indexed_block(n, block, displs, old, out);
	else
		MPI_Type_indexed(n, blocks, displs, old, out);
	return good;
}

static int random_subarray(MPI_Datatype old, const struct model *of,
			   struct model *m, MPI_Datatype *out)
{
	int s[2] = { 1 + number(4), 1 + number(4) }, good = 1;
	int sub[2] = { 1 + number(s[0]), 1 + number(s[1]) };
	int at[2] = { number(s[0] - sub[0] + 1), number(s[1] - sub[1] + 1) };

	for (int i = 0; i < sub[0]; i++)
		good = good &&
		       add(m, of, ((at[0] + i) * s[1] + at[1]) * of->extent,
			   sub[1]);
	MPI_Type_create_subarray(2, s, sub, at, MPI_ORDER_C, old, out);
	return good;
}

static MPI_Datatype random_type(int depth, struct model *m);

static int random_struct(int depth, struct model *m, MPI_Datatype *out)
{
	MPI_Datatype types[3];
	struct model of;
	int blocks[3], n = 1 + number(3), good = 1;
	MPI_Aint displs[3];

	for (int i = 0; i < n; i++) {
		types[i] = random_type(depth - 1, &of);
		blocks[i] = number(3);
		displs[i] = number(100) - 20;
		good = good && add(m, &of, displs[i], blocks[i]);
	}
	MPI_Type_create_struct(n, blocks, displs, types, out);
	for (int i = 0; i < n; i++)
		MPI_Type_free(&types[i]);
	return good;
}

static MPI_Datatype derived(int depth, struct model *m)
{
	MPI_Datatype old, out;
	struct model of;
	int good = 1, n;

	memset(m, 0, sizeof(*m));
	old = random_type(depth - 1, &of);
	switch (number(6)) {
	case 0:
		good = random_vector(old, &of, m, &out);
		break;
	case 1:
		good = random_indexed(old, &of, m, &out);
		break;
	case 2:
		good = random_subarray(old, &of, m, &out);
		break;
	case 3:
		good = random_struct(depth, m, &out);
		break;
	case 4:
		n = number(4);
		good = add(m, &of, 0, n);
		MPI_Type_contiguous(n, old, &out);
		break;
	default:
		add(m, &of, 0, 1);
		MPI_Type_create_resized(old, number(20) - 10, number(60), &out);
		break;
	}
	MPI_Type_free(&old);
	if (good)
		return out;
	MPI_Type_free(&out);
	return derived(depth, m);
}

/* Never a predefined one, so that all may be freed. */
static MPI_Datatype random_type(int depth, struct model *m)
{
	MPI_Datatype out;
	MPI_Aint lb, extent;
	int kind;

	if (depth > 0) {
		out = derived(depth, m);
	} else {
		kind = number(sizeof(kinds) / sizeof(*kinds));
		*m = (struct model){ .n = 1, .e = { { 0, kind } } };
		MPI_Type_dup(kinds[kind].type, &out);
	}
	MPI_Type_get_extent(out, &lb, &extent);
	m->extent = extent;
	return out;
}

/* The first n elements of that signature, elsewhere and apart. */
static MPI_Datatype scattered(const struct model *like, int n, struct model *m)
{
	MPI_Datatype types[MOST], out, bounded;
	MPI_Aint displs[MOST], end = 0;
	int blocks[MOST], order[MOST];

	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int i = n - 1; i > 0 && number(2); i--) {
		int k = number(i + 1), other = order[k];

		order[k] = order[i];
		order[i] = other;
	}
	m->n = n;
	for (int i = 0; i < n; i++) {
		int k = order[i];

		end += number(3) ? 0 : number(12);
		types[k] = kinds[like->e[k].kind].type;
		displs[k] = end;
		blocks[k] = 1;
		m->e[k].disp = end;
		m->e[k].kind = like->e[k].kind;
		end += kinds[like->e[k].kind].size;
	}
	MPI_Type_create_struct(n, blocks, displs, types, &out);
	m->extent = end + number(9);
	MPI_Type_create_resized(out, 0, m->extent, &bounded);
	MPI_Type_free(&out);
	return bounded;
}

static int bytes_of(const struct model *m, int n)
{
	int bytes = 0;

	for (int i = 0; i < n; i++)
		bytes += kinds[m->e[i].kind].size;
	return bytes;
}

/* Whether `count` of them stay in the arena. */
static int fits(const struct model *m, int count)
{
	for (int i = 0; i < m->n; i++)
		for (int k = 0; k<count; k += count> 1 ? count - 1 : 1) {
			long at = m->e[i].disp + k * m->extent;

			if (at < -ARENA || at > ARENA - 16)
				return 0;
		}
	return 1;
}

static unsigned char mine[2 * ARENA], theirs[2 * ARENA], got[2 * ARENA],
	want[2 * ARENA];

/* Each time another part of bytes made once: a sanitizer looks at each. */
static void paint(unsigned char *arena, int who, int round)
{
	enum { PARTS = 512 };
	static unsigned char made[2 * ARENA + PARTS];
	static int is_made;
	unsigned random = 1;

	for (size_t i = 0; !is_made && i < sizeof(made); i++) {
		random = random * 1103515245 + 12345;
		made[i] = (unsigned char)(random >> 16);
	}
	is_made = 1;
	memcpy(arena, made + (who * 59 + round) % PARTS, 2 * ARENA);
}

/* n elements, of as many of the type as that takes, from one to the other. */
static void move(const struct model *s, const unsigned char *from,
		 const struct model *r, unsigned char *to, int n)
{
	for (int i = 0; i < n; i++) {
		long a = s->e[i % s->n].disp + i / s->n * s->extent;
		long b = r->e[i % r->n].disp + i / r->n * r->extent;

		EXPECT_INT(s->e[i % s->n].kind, r->e[i % r->n].kind);
		memcpy(to + b, from + a,
		       (size_t)kinds[s->e[i % s->n].kind].size);
	}
}

/*
 * `count` of type s, or so many elements as they have, are sent, and received
 * where `room` of type r would have place.
 */
static void exchange(const struct model *s, MPI_Datatype stype, int count,
		     const struct model *r, MPI_Datatype rtype, int room,
		     int round)
{
	int to = (rank + 1) % size, from = (rank + size - 1) % size, n,
	    elements;
	MPI_Count many;
	MPI_Request request;
	MPI_Status status;

	elements = s->n * count;
	paint(mine, rank, round);
	paint(theirs, from, round);
	memset(got, 0xee, sizeof(got));
	memset(want, 0xee, sizeof(want));
	move(s, theirs + ARENA, r, want + ARENA, elements);
	MPI_Irecv(got + ARENA, room, rtype, from, round, MPI_COMM_WORLD,
		  &request);
	EXPECT_INT(
		MPI_Send(mine + ARENA, count, stype, to, round, MPI_COMM_WORLD),
		MPI_SUCCESS);
	MPI_Wait(&request, &status);
	EXPECT(memcmp(got, want, sizeof(got)) == 0);
	EXPECT_INT(MPI_Get_elements(&status, rtype, &n), MPI_SUCCESS);
	EXPECT_INT(n, elements);
	MPI_Get_elements_c(&status, rtype, &many);
	EXPECT_INT(many, elements);
	MPI_Get_count(&status, rtype, &n);
	EXPECT_INT(n, elements % r->n ? MPI_UNDEFINED : elements / r->n);
	MPI_Status_set_elements(&status, rtype, elements);
	MPI_Get_elements(&status, rtype, &n);
	EXPECT_INT(n, elements);
}

static void random_messages(int round)
{
	static struct model s, r, part;
	MPI_Datatype stype, rtype, ptype;
	MPI_Aint lb, extent;
	int bytes, count = number(4) ? 1 + number(4) : 1 + number(200), n;
	long low = 0, high = 0;

	do {
		stype = random_type(number(4), &s);
		if (s.n > 0 && fits(&s, count))
			break;
		MPI_Type_free(&stype);
	} while (1);
	for (int i = 0; i < s.n; i++) {
		long end = s.e[i].disp + kinds[s.e[i].kind].size;

		low = i == 0 || s.e[i].disp < low ? s.e[i].disp : low;
		high = i == 0 || end > high ? end : high;
	}
	MPI_Type_size(stype, &bytes);
	EXPECT_INT(bytes, bytes_of(&s, s.n));
	MPI_Type_get_true_extent(stype, &lb, &extent);
	EXPECT_INT(lb, low);
	EXPECT_INT(extent, high - low);
	rtype = scattered(&s, s.n, &r);
	MPI_Type_commit(&stype);
	MPI_Type_commit(&rtype);
	if (fits(&r, count + 1))
		exchange(&s, stype, count, &r, rtype, count + number(2), round);
	n = 1 + number(s.n);
	ptype = scattered(&s, n, &part);
	MPI_Type_commit(&ptype);
	exchange(&part, ptype, 1, &r, rtype, 1, round);
	MPI_Type_free(&stype);
	MPI_Type_free(&rtype);
	MPI_Type_free(&ptype);
}

/* Absolute addresses: a list of places, a loop, a loop within a loop. */
static void from_bottom(void)
{
	static int memory[512];
	int to[4 * 12 + 12 + 16], n = 0, where[12];
	MPI_Aint at[12], begin;
	MPI_Datatype types[3], inner, all;
	MPI_Aint displs[3];
	int blocks[] = { 4, 1, 1 };

	for (int i = 0; i < 512; i++)
		memory[i] = i;
	MPI_Get_address(memory, &begin);
	for (int i = 0; i < 12; i++) {
		where[i] = 3 * i + i * i % 3;
		at[i] = begin + 4 * where[i];
	}
	MPI_Type_create_hindexed_block(12, 1, at, MPI_INT, &inner);
	MPI_Type_create_resized(inner, 0, 256, &types[0]);
	MPI_Type_free(&inner);
	MPI_Type_vector(12, 1, 2, MPI_INT, &types[1]);
	MPI_Type_vector(4, 1, 2, MPI_INT, &inner);
	MPI_Type_create_hvector(4, 1, 48, inner, &types[2]);
	displs[0] = 0;
	displs[1] = begin + 4 * 300;
	displs[2] = begin + 4 * 400;
	MPI_Type_create_struct(3, blocks, displs, types, &all);
	MPI_Type_commit(&all);
	MPI_Sendrecv(MPI_BOTTOM, 1, all, rank, 3, to, 76, MPI_INT, rank, 3,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int k = 0; k < 4; k++)
		for (int i = 0; i < 12; i++)
			EXPECT_INT(to[n++], 64 * k + where[i]);
	for (int i = 0; i < 12; i++)
		EXPECT_INT(to[n++], 300 + 2 * i);
	for (int k = 0; k < 4; k++)
		for (int i = 0; i < 4; i++)
			EXPECT_INT(to[n++], 400 + 12 * k + 2 * i);
	MPI_Type_free(&inner);
	for (int i = 0; i < 3; i++)
		MPI_Type_free(&types[i]);
	MPI_Type_free(&all);
}

/* Counts beyond an int, of types that need no memory for that. */
static void large_counts(void)
{
	const MPI_Count giga = (MPI_Count)1 << 30;
	MPI_Count ends[] = { -7 * giga * giga, 7 * giga * giga };
	MPI_Datatype none, many, pair, nested;
	MPI_Count size_c, lb, extent, n;
	MPI_Status status;
	int small, x = 5, y = 0;

	MPI_Type_contiguous(0, MPI_INT, &none);
	MPI_Type_commit(&none);
	EXPECT_INT(MPI_Sendrecv_c(NULL, 8 * giga, none, rank, 1, NULL,
				  16 * giga, none, rank, 1, MPI_COMM_WORLD,
				  &status),
		   MPI_SUCCESS);
	MPI_Get_count_c(&status, none, &n);
	EXPECT_INT(n, 0);
	/* All at one place: 2^33 times the same int, of which one is sent. */
	MPI_Type_create_hvector_c(8 * giga, 1, 0, MPI_INT, &many);
	MPI_Type_size_c(many, &size_c);
	EXPECT_INT(size_c, 32 * giga);
	MPI_Type_get_extent_c(many, &lb, &extent);
	EXPECT_INT(extent, 4);
	MPI_Type_size(many, &small);
	EXPECT_INT(small, MPI_UNDEFINED);
	MPI_Type_commit(&many);
	MPI_Sendrecv(&x, 1, MPI_INT, rank, 2, &y, 1, many, rank, 2,
		     MPI_COMM_WORLD, &status);
	EXPECT_INT(y, 5);
	MPI_Get_elements_c(&status, many, &n);
	EXPECT_INT(n, 1);
	MPI_Get_count_c(&status, many, &n);
	EXPECT_INT(n, MPI_UNDEFINED);
	MPI_Type_contiguous_c(3, many, &nested);
	EXPECT_INT(MPI_Status_set_elements_c(&status, nested, 25 * giga), 0);
	MPI_Get_elements_c(&status, nested, &n);
	EXPECT_INT(n, 25 * giga);
	MPI_Get_elements(&status, nested, &small);
	EXPECT_INT(small, MPI_UNDEFINED);
	MPI_Type_create_resized_c(MPI_INT, -giga * giga, 2 * giga * giga,
				  &pair);
	MPI_Type_get_extent_c(pair, &lb, &extent);
	EXPECT_INT(lb, -giga * giga);
	EXPECT_INT(extent, 2 * giga * giga);
	MPI_Type_free(&pair);
	MPI_Type_contiguous_c(1 << 20, nested, &pair);
	FAILS(MPI_Type_contiguous_c(giga * giga, pair, &nested), MPI_ERR_COUNT);
	FAILS(MPI_Type_create_resized_c(MPI_INT, 4 * giga * giga,
					4 * giga * giga, &none),
	      MPI_ERR_COUNT);
	FAILS(MPI_Type_create_hindexed_block_c(2, 1, ends, MPI_INT, &none),
	      MPI_ERR_COUNT);
	FAILS(MPI_Type_create_hindexed_block_c(2, 1, ends, none, &none),
	      MPI_ERR_COUNT);
	MPI_Type_free(&none);
	MPI_Type_free(&many);
	MPI_Type_free(&pair);
	MPI_Type_free(&nested);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int i = 0; i < ROUNDS; i++)
		random_messages(i);
	from_bottom();
	large_counts();
	return program_end("datatype/messages");
}
