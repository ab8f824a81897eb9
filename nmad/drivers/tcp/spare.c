/*
 * The spare descriptor. A call stays unheard for want of one, and nobody but us
 * could tell the caller, who would wait as for one that computes. So we keep a
 * file in reserve, accept in its place and end the connection; what is left of
 * that is the next spare.
 */
#include "tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/diag.h>

int nm_tcp_spare_make(struct tcp *tcp)
{
	tcp->spare = eventfd(0, EFD_CLOEXEC);
	return tcp->spare < 0 ? -errno : 0;
}

/*
 * No number is in tcp->spare while it is not ours: a child of fork would close
 * whatever has got it.
 */
bool nm_tcp_turn_away(struct tcp *tcp, int error)
{
	int fd = tcp->spare;

	if (fd < 0)
		return false;
	tcp->spare = -1;
	close(fd);
	fd = accept4(tcp->listener.fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0) {
		bool nobody = errno == EAGAIN;

		nm_tcp_spare_make(tcp);
		return nobody;
	}
	tcp->spare = fd;
	if (!tcp->was_short) /* said before the caller can end the job */
		base_warn("nmad", "tcp: a call cannot be taken: %s",
			  strerror(error));
	tcp->was_short = true;
	shutdown(fd, SHUT_RDWR);
	return true;
}
