/* Finds the kind of a picture file by its first bytes. */
#include "formats/image.h"

#include "base/status.h"
#include "formats/image_kinds.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct image_kind *const kinds[] = { &image_jpeg, &image_png, &image_bmp, &image_pnm, &image_gif,
    &image_webp, &image_tiff, &image_heif };

void image_free(struct image *image)
{
    free(image->pixels);
    memset(image, 0, sizeof(*image));
}

bool image_has_name(const char *name)
{
    static const char *const ends[] = { ".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".pnm", ".gif", ".webp",
        ".tif", ".tiff", ".heic", ".heif", ".avif" };
    const char *end = strrchr(name, '.');
    for (size_t i = 0; end && i < sizeof(ends) / sizeof(*ends); i++)
        if (!strcasecmp(end, ends[i])) return true;
    return false;
}

tutti_status image_set_size(struct image_header *header, const struct image_file *file, int64_t width, int64_t height)
{
    if (width < 1 || height < 1 || width > IMAGE_MAX_PIXELS || height > IMAGE_MAX_PIXELS)
        return fail(TUTTI_FORMAT, "%s: the picture has an impossible size", file->name);
    if (width * height > IMAGE_MAX_PIXELS)
        return fail(TUTTI_FORMAT, "%s: %lld x %lld pixels are more than the %d that are read", file->name,
            (long long)width, (long long)height, IMAGE_MAX_PIXELS);
    *header = (struct image_header) { (int)width, (int)height, 1 };
    return TUTTI_OK;
}

/* Finds the kind of a file; NULL, with a message: the kind is unknown. */
static const struct image_kind *find_kind(const struct image_file *file)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (kinds[i]->matches(file)) return kinds[i];
    (void)fail(TUTTI_FORMAT, "%s: %s", file->name,
        file->count == 0 ? "the file is empty"
                         : "this is not a JPEG, PNG, WebP, TIFF, HEIC, AVIF, GIF, BMP, PPM or PGM file");
    return NULL;
}

tutti_status image_size(const void *bytes, size_t count, const char *name, int *width, int *height)
{
    const struct image_file file = { bytes, count, name };
    const struct image_kind *kind = find_kind(&file);
    struct image_header header;
    if (!kind) return TUTTI_FORMAT;
    const tutti_status status = kind->read_header(&file, &header);
    if (status != TUTTI_OK) return status;
    const bool turned = header.orientation >= 5;
    *width = turned ? header.height : header.width;
    *height = turned ? header.width : header.height;
    return TUTTI_OK;
}

tutti_status image_decode(
    const void *bytes, size_t count, const char *name, const struct image_wish *wish, struct image *image)
{
    const struct image_file file = { bytes, count, name };
    const struct image_kind *kind = find_kind(&file);
    struct image_header header;
    struct image_wish stored = *wish;
    if (wish->channels != 1 && wish->channels != 3)
        return fail(TUTTI_INVALID, "%s: pictures have 1 or 3 channels, not %d", name, wish->channels);
    if (!kind) return TUTTI_FORMAT;
    if (kind->whole) return kind->decode(&file, NULL, wish, image);
    const tutti_status status = kind->read_header(&file, &header);
    if (status != TUTTI_OK) return status;
    if (header.orientation >= 5) {
        stored.least_width = wish->least_height;
        stored.least_height = wish->least_width;
    }
    return kind->decode(&file, &header, &stored, image);
}
