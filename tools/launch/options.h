/*
 * mpirun's options, as a table.
 */
#ifndef LAUNCH_OPTIONS_H
#define LAUNCH_OPTIONS_H

#include "job.h"

/* What --help shows together, in this order. */
enum option_group { OF_PROGRAM, OF_PLACE, OF_OUTPUT, OF_END, OF_ELSE };

/* What an option's value is, for who completes it. */
enum option_takes {
	TAKES_NOTHING,
	TAKES_TEXT,
	TAKES_WORD,
	TAKES_FILE,
	TAKES_DIRECTORY,
	TAKES_VARIABLE
};

struct option {
	enum option_group group;
	const char *names[2]; /* the second may be NULL */
	const char *value;    /* its name in --help; NULL: it takes none */
	enum option_takes takes;
	const char *words; /* TAKES_WORD: what it may be, '|' in between */
	void (*set)(struct options *o, const char *name, const char *text);
	const char *help; /* lines; TAKES_WORD: the words follow */
};

/* Ends with one whose help is NULL. */
extern const struct option option_table[];

/* NULL: there is none of that name. */
const struct option *option_named(const char *name);

/* TAKES_WORD: "a, b or c", of which `room` bytes are written at most. */
void option_words(const struct option *t, char *out, size_t room);

/* help.c */
void help_print(void);

/*
 * complete.c: how the last of these words of a command line, which end with a
 * NULL, may go on. The words of mpirun itself are not among them.
 */
void complete(char **words);

#endif
