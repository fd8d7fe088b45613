/* Pictures as PNG files in memory, and bytes as base64. */
#ifndef FORMATS_PNG_H
#define FORMATS_PNG_H

#include "base/text.h"
#include "tutti.h"

/* pixels: [height][width][channels], channels 1 (grey) or 3 (RGB). The file is freed by free(). */
tutti_status png_encode(
    const unsigned char *pixels, int width, int height, int channels, unsigned char **file, size_t *size);
/* Appends the bytes in base64 (RFC 4648). */
void base64_append(struct text *text, const unsigned char *bytes, size_t size);

#endif
