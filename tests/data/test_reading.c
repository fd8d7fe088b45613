/* Reading samples: threads and the cache change nothing, damaged files are refused or replaced. */
#include "base/status.h"
#include "tests/data/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All training samples of two epochs, twice each. */
static void read_epochs(const tutti_data_options *options, unsigned char *bytes)
{
    int32_t labels[MOST];
    tutti_data *data = tutti_data_open(in_files("photos"), options);
    ck_assert_msg(data != NULL, "%s", status_message());
    const size_t part = (size_t)part_count(data, TUTTI_DATA_TRAIN) * SAMPLE;
    for (int turn = 0; turn < 4; turn++) {
        tutti_data_epoch(data, turn / 2);
        ck_assert_int_eq(read_part(data, TUTTI_DATA_TRAIN, bytes + (size_t)turn * part, labels), 0);
    }
    ck_assert_mem_eq(bytes, bytes + part, part);
    tutti_data_free(data);
}

START_TEST(threads_and_cache_change_nothing)
{
    static unsigned char wanted[4 * 48 * SAMPLE], found[4 * 48 * SAMPLE];
    tutti_data_options options = small_options(NULL);
    write_classes(in_files("photos"), 20, 50);
    write_ppm(in_files("photos/a/000.ppm"), 80, 80, 50, 0, 0, 9); /* may be read at a half */
    options.augment = "crop,flip,color=0.4";
    read_epochs(&options, wanted);
    ck_assert_int_ne(memcmp(wanted, wanted + 2 * 48 * SAMPLE, 48 * SAMPLE), 0); /* another epoch */
    for (int threads = 1; threads <= 4; threads += 3)
        for (int64_t cache = 2000; cache <= 20000000; cache *= 10000) { /* some of them, or all */
            options.threads = threads;
            options.cache = cache;
            read_epochs(&options, found);
            ck_assert_mem_eq(found, wanted, sizeof(wanted));
        }
    options.augment = NULL;
    options.cache = -1;
    read_epochs(&options, wanted);
    options.cache = 0;
    read_epochs(&options, found);
    ck_assert_mem_eq(found, wanted, sizeof(wanted));
}
END_TEST

START_TEST(damaged_files_are_named)
{
    unsigned char bytes[MOST * SAMPLE], again[MOST * SAMPLE];
    int32_t labels[MOST];
    struct heard heard = { 0 };
    tutti_data_options options = small_options(&heard);
    write_classes(in_files("photos/train"), 4, 0);
    write_ppm(in_files("photos/val/a/x.ppm"), 9, 9, 1, 1, 1, 0);
    write_file(in_files("photos/train/b/001.ppm"), "P6\n9 12\n255\nshort", 16);
    tutti_data *data = tutti_data_open(in_files("photos"), &options);
    ck_assert_int_ne(read_part(data, TUTTI_DATA_TRAIN, bytes, labels), 0);
    ck_assert_ptr_nonnull(strstr(status_message(), "b/001.ppm"));
    tutti_data_free(data);
    options.skip_damaged = true;
    options.threads = 3;
    data = tutti_data_open(in_files("photos"), &options);
    ck_assert_int_eq(read_part(data, TUTTI_DATA_TRAIN, bytes, labels), 0);
    ck_assert_int_eq(read_part(data, TUTTI_DATA_TRAIN, again, labels), 0);
    ck_assert_mem_eq(bytes, again, 12 * SAMPLE);
    ck_assert_mem_eq(bytes + 5 * SAMPLE, bytes + 6 * SAMPLE, SAMPLE); /* the next of its class stands in for it */
    for (int i = 0; i < 12; i++) ck_assert_int_eq(bytes[i * SAMPLE], 50 + 50 * labels[i]);
    ck_assert_int_eq(heard.count, 1);
    ck_assert_ptr_nonnull(strstr(heard.lines[0], "b/001.ppm"));
    const tutti_source *source = tutti_data_source(data, TUTTI_DATA_TRAIN);
    for (int i = 0; i < 12; i++) ck_assert_int_eq(source->is_replaced(source->user, i), i == 5);
    tutti_data_info info = { .size = sizeof info };
    ck_assert_int_eq(tutti_data_describe(data, &info), TUTTI_OK);
    ck_assert_int_eq(info.damaged, 1);
    tutti_data_free(data);
    for (int i = 0; i < 4; i++) write_file(in_files("photos/train/b/%03d.ppm", i), "x", 1);
    data = tutti_data_open(in_files("photos"), &options);
    ck_assert_int_ne(read_part(data, TUTTI_DATA_TRAIN, bytes, labels), 0); /* nothing is left of a class */
    ck_assert_int_eq(read_part(data, TUTTI_DATA_ALL, bytes, labels), 0);   /* zeros, which measurements leave out */
    source = tutti_data_source(data, TUTTI_DATA_ALL);
    for (int i = 0; i < 13; i++) ck_assert_int_eq(bytes[i * SAMPLE] == 0, source->is_replaced(source->user, i));
    for (int i = 0; i < 13; i++) ck_assert_int_eq(labels[i] == 1, source->is_replaced(source->user, i));
    tutti_data_free(data);
}
END_TEST

START_TEST(rare_classes_are_repeated)
{
    unsigned char bytes[MOST * SAMPLE];
    int32_t labels[MOST];
    int counts[3] = { 0 };
    tutti_data_options options = small_options(NULL);
    options.oversample = true;
    write_classes(in_files("photos/train"), 5, 0);
    for (int i = 5; i < 17; i++) write_ppm(in_files("photos/train/b/%03d.ppm", i), 9, 9, 100, 0, 0, 0);
    write_ppm(in_files("photos/val/a/x.ppm"), 9, 9, 1, 1, 1, 0);
    tutti_data *data = tutti_data_open(in_files("photos"), &options);
    ck_assert_int_eq(part_count(data, TUTTI_DATA_TRAIN), 51);
    ck_assert_int_eq(read_part(data, TUTTI_DATA_TRAIN, bytes, labels), 0);
    for (int i = 0; i < 51; i++) counts[labels[i]]++;
    for (int i = 0; i < 3; i++) ck_assert_int_eq(counts[i], 17);
    tutti_data_free(data);
}
END_TEST

/* In their order, without classes, whatever folders they are in; all parts are all samples, and a part is some. */
START_TEST(files_and_parts)
{
    unsigned char bytes[MOST * SAMPLE];
    int32_t labels[MOST];
    char name[200];
    tutti_data_options options = small_options(NULL);
    write_classes(in_files("photos"), 4, 0);
    const char *const files[] = { in_files("photos/c/000.ppm"), in_files("none.ppm"), in_files("photos/a/001.ppm") };
    options.files = files;
    options.file_count = 0;
    ck_assert_ptr_null(tutti_data_open("files", &options));
    options.file_count = 3;
    tutti_data *data = tutti_data_open("files", &options);
    ck_assert_msg(data, "%s", status_message());
    ck_assert_int_eq(part_count(data, TUTTI_DATA_TEST), 3);
    ck_assert_int_ne(read_part(data, TUTTI_DATA_TEST, bytes, labels), 0);
    ck_assert_ptr_nonnull(strstr(status_message(), "none.ppm"));
    ck_assert_int_eq(tutti_data_name(data, TUTTI_DATA_TEST, 2, name, sizeof name), TUTTI_OK);
    ck_assert_ptr_nonnull(strstr(name, "photos/a/001.ppm"));
    tutti_data_free(data);
    options.files = NULL;
    data = tutti_data_open(in_files("photos"), &options);
    ck_assert_msg(data, "%s", status_message());
    ck_assert_int_eq(part_count(data, TUTTI_DATA_ALL), 12);
    ck_assert_int_eq(part_count(data, TUTTI_DATA_TRAIN) + part_count(data, TUTTI_DATA_VAL), 12);
    ck_assert_int_eq(read_part(data, TUTTI_DATA_ALL, bytes, labels), 0);
    for (int i = 0; i < 12; i++) ck_assert_int_eq(labels[i], i / 4);
    ck_assert_int_eq(tutti_data_row(data, TUTTI_DATA_ALL, 0), 0);
    tutti_data_free(data);
}
END_TEST

/* A network whose input is floats gets them normalised, from the same bytes. */
START_TEST(floats_are_normalised)
{
    float numbers[SAMPLE];
    int32_t label;
    const int64_t index = 0;
    tutti_data_options options = small_options(NULL);
    write_ppm(in_files("photo.ppm"), 9, 9, 51, 102, 255, 0);
    options.normalise = "0.1,0.2,0.5/0.5,0.25,1";
    tutti_data *data = tutti_data_open(in_files("photo.ppm"), &options);
    const tutti_source *source = tutti_data_source(data, TUTTI_DATA_TEST);
    tutti_buffer buffers[] = { { "x", TUTTI_DTYPE_F32, numbers, sizeof(numbers) },
        { "targets", TUTTI_DTYPE_I32, &label, sizeof(label) } };
    ck_assert_int_eq(source->read(source->user, &index, 1, buffers, 2), 0);
    ck_assert_float_eq_tol(numbers[0], 0.2f, 1e-6f);
    ck_assert_float_eq_tol(numbers[64], 0.8f, 1e-6f);
    ck_assert_float_eq_tol(numbers[SAMPLE - 1], 0.5f, 1e-6f);
    ck_assert_int_eq(source->read(source->user, &index, 1, buffers, 1), 0); /* without targets */
    buffers[0].bytes /= 2;
    ck_assert_int_ne(source->read(source->user, &index, 1, buffers, 2), 0);
    ck_assert_ptr_nonnull(strstr(status_message(), "'x'"));
    tutti_data_free(data);
}
END_TEST

/* Mixed images have the probabilities of two classes; those of validation have one. */
START_TEST(mixed_targets)
{
    unsigned char bytes[12 * SAMPLE];
    float targets[12 * 3];
    int64_t indices[12];
    int soft = 0;
    tutti_data_options options = small_options(NULL);
    options.augment = _i ? "cutmix=1" : "mixup=1";
    write_classes(in_files("photos"), 5, 0);
    tutti_data *data = tutti_data_open(in_files("photos"), &options);
    ck_assert_msg(data != NULL, "%s", status_message());
    tutti_data_info info = { .size = sizeof info };
    ck_assert_int_eq(tutti_data_describe(data, &info), TUTTI_OK);
    ck_assert_int_eq(info.target_dtype, TUTTI_DTYPE_F32);
    ck_assert_int_eq(info.target_shape.sizes[0], 3);
    for (int i = 0; i < 12; i++) indices[i] = i;
    const tutti_buffer buffers[] = { { "input", TUTTI_DTYPE_U8, bytes, SAMPLE },
        { "targets", TUTTI_DTYPE_F32, targets, 3 * sizeof(float) } };
    for (int part = 0; part < 2; part++) {
        const tutti_source *source = tutti_data_source(data, (tutti_data_part)part);
        ck_assert_int_eq(source->read(source->user, indices, source->samples, buffers, 2), 0);
        for (int64_t i = 0; i < source->samples; i++) {
            const float *t = targets + 3 * i;
            ck_assert_float_eq_tol(t[0] + t[1] + t[2], 1, 1e-6f);
            const bool pure = t[0] >= 1 || t[1] >= 1 || t[2] >= 1;
            soft += !pure;
            if (part > 0) ck_assert(pure);
        }
    }
    ck_assert_int_gt(soft, 0);
    tutti_data_free(data);
}
END_TEST

TCase *reading_case(void)
{
    TCase *reading = tcase_create("reading");
    tcase_add_checked_fixture(reading, files_begin, files_end);
    tcase_add_test(reading, threads_and_cache_change_nothing);
    tcase_add_test(reading, damaged_files_are_named);
    tcase_add_test(reading, rare_classes_are_repeated);
    tcase_add_test(reading, files_and_parts);
    tcase_add_test(reading, floats_are_normalised);
    tcase_add_loop_test(reading, mixed_targets, 0, 2);
    return reading;
}
