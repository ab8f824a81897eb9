/*
 * Performance variables: the counters of pioman and nmad, which these count
 * always, from their start, whether anybody asks or not. So all of them are
 * continuous, and only read.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <base/diag.h>
#include <base/list.h>
#include <base/spin.h>
#include <nmad/stats.h>
#include <pioman/stats.h>

#include "bodies.h"
#include "core/pool.h"
#include "tool/tool.h"

enum { COUNTERS_MAX = 128, COUNTER_NAME = 80 };

struct pvar_session {
	struct madmpi_object object;
	struct base_list handles; /* l: */
};

struct pvar_handle {
	struct madmpi_object object;
	struct pvar_session *session; /* -: */
	struct base_link link;        /* l: of the session's */
	int index;                    /* -: */
};

static struct madmpi_pool sessions, handles;

static struct base_spin lock = BASE_SPIN_INIT(BASE_RANK_LEAF);

static void make_pools(void)
{
	madmpi_pool_init(&sessions, MADMPI_T_SESSION,
			 sizeof(struct pvar_session));
	madmpi_pool_init(&handles, MADMPI_T_PVAR, sizeof(struct pvar_handle));
}

/* --- the counters in a row: pioman's, then nmad's --- */

struct counter {
	char name[COUNTER_NAME];
	const char *help;
	bool highest;
	uint64_t value;
};

int madmpi_tool_counters(enum madmpi_module m)
{
	size_t n = 0;

	if (m > MADMPI_OF_PIOMAN)
		n += piom_stats_read(NULL, 0);
	if (m > MADMPI_OF_NMAD)
		n += nm_stats_read(NULL, 0);
	return (int)n;
}

/* Of an index that there is. */
static void read_counter(int index, struct counter *out)
{
	struct piom_counter p[COUNTERS_MAX];
	struct nm_counter n[COUNTERS_MAX];
	int first = madmpi_tool_counters(MADMPI_OF_NMAD), i = index - first;

	base_check(index < COUNTERS_MAX);
	if (index < first) {
		piom_stats_read(p, (size_t)index + 1);
		snprintf(out->name, sizeof(out->name), "pioman_%s",
			 p[index].name);
		out->help = p[index].help;
		out->highest = p[index].highest;
		out->value = p[index].value;
		return;
	}
	nm_stats_read(n, (size_t)i + 1);
	snprintf(out->name, sizeof(out->name), "nmad_%s", n[i].name);
	out->help = n[i].help;
	out->highest = false;
	out->value = n[i].value;
}

static bool is_index(int index)
{
	return index >= 0 && index < madmpi_tool_counters(MADMPI_MODULES);
}

static int class_of(const struct counter *c)
{
	return c->highest ? MPI_T_PVAR_CLASS_HIGHWATERMARK
			  : MPI_T_PVAR_CLASS_COUNTER;
}

/* MPI_T_pvar_get_num */
int madmpi_t_pvar_get_num(int *num_pvar)
{
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (num_pvar == NULL)
		return MPI_T_ERR_INVALID;
	*num_pvar = madmpi_tool_counters(MADMPI_MODULES);
	return MPI_SUCCESS;
}

/* MPI_T_pvar_get_info */
int madmpi_t_pvar_get_info(int pvar_index, char *name, int *name_len,
			   int *verbosity, int *var_class,
			   MPI_Datatype *datatype, MPI_T_enum *enumtype,
			   char *desc, int *desc_len, int *bind, int *readonly,
			   int *continuous, int *atomic)
{
	struct counter c;
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!is_index(pvar_index))
		return MPI_T_ERR_INVALID_INDEX;
	read_counter(pvar_index, &c);
	madmpi_tool_text(c.name, name, name_len);
	madmpi_tool_text(c.help, desc, desc_len);
	madmpi_tool_tell(verbosity, MPI_T_VERBOSITY_TUNER_BASIC);
	madmpi_tool_tell(var_class, class_of(&c));
	if (datatype != NULL)
		*datatype = MPI_UNSIGNED_LONG_LONG;
	if (enumtype != NULL)
		*enumtype = MPI_T_ENUM_NULL;
	madmpi_tool_tell(bind, MPI_T_BIND_NO_OBJECT);
	madmpi_tool_tell(readonly, 1);
	madmpi_tool_tell(continuous, 1);
	madmpi_tool_tell(atomic, 0);
	return MPI_SUCCESS;
}

/* MPI_T_pvar_get_index */
int madmpi_t_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
	struct counter c;
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (name == NULL || pvar_index == NULL)
		return MPI_T_ERR_INVALID;
	for (int i = 0; is_index(i); i++) {
		read_counter(i, &c);
		if (strcmp(c.name, name) == 0 && class_of(&c) == var_class) {
			*pvar_index = i;
			return MPI_SUCCESS;
		}
	}
	return MPI_T_ERR_INVALID_NAME;
}

/* --- sessions and handles --- */

static struct pvar_session *session_of(MPI_T_pvar_session session)
{
	return madmpi_handle_is_constant(session)
		       ? NULL
		       : madmpi_handle_object(session, MADMPI_T_SESSION);
}

/* The handle of the session, or NULL and *rc. */
static struct pvar_handle *handle_of(MPI_T_pvar_session session,
				     MPI_T_pvar_handle handle, int *rc)
{
	struct pvar_session *s;
	struct pvar_handle *h = NULL;

	*rc = madmpi_tool_check();
	if (*rc != MPI_SUCCESS)
		return NULL;
	s = session_of(session);
	*rc = s == NULL ? MPI_T_ERR_INVALID_SESSION : MPI_T_ERR_INVALID_HANDLE;
	if (s != NULL && !madmpi_handle_is_constant(handle))
		h = madmpi_handle_object(handle, MADMPI_T_PVAR);
	if (h == NULL || h->session != s)
		return NULL;
	*rc = MPI_SUCCESS;
	return h;
}

/* MPI_T_pvar_session_create */
int madmpi_t_pvar_session_create(MPI_T_pvar_session *session)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct pvar_session *s;
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (session == NULL)
		return MPI_T_ERR_INVALID;
	pthread_once(&once, make_pools);
	s = madmpi_pool_get(&sessions);
	if (s == NULL)
		return MPI_T_ERR_OUT_OF_SESSIONS;
	base_list_init(&s->handles);
	*session = (MPI_T_pvar_session)s;
	return MPI_SUCCESS;
}

/* MPI_T_pvar_session_free: and its handles. */
int madmpi_t_pvar_session_free(MPI_T_pvar_session *session)
{
	struct pvar_session *s;
	struct base_link *n;
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (session == NULL)
		return MPI_T_ERR_INVALID;
	s = session_of(*session);
	if (s == NULL)
		return MPI_T_ERR_INVALID_SESSION;
	do {
		base_spin_lock(&lock);
		n = base_list_take_front(&s->handles);
		base_spin_unlock(&lock);
		if (n != NULL)
			madmpi_pool_put(
				&handles,
				container_of(n, struct pvar_handle, link));
	} while (n != NULL);
	madmpi_pool_put(&sessions, s);
	*session = MPI_T_PVAR_SESSION_NULL;
	return MPI_SUCCESS;
}

/* MPI_T_pvar_handle_alloc: none is bound to an object. */
int madmpi_t_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index,
			       void *obj_handle, MPI_T_pvar_handle *handle,
			       int *count)
{
	struct pvar_session *s;
	struct pvar_handle *h;
	int rc = madmpi_tool_check();

	(void)obj_handle;
	if (rc != MPI_SUCCESS)
		return rc;
	s = session_of(session);
	if (s == NULL)
		return MPI_T_ERR_INVALID_SESSION;
	if (!is_index(pvar_index))
		return MPI_T_ERR_INVALID_INDEX;
	if (handle == NULL || count == NULL)
		return MPI_T_ERR_INVALID;
	h = madmpi_pool_get(&handles);
	if (h == NULL)
		return MPI_T_ERR_OUT_OF_HANDLES;
	h->session = s;
	h->index = pvar_index;
	base_spin_lock(&lock);
	base_list_push_back(&s->handles, &h->link);
	base_spin_unlock(&lock);
	*handle = (MPI_T_pvar_handle)h;
	*count = 1;
	return MPI_SUCCESS;
}

/* MPI_T_pvar_handle_free */
int madmpi_t_pvar_handle_free(MPI_T_pvar_session session,
			      MPI_T_pvar_handle *handle)
{
	struct pvar_handle *h;
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (handle == NULL)
		return MPI_T_ERR_INVALID;
	h = handle_of(session, *handle, &rc);
	if (h == NULL)
		return rc;
	base_spin_lock(&lock);
	base_list_remove(&h->link);
	base_spin_unlock(&lock);
	madmpi_pool_put(&handles, h);
	*handle = MPI_T_PVAR_HANDLE_NULL;
	return MPI_SUCCESS;
}

/* --- values --- */

/*
 * What cannot be done to any of them is passed over when it is asked for all
 * handles of a session; else it is this error.
 */
static int refuse(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
		  int error)
{
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (handle == MPI_T_PVAR_ALL_HANDLES)
		return session_of(session) != NULL ? MPI_SUCCESS
						   : MPI_T_ERR_INVALID_SESSION;
	return handle_of(session, handle, &rc) != NULL ? error : rc;
}

/* MPI_T_pvar_start */
int madmpi_t_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	return refuse(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP);
}

/* MPI_T_pvar_stop */
int madmpi_t_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	return refuse(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP);
}

/* MPI_T_pvar_reset */
int madmpi_t_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	return refuse(session, handle, MPI_T_ERR_PVAR_NO_WRITE);
}

/* MPI_T_pvar_read */
int madmpi_t_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
		       void *buf)
{
	unsigned long long value;
	struct counter c;
	int rc;
	struct pvar_handle *h = handle_of(session, handle, &rc);

	if (h == NULL)
		return rc;
	if (buf == NULL)
		return MPI_T_ERR_INVALID;
	read_counter(h->index, &c);
	value = c.value;
	memcpy(buf, &value, sizeof(value));
	return MPI_SUCCESS;
}

/* MPI_T_pvar_write */
int madmpi_t_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
			const void *buf)
{
	int rc;

	if (handle_of(session, handle, &rc) == NULL)
		return rc;
	return buf == NULL ? MPI_T_ERR_INVALID : MPI_T_ERR_PVAR_NO_WRITE;
}

/* MPI_T_pvar_readreset */
int madmpi_t_pvar_readreset(MPI_T_pvar_session session,
			    MPI_T_pvar_handle handle, void *buf)
{
	int rc;

	if (handle_of(session, handle, &rc) == NULL)
		return rc;
	return buf == NULL ? MPI_T_ERR_INVALID : MPI_T_ERR_PVAR_NO_ATOMIC;
}
