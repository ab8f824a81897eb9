/*
 * In place of the driver where libibverbs' header was not to be had.
 */
#include <errno.h>

#include <base/diag.h>

#include "../../core/rail.h"

static int none_open(struct nm_rail *rail, const struct nm_boot_info *info,
		     const char *spec)
{
	(void)info, (void)spec;
	if (rail->is_listed)
		base_warn("nmad", "ibverbs: this library was built without "
				  "infiniband/verbs.h: install libibverbs-dev, "
				  "build again");
	return -ENODEV;
}

const struct nm_driver nm_driver_ibverbs = { .name = "ibverbs",
					     .open = none_open };
