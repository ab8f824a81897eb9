/*
 * Attributes of any object, and those of communicators. Each is in a list of
 * its object, by age, and in one table of all, by object and keyval: finding
 * one takes as long among many as among few, of either.
 */
#include "comm/attr.h"

#include <stdint.h>
#include <stdlib.h>

#include <base/hash.h>

#include "bodies.h"
#include "comm/comm.h"
#include "comm/keyval.h"
#include "core/wait.h"
#include "datatype/type.h"
#include "env/error.h"
#include "pt2pt/message.h"
#include "pt2pt/tag.h"

struct madmpi_attr {
	/* -: const once it hangs  l: madmpi_keyval_mutex */
	struct base_link in_table;    /* l: */
	struct madmpi_attrs *of;      /* -: */
	struct madmpi_attr *older;    /* l: */
	struct madmpi_attr *newer;    /* l: */
	struct madmpi_keyval *keyval; /* -: holds a reference */
	void *value;                  /* -: */
	bool leaves;                  /* l: its delete function is called ... */
	marcel_t by;                  /* l: ... by this thread */
};

/* Some attribute has left, or stays. */
static marcel_cond_t settled = MARCEL_COND_INITIALIZER;

static void lock(void)
{
	marcel_mutex_lock(&madmpi_keyval_mutex);
}

static void unlock(void)
{
	marcel_mutex_unlock(&madmpi_keyval_mutex);
}

static struct madmpi_attrs *attrs_of(struct madmpi_bearer b)
{
	return b.comm != NULL ? &b.comm->attrs : &b.type->attrs;
}

/* --- the table --- */

struct attr_key {
	const struct madmpi_attrs *of;
	const struct madmpi_keyval *keyval;
};

static struct madmpi_attr *of_link(const struct base_link *link)
{
	return container_of(link, struct madmpi_attr, in_table);
}

static uint64_t hash(struct attr_key key)
{
	return base_hash_mix((uintptr_t)key.of, (uintptr_t)key.keyval);
}

static struct attr_key key_of(const struct madmpi_attr *a)
{
	return (struct attr_key){ a->of, a->keyval };
}

static uint64_t hash_of(const struct base_link *first, bool mark, unsigned arg)
{
	(void)mark;
	(void)arg;
	return hash(key_of(of_link(first)));
}

static bool has_key(const struct base_link *first, bool mark, const void *key)
{
	const struct attr_key *want = key, have = key_of(of_link(first));

	(void)mark;
	return have.of == want->of && have.keyval == want->keyval;
}

static struct base_hash table = { .hash_of = hash_of }; /* l: */

static struct base_hash_place place_of(struct attr_key key)
{
	return base_hash_find(&table, hash(key), has_key, &key);
}

/*
 * Returns the object's attribute of this keyval, or NULL. An object with an
 * attribute implies that the table has an index.
 */
static struct madmpi_attr *find(struct madmpi_bearer b,
				const struct madmpi_keyval *k)
{
	struct base_hash_place place;

	if (attrs_of(b)->newest == NULL)
		return NULL;
	place = place_of((struct attr_key){ attrs_of(b), k });
	return place.at != NULL ? of_link(base_hash_first(place)) : NULL;
}

static void add_locked(struct madmpi_attrs *of, struct madmpi_attr *a)
{
	a->of = of;
	base_hash_insert(&table, place_of(key_of(a)), hash(key_of(a)),
			 &a->in_table, false);
	a->older = of->newest;
	if (a->older != NULL)
		a->older->newer = a;
	of->newest = a;
}

/* Also drops the attribute's reference to its keyval. */
static void remove_locked(struct madmpi_attr *a)
{
	base_hash_remove(&table, place_of(key_of(a)), &a->in_table);
	if (a->older != NULL)
		a->older->newer = a->newer;
	if (a->newer != NULL)
		a->newer->older = a->older;
	else
		a->of->newest = a->older;
	madmpi_keyval_put(a->keyval);
}

static struct madmpi_keyval *find_keyval(struct madmpi_bearer b, int number)
{
	enum madmpi_keyval_kind kind = MADMPI_KEYVAL_TYPE;

	if (b.comm != NULL)
		kind = b.comm->win != NULL ? MADMPI_KEYVAL_WIN
					   : MADMPI_KEYVAL_COMM;
	return madmpi_keyval_find(number, kind);
}

/* Held while functions of it are called; NULL stays NULL. */
static struct madmpi_keyval *hold(struct madmpi_keyval *k)
{
	if (k != NULL)
		k->refs++;
	return k;
}

static struct madmpi_keyval *find_and_hold(struct madmpi_bearer b, int number)
{
	struct madmpi_keyval *k;

	lock();
	k = hold(find_keyval(b, number));
	unlock();
	return k;
}

static void let_go(struct madmpi_keyval *k)
{
	lock();
	madmpi_keyval_put(k);
	unlock();
}

static int no_memory(const char *fn, struct madmpi_bearer b)
{
	return madmpi_error(b.comm, MPI_ERR_NO_MEM, fn,
			    "no memory for attributes");
}

/* --- the program's functions --- */

static int refused(const char *fn, struct madmpi_bearer b, int code,
		   const struct madmpi_keyval *k, const char *what)
{
	return madmpi_error(b.comm, code, fn,
			    "the %s function of keyval %d has returned %d",
			    what, k->number, code);
}

static int call_delete(struct madmpi_bearer b, const struct madmpi_keyval *k,
		       void *value)
{
	if (k->kind == MADMPI_KEYVAL_COMM &&
	    k->delete.comm != MPI_COMM_NULL_DELETE_FN)
		return k->delete.comm(madmpi_comm_handle(b.comm), k->number,
				      value, k->extra);
	if (k->kind == MADMPI_KEYVAL_WIN &&
	    k->delete.win != MPI_WIN_NULL_DELETE_FN)
		return k->delete.win((MPI_Win)b.comm->win, k->number, value,
				     k->extra);
	if (k->kind == MADMPI_KEYVAL_TYPE &&
	    k->delete.type != MPI_TYPE_NULL_DELETE_FN)
		return k->delete.type(madmpi_type_handle(b.type), k->number,
				      value, k->extra);
	return MPI_SUCCESS;
}

/* *flag: the copy shall have it, with *out. The constants are never called. */
static int call_copy(struct madmpi_bearer b, const struct madmpi_keyval *k,
		     void *in, void **out, int *flag)
{
	*out = in;
	*flag = 0;
	if (k->kind == MADMPI_KEYVAL_COMM) {
		*flag = k->copy.comm == MPI_COMM_DUP_FN;
		if (*flag || k->copy.comm == MPI_COMM_NULL_COPY_FN)
			return MPI_SUCCESS;
		return k->copy.comm(madmpi_comm_handle(b.comm), k->number,
				    k->extra, in, out, flag);
	}
	*flag = k->copy.type == MPI_TYPE_DUP_FN;
	if (*flag || k->copy.type == MPI_TYPE_NULL_COPY_FN)
		return MPI_SUCCESS;
	return k->copy.type(madmpi_type_handle(b.type), k->number, k->extra, in,
			    out, flag);
}

/* --- one attribute --- */

/* What others do about it comes before or after. NULL: there is none. */
static struct madmpi_attr *
take_locked(struct madmpi_bearer b, const struct madmpi_keyval *k, bool *again)
{
	struct madmpi_attr *a;

	while ((a = find(b, k)) != NULL && a->leaves &&
	       !marcel_equal(a->by, marcel_self()))
		madmpi_cond_wait(&settled, &madmpi_keyval_mutex);
	*again = a != NULL && a->leaves;
	if (a == NULL)
		return NULL;
	a->leaves = true;
	a->by = marcel_self();
	return a;
}

static void settle_locked(struct madmpi_attr *a, bool stays)
{
	a->leaves = false;
	if (!stays)
		remove_locked(a);
	marcel_cond_broadcast(&settled);
}

/*
 * Delete that of a keyval, which the caller holds, if there is one. It is there
 * while its delete function is called, which is once for each value.
 */
static int delete_one(const char *fn, struct madmpi_bearer b,
		      struct madmpi_keyval *k)
{
	struct madmpi_attr *a;
	bool again;
	int rc;

	lock();
	a = take_locked(b, k, &again);
	unlock();
	if (a == NULL)
		return MPI_SUCCESS;
	if (again)
		return madmpi_error(b.comm, MPI_ERR_KEYVAL, fn,
				    "the delete function of keyval %d deletes "
				    "its own attribute",
				    k->number);
	rc = call_delete(b, k, a->value);
	lock();
	settle_locked(a, rc != MPI_SUCCESS);
	unlock();
	if (rc != MPI_SUCCESS)
		return refused(fn, b, rc, k, "delete");
	free(a);
	return MPI_SUCCESS;
}

/*
 * Returns a new attribute, with room for it in the table, or NULL. The table
 * works on without more room once it has an index.
 */
static struct madmpi_attr *attr_new(struct madmpi_keyval *k, void *value)
{
	struct madmpi_attr *a = malloc(sizeof(*a));
	bool room;

	lock();
	base_hash_reserve(&table, 1);
	room = table.now.slots != NULL;
	unlock();
	if (!room) {
		free(a);
		return NULL;
	}
	if (a != NULL)
		*a = (struct madmpi_attr){ .keyval = k, .value = value };
	return a;
}

/* False: there is one of that keyval. */
static bool store(struct madmpi_bearer b, struct madmpi_attr *a)
{
	bool is_free;

	lock();
	is_free = find(b, a->keyval) == NULL;
	if (is_free) {
		hold(a->keyval);
		add_locked(attrs_of(b), a);
	}
	unlock();
	return is_free;
}

int madmpi_attr_set(const char *fn, struct madmpi_bearer b, int number,
		    void *value)
{
	struct madmpi_keyval *k = find_and_hold(b, number);
	struct madmpi_attr *a;
	int rc;

	if (k == NULL)
		return madmpi_keyval_refuse(b.comm, fn, number);
	a = attr_new(k, value);
	if (a == NULL) {
		rc = no_memory(fn, b);
	} else {
		/* Again if somebody was faster. */
		do
			rc = delete_one(fn, b, k);
		while (rc == MPI_SUCCESS && !store(b, a));
		if (rc != MPI_SUCCESS)
			free(a);
	}
	let_go(k);
	return rc;
}

int madmpi_attr_find(const char *fn, struct madmpi_bearer b, int number,
		     void *out, int *flag)
{
	struct madmpi_attr *a = NULL;
	struct madmpi_keyval *k;

	if (out == NULL || flag == NULL)
		return madmpi_null_arg(b.comm, fn,
				       out ? "flag" : "attribute_val");
	lock();
	k = find_keyval(b, number);
	if (k != NULL)
		a = find(b, k);
	*flag = a != NULL;
	if (a != NULL)
		*(void **)out = a->value;
	unlock();
	return k != NULL ? MPI_SUCCESS
			 : madmpi_keyval_refuse(b.comm, fn, number);
}

int madmpi_attr_remove(const char *fn, struct madmpi_bearer b, int number)
{
	struct madmpi_keyval *k = find_and_hold(b, number);
	int rc;

	if (k == NULL)
		return madmpi_keyval_refuse(b.comm, fn, number);
	rc = delete_one(fn, b, k);
	let_go(k);
	return rc;
}

/* --- all of an object --- */

int madmpi_attrs_delete(const char *fn, struct madmpi_bearer of)
{
	struct madmpi_keyval *k = NULL;
	int rc = MPI_SUCCESS;

	do {
		lock();
		if (k != NULL)
			madmpi_keyval_put(k);
		k = NULL;
		if (rc == MPI_SUCCESS && attrs_of(of)->newest != NULL)
			k = hold(attrs_of(of)->newest->keyval);
		unlock();
		if (k != NULL)
			rc = delete_one(fn, of, k);
	} while (k != NULL);
	return rc;
}

void madmpi_attrs_forget(struct madmpi_attrs *attrs)
{
	struct madmpi_attr *a;

	while ((a = attrs->newest) != NULL) {
		lock();
		remove_locked(a);
		unlock();
		free(a);
	}
}

/* All that there are, oldest first, their keyvals held. The number, or -1. */
static int snapshot(struct madmpi_bearer b, struct madmpi_attr **out)
{
	const struct madmpi_attr *a;
	int n = 0, i;

	*out = NULL;
	lock();
	for (a = attrs_of(b)->newest; a != NULL; a = a->older)
		n++;
	if (n > 0)
		*out = calloc((size_t)n, sizeof(**out));
	i = n;
	for (a = attrs_of(b)->newest; *out != NULL && a != NULL; a = a->older) {
		(*out)[--i] = *a;
		hold(a->keyval);
	}
	unlock();
	return n > 0 && *out == NULL ? -1 : n;
}

/* As its function says. Nobody else knows `to` yet. */
static int copy_one(const char *fn, struct madmpi_bearer from,
		    struct madmpi_bearer to, const struct madmpi_attr *original)
{
	struct madmpi_keyval *k = original->keyval;
	struct madmpi_attr *a;
	void *copy = NULL;
	int flag, rc = call_copy(from, k, original->value, &copy, &flag);

	if (rc != MPI_SUCCESS)
		return refused(fn, from, rc, k, "copy");
	if (!flag)
		return MPI_SUCCESS;
	a = attr_new(k, copy);
	if (a == NULL)
		return no_memory(fn, from);
	store(to, a);
	return MPI_SUCCESS;
}

int madmpi_attrs_copy(const char *fn, struct madmpi_bearer from,
		      struct madmpi_bearer to)
{
	struct madmpi_attr *all;
	int n = snapshot(from, &all), rc = MPI_SUCCESS;

	if (n < 0)
		return no_memory(fn, from);
	for (int i = 0; i < n; i++) {
		if (rc == MPI_SUCCESS)
			rc = copy_one(fn, from, to, &all[i]);
		let_go(all[i].keyval);
	}
	free(all);
	return rc;
}

/* --- of communicators --- */

/*
 * The predefined ones are the same for all communicators; each is the address
 * of an int. False: there is none of that number.
 */
static bool find_predefined(int number, void *out, int *flag)
{
	static int tag_ub = MADMPI_TAG_UB, host = MPI_PROC_NULL,
		   io = MPI_ANY_SOURCE, wtime_is_global = 0, universe;
	int *value = NULL;

	switch (number) {
	case MPI_TAG_UB:
		value = &tag_ub;
		break;
	case MPI_HOST:
		value = &host;
		break;
	case MPI_IO:
		value = &io;
		break;
	case MPI_WTIME_IS_GLOBAL:
		value = &wtime_is_global;
		break;
	case MPI_UNIVERSE_SIZE:
		universe = nm_size();
		value = &universe;
		break;
	case MPI_LASTUSEDCODE:
		value = &madmpi_last_used_code;
		break;
	case MPI_APPNUM: /* unless no launcher has told us */
		value = madmpi_appnum >= 0 ? &madmpi_appnum : NULL;
		break;
	default:
		return false;
	}
	*flag = value != NULL;
	if (value != NULL)
		*(int **)out = value;
	return true;
}

/* The communicator, and not one of its predefined attributes. */
static int check(const char *fn, MPI_Comm comm, int number,
		 struct madmpi_bearer *out)
{
	int rc = madmpi_check_comm(fn, comm, &out->comm);

	out->type = NULL;
	if (rc != MPI_SUCCESS || number < MPI_TAG_UB ||
	    number >= MADMPI_KEYVAL_FIRST)
		return rc;
	return madmpi_error(out->comm, MPI_ERR_KEYVAL, fn,
			    "keyval %d is predefined, its attribute cannot be "
			    "changed",
			    number);
}

static int comm_set_attr(const char *fn, MPI_Comm comm, int number, void *value)
{
	struct madmpi_bearer b;
	int rc = check(fn, comm, number, &b);

	return rc == MPI_SUCCESS ? madmpi_attr_set(fn, b, number, value) : rc;
}

static int comm_get_attr(const char *fn, MPI_Comm comm, int number, void *out,
			 int *flag)
{
	struct madmpi_bearer b = { NULL, NULL };
	int rc = madmpi_check_comm(fn, comm, &b.comm);

	if (rc != MPI_SUCCESS)
		return rc;
	if (out != NULL && flag != NULL && find_predefined(number, out, flag))
		return MPI_SUCCESS;
	return madmpi_attr_find(fn, b, number, out, flag);
}

static int comm_delete_attr(const char *fn, MPI_Comm comm, int number)
{
	struct madmpi_bearer b;
	int rc = check(fn, comm, number, &b);

	return rc == MPI_SUCCESS ? madmpi_attr_remove(fn, b, number) : rc;
}

/* MPI_Comm_set_attr */
int madmpi_comm_set_attr(MPI_Comm comm, int comm_keyval, void *attribute_val)
{
	return comm_set_attr("MPI_Comm_set_attr", comm, comm_keyval,
			     attribute_val);
}

/* MPI_Comm_get_attr */
int madmpi_comm_get_attr(MPI_Comm comm, int comm_keyval, void *attribute_val,
			 int *flag)
{
	return comm_get_attr("MPI_Comm_get_attr", comm, comm_keyval,
			     attribute_val, flag);
}

/* MPI_Comm_delete_attr */
int madmpi_comm_delete_attr(MPI_Comm comm, int comm_keyval)
{
	return comm_delete_attr("MPI_Comm_delete_attr", comm, comm_keyval);
}

/* MPI_Attr_put */
int madmpi_attr_put(MPI_Comm comm, int keyval, void *attribute_val)
{
	return comm_set_attr("MPI_Attr_put", comm, keyval, attribute_val);
}

/* MPI_Attr_get */
int madmpi_attr_get(MPI_Comm comm, int keyval, void *attribute_val, int *flag)
{
	return comm_get_attr("MPI_Attr_get", comm, keyval, attribute_val, flag);
}

/* MPI_Attr_delete */
int madmpi_attr_delete(MPI_Comm comm, int keyval)
{
	return comm_delete_attr("MPI_Attr_delete", comm, keyval);
}
