/* nmad/data/data.c: every kind of description means the same bytes. */
#include "../../check.h"

#include <sys/mman.h>
#include <unistd.h>

#include "../../../nmad/data/place.h"

enum { BYTES = 1000, PIECES = 37 };

static unsigned char memory[4 * BYTES], plain[BYTES];
static struct iovec iov[PIECES];

/* A walker over every second byte of `memory`. */
static int walk_odd(const void *what, size_t offset, size_t length,
		    nm_piece_fn each, void *arg)
{
	const unsigned char *base = what;

	for (size_t i = offset; i < offset + length; i++) {
		int rc = each(arg, (void *)&base[2 * i + 1], 1);

		if (rc != 0)
			return rc;
	}
	return 0;
}

/* Pieces of random sizes (some 0) with gaps between them; BYTES in all. */
static void cut_pieces(void)
{
	size_t left = BYTES, at = 0;

	for (int i = 0; i < PIECES; i++) {
		size_t n = i == PIECES - 1 ? left : check_random() % 60;

		if (n > left)
			n = left;
		iov[i].iov_base = memory + at;
		iov[i].iov_len = n;
		at += n + check_random() % 50;
		left -= n;
	}
}

static struct nm_data make(int kind)
{
	cut_pieces();
	if (kind == 0)
		return nm_data_flat(memory, BYTES);
	if (kind == 1)
		return nm_data_iovec(iov, PIECES);
	return nm_data_walker(memory, BYTES, walk_odd);
}

TEST(every_slice_of_every_kind_comes_out_as_it_went_in)
{
	unsigned char got[BYTES];

	for (int round = 0; round < 600; round++) {
		struct nm_data d = make(round % 3);
		size_t offset = check_random() % (BYTES + 1);
		size_t length = check_random() % (BYTES - offset + 1);

		CHECK_INT(d.length, BYTES);
		for (int i = 0; i < BYTES; i++)
			plain[i] = (unsigned char)check_random();
		/* In by two parts cut anywhere, out by one slice. */
		nm_data_copy_in(&d, 0, plain, offset);
		nm_data_copy_in(&d, offset, plain + offset, BYTES - offset);
		nm_data_copy_out(&d, offset, got, length);
		CHECK_INT(memcmp(got, plain + offset, length), 0);
	}
}

/* Forwards mostly, as drivers do, and anywhere. */
TEST(walks_from_any_place_find_the_same_bytes)
{
	unsigned char got[BYTES];

	for (int kind = 0; kind < 3; kind++) {
		struct nm_data d = make(kind);
		struct nm_data_place in = { 0 }, out = { 0 };
		size_t offset = 0;

		for (int round = 0; round < 2000; round++) {
			size_t length = check_random() % 50;

			if (check_random() % 10 == 0)
				offset = check_random() % BYTES;
			if (length > BYTES - offset)
				length = BYTES - offset;
			for (size_t i = 0; i < length; i++)
				plain[i] = (unsigned char)check_random();
			nm_data_copy_in_on(&d, &in, offset, plain, length);
			nm_data_copy_out(&d, offset, got, length);
			CHECK_INT(memcmp(got, plain, length), 0);
			memset(got, 0, length);
			nm_data_copy_out_on(&d, &out, offset, got, length);
			CHECK_INT(memcmp(got, plain, length), 0);
			offset = (offset + length) % BYTES;
		}
	}
}

static int count(void *arg, void *piece, size_t bytes)
{
	size_t *n = arg;

	(void)piece;
	*n += bytes;
	return 0;
}

/* The others lie in pages that may not be looked at. */
TEST(a_walk_looks_at_no_piece_that_is_far_from_its_place)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t each = page / sizeof(struct iovec), n = 5 * each, seen = 0;
	struct nm_data_place place = { 0 };
	struct nm_data d;
	struct iovec *list = mmap(NULL, 5 * page, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(list != MAP_FAILED);
	for (size_t i = 0; i < n; i++)
		list[i] = (struct iovec){ memory, 3 };
	d = nm_data_iovec(list, (unsigned)n);
	nm_data_walk_on(&d, &place, 9 * each, 1, count, &seen);
	CHECK_INT(mprotect(list, 2 * page, PROT_NONE), 0);
	CHECK_INT(mprotect(list + 4 * each, page, PROT_NONE), 0);
	for (size_t at = 9 * each; at < 12 * each; at += 3)
		nm_data_walk_on(&d, &place, at, 3, count, &seen);
	for (size_t at = 12 * each; at > 9 * each; at -= 3)
		nm_data_walk_on(&d, &place, at - 3, 3, count, &seen);
	CHECK_INT(seen, 1 + 6 * each);
	CHECK_INT(munmap(list, 5 * page), 0);
}

TEST(bytes_outside_the_description_are_not_touched)
{
	for (int kind = 0; kind < 3; kind++) {
		struct nm_data d = make(kind);
		int kept = 0;

		memset(memory, 0xee, sizeof(memory));
		memset(plain, 0x11, BYTES);
		nm_data_copy_in(&d, 0, plain, BYTES);
		for (size_t i = 0; i < sizeof(memory); i++)
			kept += memory[i] == 0xee;
		CHECK_INT(kept, sizeof(memory) - BYTES);
	}
}

static int stop_at_third(void *arg, void *piece, size_t bytes)
{
	int *n = arg;

	(void)piece;
	(void)bytes;
	return ++*n == 3 ? 42 : 0;
}

static int refuse_empty(void *arg, void *piece, size_t bytes)
{
	(void)arg;
	(void)piece;
	return bytes == 0;
}

TEST(a_walk_passes_over_empty_pieces)
{
	struct iovec list[] = { { NULL, 0 }, { memory, 2 }, { NULL, 0 },
				{ NULL, 0 }, { memory, 1 }, { NULL, 0 } };
	struct nm_data d = nm_data_iovec(list, 6);

	for (size_t at = 0; at <= 3; at++)
		for (size_t length = 0; length <= 3 - at; length++)
			CHECK_INT(nm_data_walk(&d, at, length, refuse_empty,
					       NULL),
				  0);
	d = nm_data_iovec(list, 1);
	CHECK_INT(nm_data_walk(&d, 0, 0, refuse_empty, NULL), 0);
	d = nm_data_iovec(NULL, 0);
	CHECK_INT(nm_data_walk(&d, 0, 0, refuse_empty, NULL), 0);
}

TEST(a_walk_stops_when_it_is_told_and_says_why)
{
	struct nm_data d = nm_data_walker(memory, BYTES, walk_odd);
	int n = 0;

	CHECK_INT(nm_data_walk(&d, 10, 100, stop_at_third, &n), 42);
	CHECK_INT(n, 3);
	n = 0;
	CHECK_INT(nm_data_walk(&d, 10, 0, stop_at_third, &n), 0);
	CHECK_INT(n, 0);
}
