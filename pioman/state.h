/*
 * What pioman was started with. Constant between piom_init() and piom_exit().
 */
#ifndef PIOMAN_STATE_H
#define PIOMAN_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/option.h>

/* In the order of the option's choices. */
enum piom_engine { PIOM_ENGINE_MARCEL, PIOM_ENGINE_PTHREAD, PIOM_ENGINE_NONE };
enum piom_mode { PIOM_MODE_AUTO, PIOM_MODE_POLL, PIOM_MODE_INTERRUPT };
enum piom_wait {
	PIOM_WAIT_AUTO,
	PIOM_WAIT_ACTIVE,
	PIOM_WAIT_PASSIVE,
	PIOM_WAIT_SPIN
};

struct piom {
	uint16_t start; /* how often pioman was started; 0: not running */
	enum piom_engine engine;
	enum piom_mode mode;
	enum piom_wait wait;
	bool stats;           /* counts time, too, and prints at the end */
	uint64_t spin_ns;     /* polls in place so long before it sleeps */
	uint64_t reaction_ns; /* what wants to be asked is, once in so long; 0:
			       * when somebody comes */
	uint64_t timer_ns;    /* the timer of engine pthread looks so often */
	uint64_t idle_ns; /* a VP polls so long in vain before ltasks are armed
			   */
};

extern struct piom piom;

extern const struct base_option_table piom_options;

#endif
