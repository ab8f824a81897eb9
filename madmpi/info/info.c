/*
 * Info objects: an array of entries, by number, and if there are more than a
 * few a table of them by key. The mutex of an object covers all of it.
 */
#include "info/info.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/hash.h>
#include <base/option.h>
#include <marcel/marcel.h>

#include "bodies.h"
#include "core/pool.h"
#include "env/error.h"
#include "info/env.h"

enum { FEW = 16 };

struct entry {
	/* -: const  l: the object's mutex */
	struct base_link in_table; /* l: if there is a table */
	uint64_t hash;             /* -: of the key */
	int number;                /* l: */
	char *value;               /* l: */
	char key[];                /* -: */
};

struct madmpi_info {
	struct madmpi_object object;
	marcel_mutex_t mutex;
	struct entry **entries;  /* l: by number */
	int n, room;             /* l: of them */
	struct base_hash by_key; /* l: no index: look at all */
};

static struct madmpi_pool pool;
static struct madmpi_info *env; /* -: once made */

static void make_pool(void)
{
	madmpi_pool_init(&pool, MADMPI_INFO, sizeof(struct madmpi_info));
}

/* --- the table --- */

static struct entry *entry_of(const struct base_link *link)
{
	return container_of(link, struct entry, in_table);
}

static uint64_t hash_of_key(const char *key)
{
	uint64_t hash = 0;

	for (; *key != '\0'; key++)
		hash = base_hash_mix(hash, (unsigned char)*key);
	return hash;
}

static uint64_t hash_of_entry(const struct base_link *first, bool mark,
			      unsigned arg)
{
	(void)mark;
	(void)arg;
	return entry_of(first)->hash;
}

static bool has_key(const struct base_link *first, bool mark, const void *key)
{
	(void)mark;
	return strcmp(entry_of(first)->key, key) == 0;
}

static bool has_table(const struct madmpi_info *i)
{
	return i->by_key.now.slots != NULL;
}

static struct base_hash_place place_of(const struct madmpi_info *i,
				       uint64_t hash, const char *key)
{
	return base_hash_find(&i->by_key, hash, has_key, key);
}

static void table_add(struct madmpi_info *i, struct entry *e)
{
	base_hash_insert(&i->by_key, place_of(i, e->hash, e->key), e->hash,
			 &e->in_table, false);
}

/* Before one more comes. Without memory it is as it was, and slower. */
static void table_grow(struct madmpi_info *i)
{
	bool had = has_table(i);

	if (i->n < FEW)
		return;
	base_hash_reserve(&i->by_key, had ? 1 : (size_t)i->n + 1);
	for (int k = 0; !had && has_table(i) && k < i->n; k++)
		table_add(i, i->entries[k]);
}

/* --- objects --- */

static struct madmpi_info *info_new(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct madmpi_info *i;

	pthread_once(&once, make_pool);
	i = madmpi_pool_get(&pool);
	if (i == NULL)
		return NULL;
	marcel_mutex_init(&i->mutex, NULL);
	i->entries = NULL;
	i->n = i->room = 0;
	base_hash_init_small(&i->by_key, hash_of_entry, 0);
	return i;
}

static struct entry *entry_new(const char *key, const char *value)
{
	size_t n = strlen(key) + 1;
	struct entry *e = malloc(sizeof(*e) + n);

	if (e == NULL)
		return NULL;
	memcpy(e->key, key, n);
	base_link_init(&e->in_table);
	e->hash = hash_of_key(key);
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
	while (i->n > 0)
		entry_delete(i->entries[--i->n]);
	free(i->entries);
	base_hash_exit(&i->by_key);
	marcel_mutex_destroy(&i->mutex);
	madmpi_pool_put(&pool, i);
}

static struct entry *find(struct madmpi_info *i, const char *key)
{
	struct base_hash_place place;

	if (has_table(i)) {
		place = place_of(i, hash_of_key(key), key);
		return place.at ? entry_of(base_hash_first(place)) : NULL;
	}
	for (int k = 0; k < i->n; k++)
		if (strcmp(i->entries[k]->key, key) == 0)
			return i->entries[k];
	return NULL;
}

/* Mutex held. Returns NULL if there are at most n keys. */
static struct entry *nth(struct madmpi_info *i, int n)
{
	return n < i->n ? i->entries[n] : NULL;
}

/* False: no memory. */
static bool make_room(struct madmpi_info *i)
{
	int room = i->room > 0 ? 2 * i->room : 4;
	struct entry **larger;

	if (i->n < i->room)
		return true;
	larger = realloc(i->entries, (size_t)room * sizeof(struct entry *));
	if (larger == NULL)
		return false;
	i->entries = larger;
	i->room = room;
	return true;
}

/* False: no memory. */
static bool add(struct madmpi_info *i, struct entry *e)
{
	if (!make_room(i))
		return false;
	table_grow(i);
	if (has_table(i))
		table_add(i, e);
	e->number = i->n;
	i->entries[i->n++] = e;
	return true;
}

/* The last one gets its number. */
static void take(struct madmpi_info *i, struct entry *e)
{
	struct entry *last = i->entries[--i->n];

	if (has_table(i))
		base_hash_remove(&i->by_key, place_of(i, e->hash, e->key),
				 &e->in_table);
	last->number = e->number;
	i->entries[last->number] = last;
}

/* False: no memory. */
static bool set(struct madmpi_info *i, const char *key, const char *value)
{
	struct entry *e = entry_new(key, value), *old;
	bool added = false;

	if (e == NULL)
		return false;
	marcel_mutex_lock(&i->mutex);
	old = find(i, key);
	if (old != NULL) {
		char *was = old->value;

		old->value = e->value;
		e->value = was;
	} else {
		added = add(i, e);
	}
	marcel_mutex_unlock(&i->mutex);
	if (!added)
		entry_delete(e);
	return added || old != NULL;
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
	marcel_mutex_lock(&i->mutex);
	first = nth(i, 0);
	snprintf(out, room, "%d key%s%s%s%s", i->n, i->n == 1 ? "" : "s",
		 first ? ", \"" : "", first ? first->key : "",
		 first ? "\"" : "");
	marcel_mutex_unlock(&i->mutex);
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

/* Nobody else knows `to` yet. False: no memory. */
static bool copy_all(struct madmpi_info *from, struct madmpi_info *to)
{
	bool ok = true;

	marcel_mutex_lock(&from->mutex);
	for (int i = 0; ok && i < from->n; i++)
		ok = set(to, from->entries[i]->key, from->entries[i]->value);
	marcel_mutex_unlock(&from->mutex);
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
	marcel_mutex_lock(&i->mutex);
	e = find(i, key);
	if (e != NULL)
		take(i, e);
	marcel_mutex_unlock(&i->mutex);
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
	marcel_mutex_lock(&i->mutex);
	e = find(i, key);
	*flag = e != NULL;
	if (e != NULL) {
		*length = (int)strlen(e->value);
		if (room >= 0)
			snprintf(value, (size_t)room + 1, "%s", e->value);
	}
	marcel_mutex_unlock(&i->mutex);
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
	marcel_mutex_lock(&i->mutex);
	*nkeys = i->n;
	marcel_mutex_unlock(&i->mutex);
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
	marcel_mutex_lock(&i->mutex);
	nkeys = i->n;
	e = n >= 0 ? nth(i, n) : NULL;
	if (e != NULL)
		strcpy(key, e->key);
	marcel_mutex_unlock(&i->mutex);
	if (e == NULL)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "n is %d, and there are %d keys", n, nkeys);
	return MPI_SUCCESS;
}
