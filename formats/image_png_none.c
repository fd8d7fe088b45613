/* Instead of image_png.c where libpng is missing. */
#include "base/status.h"
#include "formats/image_kinds.h"

#include <string.h>

static bool png_matches(const struct image_file *file)
{
    return file->count >= 4 && !memcmp(file->bytes, "\x89PNG", 4);
}

static tutti_status png_header(const struct image_file *file, struct image_header *header)
{
    (void)header;
    return fail(TUTTI_UNSUPPORTED, "%s: PNG files need libpng: Tutti was built without it", file->name);
}

const struct image_kind image_png = { .matches = png_matches, .read_header = png_header };
