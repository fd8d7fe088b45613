/* Recordings: WAV files of all kinds, spectrograms against numpy's (make_mel.py), pieces, damaged files. */
#include "kinds.h"

#include "data/mel.h"
#include "formats/npz.h"
#include "formats/wav.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tutti_data_options none = { .size = 0 };

static void expect_wav(struct format format, const void *samples, size_t bytes, const float *expected, int count)
{
    struct wav wav;
    float mono[8];
    put_wav("a.wav", format, samples, bytes);
    ck_assert_msg(wav_open(in_kinds("a.wav"), &wav) == TUTTI_OK, "%s", status_message());
    ck_assert_int_eq(wav.frames, count);
    ck_assert_int_eq(wav.rate, format.rate);
    ck_assert_int_eq(wav_read(&wav, 1, count - 1, mono), TUTTI_OK);
    for (int i = 1; i < count; i++) ck_assert_float_eq_tol(mono[i - 1], expected[i], 1e-7f);
    wav_close(&wav);
}

START_TEST(reads_formats)
{
    const float expected[] = { 0, 0.5f, -1 };
    expect_wav((struct format) { 1, 1, 8000, 8 }, (uint8_t[]) { 128, 192, 0 }, 3, expected, 3);
    expect_wav((struct format) { 1, 1, 8000, 16 }, (int16_t[]) { 0, 16384, -32768 }, 6, expected, 3);
    expect_wav((struct format) { 0xfffe, 1, 8000, 24 }, (uint8_t[]) { 0, 0, 0, 0, 0, 64, 0, 0, 128 }, 9, expected, 3);
    expect_wav((struct format) { 1, 1, 8000, 32 }, (int32_t[]) { 0, 1 << 30, INT32_MIN }, 12, expected, 3);
    expect_wav((struct format) { 3, 1, 8000, 32 }, (float[]) { 0, .5f, -1 }, 12, expected, 3);
    expect_wav((struct format) { 3, 1, 8000, 64 }, (double[]) { 0, .5, -1 }, 24, expected, 3);
    expect_wav((struct format) { 1, 2, 44100, 16 }, (int16_t[]) { 0, 0, 32767, 1, -32768, -32768 }, 12, expected, 3);
}
END_TEST

START_TEST(refuses_files)
{
    unsigned char file[300] = { 0 };
    struct wav wav;
    float mono;
    const struct format good = { 1, 1, 8000, 16 };
    static const struct {
        struct format format;
        const char *reason;
    } cases[] = { { { 2, 1, 8000, 16 }, "coded as 0x0002" }, { { 1, 0, 8000, 16 }, "0 channels" },
        { { 1, 65, 8000, 16 }, "65 channels" }, { { 1, 1, 0, 16 }, "0 Hz" }, { { 1, 1, 8000, 12 }, "12 bits" },
        { { 3, 1, 8000, 16 }, "16 bits" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_wav("a.wav", cases[i].format, file, 8);
        ck_assert_int_eq(wav_open(in_kinds("a.wav"), &wav), TUTTI_FORMAT);
        ck_assert_msg(strstr(status_message(), cases[i].reason) != NULL, "%s", status_message());
    }
    const size_t head = wav_header(file, good, 10);
    for (size_t size = 0; size < head + 10; size++) {
        put("a.wav", file, size);
        ck_assert_int_eq(wav_open(in_kinds("a.wav"), &wav), TUTTI_FORMAT);
        ck_assert_ptr_nonnull(strstr(status_message(), "a.wav"));
    }
    wav_header(file, good, 0xffffffff); /* written into a pipe */
    put("a.wav", file, head + 10);
    ck_assert_int_eq(wav_open(in_kinds("a.wav"), &wav), TUTTI_OK);
    ck_assert_int_eq(wav.frames, 5);
    wav_close(&wav);
    put_wav("a.wav", (struct format) { 3, 1, 8000, 32 }, (float[]) { NAN }, 4);
    ck_assert_int_eq(wav_open(in_kinds("a.wav"), &wav), TUTTI_OK);
    ck_assert_int_eq(wav_read(&wav, 0, 1, &mono), TUTTI_FORMAT);
    wav_close(&wav);
    ck_assert_int_eq(wav_open(in_kinds("none.wav"), &wav), TUTTI_FILE);
}
END_TEST

START_TEST(computes_spectrograms)
{
    char path[512];
    struct npz *file = NULL;
    struct mel *mel = NULL;
    snprintf(path, sizeof path, "%s/tests/data/files/mel.npz", getenv("TUTTI_SOURCE"));
    ck_assert_msg(npz_open(path, &file) == TUTTI_OK, "%s", status_message());
    const struct npz_array *signal = npz_find(file, "signal"), *expected = npz_find(file, "mel");
    ck_assert_int_eq(mel_new(&mel, 16000, 512, 128, 40), TUTTI_OK);
    ck_assert_int_eq(mel_frames(mel, signal->sizes[0]), expected->sizes[1]);
    float *found = malloc(expected->bytes);
    ck_assert_ptr_nonnull(found);
    ck_assert_int_eq(mel_compute(mel, signal->data, signal->sizes[0], found), TUTTI_OK);
    for (size_t i = 0; i < expected->bytes / 4; i++)
        ck_assert_float_eq_tol(found[i], ((float *)expected->data)[i], 1e-3f);
    free(found);
    mel_free(mel);
    npz_close(file);
}
END_TEST

START_TEST(reads_folders)
{
    put_tone("sounds/low/a.wav", 8000, 200, 0.5);
    put_tone("sounds/low/b.WAV", 8000, 220, 0.25);
    put_tone("sounds/high/a.wav", 8000, 3000, 0.5);
    put_tone("sounds/high/long.wav", 8000, 3100, 2);
    put_text("sounds/high/readme.txt", "tones");
    struct collection *data = opened(audio_open, "sounds", &none);
    ck_assert_int_eq(data->samples, 4);
    ck_assert_int_eq(data->info.classes, 2);
    ck_assert_str_eq(data->info.class_names[0], "high");
    ck_assert(data->info.shape.sizes[0] == 1 && data->info.shape.sizes[1] == 64);
    ck_assert_int_eq(data->info.shape.sizes[2], 1 + 4000 / 128);
    const size_t count = 64 * (size_t)data->info.shape.sizes[2];
    float *samples = malloc(3 * count * sizeof *samples);
    ck_assert_ptr_nonnull(samples);
    double sum = 0, squares = 0;
    for (int i = 0; i < 4; i++) {
        int32_t label;
        ck_assert_int_eq(read_floats(data, i, samples, &label), TUTTI_OK);
        ck_assert_int_eq(label, i / 2);
        for (size_t k = 0; k < count; k++) {
            sum += (double)samples[k];
            squares += (double)samples[k] * (double)samples[k];
        }
    }
    ck_assert_double_eq_tol(sum / (4 * (double)count), 0, 1e-4);
    ck_assert_double_eq_tol(squares / (4 * (double)count), 1, 1e-3);
    /* Training: pieces of the long one follow from seed, epoch and sample. */
    for (int epoch = 0; epoch < 3; epoch++) {
        const struct draw draw = { .seed = 1, .epoch = (uint64_t)(epoch % 2), .sample = 1, .training = true };
        int32_t label;
        ck_assert_int_eq(data->read(data, 1, &draw, samples + (size_t)epoch * count, &label), TUTTI_OK);
    }
    ck_assert_mem_eq(samples, samples + 2 * count, count * sizeof *samples);
    ck_assert(memcmp(samples, samples + count, count * sizeof *samples) != 0);
    free(samples);
    data->free(data);
    data = opened(
        audio_open, "sounds", &(tutti_data_options) { .channels = 1, .height = 64, .width = 20, .normalise = "-3/2" });
    ck_assert_int_eq(data->info.shape.sizes[2], 20);
    ck_assert_float_eq(data->info.mean[0], -3);
    data->free(data);
}
END_TEST

START_TEST(names_damaged_files)
{
    float sample[64 * 100];
    int32_t label;
    put_tone("sounds/train/a/a.wav", 8000, 200, 0.5);
    put_tone("sounds/test/b/c.wav", 8000, 200, 0.5);
    put_text("sounds/train/a/b.wav", "RIFF....WAVE");
    struct collection *data = opened(audio_open, "sounds", &none);
    ck_assert_int_eq(data->samples, 3);
    ck_assert_int_eq(data->parts[2], TUTTI_DATA_TEST);
    ck_assert_int_eq(read_floats(data, 0, sample, &label), TUTTI_OK);
    ck_assert_int_eq(read_floats(data, 1, sample, &label), TUTTI_FORMAT);
    ck_assert_ptr_nonnull(strstr(status_message(), "train/a/b.wav"));
    data->free(data);
    put_text("bad/a/b.wav", "RIFF....WAVE");
    expect_refused(audio_open, "bad", &none, "b.wav", "no samples");
    ck_assert_int_eq(audio_open(in_kinds("pictures/a/b.png"), &none, &data), TUTTI_OK);
    ck_assert_int_eq(audio_open(in_kinds("pictures"), &none, &data), TUTTI_OK);
    ck_assert_ptr_null(data);
}
END_TEST

/* A file by its name, prepared by what a training kept, is as in the folder of its training. */
START_TEST(names_classes_without_recordings)
{
    const tutti_data_options hearing = { .note = hear };
    put_tone("sounds/low/a.wav", 8000, 200, 0.5);
    put_tone("sounds/high/a.wav", 8000, 3000, 0.5);
    put_text("sounds/low/a.txt", "a tone");
    put_text("sounds/low/b.m4a", "x");
    put_text("sounds/high/b.m4a", "x");
    struct collection *data = opened(audio_open, "sounds", &hearing);
    ck_assert_ptr_nonnull(strstr(heard, "ignored: 2 .m4a files, 1 .txt file, such as /"));
    data->free(data);
    put_text("sounds/mid/a.wma", "x");
    expect_refused(audio_open, "sounds", &none,
        "sounds/mid: ", "no recording (WAV, FLAC, MP3, Ogg, Opus, AIFF, AU, CAF) in it, only 1 .wma file");
}
END_TEST

START_TEST(reads_files_without_classes)
{
    float expected[64 * 20], sample[64 * 20];
    int32_t label;
    const tutti_data_options kept = { .channels = 1, .height = 64, .width = 20, .rate = 8000, .normalise = "-3/2.5" };
    put_tone("heard/a/a.wav", 8000, 200, 0.5);
    put_tone("heard/b/b.wav", 11025, 900, 2);
    put_tone("flat/c.wav", 11025, 900, 2);
    put_tone("flat/d.WAV", 8000, 200, 0.5);
    struct collection *data = opened(audio_open, "heard", &kept);
    ck_assert_int_eq(read_floats(data, 1, expected, &label), TUTTI_OK);
    data->free(data);
    data = opened(audio_open, "heard/b/b.wav", &kept);
    ck_assert_int_eq(data->samples, 1);
    ck_assert_int_eq(data->info.classes, 0);
    ck_assert_int_eq(data->parts[0], TUTTI_DATA_TEST);
    ck_assert_int_eq(read_floats(data, 0, sample, &label), TUTTI_OK);
    ck_assert_int_eq(label, -1);
    ck_assert_mem_eq(sample, expected, sizeof sample);
    data->free(data);
    data = opened(audio_open, "flat", &kept);
    ck_assert_int_eq(data->samples, 2);
    ck_assert_int_eq(read_floats(data, 0, sample, &label), TUTTI_OK);
    ck_assert_mem_eq(sample, expected, sizeof sample);
    data->free(data);
    put_text("cut.wav", "RIFF....WAVE");
    expect_refused(audio_open, "cut.wav", &none, "cut.wav", "no samples");
    put_text("other.m4a", "ID3");
    ck_assert_int_eq(audio_open(in_kinds("other.m4a"), &none, &data), TUTTI_OK);
    ck_assert_ptr_null(data);
}
END_TEST

Suite *recordings_suite(void)
{
    Suite *suite = suite_create("recordings");
    TCase *tests = tcase_create("recordings");
    tcase_add_checked_fixture(tests, kinds_begin, kinds_end);
    tcase_add_test(tests, reads_formats);
    tcase_add_test(tests, refuses_files);
    tcase_add_test(tests, computes_spectrograms);
    tcase_add_test(tests, reads_folders);
    tcase_add_test(tests, names_damaged_files);
    tcase_add_test(tests, reads_files_without_classes);
    tcase_add_test(tests, names_classes_without_recordings);
    suite_add_tcase(suite, tests);
    return suite;
}
