/*
 * In place of png.c where libpng is missing.
 */
#include <errno.h>

#include "picture.h"

int picture_write_png(const struct picture *p, const char *path)
{
	(void)p;
	(void)path;
	return -ENOSYS;
}
