/*
 * Calls: opened and closed, and the table of services.
 */
#include "rpc.h"

#include <errno.h>
#include <stdlib.h>

#include <base/pin.h>

#include "../core/core.h"

/* --- the table of services --- */

static struct nm_rpc_service *service_of(const struct base_link *link)
{
	return container_of(link, struct nm_rpc_service, by_number);
}

static uint64_t hash(uint32_t number)
{
	return base_hash_mix(number, 0);
}

static uint64_t hash_of(const struct base_link *first, bool mark, unsigned arg)
{
	(void)mark;
	(void)arg;
	return hash(service_of(first)->number);
}

static bool has_number(const struct base_link *first, bool mark,
		       const void *number)
{
	(void)mark;
	return service_of(first)->number == *(const uint32_t *)number;
}

static struct base_hash_place place_of(struct nm_rpc *rpc, uint32_t number)
{
	return base_hash_find(&rpc->services, hash(number), has_number,
			      &number);
}

struct nm_rpc_service *nm_rpc_find(struct nm_rpc *rpc, uint32_t number)
{
	struct base_hash_place place = place_of(rpc, number);

	return place.at != NULL ? service_of(base_hash_first(place)) : NULL;
}

/* Without memory the table works on, with longer chains. */
static void table_insert(struct nm_rpc *rpc, struct nm_rpc_service *service)
{
	base_hash_reserve(&rpc->services, 1);
	base_hash_insert(&rpc->services, place_of(rpc, service->number),
			 hash(service->number), &service->by_number, false);
	rpc->nservices++;
}

/* --- opened and closed --- */

/* A head has come: one worker is to take it. */
static void arrived(struct nm_session *s, const struct nm_sr_status *what,
		    void *arg)
{
	struct nm_rpc *rpc = arg;

	(void)s;
	if (what->tag == NM_RPC_HEAD)
		piom_sem_post(&rpc->work);
}

static void rpc_free(struct nm_rpc *rpc)
{
	marcel_cond_destroy(&rpc->idle);
	marcel_mutex_destroy(&rpc->lock);
	base_hash_exit(&rpc->services);
	free(rpc);
}

static struct nm_rpc *rpc_new(unsigned threads)
{
	int n = nm_core_self->size;
	struct nm_rpc *rpc =
		calloc(1, sizeof(*rpc) + (size_t)n * sizeof(rpc->peers[0]));

	if (rpc == NULL)
		return NULL;
	rpc->limit = (unsigned)n * NM_RPC_WINDOW;
	if (threads > 0 && threads < rpc->limit)
		rpc->limit = threads;
	piom_sem_init(&rpc->work, 0);
	marcel_mutex_init(&rpc->lock, NULL);
	marcel_cond_init(&rpc->idle, NULL);
	base_list_init(&rpc->workers);
	base_hash_init(&rpc->services, hash_of, 0);
	if (base_hash_reserve(&rpc->services, 1) < 0) {
		rpc_free(rpc);
		return NULL;
	}
	rpc->npeers = n;
	for (int rank = 0; rank < n; rank++) {
		base_spin_init(&rpc->peers[rank].lock, BASE_RANK_SYNC);
		base_list_init(&rpc->peers[rank].waiting);
	}
	return rpc;
}

/* The session is the result's, or closed. */
static int open_in(struct nm_session *s, unsigned threads, struct nm_rpc **out)
{
	struct nm_rpc *rpc = rpc_new(threads);
	int rc = -ENOMEM;

	if (rpc == NULL)
		goto err_session;
	rpc->session = s;
	marcel_mutex_lock(&rpc->lock);
	rc = nm_rpc_worker_add(rpc);
	marcel_mutex_unlock(&rpc->lock);
	if (rc < 0)
		goto err_free;
	nm_session_monitor(s, arrived, rpc);
	*out = rpc;
	return 0;

err_free:
	rpc_free(rpc);
err_session:
	nm_session_close(s);
	return rc;
}

BASE_PUBLIC int nm_rpc_open(uint64_t session, unsigned threads,
			    struct nm_rpc **out)
{
	struct nm_session *s;
	int rc;

	base_handler_check("nmad", "nm_rpc_open()");
	if (out == NULL)
		return -EINVAL;
	rc = nm_session_open(session, &s);
	return rc < 0 ? rc : open_in(s, threads, out);
}

BASE_PUBLIC int nm_rpc_open_name(const char *session, unsigned threads,
				 struct nm_rpc **out)
{
	struct nm_session *s;
	int rc;

	base_handler_check("nmad", "nm_rpc_open_name()");
	if (out == NULL)
		return -EINVAL;
	rc = nm_session_open_name(session, &s);
	return rc < 0 ? rc : open_in(s, threads, out);
}

/* In the child of a fork() whoever held it may not be there. */
static void lock(struct nm_rpc *rpc)
{
	nm_core_check_lost(&rpc->session->core->lock);
	marcel_mutex_lock(&rpc->lock);
}

BASE_PUBLIC int nm_rpc_close(struct nm_rpc *rpc)
{
	int rc = 0;

	base_handler_check("nmad", "nm_rpc_close()");
	if (rpc == NULL)
		return -EINVAL;
	lock(rpc);
	if (nm_rpc_is_inside(rpc, NULL))
		rc = -EDEADLK;
	else if (rpc->nservices > 0 || nm_rpc_is_calling(rpc))
		rc = -EBUSY;
	else
		rpc->closing = true;
	marcel_mutex_unlock(&rpc->lock);
	if (rc < 0)
		return rc;
	nm_session_unmonitor(rpc->session);
	nm_rpc_workers_end(rpc);
	nm_session_close(rpc->session);
	rpc_free(rpc);
	return 0;
}

/* --- services --- */

BASE_PUBLIC int nm_rpc_register(struct nm_rpc *rpc, uint32_t number,
				nm_rpc_fn fn, void *arg)
{
	struct nm_rpc_service *service;
	int rc = 0;

	base_handler_check("nmad", "nm_rpc_register()");
	if (rpc == NULL || fn == NULL)
		return -EINVAL;
	service = calloc(1, sizeof(*service));
	if (service == NULL)
		return -ENOMEM;
	service->number = number;
	service->fn = fn;
	service->arg = arg;
	lock(rpc);
	if (nm_rpc_find(rpc, number) == NULL)
		table_insert(rpc, service);
	else
		rc = -EEXIST;
	marcel_mutex_unlock(&rpc->lock);
	if (rc < 0)
		free(service);
	return rc;
}

BASE_PUBLIC int nm_rpc_unregister(struct nm_rpc *rpc, uint32_t number)
{
	struct nm_rpc_service *service;
	int rc = 0;

	base_handler_check("nmad", "nm_rpc_unregister()");
	if (rpc == NULL)
		return -EINVAL;
	lock(rpc);
	service = nm_rpc_find(rpc, number);
	if (service == NULL) {
		rc = -ENOENT;
	} else if (nm_rpc_is_inside(rpc, service)) {
		rc = -EDEADLK;
	} else {
		base_hash_remove(&rpc->services, place_of(rpc, number),
				 &service->by_number);
		while (service->running > 0)
			marcel_cond_wait(&rpc->idle, &rpc->lock);
		rpc->nservices--;
	}
	marcel_mutex_unlock(&rpc->lock);
	if (rc == 0)
		free(service);
	return rc;
}
