/*
 * A table that gives numbers, from 0 on, to objects. The number of an object
 * that has left the table is given again. The caller's lock covers a table.
 */
#ifndef MADMPI_CORE_IDS_H
#define MADMPI_CORE_IDS_H

#include <stddef.h>

/* A number: its object, or NULL and the next free number. */
struct madmpi_id {
	void *object;
	int next_free; /* -1: none */
};

/* l: all of it */
struct madmpi_ids {
	struct madmpi_id *id; /* by number */
	int room;
	int first_free; /* -1: none */
};

#define MADMPI_IDS_INITIALIZER                                                 \
	{                                                                      \
		.first_free = -1                                               \
	}

/* Returns a number for the object; -1: no memory. */
int madmpi_ids_take(struct madmpi_ids *t, void *object);

/* The number is free again. */
void madmpi_ids_put(struct madmpi_ids *t, int number);

/* Returns the object of any number; NULL: none. */
static inline void *madmpi_ids_at(const struct madmpi_ids *t, int number)
{
	return number >= 0 && number < t->room ? t->id[number].object : NULL;
}

#endif
