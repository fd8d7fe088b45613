/* Inside image.h: the kinds of picture files, and the canvas on which each of them draws. */
#ifndef FORMATS_IMAGE_KINDS_H
#define FORMATS_IMAGE_KINDS_H

#include "formats/image.h"

struct image_file {
    const unsigned char *bytes;
    size_t count;
    const char *name;
};

struct image_header {
    int width, height; /* as stored: before it is turned */
    int orientation;   /* EXIF's, 1 to 8 */
};

struct image_kind {
    bool (*matches)(const struct image_file *file);
    tutti_status (*read_header)(const struct image_file *file, struct image_header *header);
    /* `wish` has the sizes of the picture as stored. */
    tutti_status (*decode)(const struct image_file *file, const struct image_header *header,
        const struct image_wish *wish, struct image *image);
    bool whole; /* decode() reads the header by itself, and the picture at full size */
};
extern const struct image_kind image_bmp, image_gif, image_heif, image_jpeg, image_png, image_pnm, image_tiff,
    image_webp;

/* Sets the size; TUTTI_FORMAT where it is zero, negative or too large. The orientation becomes 1. */
tutti_status image_set_size(struct image_header *header, const struct image_file *file, int64_t width, int64_t height);

/* Returns EXIF's orientation, 1 to 8, from a TIFF file, which is what follows "Exif" in a JPEG file. 1 where it is
 * missing or damaged. */
int exif_orientation(const unsigned char *tiff, size_t count);

/* What a decoder writes for each pixel, a byte per number. */
enum image_row {
    ROW_GREY = 1,
    ROW_GREY_ALPHA = 2,
    ROW_RGB = 3,
    ROW_RGBA = 4,
    ROW_INVERTED_CMYK = 5 /* four bytes; 255: no ink */
};

/* Takes the rows of the picture as stored, and turns and converts them into the image. */
struct canvas {
    struct image *image;
    struct image_header stored;
    enum image_row row;
    unsigned char *scratch; /* one row or all; NULL: decoders write into the image itself */
    size_t stride;          /* bytes between the rows that decoders write; 0: all share one */
};
/* Makes the image as large as `stored` says. Its old content is lost. `whole`: canvas_row() keeps what was written to
 * a row until canvas_put() is called for it. */
tutti_status canvas_begin(struct canvas *canvas, const struct image_file *file, const struct image_header *stored,
    enum image_row row, int channels, bool whole, struct image *image);
/* Returns where to write row y; then call canvas_put(). */
unsigned char *canvas_row(const struct canvas *canvas, int y);
void canvas_put(const struct canvas *canvas, int y);

#endif
