/*
 * Info objects. Keys and values are never changed: a new value is a new block
 * of memory. So what happens under the lock is short, and memory is taken and
 * given back outside.
 */
#include "info/info.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/list.h>
#include <base/option.h>
#include <base/spin.h>

#include "bodies.h"
#include "core/pool.h"
#include "env/error.h"
#include "info/env.h"

struct entry {
	struct base_link on;
	char *value; /* l: */
	char key[];
};

struct madmpi_info {
	struct madmpi_object object;
	struct base_spin lock;
	struct base_list entries; /* l: */
	int n;                    /* l: */
};

static struct madmpi_pool pool;
static struct madmpi_info *env; /* -: once made */

/* --- objects --- */

static void make_pool(void)
{
	madmpi_pool_init(&pool, MADMPI_INFO, sizeof(struct madmpi_info));
}

static struct madmpi_info *info_new(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct madmpi_info *i;

	pthread_once(&once, make_pool);
	i = madmpi_pool_get(&pool);
	if (i == NULL)
		return NULL;
	base_spin_init(&i->lock, BASE_RANK_LEAF);
	base_list_init(&i->entries);
	i->n = 0;
	return i;
}

static struct entry *entry_new(const char *key, const char *value)
{
	size_t n = strlen(key) + 1;
	struct entry *e = malloc(sizeof(*e) + n);

	if (e == NULL)
		return NULL;
	memcpy(e->key, key, n);
	base_link_init(&e->on);
	e->value = strdup(value);
	if (e->value != NULL)
		return e;
	free(e);
	return NULL;
}

static void entry_delete(struct entry *e)
{
	free(e->value);
	free(e);
}

static void info_delete(struct madmpi_info *i)
{
	struct base_link *n;

	while ((n = base_list_take_front(&i->entries)) != NULL)
		entry_delete(container_of(n, struct entry, on));
	madmpi_pool_put(&pool, i);
}

static struct entry *find(struct madmpi_info *i, const char *key)
{
	base_list_for_each (n, &i->entries) {
		struct entry *e = container_of(n, struct entry, on);

		if (strcmp(e->key, key) == 0)
			return e;
	}
	return NULL;
}

/* Lock held. NULL: there are not so many. */
static struct entry *nth(struct madmpi_info *i, int n)
{
	base_list_for_each (link, &i->entries)
		if (n-- == 0)
			return container_of(link, struct entry, on);
	return NULL;
}

/* False: no memory. */
static bool set(struct madmpi_info *i, const char *key, const char *value)
{
	struct entry *e = entry_new(key, value), *old;

	if (e == NULL)
		return false;
	base_spin_lock(&i->lock);
	old = find(i, key);
	if (old != NULL) {
		char *was = old->value;

		old->value = e->value;
		e->value = was;
	} else {
		base_list_push_back(&i->entries, &e->on);
		i->n++;
	}
	base_spin_unlock(&i->lock);
	if (old != NULL)
		entry_delete(e);
	return true;
}

/* --- what MPI_INFO_ENV says --- */

static void set_env(void *info, const char *key, const char *value)
{
	set(info, key, value);
}

static void make_env(void)
{
	env = info_new();
	if (env != NULL)
		madmpi_info_env(set_env, env);
}

struct madmpi_info *madmpi_info_of(MPI_Info handle)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (handle == MPI_INFO_ENV) {
		pthread_once(&once, make_env);
		return env;
	}
	if (madmpi_handle_is_constant(handle))
		return NULL;
	return madmpi_handle_object(handle, MADMPI_INFO);
}

bool madmpi_info_describe(struct madmpi_object *o, char *out, size_t room)
{
	struct madmpi_info *i = container_of(o, struct madmpi_info, object);
	const struct entry *first;

	if (i == env)
		return false;
	base_spin_lock(&i->lock);
	first = nth(i, 0);
	snprintf(out, room, "%d key%s%s%s%s", i->n, i->n == 1 ? "" : "s",
		 first ? ", \"" : "", first ? first->key : "",
		 first ? "\"" : "");
	base_spin_unlock(&i->lock);
	return true;
}

/* --- arguments --- */

static int bad_info(struct madmpi_comm *comm, const char *fn, MPI_Info info)
{
	return madmpi_error(comm, MPI_ERR_INFO, fn, "%p is not an info object",
			    (void *)info);
}

int madmpi_check_info(struct madmpi_comm *comm, const char *fn, MPI_Info info,
		      struct madmpi_info **out)
{
	*out = NULL;
	if (info == MPI_INFO_NULL)
		return MPI_SUCCESS;
	*out = madmpi_info_of(info);
	return *out != NULL ? MPI_SUCCESS : bad_info(comm, fn, info);
}

size_t madmpi_info_alignment(MPI_Info info)
{
	char value[24];
	int room = sizeof(value), flag = 0;
	long wanted = 0;

	if (info != MPI_INFO_NULL)
		madmpi_info_get_string(info, "mpi_minimum_memory_alignment",
				       &room, value, &flag);
	if (!flag || base_parse_long(value, false, &wanted) < 0 ||
	    wanted < BASE_CACHE_LINE || (wanted & (wanted - 1)) != 0)
		return BASE_CACHE_LINE;
	return (size_t)wanted;
}

static int check(const char *fn, MPI_Info info, struct madmpi_info **out)
{
	*out = madmpi_info_of(info);
	return *out != NULL ? MPI_SUCCESS : bad_info(NULL, fn, info);
}

static int check_writable(const char *fn, MPI_Info info,
			  struct madmpi_info **out)
{
	int rc = check(fn, info, out);

	if (rc == MPI_SUCCESS && info == MPI_INFO_ENV)
		return madmpi_error(NULL, MPI_ERR_INFO, fn,
				    "MPI_INFO_ENV cannot be changed");
	return rc;
}

/* A key that may be looked for: one that cannot be there is an error, too. */
static int check_key(const char *fn, const char *key)
{
	size_t length = key != NULL ? strlen(key) : 0;

	if (key == NULL)
		return madmpi_error(NULL, MPI_ERR_INFO_KEY, fn,
				    "key is a null pointer");
	if (length == 0 || length >= MPI_MAX_INFO_KEY)
		return madmpi_error(NULL, MPI_ERR_INFO_KEY, fn,
				    "key has %zu characters, not 1 to %d",
				    length, MPI_MAX_INFO_KEY - 1);
	return MPI_SUCCESS;
}

static int check_value(const char *fn, const char *value)
{
	size_t length = value != NULL ? strlen(value) : 0;

	if (value == NULL)
		return madmpi_error(NULL, MPI_ERR_INFO_VALUE, fn,
				    "value is a null pointer");
	if (length >= MPI_MAX_INFO_VAL)
		return madmpi_error(NULL, MPI_ERR_INFO_VALUE, fn,
				    "value has %zu characters, not up to %d",
				    length, MPI_MAX_INFO_VAL - 1);
	return MPI_SUCCESS;
}

static int no_memory(const char *fn)
{
	return madmpi_error(NULL, MPI_ERR_NO_MEM, fn,
			    "no memory for an info object");
}

/* --- the functions --- */

/* MPI_Info_create */
int madmpi_info_create(MPI_Info *info)
{
	const char *fn = "MPI_Info_create";
	struct madmpi_info *i;

	if (info == NULL)
		return madmpi_null_arg(NULL, fn, "info");
	i = info_new();
	if (i == NULL)
		return no_memory(fn);
	*info = (MPI_Info)i;
	return MPI_SUCCESS;
}

/* MPI_Info_create_env: argc and argv are found without the caller's. */
int madmpi_info_create_env(int argc, char *argv[], MPI_Info *info)
{
	const char *fn = "MPI_Info_create_env";
	struct madmpi_info *i;

	(void)argc;
	(void)argv;
	if (info == NULL)
		return madmpi_null_arg(NULL, fn, "info");
	i = info_new();
	if (i == NULL)
		return no_memory(fn);
	madmpi_info_env(set_env, i);
	*info = (MPI_Info)i;
	return MPI_SUCCESS;
}

/* One after the other, as they are by then. False: no memory. */
static bool copy_all(struct madmpi_info *from, struct madmpi_info *to)
{
	char key[MPI_MAX_INFO_KEY], value[MPI_MAX_INFO_VAL];
	const struct entry *e;
	bool ok = true;

	for (int i = 0; ok; i++) {
		base_spin_lock(&from->lock);
		e = nth(from, i);
		if (e != NULL) {
			strcpy(key, e->key);
			strcpy(value, e->value);
		}
		base_spin_unlock(&from->lock);
		if (e == NULL)
			break;
		ok = set(to, key, value);
	}
	return ok;
}

/* MPI_Info_dup */
int madmpi_info_dup(MPI_Info info, MPI_Info *newinfo)
{
	const char *fn = "MPI_Info_dup";
	struct madmpi_info *i, *copy;
	int rc = check(fn, info, &i);

	if (rc != MPI_SUCCESS)
		return rc;
	if (newinfo == NULL)
		return madmpi_null_arg(NULL, fn, "newinfo");
	copy = info_new();
	if (copy == NULL)
		return no_memory(fn);
	if (!copy_all(i, copy)) {
		info_delete(copy);
		return no_memory(fn);
	}
	*newinfo = (MPI_Info)copy;
	return MPI_SUCCESS;
}

/* MPI_Info_free */
int madmpi_info_free(MPI_Info *info)
{
	const char *fn = "MPI_Info_free";
	struct madmpi_info *i;
	int rc;

	if (info == NULL)
		return madmpi_null_arg(NULL, fn, "info");
	rc = check_writable(fn, *info, &i);
	if (rc != MPI_SUCCESS)
		return rc;
	info_delete(i);
	*info = MPI_INFO_NULL;
	return MPI_SUCCESS;
}

/* MPI_Info_set */
int madmpi_info_set(MPI_Info info, const char *key, const char *value)
{
	const char *fn = "MPI_Info_set";
	struct madmpi_info *i;
	int rc = check_writable(fn, info, &i);

	if (rc == MPI_SUCCESS)
		rc = check_key(fn, key);
	if (rc == MPI_SUCCESS)
		rc = check_value(fn, value);
	if (rc != MPI_SUCCESS)
		return rc;
	return set(i, key, value) ? MPI_SUCCESS : no_memory(fn);
}

/* MPI_Info_delete */
int madmpi_info_delete(MPI_Info info, const char *key)
{
	const char *fn = "MPI_Info_delete";
	struct madmpi_info *i;
	struct entry *e;
	int rc = check_writable(fn, info, &i);

	if (rc == MPI_SUCCESS)
		rc = check_key(fn, key);
	if (rc != MPI_SUCCESS)
		return rc;
	base_spin_lock(&i->lock);
	e = find(i, key);
	if (e != NULL) {
		base_list_remove(&e->on);
		i->n--;
	}
	base_spin_unlock(&i->lock);
	if (e == NULL)
		return madmpi_error(NULL, MPI_ERR_INFO_NOKEY, fn,
				    "there is no key \"%s\"", key);
	entry_delete(e);
	return MPI_SUCCESS;
}

/*
 * Up to `room` characters of a key's value, and a zero, to `value`; none if
 * room is below 0. *length is that of all of it, *flag whether there is one.
 */
static int get(const char *fn, MPI_Info info, const char *key, int room,
	       char *value, int *length, int *flag)
{
	const struct entry *e;
	struct madmpi_info *i;
	int rc = check(fn, info, &i);

	if (rc == MPI_SUCCESS)
		rc = check_key(fn, key);
	if (rc != MPI_SUCCESS)
		return rc;
	if (flag == NULL)
		return madmpi_null_arg(NULL, fn, "flag");
	base_spin_lock(&i->lock);
	e = find(i, key);
	*flag = e != NULL;
	if (e != NULL) {
		*length = (int)strlen(e->value);
		if (room >= 0)
			snprintf(value, (size_t)room + 1, "%s", e->value);
	}
	base_spin_unlock(&i->lock);
	return MPI_SUCCESS;
}

/* MPI_Info_get: behind valuelen characters there is room for a zero. */
int madmpi_info_get(MPI_Info info, const char *key, int valuelen, char *value,
		    int *flag)
{
	const char *fn = "MPI_Info_get";
	int length = 0;

	if (valuelen < 0)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "valuelen is %d, below 0", valuelen);
	if (value == NULL)
		return madmpi_error(NULL, MPI_ERR_INFO_VALUE, fn,
				    "value is a null pointer");
	return get(fn, info, key, valuelen, value, &length, flag);
}

/* MPI_Info_get_valuelen */
int madmpi_info_get_valuelen(MPI_Info info, const char *key, int *valuelen,
			     int *flag)
{
	if (valuelen == NULL)
		return madmpi_null_arg(NULL, "MPI_Info_get_valuelen",
				       "valuelen");
	return get("MPI_Info_get_valuelen", info, key, -1, NULL, valuelen,
		   flag);
}

/* MPI_Info_get_string: *buflen is the room with the zero, then the need. */
int madmpi_info_get_string(MPI_Info info, const char *key, int *buflen,
			   char *value, int *flag)
{
	const char *fn = "MPI_Info_get_string";
	int length = 0, rc;

	if (buflen == NULL)
		return madmpi_null_arg(NULL, fn, "buflen");
	if (*buflen < 0)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "*buflen is %d, below 0", *buflen);
	if (*buflen > 0 && value == NULL)
		return madmpi_error(NULL, MPI_ERR_INFO_VALUE, fn,
				    "value is a null pointer");
	rc = get(fn, info, key, *buflen - 1, value, &length, flag);
	if (rc == MPI_SUCCESS && *flag)
		*buflen = length + 1;
	return rc;
}

/* MPI_Info_get_nkeys */
int madmpi_info_get_nkeys(MPI_Info info, int *nkeys)
{
	const char *fn = "MPI_Info_get_nkeys";
	struct madmpi_info *i;
	int rc = check(fn, info, &i);

	if (rc != MPI_SUCCESS)
		return rc;
	if (nkeys == NULL)
		return madmpi_null_arg(NULL, fn, "nkeys");
	base_spin_lock(&i->lock);
	*nkeys = i->n;
	base_spin_unlock(&i->lock);
	return MPI_SUCCESS;
}

/* MPI_Info_get_nthkey */
int madmpi_info_get_nthkey(MPI_Info info, int n, char *key)
{
	const char *fn = "MPI_Info_get_nthkey";
	struct madmpi_info *i;
	const struct entry *e;
	int rc = check(fn, info, &i), nkeys;

	if (rc != MPI_SUCCESS)
		return rc;
	if (key == NULL)
		return madmpi_null_arg(NULL, fn, "key");
	base_spin_lock(&i->lock);
	nkeys = i->n;
	e = n >= 0 ? nth(i, n) : NULL;
	if (e != NULL)
		strcpy(key, e->key);
	base_spin_unlock(&i->lock);
	if (e == NULL)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "n is %d, and there are %d keys", n, nkeys);
	return MPI_SUCCESS;
}
