/*
 * Joining and leaving the job.
 */
#include <nmad/nmad.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <base/diag.h>
#include <base/option.h>
#include <base/pin.h>
#include <base/trace.h>
#include <marcel/marcel.h>
#include <nmad/settings.h>
#include <pioman/pioman.h>

#include "../boot/boot.h"
#include "../drivers/driver.h"
#include "core.h"
#include "measure.h"
#include "offer.h"

enum {
	DRIVER,
	STRATEGY,
	THRESHOLD,
	WINDOW,
	ANNOUNCE,
	OFFLOAD,
	SAMPLING,
	SAMPLING_MS,
	LOCK,
	STATS,
	VERBOSE
};

/* NMAD_SAMPLING=auto: the largest body, and how often at most. */
enum { MEASURED_MAX = 1 << 20, MEASURED_ROUNDS = 8 };

static const char *const strategies[] = { "default", "fifo", "aggreg",
					  "split",   "prio", NULL };

/* In the order of enum nm_lock_scheme. */
static const char *const locks[] = { "deferred", "fine", "coarse", NULL };

static struct base_option options[] = {
	[DRIVER] = { "NMAD_DRIVER", BASE_OPTION_STRING, "", 0, 0, NULL,
		     "networks, such as shm+tcp; nothing: what reaches whom" },
	[STRATEGY] = { "NMAD_STRATEGY", BASE_OPTION_CHOICE, "default", 0, 0,
		       strategies, "how packets are formed" },
	[THRESHOLD] = { "NMAD_RDV_THRESHOLD", BASE_OPTION_SIZE, "0", 0,
			1L << 30, NULL,
			"longer messages go by rendezvous; 0: the driver's" },
	[WINDOW] = { "NMAD_WINDOW", BASE_OPTION_SIZE, "1m", 0, 1L << 30, NULL,
		     "eager payload that may lie unmatched at a peer" },
	[ANNOUNCE] = { "NMAD_ANNOUNCE", BASE_OPTION_BOOL, "1", 0, 0, NULL,
		       "tell senders of large receives that are posted" },
	[OFFLOAD] = { "NMAD_OFFLOAD", BASE_OPTION_SIZE, "0", 0, 1L << 30, NULL,
		      "bytes of a packet that an idle VP is to send; 0: none" },
	[SAMPLING] = { "NMAD_SAMPLING", BASE_OPTION_STRING, "off", 0, 0, NULL,
		       "how fast the rails are: a file, auto: measured at the "
		       "start, or off" },
	[SAMPLING_MS] = { "NMAD_SAMPLING_MS", BASE_OPTION_INT, "10", 1, 60000,
			  NULL, "auto: about how long a rail is measured" },
	[LOCK] = { "NMAD_LOCK", BASE_OPTION_CHOICE, "deferred", 0, 0, locks,
		   "who finds the core or a rail busy leaves his work there, "
		   "waits for it, or waits for all" },
	[STATS] = { "NMAD_STATS", BASE_OPTION_BOOL, "0", 0, 0, NULL,
		    "print counters at the end" },
	[VERBOSE] = { "NMAD_VERBOSE", BASE_OPTION_BOOL, "0", 0, 0, NULL,
		      "print these settings" },
};

const struct base_option_table nm_options = BASE_OPTION_TABLE("nmad", options);

/* Of the core, of the launchers, and of each driver that has any. */
BASE_PUBLIC const struct base_option_table *nm_settings(size_t i)
{
	if (i == 0)
		return &nm_options;
	if (i == 1)
		return &nm_boot_options;
	i -= 2;
	for (int d = 0; nm_drivers[d] != NULL; d++)
		if (nm_drivers[d]->options != NULL && i-- == 0)
			return nm_drivers[d]->options;
	return NULL;
}

/* The session of the barrier at the end: of our own numbers the last. */
static const uint64_t our_session = ~(uint64_t)0;

struct nm_core *nm_core_self;

BASE_OFFER_NOTE("nmad", "nm_offer");
static struct nm_core *core;
static struct nm_boot *boot;
static struct nm_session *ours;
static int depth;     /* of nm_init() */
static bool is_child; /* of a process that was in a job */

BASE_PUBLIC int nm_rank(void)
{
	return core != NULL ? core->rank : -1;
}

BASE_PUBLIC int nm_size(void)
{
	return core != NULL ? core->size : 0;
}

BASE_PUBLIC int nm_appnum(void)
{
	return boot != NULL ? nm_boot_info(boot)->appnum : -1;
}

BASE_PUBLIC int nm_local_rank(void)
{
	return boot != NULL ? nm_boot_info(boot)->local_rank : -1;
}

BASE_PUBLIC int nm_local_size(void)
{
	return boot != NULL ? nm_boot_info(boot)->local_size : 0;
}

BASE_PUBLIC struct nm_gate *nm_gate_of(int rank)
{
	if (core == NULL || rank < 0 || rank >= core->size)
		return NULL;
	return &core->gates[rank];
}

BASE_PUBLIC int nm_gate_rank(const struct nm_gate *gate)
{
	return gate->rank;
}

BASE_PUBLIC int nm_gate_host(const struct nm_gate *gate)
{
	return nm_boot_info(gate->core->boot)->node[gate->rank];
}

BASE_PUBLIC int nm_gate_is_near(const struct nm_gate *gate)
{
	struct nm_rail *rail = gate->core->rails;

	for (int i = 0; i < gate->core->nrails; i++, rail++)
		if (rail->driver != NULL &&
		    (rail->driver->caps & (NM_CAP_NODE | NM_CAP_SELF)) != 0 &&
		    rail->driver->reaches(rail, gate->rank))
			return 1;
	return 0;
}

static const struct nm_rail *copier_of(const struct nm_gate *gate)
{
	const struct nm_rail *rail = gate->core->rails;

	for (int i = 0; i < gate->core->nrails; i++, rail++)
		if (rail->driver != NULL && rail->driver->copies != NULL &&
		    rail->driver->copies(rail, gate->rank))
			return rail;
	return NULL;
}

BASE_PUBLIC int nm_gate_can_copy(const struct nm_gate *gate)
{
	return copier_of(gate) != NULL;
}

static int copy(const struct nm_gate *gate, const struct nm_range *range,
		uint64_t remote, bool push)
{
	const struct nm_rail *rail = copier_of(gate);

	return rail != NULL ? rail->driver->copy(rail, gate->rank, range,
						 remote, push)
			    : -ENOTSUP;
}

BASE_PUBLIC int nm_gate_read(const struct nm_gate *gate,
			     const struct nm_data *d, size_t offset,
			     size_t length, uint64_t remote)
{
	struct nm_range range = { d, offset, length };

	return copy(gate, &range, remote, false);
}

BASE_PUBLIC int nm_gate_write(const struct nm_gate *gate,
			      const struct nm_data *d, size_t offset,
			      size_t length, uint64_t remote)
{
	struct nm_range range = { d, offset, length };

	return copy(gate, &range, remote, true);
}

BASE_PUBLIC void nm_abort(int code, const char *why)
{
	nm_boot_abort(boot, code, why);
}

/* --- in a child --- */

/*
 * None of the threads that hold locks are in the child of a fork(), nor anybody
 * who polls, and the rails are the parent's. So nmad does not run there, nor
 * can it be started; but what the child knows of its parent's nmad leads here.
 */
static void forked(void)
{
	if (boot == NULL)
		return;
	is_child = true;
	depth = 0;
	boot = NULL;
	if (core == NULL)
		return;
	nm_core_lose(&core->lock);
	core->npolled = 0;
	core = nm_core_self = NULL;
}

void nm_core_check_child(void)
{
	if (is_child)
		nm_core_refuse_child();
}

static int learn_of_forks(void)
{
	static bool learns;

	if (!learns && pthread_atfork(NULL, NULL, forked) != 0)
		return -ENOMEM;
	learns = true;
	return 0;
}

/* --- joining --- */

static int start_below(void)
{
	const struct nm_boot_info *info = nm_boot_info(boot);
	struct marcel_config config = { .local_rank = info->local_rank,
					.local_ranks = info->local_size };
	int rc = marcel_init(&config);

	if (rc < 0)
		goto err;
	marcel_trace_job(info->rank, info->size);
	rc = piom_init();
	if (rc == 0)
		return 0;
	marcel_end();
err:
	base_warn("nmad", "rank %d: threads and their I/O cannot be had: %s",
		  info->rank, strerror(-rc));
	return rc;
}

static void stop_below(void)
{
	piom_exit();
	marcel_end();
}

static const struct nm_strategy *strategy(void)
{
	const char *name = strategies[options[STRATEGY].value];
	int i = 0;

	while (strcmp(nm_strategies[i]->name, name) != 0)
		i++; /* each choice is one of them */
	return nm_strategies[i];
}

int nm_measure_job(struct nm_measure *m)
{
	return core == NULL ? -EINVAL : nm_measure(core, boot, m);
}

/* Nothing is sent or received yet. */
static int know_rails(void)
{
	struct nm_measure m = {
		.ns = (uint64_t)options[SAMPLING_MS].value * 1000000,
		.max = MEASURED_MAX,
		.rounds = MEASURED_ROUNDS,
	};
	int rc;

	if (strcmp(options[SAMPLING].string, "off") == 0)
		return 0;
	if (strcmp(options[SAMPLING].string, "auto") == 0)
		return nm_measure(core, boot, &m);
	rc = nm_sampling_load(core, options[SAMPLING].string);
	if (rc == 0)
		nm_rails_thresholds(core);
	return rc;
}

static int start_core(void)
{
	const struct nm_boot_info *info = nm_boot_info(boot);
	struct nm_config config = {
		.strategy = strategy(),
		.rdv_threshold = (size_t)options[THRESHOLD].value,
		.window = (uint64_t)options[WINDOW].value,
		.announce = options[ANNOUNCE].value != 0,
		.offload = (size_t)options[OFFLOAD].value,
		.lock = (enum nm_lock_scheme)options[LOCK].value,
	};
	int rc;

	core = aligned_alloc(BASE_CACHE_PAIR,
			     (sizeof(*core) + BASE_CACHE_PAIR - 1) &
				     ~(size_t)(BASE_CACHE_PAIR - 1));
	if (core == NULL)
		return -ENOMEM;
	rc = nm_core_init(core, info->rank, info->size, &config);
	if (rc < 0)
		goto err_free;
	rc = nm_rails_open(core, boot, options[DRIVER].string);
	if (rc == 0)
		rc = nm_boot_fence(boot);
	if (rc == 0)
		rc = nm_rails_join(core);
	if (rc == 0)
		rc = nm_rails_link(core);
	if (rc == 0)
		rc = nm_core_start(core);
	if (rc < 0)
		goto err_rails;
	rc = nm_core_session_open(core, our_session, &ours);
	if (rc < 0)
		goto err_stop;
	nm_core_self = core; /* from here on who waits polls it */
	rc = know_rails();
	if (rc < 0)
		goto err_session;
	return 0;

err_session:
	nm_core_self = NULL;
	nm_core_session_close(ours);
err_stop:
	nm_core_stop(core);
err_rails:
	nm_rails_close(core);
	nm_core_exit(core);
err_free:
	free(core);
	core = NULL;
	return rc;
}

BASE_PUBLIC int nm_init(void)
{
	int rc;

	if (depth > 0) {
		depth++;
		return 0;
	}
	if (is_child) {
		base_warn("nmad", "nm_init() in the child of a fork(), which "
				  "is no part of the job");
		return -EPERM;
	}
	rc = base_option_load(&nm_options);
	if (rc == 0)
		rc = learn_of_forks();
	if (rc < 0)
		return rc;
	rc = nm_boot_open(&boot);
	if (rc < 0)
		return rc;
	rc = start_below();
	if (rc < 0)
		goto err_boot;
	rc = start_core();
	if (rc < 0)
		goto err_below;
	if (options[VERBOSE].value && core->rank == 0)
		base_option_print(&nm_options);
	depth = 1;
	return 0;

err_below:
	stop_below();
err_boot:
	nm_boot_close(boot);
	boot = NULL;
	return rc;
}

/* --- leaving --- */

/*
 * One message to the process `ahead` of us, one from as far behind: whether
 * its sender has met an error, or heard of one. Returns our own state then.
 */
static int barrier_step(int ahead, int error)
{
	struct nm_gate *to = &core->gates[(core->rank + ahead) % core->size];
	struct nm_gate *from =
		&core->gates[(core->rank - ahead + core->size) % core->size];
	unsigned char mine = error != 0, theirs = 0;
	struct nm_data said = nm_data_flat(&mine, sizeof(mine));
	struct nm_data heard = nm_data_flat(&theirs, sizeof(theirs));
	struct nm_sr_request in;
	struct nm_sr_status status;

	nm_sr_irecv(ours, from, (nm_tag_t)ahead, NM_TAG_EXACT, &heard, &in);
	nm_sr_send(ours, to, (nm_tag_t)ahead, &said, 0);
	nm_sr_wait(&in);
	nm_sr_status(&in, &status);
	if (error == 0)
		error = status.error;
	return error == 0 && theirs ? -ECONNRESET : error;
}

/*
 * All have come to their end, and while we wait for them we take what they
 * still send, so that nobody is stuck with a full network. An error ends no
 * step: the others wait for our messages, and learn from them that somebody is
 * dead, who will not come to the fence.
 */
static int barrier(void)
{
	int rc = 0;

	for (int ahead = 1; ahead < core->size; ahead *= 2)
		rc = barrier_step(ahead, rc);
	return rc;
}

/* Those whom we have told in the barrier; they may not have heard it yet. */
static void learn_addresses(void)
{
	for (int ahead = 1; ahead < core->size; ahead *= 2)
		nm_launcher_learn(
			&core->gates[(core->rank + ahead) % core->size]);
}

static void flush(void)
{
	while (!nm_core_is_quiet(core)) {
		piom_poll();
		marcel_yield();
	}
}

static bool sessions_are_open(void)
{
	struct nm_pass pass;
	bool open;

	nm_core_lock(core);
	nm_core_settle(core, &pass);
	open = core->sessions.head.next != core->sessions.head.prev;
	nm_core_unlock(core, &pass);
	return open;
}

BASE_PUBLIC int nm_exit(void)
{
	int rc, fenced;

	base_handler_check("nmad", "nm_exit()");
	if (depth == 0)
		return -EINVAL;
	if (depth > 1) {
		depth--;
		return 0;
	}
	if (sessions_are_open())
		return -EBUSY;
	rc = barrier();
	flush();
	if (rc == 0)
		learn_addresses();
	nm_launcher_hold(core); /* for ever */
	/* With a dead peer nobody else would ever come to the fence. */
	fenced = rc == 0 ? nm_launcher_fence(boot) : 0;
	nm_core_session_close(ours);
	nm_core_self = NULL;
	nm_core_stop(core);
	if (options[STATS].value)
		nm_stats_print(core);
	nm_rails_check(core);
	nm_rails_close(core);
	nm_core_exit(core);
	free(core);
	core = NULL;
	stop_below();
	rc = nm_boot_close(boot);
	boot = NULL;
	depth = 0;
	return fenced < 0 ? fenced : rc;
}
