/*
 * How fast the rails are, by trying: what messages take and what bodies take,
 * for a ladder of sizes.
 *
 * Rank 0 tries each rail of NMAD_DRIVER with one peer to which it leads, one
 * rail after the other, and all others wait in a fence: nothing else is on the
 * networks. Then all processes take over what it has found. Between two
 * batches of pings each side uses its gate as ever:
 *
 *   rank 0                               the rail's peer
 *   order(rail, kind, bytes) ---->       this rail only, messages of this kind
 *                   <---- ready          (or not, then that was the batch)
 *   this rail only, messages of this kind
 *   ping            ---->                PINGS times; a receive is there
 *                   <---- pong           before it is sent for
 *   all rails                            all rails
 *   ...
 *   order(over)     ---->
 *
 * Receives are not announced meanwhile: it is offers that are measured, since
 * not every receive can be announced, or is posted in time.
 *
 * Orders need no credit and ready is empty, so both are eager whatever the
 * settings. Rank 0 is its own peer where nobody else is: then a ping comes
 * alone.
 *
 * Whatever else the machine does only adds to the time of a message, so the
 * least of several counts.
 */
#include "measure.h"

#include <marcel/errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/clock.h>
#include <nmad/nmad.h>

#include "../boot/boot.h"
#include "core.h"

enum {
	PINGS = 3,
	EAGER_LEAST = 64,  /* the smallest steps above nothing */
	BODY_LEAST = 1024, /* likewise */
	PATIENCE = 4,      /* times its share: a first look at all sizes */
	EAGER_SHARE = 4,   /* of that a quarter; bodies have the rest */
};

enum kind { EAGER, BODY, OVER };

enum tag { TAG_ORDER, TAG_READY, TAG_UNABLE, TAG_PING };

struct order {
	uint32_t rail, kind;
	uint64_t bytes;
};

/* Users' sessions and that of nmad.c have other numbers. */
static const uint64_t session_id = ~(uint64_t)1;

/* One side, while one rail is looked at. */
struct side {
	struct nm_core *core;
	struct nm_session *session;
	struct nm_gate *gate;
	unsigned char *memory; /* to send from, and as much to receive */
	size_t room;
	bool uses_one;  /* of the gate's links ... */
	bool announces; /* ... which it does without that */
};

/* --- one rail of a gate only --- */

static void use_one(struct side *s, struct nm_link *link, size_t eager_max)
{
	struct nm_gate *gate = s->gate;
	struct nm_pass pass;

	nm_core_lock(s->core);
	nm_core_settle(s->core, &pass);
	/* One that is lost is not to be used: then the others are measured. */
	s->uses_one =
		gate->error == 0 && !(gate->lost & 1u << link->rail->index);
	if (s->uses_one) {
		s->announces = gate->announces;
		gate->announces = false;
		gate->links[0] = link;
		gate->nlinks = 1;
		gate->turn = 0;
		store_relaxed(&gate->eager_max, eager_max);
	}
	nm_core_unlock(s->core, &pass);
}

static void use_all(struct side *s)
{
	struct nm_gate *gate = s->gate;
	struct nm_pass pass;

	if (!s->uses_one)
		return;
	nm_core_lock(s->core);
	nm_core_settle(s->core, &pass);
	nm_gate_relink(gate);
	gate->announces = s->announces;
	store_relaxed(&gate->eager_max, NM_FREE_PAYLOAD);
	nm_core_unlock(s->core, &pass);
}

/* The link of the gate over the i-th rail of NMAD_DRIVER, or NULL. */
static struct nm_link *link_over(const struct nm_gate *gate, int i)
{
	return nm_gate_link(gate, (unsigned)(gate->core->first_listed + i));
}

static void use_for(struct side *s, const struct order *o)
{
	use_one(s, link_over(s->gate, (int)o->rail),
		o->kind == EAGER ? o->bytes : 0);
}

/* --- messages --- */

static int end_of(struct nm_sr_request *req, struct nm_sr_status *status)
{
	nm_sr_wait(req);
	nm_sr_status(req, status);
	return status->error;
}

static void send_to(struct side *s, enum tag tag, const void *from,
		    size_t bytes, struct nm_sr_request *req)
{
	struct nm_data data = nm_data_flat(from, bytes);

	nm_sr_isend(s->session, s->gate, tag, &data, NM_SEND_NOW, req);
}

static void recv_from(struct side *s, void *to, size_t bytes, nm_tag_t tag,
		      nm_tag_t mask, struct nm_sr_request *req)
{
	struct nm_data data = nm_data_flat(to, bytes);

	nm_sr_irecv(s->session, s->gate, tag, mask, &data, req);
}

static int say(struct side *s, enum tag tag, const void *from, size_t bytes)
{
	struct nm_sr_request req;
	struct nm_sr_status status;

	send_to(s, tag, from, bytes, &req);
	return end_of(&req, &status);
}

static int hear(struct side *s, enum tag tag, nm_tag_t mask, void *to,
		size_t bytes, nm_tag_t *heard)
{
	struct nm_sr_request req;
	struct nm_sr_status status;
	int rc;

	recv_from(s, to, bytes, tag, mask, &req);
	rc = end_of(&req, &status);
	*heard = status.tag;
	return rc;
}

/* --- rank 0 --- */

/* There and, if there is somebody, back again. */
static int ping(struct side *s, size_t bytes, uint64_t *ns)
{
	struct nm_sr_request in, out;
	struct nm_sr_status status;
	uint64_t begin;
	int rc, rc_out;

	recv_from(s, s->memory + s->room, bytes, TAG_PING, NM_TAG_EXACT, &in);
	begin = base_now_ns();
	send_to(s, TAG_PING, s->memory, bytes, &out);
	rc = end_of(&in, &status);
	*ns = base_now_ns() - begin;
	rc_out = end_of(&out, &status);
	return rc < 0 ? rc : rc_out;
}

static bool is_alone(const struct side *s)
{
	return s->gate->rank == s->core->rank;
}

/* -EHOSTUNREACH: that one does not reach us by this rail. */
static int agree(struct side *s, const struct order *o)
{
	nm_tag_t heard;
	int rc = say(s, TAG_ORDER, o, sizeof(*o));

	if (rc == 0)
		rc = hear(s, 0, NM_TAG_ANY, NULL, 0, &heard);
	if (rc == 0 && heard != TAG_READY)
		rc = -EHOSTUNREACH;
	return rc;
}

/* *ns becomes the time of one message, if that is less. 0 or -errno. */
static int batch(struct side *s, const struct order *o, double *ns)
{
	int rc = is_alone(s) ? 0 : agree(s, o);
	uint64_t one;

	if (rc < 0)
		return rc;
	use_for(s, o);
	for (int i = 0; i < PINGS && rc == 0; i++) {
		rc = ping(s, o->bytes, &one);
		if (!is_alone(s))
			one /= 2;
		if (rc == 0 && (double)one < *ns)
			*ns = (double)one;
	}
	use_all(s);
	return rc;
}

/* What will be a curve: sizes that grow, from 0 on, no time is known yet. */
static void ladder_init(struct nm_curve *l, size_t least, size_t most)
{
	l->n = 1;
	for (size_t bytes = most; bytes >= least && l->n < NM_CURVE_POINTS;
	     bytes /= 2)
		l->n++;
	for (int i = l->n; i-- > 0; most /= 2) {
		l->at[i].bytes = i > 0 ? (double)most : 0;
		l->at[i].ns = INFINITY;
	}
}

/*
 * At most so many times as much as the step before, once there is one; the
 * first steps are small.
 */
static double expected(const struct nm_curve *l, int i)
{
	double ns = l->at[i].ns, before;

	if (i == 0)
		return ns == INFINITY ? 0 : ns;
	before = l->at[i - 1].ns;
	if (i > 1)
		before = before * l->at[i].bytes / l->at[i - 1].bytes;
	return before < ns ? before : ns;
}

/* Up the ladder, as far as the time goes. 0 or -errno. */
static int climb(struct side *s, struct order *o, enum kind kind,
		 struct nm_curve *l, uint64_t end)
{
	double each = (PINGS + 1) * (is_alone(s) ? 1 : 2);
	int rc = 0;

	o->kind = kind;
	for (int i = 0; i < l->n && rc == 0; i++) {
		double left = (double)(int64_t)(end - base_now_ns());

		if (each * expected(l, i) > left)
			break;
		o->bytes = (uint64_t)l->at[i].bytes;
		if (kind == BODY && o->bytes == 0)
			o->bytes = 1; /* there is none of nothing */
		rc = batch(s, o, &l->at[i].ns);
	}
	return rc;
}

static bool is_whole(const struct nm_curve *l)
{
	return l->at[l->n - 1].ns < INFINITY;
}

/* As far as it is known; nothing, if that is one point. */
static void make_curve(struct nm_curve *l)
{
	while (l->n > 0 && !is_whole(l))
		l->n--;
	nm_curve_level(l);
	if (l->n < 2)
		l->n = 0;
}

/* The largest message that goes as one packet whatever lies at the peer. */
static size_t eager_most(const struct side *s, int i)
{
	const struct nm_core *core = s->core;
	size_t most = nm_rail_room(&core->rails[core->first_listed + i]);

	if (most > core->config.window)
		most = core->config.window;
	return most < s->room ? most : s->room;
}

struct found {
	struct nm_curve body, eager; /* n is 0: not known */
};

/*
 * Both ladders in turn, so that a bad moment is bad for both: it is their
 * crossing that counts. 0 or -errno.
 */
static int climb_both(struct side *s, struct order *o,
		      const struct nm_measure *m, struct found *f)
{
	uint64_t begin = base_now_ns(), look = PATIENCE * m->ns;
	int rc = climb(s, o, EAGER, &f->eager, begin + look / EAGER_SHARE);

	if (rc == 0)
		rc = climb(s, o, BODY, &f->body, begin + look);
	for (int round = 1; round < m->rounds && rc == 0; round++) {
		rc = climb(s, o, EAGER, &f->eager, begin + m->ns);
		if (rc == 0)
			rc = climb(s, o, BODY, &f->body, begin + m->ns);
	}
	return rc;
}

/*
 * Bodies are known if there is a part among them; eager messages are only of
 * use beside them, and up to their end. 0 or -errno: the peer is lost.
 */
static int look_at(struct side *s, int i, const struct nm_measure *m,
		   struct found *f)
{
	struct order o = { .rail = (uint32_t)i };
	int rc;

	ladder_init(&f->eager, EAGER_LEAST, eager_most(s, i));
	ladder_init(&f->body, BODY_LEAST, s->room);
	rc = climb_both(s, &o, m, f);
	o.kind = OVER;
	if (rc != -ECONNRESET && !is_alone(s))
		rc = say(s, TAG_ORDER, &o, sizeof(o));
	if (!is_whole(&f->eager))
		f->eager.n = 0;
	make_curve(&f->eager);
	make_curve(&f->body);
	if (f->body.n == 0 ||
	    f->body.at[f->body.n - 1].bytes < NM_SPLIT_PART_MIN || rc < 0)
		f->body.n = f->eager.n = 0;
	return rc;
}

/* --- the rail's peer --- */

static bool can(const struct side *s, const struct order *o)
{
	const struct nm_link *link = NULL;

	if (o->rail < NM_RAILS_MAX && o->kind < OVER && o->bytes <= s->room)
		link = link_over(s->gate, (int)o->rail);
	return link != NULL &&
	       (o->kind == BODY || o->bytes <= nm_rail_room(link->rail));
}

static int answer_batch(struct side *s, const struct order *o)
{
	struct nm_sr_request in;
	struct nm_sr_status status;
	int rc;

	if (!can(s, o))
		return say(s, TAG_UNABLE, NULL, 0);
	use_for(s, o);
	recv_from(s, s->memory, o->bytes, TAG_PING, NM_TAG_EXACT, &in);
	rc = say(s, TAG_READY, NULL, 0);
	for (int i = 0; i < PINGS; i++) {
		int rc_in = end_of(&in, &status);

		if (rc == 0)
			rc = rc_in;
		if (rc < 0)
			break;
		if (i < PINGS - 1)
			recv_from(s, s->memory, o->bytes, TAG_PING,
				  NM_TAG_EXACT, &in);
		rc = say(s, TAG_PING, s->memory + s->room, o->bytes);
	}
	use_all(s);
	return rc;
}

static void answer(struct side *s)
{
	struct order o;
	nm_tag_t heard;
	int rc;

	do {
		rc = hear(s, TAG_ORDER, NM_TAG_EXACT, &o, sizeof(o), &heard);
		if (rc == 0 && o.kind != OVER)
			rc = answer_batch(s, &o);
	} while (rc == 0 && o.kind != OVER);
}

/* --- who with whom, and that all know it --- */

/* The lowest other rank that the rail leads to, or ourselves, or -1. */
static int peer_over(struct nm_core *core, int i)
{
	for (int rank = 1; rank < core->size; rank++)
		if (link_over(&core->gates[rank], i) != NULL)
			return rank;
	return link_over(&core->gates[0], i) != NULL ? 0 : -1;
}

/* What rank 0 has left must be of the kind that it would have left itself. */
static int misled(const struct nm_core *core, const char *name)
{
	base_warn("nmad",
		  "rank %d: rank 0 has left no good value of %s: is "
		  "NMAD_SAMPLING the same everywhere?",
		  core->rank, name);
	return -EPROTO;
}

static int choose_peers(struct nm_core *core, struct nm_boot *boot, int *peer)
{
	static const char name[] = "sampling-peers";
	size_t bytes = NM_RAILS_MAX * sizeof(*peer), got = bytes;
	int rc = 0;

	if (core->rank == 0)
		for (int i = 0; i < NM_RAILS_MAX; i++)
			peer[i] = peer_over(core, i);
	if (core->size == 1)
		return 0;
	nm_launcher_hold(core);
	if (core->rank == 0)
		rc = nm_boot_put(boot, name, peer, bytes);
	if (rc == 0)
		rc = nm_launcher_fence(boot);
	if (rc == 0 && core->rank != 0)
		rc = nm_boot_get(boot, 0, name, peer, bytes, &got);
	nm_launcher_release(core);
	return rc == -ENOENT || got != bytes ? misled(core, name) : rc;
}

static void name_of(char out[32], int i, const char *what)
{
	snprintf(out, 32, "sampling-%d-%s", i, what);
}

/* Of no curve, too: who asks in vain may wait for long. */
static int put_curve(struct nm_boot *boot, int i, const char *what,
		     const struct nm_curve *c)
{
	char name[32];

	name_of(name, i, what);
	if (c->n == 0)
		return nm_boot_put(boot, name, "", 1);
	return nm_boot_put(boot, name, c->at, (size_t)c->n * sizeof(c->at[0]));
}

static int get_curve(struct nm_core *core, struct nm_boot *boot, int i,
		     const char *what, struct nm_curve *c)
{
	struct nm_curve got;
	char name[32];
	size_t bytes;
	int rc;

	name_of(name, i, what);
	rc = nm_boot_get(boot, 0, name, got.at, sizeof(got.at), &bytes);
	if (rc < 0 || bytes == 1)
		return rc == -ENOENT ? 0 : rc;
	for (size_t k = 0; k < bytes / sizeof(got.at[0]) && rc == 0; k++)
		rc = nm_curve_add(c, got.at[k].bytes, got.at[k].ns);
	return rc < 0 || c->n < 2 ? misled(core, name) : 0;
}

static int spread(struct nm_core *core, struct nm_boot *boot, struct found *f)
{
	int rc = 0;

	if (core->size == 1)
		return 0;
	nm_launcher_hold(core);
	for (int i = 0; i < NM_RAILS_MAX && rc == 0 && core->rank == 0; i++) {
		rc = put_curve(boot, i, "bodies", &f[i].body);
		if (rc == 0)
			rc = put_curve(boot, i, "eager", &f[i].eager);
	}
	if (rc == 0)
		rc = nm_launcher_fence(boot);
	for (int i = 0; i < NM_RAILS_MAX && rc == 0 && core->rank != 0; i++) {
		rc = get_curve(core, boot, i, "bodies", &f[i].body);
		if (rc == 0 && f[i].body.n > 0)
			rc = get_curve(core, boot, i, "eager", &f[i].eager);
	}
	nm_launcher_release(core);
	return rc;
}

/* --- what it comes to --- */

static struct nm_curve *copy_of(const struct nm_curve *c)
{
	struct nm_curve *copy = malloc(sizeof(*copy));

	if (copy != NULL)
		*copy = *c;
	return copy;
}

static int know(struct nm_core *core, const struct found *f)
{
	struct nm_pass pass;
	int rc = 0;

	nm_core_lock(core);
	nm_core_settle(core, &pass);
	for (int i = 0; core->first_listed + i < core->nrails; i++) {
		struct nm_rail *rail = &core->rails[core->first_listed + i];

		if (f[i].body.n == 0)
			continue;
		rail->curve = copy_of(&f[i].body);
		if (rail->curve != NULL && f[i].eager.n != 0)
			rail->eager = copy_of(&f[i].eager);
		if (rail->curve == NULL ||
		    (rail->eager == NULL && f[i].eager.n != 0))
			rc = -ENOMEM;
	}
	nm_rails_thresholds(core);
	nm_core_unlock(core, &pass);
	return rc;
}

static void look_at_all(struct side *s, const struct nm_measure *m,
			struct found *f)
{
	struct nm_core *core = s->core;

	for (int i = 0; i < NM_RAILS_MAX; i++) {
		if (m->peer[i] < 0 ||
		    (core->rank != 0 && m->peer[i] != core->rank))
			continue;
		s->gate = &core->gates[core->rank == 0 ? m->peer[i] : 0];
		if (core->rank == 0)
			look_at(s, i, m, &f[i]);
		else
			answer(s);
		nm_launcher_learn(s->gate); /* who may still wait for us */
	}
}

int nm_measure(struct nm_core *core, struct nm_boot *boot, struct nm_measure *m)
{
	struct found found[NM_RAILS_MAX] = { 0 };
	struct side s = { .core = core, .room = m->max };
	int rc = choose_peers(core, boot, m->peer);

	if (rc < 0)
		return rc;
	s.memory = malloc(2 * s.room);
	if (s.memory == NULL)
		return -ENOMEM;
	memset(s.memory, 1, 2 * s.room);
	rc = nm_core_session_open(core, session_id, &s.session);
	if (rc < 0)
		goto out_free;
	look_at_all(&s, m, found);
	rc = nm_core_session_close(s.session);
	if (rc == 0)
		rc = spread(core, boot, found);
	if (rc == 0)
		rc = know(core, found);
out_free:
	free(s.memory);
	return rc;
}
