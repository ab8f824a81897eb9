/*
 * Do all processes of a collective call mean the same one?
 *
 * What each of them says goes up a binomial tree, whatever the operation, and
 * between the leaders of two groups; on the way it is compared, and the first
 * that does not fit is kept. What the root has then goes down again, so that
 * all know, and what they wait for is there however wrong the calls are. Its
 * messages have the operation's tag and come before all others of it.
 *
 * What pairs of processes send and receive is told by neither of them alone:
 * the sum of a number for each message that is to be sent, less that of each
 * that is to be received, is zero if they fit. If it is not, all tell all how
 * much they will send.
 */
#include "coll/compare.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/hash.h>

#include "core/state.h"
#include "datatype/signature.h"
#include "pt2pt/message.h"

enum {
	LEADER = 0,
	MAGIC = 0x5a1d,
	NAME = 32,
	/* of a root */
	UNKNOWN = -1,
	NOBODY = -2,
};

/* What a process says; what does not matter fits to anything. */
struct said {
	char function[NAME];
	char op[NAME];      /* "": none */
	MPI_Count bytes;    /* UNKNOWN: does not matter */
	uint64_t kinds;     /* of elements; 0: does not matter */
	uint64_t counts;    /* of arrays that all have; 0: does not matter */
	int32_t root;       /* or UNKNOWN, NOBODY */
	int32_t has_root;   /* of two groups: the other one 0, one's own 1 */
	uint32_t others;    /* collective calls begun earlier, of other kinds */
	int32_t rank;       /* whose words these are; UNKNOWN: nobody's */
	int32_t is_foreign; /* of two groups: he is in the other one */
};

/* A message that is not as long as its receiver expects, by ranks. */
struct pair {
	MPI_Count bytes, expected;
	int32_t from, to;   /* to UNKNOWN: there is none */
	int32_t is_foreign; /* of two groups: it goes to the other one */
};

struct words {
	struct said all, odd; /* of those below; one that does not fit */
	struct pair pair;
	uint64_t balance;
	uint64_t magic; /* the last: in a message of something else there is
			 * none */
};

/* What a process says, and if wanted how much to and from whom. */
struct speech {
	struct words words;
	MPI_Count *sends, *expects; /* by peer; or NULL */
};

/* What is compared, in this order. */
enum field {
	NOTHING,
	FUNCTION,
	ORDER,
	ROOT,
	OP,
	BYTES,
	KINDS,
	COUNTS,
	BALANCE
};

/* --- what this process says --- */

/* n elements that are the same for all. */
static void say_data(struct said *s, const struct madmpi_parts *p, MPI_Count n)
{
	if (p->type == NULL)
		return;
	s->bytes = n * p->type->size;
	s->kinds = madmpi_signature_of(p->type, n).kinds;
}

/* And the array of counts. */
static void say_counts(struct said *s, const struct madmpi_parts *p, int n)
{
	s->counts = 1;
	for (int i = 0; i < n; i++)
		s->counts = base_hash_mix(s->counts,
					  (uint64_t)madmpi_parts_bytes(p, i));
}

/* From a process to another one, by their ranks in MPI_COMM_WORLD. */
static uint64_t message(int from, int to, MPI_Count bytes)
{
	uint64_t pair = (uint64_t)from << 32 | (uint64_t)to;

	return base_hash_mix(base_hash_mix(1, pair), (uint64_t)bytes);
}

static bool is_self(const struct madmpi_comm *c, int peer)
{
	return !madmpi_comm_is_inter(c) && peer == c->rank;
}

static int world_of_self(const struct madmpi_comm *c)
{
	return c->group->world[c->rank];
}

static void will_send(struct speech *w, const struct madmpi_comm *c, int peer,
		      MPI_Count bytes)
{
	if (is_self(c, peer))
		return;
	w->words.balance +=
		message(world_of_self(c), c->peers->world[peer], bytes);
	if (w->sends != NULL)
		w->sends[peer] = bytes;
}

static void will_receive(struct speech *w, const struct madmpi_comm *c,
			 int peer, MPI_Count bytes)
{
	if (is_self(c, peer))
		return;
	w->words.balance -=
		message(c->peers->world[peer], world_of_self(c), bytes);
	if (w->expects != NULL)
		w->expects[peer] = bytes;
}

static void say_all_to_all(struct speech *w, const struct madmpi_collective *x)
{
	const struct madmpi_parts *s = &x->send, *r = &x->recv;

	if (s->base == MPI_IN_PLACE)
		s = r;
	for (int i = 0; i < x->comm->npeers; i++) {
		will_send(w, x->comm, i, madmpi_parts_bytes(s, i));
		will_receive(w, x->comm, i, madmpi_parts_bytes(r, i));
	}
}

static void nothing(struct speech *w, const struct madmpi_collective *x)
{
	(void)w;
	(void)x;
}

static void data(struct speech *w, const struct madmpi_collective *x)
{
	say_data(&w->words.all, &x->recv, x->recv.count);
}

/* The root's part of each is what each has. */
static void gather(struct speech *w, const struct madmpi_collective *x)
{
	const struct madmpi_parts *p =
		madmpi_is_root(x->comm, x->root) ? &x->recv : &x->send;

	say_data(&w->words.all, p, p->count);
}

static void scatter(struct speech *w, const struct madmpi_collective *x)
{
	const struct madmpi_parts *p =
		madmpi_is_root(x->comm, x->root) ? &x->send : &x->recv;

	say_data(&w->words.all, p, p->count);
}

static void gather_v(struct speech *w, const struct madmpi_collective *x)
{
	if (!madmpi_is_root(x->comm, x->root)) {
		if (x->root >= 0)
			will_send(w, x->comm, x->root,
				  madmpi_parts_bytes(&x->send, 0));
		return;
	}
	for (int i = 0; i < x->comm->npeers; i++)
		will_receive(w, x->comm, i, madmpi_parts_bytes(&x->recv, i));
}

static void scatter_v(struct speech *w, const struct madmpi_collective *x)
{
	if (!madmpi_is_root(x->comm, x->root)) {
		if (x->root >= 0)
			will_receive(w, x->comm, x->root,
				     madmpi_parts_bytes(&x->recv, 0));
		return;
	}
	for (int i = 0; i < x->comm->npeers; i++)
		will_send(w, x->comm, i, madmpi_parts_bytes(&x->send, i));
}

/* Within one group what each sends is what all have as its part. */
static void all_gather(struct speech *w, const struct madmpi_collective *x)
{
	if (!madmpi_comm_is_inter(x->comm))
		say_data(&w->words.all, &x->recv, x->recv.count);
	else
		say_all_to_all(w, x);
}

static void all_gather_v(struct speech *w, const struct madmpi_collective *x)
{
	const struct madmpi_comm *c = x->comm;

	if (!madmpi_comm_is_inter(c)) {
		say_counts(&w->words.all, &x->recv, c->size);
		return;
	}
	for (int i = 0; i < c->npeers; i++) {
		will_send(w, c, i, x->send.count * x->send.type->size);
		will_receive(w, c, i, madmpi_parts_bytes(&x->recv, i));
	}
}

static void reduce_scatter(struct speech *w, const struct madmpi_collective *x)
{
	MPI_Count n = 0;

	for (int i = 0; i < x->comm->size; i++)
		n += madmpi_parts_count(&x->send, i);
	say_data(&w->words.all, &x->send, n);
	say_counts(&w->words.all, &x->send, x->comm->size);
}

/* The functions without MPI_, I and _init. */
static const struct {
	const char *name;
	bool has_root;
	void (*say)(struct speech *w, const struct madmpi_collective *x);
} calls[] = {
	{ "barrier", false, nothing },
	{ "bcast", true, data },
	{ "gather", true, gather },
	{ "gatherv", true, gather_v },
	{ "scatter", true, scatter },
	{ "scatterv", true, scatter_v },
	{ "allgather", false, all_gather },
	{ "allgatherv", false, all_gather_v },
	{ "alltoall", false, say_all_to_all },
	{ "alltoallv", false, say_all_to_all },
	{ "alltoallw", false, say_all_to_all },
	{ "reduce", true, data },
	{ "allreduce", false, data },
	{ "reduce_scatter", false, reduce_scatter },
	{ "reduce_scatter_block", false, reduce_scatter },
	{ "scan", false, data },
	{ "exscan", false, data },
};

/* "MPI_Ibcast" and "MPI_Bcast_init" call "bcast". */
static bool does(const char *function, const char *call)
{
	const char *at = function + strlen("MPI_");
	size_t n = strlen(call);

	at += *at == 'I';
	return strncmp(at + 1, call + 1, n - 1) == 0 && (*at | 0x20) == *call &&
	       (at[n] == '\0' || strcmp(at + n, "_init") == 0);
}

/* Who is the root says so, in the other group they say who. */
static void say_root(struct said *s, const struct madmpi_collective *x)
{
	s->root = x->root;
	if (!madmpi_comm_is_inter(x->comm))
		return;
	s->has_root = x->root < 0;
	if (x->root < 0)
		s->root = x->root == MPI_ROOT ? x->comm->rank : UNKNOWN;
}

static void say(struct speech *w, const struct madmpi_collective *x)
{
	struct said *s = &w->words.all;

	memset(&w->words, 0, sizeof(w->words));
	w->words.magic = MAGIC;
	w->words.odd.rank = w->words.pair.to = UNKNOWN;
	s->rank = x->comm->rank;
	s->root = s->bytes = UNKNOWN;
	snprintf(s->function, NAME, "%s", x->function);
	if (x->op != NULL)
		snprintf(s->op, NAME, "%s",
			 x->op->name ? x->op->name : "one of the program's");
	for (size_t i = 0; i < BASE_ARRAY_LEN(calls); i++)
		if (does(x->function, calls[i].name)) {
			if (calls[i].has_root)
				say_root(s, x);
			calls[i].say(w, x);
		}
}

/* --- comparing --- */

static bool differ(int64_t a, int64_t b, int64_t does_not_matter)
{
	return a != b && a != does_not_matter && b != does_not_matter;
}

static enum field differing(const struct said *a, const struct said *b)
{
	if (strcmp(a->function, b->function) != 0)
		return FUNCTION;
	if (a->others != b->others)
		return ORDER;
	if (a->has_root != b->has_root || differ(a->root, b->root, UNKNOWN))
		return ROOT;
	if (a->op[0] != '\0' && b->op[0] != '\0' && strcmp(a->op, b->op) != 0)
		return OP;
	if (differ(a->bytes, b->bytes, UNKNOWN))
		return BYTES;
	if (differ((int64_t)a->kinds, (int64_t)b->kinds, 0))
		return KINDS;
	if (differ((int64_t)a->counts, (int64_t)b->counts, 0))
		return COUNTS;
	return NOTHING;
}

/* As it is seen from the other group, whose arrays may be others. */
static void turn(struct said *s)
{
	s->is_foreign = !s->is_foreign;
	s->counts = 0;
	if (s->root != UNKNOWN)
		s->has_root = !s->has_root;
}

/* What comes from a rank, which may have sent something else. */
static void hear(struct words *w, struct words *theirs, int rank, bool foreign)
{
	if (theirs->magic != MAGIC) {
		*theirs = (struct words){ .odd = { .rank = UNKNOWN },
					  .pair = { .to = UNKNOWN } };
		snprintf(theirs->all.function, NAME, "another function");
		theirs->all.rank = rank;
	}
	if (foreign) {
		turn(&theirs->all);
		turn(&theirs->odd);
		theirs->pair.is_foreign = !theirs->pair.is_foreign;
	}
	if (w->pair.to == UNKNOWN)
		w->pair = theirs->pair;
	w->balance += theirs->balance;
	if (w->odd.rank != UNKNOWN)
		return;
	if (differing(&w->all, &theirs->all) != NOTHING)
		w->odd = theirs->all;
	else if (theirs->odd.rank != UNKNOWN)
		w->odd = theirs->odd;
	else if (w->all.root == UNKNOWN && theirs->all.root != UNKNOWN)
		w->all = theirs->all; /* which knows more */
}

/* Nobody of the group has said that he is the root: then none is. */
static void no_root(struct said *s)
{
	if (s->has_root && s->root == UNKNOWN)
		s->root = NOBODY;
}

/*
 * A message of another length may be another operation's: that is for hear() to
 * report. `error` is what had failed before it came.
 */
static void excuse_length(struct madmpi_coll *c, int error)
{
	if (!c->is_told && (c->error == -ENODATA || c->error == -EMSGSIZE))
		c->error = error;
}

/* Each leader hears of the other group. */
static void hear_others(struct madmpi_coll *c, struct words *w)
{
	struct madmpi_type *byte = madmpi_type_of(MPI_BYTE);
	struct words theirs = { .magic = 0 };
	int error = c->error;

	no_root(&w->all);
	madmpi_coll_across(c);
	madmpi_coll_exchange(c, w, sizeof(*w), byte, LEADER, &theirs,
			     sizeof(theirs), byte, LEADER);
	madmpi_coll_home(c);
	excuse_length(c, error);
	hear(w, &theirs, LEADER, true);
}

static void receive_words(struct madmpi_coll *c, struct words *theirs, int rank)
{
	int error = c->error;

	theirs->magic = 0;
	madmpi_coll_recv(c, theirs, sizeof(*theirs), madmpi_type_of(MPI_BYTE),
			 rank);
	excuse_length(c, error);
}

/* All get what the first one has heard. */
static void gather_words(struct madmpi_coll *c, struct words *w)
{
	struct madmpi_type *byte = madmpi_type_of(MPI_BYTE);
	struct words theirs;

	for (int mask = 1; mask < c->size; mask *= 2) {
		if (c->rank & mask) {
			madmpi_coll_send(c, w, sizeof(*w), byte,
					 c->rank - mask);
			break;
		}
		if (c->rank + mask >= c->size)
			continue;
		receive_words(c, &theirs, c->rank + mask);
		hear(w, &theirs, c->rank + mask, false);
	}
	if (c->rank == LEADER && madmpi_comm_is_inter(c->comm))
		hear_others(c, w);
	theirs = *w;
	if (c->rank != LEADER)
		theirs.magic = 0;
	madmpi_bcast_binomial(c, &theirs, sizeof(theirs), byte, LEADER);
	if (theirs.magic == MAGIC)
		*w = theirs;
	else
		hear(w, &theirs, LEADER, false);
}

/* From each it is heard how much comes; what is not expected is kept. */
static void compare_lengths(struct madmpi_coll *c, struct speech *w)
{
	struct madmpi_type *byte = madmpi_type_of(MPI_BYTE);
	int most = c->comm->size > c->size ? c->comm->size : c->size;
	struct madmpi_flight out, in;
	MPI_Count bytes;

	for (int step = 0; step < most; step++) {
		int to = (c->rank + step) % most;
		int from = (c->rank - step + most) % most;

		out.is_active = in.is_active = false;
		if (from < c->size)
			madmpi_coll_irecv(c, &in, &bytes, sizeof(bytes), byte,
					  from);
		if (to < c->size)
			madmpi_coll_isend(c, &out,
					  w->sends ? w->sends + to : NULL,
					  sizeof(bytes), byte, to);
		madmpi_coll_wait(c, &out);
		madmpi_coll_wait(c, &in);
		if (from < c->size && c->error == 0 &&
		    bytes != w->expects[from])
			w->words.pair = (struct pair){ bytes, w->expects[from],
						       from, c->rank, false };
	}
}

/* The sum says that some message is not as it should be: which one? */
static void find_pair(struct madmpi_coll *c, const struct madmpi_collective *x,
		      struct words *w)
{
	size_t n = (size_t)c->comm->npeers;
	MPI_Count *bytes = calloc(2 * n, sizeof(*bytes));
	struct speech again = { .sends = bytes };

	if (bytes == NULL)
		madmpi_coll_fail(c, -ENOMEM);
	else
		again.expects = bytes + n;
	say(&again, x);
	if (madmpi_comm_is_inter(c->comm))
		madmpi_coll_across(c);
	compare_lengths(c, &again);
	madmpi_coll_home(c);
	gather_words(c, &again.words);
	w->pair = again.words.pair;
	free(bytes);
}

/* --- what is said about it --- */

enum { TEXT = 400 };

/* "here", or where else. */
static void place(const struct said *s, struct madmpi_comm *c, char *out,
		  size_t room)
{
	char name[MPI_MAX_OBJECT_NAME];

	if (s->rank == c->rank && !s->is_foreign)
		snprintf(out, room, "here");
	else
		snprintf(out, room, "on rank %d of %s%s", (int)s->rank,
			 s->is_foreign ? "the other group of " : "",
			 madmpi_comm_name_of(c, name));
}

static void value(const struct said *s, enum field field, char out[NAME])
{
	if (field == FUNCTION)
		memcpy(out, s->function, NAME);
	else if (field == OP)
		memcpy(out, s->op, NAME);
	else if (field == ORDER)
		snprintf(out, NAME, "%u", (unsigned)s->others);
	else if (field == BYTES)
		snprintf(out, NAME, "%lld", (long long)s->bytes);
	else if (s->root >= 0)
		snprintf(out, NAME, "%d", (int)s->root);
	else
		snprintf(out, NAME,
			 s->root == NOBODY ? "nobody" : "MPI_PROC_NULL");
}

static const struct {
	int class;
	const char *what;
	bool has_value;
} fields[] = {
	[FUNCTION] = { MPI_ERR_OTHER, "the function is", true },
	[ORDER] = { MPI_ERR_OTHER,
		    "the order is another: earlier collective calls of "
		    "other kinds are",
		    true },
	[ROOT] = { MPI_ERR_ROOT, "root is", true },
	[OP] = { MPI_ERR_OP, "the operation is", true },
	[BYTES] = { MPI_ERR_COUNT, "the bytes are", true },
	[KINDS] = { MPI_ERR_TYPE, "the elements are of other types", false },
	[COUNTS] = { MPI_ERR_COUNT, "the counts are others", false },
	[BALANCE] = { MPI_ERR_COUNT, "", false },
};

/* Of a and b, if possible a is this process. */
static void explain(struct madmpi_coll *c, enum field field,
		    const struct said *a, const struct said *b, char out[TEXT])
{
	char at[TEXT / 3], other[TEXT / 3], is[NAME], but[NAME];

	place(a, c->comm, at, sizeof(at));
	place(b, c->comm, other, sizeof(other));
	value(a, field, is);
	value(b, field, but);
	if (fields[field].has_value && strcmp(is, but) != 0)
		snprintf(out, TEXT, "%s %s %s, but %s %s", fields[field].what,
			 is, at, but, other);
	else if (fields[field].has_value)
		snprintf(out, TEXT, "%s in another group %s than %s",
			 fields[field].what, at, other);
	else
		snprintf(out, TEXT, "%s %s than %s", fields[field].what, at,
			 other);
}

static void explain_pair(struct madmpi_coll *c, const struct pair *p,
			 char out[TEXT])
{
	bool two = madmpi_comm_is_inter(c->comm);
	char name[MPI_MAX_OBJECT_NAME];

	snprintf(out, TEXT,
		 "rank %d%s sends %lld bytes to rank %d%s of %s, which expects "
		 "%lld",
		 (int)p->from,
		 two && !p->is_foreign ? " of the other group" : "",
		 (long long)p->bytes, (int)p->to,
		 two && p->is_foreign ? " of the other group" : "",
		 madmpi_comm_name_of(c->comm, name), (long long)p->expected);
}

/* Nobody goes on. The text is c's. */
static void refuse(struct madmpi_coll *c, const struct said *own,
		   const struct words *w)
{
	const struct said *a = &w->all, *b = &w->odd;
	enum field field = BALANCE;
	char text[TEXT];

	if (b->rank == UNKNOWN) {
		explain_pair(c, &w->pair, text);
	} else {
		if (differing(own, b) != NOTHING)
			a = own;
		else if (differing(own, a) != NOTHING) {
			b = a;
			a = own;
		}
		field = differing(a, b);
		explain(c, field, a, b, text);
	}
	madmpi_coll_fail(c, fields[field].class);
	c->why = strdup(text);
}

bool madmpi_coll_compare(struct madmpi_coll *c,
			 const struct madmpi_collective *x)
{
	struct speech mine = { .sends = NULL };
	struct words *w = &mine.words;
	struct said own;

	say(&mine, x);
	w->all.others = c->others;
	own = w->all;
	gather_words(c, w);
	/*
	 * Something else was sent to this process, or to one above it in the
	 * tree, so the others make no step, either. After any other failure all
	 * go on, and tell by what they send.
	 */
	if (c->error == -EMSGSIZE || c->error == -ENODATA)
		return false;
	if (c->error != 0 || (w->odd.rank == UNKNOWN && w->balance == 0))
		return true;
	if (w->odd.rank == UNKNOWN)
		find_pair(c, x, w);
	refuse(c, &own, w);
	return false;
}

bool madmpi_coll_compare_function(struct madmpi_coll *c)
{
	struct madmpi_collective x = { .function = c->function,
				       .comm = c->comm };

	return likely(!madmpi_checks_all) || madmpi_coll_compare(c, &x);
}
