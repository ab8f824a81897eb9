/*
 * Thread-specific values.
 */
#include "thread.h"

void marcel_key_exit(struct marcel_thread *t)
{
	t->keys = NULL;
}
