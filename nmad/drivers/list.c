/*
 * The drivers there are, in the order of preference. A driver is made by name
 * in NMAD_DRIVER; `sim` wraps another and is never chosen by itself.
 */
#include "driver.h"

extern const struct nm_driver nm_driver_self, nm_driver_shm, nm_driver_ibverbs,
	nm_driver_tcp, nm_driver_sim;

const struct nm_driver *const nm_drivers[] = {
	&nm_driver_self, &nm_driver_shm, &nm_driver_ibverbs,
	&nm_driver_tcp,  &nm_driver_sim, NULL,
};
