/* Random changes of recordings, arrays of floats and tables: their words and distributions; all threads make the
 * same. */
#include "kinds.h"

#include "formats/npz.h"
#include "tutti_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 4000 };

static struct augment parsed(const char *text, enum augment_kind kind)
{
    struct augment augment;
    ck_assert_msg(augment_parse(text, kind, &augment) == TUTTI_OK, "%s", status_message());
    return augment;
}

START_TEST(kinds_have_words)
{
    static const struct {
        enum augment_kind kind;
        const char *good, *others[6], *expected;
    } cases[] = {
        { AUGMENT_GRIDS, "flip,vflip,erase=0.5,noise=1,mixup=1,cutmix=1", { "crop", "gain=3", "rotate=5", "strong" },
            "is unknown for arrays of floats [samples, channels, height, width]: none, flip" },
        { AUGMENT_NUMBERS, "noise=1,mixup=1", { "flip", "cutmix=1", "mask-time=0.1", "light" }, "noise=X, mixup" },
        { AUGMENT_TABLES, "none,noise=0.1,mixup=0.2", { "rotate=5", "flip", "erase=1", "cutmix=1", "standard" },
            "is unknown for tables: none, noise=X, mixup=ALPHA" },
        { AUGMENT_RECORDINGS, "gain=6,noise=0.01,mask-time=0.2,mask-frequency=1,mixup=0",
            { "flip", "crop", "mask-time", "mask-time=1.1", "gain=-1", "mask=1" }, "mask-frequency=PART" },
        { AUGMENT_IMAGES, "light,noise=0", { "noise=1", "gain=1", "mask-time=0.5" }, "for images: none, light" },
    };
    struct augment augment;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].kind != AUGMENT_IMAGES) parsed(cases[i].good, cases[i].kind);
        for (int k = 0; k < 6 && cases[i].others[k]; k++) {
            ck_assert_int_eq(augment_parse(cases[i].others[k], cases[i].kind, &augment), TUTTI_INVALID);
            const char *message = status_message();
            ck_assert_msg(strstr(message, cases[i].others[k]) && strstr(message, cases[i].expected), "%s", message);
            ck_assert_ptr_null(strchr(message, '\n'));
        }
    }
}
END_TEST

/* Masks are whole bands and whole frames, together; their sizes are uniform up to the part that is asked for. */
START_TEST(masks_are_masks)
{
    enum { BANDS = 20, FRAMES = 30 };
    const struct augment augment = parsed("mask-time=0.5,mask-frequency=0.25", AUGMENT_RECORDINGS);
    double bands = 0, frames = 0, last = 0;
    for (int64_t i = 0; i < DRAWS; i++) {
        const struct draw draw = { 3, 1, i, true };
        float image[BANDS * FRAMES];
        int masked[2] = { 0 }, first = FRAMES, end = 0, zeros = 0;
        for (int k = 0; k < BANDS * FRAMES; k++) image[k] = 1;
        augment_masks(&augment, &draw, BANDS, FRAMES, image);
        for (int k = 0; k < BANDS * FRAMES; k++) zeros += image[k] == 0;
        for (int b = 0; b < BANDS; b++) {
            int count = 0;
            for (int f = 0; f < FRAMES; f++) count += image[b * FRAMES + f] == 0;
            masked[0] += count == FRAMES;
        }
        for (int f = 0; f < FRAMES; f++) {
            int count = 0;
            for (int b = 0; b < BANDS; b++) count += image[b * FRAMES + f] == 0;
            if (count < BANDS) continue;
            masked[1]++;
            first = f < first ? f : first;
            end = f + 1;
        }
        ck_assert(masked[0] <= BANDS / 4 && masked[1] <= FRAMES / 2);
        ck_assert(masked[1] == 0 || end - first == masked[1]);
        ck_assert_int_eq(zeros, masked[0] * FRAMES + masked[1] * BANDS - masked[0] * masked[1]);
        bands += masked[0];
        frames += masked[1];
        last += end == FRAMES;
    }
    ck_assert_double_eq_tol(bands / DRAWS, 2.5, 0.1);
    ck_assert_double_eq_tol(frames / DRAWS, 7.5, 0.3);
    ck_assert(last > 0 && last < DRAWS / 4);
}
END_TEST

START_TEST(levels_are_drawn)
{
    const struct augment augment = parsed("gain=6,noise=0.3", AUGMENT_RECORDINGS);
    double sum = 0, squares = 0, noise = 0, noises = 0;
    for (int64_t i = 0; i < DRAWS; i++) {
        const struct draw draw = { 3, 1, i, true };
        float numbers[50] = { 1 };
        augment_gain(&augment, &draw, 50, numbers);
        const double decibels = 20 * log10((double)numbers[0]);
        ck_assert_double_le(fabs(decibels), 6.001);
        sum += decibels;
        squares += decibels * decibels;
        memset(numbers, 0, sizeof numbers);
        ck_assert_int_eq(augment_noise(&augment, &draw, 50, numbers), TUTTI_OK);
        for (int k = 0; k < 50; k++) {
            noise += (double)numbers[k];
            noises += (double)numbers[k] * (double)numbers[k];
        }
    }
    ck_assert_double_eq_tol(sum / DRAWS, 0, 0.2);
    ck_assert_double_eq_tol(squares / DRAWS, 12, 0.5);
    ck_assert_double_eq_tol(noise / DRAWS / 50, 0, 0.002);
    ck_assert_double_eq_tol(noises / DRAWS / 50, 0.03, 0.001);
}
END_TEST

/* Each value says where it was. */
START_TEST(grids_are_flipped_and_erased)
{
    enum { CHANNELS = 2, HEIGHT = 5, WIDTH = 8, PLANE = HEIGHT * WIDTH };
    const struct augment augment = parsed("flip,vflip,erase=0.5", AUGMENT_GRIDS);
    int flips = 0, turns = 0, erased = 0;
    for (int64_t i = 0; i < DRAWS; i++) {
        const struct draw draw = { 3, 1, i, true };
        float grid[CHANNELS * PLANE];
        int holes = 0, flip = 0, turn = 0;
        for (int k = 0; k < CHANNELS * PLANE; k++) grid[k] = (float)(k + 1);
        augment_grid(&augment, &draw, CHANNELS, HEIGHT, WIDTH, grid);
        for (int k = 0; k < PLANE; k++) {
            const int value = (int)grid[k] - 1, y = k / WIDTH, x = k % WIDTH;
            ck_assert_float_eq(grid[k + PLANE], value < 0 ? 0 : grid[k] + PLANE);
            holes += value < 0;
            if (value < 0) continue;
            flip |= value % WIDTH == x ? 1 : 2;
            turn |= value / WIDTH == y || y == HEIGHT / 2 ? y == HEIGHT / 2 ? 0 : 1 : 2;
            ck_assert(value % WIDTH == x || value % WIDTH == WIDTH - 1 - x);
            ck_assert(value / WIDTH == y || value / WIDTH == HEIGHT - 1 - y);
        }
        ck_assert(flip < 3 && turn < 3 && holes < PLANE / 2);
        flips += flip == 2;
        turns += turn == 2;
        erased += holes > 0;
    }
    ck_assert_double_eq_tol(flips / (double)DRAWS, 0.5, 0.03);
    ck_assert_double_eq_tol(turns / (double)DRAWS, 0.5, 0.03);
    ck_assert_double_eq_tol(erased / (double)DRAWS, 0.5, 0.03);
}
END_TEST

/* -------------------------------------------------------------------------------------------------- reading ---- */

enum { ROWS = 40 };

static void put_table(const char *name, const char *const *classes)
{
    char text[ROWS * 40 + 10] = "x,y\n";
    for (int i = 0; i < ROWS; i++)
        if (classes)
            snprintf(text + strlen(text), 40, "%d,%s\n", i % 2, classes[i % 2]);
        else
            snprintf(text + strlen(text), 40, "%d,%d\n", i, 3 * i + 5);
    put_text(name, text);
}

static tutti_data *open_data(const char *name, const char *augment, int threads)
{
    const tutti_data_options options = { .augment = augment, .seed = 4, .threads = threads };
    tutti_data *data = tutti_data_open(in_kinds(name), &options);
    ck_assert_msg(data != NULL, "%s", status_message());
    return data;
}

/* Reads all samples of a part. Returns how many there are. */
static int64_t read_part(const tutti_data *data, tutti_data_part part, float *samples, void *targets)
{
    const tutti_source *source = tutti_data_source(data, part);
    int64_t indices[ROWS];
    tutti_data_info info = { .size = sizeof info };
    ck_assert_int_eq(tutti_data_describe(data, &info), TUTTI_OK);
    size_t bytes = sizeof(float), target_bytes = 4;
    for (int i = 0; i < info.shape.rank; i++) bytes *= (size_t)info.shape.sizes[i];
    for (int i = 0; i < info.target_shape.rank; i++) target_bytes *= (size_t)info.target_shape.sizes[i];
    const tutti_buffer buffers[] = { { "input", TUTTI_DTYPE_F32, samples, bytes },
        { "targets", info.target_dtype, targets, target_bytes } };
    for (int64_t i = 0; i < ROWS; i++) indices[i] = i;
    ck_assert_int_le(source->samples, ROWS);
    ck_assert_msg(source->read(source->user, indices, source->samples, buffers, 2) == 0, "%s", status_message());
    return source->samples;
}

/* Mixed rows lie on the line of the others, whose ends mark classes or numbers. */
START_TEST(tables_are_mixed)
{
    float x[ROWS], y[2 * ROWS];
    int soft = 0;
    put_table("classes.csv", (const char *const[]) { "a", "b" });
    put_table("numbers.csv", NULL);
    tutti_data *data = open_data("classes.csv", "mixup=1", 2);
    tutti_data_info info = { .size = sizeof info };
    ck_assert_int_eq(tutti_data_describe(data, &info), TUTTI_OK);
    ck_assert(info.target_dtype == TUTTI_DTYPE_F32 && info.target_shape.sizes[0] == 2);
    for (int part = 0; part < 2; part++) {
        const int64_t count = read_part(data, (tutti_data_part)part, x, y);
        for (int64_t i = 0; i < count; i++) { /* 0 and 1 were standardised to -1 and 1 */
            ck_assert_float_eq_tol(y[2 * i] + y[2 * i + 1], 1, 1e-6f);
            ck_assert_float_eq_tol(x[i], 2 * y[2 * i + 1] - 1, 1e-5f);
            soft += y[2 * i] > 0 && y[2 * i] < 1 ? 1 : 0;
            ck_assert(part == 0 || y[2 * i] == 0 || y[2 * i] == 1);
        }
    }
    ck_assert_int_gt(soft, 4);
    tutti_data_free(data);
    data = open_data("numbers.csv", "mixup=1", 2);
    float plain[ROWS], plain_y[ROWS];
    tutti_data *unmixed = open_data("numbers.csv", NULL, 2);
    const int64_t count = read_part(data, TUTTI_DATA_TRAIN, x, y);
    ck_assert_int_eq(read_part(unmixed, TUTTI_DATA_TRAIN, plain, plain_y), count);
    const float slope = (plain_y[count - 1] - plain_y[0]) / (plain[count - 1] - plain[0]);
    int moved = 0;
    for (int64_t i = 0; i < count; i++) {
        ck_assert_float_eq_tol(y[i], plain_y[0] + slope * (x[i] - plain[0]), 1e-3f);
        moved += x[i] != plain[i];
    }
    ck_assert_int_gt(moved, count / 2);
    ck_assert_int_eq(read_part(data, TUTTI_DATA_VAL, x, y), read_part(unmixed, TUTTI_DATA_VAL, plain, plain_y));
    ck_assert_mem_eq(x, plain, sizeof(float));
    tutti_data_free(data);
    tutti_data_free(unmixed);
}
END_TEST

/* Each array has one value, its class, so that the area of a value is the probability of a class. */
START_TEST(arrays_are_cut)
{
    enum { SIDE = 6, PLANE = SIDE * SIDE };
    static float x[ROWS * PLANE], found[ROWS * PLANE];
    float targets[2 * ROWS];
    int64_t y[ROWS];
    int cut = 0;
    for (int i = 0; i < ROWS * PLANE; i++) x[i] = (float)(i / PLANE % 2);
    for (int i = 0; i < ROWS; i++) y[i] = i % 2;
    const struct npz_array arrays[] = {
        { .name = "x", .type = NPZ_F32, .rank = 4, .sizes = { ROWS, 1, SIDE, SIDE }, .data = x },
        { .name = "y", .type = NPZ_I64, .rank = 1, .sizes = { ROWS }, .data = y },
    };
    ck_assert_int_eq(npz_save(in_kinds("arrays.npz"), arrays, 2), TUTTI_OK);
    tutti_data *data = open_data("arrays.npz", "flip,cutmix=1", 2);
    const int64_t count = read_part(data, TUTTI_DATA_TRAIN, found, targets);
    for (int64_t i = 0; i < count; i++) {
        int ones = 0;
        for (int k = 0; k < PLANE; k++) {
            ck_assert(found[i * PLANE + k] == 0 || found[i * PLANE + k] == 1);
            ones += found[i * PLANE + k] > 0;
        }
        ck_assert_float_eq_tol(targets[2 * i + 1], (float)ones / PLANE, 1e-6f);
        cut += ones > 0 && ones < PLANE;
    }
    ck_assert_int_gt(cut, 4);
    tutti_data_free(data);
    expect_refused(arrays_open, "arrays.npz", &(tutti_data_options) { .augment = "rotate=5" }, "rotate=5", "vflip");
}
END_TEST

/* Recordings of several rates, with all that is random, on one and on four threads. */
START_TEST(threads_change_nothing)
{
    enum { SAMPLE = 64 * 32, COUNT = 8 };
    const char *words = "gain=6,noise=0.01,mask-time=0.3,mask-frequency=0.3,mixup=0.4";
    static float found[4][COUNT * SAMPLE];
    float targets[4][2 * COUNT];
    char name[60];
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "sounds/train/%s/%d.wav", i % 2 ? "high" : "low", i);
        put_tone(name, i < 6 ? 8000 : 11025, i % 2 ? 1500 : 300, i == 3 ? 1.2 : 0.5);
        snprintf(name, sizeof name, "sounds/val/%s/%d.wav", i % 2 ? "high" : "low", i);
        put_tone(name, 8000, i % 2 ? 1500 : 300, 0.5);
    }
    for (int i = 0; i < 4; i++) { /* epoch 1 on one thread, on four, epoch 2, and nothing random */
        tutti_data *data = open_data("sounds", i < 3 ? words : NULL, i == 1 ? 4 : 1);
        tutti_data_epoch(data, i == 2 ? 2 : 1);
        ck_assert_int_eq(read_part(data, TUTTI_DATA_TRAIN, found[i], targets[i]), COUNT);
        if (i == 2) read_part(data, TUTTI_DATA_VAL, found[1], targets[1]);
        if (i == 3) read_part(data, TUTTI_DATA_VAL, found[0], targets[0]);
        if (i == 1) ck_assert_mem_eq(found[0], found[1], sizeof found[0]);
        if (i == 1) ck_assert_mem_eq(targets[0], targets[1], sizeof targets[0]);
        tutti_data_free(data);
    }
    ck_assert_mem_eq(found[0], found[1], sizeof found[0]); /* those of validation are not changed */
    ck_assert_mem_ne(found[2], found[3], sizeof found[0]);
}
END_TEST

Suite *floats_suite(void)
{
    Suite *suite = suite_create("floats");
    TCase *tests = tcase_create("floats");
    tcase_add_checked_fixture(tests, kinds_begin, kinds_end);
    tcase_add_test(tests, kinds_have_words);
    tcase_add_test(tests, masks_are_masks);
    tcase_add_test(tests, levels_are_drawn);
    tcase_add_test(tests, grids_are_flipped_and_erased);
    tcase_add_test(tests, tables_are_mixed);
    tcase_add_test(tests, arrays_are_cut);
    tcase_add_test(tests, threads_change_nothing);
    suite_add_tcase(suite, tests);
    return suite;
}
