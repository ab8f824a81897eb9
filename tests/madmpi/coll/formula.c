/*
 * Formulas, as a reader understands them: what stands side by side is
 * multiplied.
 */
#include "formula.h"

#include <ctype.h>
#include <stdlib.h>

#include "../../check.h"

/* What is left of one, and what its letters are. */
struct formula {
	const char *left;
	long p, n;
};

static long sum(struct formula *f);

static char peek(struct formula *f)
{
	while (*f->left == ' ')
		f->left++;
	return *f->left;
}

static bool take(struct formula *f, const char *word)
{
	if (peek(f) == '\0' || strncmp(f->left, word, strlen(word)) != 0)
		return false;
	f->left += strlen(word);
	return true;
}

static long log_of(long x)
{
	long log = 0;

	while (1L << log < x)
		log++;
	return log;
}

static long factor(struct formula *f)
{
	long x;

	if (take(f, "log"))
		return log_of(factor(f));
	if (take(f, "p"))
		return f->p;
	if (take(f, "h")) /* each on one of its own */
		return f->p;
	if (take(f, "n"))
		return f->n;
	if (take(f, "e"))
		return 1L << log_of(f->p) != f->p;
	if (take(f, "(")) {
		x = sum(f);
		CHECK(take(f, ")"));
		return x;
	}
	CHECK(isdigit((unsigned char)peek(f)));
	return strtol(f->left, (char **)&f->left, 10);
}

static long product(struct formula *f)
{
	long x = factor(f), y;

	while (peek(f) != '\0' && strchr("+-)", peek(f)) == NULL) {
		if (take(f, "/")) {
			y = factor(f);
			x = (x + y - 1) / y;
		} else {
			x *= factor(f);
		}
	}
	return x;
}

static long sum(struct formula *f)
{
	long x = product(f);

	for (;;) {
		if (take(f, "+"))
			x += product(f);
		else if (take(f, "-"))
			x -= product(f);
		else
			return x;
	}
}

long formula_value(const char *formula, long p, long n)
{
	struct formula f = { formula, p, n };
	long x = sum(&f);

	CHECK_INT(peek(&f), '\0');
	return x;
}

TEST(formulas_are_read_as_they_are_meant)
{
	CHECK_INT(formula_value("0", 7, 5), 0);
	CHECK_INT(formula_value("2(p - 1) (n / p)", 4, 9), 18);
	CHECK_INT(formula_value("p n log p", 5, 10), 150);
	CHECK_INT(formula_value("log p + (p - 1) / 32", 34, 1), 8);
	CHECK_INT(formula_value("log p + e", 8, 1), 3);
	CHECK_INT(formula_value("log p + e", 9, 1), 5);
	CHECK_INT(formula_value("12 - 3 - 4", 1, 1), 5);
}
