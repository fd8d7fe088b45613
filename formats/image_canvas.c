/* Rows of decoders become an image: colours are converted, alpha is laid over white, EXIF's orientation turns it. */
#include "base/memory.h"
#include "base/status.h"
#include "formats/image_kinds.h"

#include <stdlib.h>

tutti_status canvas_begin(struct canvas *canvas, const struct image_file *file, const struct image_header *stored,
    enum image_row row, int channels, bool whole, struct image *image)
{
    const bool turned = stored->orientation >= 5;
    const bool direct = stored->orientation == 1 && (int)row == channels;
    const size_t width = (size_t)stored->width, height = (size_t)stored->height;
    const size_t row_bytes = width * (row == ROW_INVERTED_CMYK ? 4 : (size_t)row);
    /* At most 7 * IMAGE_MAX_PIXELS bytes, which fits into 32 bits. */
    const size_t bytes = width * height * (size_t)channels;
    const size_t needed = bytes + (direct ? 0 : whole ? row_bytes * height : row_bytes);
    if (image->capacity < needed) {
        image_free(image);
        image->pixels = malloc(needed);
        if (!image->pixels) return fail(TUTTI_NO_MEMORY, "%s: no memory for %zu bytes", file->name, needed);
        image->capacity = needed;
    }
    image->width = turned ? stored->height : stored->width;
    image->height = turned ? stored->width : stored->height;
    image->channels = channels;
    canvas->image = image;
    canvas->stored = *stored;
    canvas->row = row;
    canvas->scratch = direct ? NULL : image->pixels + bytes;
    canvas->stride = direct || whole ? row_bytes : 0;
    return TUTTI_OK;
}

unsigned char *canvas_row(const struct canvas *canvas, int y)
{
    return (canvas->scratch ? canvas->scratch : canvas->image->pixels) + (size_t)y * canvas->stride;
}

static unsigned divide_by_255(unsigned product)
{
    return (product + 128 + ((product + 128) >> 8)) >> 8;
}

static unsigned over_white(unsigned value, unsigned alpha)
{
    return divide_by_255(value * alpha + 255 * (255 - alpha));
}

static unsigned grey_of(unsigned red, unsigned green, unsigned blue)
{
    return (19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16;
}

static void write_colour(unsigned char *to, int channels, unsigned red, unsigned green, unsigned blue)
{
    if (channels == 1) {
        *to = (unsigned char)grey_of(red, green, blue);
    } else {
        to[0] = (unsigned char)red;
        to[1] = (unsigned char)green;
        to[2] = (unsigned char)blue;
    }
}

static void write_grey(unsigned char *to, int channels, unsigned grey)
{
    for (int c = 0; c < channels; c++) to[c] = (unsigned char)grey;
}

static unsigned without_ink(unsigned colour, unsigned black)
{
    return black - divide_by_255((255 - colour) * black);
}

/* Converts a row; `step` is the distance of its pixels in the image. */
static void convert(const struct canvas *canvas, const unsigned char *from, unsigned char *to, ptrdiff_t step)
{
    const int width = canvas->stored.width, channels = canvas->image->channels;
    switch (canvas->row) {
    case ROW_GREY:
        for (int x = 0; x < width; x++, from++) write_grey(to + x * step, channels, *from);
        break;
    case ROW_GREY_ALPHA:
        for (int x = 0; x < width; x++, from += 2) write_grey(to + x * step, channels, over_white(from[0], from[1]));
        break;
    case ROW_RGB:
        for (int x = 0; x < width; x++, from += 3) write_colour(to + x * step, channels, from[0], from[1], from[2]);
        break;
    case ROW_RGBA:
        for (int x = 0; x < width; x++, from += 4)
            write_colour(to + x * step, channels, over_white(from[0], from[3]), over_white(from[1], from[3]),
                over_white(from[2], from[3]));
        break;
    case ROW_INVERTED_CMYK:
        for (int x = 0; x < width; x++, from += 4)
            write_colour(to + x * step, channels, without_ink(from[0], from[3]), without_ink(from[1], from[3]),
                without_ink(from[2], from[3]));
        break;
    }
}

void canvas_put(const struct canvas *canvas, int y)
{
    if (!canvas->scratch) return;
    const int width = canvas->stored.width, height = canvas->stored.height, orientation = canvas->stored.orientation;
    const ptrdiff_t pixel = canvas->image->channels, line = canvas->image->width * pixel;
    /* A row lies along a row of the image, or, from orientation 5 on, along a column. */
    const bool turned = orientation >= 5;
    const bool rows_reversed = turned ? orientation == 6 || orientation == 7 : orientation == 3 || orientation == 4;
    const bool pixels_reversed = turned ? orientation >= 7 : orientation == 2 || orientation == 3;
    const ptrdiff_t along = turned ? line : pixel, across = turned ? pixel : line;
    unsigned char *to = canvas->image->pixels + (rows_reversed ? height - 1 - y : y) * across;
    if (pixels_reversed) to += (width - 1) * along;
    convert(canvas, canvas_row(canvas, y), to, pixels_reversed ? -along : along);
}
