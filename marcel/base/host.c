/*
 * Which host this is.
 */
#include <base/host.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <base/compiler.h>

BASE_PUBLIC void base_host_id(char id[BASE_HOST_ID])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char host[BASE_HOST_ID] = { 0 };
	ssize_t n = -1;

	if (fd >= 0) {
		n = read(fd, host, sizeof(host) - 1);
		close(fd);
	}
	if (n <= 0)
		gethostname(host, sizeof(host) - 1);
	memcpy(id, host, sizeof(host));
}
