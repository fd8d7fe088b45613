/* PNG files by libpng. Its errors leave it by longjmp(). */
#include "base/status.h"
#include "formats/image_kinds.h"
#include "formats/png_library.h"

#include <setjmp.h>
#include <string.h>

enum { DEFLATE_RATIO = 1032 }; /* a byte of deflated data becomes at most so many */

struct reader {
    png_structp png;
    png_infop info;
    jmp_buf jump;
    const struct image_file *file;
    size_t place;
    tutti_status status;
    struct image_header header;
    const struct image_wish *wish;
    struct image *image;
};

static PNG_NORETURN void on_error(png_structp png, png_const_charp text)
{
    struct reader *reader = png_get_error_ptr(png);
    reader->status = fail(TUTTI_FORMAT, "%s: %s", reader->file->name, text);
    longjmp(reader->jump, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static void read_bytes(png_structp png, png_bytep to, size_t count)
{
    struct reader *reader = png_get_io_ptr(png);
    if (count > reader->file->count - reader->place) png_error(png, "the file is truncated");
    memcpy(to, reader->file->bytes + reader->place, count);
    reader->place += count;
}

static tutti_status run(struct reader *reader, void (*work)(struct reader *reader))
{
    reader->status = TUTTI_OK;
    if (setjmp(reader->jump) == 0) {
        reader->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, reader, on_error, on_warning);
        if (reader->png) reader->info = png_create_info_struct(reader->png);
        if (!reader->info)
            reader->status = fail(TUTTI_NO_MEMORY, "%s: libpng cannot be started", reader->file->name);
        else
            work(reader);
    }
    png_destroy_read_struct(&reader->png, &reader->info, NULL);
    return reader->status;
}

static size_t read_32(const unsigned char *at)
{
    return (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
}

/* Finds EXIF's orientation in a chunk before the pixels, without libpng: version 1.6 allocates as much memory as an
 * eXIf chunk announces, whatever the limit. */
static int find_orientation(const struct image_file *file)
{
    enum { SIGNATURE = 8, AROUND = 12 /* length, kind, check sum */ };
    const unsigned char *chunk = file->bytes + SIGNATURE;
    size_t left = file->count - SIGNATURE;
    while (left >= AROUND && memcmp(chunk + 4, "IDAT", 4) != 0) {
        const size_t length = read_32(chunk);
        if (length > left - AROUND) break;
        if (!memcmp(chunk + 4, "eXIf", 4)) return exif_orientation(chunk + 8, length);
        chunk += length + AROUND;
        left -= length + AROUND;
    }
    return 1;
}

static void read_header(struct reader *reader)
{
    png_structp png = reader->png;
    png_set_read_fn(png, reader, read_bytes);
    /* Skips texts, profiles and the like. */
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(png, reader->info);
    reader->status = image_set_size(
        &reader->header, reader->file, png_get_image_width(png, reader->info), png_get_image_height(png, reader->info));
    if (reader->status != TUTTI_OK) return;
    reader->header.orientation = find_orientation(reader->file);
    const size_t row_bytes = png_get_rowbytes(png, reader->info);
    if (row_bytes * (size_t)reader->header.height / DEFLATE_RATIO > reader->file->count)
        reader->status = fail(TUTTI_FORMAT, "%s: the file is truncated: it is too short for its %d x %d pixels",
            reader->file->name, reader->header.width, reader->header.height);
}

/* Keeps the lower byte of numbers of 16 bits. */
static void narrow(png_structp png, png_row_infop row, png_bytep data)
{
    for (png_uint_32 i = 0; i < row->width; i++) {
        if (data[2 * i]) png_error(png, "a pixel of this mask has a number above 255");
        data[i] = data[2 * i + 1];
    }
}

/* A byte for each number: as it is stored, where numbers are classes, else as a colour. */
static void choose_numbers(struct reader *reader)
{
    png_structp png = reader->png;
    const int kind = png_get_color_type(png, reader->info);
    if (!reader->wish->mask || (kind != PNG_COLOR_TYPE_PALETTE && kind != PNG_COLOR_TYPE_GRAY)) {
        png_set_expand(png); /* palettes, fewer than 8 bits, a transparent colour */
        png_set_scale_16(png);
        return;
    }
    png_set_packing(png);
    if (png_get_bit_depth(png, reader->info) < 16) return;
    png_set_read_user_transform_fn(png, narrow);
    png_set_user_transform_info(png, NULL, 8, 1);
}

static void decode_pixels(struct reader *reader)
{
    png_structp png = reader->png;
    struct canvas canvas;
    read_header(reader);
    if (reader->status != TUTTI_OK) return;
    choose_numbers(reader);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, reader->info);
    const int numbers = png_get_channels(png, reader->info);
    const enum image_row row = numbers == 1 ? ROW_GREY
        : numbers == 2                      ? ROW_GREY_ALPHA
        : numbers == 3                      ? ROW_RGB
                                            : ROW_RGBA;
    reader->status =
        canvas_begin(&canvas, reader->file, &reader->header, row, reader->wish->channels, passes > 1, reader->image);
    if (reader->status != TUTTI_OK) return;
    for (int pass = 1; pass <= passes; pass++)
        for (int y = 0; y < reader->header.height; y++) {
            png_read_row(png, canvas_row(&canvas, y), NULL);
            if (pass == passes) canvas_put(&canvas, y);
        }
    png_read_end(png, NULL);
}

static bool png_matches(const struct image_file *file)
{
    return file->count >= 4 && !memcmp(file->bytes, "\x89PNG", 4);
}

static tutti_status png_header(const struct image_file *file, struct image_header *header)
{
    struct reader reader = { .file = file };
    tutti_status status = TUTTI_OK;
    TRY(loaded_need(&png_library, file->name));
    status = run(&reader, read_header);
    *header = reader.header;
done:
    return status;
}

static tutti_status png_decode(const struct image_file *file, const struct image_header *header,
    const struct image_wish *wish, struct image *image)
{
    struct reader reader = { .file = file, .wish = wish, .image = image };
    (void)header; /* read again: it leaves libpng where the pixels begin */
    return run(&reader, decode_pixels);
}

const struct image_kind image_png = { png_matches, png_header, png_decode };
