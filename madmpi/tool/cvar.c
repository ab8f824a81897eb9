/*
 * Control variables: every setting of every module, under the name of its
 * environment variable.
 *
 *   setting    datatype
 *   INT        MPI_INT, or MPI_COUNT if that cannot hold it; a word is -1
 *   SIZE       MPI_COUNT, bytes
 *   BOOL       MPI_INT, 0 or 1
 *   CHOICE     MPI_INT, with an enumeration of its words
 *   STRING     MPI_CHAR
 *
 * They are read when the libraries start. Until then a variable may be written,
 * which sets it in the environment of this process; a tool that comes later
 * finds all of them constant.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <marcel/marcel.h>

#include "bodies.h"
#include "core/pool.h"
#include "tool/tool.h"

enum { TEXT_MAX = 4096 }; /* of a STRING, with its zero */

struct cvar_handle {
	struct madmpi_object object;
	int index; /* -: */
};

static struct madmpi_pool pool;

/* The libraries have not started yet when tools come: -: once initialised */
static bool may_write;

/* Whoever writes and whoever reads the environment. */
static pthread_mutex_t environment = PTHREAD_MUTEX_INITIALIZER;

static bool has_started(void)
{
	return load_relaxed(&madmpi_state.phase) != MADMPI_NEW ||
	       marcel_is_running();
}

static void init(void)
{
	madmpi_pool_init(&pool, MADMPI_T_CVAR, sizeof(struct cvar_handle));
	may_write = !has_started();
}

void madmpi_tool_cvar_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, init);
}

/* --- the settings in a row --- */

int madmpi_tool_settings(enum madmpi_module m)
{
	const struct base_option_table *t;
	int n = 0;

	for (size_t k = 0; k < m; k++)
		for (size_t i = 0; (t = madmpi_settings(k, i)) != NULL; i++)
			n += (int)t->n;
	return n;
}

const struct base_option *madmpi_tool_setting(int index)
{
	const struct base_option_table *t;

	for (size_t m = 0; index >= 0 && m < MADMPI_MODULES; m++)
		for (size_t i = 0; (t = madmpi_settings(m, i)) != NULL; i++) {
			if (index < (int)t->n)
				return &t->options[index];
			index -= (int)t->n;
		}
	return NULL;
}

static MPI_Datatype type_of(const struct base_option *o)
{
	switch (o->kind) {
	case BASE_OPTION_STRING:
		return MPI_CHAR;
	case BASE_OPTION_SIZE:
		return MPI_COUNT;
	case BASE_OPTION_INT:
		return o->max > INT_MAX ? MPI_COUNT : MPI_INT;
	default:
		return MPI_INT;
	}
}

static MPI_T_enum enum_of(const struct base_option *o)
{
	return o->kind == BASE_OPTION_CHOICE ? (MPI_T_enum)o : MPI_T_ENUM_NULL;
}

/* MPI_T_cvar_get_num */
int madmpi_t_cvar_get_num(int *num_cvar)
{
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (num_cvar == NULL)
		return MPI_T_ERR_INVALID;
	*num_cvar = madmpi_tool_settings(MADMPI_MODULES);
	return MPI_SUCCESS;
}

/* MPI_T_cvar_get_info */
int madmpi_t_cvar_get_info(int cvar_index, char *name, int *name_len,
			   int *verbosity, MPI_Datatype *datatype,
			   MPI_T_enum *enumtype, char *desc, int *desc_len,
			   int *bind, int *scope)
{
	const struct base_option *o;
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	o = madmpi_tool_setting(cvar_index);
	if (o == NULL)
		return MPI_T_ERR_INVALID_INDEX;
	madmpi_tool_text(o->name, name, name_len);
	madmpi_tool_text(o->help, desc, desc_len);
	madmpi_tool_tell(verbosity,
			 cvar_index >= madmpi_tool_settings(MADMPI_OF_MADMPI)
				 ? MPI_T_VERBOSITY_USER_BASIC
				 : MPI_T_VERBOSITY_USER_DETAIL);
	if (datatype != NULL)
		*datatype = type_of(o);
	if (enumtype != NULL)
		*enumtype = enum_of(o);
	madmpi_tool_tell(bind, MPI_T_BIND_NO_OBJECT);
	madmpi_tool_tell(scope,
			 may_write ? MPI_T_SCOPE_LOCAL : MPI_T_SCOPE_CONSTANT);
	return MPI_SUCCESS;
}

/* MPI_T_cvar_get_index */
int madmpi_t_cvar_get_index(const char *name, int *cvar_index)
{
	const struct base_option *o;
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (name == NULL || cvar_index == NULL)
		return MPI_T_ERR_INVALID;
	for (int i = 0; (o = madmpi_tool_setting(i)) != NULL; i++)
		if (strcmp(o->name, name) == 0) {
			*cvar_index = i;
			return MPI_SUCCESS;
		}
	return MPI_T_ERR_INVALID_NAME;
}

/* --- handles --- */

static const struct base_option *option_of(MPI_T_cvar_handle handle)
{
	struct cvar_handle *h;

	if (madmpi_handle_is_constant(handle))
		return NULL;
	h = madmpi_handle_object(handle, MADMPI_T_CVAR);
	return h != NULL ? madmpi_tool_setting(h->index) : NULL;
}

/* MPI_T_cvar_handle_alloc: none is bound to an object. */
int madmpi_t_cvar_handle_alloc(int cvar_index, void *obj_handle,
			       MPI_T_cvar_handle *handle, int *count)
{
	const struct base_option *o;
	struct cvar_handle *h;
	int rc = madmpi_tool_check();

	(void)obj_handle;
	if (rc != MPI_SUCCESS)
		return rc;
	o = madmpi_tool_setting(cvar_index);
	if (o == NULL)
		return MPI_T_ERR_INVALID_INDEX;
	if (handle == NULL || count == NULL)
		return MPI_T_ERR_INVALID;
	h = madmpi_pool_get(&pool);
	if (h == NULL)
		return MPI_T_ERR_OUT_OF_HANDLES;
	h->index = cvar_index;
	*handle = (MPI_T_cvar_handle)h;
	*count = o->kind == BASE_OPTION_STRING ? TEXT_MAX : 1;
	return MPI_SUCCESS;
}

/* MPI_T_cvar_handle_free */
int madmpi_t_cvar_handle_free(MPI_T_cvar_handle *handle)
{
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (handle == NULL)
		return MPI_T_ERR_INVALID;
	if (option_of(*handle) == NULL)
		return MPI_T_ERR_INVALID_HANDLE;
	madmpi_pool_put(&pool, *handle);
	*handle = MPI_T_CVAR_HANDLE_NULL;
	return MPI_SUCCESS;
}

/* --- values --- */

/* What is in use, or what would be if the libraries started now. */
static struct base_option now(const struct base_option *o)
{
	struct base_option copy = { .name = o->name,
				    .kind = o->kind,
				    .fallback = o->fallback,
				    .min = o->min,
				    .max = o->max,
				    .choices = o->choices,
				    .word = o->word };

	if (load_relaxed(&madmpi_state.phase) >= MADMPI_UP && o->is_loaded)
		return *o;
	if (base_option_read(&copy) < 0)
		copy.is_set = false;
	return copy;
}

static void store(const struct base_option *o, void *buf)
{
	long value = o->value == BASE_OPTION_WORD ? -1 : o->value;

	if (o->kind == BASE_OPTION_STRING)
		snprintf(buf, TEXT_MAX, "%s", o->string);
	else if (type_of(o) == MPI_INT)
		memcpy(buf, &(int){ (int)value }, sizeof(int));
	else
		memcpy(buf, &(MPI_Count){ value }, sizeof(MPI_Count));
}

/* What the handle is of, whose value is at buf. */
static int check_access(MPI_T_cvar_handle handle, const void *buf,
			const struct base_option **out)
{
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	*out = option_of(handle);
	if (*out == NULL)
		return MPI_T_ERR_INVALID_HANDLE;
	return buf != NULL ? MPI_SUCCESS : MPI_T_ERR_INVALID;
}

/* MPI_T_cvar_read */
int madmpi_t_cvar_read(MPI_T_cvar_handle handle, void *buf)
{
	const struct base_option *o;
	struct base_option value;
	int rc = check_access(handle, buf, &o);

	if (rc != MPI_SUCCESS)
		return rc;
	pthread_mutex_lock(&environment);
	value = now(o);
	store(&value, buf);
	pthread_mutex_unlock(&environment);
	return MPI_SUCCESS;
}

static long number_in(const struct base_option *o, const void *buf)
{
	MPI_Count large;
	int small;

	if (type_of(o) == MPI_INT) {
		memcpy(&small, buf, sizeof(small));
		return small;
	}
	memcpy(&large, buf, sizeof(large));
	return large;
}

/* The value as the environment spells it; false: it is none. */
static bool spell(const struct base_option *o, const void *buf,
		  char text[TEXT_MAX])
{
	long value, n = 0;

	if (o->kind == BASE_OPTION_STRING) {
		if (memchr(buf, 0, TEXT_MAX) == NULL)
			return false;
		strcpy(text, buf);
		return true;
	}
	value = number_in(o, buf);
	while (o->kind == BASE_OPTION_CHOICE && o->choices[n] != NULL)
		n++;
	if (o->kind == BASE_OPTION_CHOICE) {
		if (value >= 0 && value < n)
			strcpy(text, o->choices[value]);
		return value >= 0 && value < n;
	}
	if (value == -1 && o->word != NULL)
		strcpy(text, o->word);
	else
		snprintf(text, TEXT_MAX, "%ld", value);
	if (o->kind == BASE_OPTION_BOOL)
		return value == 0 || value == 1;
	return (value == -1 && o->word != NULL) ||
	       (value >= o->min && value <= o->max);
}

/* MPI_T_cvar_write */
int madmpi_t_cvar_write(MPI_T_cvar_handle handle, const void *buf)
{
	const struct base_option *o;
	char text[TEXT_MAX];
	int rc = check_access(handle, buf, &o);

	if (rc != MPI_SUCCESS)
		return rc;
	if (!may_write)
		return MPI_T_ERR_CVAR_SET_NEVER;
	if (has_started())
		return MPI_T_ERR_CVAR_SET_NOT_NOW;
	if (!spell(o, buf, text))
		return MPI_T_ERR_INVALID;
	pthread_mutex_lock(&environment);
	rc = setenv(o->name, text, 1) < 0 ? MPI_T_ERR_MEMORY : MPI_SUCCESS;
	pthread_mutex_unlock(&environment);
	return rc;
}

/* --- enumerations: the words of a choice --- */

static const struct base_option *choice_of(MPI_T_enum handle)
{
	const struct base_option *o;

	for (int i = 0; (o = madmpi_tool_setting(i)) != NULL; i++)
		if ((MPI_T_enum)o == handle && o->kind == BASE_OPTION_CHOICE)
			return o;
	return NULL;
}

/* MPI_T_enum_get_info */
int madmpi_t_enum_get_info(MPI_T_enum enumtype, int *num, char *name,
			   int *name_len)
{
	const struct base_option *o;
	int rc = madmpi_tool_check(), n = 0;

	if (rc != MPI_SUCCESS)
		return rc;
	o = choice_of(enumtype);
	if (o == NULL)
		return MPI_T_ERR_INVALID_HANDLE;
	while (o->choices[n] != NULL)
		n++;
	madmpi_tool_tell(num, n);
	madmpi_tool_text(o->name, name, name_len);
	return MPI_SUCCESS;
}

/* MPI_T_enum_get_item */
int madmpi_t_enum_get_item(MPI_T_enum enumtype, int indx, int *value,
			   char *name, int *name_len)
{
	const struct base_option *o;
	int rc = madmpi_tool_check(), n = 0;

	if (rc != MPI_SUCCESS)
		return rc;
	o = choice_of(enumtype);
	if (o == NULL)
		return MPI_T_ERR_INVALID_HANDLE;
	while (n < indx && o->choices[n] != NULL)
		n++;
	if (indx < 0 || o->choices[n] == NULL)
		return MPI_T_ERR_INVALID_INDEX;
	madmpi_tool_tell(value, indx);
	madmpi_tool_text(o->choices[indx], name, name_len);
	return MPI_SUCCESS;
}
