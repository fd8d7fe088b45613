#include "pictures.h"

#include "formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct npz *pictures;
struct image image;

void pictures_open(const char *file)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/formats/files/%s", getenv("TUTTI_SOURCE"), file);
    ck_assert_msg(npz_open(path, &pictures) == TUTTI_OK, "%s", status_message());
}

void pictures_close(void)
{
    npz_close(pictures);
    image_free(&image);
}

const struct npz_array *picture_find(const char *kind, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", kind, name);
    return npz_find(pictures, path);
}

void pictures_each(int least, picture_filter *is_unsupported, picture_work *work)
{
    int count = 0;
    for (int i = 0; i < npz_count(pictures); i++) {
        const struct npz_array *file = npz_at(pictures, i);
        if (strncmp(file->name, "file/", 5) != 0 || is_unsupported(file->name + 5, file)) continue;
        work(file->name + 5, file);
        count++;
    }
    ck_assert_int_ge(count, least);
}

void expect_close(
    const char *name, const unsigned char *found, const unsigned char *wanted, size_t count, int most_error)
{
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(
            abs(found[i] - wanted[i]) <= most_error, "%s: byte %zu is %d, not %d", name, i, found[i], wanted[i]);
}

void change_bytes(unsigned char *bytes, size_t count)
{
    for (size_t changes = 1 + chance(3); changes > 0; changes--) {
        const size_t at = chance(chance(2) || count < 64 ? count : 64);
        bytes[at] = chance(2) ? (unsigned char)chance(256) : (unsigned char)(bytes[at] ^ 1 << chance(8));
    }
}
