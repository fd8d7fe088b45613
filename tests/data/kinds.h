/* Shared by the tests of tables, arrays, recordings and data sets in memory: collections read without their
 * threads. */
#ifndef TESTS_DATA_KINDS_H
#define TESTS_DATA_KINDS_H

#include "base/status.h"
#include "data/collection.h"

#include <check.h>

Suite *table_suite(void);
Suite *description_suite(void);
Suite *columns_suite(void);
Suite *arrays_suite(void);
Suite *recordings_suite(void);
Suite *sounds_suite(void);
Suite *targets_suite(void);
Suite *resample_suite(void);
Suite *floats_suite(void);
Suite *sets_suite(void);
Suite *texts_suite(void);
Suite *tags_suite(void);
Suite *speech_suite(void);

/* An empty folder for a test, which goes with all that is in it. */
void kinds_begin(void);
void kinds_end(void);
/* A path in it, and in a folder below it if there is a slash; valid until the eighth call after this one. */
const char *in_kinds(const char *name);
void put(const char *name, const void *bytes, size_t size);
void put_text(const char *name, const char *text);

/* Format of a WAV file; 0xfffe is PCM of the extensible kind. */
struct format {
    int code, channels, rate, bits;
};
/* Writes the header, with a chunk that nobody knows in it. Returns its bytes, less than 200. */
size_t wav_header(unsigned char *to, struct format format, uint32_t data_bytes);
void put_wav(const char *name, struct format format, const void *samples, size_t bytes);
/* `seconds` of a sine of 16 bits. */
void put_tone(const char *name, int rate, double hertz, double seconds);

typedef tutti_status (*opener)(const char *path, const tutti_data_options *options, struct collection **made);
/* Opens and fits: all open samples train. Fails the test if that fails. */
struct collection *opened(opener open, const char *name, const tutti_data_options *options);
/* Fails the test unless it is refused, in one line with both texts. */
void expect_refused(
    opener open, const char *name, const tutti_data_options *options, const char *file, const char *reason);
/* Reads a sample of floats, in the way of evaluation. */
tutti_status read_floats(struct collection *collection, int64_t index, float *sample, void *target);
/* The notes that were told, one after the other. */
void hear(void *user, const char *line);
extern char heard[4096];

#endif
