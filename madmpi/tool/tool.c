/*
 * The tool interface: its beginning and end, and how it returns text.
 */
#include "tool/tool.h"

#include <stdio.h>
#include <string.h>

#include <base/spin.h>

#include "bodies.h"

/* How often it was initialised and not finalised. */
static struct {
	struct base_spin lock;
	int n; /* l: */
} users = { .lock = BASE_SPIN_INIT(BASE_RANK_LEAF) };

int madmpi_tool_check(void)
{
	bool up;

	base_spin_lock(&users.lock);
	up = users.n > 0;
	base_spin_unlock(&users.lock);
	return up ? MPI_SUCCESS : MPI_T_ERR_NOT_INITIALIZED;
}

void madmpi_tool_text(const char *text, char *out, int *len)
{
	if (len == NULL)
		return;
	if (out != NULL && *len > 0)
		snprintf(out, (size_t)*len, "%s", text);
	*len = (int)strlen(text) + 1;
}

const char *madmpi_tool_module(enum madmpi_module m)
{
	static const char *const names[] = {
		[MADMPI_OF_MARCEL] = "marcel",
		[MADMPI_OF_PIOMAN] = "pioman",
		[MADMPI_OF_NMAD] = "nmad",
		[MADMPI_OF_MADMPI] = "madmpi",
	};

	return names[m];
}

/* MPI_T_init_thread: every level is the highest one. */
int madmpi_t_init_thread(int required, int *provided)
{
	if (required != MPI_THREAD_SINGLE && required != MPI_THREAD_FUNNELED &&
	    required != MPI_THREAD_SERIALIZED &&
	    required != MPI_THREAD_MULTIPLE)
		return MPI_T_ERR_INVALID;
	if (provided == NULL)
		return MPI_T_ERR_INVALID;
	madmpi_tool_cvar_init();
	base_spin_lock(&users.lock);
	users.n++;
	base_spin_unlock(&users.lock);
	*provided = MPI_THREAD_MULTIPLE;
	return MPI_SUCCESS;
}

/* MPI_T_finalize */
int madmpi_t_finalize(void)
{
	int rc = MPI_T_ERR_NOT_INITIALIZED;

	base_spin_lock(&users.lock);
	if (users.n > 0) {
		users.n--;
		rc = MPI_SUCCESS;
	}
	base_spin_unlock(&users.lock);
	return rc;
}
