/*
 * Which rails there are, and which of them lead to whom.
 *
 * NMAD_DRIVER is a list such as "shm+tcp" or "sim:self,latency=50+sim:self"; a
 * driver named twice makes two rails. Every process opens the same list and
 * puts an address for each rail; after the fence the processes of a host join.
 * Each peer gets the best rails that reach it: those of the lowest weight; if
 * such a link may be lost without its peer, those of the next are spare.
 * Oneself is reached through `self` unless a rail wraps it.
 *
 * What a process asks the launcher for until then does not grow with the job:
 * two fences, rank 0's list and the addresses of one rank. Connections, and
 * whatever else is of one peer, are made when that peer is used.
 */
#include "core.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/spin.h>
#include <marcel/blocking.h>
#include <marcel/cancel.h>
#include <marcel/marcel.h>
#include <marcel/thread.h>
#include <pioman/pioman.h>

#include "../boot/boot.h"

static const char automatic[] = "self+shm+ibverbs+tcp";

/* Under which rank 0 leaves the names of its rails. */
static const char list_name[] = "rails";

enum {
	ENTRY_MAX = 128,
	LAUNCHER_STACK = 8 << 20, /* what its library may take for granted */
};

/* An address as it is left for the others: who made it, then its bytes. */
struct address {
	char driver[16]; /* empty: this rail is not to be had there */
	unsigned char bytes[NM_ADDR_MAX];
};

/* --- opening --- */

static const struct nm_driver *find_driver(const char *name, size_t len)
{
	for (int i = 0; nm_drivers[i] != NULL; i++)
		if (strlen(nm_drivers[i]->name) == len &&
		    strncmp(nm_drivers[i]->name, name, len) == 0)
			return nm_drivers[i];
	return NULL;
}

/* Whether an entry of the list leads to oneself. */
static bool leads_home(const char *entry)
{
	return strncmp(entry, "self", 4) == 0 ||
	       strncmp(entry, "sim:self", 8) == 0 ||
	       strncmp(entry, "lossy:self", 10) == 0;
}

static int rail_init(struct nm_rail *rail, struct nm_core *core,
		     const struct nm_driver *driver)
{
	rail->driver = driver;
	rail->core = core;
	rail->rank = core->rank;
	rail->index = (int)(rail - core->rails);
	rail->max_small = driver->max_small;
	rail->fill = driver->fill;
	rail->stats = &core->rail_stats[rail->index];
	rail->nlinks = core->size;
	rail->fd = -1;
	rail->links = calloc((size_t)core->size, sizeof(*rail->links));
	if (rail->links == NULL)
		return -ENOMEM;
	nm_rail_lock_init(&rail->lock, core->lock.scheme);
	nm_chain_init(&rail->stuck);
	nm_mem_init(&rail->mem);
	base_mpsc_init(&rail->settled);
	for (int rank = 0; rank < core->size; rank++) {
		struct nm_link *link = &rail->links[rank];

		link->gate = &core->gates[rank];
		link->rail = rail;
		link->rank = rank;
		base_list_init(&link->xfers);
	}
	return 0;
}

/* Also of one that is not to be had here: the numbers count it. */
static void note_name(struct nm_core *core, const struct nm_driver *driver)
{
	size_t at = strlen(core->names);

	snprintf(core->names + at, sizeof(core->names) - at, "%s%s",
		 at > 0 ? "+" : "", driver->name);
}

/* Open "name" or "name:spec". -ENODEV only if `may_lack`. */
static int open_entry(struct nm_core *core, const struct nm_boot_info *info,
		      const char *entry, bool may_lack)
{
	const char *colon = strchr(entry, ':');
	size_t len = colon != NULL ? (size_t)(colon - entry) : strlen(entry);
	const struct nm_driver *driver = find_driver(entry, len);
	struct nm_rail *rail = &core->rails[core->nrails];
	int rc;

	if (driver == NULL) {
		if (may_lack)
			return 0;
		base_warn("nmad", "NMAD_DRIVER: no driver is called \"%.*s\"",
			  (int)len, entry);
		return -EINVAL;
	}
	if (core->nrails == NM_RAILS_MAX) {
		base_warn("nmad", "NMAD_DRIVER: more than %d rails",
			  NM_RAILS_MAX);
		return -EINVAL;
	}
	rc = rail_init(rail, core, driver);
	if (rc < 0)
		return rc;
	rail->is_listed = !may_lack;
	core->nrails++;
	note_name(core, driver);
	rc = driver->open(rail, info, colon != NULL ? colon + 1 : NULL);
	if (rc == 0)
		return 0;
	rail->driver = NULL;
	if (may_lack && rc == -ENODEV)
		return 0;
	base_warn("nmad", "rank %d: driver %s cannot be opened: %s", core->rank,
		  driver->name, strerror(-rc));
	return rc;
}

static int open_list(struct nm_core *core, const struct nm_boot_info *info,
		     const char *list, bool may_lack)
{
	char entry[ENTRY_MAX];

	while (*list != 0) {
		size_t len = strcspn(list, "+");
		int rc;

		if (len == 0 || len >= sizeof(entry)) {
			base_warn("nmad",
				  "NMAD_DRIVER: \"%s\" is no driver and its "
				  "options, such as shm or sim:shm,latency=20",
				  list);
			return -EINVAL;
		}
		memcpy(entry, list, len);
		entry[len] = 0;
		rc = open_entry(core, info, entry, may_lack);
		if (rc < 0)
			return rc;
		list += len;
		if (*list == '+')
			list++;
	}
	return 0;
}

static bool list_leads_home(const char *list)
{
	for (; list != NULL; list = strchr(list, '+')) {
		if (*list == '+')
			list++;
		if (leads_home(list))
			return true;
	}
	return false;
}

/* Under which each rank leaves its address for a rail. */
static void name_of(char name[16], const struct nm_rail *rail)
{
	snprintf(name, 16, "rail-%d", rail->index);
}

static int put_address(struct nm_boot *boot, const struct nm_rail *rail)
{
	struct address a = { { 0 }, { 0 } };
	char name[16];

	if (rail->driver != NULL) {
		snprintf(a.driver, sizeof(a.driver), "%s", rail->driver->name);
		memcpy(a.bytes, rail->addr, rail->addr_len);
	}
	name_of(name, rail);
	return nm_boot_put(boot, name, &a, sizeof(a.driver) + rail->addr_len);
}

int nm_rails_open(struct nm_core *core, struct nm_boot *boot, const char *list)
{
	const struct nm_boot_info *info = nm_boot_info(boot);
	bool may_lack = list == NULL || list[0] == 0;
	int rc = 0;

	if (may_lack)
		list = automatic;
	if (!list_leads_home(list))
		rc = open_list(core, info, "self", false);
	core->first_listed = core->nrails;
	if (rc == 0)
		rc = open_list(core, info, list, may_lack);
	core->boot = boot;
	if (rc == 0 && core->size > 1 && core->rank == 0)
		rc = nm_boot_put(boot, list_name, core->names,
				 strlen(core->names) + 1);
	for (int i = 0; i < core->nrails && rc == 0 && core->size > 1; i++)
		rc = put_address(boot, &core->rails[i]);
	return rc;
}

/* --- joining --- */

/* Rails are told apart by their numbers, which must mean the same. */
static int compare_lists(struct nm_core *core)
{
	char theirs[sizeof(core->names)] = "";
	size_t len;
	int rc;

	if (core->rank == 0)
		return 0;
	rc = nm_boot_get(core->boot, 0, list_name, theirs, sizeof(theirs),
			 &len);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	if (strncmp(theirs, core->names, sizeof(theirs)) == 0)
		return 0;
	base_warn("nmad",
		  "rank %d: my rails are %s, those of rank 0 are %.80s: is "
		  "NMAD_DRIVER the same everywhere?",
		  core->rank, core->names, theirs);
	return -EPROTO;
}

/* What was found under that name: `rc` and so many bytes. */
static int take_address(const struct address *a, int rc, size_t bytes, void *to,
			size_t *len)
{
	if (rc < 0 && rc != -ENOENT)
		return rc;
	if (rc == -ENOENT || bytes < sizeof(a->driver)) {
		base_warn("nmad", "a rank has left no address for some rail");
		return -EPROTO;
	}
	if (a->driver[0] == 0)
		return -EHOSTUNREACH;
	*len = bytes - sizeof(a->driver);
	memcpy(to, a->bytes, *len);
	return 0;
}

/* The lock is held. */
static int ask(struct nm_core *core, const struct nm_link *link)
{
	char name[16];
	int rc;

	name_of(name, link->rail);
	rc = nm_boot_ask(core->boot, link->rank, name);

	if (rc == 0)
		core->asker = link;
	return rc == 0 ? -EAGAIN : rc;
}

/* What the launcher has said: where, or that there is no such rail. */
struct nm_learnt {
	struct nm_learnt *next;
	const struct nm_link *link;
	int rc;
	size_t len;
	unsigned char addr[NM_ADDR_MAX];
};

static const struct nm_learnt *learnt_of(const struct nm_link *link)
{
	const struct nm_learnt *l = link->rail->core->learnt;

	while (l != NULL && l->link != link)
		l = l->next;
	return l;
}

static int recall(const struct nm_learnt *known, void *to, size_t *len)
{
	if (known->rc < 0)
		return known->rc;
	memcpy(to, known->addr, known->len);
	*len = known->len;
	return 0;
}

int nm_rail_address(const struct nm_link *link, void *to, size_t *len)
{
	struct nm_core *core = link->rail->core;
	const struct nm_learnt *known;
	struct address a;
	size_t bytes = 0;
	int rc = -EAGAIN;

	if (!base_spin_trylock(&core->asking))
		return -EAGAIN;
	known = learnt_of(link);
	if (known != NULL) {
		rc = recall(known, to, len);
		if (core->asker == link) /* not to be answered any more */
			core->asker = NULL;
		base_spin_unlock(&core->asking);
		return rc;
	}
	if (core->asker == NULL)
		rc = ask(core, link);
	else if (core->asker == link)
		rc = nm_boot_answer(core->boot, &a, sizeof(a), &bytes);
	if (rc != -EAGAIN) {
		core->asker = NULL;
		rc = take_address(&a, rc, bytes, to, len);
	}
	base_spin_unlock(&core->asking);
	return rc;
}

/* The answer comes, and is forgotten by who asks next. */
void nm_rail_address_drop(const struct nm_link *link)
{
	struct nm_core *core = link->rail->core;

	base_spin_lock(&core->asking);
	if (core->asker == link)
		core->asker = NULL;
	base_spin_unlock(&core->asking);
}

/* Without memory, or an answer, it is not learnt. */
static void learn(const struct nm_link *link)
{
	struct nm_core *core = link->rail->core;
	struct nm_learnt *l = malloc(sizeof(*l));
	int rc = l != NULL ? -EAGAIN : -ENOMEM;

	while (rc == -EAGAIN) {
		rc = nm_rail_address(link, l->addr, &l->len);
		if (rc == -EAGAIN) {
			piom_poll();
			marcel_yield();
		}
	}
	base_spin_lock(&core->asking);
	if ((rc < 0 && rc != -EHOSTUNREACH) || learnt_of(link) != NULL) {
		free(l);
	} else {
		l->rc = rc;
		l->link = link;
		l->next = core->learnt;
		core->learnt = l;
	}
	base_spin_unlock(&core->asking);
}

/* Its links, if one of them may be lost. */
void nm_launcher_learn(const struct nm_gate *gate)
{
	bool may_lose = false;

	for (unsigned i = 0; i < NM_RAILS_MAX; i++) {
		const struct nm_link *link = nm_gate_link(gate, i);

		may_lose = may_lose || (link != NULL && link->may_lose);
	}
	for (unsigned i = 0; i < NM_RAILS_MAX && may_lose; i++) {
		const struct nm_link *link = nm_gate_link(gate, i);

		if (link != NULL)
			learn(link);
	}
}

static void forget_addresses(struct nm_core *core)
{
	struct nm_learnt *l;

	while ((l = core->learnt) != NULL) {
		core->learnt = l->next;
		free(l);
	}
}

static const struct nm_link nobody; /* asks while it is held */

void nm_launcher_hold(struct nm_core *core)
{
	base_spin_lock(&core->asking);
	core->asker = &nobody;
	base_spin_unlock(&core->asking);
}

struct fence {
	struct nm_boot *boot;
	int rc;
};

static void *fence(void *arg)
{
	struct fence *f = arg;

	marcel_blocking_begin();
	f->rc = nm_boot_fence(f->boot);
	marcel_blocking_end();
	return NULL;
}

/* True: a thread of its own has been to the fence. */
static bool fence_apart(struct fence *f)
{
	marcel_attr_t attr;
	marcel_t t;
	int rc, old;

	marcel_attr_init(&attr);
	marcel_attr_setname(&attr, "nmad-fence");
	marcel_attr_setstacksize(&attr, LAUNCHER_STACK);
	marcel_attr_setpriority(&attr, MARCEL_PRIORITY_REALTIME);
	rc = marcel_create(&t, &attr, fence, f);
	marcel_attr_destroy(&attr);
	if (rc != 0)
		return false;
	marcel_setcancelstate(MARCEL_CANCEL_DISABLE, &old);
	marcel_join(t, NULL);
	marcel_setcancelstate(old, NULL);
	return true;
}

/*
 * Main's kernel thread may not sleep in a section while it keeps a thread that
 * was interrupted there; one that is not the runtime's may, and needs no VP.
 */
int nm_launcher_fence(struct nm_boot *boot)
{
	struct fence f = { .boot = boot };

	if (marcel_current_vp() < 0 || !fence_apart(&f))
		fence(&f);
	return f.rc;
}

void nm_launcher_release(struct nm_core *core)
{
	base_spin_lock(&core->asking);
	core->asker = NULL;
	base_spin_unlock(&core->asking);
}

static int join(struct nm_rail *rail, int first)
{
	unsigned char addr[NM_ADDR_MAX];
	size_t bytes = 0, len = 0;
	struct address a;
	char name[16];
	int rc;

	name_of(name, rail);
	rc = nm_boot_get(rail->core->boot, first, name, &a, sizeof(a), &bytes);
	rc = take_address(&a, rc, bytes, addr, &len);
	if (rc < 0 && rc != -EHOSTUNREACH)
		return rc;
	return rail->driver->join(rail, rc == 0 ? addr : NULL, len);
}

int nm_rails_join(struct nm_core *core)
{
	const struct nm_boot_info *info = nm_boot_info(core->boot);
	int first = 0, rc;

	if (core->size == 1)
		return 0;
	rc = compare_lists(core);
	while (info->node[first] != info->node[core->rank])
		first++;
	for (int i = 0; i < core->nrails && rc == 0; i++) {
		struct nm_rail *rail = &core->rails[i];

		if (rail->driver != NULL && rail->driver->join != NULL)
			rc = join(rail, first);
	}
	return rc < 0 ? rc : nm_boot_fence(core->boot);
}

/* --- who reaches whom --- */

/* The lowest weight of an open rail that is above `floor`, or INT_MAX. */
static int next_weight(const struct nm_core *core, int floor)
{
	int best = INT_MAX;

	for (int i = 0; i < core->nrails; i++) {
		const struct nm_driver *d = core->rails[i].driver;

		if (d != NULL && d->weight > floor && d->weight < best)
			best = d->weight;
	}
	return best;
}

struct nm_link *nm_gate_link(const struct nm_gate *gate, unsigned rail)
{
	if (rail >= NM_RAILS_MAX || !(gate->reach & 1u << rail))
		return NULL;
	return &gate->core->rails[rail].links[gate->rank];
}

/*
 * Add the rails of this weight that reach the peer. True: some do, and none of
 * them may lose its link without it.
 */
static bool reach_by(struct nm_gate *gate, int weight)
{
	struct nm_core *core = gate->core;
	bool some = false, all = true;

	for (int i = 0; i < core->nrails; i++) {
		struct nm_rail *rail = &core->rails[i];

		if (rail->driver == NULL || rail->driver->weight != weight ||
		    !rail->driver->reaches(rail, gate->rank))
			continue;
		gate->reach |= (uint8_t)(1u << i);
		rail->nused++;
		some = true;
		all = all && !(rail->driver->caps & NM_CAP_RESENDS);
	}
	return some && all;
}

static int reach(struct nm_gate *gate)
{
	int weight = next_weight(gate->core, -1);

	while (weight != INT_MAX && !reach_by(gate, weight))
		weight = next_weight(gate->core, weight);
	if (gate->reach != 0)
		return 0;
	base_warn("nmad", "rank %d: no driver of NMAD_DRIVER reaches rank %d",
		  gate->core->rank, gate->rank);
	return -EHOSTUNREACH;
}

/* Of those that lead there and are not lost the links of the lowest weight. */
static void choose_links(struct nm_gate *gate)
{
	struct nm_link *link;
	int best = INT_MAX;

	gate->nlinks = 0;
	gate->turn = 0;
	for (unsigned i = 0; i < NM_RAILS_MAX; i++) {
		link = nm_gate_link(gate, i);
		if (link == NULL || (gate->lost & 1u << i))
			continue;
		if (link->rail->driver->weight < best) {
			best = link->rail->driver->weight;
			gate->nlinks = 0;
		}
		if (link->rail->driver->weight == best)
			gate->links[gate->nlinks++] = link;
	}
}

size_t nm_rail_room(const struct nm_rail *rail)
{
	return rail->max_small - NM_WIRE_HEAD - NM_WIRE_EAGER_SYNC;
}

/*
 * Above which size rendezvous is faster, as far as that is known. What is free
 * of credit is free of it, too.
 */
static size_t best_threshold(const struct nm_rail *rail)
{
	size_t bytes;

	if (rail->eager == NULL)
		return rail->driver->rdv_threshold;
	bytes = (size_t)nm_curve_crossing(rail->eager, rail->curve);
	return bytes > NM_FREE_PAYLOAD ? bytes : NM_FREE_PAYLOAD;
}

size_t nm_rail_threshold(const struct nm_rail *rail)
{
	size_t room = nm_rail_room(rail);
	size_t wish = rail->core->config.rdv_threshold;

	if (wish == 0)
		wish = best_threshold(rail);
	return wish < room ? wish : room;
}

/* What every link of the gate takes as one packet. */
static void set_eager_max(struct nm_gate *gate)
{
	size_t most = SIZE_MAX;

	for (int i = 0; i < gate->nlinks; i++) {
		size_t bytes = nm_rail_threshold(gate->links[i]->rail);

		if (bytes < most)
			most = bytes;
	}
	store_relaxed(&gate->eager_max, most);
}

/*
 * Where to cut messages, because it is known how long they take, and to leave a
 * part to another; who drives the rails under the core's lock leaves nothing.
 */
static void set_cut_min(struct nm_gate *gate)
{
	const struct nm_config *config = &gate->core->config;
	bool known = gate->nlinks > 1 && config->strategy->cut_eager != NULL &&
		     config->lock != NM_LOCK_COARSE;

	for (int i = 0; i < gate->nlinks; i++)
		known = known && gate->links[i]->rail->eager != NULL;
	gate->cut_min = known ? 2 * NM_SPLIT_PART_MIN : SIZE_MAX;
}

void nm_rails_thresholds(struct nm_core *core)
{
	for (int rank = 0; rank < core->size; rank++) {
		set_eager_max(&core->gates[rank]);
		set_cut_min(&core->gates[rank]);
	}
}

/* Where each packet costs as much as many messages, sends of a burst wait. */
static void set_dear(struct nm_gate *gate)
{
	gate->is_dear = gate->core->config.strategy->gathers;
	for (int i = 0; i < gate->nlinks; i++)
		if (!(gate->links[i]->rail->driver->caps & NM_CAP_DEAR))
			gate->is_dear = false;
}

/*
 * Where a body goes over one link, and the sender alone can move it; but where
 * priorities count the receiver has a say.
 */
static void set_announces(struct nm_gate *gate)
{
	bool does = gate->core->config.announce && gate->nlinks == 1 &&
		    gate->core->config.strategy->bodies == 0 &&
		    (gate->reach & (gate->reach - 1)) == 0 &&
		    gate->links[0]->rail->driver->xfer_announce != NULL;

	/* Who receives looks at it without the lock. */
	if (does != gate->announces)
		gate->announces = does;
}

void nm_gate_relink(struct nm_gate *gate)
{
	choose_links(gate);
	if (gate->nlinks == 0)
		return;
	set_eager_max(gate);
	set_cut_min(gate);
	set_dear(gate);
	set_announces(gate);
}

static bool resends(const struct nm_rail *rail)
{
	return rail->driver != NULL && (rail->driver->caps & NM_CAP_RESENDS);
}

/* Their gates go on over others. */
static void spare(struct nm_gate *gate)
{
	for (unsigned i = 0; i < NM_RAILS_MAX; i++) {
		struct nm_link *link = nm_gate_link(gate, i);

		if (link != NULL)
			link->may_lose = (gate->reach & ~(1u << i)) != 0 &&
					 resends(link->rail);
	}
}

/*
 * What leaves over this rail may have to leave again, in a packet of another
 * one, and that in one of yet another (lost.c).
 */
static void leave_room(struct nm_core *core, struct nm_rail *rail)
{
	size_t least = SIZE_MAX, room = 0;

	for (int i = 0; i < core->nrails; i++) {
		const struct nm_rail *r = &core->rails[i];

		if (resends(r))
			room += NM_WIRE_HEAD + NM_WIRE_RESENT;
		if (r->driver != NULL && r != rail && r->largest < least &&
		    r->driver->weight >= rail->driver->weight)
			least = r->largest;
	}
	if (least == SIZE_MAX)
		return;
	if (rail->max_small > least - room)
		rail->max_small = least - room;
	if (rail->fill > rail->max_small)
		rail->fill = rail->max_small;
}

int nm_rails_link(struct nm_core *core)
{
	for (int i = 0; i < core->nrails; i++) {
		core->rails[i].largest = core->rails[i].max_small;
		core->rails[i].is_spare = true;
	}
	for (int i = 0; i < core->nrails; i++)
		if (resends(&core->rails[i]))
			leave_room(core, &core->rails[i]);
	for (int rank = 0; rank < core->size; rank++) {
		int rc = reach(&core->gates[rank]);

		if (rc < 0)
			return rc;
		spare(&core->gates[rank]);
		nm_gate_relink(&core->gates[rank]);
	}
	for (int rank = 0; rank < core->size; rank++)
		for (int i = 0; i < core->gates[rank].nlinks; i++)
			core->gates[rank].links[i]->rail->is_spare = false;
	for (int i = 0; i < core->nrails; i++)
		if (core->rails[i].nused > 0)
			core->polled[core->npolled++] = &core->rails[i];
	return 0;
}

void nm_rails_close(struct nm_core *core)
{
	for (int i = 0; i < core->nrails; i++) {
		struct nm_rail *rail = &core->rails[i];

		for (int rank = 0; rank < core->size; rank++) {
			struct nm_link *link = &rail->links[rank];

			if (link->conn != NULL)
				rail->driver->disconnect(link);
		}
		if (rail->driver != NULL)
			rail->driver->close(rail);
		nm_mem_exit(&rail->mem);
		free(rail->links);
		free(rail->curve);
		free(rail->eager);
		rail->curve = rail->eager = NULL;
	}
	core->nrails = 0;
	core->npolled = 0;
	forget_addresses(core);
}
