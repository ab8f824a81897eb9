/*
 * A core from its beginning to its end.
 */
#include "core.h"

#include <marcel/errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <marcel/marcel.h>

#include "../boot/boot.h"
#include "hang.h"

enum {
	ROOM_AT_START = 4096,
	LOOK_EVERY = 512, /* runs of the ltask that find nothing */
	LOOK_ARMED = 64,  /* an arming counts as so many */
};

static void gate_init(struct nm_gate *gate, struct nm_core *core, int rank)
{
	gate->core = core;
	gate->rank = rank;
	base_list_init(&gate->answers);
	base_list_init(&gate->out);
	base_list_init(&gate->waiting);
	base_list_init(&gate->offers);
	base_list_init(&gate->wanted);
	nm_chain_init(&gate->held);
	nm_chain_init(&gate->posts);
	base_list_init(&gate->medium);
	gate->cut_min = SIZE_MAX;
	base_link_init(&gate->active);
}

int nm_core_init(struct nm_core *core, int rank, int size,
		 const struct nm_config *config)
{
	memset(core, 0, sizeof(*core));
	core->gates = calloc((size_t)size, sizeof(*core->gates));
	core->rails = calloc(NM_RAILS_MAX, sizeof(*core->rails));
	if (core->gates == NULL || core->rails == NULL)
		goto err_free;
	nm_core_lock_init(&core->lock, config->lock);
	nm_calls_init(&core->calls);
	base_mpsc_init(&core->freed);
	core->config = *config;
	core->epoll = core->event = core->launcher = -1;
	core->until_look = LOOK_EVERY;
	core->rank = rank;
	core->size = size;
	for (int i = 0; i < size; i++)
		gate_init(&core->gates[i], core, i);
	nm_match_init(&core->match);
	nm_mem_init(&core->mem);
	nm_ids_init(&core->offers, &core->mem);
	nm_ids_init(&core->syncs, &core->mem);
	base_list_init(&core->active);
	base_list_init(&core->gathering);
	core->distrust = 1;       /* until a first burst has ended soon */
	core->late_ns = 20000000; /* two ticks: it may be */
	base_list_init(&core->sessions);
	nm_chain_init(&core->stalled);
	marcel_event_init(&core->refill);
	base_hash_init(&core->by_id, nm_session_hash, 0);
	base_hash_init(&core->parked, nm_parked_hash, 0);
	if (nm_match_reserve(&core->match, ROOM_AT_START) < 0 ||
	    base_hash_reserve(&core->by_id, 1) < 0 ||
	    base_hash_reserve(&core->parked, 1) < 0 ||
	    nm_limbo_init(&core->limbo) < 0 ||
	    nm_limbo_init(&core->retracts) < 0)
		goto err_match;
	return 0;

err_match:
	nm_limbo_exit(&core->retracts);
	nm_limbo_exit(&core->limbo);
	base_hash_exit(&core->parked);
	base_hash_exit(&core->by_id);
	nm_match_exit(&core->match);
err_free:
	free(core->gates);
	free(core->rails);
	return -ENOMEM;
}

void nm_core_exit(struct nm_core *core)
{
	base_check(base_list_is_empty(&core->sessions));
	nm_limbo_exit(&core->retracts);
	nm_limbo_exit(&core->limbo);
	base_hash_exit(&core->parked);
	base_hash_exit(&core->by_id);
	nm_match_exit(&core->match);
	nm_mem_exit(&core->mem);
	free(core->gates);
	free(core->rails);
}

/*
 * The thread that allocates for the match tables when progress finds that
 * their reserve is low, because progress itself may not. `ending` is looked at
 * after the refill: who ends the core asks for one, unless one has been asked
 * for and is still to take the lock, which then comes after `ending` was set.
 */
static void *refiller(void *arg)
{
	struct nm_core *core = arg;

	do {
		marcel_event_wait(&core->refill);
		marcel_event_init(&core->refill);
		nm_core_refill(core, true);
	} while (!load_acquire(&core->ending)); /* order(ending) */
	return NULL;
}

/*
 * Without its launcher a rank might wait for ever, and nobody would end it. Its
 * connection wakes who sleeps, again and again until the launcher is asked for.
 */
static BASE_COLD void look_for_launcher(struct nm_core *core)
{
	struct pollfd w = { .fd = core->launcher, .events = POLLRDHUP };

	core->until_look = LOOK_EVERY;
	if (w.fd >= 0 && poll(&w, 1, 0) > 0 &&
	    (w.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
		nm_boot_lost();
}

static enum piom_ltask_result progress(void *arg)
{
	struct nm_core *core = arg;

	if (nm_core_progress(core))
		return PIOM_LTASK_WORKED;
	if (unlikely(--core->until_look == 0))
		look_for_launcher(core);
	return nm_core_is_quiet(core) ? PIOM_LTASK_QUIET : PIOM_LTASK_AGAIN;
}

/* As the ltask's function, and never beside it. */
static int arm(void *arg)
{
	struct nm_core *core = arg;

	core->until_look = core->until_look > LOOK_ARMED
				   ? core->until_look - LOOK_ARMED
				   : 1;
	return nm_core_arm(core);
}

/* One set for the descriptors of all rails, and the launcher's. */
static int gather(struct nm_core *core)
{
	struct epoll_event ev = { .events = EPOLLIN };

	core->epoll = epoll_create1(EPOLL_CLOEXEC);
	core->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (core->epoll < 0 || core->event < 0 ||
	    epoll_ctl(core->epoll, EPOLL_CTL_ADD, core->event, &ev) < 0)
		return -errno;
	for (int i = 0; i < core->npolled; i++) {
		struct nm_rail *rail = core->polled[i];

		if (rail->driver->arm == NULL)
			return -ENOTSUP;
		if (rail->fd >= 0 &&
		    epoll_ctl(core->epoll, EPOLL_CTL_ADD, rail->fd, &ev) < 0)
			return -errno;
	}
	ev.events = EPOLLRDHUP;
	if (core->launcher >= 0 &&
	    epoll_ctl(core->epoll, EPOLL_CTL_ADD, core->launcher, &ev) < 0)
		return -errno;
	return 0;
}

static void ungather(struct nm_core *core)
{
	if (core->epoll >= 0)
		close(core->epoll);
	if (core->event >= 0)
		close(core->event);
	core->epoll = core->event = -1;
}

/*
 * Let the ltask wait in the kernel. Where that is not to be had it is polled,
 * as if nothing had been said.
 */
static void may_block(struct nm_core *core)
{
	struct piom_blocking how = { .arm = arm,
				     .delay_ns = PIOM_BLOCKING_AUTO,
				     .unasked = true };
	int rc = gather(core);

	how.fd = core->epoll;
	if (rc == 0)
		rc = piom_ltask_set_blocking(&core->ltask, &how);
	if (rc == 0)
		return;
	ungather(core);
	if (rc != -ENOTSUP)
		base_warn("nmad",
			  "rank %d: cannot wait in the kernel: %s; polling",
			  core->rank, strerror(-rc));
}

int nm_core_start(struct nm_core *core)
{
	marcel_attr_t attr;
	int rc;

	marcel_attr_init(&attr);
	marcel_attr_setname(&attr, "nmad-refill");
	rc = marcel_create(&core->refiller, &attr, refiller, core);
	marcel_attr_destroy(&attr);
	if (rc != 0)
		return -rc;
	if (core->boot != NULL)
		core->launcher = nm_boot_fd(core->boot);
	piom_ltask_init(&core->ltask, progress, core, PIOM_LTASK_REPEAT, NULL);
	may_block(core);
	piom_ltask_submit(&core->ltask);
	core->dumper.name = "nmad";
	core->dumper.fn = nm_core_dump;
	core->dumper.arg = core;
	core->dumper.hang = &nm_hang;
	base_dumper_add(&core->dumper);
	return 0;
}

void nm_core_stop(struct nm_core *core)
{
	struct nm_pass pass;

	base_dumper_remove(&core->dumper);
	piom_ltask_cancel(&core->ltask);
	store_release(&core->ending, 1); /* order(ending) */
	nm_core_lock(core);
	nm_core_settle(core, &pass);
	if (!core->refill_asked) {
		core->refill_asked = true;
		marcel_event_set(&core->refill);
	}
	nm_core_unlock(core, &pass);
	marcel_join(core->refiller, NULL);
	ungather(core); /* whoever drove a rail until now may have nudged */
}
