/*
 * Sessions: their life, and what can be asked of them.
 */
#include "session/session.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "bodies.h"
#include "comm/comm.h"
#include "core/pool.h"
#include "env/leaks.h"
#include "info/info.h"
#include "proc/library.h"
#include "pt2pt/request.h"
#include "rma/win.h"

static struct madmpi_pool pool; /* for ever: handles outlive MPI */

struct madmpi_session *madmpi_session_of(MPI_Session handle)
{
	struct madmpi_session *s;

	if (madmpi_handle_is_constant(handle))
		return NULL;
	s = madmpi_handle_object(handle, MADMPI_SESSION);
	return s != NULL && !madmpi_object_is_let_go(&s->object) ? s : NULL;
}

int madmpi_check_session(const char *fn, MPI_Session session,
			 struct madmpi_session **out)
{
	*out = madmpi_session_of(session);
	if (*out != NULL)
		return MPI_SUCCESS;
	return madmpi_error(NULL, MPI_ERR_SESSION, fn, "session %p is %s",
			    (void *)session,
			    session == MPI_SESSION_NULL
				    ? "MPI_SESSION_NULL"
				    : "not a session, or was finalized");
}

int madmpi_session_null_arg(struct madmpi_session *s, const char *fn,
			    const char *name)
{
	return madmpi_session_error(s, MPI_ERR_ARG, fn, "%s is a null pointer",
				    name);
}

struct madmpi_errhandler *madmpi_session_errhandler(struct madmpi_session *s)
{
	struct madmpi_errhandler *e;

	base_spin_lock(&s->lock);
	e = s->errhandler;
	madmpi_errhandler_get(e);
	base_spin_unlock(&s->lock);
	return e;
}

/* --- what belongs to it --- */

void madmpi_session_add(struct madmpi_session *s, struct base_list *list,
			struct base_link *on)
{
	if (s == NULL)
		return;
	madmpi_object_get(&s->object);
	base_spin_lock(&s->lock);
	base_list_push_back(list, on);
	base_spin_unlock(&s->lock);
}

/* Under the lock: what is on a list has references. */
bool madmpi_session_object_put(struct madmpi_session *s,
			       struct madmpi_object *o, struct base_link *on)
{
	bool last;

	if (s == NULL)
		return madmpi_object_put(o);
	base_spin_lock(&s->lock);
	last = madmpi_object_put(o);
	if (last)
		base_list_remove(on);
	base_spin_unlock(&s->lock);
	return last;
}

void madmpi_session_put(struct madmpi_session *s)
{
	if (s == NULL || !madmpi_object_put(&s->object))
		return;
	madmpi_errhandler_put(s->errhandler);
	madmpi_buffer_exit(&s->buffer);
	madmpi_pool_put(&pool, s);
}

/*
 * The next one behind `last`, or the first, that the program has not freed:
 * with a reference. The one of `last`, which kept it in the list, is given
 * back. NULL: there are no more.
 */
static struct madmpi_comm *kept_comm(struct madmpi_session *s,
				     struct madmpi_comm *last)
{
	struct madmpi_comm *found = NULL;
	struct base_link *n;

	base_spin_lock(&s->lock);
	n = last != NULL ? last->on.next : s->comms.head.next;
	for (; n != &s->comms.head && found == NULL; n = n->next) {
		struct madmpi_comm *c = container_of(n, struct madmpi_comm, on);

		if (madmpi_object_is_let_go(&c->object))
			continue;
		madmpi_object_get(&c->object);
		found = c;
	}
	base_spin_unlock(&s->lock);
	if (last != NULL)
		madmpi_comm_put(last);
	return found;
}

/* The same of groups. */
static struct madmpi_group *kept_group(struct madmpi_session *s,
				       struct madmpi_group *last)
{
	struct madmpi_group *found = NULL;
	struct base_link *n;

	base_spin_lock(&s->lock);
	n = last != NULL ? last->on.next : s->groups.head.next;
	for (; n != &s->groups.head && found == NULL; n = n->next) {
		struct madmpi_group *g =
			container_of(n, struct madmpi_group, on);

		if (load_relaxed(&g->handles) == 0)
			continue;
		madmpi_object_get(&g->object);
		found = g;
	}
	base_spin_unlock(&s->lock);
	if (last != NULL)
		madmpi_group_put(last);
	return found;
}

/* As if the program freed them: no handle of the session is one any more. */
static void free_all(struct madmpi_session *s)
{
	struct madmpi_comm *c = NULL;
	struct madmpi_group *g = NULL;

	while ((c = kept_comm(s, c)) != NULL)
		if (c->win != NULL)
			madmpi_win_give_up(c->win);
		else
			madmpi_comm_give_up(c);
	while ((g = kept_group(s, g)) != NULL)
		madmpi_group_give_up(g);
	madmpi_buffer_empty(&s->buffer);
}

/* --- its life --- */

static void make_pool(void)
{
	madmpi_pool_init(&pool, MADMPI_SESSION, sizeof(struct madmpi_session));
}

static struct madmpi_session *session_new(struct madmpi_errhandler *e)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct madmpi_session *s;

	pthread_once(&once, make_pool);
	s = madmpi_pool_get(&pool);
	if (s == NULL)
		return NULL;
	base_spin_init(&s->lock, BASE_RANK_LEAF);
	madmpi_errhandler_get(e);
	s->errhandler = e;
	base_list_init(&s->comms);
	base_list_init(&s->groups);
	madmpi_buffer_init(&s->buffer);
	return s;
}

/* Whatever level is asked for, it is the highest one; but it must be one. */
static int check_info(const char *fn, struct madmpi_errhandler *e,
		      MPI_Info info)
{
	static const char *const levels[] = { "SINGLE", "FUNNELED",
					      "SERIALIZED", "MULTIPLE" };
	char value[32] = "", level[32];
	int room = sizeof(value), flag = 0;

	if (info == MPI_INFO_NULL)
		return MPI_SUCCESS;
	if (madmpi_info_of(info) == NULL)
		return madmpi_error_by(e, MPI_ERR_INFO, fn,
				       "%p is not an info object",
				       (void *)info);
	madmpi_info_get_string(info, "thread_level", &room, value, &flag);
	for (size_t i = 0; flag && i < BASE_ARRAY_LEN(levels); i++) {
		snprintf(level, sizeof(level), "MPI_THREAD_%s", levels[i]);
		if (strcmp(value, level) == 0)
			return MPI_SUCCESS;
	}
	if (!flag)
		return MPI_SUCCESS;
	return madmpi_error_by(e, MPI_ERR_INFO_VALUE, fn,
			       "thread_level is \"%s\", which is no level",
			       value);
}

/* MPI_Session_init: the handler is told if it fails, too. */
int madmpi_session_init(MPI_Info info, MPI_Errhandler errhandler,
			MPI_Session *session)
{
	const char *fn = "MPI_Session_init";
	struct madmpi_errhandler *e =
		madmpi_errhandler_for(errhandler, MADMPI_SESSION);
	struct madmpi_refusal why;
	struct madmpi_session *s;
	int rc;

	if (e == NULL)
		return madmpi_error(NULL, MPI_ERR_ERRHANDLER, fn,
				    "%p is not an error handler of sessions",
				    (void *)errhandler);
	if (session == NULL)
		return madmpi_error_by(e, MPI_ERR_ARG, fn,
				       "session is a null pointer");
	rc = check_info(fn, e, info);
	if (rc != MPI_SUCCESS)
		return rc;
	*session = MPI_SESSION_NULL;
	if (!madmpi_library_get(MADMPI_USER_SESSION, &why))
		return madmpi_error_by(e, why.class, fn, "%s", why.text);
	s = session_new(e);
	if (s == NULL) {
		madmpi_library_put(false);
		return madmpi_error_by(e, MPI_ERR_NO_MEM, fn,
				       "no memory for a session");
	}
	*session = (MPI_Session)s;
	return MPI_SUCCESS;
}

/* MPI_Session_finalize: what belongs to it goes with it. */
int madmpi_session_finalize(MPI_Session *session)
{
	const char *fn = "MPI_Session_finalize";
	struct madmpi_session *s;
	int rc;

	if (session == NULL)
		return madmpi_null_arg(NULL, fn, "session");
	rc = madmpi_check_session(fn, *session, &s);
	if (rc != MPI_SUCCESS)
		return rc;
	if (madmpi_leaks_wanted())
		madmpi_leaks_session(s);
	free_all(s);
	madmpi_request_reap(s);
	*session = MPI_SESSION_NULL;
	madmpi_object_let_go(&s->object);
	madmpi_session_put(s);
	madmpi_library_put(false);
	return MPI_SUCCESS;
}

/* MPI_Session_get_info: a new object, the caller's. */
int madmpi_session_get_info(MPI_Session session, MPI_Info *info_used)
{
	const char *fn = "MPI_Session_get_info";
	struct madmpi_session *s;
	int rc = madmpi_check_session(fn, session, &s);

	if (rc != MPI_SUCCESS)
		return rc;
	if (info_used == NULL)
		return madmpi_session_null_arg(s, fn, "info_used");
	rc = madmpi_info_create(info_used);
	if (rc == MPI_SUCCESS)
		rc = madmpi_info_set(*info_used, "thread_level",
				     "MPI_THREAD_MULTIPLE");
	if (rc == MPI_SUCCESS)
		rc = madmpi_info_set(*info_used, "mpi_memory_alloc_kinds",
				     "system,mpi");
	return rc;
}

/* --- its error handler --- */

/* MPI_Session_set_errhandler */
int madmpi_session_set_errhandler(MPI_Session session,
				  MPI_Errhandler errhandler)
{
	const char *fn = "MPI_Session_set_errhandler";
	struct madmpi_errhandler *e, *old;
	struct madmpi_session *s;
	int rc = madmpi_check_session(fn, session, &s);

	if (rc != MPI_SUCCESS)
		return rc;
	e = madmpi_errhandler_for(errhandler, MADMPI_SESSION);
	if (e == NULL)
		return madmpi_session_error(
			s, MPI_ERR_ERRHANDLER, fn,
			"%p is not an error handler of sessions",
			(void *)errhandler);
	madmpi_errhandler_get(e);
	base_spin_lock(&s->lock);
	old = s->errhandler;
	s->errhandler = e;
	base_spin_unlock(&s->lock);
	madmpi_errhandler_put(old);
	return MPI_SUCCESS;
}

/* MPI_Session_get_errhandler */
int madmpi_session_get_errhandler(MPI_Session session,
				  MPI_Errhandler *errhandler)
{
	const char *fn = "MPI_Session_get_errhandler";
	struct madmpi_errhandler *e;
	struct madmpi_session *s;
	int rc = madmpi_check_session(fn, session, &s);

	if (rc != MPI_SUCCESS)
		return rc;
	if (errhandler == NULL)
		return madmpi_session_null_arg(s, fn, "errhandler");
	e = madmpi_session_errhandler(s);
	fetch_add_relaxed(&e->handles, 1);
	*errhandler = madmpi_errhandler_handle(e);
	return MPI_SUCCESS;
}

/* MPI_Session_call_errhandler */
int madmpi_session_call_errhandler(MPI_Session session, int errorcode)
{
	const char *fn = "MPI_Session_call_errhandler";
	struct madmpi_session *s;
	int rc = madmpi_check_session(fn, session, &s);

	if (rc != MPI_SUCCESS)
		return rc;
	if (!madmpi_error_is_code(errorcode))
		return madmpi_session_error(s, MPI_ERR_ARG, fn,
					    "errorcode %d is unknown",
					    errorcode);
	madmpi_session_error(s, errorcode, fn, "called by the program");
	return MPI_SUCCESS;
}
