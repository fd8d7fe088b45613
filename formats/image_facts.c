#include "formats/image_facts.h"

#include <stdbool.h>
#include <string.h>

static const char colour[] = "colour", grey[] = "grey";

/* Walks the markers to the frame, which says how many components there are (ITU-T T.81, B.2.2). */
static const char *jpeg_colours(const unsigned char *bytes, size_t count)
{
    enum { DHT = 0xc4, JPG = 0xc8, DAC = 0xcc };
    for (size_t at = 2; at + 9 < count && bytes[at] == 0xff;) {
        const int marker = bytes[at + 1];
        const bool frame = marker >= 0xc0 && marker <= 0xcf && marker != DHT && marker != JPG && marker != DAC;
        if (frame) return bytes[at + 9] == 1 ? grey : bytes[at + 9] == 4 ? "CMYK" : colour;
        at += marker == 0xff ? 1 : 2 + ((size_t)bytes[at + 2] << 8 | bytes[at + 3]);
    }
    return NULL;
}

static const char *png_colours(const unsigned char *bytes, size_t count)
{
    enum { COLOUR_TYPE = 25 }; /* in IHDR, which is the first chunk */
    if (count <= COLOUR_TYPE) return NULL;
    switch (bytes[COLOUR_TYPE]) {
    case 0: return grey;
    case 2: return colour;
    case 3: return "palette";
    case 4: return "grey with alpha";
    case 6: return "colour with alpha";
    default: return NULL;
    }
}

struct image_facts image_facts(const unsigned char *bytes, size_t count)
{
    struct image_facts facts = { "other", NULL };
    if (count < 12) return facts;
    if (!memcmp(bytes, "\xff\xd8\xff", 3)) return (struct image_facts) { "JPEG", jpeg_colours(bytes, count) };
    if (!memcmp(bytes, "\x89PNG", 4)) return (struct image_facts) { "PNG", png_colours(bytes, count) };
    if (!memcmp(bytes, "BM", 2)) return (struct image_facts) { "BMP", colour };
    if (bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6')
        return bytes[1] % 3 == 0 ? (struct image_facts) { "PPM", colour } : (struct image_facts) { "PGM", grey };
    if (!memcmp(bytes, "GIF8", 4)) return (struct image_facts) { "GIF", "palette" };
    if (!memcmp(bytes, "II*", 4) || !memcmp(bytes, "MM\0*", 4)) facts.format = "TIFF";
    if (!memcmp(bytes, "RIFF", 4) && !memcmp(bytes + 8, "WEBP", 4)) facts.format = "WebP";
    if (!memcmp(bytes + 4, "ftyp", 4)) facts.format = !memcmp(bytes + 8, "avi", 3) ? "AVIF" : "HEIC";
    return facts;
}
