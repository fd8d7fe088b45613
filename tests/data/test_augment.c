/* Augmentation against what Pillow and torchvision made of the same pictures (make_augment.py), masks against images,
 * and sizes that are rare. */
#include "test_augment.h"

#include "formats/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct augment plain;
static const struct draw evaluation;
static struct augment_scratch *scratch;
static struct npz *recorded;

static void begin(void)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/tests/data/files/augment.npz", getenv("TUTTI_SOURCE"));
    ck_assert_msg(npz_open(path, &recorded) == TUTTI_OK, "%s", status_message());
    scratch = augment_scratch_new();
    ck_assert_ptr_nonnull(scratch);
}

static void end(void)
{
    npz_close(recorded);
    augment_scratch_free(scratch);
}

/* The pixels belong to `recorded`. */
static struct image picture(const char *name)
{
    char full[64];
    snprintf(full, sizeof(full), "picture-%s", name);
    const struct npz_array *array = npz_find(recorded, full);
    ck_assert_msg(array && array->rank == 3 && array->type == NPZ_U8, "no %s", full);
    return (struct image) { (int)array->sizes[1], (int)array->sizes[0], (int)array->sizes[2], array->data, 0 };
}

/* No byte differs by more than one level, and few do at all. */
static void expect_close(const unsigned char *found, const struct npz_array *expected)
{
    const unsigned char *wanted = expected->data;
    size_t different = 0;
    for (size_t i = 0; i < expected->bytes; i++) {
        const int difference = abs(found[i] - wanted[i]);
        ck_assert_msg(difference <= 1, "%s: byte %zu is %d, not %d", expected->name, i, found[i], wanted[i]);
        different += difference != 0;
    }
    const bool moved = strstr(expected->name, "rotate") || strstr(expected->name, "shear") ||
        strstr(expected->name, "hue"); /* Pillow and torchvision round down there */
    ck_assert_msg(moved || different <= 1 + expected->bytes / 20, "%s: %zu of %zu bytes differ", expected->name,
        different, expected->bytes);
}

/* Resizes a box of a picture and compares it with a result. */
static void compare_box(const struct image *image, const struct box *box, const struct npz_array *expected)
{
    const int height = (int)expected->sizes[1], width = (int)expected->sizes[2];
    unsigned char *sample = malloc(expected->bytes);
    ck_assert_int_eq(expected->sizes[0], image->channels);
    ck_assert_int_eq(
        augment_image(&plain, &evaluation, image, box, image->width, image->height, width, height, scratch, sample),
        TUTTI_OK);
    expect_close(sample, expected);
    free(sample);
}

START_TEST(resizes_as_pillow)
{
    int cases = 0;
    for (int i = 0; i < npz_count(recorded); i++) {
        const struct npz_array *expected = npz_at(recorded, i);
        int left, top, width, height;
        char name[16];
        if (sscanf(expected->name, "resize-%15[a-z]-%d-%d-%d-%d", name, &left, &top, &width, &height) != 5) continue;
        const struct image image = picture(name);
        const struct box box = { left, top, width, height, true };
        compare_box(&image, &box, expected);
        cases++;
    }
    ck_assert_int_eq(cases, 13);
}
END_TEST

START_TEST(evaluates_as_torchvision)
{
    int cases = 0;
    for (int i = 0; i < npz_count(recorded); i++) {
        const struct npz_array *expected = npz_at(recorded, i);
        char name[16];
        int side;
        if (sscanf(expected->name, "evaluate-%15[a-z]-%d", name, &side) != 2) continue;
        const struct image image = picture(name);
        const struct box box = augment_box(&plain, &evaluation, image.width, image.height, side, side);
        compare_box(&image, &box, expected);
        cases++;
    }
    ck_assert_int_eq(cases, 6);
}
END_TEST

static const char *const operations[] = { "identity", "shearx", "sheary", "translatex", "translatey", "rotate",
    "brightness", "saturation", "contrast", "sharpness", "posterize", "solarize", "autocontrast", "equalize", "hue" };

static void compare_operation(const struct step *step, const struct image *image, const struct npz_array *expected)
{
    unsigned char *pixels = malloc(expected->bytes), *other = malloc(expected->bytes);
    const struct box all = { 0, 0, image->width, image->height, true };
    struct canvas canvas = { image->channels, image->height, image->width, pixels, other };
    double matrix[6];
    ck_assert_uint_eq(expected->bytes, (size_t)(image->channels * image->height * image->width));
    ck_assert_int_eq(augment_image(&plain, &evaluation, image, &all, image->width, image->height, image->width,
                         image->height, scratch, pixels),
        TUTTI_OK);
    if (step_matrix(step, canvas.width, canvas.height, matrix))
        warp(&canvas, matrix);
    else
        recolour(&canvas, step);
    expect_close(canvas.pixels, expected);
    free(pixels);
    free(other);
}

START_TEST(operates_as_pillow)
{
    int cases = 0;
    for (int i = 0; i < npz_count(recorded); i++) {
        const struct npz_array *expected = npz_at(recorded, i);
        char operation[16], name[16];
        double amount;
        if (sscanf(expected->name, "%15[a-z]-%15[a-z]-%lf", operation, name, &amount) != 3) continue;
        for (size_t j = 0; j < sizeof(operations) / sizeof(*operations); j++) {
            if (strcmp(operation, operations[j])) continue;
            const struct step step = { (enum operation)j, (float)amount };
            const struct image image = picture(name);
            compare_operation(&step, &image, expected);
            cases++;
        }
    }
    ck_assert_int_eq(cases, 79);
}
END_TEST

/* A picture that was decoded at half its size gives about the same sample. */
START_TEST(accepts_reduced_pictures)
{
    const struct image image = picture("scene");
    const struct box all = { 0, 0, image.width, image.height, true };
    unsigned char full[3 * 16 * 16], half[3 * 16 * 16], planes[3 * 28 * 41], pixels[28 * 41 * 3];
    struct image reduced = { 41, 28, 3, pixels, sizeof(pixels) };
    augment_image(&plain, &evaluation, &image, &all, 83, 57, 41, 28, scratch, planes);
    for (int i = 0; i < 28 * 41; i++)
        for (int c = 0; c < 3; c++) pixels[3 * i + c] = planes[c * 28 * 41 + i];
    const struct box box = { 13, 5, 50, 40, true };
    const struct image_wish wish = augment_wish(&box, 83, 57, 3, 16, 16);
    ck_assert_int_eq(wish.least_width, 27);
    ck_assert_int_eq(wish.least_height, 23);
    augment_image(&plain, &evaluation, &image, &box, 83, 57, 16, 16, scratch, full);
    augment_image(&plain, &evaluation, &reduced, &box, 83, 57, 16, 16, scratch, half);
    double sum = 0;
    for (size_t i = 0; i < sizeof(full); i++) sum += abs(full[i] - half[i]);
    ck_assert_double_lt(sum / sizeof(full), 6);
}
END_TEST

/* Where the picture has a class, the mask of the sample has it. */
static void compare_mask(const struct augment *augment, int64_t sample)
{
    enum { WIDTH = 61, HEIGHT = 47, TO_WIDTH = 37, TO_HEIGHT = 29 };
    unsigned char pixels[WIDTH * HEIGHT], made[TO_WIDTH * TO_HEIGHT];
    int32_t classes[TO_WIDTH * TO_HEIGHT];
    const struct image image = { WIDTH, HEIGHT, 1, pixels, sizeof(pixels) };
    const struct draw draw = { 3, 1, sample, true };
    int known = 0, wrong = 0;
    for (int i = 0; i < WIDTH * HEIGHT; i++) pixels[i] = i % WIDTH * 2 < i / WIDTH + 30 ? 250 : 100;
    const struct box box = augment_box(augment, &draw, WIDTH, HEIGHT, TO_WIDTH, TO_HEIGHT);
    ck_assert_int_eq(
        augment_image(augment, &draw, &image, &box, WIDTH, HEIGHT, TO_WIDTH, TO_HEIGHT, scratch, made), TUTTI_OK);
    ck_assert_int_eq(
        augment_mask(augment, &draw, &image, &box, WIDTH, HEIGHT, TO_WIDTH, TO_HEIGHT, scratch, classes), TUTTI_OK);
    for (int i = 0; i < TO_WIDTH * TO_HEIGHT; i++) {
        ck_assert(classes[i] == 250 || classes[i] == 100 || classes[i] == -1);
        if (made[i] != 250 && made[i] != 100 && made[i] != 0) continue; /* between them */
        known++;
        wrong += classes[i] != (made[i] ? made[i] : -1);
    }
    ck_assert_int_gt(known, TO_WIDTH * TO_HEIGHT / 2);
    ck_assert_msg(wrong <= known / 50, "sample %ld: %d of %d differ", (long)sample, wrong, known);
}

START_TEST(moves_masks_as_images)
{
    const char *const texts[] = { "none", "flip", "flip,vflip", "crop,flip", "crop,vflip,rotate=40", "rotate=180" };
    struct augment augment;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        ck_assert_int_eq(augment_parse(texts[i], AUGMENT_IMAGES, &augment), TUTTI_OK);
        for (int64_t sample = 0; sample < 20; sample++) compare_mask(&augment, sample);
    }
}
END_TEST

/* Every size, with everything that there is. */
START_TEST(accepts_all_sizes)
{
    static const int sizes[][4] = { { 1, 1, 1, 1 }, { 1, 1, 9, 5 }, { 2000, 1, 3, 8 }, { 1, 1500, 8, 3 },
        { 7, 5, 1, 64 }, { 65535, 1, 2, 2 }, { 33, 31, 32, 32 }, { 3, 3, 40, 40 } };
    struct augment augment;
    ck_assert_int_eq(
        augment_parse("strong,color=1,vflip,rotate=180,rand=8:30,erase=1", AUGMENT_IMAGES, &augment), TUTTI_OK);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const int width = sizes[i][0], height = sizes[i][1], to_width = sizes[i][2], to_height = sizes[i][3];
        for (int channels = 1; channels <= 3; channels += 2) {
            const size_t bytes = (size_t)width * (size_t)height * (size_t)channels;
            struct image image = { width, height, channels, malloc(bytes), bytes };
            unsigned char *sample = malloc((size_t)to_width * (size_t)to_height * (size_t)channels);
            int32_t *classes = malloc(sizeof(int32_t) * (size_t)to_width * (size_t)to_height);
            memset(image.pixels, 77, bytes);
            for (int64_t j = 0; j < 40; j++) {
                const struct draw draw = { 9, 2, j, j % 4 != 0 };
                const struct box box = augment_box(&augment, &draw, width, height, to_width, to_height);
                const struct image_wish wish = augment_wish(&box, width, height, channels, to_width, to_height);
                ck_assert(wish.least_width >= 1 && wish.least_width <= width);
                ck_assert(wish.least_height >= 1 && wish.least_height <= height);
                ck_assert_int_eq(
                    augment_image(&augment, &draw, &image, &box, width, height, to_width, to_height, scratch, sample),
                    TUTTI_OK);
                ck_assert_int_eq(
                    augment_mask(&augment, &draw, &image, &box, width, height, to_width, to_height, scratch, classes),
                    TUTTI_OK);
            }
            free(image.pixels);
            free(sample);
            free(classes);
        }
    }
}
END_TEST

START_TEST(refuses_long_sides)
{
    unsigned char pixel = 0, sample;
    const struct image image = { 1, 1, 1, &pixel, 1 };
    const struct box box = { 0, 0, 1, 1, true };
    ck_assert_int_eq(
        augment_image(&plain, &evaluation, &image, &box, 65536, 1, 1, 1, scratch, &sample), TUTTI_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(status_message(), "65536 x 1"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("augment");
    TCase *images = tcase_create("images");
    tcase_add_checked_fixture(images, begin, end);
    tcase_add_test(images, resizes_as_pillow);
    tcase_add_test(images, evaluates_as_torchvision);
    tcase_add_test(images, operates_as_pillow);
    tcase_add_test(images, accepts_reduced_pictures);
    tcase_add_test(images, moves_masks_as_images);
    tcase_add_test(images, accepts_all_sizes);
    tcase_add_test(images, refuses_long_sides);
    suite_add_tcase(suite, images);
    suite_add_tcase(suite, draws_case());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
