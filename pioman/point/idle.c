/*
 * Whether somebody polls beside those who compute.
 */
#include <pioman/pioman.h>

#include <base/compiler.h>
#include <marcel/hook.h>

#include "../state.h"

BASE_PUBLIC int piom_any_idle(void)
{
	return piom.engine == PIOM_ENGINE_MARCEL && marcel_any_idle();
}
