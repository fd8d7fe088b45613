/* BMP files without compression, of 1, 4, 8, 24 or 32 bits. */
#include "base/status.h"
#include "formats/image_kinds.h"
#include "formats/little_endian.h"

#include <string.h>

enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40, ALPHA_HEADER = 56, MOST_HEADER = 124 };
enum { PLAIN = 0, MASKS = 3 };

struct bmp {
    struct image_header header;
    bool top_down;
    unsigned bits;
    size_t pixels, stride;       /* where the rows begin, and their distance */
    int red, green, blue;        /* byte of a pixel of 24 or 32 bits */
    int alpha;                   /* or -1 */
    unsigned char table[256][4]; /* blue, green, red; what is not in the file is black */
};

/* The byte that a mask selects, else -1. */
static int mask_byte(const unsigned char *at)
{
    for (int byte = 0; byte < 4; byte++)
        if (read_le32(at) == (uint32_t)0xff << 8 * byte) return byte;
    return -1;
}

static tutti_status read_masks(const struct image_file *file, size_t size, struct bmp *bmp)
{
    const unsigned char *masks = file->bytes + FILE_HEADER + INFO_HEADER;
    if (file->count < FILE_HEADER + (size >= ALPHA_HEADER ? ALPHA_HEADER : INFO_HEADER + 12))
        return fail(TUTTI_FORMAT, "%s: the file is truncated", file->name);
    bmp->red = mask_byte(masks);
    bmp->green = mask_byte(masks + 4);
    bmp->blue = mask_byte(masks + 8);
    bmp->alpha = size >= ALPHA_HEADER ? mask_byte(masks + 12) : -1;
    if (bmp->bits != 32 || bmp->red < 0 || bmp->green < 0 || bmp->blue < 0)
        return fail(TUTTI_FORMAT, "%s: BMP files are read with a byte for each colour only", file->name);
    return TUTTI_OK;
}

static tutti_status read_table(
    const struct image_file *file, size_t begin, size_t entry, uint32_t used, struct bmp *bmp)
{
    const size_t colours = used == 0 || used > 1u << bmp->bits ? (size_t)1 << bmp->bits : used;
    if (begin > file->count || (file->count - begin) / entry < colours)
        return fail(TUTTI_FORMAT, "%s: the file is truncated", file->name);
    for (size_t i = 0; i < colours; i++) memcpy(bmp->table[i], file->bytes + begin + i * entry, 3);
    return TUTTI_OK;
}

/* Reads what the header says of pixels; `size` is the length of the second header, which is in the file. */
static tutti_status read_layout(const struct image_file *file, size_t size, struct bmp *bmp)
{
    const unsigned char *info = file->bytes + FILE_HEADER;
    const bool core = size == CORE_HEADER;
    const int64_t width = core ? (int64_t)read_le16(info + 4) : (int64_t)(int32_t)read_le32(info + 4);
    const int64_t height = core ? (int64_t)read_le16(info + 6) : (int64_t)(int32_t)read_le32(info + 8);
    const uint32_t compression = core ? PLAIN : read_le32(info + 16);
    tutti_status status = image_set_size(&bmp->header, file, width, height < 0 ? -height : height);
    if (status != TUTTI_OK) return status;
    bmp->top_down = height < 0;
    bmp->bits = read_le16(info + (core ? 10 : 14));
    if (compression != PLAIN && compression != MASKS)
        return fail(TUTTI_FORMAT, "%s: compressed BMP files (kind %u) are not read", file->name, compression);
    if (bmp->bits != 1 && bmp->bits != 4 && bmp->bits != 8 && bmp->bits != 24 && bmp->bits != 32)
        return fail(TUTTI_FORMAT, "%s: BMP files of %u bits are not read", file->name, bmp->bits);
    bmp->blue = 0, bmp->green = 1, bmp->red = 2, bmp->alpha = -1;
    if (compression == MASKS) return read_masks(file, size, bmp);
    if (bmp->bits > 8) return TUTTI_OK;
    return read_table(file, FILE_HEADER + size, core ? 3 : 4, core ? 0 : read_le32(info + 32), bmp);
}

static tutti_status read_bmp(const struct image_file *file, struct bmp *bmp)
{
    memset(bmp, 0, sizeof(*bmp));
    if (file->count < FILE_HEADER + CORE_HEADER) return fail(TUTTI_FORMAT, "%s: the file is truncated", file->name);
    const size_t size = read_le32(file->bytes + FILE_HEADER);
    if (size != CORE_HEADER && (size < INFO_HEADER || size > MOST_HEADER))
        return fail(TUTTI_FORMAT, "%s: a BMP header of %zu bytes is not known", file->name, size);
    if (file->count - FILE_HEADER < size) return fail(TUTTI_FORMAT, "%s: the file is truncated", file->name);
    const tutti_status status = read_layout(file, size, bmp);
    if (status != TUTTI_OK) return status;
    bmp->pixels = read_le32(file->bytes + 10);
    bmp->stride = ((size_t)bmp->header.width * bmp->bits + 31) / 32 * 4;
    if (bmp->pixels < FILE_HEADER + size)
        return fail(TUTTI_FORMAT, "%s: the pixels begin within the header: the file is damaged", file->name);
    if (bmp->pixels > file->count || (file->count - bmp->pixels) / bmp->stride < (size_t)bmp->header.height)
        return fail(TUTTI_FORMAT, "%s: the file is truncated", file->name);
    return TUTTI_OK;
}

static void read_row(const struct bmp *bmp, const unsigned char *from, unsigned char *to)
{
    const int width = bmp->header.width, numbers = bmp->alpha >= 0 ? 4 : 3;
    const unsigned bytes = bmp->bits / 8, mask = (1u << (bmp->bits & 15)) - 1;
    for (int x = 0; x < width; x++, to += numbers) {
        if (bmp->bits > 8) {
            const unsigned char *pixel = from + (size_t)x * bytes;
            to[0] = pixel[bmp->red], to[1] = pixel[bmp->green], to[2] = pixel[bmp->blue];
            if (bmp->alpha >= 0) to[3] = pixel[bmp->alpha];
        } else {
            const size_t bit = (size_t)x * bmp->bits;
            const unsigned char *colour = bmp->table[from[bit / 8] >> (8 - bmp->bits - bit % 8) & mask];
            to[0] = colour[2], to[1] = colour[1], to[2] = colour[0];
        }
    }
}

static bool bmp_matches(const struct image_file *file)
{
    return file->count >= 2 && !memcmp(file->bytes, "BM", 2);
}

static tutti_status bmp_header(const struct image_file *file, struct image_header *header)
{
    struct bmp bmp;
    const tutti_status status = read_bmp(file, &bmp);
    *header = bmp.header;
    return status;
}

static tutti_status bmp_decode(const struct image_file *file, const struct image_header *header,
    const struct image_wish *wish, struct image *image)
{
    struct bmp bmp;
    struct canvas canvas;
    tutti_status status = read_bmp(file, &bmp);
    if (status != TUTTI_OK) return status;
    status = canvas_begin(&canvas, file, header, bmp.alpha >= 0 ? ROW_RGBA : ROW_RGB, wish->channels, false, image);
    if (status != TUTTI_OK) return status;
    for (int y = 0; y < header->height; y++) {
        const int stored = bmp.top_down ? y : header->height - 1 - y;
        read_row(&bmp, file->bytes + bmp.pixels + (size_t)stored * bmp.stride, canvas_row(&canvas, y));
        canvas_put(&canvas, y);
    }
    return TUTTI_OK;
}

const struct image_kind image_bmp = { bmp_matches, bmp_header, bmp_decode };
