/*
 * Error handlers, and the only place where MPI error codes meet errno.
 */
#include "env/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/diag.h>

#include "bodies.h"
#include "comm/comm.h"
#include "core/enter.h"
#include "core/pool.h"
#include "session/session.h"

static struct madmpi_pool pool; /* for ever: handlers outlive MPI */

static struct madmpi_errhandler predefined[] = {
	{ .object.kind = ATOMIC_INIT(MADMPI_ERRHANDLER),
	  .how = MADMPI_ERRORS_FATAL },
	{ .object.kind = ATOMIC_INIT(MADMPI_ERRHANDLER),
	  .how = MADMPI_ERRORS_ABORT },
	{ .object.kind = ATOMIC_INIT(MADMPI_ERRHANDLER),
	  .how = MADMPI_ERRORS_RETURN },
};

/*
 * What holds where there is no communicator: before MPI_Init, where it becomes
 * that of the first ones, and after MPI_Finalize, where it is what
 * MPI_COMM_SELF had.
 */
static struct {
	struct base_spin lock;
	struct madmpi_errhandler *e; /* l: a reference; NULL: not read yet */
} initial = { .lock = BASE_SPIN_INIT(BASE_RANK_LEAF) };

/* a: MPI_COMM_SELF has got a handler; the program orders its calls */
static ATOMIC(bool) self_was_set = ATOMIC_INIT(false);

static bool is_predefined(const struct madmpi_errhandler *e)
{
	return e >= predefined && e < predefined + BASE_ARRAY_LEN(predefined);
}

struct madmpi_errhandler *madmpi_errhandler_of(MPI_Errhandler handle)
{
	uintptr_t i = (uintptr_t)handle - (uintptr_t)MPI_ERRORS_ARE_FATAL;
	struct madmpi_errhandler *e;

	if (madmpi_handle_is_constant(handle))
		return i < BASE_ARRAY_LEN(predefined) ? &predefined[i] : NULL;
	/* One that communicators have, but the program no longer, is none. */
	e = madmpi_handle_object(handle, MADMPI_ERRHANDLER);
	return e != NULL && load_relaxed(&e->handles) > 0 ? e : NULL;
}

struct madmpi_errhandler *madmpi_errhandler_for(MPI_Errhandler handle,
						enum madmpi_kind of)
{
	struct madmpi_errhandler *e = madmpi_errhandler_of(handle);

	return e == NULL || e->how != MADMPI_ERRORS_CALL || e->of == of ? e
									: NULL;
}

MPI_Errhandler madmpi_errhandler_handle(struct madmpi_errhandler *e)
{
	if (!is_predefined(e))
		return (MPI_Errhandler)e;
	return (MPI_Errhandler)((uintptr_t)MPI_ERRORS_ARE_FATAL +
				(uintptr_t)(e - predefined));
}

void madmpi_errhandler_get(struct madmpi_errhandler *e)
{
	if (!is_predefined(e))
		madmpi_object_get(&e->object);
}

void madmpi_errhandler_put(struct madmpi_errhandler *e)
{
	if (!is_predefined(e) && madmpi_object_put(&e->object))
		madmpi_pool_put(&pool, e);
}

static void read_initial(void)
{
	if (initial.e == NULL)
		initial.e = &predefined[madmpi_initial_errhandler()];
}

static struct madmpi_errhandler *get_initial(void)
{
	struct madmpi_errhandler *e;

	base_spin_lock(&initial.lock);
	read_initial();
	e = initial.e;
	madmpi_errhandler_get(e);
	base_spin_unlock(&initial.lock);
	return e;
}

void madmpi_errhandler_remains(struct madmpi_errhandler *e)
{
	struct madmpi_errhandler *old;

	madmpi_errhandler_get(e);
	base_spin_lock(&initial.lock);
	read_initial();
	old = initial.e;
	initial.e = e;
	base_spin_unlock(&initial.lock);
	madmpi_errhandler_put(old);
}

struct madmpi_errhandler *madmpi_errhandler_of_comm(struct madmpi_comm *c)
{
	struct madmpi_errhandler *e;

	if (c == NULL)
		return get_initial();
	base_spin_lock(&c->lock);
	e = c->errhandler;
	madmpi_errhandler_get(e);
	base_spin_unlock(&c->lock);
	return e;
}

/*
 * Of an error that concerns no communicator: MPI_COMM_SELF, or, as before MPI
 * 4, MPI_COMM_WORLD if the program has given a handler only to that one. NULL:
 * there are none now.
 */
struct madmpi_comm *madmpi_error_comm(void)
{
	return load_relaxed(&self_was_set) && madmpi_world != NULL
		       ? madmpi_self
		       : madmpi_world;
}

/* Whose own one it is: null if no window's, or if that has ended. */
static MPI_Win win_of(struct madmpi_comm *c)
{
	struct madmpi_win *w;

	base_spin_lock(&c->lock);
	w = c->win;
	base_spin_unlock(&c->lock);
	return w != NULL ? (MPI_Win)w : MPI_WIN_NULL;
}

/*
 * Do what the handler says about an error of c, or of the window whose own one
 * it is or was, or of s; if both are NULL, of `none`. Puts the reference.
 */
static int obey(struct madmpi_errhandler *e, struct madmpi_comm *c,
		struct madmpi_session *s, MPI_Comm none, int code,
		const char *text)
{
	MPI_Comm comm = c != NULL ? madmpi_comm_handle(c) : none;
	MPI_Session session = s != NULL ? (MPI_Session)s : MPI_SESSION_NULL;
	MPI_Win win = c != NULL ? win_of(c) : MPI_WIN_NULL;
	MPI_File file = MPI_FILE_NULL;

	switch (e->how) {
	case MADMPI_ERRORS_FATAL:
	case MADMPI_ERRORS_ABORT:
		madmpi_kill(code, text);
	case MADMPI_ERRORS_CALL:
		if (e->of == MADMPI_SESSION)
			e->fn.session(&session, &code, NULL);
		else if (e->of == MADMPI_WIN)
			e->fn.win(&win, &code, NULL);
		else if (e->of == MADMPI_FILE)
			e->fn.file(&file, &code, NULL);
		else
			e->fn.comm(&comm, &code, NULL);
		break;
	case MADMPI_ERRORS_RETURN:
		break;
	}
	madmpi_errhandler_put(e);
	return code;
}

enum { TEXT = 512 };

static void explain(char text[TEXT], int code, const char *function,
		    const char *fmt, va_list ap)
{
	const char *name = madmpi_error_name(code);
	int n = snprintf(text, TEXT, "%s: %s: ", function,
			 name ? name : "error");

	vsnprintf(text + n, TEXT - (size_t)n, fmt, ap);
}

int madmpi_error(struct madmpi_comm *comm, int code, const char *function,
		 const char *fmt, ...)
{
	struct madmpi_comm *c = comm != NULL ? comm : madmpi_error_comm();
	char text[TEXT];
	va_list ap;

	va_start(ap, fmt);
	explain(text, code, function, fmt, ap);
	va_end(ap);
	return obey(madmpi_errhandler_of_comm(c), c, NULL, MPI_COMM_SELF, code,
		    text);
}

int madmpi_session_error(struct madmpi_session *session, int code,
			 const char *function, const char *fmt, ...)
{
	char text[TEXT];
	va_list ap;

	va_start(ap, fmt);
	explain(text, code, function, fmt, ap);
	va_end(ap);
	return obey(madmpi_session_errhandler(session), NULL, session,
		    MPI_COMM_NULL, code, text);
}

int madmpi_error_by(struct madmpi_errhandler *e, int code, const char *function,
		    const char *fmt, ...)
{
	char text[TEXT];
	va_list ap;

	va_start(ap, fmt);
	explain(text, code, function, fmt, ap);
	va_end(ap);
	madmpi_errhandler_get(e);
	return obey(e, NULL, NULL, MPI_COMM_NULL, code, text);
}

int madmpi_null_arg(struct madmpi_comm *comm, const char *function,
		    const char *name)
{
	return madmpi_error(comm, MPI_ERR_ARG, function, "%s is a null pointer",
			    name);
}

int madmpi_unsupported(struct madmpi_comm *comm, const char *function)
{
	return madmpi_error(comm, MPI_ERR_UNSUPPORTED_OPERATION, function,
			    "this library does not have it");
}

int madmpi_error_class_of_errno(int err)
{
	switch (err) {
	case 0:
		return MPI_SUCCESS;
	case -EMSGSIZE:
		return MPI_ERR_TRUNCATE;
	case -ENOMEM:
	case -EAGAIN:
		return MPI_ERR_NO_MEM;
	case -ECONNRESET:
	case -EPIPE:
		return MPI_ERR_PROC_ABORTED;
	case -EBADF:
		return MPI_ERR_REQUEST;
	case -EOVERFLOW:
		return MPI_ERR_COUNT;
	case -EINVAL:
		return MPI_ERR_ARG;
	case -EPROTOTYPE:
		return MPI_ERR_TYPE;
	case -ERANGE:
		return MPI_ERR_RMA_RANGE;
	case -ENODATA:
		return MPI_ERR_COUNT;
	case -ECANCELED:
		return MPI_SUCCESS; /* the status says so */
	default:
		return MPI_ERR_OTHER;
	}
}

int madmpi_error_errno(struct madmpi_comm *comm, int err, const char *function,
		       const char *what)
{
	return madmpi_error(comm, madmpi_error_class_of_errno(err), function,
			    "%s: %s", what, strerror(-err));
}

int madmpi_narrow_fit(const char *function, MPI_Count value, int *out)
{
	if (value != (int)value)
		return madmpi_error(NULL, MPI_ERR_VALUE_TOO_LARGE, function,
				    "the result %lld does not fit in an int",
				    (long long)value);
	*out = (int)value;
	return MPI_SUCCESS;
}

/* MPI_Error_class */
int madmpi_error_class(int errorcode, int *errorclass)
{
	if (errorclass == NULL)
		return madmpi_null_arg(NULL, "MPI_Error_class", "errorclass");
	*errorclass = errorcode;
	if (madmpi_error_name(errorcode) != NULL)
		return MPI_SUCCESS;
	*errorclass = madmpi_user_error_class(errorcode);
	if (*errorclass >= 0)
		return MPI_SUCCESS;
	*errorclass = MPI_ERR_UNKNOWN;
	return madmpi_error(NULL, MPI_ERR_ARG, "MPI_Error_class",
			    "errorcode %d is unknown", errorcode);
}

/* MPI_Error_string */
int madmpi_error_string(int errorcode, char *string, int *resultlen)
{
	const char *name = madmpi_error_name(errorcode);

	if (string == NULL || resultlen == NULL)
		return madmpi_null_arg(NULL, "MPI_Error_string",
				       string ? "resultlen" : "string");
	if (name == NULL && madmpi_user_error_string(errorcode, string)) {
		*resultlen = (int)strlen(string);
		return MPI_SUCCESS;
	}
	if (name == NULL)
		return madmpi_error(NULL, MPI_ERR_ARG, "MPI_Error_string",
				    "errorcode %d is unknown", errorcode);
	*resultlen = snprintf(string, MPI_MAX_ERROR_STRING, "%s: %s", name,
			      madmpi_error_text(errorcode));
	return MPI_SUCCESS;
}

static void make_pool(void)
{
	madmpi_pool_init(&pool, MADMPI_ERRHANDLER,
			 sizeof(struct madmpi_errhandler));
}

/* NULL after an error that *rc says. */
static struct madmpi_errhandler *create(const char *fn, const char *name,
					bool has_fn, MPI_Errhandler *out,
					int *rc)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct madmpi_errhandler *e;

	if (!has_fn || out == NULL) {
		*rc = madmpi_null_arg(NULL, fn, has_fn ? "errhandler" : name);
		return NULL;
	}
	pthread_once(&once, make_pool);
	e = madmpi_pool_get(&pool);
	if (e == NULL) {
		*rc = madmpi_error(NULL, MPI_ERR_NO_MEM, fn,
				   "no memory for an error handler");
		return NULL;
	}
	e->how = MADMPI_ERRORS_CALL;
	store_relaxed(&e->handles, 1);
	*out = (MPI_Errhandler)e;
	*rc = MPI_SUCCESS;
	return e;
}

/* MPI_Comm_create_errhandler */
int madmpi_comm_create_errhandler(MPI_Comm_errhandler_function *fn,
				  MPI_Errhandler *errhandler)
{
	int rc;
	struct madmpi_errhandler *e =
		create("MPI_Comm_create_errhandler", "comm_errhandler_fn",
		       fn != NULL, errhandler, &rc);

	if (e == NULL)
		return rc;
	e->of = MADMPI_COMM;
	e->fn.comm = fn;
	return MPI_SUCCESS;
}

/* MPI_Session_create_errhandler */
int madmpi_session_create_errhandler(MPI_Session_errhandler_function *fn,
				     MPI_Errhandler *errhandler)
{
	int rc;
	struct madmpi_errhandler *e =
		create("MPI_Session_create_errhandler", "session_errhandler_fn",
		       fn != NULL, errhandler, &rc);

	if (e == NULL)
		return rc;
	e->of = MADMPI_SESSION;
	e->fn.session = fn;
	return MPI_SUCCESS;
}

/* MPI_Win_create_errhandler */
int madmpi_win_create_errhandler(MPI_Win_errhandler_function *fn,
				 MPI_Errhandler *errhandler)
{
	int rc;
	struct madmpi_errhandler *e =
		create("MPI_Win_create_errhandler", "win_errhandler_fn",
		       fn != NULL, errhandler, &rc);

	if (e == NULL)
		return rc;
	e->of = MADMPI_WIN;
	e->fn.win = fn;
	return MPI_SUCCESS;
}

/* MPI_File_create_errhandler */
int madmpi_file_create_errhandler(MPI_File_errhandler_function *fn,
				  MPI_Errhandler *errhandler)
{
	int rc;
	struct madmpi_errhandler *e =
		create("MPI_File_create_errhandler", "file_errhandler_fn",
		       fn != NULL, errhandler, &rc);

	if (e == NULL)
		return rc;
	e->of = MADMPI_FILE;
	e->fn.file = fn;
	return MPI_SUCCESS;
}

/* MPI_Errhandler_free */
int madmpi_errhandler_free(MPI_Errhandler *errhandler)
{
	struct madmpi_errhandler *e;

	if (errhandler == NULL)
		return madmpi_null_arg(NULL, "MPI_Errhandler_free",
				       "errhandler");
	e = madmpi_errhandler_of(*errhandler);
	if (e == NULL)
		return madmpi_error(
			NULL, MPI_ERR_ERRHANDLER, "MPI_Errhandler_free",
			"%p is not an error handler", (void *)*errhandler);
	fetch_sub_relaxed(&e->handles, 1);
	madmpi_errhandler_put(e);
	*errhandler = MPI_ERRHANDLER_NULL;
	return MPI_SUCCESS;
}

static int bad_comm(const char *function, MPI_Comm comm)
{
	return madmpi_error(NULL, MPI_ERR_COMM, function,
			    "comm %p is not a communicator", (void *)comm);
}

void madmpi_errhandler_give(struct madmpi_comm *c, struct madmpi_errhandler *e)
{
	struct madmpi_errhandler *old;

	madmpi_errhandler_get(e);
	base_spin_lock(&c->lock);
	old = c->errhandler;
	c->errhandler = e;
	base_spin_unlock(&c->lock);
	madmpi_errhandler_put(old);
}

/* MPI_Comm_set_errhandler */
int madmpi_comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler)
{
	struct madmpi_comm *c = madmpi_comm_of(comm);
	struct madmpi_errhandler *e;

	if (c == NULL)
		return bad_comm("MPI_Comm_set_errhandler", comm);
	e = madmpi_errhandler_for(errhandler, MADMPI_COMM);
	if (e == NULL)
		return madmpi_error(
			c, MPI_ERR_ERRHANDLER, "MPI_Comm_set_errhandler",
			"%p is not an error handler of communicators",
			(void *)errhandler);
	if (c == madmpi_self)
		store_relaxed(&self_was_set, true);
	madmpi_errhandler_give(c, e);
	return MPI_SUCCESS;
}

/* MPI_Comm_get_errhandler */
int madmpi_comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *errhandler)
{
	struct madmpi_comm *c = madmpi_comm_of(comm);
	struct madmpi_errhandler *e;

	if (c == NULL)
		return bad_comm("MPI_Comm_get_errhandler", comm);
	if (errhandler == NULL)
		return madmpi_null_arg(c, "MPI_Comm_get_errhandler",
				       "errhandler");
	e = madmpi_errhandler_of_comm(c);
	fetch_add_relaxed(&e->handles, 1);
	*errhandler = madmpi_errhandler_handle(e);
	return MPI_SUCCESS;
}

bool madmpi_error_is_code(int code)
{
	return madmpi_error_name(code) != NULL ||
	       madmpi_user_error_class(code) >= 0;
}

/* MPI_Comm_call_errhandler */
int madmpi_comm_call_errhandler(MPI_Comm comm, int errorcode)
{
	struct madmpi_comm *c = madmpi_comm_of(comm);

	if (c == NULL)
		return bad_comm("MPI_Comm_call_errhandler", comm);
	if (!madmpi_error_is_code(errorcode))
		return madmpi_error(c, MPI_ERR_ARG, "MPI_Comm_call_errhandler",
				    "errorcode %d is unknown", errorcode);
	madmpi_error(c, errorcode, "MPI_Comm_call_errhandler",
		     "called by the program");
	return MPI_SUCCESS;
}
