/*
 * The lossy driver: opening, closing, its options.
 */
#include "lossy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/diag.h>
#include <base/option.h>

extern const struct nm_driver nm_driver_lossy;

static const struct nm_driver *find_inner(const char *name, size_t len)
{
	for (int i = 0; nm_drivers[i] != NULL; i++)
		if (strlen(nm_drivers[i]->name) == len &&
		    strncmp(nm_drivers[i]->name, name, len) == 0 &&
		    nm_drivers[i] != &nm_driver_lossy)
			return nm_drivers[i];
	return NULL;
}

static int parse_option(struct lossy *lossy, const char *name, size_t len)
{
	char text[32] = "";
	long value;

	if (len >= sizeof(text))
		return -EINVAL;
	memcpy(text, name, len);
	if (strncmp(text, "lose=", 5) == 0 &&
	    base_parse_long(text + 5, false, &value) == 0 && value >= 0 &&
	    value <= 1 << 30) {
		lossy->lose = value;
		return 0;
	}
	if (strcmp(text, "both=0") != 0 && strcmp(text, "both=1") != 0)
		return -EINVAL;
	lossy->both = text[5] == '1';
	return 0;
}

/* "driver[,name=value]..." */
static int parse(struct lossy *lossy, const char *spec)
{
	const char *at = spec != NULL ? spec : "";
	size_t len = strcspn(at, ",");
	int rc = 0;

	lossy->inner.driver = find_inner(at, len);
	for (at += len; *at == ',' && rc == 0; at += len) {
		len = strcspn(++at, ",");
		rc = parse_option(lossy, at, len);
	}
	if (rc == 0 && lossy->inner.driver != NULL &&
	    lossy->inner.driver->arm != NULL)
		return 0;
	base_warn("nmad",
		  "NMAD_DRIVER: \"lossy:%s\" is not "
		  "lossy:DRIVER[,lose=N][,both=1]",
		  spec != NULL ? spec : "");
	return -EINVAL;
}

static int make_room(struct lossy *lossy, int n)
{
	size_t links = (size_t)n;

	lossy->all = calloc(LOSSY_HELD, sizeof(*lossy->all));
	lossy->links = calloc(links, sizeof(*lossy->links));
	lossy->inner.links = calloc(links, sizeof(*lossy->inner.links));
	if (lossy->all == NULL || lossy->links == NULL ||
	    lossy->inner.links == NULL)
		return -ENOMEM;
	for (int i = LOSSY_HELD; i-- > 0;) {
		lossy->all[i].free.next = lossy->free;
		lossy->free = &lossy->all[i].free;
	}
	return 0;
}

static int link_init(struct lossy *lossy, int rank)
{
	struct nm_link *in = &lossy->inner.links[rank];
	struct lossy_link *l = &lossy->links[rank];

	*in = lossy->outer->links[rank];
	in->rail = &lossy->inner;
	base_list_init(&in->xfers);
	l->outer = &lossy->outer->links[rank];
	base_link_init(&l->work);
	base_list_init(&l->sending);
	base_list_init(&l->unsure);
	base_list_init(&l->receiving);
	l->frames = calloc(LOSSY_WINDOW, sizeof(*l->frames));
	return l->frames != NULL ? 0 : -ENOMEM;
}

static void lossy_free(struct lossy *lossy)
{
	for (int i = 0; lossy->links != NULL && i < lossy->outer->nlinks; i++)
		free(lossy->links[i].frames);
	free(lossy->all);
	free(lossy->links);
	free(lossy->inner.links);
	free(lossy);
}

int nm_lossy_open(struct nm_rail *rail, const struct nm_boot_info *info,
		  const char *spec)
{
	struct lossy *lossy = calloc(1, sizeof(*lossy));
	int rc;

	if (lossy == NULL)
		return -ENOMEM;
	lossy->outer = rail;
	base_list_init(&lossy->work);
	base_mpsc_init(&lossy->released);
	rc = parse(lossy, spec);
	if (rc == 0)
		rc = make_room(lossy, rail->nlinks);
	if (rc < 0)
		goto err_free;
	lossy->inner.up = &nm_lossy_upcalls;
	lossy->inner.core = rail->core;
	lossy->inner.stats = rail->stats;
	lossy->inner.rank = rail->rank;
	lossy->inner.index = rail->index;
	lossy->inner.nlinks = rail->nlinks;
	lossy->inner.fd = -1;
	lossy->inner.max_small = lossy->inner.driver->max_small;
	for (int rank = 0; rank < rail->nlinks && rc == 0; rank++)
		rc = link_init(lossy, rank);
	if (rc == 0)
		rc = lossy->inner.driver->open(&lossy->inner, info, NULL);
	if (rc < 0)
		goto err_free;
	rail->fd = lossy->inner.fd;
	rail->drv = lossy;
	memcpy(rail->addr, lossy->inner.addr, lossy->inner.addr_len);
	rail->addr_len = lossy->inner.addr_len;
	return 0;

err_free:
	lossy_free(lossy);
	return rc;
}

void nm_lossy_close(struct nm_rail *rail)
{
	struct lossy *lossy = rail->drv;

	lossy->inner.driver->close(&lossy->inner);
	lossy_free(lossy);
}
