/*
 * A simulated network: wraps another driver and lets packets arrive late and
 * in another order, so that rails, overlap and ordering can be tested
 * anywhere. "sim:shm" wraps shm; options follow after commas and default to
 * the environment's:
 *
 *   latency=US     NMAD_SIM_LATENCY_US    each packet comes that much later
 *   bandwidth=MB   NMAD_SIM_BANDWIDTH     MB/s; bytes take their time, one
 *                                         packet after the other; 0: no limit
 *   reorder=SEED   NMAD_SIM_REORDER       packets overtake each other; 0: never
 *   packet=BYTES   NMAD_SIM_PACKET        the largest; by default 4096
 *
 * A packet that arrives gets a date by which it is delivered: the latency and
 * its share of the bandwidth. With reordering each packet also gets a rank:
 * its number plus a small random amount, and of a link's that are due the
 * lowest rank goes first; one whose rank is ahead of all that have come is held
 * until enough others of its link have come or none has for a while. The order
 * depends on the seed and on the numbers of the packets only.
 *
 * The end of a large transfer is reported as late as a packet of so many bytes
 * would come. The inner rail is owned with the outer one: its owner is ours.
 *
 * What has come from a peer that then dies is told before its death, due or
 * not: nothing of the link is held any more when that is told, by an upcall or
 * as a slot's answer.
 */
#include "driver.h"

#include <marcel/errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <base/clock.h>
#include <base/diag.h>
#include <base/option.h>

#include "../boot/boot.h"
#include "../core/rail.h"

enum {
	AHEAD = 8,         /* how far packets overtake each other */
	QUIET_NS = 200000, /* nothing came so long: nobody is waited for */
	NAME_MAX_ = 32,
};

/* A packet that is not due yet. */
struct held {
	struct base_link on;
	uint64_t due;  /* ns */
	uint64_t rank; /* among those of its link */
	struct nm_pkt_in in, *inner;
	struct base_mpsc_node free;
};

/* The end of a transfer that is not: the inner driver has done with x->drv. */
struct late {
	struct base_link on;
	uint64_t due; /* ns */
};

_Static_assert(sizeof(struct late) <= sizeof(((struct nm_xfer *)0)->drv),
	       "a transfer has room for its late end");

/* A link's packets are ordered on their own, as two rails are. */
struct sim_link {
	struct nm_link *outer;
	uint64_t ncome;     /* packets that have come */
	uint64_t last_came; /* ns */
	uint64_t random;
};

struct sim {
	/* -: const  o: owner  a: atomic */
	struct nm_rail inner;        /* the wrapped rail */
	struct nm_rail *outer;       /* -: */
	long latency, bandwidth;     /* -: ns, bytes per us */
	uint64_t seed;               /* -: */
	size_t max_small;            /* -: as the rail's */
	struct sim_link *links;      /* o: by rank */
	struct base_list packets;    /* o: held, in the order of arrival */
	struct base_list ends;       /* o: struct late, by date */
	uint64_t free_at;            /* o: when the line has room again */
	struct base_mpsc released;   /* a: order(mpsc) */
	struct base_mpsc_node *free; /* o: */
	struct held *all;            /* -: */
	int epoll;                   /* -: of the inner fd and the timer */
	int timer;                   /* -: while armed: the next date */
};

static struct base_option options[] = {
	{ "NMAD_SIM_LATENCY_US", BASE_OPTION_INT, "0", 0, 10000000, NULL,
	  "sim: how much later packets arrive" },
	{ "NMAD_SIM_BANDWIDTH", BASE_OPTION_INT, "0", 0, 1000000, NULL,
	  "sim: MB/s; 0: no limit" },
	{ "NMAD_SIM_REORDER", BASE_OPTION_INT, "0", 0, 1L << 62, NULL,
	  "sim: seed of an order of arrival; 0: as they come" },
	{ "NMAD_SIM_PACKET", BASE_OPTION_INT, "4096", 4096, 1 << 20, NULL,
	  "sim: bytes of the largest packet" },
};

static const struct base_option_table table =
	BASE_OPTION_TABLE("nmad", options);

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static struct sim *sim_of_inner(struct nm_rail *inner)
{
	return container_of(inner, struct sim, inner);
}

static struct nm_link *inner_link(struct nm_link *outer)
{
	struct sim *sim = outer->rail->drv;

	return &sim->inner.links[outer->rank];
}

/* --- what is held --- */

static struct held *held_new(struct sim *sim)
{
	struct base_mpsc_node *n = sim->free;

	if (n == NULL)
		n = base_mpsc_take(&sim->released);
	if (n == NULL)
		return NULL;
	sim->free = n->next;
	return container_of(n, struct held, free);
}

/* When `bytes` that come now have passed the line. */
static uint64_t due_at(struct sim *sim, uint64_t now, size_t bytes)
{
	uint64_t start = sim->free_at > now ? sim->free_at : now;

	if (sim->bandwidth > 0)
		start += bytes * 1000 / (uint64_t)sim->bandwidth;
	sim->free_at = start;
	return start + (uint64_t)sim->latency;
}

static void deliver(struct sim *sim, struct held *h)
{
	base_list_remove(&h->on);
	nm_rail_recv(sim->outer, &h->in);
}

/* Of the first link in line that may deliver one; NULL: none may. */
static struct held *next_packet(struct sim *sim, uint64_t now)
{
	struct held *best = NULL;

	base_list_for_each (n, &sim->packets) {
		struct held *h = container_of(n, struct held, on);
		struct sim_link *l = &sim->links[h->in.link->rank];

		if (h->due > now)
			continue;
		if (sim->seed == 0)
			return h;
		if (h->rank > l->ncome && now - l->last_came <= QUIET_NS)
			continue;
		if (best == NULL ||
		    (h->in.link == best->in.link && h->rank < best->rank))
			best = h;
	}
	return best;
}

/* When this packet is delivered if no other comes. */
static uint64_t date_of(struct sim *sim, const struct held *h)
{
	const struct sim_link *l = &sim->links[h->in.link->rank];
	uint64_t quiet = l->last_came + QUIET_NS + 1;

	if (sim->seed == 0 || h->rank <= l->ncome || h->due > quiet)
		return h->due;
	return quiet;
}

/* Set the timer to the next date, in the past or not; without one, off. */
static void set_timer(struct sim *sim)
{
	struct base_link *end = base_list_first(&sim->ends);
	struct itimerspec at = { .it_value.tv_sec = 0 };
	uint64_t date = UINT64_MAX;

	if (end != NULL)
		date = container_of(end, struct late, on)->due;
	base_list_for_each (n, &sim->packets) {
		struct held *h = container_of(n, struct held, on);

		if (date_of(sim, h) < date)
			date = date_of(sim, h);
	}
	if (date != UINT64_MAX) {
		at.it_value.tv_sec = (time_t)(date / 1000000000u);
		at.it_value.tv_nsec = (long)(date % 1000000000u);
	}
	timerfd_settime(sim->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* --- upcalls of the inner driver --- */

static void came(struct nm_rail *inner, struct nm_pkt_in *in)
{
	struct sim *sim = sim_of_inner(inner);
	struct sim_link *l = &sim->links[in->link->rank];
	struct held *h = held_new(sim);

	base_check(h != NULL);     /* poll asks for no more than there are */
	l->outer->conn = in->link; /* the inner driver has connected it */
	l->last_came = base_now_ns();
	l->ncome++;
	h->due = due_at(sim, l->last_came, in->length);
	h->rank = l->ncome + next_random(&l->random) % AHEAD;
	h->inner = in;
	h->in = *in;
	h->in.link = l->outer;
	h->in.drv = h;
	base_list_push_back(&sim->packets, &h->on);
}

static void inner_sent(struct nm_rail *inner, struct nm_pkt *pkt)
{
	nm_rail_sent(sim_of_inner(inner)->outer, pkt);
}

static void inner_ready(struct nm_rail *inner, struct nm_xfer *x)
{
	struct sim *sim = sim_of_inner(inner);
	struct nm_link *link = x->link;

	x->link = sim->links[link->rank].outer;
	nm_rail_xfer_ready(sim->outer, x);
	x->link = link;
}

static void end(struct sim *sim, struct nm_xfer *x, int status)
{
	x->link = sim->links[x->link->rank].outer;
	nm_rail_xfer_done(sim->outer, x, status);
}

static void inner_done(struct nm_rail *inner, struct nm_xfer *x, int status)
{
	struct sim *sim = sim_of_inner(inner);
	struct late *late = (struct late *)x->drv;

	if (status != 0) {
		end(sim, x, status);
		return;
	}
	base_link_init(&late->on);
	late->due = due_at(sim, base_now_ns(), x->length);
	base_list_push_back(&sim->ends, &late->on);
	if (sim->outer->armed)
		set_timer(sim);
}

static struct nm_xfer *xfer_of(struct base_link *on)
{
	return container_of((uint64_t *)on, struct nm_xfer, drv[0]);
}

/* It is no longer held. */
static struct nm_xfer *take_end(struct base_link *on)
{
	base_list_remove(on);
	return xfer_of(on);
}

/* The next packet that is held from this peer, due or not, or NULL. */
static struct held *packet_from(struct sim *sim, int rank)
{
	struct held *best = NULL;

	base_list_for_each (n, &sim->packets) {
		struct held *h = container_of(n, struct held, on);

		if (h->in.link->rank != rank)
			continue;
		if (sim->seed == 0)
			return h;
		if (best == NULL || h->rank < best->rank)
			best = h;
	}
	return best;
}

/* The next transfer with this peer whose end is held, or NULL. */
static struct base_link *end_with(struct sim *sim, int rank)
{
	base_list_for_each (n, &sim->ends)
		if (xfer_of(n)->link->rank == rank)
			return n;
	return NULL;
}

/* The link's death is about to be told. */
static void last_words(struct sim *sim, int rank)
{
	struct base_link *n;
	struct held *h;

	while ((h = packet_from(sim, rank)) != NULL)
		deliver(sim, h);
	while ((n = end_with(sim, rank)) != NULL)
		end(sim, take_end(n), 0);
}

static void inner_dead(struct nm_rail *inner, struct nm_link *link, int error)
{
	struct sim *sim = sim_of_inner(inner);

	last_words(sim, link->rank);
	nm_rail_link_dead(sim->outer, sim->links[link->rank].outer, error);
}

static const struct nm_rail_upcalls upcalls = {
	.recv = came,
	.sent = inner_sent,
	.xfer_ready = inner_ready,
	.xfer_done = inner_done,
	.link_dead = inner_dead,
};

/* --- opening --- */

extern const struct nm_driver nm_driver_sim;

static const struct nm_driver *find_inner(const char *name, size_t len)
{
	for (int i = 0; nm_drivers[i] != NULL; i++)
		if (strlen(nm_drivers[i]->name) == len &&
		    strncmp(nm_drivers[i]->name, name, len) == 0 &&
		    nm_drivers[i] != &nm_driver_sim)
			return nm_drivers[i];
	return NULL;
}

/* In the order of `options`, whose ranges they have. */
static const char *const names[] = { "latency", "bandwidth", "reorder",
				     "packet" };

static int parse_option(long *values, const char *name, size_t len,
			const char *text)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(names); i++) {
		if (strlen(names[i]) != len || memcmp(names[i], name, len) != 0)
			continue;
		if (base_parse_long(text, false, &values[i]) < 0 ||
		    values[i] < options[i].min || values[i] > options[i].max)
			return -EINVAL;
		return 0;
	}
	return -EINVAL;
}

/* "driver[,name=value]..." */
static int parse_spec(struct sim *sim, const char *spec, long *values)
{
	size_t len = strcspn(spec, ",");

	sim->inner.driver = find_inner(spec, len);
	if (sim->inner.driver == NULL)
		return -EINVAL;
	for (spec += len; *spec == ',';) {
		char value[NAME_MAX_];
		size_t name = strcspn(++spec, "=,");

		len = strcspn(spec, ",");
		if (spec[name] != '=' || len - name - 1 >= sizeof(value))
			return -EINVAL;
		memcpy(value, spec + name + 1, len - name - 1);
		value[len - name - 1] = 0;
		if (parse_option(values, spec, name, value) < 0)
			return -EINVAL;
		spec += len;
	}
	sim->inner.max_small = sim->inner.driver->max_small;
	return (size_t)values[3] <= sim->inner.max_small ? 0 : -EINVAL;
}

static int configure(struct sim *sim, const char *spec)
{
	long values[BASE_ARRAY_LEN(names)];
	int rc = base_option_load(&table);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < BASE_ARRAY_LEN(names); i++)
		values[i] = options[i].value;
	if (spec == NULL || parse_spec(sim, spec, values) < 0) {
		base_warn("nmad",
			  "NMAD_DRIVER: \"sim:%s\" is not "
			  "sim:DRIVER[,latency=US][,bandwidth=MB]"
			  "[,reorder=SEED][,packet=BYTES], BYTES from 4096 to "
			  "what DRIVER takes",
			  spec != NULL ? spec : "");
		return -EINVAL;
	}
	sim->latency = values[0] * 1000;
	sim->bandwidth = values[1];
	sim->seed = (uint64_t)values[2];
	sim->max_small = (size_t)values[3];
	return 0;
}

enum { HELD = 256 };

static int make_room(struct sim *sim, int nlinks)
{
	struct held *all = calloc(HELD, sizeof(*all));

	sim->links = calloc((size_t)nlinks, sizeof(*sim->links));
	sim->inner.links = calloc((size_t)nlinks, sizeof(*sim->inner.links));
	if (all == NULL || sim->links == NULL || sim->inner.links == NULL) {
		free(all);
		return -ENOMEM;
	}
	sim->all = all;
	for (int i = HELD; i-- > 0;) {
		all[i].free.next = sim->free;
		sim->free = &all[i].free;
	}
	return 0;
}

static int gather(struct sim *sim)
{
	struct epoll_event ev = { .events = EPOLLIN };

	sim->epoll = epoll_create1(EPOLL_CLOEXEC);
	sim->timer =
		timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (sim->epoll < 0 || sim->timer < 0 ||
	    epoll_ctl(sim->epoll, EPOLL_CTL_ADD, sim->timer, &ev) < 0)
		return -errno;
	if (sim->inner.fd >= 0 &&
	    epoll_ctl(sim->epoll, EPOLL_CTL_ADD, sim->inner.fd, &ev) < 0)
		return -errno;
	return 0;
}

static void sim_free(struct sim *sim)
{
	if (sim->epoll >= 0)
		close(sim->epoll);
	if (sim->timer >= 0)
		close(sim->timer);
	free(sim->all);
	free(sim->links);
	free(sim->inner.links);
	free(sim);
}

static int sim_open(struct nm_rail *rail, const struct nm_boot_info *info,
		    const char *spec)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	int rc;

	if (sim == NULL)
		return -ENOMEM;
	sim->epoll = sim->timer = sim->inner.fd = -1;
	base_list_init(&sim->packets);
	base_list_init(&sim->ends);
	sim->outer = rail;
	rc = configure(sim, spec);
	if (rc == 0)
		rc = make_room(sim, rail->nlinks);
	if (rc < 0)
		goto err_free;
	sim->inner.up = &upcalls;
	sim->inner.core = rail->core;
	sim->inner.stats = rail->stats;
	sim->inner.rank = rail->rank;
	sim->inner.index = rail->index;
	sim->inner.nlinks = rail->nlinks;
	for (int rank = 0; rank < rail->nlinks; rank++) {
		struct nm_link *in = &sim->inner.links[rank];

		*in = rail->links[rank];
		in->rail = &sim->inner;
		base_list_init(&in->xfers);
		sim->links[rank].outer = &rail->links[rank];
		/* Another order for each link and each rail. */
		sim->links[rank].random = sim->seed * 1000003u +
					  (uint64_t)rail->index * 1009u +
					  (uint64_t)rank;
	}
	rc = sim->inner.driver->open(&sim->inner, info, NULL);
	if (rc < 0)
		goto err_free;
	rc = gather(sim);
	if (rc < 0)
		goto err_close;
	rail->max_small = sim->max_small;
	rail->fd = sim->epoll;
	rail->drv = sim;
	memcpy(rail->addr, sim->inner.addr, sim->inner.addr_len);
	rail->addr_len = sim->inner.addr_len;
	return 0;

err_close:
	sim->inner.driver->close(&sim->inner);
err_free:
	sim_free(sim);
	return rc;
}

static void sim_close(struct nm_rail *rail)
{
	struct sim *sim = rail->drv;

	sim->inner.driver->close(&sim->inner);
	sim_free(sim);
}

static int sim_join(struct nm_rail *rail, const void *addr, size_t len)
{
	struct sim *sim = rail->drv;

	if (sim->inner.driver->join == NULL)
		return 0;
	return sim->inner.driver->join(&sim->inner, addr, len);
}

static bool sim_reaches(const struct nm_rail *rail, int rank)
{
	const struct sim *sim = rail->drv;

	return sim->inner.driver->reaches(&sim->inner, rank);
}

static int sim_connect(struct nm_link *link)
{
	struct sim *sim = link->rail->drv;
	struct nm_link *inner = inner_link(link);

	int rc = inner->conn != NULL ? 0 : sim->inner.driver->connect(inner);

	if (rc == 0)
		link->conn = inner;
	return rc;
}

static void sim_disconnect(struct nm_link *link)
{
	struct sim *sim = link->rail->drv;

	sim->inner.driver->disconnect(inner_link(link));
}

static void sim_release(struct nm_rail *rail, struct nm_pkt_in *in)
{
	struct sim *sim = rail->drv;
	struct held *h = in->drv;

	sim->inner.driver->release(&sim->inner, h->inner);
	base_mpsc_push(&sim->released, &h->free); /* order(mpsc) */
}

static void sim_give_up(struct nm_link *link)
{
	struct sim *sim = link->rail->drv;
	struct base_link *n;
	struct held *h;

	while ((h = packet_from(sim, link->rank)) != NULL) {
		base_list_remove(&h->on);
		sim_release(link->rail, &h->in);
	}
	while ((n = end_with(sim, link->rank)) != NULL)
		take_end(n);
	if (sim->inner.driver->give_up != NULL)
		sim->inner.driver->give_up(inner_link(link));
}

/* --- at work --- */

/* The inner driver's; perhaps that the link is dead. */
static int answer(struct sim *sim, const struct nm_link *link, int rc)
{
	if (rc < 0 && rc != -EAGAIN)
		last_words(sim, link->rank);
	return rc;
}

static int sim_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	struct sim *sim = link->rail->drv;

	return answer(sim, link,
		      sim->inner.driver->post_send(inner_link(link), pkt));
}

static void sim_xfer_offer(struct nm_xfer *x)
{
	struct nm_link *outer = x->link;
	struct sim *sim = outer->rail->drv;

	if (sim->inner.driver->xfer_offer == NULL)
		return;
	x->link = inner_link(outer);
	sim->inner.driver->xfer_offer(x);
	x->link = outer;
}

static void sim_xfer_withdraw(struct nm_xfer *x)
{
	struct nm_link *outer = x->link;
	struct sim *sim = outer->rail->drv;

	if (sim->inner.driver->xfer_withdraw == NULL)
		return;
	x->link = inner_link(outer);
	sim->inner.driver->xfer_withdraw(x);
	x->link = outer;
}

/* While the inner driver has a transfer, its link is the inner one. */
static int sim_xfer_recv(struct nm_xfer *x)
{
	struct nm_link *link = x->link;
	struct sim *sim = link->rail->drv;

	x->link = inner_link(link);
	return answer(sim, link, sim->inner.driver->xfer_recv(x));
}

static int sim_xfer_send(struct nm_xfer *x)
{
	struct nm_link *link = x->link;
	struct sim *sim = link->rail->drv;

	x->link = inner_link(link);
	return answer(sim, link, sim->inner.driver->xfer_send(x));
}

/* How many more packets can be held. */
static int room(struct sim *sim, int budget)
{
	int n = 0;

	if (sim->free == NULL)
		sim->free = base_mpsc_take(&sim->released);
	for (struct base_mpsc_node *f = sim->free; f != NULL && n < budget;
	     f = f->next)
		n++;
	return n;
}

static bool sim_is_busy(const struct nm_rail *rail)
{
	const struct sim *sim = rail->drv;

	return sim->inner.driver->arm == NULL ||
	       sim->inner.driver->is_busy(&sim->inner);
}

/*
 * What comes while we are armed gets its date from the poll that takes it up.
 */
static int sim_arm(struct nm_rail *rail)
{
	struct sim *sim = rail->drv;
	int rc = sim->inner.driver->arm(&sim->inner);

	if (rc == 0)
		set_timer(sim);
	return rc;
}

static bool sim_poll(struct nm_rail *rail, int budget)
{
	struct sim *sim = rail->drv;
	bool moved = sim->inner.driver->poll(&sim->inner, room(sim, budget));
	uint64_t now = base_now_ns();
	struct base_link *n;
	struct held *h;

	while (budget-- > 0 && (h = next_packet(sim, now)) != NULL) {
		deliver(sim, h);
		moved = true;
	}
	while ((n = base_list_first(&sim->ends)) != NULL &&
	       container_of(n, struct late, on)->due <= now) {
		end(sim, take_end(n), 0);
		moved = true;
	}
	if (rail->armed)
		set_timer(sim);
	return moved;
}

static void sim_dump(const struct nm_rail *rail)
{
	const struct sim *sim = rail->drv;

	base_dump("     sim over %s: %ld us, %ld MB/s, reorder %lu",
		  sim->inner.driver->name, sim->latency / 1000, sim->bandwidth,
		  (unsigned long)sim->seed);
	if (sim->inner.driver->dump != NULL)
		sim->inner.driver->dump(&sim->inner);
}

/* Every driver takes packets of that size. */
const struct nm_driver nm_driver_sim = {
	.name = "sim",
	.max_small = 4096,
	.fill = 4096,
	.rdv_threshold = 2048,
	.options = &table,
	.weight = 50,
	.open = sim_open,
	.close = sim_close,
	.join = sim_join,
	.reaches = sim_reaches,
	.connect = sim_connect,
	.disconnect = sim_disconnect,
	.give_up = sim_give_up,
	.post_send = sim_post_send,
	.poll = sim_poll,
	.arm = sim_arm,
	.is_busy = sim_is_busy,
	.release = sim_release,
	.xfer_offer = sim_xfer_offer,
	.xfer_withdraw = sim_xfer_withdraw,
	.xfer_recv = sim_xfer_recv,
	.xfer_send = sim_xfer_send,
	.dump = sim_dump,
};
