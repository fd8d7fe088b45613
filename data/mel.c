#include "data/mel.h"

#include "base/mel_scale.h"
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
    double *cosines, *sines; /* of k / length turns, k below length / 2 */
    int *reversed;           /* indexes with their bits in the other order */
    struct band *band;
    float *weights;
};

/* ------------------------------------------------------------------------------------------------- triangles ---- */

static void fill_bands(struct mel *mel, int rate)
{
    float *weight = mel->weights;
    for (int b = 0; b < mel->bands; b++) {
        const struct mel_triangle triangle = mel_triangle_of(b, mel->bands, rate);
        mel->band[b].weights = weight;
        for (int k = 0; k < mel->frequencies; k++) {
            const float height = mel_weight(&triangle, (double)k * rate / mel->length);
            if (height <= 0) continue;
            if (mel->band[b].count++ == 0) mel->band[b].first = k;
            *weight++ = height;
        }
    }
}

static void fill_tables(struct mel *mel)
{
    for (int i = 0; i < mel->length; i++) mel->window[i] = mel_window_at(i, mel->length);
    for (int i = 0; i < mel->length / 2; i++) {
        mel->cosines[i] = cos(turn * i / mel->length);
        mel->sines[i] = sin(turn * i / mel->length);
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

/* Transforms in place, from elements in the order of `reversed`: Cooley and Tukey's butterflies. In doubles: what is
 * nearly silent next to a loud tone would drown in the rounding of floats. */
static void transform(const struct mel *mel, double *real, double *imaginary)
{
    for (int a = 0; a < mel->length; a += 2) { /* pairs, whose factor is 1 */
        const double x = real[a + 1], y = imaginary[a + 1];
        real[a + 1] = real[a] - x;
        imaginary[a + 1] = imaginary[a] - y;
        real[a] += x;
        imaginary[a] += y;
    }
    for (int half = 2; half < mel->length; half *= 2) {
        const int stride = mel->length / 2 / half;
        for (int begin = 0; begin < mel->length; begin += 2 * half)
            for (int i = 0; i < half; i++) {
                const int a = begin + i, b = a + half;
                const double c = mel->cosines[i * stride], s = mel->sines[i * stride];
                const double x = real[b] * c + imaginary[b] * s, y = imaginary[b] * c - real[b] * s;
                real[b] = real[a] - x;
                imaginary[b] = imaginary[a] - y;
                real[a] += x;
                imaginary[a] += y;
            }
    }
}

/* Loads a frame, windowed, in the order that transform() wants. */
static void load(const struct mel *mel, const float *samples, int64_t count, int64_t frame, double *to)
{
    const int64_t begin = frame * mel->hop - mel->length / 2;
    const bool inside = begin >= 0 && begin + mel->length <= count;
    for (int i = 0; i < mel->length && inside; i++)
        to[mel->reversed[i]] = (double)samples[begin + i] * (double)mel->window[i];
    for (int i = 0; i < mel->length && !inside; i++) {
        int64_t at = begin + i;
        if (at < 0) at = -at;
        if (at >= count) at = 2 * (count - 1) - at;
        to[mel->reversed[i]] = at >= 0 ? (double)samples[at] * (double)mel->window[i] : 0;
    }
}

/* Computes the power spectra of two real frames from the transform of one complex frame that has both. a comes from
 * its symmetric part. */
static void powers(const struct mel *mel, const double *real, const double *imaginary, float *a, float *b)
{
    for (int k = 0; k < mel->frequencies; k++) {
        const int other = (mel->length - k) & (mel->length - 1);
        const double x = real[k] + real[other], y = imaginary[k] - imaginary[other];
        const double u = imaginary[k] + imaginary[other], v = real[other] - real[k];
        a[k] = (float)((x * x + y * y) / 4);
        b[k] = (float)((u * u + v * v) / 4);
    }
}

static void sum_bands(const struct mel *mel, const float *power, int64_t frame, int64_t frames, float *spectrogram)
{
    for (int b = 0; b < mel->bands; b++) {
        float sum = 0;
        for (int i = 0; i < mel->band[b].count; i++) sum += power[mel->band[b].first + i] * mel->band[b].weights[i];
        spectrogram[b * frames + frame] = logf(sum + MEL_LEAST_POWER);
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
    double *real = memory_new(3 * length, sizeof *real);
    if (!real) return TUTTI_NO_MEMORY;
    double *imaginary = real + length;
    float *a = (float *)(imaginary + length), *b = a + length;
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
