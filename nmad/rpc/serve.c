/*
 * Serving: workers, user threads that wait for heads. Who has got one sees to
 * it that another waits, as long as more are allowed, and runs the handler.
 */
#include "rpc.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/diag.h>

#include "../core/core.h"

/* What a worker is at. */
struct nm_rpc_call {
	struct nm_gate *from;
	struct nm_session *session;
	size_t length; /* of the body */
	unsigned slot;
	bool received; /* the body */
	size_t bytes;  /* of the header */
	struct {
		struct nm_rpc_head head;
		_Alignas(max_align_t) unsigned char header[NM_RPC_HEADER_MAX];
	} in;
};

_Static_assert(offsetof(struct nm_rpc_call, in.header) -
			       offsetof(struct nm_rpc_call, in) ==
		       sizeof(struct nm_rpc_head),
	       "head and header lie behind one another");

struct nm_rpc_worker {
	/* -: const  o: its thread  l: rpc->lock */
	struct nm_rpc *rpc;             /* -: */
	marcel_t thread;                /* l: */
	struct base_link on;            /* l: rpc->workers */
	struct nm_rpc_service *service; /* l: whose handler it runs, or NULL */
	struct nm_rpc_call call;        /* o: */
};

/* --- what a handler may ask --- */

BASE_PUBLIC struct nm_gate *nm_rpc_from(const struct nm_rpc_call *call)
{
	return call->from;
}

BASE_PUBLIC const void *nm_rpc_header(const struct nm_rpc_call *call,
				      size_t *bytes)
{
	if (bytes != NULL)
		*bytes = call->bytes;
	return call->in.header;
}

BASE_PUBLIC size_t nm_rpc_body_length(const struct nm_rpc_call *call)
{
	return call->length;
}

BASE_PUBLIC int nm_rpc_receive(struct nm_rpc_call *call,
			       const struct nm_data *into)
{
	struct nm_sr_request req;
	struct nm_sr_status status;

	if (!nm_data_is_good(into))
		return -EINVAL;
	if (call->received)
		return -EALREADY;
	call->received = true;
	if (call->length == 0)
		return 0;
	nm_sr_irecv(call->session, call->from, NM_RPC_BODY | call->slot,
		    NM_TAG_EXACT, into, &req);
	nm_sr_wait(&req);
	nm_sr_status(&req, &status);
	return status.error;
}

/* --- one call --- */

/* The head. False: it is none, or was lost with who sent it. */
static bool take_head(struct nm_rpc_call *call, struct nm_message *msg,
		      const struct nm_sr_status *what)
{
	struct nm_data into = nm_data_flat(&call->in, sizeof(call->in));
	struct nm_sr_status status;
	struct nm_sr_request req;

	nm_sr_mrecv(msg, &into, &req);
	nm_sr_wait(&req);
	nm_sr_status(&req, &status);
	call->from = what->gate;
	call->slot = le32toh(call->in.head.slot);
	call->length = le64toh(call->in.head.length);
	call->bytes = status.length - sizeof(call->in.head);
	call->received = false;
	if (status.error == -ECONNRESET)
		return false;
	if (status.error == 0 && status.length >= sizeof(call->in.head) &&
	    call->slot < NM_RPC_WINDOW)
		return true;
	base_warn("nmad", "rank %d: what rank %d sent is no call",
		  nm_core_self->rank, nm_gate_rank(call->from));
	return false;
}

static void answer(struct nm_rpc_call *call, bool unknown, int result)
{
	struct nm_rpc_answer a = { unknown ? htole32(1) : 0,
				   (int32_t)htole32((uint32_t)result) };
	struct nm_data nothing = nm_data_flat(NULL, 0);
	struct nm_data d = nm_data_flat(&a, sizeof(a));
	struct nm_sr_request req;

	if (!call->received)
		nm_rpc_receive(call, &nothing);
	nm_sr_isend(call->session, call->from, NM_RPC_ANSWER | call->slot, &d,
		    NM_SEND_NOW, &req);
	nm_sr_wait(&req);
}

static void serve(struct nm_rpc_worker *w)
{
	struct nm_rpc *rpc = w->rpc;
	struct nm_rpc_service *service;
	int result = 0;

	marcel_mutex_lock(&rpc->lock);
	service = nm_rpc_find(rpc, le32toh(w->call.in.head.service));
	w->service = service;
	if (service != NULL)
		service->running++;
	marcel_mutex_unlock(&rpc->lock);
	if (service != NULL)
		result = service->fn(&w->call, service->arg);
	answer(&w->call, service == NULL, result);
	if (service == NULL)
		return;
	marcel_mutex_lock(&rpc->lock);
	w->service = NULL;
	if (--service->running == 0)
		marcel_cond_broadcast(&rpc->idle);
	marcel_mutex_unlock(&rpc->lock);
}

/* --- workers --- */

/* Somebody else has to wait for heads while we are at one. */
static void make_way(struct nm_rpc *rpc)
{
	marcel_mutex_lock(&rpc->lock);
	if (--rpc->nfree == 0 && rpc->nworkers < rpc->limit && !rpc->closing)
		nm_rpc_worker_add(rpc); /* or we come back to the next */
	marcel_mutex_unlock(&rpc->lock);
}

/* A worker is free again. Whether it shall wait for more. */
static bool goes_on(struct nm_rpc *rpc, bool served)
{
	bool closing;

	marcel_mutex_lock(&rpc->lock);
	rpc->nfree += served;
	closing = rpc->closing;
	marcel_mutex_unlock(&rpc->lock);
	/* It has used a unit that told another one to end. */
	if (closing && served)
		piom_sem_post(&rpc->work);
	return served || !closing;
}

static void *work(void *arg)
{
	struct nm_rpc_worker *w = arg;
	struct nm_rpc *rpc = w->rpc;
	struct nm_message *msg;
	struct nm_sr_status what;
	bool served;

	do {
		piom_sem_wait(&rpc->work);
		served = nm_sr_mprobe(rpc->session, NM_ANY_GATE, NM_RPC_HEAD,
				      NM_TAG_EXACT, &msg, &what) == 0;
		if (!served)
			continue;
		make_way(rpc);
		if (take_head(&w->call, msg, &what))
			serve(w);
	} while (goes_on(rpc, served));
	return NULL;
}

int nm_rpc_worker_add(struct nm_rpc *rpc)
{
	struct nm_rpc_worker *w = calloc(1, sizeof(*w));
	marcel_attr_t attr;
	int rc;

	if (w == NULL)
		return -ENOMEM;
	w->rpc = rpc;
	w->call.session = rpc->session;
	base_link_init(&w->on);
	marcel_attr_init(&attr);
	marcel_attr_setname(&attr, "nmad-rpc");
	rc = marcel_create(&w->thread, &attr, work, w);
	marcel_attr_destroy(&attr);
	if (rc != 0) {
		free(w);
		return -rc;
	}
	base_list_push_back(&rpc->workers, &w->on);
	rpc->nworkers++;
	rpc->nfree++;
	return 0;
}

bool nm_rpc_is_inside(struct nm_rpc *rpc, const struct nm_rpc_service *service)
{
	marcel_t self = marcel_self();

	base_list_for_each (n, &rpc->workers) {
		struct nm_rpc_worker *w =
			container_of(n, struct nm_rpc_worker, on);

		if (marcel_equal(w->thread, self) &&
		    (service == NULL || w->service == service))
			return true;
	}
	return false;
}

/* No worker is added any more, so the list is the caller's. */
void nm_rpc_workers_end(struct nm_rpc *rpc)
{
	struct base_link *n;

	for (unsigned i = 0; i < rpc->nworkers; i++)
		piom_sem_post(&rpc->work);
	while ((n = base_list_take_front(&rpc->workers)) != NULL) {
		struct nm_rpc_worker *w =
			container_of(n, struct nm_rpc_worker, on);

		marcel_join(w->thread, NULL);
		free(w);
	}
}
