/*
 * Handles as integers, for languages that have no pointers: Fortran's handles
 * are these numbers. A constant is its own number. An object gets one, from
 * 4096 on, when it is first asked for, and keeps it while it lives; then
 * another may have it.
 */
#ifndef MADMPI_CORE_NUMBER_H
#define MADMPI_CORE_NUMBER_H

#include "core/object.h"

/* 0 is no handle: the handle is none of that kind, or there is no memory. */
int madmpi_number_of(void *handle, uint32_t kind);

/* NULL, which is no handle, if the number is no object of that kind. */
void *madmpi_number_handle(int number, uint32_t kind);

/* The object is about to be freed. */
void madmpi_number_drop_slow(struct madmpi_object *o);

static inline void madmpi_number_drop(struct madmpi_object *o)
{
	if (unlikely(o->link != NULL))
		madmpi_number_drop_slow(o);
}

#endif
