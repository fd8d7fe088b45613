/* Data sets in memory: MNIST's and CIFAR's files, and what is drawn. */
#include "kinds.h"

#include "tutti_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 4, PIXELS = SIDE * SIDE, RECORD = 1 + 3 * 32 * 32 };

/* Pixel k of image i is i + k, its label i modulo `classes`. */
static void put_pair(const char *part, int samples, int classes)
{
    char name[64];
    unsigned char images[16 + 256 * PIXELS] = { 0, 0, 8, 3, 0, 0, (unsigned char)(samples >> 8),
        (unsigned char)samples },
                                    labels[8 + 256] = { 0, 0, 8, 1, 0, 0, (unsigned char)(samples >> 8),
                                        (unsigned char)samples };
    images[11] = images[15] = SIDE;
    for (int i = 0; i < samples * PIXELS; i++) images[16 + i] = (unsigned char)(i / PIXELS + i % PIXELS);
    for (int i = 0; i < samples; i++) labels[8 + i] = (unsigned char)(i % classes);
    snprintf(name, sizeof name, "set/%s-images-idx3-ubyte", part);
    put(name, images, 16 + (size_t)(samples * PIXELS));
    snprintf(name, sizeof name, "set/%s-labels-idx1-ubyte", part);
    put(name, labels, 8 + (size_t)samples);
}

static tutti_data *must_open(const char *path, const tutti_data_options *options)
{
    tutti_data *data = tutti_data_open(path, options);
    ck_assert_msg(data != NULL, "%s", status_message());
    return data;
}

static tutti_data_info describe(const tutti_data *data)
{
    tutti_data_info info = { .size = sizeof info };
    ck_assert_int_eq(tutti_data_describe(data, &info), TUTTI_OK);
    return info;
}

static int64_t count(const tutti_data *data, tutti_data_part part)
{
    const tutti_source *source = tutti_data_source(data, part);
    return source ? source->samples : 0;
}

static void read_one(const tutti_data *data, tutti_data_part part, int64_t index, float *sample, size_t elements,
    tutti_dtype dtype, void *target, size_t target_bytes)
{
    const tutti_source *source = tutti_data_source(data, part);
    const tutti_buffer buffers[] = { { "input", TUTTI_DTYPE_F32, sample, elements * sizeof *sample },
        { "targets", dtype, target, target_bytes } };
    ck_assert_msg(source->read(source->user, &index, 1, buffers, 2) == 0, "%s", status_message());
}

/* Floats are x / 255, to the last bit; parts and order are those of the files. */
START_TEST(idx_files)
{
    float sample[PIXELS];
    int32_t label;
    char name[100];
    put_pair("train", 200, 4);
    put_pair("t10k", 50, 6);
    tutti_data *data = must_open(in_kinds("set"), NULL);
    const tutti_data_info info = describe(data);
    ck_assert_str_eq(info.kind, "IDX");
    ck_assert(info.dtype == TUTTI_DTYPE_F32 && info.target_dtype == TUTTI_DTYPE_I32);
    ck_assert(info.shape.rank == 3 && info.shape.sizes[0] == 1 && info.shape.sizes[2] == SIDE);
    ck_assert(info.classes == 6 && info.class_counts[3] == 50);
    ck_assert_str_eq(info.class_names[5], "5");
    ck_assert_int_eq(count(data, TUTTI_DATA_TRAIN), 200);
    ck_assert_int_eq(count(data, TUTTI_DATA_TEST), 50);
    ck_assert_ptr_null(tutti_data_source(data, TUTTI_DATA_VAL));
    for (int64_t i = 0; i < 200; i++) {
        read_one(data, TUTTI_DATA_TRAIN, i, sample, PIXELS, TUTTI_DTYPE_I32, &label, sizeof label);
        ck_assert_int_eq(label, i % 4);
        for (int k = 0; k < PIXELS; k++) ck_assert(sample[k] == (float)(i + k) / 255.0f);
    }
    read_one(data, TUTTI_DATA_TEST, 49, sample, PIXELS, TUTTI_DTYPE_I32, &label, sizeof label);
    ck_assert(label == 1 && sample[0] == 49 / 255.0f);
    ck_assert_int_eq(tutti_data_name(data, TUTTI_DATA_TEST, 49, name, sizeof name), TUTTI_OK);
    ck_assert_str_eq(name, "test image 49");
    tutti_data_free(data);
}
END_TEST

/* One pair: its last fifth is the test, or a part of each class that the seed draws. */
START_TEST(one_pair_is_divided)
{
    float sample[PIXELS];
    int32_t label;
    put_pair("t10k", 200, 4);
    tutti_data *data = must_open(in_kinds("set"), NULL);
    ck_assert_int_eq(count(data, TUTTI_DATA_TRAIN), 160);
    ck_assert_int_eq(count(data, TUTTI_DATA_TEST), 40);
    read_one(data, TUTTI_DATA_TEST, 0, sample, PIXELS, TUTTI_DTYPE_I32, &label, sizeof label);
    ck_assert(sample[0] == 160 / 255.0f);
    tutti_data_free(data);
    data = must_open(in_kinds("set"), &(tutti_data_options) { .split = 0.3, .seed = 5 });
    ck_assert_int_eq(count(data, TUTTI_DATA_TRAIN), 140);
    ck_assert_int_eq(count(data, TUTTI_DATA_VAL), 60);
    ck_assert_int_eq(describe(data).class_counts[1], 35);
    tutti_data_free(data);
}
END_TEST

START_TEST(labels_as_numbers)
{
    float sample[PIXELS], value;
    put_pair("train", 20, 4);
    put_pair("t10k", 10, 4);
    tutti_data *data = must_open(in_kinds("set"), &(tutti_data_options) { .numbers = true });
    const tutti_data_info info = describe(data);
    ck_assert(info.classes == 0 && info.target_dtype == TUTTI_DTYPE_F32 && info.target_shape.sizes[0] == 1);
    read_one(data, TUTTI_DATA_TRAIN, 7, sample, PIXELS, TUTTI_DTYPE_F32, &value, sizeof value);
    ck_assert(value == 3);
    tutti_data_free(data);
}
END_TEST

/* Moved, mixed and measured, as data of one's own. */
START_TEST(augmented_and_normalised)
{
    float plain[PIXELS], sample[PIXELS], target[4];
    int32_t label;
    int moved = 0;
    put_pair("train", 40, 4);
    put_pair("t10k", 10, 4);
    tutti_data *whole = must_open(in_kinds("set"), NULL);
    tutti_data *data = must_open(in_kinds("set"), &(tutti_data_options) { .augment = "pad=1" });
    for (int64_t i = 0; i < 40; i++) {
        read_one(whole, TUTTI_DATA_TRAIN, i, plain, PIXELS, TUTTI_DTYPE_I32, &label, sizeof label);
        read_one(data, TUTTI_DATA_TRAIN, i, sample, PIXELS, TUTTI_DTYPE_I32, &label, sizeof label);
        moved += memcmp(plain, sample, sizeof plain) != 0;
    }
    ck_assert(moved > 25 && moved < 40); /* 8 of 9 */
    read_one(whole, TUTTI_DATA_TEST, 3, plain, PIXELS, TUTTI_DTYPE_I32, &label, sizeof label);
    read_one(data, TUTTI_DATA_TEST, 3, sample, PIXELS, TUTTI_DTYPE_I32, &label, sizeof label);
    ck_assert_mem_eq(plain, sample, sizeof plain);
    tutti_data_free(data);
    tutti_data_free(whole);
    data = must_open(in_kinds("set"), &(tutti_data_options) { .augment = "mixup=1" });
    ck_assert(describe(data).target_dtype == TUTTI_DTYPE_F32 && describe(data).target_shape.sizes[0] == 4);
    read_one(data, TUTTI_DATA_TRAIN, 3, sample, PIXELS, TUTTI_DTYPE_F32, target, sizeof target);
    ck_assert_double_eq_tol((double)(target[0] + target[1] + target[2] + target[3]), 1, 1e-6);
    tutti_data_free(data);
    data = must_open(in_kinds("set"), &(tutti_data_options) { .normalise = "measured" });
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < 40; i++) {
        read_one(data, TUTTI_DATA_TRAIN, i, sample, PIXELS, TUTTI_DTYPE_I32, &label, sizeof label);
        for (int k = 0; k < PIXELS; k++) sum += (double)sample[k], squares += (double)sample[k] * (double)sample[k];
    }
    ck_assert_double_eq_tol(sum / 40 / PIXELS, 0, 1e-5);
    ck_assert_double_eq_tol(squares / 40 / PIXELS, 1, 1e-5);
    tutti_data_free(data);
    data = must_open(in_kinds("set"), &(tutti_data_options) { .normalise = "imagenet" });
    read_one(data, TUTTI_DATA_TEST, 0, sample, PIXELS, TUTTI_DTYPE_I32, &label, sizeof label);
    ck_assert_double_eq_tol((double)sample[0], -0.449 / 0.226, 1e-5);
    tutti_data_free(data);
    expect_refused(sets_open, "set", &(tutti_data_options) { .normalise = "0.5,0.5/1,1" }, "0.5,0.5", "1 channel,");
}
END_TEST

static void put_cifar(void)
{
    char name[64];
    static unsigned char records[10 * RECORD];
    for (int i = 0; i < 10; i++) {
        records[i * RECORD] = (unsigned char)i;
        memset(records + i * RECORD + 1, 20 * i, RECORD - 1);
    }
    for (int i = 1; i <= 6; i++) {
        snprintf(name, sizeof name, i < 6 ? "set/data_batch_%d.bin" : "set/test_batch.bin", i);
        put(name, records, sizeof records);
    }
}

START_TEST(cifar_with_names)
{
    static const char names[] = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
    put_cifar();
    put_text("set/batches.meta.txt", names);
    tutti_data *data =
        must_open(in_kinds("set"), &(tutti_data_options) { .augment = "pad=4,flip", .oversample = true });
    const tutti_data_info info = describe(data);
    ck_assert_str_eq(info.kind, "CIFAR-10");
    ck_assert_str_eq(info.class_names[3], "cat");
    ck_assert_str_eq(info.class_names[9], "truck");
    ck_assert(count(data, TUTTI_DATA_TRAIN) == 50 && count(data, TUTTI_DATA_TEST) == 10);
    char *text = tutti_data_json(data);
    ck_assert_ptr_nonnull(strstr(text, "\"airplane\",\"automobile\""));
    ck_assert_ptr_nonnull(strstr(text, "\"shape\":[3,32,32],\"bytes\":false,\"mean\":[0.0,0.0,0.0]"));
    free(text);
    tutti_data_free(data);
    put_text("set/batches.meta.txt", "airplane\n");
    expect_refused(sets_open, "set", &(tutti_data_options) { .size = 0 }, "set", "has 1, but the labels 10");
}
END_TEST

START_TEST(drawn_data)
{
    float x, y, image[784];
    int32_t label;
    tutti_data *data = must_open("line", NULL);
    ck_assert_int_eq(count(data, TUTTI_DATA_TRAIN), 1000);
    ck_assert_int_eq(count(data, TUTTI_DATA_TEST), 200);
    for (int64_t i = 0; i < 200; i++) {
        read_one(data, TUTTI_DATA_TEST, i, &x, 1, TUTTI_DTYPE_F32, &y, sizeof y);
        ck_assert(x >= 0 && x < 1 && y == 3 * x + 2);
    }
    tutti_data_free(data);
    ck_assert_ptr_null(tutti_data_open("line", &(tutti_data_options) { .augment = "flip" }));
    ck_assert_ptr_null(tutti_data_open("line", &(tutti_data_options) { .normalise = "measured" }));
    data = must_open("digits", &(tutti_data_options) { .seed = 3 }); /* the seed changes no digit */
    ck_assert_int_eq(count(data, TUTTI_DATA_TRAIN), 10000);
    ck_assert_int_eq(count(data, TUTTI_DATA_TEST), 2000);
    read_one(data, TUTTI_DATA_TRAIN, 0, image, 784, TUTTI_DTYPE_I32, &label, sizeof label);
    tutti_data *other = must_open("digits", NULL);
    float again[784];
    read_one(other, TUTTI_DATA_TRAIN, 0, again, 784, TUTTI_DTYPE_I32, &label, sizeof label);
    ck_assert_mem_eq(image, again, sizeof image);
    tutti_data_free(other);
    tutti_data_free(data);
}
END_TEST

/* A path with the name of built-in data: neither is guessed. */
START_TEST(names_and_paths)
{
    char before[512];
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    put("digits/a/0.ppm", "P6\n1 1\n255\nabc", 14);
    put("digits/b/0.ppm", "P6\n1 1\n255\nabc", 14);
    put_text("line", "a file");
    ck_assert_int_eq(chdir(in_kinds(".")), 0);
    ck_assert_ptr_null(tutti_data_open("digits", NULL));
    ck_assert_ptr_nonnull(strstr(status_message(), "write ./digits for the folder, or builtin:digits"));
    ck_assert_ptr_null(tutti_data_open("line", NULL));
    ck_assert_ptr_nonnull(strstr(status_message(), "./line for the file"));
    tutti_data *data = must_open("./digits", NULL);
    ck_assert_str_eq(describe(data).kind, "images");
    tutti_data_free(data);
    data = must_open("builtin:digits", NULL);
    ck_assert_str_eq(describe(data).kind, "digits");
    tutti_data_free(data);
    data = must_open("builtin:line", NULL);
    ck_assert_str_eq(describe(data).kind, "line");
    tutti_data_free(data);
    ck_assert_ptr_null(tutti_data_open("builtin:mnist", NULL));
    ck_assert_int_eq(chdir(before), 0);
}
END_TEST

Suite *sets_suite(void)
{
    Suite *suite = suite_create("sets");
    TCase *sets = tcase_create("sets");
    tcase_add_checked_fixture(sets, kinds_begin, kinds_end);
    tcase_add_test(sets, idx_files);
    tcase_add_test(sets, one_pair_is_divided);
    tcase_add_test(sets, labels_as_numbers);
    tcase_add_test(sets, augmented_and_normalised);
    tcase_add_test(sets, cifar_with_names);
    tcase_add_test(sets, drawn_data);
    tcase_add_test(sets, names_and_paths);
    suite_add_tcase(suite, sets);
    return suite;
}
