/*
 * A process as libraries of another version would make it: OTHER_VERSION of the
 * table, in which there is nothing. It stays until its input ends.
 */
#include <stdio.h>
#include <unistd.h>

#include <base/compiler.h>
#include <base/offer.h>

static const struct base_offer_entry entries[] = {
	BASE_OFFER_NUMBER("something", 1),
};

extern BASE_HIDDEN const struct base_offer other;

BASE_USED const struct base_offer other = {
	.version = OTHER_VERSION,
	.n = 1,
	.entries = entries,
};

BASE_OFFER_NOTE("marcel", "other");

int main(void)
{
	char byte;

	printf("there\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
