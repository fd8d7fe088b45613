#include "formats.h"

#include "formats/dataset_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct dataset train, test;

static tutti_status load(void)
{
    return dataset_load(folder(), 0, &train, &test);
}

static void must_load(void)
{
    ck_assert_msg(load() == TUTTI_OK, "%s", status_message());
}

static void free_both(void)
{
    dataset_free(&train);
    dataset_free(&test);
}

/* Image i of a pair is filled with the byte i, its label is i modulo `classes`. */
static void write_images(const char *name, int samples, int height, int width)
{
    size_t size = 16 + (size_t)(samples * height * width);
    unsigned char *bytes = calloc(size, 1);
    memcpy(bytes, (unsigned char[]) { 0, 0, 8, 3, 0, 0, (unsigned char)(samples >> 8), (unsigned char)samples }, 8);
    bytes[11] = (unsigned char)height;
    bytes[15] = (unsigned char)width;
    for (size_t i = 16; i < size; i++) bytes[i] = (unsigned char)((i - 16) / (size_t)(height * width));
    size_t length = strlen(name);
    if (strcmp(name + length - 3, ".gz") == 0)
        write_gzip(in_folder(name), bytes, size);
    else
        write_bytes(in_folder(name), bytes, size);
    free(bytes);
}

static void write_labels(const char *name, int samples, int classes)
{
    unsigned char *bytes = calloc(8 + (size_t)samples, 1);
    memcpy(bytes, (unsigned char[]) { 0, 0, 8, 1, 0, 0, (unsigned char)(samples >> 8), (unsigned char)samples }, 8);
    for (int i = 0; i < samples; i++) bytes[8 + i] = (unsigned char)(i % classes);
    write_bytes(in_folder(name), bytes, 8 + (size_t)samples);
    free(bytes);
}

static void write_pair(const char *part, int samples, int classes)
{
    char name[64];
    snprintf(name, sizeof(name), "%s-images-idx3-ubyte", part);
    write_images(name, samples, 3, 5);
    snprintf(name, sizeof(name), "%s-labels-idx1-ubyte", part);
    write_labels(name, samples, classes);
}

/* ------------------------------------------------------------------------------------------------------- IDX ---- */

START_TEST(idx_pairs)
{
    write_pair("train", 20, 4);
    write_pair("t10k", 7, 6);
    must_load();
    ck_assert_str_eq(train.name, "IDX");
    ck_assert_int_eq(train.samples, 20);
    ck_assert_int_eq(test.samples, 7);
    ck_assert_int_eq(train.channels, 1);
    ck_assert_int_eq(train.height, 3);
    ck_assert_int_eq(train.width, 5);
    ck_assert_int_eq(train.classes, 6); /* of both parts */
    ck_assert_int_eq(test.classes, 6);
    ck_assert_int_eq(train.pixels[19 * 15 + 14], 19);
    ck_assert_int_eq(train.labels[19], 3);
    free_both();
}
END_TEST

START_TEST(idx_names_and_folders)
{
    ck_assert_int_eq(mkdir(in_folder("MNIST"), 0777), 0);
    ck_assert_int_eq(mkdir(in_folder("MNIST/raw"), 0777), 0);
    write_images("MNIST/raw/train-images-idx3-ubyte.gz", 20, 3, 5);
    write_labels("MNIST/raw/train-labels.idx1-ubyte", 20, 2);
    write_images("MNIST/raw/t10k-images.idx3-ubyte.gz", 5, 3, 5);
    write_labels("MNIST/raw/t10k-labels-idx1-ubyte", 5, 2);
    must_load();
    ck_assert_int_eq(train.samples, 20);
    ck_assert_int_eq(test.samples, 5);
    free_both();
}
END_TEST

START_TEST(one_pair_is_for_training)
{
    write_pair("t10k", 50, 10);
    must_load();
    ck_assert_int_eq(train.samples, 50);
    ck_assert_int_eq(test.samples, 0);
    free_both();
}
END_TEST

START_TEST(names_of_classes)
{
    write_pair("train", 20, 3);
    write_pair("t10k", 7, 3);
    write_bytes(in_folder("classes.txt"), "cat\ndog\nowl\n", 12);
    must_load();
    ck_assert_str_eq(train.class_names, "cat\ndog\nowl\n");
    ck_assert_ptr_null(test.class_names);
    free_both();
}
END_TEST

START_TEST(refuses_pairs_that_do_not_fit)
{
    write_images("train-images-idx3-ubyte", 20, 3, 5);
    expect_failure(load(), TUTTI_FILE, "train-images-idx3-ubyte", "train-labels-idx1-ubyte, is missing");
    write_labels("train-labels-idx1-ubyte", 19, 2);
    expect_failure(load(), TUTTI_FORMAT, "train-labels-idx1-ubyte", "20 images");
    write_labels("train-labels-idx1-ubyte", 20, 2);
    write_labels("t10k-labels-idx1-ubyte", 5, 2);
    expect_failure(load(), TUTTI_FILE, "t10k-labels-idx1-ubyte", "t10k-images-idx3-ubyte, is missing");
    write_images("t10k-images-idx3-ubyte", 5, 4, 5);
    expect_failure(load(), TUTTI_FORMAT, folder(), "parts of the same data set");
    write_images("t10k-labels-idx1-ubyte", 5, 4, 5); /* images where labels are wanted */
    expect_failure(load(), TUTTI_FORMAT, "t10k-labels-idx1-ubyte", "3 dimensions found, 1 expected");
    ck_assert_ptr_null(train.pixels);
    ck_assert_ptr_null(test.pixels);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------- CIFAR ---- */

/* `samples` records with `labels` label bytes, the last of which is i modulo `classes`. */
static void write_cifar(const char *name, int samples, int labels, int classes, int extra)
{
    size_t unit = 3072 + (size_t)labels, size = unit * (size_t)samples;
    unsigned char *bytes = calloc(size + 1, 1);
    for (int i = 0; i < samples; i++) {
        unsigned char *record = bytes + unit * (size_t)i;
        if (labels == 2) record[0] = 19;
        record[labels - 1] = (unsigned char)(i % classes);
        memset(record + labels, i, 3072);
        record[labels + 3071] = 200;
    }
    write_bytes(in_folder(name), bytes, size + (size_t)extra);
    free(bytes);
}

static void write_cifar10(void)
{
    char name[64];
    for (int i = 1; i <= 5; i++) {
        snprintf(name, sizeof(name), "data_batch_%d.bin", i);
        write_cifar(name, 3 + i, 1, 10, 0);
    }
    write_cifar("test_batch.bin", 12, 1, 10, 0);
}

START_TEST(cifar10)
{
    write_cifar10();
    must_load();
    ck_assert_str_eq(train.name, "CIFAR-10");
    ck_assert_int_eq(train.samples, 4 + 5 + 6 + 7 + 8);
    ck_assert_int_eq(test.samples, 12);
    ck_assert_int_eq(train.channels, 3);
    ck_assert_int_eq(train.height, 32);
    ck_assert_int_eq(train.width, 32);
    ck_assert_int_eq(train.classes, 10);
    ck_assert_int_eq(train.labels[4 + 2], 2);
    ck_assert_int_eq(train.pixels[(4 + 2) * 3072], 2);
    ck_assert_int_eq(train.pixels[(4 + 2) * 3072 + 3071], 200);
    free_both();
}
END_TEST

START_TEST(cifar100_takes_fine_labels)
{
    write_cifar("train.bin", 120, 2, 100, 0);
    write_cifar("test.bin", 2, 2, 100, 0);
    must_load();
    ck_assert_str_eq(train.name, "CIFAR-100");
    ck_assert_int_eq(train.classes, 100);
    ck_assert_int_eq(train.labels[99], 99);
    ck_assert_int_eq(train.pixels[99 * 3072], 99);
    free_both();
}
END_TEST

START_TEST(refuses_broken_cifar)
{
    write_cifar10();
    write_cifar("data_batch_3.bin", 4, 1, 11, 1);
    expect_failure(load(), TUTTI_FORMAT, "data_batch_3.bin", "not a multiple of the size of a CIFAR-10 record");
    write_cifar("data_batch_3.bin", 0, 1, 1, 0);
    expect_failure(load(), TUTTI_FORMAT, "data_batch_3.bin", "not a multiple of the size of a CIFAR-10 record");
    write_cifar("data_batch_3.bin", 12, 1, 11, 0);
    expect_failure(load(), TUTTI_FORMAT, "data_batch_3.bin", "label 10");
    ck_assert_int_eq(remove(in_folder("data_batch_3.bin")), 0);
    expect_failure(load(), TUTTI_FILE, "data_batch_3.bin", "missing");
}
END_TEST

START_TEST(refuses_broken_cifar100)
{
    write_cifar("test.bin", 2, 2, 100, 0);
    expect_failure(load(), TUTTI_FILE, "train.bin", "missing");
    write_cifar("train.bin", 102, 2, 101, 0);
    expect_failure(load(), TUTTI_FORMAT, "train.bin", "label 100");
    write_cifar("train.bin", 102, 1, 10, 0);
    expect_failure(load(), TUTTI_FORMAT, "train.bin", "the size of a CIFAR-100 record");
}
END_TEST

/* ------------------------------------------------------------------------------------------------- the rest ---- */

START_TEST(refuses_folders_without_data)
{
    expect_failure(load(), TUTTI_FILE, folder(), "this folder has no data");
    write_bytes(in_folder("file"), "x", 1);
    expect_failure(dataset_load(in_folder("file"), 0, &train, &test), TUTTI_FILE, "file", "not a folder");
    expect_failure(
        dataset_load(in_folder("absent"), 0, &train, &test), TUTTI_FILE, "absent", "this folder does not exist");
}
END_TEST

START_TEST(refuses_impossible_sizes)
{
    ck_assert_int_eq(dataset_new(&train, "x", 0, 1, 1, 1, 2), TUTTI_INVALID);
    ck_assert_int_eq(dataset_new(&train, "x", INT64_MAX, 1, 1 << 20, 1 << 20, 2), TUTTI_INVALID);
}
END_TEST

Suite *dataset_suite(void)
{
    Suite *suite = suite_create("dataset");
    TCase *group = tcase_create("dataset");
    tcase_add_checked_fixture(group, folder_begin, folder_end);
    tcase_add_test(group, idx_pairs);
    tcase_add_test(group, idx_names_and_folders);
    tcase_add_test(group, one_pair_is_for_training);
    tcase_add_test(group, names_of_classes);
    tcase_add_test(group, refuses_pairs_that_do_not_fit);
    tcase_add_test(group, cifar10);
    tcase_add_test(group, cifar100_takes_fine_labels);
    tcase_add_test(group, refuses_broken_cifar);
    tcase_add_test(group, refuses_broken_cifar100);
    tcase_add_test(group, refuses_folders_without_data);
    tcase_add_test(group, refuses_impossible_sizes);
    suite_add_tcase(suite, group);
    return suite;
}
