/*
 * What MARCEL_SCHED says, and what a schedule was.
 */
#include "random.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <base/diag.h>
#include <base/option.h>
#include <marcel/marcel.h>
#include "vp.h"

enum { SEED_MAX = 32 }; /* more than a long has digits */

/* "17" or "17,hash" */
static int parse_seed(const char *text, struct marcel_random *out)
{
	const char *comma = strchrnul(text, ',');
	size_t len = (size_t)(comma - text);
	char digits[SEED_MAX];
	long seed;

	if (len >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, len);
	digits[len] = 0;
	if (base_parse_long(digits, false, &seed) < 0 || seed < 0)
		return -EINVAL;
	if (*comma != 0 && strcmp(comma, ",hash") != 0)
		return -EINVAL;
	*out = (struct marcel_random){ .on = true,
				       .prints = *comma != 0,
				       .seed = (uint64_t)seed,
				       .state = (uint64_t)seed };
	return 0;
}

int marcel_random_parse(const char *text, struct marcel_random *out)
{
	static const char prefix[] = "random:";

	if (strcmp(text, "steal") == 0) {
		*out = (struct marcel_random){ 0 };
		return 0;
	}
	if (strncmp(text, prefix, sizeof(prefix) - 1) == 0 &&
	    parse_seed(text + sizeof(prefix) - 1, out) == 0)
		return 0;
	base_warn("marcel",
		  "MARCEL_SCHED=%s: not steal, random:SEED or "
		  "random:SEED,hash with a whole number from 0 to %ld",
		  text, LONG_MAX);
	return -EINVAL;
}

void marcel_random_print(void)
{
	struct marcel_random *r = &marcel_sched.random;

	if (!r->prints)
		return;
	r->prints = false;
	base_warn("marcel",
		  "MARCEL_SCHED=random:%llu: %llu picks, hash %016llx",
		  (unsigned long long)r->seed,
		  (unsigned long long)load_relaxed(&r->picks),
		  (unsigned long long)load_relaxed(&r->hash));
}

int marcel_random_init(void)
{
	static bool is_registered;

	if (!marcel_sched.random.prints || is_registered)
		return 0;
	is_registered = atexit(marcel_random_print) == 0;
	return is_registered ? 0 : -ENOMEM;
}

BASE_PUBLIC uint64_t marcel_schedule_hash(void)
{
	return load_relaxed(&marcel_sched.random.hash);
}
