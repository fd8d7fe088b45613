#include "data/augment_steps.h"

#include <math.h>
#include <string.h>

/* Returns the logarithm of a number of the gamma distribution: Marsaglia and Tsang, "A simple method for generating
 * gamma variables", TOMS 26 (3), 2000. For alpha below 1 it is a number for alpha + 1, times u^(1 / alpha). `first`:
 * the first of 32 random numbers. */
static double log_gamma_number(const struct draw *draw, double alpha, int first)
{
    const double boost = alpha < 1 ? log1p(-draw_uniform(draw, FOR_GAMMAS, first)) / alpha : 0;
    const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (int i = 1; i < 31; i += 2) { /* each try fails in less than 5 % */
        const double x = draw_normal(draw, FOR_GAMMAS, first + i), base = 1 + c * x, v = base * base * base;
        const double u = 1 - draw_uniform(draw, FOR_GAMMAS, first + i + 1);
        if (base > 0 && log(u) < 0.5 * x * x + d - d * v + d * log(v)) return log(d) + log(v) + boost;
    }
    return log(d) + boost;
}

static double beta_number(const struct draw *draw, double alpha)
{
    return 1 / (1 + exp(log_gamma_number(draw, alpha, 32) - log_gamma_number(draw, alpha, 0)));
}

/* As torchvision's CutMix: a part of 1 - weight around a random centre, cut off at the borders. */
static void cut(const struct draw *draw, int width, int height, struct mix *mix)
{
    const double half = 0.5 * sqrt(1 - mix->weight);
    const int x = (int)draw_below(draw, FOR_MIX, 2, width), y = (int)draw_below(draw, FOR_MIX, 3, height);
    const int across = (int)(half * width), down = (int)(half * height);
    mix->cut = true;
    mix->patch.left = x > across ? x - across : 0;
    mix->patch.top = y > down ? y - down : 0;
    mix->patch.width = (x + across < width ? x + across : width) - mix->patch.left;
    mix->patch.height = (y + down < height ? y + down : height) - mix->patch.top;
    mix->weight = 1 - (double)mix->patch.width * mix->patch.height / ((double)width * height);
}

struct mix augment_mix_of(
    const struct augment *augment, const struct draw *draw, int64_t samples, int width, int height)
{
    struct mix mix = { .partner = draw->sample, .weight = 1 };
    const double mixup = (double)augment->mixup, cutmix = (double)augment->cutmix;
    if (!draw->training || samples < 1 || (mixup <= 0 && cutmix <= 0)) return mix;
    /* With both, each is used for half of the samples. */
    const bool cuts = cutmix > 0 && (mixup <= 0 || draw_uniform(draw, FOR_MIX, 0) < 0.5);
    mix.partner = draw_below(draw, FOR_MIX, 1, samples);
    mix.weight = beta_number(draw, cuts ? cutmix : mixup);
    if (cuts) cut(draw, width, height, &mix);
    return mix;
}

/* Copies the partner's rectangle. Elements have so many bytes. */
static void copy_patch(const struct mix *mix, const void *partner, int64_t channels, int64_t height, int64_t width,
    size_t bytes, void *sample)
{
    for (int64_t c = 0; c < channels; c++) {
        for (int y = mix->patch.top; y < mix->patch.top + mix->patch.height; y++) {
            const size_t at = (size_t)((c * height + y) * width + mix->patch.left) * bytes;
            memcpy((char *)sample + at, (const char *)partner + at, (size_t)mix->patch.width * bytes);
        }
    }
}

void augment_mix(
    const struct mix *mix, const unsigned char *partner, int channels, int height, int width, unsigned char *sample)
{
    const size_t plane = (size_t)width * (size_t)height;
    const int own = (int)rint(mix->weight * 65536), other = 65536 - own;
    if (!mix->cut) {
        for (size_t i = 0; i < plane * (size_t)channels && other; i++)
            sample[i] = (unsigned char)((sample[i] * own + partner[i] * other + 32768) >> 16);
        return;
    }
    copy_patch(mix, partner, channels, height, width, 1, sample);
}

void augment_mix_floats(
    const struct mix *mix, const float *partner, int64_t channels, int64_t height, int64_t width, float *sample)
{
    const float own = (float)mix->weight, other = (float)(1 - mix->weight);
    if (mix->cut) {
        copy_patch(mix, partner, channels, height, width, sizeof *sample, sample);
        return;
    }
    for (int64_t i = 0; i < channels * height * width; i++) sample[i] = sample[i] * own + partner[i] * other;
}
