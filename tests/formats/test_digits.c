#include "formats.h"

#include "formats/dataset_load.h"
#include "formats/digits.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define PIXELS (DIGITS_SIDE * DIGITS_SIDE)

/* The digits have the same bytes on every machine and with every compiler. A change of the drawing changes this
 * number. */
#define CHECKSUM 0xf025c58du

START_TEST(same_everywhere)
{
    struct dataset dataset;
    ck_assert_int_eq(digits_make(42, 0, 300, &dataset), TUTTI_OK);
    uLong sum = crc32(0, dataset.pixels, 300 * PIXELS);
    for (int i = 0; i < 300; i++) {
        unsigned char label = (unsigned char)dataset.labels[i];
        sum = crc32(sum, &label, 1);
    }
    ck_assert_msg(sum == CHECKSUM, "checksum 0x%08lx", sum);
    dataset_free(&dataset);
}
END_TEST

START_TEST(image_depends_on_seed_and_index_alone)
{
    struct dataset dataset;
    unsigned char pixels[PIXELS];
    ck_assert_int_eq(digits_make(7, 100, 20, &dataset), TUTTI_OK);
    ck_assert_int_eq(digits_draw(7, 111, pixels), dataset.labels[11]);
    ck_assert_mem_eq(pixels, dataset.pixels + 11 * PIXELS, PIXELS);
    digits_draw(8, 111, pixels);
    ck_assert_int_ne(memcmp(pixels, dataset.pixels + 11 * PIXELS, PIXELS), 0);
    dataset_free(&dataset);
}
END_TEST

/* Every class comes about as often as another, every image has ink, and not too much of it. */
START_TEST(images_look_alive)
{
    struct dataset train, test;
    int counts[DIGITS_CLASSES] = { 0 };
    ck_assert_int_eq(dataset_load("digits", 0, &train, &test), TUTTI_OK);
    ck_assert_int_eq(train.samples, DIGITS_TRAINING);
    ck_assert_int_eq(test.samples, DIGITS_TEST);
    ck_assert_int_eq(train.classes, DIGITS_CLASSES);
    for (int64_t i = 0; i < train.samples; i++) {
        int bright = 0;
        for (int k = 0; k < PIXELS; k++) bright += train.pixels[i * PIXELS + k] > 127;
        ck_assert_msg(bright > 3 && bright < PIXELS / 2, "image %d has %d bright pixels", (int)i, bright);
        counts[train.labels[i]]++;
    }
    for (int digit = 0; digit < DIGITS_CLASSES; digit++) {
        ck_assert_int_gt(counts[digit], DIGITS_TRAINING / 12);
        ck_assert_int_lt(counts[digit], DIGITS_TRAINING / 8);
    }
    ck_assert_int_ne(memcmp(train.pixels, test.pixels, PIXELS), 0);
    dataset_free(&train);
    dataset_free(&test);
}
END_TEST

Suite *digits_suite(void)
{
    Suite *suite = suite_create("digits");
    TCase *group = tcase_create("digits");
    tcase_add_test(group, same_everywhere);
    tcase_add_test(group, image_depends_on_seed_and_index_alone);
    tcase_add_test(group, images_look_alive);
    suite_add_tcase(suite, group);
    return suite;
}
