/* nmad/core/session.c: sessions by name, between processes. */
#include "../peers.h"

#include <errno.h>
#include <stdio.h>

/* A name that no other rule has. */
static const char *name_of(int i)
{
	static char name[64];

	snprintf(name, sizeof(name), "%s/%d", current, i);
	return name;
}

RULE(the_same_name_is_the_same_session_for_all)
{
	enum { NAMES = 20 };
	struct nm_session *named[NAMES], *unnamed = session;
	struct nm_sr_request ins[NAMES], outs[NAMES];
	int numbers[NAMES], got[NAMES];

	/* In opposite orders, and what comes before its session waits. */
	for (int i = 0; i < NAMES; i++) {
		int k = nm_rank() == 0 ? i : NAMES - 1 - i;

		MUST(nm_session_open_name(name_of(k), &named[k]) == 0);
		MUST(nm_session_open_name(name_of(k), &named[k]) == -EEXIST);
		session = named[k];
		numbers[k] = k;
		isend_bytes(&outs[k], 1, &numbers[k], sizeof(k), 0);
	}
	for (int i = 0; i < NAMES; i++) {
		session = named[i];
		irecv_bytes(&ins[i], NM_ANY_GATE, 1, NM_TAG_EXACT, &got[i],
			    sizeof(got[i]));
		MUST(wait_for(&ins[i]).error == 0);
		MUST(got[i] == i);
		MUST(wait_for(&outs[i]).error == 0);
	}
	session = unnamed;
	meet(1);
	for (int i = 0; i < NAMES; i++)
		MUST(nm_session_close(named[i]) == 0);
}

RULE(a_named_session_and_a_numbered_one_do_not_mix)
{
	struct nm_session *named, *unnamed = session;
	struct nm_sr_request in, outs[2];
	char got = 0;

	isend_bytes(&outs[0], 1, "u", 1, 0);
	MUST(nm_session_open_name(name_of(0), &named) == 0);
	session = named;
	isend_bytes(&outs[1], 1, "n", 1, 0);
	irecv_bytes(&in, peer, 1, NM_TAG_EXACT, &got, 1);
	MUST(wait_for(&in).error == 0 && got == 'n');
	session = unnamed;
	irecv_bytes(&in, peer, 1, NM_TAG_EXACT, &got, 1);
	MUST(wait_for(&in).error == 0 && got == 'u');
	MUST(wait_for(&outs[0]).error == 0);
	MUST(wait_for(&outs[1]).error == 0);
	MUST(nm_session_close(named) == 0);
}
