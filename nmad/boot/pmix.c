/*
 * PMIx as a client: Open MPI's mpirun, PRRTE, Slurm (srun --mpi=pmix). Its
 * library is loaded when a process was started through it, and not before.
 *
 * The fence brings all values to the launcher's process on each host, where a
 * rank finds those that it asks for. Were they left where they are, Slurm would
 * fetch them host by host when they are asked for, keep what it has fetched of
 * a rank, and know nothing of what that leaves later. Who shares a host with
 * whom is asked for once for each host.
 *
 * The library has a kernel thread, which brings values that were asked for; it
 * handles none of our signals.                  Pairs: doc/memory-order.md.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <pmix.h>

#include <base/atomic.h>
#include <base/diag.h>

#include "boot.h"
#include "reply.h"

#define LIBRARY "libpmix.so.2"

enum { RANKS_MAX = 1 << 20 }; /* more than this is nonsense */

/* What we call of it. */
struct functions {
	typeof(PMIx_Init) *init;
	typeof(PMIx_Finalize) *finalize;
	typeof(PMIx_Abort) *abort;
	typeof(PMIx_Put) *put;
	typeof(PMIx_Commit) *commit;
	typeof(PMIx_Fence) *fence;
	typeof(PMIx_Get) *get;
	typeof(PMIx_Get_nb) *get_nb;
	typeof(PMIx_Resolve_nodes) *nodes;
	typeof(PMIx_Resolve_peers) *peers;
	typeof(PMIx_Register_event_handler) *hear;
	typeof(PMIx_Error_string) *error;
};

/* Constant after open, but for the reply. */
struct pmix {
	struct functions call;
	pmix_proc_t me;
	struct nm_boot_reply reply; /* key in reply.h */
};

/* The name of our job, for a function that gets no argument. */
static pmix_nspace_t job;

/* a: others in this process may use the library after us, and lose it. */
static ATOMIC(bool) is_joined;

/* --- the library --- */

static const struct {
	const char *name;
	size_t at;
} symbols[] = {
	{ "PMIx_Init", offsetof(struct functions, init) },
	{ "PMIx_Finalize", offsetof(struct functions, finalize) },
	{ "PMIx_Abort", offsetof(struct functions, abort) },
	{ "PMIx_Put", offsetof(struct functions, put) },
	{ "PMIx_Commit", offsetof(struct functions, commit) },
	{ "PMIx_Fence", offsetof(struct functions, fence) },
	{ "PMIx_Get", offsetof(struct functions, get) },
	{ "PMIx_Get_nb", offsetof(struct functions, get_nb) },
	{ "PMIx_Resolve_nodes", offsetof(struct functions, nodes) },
	{ "PMIx_Resolve_peers", offsetof(struct functions, peers) },
	{ "PMIx_Register_event_handler", offsetof(struct functions, hear) },
	{ "PMIx_Error_string", offsetof(struct functions, error) },
};

/* It stays loaded: a thread of it may be on its way out. */
static int load(struct functions *f)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (library == NULL) {
		base_warn("nmad",
			  "this process was started through PMIx, whose "
			  "library is not to be had: %s; install it (libpmix2) "
			  "or add its folder to LD_LIBRARY_PATH",
			  dlerror());
		return -EINVAL;
	}
	for (size_t i = 0; i < BASE_ARRAY_LEN(symbols); i++) {
		void *symbol = dlsym(library, symbols[i].name);

		if (symbol == NULL) {
			base_warn("nmad", "%s has no %s: %s", LIBRARY,
				  symbols[i].name, dlerror());
			return -EINVAL;
		}
		memcpy((char *)f + symbols[i].at, &symbol, sizeof(symbol));
	}
	return 0;
}

/* What a status means to our callers. */
static int meaning(pmix_status_t status)
{
	switch (status) {
	case PMIX_SUCCESS:
		return 0;
	case PMIX_ERR_NOT_FOUND:
	case PMIX_ERR_TIMEOUT:
		return -ENOENT;
	case PMIX_ERR_UNREACH:
	case PMIX_ERR_LOST_CONNECTION:
		return -ECONNRESET;
	case PMIX_ERR_NOMEM:
		return -ENOMEM;
	default:
		return -EPROTO;
	}
}

static int failed(const struct pmix *p, const char *what, pmix_status_t status)
{
	int rc = meaning(status);

	base_warn("nmad", "%s: %s%s", what, p->call.error(status),
		  rc == -ECONNRESET ? ": the launcher is gone" : "");
	return rc == -ENOENT ? -EPROTO : rc;
}

/* --- values --- */

static pmix_proc_t process(const struct pmix *p, pmix_rank_t rank)
{
	pmix_proc_t proc = p->me;

	proc.rank = rank;
	return proc;
}

/* 0 or -EPROTO. */
static int text_of(const pmix_value_t *v, const char **out)
{
	if (v == NULL || v->type != PMIX_STRING || v->data.string == NULL)
		return -EPROTO;
	*out = v->data.string;
	return 0;
}

static void free_value(pmix_value_t *v)
{
	if (v == NULL)
		return;
	if (v->type == PMIX_STRING)
		free(v->data.string);
	free(v);
}

/* A number that the launcher knows of a rank, or of the job. */
static int number(const struct pmix *p, pmix_rank_t rank, const char *key,
		  long max, int *out)
{
	pmix_proc_t proc = process(p, rank);
	pmix_value_t *v = NULL;
	pmix_status_t status = p->call.get(&proc, key, NULL, 0, &v);
	unsigned long n = ~0ul;

	if (status != PMIX_SUCCESS)
		return meaning(status);
	if (v == NULL)
		return -EPROTO;
	if (v->type == PMIX_UINT32)
		n = v->data.uint32;
	else if (v->type == PMIX_UINT16)
		n = v->data.uint16;
	else if (v->type == PMIX_INT && v->data.integer >= 0)
		n = (unsigned long)v->data.integer;
	free_value(v);
	if (n > (unsigned long)max)
		return -EPROTO;
	*out = (int)n;
	return 0;
}

/* --- opening --- */

/* Kernel threads that there are. */
static int nthreads(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) == 0 ? (int)st.st_nlink - 2 : 0;
}

/* The library's thread inherits that it handles no signal. */
static pmix_status_t init(struct nm_boot *b, struct pmix *p)
{
	int before = nthreads();
	pmix_status_t status;
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	status = p->call.init(&p->me, NULL, 0);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	/* It makes one; more may be others', which have come meanwhile. */
	b->info.nthreads = nthreads() > before;
	return status;
}

/*
 * On the library's thread: a connection is lost, of this process to the
 * launcher, or of another rank, of which the launcher tells us.
 */
static void lost(size_t id, pmix_status_t status, const pmix_proc_t *source,
		 pmix_info_t info[], size_t n, pmix_info_t *results,
		 size_t nresults, pmix_event_notification_cbfunc_fn_t done,
		 void *data)
{
	if (load_relaxed(&is_joined) &&
	    (source == NULL ||
	     strncmp(source->nspace, job, sizeof(source->nspace)) != 0))
		nm_boot_lost();
	if (done != NULL)
		done(PMIX_EVENT_NO_ACTION_TAKEN, NULL, 0, NULL, NULL, data);
}

/* Whether it is heard of or not: nothing else depends on it. */
static void hears(pmix_status_t status, size_t id, void *data)
{
}

static void hear_of_loss(const struct pmix *p)
{
	/* The library may read them later. */
	static pmix_status_t codes[] = { PMIX_ERR_LOST_CONNECTION };

	memcpy(job, p->me.nspace, sizeof(job));
	store_relaxed(&is_joined, true);
	p->call.hear(codes, 1, NULL, 0, lost, hears, NULL);
}

static int learn_size(struct nm_boot *b)
{
	struct pmix *p = b->priv;
	int rc = number(p, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, RANKS_MAX,
			&b->info.size);

	if (rc == 0 && p->me.rank < (pmix_rank_t)b->info.size) {
		b->info.rank = (int)p->me.rank;
		return 0;
	}
	base_warn("nmad",
		  "the launcher says by PMIx that this is rank %u of %d: "
		  "expected a rank below the size of the job",
		  p->me.rank, rc == 0 ? b->info.size : -1);
	return -EPROTO;
}

/* Ranks of one host; those of other jobs on it are not ours. */
static int place(struct nm_boot *b, const char *host, int number)
{
	struct pmix *p = b->priv;
	pmix_proc_t *peers = NULL;
	size_t n = 0;
	pmix_status_t status = p->call.peers(host, p->me.nspace, &peers, &n);
	int placed = 0;

	if (status != PMIX_SUCCESS)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (peers[i].rank >= (pmix_rank_t)b->info.size ||
		    b->node[peers[i].rank] >= 0)
			continue;
		b->node[peers[i].rank] = number;
		placed++;
	}
	free(peers);
	return placed;
}

/* Without a complete map nobody shares a host: slower, and right. */
static int learn_nodes(struct nm_boot *b)
{
	struct pmix *p = b->priv;
	char *hosts = NULL, *at, *save = NULL;
	int placed = 0, number = 0;

	b->node = malloc((size_t)b->info.size * sizeof(*b->node));
	if (b->node == NULL)
		return -ENOMEM;
	memset(b->node, -1, (size_t)b->info.size * sizeof(*b->node));
	if (p->call.nodes(p->me.nspace, &hosts) == PMIX_SUCCESS &&
	    hosts != NULL)
		for (at = strtok_r(hosts, ",", &save); at != NULL;
		     at = strtok_r(NULL, ",", &save))
			placed += place(b, at, number++);
	free(hosts);
	if (placed == b->info.size)
		return 0;
	base_warn("nmad", "the launcher does not say by PMIx which ranks "
			  "share a host; treating all as apart");
	for (int r = 0; r < b->info.size; r++)
		b->node[r] = r;
	return 0;
}

static int pmix_open(struct nm_boot *b)
{
	struct pmix *p = calloc(1, sizeof(*p));
	pmix_status_t status;
	int rc;

	if (p == NULL)
		return -ENOMEM;
	rc = load(&p->call);
	if (rc != 0)
		goto err_free;
	status = init(b, p);
	if (status != PMIX_SUCCESS) {
		base_warn("nmad",
			  "PMIx_Init: %s; PMIX_RANK is %s, PMIX_NAMESPACE %s",
			  p->call.error(status),
			  getenv("PMIX_RANK") ? getenv("PMIX_RANK") : "not set",
			  getenv("PMIX_NAMESPACE") ? getenv("PMIX_NAMESPACE")
						   : "not set");
		rc = meaning(status);
		goto err_free;
	}
	b->priv = p;
	rc = learn_size(b);
	if (rc == 0)
		rc = learn_nodes(b);
	if (rc != 0)
		goto err_finalize;
	if (number(p, p->me.rank, PMIX_APPNUM, RANKS_MAX, &b->info.appnum) != 0)
		b->info.appnum = -1;
	hear_of_loss(p);
	return 0;

err_finalize:
	p->call.finalize(NULL, 0);
err_free:
	free(p);
	return rc;
}

/* --- the rest --- */

static int pmix_put(struct nm_boot *b, const char *name, const char *text)
{
	struct pmix *p = b->priv;
	pmix_value_t v = { .type = PMIX_STRING };
	pmix_status_t status;

	v.data.string = (char *)text; /* it makes a copy */
	status = p->call.put(PMIX_GLOBAL, name, &v);
	return status == PMIX_SUCCESS ? 0 : failed(p, "PMIx_Put", status);
}

static int pmix_fence(struct nm_boot *b)
{
	struct pmix *p = b->priv;
	pmix_info_t collect = { .key = PMIX_COLLECT_DATA,
				.value = { .type = PMIX_BOOL,
					   .data.flag = true } };
	pmix_status_t status = p->call.commit();

	if (status != PMIX_SUCCESS)
		return failed(p, "PMIx_Commit", status);
	status = p->call.fence(NULL, 0, &collect, 1);
	if (status != PMIX_ERR_PARTIAL_SUCCESS)
		return status == PMIX_SUCCESS ? 0
					      : failed(p, "PMIx_Fence", status);
	base_warn("nmad", "PMIx_Fence: a rank has left the job");
	return -EPROTO;
}

static int bad_value(void)
{
	base_warn("nmad", "PMIx gave a value that we have not left there");
	return -EPROTO;
}

static int pmix_get(struct nm_boot *b, int rank, const char *name, char *out,
		    size_t room)
{
	struct pmix *p = b->priv;
	pmix_proc_t proc = process(p, (pmix_rank_t)rank);
	const char *text = NULL;
	pmix_value_t *v = NULL;
	pmix_status_t status = p->call.get(&proc, name, NULL, 0, &v);
	int rc = meaning(status);

	if (rc != 0)
		return rc == -ENOENT ? rc : failed(p, "PMIx_Get", status);
	rc = text_of(v, &text);
	if (rc == 0 && strlen(text) < room)
		memcpy(out, text, strlen(text) + 1);
	else
		rc = bad_value();
	free_value(v);
	return rc;
}

/* On the library's thread, which is none of marcel's. The value stays its. */
static void brought(pmix_status_t status, pmix_value_t *v, void *data)
{
	struct nm_boot_reply *r = data;
	const char *text = NULL;
	int rc = meaning(status);

	if (rc == 0)
		rc = text_of(v, &text);
	nm_boot_reply_bring(r, rc, text);
}

static int pmix_ask(struct nm_boot *b, int rank, const char *name)
{
	struct pmix *p = b->priv;
	pmix_proc_t proc = process(p, (pmix_rank_t)rank);
	pmix_status_t status;

	if (!nm_boot_reply_begin(&p->reply))
		return -EAGAIN;
	status = p->call.get_nb(&proc, name, NULL, 0, brought, &p->reply);
	if (status == PMIX_SUCCESS)
		return 0;
	nm_boot_reply_cancel(&p->reply);
	return failed(p, "PMIx_Get_nb", status);
}

static int pmix_answer(struct nm_boot *b, char *out, size_t room)
{
	struct pmix *p = b->priv;
	int rc = nm_boot_reply_take(&p->reply, out, room);

	return rc == -EPROTO || rc == -EMSGSIZE ? bad_value() : rc;
}

/* The library may be called by several threads at once. */
static void pmix_abort(struct nm_boot *b, int code)
{
	struct pmix *p = b->priv;

	p->call.abort(code, "aborted", NULL, 0);
}

/* The library's thread has ended when it returns: nothing comes any more. */
static int pmix_close(struct nm_boot *b, bool forked)
{
	struct pmix *p = b->priv;
	pmix_status_t status = PMIX_SUCCESS;
	int rc;

	store_relaxed(&is_joined, false);
	if (!forked)
		status = p->call.finalize(NULL, 0);
	rc = status == PMIX_SUCCESS ? 0 : failed(p, "PMIx_Finalize", status);
	free(p);
	return rc;
}

const struct nm_boot_client nm_boot_pmix = {
	.name = "pmix",
	.variables = { "PMIX_RANK" },
	.open = pmix_open,
	.put = pmix_put,
	.fence = pmix_fence,
	.get = pmix_get,
	.ask = pmix_ask,
	.answer = pmix_answer,
	.abort = pmix_abort,
	.close = pmix_close,
};
