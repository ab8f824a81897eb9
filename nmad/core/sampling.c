/*
 * What is known of the rails: a file of curves, time over size, for each.
 *
 *   nmad-sampling 1
 *   # bytes ns, from 0 bytes on, both growing
 *   rail 0 sim
 *   0 20000
 *   1048576 1068576
 *   rail 1 tcp
 *   ...
 *
 * A rail is named by its place in NMAD_DRIVER, from 0 on, and by its driver, so
 * that a file made for other networks is noticed. Rails that the file does not
 * name have no curve, and no body is cut for a gate that uses one.
 */
#include "core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 128 };

struct reader {
	const char *path;
	FILE *file;
	int line;
	struct nm_curve *curve; /* that the next points belong to */
};

static int bad(const struct reader *r, const char *text, const char *why)
{
	base_warn("nmad", "NMAD_SAMPLING: %s:%d: \"%s\": %s", r->path, r->line,
		  text, why);
	return -EINVAL;
}

/* The index in the file counts the entries of NMAD_DRIVER. */
static struct nm_rail *find_rail(struct nm_core *core, unsigned index)
{
	if (index >= NM_RAILS_MAX)
		return NULL;
	index += (unsigned)core->first_listed;
	return index < (unsigned)core->nrails ? &core->rails[index] : NULL;
}

static int take_rail(struct nm_core *core, struct reader *r, const char *text)
{
	struct nm_rail *rail;
	char driver[32];
	unsigned index;
	char rest;

	if (sscanf(text, "rail %2u %31s %c", &index, driver, &rest) != 2)
		return bad(r, text, "is not \"rail NUMBER DRIVER\"");
	rail = find_rail(core, index);
	if (rail == NULL || rail->driver == NULL)
		return bad(r, text, "there is no such rail");
	if (strcmp(rail->driver->name, driver) != 0)
		return bad(r, text, "that rail has another driver");
	if (rail->curve != NULL)
		return bad(r, text, "the rail is named twice");
	rail->curve = calloc(1, sizeof(*rail->curve));
	if (rail->curve == NULL)
		return -ENOMEM;
	r->curve = rail->curve;
	return 0;
}

static int take_point(struct reader *r, const char *text)
{
	unsigned long bytes, ns;
	char rest;

	if (strchr(text, '-') != NULL ||
	    sscanf(text, "%15lu %15lu %c", &bytes, &ns, &rest) != 2)
		return bad(r, text, "is not \"BYTES NANOSECONDS\"");
	if (r->curve == NULL)
		return bad(r, text, "a point before any \"rail\"");
	if (nm_curve_add(r->curve, (double)bytes, (double)ns) < 0)
		return bad(r, text,
			   "points begin at 0 bytes, both numbers grow, "
			   "and there are at most 16");
	return 0;
}

static int take_line(struct nm_core *core, struct reader *r, char *text)
{
	size_t len = strlen(text);

	r->line++;
	if (len > 0 && text[len - 1] == '\n')
		text[len - 1] = 0;
	else if (len == LINE - 1)
		return bad(r, text, "is too long");
	if (r->line == 1)
		return strcmp(text, "nmad-sampling 1") == 0
			       ? 0
			       : bad(r, text, "is not \"nmad-sampling 1\"");
	if (text[0] == '#' || text[0] == 0)
		return 0;
	if (strncmp(text, "rail", 4) == 0)
		return take_rail(core, r, text);
	return take_point(r, text);
}

static int check_curves(const struct nm_core *core, const struct reader *r)
{
	for (int i = 0; i < core->nrails; i++) {
		const struct nm_curve *c = core->rails[i].curve;

		if (c == NULL || c->n >= 2)
			continue;
		base_warn("nmad",
			  "NMAD_SAMPLING: %s: rail %d has %d point(s), "
			  "not at least 2",
			  r->path, i - core->first_listed, c->n);
		return -EINVAL;
	}
	return 0;
}

int nm_sampling_load(struct nm_core *core, const char *path)
{
	struct reader r = { .path = path };
	char text[LINE];
	int rc = 0;

	r.file = fopen(path, "re");
	if (r.file == NULL) {
		rc = -errno;
		base_warn("nmad", "NMAD_SAMPLING: \"%s\" cannot be read: %s",
			  path, strerror(-rc));
		return rc;
	}
	while (rc == 0 && fgets(text, sizeof(text), r.file) != NULL)
		rc = take_line(core, &r, text);
	if (rc == 0 && r.line == 0)
		rc = bad(&r, "", "is not \"nmad-sampling 1\"");
	if (rc == 0)
		rc = check_curves(core, &r);
	fclose(r.file);
	return rc;
}
