/* What changes floats at random: waveforms, spectrograms, grids and rows of tables. */
#include "base/memory.h"
#include "base/random.h"
#include "data/augment_steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GAIN, NOISE }; /* numbers of FOR_LEVELS */

/* ------------------------------------------------------------------------------------------------- levels ---- */

void augment_gain(const struct augment *augment, const struct draw *draw, size_t count, float *numbers)
{
    const double most = (double)augment->gain;
    if (most <= 0) return;
    const float factor = (float)pow(10, draw_between(draw, FOR_LEVELS, GAIN, -most, most) / 20);
    for (size_t i = 0; i < count; i++) numbers[i] *= factor;
}

tutti_status augment_noise(const struct augment *augment, const struct draw *draw, size_t count, float *numbers)
{
    enum { AT_ONCE = 4096 };
    const float deviation = (float)draw_between(draw, FOR_LEVELS, NOISE, 0, (double)augment->noise);
    const uint32_t stream = RANDOM_NOISE + (uint32_t)(draw->epoch & 0xffffff);
    const uint64_t first = (uint64_t)draw->sample * count;
    if (augment->noise <= 0) return TUTTI_OK;
    float *normal = memory_new(AT_ONCE, sizeof *normal);
    if (!normal) return TUTTI_NO_MEMORY;
    for (size_t begin = 0; begin < count; begin += AT_ONCE) {
        const size_t part = count - begin < AT_ONCE ? count - begin : AT_ONCE;
        random_normals(draw->seed, stream, first + begin, part, normal);
        for (size_t i = 0; i < part; i++) numbers[begin + i] += deviation * normal[i];
    }
    free(normal);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------- spectrograms ---- */

/* Draws a mask anywhere, with a length from 0 to part * size, each as likely. */
static int draw_mask(const struct draw *draw, int number, float part, int size, int *begin)
{
    const int length = (int)draw_below(draw, FOR_MASKS, number, (int64_t)((double)part * size) + 1);
    *begin = (int)draw_below(draw, FOR_MASKS, number + 1, size - length + 1);
    return length;
}

void augment_masks(const struct augment *augment, const struct draw *draw, int bands, int frames, float *spectrogram)
{
    int band, frame;
    const int masked = draw_mask(draw, 0, augment->mask_frequency, bands, &band);
    const int time = draw_mask(draw, 2, augment->mask_time, frames, &frame);
    for (int b = 0; b < bands; b++) {
        float *row = spectrogram + (size_t)b * (size_t)frames;
        const bool whole = b >= band && b < band + masked;
        memset(row + (whole ? 0 : frame), 0, (size_t)(whole ? frames : time) * sizeof *row);
    }
}

/* -------------------------------------------------------------------------------------------------- grids ---- */

static void swap_rows(float *a, float *b, int count)
{
    for (int i = 0; i < count; i++) {
        const float kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

static void reverse(float *row, int count)
{
    for (int i = 0; i < count / 2; i++) {
        const float kept = row[i];
        row[i] = row[count - 1 - i];
        row[count - 1 - i] = kept;
    }
}

void augment_grid(
    const struct augment *augment, const struct draw *draw, int64_t channels, int height, int width, float *numbers)
{
    struct plan plan;
    plan_make(augment, draw, width, height, &plan);
    for (int64_t c = 0; c < channels; c++) {
        float *plane = numbers + c * height * width;
        for (int y = 0; plan.flip && y < height; y++) reverse(plane + (int64_t)y * width, width);
        for (int y = 0; plan.flip_vertical && y < height / 2; y++)
            swap_rows(plane + (int64_t)y * width, plane + (int64_t)(height - 1 - y) * width, width);
        for (int y = plan.top; plan.erases && y < plan.top + plan.height; y++)
            memset(plane + (int64_t)y * width + plan.left, 0, (size_t)plan.width * sizeof *plane);
    }
}
