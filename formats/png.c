#include "formats/png.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MOST_PIXELS = 1 << 14, CHUNK_FRAME = 12 };

static unsigned char *put_number(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) *at++ = (unsigned char)(value >> (24 - 8 * i));
    return at;
}

static unsigned char *put_chunk(unsigned char *at, const char *kind, const unsigned char *data, size_t size)
{
    at = put_number(at, (uint32_t)size);
    unsigned char *begin = at;
    memcpy(at, kind, 4);
    if (size) memcpy(at + 4, data, size);
    at += 4 + size;
    return put_number(at, (uint32_t)crc32(0, begin, (uInt)(4 + size)));
}

/* Each line has its filter before it: 0, none. */
static unsigned char *filtered(const unsigned char *pixels, size_t line, int height)
{
    unsigned char *raw = memory_new((size_t)height, line + 1);
    for (int y = 0; raw && y < height; y++) memcpy(raw + (size_t)y * (line + 1) + 1, pixels + (size_t)y * line, line);
    return raw;
}

tutti_status png_encode(
    const unsigned char *pixels, int width, int height, int channels, unsigned char **file, size_t *size)
{
    static const unsigned char signature[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
    if (width < 1 || height < 1 || width > MOST_PIXELS || height > MOST_PIXELS || (channels != 1 && channels != 3))
        return fail(TUTTI_INVALID, "a picture of %d x %d with %d channels cannot be written", width, height, channels);
    tutti_status status = TUTTI_OK;
    const size_t line = (size_t)width * (size_t)channels;
    uLongf packed_size = compressBound((uLong)((line + 1) * (size_t)height));
    unsigned char header[13] = { 0 }, *packed = memory_new(packed_size, 1), *raw = filtered(pixels, line, height);
    *file = memory_new(packed_size + sizeof signature + sizeof header + 3 * CHUNK_FRAME, 1);
    if (!packed || !raw || !*file) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    if (compress2(packed, &packed_size, raw, (uLong)((line + 1) * (size_t)height), 6) != Z_OK)
        FAIL(TUTTI_INTERNAL, "a picture of %d x %d could not be packed", width, height);
    put_number(put_number(header, (uint32_t)width), (uint32_t)height);
    header[8] = 8;                     /* bits */
    header[9] = channels == 1 ? 0 : 2; /* grey or RGB */
    memcpy(*file, signature, sizeof signature);
    unsigned char *at = put_chunk(*file + sizeof signature, "IHDR", header, sizeof header);
    at = put_chunk(at, "IDAT", packed, packed_size);
    at = put_chunk(at, "IEND", NULL, 0);
    *size = (size_t)(at - *file);
done:
    free(packed);
    free(raw);
    if (status != TUTTI_OK) {
        free(*file);
        *file = NULL;
    }
    return status;
}
