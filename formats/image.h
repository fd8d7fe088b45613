/* Pictures in files: JPEG, PNG, GIF, BMP, PPM and PGM, and, in a helper process (decoder.h), WebP, TIFF, HEIC and AVIF,
 * from bytes in memory. Files are hostile: sizes are checked before memory is allocated, and an image has at most
 * IMAGE_MAX_PIXELS. */
#ifndef FORMATS_IMAGE_H
#define FORMATS_IMAGE_H

#include "tutti.h"

#define IMAGE_MAX_PIXELS (1 << 28)

struct image {
    int width, height, channels; /* channels 1: grey, 3: red, green, blue */
    unsigned char *pixels;       /* [height][width][channels] */
    size_t capacity;             /* bytes of `pixels`; an image is used again and again without new memory */
};
void image_free(struct image *image);

/* The picture's size as a person sees it (EXIF's orientation turns it), from its header. Errors: TUTTI_FORMAT, and
 * TUTTI_UNSUPPORTED if the library of the format is missing; the message begins with `name`. */
tutti_status image_size(const void *bytes, size_t count, const char *name, int *width, int *height);
/* Whether a file name ends as those of these files do, in any case. */
bool image_has_name(const char *name);

/* What the caller needs of a picture. */
struct image_wish {
    int channels; /* 1 or 3: colours become grey by ITU-R 601 as in PIL, grey becomes three equal channels */
    /* The picture may come smaller than it is, where its format is then read faster (JPEG: 1/2, 1/4, 1/8 by its
     * transform), but not smaller than this in either direction. 0: as it is. */
    int least_width, least_height;
    /* The numbers of a PNG, TIFF or GIF file's pixels are classes: the place in its palette, or grey of 1 to 16 bits as
     * it is stored, where more than 255 is an error. */
    bool mask;
};
/* Reads the picture: turned as EXIF says, alpha laid over white, CMYK and palettes converted, 16 bits rounded to 8.
 * Errors: as image_size(), also where the file ends early. */
tutti_status image_decode(
    const void *bytes, size_t count, const char *name, const struct image_wish *wish, struct image *image);

#endif
