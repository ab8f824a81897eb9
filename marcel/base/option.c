/*
 * Options from the environment: parse, check, print.
 */
#include <base/option.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/diag.h>

BASE_PUBLIC int base_parse_long(const char *text, bool suffix, long *out)
{
	static const char units[] = "kmg";
	const char *unit;
	char *end;
	long v;

	/* strtol would skip blanks and take an empty text for 0. */
	if ((*text < '0' || *text > '9') && *text != '-')
		return -EINVAL;
	errno = 0;
	v = strtol(text, &end, 10);
	if (errno != 0 || end == text)
		return -EINVAL;
	if (suffix && *end != 0) {
		unit = strchr(units, *end | 0x20);
		if (unit == NULL)
			return -EINVAL;
		for (long n = unit - units + 1; n > 0; n--)
			if (__builtin_mul_overflow(v, 1024L, &v))
				return -EINVAL;
		end++;
	}
	if (*end != 0)
		return -EINVAL;
	*out = v;
	return 0;
}

/* The allowed values of a CHOICE, as "a, b, c". */
static void list_choices(const struct base_option *o, char *out, size_t bytes)
{
	size_t len = 0;

	out[0] = 0;
	for (size_t i = 0; o->choices[i] != NULL; i++) {
		size_t n = strlen(o->choices[i]);

		if (len + n + 3 > bytes)
			return;
		if (i > 0) {
			memcpy(out + len, ", ", 2);
			len += 2;
		}
		memcpy(out + len, o->choices[i], n + 1);
		len += n;
	}
}

static int parse_choice(struct base_option *o, const char *text)
{
	for (long i = 0; o->choices[i] != NULL; i++) {
		if (strcmp(o->choices[i], text) == 0) {
			o->value = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse(struct base_option *o, const char *text)
{
	long v;

	switch (o->kind) {
	case BASE_OPTION_STRING:
		o->string = text;
		return 0;
	case BASE_OPTION_CHOICE:
		return parse_choice(o, text);
	case BASE_OPTION_BOOL:
		if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
			return -EINVAL;
		o->value = text[0] - '0';
		return 0;
	case BASE_OPTION_INT:
		if (o->word != NULL && strcmp(o->word, text) == 0) {
			o->value = BASE_OPTION_WORD;
			return 0;
		}
		/* fall through */
	case BASE_OPTION_SIZE:
		if (base_parse_long(text, o->kind == BASE_OPTION_SIZE, &v) < 0)
			return -EINVAL;
		if (v < o->min || v > o->max)
			return -EINVAL;
		o->value = v;
		return 0;
	}
	return -EINVAL;
}

BASE_PUBLIC void base_option_allowed(const struct base_option *o, char *out,
				     size_t bytes)
{
	char choices[256];

	switch (o->kind) {
	case BASE_OPTION_CHOICE:
		list_choices(o, choices, sizeof(choices));
		snprintf(out, bytes, "not one of %s", choices);
		break;
	case BASE_OPTION_BOOL:
		snprintf(out, bytes, "not 0 or 1");
		break;
	default:
		snprintf(out, bytes, "not a whole number from %ld to %ld%s%s%s",
			 o->min, o->max,
			 o->kind == BASE_OPTION_SIZE ? " (k, m, g may follow)"
						     : "",
			 o->word != NULL ? ", nor " : "",
			 o->word != NULL ? o->word : "");
	}
}

BASE_PUBLIC int base_option_read(struct base_option *o)
{
	const char *text = getenv(o->name);

	o->is_set = text != NULL && text[0] != 0;
	base_check(parse(o, o->fallback) == 0);
	return o->is_set ? parse(o, text) : 0;
}

BASE_PUBLIC const char *base_option_text(const struct base_option *o)
{
	const char *text = o->is_set ? getenv(o->name) : NULL;

	return text != NULL ? text : o->fallback;
}

BASE_PUBLIC int base_option_load(const struct base_option_table *table)
{
	char allowed[320];
	int rc = 0;

	for (size_t i = 0; i < table->n; i++) {
		struct base_option *o = &table->options[i];

		o->is_loaded = true;
		if (base_option_read(o) == 0)
			continue;
		base_option_allowed(o, allowed, sizeof(allowed));
		base_warn(table->module, "%s=%s: %s", o->name,
			  base_option_text(o), allowed);
		rc = -EINVAL;
	}
	return rc;
}

BASE_PUBLIC void base_option_print(const struct base_option_table *table)
{
	for (size_t i = 0; i < table->n; i++) {
		const struct base_option *o = &table->options[i];

		base_warn(table->module, "%s=%s (%s)  %s", o->name,
			  base_option_text(o),
			  o->is_set ? "environment" : "default", o->help);
	}
}
