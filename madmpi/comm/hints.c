/*
 * Hints of communicators. The assertions of the standard are kept and told
 * again; nothing would be faster for knowing them, as matching takes the same
 * time with wildcards and without.
 */
#include <string.h>

#include "bodies.h"
#include "comm/comm.h"
#include "info/info.h"
#include "pt2pt/message.h"

static const char *const known[MADMPI_HINTS] = {
	"mpi_assert_no_any_tag",
	"mpi_assert_no_any_source",
	"mpi_assert_exact_length",
	"mpi_assert_allow_overtaking",
};

/* Those that the info object has, and that make sense, replace what was. */
static void take(struct madmpi_comm *c, MPI_Info info)
{
	char value[8];

	for (int i = 0; i < MADMPI_HINTS; i++) {
		int room = sizeof(value), flag = 0;

		madmpi_info_get_string(info, known[i], &room, value, &flag);
		if (!flag ||
		    (strcmp(value, "true") != 0 && strcmp(value, "false") != 0))
			continue;
		base_spin_lock(&c->lock);
		c->hints[i] =
			value[0] == 't' ? MADMPI_HINT_TRUE : MADMPI_HINT_FALSE;
		base_spin_unlock(&c->lock);
	}
}

void madmpi_comm_hint(struct madmpi_comm *c, MPI_Info info)
{
	if (info != MPI_INFO_NULL)
		take(c, info);
}

/* MPI_Comm_set_info */
int madmpi_comm_set_info(MPI_Comm comm, MPI_Info info)
{
	const char *fn = "MPI_Comm_set_info";
	struct madmpi_info *i;
	struct madmpi_comm *c;
	int rc = madmpi_check_comm(fn, comm, &c);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_info(c, fn, info, &i);
	if (rc == MPI_SUCCESS && i == NULL)
		return madmpi_error(c, MPI_ERR_INFO, fn,
				    "info is MPI_INFO_NULL");
	if (rc == MPI_SUCCESS)
		take(c, info);
	return rc;
}

/* MPI_Comm_get_info: a new object, the caller's. */
int madmpi_comm_get_info(MPI_Comm comm, MPI_Info *info_used)
{
	const char *fn = "MPI_Comm_get_info";
	struct madmpi_comm *c;
	int rc = madmpi_check_comm(fn, comm, &c);

	if (rc != MPI_SUCCESS)
		return rc;
	if (info_used == NULL)
		return madmpi_null_arg(c, fn, "info_used");
	rc = madmpi_info_create(info_used);
	for (int i = 0; rc == MPI_SUCCESS && i < MADMPI_HINTS; i++) {
		enum madmpi_hint hint;

		base_spin_lock(&c->lock);
		hint = c->hints[i];
		base_spin_unlock(&c->lock);
		if (hint != MADMPI_HINT_NONE)
			rc = madmpi_info_set(
				*info_used, known[i],
				hint == MADMPI_HINT_TRUE ? "true" : "false");
	}
	return rc;
}
