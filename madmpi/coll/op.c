/*
 * Operations: predefined ones, found by the number in their handle, and those
 * that the program makes.
 */
#include "coll/op.h"

#include <limits.h>

#include "bodies.h"
#include "coll/coll.h"
#include "core/background.h"
#include "core/pool.h"
#include "env/error.h"
#include "pt2pt/message.h"

static struct madmpi_pool pool;

#define AT(handle) ((uintptr_t)(handle) - (uintptr_t)MPI_OP_NULL)

/* clang-format off */
#define OP(handle, table)                                                      \
	[handle - 0x20] = { .object.kind = ATOMIC_INIT(MADMPI_OP), .commutes = true,        \
			    .name = #table, .loops = madmpi_loops_##table }

static struct madmpi_op predefined[] = {
	OP(0x21, sum), OP(0x22, min), OP(0x23, max), OP(0x24, prod),
	OP(0x28, band), OP(0x29, bor), OP(0x2a, bxor),
	OP(0x30, land), OP(0x31, lor), OP(0x32, lxor),
	OP(0x38, minloc), OP(0x39, maxloc),
	[0x3c - 0x20] = { .object.kind = ATOMIC_INIT(MADMPI_OP), .name = "replace",
			  .loops = madmpi_loops_none },
	[0x3d - 0x20] = { .object.kind = ATOMIC_INIT(MADMPI_OP), .name = "no_op",
			  .loops = madmpi_loops_none },
};
/* clang-format on */

struct madmpi_op *madmpi_op_of(MPI_Op handle)
{
	uintptr_t i = AT(handle);

	if (i < BASE_ARRAY_LEN(predefined))
		return predefined[i].name != NULL ? &predefined[i] : NULL;
	if (madmpi_handle_is_constant(handle))
		return NULL;
	return madmpi_handle_object(handle, MADMPI_OP);
}

void madmpi_op_get(struct madmpi_op *op)
{
	if (op->name == NULL)
		madmpi_object_get(&op->object);
}

void madmpi_op_put(struct madmpi_op *op)
{
	if (op->name == NULL && madmpi_object_put(&op->object))
		madmpi_pool_put(&pool, op);
}

bool madmpi_op_takes(const struct madmpi_op *op, const struct madmpi_type *t)
{
	if (t->basic == MADMPI_VALUE_INDEX)
		return op->loops == NULL || op->loops == madmpi_loops_minloc ||
		       op->loops == madmpi_loops_maxloc;
	return op->loops == NULL || op->loops[t->basic] != NULL;
}

/* A user function with an int length gets long vectors in pieces. */
static void apply_user(const struct madmpi_op *op, const char *in, char *inout,
		       MPI_Count n, struct madmpi_type *t)
{
	MPI_Datatype handle = madmpi_type_handle(t);
	MPI_Count extent = madmpi_type_extent(t);
	int len;

	if (op->user_large != NULL) {
		op->user_large((void *)in, inout, &n, &handle);
		return;
	}
	while (n > 0) {
		len = n > INT_MAX ? INT_MAX : (int)n;
		op->user((void *)in, inout, &len, &handle);
		in += len * extent;
		inout += len * extent;
		n -= len;
	}
}

static void call_user(const struct madmpi_op *op, const void *in, void *inout,
		      MPI_Count n, struct madmpi_type *t)
{
	bool is_noted = madmpi_background_call();

	apply_user(op, in, inout, n, t);
	if (is_noted)
		madmpi_background_called();
}

void madmpi_op_apply(const struct madmpi_op *op, const void *in, void *inout,
		     MPI_Count n, struct madmpi_type *t)
{
	if (n == 0)
		return;
	if (op->loops == NULL)
		call_user(op, in, inout, n, t);
	else if (t->basic == MADMPI_VALUE_INDEX)
		madmpi_pairs_apply(op, in, inout, n, t);
	else
		op->loops[t->basic](in, inout, n);
}

static int create(const char *fn, MPI_User_function *user,
		  MPI_User_function_c *large, int commute, MPI_Op *out)
{
	struct madmpi_op *op;

	if ((user == NULL && large == NULL) || out == NULL)
		return madmpi_null_arg(NULL, fn, out ? "user_fn" : "op");
	op = madmpi_pool_get(&pool);
	if (op == NULL)
		return madmpi_error(NULL, MPI_ERR_NO_MEM, fn,
				    "no memory for an operation");
	op->commutes = commute != 0;
	op->name = NULL;
	op->loops = NULL;
	op->user = user;
	op->user_large = large;
	*out = (MPI_Op)op;
	return MPI_SUCCESS;
}

/* MPI_Op_create */
int madmpi_op_create(MPI_User_function *user_fn, int commute, MPI_Op *op)
{
	return create("MPI_Op_create", user_fn, NULL, commute, op);
}

/* MPI_Op_create_c */
int madmpi_op_create_c(MPI_User_function_c *user_fn, int commute, MPI_Op *op)
{
	return create("MPI_Op_create_c", NULL, user_fn, commute, op);
}

static int bad_op(const char *fn, MPI_Op op)
{
	return madmpi_error(NULL, MPI_ERR_OP, fn, "op %p is not an operation",
			    (void *)op);
}

/* MPI_Op_free */
int madmpi_op_free(MPI_Op *op)
{
	struct madmpi_op *o;

	if (op == NULL)
		return madmpi_null_arg(NULL, "MPI_Op_free", "op");
	o = madmpi_op_of(*op);
	if (o == NULL || madmpi_object_is_let_go(&o->object))
		return bad_op("MPI_Op_free", *op);
	if (o->name != NULL)
		return madmpi_error(NULL, MPI_ERR_OP, "MPI_Op_free",
				    "a predefined operation (%s) cannot be "
				    "freed",
				    o->name);
	madmpi_object_let_go(&o->object);
	madmpi_op_put(o);
	*op = MPI_OP_NULL;
	return MPI_SUCCESS;
}

/* MPI_Op_commutative */
int madmpi_op_commutative(MPI_Op op, int *commute)
{
	struct madmpi_op *o = madmpi_op_of(op);

	if (o == NULL)
		return bad_op("MPI_Op_commutative", op);
	if (commute == NULL)
		return madmpi_null_arg(NULL, "MPI_Op_commutative", "commute");
	*commute = o->commutes;
	return MPI_SUCCESS;
}

/* MPI_Reduce_local, MPI_Reduce_local_c */
int madmpi_reduce_local(const void *inbuf, void *inoutbuf, MPI_Count count,
			MPI_Datatype datatype, MPI_Op op)
{
	const char *fn = "MPI_Reduce_local";
	struct madmpi_type *t;
	struct madmpi_op *o;
	int rc = madmpi_check_data(fn, NULL, inbuf, count, datatype, &t);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_buffer(fn, NULL, "inoutbuf", inoutbuf, count,
					 t);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_alias(fn, NULL, inbuf, inoutbuf, count);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_op(fn, NULL, op, count, t, &o);
	if (rc != MPI_SUCCESS)
		return rc;
	madmpi_op_apply(o, inbuf, inoutbuf, count, t);
	return MPI_SUCCESS;
}

void madmpi_op_init(void)
{
	madmpi_pool_init(&pool, MADMPI_OP, sizeof(struct madmpi_op));
}

void madmpi_op_exit(void)
{
	madmpi_pool_exit(&pool);
}
