/*
 * The parts of nm-sample.
 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

#include "../../nmad/core/core.h"

enum { EXIT_BAD = 1, EXIT_USAGE = 2 };

struct options {
	const char *file;    /* to write */
	const char *picture; /* to draw, or NULL */
	long time_ms;        /* a rail */
	long max;            /* bytes of the largest body */
	long rounds;         /* over all sizes */
};

/* Read the command line; exits after --help, and if something is wrong. */
void options_parse(struct options *o, int argc, char **argv);

/* What was found of a rail of NMAD_DRIVER. */
struct sample {
	const char *driver;          /* NULL: it is not to be had here */
	int peer;                    /* a rank, or -1: it leads to nobody */
	struct nm_curve body, eager; /* n is 0: not known */
	size_t threshold;            /* bytes above which rendezvous begins */
};

struct samples {
	int n;
	struct sample of[NM_RAILS_MAX];
};

/* --- plot.c --- */

/* Whether there is something to draw with; if not, says so. */
bool plot_is_possible(void);

/*
 * The samples of each rail, and the choices that follow from them: thresholds,
 * and the share of each rail in a body. False: it could not, and says why.
 */
bool plot(const struct samples *s, const char *picture);

/* "nm-sample: text" on stderr. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
