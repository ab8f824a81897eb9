/*
 * A program of MPI-1: the names that MPI 3.0 deleted do what they did. The
 * bounds that MPI_LB and MPI_UB set are compared with those that follow from
 * the list of all elements, as MPI-1 defines them.
 */
#define MADMPI_COMPAT
#include "../program.h"

#include <stddef.h>
#include <stdint.h>

static void old_functions(void)
{
	struct {
		int i;
		double d[2];
	} x;
	int block[2] = { 1, 2 }, n;
	MPI_Aint at[2], extent = -1, lb = -1, ub = -1;
	MPI_Datatype types[2] = { MPI_INT, MPI_DOUBLE }, t;

	EXPECT_INT(MPI_Address(&x.i, &at[0]), MPI_SUCCESS);
	EXPECT_INT(PMPI_Address(x.d, &at[1]), MPI_SUCCESS);
	EXPECT_INT(at[1] - at[0], (char *)x.d - (char *)&x.i);
	at[1] -= at[0];
	at[0] = 0;
	EXPECT_INT(MPI_Type_struct(2, block, at, types, &t), MPI_SUCCESS);
	EXPECT_INT(MPI_Type_extent(t, &extent), MPI_SUCCESS);
	EXPECT_INT(extent, sizeof(x));
	EXPECT_INT(PMPI_Type_extent(t, &extent), MPI_SUCCESS);
	EXPECT_INT(extent, sizeof(x));
	MPI_Type_size(t, &n);
	EXPECT_INT(n, sizeof(int) + 2 * sizeof(double));
	MPI_Type_free(&t);

	EXPECT_INT(MPI_Type_hvector(3, 2, -20, MPI_INT, &t), MPI_SUCCESS);
	EXPECT_INT(MPI_Type_lb(t, &lb), MPI_SUCCESS);
	EXPECT_INT(MPI_Type_ub(t, &ub), MPI_SUCCESS);
	EXPECT(lb == -40 && ub == 8);
	EXPECT_INT(PMPI_Type_lb(t, &lb), MPI_SUCCESS);
	EXPECT_INT(PMPI_Type_ub(t, &ub), MPI_SUCCESS);
	EXPECT(lb == -40 && ub == 8);
	MPI_Type_free(&t);

	at[0] = 8, at[1] = 100;
	EXPECT_INT(MPI_Type_hindexed(2, block, at, MPI_INT, &t), MPI_SUCCESS);
	MPI_Type_lb(t, &lb);
	MPI_Type_ub(t, &ub);
	EXPECT(lb == 8 && ub == 108);
	MPI_Type_free(&t);

	lb = ub = extent = 5;
	FAILS(MPI_Type_extent(MPI_DATATYPE_NULL, &extent), MPI_ERR_TYPE);
	FAILS(MPI_Type_lb(MPI_DATATYPE_NULL, &lb), MPI_ERR_TYPE);
	FAILS(MPI_Type_ub(MPI_DATATYPE_NULL, &ub), MPI_ERR_TYPE);
	EXPECT(extent == 5 && lb == 5 && ub == 5);
	FAILS(MPI_Type_extent(MPI_INT, NULL), MPI_ERR_ARG);
	FAILS(MPI_Type_lb(MPI_INT, NULL), MPI_ERR_ARG);
	FAILS(MPI_Type_ub(MPI_INT, NULL), MPI_ERR_ARG);
}

static int seen;

static void handler(MPI_Comm *comm, int *code, ...)
{
	EXPECT(*comm == MPI_COMM_SELF);
	seen = class_of(*code);
}

static void old_error_handlers(void)
{
	MPI_Handler_function *function = handler;
	MPI_Errhandler mine, before, found;

	MPI_Errhandler_get(MPI_COMM_SELF, &before);
	EXPECT_INT(MPI_Errhandler_create(function, &mine), MPI_SUCCESS);
	EXPECT_INT(MPI_Errhandler_set(MPI_COMM_SELF, mine), MPI_SUCCESS);
	MPI_Errhandler_get(MPI_COMM_SELF, &found);
	EXPECT(found == mine);
	FAILS(MPI_Send(NULL, 0, MPI_INT, 5, 0, MPI_COMM_SELF), MPI_ERR_RANK);
	EXPECT_INT(seen, MPI_ERR_RANK);
	MPI_Errhandler_set(MPI_COMM_SELF, before);
	MPI_Errhandler_free(&found);
	MPI_Errhandler_free(&before);
	MPI_Errhandler_free(&mine);
}

/* mpi.h still has the names that are only deprecated. */
static void old_attributes(void)
{
	int key = MPI_KEYVAL_INVALID, flag = 0, value = 3;
	void *got = NULL;

	MPI_Keyval_create(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, &key, NULL);
	MPI_Attr_put(MPI_COMM_SELF, key, &value);
	MPI_Attr_get(MPI_COMM_SELF, key, &got, &flag);
	EXPECT(flag && got == &value);
	MPI_Attr_delete(MPI_COMM_SELF, key);
	MPI_Keyval_free(&key);
	EXPECT_INT(key, MPI_KEYVAL_INVALID);
}

/* --- MPI_LB and MPI_UB --- */

/* The bounds of a list of elements, as MPI-1 defines them. */
struct bounds {
	int has_lb, has_ub; /* markers */
	MPI_Aint lb, ub;    /* of these */
	MPI_Aint data_lb, data_ub;
};

struct sample {
	MPI_Datatype type;
	struct bounds b;
};

static MPI_Aint lb_of(const struct bounds *b)
{
	return b->has_lb ? b->lb : b->data_lb;
}

static MPI_Aint ub_of(const struct bounds *b)
{
	return b->has_ub ? b->ub : b->data_ub;
}

static void lower_to(int is_first, MPI_Aint *bound, MPI_Aint x)
{
	if (is_first || x < *bound)
		*bound = x;
}

static void raise_to(int is_first, MPI_Aint *bound, MPI_Aint x)
{
	if (is_first || x > *bound)
		*bound = x;
}

/* All elements of `more`, which has data, moved by disp. */
static void add_at(struct bounds *b, int *is_first, const struct bounds *more,
		   MPI_Aint disp)
{
	lower_to(*is_first, &b->data_lb, more->data_lb + disp);
	raise_to(*is_first, &b->data_ub, more->data_ub + disp);
	*is_first = 0;
	if (more->has_lb)
		lower_to(!b->has_lb, &b->lb, more->lb + disp);
	if (more->has_ub)
		raise_to(!b->has_ub, &b->ub, more->ub + disp);
	b->has_lb |= more->has_lb;
	b->has_ub |= more->has_ub;
}

static unsigned state = 1;

static int pick(int n)
{
	state = state * 1103515245u + 12345u;
	return (int)(state >> 16) % n;
}

enum { DEPTH = 6, PARTS = 5 };

/* A multiple of 4, so that no padding is added; possibly below zero. */
static MPI_Aint place(void)
{
	return 4 * (MPI_Aint)(pick(40) - 10);
}

/* Several elements of a smaller type, one behind the other. */
static void add_element(struct sample *s, int *is_first, int i, int *block,
			MPI_Aint *at, MPI_Datatype *types,
			const struct sample *of)
{
	MPI_Aint extent = ub_of(&of->b) - lb_of(&of->b);

	block[i] = 1 + pick(3);
	at[i] = place();
	types[i] = of->type;
	for (int k = 0; k < block[i]; k++)
		add_at(&s->b, is_first, &of->b, at[i] + k * extent);
}

static void add_marker(struct sample *s, int i, int *block, MPI_Aint *at,
		       MPI_Datatype *types)
{
	block[i] = 1;
	at[i] = place();
	if (pick(2)) {
		types[i] = MPI_LB;
		lower_to(!s->b.has_lb, &s->b.lb, at[i]);
		s->b.has_lb = 1;
	} else {
		types[i] = MPI_UB;
		raise_to(!s->b.has_ub, &s->b.ub, at[i]);
		s->b.has_ub = 1;
	}
}

/* A struct of MPI_INT, of smaller structs and of markers, in any order. */
static void make_struct(struct sample *s, const struct sample *smaller, int n)
{
	int block[PARTS], is_first = 1, data = pick(PARTS);
	MPI_Aint at[PARTS];
	MPI_Datatype types[PARTS];

	memset(&s->b, 0, sizeof(s->b));
	for (int i = 0; i < PARTS; i++)
		if (i == data || pick(2))
			add_element(s, &is_first, i, block, at, types,
				    &smaller[pick(n)]);
		else
			add_marker(s, i, block, at, types);
	MPI_Type_struct(PARTS, block, at, types, &s->type);
}

static void expect_bounds(const struct sample *s)
{
	MPI_Aint lb, ub, extent;

	MPI_Type_lb(s->type, &lb);
	MPI_Type_ub(s->type, &ub);
	MPI_Type_extent(s->type, &extent);
	EXPECT_INT(lb, lb_of(&s->b));
	EXPECT_INT(ub, ub_of(&s->b));
	EXPECT_INT(extent, ub - lb);
}

static void random_structs(void)
{
	struct sample s[DEPTH + 1];

	for (int round = 0; round < 2000 / FEWER; round++) {
		s[0].type = MPI_INT;
		s[0].b = (struct bounds){ .data_ub = 4 };
		for (int i = 1; i <= DEPTH; i++) {
			make_struct(&s[i], s, i);
			expect_bounds(&s[i]);
		}
		for (int i = 1; i <= DEPTH; i++)
			MPI_Type_free(&s[i].type);
	}
}

static void bounds_are(MPI_Datatype t, MPI_Aint wanted_lb, MPI_Aint wanted)
{
	MPI_Aint lb, extent;

	MPI_Type_lb(t, &lb);
	MPI_Type_extent(t, &extent);
	EXPECT_INT(lb, wanted_lb);
	EXPECT_INT(extent, wanted);
}

/* An upper bound alone leaves the lower one to data that lie below. */
static void one_bound_is_inherited_alone(void)
{
	int block[2] = { 1, 1 };
	MPI_Aint inner_at[2] = { 0, 12 }, outer_at[2] = { 0, 8 };
	MPI_Datatype inner_types[2] = { MPI_INT, MPI_UB }, inner, outer;
	MPI_Datatype outer_types[2] = { MPI_INT };

	MPI_Type_struct(2, block, inner_at, inner_types, &inner);
	outer_types[1] = inner;
	MPI_Type_struct(2, block, outer_at, outer_types, &outer);
	bounds_are(outer, 0, 20);
	MPI_Type_free(&outer);
	MPI_Type_free(&inner);
}

/* A lower bound leaves the padding behind the data; an upper bound ends it. */
static void only_an_upper_bound_stops_padding(void)
{
	int block[3] = { 1, 1, 1 };
	MPI_Aint at[3] = { 0, 0, 8 };
	MPI_Datatype types[3] = { MPI_LB, MPI_DOUBLE, MPI_CHAR }, t;

	MPI_Type_struct(3, block, at, types, &t);
	bounds_are(t, 0, 16);
	MPI_Type_free(&t);

	types[0] = MPI_UB;
	at[0] = 9;
	MPI_Type_struct(3, block, at, types, &t);
	bounds_are(t, 0, 9);
	MPI_Type_free(&t);
}

/* The usual purpose of MPI_UB: an array of structs, sent without its gaps. */
static void an_array_of_structs_travels(void)
{
	struct particle {
		int id;
		char pad[20];
		double mass;
		char more[13];
	} from[5], to[5];
	int block[4] = { 1, 1, 1, 1 }, n;
	MPI_Aint at[4] = { 0, offsetof(struct particle, id),
			   offsetof(struct particle, mass),
			   sizeof(struct particle) };
	MPI_Datatype types[4] = { MPI_LB, MPI_INT, MPI_DOUBLE, MPI_UB }, t;
	MPI_Status st;

	MPI_Type_struct(4, block, at, types, &t);
	MPI_Type_commit(&t);
	memset(from, 1, sizeof(from));
	memset(to, 2, sizeof(to));
	for (int i = 0; i < 5; i++)
		from[i].id = i, from[i].mass = i * 0.5;
	MPI_Sendrecv(from, 5, t, (rank + 1) % size, 3, to, 5, t,
		     (rank + size - 1) % size, 3, MPI_COMM_WORLD, &st);
	MPI_Get_count(&st, t, &n);
	EXPECT_INT(n, 5);
	for (int i = 0; i < 5; i++)
		EXPECT(to[i].id == i && to[i].mass == i * 0.5 &&
		       to[i].pad[0] == 2 && to[i].more[12] == 2);
	MPI_Type_free(&t);
}

/* The markers are types like others, with a name and without data. */
static void markers_are_told_of(void)
{
	int block[2] = { 1, 1 }, ints[3], ni, na, nt, how, n;
	MPI_Aint at[2] = { 0, 16 }, addrs[2], extent;
	MPI_Datatype types[2] = { MPI_INT, MPI_UB }, told[2], t, copy;
	char name[MPI_MAX_OBJECT_NAME];

	MPI_Type_struct(2, block, at, types, &t);
	MPI_Type_get_envelope(t, &ni, &na, &nt, &how);
	EXPECT(ni == 3 && na == 2 && nt == 2);
	switch (how) {
	case MPI_COMBINER_STRUCT:
		break;
	case MPI_COMBINER_HVECTOR_INTEGER:
	case MPI_COMBINER_HINDEXED_INTEGER:
	case MPI_COMBINER_STRUCT_INTEGER:
	default:
		EXPECT_INT(how, MPI_COMBINER_STRUCT);
	}
	MPI_Type_get_contents(t, 3, 2, 2, ints, addrs, told);
	EXPECT(told[0] == MPI_INT && told[1] == MPI_UB && addrs[1] == 16);
	MPI_Type_dup(t, &copy);
	MPI_Type_extent(copy, &extent);
	EXPECT_INT(extent, 16);
	MPI_Type_free(&copy);
	MPI_Type_free(&t);
	MPI_Type_get_name(MPI_LB, name, &n);
	EXPECT(strcmp(name, "MPI_LB") == 0);
	MPI_Type_get_name(MPI_UB, name, &n);
	EXPECT(strcmp(name, "MPI_UB") == 0);
	MPI_Type_size(MPI_UB, &n);
	EXPECT_INT(n, 0);
	MPI_Type_extent(MPI_UB, &extent);
	EXPECT_INT(extent, 0);
	FAILS(MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_UB, MPI_SUM,
			    MPI_COMM_SELF),
	      MPI_ERR_OP);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Errhandler_set(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	old_functions();
	old_error_handlers();
	old_attributes();
	random_structs();
	one_bound_is_inherited_alone();
	only_an_upper_bound_stops_padding();
	an_array_of_structs_travels();
	markers_are_told_of();
	return program_end("deleted");
}
