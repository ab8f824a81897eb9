/*
 * The kernel tells what happens to mappings that are registered with a
 * userfaultfd, whoever does it: munmap(), mmap() over it, mremap(), brk(),
 * madvise() with MADV_DONTNEED, MADV_FREE or MADV_REMOVE, also from inside
 * libc. Of the ways to register we take that for write protection, and never
 * protect anything: so no access ever faults because of us, and nothing but
 * those events is told. (Registered for missing pages, the first access after
 * MADV_DONTNEED would wait for us.)
 *
 * Who unmaps waits in the kernel until somebody has read his event: that is a
 * thread of its own, which does nothing else and calls nothing that could wait
 * for him in turn (free() may unmap with libc's lock held). Whoever reads an
 * event tells it under the lock under which it was read.
 *
 * The event comes when the mapping is gone already, so that another thread may
 * have mapped something else there, and use it, before anybody could be told.
 * But the kernel counts: it raises `mmap_changing` of the userfaultfd while it
 * holds the lock on all mappings, before anybody else can map there; and lowers
 * it when who unmapped has gone on after his event was read. While it is not
 * zero, ioctls that would change pages answer EAGAIN, and that before they look
 * at what they are asked. So we ask for nothing (ask()). If the answer is that
 * nothing is no range, then all that was unmapped before we asked has been
 * read, hence is told by who has the lock next. trial() sees that the kernel
 * does so.
 *
 *   who                          raises, before        lowers, when read
 *   munmap, mmap over it, brk,   the mappings go       they are gone
 *   mremap, the old place
 *   mremap, the move itself      the lock is let go    it is moved
 *   madvise                      the pages go          *before* the pages go
 *
 * So after an madvise() was told the old pages are there for a little while.
 * What is registered then is stale and is never told again. But it covers only
 * pages that its user names (nothing is registered because it lies between or
 * beside, reg.c), and who sends or receives what another thread gives back at
 * that moment has lost it in any case.
 *
 * Not told: MADV_GUARD_INSTALL, and holes made in a file by its descriptor
 * (fallocate(), ftruncate()) rather than by MADV_REMOVE.
 *
 * Each range watched may make one mapping three; the kernel joins them again
 * when it is not watched any more. As with MADV_DONTFORK, mremap() of a range
 * that is watched in part is refused: EFAULT (realloc() then copies).
 *
 * A forked child has nothing watched, and no thread: the kernel takes its
 * mappings out, we close the descriptor.
 */
#include "unmap.h"

#include <marcel/errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/diag.h>

/* Since Linux 5.11; only accesses from user mode could wait for us. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
/* Since Linux 5.18; nothing we use, but `mmap_changing` counts by then. */
#ifndef UFFD_FEATURE_EXACT_ADDRESS
#define UFFD_FEATURE_EXACT_ADDRESS (1 << 11)
#endif
/* Since Linux 6.7; then mappings of files can be registered, too. */
#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif

enum { EVENTS = 16, STACK = 128 << 10, HUGE = 2 << 20 };

struct base_spin nm_verbs_unmap_lock = BASE_SPIN_INIT(BASE_RANK_LEAF);

/* Who opens, closes, registers or takes that back: one at a time. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static struct {
	/* -: const while open  c: changing  l: nm_verbs_unmap_lock */
	int fd;                    /* -: -1: closed */
	int stop;                  /* -: eventfd: the thread is to end */
	pthread_t thread;          /* c: */
	unsigned users;            /* c: */
	struct base_list watchers; /* l: */
} unmap = { .fd = -1, .stop = -1 };

/* --- reading --- */

static void tell(uintptr_t begin, uintptr_t end)
{
	base_list_for_each (n, &unmap.watchers) {
		struct verbs_watcher *w =
			container_of(n, struct verbs_watcher, on);

		w->gone(w, begin, end);
	}
}

static void tell_locked(const struct uffd_msg *m)
{
	if (m->event == UFFD_EVENT_REMAP)
		tell(m->arg.remap.from, m->arg.remap.from + m->arg.remap.len);
	else if (m->event == UFFD_EVENT_UNMAP || m->event == UFFD_EVENT_REMOVE)
		tell(m->arg.remove.start, m->arg.remove.end);
}

static void read_and_tell(void)
{
	struct uffd_msg m[EVENTS];
	ssize_t n;

	base_spin_lock(&nm_verbs_unmap_lock);
	n = read(unmap.fd, m, sizeof(m)); /* never waits */
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(*m); i++)
		tell_locked(&m[i]);
	base_spin_unlock(&nm_verbs_unmap_lock);
}

static void *reader(void *arg)
{
	struct pollfd p[] = { { .fd = unmap.fd, .events = POLLIN },
			      { .fd = unmap.stop, .events = POLLIN } };

	(void)arg;
	while (p[1].revents == 0)
		if (poll(p, 2, -1) > 0 && p[0].revents != 0)
			read_and_tell();
	return NULL;
}

/* EINVAL: all events have been read; EAGAIN: not all. */
static int ask(void)
{
	struct uffdio_writeprotect nothing = { { 0, 0 }, 0 };

	return ioctl(unmap.fd, UFFDIO_WRITEPROTECT, &nothing) < 0 ? errno : 0;
}

bool nm_verbs_unmap_is_told(unsigned turns)
{
	unsigned turn = 0;

	for (;;) {
		int answer = ask();

		if (answer == EINVAL)
			return true;
		if (answer != EAGAIN || turns-- == 0)
			return false;
		read_and_tell();
		base_spin_turn(&turn);
	}
}

/* --- what is watched --- */

static int watch(uintptr_t begin, uintptr_t end)
{
	struct uffdio_register r = { .range = { begin, end - begin },
				     .mode = UFFDIO_REGISTER_MODE_WP };

	return ioctl(unmap.fd, UFFDIO_REGISTER, &r) < 0 ? -errno : 0;
}

/*
 * Of huge pages (MAP_HUGETLB) only whole ones can be, and stay so until they
 * are unmapped, as who does not want them any more names a part again.
 */
int nm_verbs_unmap_watch(uintptr_t begin, uintptr_t end)
{
	int rc = -ENOTSUP;

	pthread_mutex_lock(&changing);
	if (unmap.fd >= 0)
		rc = watch(begin, end);
	if (rc == -EINVAL)
		rc = watch(begin & -(uintptr_t)HUGE,
			   (end + HUGE - 1) & -(uintptr_t)HUGE);
	pthread_mutex_unlock(&changing);
	return rc;
}

/* How far what is wanted reaches; or `at`, then *next is where more begins. */
static uintptr_t wanted(uintptr_t at, uintptr_t *next)
{
	uintptr_t reach = at;

	base_spin_lock(&nm_verbs_unmap_lock);
	base_list_for_each (n, &unmap.watchers) {
		struct verbs_watcher *w =
			container_of(n, struct verbs_watcher, on);
		uintptr_t its = w->wants(w, at, next);

		if (reach < its)
			reach = its;
	}
	base_spin_unlock(&nm_verbs_unmap_lock);
	return reach;
}

/*
 * Who begins to want a piece after we have looked registers it after us. What
 * is not mapped any more is refused, without harm.
 */
void nm_verbs_unmap_unwatch(uintptr_t begin, uintptr_t end)
{
	pthread_mutex_lock(&changing);
	for (uintptr_t at = begin; unmap.fd >= 0 && at < end;) {
		uintptr_t next = end, reach = wanted(at, &next);

		if (reach == at) {
			struct uffdio_range r = { at, next - at };

			ioctl(unmap.fd, UFFDIO_UNREGISTER, &r);
			reach = next;
		}
		at = reach;
	}
	pthread_mutex_unlock(&changing);
}

/* --- opening --- */

/* Runs with all signals blocked. -errno */
static int start_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	rc = pthread_create(thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	if (rc == EINVAL) /* thread-local memory alone needs more */
		rc = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -rc;
}

/* Of a page that is unmapped meanwhile: NULL, or what the kernel does not do */
static void *judge(void *page)
{
	struct pollfd p[] = { { .fd = unmap.fd, .events = POLLIN },
			      { .fd = unmap.stop, .events = POLLIN } };
	struct uffd_msg m;
	bool waits, tells;

	while (poll(p, 2, -1) < 0)
		;
	waits = ask() == EAGAIN;
	tells = read(unmap.fd, &m, sizeof(m)) == sizeof(m) &&
		m.event == UFFD_EVENT_UNMAP &&
		m.arg.remove.start == (uintptr_t)page;
	while (poll(&p[1], 1, -1) < 0)
		; /* the thread that unmapped goes on */
	return waits && tells && ask() == EINVAL ? NULL : page;
}

/* Does all of it work? -errno */
static int trial(void)
{
	const uint64_t one = 1;
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	pthread_t thread;
	uint64_t told;
	void *page, *bad;
	int rc;

	page = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -errno;
	rc = watch((uintptr_t)page, (uintptr_t)page + bytes);
	if (rc == 0)
		rc = start_thread(&thread, judge, page);
	if (rc < 0) {
		struct uffdio_range r = { (uintptr_t)page, bytes };

		ioctl(unmap.fd, UFFDIO_UNREGISTER, &r);
		munmap(page, bytes);
		return rc;
	}
	munmap(page, bytes);
	if (write(unmap.stop, &one, sizeof(one)) < 0)
		rc = -errno;
	pthread_join(thread, &bad);
	if (read(unmap.stop, &told, sizeof(told)) < 0)
		rc = -errno;
	return bad != NULL ? -ENOTSUP : rc;
}

static int open_fd(void)
{
	const int flags = O_CLOEXEC | O_NONBLOCK;
	struct uffdio_api api = { .api = UFFD_API };
	uint64_t events = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP |
			  UFFD_FEATURE_EVENT_REMOVE;
	int fd, asked;

	/* The first descriptor is only asked what there is. */
	asked = (int)syscall(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY);
	if (asked < 0)
		return -errno;
	if (ioctl(asked, UFFDIO_API, &api) < 0 ||
	    (api.features & UFFD_FEATURE_EXACT_ADDRESS) == 0 ||
	    (api.features & events) != events) {
		close(asked);
		return -ENOTSUP;
	}
	close(asked);
	events |= api.features & UFFD_FEATURE_WP_ASYNC;
	fd = (int)syscall(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY);
	if (fd < 0)
		return -errno;
	api = (struct uffdio_api){ .api = UFFD_API, .features = events };
	if (ioctl(fd, UFFDIO_API, &api) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

static void close_fds(void)
{
	close(unmap.stop);
	close(unmap.fd); /* nobody waits, and nothing is watched, any more */
	unmap.stop = unmap.fd = -1;
}

/* The only thread of a child, which has mappings of its own. */
static void in_child(void)
{
	base_spin_init(&nm_verbs_unmap_lock, BASE_RANK_LEAF);
	pthread_mutex_init(&changing, NULL);
	if (unmap.fd >= 0)
		close_fds();
}

static int start(void)
{
	static bool learns;
	int rc;

	if (!learns && pthread_atfork(NULL, NULL, in_child) != 0)
		return -ENOMEM;
	learns = true;
	unmap.fd = open_fd();
	if (unmap.fd < 0) {
		rc = unmap.fd;
		unmap.fd = -1;
		return rc;
	}
	unmap.stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = unmap.stop < 0 ? -errno : trial();
	if (rc == 0)
		rc = start_thread(&unmap.thread, reader, NULL);
	if (rc < 0) {
		close_fds();
		return rc;
	}
	pthread_setname_np(unmap.thread, "nmad-unmap");
	return 0;
}

int nm_verbs_unmap_open(struct verbs_watcher *w, bool loud)
{
	int rc = 0;

	pthread_mutex_lock(&changing);
	if (unmap.users == 0) {
		base_list_init(&unmap.watchers);
		rc = start();
	} else if (unmap.fd < 0) {
		rc = -ENOTSUP; /* in a forked child */
	}
	if (rc == 0) {
		unmap.users++;
		base_spin_lock(&nm_verbs_unmap_lock);
		base_list_push_back(&unmap.watchers, &w->on);
		base_spin_unlock(&nm_verbs_unmap_lock);
	}
	pthread_mutex_unlock(&changing);
	if (rc < 0 && loud)
		base_warn("nmad",
			  "ibverbs: registered memory is not kept, as the "
			  "kernel does not tell when it is unmapped: "
			  "userfaultfd: %s",
			  strerror(-rc));
	return rc;
}

void nm_verbs_unmap_close(struct verbs_watcher *w)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&changing);
	base_spin_lock(&nm_verbs_unmap_lock);
	base_list_remove(&w->on);
	base_spin_unlock(&nm_verbs_unmap_lock);
	if (--unmap.users == 0 && unmap.fd >= 0) {
		while (write(unmap.stop, &one, sizeof(one)) < 0)
			;
		pthread_join(unmap.thread, NULL);
		close_fds();
	}
	pthread_mutex_unlock(&changing);
}
