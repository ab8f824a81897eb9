/*
 * What nmad knows of a process that does not move: base/hang.h.
 */
#ifndef NMAD_CORE_HANG_H
#define NMAD_CORE_HANG_H

#include <base/hang.h>

/* For the dumper of a core, which is its argument. */
extern const struct base_hang_layer nm_hang;

#endif
