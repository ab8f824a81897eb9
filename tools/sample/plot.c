/*
 * A picture by gnuplot: above the samples, time over size, with the thresholds;
 * below what follows from them, the share of each rail in a large body. Between
 * rails that lead to different ranks nothing is cut, so each peer's shares add
 * up to the whole.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample.h"

enum { STEPS = 8 }; /* sizes between one and its double, of shares */

static const double LEFT = 32; /* bytes at the left edge */

bool plot_is_possible(void)
{
	if (system("command -v gnuplot >/dev/null") == 0)
		return true;
	say("--plot needs gnuplot, which is not in the PATH (Debian: "
	    "gnuplot-nox)");
	return false;
}

/* In gnuplot's single quotes. */
static void put_quoted(FILE *f, const char *text)
{
	fputc('\'', f);
	for (; *text != 0; text++) {
		if (*text == '\'')
			fputc('\'', f);
		fputc(*text, f);
	}
	fputc('\'', f);
}

/* --- data --- */

/* There is no 0 on a logarithmic axis: its time is shown at the left edge. */
static void put_curve(FILE *f, const char *name, int i,
		      const struct nm_curve *c)
{
	fprintf(f, "$%s%d << END\n", name, i);
	for (int k = 0; k < c->n; k++)
		fprintf(f, "%.0f %.3f\n", k > 0 ? c->at[k].bytes : LEFT,
			c->at[k].ns / 1000);
	fputs("END\n", f);
}

/* Into which parts a body for the peer is cut; those of other rails are 0. */
static void cut(const struct samples *s, int peer, size_t bytes,
		size_t parts[NM_RAILS_MAX])
{
	struct nm_split_link links[NM_RAILS_MAX];
	int rail[NM_RAILS_MAX], n = 0, known = 0;
	size_t out[NM_RAILS_MAX];

	memset(parts, 0, NM_RAILS_MAX * sizeof(*parts));
	for (int i = 0; i < s->n; i++) {
		if (s->of[i].driver == NULL || s->of[i].peer != peer)
			continue;
		links[n].curve = &s->of[i].body;
		links[n].wait_ns = 0;
		known += s->of[i].body.n > 0;
		rail[n++] = i;
	}
	if (known < n) { /* nothing is cut then */
		parts[rail[0]] = bytes;
		return;
	}
	nm_split_cut(links, n, bytes, out);
	for (int k = 0; k < n; k++)
		parts[rail[k]] = out[k];
}

static double largest(const struct samples *s)
{
	double most = 0;

	for (int i = 0; i < s->n; i++) {
		const struct nm_curve *c = &s->of[i].body;

		if (c->n > 0 && c->at[c->n - 1].bytes > most)
			most = c->at[c->n - 1].bytes;
	}
	return most;
}

static void put_shares(FILE *f, const struct samples *s, int i)
{
	double most = largest(s);

	fprintf(f, "$share%d << END\n", i);
	for (int step = 0;; step++) {
		double bytes = (double)(1024ul << step / STEPS) *
			       (1 + (double)(step % STEPS) / STEPS);
		size_t parts[NM_RAILS_MAX];

		if (bytes > most)
			break;
		if (bytes <= (double)s->of[i].threshold)
			continue;
		cut(s, s->of[i].peer, (size_t)bytes, parts);
		fprintf(f, "%.0f %.3f\n", bytes,
			100 * (double)parts[i] / (double)(size_t)bytes);
	}
	fputs("END\n", f);
}

/* --- the two halves --- */

static void put_frame(FILE *f, const struct samples *s, const char *picture)
{
	bool svg = strcmp(picture + strlen(picture) - 4, ".svg") == 0;

	fprintf(f, "set terminal %s size 960,960 noenhanced\nset output ",
		svg ? "svg" : "pngcairo");
	put_quoted(f, picture);
	fprintf(f,
		"\nset multiplot layout 2,1\nset grid\n"
		"set logscale x 2\nset format x '%%.0b%%B'\n"
		"set xrange [%.0f:%.0f]\nset xlabel 'bytes'\nset lmargin 10\n",
		LEFT, largest(s));
}

static void put_samples(FILE *f, const struct samples *s)
{
	fputs("set title 'time of a message, at the left edge of an empty one; "
	      "dashed: "
	      "where rendezvous begins'\n"
	      "set ylabel 'us'\nset logscale y\nset key bottom right\n",
	      f);
	for (int i = 0; i < s->n; i++)
		if (s->of[i].body.n > 0)
			fprintf(f,
				"set arrow from %zu, graph 0 to %zu, graph 1 "
				"nohead lc %d dt 2\n",
				s->of[i].threshold, s->of[i].threshold, i + 1);
	fputs("plot 1/0 notitle", f);
	for (int i = 0; i < s->n; i++) {
		const struct sample *one = &s->of[i];

		if (one->body.n == 0)
			continue;
		fprintf(f,
			", $body%d with linespoints lc %d pt 7 title 'rail %d, "
			"%s, with rank %d: rendezvous'",
			i, i + 1, i, one->driver, one->peer);
		if (one->eager.n > 0)
			fprintf(f,
				", $eager%d with linespoints lc %d pt 6 "
				"title 'eager, chosen up to %zu bytes'",
				i, i + 1, one->threshold);
	}
	fputs("\nunset arrow\n", f);
}

static void put_choices(FILE *f, const struct samples *s)
{
	fputs("set title 'share of each rail in a body that is cut'\n"
	      "set ylabel '%'\nunset logscale y\nset yrange [-2:102]\n"
	      "set key center left\nplot 1/0 notitle",
	      f);
	for (int i = 0; i < s->n; i++)
		if (s->of[i].body.n > 0)
			fprintf(f,
				", $share%d with lines lw 2 lc %d title 'rail "
				"%d, %s, to rank %d'",
				i, i + 1, i, s->of[i].driver, s->of[i].peer);
	fputs("\nunset multiplot\n", f);
}

static void put_all(FILE *f, const struct samples *s, const char *picture)
{
	for (int i = 0; i < s->n; i++) {
		if (s->of[i].body.n == 0)
			continue;
		put_curve(f, "body", i, &s->of[i].body);
		if (s->of[i].eager.n > 0)
			put_curve(f, "eager", i, &s->of[i].eager);
		put_shares(f, s, i);
	}
	put_frame(f, s, picture);
	put_samples(f, s);
	put_choices(f, s);
}

/* It may end before it has read all of that, and says why by its status. */
bool plot(const struct samples *s, const char *picture)
{
	FILE *f = popen("gnuplot", "w");
	void (*before)(int);
	bool good;

	if (f == NULL) {
		say("gnuplot cannot be started: %m");
		return false;
	}
	before = signal(SIGPIPE, SIG_IGN);
	put_all(f, s, picture);
	good = fflush(f) == 0;
	good &= pclose(f) == 0;
	signal(SIGPIPE, before);
	if (!good) {
		say("gnuplot could not draw %s", picture);
		return false;
	}
	return true;
}
