/*
 * A core in miniature, to test drivers without the real one: it implements
 * what drivers call (packets, upcalls) over plain buffers, and runs n forked
 * processes that exchange their addresses through shared memory.
 */
#ifndef TESTS_NMAD_DRIVERS_JOB_H
#define TESTS_NMAD_DRIVERS_JOB_H

#include <sys/resource.h>
#include <sys/types.h>

#include "../../../nmad/boot/boot.h"
#include "../../../nmad/core/rail.h"
#include "../../check.h"

enum { JOB_MAX = 10 };

/*
 * A small packet of a test: `kind`, a number, and bytes made from it. Drivers
 * align nothing.
 */
struct job_msg {
	uint32_t kind, length;
	uint64_t number;
	unsigned char data[];
} __attribute__((packed));

struct job {
	struct nm_rail rail;
	struct nm_rail_stats stats;
	struct nm_link links[JOB_MAX];
	struct nm_boot_info info;
	const struct nm_driver *driver;
	int rank, size;
	int round; /* how often it has opened */
	pid_t pids[JOB_MAX];

	/* Called for each message of a test, which may keep `in`. */
	void (*recv)(struct job *j, int from, const struct job_msg *m,
		     struct nm_pkt_in *in);
	bool keep;     /* set by recv(): do not release */
	uint64_t ngot; /* messages, and of each */
	uint64_t nfrom[JOB_MAX];
	uint64_t nnews; /* upcalls */
	unsigned deaths[JOB_MAX];
	int death_error; /* the last; and of each */
	int errors[JOB_MAX];
	void *arg;
};

/*
 * Run body(j) in n processes; rank 0 is the caller. In the others a failed
 * check ends the process, and rank 0 fails for it. After the body all meet,
 * say goodbye and close, but for those that have been killed.
 */
void job_run(const struct nm_driver *driver, int n, void (*body)(struct job *),
	     void *arg);

/* What drivers get as spec; NULL: the environment's SPEC, if any. */
extern const char *job_spec;

/*
 * Nobody knows anybody when a body begins: a peer is connected by the first
 * packet to it, or from it. Else all have connected to all.
 */
extern bool job_connects_late;

/* Called when all is closed, in each process. */
extern void (*job_closed)(struct job *j);

/* Of every packet, what nm_pkt_awaited() says; called before one is copied. */
extern struct nm_awaited *job_awaited;
extern void (*job_copies)(struct job *j);

/* The processes of the last job_run(); [0] is the caller's. */
extern pid_t job_pids[JOB_MAX];

/* Queue a message of `length` bytes of data (pattern of `number`). */
void job_send(struct job *j, int to, uint32_t kind, uint64_t number,
	      size_t length);

/* Do all packets that were queued have left? */
bool job_idle(const struct job *j);

/* The driver has all it can be given now. */
bool job_flushed(const struct job *j);

/* One round of progress. */
void job_progress(struct job *j);

/* All meet, say goodbye, close, and open again. */
void job_reopen(struct job *j);

/* The address that a rank has given. */
const void *job_addr(int rank);

/* Wait for all others, with progress. */
void job_meet(struct job *j);

/*
 * Large transfers. The k-th send to a peer meets the k-th receive from it. The
 * status is -EINPROGRESS until the end.
 */
struct job_large {
	struct nm_xfer x;
	int peer, status;
	bool is_send, started, posted, met;
	uint64_t number;
	struct job_large *next;
};
void job_large_send(struct job *j, int to, struct job_large *l,
		    struct nm_data data, size_t offset, size_t length);
void job_large_recv(struct job *j, int from, struct job_large *l,
		    struct nm_data data, size_t offset, size_t length);

/*
 * Announced ones, without messages: the test carries the tokens, x.mine. Each
 * answers what the driver does; after 0, a send has begun, a receive that was
 * recalled is none, and one whose message is known to have gone there ends.
 */
int job_large_announce(struct job *j, int from, struct job_large *l,
		       struct nm_data data, size_t length);
int job_large_take(struct job *j, int to, struct job_large *l,
		   struct nm_data data, size_t length,
		   const struct nm_token *theirs);
int job_large_recall(struct job *j, struct job_large *l, bool for_good);
int job_large_meet(struct job *j, struct job_large *l, size_t length,
		   const struct nm_token *theirs);

/* Bytes that belong to a number, and whether these are they. */
void job_pattern(uint64_t number, void *to, size_t length);
bool job_is_pattern(uint64_t number, const void *data, size_t length);

void job_fail(const struct job *j, const char *file, int line,
	      const char *what);

/* As CHECK, in any rank. */
#define JOB_CHECK(j, x) ((x) ? (void)0 : job_fail(j, __FILE__, __LINE__, #x))

/* The process has no descriptor to spare from now on. What it could have. */
struct rlimit job_no_more_files(struct job *j);

#endif
