/*
 * The PMI-1 wire protocol as a client: a request is one line of text on the
 * socket PMI_FD, or on a connection to PMI_PORT, its answer another. Spoken by
 * our mpirun, by Hydra and by Slurm (srun --mpi=pmi2).
 *
 *   cmd=init pmi_version=1 pmi_subversion=1  -> cmd=response_to_init ... rc=0
 *   cmd=get_appnum                           -> cmd=appnum rc=0 appnum=N
 *   cmd=get kvsname=K key=N                  -> cmd=get_result rc=0 value=V
 *   cmd=barrier_in                           -> cmd=barrier_out
 */
#include "pmi.h"

#include <ctype.h>
#include <marcel/errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/diag.h>
#include <base/option.h>

#include "boot.h"
#include "wire.h"

enum { KVS_MAX = 256 }; /* of the name of the job's space of values */

/* One user at a time; abort uses only what is constant of the connection. */
struct pmi {
	struct nm_boot_wire wire;
	char kvs[KVS_MAX + 1];
	long value_max; /* characters, as the launcher says */
};

/* --- who shares a host --- */

/* One "(first,nodes,each)" at *at, behind its comma. */
static bool read_block(const char **at, long block[3])
{
	static const char before[] = "(,,", after[] = ",,)";

	for (int i = 0; i < 3; i++) {
		char *end;

		if ((*at)[0] != before[i] || !isdigit((unsigned char)(*at)[1]))
			return false;
		errno = 0;
		block[i] = strtol(*at + 1, &end, 10);
		if (errno != 0 || block[i] > NM_BOOT_WIRE_RANKS ||
		    *end != after[i])
			return false;
		*at = end;
	}
	++*at;
	return block[1] > 0 && block[2] > 0;
}

/* Place ranks as one block says, until all are placed. */
static int place(const long block[3], int size, int *node, int placed)
{
	for (long n = 0; n < block[1]; n++)
		for (long i = 0; i < block[2] && placed < size; i++)
			node[placed++] = (int)(block[0] + n);
	return placed;
}

int nm_boot_pmi_mapping(const char *text, int size, int *node)
{
	static const char head[] = "(vector,";
	int placed = 0;

	if (strncmp(text, head, sizeof(head) - 1) != 0)
		return -EPROTO;
	while (placed < size) {
		const char *at = text + sizeof(head) - 1;
		long block[3];

		for (;;) {
			if (!read_block(&at, block))
				return -EPROTO;
			placed = place(block, size, node, placed);
			if (at[0] == ')' && at[1] == '\0')
				break;
			if (*at++ != ',')
				return -EPROTO;
		}
	}
	return 0;
}

/* --- opening --- */

/* The key on a descriptor, if our launcher gave one. */
static int take_key(struct nm_boot *b)
{
	long fd;
	ssize_t n;
	int rc;

	if (getenv("NMAD_KEY_FD") == NULL)
		return 0;
	rc = nm_boot_wire_variable("NMAD_KEY_FD", 0, NM_BOOT_WIRE_RANKS, &fd);
	if (rc != 0)
		return rc;
	do
		n = pread((int)fd, b->info.key, NM_BOOT_KEY_BYTES, 0);
	while (n < 0 && errno == EINTR);
	if (n != NM_BOOT_KEY_BYTES) {
		base_warn("nmad",
			  "NMAD_KEY_FD=%ld: expected %d bytes of job key, got "
			  "%zd%s%s",
			  fd, NM_BOOT_KEY_BYTES, n < 0 ? 0 : n,
			  n < 0 ? ": " : "", n < 0 ? strerror(errno) : "");
		return -EINVAL;
	}
	close((int)fd);
	b->has_key = true;
	return 0;
}

static int greet(struct pmi *p)
{
	int rc = nm_boot_wire_greet(&p->wire, 1, 1);

	if (rc != 0)
		return rc;
	rc = nm_boot_wire_ask(&p->wire, "maxes", "cmd=get_maxes\n");
	if (rc != 0)
		return rc;
	if (!nm_boot_wire_number(&p->wire, "vallen_max", &p->value_max) ||
	    p->value_max < 64)
		return nm_boot_wire_unexpected(&p->wire, "cmd=get_maxes",
					       "vallen_max=N, N >= 64");
	rc = nm_boot_wire_ask(&p->wire, "my_kvsname", "cmd=get_my_kvsname\n");
	if (rc != 0)
		return rc;
	if (!nm_boot_wire_field(&p->wire, "kvsname", p->kvs, sizeof(p->kvs)))
		return nm_boot_wire_unexpected(&p->wire, "cmd=get_my_kvsname",
					       "kvsname=NAME");
	return 0;
}

/* Launchers of one program may not know. */
static int learn_appnum(struct nm_boot *b)
{
	struct pmi *p = b->priv;
	long code = 0, n = -1;
	int rc = nm_boot_wire_ask(&p->wire, "appnum", "cmd=get_appnum\n");

	if (rc != 0)
		return rc;
	if (nm_boot_wire_number(&p->wire, "rc", &code) && code != 0)
		n = -1;
	else if (!nm_boot_wire_number(&p->wire, "appnum", &n) || n < -1 ||
		 n > NM_BOOT_WIRE_RANKS)
		return nm_boot_wire_unexpected(&p->wire, "cmd=get_appnum",
					       "appnum=N");
	b->info.appnum = (int)n;
	return 0;
}

/* What `get` was answered. */
static int value(const struct pmi *p, char *out, size_t room)
{
	long code = -1;

	if (nm_boot_wire_number(&p->wire, "rc", &code) && code != 0)
		return -ENOENT;
	if (!nm_boot_wire_field(&p->wire, "value", out, room))
		return nm_boot_wire_unexpected(&p->wire, "cmd=get",
					       "value=TEXT");
	return 0;
}

/* What each rank leaves is told apart by the rank, before its name. */
static int pmi_get(struct nm_boot *b, int rank, const char *name, char *out,
		   size_t room)
{
	struct pmi *p = b->priv;
	int rc = nm_boot_wire_ask(&p->wire, "get_result",
				  "cmd=get kvsname=%s key=%d.%s\n", p->kvs,
				  rank, name);

	return rc == 0 ? value(p, out, room) : rc;
}

static int pmi_ask(struct nm_boot *b, int rank, const char *name)
{
	struct pmi *p = b->priv;

	return nm_boot_wire_post(&p->wire, "cmd=get kvsname=%s key=%d.%s\n",
				 p->kvs, rank, name);
}

static int pmi_answer(struct nm_boot *b, char *out, size_t room)
{
	struct pmi *p = b->priv;
	int rc = nm_boot_wire_poll(&p->wire, "get_result");

	return rc == 0 ? value(p, out, room) : rc;
}

int nm_boot_pmi_nodes(struct nm_boot *b, const char *text)
{
	int rc = 0;

	b->node = calloc((size_t)b->info.size, sizeof(*b->node));
	if (b->node == NULL)
		return -ENOMEM;
	if (text == NULL) {
		base_warn("nmad", "the launcher does not say which ranks "
				  "share a host; treating all as apart");
		for (int r = 0; r < b->info.size; r++)
			b->node[r] = r;
		return 0;
	}
	rc = nm_boot_pmi_mapping(text, b->info.size, b->node);
	if (rc != 0)
		base_warn("nmad",
			  "PMI_process_mapping is \"%.200s\": expected "
			  "(vector,(first node,nodes,ranks per node),...)",
			  text);
	return rc;
}

static int learn_nodes(struct nm_boot *b)
{
	struct pmi *p = b->priv;
	char text[NM_BOOT_WIRE_MAX];
	int rc = nm_boot_wire_ask(
		&p->wire, "get_result",
		"cmd=get kvsname=%s key=PMI_process_mapping\n", p->kvs);

	if (rc == 0)
		rc = value(p, text, sizeof(text));
	if (rc != 0 && rc != -ENOENT)
		return rc;
	return nm_boot_pmi_nodes(b, rc == 0 ? text : NULL);
}

/* PMI_PORT=host:port. The connection closes on exec. */
static int dial(long *fd)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list, *a;
	char host[256];
	const char *text = getenv("PMI_PORT"), *colon = strrchr(text, ':');
	int rc = EAI_NONAME, s = -1;

	snprintf(host, sizeof(host), "%.*s",
		 colon != NULL ? (int)(colon - text) : 0, text);
	if (host[0] != '\0')
		rc = getaddrinfo(host, colon + 1, &hints, &list);
	if (rc != 0) {
		base_warn("nmad", "PMI_PORT=\"%.200s\": expected host:port: %s",
			  text, gai_strerror(rc));
		return -EINVAL;
	}
	errno = 0;
	for (a = list; a != NULL && s < 0; a = a->ai_next) {
		s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (s >= 0 && connect(s, a->ai_addr, a->ai_addrlen) != 0) {
			close(s);
			s = -1;
		}
	}
	freeaddrinfo(list);
	if (s < 0) {
		base_warn("nmad", "PMI_PORT=%.200s: no connection: %m", text);
		return -ECONNRESET;
	}
	*fd = s;
	return 0;
}

/* Say which process has connected; three lines say what PMI_FD has beside. */
static int introduce(struct nm_boot *b, long id)
{
	long size = 0, rank = -1;
	struct pmi *p = b->priv;
	int rc = nm_boot_wire_ask_first(&p->wire, "initack",
					"cmd=initack pmiid=%ld\n", id);

	for (int i = 0; i < 3 && rc == 0; i++) {
		rc = nm_boot_wire_read(&p->wire);
		if (rc == 0)
			rc = nm_boot_wire_kind(&p->wire, "cmd=initack", "set");
		if (rc == 0 && !nm_boot_wire_number(&p->wire, "size", &size))
			(void)nm_boot_wire_number(&p->wire, "rank", &rank);
	}
	if (rc != 0)
		return rc;
	if (size < 1 || size > NM_BOOT_WIRE_RANKS || rank < 0 || rank >= size)
		return nm_boot_wire_unexpected(&p->wire, "cmd=initack",
					       "size=N and rank=R, R < N");
	b->info.rank = (int)rank;
	b->info.size = (int)size;
	return 0;
}

static int find_launcher(long *fd, long *size, long *rank, long *id)
{
	int rc;

	if (getenv("PMI_FD") == NULL && getenv("PMI_PORT") != NULL) {
		rc = nm_boot_wire_variable("PMI_ID", 0, NM_BOOT_WIRE_RANKS, id);
		return rc == 0 ? dial(fd) : rc;
	}
	rc = nm_boot_wire_variable("PMI_FD", 0, NM_BOOT_WIRE_RANKS, fd);
	if (rc == 0)
		rc = nm_boot_wire_take(*fd);
	if (rc == 0)
		rc = nm_boot_wire_variable("PMI_SIZE", 1, NM_BOOT_WIRE_RANKS,
					   size);
	return rc == 0 ? nm_boot_wire_variable("PMI_RANK", 0, *size - 1, rank)
		       : rc;
}

static int join(struct nm_boot *b, long id)
{
	int rc = id >= 0 ? introduce(b, id) : 0;

	if (rc == 0)
		rc = greet(b->priv);
	if (rc == 0)
		rc = learn_appnum(b);
	return rc == 0 ? learn_nodes(b) : rc;
}

static int pmi_open(struct nm_boot *b)
{
	long fd, rank = 0, size = 1, id = -1;
	struct pmi *p;
	int rc = find_launcher(&fd, &size, &rank, &id);

	if (rc != 0)
		return rc;
	rc = take_key(b);
	if (rc != 0)
		goto err_close;
	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		rc = -ENOMEM;
		goto err_close;
	}
	p->wire.fd = (int)fd;
	b->priv = p;
	b->info.rank = (int)rank;
	b->info.size = (int)size;
	rc = join(b, id);
	if (rc == 0) {
		b->fd = p->wire.fd;
		return 0;
	}
	free(p);
err_close:
	close((int)fd);
	return rc;
}

/* --- the rest --- */

static int pmi_put(struct nm_boot *b, const char *name, const char *text)
{
	struct pmi *p = b->priv;
	long code = -1;
	int rc;

	if ((long)strlen(text) >= p->value_max) {
		base_warn("nmad",
			  "the value of \"%s\" has %zu characters: the "
			  "launcher allows %ld",
			  name, strlen(text), p->value_max - 1);
		return -EPROTO;
	}
	rc = nm_boot_wire_ask(&p->wire, "put_result",
			      "cmd=put kvsname=%s key=%d.%s value=%s\n", p->kvs,
			      b->info.rank, name, text);
	if (rc != 0)
		return rc;
	if (!nm_boot_wire_number(&p->wire, "rc", &code) || code != 0)
		return nm_boot_wire_unexpected(&p->wire, "cmd=put", "rc=0");
	return 0;
}

static int pmi_fence(struct nm_boot *b)
{
	struct pmi *p = b->priv;

	return nm_boot_wire_ask(&p->wire, "barrier_out", "cmd=barrier_in\n");
}

static void pmi_abort(struct nm_boot *b, int code)
{
	struct pmi *p = b->priv;

	nm_boot_wire_say(&p->wire, "cmd=abort exitcode=%d\n", code);
}

static int pmi_close(struct nm_boot *b, bool forked)
{
	struct pmi *p = b->priv;
	int rc = forked ? 0
			: nm_boot_wire_ask(&p->wire, "finalize_ack",
					   "cmd=finalize\n");

	close(p->wire.fd);
	free(p);
	return rc;
}

const struct nm_boot_client nm_boot_pmi = {
	.name = "pmi",
	.variables = { "PMI_FD", "PMI_PORT" },
	.open = pmi_open,
	.put = pmi_put,
	.fence = pmi_fence,
	.get = pmi_get,
	.ask = pmi_ask,
	.answer = pmi_answer,
	.abort = pmi_abort,
	.close = pmi_close,
};
