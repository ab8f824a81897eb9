/*
 * Error classes, codes and strings of the program. Their numbers follow those
 * of the standard; one that is removed is given again.
 */
#include <stdlib.h>
#include <string.h>

#include <marcel/marcel.h>

#include "bodies.h"
#include "env/error.h"

enum { FIRST = MPI_ERR_LASTCODE + 1, MORE = 32 };

struct user_error {
	int class;    /* its own code: a class; 0: removed */
	int ncodes;   /* of a class; of one that is removed: the next of them */
	char *string; /* or NULL: empty */
};

static marcel_mutex_t mutex = MARCEL_MUTEX_INITIALIZER;
static struct user_error *errors; /* l: by code - FIRST */
static int n, room;               /* l: */
static int first_removed = -1;    /* l: index, or -1 */

int madmpi_last_used_code = MPI_ERR_LASTCODE;

/* The mutex is held. NULL: it is none of the program's. */
static struct user_error *find(int code)
{
	if (code < FIRST || code >= FIRST + n ||
	    errors[code - FIRST].class == 0)
		return NULL;
	return &errors[code - FIRST];
}

/* The mutex is held. A free index, or -1: no memory. */
static int free_index(void)
{
	struct user_error *larger;
	int i = first_removed;

	if (i >= 0) {
		first_removed = errors[i].ncodes;
		return i;
	}
	if (n == room) {
		larger = realloc(errors,
				 (size_t)(room + MORE) * sizeof(*errors));
		if (larger == NULL)
			return -1;
		errors = larger;
		room += MORE;
	}
	return n++;
}

/* A class, if that is 0, or a code of it. The number, or -1: no memory. */
static int add(int class)
{
	int i = free_index(), code = FIRST + i;
	struct user_error *of;

	if (i < 0)
		return -1;
	of = class ? find(class) : NULL;
	if (of != NULL)
		of->ncodes++;
	errors[i] = (struct user_error){ class ? class : code, 0, NULL };
	if (code > madmpi_last_used_code)
		madmpi_last_used_code = code;
	return code;
}

/* One that errors may be of. */
static bool is_class(int class)
{
	const struct user_error *e = find(class);

	if (e != NULL)
		return e->class == class;
	return class != MPI_SUCCESS && madmpi_error_name(class) != NULL;
}

int madmpi_user_error_class(int code)
{
	const struct user_error *e;
	int class;

	marcel_mutex_lock(&mutex);
	e = find(code);
	class = e != NULL ? e->class : -1;
	marcel_mutex_unlock(&mutex);
	return class;
}

bool madmpi_user_error_string(int code, char string[MPI_MAX_ERROR_STRING])
{
	const struct user_error *e;

	marcel_mutex_lock(&mutex);
	e = find(code);
	if (e != NULL)
		strcpy(string, e->string != NULL ? e->string : "");
	marcel_mutex_unlock(&mutex);
	return e != NULL;
}

static int added(const char *fn, int code, int *out)
{
	if (code < 0)
		return madmpi_error(NULL, MPI_ERR_NO_MEM, fn,
				    "no memory for an error");
	*out = code;
	return MPI_SUCCESS;
}

/* MPI_Add_error_class */
int madmpi_add_error_class(int *errorclass)
{
	const char *fn = "MPI_Add_error_class";
	int code;

	if (errorclass == NULL)
		return madmpi_null_arg(NULL, fn, "errorclass");
	marcel_mutex_lock(&mutex);
	code = add(0);
	marcel_mutex_unlock(&mutex);
	return added(fn, code, errorclass);
}

/* MPI_Add_error_code */
int madmpi_add_error_code(int errorclass, int *errorcode)
{
	const char *fn = "MPI_Add_error_code";
	bool good;
	int code = -1;

	if (errorcode == NULL)
		return madmpi_null_arg(NULL, fn, "errorcode");
	marcel_mutex_lock(&mutex);
	good = is_class(errorclass);
	if (good)
		code = add(errorclass);
	marcel_mutex_unlock(&mutex);
	if (!good)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "errorclass %d is no error class",
				    errorclass);
	return added(fn, code, errorcode);
}

static int not_ours(const char *fn, const char *name, int code)
{
	return madmpi_error(NULL, MPI_ERR_ARG, fn,
			    "%s %d is none of the program's", name, code);
}

/* Replace its string. False: it is none of the program's. */
static bool set_string(int code, char *string)
{
	struct user_error *e;
	char *old = string;

	marcel_mutex_lock(&mutex);
	e = find(code);
	if (e != NULL) {
		old = e->string;
		e->string = string;
	}
	marcel_mutex_unlock(&mutex);
	free(old);
	return e != NULL;
}

/* MPI_Add_error_string: an empty one takes back what was there. */
int madmpi_add_error_string(int errorcode, const char *string)
{
	const char *fn = "MPI_Add_error_string";
	char *copy;

	if (string == NULL)
		return madmpi_null_arg(NULL, fn, "string");
	if (strlen(string) >= MPI_MAX_ERROR_STRING)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "string has %zu characters, not up to %d",
				    strlen(string), MPI_MAX_ERROR_STRING - 1);
	copy = strdup(string);
	if (copy == NULL)
		return madmpi_error(NULL, MPI_ERR_NO_MEM, fn,
				    "no memory for a string");
	return set_string(errorcode, copy)
		       ? MPI_SUCCESS
		       : not_ours(fn, "errorcode", errorcode);
}

/* MPI_Remove_error_string */
int madmpi_remove_error_string(int errorcode)
{
	return set_string(errorcode, NULL) ? MPI_SUCCESS
					   : not_ours("MPI_Remove_error_string",
						      "errorcode", errorcode);
}

static int take_out(const char *fn, const char *name, int code, bool class)
{
	struct user_error *e;
	int used = 0;

	marcel_mutex_lock(&mutex);
	e = find(code);
	if (e != NULL && (e->class == code) != class)
		e = NULL;
	if (e != NULL && class)
		used = e->ncodes;
	if (e != NULL && used == 0) {
		struct user_error *of = class ? NULL : find(e->class);

		if (of != NULL)
			of->ncodes--;
		free(e->string);
		*e = (struct user_error){ 0, first_removed, NULL };
		first_removed = code - FIRST;
	}
	marcel_mutex_unlock(&mutex);
	if (e == NULL)
		return not_ours(fn, name, code);
	if (used > 0)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "class %d still has %d error codes", code,
				    used);
	return MPI_SUCCESS;
}

/* MPI_Remove_error_class */
int madmpi_remove_error_class(int errorclass)
{
	return take_out("MPI_Remove_error_class", "errorclass", errorclass,
			true);
}

/* MPI_Remove_error_code */
int madmpi_remove_error_code(int errorcode)
{
	return take_out("MPI_Remove_error_code", "errorcode", errorcode, false);
}
