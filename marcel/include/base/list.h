/*
 * Intrusive doubly linked list with a head. A link that is on no list points
 * to itself, so that "am I on a list" is one comparison and a second removal
 * does nothing.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include <base/compiler.h>

struct base_link {
	struct base_link *next;
	struct base_link *prev;
};

struct base_list {
	struct base_link head;
};

static inline void base_link_init(struct base_link *n)
{
	n->next = n;
	n->prev = n;
}

static inline bool base_link_is_on(const struct base_link *n)
{
	return n->next != n;
}

static inline void base_list_init(struct base_list *l)
{
	base_link_init(&l->head);
}

static inline bool base_list_is_empty(const struct base_list *l)
{
	return l->head.next == &l->head;
}

static inline void base_list_insert_(struct base_link *n,
				     struct base_link *prev,
				     struct base_link *next)
{
	n->next = next;
	n->prev = prev;
	prev->next = n;
	next->prev = n;
}

static inline void base_list_push_back(struct base_list *l, struct base_link *n)
{
	base_list_insert_(n, l->head.prev, &l->head);
}

static inline void base_list_push_front(struct base_list *l,
					struct base_link *n)
{
	base_list_insert_(n, &l->head, l->head.next);
}

static inline void base_list_remove(struct base_link *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	base_link_init(n);
}

/* The first link, or NULL. */
static inline struct base_link *base_list_first(const struct base_list *l)
{
	return base_list_is_empty(l) ? NULL : l->head.next;
}

/* Take the first link off, or NULL. */
static inline struct base_link *base_list_take_front(struct base_list *l)
{
	struct base_link *n = base_list_first(l);

	if (n != NULL)
		base_list_remove(n);
	return n;
}

/* Append all of `from` to `to` and leave `from` empty. */
static inline void base_list_splice_back(struct base_list *to,
					 struct base_list *from)
{
	if (base_list_is_empty(from))
		return;
	from->head.next->prev = to->head.prev;
	to->head.prev->next = from->head.next;
	from->head.prev->next = &to->head;
	to->head.prev = from->head.prev;
	base_list_init(from);
}

/* `n` may not be removed inside the loop; take from the front instead. */
#define base_list_for_each(n, l)                                               \
	for (struct base_link *n = (l)->head.next; n != &(l)->head; n = n->next)

#endif
