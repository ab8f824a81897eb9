/*
 * What other processes may read of marcel.
 */
#ifndef MARCEL_SCHED_OFFER_H
#define MARCEL_SCHED_OFFER_H

#include <base/compiler.h>
#include <base/offer.h>

extern BASE_HIDDEN const struct base_offer marcel_offer;

#endif
