/* GIF files: the first frame, on the screen that the file describes. No library is needed: blocks and LZW are a page of
 * code on integers. https://www.w3.org/Graphics/GIF/spec-gif89a.txt */
#include "base/status.h"
#include "formats/image_kinds.h"
#include "formats/little_endian.h"

#include <stdlib.h>
#include <string.h>

enum { SCREEN = 13, FRAME = 10, CONTROL = 4, MOST_BITS = 12, MOST_CODES = 1 << MOST_BITS, NONE = -1 };
enum { EXTENSION = 0x21, CONTROL_LABEL = 0xf9, IMAGE = 0x2c };
/* A code of 12 bits stands for at most 4096 pixels. */
enum { MOST_RATIO = 4096 };

struct gif {
    const struct image_file *file;
    size_t at;
    struct image_header header;
    const unsigned char *colours; /* [colour_count][3]; NULL: none */
    unsigned colour_count;
    unsigned left, top, width, height; /* of the frame */
    bool interlaced;
    int transparent; /* or NONE */
};

static tutti_status truncated(const struct gif *gif)
{
    return fail(TUTTI_FORMAT, "%s: the file is truncated", gif->file->name);
}

/* Returns the next bytes; NULL where they are not there. */
static const unsigned char *take(struct gif *gif, size_t count)
{
    if (count > gif->file->count - gif->at) return NULL;
    gif->at += count;
    return gif->file->bytes + gif->at - count;
}

static tutti_status read_colours(struct gif *gif, unsigned flags)
{
    if (!(flags & 0x80)) return TUTTI_OK;
    gif->colour_count = 2u << (flags & 7);
    gif->colours = take(gif, (size_t)3 * gif->colour_count);
    return gif->colours ? TUTTI_OK : truncated(gif);
}

/* Skips blocks of data up to an empty one. */
static tutti_status skip_blocks(struct gif *gif)
{
    for (const unsigned char *size; (size = take(gif, 1)) && take(gif, *size);)
        if (*size == 0) return TUTTI_OK;
    return truncated(gif);
}

static tutti_status read_extension(struct gif *gif)
{
    const unsigned char *label = take(gif, 2);
    if (!label) return truncated(gif);
    gif->at--; /* its second byte is the size of the first block */
    if (*label == CONTROL_LABEL && label[1] == CONTROL && gif->file->count - gif->at > CONTROL)
        gif->transparent = label[2] & 1 ? label[5] : NONE;
    return skip_blocks(gif);
}

static tutti_status read_frame(struct gif *gif)
{
    const unsigned char *frame = take(gif, FRAME - 1);
    if (!frame) return truncated(gif);
    gif->left = read_le16(frame);
    gif->top = read_le16(frame + 2);
    gif->width = read_le16(frame + 4);
    gif->height = read_le16(frame + 6);
    gif->interlaced = frame[8] & 0x40;
    if (gif->width == 0 || gif->height == 0)
        return fail(TUTTI_FORMAT, "%s: its first frame has no pixels", gif->file->name);
    return read_colours(gif, frame[8]);
}

/* Reads all up to the coded pixels of the first frame. A screen that is smaller than the frame grows, as in Pillow. */
static tutti_status open_gif(const struct image_file *file, struct gif *gif)
{
    tutti_status status;
    *gif = (struct gif) { .file = file, .transparent = NONE };
    const unsigned char *screen = take(gif, SCREEN), *kind;
    if (!screen) return truncated(gif);
    TRY(read_colours(gif, screen[10]));
    while ((kind = take(gif, 1)) && *kind == EXTENSION) TRY(read_extension(gif));
    if (!kind) return truncated(gif);
    if (*kind != IMAGE) FAIL(TUTTI_FORMAT, "%s: it has no frame", file->name);
    TRY(read_frame(gif));
    const unsigned width = gif->left + gif->width, height = gif->top + gif->height;
    TRY(image_set_size(&gif->header, file, read_le16(screen + 6) > width ? read_le16(screen + 6) : width,
        read_le16(screen + 8) > height ? read_le16(screen + 8) : height));
    if ((size_t)gif->width * gif->height / MOST_RATIO > file->count)
        FAIL(TUTTI_FORMAT, "%s: the file is truncated: it is too short for its %u x %u pixels", file->name, gif->width,
            gif->height);
done:
    return status;
}

/* ------------------------------------------------------------------------------------------------------ LZW ---- */

/* The codes of LZW: each is a code that it continues, and a byte. */
struct codes {
    uint16_t before[MOST_CODES];
    unsigned char last[MOST_CODES], stack[MOST_CODES];
    unsigned bits, count; /* of a code now; codes so far */
    uint32_t buffer;      /* bits that were read */
    unsigned buffered;
    size_t block; /* bytes left of this block of data */
};

/* Returns the next code; NONE at the end of the data. */
static int next_code(struct gif *gif, struct codes *codes)
{
    while (codes->buffered < codes->bits) {
        const unsigned char *byte = take(gif, 1);
        if (!byte) return NONE;
        if (codes->block == 0) {
            codes->block = *byte;
            if (codes->block == 0) return NONE;
            continue;
        }
        codes->block--;
        codes->buffer |= (uint32_t)*byte << codes->buffered;
        codes->buffered += 8;
    }
    const int code = (int)(codes->buffer & ((1u << codes->bits) - 1));
    codes->buffer >>= codes->bits;
    codes->buffered -= codes->bits;
    return code;
}

/* Writes the bytes that a code stands for. Returns the first of them. */
static unsigned char write_code(
    struct codes *codes, unsigned code, unsigned clear, unsigned char *to, size_t room, size_t *used)
{
    size_t depth = 0;
    while (code >= clear) {
        codes->stack[depth++] = codes->last[code];
        code = codes->before[code];
    }
    codes->stack[depth++] = (unsigned char)code;
    const unsigned char first = (unsigned char)code;
    while (depth > 0 && *used < room) to[(*used)++] = codes->stack[--depth];
    return first;
}

/* Decodes the pixels in the order of the file; TUTTI_FORMAT where there are too few of them. */
static tutti_status decode_codes(struct gif *gif, struct codes *codes, unsigned char *pixels, size_t count)
{
    const unsigned char *size = take(gif, 1);
    if (!size) return truncated(gif);
    if (*size < 1 || *size > 8) return fail(TUTTI_FORMAT, "%s: its codes are damaged", gif->file->name);
    const unsigned clear = 1u << *size, end = clear + 1;
    size_t done = 0;
    codes->bits = *size + 1u;
    codes->count = clear + 2;
    for (int code, before = NONE; done < count;) {
        code = next_code(gif, codes);
        if (code == NONE || code == (int)end) return truncated(gif);
        if (code == (int)clear) {
            codes->bits = *size + 1u;
            codes->count = clear + 2;
            before = NONE;
            continue;
        }
        if (code > (int)codes->count || (before == NONE && code >= (int)clear))
            return fail(TUTTI_FORMAT, "%s: its codes are damaged", gif->file->name);
        const bool grows = before != NONE && codes->count < MOST_CODES;
        if (code == (int)codes->count && !grows)
            return fail(TUTTI_FORMAT, "%s: its codes are damaged", gif->file->name);
        if (grows) codes->before[codes->count] = (uint16_t)before;
        /* A code that is just being made begins and ends with the same byte. */
        unsigned char first = 0;
        const size_t begin = done;
        const bool unfinished = grows && code == (int)codes->count;
        first = write_code(codes, (unsigned)(unfinished ? before : code), clear, pixels, count, &done);
        if (unfinished && done < count && done > begin) pixels[done++] = first;
        if (grows) codes->last[codes->count++] = first;
        if (codes->count == 1u << codes->bits && codes->bits < MOST_BITS) codes->bits++;
        before = code;
    }
    return TUTTI_OK;
}

/* --------------------------------------------------------------------------------------------------- pixels ---- */

/* Returns the row of the frame that comes at this place in the file. */
static unsigned interlaced_row(unsigned place, unsigned height)
{
    static const unsigned begins[] = { 0, 4, 2, 1 }, steps[] = { 8, 8, 4, 2 };
    for (int pass = 0;; pass++) {
        const unsigned rows = height > begins[pass] ? (height - begins[pass] + steps[pass] - 1) / steps[pass] : 0;
        if (place < rows || pass == 3) return begins[pass] + place * steps[pass];
        place -= rows;
    }
}

static void write_pixel(const struct gif *gif, unsigned index, enum image_row row, unsigned char *to)
{
    static const unsigned char black[3] = { 0 };
    const bool hidden = (int)index == gif->transparent;
    if (row == ROW_GREY) {
        *to = (unsigned char)index;
        return;
    }
    /* Without colours of its own, indexes are levels of grey in Pillow, as here. */
    const unsigned char grey[3] = { (unsigned char)index, (unsigned char)index, (unsigned char)index };
    memcpy(to, !gif->colours ? grey : index < gif->colour_count ? gif->colours + (size_t)3 * index : black, 3);
    if (row == ROW_RGBA) to[3] = hidden ? 0 : 255;
}

static tutti_status put_rows(
    const struct gif *gif, const unsigned char *pixels, const struct image_wish *wish, struct image *image)
{
    struct canvas canvas;
    const unsigned width = (unsigned)gif->header.width, height = (unsigned)gif->header.height;
    const bool covers = gif->left == 0 && gif->top == 0 && gif->width == width && gif->height == height;
    const enum image_row row = wish->mask ? ROW_GREY : covers && gif->transparent == NONE ? ROW_RGB : ROW_RGBA;
    const tutti_status status = canvas_begin(&canvas, gif->file, &gif->header, row, wish->channels, false, image);
    if (status != TUTTI_OK) return status;
    for (unsigned y = 0; y < height; y++) {
        unsigned char *to = canvas_row(&canvas, (int)y);
        memset(to, 0, width * (size_t)row);
        if (y >= gif->top && y - gif->top < gif->height) {
            const unsigned char *from = pixels + (size_t)(y - gif->top) * gif->width;
            for (unsigned x = 0; x < gif->width; x++)
                write_pixel(gif, from[x], row, to + (gif->left + x) * (size_t)row);
        }
        canvas_put(&canvas, (int)y);
    }
    return TUTTI_OK;
}

/* Puts the rows of an interlaced frame in their order, in the second half of the memory. */
static const unsigned char *in_order(const struct gif *gif, unsigned char *pixels)
{
    const size_t count = (size_t)gif->width * gif->height;
    if (!gif->interlaced) return pixels;
    for (unsigned place = 0; place < gif->height; place++)
        memcpy(pixels + count + (size_t)interlaced_row(place, gif->height) * gif->width,
            pixels + (size_t)place * gif->width, gif->width);
    return pixels + count;
}

static bool gif_matches(const struct image_file *file)
{
    return file->count >= 6 && (!memcmp(file->bytes, "GIF87a", 6) || !memcmp(file->bytes, "GIF89a", 6));
}

static tutti_status gif_header(const struct image_file *file, struct image_header *header)
{
    struct gif gif;
    const tutti_status status = open_gif(file, &gif);
    *header = gif.header;
    return status;
}

static tutti_status gif_decode(const struct image_file *file, const struct image_header *header,
    const struct image_wish *wish, struct image *image)
{
    struct gif gif;
    (void)header; /* read again, to find what the header does not hold */
    tutti_status status = open_gif(file, &gif);
    if (status != TUTTI_OK) return status;
    const size_t count = (size_t)gif.width * gif.height;
    unsigned char *pixels = malloc(gif.interlaced ? 2 * count : count);
    struct codes *codes = calloc(1, sizeof *codes);
    status = pixels && codes ? decode_codes(&gif, codes, pixels, count)
                             : fail(TUTTI_NO_MEMORY, "%s: no memory for its pixels", file->name);
    if (status == TUTTI_OK) status = put_rows(&gif, in_order(&gif, pixels), wish, image);
    free(codes);
    free(pixels);
    return status;
}

const struct image_kind image_gif = { gif_matches, gif_header, gif_decode };
