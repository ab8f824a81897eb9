/*
 * Memory straight from the kernel, and guard pages.
 */
#include "../os.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Linux 6.13; older headers do not have it. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

size_t os_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

void *os_map(size_t bytes)
{
	int saved = errno;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved;
	return p == MAP_FAILED ? NULL : p;
}

void *os_map_stacks(size_t bytes)
{
	int saved = errno;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK,
		       -1, 0);

	if (p != MAP_FAILED)
		madvise(p, bytes, MADV_NOHUGEPAGE); /* a hint; may fail */
	errno = saved;
	return p == MAP_FAILED ? NULL : p;
}

void os_unmap(void *base, size_t bytes)
{
	int saved = errno;

	munmap(base, bytes);
	errno = saved;
}

void os_release(void *base, size_t bytes)
{
	int saved = errno;

	madvise(base, bytes, MADV_DONTNEED); /* else it stays: no harm */
	errno = saved;
}

int os_guard_install(void *base, size_t bytes)
{
	return madvise(base, bytes, MADV_GUARD_INSTALL) < 0 ? -errno : 0;
}

int os_guard_protect(void *base, size_t bytes)
{
	return mprotect(base, bytes, PROT_NONE) < 0 ? -errno : 0;
}

/*
 * Some kernels answer 0 to advice that they do not know. A guard is believed
 * in when the kernel itself cannot read from it.
 */
bool os_guard_probe(void)
{
	size_t page = os_page_size();
	int saved = errno, fds[2];
	char *p = os_map(page);
	bool works = false;

	if (p == NULL)
		return false;
	if (pipe2(fds, O_CLOEXEC) == 0) {
		works = os_guard_install(p, page) == 0 &&
			write(fds[1], p, 1) < 0 && errno == EFAULT;
		close(fds[0]);
		close(fds[1]);
	}
	os_unmap(p, page);
	errno = saved;
	return works;
}

void os_stack_bounds(char **low, size_t *bytes)
{
	pthread_attr_t attr;
	void *base;

	*low = NULL;
	*bytes = 0;
	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return;
	if (pthread_attr_getstack(&attr, &base, bytes) == 0)
		*low = base;
	pthread_attr_destroy(&attr);
}
