/* What is drawn for samples: words, distributions, and the same bytes on every thread. */
#include "test_augment.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct augment parsed(const char *text)
{
    struct augment augment;
    ck_assert_msg(augment_parse(text, AUGMENT_IMAGES, &augment) == TUTTI_OK, "%s", status_message());
    return augment;
}

START_TEST(reads_words)
{
    struct augment a = parsed("crop=0.2-0.9,vflip,rotate=15,rand=3:12,mixup=0.2,cutmix=1,erase=0.25,pad=4");
    ck_assert(a.crop && !a.flip && a.flip_vertical);
    ck_assert_float_eq(a.scale_low, 0.2f);
    ck_assert_float_eq(a.scale_high, 0.9f);
    ck_assert_float_eq(a.ratio_low, 0.75f);
    ck_assert_float_eq(a.rotate, 15);
    ck_assert_int_eq(a.pad, 4);
    ck_assert(augment_is_random(&(struct augment) { .pad = 1 }));
    ck_assert(a.random_count == 3 && a.random_magnitude == 12);
    ck_assert(a.mixup == 0.2f && a.cutmix == 1 && a.erase == 0.25f);
    a = parsed("color=0.4,hue=0");
    ck_assert(a.brightness == 0.4f && a.contrast == 0.4f && a.saturation == 0.4f && a.hue == 0);
    a = parsed("strong,mixup=0");
    ck_assert(a.crop && a.flip && a.mixup == 0 && a.cutmix == 1 && a.random_count == 2 && a.random_magnitude == 9);
    a = parsed("light");
    ck_assert(a.crop && a.flip && a.scale_low == 0.08f && a.scale_high == 1 && a.brightness == 0);
    const struct augment none = parsed(NULL);
    const char *const nothing[] = { "", "none", "," };
    for (int i = 0; i < 2; i++) {
        a = parsed(nothing[i]);
        ck_assert(!a.crop && !a.flip && a.erase == none.erase && a.random_count == 0);
    }
}
END_TEST

START_TEST(refuses_other_words)
{
    const char *const texts[] = { "crops", "crop=", "crop=0.5", "crop=0.5-0.2", "crop=0-1", "crop=0.1-1.5", "flip=1",
        "rotate", "rotate=181", "rotate=-1", "rotate=x", "color=2", "hue=0.6", "erase=1.1", "mixup=nan", "cutmix=-1",
        "rand=2", "rand=2:31", "rand=9:9", "rand=1.5:9", "rand=2:9:1", "pad", "pad=-1", "pad=1.5", "pad=1025",
        "crop,,flip", ",", "light=1", "=", "=1",
        "a-word-that-is-much-longer-than-every-word-that-augmentation-knows-of-at-all=1" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct augment augment;
        ck_assert_msg(augment_parse(texts[i], AUGMENT_IMAGES, &augment) == TUTTI_INVALID, "%s", texts[i]);
        ck_assert_ptr_nonnull(strstr(status_message(), "crop=LOW-HIGH"));
        ck_assert_ptr_null(strchr(status_message(), '\n'));
    }
}
END_TEST

enum { DRAWS = 20000 };

/* Areas, places and the logarithm of the ratio are uniform. */
START_TEST(draws_boxes)
{
    const struct augment augment = parsed("crop=0.1-0.5");
    double area = 0, square = 0, ratio = 0, left = 0;
    for (int64_t i = 0; i < DRAWS; i++) {
        const struct draw draw = { 5, 7, i, true };
        const struct box box = augment_box(&augment, &draw, 900, 800, 224, 224);
        ck_assert(box.cut && box.left >= 0 && box.top >= 0);
        ck_assert(box.left + box.width <= 900 && box.top + box.height <= 800);
        ck_assert(fabs(log(box.width / box.height)) < log(4.0 / 3) + 0.01);
        const double part = box.width * box.height / (900 * 800);
        area += part;
        square += part * part;
        ratio += log(box.width / box.height);
        left += box.left / (900 - box.width);
    }
    area /= DRAWS;
    ck_assert_double_eq_tol(area, 0.3, 0.004);
    ck_assert_double_eq_tol(square / DRAWS - area * area, 0.4 * 0.4 / 12, 0.0004);
    ck_assert_double_eq_tol(ratio / DRAWS, 0, 0.006);
    ck_assert_double_eq_tol(left / DRAWS, 0.5, 0.012);
}
END_TEST

/* If no ratio fits, the centre is taken. */
START_TEST(falls_back_to_the_centre)
{
    const struct augment augment = parsed("crop=1-1");
    const struct draw draw = { 5, 7, 1, true };
    struct box box = augment_box(&augment, &draw, 400, 100, 224, 224);
    ck_assert(box.left == 133 && box.top == 0 && box.width == 133 && box.height == 100);
    box = augment_box(&augment, &draw, 1, 90, 224, 224);
    ck_assert(box.left == 0 && box.top == 44 && box.width == 1 && box.height == 1);
}
END_TEST

START_TEST(draws_plans)
{
    const struct augment augment = parsed("flip,vflip,rotate=20,rand=2:15,color=0.5,erase=0.3");
    double flips = 0, turned = 0, erased = 0, brightness = 0, hue = 0;
    int counts[RANDOM_OPERATIONS] = { 0 }, first[HUE + 1] = { 0 }, negative = 0, shears = 0;
    for (int64_t i = 0; i < DRAWS; i++) {
        const struct draw draw = { 6, 1, i, true };
        struct plan plan;
        plan_make(&augment, &draw, 64, 48, &plan);
        ck_assert_int_eq(plan.steps, 7);
        ck_assert(plan.step[0].operation == ROTATE && fabsf(plan.step[0].amount) <= 20);
        flips += plan.flip;
        turned += fabs((double)plan.step[0].amount);
        erased += plan.erases;
        if (plan.erases) ck_assert(plan.left + plan.width <= 64 && plan.top + plan.height <= 48);
        for (int j = 1; j < 3; j++) {
            counts[plan.step[j].operation]++;
            if (plan.step[j].operation != SHEAR_X) continue;
            ck_assert_double_eq_tol(fabs((double)plan.step[j].amount), 0.15, 1e-6);
            shears++;
            negative += plan.step[j].amount < 0;
        }
        first[plan.step[3].operation]++;
        for (int j = 3; j < 7; j++) {
            if (plan.step[j].operation == BRIGHTNESS) brightness += fabs((double)plan.step[j].amount - 1);
            if (plan.step[j].operation == HUE) hue += fabs((double)plan.step[j].amount);
        }
    }
    ck_assert_double_eq_tol(flips / DRAWS, 0.5, 0.015);
    ck_assert_double_eq_tol(turned / DRAWS, 10, 0.15);
    ck_assert_double_eq_tol(erased / DRAWS, 0.3, 0.015);
    ck_assert_double_eq_tol(brightness / DRAWS, 0.25, 0.004);
    ck_assert_double_eq_tol(hue / DRAWS, 0.0625, 0.001);
    for (int i = 0; i < RANDOM_OPERATIONS; i++)
        ck_assert_double_eq_tol((double)counts[i] / (2 * DRAWS), 1.0 / RANDOM_OPERATIONS, 0.006);
    ck_assert_double_eq_tol((double)negative / shears, 0.5, 0.04);
    const enum operation colours[] = { BRIGHTNESS, CONTRAST, SATURATION, HUE };
    for (int i = 0; i < 4; i++) ck_assert_double_eq_tol((double)first[colours[i]] / DRAWS, 0.25, 0.015);
}
END_TEST

/* Whether the sample is the image after `pad` zeros on each side, from column `left` and row `top` of that on. */
static bool is_cut(const unsigned char *sample, const struct image *image, int pad, int left, int top)
{
    const int width = image->width, height = image->height;
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                const int u = x + left - pad, v = y + top - pad;
                const bool inside = u >= 0 && v >= 0 && u < width && v < height;
                const int wanted = inside ? image->pixels[(v * width + u) * 3 + c] : 0;
                if (sample[(c * height + y) * width + x] != wanted) return false;
            }
    return true;
}

/* As torchvision's RandomCrop((4, 6), padding=2): each of the 25 places equally often. */
START_TEST(cuts_out_of_padding)
{
    enum { PAD = 2, PLACES = 2 * PAD + 1, TRIES = 5000 };
    unsigned char pixels[4 * 6 * 3], sample[sizeof pixels];
    const struct image image = { 6, 4, 3, pixels, sizeof pixels };
    const struct box box = { .width = 6, .height = 4 };
    const struct augment augment = parsed("pad=2");
    struct augment_scratch *scratch = augment_scratch_new();
    int seen[PLACES * PLACES] = { 0 };
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (unsigned char)(i * 3 + 1);
    for (int64_t i = 0; i < TRIES; i++) {
        const struct draw draw = { 5, 1, i, true };
        int found = 0;
        ck_assert_int_eq(augment_image(&augment, &draw, &image, &box, 6, 4, 6, 4, scratch, sample), TUTTI_OK);
        for (int k = 0; k < PLACES * PLACES; k++) {
            if (!is_cut(sample, &image, PAD, k % PLACES, k / PLACES)) continue;
            seen[k]++;
            found++;
        }
        ck_assert_int_eq(found, 1);
    }
    for (int k = 0; k < PLACES * PLACES; k++) ck_assert(seen[k] > 130 && seen[k] < 270); /* 200, 5 deviations */
    const struct draw evaluation = { .sample = 3 };
    ck_assert_int_eq(augment_image(&augment, &evaluation, &image, &box, 6, 4, 6, 4, scratch, sample), TUTTI_OK);
    ck_assert(is_cut(sample, &image, PAD, PAD, PAD));
    augment_scratch_free(scratch);
}
END_TEST

/* Mean and variance of the beta distribution; the patch has the part that the weight says. */
START_TEST(draws_mixes)
{
    const char *const texts[] = { "mixup=0.2", "mixup=1", "mixup=8", "cutmix=1", "mixup=0.001" };
    const double alphas[] = { 0.2, 1, 8, 1, 0.001 };
    for (int k = 0; k < 5; k++) {
        const struct augment augment = parsed(texts[k]);
        double sum = 0, square = 0, partner = 0;
        for (int64_t i = 0; i < DRAWS; i++) {
            const struct draw draw = { 4, 9, i, true };
            const struct mix mix = augment_mix_of(&augment, &draw, 1000, 64, 48);
            ck_assert(mix.weight >= 0 && mix.weight <= 1 && mix.partner >= 0 && mix.partner < 1000);
            ck_assert_int_eq(mix.cut, k == 3);
            if (mix.cut) {
                ck_assert(mix.patch.left >= 0 && mix.patch.left + mix.patch.width <= 64);
                ck_assert(mix.patch.top >= 0 && mix.patch.top + mix.patch.height <= 48);
                ck_assert_double_eq_tol(mix.weight, 1 - mix.patch.width * mix.patch.height / (64.0 * 48), 1e-12);
            }
            sum += mix.weight;
            square += mix.weight * mix.weight;
            partner += (double)mix.partner;
        }
        sum /= DRAWS;
        ck_assert_double_eq_tol(partner / DRAWS, 499.5, 10);
        if (k == 3) continue; /* cut off at the borders: larger weights */
        ck_assert_double_eq_tol(sum, 0.5, 0.015);
        ck_assert_double_eq_tol(square / DRAWS - sum * sum, 1 / (4 * (2 * alphas[k] + 1)), 0.006);
    }
}
END_TEST

START_TEST(mixes_bytes)
{
    unsigned char sample[2 * 3 * 4], partner[2 * 3 * 4];
    memset(sample, 100, sizeof(sample));
    memset(partner, 200, sizeof(partner));
    struct mix mix = { .partner = 1, .weight = 0.25 };
    augment_mix(&mix, partner, 2, 3, 4, sample);
    for (size_t i = 0; i < sizeof(sample); i++) ck_assert_int_eq(sample[i], 175);
    mix = (struct mix) { .partner = 1, .weight = 5.0 / 6, .cut = true, .patch = { 1, 2, 2, 1 } };
    augment_mix(&mix, partner, 2, 3, 4, sample);
    for (size_t i = 0; i < sizeof(sample); i++)
        ck_assert_int_eq(sample[i], i % 12 / 4 == 2 && (i % 4 == 1 || i % 4 == 2) ? 200 : 175);
    const struct augment augment = parsed("mixup=1,cutmix=1");
    const struct draw evaluation = { .sample = 3 };
    mix = augment_mix_of(&augment, &evaluation, 10, 4, 3);
    ck_assert(mix.weight == 1 && !mix.cut && mix.partner == 3);
}
END_TEST

/* ------------------------------------------------------------------------------------------------ threads ---- */

enum { SAMPLES = 64, SIDE = 40, BYTES = 3 * SIDE * SIDE };
struct worker {
    pthread_t thread;
    int first, step;
    uint64_t seed, epoch;
    unsigned char (*samples)[BYTES];
};

static void *make_samples(void *user)
{
    const struct worker *worker = user;
    static const char text[] = "strong,color=0.5,rotate=30,erase=0.5";
    const struct augment augment = parsed(text);
    struct augment_scratch *scratch = augment_scratch_new();
    unsigned char *pixels = malloc(61 * 53 * 3);
    const struct image image = { 61, 53, 3, pixels, 61 * 53 * 3 };
    for (int i = 0; i < 61 * 53 * 3; i++) pixels[i] = (unsigned char)(i * 7 + i / 61 * 13);
    for (int i = worker->first; i >= 0 && i < SAMPLES; i += worker->step) {
        const struct draw draw = { worker->seed, worker->epoch, i, true };
        const struct box box = augment_box(&augment, &draw, 61, 53, SIDE, SIDE);
        ck_assert_int_eq(
            augment_image(&augment, &draw, &image, &box, 61, 53, SIDE, SIDE, scratch, worker->samples[i]), TUTTI_OK);
    }
    augment_scratch_free(scratch);
    free(pixels);
    return NULL;
}

static int equal_samples(unsigned char (*a)[BYTES], unsigned char (*b)[BYTES])
{
    int equal = 0;
    for (int i = 0; i < SAMPLES; i++) equal += !memcmp(a[i], b[i], BYTES);
    return equal;
}

START_TEST(draws_the_same_on_threads)
{
    unsigned char(*wanted)[BYTES] = malloc(SAMPLES * BYTES), (*found)[BYTES] = malloc(SAMPLES * BYTES);
    struct worker workers[3] = { { .first = 0, .step = 1, .seed = 11, .epoch = 2, .samples = wanted } };
    make_samples(&workers[0]);
    for (int i = 0; i < 3; i++) {
        workers[i] = (struct worker) { .first = i ? SAMPLES - i : 0, .step = i ? -2 : SAMPLES, 11, 2, found };
        if (!i) workers[i].step = SAMPLES;
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, make_samples, &workers[i]), 0);
    }
    for (int i = 0; i < 3; i++) ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
    ck_assert_int_eq(equal_samples(wanted, found), SAMPLES);
    struct worker other = { .first = 0, .step = 1, .seed = 11, .epoch = 3, .samples = found };
    make_samples(&other);
    ck_assert_int_lt(equal_samples(wanted, found), 3);
    other.seed = 12;
    other.epoch = 2;
    make_samples(&other);
    ck_assert_int_lt(equal_samples(wanted, found), 3);
    free(wanted);
    free(found);
}
END_TEST

TCase *draws_case(void)
{
    TCase *draws = tcase_create("draws");
    tcase_add_test(draws, reads_words);
    tcase_add_test(draws, refuses_other_words);
    tcase_add_test(draws, draws_boxes);
    tcase_add_test(draws, falls_back_to_the_centre);
    tcase_add_test(draws, draws_plans);
    tcase_add_test(draws, cuts_out_of_padding);
    tcase_add_test(draws, draws_mixes);
    tcase_add_test(draws, mixes_bytes);
    tcase_add_test(draws, draws_the_same_on_threads);
    return draws;
}
