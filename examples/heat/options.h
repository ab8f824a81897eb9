/*
 * What the command line of heat says.
 */
#ifndef HEAT_OPTIONS_H
#define HEAT_OPTIONS_H

struct options {
	int rows, cols; /* tiles */
	int steps;
	int single, verify;
	const char *out;     /* prefix of the files written */
	const char *picture; /* to read */
};

/*
 * 0: go on; 2: a mistake; -1: nothing to do (--help). Only the rank that
 * speaks says so on stderr or stdout.
 */
int options_parse(struct options *o, int argc, char **argv, int speaks);

#endif
