/*
 * PGM and PPM. The header is text: a magic number, width, height and greatest
 * sample, with comments from '#' to the end of the line; then the samples, as
 * text (P2, P3) or as one or two bytes each (P5, P6).
 */
#include "picture.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file being read, and where the reason of a failure goes. */
struct reader {
	FILE *file;
	const char *path;
	char *why;
	size_t room;
	int channels, greatest;
	int is_text;
};

static int __attribute__((format(printf, 2, 3)))
refuse(struct reader *r, const char *fmt, ...)
{
	int n = snprintf(r->why, r->room, "%s: ", r->path);
	va_list ap;

	va_start(ap, fmt);
	if ((size_t)n < r->room)
		vsnprintf(r->why + n, r->room - (size_t)n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* The next character that is neither blank nor comment, or EOF. */
static int next_char(struct reader *r)
{
	int c = getc(r->file);

	while (c != EOF && (isspace(c) || c == '#')) {
		if (c == '#')
			while (c != '\n' && c != EOF)
				c = getc(r->file);
		else
			c = getc(r->file);
	}
	return c;
}

/*
 * A number of the text, at most `max`, and the one character behind it; -1:
 * none, with the reason said.
 */
static int number(struct reader *r, const char *what, int max)
{
	int c = next_char(r);
	long n = 0;

	if (c == EOF)
		return refuse(r, "ended before %s", what), -1;
	if (!isdigit(c))
		return refuse(r, "expected %s, found '%c' (0x%02x)", what,
			      isprint(c) ? c : '?', (unsigned)c),
		       -1;
	for (; c != EOF && isdigit(c); c = getc(r->file))
		if (n <= max)
			n = n * 10 + (c - '0');
	if (n > max)
		return refuse(r, "%s is more than %d", what, max), -1;
	return (int)n;
}

static int read_header(struct reader *r, struct picture *p)
{
	char magic[3] = "";
	size_t n = fread(magic, 1, 2, r->file);

	if (n < 2 || magic[0] != 'P' || strchr("2356", magic[1]) == NULL)
		return refuse(r,
			      "not a PGM or PPM picture: begins with %zu bytes "
			      "0x%02x%02x, expected P2, P3, P5 or P6",
			      n, (unsigned char)magic[0],
			      (unsigned char)magic[1]);
	r->is_text = magic[1] < '5';
	r->channels = magic[1] == '3' || magic[1] == '6' ? 3 : 1;
	p->width = number(r, "the width", PICTURE_SIDE_MAX);
	if (p->width < 0)
		return -EINVAL;
	p->height = number(r, "the height", PICTURE_SIDE_MAX);
	if (p->height < 0)
		return -EINVAL;
	r->greatest = number(r, "the greatest sample", 65535);
	if (r->greatest < 0)
		return -EINVAL;
	if (p->width == 0 || p->height == 0 || r->greatest == 0)
		return refuse(r,
			      "%d x %d samples of at most %d: expected numbers "
			      "from 1",
			      p->width, p->height, r->greatest);
	return 0;
}

/* One sample, or -1 with the reason said. */
static int sample(struct reader *r, size_t index, size_t all)
{
	char what[64];
	int high = 0, low;

	if (r->is_text) {
		snprintf(what, sizeof(what), "sample %zu of %zu", index + 1,
			 all);
		return number(r, what, r->greatest);
	}
	if (r->greatest > 255)
		high = getc(r->file);
	low = getc(r->file);
	if (high == EOF || low == EOF)
		return refuse(r, "truncated: ended after %zu of %zu samples",
			      index, all),
		       -1;
	if (high * 256 + low > r->greatest)
		return refuse(r, "sample %zu of %zu is %d, more than %d",
			      index + 1, all, high * 256 + low, r->greatest),
		       -1;
	return high * 256 + low;
}

/* Luminance as in Rec. 601, in integers, so that it is the same everywhere. */
static int pixel(struct reader *r, size_t index, size_t all)
{
	static const int weight[3] = { 299, 587, 114 };
	int sum = 0, s;

	if (r->channels == 1)
		return sample(r, index, all);
	for (int i = 0; i < 3; i++) {
		s = sample(r, index * 3 + (size_t)i, all * 3);
		if (s < 0)
			return -1;
		sum += weight[i] * s;
	}
	return sum / 1000;
}

/* Room for one more cell; a header may promise more than the file has. */
static int grow(struct reader *r, struct picture *p, size_t have, size_t all)
{
	size_t room = have == 0 ? 65536 : have * 2;
	float *heat;

	if (have != 0 && (have < 65536 || (have & (have - 1)) != 0))
		return 0;
	if (room > all)
		room = all;
	heat = realloc(p->heat, room * sizeof(*heat));
	if (heat == NULL) {
		refuse(r, "no memory for %zu cells", room);
		return -ENOMEM;
	}
	p->heat = heat;
	return 0;
}

static int read_samples(struct reader *r, struct picture *p)
{
	size_t all = (size_t)p->width * (size_t)p->height;

	for (size_t i = 0; i < all; i++) {
		int s, rc = grow(r, p, i, all);

		if (rc != 0)
			return rc;
		s = pixel(r, i, all);
		if (s < 0)
			return -EINVAL;
		p->heat[i] = (float)s * 255 / (float)r->greatest;
	}
	return 0;
}

int picture_read(const char *path, struct picture *out, char *why, size_t room)
{
	struct reader r = { .path = path, .why = why, .room = room };
	struct picture p = { .heat = NULL };
	int rc;

	r.file = fopen(path, "rb");
	if (r.file == NULL) {
		rc = -errno;
		refuse(&r, "%s", strerror(-rc));
		return rc;
	}
	rc = read_header(&r, &p);
	if (rc == 0)
		rc = read_samples(&r, &p);
	if (rc != 0 && ferror(r.file))
		refuse(&r, "cannot be read: %s", strerror(errno));
	fclose(r.file);
	if (rc != 0)
		picture_exit(&p);
	else
		*out = p;
	return rc;
}

void picture_exit(struct picture *p)
{
	free(p->heat);
	p->heat = NULL;
}

int picture_write_pgm(const struct picture *p, const char *path)
{
	size_t all = (size_t)p->width * (size_t)p->height;
	FILE *f = fopen(path, "wb");
	int failed;

	if (f == NULL)
		return -errno;
	fprintf(f, "P5\n%d %d\n255\n", p->width, p->height);
	for (size_t i = 0; i < all; i++)
		putc(picture_sample(p->heat[i]), f);
	failed = ferror(f);
	if (fclose(f) != 0 || failed)
		return errno != 0 ? -errno : -EIO;
	return 0;
}
