#include "kinds.h"

#include "base/file.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char folder[256];
char heard[4096];

void kinds_begin(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tutti-kinds-XXXXXX", parent ? parent : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    *heard = '\0';
}

static int remove_entry(const char *path, const struct stat *found, int kind, struct FTW *where)
{
    (void)found, (void)kind, (void)where;
    return remove(path);
}

void kinds_end(void)
{
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *in_kinds(const char *name)
{
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    ck_assert_int_eq(folder_make(path), TUTTI_OK);
    *slash = '/';
    return path;
}

void put(const char *name, const void *bytes, size_t size)
{
    const char *path = in_kinds(name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

struct collection *opened(opener open, const char *name, const tutti_data_options *options)
{
    struct collection *collection = NULL;
    ck_assert_msg(open(in_kinds(name), options, &collection) == TUTTI_OK, "%s", status_message());
    ck_assert_ptr_nonnull(collection);
    signed char *part = malloc((size_t)collection->samples);
    ck_assert_ptr_nonnull(part);
    for (int64_t i = 0; i < collection->samples; i++)
        part[i] = collection->parts[i] == PART_OPEN ? TUTTI_DATA_TRAIN : collection->parts[i];
    if (collection->fit) ck_assert_msg(collection->fit(collection, part) == TUTTI_OK, "%s", status_message());
    free(part);
    return collection;
}

void expect_refused(
    opener open, const char *name, const tutti_data_options *options, const char *file, const char *reason)
{
    struct collection *collection = NULL;
    const tutti_status status = open(in_kinds(name), options, &collection);
    const char *message = status_message();
    ck_assert_msg(status == TUTTI_FORMAT || status == TUTTI_INVALID, "status %d, not refused: %s", (int)status, name);
    ck_assert_ptr_null(collection);
    ck_assert_msg(!strchr(message, '\n'), "more than one line: %s", message);
    ck_assert_msg(strstr(message, file) != NULL, "does not say '%s': %s", file, message);
    ck_assert_msg(strstr(message, reason) != NULL, "does not say '%s': %s", reason, message);
}

tutti_status read_floats(struct collection *collection, int64_t index, float *sample, void *target)
{
    const struct draw draw = { .sample = index };
    return collection->read(collection, index, &draw, sample, target);
}

void hear(void *user, const char *line)
{
    (void)user;
    snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s\n", line);
}

static unsigned char *put16(unsigned char *at, unsigned value)
{
    at[0] = (unsigned char)value;
    at[1] = (unsigned char)(value >> 8);
    return at + 2;
}

static unsigned char *put32(unsigned char *at, uint32_t value)
{
    return put16(put16(at, value & 0xffff), value >> 16);
}

size_t wav_header(unsigned char *to, struct format format, uint32_t data_bytes)
{
    const int frame = format.channels * format.bits / 8;
    unsigned char *at = to;
    memcpy(at, "RIFF\0\0\0\0WAVEjunk\3\0\0\0abc\0fmt ", 28);
    at = put32(at + 28, format.code == 0xfffe ? 40 : 16);
    at = put16(put16(at, (unsigned)format.code), (unsigned)format.channels);
    at = put32(put32(at, (uint32_t)format.rate), (uint32_t)(format.rate * frame));
    at = put16(put16(at, (unsigned)frame), (unsigned)format.bits);
    if (format.code == 0xfffe) {
        memset(at, 0, 24);
        at[8] = 1; /* PCM */
        at += 24;
    }
    memcpy(at, "data", 4);
    return (size_t)(put32(at + 4, data_bytes) - to);
}

void put_wav(const char *name, struct format format, const void *samples, size_t bytes)
{
    unsigned char *file = malloc(bytes + 200);
    ck_assert_ptr_nonnull(file);
    const size_t head = wav_header(file, format, (uint32_t)bytes);
    memcpy(file + head, samples, bytes);
    put(name, file, head + bytes);
    free(file);
}

void put_tone(const char *name, int rate, double hertz, double seconds)
{
    const size_t count = (size_t)(rate * seconds);
    int16_t *samples = malloc(count * sizeof *samples);
    ck_assert_ptr_nonnull(samples);
    for (size_t i = 0; i < count; i++)
        samples[i] = (int16_t)(10000 * sin(6.283185307179586 * hertz * (double)i / rate));
    put_wav(name, (struct format) { 1, 1, rate, 16 }, samples, count * sizeof *samples);
    free(samples);
}

int main(void)
{
    SRunner *runner = srunner_create(table_suite());
    srunner_add_suite(runner, texts_suite());
    srunner_add_suite(runner, tags_suite());
    srunner_add_suite(runner, speech_suite());
    srunner_add_suite(runner, description_suite());
    srunner_add_suite(runner, columns_suite());
    srunner_add_suite(runner, arrays_suite());
    srunner_add_suite(runner, recordings_suite());
    srunner_add_suite(runner, sounds_suite());
    srunner_add_suite(runner, targets_suite());
    srunner_add_suite(runner, resample_suite());
    srunner_add_suite(runner, floats_suite());
    srunner_add_suite(runner, sets_suite());
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
