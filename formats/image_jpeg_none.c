/* Instead of image_jpeg.c where libjpeg-turbo is missing. */
#include "base/status.h"
#include "formats/image_kinds.h"

#include <string.h>

static bool jpeg_matches(const struct image_file *file)
{
    return file->count >= 3 && !memcmp(file->bytes, "\xff\xd8\xff", 3);
}

static tutti_status jpeg_header(const struct image_file *file, struct image_header *header)
{
    (void)header;
    return fail(TUTTI_UNSUPPORTED, "%s: JPEG files need libjpeg-turbo: Tutti was built without it", file->name);
}

const struct image_kind image_jpeg = { .matches = jpeg_matches, .read_header = jpeg_header };
