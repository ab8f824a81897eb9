/*
 * Where a process runs.
 */
#include "comm/spot.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <base/hash.h>
#include <base/host.h>
#include <marcel/topo.h>

static uint32_t kind_of(const char *name)
{
	uint64_t h = strlen(name);

	for (; *name != '\0'; name++)
		h = base_hash_mix(h, (unsigned char)*name);
	return (uint32_t)h | 1;
}

void madmpi_spot_find(struct madmpi_spot *s)
{
	const struct marcel_place *p = marcel_topo_places();
	char host[BASE_HOST_ID];
	struct utsname u;
	struct stat st;

	memset(s, 0, sizeof(*s));
	base_host_id(host);
	if (uname(&u) < 0)
		u.nodename[0] = '\0';
	if (stat("/dev/shm", &st) < 0)
		memset(&st, 0, sizeof(st));
	snprintf(s->host, MADMPI_SPOT_HOST, "%s %.64s %llx", host, u.nodename,
		 (unsigned long long)st.st_dev);
	for (int i = 0; p != NULL && p[i].type != NULL && i < MADMPI_SPOT_KINDS;
	     i++) {
		s->at[i].kind = kind_of(p[i].type);
		s->at[i].index = p[i].index;
	}
}

bool madmpi_spot_share_host(const struct madmpi_spot *a,
			    const struct madmpi_spot *b)
{
	return strcmp(a->host, b->host) == 0;
}

bool madmpi_spot_share(const struct madmpi_spot *a, const struct madmpi_spot *b,
		       int kind)
{
	return madmpi_spot_share_host(a, b) &&
	       a->at[kind].kind == b->at[kind].kind && a->at[kind].index >= 0 &&
	       a->at[kind].index == b->at[kind].index;
}
