/*
 * Keyvals. One lives until its program has freed it and no attribute is left
 * that was set under it; then its number is given again. Until then it may be
 * freed once more, which does nothing: programs free it in a delete function,
 * say, and at the end.
 */
#include "comm/keyval.h"

#include <stdlib.h>

#include "bodies.h"
#include "core/ids.h"
#include "env/error.h"

marcel_mutex_t madmpi_keyval_mutex = MARCEL_MUTEX_INITIALIZER;

/* l: the numbers less KEYVAL_FIRST */
static struct madmpi_ids ids = MADMPI_IDS_INITIALIZER;

struct madmpi_keyval *madmpi_keyval_find(int number,
					 enum madmpi_keyval_kind kind)
{
	struct madmpi_keyval *k = NULL;

	if (number >= MADMPI_KEYVAL_FIRST)
		k = madmpi_ids_at(&ids, number - MADMPI_KEYVAL_FIRST);
	return k != NULL && k->kind == kind ? k : NULL;
}

int madmpi_keyval_kept(int number, enum madmpi_keyval_kind *kind)
{
	const struct madmpi_keyval *k;
	int found = -1;

	marcel_mutex_lock(&madmpi_keyval_mutex);
	for (int i = number - MADMPI_KEYVAL_FIRST; i < ids.room && found < 0;
	     i++) {
		k = madmpi_ids_at(&ids, i);
		if (k != NULL && !k->freed) {
			found = k->number;
			*kind = k->kind;
		}
	}
	marcel_mutex_unlock(&madmpi_keyval_mutex);
	return found;
}

void madmpi_keyval_put(struct madmpi_keyval *k)
{
	if (--k->refs > 0)
		return;
	madmpi_ids_put(&ids, k->number - MADMPI_KEYVAL_FIRST);
	free(k);
}

int madmpi_keyval_refuse(struct madmpi_comm *c, const char *fn, int number)
{
	return madmpi_error(c, MPI_ERR_KEYVAL, fn, "keyval %d is %s", number,
			    number == MPI_KEYVAL_INVALID
				    ? "MPI_KEYVAL_INVALID"
				    : "none of such objects, or was freed");
}

static int create(const char *fn, const struct madmpi_keyval *like, int *out)
{
	struct madmpi_keyval *k;
	int i = -1;

	if (out == NULL)
		return madmpi_null_arg(NULL, fn, "keyval");
	k = malloc(sizeof(*k));
	marcel_mutex_lock(&madmpi_keyval_mutex);
	if (k != NULL)
		i = madmpi_ids_take(&ids, k);
	if (i >= 0) {
		*k = *like;
		k->refs = 1;
		k->number = MADMPI_KEYVAL_FIRST + i;
		*out = k->number;
	}
	marcel_mutex_unlock(&madmpi_keyval_mutex);
	if (i >= 0)
		return MPI_SUCCESS;
	free(k);
	return madmpi_error(NULL, MPI_ERR_NO_MEM, fn, "no memory for a keyval");
}

static int release(const char *fn, int *number, enum madmpi_keyval_kind kind)
{
	struct madmpi_keyval *k;

	if (number == NULL)
		return madmpi_null_arg(NULL, fn, "keyval");
	marcel_mutex_lock(&madmpi_keyval_mutex);
	k = madmpi_keyval_find(*number, kind);
	if (k != NULL && !k->freed) {
		k->freed = true;
		madmpi_keyval_put(k);
	}
	marcel_mutex_unlock(&madmpi_keyval_mutex);
	if (k == NULL)
		return madmpi_keyval_refuse(NULL, fn, *number);
	*number = MPI_KEYVAL_INVALID;
	return MPI_SUCCESS;
}

static int create_for_comm(const char *fn, MPI_Comm_copy_attr_function *copy,
			   MPI_Comm_delete_attr_function *delete, int *number,
			   void *extra)
{
	struct madmpi_keyval k = { .kind = MADMPI_KEYVAL_COMM,
				   .copy.comm = copy,
				   .delete.comm = delete,
				   .extra = extra };

	return create(fn, &k, number);
}

/* MPI_Comm_create_keyval */
int madmpi_comm_create_keyval(MPI_Comm_copy_attr_function *copy,
			      MPI_Comm_delete_attr_function *delete,
			      int *comm_keyval, void *extra_state)
{
	return create_for_comm("MPI_Comm_create_keyval", copy, delete,
			       comm_keyval, extra_state);
}

/* MPI_Comm_free_keyval */
int madmpi_comm_free_keyval(int *comm_keyval)
{
	return release("MPI_Comm_free_keyval", comm_keyval, MADMPI_KEYVAL_COMM);
}

/* MPI_Type_create_keyval */
int madmpi_type_create_keyval(MPI_Type_copy_attr_function *copy,
			      MPI_Type_delete_attr_function *delete,
			      int *type_keyval, void *extra_state)
{
	struct madmpi_keyval k = { .kind = MADMPI_KEYVAL_TYPE,
				   .copy.type = copy,
				   .delete.type = delete,
				   .extra = extra_state };

	return create("MPI_Type_create_keyval", &k, type_keyval);
}

/* MPI_Type_free_keyval */
int madmpi_type_free_keyval(int *type_keyval)
{
	return release("MPI_Type_free_keyval", type_keyval, MADMPI_KEYVAL_TYPE);
}

/* MPI_Win_create_keyval: nothing copies windows, nor calls that function. */
int madmpi_win_create_keyval(MPI_Win_copy_attr_function *copy,
			     MPI_Win_delete_attr_function *delete,
			     int *win_keyval, void *extra_state)
{
	struct madmpi_keyval k = { .kind = MADMPI_KEYVAL_WIN,
				   .delete.win = delete,
				   .extra = extra_state };

	(void)copy;
	return create("MPI_Win_create_keyval", &k, win_keyval);
}

/* MPI_Win_free_keyval */
int madmpi_win_free_keyval(int *win_keyval)
{
	return release("MPI_Win_free_keyval", win_keyval, MADMPI_KEYVAL_WIN);
}

/* MPI_Keyval_create */
int madmpi_keyval_create(MPI_Copy_function *copy_fn,
			 MPI_Delete_function *delete_fn, int *keyval,
			 void *extra_state)
{
	return create_for_comm("MPI_Keyval_create", copy_fn, delete_fn, keyval,
			       extra_state);
}

/* MPI_Keyval_free */
int madmpi_keyval_free(int *keyval)
{
	return release("MPI_Keyval_free", keyval, MADMPI_KEYVAL_COMM);
}
