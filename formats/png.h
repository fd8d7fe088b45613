/* Pictures as PNG files in memory. */
#ifndef FORMATS_PNG_H
#define FORMATS_PNG_H

#include "base/text.h"
#include "tutti.h"

/* pixels: [height][width][channels], channels 1 (grey) or 3 (RGB). The file is freed by free(). */
tutti_status png_encode(
    const unsigned char *pixels, int width, int height, int channels, unsigned char **file, size_t *size);

#endif
