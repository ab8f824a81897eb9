/*
 * User threads that run operations of requests.
 */
#include "core/background.h"

#include <marcel/marcel.h>

#include "env/error.h"

/* How long a thread may go before others each time that it is woken. */
enum { FAVOUR_NS = 200 * 1000 };

static struct madmpi_background *
background_of(const struct madmpi_operation *op)
{
	return container_of((struct madmpi_operation *)op,
			    struct madmpi_background, op);
}

static struct madmpi_outcome outcome(const struct madmpi_operation *op,
				     const struct madmpi_request *r)
{
	struct madmpi_outcome o = madmpi_outcome_empty();

	(void)r;
	o.error = background_of(op)->error;
	return o;
}

static void release(struct madmpi_operation *op)
{
	struct madmpi_background *b = background_of(op);

	b->release(b);
}

static void *run(void *arg)
{
	struct madmpi_background *b = arg;

	marcel_favour_woken(marcel_self(), FAVOUR_NS);
	b->error = b->run(b);
	/* The last access: the request is its owner's, and b with it. */
	nm_sr_general_end(b->waited, 0);
	return NULL;
}

static int start(struct madmpi_background *b)
{
	marcel_attr_t attr;
	marcel_t t;
	int rc;

	marcel_attr_init(&attr);
	marcel_attr_setname(&attr, "madmpi");
	marcel_attr_setdetachstate(&attr, MARCEL_CREATE_DETACHED);
	rc = marcel_create(&t, &attr, run, b);
	marcel_attr_destroy(&attr);
	return -rc;
}

int madmpi_background_start(const char *fn, struct madmpi_comm *c,
			    struct madmpi_background *b, MPI_Request *request)
{
	struct madmpi_request *r;
	int rc = MPI_SUCCESS;

	b->op = (struct madmpi_operation){ outcome, NULL, release };
	b->error = 0;
	r = madmpi_request_adopt(fn, c, &b->op, &rc);
	if (r == NULL) {
		b->release(b);
		return rc;
	}
	b->waited = &r->nm;
	rc = start(b);
	if (rc < 0) {
		rc = madmpi_error_errno(c, rc, fn,
					"a thread for the operation");
		madmpi_request_put(r);
		return rc;
	}
	*request = (MPI_Request)r;
	return MPI_SUCCESS;
}
