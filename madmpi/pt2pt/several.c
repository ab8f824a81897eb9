/*
 * Several requests at once: all, any, some.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bodies.h"
#include "env/error.h"
#include "pt2pt/request.h"

/* All handles of an array are requests or MPI_REQUEST_NULL. */
static int check_array(const char *fn, int n, const MPI_Request array[])
{
	int rc = MPI_SUCCESS;

	if (!madmpi_checks)
		return rc;
	if (n < 0)
		return madmpi_error(NULL, MPI_ERR_COUNT, fn,
				    "count is negative (%d)", n);
	if (n > 0 && array == NULL)
		return madmpi_null_arg(NULL, fn, "array_of_requests");
	for (int i = 0; i < n && rc == MPI_SUCCESS; i++)
		if (array[i] != MPI_REQUEST_NULL)
			madmpi_request_of(fn, array[i], &rc);
	return rc;
}

/* The end of several requests: one error for all. */
struct several {
	const char *fn;
	struct madmpi_comm *comm;  /* of the first failure; a reference */
	int code;                  /* of the first failure */
	char what[MADMPI_DIFFERS]; /* likewise, as text */
	int failures;
	struct madmpi_pool_chain ended; /* requests */
};

/* The text is left as it is. */
static inline void begin(struct several *s, const char *fn)
{
	s->fn = fn;
	s->failures = 0;
	s->ended = (struct madmpi_pool_chain){ 0 };
}

/* While what the outcome points to is there. */
static void describe(struct madmpi_comm *c, const struct madmpi_outcome *o,
		     char *out, size_t room)
{
	if (o->operation != NULL)
		snprintf(out, room, "%s", o->operation);
	else if (o->unfit != NULL)
		madmpi_outcome_differs(c, o, out, room);
	else
		snprintf(out, room, "rank %d, tag %d, %lld of %lld bytes",
			 o->source, o->tag, (long long)o->bytes,
			 (long long)o->sent);
}

static void BASE_COLD note_failure(struct several *s, struct madmpi_comm *c,
				   const struct madmpi_outcome *o)
{
	if (s->failures++ > 0)
		return;
	s->comm = c;
	s->code = madmpi_outcome_code(o);
	describe(c, o, s->what, sizeof(s->what));
	madmpi_comm_get(c);
}

/* The array holds a request twice, and its first place has ended it. */
static void end_again(struct several *s, MPI_Status *status)
{
	struct madmpi_outcome o = madmpi_outcome_empty();

	o.error = -EBADF;
	madmpi_status_fill(status, &o);
	if (status != MPI_STATUS_IGNORE)
		status->MPI_ERROR = madmpi_error_class_of_errno(o.error);
	note_failure(s, madmpi_self, &o);
}

/* What became of one that was found to be complete. */
static void tell(struct several *s, struct madmpi_comm *c,
		 const struct madmpi_outcome *o, MPI_Status *status)
{
	madmpi_status_fill(status, o);
	if (status != MPI_STATUS_IGNORE)
		status->MPI_ERROR = madmpi_outcome_code(o);
	if (unlikely(o->error != 0))
		note_failure(s, c, o);
}

static void end_one(struct several *s, MPI_Request *request, MPI_Status *status)
{
	struct madmpi_request *r = (struct madmpi_request *)*request;
	struct madmpi_outcome o;

	if (*request == MPI_REQUEST_NULL) {
		madmpi_status_fill_empty(status);
		return;
	}
	if (unlikely(load_relaxed(&r->object.kind) != MADMPI_REQUEST)) {
		*request = MPI_REQUEST_NULL;
		end_again(s, status);
		return;
	}
	if (unlikely(r->what == MADMPI_REQUEST_IDLE)) {
		madmpi_status_fill_empty(status);
		return;
	}
	if (status != MPI_STATUS_IGNORE || !madmpi_request_is_well(r)) {
		o = madmpi_request_last(r);
		tell(s, r->comm, &o, status);
	}
	if (likely(madmpi_request_leave(request)))
		madmpi_request_put_later(r, &s->ended);
}

static int end_all(struct several *s)
{
	const char *name;
	int rc;

	madmpi_request_put_chain(&s->ended);
	if (likely(s->failures == 0))
		return MPI_SUCCESS;
	name = madmpi_error_name(s->code);
	rc = madmpi_error(s->comm, MPI_ERR_IN_STATUS, s->fn,
			  "%d request%s failed, the first with %s (%s)",
			  s->failures, s->failures > 1 ? "s" : "",
			  name ? name : "a code of the program's", s->what);
	madmpi_comm_put(s->comm);
	return rc;
}

static MPI_Status *status_at(MPI_Status *array, int i)
{
	return array == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &array[i];
}

/* What of an array lies on the stack at a time. */
enum { PART = 32 };

/* What nmad has of the next few, from *at on; the others are complete. */
static size_t part_of(const MPI_Request array[], int count, int *at,
		      struct nm_sr_request *part[])
{
	size_t n = 0;

	for (; *at < count && n < PART; ++*at) {
		struct madmpi_request *r = (struct madmpi_request *)array[*at];

		if (array[*at] != MPI_REQUEST_NULL &&
		    r->what > MADMPI_REQUEST_NOTHING)
			part[n++] = &r->nm;
	}
	return n;
}

/* Whether all are complete, after an attempt to make progress. */
static bool test_all(int count, const MPI_Request array[])
{
	struct nm_sr_request *part[PART];
	bool complete = true;
	int at = 0;

	while (complete && at < count) {
		size_t n = part_of(array, count, &at, part);

		complete = nm_sr_test_all(part, n) == 0;
	}
	if (!complete)
		madmpi_make_way();
	return complete;
}

/* MPI_Waitall */
int madmpi_waitall(int count, MPI_Request array_of_requests[],
		   MPI_Status *array_of_statuses)
{
	const char *fn = "MPI_Waitall";
	struct nm_sr_request *part[PART];
	int rc = check_array(fn, count, array_of_requests), at = 0;
	struct several s;
	size_t n;

	begin(&s, fn);
	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	while (at < count) {
		n = part_of(array_of_requests, count, &at, part);
		nm_sr_wait_all(part, n);
	}
	for (int i = 0; i < count; i++)
		end_one(&s, &array_of_requests[i],
			status_at(array_of_statuses, i));
	return end_all(&s);
}

/* MPI_Testall */
int madmpi_testall(int count, MPI_Request array_of_requests[], int *flag,
		   MPI_Status *array_of_statuses)
{
	const char *fn = "MPI_Testall";
	int rc = check_array(fn, count, array_of_requests);
	struct several s;

	begin(&s, fn);
	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	if (flag == NULL)
		return madmpi_null_arg(NULL, fn, "flag");
	*flag = test_all(count, array_of_requests);
	if (!*flag)
		return MPI_SUCCESS;
	for (int i = 0; i < count; i++)
		end_one(&s, &array_of_requests[i],
			status_at(array_of_statuses, i));
	return end_all(&s);
}

/*
 * The first complete active request of an array, or -1. *active: whether there
 * are any active ones; *pending: one of those that are not complete.
 */
static int find(int count, const MPI_Request array[], bool *active,
		struct madmpi_request **pending)
{
	struct madmpi_request *r;

	*active = false;
	*pending = NULL;
	for (int i = 0; i < count; i++) {
		r = (struct madmpi_request *)array[i];
		if (!madmpi_request_is_active(array[i]))
			continue;
		*active = true;
		if (madmpi_request_is_complete(r))
			return i;
		*pending = r;
	}
	return -1;
}

/* The same after an attempt to make progress if there is none. */
static int find_or_poll(int count, const MPI_Request array[], bool *active)
{
	struct madmpi_request *pending;
	int i;

	nm_sr_end_burst();
	i = find(count, array, active, &pending);
	if (i >= 0 || pending == NULL)
		return i;
	madmpi_request_poll(pending);
	return find(count, array, active, &pending);
}

/* The first complete one, waited for; none was complete before. Or -ENOMEM. */
static int wait_any(int count, const MPI_Request array[])
{
	struct nm_sr_request *few[PART] = { NULL }, **all = few;
	int first;

	if (count > (int)BASE_ARRAY_LEN(few)) {
		all = malloc((size_t)count * sizeof(*all));
		if (all == NULL)
			return -ENOMEM;
	}
	for (int i = 0; i < count; i++)
		all[i] = madmpi_request_is_active(array[i])
				 ? &((struct madmpi_request *)array[i])->nm
				 : NULL;
	first = (int)nm_sr_wait_any(all, (size_t)count);
	if (all != few)
		free(all);
	return first;
}

/* The first complete request, waited for; -1: none is active, or *rc. */
static int find_or_wait(const char *fn, int count, const MPI_Request array[],
			int *rc)
{
	struct madmpi_request *pending;
	bool active;
	int i;

	nm_sr_end_burst();
	i = find(count, array, &active, &pending);
	*rc = MPI_SUCCESS;
	if (i >= 0 || !active)
		return i;
	i = wait_any(count, array);
	if (i < 0) {
		*rc = madmpi_error(NULL, MPI_ERR_NO_MEM, fn,
				   "no memory for a list of %d requests",
				   count);
		return -1;
	}
	return i;
}

/* MPI_Waitany */
int madmpi_waitany(int count, MPI_Request array_of_requests[], int *indx,
		   MPI_Status *status)
{
	const char *fn = "MPI_Waitany";
	int rc = check_array(fn, count, array_of_requests), i;

	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	if (indx == NULL)
		return madmpi_null_arg(NULL, fn, "indx");
	i = find_or_wait(fn, count, array_of_requests, &rc);
	*indx = i >= 0 ? i : MPI_UNDEFINED;
	if (i >= 0)
		return madmpi_request_end(fn, &array_of_requests[i], status);
	madmpi_status_fill_empty(status);
	return rc;
}

/* MPI_Testany */
int madmpi_testany(int count, MPI_Request array_of_requests[], int *indx,
		   int *flag, MPI_Status *status)
{
	const char *fn = "MPI_Testany";
	int rc = check_array(fn, count, array_of_requests), i;
	bool active;

	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	if (indx == NULL || flag == NULL)
		return madmpi_null_arg(NULL, fn, indx ? "flag" : "indx");
	i = find_or_poll(count, array_of_requests, &active);
	*flag = i >= 0 || !active;
	*indx = i >= 0 ? i : MPI_UNDEFINED;
	if (i >= 0)
		return madmpi_request_end(fn, &array_of_requests[i], status);
	if (*flag)
		madmpi_status_fill_empty(status);
	return MPI_SUCCESS;
}

/* End all complete requests of an array, from index `first` on. */
static int end_complete(const char *fn, int count, MPI_Request array[],
			int first, int *outcount, int indices[],
			MPI_Status *statuses)
{
	struct several s;
	int n = 0;

	begin(&s, fn);
	for (int i = first; i < count; i++) {
		if (!madmpi_request_is_active(array[i]) ||
		    !madmpi_request_is_complete(
			    (struct madmpi_request *)array[i]))
			continue;
		end_one(&s, &array[i], status_at(statuses, n));
		indices[n++] = i;
	}
	*outcount = n;
	return end_all(&s);
}

/* MPI_Waitsome */
int madmpi_waitsome(int incount, MPI_Request array_of_requests[], int *outcount,
		    int array_of_indices[], MPI_Status *array_of_statuses)
{
	const char *fn = "MPI_Waitsome";
	int rc = check_array(fn, incount, array_of_requests), i;

	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	if (outcount == NULL || (incount > 0 && array_of_indices == NULL))
		return madmpi_null_arg(
			NULL, fn, outcount ? "array_of_indices" : "outcount");
	i = find_or_wait(fn, incount, array_of_requests, &rc);
	if (i < 0) {
		*outcount = MPI_UNDEFINED;
		return rc;
	}
	return end_complete(fn, incount, array_of_requests, i, outcount,
			    array_of_indices, array_of_statuses);
}

/* MPI_Testsome */
int madmpi_testsome(int incount, MPI_Request array_of_requests[], int *outcount,
		    int array_of_indices[], MPI_Status *array_of_statuses)
{
	const char *fn = "MPI_Testsome";
	int rc = check_array(fn, incount, array_of_requests), i;
	bool active;

	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	if (outcount == NULL || (incount > 0 && array_of_indices == NULL))
		return madmpi_null_arg(
			NULL, fn, outcount ? "array_of_indices" : "outcount");
	i = find_or_poll(incount, array_of_requests, &active);
	if (i < 0) {
		*outcount = active ? 0 : MPI_UNDEFINED;
		return MPI_SUCCESS;
	}
	return end_complete(fn, incount, array_of_requests, i, outcount,
			    array_of_indices, array_of_statuses);
}

/* --- without ending them --- */

/* `several`: then the status says the error, too. */
static void look(MPI_Request request, MPI_Status *status, bool several)
{
	struct madmpi_outcome o;

	if (!madmpi_request_is_active(request)) {
		madmpi_status_fill_empty(status);
		return;
	}
	o = madmpi_request_outcome((const struct madmpi_request *)request);
	madmpi_status_fill(status, &o);
	if (several && status != MPI_STATUS_IGNORE)
		status->MPI_ERROR = madmpi_outcome_code(&o);
}

/* MPI_Request_get_status_all */
int madmpi_request_get_status_all(int count,
				  const MPI_Request array_of_requests[],
				  int *flag, MPI_Status *array_of_statuses)
{
	const char *fn = "MPI_Request_get_status_all";
	int rc = check_array(fn, count, array_of_requests);

	if (rc != MPI_SUCCESS)
		return rc;
	if (flag == NULL)
		return madmpi_null_arg(NULL, fn, "flag");
	*flag = test_all(count, array_of_requests);
	if (!*flag)
		return MPI_SUCCESS;
	for (int i = 0; i < count; i++)
		look(array_of_requests[i], status_at(array_of_statuses, i),
		     true);
	return MPI_SUCCESS;
}

/* MPI_Request_get_status_any */
int madmpi_request_get_status_any(int count,
				  const MPI_Request array_of_requests[],
				  int *indx, int *flag, MPI_Status *status)
{
	const char *fn = "MPI_Request_get_status_any";
	int rc = check_array(fn, count, array_of_requests), i;
	bool active;

	if (rc != MPI_SUCCESS)
		return rc;
	if (indx == NULL || flag == NULL)
		return madmpi_null_arg(NULL, fn, indx ? "flag" : "indx");
	i = find_or_poll(count, array_of_requests, &active);
	*flag = i >= 0 || !active;
	*indx = i >= 0 ? i : MPI_UNDEFINED;
	if (*flag)
		look(i >= 0 ? array_of_requests[i] : MPI_REQUEST_NULL, status,
		     false);
	return MPI_SUCCESS;
}

/* MPI_Request_get_status_some */
int madmpi_request_get_status_some(int incount,
				   const MPI_Request array_of_requests[],
				   int *outcount, int array_of_indices[],
				   MPI_Status *array_of_statuses)
{
	const char *fn = "MPI_Request_get_status_some";
	int rc = check_array(fn, incount, array_of_requests), i, n = 0;
	bool active;

	if (rc != MPI_SUCCESS)
		return rc;
	if (outcount == NULL || (incount > 0 && array_of_indices == NULL))
		return madmpi_null_arg(
			NULL, fn, outcount ? "array_of_indices" : "outcount");
	i = find_or_poll(incount, array_of_requests, &active);
	for (; i >= 0 && i < incount; i++) {
		const struct madmpi_request *r =
			(const struct madmpi_request *)array_of_requests[i];

		if (!madmpi_request_is_active(array_of_requests[i]) ||
		    !madmpi_request_is_complete(r))
			continue;
		look(array_of_requests[i], status_at(array_of_statuses, n),
		     true);
		array_of_indices[n++] = i;
	}
	*outcount = active ? n : MPI_UNDEFINED;
	return MPI_SUCCESS;
}
