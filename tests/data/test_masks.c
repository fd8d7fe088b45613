/* Masks in PNG files of Pillow and of make_masks.py: the numbers of their pixels are classes. */
#include "base/status.h"
#include "formats/image.h"
#include "formats/npz.h"
#include "tests/data/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 21, HEIGHT = 13, PIXELS = WIDTH * HEIGHT };
static struct npz *masks;

static void masks_begin(void)
{
    char path[512];
    files_begin();
    snprintf(path, sizeof path, "%s/tests/data/files/masks.npz", getenv("TUTTI_SOURCE"));
    ck_assert_msg(npz_open(path, &masks) == TUTTI_OK, "%s", status_message());
}

static void masks_end(void)
{
    npz_close(masks);
    files_end();
}

static const struct npz_array *find(const char *kind, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", kind, name);
    const struct npz_array *found = npz_find(masks, path);
    ck_assert_ptr_nonnull(found);
    return found;
}

static bool reads_png(void)
{
    const struct npz_array *file = find("file", "voc.png");
    int width, height;
    return image_size(file->data, file->bytes, "it", &width, &height) != TUTTI_UNSUPPORTED;
}

static void expect_numbers(const char *name, int channels)
{
    const struct npz_array *file = find("file", name);
    const int32_t *wanted = find("values", name)->data;
    const struct image_wish wish = { .channels = channels, .mask = true };
    struct image image = { 0 };
    ck_assert_msg(image_decode(file->data, file->bytes, name, &wish, &image) == TUTTI_OK, "%s", status_message());
    ck_assert(image.width == WIDTH && image.height == HEIGHT && image.channels == channels);
    for (int i = 0; i < PIXELS * channels; i++)
        ck_assert_msg(image.pixels[i] == wanted[i / channels], "%s: number %d is %d, not %d", name, i, image.pixels[i],
            (int)wanted[i / channels]);
    image_free(&image);
}

START_TEST(numbers_are_kept)
{
    int count = 0;
    for (int i = 0; i < npz_count(masks) && reads_png(); i++) {
        const char *name = npz_at(masks, i)->name;
        if (strncmp(name, "file/", 5) != 0 || !strcmp(name, "file/too_deep.png")) continue;
        expect_numbers(name + 5, 1);
        expect_numbers(name + 5, 3);
        count++;
    }
    ck_assert_int_eq(count, reads_png() ? 18 : 0);
}
END_TEST

/* Pictures of the masks' size, each with a mask of this name's file. */
static void write_set(const char *name)
{
    const struct npz_array *file = find("file", name);
    for (int i = 0; i < 5; i++) {
        write_ppm(in_files("set/images/%d.ppm", i), WIDTH, HEIGHT, 10 * i, 0, 0, 0);
        write_file(in_files("set/masks/%d.png", i), file->data, file->bytes);
    }
}

START_TEST(palettes_are_classes)
{
    tutti_data_options options = small_options(NULL);
    tutti_data_info info = { .size = sizeof info };
    unsigned char bytes[SAMPLE];
    int32_t classes[SAMPLE / 3];
    const tutti_buffer buffers[] = { { "input", TUTTI_DTYPE_U8, bytes, sizeof bytes },
        { "targets", TUTTI_DTYPE_I32, classes, sizeof classes } };
    if (!reads_png()) return;
    write_set("voc.png");
    tutti_data *data = tutti_data_open(in_files("set"), &options);
    ck_assert_msg(data != NULL, "%s", status_message());
    ck_assert_int_eq(tutti_data_describe(data, &info), TUTTI_OK);
    ck_assert_int_eq(info.classes, 21);
    const tutti_source *source = tutti_data_source(data, TUTTI_DATA_TRAIN);
    ck_assert_int_eq(source->read(source->user, (int64_t[]) { 0 }, 1, buffers, 2), 0);
    int left_out = 0;
    for (int i = 0; i < SAMPLE / 3; i++) {
        ck_assert(classes[i] >= -1 && classes[i] < 21);
        left_out += classes[i] == -1;
    }
    ck_assert(left_out > 0 && left_out < SAMPLE / 12);
    tutti_data_free(data);
}
END_TEST

START_TEST(large_numbers_are_refused)
{
    const tutti_data_options options = small_options(NULL);
    if (!reads_png()) return;
    write_set("too_deep.png");
    ck_assert_ptr_null(tutti_data_open(in_files("set"), &options));
    ck_assert_ptr_nonnull(strstr(status_message(), "set/masks/0.png: a pixel of this mask has a number above 255"));
    ck_assert_ptr_null(strchr(status_message(), '\n'));
}
END_TEST

TCase *masks_case(void)
{
    TCase *tests = tcase_create("masks");
    tcase_add_checked_fixture(tests, masks_begin, masks_end);
    tcase_add_test(tests, numbers_are_kept);
    tcase_add_test(tests, palettes_are_classes);
    tcase_add_test(tests, large_numbers_are_refused);
    return tests;
}
