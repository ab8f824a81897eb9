/*
 * Pictures as planes of heat: a sample of 0 is cold (0.0), the greatest one is
 * hot (255.0).
 */
#ifndef HEAT_PICTURE_H
#define HEAT_PICTURE_H

#include <stddef.h>

#define PICTURE_SIDE_MAX 32768

struct picture {
	int width, height;
	float *heat; /* rows from the top; freed by picture_exit() */
};

/*
 * Read a PGM (P2, P5) or PPM (P3, P6) file; of colours the luminance counts.
 * 0, or -errno with the reason in `why`: what was expected and what was found.
 */
int picture_read(const char *path, struct picture *out, char *why, size_t room);
void picture_exit(struct picture *p);

/* As PGM (P5), heat cut to 0..255 and rounded. 0 or -errno. */
int picture_write_pgm(const struct picture *p, const char *path);

/* As PNG, from black over red and yellow to white. -ENOSYS: built without. */
int picture_write_png(const struct picture *p, const char *path);

/* A cell as a sample. */
static inline unsigned char picture_sample(float heat)
{
	if (heat <= 0)
		return 0;
	return heat >= 254.5f ? 255 : (unsigned char)(heat + 0.5f);
}

#endif
