/*
 * In place of pmix.c where libpmix's header was not to be had.
 */
#include <errno.h>

#include <base/diag.h>

#include "boot.h"

static int none_open(struct nm_boot *b)
{
	(void)b;
	base_warn("nmad",
		  "this process was started through PMIx, and this library "
		  "was built without pmix.h: install libpmix-dev, build again; "
		  "or start it with this library's mpirun, mpiexec.hydra or "
		  "srun --mpi=pmi2; NMAD_BOOT=singleton: jobs of one process");
	return -EINVAL;
}

const struct nm_boot_client nm_boot_pmix = { .name = "pmix",
					     .variables = { "PMIX_RANK" },
					     .open = none_open };
