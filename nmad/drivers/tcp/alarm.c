/*
 * The alarm: who waits in the kernel learns of deadlines by a timer in the
 * epoll set. It is set to the earliest, never put off, and when it fires all
 * are looked at.
 */
#include "tcp.h"

#include <marcel/errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

enum {
	LATE_MS = 12, /* nm_tcp_now() is coarse: an alarm comes after it */
};

uint64_t nm_tcp_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000u + (uint64_t)ts.tv_nsec / 1000000u;
}

int nm_tcp_alarm_make(struct tcp *tcp)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &tcp->alarm };

	tcp->alarm.what = TCP_ALARM;
	tcp->alarm.fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (tcp->alarm.fd < 0 ||
	    epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, tcp->alarm.fd, &ev) < 0)
		return -errno;
	return 0;
}

static void alarm_set(struct tcp *tcp, uint64_t ms)
{
	struct itimerspec at = { .it_value.tv_sec = 0 };

	tcp->alarm_at = ms;
	if (ms != 0)
		ms += LATE_MS;
	at.it_value.tv_sec = (time_t)(ms / 1000);
	at.it_value.tv_nsec = (long)(ms % 1000) * 1000000;
	nm_rail_calls(tcp->rail, NM_CALL_LOOK);
	timerfd_settime(tcp->alarm.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

void nm_tcp_alarm_by(struct tcp *tcp, uint64_t ms)
{
	if (tcp->alarm_at == 0 || ms < tcp->alarm_at)
		alarm_set(tcp, ms);
}

void nm_tcp_alarm_clear(struct tcp *tcp)
{
	alarm_set(tcp, 0);
}
