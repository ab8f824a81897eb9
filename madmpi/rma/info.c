/*
 * Hints of windows. All are kept and told again. Those about memory are read
 * when a window is made (win.c): alloc_shm, alloc_shared_noncontig, and
 * mpi_minimum_memory_alignment; MPI_Win_get_info shows the alignment in effect.
 * The other hints would permit nothing that is faster.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bodies.h"
#include "info/info.h"
#include "pt2pt/message.h"
#include "rma/win.h"

/* With what is true of a window that was not told otherwise. */
static const struct {
	const char *key, *value;
} known[MADMPI_WIN_INFOS] = {
	{ "no_locks", "false" },
	{ "accumulate_ordering", "rar,raw,war,waw" },
	{ "accumulate_ops", "same_op_no_op" },
	{ "mpi_accumulate_granularity", "0" },
	{ "same_size", "false" },
	{ "same_disp_unit", "false" },
	{ "alloc_shared_noncontig", "false" },
	{ "alloc_shm", "true" },
};

bool madmpi_win_info_says(MPI_Info info, const char *key, const char *value)
{
	char got[MPI_MAX_INFO_VAL];
	int room = sizeof(got), flag = 0;

	if (info == MPI_INFO_NULL)
		return false;
	madmpi_info_get_string(info, key, &room, got, &flag);
	return flag && strcmp(got, value) == 0;
}

/* A copy of the value, or NULL: there is none. */
static char *value_of(MPI_Info info, const char *key)
{
	char got[MPI_MAX_INFO_VAL];
	int room = sizeof(got), flag = 0;

	madmpi_info_get_string(info, key, &room, got, &flag);
	return flag ? strdup(got) : NULL;
}

void madmpi_win_hint(struct madmpi_win *w, MPI_Info info)
{
	char *value, *old;

	for (int i = 0; i < MADMPI_WIN_INFOS && info != MPI_INFO_NULL; i++) {
		value = value_of(info, known[i].key);
		if (value == NULL)
			continue;
		marcel_mutex_lock(&w->mutex);
		old = w->info[i];
		w->info[i] = value;
		marcel_mutex_unlock(&w->mutex);
		free(old);
	}
}

void madmpi_win_forget_hints(struct madmpi_win *w)
{
	for (int i = 0; i < MADMPI_WIN_INFOS; i++)
		free(w->info[i]);
}

/* MPI_Win_set_info */
int madmpi_win_set_info(MPI_Win win, MPI_Info info)
{
	const char *fn = "MPI_Win_set_info";
	struct madmpi_info *i;
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_info(w->comm, fn, info, &i);
	if (rc == MPI_SUCCESS && i == NULL)
		return madmpi_error(w->comm, MPI_ERR_INFO, fn,
				    "info is MPI_INFO_NULL");
	if (rc == MPI_SUCCESS)
		madmpi_win_hint(w, info);
	return rc;
}

static bool is_allocated(const struct madmpi_win *w)
{
	return w->flavor == MPI_WIN_FLAVOR_ALLOCATE ||
	       w->flavor == MPI_WIN_FLAVOR_SHARED;
}

/* MPI_Win_get_info: a new object, the caller's. */
int madmpi_win_get_info(MPI_Win win, MPI_Info *info_used)
{
	const char *fn = "MPI_Win_get_info";
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);
	char value[MPI_MAX_INFO_VAL];

	if (rc != MPI_SUCCESS)
		return rc;
	if (info_used == NULL)
		return madmpi_null_arg(w->comm, fn, "info_used");
	rc = madmpi_info_create(info_used);
	for (int i = 0; rc == MPI_SUCCESS && i < MADMPI_WIN_INFOS; i++) {
		marcel_mutex_lock(&w->mutex);
		strcpy(value, w->info[i] ? w->info[i] : known[i].value);
		marcel_mutex_unlock(&w->mutex);
		rc = madmpi_info_set(*info_used, known[i].key, value);
	}
	if (rc != MPI_SUCCESS || !is_allocated(w))
		return rc;
	snprintf(value, sizeof(value), "%zu", w->align);
	return madmpi_info_set(*info_used, "mpi_minimum_memory_alignment",
			       value);
}
