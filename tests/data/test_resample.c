/* Recordings of other rates, against torchaudio's formula (make_resample.py). */
#include "kinds.h"

#include "data/resample.h"
#include "formats/npz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const tutti_data_options none = { .size = 0 };

static struct sound open_sound(const char *name)
{
    struct sound sound;
    ck_assert_msg(sound_open(in_kinds(name), &sound) == TUTTI_OK, "%s", status_message());
    return sound;
}

static struct npz *open_references(void)
{
    char path[512];
    struct npz *file = NULL;
    snprintf(path, sizeof path, "%s/tests/data/files/resample.npz", getenv("TUTTI_SOURCE"));
    ck_assert_msg(npz_open(path, &file) == TUTTI_OK, "%s", status_message());
    return file;
}

START_TEST(equals_the_formula)
{
    static const int rates[][2] = { { 16000, 8000 }, { 8000, 16000 }, { 44100, 16000 }, { 16000, 44100 },
        { 11025, 48000 }, { 44100, 44099 } };
    char name[40];
    float found[2048];
    struct npz *file = open_references();
    const struct npz_array *signal = npz_find(file, "signal");
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        const int from = rates[i][0], to = rates[i][1];
        snprintf(name, sizeof name, "from_%d_%d", from, to);
        const struct npz_array *expected = npz_find(file, name);
        ck_assert_ptr_nonnull(expected);
        put_wav("a.wav", (struct format) { 3, 1, from, 32 }, signal->data, signal->bytes);
        struct sound sound = open_sound("a.wav");
        const int64_t count = resample_length(from, to, sound.frames);
        ck_assert_int_eq(count, expected->sizes[0]);
        for (int64_t first = 0; first < count; first += 77) { /* a piece is that of the whole */
            const int64_t piece = count - first < 200 ? count - first : 200;
            ck_assert_int_eq(resample_read(&sound, to, first, piece, found), TUTTI_OK);
            for (int64_t k = 0; k < piece; k++)
                ck_assert_float_eq_tol(found[k], ((float *)expected->data)[first + k], 2e-6f);
        }
        sound_close(&sound);
    }
    npz_close(file);
}
END_TEST

/* The root of the mean square of a tone that was recorded at one rate and is read at another. */
static double loudness_of(double hertz, int from, int to)
{
    float samples[4000];
    double squares = 0;
    put_tone("tone.wav", from, hertz, 0.5);
    struct sound sound = open_sound("tone.wav");
    const int64_t count = resample_length(from, to, sound.frames) - 200;
    ck_assert_int_le(count, 4000);
    ck_assert_int_eq(resample_read(&sound, to, 100, count, samples), TUTTI_OK);
    for (int64_t i = 0; i < count; i++) squares += (double)samples[i] * (double)samples[i];
    sound_close(&sound);
    return sqrt(squares / (double)count);
}

/* Frequencies that the lower rate cannot represent are removed; others stay. */
START_TEST(limits_the_band)
{
    const double loud = 10000.0 / 32768 / sqrt(2);
    ck_assert_double_eq_tol(loudness_of(1000, 16000, 8000), loud, 0.002);
    ck_assert_double_eq_tol(loudness_of(1000, 8000, 16000 / 3), loud, 0.002);
    ck_assert_double_lt(loudness_of(6000, 16000, 8000), 0.003);
    ck_assert_double_lt(loudness_of(15000, 44100, 8000), 0.003);
}
END_TEST

/* Whatever a header says, memory and time follow from the piece that is wanted. */
START_TEST(bears_any_header)
{
    float found[100];
    unsigned char zeros[200] = { 0 };
    static const int rates[] = { 1, 7, 4409, 44099, 44100, 441000, 999983, 1 << 20 };
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        const int from = rates[i], high = from > 44100 ? from : 44100, low = from > 44100 ? 44100 : from;
        ck_assert_int_eq(resample_is_possible(from, 44100), high <= RESAMPLE_MOST_RATIO * low);
        if (!resample_is_possible(from, 44100)) continue;
        put_wav("a.wav", (struct format) { 1, 1, from, 16 }, zeros, sizeof zeros);
        struct sound sound = open_sound("a.wav");
        const int64_t length = resample_length(from, 44100, sound.frames), count = length < 100 ? length : 100;
        ck_assert_int_eq(resample_read(&sound, 44100, length - count, count, found), TUTTI_OK);
        sound_close(&sound);
    }
    ck_assert(resample_is_possible(100, 1) && !resample_is_possible(101, 1) && !resample_is_possible(1, 101));
    ck_assert_int_gt(resample_length(1, 100, INT64_MAX), INT64_MAX / 4);
    put("a.wav", zeros, wav_header(zeros, (struct format) { 1, 1, 44099, 16 }, 0xffffffff)); /* as long as its file */
    if (truncate(in_kinds("a.wav"), 1ll << 36) != 0) return;
    struct sound sound = open_sound("a.wav");
    ck_assert_int_eq(
        resample_read(&sound, 44100, resample_length(44099, 44100, sound.frames) / 2, 100, found), TUTTI_OK);
    ck_assert_float_eq(found[50], 0);
    sound_close(&sound);
}
END_TEST

/* The spectrogram of a tone is that of the same tone recorded at another rate, below half the lower one. */
START_TEST(folders_of_several_rates)
{
    float samples[2][64 * 32];
    int32_t label;
    put_tone("sounds/low/a.wav", 8000, 440, 0.5);
    put_tone("sounds/low/b.wav", 22050, 440, 0.5);
    put_tone("sounds/mid/c.wav", 44100, 880, 0.5);
    put_tone("sounds/mid/d.wav", 79, 10, 0.5);
    struct collection *data = opened(audio_open, "sounds", &none);
    ck_assert_int_eq(data->info.shape.sizes[2], 1 + 4000 / 128);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(read_floats(data, i, samples[i], &label), TUTTI_OK);
    for (int band = 0; band < 20; band++)
        for (int frame = 6; frame < 26; frame++) {
            const float *a = &samples[0][band * 32 + frame], *b = &samples[1][band * 32 + frame];
            ck_assert_float_eq_tol(*a, *b, 0.15f);
        }
    ck_assert_int_eq(read_floats(data, 3, samples[0], &label), TUTTI_FORMAT);
    ck_assert_ptr_nonnull(strstr(status_message(), "mid/d.wav: it has 79 samples a second"));
    data->free(data);
    data = opened(audio_open, "sounds", &(tutti_data_options) { .rate = 16000 });
    ck_assert_int_eq(data->info.shape.sizes[2], 1 + 8000 / 256);
    ck_assert_int_eq(read_floats(data, 2, samples[0], &label), TUTTI_OK);
    data->free(data);
    expect_refused(audio_open, "sounds", &(tutti_data_options) { .rate = -1 }, "-1", "samples a second");
}
END_TEST

Suite *resample_suite(void)
{
    Suite *suite = suite_create("resample");
    TCase *tests = tcase_create("resample");
    tcase_add_checked_fixture(tests, kinds_begin, kinds_end);
    tcase_add_test(tests, equals_the_formula);
    tcase_add_test(tests, limits_the_band);
    tcase_add_test(tests, bears_any_header);
    tcase_add_test(tests, folders_of_several_rates);
    suite_add_tcase(suite, tests);
    return suite;
}
