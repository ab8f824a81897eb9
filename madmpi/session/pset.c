/*
 * Process sets: all processes of the job, and the calling one alone. Who is in
 * them never changes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <nmad/nmad.h>

#include "bodies.h"
#include "comm/comm.h"
#include "info/info.h"
#include "session/session.h"

static const struct {
	const char *name;
	enum madmpi_pset set;
} psets[] = {
	{ "mpi://WORLD", MADMPI_PSET_WORLD },
	{ "mpi://SELF", MADMPI_PSET_SELF },
};

enum { PSETS = BASE_ARRAY_LEN(psets) };

enum madmpi_pset madmpi_pset_named(const char *name)
{
	for (int i = 0; i < PSETS; i++)
		if (strcasecmp(name, psets[i].name) == 0)
			return psets[i].set;
	return MADMPI_PSET_NONE;
}

/* The session, and the info object, which may only be MPI_INFO_NULL or one. */
static int check(const char *fn, MPI_Session session, MPI_Info info,
		 struct madmpi_session **s)
{
	int rc = madmpi_check_session(fn, session, s);

	if (rc != MPI_SUCCESS || info == MPI_INFO_NULL ||
	    madmpi_info_of(info) != NULL)
		return rc;
	return madmpi_session_error(*s, MPI_ERR_INFO, fn,
				    "%p is not an info object", (void *)info);
}

static int check_name(const char *fn, struct madmpi_session *s,
		      const char *name, enum madmpi_pset *set)
{
	*set = MADMPI_PSET_NONE;
	if (name == NULL)
		return madmpi_session_null_arg(s, fn, "pset_name");
	*set = madmpi_pset_named(name);
	if (*set != MADMPI_PSET_NONE)
		return MPI_SUCCESS;
	return madmpi_session_error(s, MPI_ERR_ARG, fn,
				    "there is no process set \"%.80s\"", name);
}

/* MPI_Session_get_num_psets */
int madmpi_session_get_num_psets(MPI_Session session, MPI_Info info,
				 int *npset_names)
{
	const char *fn = "MPI_Session_get_num_psets";
	struct madmpi_session *s;
	int rc = check(fn, session, info, &s);

	if (rc != MPI_SUCCESS)
		return rc;
	if (npset_names == NULL)
		return madmpi_session_null_arg(s, fn, "npset_names");
	*npset_names = PSETS;
	return MPI_SUCCESS;
}

/* MPI_Session_get_nth_pset: *pset_len is the room, then the need, with a 0. */
int madmpi_session_get_nth_pset(MPI_Session session, MPI_Info info, int n,
				int *pset_len, char *pset_name)
{
	const char *fn = "MPI_Session_get_nth_pset";
	struct madmpi_session *s;
	int rc = check(fn, session, info, &s);

	if (rc != MPI_SUCCESS)
		return rc;
	if (pset_len == NULL)
		return madmpi_session_null_arg(s, fn, "pset_len");
	if (n < 0 || n >= PSETS)
		return madmpi_session_error(s, MPI_ERR_ARG, fn,
					    "n is %d, and there are %d sets", n,
					    PSETS);
	if (*pset_len < 0)
		return madmpi_session_error(s, MPI_ERR_ARG, fn,
					    "*pset_len is %d, below 0",
					    *pset_len);
	if (*pset_len > 0 && pset_name == NULL)
		return madmpi_session_null_arg(s, fn, "pset_name");
	if (*pset_len > 0)
		snprintf(pset_name, (size_t)*pset_len, "%s", psets[n].name);
	*pset_len = (int)strlen(psets[n].name) + 1;
	return MPI_SUCCESS;
}

/* MPI_Session_get_pset_info: a new object, the caller's. */
int madmpi_session_get_pset_info(MPI_Session session, const char *pset_name,
				 MPI_Info *info)
{
	const char *fn = "MPI_Session_get_pset_info";
	enum madmpi_pset set;
	struct madmpi_session *s;
	char size[16];
	int rc = madmpi_check_session(fn, session, &s);

	if (rc == MPI_SUCCESS)
		rc = check_name(fn, s, pset_name, &set);
	if (rc != MPI_SUCCESS)
		return rc;
	if (info == NULL)
		return madmpi_session_null_arg(s, fn, "info");
	snprintf(size, sizeof(size), "%d",
		 set == MADMPI_PSET_WORLD ? nm_size() : 1);
	rc = madmpi_info_create(info);
	return rc ? rc : madmpi_info_set(*info, "mpi_size", size);
}

/* NULL: no memory. */
static struct madmpi_group *group_of(enum madmpi_pset set)
{
	int first = set == MADMPI_PSET_WORLD ? 0 : nm_rank();
	int n = set == MADMPI_PSET_WORLD ? nm_size() : 1;
	int *world = malloc((size_t)n * sizeof(*world));
	struct madmpi_group *g;

	if (world == NULL)
		return NULL;
	for (int i = 0; i < n; i++)
		world[i] = first + i;
	g = madmpi_group_new(world, n);
	free(world);
	return g;
}

/* MPI_Group_from_session_pset */
int madmpi_group_from_session_pset(MPI_Session session, const char *pset_name,
				   MPI_Group *newgroup)
{
	const char *fn = "MPI_Group_from_session_pset";
	enum madmpi_pset set;
	struct madmpi_session *s;
	struct madmpi_group *g;
	int rc = madmpi_check_session(fn, session, &s);

	if (rc != MPI_SUCCESS)
		return rc;
	if (newgroup == NULL)
		return madmpi_session_null_arg(s, fn, "newgroup");
	*newgroup = MPI_GROUP_NULL;
	rc = check_name(fn, s, pset_name, &set);
	if (rc != MPI_SUCCESS)
		return rc;
	g = group_of(set);
	if (g == NULL)
		return madmpi_session_error(s, MPI_ERR_NO_MEM, fn,
					    "no memory for a group");
	madmpi_group_join(g, s);
	*newgroup = madmpi_group_hand_out(g);
	madmpi_group_put(g);
	return MPI_SUCCESS;
}
