/* Recordings of make_sounds.py (files/sounds.npz), which a helper process decodes, but for WAV; and damaged ones. */
#include "kinds.h"

#include "base/status.h"
#include "formats/npz.h"
#include "formats/sound.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct npz *sounds;

static void open_sounds(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/data/files/sounds.npz", getenv("TUTTI_SOURCE"));
    ck_assert_msg(npz_open(path, &sounds) == TUTTI_OK, "%s", status_message());
    kinds_begin();
}

static void close_sounds(void)
{
    npz_close(sounds);
    kinds_end();
}

/* Whether this system lacks libsndfile; then the message says so. */
static bool is_unsupported(const char *name)
{
    struct sound sound;
    const tutti_status status = sound_open(in_kinds(name), &sound);
    if (status == TUTTI_OK) sound_close(&sound);
    if (status != TUTTI_UNSUPPORTED) return false;
    ck_assert_msg(
        strstr(status_message(), name) && strstr(status_message(), "apt install libsndfile1"), "%s", status_message());
    return true;
}

/* Calls `work` for each file that can be read here. */
static void for_each_file(void (*work)(const char *name, const struct npz_array *file))
{
    int count = 0;
    for (int i = 0; i < npz_count(sounds); i++) {
        const struct npz_array *file = npz_at(sounds, i);
        if (strncmp(file->name, "file/", 5) != 0) continue;
        put(file->name + 5, file->data, file->bytes);
        if (is_unsupported(file->name + 5)) continue;
        work(file->name + 5, file);
        count++;
    }
    ck_assert_int_ge(count, 2);
}

static void expect_close(const char *name, const float *found, const float *wanted, int64_t count)
{
    const float most = strncmp(name, "lossy", 5) ? 1e-7f : 0.01f;
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(found[i] - wanted[i] <= most && wanted[i] - found[i] <= most, "%s: sample %d is %g, not %g", name,
            (int)i, (double)found[i], (double)wanted[i]);
}

static void expect_samples(const char *name, const struct npz_array *file)
{
    char path[64];
    struct sound sound;
    float found[4000];
    (void)file;
    snprintf(path, sizeof path, "samples/%s", name);
    const struct npz_array *wanted = npz_find(sounds, path);
    const float *samples = wanted->data;
    ck_assert_msg(sound_open(in_kinds(name), &sound) == TUTTI_OK, "%s", status_message());
    ck_assert_int_eq(sound.rate, 8000);
    ck_assert_int_eq(sound.frames, wanted->sizes[0]);
    ck_assert_msg(sound_read(&sound, 0, sound.frames, found) == TUTTI_OK, "%s", status_message());
    expect_close(name, found, samples, sound.frames);
    ck_assert_msg(sound_read(&sound, 200, 300, found) == TUTTI_OK, "%s", status_message());
    if (strcmp(name, "lossy.mp3") != 0) expect_close(name, found, samples + 200, 300); /* depends on what came before */
    ck_assert_int_eq(sound_read(&sound, sound.frames - 1, 2, found), sound.decoder ? TUTTI_FORMAT : TUTTI_FILE);
    sound_close(&sound);
}

START_TEST(reads_libsndfiles)
{
    for_each_file(expect_samples);
}
END_TEST

/* Reads all; a refusal is one line that names the file. */
static void read_all(const char *name)
{
    struct sound sound;
    tutti_status status = sound_open(in_kinds(name), &sound);
    if (status == TUTTI_OK) {
        const int64_t count = sound.frames < 100000 ? sound.frames : 100000;
        float *samples = malloc((size_t)count * sizeof *samples);
        ck_assert_ptr_nonnull(samples);
        status = sound_read(&sound, 0, count, samples);
        free(samples);
        sound_close(&sound);
    }
    if (status == TUTTI_OK) return;
    ck_assert_int_eq(status, TUTTI_FORMAT);
    ck_assert_msg(strstr(status_message(), name) && !strchr(status_message(), '\n'), "%s", status_message());
}

static void damage(const char *name, const struct npz_array *file)
{
    unsigned char *bytes = malloc(file->bytes);
    unsigned random = 1;
    ck_assert_ptr_nonnull(bytes);
    for (size_t count = 0; count < file->bytes; count += 1 + file->bytes / 50) {
        put(name, file->data, count);
        read_all(name);
        memcpy(bytes, file->data, file->bytes);
        for (int changes = 0; changes < 3; changes++) {
            random = random * 1664525 + 1013904223;
            bytes[(random >> 8) % (changes ? file->bytes : 100)] = (unsigned char)(random >> 4);
        }
        put(name, bytes, file->bytes);
        read_all(name);
    }
    free(bytes);
}

START_TEST(survives_damaged_files)
{
    for_each_file(damage);
}
END_TEST

/* Several kinds in one folder, and a file that is not a recording. */
START_TEST(reads_folders)
{
    float sample[64 * 64];
    int32_t label;
    const char *const names[] = { "a.flac", "lossy.mp3", "a.aiff", "lossy.opus", "mulaw.wav" };
    char path[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "file/%s", names[i]);
        const struct npz_array *file = npz_find(sounds, path);
        put(names[i], file->data, file->bytes);
        if (is_unsupported(names[i])) return;
        snprintf(path, sizeof path, "sounds/%s/%s", i % 2 ? "b" : "a", names[i]);
        put(path, file->data, file->bytes);
    }
    struct collection *data = opened(audio_open, "sounds", &(tutti_data_options) { 0 });
    ck_assert_int_eq(data->samples, 5);
    for (int i = 0; i < 5; i++) ck_assert_int_eq(data->read(data, i, &(struct draw) { 0 }, sample, &label), TUTTI_OK);
    data->free(data);
    put("bad/a/no.flac", "not a recording", 15);
    expect_refused(audio_open, "bad", &(tutti_data_options) { 0 }, "no.flac", "libsndfile: ");
}
END_TEST

Suite *sounds_suite(void)
{
    Suite *suite = suite_create("sounds");
    TCase *tests = tcase_create("sounds");
    tcase_add_checked_fixture(tests, open_sounds, close_sounds);
    tcase_add_test(tests, reads_libsndfiles);
    tcase_add_test(tests, survives_damaged_files);
    tcase_add_test(tests, reads_folders);
    suite_add_tcase(suite, tests);
    return suite;
}
