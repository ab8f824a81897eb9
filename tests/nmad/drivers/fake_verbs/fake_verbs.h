/*
 * A libibverbs.so.1 without devices: what tests may ask it for, besides verbs.
 *
 * Processes of one user, one session (getsid()) and one job (FAKE_VERBS_JOB)
 * share a network of devices fake0, fake1, ... The semantics are those of
 * verbs; a sender's own process moves the bytes, with process_vm_writev. Found
 * through LD_LIBRARY_PATH by whoever opens libibverbs, so that tests get these
 * functions by fake_verbs().
 *
 * Where devices differ, this one is strict: a place in a queue is free when a
 * completion has been polled, lkeys are no rkeys, nobody answers a queue pair
 * whose packet numbers do not fit, completions go with their queue pair. Linux
 * 6.1's rxe is not, and gives other statuses for some errors: selftest.c says
 * which. Here no two queue pairs have a number in common, elsewhere those of
 * two devices may. A registration pins nothing: through one that is stale, what
 * has been mapped since is reached, unless gone() has told of that.
 *
 * A setting is a variable of the environment, FAKE_VERBS_<NAME>, which
 * ibv_get_device_list() reads, unless set() has given it another value:
 *
 *   JOB          whose network it is, of those of a session ("")
 *   DEVICES      how many (2); 0: there is none
 *   PORTS        of each: 1 or 2 (1)
 *   LINK         roce: addresses are GIDs, indices 0 and 1; ib: LIDs (roce)
 *   EACCES       devices that cannot be opened, as bits of a mask (0)
 *   MTU          of datagrams: 256, 512, ... 4096 (4096)
 *   MAX_MSG      bytes of a message (1 GiB)
 *   MAX_INLINE   bytes that a send can carry inline (256)
 *   MAX_WR       work requests of a queue (16384)
 *   MAX_QP       queue pairs of a device in a process, then ENOMEM (1000)
 *   SRQ          0: no shared receive queues (1)
 *   MEMLOCK      bytes that may be registered at once, whole pages (unlimited)
 *   TIMEOUT_MS   after which nobody has answered; -1: what the queue pair's
 *                timeout and retry_cnt say (-1)
 *   RNR_US       between two attempts when the receiver is not ready (1000)
 *   DELAY_US     a send begins after up to so long, by lot (0)
 *   LOSS         per mille of datagrams that are lost (0)
 *   DUPLICATES   per mille of datagrams that come twice (0)
 *   SEED         of these lots (1)
 *   FAIL         one fault, as for fail(), "status=12,vendor_err=129,after=99,
 *                count=1,delivered=1,device=0"
 */
#ifndef TESTS_FAKE_VERBS_H
#define TESTS_FAKE_VERBS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../../../nmad/drivers/verbs/lib.h"

/* What the process has now; pinned: bytes, in whole pages. */
#define FAKE_VERBS_OBJECTS(X)                                                  \
	X(contexts)                                                            \
	X(pds)                                                                 \
	X(mrs)                                                                 \
	X(cqs)                                                                 \
	X(channels)                                                            \
	X(srqs)                                                                \
	X(qps)                                                                 \
	X(ahs)                                                                 \
	X(pinned)

#define FAKE_VERBS_CALLS(X)                                                    \
	VERBS_FUNCTIONS(X)                                                     \
	X(post_send)                                                           \
	X(post_recv)                                                           \
	X(post_srq_recv)                                                       \
	X(poll_cq)                                                             \
	X(req_notify_cq)

struct fake_verbs_counts {
#define X(name) uint64_t name;
	FAKE_VERBS_OBJECTS(X)
	uint64_t waiting;   /* sends that have been posted, and not begun */
	uint64_t unread;    /* completions that have not been polled */
	uint64_t doorbells; /* post_send, post_recv, post_srq_recv, arming */
	/* Of each function, since the process began. */
	struct {
		FAKE_VERBS_CALLS(X)
	} calls;
#undef X
};

/*
 * Sends of this process on reliable connections that fail: all that are begun
 * to a process (pid; 0: to any) from a device (-1: from any), but the first
 * `after`; `count` of them.
 */
struct fake_verbs_fault {
	pid_t pid;
	int device;
	unsigned after, count;
	enum ibv_wc_status status; /* RETRY_EXC_ERR comes after the time-out */
	uint32_t vendor_err;
	bool delivered; /* but the message has come: only its ack is lost */
};

/* What happens to a device of this process, or of all there are now. */
enum fake_verbs_event {
	FAKE_PORT_DOWN,    /* `which`: port, 1 or 2 */
	FAKE_PORT_UP,      /* as well */
	FAKE_DEVICE_FATAL, /* until this process has no device open */
	FAKE_QP_FATAL,     /* `which`: its number, of this process; no device */
};

struct fake_verbs {
	void (*counts)(struct fake_verbs_counts *out);
	/* A setting, from now on; NULL: the environment's again. */
	void (*set)(const char *name, const char *value);
	/* In addition to the faults that are left; NULL: forget them all. */
	void (*fail)(const struct fake_verbs_fault *fault);
	void (*happen)(enum fake_verbs_event event, int device, uint32_t which,
		       bool to_all);
	/*
	 * This memory of the process has other pages from now on: an adapter
	 * would use the old ones by what has been registered before, so whoever
	 * does ends his process, with a line on stderr.
	 */
	void (*gone)(const void *at, size_t bytes);
};

/* NULL: it is another libibverbs that this process has opened. */
static inline const struct fake_verbs *fake_verbs(void)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
	const struct fake_verbs *f;

	if (lib == NULL)
		return NULL;
	f = dlsym(lib, "fake_verbs_table");
	dlclose(lib);
	return f;
}

#endif
