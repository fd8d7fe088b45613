/* JPEG files by libjpeg-turbo. Its errors, and warnings that data are missing or damaged, leave it by longjmp(). */
#include "base/status.h"
#include "formats/image_kinds.h"
#include "formats/jpeg_library.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jerror.h>

/* Progressive files are kept whole as coefficients. Each scan visits them all, and takes a few bytes of a hostile file;
 * encoders write about ten. */
enum { MOST_SCANS = 100, MOST_MEMORY = 1 << 30 };

struct reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    const struct image_file *file;
    tutti_status status;
    struct image_header header;
    const struct image_wish *wish;
    struct image *image;
};

static void on_error(j_common_ptr jpeg)
{
    struct reader *reader = jpeg->client_data;
    char text[JMSG_LENGTH_MAX];
    const char *name = reader->file->name;
    jpeg->err->format_message(jpeg, text);
    switch (jpeg->err->msg_code) {
    case JWRN_JPEG_EOF: reader->status = fail(TUTTI_FORMAT, "%s: the file is truncated", name); break;
    case JERR_OUT_OF_MEMORY: reader->status = fail(TUTTI_NO_MEMORY, "%s: no memory", name); break;
    case JERR_NO_BACKING_STORE:
        reader->status = fail(TUTTI_FORMAT, "%s: to read it takes more than %d bytes", name, MOST_MEMORY);
        break;
    default: reader->status = fail(TUTTI_FORMAT, "%s: %s", name, text);
    }
    longjmp(reader->jump, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    if (level >= 0) return;
    switch (jpeg->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_NOT_SEQUENTIAL:
    case JWRN_TOO_MUCH_DATA: return; /* every pixel is there */
    default: on_error(jpeg);
    }
}

static void on_progress(j_common_ptr jpeg)
{
    struct reader *reader = jpeg->client_data;
    if (reader->jpeg.input_scan_number <= MOST_SCANS) return;
    reader->status = fail(TUTTI_FORMAT, "%s: the file has more than %d scans", reader->file->name, MOST_SCANS);
    longjmp(reader->jump, 1);
}

static tutti_status run(struct reader *reader, void (*work)(struct reader *reader))
{
    reader->status = TUTTI_OK;
    reader->jpeg.err = jpeg_std_error(&reader->errors);
    reader->errors.error_exit = on_error;
    reader->errors.emit_message = on_message;
    reader->jpeg.client_data = reader;
    if (setjmp(reader->jump) == 0) work(reader);
    jpeg_destroy_decompress(&reader->jpeg);
    return reader->status;
}

static int find_orientation(const struct jpeg_decompress_struct *jpeg)
{
    for (const struct jpeg_marker_struct *marker = jpeg->marker_list; marker; marker = marker->next)
        if (marker->data_length >= 6 && !memcmp(marker->data, "Exif\0", 6))
            return exif_orientation(marker->data + 6, marker->data_length - 6);
    return 1;
}

static void read_header(struct reader *reader)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg->mem->max_memory_to_use = MOST_MEMORY;
    reader->progress.progress_monitor = on_progress;
    jpeg->progress = &reader->progress;
    jpeg_save_markers(jpeg, JPEG_APP0 + 1, 0xffff);
    jpeg_mem_src(jpeg, reader->file->bytes, (unsigned long)reader->file->count);
    jpeg_read_header(jpeg, TRUE);
    reader->status = image_set_size(&reader->header, reader->file, jpeg->image_width, jpeg->image_height);
    if (reader->status != TUTTI_OK) return;
    reader->header.orientation = find_orientation(jpeg);
    /* A block is the only one of its component for at most 16 x 64 pixels, and takes a bit or more. */
    if (!jpeg->arith_code && (size_t)jpeg->image_width * jpeg->image_height / (8 * 1024) > reader->file->count)
        reader->status = fail(TUTTI_FORMAT, "%s: the file is truncated: it is too short for its %u x %u pixels",
            reader->file->name, jpeg->image_width, jpeg->image_height);
}

/* The least number of eighths of the size which is not below the wish. 3, 5, 6 and 7 take longer than all 8:
 * libjpeg-turbo has no SIMD code for them. */
static unsigned choose_scale(const struct reader *reader)
{
    const struct image_wish *wish = reader->wish;
    if (wish->least_width <= 0 || wish->least_height <= 0) return 8;
    for (unsigned eighths = 1; eighths < 8; eighths *= 2)
        if (((int64_t)reader->header.width * eighths + 7) / 8 >= wish->least_width &&
            ((int64_t)reader->header.height * eighths + 7) / 8 >= wish->least_height)
            return eighths;
    return 8;
}

static enum image_row choose_colours(struct reader *reader)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    switch (jpeg->jpeg_color_space) {
    case JCS_CMYK:
    case JCS_YCCK: /* Adobe's programs store inverted inks, and other programs follow them, with or without its marker
                    */
        jpeg->out_color_space = JCS_CMYK;
        return ROW_INVERTED_CMYK;
    case JCS_GRAYSCALE: jpeg->out_color_space = JCS_GRAYSCALE; return ROW_GREY;
    default:
        jpeg->out_color_space = reader->wish->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
        return reader->wish->channels == 1 ? ROW_GREY : ROW_RGB;
    }
}

static void decode_pixels(struct reader *reader)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    struct canvas canvas;
    read_header(reader);
    if (reader->status != TUTTI_OK) return;
    const enum image_row row = choose_colours(reader);
    jpeg->scale_num = choose_scale(reader);
    jpeg->scale_denom = 8;
    jpeg_start_decompress(jpeg);
    reader->header.width = (int)jpeg->output_width;
    reader->header.height = (int)jpeg->output_height;
    reader->status =
        canvas_begin(&canvas, reader->file, &reader->header, row, reader->wish->channels, false, reader->image);
    if (reader->status != TUTTI_OK) return;
    for (int y = 0; y < reader->header.height; y++) {
        JSAMPROW line = canvas_row(&canvas, y);
        jpeg_read_scanlines(jpeg, &line, 1);
        canvas_put(&canvas, y);
    }
    jpeg_finish_decompress(jpeg);
}

static bool jpeg_matches(const struct image_file *file)
{
    return file->count >= 3 && !memcmp(file->bytes, "\xff\xd8\xff", 3);
}

static tutti_status jpeg_header(const struct image_file *file, struct image_header *header)
{
    struct reader reader = { .file = file };
    tutti_status status = TUTTI_OK;
    TRY(loaded_need(&jpeg_library, file->name));
    status = run(&reader, read_header);
    *header = reader.header;
done:
    return status;
}

static tutti_status jpeg_decode(const struct image_file *file, const struct image_header *header,
    const struct image_wish *wish, struct image *image)
{
    struct reader reader = { .file = file, .wish = wish, .image = image };
    (void)header; /* read again: it leaves libjpeg where the pixels begin */
    return run(&reader, decode_pixels);
}

const struct image_kind image_jpeg = { jpeg_matches, jpeg_header, jpeg_decode };
