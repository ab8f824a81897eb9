/*
 * Looking at a process: what its VPs do now, its threads and counters.
 *
 * It runs on meanwhile, and nothing in it knows. So words may be out of date,
 * and of different moments: what is counted is a sample, and a pointer may lead
 * nowhere any more, which only means that there is nothing to be seen.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "top.h"

enum {
	VPS_MAX = 4096,
	SLABS_MAX = 1 << 16,
	SLAB_MAX = 1 << 16, /* threads of one */
	QUEUES_MAX = 4096,
	GATES_MAX = 1 << 16,
};

const char *const count_names[COUNTS] = {
	[COUNT_SWITCHES] = "switches",
	[COUNT_PREEMPTED] = "preempted",
	[COUNT_CREATED] = "created",
	[COUNT_POLLS] = "polls",
	[COUNT_HITS] = "hits",
	[COUNT_INTERRUPTS] = "interrupts",
	[COUNT_SENDS] = "sends",
	[COUNT_RECEIVES] = "receives",
	[COUNT_UNEXPECTED] = "unexpected",
	[COUNT_PACKETS_OUT] = "packets out",
	[COUNT_PACKETS_IN] = "packets in",
};

/* --- single words --- */

/* What it does not say is of another version, and nothing more is looked at. */
static uintptr_t say(struct process *p, int lib, const char *name)
{
	uintptr_t value = 0;

	if (!offer_has(p->offers[lib], name, &value) && p->trouble[0] == '\0')
		snprintf(p->trouble, sizeof(p->trouble),
			 "it does not say where its \"%s\" is: its libraries "
			 "are of another version than this " MARCEL_TOP,
			 name);
	return value;
}

static bool read_word(const struct process *p, uintptr_t at, uint64_t *out)
{
	return remote_read(p->pid, at, out, sizeof(*out));
}

static bool read_int(const struct process *p, uintptr_t at, int *out)
{
	return remote_read(p->pid, at, out, sizeof(*out));
}

/*
 * A number of so many bytes in a record of the process's, whose length it says
 * as well as where the number is; 0: not there.
 */
static uint64_t field(struct process *p, int lib, const unsigned char *record,
		      uintptr_t bytes, const char *name, size_t width)
{
	uintptr_t offset = say(p, lib, name);
	uint64_t value = 0;

	if (width > bytes || offset > bytes - width)
		return 0;
	memcpy(&value, record + offset, width); /* little-endian, as we are */
	return value;
}

static uint64_t of_vp(struct process *p, const unsigned char *vp,
		      const char *name, size_t width)
{
	return field(p, LIB_MARCEL, vp, say(p, LIB_MARCEL, "vp.bytes"), name,
		     width);
}

/* --- VPs --- */

/* All of them, as they are in memory: *vps, to be freed. Their number, or 0. */
static int read_vps(struct process *p, unsigned char **vps)
{
	uintptr_t bytes = say(p, LIB_MARCEL, "vp.bytes");
	uint64_t first;
	int n;

	*vps = NULL;
	if (!read_int(p, say(p, LIB_MARCEL, "nvp"), &n) ||
	    !read_word(p, say(p, LIB_MARCEL, "vps"), &first) || first == 0 ||
	    n <= 0 || n > VPS_MAX || bytes == 0 || bytes > 1 << 16)
		return 0;
	*vps = malloc((size_t)n * bytes);
	if (*vps != NULL && remote_read(p->pid, first, *vps, (size_t)n * bytes))
		return n;
	free(*vps);
	*vps = NULL;
	return 0;
}

static bool have_room(struct process *p, int n)
{
	struct vp *vps;

	if (n == p->nvp)
		return true;
	vps = calloc((size_t)n, sizeof(*vps));
	if (vps == NULL)
		return false;
	free(p->vps);
	p->vps = vps;
	p->nvp = n;
	return true;
}

static enum vp_does does(struct process *p, const unsigned char *vp)
{
	uint64_t owner = of_vp(p, vp, "vp.owner", 8), self = 0;
	uintptr_t lwp = owner & ~say(p, LIB_MARCEL, "owner.marks");
	uint64_t asleep = of_vp(p, vp, "vp.asleep", 4);

	if (asleep == say(p, LIB_MARCEL, "asleep.asleep") ||
	    asleep == say(p, LIB_MARCEL, "asleep.watching"))
		return VP_SLEEPS;
	if (of_vp(p, vp, "vp.hooking", 4) & 1)
		return VP_LTASKS;
	if (lwp == 0 || owner & say(p, LIB_MARCEL, "owner.section") ||
	    !read_word(p, lwp + say(p, LIB_MARCEL, "lwp.self"), &self) ||
	    self == lwp + say(p, LIB_MARCEL, "lwp.idle"))
		return VP_IDLE;
	return VP_THREAD;
}

bool look_at_vps(struct process *p)
{
	uintptr_t bytes = say(p, LIB_MARCEL, "vp.bytes");
	unsigned char *vps;
	unsigned char bind = 0; /* a bool, if it is well */
	int n = read_vps(p, &vps);

	if (n == 0 || !have_room(p, n)) {
		free(vps);
		return false;
	}
	remote_read(p->pid, say(p, LIB_MARCEL, "bind"), &bind, sizeof(bind));
	for (int i = 0; i < n; i++) {
		const unsigned char *vp = vps + (size_t)i * bytes;

		p->vps[i].seen[does(p, vp)]++;
		p->vps[i].cpu = bind ? (int)of_vp(p, vp, "vp.cpu", 4) : -1;
	}
	free(vps);
	return true;
}

/* --- threads --- */

static void count_thread(struct process *p, const unsigned char *t,
			 struct threads *out)
{
	uintptr_t bytes = say(p, LIB_MARCEL, "thread.bytes");
	uint64_t state = field(p, LIB_MARCEL, t, bytes, "thread.state", 4);
	uint64_t flags = field(p, LIB_MARCEL, t, bytes, "thread.flags", 2);

	if (state == say(p, LIB_MARCEL, "state.ended"))
		out->ended++;
	else if (state == 0)
		return;
	else if (flags & say(p, LIB_MARCEL, "flags.foreign"))
		out->foreign++;
	else if (state == say(p, LIB_MARCEL, "state.parked"))
		out->blocked++;
	else
		out->ready++; /* or runs */
}

/* Who runs is as ready as others, so how many run is seen at the VPs. */
static void count_running(struct process *p, struct threads *out)
{
	uintptr_t bytes = say(p, LIB_MARCEL, "vp.bytes");
	unsigned char *vps;
	int n = read_vps(p, &vps);

	for (int i = 0; i < n; i++)
		out->running += does(p, vps + (size_t)i * bytes) == VP_THREAD;
	free(vps);
	if (out->running > out->ready)
		out->running = out->ready;
	out->ready -= out->running;
}

static bool count_threads(struct process *p)
{
	uintptr_t n = say(p, LIB_MARCEL, "slab.threads");
	uintptr_t bytes = say(p, LIB_MARCEL, "thread.bytes");
	struct threads sum = { 0 };
	unsigned char *threads;
	uint64_t slab, first;

	if (n == 0 || n > SLAB_MAX || bytes == 0 || bytes > 4096)
		return false;
	threads = malloc(n * bytes);
	if (threads == NULL ||
	    !read_word(p, say(p, LIB_MARCEL, "slabs"), &slab)) {
		free(threads);
		return false;
	}
	for (int i = 0; slab != 0 && i < SLABS_MAX; i++) {
		if (read_word(p, slab + say(p, LIB_MARCEL, "slab.thread"),
			      &first) &&
		    remote_read(p->pid, first, threads, n * bytes))
			for (uintptr_t t = 0; t < n; t++)
				count_thread(p, threads + t * bytes, &sum);
		if (!read_word(p, slab + say(p, LIB_MARCEL, "slab.next"),
			       &slab))
			break;
	}
	free(threads);
	count_running(p, &sum);
	p->threads = sum;
	return true;
}

/* --- counters --- */

static void count(struct process *p, enum count which, uint64_t n)
{
	p->counts[which] += n;
	p->known[which] = true;
}

static bool count_marcel(struct process *p)
{
	uintptr_t bytes = say(p, LIB_MARCEL, "vp.bytes");
	unsigned char *vps;
	uint64_t created = 0;
	int n = read_vps(p, &vps);

	for (int i = 0; i < n; i++) {
		const unsigned char *vp = vps + (size_t)i * bytes;

		count(p, COUNT_SWITCHES, of_vp(p, vp, "vp.picks", 4));
		count(p, COUNT_PREEMPTED, of_vp(p, vp, "vp.preempted", 4));
		count(p, COUNT_CREATED, of_vp(p, vp, "vp.created", 8));
	}
	free(vps);
	if (read_word(p, say(p, LIB_MARCEL, "created"), &created))
		count(p, COUNT_CREATED, created);
	return n > 0;
}

static void count_queue(struct process *p, uintptr_t queue)
{
	uint64_t n;
	int length;

	if (read_word(p, queue + say(p, LIB_PIOMAN, "queue.polls"), &n))
		count(p, COUNT_POLLS, n);
	if (read_word(p, queue + say(p, LIB_PIOMAN, "queue.hits"), &n))
		count(p, COUNT_HITS, n);
	if (read_int(p, queue + say(p, LIB_PIOMAN, "queue.length"), &length))
		p->ltasks += length;
}

/* From the leaves up, each once: those of VPs, and what is above them. */
static void count_pioman(struct process *p)
{
	uint64_t queues[QUEUES_MAX], queue, first, interrupts;
	int n = 0;

	p->ltasks = 0;
	for (int i = 0; i <= p->nvp; i++) {
		first = say(p, LIB_PIOMAN, "queues") + (uintptr_t)i * 8;
		if (!read_word(p, first, &queue))
			return;
		while (queue != 0 && n < QUEUES_MAX) {
			int known = 0;

			while (known < n && queues[known] != queue)
				known++;
			if (known < n)
				break;
			queues[n++] = queue;
			count_queue(p, queue);
			if (!read_word(
				    p,
				    queue + say(p, LIB_PIOMAN, "queue.parent"),
				    &queue))
				return;
		}
	}
	if (n > 0 &&
	    read_word(p, say(p, LIB_PIOMAN, "interrupts"), &interrupts))
		count(p, COUNT_INTERRUPTS, interrupts);
}

static void count_gates(struct process *p, uintptr_t core)
{
	uintptr_t bytes = say(p, LIB_NMAD, "gate.bytes");
	unsigned char *gates;
	uint64_t first;

	if (!read_word(p, core + say(p, LIB_NMAD, "core.gates"), &first) ||
	    first == 0 || p->size <= 0 || p->size > GATES_MAX || bytes == 0 ||
	    bytes > 65536)
		return;
	gates = malloc((size_t)p->size * bytes);
	if (gates != NULL &&
	    remote_read(p->pid, first, gates, (size_t)p->size * bytes))
		for (int i = 0; i < p->size; i++) {
			const unsigned char *gate = gates + (size_t)i * bytes;

			count(p, COUNT_PACKETS_OUT,
			      field(p, LIB_NMAD, gate, bytes, "gate.out", 8));
			count(p, COUNT_PACKETS_IN,
			      field(p, LIB_NMAD, gate, bytes, "gate.in", 8));
		}
	free(gates);
}

static void count_nmad(struct process *p)
{
	static const struct {
		const char *name;
		enum count count;
	} counters[] = {
		{ "core.sends", COUNT_SENDS },
		{ "core.receives", COUNT_RECEIVES },
		{ "core.unexpected", COUNT_UNEXPECTED },
	};
	uint64_t core, n;
	int pending, rank, size;

	if (!read_word(p, say(p, LIB_NMAD, "core"), &core) || core == 0 ||
	    !read_int(p, core + say(p, LIB_NMAD, "core.rank"), &rank) ||
	    !read_int(p, core + say(p, LIB_NMAD, "core.size"), &size) ||
	    size <= 0 || rank < 0 || rank >= size)
		return;
	p->rank = rank;
	p->size = size;
	if (read_int(p, core + say(p, LIB_NMAD, "core.pending"), &pending))
		p->pending = pending;
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		if (read_word(p, core + say(p, LIB_NMAD, counters[i].name), &n))
			count(p, counters[i].count, n);
	count_gates(p, core);
}

bool look_at_counts(struct process *p, double now)
{
	memcpy(p->last, p->counts, sizeof(p->last));
	memset(p->counts, 0, sizeof(p->counts));
	memset(p->known, 0, sizeof(p->known));
	p->rank = p->size = -1;
	p->pending = 0;
	p->before = p->at;
	p->at = now;
	if (!count_marcel(p) || !count_threads(p))
		return false;
	if (p->offers[LIB_PIOMAN] != NULL)
		count_pioman(p);
	if (p->offers[LIB_NMAD] != NULL)
		count_nmad(p);
	return p->trouble[0] == '\0';
}
