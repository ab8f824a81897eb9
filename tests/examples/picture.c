/*
 * examples/heat/picture.c: pictures are read whole or refused, with a reason.
 */
#include "../check.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../examples/heat/picture.h"

static struct picture p;
static char why[256], path[64];
static int fd = -1;

/* A file of these bytes; its name is in `path`. */
static void file_of(const char *bytes, size_t n)
{
	if (fd >= 0)
		close(fd);
	fd = memfd_create("picture", MFD_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_INT(write(fd, bytes, n), n);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
}

static int read_bytes(const char *bytes, size_t n)
{
	picture_exit(&p);
	why[0] = '\0';
	file_of(bytes, n);
	return picture_read(path, &p, why, sizeof(why));
}

static int read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

static void refused(const char *bytes, size_t n, const char *reason)
{
	CHECK(read_bytes(bytes, n) < 0);
	if (strstr(why, reason) == NULL)
		printf("# \"%s\" is not in \"%s\"\n", reason, why);
	CHECK(strstr(why, reason) != NULL);
	CHECK(strstr(why, path) == why);
}

#define REFUSED(bytes, reason) refused(bytes, sizeof(bytes) - 1, reason)

static int heat_at(int x, int y)
{
	return picture_sample(p.heat[y * p.width + x]);
}

TEST(grey_as_text)
{
	CHECK_INT(read_text("P2 # comment\n#another\n3 2\n10\n"
			    "0 5 10\n# inside\n10 0 5"),
		  0);
	CHECK_INT(p.width, 3);
	CHECK_INT(p.height, 2);
	CHECK_INT(heat_at(0, 0), 0);
	CHECK_INT(heat_at(1, 0), 128);
	CHECK_INT(heat_at(2, 0), 255);
	CHECK_INT(heat_at(2, 1), 128);
}

TEST(grey_as_bytes)
{
	/* The first sample is a blank: it does not belong to the header. */
	CHECK_INT(read_text("P5 2 2 255\n \xff\n\x80"), 0);
	CHECK_INT(heat_at(0, 0), ' ');
	CHECK_INT(heat_at(1, 0), 255);
	CHECK_INT(heat_at(0, 1), '\n');
	CHECK_INT(heat_at(1, 1), 128);
}

TEST(two_bytes_when_samples_are_large)
{
	static const char bytes[] = "P5 2 1 65535\n\xff\xff\x7f\xff";

	CHECK_INT(read_bytes(bytes, sizeof(bytes) - 1), 0);
	CHECK_INT(heat_at(0, 0), 255);
	CHECK_INT(heat_at(1, 0), 127);
}

TEST(of_colours_the_luminance_counts)
{
	CHECK_INT(read_text("P3 2 2 255 255 0 0 0 255 0 0 0 255 9 9 9"), 0);
	CHECK_INT(heat_at(0, 0), 76);
	CHECK_INT(heat_at(1, 0), 149);
	CHECK_INT(heat_at(0, 1), 29);
	CHECK_INT(heat_at(1, 1), 9);
	CHECK_INT(read_text("P6 1 1 255\nABC"), 0);
	CHECK_INT(heat_at(0, 0), (299 * 'A' + 587 * 'B' + 114 * 'C') / 1000);
}

TEST(truncated_files_are_refused)
{
	REFUSED("", "begins with 0 bytes");
	REFUSED("P", "begins with 1 bytes");
	REFUSED("P5", "ended before the width");
	REFUSED("P5 12", "ended before the height");
	REFUSED("P5 12 3 # no more", "ended before the greatest sample");
	REFUSED("P5 2 2 255\nabc", "ended after 3 of 4 samples");
	REFUSED("P6 2 2 255\nabc", "ended after 3 of 12 samples");
	REFUSED("P5 2 1 300\n\0\0\0", "ended after 1 of 2 samples");
	REFUSED("P2 2 2 255\n1 2 3\n", "ended before sample 4 of 4");
	REFUSED("P5 30000 30000 255\n", "ended after 0 of 900000000 samples");
}

TEST(what_is_no_picture_is_refused)
{
	REFUSED("\x89PNG\r\n", "begins with 2 bytes 0x8950, expected P2, P3");
	REFUSED("P4 8 1\n\xff", "expected P2, P3, P5 or P6");
	REFUSED("P5 wide", "expected the width, found 'w' (0x77)");
	REFUSED("P5 -3 2 255", "expected the width, found '-'");
	REFUSED("P5 0 2 255\n", "expected numbers from 1");
	REFUSED("P5 2 2 0\n", "expected numbers from 1");
	REFUSED("P5 40000 2 255", "the width is more than 32768");
	REFUSED("P5 99999999999999999999 2", "the width is more than 32768");
	REFUSED("P5 2 2 65536", "the greatest sample is more than 65535");
	REFUSED("P2 2 1 10 3 11", "sample 2 of 2 is more than 10");
	REFUSED("P5 2 1 10\n\x03\x0b", "sample 2 of 2 is 11, more than 10");
	REFUSED("P2 2 1 10 3 x", "expected sample 2 of 2, found 'x'");
}

TEST(a_file_that_cannot_be_opened_is_refused)
{
	CHECK(picture_read("/no/such/file", &p, why, sizeof(why)) < 0);
	CHECK_STR(why, "/no/such/file: No such file or directory");
	CHECK(picture_read("/tmp", &p, why, sizeof(why)) < 0);
}

TEST(what_is_written_can_be_read)
{
	float heat[6] = { -3, 0, 1.4f, 1.6f, 254.7f, 300 };
	struct picture out = { .width = 3, .height = 2, .heat = heat };

	file_of("", 0);
	CHECK_INT(picture_write_pgm(&out, path), 0);
	picture_exit(&p);
	CHECK_INT(picture_read(path, &p, why, sizeof(why)), 0);
	CHECK_INT(p.width, 3);
	CHECK_INT(p.height, 2);
	CHECK(heat_at(0, 0) == 0 && heat_at(1, 0) == 0 && heat_at(2, 0) == 1);
	CHECK(heat_at(0, 1) == 2 && heat_at(1, 1) == 255);
	CHECK_INT(heat_at(2, 1), 255);
	picture_exit(&p);
}
