/*
 * Packets, upcalls and processes for driver tests. As in the core, at most one
 * small packet per link is in flight, upcalls only queue, and what they queue
 * is done after the slot has returned.
 */
#include "job.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../parent.h"
#include "../pattern.h"

enum { KIND_RTS = 1000, KIND_RTR, PARTS = 100 };

struct nm_pkt {
	struct nm_pkt *next;
	size_t length;
	unsigned char bytes[];
};

/* What stands in an RTS or RTR. */
struct hello {
	uint64_t number, length;
	struct nm_token token;
};

typedef ATOMIC(int) flag_t;

/* Shared by the processes. How often each has been there. */
struct shared {
	flag_t met[JOB_MAX];
	flag_t ready[JOB_MAX]; /* the address is there */
	flag_t joined[JOB_MAX];
	flag_t connected[JOB_MAX]; /* to all others that it shall know */
	size_t addr_len[JOB_MAX];
	unsigned char addr[JOB_MAX][NM_ADDR_MAX];
	pid_t pids[JOB_MAX];
};

static struct shared *shared;
static struct job *me;
static struct nm_pkt *out[JOB_MAX], **out_last[JOB_MAX], *flying[JOB_MAX];
static struct nm_pkt_in *arrived[4096];
static unsigned narrived;
static struct job_large *larges;
static uint64_t nsends[JOB_MAX], nrecvs[JOB_MAX];
static struct hello early[256];
static int early_from[256];
static unsigned nearly;
static int nothers; /* processes of this job that have not been waited for */

void job_fail(const struct job *j, const char *file, int line, const char *what)
{
	if (j->rank == 0)
		check_fail(file, line, "%s", what);
	printf("# rank %d: %s:%d: %s\n", j->rank, file, line, what);
	fflush(stdout);
	_exit(1);
}

/* --- patterns --- */

void job_pattern(uint64_t number, void *to, size_t length)
{
	pattern(number, to, length);
}

bool job_is_pattern(uint64_t number, const void *data, size_t length)
{
	return is_pattern(number, data, length);
}

/* --- packets --- */

size_t nm_pkt_length(const struct nm_pkt *pkt)
{
	return pkt->length;
}

struct nm_awaited *nm_pkt_awaited(const struct nm_pkt *pkt)
{
	return job_awaited;
}

void nm_pkt_copy(const struct nm_pkt *pkt, void *to)
{
	if (job_copies != NULL)
		job_copies(me);
	memcpy(to, pkt->bytes, pkt->length);
}

/* Always in pieces, so that gathering is tested: 7 bytes, then equal parts. */
int nm_pkt_iov(struct nm_pkt *pkt, size_t offset, struct iovec *iov, int n)
{
	size_t part = (pkt->length - 7) / PARTS + 1, from = offset, to;
	int used = 0;

	for (; from < pkt->length && used < n; from = to) {
		to = from < 7 ? 7 : from - (from - 7) % part + part;
		if (to > pkt->length)
			to = pkt->length;
		iov[used].iov_base = (void *)(pkt->bytes + from);
		iov[used++].iov_len = to - from;
	}
	return used;
}

static void queue(struct job *j, int to, struct nm_pkt *pkt)
{
	pkt->next = NULL;
	*out_last[to] = pkt;
	out_last[to] = &pkt->next;
}

static struct job_msg *make(struct job *j, int to, uint32_t kind,
			    uint64_t number, size_t length)
{
	struct nm_pkt *pkt =
		malloc(sizeof(*pkt) + sizeof(struct job_msg) + length);
	struct job_msg *m = (void *)pkt->bytes;

	pkt->length = sizeof(*m) + length;
	JOB_CHECK(j, pkt->length <= j->driver->max_small);
	m->kind = kind;
	m->length = (uint32_t)length;
	m->number = number;
	queue(j, to, pkt);
	return m;
}

void job_send(struct job *j, int to, uint32_t kind, uint64_t number,
	      size_t length)
{
	struct job_msg *m = make(j, to, kind, number, length);

	job_pattern(number, m->data, length);
}

bool job_idle(const struct job *j)
{
	for (int r = 0; r < j->size; r++)
		if (!j->deaths[r] && (out[r] != NULL || flying[r] != NULL))
			return false;
	return true;
}

bool job_flushed(const struct job *j)
{
	for (int r = 0; r < j->size; r++)
		if (!j->deaths[r] && out[r] != NULL && flying[r] == NULL)
			return false;
	return true;
}

static void pop(int to)
{
	struct nm_pkt *pkt = out[to];

	out[to] = pkt->next;
	if (out[to] == NULL)
		out_last[to] = &out[to];
}

static int know(struct job *j, int r)
{
	return j->links[r].conn != NULL ? 0 : j->driver->connect(&j->links[r]);
}

static void flush(struct job *j)
{
	for (int r = 0; r < j->size; r++) {
		while (out[r] != NULL && flying[r] == NULL && !j->deaths[r]) {
			struct nm_pkt *pkt = out[r];
			int rc = know(j, r);

			if (rc == 0)
				rc = j->driver->post_send(&j->links[r], pkt);
			if (rc == -EAGAIN)
				break;
			pop(r);
			if (rc == NM_POSTED)
				flying[r] = pkt;
			else
				free(pkt);
			if (rc < 0)
				nm_rail_link_dead(&j->rail, &j->links[r], rc);
		}
	}
}

/* --- what the core offers, and upcalls --- */

/* The launcher answers late. */
int nm_rail_address(const struct nm_link *link, void *to, size_t *len)
{
	static unsigned asked[JOB_MAX];

	if (++asked[link->rank] % 3 != 0)
		return -EAGAIN;
	*len = shared->addr_len[link->rank];
	memcpy(to, shared->addr[link->rank], *len);
	return 0;
}

void nm_rail_address_drop(const struct nm_link *link)
{
}

/* Only losses of links whose peers live are of use; here none does. */
void nm_rail_unsure(struct nm_rail *rail, struct nm_link *link, uint32_t number,
		    const void *bytes, size_t length)
{
	JOB_CHECK(me, me->deaths[link->rank] == 0);
}

void nm_rail_recv(struct nm_rail *rail, struct nm_pkt_in *in)
{
	if (rail->up != NULL) {
		rail->up->recv(rail, in);
		return;
	}
	JOB_CHECK(me, me->deaths[in->link->rank] == 0);
	if (narrived == sizeof(arrived) / sizeof(arrived[0]))
		abort();
	arrived[narrived++] = in;
	me->nnews++;
}

void nm_rail_sent(struct nm_rail *rail, struct nm_pkt *pkt)
{
	if (rail->up != NULL) {
		rail->up->sent(rail, pkt);
		return;
	}
	me->nnews++;
	for (int r = 0; r < me->size; r++)
		if (flying[r] == pkt) {
			flying[r] = NULL;
			free(pkt);
			return;
		}
	JOB_CHECK(me, !"sent a packet that was not in flight");
}

static struct job_large *large_of(struct nm_xfer *x)
{
	return container_of(x, struct job_large, x);
}

void nm_rail_xfer_ready(struct nm_rail *rail, struct nm_xfer *x)
{
	struct job_large *l = large_of(x);
	struct hello h = { l->number, x->length, x->mine };
	struct job_msg *m;

	if (rail->up != NULL) {
		rail->up->xfer_ready(rail, x);
		return;
	}
	me->nnews++;
	JOB_CHECK(me, me->deaths[l->peer] == 0);
	JOB_CHECK(me, !l->is_send && !l->posted);
	l->posted = true;
	m = make(me, l->peer, KIND_RTR, l->number, sizeof(h));
	memcpy(m->data, &h, sizeof(h));
}

static void take_out(struct job_large *l)
{
	struct job_large **p;

	for (p = &larges; *p != l; p = &(*p)->next)
		JOB_CHECK(me, (*p)->next != NULL);
	*p = l->next;
}

static void large_over(struct job_large *l, int status)
{
	me->nnews++;
	JOB_CHECK(me, l->status == -EINPROGRESS && l->started);
	l->status = status;
	take_out(l);
}

void nm_rail_xfer_done(struct nm_rail *rail, struct nm_xfer *x, int status)
{
	struct job_large *l = large_of(x);

	if (rail->up != NULL) {
		rail->up->xfer_done(rail, x, status);
		return;
	}
	JOB_CHECK(me, me->deaths[l->peer] == 0 || l->met);
	large_over(l, status);
}

void nm_rail_link_dead(struct nm_rail *rail, struct nm_link *link, int error)
{
	struct job_large *l = larges, *next;

	if (rail->up != NULL) {
		rail->up->link_dead(rail, link, error);
		return;
	}
	me->nnews++;
	me->deaths[link->rank]++;
	me->death_error = me->errors[link->rank] = error;
	for (; l != NULL; l = next) {
		next = l->next;
		if (l->peer == link->rank && l->started)
			large_over(l, error);
		else if (l->peer == link->rank && l->is_send &&
			 me->driver->xfer_withdraw != NULL)
			me->driver->xfer_withdraw(&l->x);
	}
}

/* --- large --- */

static void add(struct job_large *l, int peer, struct nm_data data,
		size_t offset, size_t length)
{
	memset(l, 0, sizeof(*l));
	l->x.link = &me->links[peer];
	l->x.data = data;
	l->x.offset = offset;
	l->x.length = length;
	l->peer = peer;
	l->status = -EINPROGRESS;
	l->next = larges;
	larges = l;
}

void job_large_send(struct job *j, int to, struct job_large *l,
		    struct nm_data data, size_t offset, size_t length)
{
	struct hello h;
	struct job_msg *m;

	add(l, to, data, offset, length);
	l->is_send = true;
	l->number = ++nsends[to];
	if (j->driver->xfer_offer != NULL)
		j->driver->xfer_offer(&l->x);
	h.number = l->number;
	h.length = length;
	h.token = l->x.mine;
	m = make(j, to, KIND_RTS, l->number, sizeof(h));
	memcpy(m->data, &h, sizeof(h));
}

static void start_recv(struct job *j, struct job_large *l,
		       const struct hello *h)
{
	l->started = true;
	l->x.peers = h->token;
	if (l->x.length > h->length)
		l->x.length = h->length;
	if (j->deaths[l->peer])
		large_over(l, j->death_error);
	else
		JOB_CHECK(j, j->driver->xfer_recv(&l->x) == 0);
}

void job_large_recv(struct job *j, int from, struct job_large *l,
		    struct nm_data data, size_t offset, size_t length)
{
	add(l, from, data, offset, length);
	l->number = ++nrecvs[from];
	for (unsigned i = 0; i < nearly; i++)
		if (early_from[i] == from && early[i].number == l->number) {
			struct hello h = early[i];

			early[i] = early[--nearly];
			early_from[i] = early_from[nearly];
			start_recv(j, l, &h);
			return;
		}
}

int job_large_announce(struct job *j, int from, struct job_large *l,
		       struct nm_data data, size_t length)
{
	int rc;

	add(l, from, data, 0, length);
	rc = j->driver->xfer_announce(&l->x);
	if (rc < 0)
		take_out(l);
	return rc;
}

int job_large_recall(struct job *j, struct job_large *l, bool for_good)
{
	int rc = j->driver->xfer_recall(&l->x, for_good);

	if (rc == 0)
		take_out(l);
	return rc;
}

int job_large_take(struct job *j, int to, struct job_large *l,
		   struct nm_data data, size_t length,
		   const struct nm_token *theirs)
{
	int rc;

	add(l, to, data, 0, length);
	l->is_send = true;
	l->x.peers = *theirs;
	rc = j->driver->xfer_take(&l->x);
	if (rc < 0) {
		take_out(l);
		return rc;
	}
	j->driver->xfer_offer(&l->x);
	l->started = true;
	JOB_CHECK(j, j->driver->xfer_send(&l->x) == 0);
	return 0;
}

int job_large_meet(struct job *j, struct job_large *l, size_t length,
		   const struct nm_token *theirs)
{
	int rc;

	l->started = true;
	l->met = true;
	l->x.length = length;
	l->x.peers = *theirs;
	rc = j->driver->xfer_meet(&l->x);
	if (rc < 0)
		take_out(l);
	return rc;
}

static struct job_large *find(int peer, bool is_send, uint64_t number)
{
	struct job_large *l;

	for (l = larges; l != NULL; l = l->next)
		if (l->peer == peer && l->is_send == is_send &&
		    l->number == number)
			break;
	return l;
}

static void handshake(struct job *j, int from, const struct job_msg *m)
{
	struct job_large *l = find(from, m->kind == KIND_RTR, m->number);
	struct hello h;

	memcpy(&h, m->data, sizeof(h));
	if (m->kind == KIND_RTS && l == NULL) {
		JOB_CHECK(j, nearly < 256);
		early_from[nearly] = from;
		early[nearly++] = h;
	} else if (m->kind == KIND_RTS) {
		start_recv(j, l, &h);
	} else {
		JOB_CHECK(j, l != NULL);
		l->started = true;
		l->x.peers = h.token;
		l->x.length = h.length;
		if (j->deaths[from])
			large_over(l, j->death_error);
		else
			JOB_CHECK(j, j->driver->xfer_send(&l->x) == 0);
	}
}

/* --- progress --- */

static void take_arrived(struct job *j)
{
	for (unsigned i = 0; i < narrived; i++) {
		struct nm_pkt_in *in = arrived[i];
		const struct job_msg *m = (const void *)in->data;

		JOB_CHECK(j, in->length >= sizeof(*m) &&
				     in->length == sizeof(*m) + m->length);
		j->keep = false;
		if (m->kind >= KIND_RTS) {
			handshake(j, in->link->rank, m);
		} else {
			j->ngot++;
			j->nfrom[in->link->rank]++;
			j->recv(j, in->link->rank, m, in);
		}
		if (!j->keep)
			j->driver->release(&j->rail, in);
	}
	narrived = 0;
}

void job_progress(struct job *j)
{
	flush(j);
	if (!j->driver->poll(&j->rail, 32))
		sched_yield();
	take_arrived(j);
	flush(j);
}

void job_meet(struct job *j)
{
	int target = load_relaxed(&shared->met[j->rank]) + 1;

	store_release(&shared->met[j->rank], target);
	for (int r = 0; r < j->size; r++)
		while (load_acquire(&shared->met[r]) < target && !j->deaths[r])
			job_progress(j);
}

/* --- processes --- */

const void *job_addr(int rank)
{
	return shared->addr[rank];
}

/* All have come here. */
static void await_all(const struct job *j, flag_t *here)
{
	store_release(&here[j->rank], j->round);
	for (int r = 0; r < j->size; r++)
		while (load_acquire(&here[r]) < j->round)
			sched_yield();
}

static void open_rail(struct job *j)
{
	static const int node[JOB_MAX];
	int rank = j->rank;

	j->round++;
	j->info.client = "test";
	j->info.rank = j->info.local_rank = rank;
	j->info.size = j->info.local_size = j->size;
	j->info.node = node;
	memcpy(j->info.key, "0123456789abcdef", NM_BOOT_KEY_BYTES);
	j->rail.driver = j->driver;
	j->rail.rank = rank;
	j->rail.links = j->links;
	j->rail.nlinks = j->size;
	j->rail.fd = -1;
	j->rail.is_listed = true;
	j->rail.stats = &j->stats;
	for (int r = 0; r < j->size; r++) {
		out_last[r] = &out[r];
		j->links[r].rail = &j->rail;
		j->links[r].rank = r;
	}
	JOB_CHECK(j, j->driver->open(&j->rail, &j->info, job_spec) == 0);
	shared->addr_len[rank] = j->rail.addr_len;
	memcpy(shared->addr[rank], j->rail.addr, j->rail.addr_len);
	await_all(j, shared->ready);
	for (int r = 0; r < j->size; r++)
		j->pids[r] = shared->pids[r];
	if (j->driver->join != NULL)
		JOB_CHECK(j, j->driver->join(&j->rail, shared->addr[0],
					     shared->addr_len[0]) == 0);
	await_all(j, shared->joined);
	for (int r = 0; r < j->size; r++) {
		JOB_CHECK(j, r == rank || j->driver->reaches(&j->rail, r));
		if (r != rank && !job_connects_late)
			JOB_CHECK(j, j->driver->connect(&j->links[r]) == 0);
	}
	/* As in a real job: nobody dies before the others have got so far. */
	await_all(j, shared->connected);
}

static void close_rail(struct job *j)
{
	while (!job_idle(j))
		job_progress(j);
	job_meet(j);
	for (int r = 0; r < j->size; r++)
		if (j->links[r].conn != NULL)
			j->driver->disconnect(&j->links[r]);
	j->driver->close(&j->rail);
	if (job_closed != NULL)
		job_closed(j);
}

static void run_one(struct job *j, void (*body)(struct job *))
{
	me = j;
	shared->pids[j->rank] = getpid();
	open_rail(j);
	body(j);
	close_rail(j);
}

void job_reopen(struct job *j)
{
	close_rail(j);
	memset(&j->rail, 0, sizeof(j->rail));
	memset(j->links, 0, sizeof(j->links));
	open_rail(j);
}

/* Of an earlier test that failed in the middle: they would wait for ever. */
static void end_others(void)
{
	for (; nothers > 0; nothers--) {
		kill(job_pids[nothers], SIGKILL);
		waitpid(job_pids[nothers], NULL, 0);
	}
}

/* Of such a test, of the parent, and what was to be sent to the dead. */
static void forget(void)
{
	for (int r = 0; r < JOB_MAX; r++) {
		while (out[r] != NULL) {
			struct nm_pkt *pkt = out[r];

			pop(r);
			if (pkt == flying[r])
				flying[r] = NULL;
			free(pkt);
		}
		free(flying[r]);
		flying[r] = NULL;
	}
	memset(nsends, 0, sizeof(nsends));
	memset(nrecvs, 0, sizeof(nrecvs));
	narrived = nearly = 0;
	larges = NULL;
	for (int r = 0; r < JOB_MAX; r++)
		out_last[r] = &out[r];
}

const char *job_spec;
bool job_connects_late;
void (*job_closed)(struct job *j);
struct nm_awaited *job_awaited;
void (*job_copies)(struct job *j);
pid_t job_pids[JOB_MAX];

/* A process other than rank 0; it does not outlive it. */
static pid_t run_other(struct job *j, int rank, void (*body)(struct job *))
{
	pid_t pid = parent_forks(fork);

	if (pid != 0)
		return pid;
	nothers = 0;
	j->rank = rank;
	run_one(j, body);
	_exit(0);
}

void job_run(const struct nm_driver *driver, int n, void (*body)(struct job *),
	     void *arg)
{
	struct job *j = calloc(1, sizeof(*j));
	bool ok = true;
	int status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	end_others();
	forget();
	if (job_spec == NULL)
		job_spec = getenv("SPEC");
	j->driver = driver;
	j->size = n;
	j->arg = arg;
	fflush(stdout);
	job_pids[0] = getpid();
	for (int r = 1; r < n; r++) {
		job_pids[r] = run_other(j, r, body);
		CHECK(job_pids[r] >= 0);
		nothers = r;
	}
	run_one(j, body);
	for (int r = 1; r < n; r++) {
		CHECK_INT(waitpid(job_pids[r], &status, 0), job_pids[r]);
		if (!(WIFEXITED(status) && WEXITSTATUS(status) == 0) &&
		    !(j->deaths[r] && WIFSIGNALED(status)))
			ok = false;
	}
	nothers = 0;
	munmap(shared, sizeof(*shared));
	free(j);
	CHECK(ok);
}

struct rlimit job_no_more_files(struct job *j)
{
	struct rlimit old, now;
	int lowest = dup(0);

	JOB_CHECK(j, lowest >= 0);
	close(lowest);
	JOB_CHECK(j, getrlimit(RLIMIT_NOFILE, &old) == 0);
	now = old;
	now.rlim_cur = (rlim_t)lowest;
	JOB_CHECK(j, setrlimit(RLIMIT_NOFILE, &now) == 0);
	return old;
}
