/* nmad/sr/wait.c: several requests at once, waited for and tested. */
#include "../peers.h"

#include <errno.h>

enum { N = 100 };

static struct nm_sr_request ins[N], outs[N], *list[N], *nobody[N];
static size_t some[N];

/* Receives in every second place; messages come when they are sent. */
static void post(void)
{
	for (size_t i = 0; i < N; i++) {
		list[i] = i % 2 ? &ins[i] : NULL;
		if (i % 2)
			irecv_bytes(&ins[i], peer, (nm_tag_t)i, NM_TAG_EXACT,
				    NULL, 0);
	}
}

static void send(size_t i)
{
	isend_bytes(&outs[i], (nm_tag_t)i, NULL, 0, 0);
}

static void end_sends(void)
{
	for (size_t i = 1; i < N; i += 2)
		MUST(wait_for(&outs[i]).error == 0);
}

/* Those that are listed are complete, ascending; they leave the list. */
static size_t take(size_t n)
{
	for (size_t k = 0; k < n; k++) {
		MUST(some[k] < N && list[some[k]] != NULL);
		MUST(k == 0 || some[k] > some[k - 1]);
		MUST(wait_for(list[some[k]]).error == 0);
		list[some[k]] = NULL;
	}
	return n;
}

RULE(where_there_is_no_request_nobody_waits)
{
	MUST(nm_sr_wait_any(nobody, N) == N);
	MUST(nm_sr_wait_some(nobody, N, some) == 0);
	nm_sr_wait_all(nobody, N);
	MUST(nm_sr_test_any(nobody, N) == N);
	MUST(nm_sr_test_some(nobody, N, some) == 0);
	MUST(nm_sr_test_all(nobody, N) == 0);
	MUST(nm_sr_wait_any(NULL, 0) == 0);
	MUST(nm_sr_wait_some(NULL, 0, NULL) == 0);
	nm_sr_wait_all(NULL, 0);
	MUST(nm_sr_test_any(NULL, 0) == 0);
	MUST(nm_sr_test_some(NULL, 0, NULL) == 0);
	MUST(nm_sr_test_all(NULL, 0) == 0);
}

/* The peer sends only when all of these have been tested. */
RULE(tests_tell_what_is_complete_and_only_that)
{
	size_t left = N / 2;

	post();
	MUST(nm_sr_test_any(list, N) == N);
	MUST(nm_sr_test_some(list, N, some) == 0);
	MUST(nm_sr_test_all(list, N) == -EAGAIN);
	meet(1000);
	send(77);
	while (nm_sr_test_any(list, N) == N)
		;
	MUST(nm_sr_test_any(list, N) == 77);
	MUST(nm_sr_test_some(list, N, some) == 1 && some[0] == 77);
	left -= take(1);
	meet(1001);
	for (size_t i = 1; i < 77; i += 2)
		send(i);
	while (left > (N - 77) / 2)
		left -= take(nm_sr_test_some(list, N, some));
	meet(1002);
	for (size_t i = 79; i < N; i += 2)
		send(i);
	while (nm_sr_test_all(list, N) < 0)
		;
	MUST(take(nm_sr_test_some(list, N, some)) == left);
	end_sends();
}

RULE(waiting_for_all_ends_when_all_are_complete)
{
	post();
	for (size_t i = N; i-- > 0;)
		if (i % 2)
			send(i);
	nm_sr_wait_all(list, N);
	for (size_t i = 1; i < N; i += 2)
		MUST(nm_sr_is_complete(&ins[i]));
	MUST(nm_sr_test_all(list, N) == 0);
	MUST(nm_sr_wait_some(list, N, some) == N / 2);
	MUST(take(N / 2) == N / 2);
	end_sends();
}

/* Each is waited for before the next is sent: none is missed. */
RULE(waiting_for_some_ends_with_the_first)
{
	post();
	for (size_t i = N; i-- > 0;) {
		if (i % 2 == 0)
			continue;
		meet(1000 + (nm_tag_t)i);
		send(i);
		MUST(nm_sr_wait_some(list, N, some) == 1 && some[0] == i);
		take(1);
	}
	end_sends();
}

RULE(waiting_for_some_finds_all_in_the_end)
{
	size_t left = N / 2, n;

	post();
	for (size_t i = 1; i < N; i += 2)
		send(i);
	while (left > 0) {
		n = nm_sr_wait_some(list, N, some);
		MUST(n > 0 && n <= left);
		left -= take(n);
	}
	end_sends();
}
