/*
 * The PMI-2 wire protocol as a client, on the socket PMI_FD: spoken by Slurm
 * (srun --mpi=pmi2) and Hydra, which both answer PMI-1 on it as well. The first
 * request is PMI-1's; all that follow have their length before them.
 *
 *   cmd=fullinit;pmirank=R;    -> cmd=fullinit-response;rank=R;size=N;rc=0;
 *   cmd=info-getjobattr;key=K; -> cmd=info-getjobattr-response;found=TRUE;
 *                                 value=V;rc=0;
 *   cmd=kvs-put;key=K;value=V; -> cmd=kvs-put-response;rc=0;
 *   cmd=kvs-fence;             -> cmd=kvs-fence-response;rc=0; and see there
 *   cmd=kvs-get;key=K;         -> cmd=kvs-get-response;found=TRUE;value=V;rc=0;
 *
 * A ';' within a value would be doubled; what we leave there has none.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/diag.h>

#include "boot.h"
#include "pmi.h"
#include "wire.h"

/* One user at a time; abort uses only what is constant of the connection. */
struct pmi2 {
	struct nm_boot_wire wire;
	char job[128]; /* PMI_JOBID; empty: Hydra needs none */
};

/* The last answer must say that all went well. */
static int check_rc(const struct nm_boot_wire *w, const char *asked)
{
	long code = -1;

	if (nm_boot_wire_number(w, "rc", &code) && code == 0)
		return 0;
	return nm_boot_wire_unexpected(w, asked, "rc=0");
}

static int fullinit(struct nm_boot *b, long rank)
{
	struct pmi2 *p = b->priv;
	long said = -1, size = 0, app = -1;
	int rc = nm_boot_wire_ask_first(
		&p->wire, "fullinit-response",
		"cmd=fullinit;pmijobid=%s;pmirank=%ld;threaded=FALSE;", p->job,
		rank);

	if (rc == 0)
		rc = check_rc(&p->wire, "cmd=fullinit");
	if (rc != 0)
		return rc;
	if (!nm_boot_wire_number(&p->wire, "size", &size) || size < 1 ||
	    size > NM_BOOT_WIRE_RANKS ||
	    !nm_boot_wire_number(&p->wire, "rank", &said) || said != rank ||
	    rank >= size)
		return nm_boot_wire_unexpected(&p->wire, "cmd=fullinit",
					       "size=N and rank=PMI_RANK < N");
	if (!nm_boot_wire_number(&p->wire, "appnum", &app) || app < 0 ||
	    app > NM_BOOT_WIRE_RANKS)
		app = -1;
	b->info.rank = (int)rank;
	b->info.size = (int)size;
	b->info.appnum = (int)app;
	return 0;
}

/* What was found, if anything was. */
static int value(const struct nm_boot_wire *w, const char *asked, char *out,
		 size_t room)
{
	char found[8];

	if (!nm_boot_wire_field(w, "found", found, sizeof(found)))
		return nm_boot_wire_unexpected(w, asked, "found=TRUE or FALSE");
	if (strcmp(found, "TRUE") != 0)
		return -ENOENT;
	if (!nm_boot_wire_field(w, "value", out, room))
		return nm_boot_wire_unexpected(w, asked, "value=TEXT");
	return 0;
}

static int learn_nodes(struct nm_boot *b)
{
	struct pmi2 *p = b->priv;
	char text[NM_BOOT_WIRE_MAX];
	int rc = nm_boot_wire_ask(
		&p->wire, "info-getjobattr-response",
		"cmd=info-getjobattr;key=PMI_process_mapping;");

	if (rc == 0)
		rc = value(&p->wire, "cmd=info-getjobattr", text, sizeof(text));
	if (rc != 0 && rc != -ENOENT)
		return rc;
	return nm_boot_pmi_nodes(b, rc == 0 ? text : NULL);
}

static int join(struct nm_boot *b, long rank)
{
	struct pmi2 *p = b->priv;
	int rc = nm_boot_wire_greet(&p->wire, 2, 0);

	if (rc != 0)
		return rc;
	p->wire.prefixed = true;
	rc = fullinit(b, rank);
	return rc == 0 ? learn_nodes(b) : rc;
}

static int pmi2_open(struct nm_boot *b)
{
	struct pmi2 *p;
	const char *id = getenv("PMI_JOBID");
	long fd, rank;
	int rc = nm_boot_wire_variable("PMI_FD", 0, NM_BOOT_WIRE_RANKS, &fd);

	if (rc == 0)
		rc = nm_boot_wire_take(fd);
	if (rc == 0)
		rc = nm_boot_wire_variable("PMI_RANK", 0,
					   NM_BOOT_WIRE_RANKS - 1, &rank);
	if (rc != 0)
		return rc;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return -ENOMEM;
	p->wire.fd = (int)fd;
	if (id != NULL && id[strcspn(id, "; ")] == '\0')
		snprintf(p->job, sizeof(p->job), "%s", id);
	b->priv = p;
	rc = join(b, rank);
	if (rc == 0) {
		b->fd = p->wire.fd;
		return 0;
	}
	close((int)fd);
	free(p);
	return rc;
}

/* What each rank leaves is told apart by the rank, before its name. */
static int pmi2_put(struct nm_boot *b, const char *name, const char *text)
{
	struct pmi2 *p = b->priv;
	int rc = nm_boot_wire_ask(&p->wire, "kvs-put-response",
				  "cmd=kvs-put;key=%d.%s;value=%s;",
				  b->info.rank, name, text);

	return rc == 0 ? check_rc(&p->wire, "cmd=kvs-put") : rc;
}

/* srcid: a rank that the value might be cached of; -1: nobody. */
#define GET "cmd=kvs-get;jobid=%s;srcid=-1;key=%d.%s;"

static int pmi2_get(struct nm_boot *b, int rank, const char *name, char *out,
		    size_t room)
{
	struct pmi2 *p = b->priv;
	int rc = nm_boot_wire_ask(&p->wire, "kvs-get-response", GET, p->job,
				  rank, name);

	return rc == 0 ? value(&p->wire, "cmd=kvs-get", out, room) : rc;
}

/*
 * Hydra answers at once, and to who asks for what nobody leaves only when all
 * have come. So that is asked for, in vain.
 */
static int pmi2_fence(struct nm_boot *b)
{
	struct pmi2 *p = b->priv;
	int rc = nm_boot_wire_ask(&p->wire, "kvs-fence-response",
				  "cmd=kvs-fence;");
	char text[2];

	if (rc == 0)
		rc = check_rc(&p->wire, "cmd=kvs-fence");
	if (rc != 0)
		return rc;
	rc = pmi2_get(b, b->info.rank, "none", text, sizeof(text));
	if (rc == 0)
		rc = nm_boot_wire_unexpected(&p->wire, "cmd=kvs-get",
					     "found=FALSE");
	return rc == -ENOENT ? 0 : rc;
}

static int pmi2_ask(struct nm_boot *b, int rank, const char *name)
{
	struct pmi2 *p = b->priv;

	return nm_boot_wire_post(&p->wire, GET, p->job, rank, name);
}

static int pmi2_answer(struct nm_boot *b, char *out, size_t room)
{
	struct pmi2 *p = b->priv;
	int rc = nm_boot_wire_poll(&p->wire, "kvs-get-response");

	return rc == 0 ? value(&p->wire, "cmd=kvs-get", out, room) : rc;
}

/* PMI-2 has no exit code: the job's is that of whoever exits with one. */
static void pmi2_abort(struct nm_boot *b, int code)
{
	struct pmi2 *p = b->priv;

	nm_boot_wire_say(&p->wire,
			 "cmd=abort;isworld=TRUE;msg=aborted with code %d;",
			 code);
}

static int pmi2_close(struct nm_boot *b, bool forked)
{
	struct pmi2 *p = b->priv;
	int rc = forked ? 0
			: nm_boot_wire_ask(&p->wire, "finalize-response",
					   "cmd=finalize;");

	close(p->wire.fd);
	free(p);
	return rc;
}

const struct nm_boot_client nm_boot_pmi2 = {
	.name = "pmi2",
	.variables = { "PMI_FD" },
	.open = pmi2_open,
	.put = pmi2_put,
	.fence = pmi2_fence,
	.get = pmi2_get,
	.ask = pmi2_ask,
	.answer = pmi2_answer,
	.abort = pmi2_abort,
	.close = pmi2_close,
};
