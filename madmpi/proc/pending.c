/*
 * Operations that are not complete when MPI_Finalize is called.
 *
 * A correct program leaves only sends, receives and the like that it has freed.
 * Most of them complete by themselves: a message is on its way, or the thread
 * of a non-blocking collective operation is at work. So MPI_Finalize waits for
 * them, without a limit of time, until it is proved that they never complete.
 *
 * It does so only if it leaves the job: no process of the job has had a
 * session, and MADMPI_STAY is not set. No session begins meanwhile
 * (madmpi_library_close()), so no other thread starts or ends operations.
 *
 * The proof goes by rounds. In a round each process adds its numbers to those
 * of its children in a tree and sends the sum to its parent; then the total
 * comes down the tree:
 *
 *                 0            up:    numbers, after those of the children
 *               /   \          down:  their sum
 *              1     2
 *             / \   / \
 *            3   4 5   6
 *
 * Round 1 ends when all processes are in MPI_Finalize. Sessions may begin until
 * then: a process that is still to come may need one with a thread of a process
 * that has come. Then all close the library.
 *
 * Round 2 tells whether any process stays. If none does, only messages go on,
 * and the threads of operations, which move only when a message comes.
 *
 * Nothing moves any more if in two rounds from there on no process was at work,
 * and the packets received by the first equal those sent by the second
 * (nm_motion()). A process is at work while
 *
 *	a thread of an operation does not wait;
 *	an operation calls a function of the program, which may wake it;
 *	an operation of a window is under way, which every target serves.
 *
 * Packets of the rounds do not count. A process knows how many of them it has
 * sent and received: it looks between the way up of its children and its own.
 *
 * A process with an operation that never completes returns to its program. All
 * open the library, and begin with round 1 again.
 *
 * A process fails in a round if another one has died. It still makes all steps
 * of the round: its messages from then on say that it has failed, and a process
 * that gets one fails, too (coll/coll.h). A neighbour in the tree may have come
 * through that round nevertheless. So the failed process says it once more, up
 * and down, in the place of its part of the next round. It makes no other
 * round, proves nothing and gives nothing up, and MPI_Finalize goes on. No
 * process waits for ever for a neighbour that lives: if the neighbour failed in
 * the last round, it has said so; if before, the process failed in the last
 * round itself.
 */
#include "proc/pending.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <base/diag.h>
#include <marcel/marcel.h>
#include <nmad/nmad.h>
#include <pioman/pioman.h>

#include "coll/coll.h"
#include "comm/comm.h"
#include "core/background.h"
#include "core/pool.h"
#include "env/error.h"
#include "proc/library.h"
#include "pt2pt/request.h"
#include "rma/win.h"

enum { SHOWN = 3, ONE = 208, MOST_POLLS = 1024, MOST_US = 20000 };

/* Operations, and what is said of the first of them. */
struct list {
	uint64_t n;
	unsigned shown;
	char text[SHOWN * ONE];
};

/*
 * The operations that one look finds. The last look before the proof counts:
 * after it, other processes may leave the job or return to their programs,
 * which completes some of the operations. o: the thread in MPI_Finalize.
 */
static struct {
	struct list must; /* the program has to complete them */
	struct list may;  /* others, which may be left behind */
	uint64_t threads; /* of `must`: that a thread of ours runs */
	uint64_t wins;    /* windows with an operation under way */
} seen;

static bool refused;    /* o: the thread in MPI_Finalize */
static bool has_failed; /* o: in a round */
static uint64_t rounds; /* o: how many were made */

/* --- a look at what is pending --- */

static bool is_pending(const struct madmpi_request *r)
{
	return r->what != MADMPI_REQUEST_IDLE && !madmpi_request_is_complete(r);
}

static void show(struct list *l, const char *text)
{
	size_t at = strlen(l->text);

	if (l->shown++ < SHOWN)
		snprintf(l->text + at, sizeof(l->text) - at, "%s%s",
			 at > 0 ? "; " : "", text);
}

static void show_request(struct list *l, const struct madmpi_request *r)
{
	char text[ONE];

	madmpi_request_describe(r, text, sizeof(text));
	show(l, text);
	l->n++;
}

/* It completes then, whether or not another process takes part. */
static void cancel(struct madmpi_request *r)
{
	if (r->what == MADMPI_REQUEST_SEND || r->what == MADMPI_REQUEST_RECV)
		nm_sr_cancel(&r->nm);
	else if (r->own->cancel != NULL && !r->own->may_stay)
		r->own->cancel(r->own, r);
}

static bool may_stay(const struct madmpi_request *r)
{
	return r->what == MADMPI_REQUEST_SEND ||
	       (r->own != NULL && r->own->may_stay);
}

static void see(struct madmpi_object *o)
{
	struct madmpi_request *r =
		container_of(o, struct madmpi_request, object);

	if (!is_pending(r))
		return;
	if (may_stay(r)) {
		show_request(&seen.may, r);
		return;
	}
	seen.threads += madmpi_background_runs(r);
	show_request(&seen.must, r);
}

static void see_freed(struct madmpi_request *r)
{
	if (is_pending(r))
		show_request(&seen.may, r);
}

static void give_up(struct madmpi_request *r)
{
	if (is_pending(r))
		cancel(r);
}

static void give_up_object(struct madmpi_object *o)
{
	struct madmpi_request *r =
		container_of(o, struct madmpi_request, object);

	if (may_stay(r))
		give_up(r);
}

/* NULL: the process's. */
static struct madmpi_buffer *buffer_of(struct madmpi_object *o)
{
	return o != NULL ? &container_of(o, struct madmpi_comm, object)->buffer
			 : NULL;
}

static void see_buffer(struct madmpi_object *o)
{
	int n = madmpi_buffer_pending(buffer_of(o), false);

	seen.may.n += (uint64_t)n;
	if (n > 0)
		show(&seen.may,
		     n == 1 ? "a buffered send" : "several buffered sends");
}

static void give_up_buffer(struct madmpi_object *o)
{
	madmpi_buffer_pending(buffer_of(o), true);
}

static void see_win(struct madmpi_object *o)
{
	struct madmpi_win *w = container_of(o, struct madmpi_win, object);
	bool any = false;

	base_spin_lock(&w->lock);
	for (int i = 0; i < w->size; i++)
		any |= w->targets[i].active[0] + w->targets[i].active[1] > 0;
	base_spin_unlock(&w->lock);
	seen.wins += any;
}

static void look(void)
{
	memset(&seen, 0, sizeof(seen));
	madmpi_pool_walk(madmpi_pool_of(MADMPI_REQUEST), see);
	madmpi_request_walk_freed(see_freed);
	madmpi_pool_walk(madmpi_pool_of(MADMPI_COMM), see_buffer);
	see_buffer(NULL);
	madmpi_pool_walk(madmpi_pool_of(MADMPI_WIN), see_win);
}

/* --- whether anything moves --- */

/* Of one process, or a sum. */
struct numbers {
	uint64_t sent, received; /* packets, but for those of the rounds */
	uint64_t at_work, must, may, stay;
};

/*
 * `sent` and `received`: packets of the rounds, up to now. With `stay` the
 * process looks at nothing: a session may be at work.
 */
static struct numbers own_numbers(bool stay, uint64_t sent, uint64_t received)
{
	struct numbers n = { .stay = stay };
	bool works;

	if (stay)
		return n;
	works = madmpi_background_works();
	look();
	works |= nm_motion(&n.sent, &n.received) != 0;
	n.sent -= sent;
	n.received -= received;
	n.at_work = works || seen.wins > 0;
	n.must = seen.must.n;
	n.may = seen.may.n;
	return n;
}

static void add(struct numbers *to, const struct numbers *n)
{
	to->sent += n->sent;
	to->received += n->received;
	to->at_work += n->at_work;
	to->must += n->must;
	to->may += n->may;
	to->stay += n->stay;
}

/* Let other threads run, some of which may need the core of nmad. */
static void give_way(unsigned times)
{
	for (unsigned i = 0; i < times && i < MOST_POLLS; i++) {
		piom_poll();
		marcel_yield();
	}
	/* A function of the program may run for long. */
	if (times > MOST_POLLS)
		marcel_usleep(times < MOST_US ? times : MOST_US);
}

/* --- rounds --- */

enum { CHILDREN = 2 };

/* The neighbours in the tree. */
struct edges {
	int parent;          /* -1: none */
	int first, children; /* the first of them, and how many */
};

static struct edges edges_of(const struct madmpi_comm *c)
{
	struct edges e = { .parent = -1, .first = CHILDREN * c->rank + 1 };

	if (c->rank > 0)
		e.parent = (c->rank - 1) / CHILDREN;
	while (e.children < CHILDREN && e.first + e.children < c->size)
		e.children++;
	return e;
}

static void send_up(struct madmpi_coll *c, const struct edges *e,
		    const struct numbers *n)
{
	if (e->parent >= 0)
		madmpi_coll_send(c, n, sizeof(*n), madmpi_type_of(MPI_BYTE),
				 e->parent);
}

static void send_down(struct madmpi_coll *c, const struct edges *e,
		      const struct numbers *n)
{
	for (int i = 0; i < e->children; i++)
		madmpi_coll_send(c, n, sizeof(*n), madmpi_type_of(MPI_BYTE),
				 e->first + i);
}

static void add_up(struct madmpi_coll *c, const struct edges *e, bool stay,
		   struct numbers *sum)
{
	const struct madmpi_type *byte = madmpi_type_of(MPI_BYTE);
	uint64_t children = (uint64_t)e->children;
	uint64_t packets = rounds * (children + (e->parent >= 0));
	struct numbers theirs;

	for (int i = 0; i < e->children; i++) {
		madmpi_coll_recv(c, &theirs, sizeof(theirs), byte,
				 e->first + i);
		if (c->error == 0)
			add(sum, &theirs);
	}
	theirs = own_numbers(stay, packets, packets + children);
	add(sum, &theirs);
	send_up(c, e, sum);
	if (e->parent >= 0)
		madmpi_coll_recv(c, sum, sizeof(*sum), byte, e->parent);
	send_down(c, e, sum);
}

/* In the place of a part of the next round. */
static void say_failed(struct madmpi_coll *c, const struct edges *e)
{
	static const struct numbers none;

	send_up(c, e, &none);
	send_down(c, e, &none);
}

/*
 * Stores the sum of all processes; zeros if one has died. With `stay` it does
 * not look at operations. Returns 0, or -errno if anything but a death failed.
 */
static int make_round(bool stay, struct numbers *sum)
{
	struct edges e = edges_of(madmpi_world);
	struct madmpi_coll c;

	memset(sum, 0, sizeof(*sum));
	if (has_failed)
		return 0;
	madmpi_coll_begin_finalize(&c, madmpi_world);
	add_up(&c, &e, stay, sum);
	rounds++;
	if (c.error == 0)
		return 0;
	has_failed = true;
	say_failed(&c, &e);
	memset(sum, 0, sizeof(*sum));
	return c.error == -ECONNRESET ? 0 : madmpi_coll_errno(&c);
}

/* Make rounds until nothing is pending, or nothing moves. */
static int rest(struct numbers *now)
{
	struct numbers last = { .at_work = 1 };
	unsigned times = 1;
	int rc;

	while (now->must + now->may > 0) {
		give_way(times);
		if (times < MOST_US)
			times *= 2;
		rc = make_round(false, now);
		if (rc < 0)
			return rc;
		if (last.at_work == 0 && now->at_work == 0 &&
		    last.received == now->sent)
			break;
		last = *now;
	}
	return 0;
}

/* --- judgement --- */

/* The last look has found operations that the program has to complete. */
static int refuse(void)
{
	refused = true;
	return madmpi_error(NULL, MPI_ERR_PENDING, "MPI_Finalize",
			    "%llu operation%s of rank %d can never complete: "
			    "%s%s",
			    (unsigned long long)seen.must.n,
			    seen.must.n > 1 ? "s" : "", nm_rank(),
			    seen.must.text,
			    seen.must.shown > SHOWN ? "; ..." : "");
}

/* The others: no process waits for them. */
static void leave_behind(void)
{
	if (seen.may.n == 0)
		return;
	base_warn("madmpi",
		  "rank %d leaves %llu operation%s behind that %s not "
		  "complete: %s%s",
		  nm_rank(), (unsigned long long)seen.may.n,
		  seen.may.n > 1 ? "s" : "", seen.may.n > 1 ? "are" : "is",
		  seen.may.text, seen.may.shown > SHOWN ? "; ..." : "");
	madmpi_pool_walk(madmpi_pool_of(MADMPI_REQUEST), give_up_object);
	madmpi_request_walk_freed(give_up);
	madmpi_pool_walk(madmpi_pool_of(MADMPI_COMM), give_up_buffer);
	give_up_buffer(NULL);
}

int madmpi_pending_settle(bool *stay)
{
	struct numbers sum;
	int rc;

	refused = false;
	for (;;) {
		rc = make_round(true, &sum);
		*stay = *stay || !madmpi_library_close();
		if (rc == 0)
			rc = make_round(*stay, &sum);
		if (rc == 0 && sum.stay == 0)
			rc = rest(&sum);
		if (rc == 0 && sum.stay + sum.must == 0)
			break;
		if (!*stay)
			madmpi_library_reopen();
		*stay |= sum.stay > 0;
		if (rc < 0)
			return madmpi_error_errno(madmpi_world, rc,
						  "MPI_Finalize",
						  "a step of a round failed");
		if (*stay)
			return MPI_SUCCESS;
		if (seen.must.n > 0)
			return refuse();
	}
	if (!has_failed)
		leave_behind();
	return MPI_SUCCESS;
}

bool madmpi_pending_refused(void)
{
	return refused;
}

bool madmpi_pending_tell(void)
{
	const struct list *l = &seen.must;

	memset(&seen, 0, sizeof(seen));
	madmpi_pool_walk(madmpi_pool_of(MADMPI_REQUEST), see);
	if (l->n > 0)
		base_warn("madmpi",
			  "rank %d leaves the job, but %llu "
			  "operation%s not complete: %s%s",
			  nm_rank(), (unsigned long long)l->n,
			  l->n > 1 ? "s are" : " is", l->text,
			  l->shown > SHOWN ? "; ..." : "");
	return seen.threads == 0;
}
