/*
 * Categories: one for each module: its settings, its counters, its events. They
 * never change, and none lies in another.
 */
#include <string.h>

#include "bodies.h"
#include "tool/tool.h"

/* MPI_SUCCESS, or why there is nothing to tell. */
static int check(int cat_index)
{
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	return cat_index >= 0 && cat_index < MADMPI_MODULES
		       ? MPI_SUCCESS
		       : MPI_T_ERR_INVALID_INDEX;
}

/* The same where a list follows. */
static int check_list(int cat_index, int len, const int indices[])
{
	int rc = check(cat_index);

	if (rc != MPI_SUCCESS)
		return rc;
	return len < 0 || (len > 0 && indices == NULL) ? MPI_T_ERR_INVALID
						       : MPI_SUCCESS;
}

static void fill(int first, int end, int len, int indices[])
{
	for (int i = 0; i < len && first + i < end; i++)
		indices[i] = first + i;
}

/* MPI_T_category_get_num */
int madmpi_t_category_get_num(int *num_cat)
{
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (num_cat == NULL)
		return MPI_T_ERR_INVALID;
	*num_cat = MADMPI_MODULES;
	return MPI_SUCCESS;
}

/* MPI_T_category_get_info */
int madmpi_t_category_get_info(int cat_index, char *name, int *name_len,
			       char *desc, int *desc_len, int *num_cvars,
			       int *num_pvars, int *num_categories)
{
	static const char *const what[] = {
		[MADMPI_OF_MARCEL] = "user threads and who runs them",
		[MADMPI_OF_PIOMAN] = "progress in the background",
		[MADMPI_OF_NMAD] = "messages between processes",
		[MADMPI_OF_MADMPI] = "MPI itself",
	};
	int rc = check(cat_index);
	enum madmpi_module m = (enum madmpi_module)cat_index;

	if (rc != MPI_SUCCESS)
		return rc;
	madmpi_tool_text(madmpi_tool_module(m), name, name_len);
	madmpi_tool_text(what[m], desc, desc_len);
	madmpi_tool_tell(num_cvars,
			 madmpi_tool_settings(m + 1) - madmpi_tool_settings(m));
	madmpi_tool_tell(num_pvars,
			 madmpi_tool_counters(m + 1) - madmpi_tool_counters(m));
	madmpi_tool_tell(num_categories, 0);
	return MPI_SUCCESS;
}

/* MPI_T_category_get_num_events */
int madmpi_t_category_get_num_events(int cat_index, int *num_events)
{
	int rc = check(cat_index);

	if (rc != MPI_SUCCESS)
		return rc;
	if (num_events == NULL)
		return MPI_T_ERR_INVALID;
	*num_events = madmpi_tool_events(cat_index + 1) -
		      madmpi_tool_events(cat_index);
	return MPI_SUCCESS;
}

/* MPI_T_category_get_index */
int madmpi_t_category_get_index(const char *name, int *cat_index)
{
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (name == NULL || cat_index == NULL)
		return MPI_T_ERR_INVALID;
	for (int m = 0; m < MADMPI_MODULES; m++)
		if (strcmp(madmpi_tool_module(m), name) == 0) {
			*cat_index = m;
			return MPI_SUCCESS;
		}
	return MPI_T_ERR_INVALID_NAME;
}

/* MPI_T_category_get_cvars */
int madmpi_t_category_get_cvars(int cat_index, int len, int indices[])
{
	int rc = check_list(cat_index, len, indices);

	if (rc == MPI_SUCCESS)
		fill(madmpi_tool_settings(cat_index),
		     madmpi_tool_settings(cat_index + 1), len, indices);
	return rc;
}

/* MPI_T_category_get_pvars */
int madmpi_t_category_get_pvars(int cat_index, int len, int indices[])
{
	int rc = check_list(cat_index, len, indices);

	if (rc == MPI_SUCCESS)
		fill(madmpi_tool_counters(cat_index),
		     madmpi_tool_counters(cat_index + 1), len, indices);
	return rc;
}

/* MPI_T_category_get_categories: there are none inside. */
int madmpi_t_category_get_categories(int cat_index, int len, int indices[])
{
	return check_list(cat_index, len, indices);
}

/* MPI_T_category_get_events */
int madmpi_t_category_get_events(int cat_index, int len, int indices[])
{
	int rc = check_list(cat_index, len, indices);

	if (rc == MPI_SUCCESS)
		fill(madmpi_tool_events(cat_index),
		     madmpi_tool_events(cat_index + 1), len, indices);
	return rc;
}

/* MPI_T_category_changed */
int madmpi_t_category_changed(int *update_number)
{
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (update_number == NULL)
		return MPI_T_ERR_INVALID;
	*update_number = 0;
	return MPI_SUCCESS;
}
