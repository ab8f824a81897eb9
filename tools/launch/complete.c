/*
 * mpirun --complete WORDS...: how the last word may go on, for the shells'
 * scripts beside this file, which thus know no option by themselves. Printed is
 * either one line that says what it is,
 *
 *   :command N    the words from the Nth on (0: the first after mpirun) are a
 *                 program and its arguments
 *   :files :directories :variables
 *
 * or all that it may be, a word, a tab and what that is on each line. After
 * "--name=" the words hold this part as well.
 */
#include <stdio.h>
#include <string.h>

#include "options.h"

/* Of an option's text only what comes before a further explanation. */
static void print_option(const struct option *t, const char *begin)
{
	for (int i = 0; i < 2 && t->names[i] != NULL; i++)
		if (strncmp(t->names[i], begin, strlen(begin)) == 0)
			printf("%s\t%.*s\n", t->names[i],
			       (int)strcspn(t->help, "\n,:;"), t->help);
}

/* `prefix` is "--name=", of which `length` bytes count, or nothing. */
static void print_words(const struct option *t, const char *begin,
			const char *prefix, int length)
{
	const char *word = t->words;
	size_t n;

	for (;; word += n + 1) {
		n = strcspn(word, "|");
		if (strncmp(word, begin, strlen(begin)) == 0)
			printf("%.*s%.*s\t\n", length, prefix, (int)n, word);
		if (word[n] == '\0')
			return;
	}
}

static void print_value(const struct option *t, const char *begin,
			const char *prefix, int length)
{
	switch (t->takes) {
	case TAKES_WORD:
		print_words(t, begin, prefix, length);
		break;
	case TAKES_FILE:
		puts(":files");
		break;
	case TAKES_DIRECTORY:
		puts(":directories");
		break;
	case TAKES_VARIABLE:
		puts(":variables");
		break;
	default: /* nobody but the user knows */
		break;
	}
}

/* The last word begins with a '-'. */
static void complete_option(const char *word)
{
	const char *equals = strchr(word, '=');
	const struct option *t;
	char name[64];
	int n = equals != NULL ? (int)(equals - word) : 0;

	if (equals == NULL) {
		for (t = option_table; t->help != NULL; t++)
			print_option(t, word);
		return;
	}
	snprintf(name, sizeof(name), "%.*s", n, word);
	t = option_named(name);
	if (t != NULL && strncmp(word, "--", 2) == 0)
		print_value(t, equals + 1, word, n + 1);
}

void complete(char **words)
{
	int i = 0;

	if (words[0] == NULL)
		return;
	while (words[i + 1] != NULL) {
		const struct option *t = option_named(words[i]);
		int first = i;

		if (t != NULL && t->value != NULL) {
			if (words[i + 2] == NULL) {
				print_value(t, words[i + 1], "", 0);
				return;
			}
			i += 2;
			continue;
		}
		if (words[i][0] == '-' && strcmp(words[i], "--") != 0) {
			i++;
			continue;
		}
		/* A program, up to the colon before the next. */
		first += strcmp(words[i], "--") == 0;
		while (words[i + 1] != NULL && strcmp(words[i], ":") != 0)
			i++;
		if (words[i + 1] == NULL) {
			printf(":command %d\n", first);
			return;
		}
		i++;
	}
	if (words[i][0] == '-')
		complete_option(words[i]);
	else
		printf(":command %d\n", i);
}
