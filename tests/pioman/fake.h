/*
 * A machine made of paper for tests of queues and rounds: marcel's topology,
 * events and kicks without a scheduler. Any number of kernel threads may play
 * any VP.
 */
#ifndef TESTS_PIOMAN_FAKE_H
#define TESTS_PIOMAN_FAKE_H

#include <marcel/marcel.h>

/*
 * Build a tree: arity[0] children below the machine, each with arity[1], ...,
 * ends with 0. Leaves are VPs. All zero: one VP, which is the machine.
 */
void fake_machine(const unsigned *arity);
void fake_machine_free(void);

/* The VP that the calling kernel thread plays; -1: foreign. */
void fake_be_vp(int vp);

/* Whether each LWP has a CPU of its own; not, if nothing is said. */
void fake_room(bool has_room);

/* The level that was kicked last and how many kicks there were so far. */
struct marcel_level *fake_kicked(void);
unsigned fake_kicks(void);

/* Ancestor of a VP, `up` levels above its leaf. */
struct marcel_level *fake_level(int vp, int up);

#endif
