/*
 * Objects of MPI_T, which tools make.
 */
#include <stdlib.h>

#include "objects.h"

static MPI_T_cvar_handle *cvar;
static MPI_T_pvar_session tool;
static MPI_T_pvar_handle *pvar;
static MPI_T_event_registration *event;

static void tool_begin(void)
{
	int provided;

	NEED(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
	NEED(MPI_T_pvar_session_create(&tool));
	cvar = places(sizeof(*cvar));
	pvar = places(sizeof(*pvar));
	event = places(sizeof(*event));
}

static void tool_end(void)
{
	free(cvar);
	free(pvar);
	free(event);
	NEED(MPI_T_pvar_session_free(&tool));
	NEED(MPI_T_finalize());
}

static bool cvar_create(int i)
{
	int n;

	return MPI_T_cvar_handle_alloc(0, NULL, &cvar[i], &n) == 0;
}

static void cvar_drop(int i)
{
	NEED(MPI_T_cvar_handle_free(&cvar[i]));
}

static bool pvar_create(int i)
{
	int n;

	return MPI_T_pvar_handle_alloc(tool, 0, NULL, &pvar[i], &n) == 0;
}

static void pvar_use(int i)
{
	unsigned long long v[8];

	NEED(MPI_T_pvar_read(tool, pvar[i], v));
}

static void pvar_drop(int i)
{
	NEED(MPI_T_pvar_handle_free(tool, &pvar[i]));
}

static bool event_create(int i)
{
	return MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &event[i]) == 0;
}

static void event_drop(int i)
{
	NEED(MPI_T_event_handle_free(event[i], NULL, NULL));
}

/* clang-format off */
const struct kind objects_tool[] = {
	{ "cvar_handle", tool_begin, cvar_create, NULL, cvar_drop, tool_end },
	{ "pvar_handle", tool_begin, pvar_create, pvar_use, pvar_drop, tool_end },
	{ "event_handle", tool_begin, event_create, NULL, event_drop, tool_end },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
/* clang-format on */
