/*
 * What can be asked about a window: names, groups, attributes, memory.
 */
#include <stdio.h>
#include <string.h>

#include "bodies.h"
#include "comm/keyval.h"
#include "env/error.h"
#include "rma/win.h"

/* MPI_Win_get_group */
int madmpi_win_get_group(MPI_Win win, MPI_Group *group)
{
	const char *fn = "MPI_Win_get_group";
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);

	if (rc != MPI_SUCCESS)
		return rc;
	if (group == NULL)
		return madmpi_null_arg(w->comm, fn, "group");
	*group = madmpi_group_hand_out(w->comm->group);
	return MPI_SUCCESS;
}

/* MPI_Win_set_name */
int madmpi_win_set_name(MPI_Win win, const char *win_name)
{
	const char *fn = "MPI_Win_set_name";
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);

	if (rc != MPI_SUCCESS)
		return rc;
	if (win_name == NULL)
		return madmpi_null_arg(w->comm, fn, "win_name");
	base_spin_lock(&w->comm->lock);
	snprintf(w->comm->name, sizeof(w->comm->name), "%s", win_name);
	base_spin_unlock(&w->comm->lock);
	return MPI_SUCCESS;
}

/* MPI_Win_get_name */
int madmpi_win_get_name(MPI_Win win, char *win_name, int *resultlen)
{
	const char *fn = "MPI_Win_get_name";
	struct madmpi_win *w;
	int rc;

	if (win_name == NULL || resultlen == NULL)
		return madmpi_null_arg(NULL, fn,
				       win_name ? "resultlen" : "win_name");
	if (win == MPI_WIN_NULL) {
		*resultlen = sprintf(win_name, "MPI_WIN_NULL");
		return MPI_SUCCESS;
	}
	rc = madmpi_check_win(fn, win, &w);
	if (rc != MPI_SUCCESS)
		return rc;
	base_spin_lock(&w->comm->lock);
	strcpy(win_name, w->comm->name);
	base_spin_unlock(&w->comm->lock);
	*resultlen = (int)strlen(win_name);
	return MPI_SUCCESS;
}

/* --- memory of others --- */

/* The first that has any, whether or not this process can reach it; or -1. */
static int first_with_memory(const struct madmpi_win *w)
{
	for (int i = 0; i < w->size; i++)
		if (w->member[i].size > 0)
			return i;
	return -1;
}

/*
 * MPI_Win_shared_query, MPI_Win_shared_query_c: memory that this process cannot
 * reach has size 0.
 */
int madmpi_win_shared_query(MPI_Win win, int rank, MPI_Aint *size,
			    MPI_Aint *disp_unit, void *baseptr)
{
	const char *fn = "MPI_Win_shared_query";
	struct madmpi_win_member none = { 0, 1, NULL }, *m;
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_target(fn, w, rank);
	if (rc != MPI_SUCCESS)
		return rc;
	if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return madmpi_error(w->comm, MPI_ERR_RMA_FLAVOR, fn,
				    "the window is dynamic");
	if (size == NULL || disp_unit == NULL || baseptr == NULL)
		return madmpi_null_arg(w->comm, fn, "a result");
	if (rank == MPI_PROC_NULL)
		rank = first_with_memory(w);
	m = rank >= 0 && (w->is_shared || rank == w->rank) ? &w->member[rank]
							   : &none;
	*size = m->size;
	*disp_unit = m->unit;
	memcpy(baseptr, &m->at, sizeof(void *));
	return MPI_SUCCESS;
}

/* --- attributes --- */

/* What the library keeps; NULL: there is none of that number. */
static void *predefined(struct madmpi_win *w, int number)
{
	switch (number) {
	case MPI_WIN_BASE:
		return &w->member[w->rank].at; /* the value itself */
	case MPI_WIN_SIZE:
		return &w->member[w->rank].size;
	case MPI_WIN_DISP_UNIT:
		return &w->unit;
	case MPI_WIN_CREATE_FLAVOR:
		return &w->flavor;
	case MPI_WIN_MODEL:
		return &w->model;
	default:
		return NULL;
	}
}

/* The window, and not one of its predefined attributes. */
static int check(const char *fn, MPI_Win win, int number,
		 struct madmpi_bearer *out)
{
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);

	if (rc != MPI_SUCCESS)
		return rc;
	*out = (struct madmpi_bearer){ .comm = w->comm };
	if (number < MPI_TAG_UB || number >= MADMPI_KEYVAL_FIRST)
		return MPI_SUCCESS;
	return madmpi_error(w->comm, MPI_ERR_KEYVAL, fn,
			    "keyval %d is predefined, its attribute cannot be "
			    "changed",
			    number);
}

/* MPI_Win_set_attr */
int madmpi_win_set_attr(MPI_Win win, int win_keyval, void *attribute_val)
{
	const char *fn = "MPI_Win_set_attr";
	struct madmpi_bearer b;
	int rc = check(fn, win, win_keyval, &b);

	return rc ? rc : madmpi_attr_set(fn, b, win_keyval, attribute_val);
}

/* MPI_Win_get_attr */
int madmpi_win_get_attr(MPI_Win win, int win_keyval, void *attribute_val,
			int *flag)
{
	const char *fn = "MPI_Win_get_attr";
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);
	void *own;

	if (rc != MPI_SUCCESS)
		return rc;
	own = predefined(w, win_keyval);
	if (own == NULL || attribute_val == NULL || flag == NULL)
		return madmpi_attr_find(
			fn, (struct madmpi_bearer){ .comm = w->comm },
			win_keyval, attribute_val, flag);
	if (own == &w->unit && w->unit != w->member[w->rank].unit)
		return madmpi_error(w->comm, MPI_ERR_VALUE_TOO_LARGE, fn,
				    "the displacement unit %lld does not fit "
				    "in an int",
				    (long long)w->member[w->rank].unit);
	*flag = 1;
	*(void **)attribute_val =
		win_keyval == MPI_WIN_BASE ? *(void **)own : own;
	return MPI_SUCCESS;
}

/* MPI_Win_delete_attr */
int madmpi_win_delete_attr(MPI_Win win, int win_keyval)
{
	const char *fn = "MPI_Win_delete_attr";
	struct madmpi_bearer b;
	int rc = check(fn, win, win_keyval, &b);

	return rc ? rc : madmpi_attr_remove(fn, b, win_keyval);
}
