/*
 * Environment options as tables: each module lists its options with name,
 * kind, default and help; base_option_load() reads and checks them all and
 * base_option_print() shows them. A nonsense value is an error that names the
 * variable, the value and what is allowed.
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include <base/compiler.h>

enum base_option_kind {
	BASE_OPTION_INT,    /* long, min..max, or a word */
	BASE_OPTION_SIZE,   /* long, bytes, with k, m, g; min..max */
	BASE_OPTION_BOOL,   /* long, 0 or 1 */
	BASE_OPTION_CHOICE, /* long, index into choices */
	BASE_OPTION_STRING, /* const char *, from the environment or default */
};

#define BASE_OPTION_WORD LONG_MIN /* the value, if it is the word */

struct base_option {
	const char *name; /* of the environment variable */
	enum base_option_kind kind;
	const char *fallback;       /* the default, in the same spelling */
	long min, max;              /* of INT and SIZE */
	const char *const *choices; /* of CHOICE, ends with NULL */
	const char *help;           /* one line */
	const char *word; /* of INT: allowed, too, or NULL; BASE_OPTION_WORD */

	union { /* the value, after base_option_load() */
		long value;
		const char *string;
	};
	bool is_set;    /* it came from the environment */
	bool is_loaded; /* by the module whose it is: this is what it uses */
};

/* The options of a module, or of a part of it. */
struct base_option_table {
	const char *module;
	struct base_option *options;
	size_t n;
};

#define BASE_OPTION_TABLE(module, options)                                     \
	{                                                                      \
		module, options, BASE_ARRAY_LEN(options)                       \
	}

/*
 * Read every option of the table. 0, or -EINVAL after a line on stderr for
 * each bad one; then the values must not be used.
 */
int base_option_load(const struct base_option_table *table);

/* The same for one, without a word. -EINVAL: the value is the default. */
int base_option_read(struct base_option *o);

/* As it is spelled: in the environment if it is set there, else the default. */
const char *base_option_text(const struct base_option *o);

/* "not 0 or 1" ...: what a bad value is not. */
void base_option_allowed(const struct base_option *o, char *out, size_t bytes);

/* "NAME=value (default|environment)  help", a line each, on stderr. */
void base_option_print(const struct base_option_table *table);

/*
 * Parse a whole decimal number, with k, m, g as powers of 1024 if `suffix`.
 * 0 or -EINVAL; for options and for tools' arguments alike.
 */
int base_parse_long(const char *text, bool suffix, long *out);

#endif
