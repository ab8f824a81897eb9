/*
 * Waiting for the core's lock or a rail's, where NMAD_LOCK says so.
 *
 * Who holds one is pinned, so he is on a CPU or the kernel has taken it from
 * him, and no user thread of this VP can be he. Who is pinned himself may be:
 * he holds it further up his stack, or has interrupted who does. He only tries.
 */
#include "lock.h"

#include <base/diag.h>
#include <base/spin.h>

void nm_core_refuse_child(void)
{
	base_fatal("nmad", "used in the child of a fork(), which is no part of "
			   "the job");
}

bool nm_core_wait(struct nm_core_lock *l, bool waits, bool *busy)
{
	unsigned turn = 0;

	*busy = !nm_core_try(l);
	if (!*busy)
		return true;
	if (!waits)
		return false;
	while (!nm_core_try(l))
		base_spin_turn(&turn);
	return true;
}

bool nm_rail_wait(struct nm_rail_lock *l, bool waits, bool *busy)
{
	unsigned turn = 0;

	*busy = !nm_rail_enter(l);
	if (!*busy)
		return true;
	if (!waits)
		return false;
	while (!nm_rail_enter(l))
		base_spin_turn(&turn);
	return true;
}
