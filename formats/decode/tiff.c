/* TIFF by libtiff: its first page. Numbers of 1 to 16 bits that lie side by side are converted here, exactly; what is
 * left (planes, YCbCr, CIE Lab and so on) by libtiff. The declarations are those of tiffio.h, version 4. */
#include "base/numbers.h"
#include "formats/decode/decode.h"
#include "formats/image_kinds.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

enum { WIDTH = 256, HEIGHT = 257, BITS = 258, PHOTOMETRIC = 262, ORIENTATION = 274, SAMPLES = 277, PLANES = 284 };
enum { COLOUR_MAP = 320, TILE_WIDTH = 322, TILE_HEIGHT = 323, EXTRA_SAMPLES = 338, SAMPLE_FORMAT = 339 };
enum { WHITE_IS_ZERO = 0, BLACK_IS_ZERO = 1, RGB = 2, PALETTE = 3, CMYK = 5 };
enum { CONTIGUOUS = 1, UNSIGNED = 1, ASSOCIATED = 1, UNASSOCIATED = 2 };

typedef struct tiff TIFF;
typedef void (*report)(const char *module, const char *format, va_list arguments);
static report (*set_error)(report handler);
static report (*set_warning)(report handler);
static TIFF *(*client_open)(const char *name, const char *mode, void *client, ssize_t (*read)(void *, void *, ssize_t),
    ssize_t (*write)(void *, void *, ssize_t), uint64_t (*seek)(void *, uint64_t, int), int (*close)(void *),
    uint64_t (*size)(void *), int (*map)(void *, void **, uint64_t *), void (*unmap)(void *, void *, uint64_t));
static void (*close_tiff)(TIFF *tiff);
static int (*get_field)(TIFF *tiff, uint32_t tag, ...);
static int (*is_tiled)(TIFF *tiff);
static ssize_t (*scanline_size)(TIFF *tiff);
static ssize_t (*tile_size)(TIFF *tiff);
static int (*read_scanline)(TIFF *tiff, void *to, uint32_t row, uint16_t sample);
static ssize_t (*read_tile)(TIFF *tiff, void *to, uint32_t x, uint32_t y, uint32_t z, uint16_t sample);
static int (*read_rgba)(TIFF *tiff, uint32_t width, uint32_t height, uint32_t *to, int orientation, int stop);

static struct decode_answer *answer_of_now;

/* Keeps the first error. */
static void on_error(const char *module, const char *format, va_list arguments)
{
    char *text = answer_of_now->text;
    (void)module;
    if (!*text) number_print_list(text, sizeof answer_of_now->text, format, arguments);
}

static bool load(void)
{
    static const char *const files[] = { "libtiff.so.6", "libtiff.so.5", NULL };
    const struct symbol symbols[] = { { "TIFFSetErrorHandler", (void *)&set_error },
        { "TIFFSetWarningHandler", (void *)&set_warning }, { "TIFFClientOpen", (void *)&client_open },
        { "TIFFClose", (void *)&close_tiff }, { "TIFFGetFieldDefaulted", (void *)&get_field },
        { "TIFFIsTiled", (void *)&is_tiled }, { "TIFFScanlineSize", (void *)&scanline_size },
        { "TIFFTileSize", (void *)&tile_size }, { "TIFFReadScanline", (void *)&read_scanline },
        { "TIFFReadTile", (void *)&read_tile }, { "TIFFReadRGBAImageOriented", (void *)&read_rgba } };
    if (!library_load(files, symbols, sizeof symbols / sizeof *symbols)) return false;
    set_error(on_error);
    set_warning(NULL);
    return true;
}

/* ---------------------------------------------------------------------------------------- a file in memory ---- */

struct memory {
    const struct picture_file *file;
    uint64_t at;
};

static ssize_t read_memory(void *client, void *to, ssize_t wanted)
{
    struct memory *memory = client;
    const uint64_t size = memory->file->count, left = memory->at < size ? size - memory->at : 0;
    const uint64_t count = wanted < 0 ? 0 : (uint64_t)wanted < left ? (uint64_t)wanted : left;
    memcpy(to, memory->file->bytes + (count ? memory->at : 0), (size_t)count);
    memory->at += count;
    return (ssize_t)count;
}

static ssize_t write_nothing(void *client, void *from, ssize_t count)
{
    (void)client, (void)from, (void)count;
    return -1;
}

static uint64_t seek_memory(void *client, uint64_t to, int from)
{
    struct memory *memory = client;
    memory->at = to + (from == SEEK_CUR ? memory->at : from == SEEK_END ? memory->file->count : 0);
    return memory->at;
}

static int close_nothing(void *client)
{
    (void)client;
    return 0;
}

static uint64_t size_memory(void *client)
{
    const struct memory *memory = client;
    return memory->file->count;
}

static int map_nothing(void *client, void **bytes, uint64_t *size)
{
    (void)client, (void)bytes, (void)size;
    return 0;
}

static void unmap_nothing(void *client, void *bytes, uint64_t size)
{
    (void)client, (void)bytes, (void)size;
}

/* --------------------------------------------------------------------------------------------------- pixels ---- */

struct page {
    TIFF *tiff;
    uint32_t width, height;
    unsigned bits, photometric, samples; /* samples: numbers of a pixel */
    unsigned colours;                    /* of them; the others are alpha, and what nobody knows */
    unsigned alpha;                      /* 0, ASSOCIATED or UNASSOCIATED */
    const uint16_t *map[3];              /* of a palette */
    bool mask, plain;                    /* plain: convert_pixel() can read it */
    enum image_row row;
};

static unsigned field(TIFF *tiff, uint32_t tag, unsigned missing)
{
    uint16_t value = 0;
    return get_field(tiff, tag, &value) == 1 ? value : missing;
}

static unsigned colours_of(unsigned photometric)
{
    return photometric == RGB ? 3 : photometric == CMYK ? 4 : photometric <= PALETTE ? 1 : 0;
}

static unsigned alpha_of(const struct page *page)
{
    uint16_t count = 0;
    const uint16_t *kinds = NULL;
    if (page->samples <= page->colours || get_field(page->tiff, EXTRA_SAMPLES, &count, &kinds) != 1 || !count || !kinds)
        return 0;
    return kinds[0] == ASSOCIATED || kinds[0] == UNASSOCIATED ? kinds[0] : 0;
}

static bool open_page(struct page *page, struct decode_answer *answer)
{
    TIFF *tiff = page->tiff;
    if (get_field(tiff, WIDTH, &page->width) != 1 || get_field(tiff, HEIGHT, &page->height) != 1)
        return refuse(answer, DECODE_DAMAGED, "it has no size");
    page->bits = field(tiff, BITS, 1);
    page->samples = field(tiff, SAMPLES, 1);
    page->photometric = field(tiff, PHOTOMETRIC, page->samples < 3 ? BLACK_IS_ZERO : RGB);
    page->colours = colours_of(page->photometric);
    page->alpha = page->colours ? alpha_of(page) : 0;
    const bool narrow = page->bits == 1 || page->bits == 2 || page->bits == 4;
    page->plain = page->colours > 0 && page->samples >= page->colours && page->samples < 256 &&
        (page->bits == 8 || page->bits == 16 || (narrow && page->samples == 1)) &&
        (page->samples == 1 || field(tiff, PLANES, CONTIGUOUS) == CONTIGUOUS);
    if (page->photometric == PALETTE && get_field(tiff, COLOUR_MAP, &page->map[0], &page->map[1], &page->map[2]) != 1)
        page->plain = false;
    if (field(tiff, SAMPLE_FORMAT, UNSIGNED) != UNSIGNED || page->bits > 16)
        return refuse(answer, DECODE_DAMAGED,
            "its numbers have %u bits, with a sign or a point: TIFF files are read with whole numbers of 1 to 16 bits",
            page->bits);
    const bool alone = page->colours == 1 && (page->mask || page->photometric != PALETTE);
    const bool kept = page->alpha == UNASSOCIATED && !page->mask;
    page->row = page->photometric == CMYK && page->plain ? ROW_INVERTED_CMYK
        : !page->plain                                   ? ROW_RGB
        : alone                                          ? (kept ? ROW_GREY_ALPHA : ROW_GREY)
                                                         : (kept ? ROW_RGBA : ROW_RGB);
    const int orientation = (int)field(tiff, ORIENTATION, 1);
    answer->orientation = orientation >= 1 && orientation <= 8 ? orientation : 1;
    return true;
}

/* A number as it is stored. */
static unsigned number_at(const struct page *page, const unsigned char *line, size_t at)
{
    uint16_t wide;
    if (page->bits == 8) return line[at];
    if (page->bits == 16) {
        memcpy(&wide, line + 2 * at, sizeof wide); /* in this machine's order: libtiff has turned it */
        return wide;
    }
    const size_t bit = at * page->bits;
    return line[bit / 8] >> (8 - page->bits - bit % 8) & ((1u << page->bits) - 1);
}

static unsigned to_byte(const struct page *page, unsigned number)
{
    const unsigned most = (1u << page->bits) - 1;
    return page->bits == 8 ? number : (number * 255 + most / 2) / most;
}

static unsigned char over_white(const struct page *page, unsigned colour, unsigned alpha)
{
    const unsigned sum = page->alpha == ASSOCIATED && !page->mask ? colour + 255 - alpha : colour;
    return (unsigned char)(sum > 255 ? 255 : sum);
}

static void convert_pixel(const struct page *page, const unsigned char *line, size_t pixel, unsigned char *to)
{
    const size_t first = pixel * page->samples;
    const unsigned alpha = page->alpha ? to_byte(page, number_at(page, line, first + page->colours)) : 255;
    if (page->photometric == PALETTE && !page->mask) {
        const unsigned index = number_at(page, line, first);
        for (int c = 0; c < 3; c++) to[c] = over_white(page, page->map[c][index] >> 8, alpha);
        if (page->row == ROW_RGBA) to[3] = (unsigned char)alpha;
        return;
    }
    for (unsigned c = 0; c < page->colours; c++) {
        const unsigned number = number_at(page, line, first + c);
        const unsigned byte = page->mask && page->colours == 1 ? number : to_byte(page, number);
        const bool inverted = page->photometric == CMYK || (page->photometric == WHITE_IS_ZERO && !page->mask);
        to[c] = page->photometric == CMYK ? (unsigned char)(255 - byte)
                                          : over_white(page, inverted ? 255 - byte : byte, alpha);
    }
    if (page->row == ROW_GREY_ALPHA || page->row == ROW_RGBA) to[page->colours] = (unsigned char)alpha;
}

static size_t pixel_bytes(const struct page *page)
{
    return page->row == ROW_INVERTED_CMYK ? 4 : (size_t)page->row;
}

/* Converts `width` pixels to row y, from column x on; false where a mask has a number that is not a class. */
static bool convert_line(const struct page *page, const unsigned char *line, struct picture_file *file, uint32_t x,
    uint32_t y, uint32_t width)
{
    unsigned char *to = file->pixels + ((size_t)y * page->width + x) * pixel_bytes(page);
    for (size_t i = 0; i < width; i++, to += pixel_bytes(page)) {
        if (page->mask && page->bits == 16 && number_at(page, line, i * page->samples) > 255) return false;
        convert_pixel(page, line, i, to);
    }
    return true;
}

static bool refuse_class(struct decode_answer *answer)
{
    return refuse(answer, DECODE_DAMAGED, "a pixel of this mask has a number above 255");
}

static bool refuse_data(struct decode_answer *answer)
{
    char reason[sizeof answer->text];
    memcpy(reason, answer->text, sizeof reason);
    return refuse(answer, DECODE_DAMAGED, "it is damaged or truncated%s%s", *reason ? ": " : "", reason);
}

/* Whether a buffer of libtiff has room for so many pixels, as the conversion counts them. */
static bool holds(const struct page *page, ssize_t bytes, uint64_t pixels)
{
    return bytes > 0 && ((uint64_t)bytes * 8) / page->bits / page->samples >= pixels;
}

static bool read_lines(const struct page *page, struct picture_file *file, struct decode_answer *answer)
{
    const ssize_t size = scanline_size(page->tiff);
    if (!holds(page, size, page->width)) return refuse_data(answer);
    unsigned char *line = calloc((size_t)size, 1);
    if (!line) return refuse(answer, DECODE_NO_MEMORY, "no memory for a row");
    bool read = true, good = true;
    for (uint32_t y = 0; y < page->height && read && good; y++) {
        read = read_scanline(page->tiff, line, y, 0) == 1;
        if (read) good = convert_line(page, line, file, 0, y, page->width);
    }
    free(line);
    return !read ? refuse_data(answer) : good || refuse_class(answer);
}

static bool read_tiles(const struct page *page, struct picture_file *file, struct decode_answer *answer)
{
    uint32_t width = 0, height = 0;
    const ssize_t size = tile_size(page->tiff);
    if (get_field(page->tiff, TILE_WIDTH, &width) != 1 || get_field(page->tiff, TILE_HEIGHT, &height) != 1 || !width ||
        !height || !holds(page, size / (ssize_t)height, width))
        return refuse_data(answer);
    unsigned char *tile = calloc((size_t)size, 1);
    if (!tile) return refuse(answer, DECODE_NO_MEMORY, "no memory for a tile");
    const size_t line = (size_t)size / height;
    bool read = true, good = true;
    for (uint64_t y = 0; y < page->height && read && good; y += height)
        for (uint64_t x = 0; x < page->width && read && good; x += width) {
            const uint32_t columns = page->width - x < width ? (uint32_t)(page->width - x) : width;
            const uint32_t rows = page->height - y < height ? (uint32_t)(page->height - y) : height;
            read = read_tile(page->tiff, tile, (uint32_t)x, (uint32_t)y, 0, 0) >= 0;
            for (uint32_t i = 0; i < rows && read && good; i++)
                good = convert_line(page, tile + i * line, file, (uint32_t)x, (uint32_t)y + i, columns);
        }
    free(tile);
    return !read ? refuse_data(answer) : good || refuse_class(answer);
}

/* By libtiff, which multiplies colours by alpha, in the order of rows and columns in the file. */
static bool read_converted(const struct page *page, struct picture_file *file, struct decode_answer *answer)
{
    const size_t pixels = (size_t)page->width * page->height;
    uint32_t *colours = calloc(pixels, sizeof *colours);
    if (!colours) return refuse(answer, DECODE_NO_MEMORY, "no memory for its pixels");
    const bool good = read_rgba(page->tiff, page->width, page->height, colours, answer->orientation, 1) == 1;
    for (size_t i = 0; i < pixels && good; i++) {
        const unsigned white = 255 - (colours[i] >> 24);
        for (int c = 0; c < 3; c++) {
            const unsigned sum = (colours[i] >> 8 * c & 255) + white;
            file->pixels[3 * i + (size_t)c] = (unsigned char)(sum > 255 ? 255 : sum);
        }
    }
    free(colours);
    return good || refuse_data(answer);
}

static bool read_picture(struct picture_file *file, struct decode_answer *answer)
{
    struct memory memory = { .file = file };
    answer_of_now = answer;
    TIFF *tiff = client_open("", "rm", &memory, read_memory, write_nothing, seek_memory, close_nothing, size_memory,
        map_nothing, unmap_nothing);
    if (!tiff) return refuse_data(answer);
    struct page page = { .tiff = tiff, .mask = file->mask };
    bool good = open_page(&page, answer) && begin_picture(file, answer, page.width, page.height, page.row);
    if (good && file->wants_pixels)
        good = !page.plain   ? read_converted(&page, file, answer)
            : is_tiled(tiff) ? read_tiles(&page, file, answer)
                             : read_lines(&page, file, answer);
    close_tiff(tiff);
    return good;
}

const struct library library_tiff = { .name = "tiff", .load = load, .read_picture = read_picture };
