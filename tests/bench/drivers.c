/*
 * Drivers alone, beneath the core: half round trip by size between two
 * processes on two CPUs, and the cost of polling when nothing comes. The
 * difference to bench/nmad.c is what the core costs.
 *
 *   drivers shm|tcp [largest size [smallest size: transfers only]]
 *
 * First a bare flag in shared memory, which is the limit; then small packets
 * up to the driver's largest, then transfers with their handshake. Best, tenth
 * part and median of short batches: machines are shared.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../nmad/boot/boot.h"
#include "../../nmad/core/rail.h"

enum { BATCHES = 300, HEAD = 40, LARGEST = 16 << 20 };

extern const struct nm_driver nm_driver_shm, nm_driver_tcp;

struct nm_pkt {
	unsigned char *bytes;
	size_t length;
};

typedef ATOMIC(int) flag_t;

struct shared {
	flag_t ready[2], joined[2];
	struct {
		ATOMIC(int) word BASE_ALIGNED(BASE_CACHE_PAIR);
	} flag[2];
	size_t addr_len[2];
	unsigned char addr[2][NM_ADDR_MAX];
};

static struct nm_rail rail;
static struct nm_link links[2];
static struct shared *shared;
static int rank;
static unsigned char *out, *in;
static struct nm_pkt pkt;
static bool busy;
static unsigned arrived, taken;   /* messages, in their order */
static struct nm_token tokens[8]; /* those that were tokens */
static struct nm_xfer xfer;
static int xfers_done;

size_t nm_pkt_length(const struct nm_pkt *p)
{
	return p->length;
}

struct nm_awaited *nm_pkt_awaited(const struct nm_pkt *p)
{
	return NULL;
}

void nm_pkt_copy(const struct nm_pkt *p, void *to)
{
	memcpy(to, p->bytes, p->length);
}

int nm_pkt_iov(struct nm_pkt *p, size_t offset, struct iovec *iov, int n)
{
	iov[0].iov_base = p->bytes + offset;
	iov[0].iov_len = p->length - offset;
	return 1;
}

/* As the core does, every byte is copied once more, to where it belongs. */
void nm_rail_recv(struct nm_rail *r, struct nm_pkt_in *p)
{
	if (p->length == sizeof(tokens[0]))
		memcpy(&tokens[arrived % 8], p->data, sizeof(tokens[0]));
	else
		memcpy(in, p->data, p->length);
	arrived++;
	rail.driver->release(&rail, p);
}

void nm_rail_sent(struct nm_rail *r, struct nm_pkt *p)
{
	busy = false;
}

static void send_small(unsigned char *bytes, size_t length)
{
	int rc;

	while (busy)
		rail.driver->poll(&rail, 32);
	pkt.bytes = bytes;
	pkt.length = length;
	while ((rc = rail.driver->post_send(&links[1 - rank], &pkt)) == -EAGAIN)
		rail.driver->poll(&rail, 32);
	busy = rc == NM_POSTED;
}

/* The next message. Valid until some more have come, if it was a token. */
static struct nm_token *await(void)
{
	while (arrived == taken)
		rail.driver->poll(&rail, 32);
	return &tokens[taken++ % 8];
}

void nm_rail_xfer_ready(struct nm_rail *r, struct nm_xfer *x)
{
	send_small((unsigned char *)&x->mine, sizeof(x->mine));
}

void nm_rail_xfer_done(struct nm_rail *r, struct nm_xfer *x, int status)
{
	xfers_done++;
}

int nm_rail_address(const struct nm_link *l, void *to, size_t *len)
{
	*len = shared->addr_len[l->rank];
	memcpy(to, shared->addr[l->rank], *len);
	return 0;
}

void nm_rail_address_drop(const struct nm_link *l)
{
}

void nm_rail_link_dead(struct nm_rail *r, struct nm_link *l, int error)
{
	fprintf(stderr, "rank %d: lost its peer: %s\n", rank, strerror(-error));
	_exit(1);
}

/* --- patterns --- */

static void prepare(unsigned char *bytes, size_t length)
{
	memset(&xfer, 0, sizeof(xfer));
	xfer.link = &links[1 - rank];
	xfer.data = nm_data_flat(bytes, length);
	xfer.length = length;
	xfers_done = 0;
}

static void large_send(size_t length)
{
	prepare(out, length);
	if (rail.driver->xfer_offer != NULL)
		rail.driver->xfer_offer(&xfer);
	send_small((unsigned char *)&xfer.mine, sizeof(xfer.mine));
	xfer.peers = *await();
	rail.driver->xfer_send(&xfer);
	while (!xfers_done)
		rail.driver->poll(&rail, 32);
}

static void large_recv(size_t length)
{
	prepare(in, length);
	xfer.peers = *await();
	rail.driver->xfer_recv(&xfer);
	while (!xfers_done)
		rail.driver->poll(&rail, 32);
}

static void go(size_t length, bool large, bool send)
{
	if (send)
		out[length / 2]++; /* the sender has touched what it sends */
	if (send && large)
		large_send(length);
	else if (send)
		send_small(out, length);
	else if (large)
		large_recv(length);
	else
		await();
}

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* One line for each direction: nothing can be faster. */
static void flags(void)
{
	double best = 1e9;
	int n = 0;

	for (int b = 0; b < BATCHES; b++) {
		double start = now_us(), t;

		for (int i = 0; i < 50; i++) {
			n++;
			if (rank == 0)
				store_release(&shared->flag[0].word, n);
			while (load_acquire(&shared->flag[1 - rank].word) != n)
				;
			if (rank == 1)
				store_release(&shared->flag[1].word, n);
		}
		t = (now_us() - start) / 50 / 2;
		best = t < best ? t : best;
	}
	if (rank == 0)
		printf("bare flag            best %9.3f us\n", best);
}

static void latency(size_t length, bool large)
{
	int n = length <= 16384 ? 50 : length <= 262144 ? 10 : 2;
	static double t[BATCHES];

	for (int b = 0; b < BATCHES; b++) {
		double start = now_us();

		for (int i = 0; i < n; i++) {
			go(length, large, rank == 0);
			go(length, large, rank == 1);
		}
		t[b] = (now_us() - start) / n / 2;
	}
	qsort(t, BATCHES, sizeof(t[0]), compare);
	if (rank == 0)
		printf("%-8s %9zu B  best %9.3f  tenth %9.3f  median %9.3f us"
		       "  %6.1f GB/s\n",
		       large ? "transfer" : "packet", length, t[0],
		       t[BATCHES / 10], t[BATCHES / 2],
		       (double)length / t[BATCHES / 10] / 1e3);
	fflush(stdout);
}

static void idle(void)
{
	double best = 1e9;

	for (int b = 0; b < 50; b++) {
		double start = now_us(), t;

		for (int i = 0; i < 1000; i++)
			rail.driver->poll(&rail, 32);
		t = now_us() - start;
		best = t < best ? t : best;
	}
	if (rank == 0)
		printf("idle poll %.1f ns\n", best);
}

/* --- processes --- */

static void await_both(flag_t *flags)
{
	while (!load_acquire(&flags[1 - rank]))
		sched_yield();
}

static void start(const struct nm_driver *driver)
{
	static struct nm_boot_info info;
	static const int node[2];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(rank, &set);
	sched_setaffinity(0, sizeof(set), &set);
	info.rank = info.local_rank = rank;
	info.size = info.local_size = 2;
	info.node = node;
	rail.driver = driver;
	rail.rank = rank;
	rail.links = links;
	rail.nlinks = 2;
	if (driver->open(&rail, &info, NULL) < 0)
		_exit(1);
	shared->addr_len[rank] = rail.addr_len;
	memcpy(shared->addr[rank], rail.addr, rail.addr_len);
	store_release(&shared->ready[rank], 1);
	await_both(shared->ready);
	links[1 - rank].rail = &rail;
	links[1 - rank].rank = 1 - rank;
	if (driver->join != NULL &&
	    driver->join(&rail, shared->addr[0], shared->addr_len[0]) < 0)
		_exit(1);
	store_release(&shared->joined[rank], 1);
	await_both(shared->joined);
	if (driver->connect(&links[1 - rank]) < 0)
		_exit(1);
}

static void run(size_t largest, size_t smallest)
{
	size_t small = smallest ? 0 : rail.driver->max_small, length;

	out = malloc(LARGEST);
	in = malloc(LARGEST);
	memset(out, 1, LARGEST);
	memset(in, 1, LARGEST);
	go(HEAD, false, rank == 0); /* connects */
	go(HEAD, false, rank == 1);
	flags();
	idle();
	for (length = 8; length <= 64 && small > 0; length *= 8)
		latency(HEAD + length, false);
	for (length = 256; length + HEAD <= small && length <= largest;
	     length *= 4)
		latency(length + HEAD, false);
	for (length = smallest ? smallest : 8192; length <= largest;
	     length *= 2)
		latency(length, true);
	go(HEAD, false, rank == 0);
	go(HEAD, false, rank == 1);
}

int main(int argc, char **argv)
{
	bool tcp = argc > 1 && strcmp(argv[1], "tcp") == 0;
	size_t largest = argc > 2 ? strtoul(argv[2], NULL, 0) : LARGEST;
	size_t smallest = argc > 3 ? strtoul(argv[3], NULL, 0) : 0;
	pid_t child;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child = fork();
	if (shared == MAP_FAILED || child < 0)
		return 1;
	rank = child == 0;
	start(tcp ? &nm_driver_tcp : &nm_driver_shm);
	run(largest > LARGEST ? LARGEST : largest, smallest);
	rail.driver->disconnect(&links[1 - rank]);
	if (rank == 1)
		_exit(0);
	waitpid(child, NULL, 0);
	rail.driver->close(&rail);
	return 0;
}
