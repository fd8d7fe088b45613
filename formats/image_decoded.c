/* WebP, TIFF, HEIC and AVIF: files that a helper process decodes. Nothing that it answers is trusted. */
#include "base/status.h"
#include "formats/decoder.h"
#include "formats/image_kinds.h"

#include <string.h>

struct asked {
    enum decoder_kind kind;
    const char *what;
    const struct image_file *file;
    struct decode_request request;
    const struct image_wish *wish; /* NULL: only the size is asked for */
    struct image *image;
    struct image_header header;
};

static tutti_status read_rows(
    struct asked *asked, struct decoder *decoder, const struct decode_answer *answer, struct image *image)
{
    tutti_status status;
    struct canvas canvas;
    const char *name = asked->file->name;
    const size_t bytes = (size_t)answer->width * (answer->row == ROW_INVERTED_CMYK ? 4 : answer->row);
    TRY(canvas_begin(
        &canvas, asked->file, &asked->header, (enum image_row)answer->row, asked->wish->channels, false, image));
    if (!canvas.scratch) /* rows lie one after another */
        return decoder_receive(decoder, name, image->pixels, bytes * (size_t)answer->height);
    for (int y = 0; y < answer->height; y++) {
        TRY(decoder_receive(decoder, name, canvas_row(&canvas, y), bytes));
        canvas_put(&canvas, y);
    }
done:
    return status;
}

static tutti_status converse(struct asked *asked, struct decoder *decoder, bool *broken)
{
    tutti_status status;
    struct decode_answer answer;
    const char *name = asked->file->name;
    *broken = false;
    TRY(decoder_ask(decoder, name, &asked->request, asked->file->bytes, -1, &answer));
    *broken = true; /* until all has come */
    TRY(image_set_size(&asked->header, asked->file, answer.width, answer.height));
    if (answer.row < ROW_GREY || answer.row > ROW_INVERTED_CMYK || answer.orientation < 1 || answer.orientation > 8)
        FAIL(TUTTI_FORMAT, "%s: its decoder answers nonsense: the file is hostile", name);
    asked->header.orientation = answer.orientation;
    if (asked->wish) TRY(read_rows(asked, decoder, &answer, asked->image));
    *broken = false;
done:
    return status;
}

/* Asks a helper, and once more another one where a file before this one may have harmed it. */
static tutti_status ask(struct asked *asked)
{
    tutti_status status;
    asked->request.bytes = asked->file->count;
    for (bool again = true; again;) {
        struct decoder *decoder;
        bool broken;
        status = decoder_take(asked->kind, asked->file->name, asked->what, &decoder);
        if (status != TUTTI_OK) return status;
        status = converse(asked, decoder, &broken);
        again = decoder_was_used(decoder);
        decoder_give(decoder, broken);
    }
    return status;
}

static tutti_status read_size(
    enum decoder_kind kind, const char *what, const struct image_file *file, struct image_header *header)
{
    struct asked asked = { .kind = kind, .what = what, .file = file, .request = { .task = DECODE_SIZE } };
    const tutti_status status = ask(&asked);
    *header = asked.header;
    return status;
}

static tutti_status read_pixels(enum decoder_kind kind, const char *what, const struct image_file *file,
    const struct image_wish *wish, struct image *image)
{
    struct asked asked = { .kind = kind,
        .what = what,
        .file = file,
        .request = { .task = DECODE_PIXELS, .mask = wish->mask },
        .wish = wish,
        .image = image };
    return ask(&asked);
}

/* ---------------------------------------------------------------------------------------------------- WebP ---- */

static bool webp_matches(const struct image_file *file)
{
    return file->count >= 12 && !memcmp(file->bytes, "RIFF", 4) && !memcmp(file->bytes + 8, "WEBP", 4);
}

static tutti_status webp_header(const struct image_file *file, struct image_header *header)
{
    return read_size(DECODER_WEBP, "WebP", file, header);
}

static tutti_status webp_decode(const struct image_file *file, const struct image_header *header,
    const struct image_wish *wish, struct image *image)
{
    (void)header; /* not known yet */
    return read_pixels(DECODER_WEBP, "WebP", file, wish, image);
}

const struct image_kind image_webp = { webp_matches, webp_header, webp_decode, .whole = true };

/* ---------------------------------------------------------------------------------------------------- TIFF ---- */

/* Also BigTIFF, whose number is 43. */
static bool tiff_matches(const struct image_file *file)
{
    static const char *const starts[] = { "II\x2a\0", "MM\0\x2a", "II\x2b\0", "MM\0\x2b" };
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (file->count >= 4 && !memcmp(file->bytes, starts[i], 4)) return true;
    return false;
}

static tutti_status tiff_header(const struct image_file *file, struct image_header *header)
{
    return read_size(DECODER_TIFF, "TIFF", file, header);
}

static tutti_status tiff_decode(const struct image_file *file, const struct image_header *header,
    const struct image_wish *wish, struct image *image)
{
    (void)header;
    return read_pixels(DECODER_TIFF, "TIFF", file, wish, image);
}

const struct image_kind image_tiff = { tiff_matches, tiff_header, tiff_decode, .whole = true };

/* ------------------------------------------------------------------------------------------- HEIC and AVIF ---- */

static bool has_brand(const struct image_file *file, const char *brands)
{
    for (; *brands; brands += 4)
        if (file->count >= 12 && !memcmp(file->bytes + 4, "ftyp", 4) && !memcmp(file->bytes + 8, brands, 4))
            return true;
    return false;
}

static bool heif_matches(const struct image_file *file)
{
    return has_brand(file, "heicheixheimheishevchevxmif1msf1avifavis");
}

static const char *heif_name(const struct image_file *file)
{
    return has_brand(file, "avifavis") ? "AVIF" : "HEIC";
}

static tutti_status heif_header(const struct image_file *file, struct image_header *header)
{
    return read_size(DECODER_HEIF, heif_name(file), file, header);
}

static tutti_status heif_decode(const struct image_file *file, const struct image_header *header,
    const struct image_wish *wish, struct image *image)
{
    (void)header;
    return read_pixels(DECODER_HEIF, heif_name(file), file, wish, image);
}

const struct image_kind image_heif = { heif_matches, heif_header, heif_decode, .whole = true };
