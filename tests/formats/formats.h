/* Shared by the tests of this group: a folder of their own, files made of bytes, failures that must be one line. */
#ifndef TESTS_FORMATS_H
#define TESTS_FORMATS_H

#include "base/status.h"

#include <check.h>

Suite *safetensors_suite(void);
Suite *idx_suite(void);
Suite *dataset_suite(void);
Suite *digits_suite(void);
Suite *image_suite(void);
Suite *decoded_suite(void);
Suite *json_lines_suite(void);
Suite *npz_suite(void);
Suite *csv_suite(void);

/* Makes an empty folder for a test and removes it with all that is in it. */
void folder_begin(void);
void folder_end(void);
const char *folder(void);
/* The path of a file in it; valid until the fourth call after this one. */
const char *in_folder(const char *name);
void write_bytes(const char *path, const void *bytes, size_t size);
void write_gzip(const char *path, const void *bytes, size_t size);
/* Fails the test unless the status is the one wanted and the message is one line that contains both texts. */
void expect_failure(tutti_status found, tutti_status wanted, const char *file, const char *reason);
/* A random number of the test's own sequence, 0 .. bound - 1. */
size_t chance(size_t bound);

#endif
