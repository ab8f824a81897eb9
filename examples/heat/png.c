/*
 * PNG through libpng, coloured as a glowing body: black, red, yellow, white.
 */
#include <errno.h>
#include <stdlib.h>

#include <png.h>

#include "picture.h"

static void colour(unsigned char s, unsigned char *rgb)
{
	int ramp = s * 3;

	for (int i = 0; i < 3; i++, ramp -= 255)
		rgb[i] = (unsigned char)(ramp < 0     ? 0
					 : ramp > 255 ? 255
						      : ramp);
}

int picture_write_png(const struct picture *p, const char *path)
{
	size_t all = (size_t)p->width * (size_t)p->height;
	unsigned char *rgb = malloc(3 * all);
	png_image image = { .version = PNG_IMAGE_VERSION };
	int ok;

	if (rgb == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++)
		colour(picture_sample(p->heat[i]), rgb + 3 * i);
	image.width = (png_uint_32)p->width;
	image.height = (png_uint_32)p->height;
	image.format = PNG_FORMAT_RGB;
	errno = 0;
	ok = png_image_write_to_file(&image, path, 0, rgb, 0, NULL);
	free(rgb);
	if (ok)
		return 0;
	return errno != 0 ? -errno : -EIO;
}
