/*
 * What other processes may read of pioman.
 */
#ifndef PIOMAN_OFFER_H
#define PIOMAN_OFFER_H

#include <base/compiler.h>
#include <base/offer.h>

extern BASE_HIDDEN const struct base_offer piom_offer;

#endif
