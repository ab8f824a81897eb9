/*
 * The strategies there are; the first is the default.
 */
#include "strategy.h"

#include <stddef.h>

extern const struct nm_strategy nm_strategy_default;
extern const struct nm_strategy nm_strategy_fifo;
extern const struct nm_strategy nm_strategy_aggreg;
extern const struct nm_strategy nm_strategy_split;
extern const struct nm_strategy nm_strategy_prio;

const struct nm_strategy *const nm_strategies[] = {
	&nm_strategy_default, &nm_strategy_fifo, &nm_strategy_aggreg,
	&nm_strategy_split,   &nm_strategy_prio, NULL,
};
