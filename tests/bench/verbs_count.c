/*
 * What a process asks of its RDMA adapters and of the kernel, counted from
 * outside: an audit library of the dynamic linker (rtld-audit(7)). LD_PRELOAD
 * would miss who finds libibverbs by dlopen() and dlsym(), as ours does.
 *
 *   VERBS_COUNT=PREFIX LD_AUDIT=libverbs_count.so PROGRAM
 *
 * A process that has opened a device writes lines "name count" to PREFIX.PID
 * when it exits. What posts and polls are inline functions, which go through
 * the table in the context of the device: ours stand there in place of the
 * driver's. Not seen: ibv_wr_start() and ibv_start_poll(), with what follows
 * them.
 *
 * Copies are calls of memcpy, memmove and mempcpy from one library to another
 * of VERBS_COUNT_COPY bytes (64) or more, where the linker binds them for calls
 * (R_*_JUMP_SLOT). Those that a compiler has written out are not seen, nor
 * those of libc (read, write) and of the kernel; those of libibverbs and its
 * drivers, which an adapter does, are left out.
 *
 * VERBS_COUNT_CALLS=write,poll...: also system calls of all threads, in all
 * ("calls") and by name. VERBS_COUNT_MARK=FUNCTION: what there was whenever the
 * program called it stands there too, each behind a line "mark N"; it has six
 * arguments at most, none of floating point.
 *
 * VERBS_COUNT_NAP_US=N: who has polled 16 times in vain sleeps so long before
 * it may poll again; these calls are not counted. In a guest, who spins takes
 * the processor from those who carry the message.
 *
 * VERBS_COUNT_IPV4=1: datagrams of soft-RoCE say that they are IPv4's, where
 * Mellanox's adapters do, in a field that rxe leaves 0. UCX drops them if not.
 *
 * It has a libc of its own, so functions of the program's are called only by
 * the addresses that the linker says.
 */
#include <fcntl.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include <base/atomic.h>
#include <base/compiler.h>

#undef ibv_reg_mr

#define COUNTERS(X)                                                            \
	X(post_send) /* calls, each a doorbell */                              \
	X(send_wrs)  /* work requests in them, of all kinds */                 \
	X(sends)     /* of these IBV_WR_SEND... */                             \
	X(writes)    /* IBV_WR_RDMA_WRITE... */                                \
	X(reads)     /* IBV_WR_RDMA_READ */                                    \
	X(inlined)   /* with the data in the work request */                   \
	X(inlined_bytes)                                                       \
	X(signaled) /* asking for a completion each */                         \
	X(post_recv)                                                           \
	X(recv_wrs)                                                            \
	X(post_srq_recv)                                                       \
	X(srq_recv_wrs)                                                        \
	X(poll_cq)       /* calls */                                           \
	X(poll_cq_empty) /* of these with nothing found */                     \
	X(naps)                                                                \
	X(completions)                                                         \
	X(failed) /* of these not IBV_WC_SUCCESS */                            \
	X(req_notify_cq)                                                       \
	X(get_cq_event)                                                        \
	X(reg_mr)                                                              \
	X(reg_mr_bytes)                                                        \
	X(dereg_mr)                                                            \
	X(copies)                                                              \
	X(copied_bytes)

enum counter {
#define X(name) C_##name,
	COUNTERS(X)
#undef X
};

static const char *const names[] = {
#define X(name) #name,
	COUNTERS(X)
#undef X
};

static ATOMIC(uint64_t) counts[BASE_ARRAY_LEN(names)];

static struct {
	const char *prefix; /* NULL: nothing is counted */
	const char *mark;   /* NULL: none */
	size_t copy;
	bool ipv4;
	bool opened;
	struct timespec nap;      /* 0: none */
	ATOMIC(unsigned) in_vain; /* a: polls, one after the other */
} count;

enum { IN_VAIN = 16 };

/* With a UDP header (8), over IPv4 (2). */
enum { PACKET_IPV4 = 8 | 2 };

static void add(enum counter c, uint64_t n)
{
	fetch_add_relaxed(&counts[c], n);
}

/* --- The table of a context --- */

/* The driver's own; one kind of adapter in a process. */
static struct ibv_context_ops driver;

static int count_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
			   struct ibv_send_wr **bad)
{
	add(C_post_send, 1);
	for (struct ibv_send_wr *w = wr; w != NULL; w = w->next) {
		add(C_send_wrs, 1);
		add(C_sends, w->opcode == IBV_WR_SEND ||
				     w->opcode == IBV_WR_SEND_WITH_IMM);
		add(C_writes, w->opcode == IBV_WR_RDMA_WRITE ||
				      w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM);
		add(C_reads, w->opcode == IBV_WR_RDMA_READ);
		add(C_signaled, (w->send_flags & IBV_SEND_SIGNALED) != 0);
		if ((w->send_flags & IBV_SEND_INLINE) == 0)
			continue;
		add(C_inlined, 1);
		for (int i = 0; i < w->num_sge; i++)
			add(C_inlined_bytes, w->sg_list[i].length);
	}
	return driver.post_send(qp, wr, bad);
}

static void add_recvs(enum counter c, const struct ibv_recv_wr *wr)
{
	for (; wr != NULL; wr = wr->next)
		add(c, 1);
}

static int count_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			   struct ibv_recv_wr **bad)
{
	add(C_post_recv, 1);
	add_recvs(C_recv_wrs, wr);
	return driver.post_recv(qp, wr, bad);
}

static int count_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			       struct ibv_recv_wr **bad)
{
	add(C_post_srq_recv, 1);
	add_recvs(C_srq_recv_wrs, wr);
	return driver.post_srq_recv(srq, wr, bad);
}

/* Nothing was found. */
static void nap(void)
{
	if (count.nap.tv_nsec == 0 ||
	    fetch_add_relaxed(&count.in_vain, 1) < IN_VAIN)
		return;
	add(C_naps, 1);
	syscall(SYS_nanosleep, &count.nap, NULL);
}

static int count_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int found = driver.poll_cq(cq, n, wc);

	add(C_poll_cq, 1);
	add(C_poll_cq_empty, found == 0);
	if (found == 0)
		nap();
	else
		store_relaxed(&count.in_vain, 0);
	for (int i = 0; i < found; i++) {
		add(C_completions, 1);
		add(C_failed, wc[i].status != IBV_WC_SUCCESS);
		if (count.ipv4 && (wc[i].wc_flags & IBV_WC_GRH) != 0)
			wc[i].sl = PACKET_IPV4;
	}
	return found;
}

static int count_req_notify_cq(struct ibv_cq *cq, int solicited)
{
	add(C_req_notify_cq, 1);
	return driver.req_notify_cq(cq, solicited);
}

/* --- Functions of libibverbs and libc --- */

static struct {
	struct ibv_context *(*open_device)(struct ibv_device *);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
	struct ibv_mr *(*reg_mr_iova)(struct ibv_pd *, void *, size_t, uint64_t,
				      int);
	struct ibv_mr *(*reg_mr_iova2)(struct ibv_pd *, void *, size_t,
				       uint64_t, unsigned);
	int (*dereg_mr)(struct ibv_mr *);
	int (*get_cq_event)(struct ibv_comp_channel *, struct ibv_cq **,
			    void **);
	void *(*memcpy)(void *, const void *, size_t);
	void *(*memmove)(void *, const void *, size_t);
	void *(*mempcpy)(void *, const void *, size_t);
} real;

static struct ibv_context *count_open_device(struct ibv_device *device)
{
	struct ibv_context *context = real.open_device(device);

	if (context == NULL)
		return NULL;
	if (count.opened && driver.post_send != context->ops.post_send) {
		fputs("verbs_count: adapters of two kinds\n", stderr);
		abort();
	}
	count.opened = true;
	driver = context->ops;
	context->ops.post_send = count_post_send;
	context->ops.post_recv = count_post_recv;
	context->ops.post_srq_recv = count_post_srq_recv;
	context->ops.poll_cq = count_poll_cq;
	context->ops.req_notify_cq = count_req_notify_cq;
	return context;
}

static void add_reg(size_t bytes)
{
	add(C_reg_mr, 1);
	add(C_reg_mr_bytes, bytes);
}

static struct ibv_mr *count_reg_mr(struct ibv_pd *pd, void *p, size_t bytes,
				   int access)
{
	add_reg(bytes);
	return real.reg_mr(pd, p, bytes, access);
}

static struct ibv_mr *count_reg_mr_iova(struct ibv_pd *pd, void *p,
					size_t bytes, uint64_t iova, int access)
{
	add_reg(bytes);
	return real.reg_mr_iova(pd, p, bytes, iova, access);
}

static struct ibv_mr *count_reg_mr_iova2(struct ibv_pd *pd, void *p,
					 size_t bytes, uint64_t iova,
					 unsigned access)
{
	add_reg(bytes);
	return real.reg_mr_iova2(pd, p, bytes, iova, access);
}

static int count_dereg_mr(struct ibv_mr *mr)
{
	add(C_dereg_mr, 1);
	return real.dereg_mr(mr);
}

static int count_get_cq_event(struct ibv_comp_channel *channel,
			      struct ibv_cq **cq, void **context)
{
	int failed = real.get_cq_event(channel, cq, context);

	add(C_get_cq_event, failed == 0);
	return failed;
}

static void add_copy(size_t bytes)
{
	if (bytes >= count.copy) {
		add(C_copies, 1);
		add(C_copied_bytes, bytes);
	}
}

static void *count_memcpy(void *to, const void *from, size_t bytes)
{
	add_copy(bytes);
	return real.memcpy(to, from, bytes);
}

static void *count_memmove(void *to, const void *from, size_t bytes)
{
	add_copy(bytes);
	return real.memmove(to, from, bytes);
}

static void *count_mempcpy(void *to, const void *from, size_t bytes)
{
	add_copy(bytes);
	return real.mempcpy(to, from, bytes);
}

/* --- System calls --- */

enum { CALLS_MAX = 64, PATH_BYTES = 4096 };

static struct {
	int n;
	const char *name[CALLS_MAX];
	int fd[CALLS_MAX];
} calls;

__attribute__((noreturn)) static void fail(const char *what)
{
	fprintf(stderr, "verbs_count: %s: %m\n", what);
	abort();
}

/* Of this thread and all that come. */
static void count_call(const char *event, const char *name)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.inherit = 1,
	};
	char path[PATH_BYTES], id[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s%s/id",
		 event, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, id, sizeof(id) - 1) <= 0)
		fail(path);
	close(fd);
	attr.config = strtoull(id, NULL, 10);
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
			  PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		fail(path);
	calls.name[calls.n] = name;
	calls.fd[calls.n++] = fd;
}

static void count_calls(const char *names)
{
	char *rest = strdup(names), *name;

	count_call("raw_syscalls/sys_enter", "");
	while (rest != NULL && (name = strsep(&rest, ",")) != NULL &&
	       calls.n < CALLS_MAX)
		count_call("syscalls/sys_enter_", name);
}

/* --- What there was at a moment --- */

enum { MARKS_MAX = 256 };

struct moment {
	uint64_t counts[BASE_ARRAY_LEN(names)];
	uint64_t calls[CALLS_MAX];
};

static struct {
	int n;
	struct moment at[MARKS_MAX];
} marks;

static void look(struct moment *m)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(names); i++)
		m->counts[i] = load_relaxed(&counts[i]);
	for (int i = 0; i < calls.n; i++)
		if (read(calls.fd[i], &m->calls[i], sizeof(m->calls[i])) < 0)
			fail(calls.name[i]);
	if (calls.n > 0)
		m->calls[0] -= m->counts[C_naps];
}

static long (*marked)(long, long, long, long, long, long);

/* Of the program's main thread. */
static long mark(long a, long b, long c, long d, long e, long f)
{
	if (marks.n < MARKS_MAX)
		look(&marks.at[marks.n++]);
	return marked(a, b, c, d, e, f);
}

static void write_moment(int fd, const struct moment *m)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(names); i++)
		dprintf(fd, "%s %llu\n", names[i],
			(unsigned long long)m->counts[i]);
	for (int i = 0; i < calls.n; i++)
		dprintf(fd, "calls%s%s %llu\n", i > 0 ? "_" : "", calls.name[i],
			(unsigned long long)m->calls[i]);
}

__attribute__((destructor)) static void write_all(void)
{
	static struct moment end;
	char path[PATH_BYTES];
	int fd;

	if (!count.opened)
		return;
	look(&end);
	snprintf(path, sizeof(path), "%s.%d", count.prefix, (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd < 0)
		fail(path);
	for (int i = 0; i < marks.n; i++) {
		dprintf(fd, "mark %d\n", i);
		write_moment(fd, &marks.at[i]);
	}
	dprintf(fd, "mark %d\n", marks.n);
	write_moment(fd, &end);
	close(fd);
}

/* --- What the linker asks --- */

enum { OTHER, VERBS, LIBC, PROGRAM }; /* whose functions they are */

static const struct {
	uintptr_t whose;
	const char *name;
	void *mine;
	void *real; /* where its address goes */
} functions[] = {
	{ VERBS, "ibv_open_device", count_open_device, &real.open_device },
	{ VERBS, "ibv_reg_mr", count_reg_mr, &real.reg_mr },
	{ VERBS, "ibv_reg_mr_iova", count_reg_mr_iova, &real.reg_mr_iova },
	{ VERBS, "ibv_reg_mr_iova2", count_reg_mr_iova2, &real.reg_mr_iova2 },
	{ VERBS, "ibv_dereg_mr", count_dereg_mr, &real.dereg_mr },
	{ VERBS, "ibv_get_cq_event", count_get_cq_event, &real.get_cq_event },
	{ LIBC, "memcpy", count_memcpy, &real.memcpy },
	{ LIBC, "memmove", count_memmove, &real.memmove },
	{ LIBC, "mempcpy", count_mempcpy, &real.mempcpy },
};

BASE_PUBLIC unsigned la_version(unsigned version)
{
	const char *copy = getenv("VERBS_COUNT_COPY");
	const char *ipv4 = getenv("VERBS_COUNT_IPV4");
	const char *us = getenv("VERBS_COUNT_NAP_US");
	const char *names_of_calls = getenv("VERBS_COUNT_CALLS");

	count.prefix = getenv("VERBS_COUNT");
	if (count.prefix == NULL)
		return 0;
	if (names_of_calls != NULL)
		count_calls(names_of_calls);
	count.mark = getenv("VERBS_COUNT_MARK");
	count.nap.tv_nsec = us != NULL ? strtol(us, NULL, 10) * 1000 : 0;
	count.ipv4 = ipv4 != NULL && strcmp(ipv4, "1") == 0;
	count.copy = copy != NULL ? strtoul(copy, NULL, 10) : 64;
	return LAV_CURRENT;
}

BASE_PUBLIC unsigned la_objopen(struct link_map *map, Lmid_t space,
				uintptr_t *cookie)
{
	const char *slash = strrchr(map->l_name, '/');
	const char *name = slash != NULL ? slash + 1 : map->l_name;

	if (map->l_name[0] == '\0')
		*cookie = PROGRAM;
	else if (strcmp(name, "libibverbs.so.1") == 0 ||
		 strstr(name, "-rdmav") != NULL)
		*cookie = VERBS;
	else
		*cookie = strcmp(name, "libc.so.6") == 0 ? LIBC : OTHER;
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

BASE_PUBLIC uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index,
				   uintptr_t *from, uintptr_t *to,
				   unsigned *flags, const char *name)
{
	if (*from == PROGRAM && count.mark != NULL &&
	    strcmp(name, count.mark) == 0) {
		memcpy(&marked, &symbol->st_value, sizeof(marked));
		return (uintptr_t)mark;
	}
	if (*from == VERBS)
		return symbol->st_value;
	for (size_t i = 0; i < BASE_ARRAY_LEN(functions); i++) {
		if (functions[i].whose != *to ||
		    strcmp(functions[i].name, name) != 0)
			continue;
		memcpy(functions[i].real, &symbol->st_value, sizeof(void *));
		return (uintptr_t)functions[i].mine;
	}
	return symbol->st_value;
}
