/*
 * What a type was made with: each constructor's envelope and contents in both
 * forms; a type that is made again from its contents has the same map.
 */
#include "../program.h"

enum { MOST = 400, LONG = 1000 };

/* What MPI_Type_get_envelope_c and _contents_c say. */
struct call {
	MPI_Count ni, na, nc, nd;
	int combiner;
	int i[MOST];
	MPI_Aint a[MOST];
	MPI_Count c[MOST];
	MPI_Datatype d[MOST];
};

static void look(MPI_Datatype type, struct call *x)
{
	EXPECT_INT(MPI_Type_get_envelope_c(type, &x->ni, &x->na, &x->nc, &x->nd,
					   &x->combiner),
		   MPI_SUCCESS);
	EXPECT(x->ni <= MOST && x->na <= MOST && x->nc <= MOST &&
	       x->nd <= MOST);
	if (x->combiner == MPI_COMBINER_NAMED)
		return;
	EXPECT_INT(MPI_Type_get_contents_c(type, x->ni, x->na, x->nc, x->nd,
					   x->i, x->a, x->c, x->d),
		   MPI_SUCCESS);
}

static int is_predefined(MPI_Datatype type)
{
	MPI_Count n;
	int combiner;

	MPI_Type_get_envelope_c(type, &n, &n, &n, &n, &combiner);
	return combiner == MPI_COMBINER_NAMED ||
	       combiner == MPI_COMBINER_VALUE_INDEX ||
	       (combiner >= MPI_COMBINER_F90_REAL &&
		combiner <= MPI_COMBINER_F90_INTEGER);
}

static void drop(MPI_Datatype *type)
{
	if (!is_predefined(*type))
		EXPECT_INT(MPI_Type_free(type), MPI_SUCCESS);
}

/* The call again that x tells of, in the form with int. */
static MPI_Datatype again_small(struct call *x)
{
	int *i = x->i, n = i[0], nd = i[2];
	MPI_Datatype t = MPI_DATATYPE_NULL, old = x->d[0];

	switch (x->combiner) {
	case MPI_COMBINER_DUP:
		MPI_Type_dup(old, &t);
		break;
	case MPI_COMBINER_CONTIGUOUS:
		MPI_Type_contiguous(n, old, &t);
		break;
	case MPI_COMBINER_VECTOR:
		MPI_Type_vector(n, i[1], i[2], old, &t);
		break;
	case MPI_COMBINER_HVECTOR:
		MPI_Type_create_hvector(n, i[1], x->a[0], old, &t);
		break;
	case MPI_COMBINER_INDEXED:
		MPI_Type_indexed(n, i + 1, i + 1 + n, old, &t);
		break;
	case MPI_COMBINER_HINDEXED:
		MPI_Type_create_hindexed(n, i + 1, x->a, old, &t);
		break;
	case MPI_COMBINER_INDEXED_BLOCK:
		MPI_Type_create_indexed_block(n, i[1], i + 2, old, &t);
		break;
	case MPI_COMBINER_HINDEXED_BLOCK:
		MPI_Type_create_hindexed_block(n, i[1], x->a, old, &t);
		break;
	case MPI_COMBINER_STRUCT:
		MPI_Type_create_struct(n, i + 1, x->a, x->d, &t);
		break;
	case MPI_COMBINER_SUBARRAY:
		MPI_Type_create_subarray(n, i + 1, i + 1 + n, i + 1 + 2 * n,
					 i[3 * n + 1], old, &t);
		break;
	case MPI_COMBINER_DARRAY:
		MPI_Type_create_darray(n, i[1], nd, i + 3, i + 3 + nd,
				       i + 3 + 2 * nd, i + 3 + 3 * nd,
				       i[4 * nd + 3], old, &t);
		break;
	case MPI_COMBINER_RESIZED:
		MPI_Type_create_resized(old, x->a[0], x->a[1], &t);
		break;
	}
	return t;
}

/* And in the other one: counts and addresses are large counts. */
static MPI_Datatype again_large(struct call *x)
{
	MPI_Count *c = x->c, n = c[0];
	MPI_Datatype t = MPI_DATATYPE_NULL, old = x->d[0];
	int *i = x->i, nd = i[0];

	switch (x->combiner) {
	case MPI_COMBINER_CONTIGUOUS:
		MPI_Type_contiguous_c(n, old, &t);
		break;
	case MPI_COMBINER_VECTOR:
		MPI_Type_vector_c(n, c[1], c[2], old, &t);
		break;
	case MPI_COMBINER_HVECTOR:
		MPI_Type_create_hvector_c(n, c[1], c[2], old, &t);
		break;
	case MPI_COMBINER_INDEXED:
		MPI_Type_indexed_c(n, c + 1, c + 1 + n, old, &t);
		break;
	case MPI_COMBINER_HINDEXED:
		MPI_Type_create_hindexed_c(n, c + 1, c + 1 + n, old, &t);
		break;
	case MPI_COMBINER_INDEXED_BLOCK:
		MPI_Type_create_indexed_block_c(n, c[1], c + 2, old, &t);
		break;
	case MPI_COMBINER_HINDEXED_BLOCK:
		MPI_Type_create_hindexed_block_c(n, c[1], c + 2, old, &t);
		break;
	case MPI_COMBINER_STRUCT:
		MPI_Type_create_struct_c(n, c + 1, c + 1 + n, x->d, &t);
		break;
	case MPI_COMBINER_SUBARRAY:
		MPI_Type_create_subarray_c(nd, c, c + nd, c + 2 * nd, i[1], old,
					   &t);
		break;
	case MPI_COMBINER_DARRAY:
		nd = i[2];
		MPI_Type_create_darray_c(i[0], i[1], nd, c, i + 3, i + 3 + nd,
					 i + 3 + 2 * nd, i[3 * nd + 3], old,
					 &t);
		break;
	case MPI_COMBINER_RESIZED:
		MPI_Type_create_resized_c(old, c[0], c[1], &t);
		break;
	}
	return t;
}

static char memory[20000], one[20000], two[20000];

/* Bytes of all shades, far enough from the edges. */
static int packed(MPI_Datatype type, char *to)
{
	int at = 0;

	EXPECT_INT(MPI_Type_commit(&type), MPI_SUCCESS);
	MPI_Pack(memory + 8000, 2, type, to, sizeof(one), &at, MPI_COMM_SELF);
	return at;
}

static void expect_same(MPI_Datatype a, MPI_Datatype b)
{
	MPI_Count la, xa, lb, xb;
	int n;

	MPI_Type_get_extent_c(a, &la, &xa);
	MPI_Type_get_extent_c(b, &lb, &xb);
	EXPECT_INT(la, lb);
	EXPECT_INT(xa, xb);
	MPI_Type_get_true_extent_c(a, &la, &xa);
	MPI_Type_get_true_extent_c(b, &lb, &xb);
	EXPECT_INT(la, lb);
	EXPECT_INT(xa, xb);
	n = packed(a, one);
	EXPECT_INT(packed(b, two), n);
	EXPECT(memcmp(one, two, (size_t)n) == 0);
}

/* Tells the right numbers, and makes the same type again. Frees it. */
static void check(MPI_Datatype type, int combiner, int ni, int na, int nc,
		  int nd)
{
	static struct call x;
	MPI_Datatype again;
	int a, b, c, d;

	look(type, &x);
	EXPECT_INT(x.combiner, combiner);
	EXPECT_INT(x.ni, ni);
	EXPECT_INT(x.na, na);
	EXPECT_INT(x.nc, nc);
	EXPECT_INT(x.nd, nd);
	if (nc > 0) {
		FAILS(MPI_Type_get_envelope(type, &a, &b, &c, &d),
		      MPI_ERR_TYPE);
		FAILS(MPI_Type_get_contents(type, MOST, MOST, MOST, x.i, x.a,
					    x.d),
		      MPI_ERR_TYPE);
	} else {
		EXPECT_INT(MPI_Type_get_envelope(type, &a, &b, &c, &d), 0);
		EXPECT(a == ni && b == na && c == nd && d == combiner);
		for (int i = 0; i < nd; i++)
			drop(&x.d[i]);
		memset(x.d, 0, sizeof(x.d));
		EXPECT_INT(
			MPI_Type_get_contents(type, ni, na, nd, x.i, x.a, x.d),
			MPI_SUCCESS);
	}
	again = nc > 0 ? again_large(&x) : again_small(&x);
	EXPECT(again != MPI_DATATYPE_NULL);
	expect_same(type, again);
	EXPECT_INT(MPI_Type_free(&type), MPI_SUCCESS);
	/* Its arguments outlive it, and each other. */
	for (int i = 0; i < nd; i++)
		drop(&x.d[i]);
	EXPECT_INT(packed(again, one), packed(again, two));
	EXPECT_INT(MPI_Type_free(&again), MPI_SUCCESS);
}

static void each_constructor(MPI_Datatype old)
{
	int blocks[] = { 2, 0, 1, 3 }, displs[] = { 5, 1, -1, 9 };
	MPI_Aint at[] = { 50, 10, -90, 200 };
	MPI_Datatype types[] = { old, MPI_INT, old, MPI_CHAR }, t;
	int sizes[] = { 4, 5, 6 }, sub[] = { 2, 5, 1 }, starts[] = { 1, 0, 4 };
	int how[] = { MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC,
		      MPI_DISTRIBUTE_NONE };
	int args[] = { 2, 2, MPI_DISTRIBUTE_DFLT_DARG }, procs[] = { 2, 2, 1 };

	MPI_Type_dup(old, &t);
	check(t, MPI_COMBINER_DUP, 0, 0, 0, 1);
	MPI_Type_contiguous(3, old, &t);
	check(t, MPI_COMBINER_CONTIGUOUS, 1, 0, 0, 1);
	MPI_Type_vector(3, 2, -4, old, &t);
	check(t, MPI_COMBINER_VECTOR, 3, 0, 0, 1);
	MPI_Type_create_hvector(3, 2, 77, old, &t);
	check(t, MPI_COMBINER_HVECTOR, 2, 1, 0, 1);
	MPI_Type_indexed(4, blocks, displs, old, &t);
	check(t, MPI_COMBINER_INDEXED, 9, 0, 0, 1);
	MPI_Type_create_hindexed(4, blocks, at, old, &t);
	check(t, MPI_COMBINER_HINDEXED, 5, 4, 0, 1);
	MPI_Type_create_indexed_block(4, 2, displs, old, &t);
	check(t, MPI_COMBINER_INDEXED_BLOCK, 6, 0, 0, 1);
	MPI_Type_create_hindexed_block(4, 2, at, old, &t);
	check(t, MPI_COMBINER_HINDEXED_BLOCK, 2, 4, 0, 1);
	MPI_Type_create_struct(4, blocks, at, types, &t);
	check(t, MPI_COMBINER_STRUCT, 5, 4, 0, 4);
	MPI_Type_create_subarray(3, sizes, sub, starts, MPI_ORDER_C, old, &t);
	check(t, MPI_COMBINER_SUBARRAY, 11, 0, 0, 1);
	MPI_Type_create_darray(4, 3, 3, sizes, how, args, procs,
			       MPI_ORDER_FORTRAN, old, &t);
	check(t, MPI_COMBINER_DARRAY, 16, 0, 0, 1);
	MPI_Type_create_resized(old, -5, 99, &t);
	check(t, MPI_COMBINER_RESIZED, 0, 2, 0, 1);
	MPI_Type_indexed(0, NULL, NULL, old, &t);
	check(t, MPI_COMBINER_INDEXED, 1, 0, 0, 1);
	MPI_Type_create_struct(0, NULL, NULL, NULL, &t);
	check(t, MPI_COMBINER_STRUCT, 1, 0, 0, 0);
}

static void each_large_constructor(MPI_Datatype old)
{
	MPI_Count blocks[] = { 2, 0, 1, 3 }, displs[] = { 5, 1, -1, 9 };
	MPI_Count at[] = { 50, 10, -90, 200 };
	MPI_Datatype types[] = { old, MPI_INT, old, MPI_CHAR }, t;
	MPI_Count sizes[] = { 4, 5, 6 }, sub[] = { 2, 5, 1 };
	MPI_Count starts[] = { 1, 0, 4 };
	int how[] = { MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC,
		      MPI_DISTRIBUTE_NONE };
	int args[] = { 2, 2, MPI_DISTRIBUTE_DFLT_DARG }, procs[] = { 2, 2, 1 };

	MPI_Type_contiguous_c(3, old, &t);
	check(t, MPI_COMBINER_CONTIGUOUS, 0, 0, 1, 1);
	MPI_Type_vector_c(3, 2, -4, old, &t);
	check(t, MPI_COMBINER_VECTOR, 0, 0, 3, 1);
	MPI_Type_create_hvector_c(3, 2, 77, old, &t);
	check(t, MPI_COMBINER_HVECTOR, 0, 0, 3, 1);
	MPI_Type_indexed_c(4, blocks, displs, old, &t);
	check(t, MPI_COMBINER_INDEXED, 0, 0, 9, 1);
	MPI_Type_create_hindexed_c(4, blocks, at, old, &t);
	check(t, MPI_COMBINER_HINDEXED, 0, 0, 9, 1);
	MPI_Type_create_indexed_block_c(4, 2, displs, old, &t);
	check(t, MPI_COMBINER_INDEXED_BLOCK, 0, 0, 6, 1);
	MPI_Type_create_hindexed_block_c(4, 2, at, old, &t);
	check(t, MPI_COMBINER_HINDEXED_BLOCK, 0, 0, 6, 1);
	MPI_Type_create_struct_c(4, blocks, at, types, &t);
	check(t, MPI_COMBINER_STRUCT, 0, 0, 9, 4);
	MPI_Type_create_subarray_c(3, sizes, sub, starts, MPI_ORDER_C, old, &t);
	check(t, MPI_COMBINER_SUBARRAY, 2, 0, 9, 1);
	MPI_Type_create_darray_c(4, 3, 3, sizes, how, args, procs,
				 MPI_ORDER_FORTRAN, old, &t);
	check(t, MPI_COMBINER_DARRAY, 13, 0, 3, 1);
	MPI_Type_create_resized_c(old, -5, 99, &t);
	check(t, MPI_COMBINER_RESIZED, 0, 0, 2, 1);
}

static int deleted;

static int count_deletes(MPI_Datatype type, int keyval, void *value,
			 void *extra)
{
	(void)type;
	(void)keyval;
	(void)value;
	(void)extra;
	deleted++;
	return MPI_SUCCESS;
}

/* What is told is an object of its own: freeing it leaves the argument's. */
static void arguments_are_new_objects(void)
{
	MPI_Datatype inner, outer, dup, told;
	char name[MPI_MAX_OBJECT_NAME];
	int keyval, n;

	MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, count_deletes, &keyval,
			       NULL);
	MPI_Type_vector(2, 1, 3, MPI_INT, &inner);
	MPI_Type_set_attr(inner, keyval, NULL);
	MPI_Type_set_name(inner, "inner");
	MPI_Type_contiguous(2, inner, &outer);
	EXPECT_INT(MPI_Type_get_contents(outer, 1, 0, 1, &n, NULL, &told), 0);
	EXPECT(told != inner);
	MPI_Type_get_name(told, name, &n);
	EXPECT_INT(n, 0);
	expect_same(told, inner);
	MPI_Type_free(&told);
	EXPECT_INT(deleted, 0);
	/* Of a duplicate: its own contents, though the program is shared. */
	MPI_Type_dup(inner, &dup);
	MPI_Type_free(&outer);
	MPI_Type_contiguous(2, dup, &outer);
	MPI_Type_free(&dup);
	EXPECT_INT(MPI_Type_get_contents(outer, 1, 0, 1, &n, NULL, &told), 0);
	MPI_Type_free(&outer);
	check(told, MPI_COMBINER_DUP, 0, 0, 0, 1);
	MPI_Type_free(&inner);
	EXPECT_INT(deleted, 1);
	MPI_Type_free_keyval(&keyval);
}

/* A duplicate of a duplicate, and so on, holds neither all of them nor more. */
static void duplicates_in_place_of_each_other(MPI_Datatype old)
{
	MPI_Datatype type, next;
	int combiner, n, ni, na, nd;

	MPI_Type_dup(old, &type);
	for (int i = 0; i < LONG; i++) {
		EXPECT_INT(MPI_Type_dup(type, &next), MPI_SUCCESS);
		expect_same(type, next);
		MPI_Type_free(&type);
		type = next;
	}
	MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner);
	EXPECT_INT(combiner, MPI_COMBINER_DUP);
	EXPECT(ni == 0 && na == 0 && nd == 1);
	/* As the argument was no predefined one, what is told is freed. */
	MPI_Type_get_contents(type, 0, 0, 1, &n, NULL, &next);
	expect_same(type, next);
	EXPECT_INT(MPI_Type_free(&next), MPI_SUCCESS);
	check(type, MPI_COMBINER_DUP, 0, 0, 0, 1);
}

/* What is its argument's, and not that of the type which this duplicates. */
static void a_duplicate_of_a_duplicate(void)
{
	MPI_Datatype type, dup, second;
	int keyval, flag, at = 0, x[8] = { 0 };
	void *value;

	MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN,
			       &keyval, NULL);
	MPI_Type_vector(2, 1, 2, MPI_INT, &type);
	MPI_Type_set_attr(type, keyval, &x[0]);
	MPI_Type_dup(type, &dup);
	MPI_Type_set_attr(dup, keyval, &x[1]);
	MPI_Type_commit(&dup);
	MPI_Type_dup(dup, &second);
	MPI_Type_get_attr(second, keyval, &value, &flag);
	EXPECT(flag && value == &x[1]);
	EXPECT_INT(MPI_Pack(x, 1, second, one, sizeof(one), &at, MPI_COMM_SELF),
		   MPI_SUCCESS);
	FAILS(MPI_Pack(x, 1, type, one, sizeof(one), &at, MPI_COMM_SELF),
	      MPI_ERR_TYPE);
	MPI_Type_free(&second);
	MPI_Type_free(&dup);
	MPI_Type_free(&type);
	MPI_Type_free_keyval(&keyval);
}

static void refused(void)
{
	MPI_Datatype t, d[4];
	MPI_Count c[4];
	MPI_Aint a[4];
	int i[4], n;

	EXPECT_INT(MPI_Type_get_envelope(MPI_INT, i, i + 1, i + 2, &n), 0);
	EXPECT(i[0] == 0 && i[1] == 0 && i[2] == 0);
	EXPECT_INT(n, MPI_COMBINER_NAMED);
	FAILS(MPI_Type_get_contents(MPI_INT, 4, 4, 4, i, a, d), MPI_ERR_TYPE);
	FAILS(MPI_Type_get_contents_c(MPI_2INT, 4, 4, 4, 4, i, a, c, d),
	      MPI_ERR_TYPE);
	FAILS(MPI_Type_get_envelope(MPI_DATATYPE_NULL, i, i, i, &n),
	      MPI_ERR_TYPE);
	FAILS(MPI_Type_get_contents(MPI_DATATYPE_NULL, 4, 4, 4, i, a, d),
	      MPI_ERR_TYPE);
	MPI_Type_create_hvector(2, 1, 8, MPI_INT, &t);
	FAILS(MPI_Type_get_envelope(t, i, NULL, i, &n), MPI_ERR_ARG);
	FAILS(MPI_Type_get_contents(t, 1, 1, 1, i, a, d), MPI_ERR_ARG);
	FAILS(MPI_Type_get_contents(t, 2, 0, 1, i, a, d), MPI_ERR_ARG);
	FAILS(MPI_Type_get_contents(t, 2, 1, 0, i, a, d), MPI_ERR_ARG);
	FAILS(MPI_Type_get_contents(t, 2, 1, 1, i, NULL, d), MPI_ERR_ARG);
	MPI_Type_free(&t);
	MPI_Type_create_resized_c(MPI_INT, 0, 8, &t);
	FAILS(MPI_Type_get_contents_c(t, 0, 0, 1, 1, i, a, c, d), MPI_ERR_ARG);
	MPI_Type_free(&t);
}

int main(int argc, char **argv)
{
	MPI_Datatype old;

	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (char)(i * 31 / 7);
	each_constructor(MPI_INT);
	each_large_constructor(MPI_SHORT);
	MPI_Type_vector(2, 1, 2, MPI_SHORT, &old);
	each_constructor(old);
	each_large_constructor(old);
	MPI_Type_free(&old);
	arguments_are_new_objects();
	duplicates_in_place_of_each_other(MPI_INT);
	MPI_Type_vector(2, 1, 2, MPI_SHORT, &old);
	duplicates_in_place_of_each_other(old);
	MPI_Type_free(&old);
	a_duplicate_of_a_duplicate();
	refused();
	return program_end("datatype/contents");
}
