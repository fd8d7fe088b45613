/* WebP by libwebp; of an animation the first frame. The declarations are those of webp/decode.h, version 0x0200 and
 * later of its interface. */
#include "formats/decode/decode.h"
#include "formats/image_kinds.h"
#include "formats/little_endian.h"

#include <string.h>

enum { INTERFACE = 0x0200 };
enum { HEADER = 12, CHUNK = 8, EXTENDED = 10, FRAME = 16 };

struct features {
    int width, height, has_alpha, has_animation, format;
    uint32_t unused[5];
};
static int (*get_features)(const uint8_t *data, size_t size, struct features *features, int interface);
static uint8_t *(*decode_rgb)(const uint8_t *data, size_t size, uint8_t *to, size_t room, int stride);
static uint8_t *(*decode_rgba)(const uint8_t *data, size_t size, uint8_t *to, size_t room, int stride);

static bool load(void)
{
    static const char *const files[] = { "libwebp.so.7", "libwebp.so.6", NULL };
    const struct symbol symbols[] = { { "WebPGetFeaturesInternal", (void *)&get_features },
        { "WebPDecodeRGBInto", (void *)&decode_rgb }, { "WebPDecodeRGBAInto", (void *)&decode_rgba } };
    return library_load(files, symbols, sizeof symbols / sizeof *symbols);
}

/* What is coded: the picture, or the first frame of an animation and where it lies on the canvas. */
struct coded {
    const unsigned char *bytes;
    size_t count;
    bool animated;
    uint32_t width, height; /* of the canvas */
    uint32_t x, y;
    int orientation;
};

static void read_exif(const unsigned char *chunk, size_t size, struct coded *coded)
{
    const size_t skipped = size > 6 && !memcmp(chunk, "Exif\0", 6) ? 6 : 0;
    coded->orientation = exif_orientation(chunk + skipped, size - skipped);
}

/* Finds the frame, the canvas and the orientation. */
static bool read_chunks(const struct picture_file *file, struct coded *coded, struct decode_answer *answer)
{
    const unsigned char *chunk = file->bytes + HEADER;
    if (file->count < HEADER || read_le32(file->bytes + 4) > file->count - CHUNK)
        return refuse(answer, DECODE_DAMAGED, "the file is truncated");
    size_t left = file->count - HEADER;
    *coded = (struct coded) { .bytes = file->bytes, .count = file->count, .orientation = 1 };
    for (bool found = false; left >= CHUNK;) {
        const size_t size = read_le32(chunk + 4), step = CHUNK + size + (size & 1);
        if (size > left - CHUNK) return refuse(answer, DECODE_DAMAGED, "the file is truncated");
        if (!memcmp(chunk, "VP8X", 4) && size >= EXTENDED) {
            coded->animated = chunk[CHUNK] & 2;
            coded->width = 1 + read_le24(chunk + CHUNK + 4);
            coded->height = 1 + read_le24(chunk + CHUNK + 7);
        }
        if (!memcmp(chunk, "ANMF", 4) && size >= FRAME && coded->animated && !found) {
            coded->bytes = chunk + CHUNK + FRAME;
            coded->count = size - FRAME;
            coded->x = 2 * read_le24(chunk + CHUNK);
            coded->y = 2 * read_le24(chunk + CHUNK + 3);
            found = true;
        }
        if (!memcmp(chunk, "EXIF", 4)) read_exif(chunk + CHUNK, size, coded);
        chunk += step < left ? step : left;
        left -= step < left ? step : left;
    }
    return true;
}

static bool read_picture(struct picture_file *file, struct decode_answer *answer)
{
    struct coded coded = { 0 };
    struct features features = { 0 };
    if (!read_chunks(file, &coded, answer)) return false;
    if (get_features(coded.bytes, coded.count, &features, INTERFACE) != 0 || features.has_animation)
        return refuse(answer, DECODE_DAMAGED, "it is damaged");
    if (!coded.animated) {
        coded.width = (uint32_t)features.width;
        coded.height = (uint32_t)features.height;
    }
    const bool alpha = features.has_alpha || coded.animated;
    answer->orientation = coded.orientation;
    if (!begin_picture(file, answer, coded.width, coded.height, alpha ? ROW_RGBA : ROW_RGB)) return false;
    if (features.width < 1 || features.height < 1 || (uint64_t)coded.x + (uint64_t)features.width > coded.width ||
        (uint64_t)coded.y + (uint64_t)features.height > coded.height)
        return refuse(answer, DECODE_DAMAGED, "its first frame lies outside of the picture");
    if (!file->wants_pixels) return true;
    const size_t pixel = alpha ? 4 : 3, stride = coded.width * pixel;
    const size_t begin = coded.y * stride + coded.x * pixel, room = coded.height * stride - begin;
    return (alpha ? decode_rgba : decode_rgb)(coded.bytes, coded.count, file->pixels + begin, room, (int)stride) ||
        refuse(answer, DECODE_DAMAGED, "it is damaged or truncated");
}

const struct library library_webp = { .name = "webp", .load = load, .read_picture = read_picture };
