/* The orientation in EXIF data: TIFF 6.0's first directory, tag 0x0112, in either order of bytes. */
#include "formats/image_kinds.h"

#include <string.h>

enum { ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY_BYTES = 12 };

static unsigned read_16(const unsigned char *at, bool big)
{
    return big ? (unsigned)at[0] << 8 | at[1] : (unsigned)at[1] << 8 | at[0];
}

static uint32_t read_32(const unsigned char *at, bool big)
{
    const uint32_t first = read_16(at, big), second = read_16(at + 2, big);
    return big ? first << 16 | second : second << 16 | first;
}

int exif_orientation(const unsigned char *tiff, size_t count)
{
    if (count < 8 || (memcmp(tiff, "II*\0", 4) && memcmp(tiff, "MM\0*", 4))) return 1;
    const bool big = *tiff == 'M';
    const size_t directory = read_32(tiff + 4, big);
    if (directory > count - 2) return 1;
    const unsigned entries = read_16(tiff + directory, big);
    const unsigned char *entry = tiff + directory + 2;
    size_t left = count - directory - 2;
    for (unsigned i = 0; i < entries && left >= ENTRY_BYTES; i++, entry += ENTRY_BYTES, left -= ENTRY_BYTES) {
        if (read_16(entry, big) != ORIENTATION) continue;
        const unsigned value = read_16(entry + 8, big);
        const bool good = read_16(entry + 2, big) == TYPE_SHORT && read_32(entry + 4, big) == 1;
        return good && value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}
