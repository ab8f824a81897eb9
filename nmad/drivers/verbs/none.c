/*
 * In place of the driver where libibverbs' header was not to be had.
 */
#include <errno.h>

#include <base/diag.h>

#include "../driver.h"

static int none_open(struct nm_rail *rail, const struct nm_boot_info *info,
		     const char *spec)
{
	(void)rail, (void)info, (void)spec;
	return -ENODEV;
}

const struct nm_driver nm_driver_ibverbs = { .name = "ibverbs",
					     .open = none_open };
