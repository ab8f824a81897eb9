/*
 * The drivers there are, in the order of preference. A driver is made by name
 * in NMAD_DRIVER; `sim` and `lossy` wrap another and are never chosen by
 * themselves.
 */
#include "driver.h"

extern const struct nm_driver nm_driver_self, nm_driver_shm, nm_driver_ibverbs,
	nm_driver_tcp, nm_driver_sim, nm_driver_lossy;

const struct nm_driver *const nm_drivers[] = {
	&nm_driver_self,
	&nm_driver_shm,
	&nm_driver_ibverbs,
	&nm_driver_tcp,
	&nm_driver_sim,
	&nm_driver_lossy,
	NULL,
};
