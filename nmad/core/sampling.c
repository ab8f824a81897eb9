/*
 * What is known of the rails: a file of curves, time over size, for each.
 *
 *   nmad-sampling 1
 *   # bytes ns, from 0 bytes on, both growing
 *   rail 0 sim
 *   0 20000
 *   1048576 1068576
 *   eager
 *   0 3000
 *   4000 6000
 *   rail 1 tcp
 *   ...
 *
 * A rail is named by its place in NMAD_DRIVER, from 0 on, and by its driver, so
 * that a file made for other networks is noticed. The points below it are of
 * the bodies of large messages, from the sender's offer to the end; those below
 * "eager", which may be missing, of messages that go as one packet: where the
 * two cross is the rail's threshold. Rails that the file does not name have no
 * curve, and no body is cut for a gate that uses one.
 */
#include "core.h"

#include <marcel/errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE = 128 };

struct reader {
	const char *path;
	FILE *file;
	int line;
	struct nm_rail *rail;   /* that was named last */
	struct nm_curve *curve; /* of it: that the next points belong to */
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

/* The next points make this curve. */
static int begin(struct reader *r, struct nm_curve **curve)
{
	*curve = calloc(1, sizeof(**curve));
	if (*curve == NULL)
		return -ENOMEM;
	r->curve = *curve;
	return 0;
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
	r->rail = rail;
	return begin(r, &rail->curve);
}

static int take_eager(struct reader *r, const char *text)
{
	if (r->rail == NULL)
		return bad(r, text, "is before any \"rail\"");
	if (r->rail->eager != NULL)
		return bad(r, text, "is there twice for the rail");
	return begin(r, &r->rail->eager);
}

static int take_point(struct reader *r, const char *text)
{
	unsigned long bytes, ns;
	char rest;

	if (strchr(text, '-') != NULL ||
	    sscanf(text, "%15lu%*1[ \t]%15lu %c", &bytes, &ns, &rest) != 2)
		return bad(r, text, "is not \"BYTES NANOSECONDS\"");
	if (r->curve == NULL)
		return bad(r, text, "a point before any \"rail\"");
	if (nm_curve_add(r->curve, (double)bytes, (double)ns) < 0)
		return bad(r, text,
			   "points begin at 0 bytes, both numbers grow, "
			   "and there are at most 16");
	return 0;
}

static int take_line(struct nm_core *core, struct reader *r, const char *text)
{
	if (r->line == 1)
		return strcmp(text, "nmad-sampling 1") == 0
			       ? 0
			       : bad(r, text, "is not \"nmad-sampling 1\"");
	if (text[0] == '#' || text[0] == 0)
		return 0;
	if (strncmp(text, "rail", 4) == 0)
		return take_rail(core, r, text);
	if (strcmp(text, "eager") == 0)
		return take_eager(r, text);
	return take_point(r, text);
}

static int unreadable(const char *path, int error)
{
	base_warn("nmad", "NMAD_SAMPLING: \"%s\" cannot be read: %s", path,
		  strerror(error));
	return -error;
}

/* The next, without its end. 1; 0: there are no more; -errno, explained. */
static int read_line(struct reader *r, char text[LINE])
{
	int c, n = 0;

	r->line++;
	while ((c = getc(r->file)) != EOF && c != '\n') {
		text[n] = 0;
		if (c == 0)
			return bad(r, text, "a zero byte follows");
		if (n == LINE - 1)
			return bad(r, text, "is too long");
		text[n++] = (char)c;
	}
	text[n] = 0;
	if (ferror(r->file))
		return unreadable(r->path, errno);
	return c != EOF || n > 0;
}

static int check_curve(const struct reader *r, int rail, const char *what,
		       const struct nm_curve *c)
{
	if (c == NULL || c->n >= 2)
		return 0;
	base_warn("nmad",
		  "NMAD_SAMPLING: %s: rail %d has %d point(s)%s, not at least "
		  "2",
		  r->path, rail, c->n, what);
	return -EINVAL;
}

static int check_curves(const struct nm_core *core, const struct reader *r)
{
	for (int i = core->first_listed; i < core->nrails; i++) {
		const struct nm_rail *rail = &core->rails[i];
		int index = i - core->first_listed;
		int rc = check_curve(r, index, "", rail->curve);

		if (rc == 0)
			rc = check_curve(r, index, " of eager messages",
					 rail->eager);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int nm_sampling_load(struct nm_core *core, const char *path)
{
	struct reader r = { .path = path };
	char text[LINE];
	int rc;

	r.file = fopen(path, "re");
	if (r.file == NULL)
		return unreadable(path, errno);
	while ((rc = read_line(&r, text)) > 0) {
		rc = take_line(core, &r, text);
		if (rc < 0)
			break;
	}
	if (rc == 0 && r.line == 1)
		rc = bad(&r, "", "is not \"nmad-sampling 1\"");
	if (rc == 0)
		rc = check_curves(core, &r);
	fclose(r.file);
	return rc;
}

/* --- writing --- */

static void put_curve(FILE *f, const struct nm_curve *c)
{
	for (int i = 0; i < c->n; i++)
		fprintf(f, "%.0f %.0f\n", c->at[i].bytes, c->at[i].ns);
}

static void put_rails(FILE *f, const struct nm_core *core)
{
	fputs("nmad-sampling 1\n# bytes ns\n", f);
	for (int i = core->first_listed; i < core->nrails; i++) {
		const struct nm_rail *rail = &core->rails[i];

		if (rail->curve == NULL)
			continue;
		fprintf(f, "rail %d %s\n", i - core->first_listed,
			rail->driver->name);
		put_curve(f, rail->curve);
		if (rail->eager == NULL)
			continue;
		fputs("eager\n", f);
		put_curve(f, rail->eager);
	}
}

/* Under another name, with the access that any new file gets. 0 or -errno. */
static int put_file(const struct nm_core *core, char *name)
{
	int fd = mkstemp(name), rc = 0;
	mode_t mask = umask(0);
	FILE *f;

	umask(mask);
	if (fd < 0)
		return -errno;
	f = fdopen(fd, "w");
	if (f == NULL) {
		rc = -errno;
		close(fd);
		goto err_unlink;
	}
	put_rails(f, core);
	if (fchmod(fd, 0666 & ~mask) < 0 || fflush(f) != 0)
		rc = -errno;
	if (fclose(f) != 0 && rc == 0)
		rc = -errno;
	if (rc == 0)
		return 0;
err_unlink:
	unlink(name);
	return rc;
}

int nm_sampling_save(const struct nm_core *core, const char *path)
{
	char *name;
	int rc;

	if (asprintf(&name, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	rc = put_file(core, name);
	if (rc == 0 && rename(name, path) < 0) {
		rc = -errno;
		unlink(name);
	}
	if (rc < 0)
		base_warn("nmad", "\"%s\" cannot be written: %s", path,
			  strerror(-rc));
	free(name);
	return rc;
}
