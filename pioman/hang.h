/*
 * What pioman knows of a process that does not move: base/hang.h.
 */
#ifndef PIOMAN_HANG_H
#define PIOMAN_HANG_H

#include <base/hang.h>

/* For pioman's dumper. */
extern const struct base_hang_layer piom_hang;

#endif
