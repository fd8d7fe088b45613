/* Folders of small pictures for the tests of data/. */
#ifndef TESTS_DATA_FILES_H
#define TESTS_DATA_FILES_H

#include "tutti_data.h"

#include <check.h>

TCase *masks_case(void);
TCase *tar_case(void);
TCase *reading_case(void);

/* Fixtures: a folder of the test's own. */
void files_begin(void);
void files_end(void);
/* A path in it; valid until the eighth call after this one. */
const char *in_files(const char *format, ...) __attribute__((format(printf, 1, 2)));
void write_file(const char *path, const void *bytes, size_t count);
/* A picture of one colour, or with noise, below folders that are made. */
void write_ppm(const char *path, int width, int height, int red, int green, int blue, int noise);
void write_pgm(const char *path, int width, int height, const unsigned char *values);
/* `count` pictures in each of three classes "a", "b" and "c", whose red is 50, 100 and 150. */
void write_classes(const char *folder, int count, int noise);

/* What note() was told. */
struct heard {
    int count;
    char lines[16][1300];
};
tutti_data_options small_options(struct heard *heard); /* 3 x 8 x 8, no cache, one thread */
/* Reads all samples of a part, one call: bytes of [3][8][8], and labels. */
int read_part(const tutti_data *data, tutti_data_part part, unsigned char *bytes, int32_t *labels);
int64_t part_count(const tutti_data *data, tutti_data_part part);
enum { SAMPLE = 3 * 8 * 8, MOST = 200 };

#endif
