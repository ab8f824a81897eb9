/*
 * nm-sample: how fast the rails are, measured as NMAD_SAMPLING=auto does but
 * for longer, written to a file and perhaps drawn. All processes measure; rank
 * 0 does the rest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nmad/nmad.h>

#include "../../nmad/core/measure.h"
#include "sample.h"

static void __attribute__((noreturn)) give_up(void)
{
	fflush(stdout);
	nm_abort(EXIT_BAD, NULL);
}

/* What would be in vain is not begun. */
static bool can_be_written(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash == NULL
			       ? strdup(".")
			       : strndup(path, (size_t)(slash + 1 - path));
	bool can = folder != NULL && access(folder, W_OK | X_OK) == 0;

	if (!can)
		say("%s cannot be written: %m", path);
	free(folder);
	return can;
}

/* A device or a link would be replaced, too, and is not what is meant. */
static bool may_be_replaced(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0 || S_ISREG(st.st_mode))
		return true;
	say("%s is there already, and is no file", path);
	return false;
}

static void look_ahead(const struct options *o)
{
	if (!can_be_written(o->file) || !may_be_replaced(o->file) ||
	    (o->picture != NULL &&
	     (!can_be_written(o->picture) || !plot_is_possible())))
		give_up();
}

static void copy_curve(struct nm_curve *to, const struct nm_curve *from)
{
	if (from != NULL)
		*to = *from;
	else
		to->n = 0;
}

static void collect(struct samples *s, const struct nm_measure *m)
{
	const struct nm_core *core = nm_core_self;

	memset(s, 0, sizeof(*s));
	for (int i = core->first_listed; i < core->nrails; i++) {
		const struct nm_rail *rail = &core->rails[i];
		struct sample *one = &s->of[s->n];

		one->peer = m->peer[s->n];
		s->n++;
		if (rail->driver == NULL)
			continue;
		one->driver = rail->driver->name;
		copy_curve(&one->body, rail->curve);
		copy_curve(&one->eager, rail->eager);
		one->threshold = nm_rail_threshold(rail);
	}
}

/* --- in words --- */

static void tell_one(int i, const struct sample *one)
{
	const struct nm_curve *c = &one->body;

	printf("rail %d, %s, with rank %d: ", i, one->driver, one->peer);
	if (c->n == 0) {
		printf("no body of %d bytes in the time given\n",
		       NM_SPLIT_PART_MIN);
		return;
	}
	printf("%.1f us, then %.0f MB/s, eager up to %zu bytes%s\n",
	       (one->eager.n > 0 ? one->eager.at[0].ns : c->at[0].ns) / 1000,
	       c->at[c->n - 1].bytes * 1000 /
		       (c->at[c->n - 1].ns - c->at[0].ns),
	       one->threshold,
	       one->eager.n > 0 ? "" : " (not measured in the time given)");
}

/* The i-th of "shm+ibverbs+tcp". */
static void tell_lack(int i)
{
	const struct nm_core *core = nm_core_self;
	const char *name = core->names;

	for (int k = core->first_listed + i; k > 0; k--)
		name = strchr(name, '+') + 1;
	printf("rail %d, %.*s, is not to be had here\n", i,
	       (int)strcspn(name, "+"), name);
}

/* How many rails are known. */
static int tell(const struct samples *s)
{
	int known = 0;

	for (int i = 0; i < s->n; i++) {
		const struct sample *one = &s->of[i];

		if (one->driver == NULL)
			tell_lack(i);
		else if (one->peer < 0)
			printf("rail %d, %s, is not used%s\n", i, one->driver,
			       nm_size() == 1 ? ": mpirun -n 2 makes two" : "");
		else
			tell_one(i, one);
		known += one->body.n > 0;
	}
	return known;
}

static void write_down(const struct options *o, const struct samples *s)
{
	if (tell(s) == 0) {
		say("no rail was measured, %s is not written", o->file);
		give_up();
	}
	if (nm_sampling_save(nm_core_self, o->file) < 0)
		give_up();
	printf("written: %s\n", o->file);
}

int main(int argc, char **argv)
{
	struct nm_measure m = { 0 };
	struct samples samples;
	struct options o;
	bool first, good = true;

	options_parse(&o, argc, argv);
	setenv("NMAD_SAMPLING", "off", 1); /* nothing is known before */
	if (nm_init() < 0)
		return EXIT_BAD;
	first = nm_rank() == 0;
	if (first)
		look_ahead(&o);
	m.ns = (uint64_t)o.time_ms * 1000000;
	m.max = (size_t)o.max;
	m.rounds = (int)o.rounds;
	if (nm_measure_job(&m) < 0)
		give_up();
	collect(&samples, &m);
	if (first)
		write_down(&o, &samples);
	if (nm_exit() < 0)
		return EXIT_BAD;
	if (first && o.picture != NULL)
		good = plot(&samples, o.picture);
	if (first && good && o.picture != NULL)
		printf("drawn: %s\n", o.picture);
	return good && fflush(stdout) == 0 ? 0 : EXIT_BAD;
}
