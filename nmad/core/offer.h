/*
 * What other processes may read of nmad.
 */
#ifndef NMAD_CORE_OFFER_H
#define NMAD_CORE_OFFER_H

#include <base/compiler.h>
#include <base/offer.h>

extern BASE_HIDDEN const struct base_offer nm_offer;

#endif
