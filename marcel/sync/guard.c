/*
 * The slow half of the guard.
 */
#include "guard.h"

#include <sched.h>

#include "../arch/cpu.h"

enum { SPINS = 100 }; /* some microseconds: far longer than it is held */

void marcel_guard_pause(unsigned *turn)
{
	if ((*turn)++ < SPINS)
		cpu_relax();
	else
		sched_yield();
}
