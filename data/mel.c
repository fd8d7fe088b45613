#include "data/mel.h"

#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>

static const double turn = 6.283185307179586;

struct band {
    int first, count; /* frequencies, and weights from `weights` on */
    const float *weights;
};

struct mel {
    int length, hop, bands, frequencies;
    float *window;
    float *cosines, *sines; /* of k / length turns, k below length / 2 */
    int *reversed;          /* indexes with their bits in the other order */
    struct band *band;
    float *weights;
};

/* ------------------------------------------------------------------------------------------------- triangles ---- */

static double hertz_of(double mel)
{
    return 700 * (pow(10, mel / 2595) - 1);
}

/* Triangles whose corners are equally far from one another on the mel scale. */
static void fill_bands(struct mel *mel, int rate)
{
    const double most = 2595 * log10(1 + rate / 2.0 / 700), step = most / (mel->bands + 1);
    float *weight = mel->weights;
    for (int b = 0; b < mel->bands; b++) {
        const double low = hertz_of(step * b), middle = hertz_of(step * (b + 1)), high = hertz_of(step * (b + 2));
        mel->band[b].weights = weight;
        for (int k = 0; k < mel->frequencies; k++) {
            const double hertz = (double)k * rate / mel->length;
            const double rise = (hertz - low) / (middle - low), fall = (high - hertz) / (high - middle);
            const double height = rise < fall ? rise : fall;
            if (height <= 0) continue;
            if (mel->band[b].count++ == 0) mel->band[b].first = k;
            *weight++ = (float)height;
        }
    }
}

static void fill_tables(struct mel *mel)
{
    for (int i = 0; i < mel->length; i++) mel->window[i] = (float)(0.5 - 0.5 * cos(turn * i / mel->length));
    for (int i = 0; i < mel->length / 2; i++) {
        mel->cosines[i] = (float)cos(turn * i / mel->length);
        mel->sines[i] = (float)sin(turn * i / mel->length);
    }
    for (int i = 0, bits = mel->length / 2; i < mel->length; i++)
        mel->reversed[i] = i / 2 < 1 ? i * bits : mel->reversed[i / 2] / 2 + (i & 1) * bits;
}

tutti_status mel_new(struct mel **made, int rate, int length, int hop, int bands)
{
    tutti_status status = TUTTI_NO_MEMORY;
    *made = NULL;
    if (length < 16 || length > 1 << 20 || (length & (length - 1)) || hop < 1 || bands < 1 || bands > 4096 || rate < 1)
        return fail(TUTTI_INVALID, "no spectrogram has %d bands of windows of %d", bands, length);
    struct mel *mel = memory_new(1, sizeof *mel);
    if (!mel) return status;
    mel->length = length;
    mel->hop = hop;
    mel->bands = bands;
    mel->frequencies = length / 2 + 1;
    mel->window = memory_new((size_t)length, sizeof *mel->window);
    mel->cosines = memory_new((size_t)length / 2, sizeof *mel->cosines);
    mel->sines = memory_new((size_t)length / 2, sizeof *mel->sines);
    mel->reversed = memory_new((size_t)length, sizeof *mel->reversed);
    mel->band = memory_new((size_t)bands, sizeof *mel->band);
    mel->weights = memory_new((size_t)mel->frequencies * 2, sizeof *mel->weights); /* each lies in two triangles */
    if (!mel->window || !mel->cosines || !mel->sines || !mel->reversed || !mel->band || !mel->weights) goto done;
    fill_tables(mel);
    fill_bands(mel, rate);
    *made = mel;
    return TUTTI_OK;
done:
    mel_free(mel);
    return status;
}

void mel_free(struct mel *mel)
{
    if (!mel) return;
    free(mel->window);
    free(mel->cosines);
    free(mel->sines);
    free(mel->reversed);
    free(mel->band);
    free(mel->weights);
    free(mel);
}

/* ------------------------------------------------------------------------------------------------- spectrum ---- */

/* Transforms in place, from elements in the order of `reversed`: Cooley and Tukey's butterflies. */
static void transform(const struct mel *mel, float *real, float *imaginary)
{
    for (int half = 1; half < mel->length; half *= 2) {
        const int stride = mel->length / 2 / half;
        for (int begin = 0; begin < mel->length; begin += 2 * half)
            for (int i = 0; i < half; i++) {
                const int a = begin + i, b = a + half;
                const float c = mel->cosines[i * stride], s = mel->sines[i * stride];
                const float x = real[b] * c + imaginary[b] * s, y = imaginary[b] * c - real[b] * s;
                real[b] = real[a] - x;
                imaginary[b] = imaginary[a] - y;
                real[a] += x;
                imaginary[a] += y;
            }
    }
}

/* Loads a frame, windowed, in the order that transform() wants. */
static void load(const struct mel *mel, const float *samples, int64_t count, int64_t frame, float *to)
{
    const int64_t begin = frame * mel->hop - mel->length / 2;
    for (int i = 0; i < mel->length; i++) {
        int64_t at = begin + i;
        if (at < 0) at = -at;
        if (at >= count) at = 2 * (count - 1) - at;
        to[mel->reversed[i]] = at >= 0 ? samples[at] * mel->window[i] : 0;
    }
}

/* Computes the power spectra of two real frames from the transform of one complex frame that has both. a comes from
 * its symmetric part. */
static void powers(const struct mel *mel, const float *real, const float *imaginary, float *a, float *b)
{
    for (int k = 0; k < mel->frequencies; k++) {
        const int other = (mel->length - k) & (mel->length - 1);
        const float x = real[k] + real[other], y = imaginary[k] - imaginary[other];
        const float u = imaginary[k] + imaginary[other], v = real[other] - real[k];
        a[k] = (x * x + y * y) / 4;
        b[k] = (u * u + v * v) / 4;
    }
}

static void sum_bands(const struct mel *mel, const float *power, int64_t frame, int64_t frames, float *spectrogram)
{
    for (int b = 0; b < mel->bands; b++) {
        float sum = 0;
        for (int i = 0; i < mel->band[b].count; i++) sum += power[mel->band[b].first + i] * mel->band[b].weights[i];
        spectrogram[b * frames + frame] = logf(sum + 1e-6f);
    }
}

int64_t mel_frames(const struct mel *mel, int64_t samples)
{
    return 1 + samples / mel->hop;
}

tutti_status mel_compute(const struct mel *mel, const float *samples, int64_t count, float *spectrogram)
{
    const int64_t frames = mel_frames(mel, count);
    const size_t length = (size_t)mel->length;
    float *real = memory_new(4 * length, sizeof *real);
    if (!real) return TUTTI_NO_MEMORY;
    float *imaginary = real + length, *a = imaginary + length, *b = a + length;
    for (int64_t frame = 0; frame < frames; frame += 2) {
        const bool two = frame + 1 < frames;
        load(mel, samples, count, frame, real);
        load(mel, samples, count, two ? frame + 1 : frame, imaginary);
        transform(mel, real, imaginary);
        powers(mel, real, imaginary, a, b);
        sum_bands(mel, a, frame, frames, spectrogram);
        if (two) sum_bands(mel, b, frame + 1, frames, spectrogram);
    }
    free(real);
    return TUTTI_OK;
}
