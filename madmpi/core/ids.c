/*
 * Numbers of objects. A table never shrinks; its free numbers are a list.
 */
#include "core/ids.h"

#include <stdbool.h>
#include <stdlib.h>

enum { ROOM_AT_FIRST = 64 };

void madmpi_ids_put(struct madmpi_ids *t, int number)
{
	t->id[number] = (struct madmpi_id){ NULL, t->first_free };
	t->first_free = number;
}

/* Double the table. False: no memory. */
static bool grow(struct madmpi_ids *t)
{
	int old = t->room, room = old > 0 ? 2 * old : ROOM_AT_FIRST;
	void *larger = realloc(t->id, (size_t)room * sizeof(*t->id));

	if (larger == NULL)
		return false;
	t->id = larger;
	t->room = room;
	for (int i = room - 1; i >= old; i--)
		madmpi_ids_put(t, i);
	return true;
}

int madmpi_ids_take(struct madmpi_ids *t, void *object)
{
	int i;

	if (t->first_free < 0 && !grow(t))
		return -1;
	i = t->first_free;
	t->first_free = t->id[i].next_free;
	t->id[i].object = object;
	return i;
}
