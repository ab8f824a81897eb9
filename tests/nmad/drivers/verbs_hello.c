/*
 * drivers/verbs/hello.c: what is put is got, and whatever else comes is
 * refused: by its length, its first bytes, its version or its proof.
 */
#include "../../check.h"

#include <stdlib.h>
#include <string.h>

#include "../../../nmad/drivers/verbs/verbs.h"

static unsigned char key[16];

static uint32_t number(void)
{
	return (uint32_t)check_random();
}

static void fill(void *to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((unsigned char *)to)[i] = (unsigned char)check_random();
}

static struct verbs_hello any(void)
{
	struct verbs_hello h = {
		.from = number(),
		.to = number(),
		.queue = { .is_ethernet = number() % 2,
			   .mtu = (uint8_t)number(),
			   .lid = (uint16_t)number(),
			   .qpn = number(),
			   .psn = number() },
		.heard = number(),
		.is_met = number() % 2,
	};

	fill(h.queue.gid.raw, sizeof(h.queue.gid.raw));
	h.clerk = h.queue;
	h.clerk.qpn = number();
	return h;
}

static void same(const struct verbs_addr *a, const struct verbs_addr *b)
{
	CHECK_INT(a->is_ethernet, b->is_ethernet);
	CHECK_INT(a->mtu, b->mtu);
	CHECK_INT(a->lid, b->lid);
	CHECK_INT(a->qpn, b->qpn);
	CHECK(memcmp(&a->gid, &b->gid, sizeof(a->gid)) == 0);
}

TEST(what_is_put_is_got)
{
	unsigned char text[VERBS_HELLO];
	struct verbs_hello h, got;

	for (int i = 0; i < 1000; i++) {
		fill(key, sizeof(key));
		h = any();
		nm_verbs_hello_put(text, &h, key);
		CHECK(nm_verbs_hello_get(text, sizeof(text), &got, key) ==
		      NULL);
		CHECK_INT(got.from, h.from);
		CHECK_INT(got.to, h.to);
		CHECK_INT(got.heard, h.heard);
		CHECK_INT(got.is_met, h.is_met);
		CHECK_INT(got.queue.psn, h.queue.psn);
		same(&got.queue, &h.queue);
		same(&got.clerk, &h.clerk);
	}
}

TEST(one_bit_that_is_wrong_is_enough)
{
	unsigned char text[VERBS_HELLO];
	struct verbs_hello h = any(), got;

	fill(key, sizeof(key));
	nm_verbs_hello_put(text, &h, key);
	for (unsigned bit = 0; bit < 8 * sizeof(text); bit++) {
		text[bit / 8] ^= (unsigned char)(1u << bit % 8);
		CHECK(nm_verbs_hello_get(text, sizeof(text), &got, key) !=
		      NULL);
		text[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	for (unsigned bit = 0; bit < 8 * sizeof(key); bit++) {
		key[bit / 8] ^= (unsigned char)(1u << bit % 8);
		CHECK_STR(nm_verbs_hello_get(text, sizeof(text), &got, key),
			  "does not know this job's key");
		key[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	CHECK(nm_verbs_hello_get(text, sizeof(text), &got, key) == NULL);
}

/* Each in memory of its own, so that a sanitizer sees who reads beyond. */
TEST(other_lengths_are_refused_unread)
{
	unsigned char text[VERBS_HELLO];
	struct verbs_hello h = any(), got;

	nm_verbs_hello_put(text, &h, key);
	for (size_t n = 0; n < 200; n++) {
		unsigned char *some = malloc(n + 1);

		if (n == sizeof(text)) {
			free(some);
			continue;
		}
		memset(some, 0, n);
		memcpy(some, text, n < sizeof(text) ? n : sizeof(text));
		CHECK_STR(nm_verbs_hello_get(some, n, &got, key),
			  "not a process of a job of ours");
		free(some);
	}
}

TEST(another_version_is_named)
{
	unsigned char text[VERBS_HELLO];
	struct verbs_hello h = any(), got;

	nm_verbs_hello_put(text, &h, key);
	text[4]++;
	CHECK_STR(nm_verbs_hello_get(text, sizeof(text), &got, key),
		  "speaks another version");
}

/* Random bytes behind a right beginning. */
TEST(nobody_guesses_a_proof)
{
	unsigned char text[VERBS_HELLO];
	struct verbs_hello h = any(), got;

	for (int i = 0; i < 100000; i++) {
		nm_verbs_hello_put(text, &h, key);
		fill(text + 6, sizeof(text) - 6);
		CHECK(nm_verbs_hello_get(text, sizeof(text), &got, key) !=
		      NULL);
	}
}
