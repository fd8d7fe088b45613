#include "data/resample.h"

#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* MOST_KEPT weights are kept; BLOCK inputs are read at a time. */
enum { ZEROS = 6, MOST_KEPT = 1 << 20, BLOCK = 1 << 16 };
static const double rolloff = 0.99, pi = 3.14159265358979323846;

struct resampler {
    int64_t from, to; /* without common factors: `to` outputs lie at different places between two inputs */
    double scale;     /* zeros of the sinc from one input to the next */
    int reach, taps;  /* inputs on each side of an output, and in all */
    bool keeps;       /* weights has a row for each place; otherwise one, which is computed again and again */
    float *weights;   /* [to or 1][taps] */
    float *inputs;
    int64_t at_once; /* outputs of a block */
};

static int64_t divisor_of(int64_t a, int64_t b)
{
    return b ? divisor_of(b, a % b) : a;
}

bool resample_is_possible(int from, int to)
{
    const int low = from < to ? from : to, high = from < to ? to : from;
    return low > 0 && high / low < RESAMPLE_MOST_RATIO + (high % low == 0);
}

tutti_status resample_open(const char *path, int rate, struct sound *sound)
{
    const tutti_status status = sound_open(path, sound);
    if (status != TUTTI_OK || rate == 0 || resample_is_possible(sound->rate, rate)) return status;
    const int own = sound->rate;
    sound_close(sound);
    return fail(TUTTI_FORMAT, "%s: it has %d samples a second: samples of %d are made of %d times as many at most",
        path, own, rate, RESAMPLE_MOST_RATIO);
}

int64_t resample_length(int from, int to, int64_t frames)
{
    const int64_t divisor = divisor_of(from, to), most = INT64_MAX / 2 / RESAMPLE_MOST_RATIO;
    const int64_t in = from / divisor, out = to / divisor, counted = frames < most ? frames : most;
    return counted / in * out + (counted % in * out + in - 1) / in;
}

/* Computes the weights of an output that lies `place` / to inputs after the one in the middle of the row. */
static void fill_row(const struct resampler *resampler, int64_t place, float *row)
{
    for (int i = 0; i < resampler->taps; i++) {
        const double inputs = i - resampler->reach - (double)place / (double)resampler->to;
        const double t = inputs * resampler->scale, root = cos(t * pi / ZEROS / 2);
        const double sinc = t == 0 ? 1 : sin(t * pi) / (t * pi);
        row[i] = fabs(t) < ZEROS ? (float)(sinc * root * root * resampler->scale) : 0;
    }
}

static tutti_status begin(struct resampler *resampler, int from, int to, int64_t count)
{
    const int64_t divisor = divisor_of(from, to);
    *resampler = (struct resampler) { .from = from / divisor, .to = to / divisor };
    resampler->scale = rolloff * (from < to ? from : to) / from;
    resampler->reach = (int)ceil(ZEROS / resampler->scale);
    resampler->taps = 2 * resampler->reach + 1;
    resampler->keeps = resampler->to <= count && resampler->to <= MOST_KEPT / resampler->taps;
    resampler->at_once = 1 + BLOCK * resampler->to / resampler->from;
    if (resampler->at_once > BLOCK) resampler->at_once = BLOCK;
    const size_t rows = resampler->keeps ? (size_t)resampler->to : 1, taps = (size_t)resampler->taps;
    const size_t inputs = (size_t)(resampler->at_once * resampler->from / resampler->to) + 2 + taps;
    resampler->weights = memory_new(rows * taps, sizeof *resampler->weights);
    resampler->inputs = memory_new(inputs, sizeof *resampler->inputs);
    if (!resampler->weights || !resampler->inputs) return TUTTI_NO_MEMORY;
    for (size_t i = 0; resampler->keeps && i < rows; i++)
        fill_row(resampler, (int64_t)i, resampler->weights + i * taps);
    return TUTTI_OK;
}

static void end(struct resampler *resampler)
{
    free(resampler->weights);
    free(resampler->inputs);
}

/* Returns the input that is at an output or before it; *place tells how far behind it the output is. */
static int64_t input_of(const struct resampler *resampler, int64_t output, int64_t *place)
{
    const int64_t way = output % resampler->to * resampler->from;
    *place = way % resampler->to;
    return output / resampler->to * resampler->from + way / resampler->to;
}

/* Inputs from `first` on, with silence outside of the recording. */
static tutti_status read_inputs(struct sound *sound, int64_t first, int64_t count, float *inputs)
{
    const int64_t from = first > 0 ? first : 0, to = first + count < sound->frames ? first + count : sound->frames;
    memset(inputs, 0, (size_t)count * sizeof *inputs);
    return from < to ? sound_read(sound, from, to - from, inputs + (from - first)) : TUTTI_OK;
}

static tutti_status read_block(
    const struct resampler *resampler, struct sound *sound, int64_t first, int64_t count, float *mono)
{
    int64_t place;
    const int64_t begins = input_of(resampler, first, &place) - resampler->reach;
    const int64_t ends = input_of(resampler, first + count - 1, &place) + resampler->reach + 1;
    const tutti_status status = read_inputs(sound, begins, ends - begins, resampler->inputs);
    for (int64_t i = 0; i < count && status == TUTTI_OK; i++) {
        const float *input = resampler->inputs + (input_of(resampler, first + i, &place) - resampler->reach - begins);
        float *row = resampler->weights + (resampler->keeps ? place * resampler->taps : 0);
        double sum = 0;
        if (!resampler->keeps) fill_row(resampler, place, row);
        for (int k = 0; k < resampler->taps; k++) sum += (double)(input[k] * row[k]);
        mono[i] = (float)sum;
    }
    return status;
}

tutti_status resample_read(struct sound *sound, int rate, int64_t first, int64_t count, float *mono)
{
    struct resampler resampler;
    if (sound->rate == rate) return sound_read(sound, first, count, mono);
    tutti_status status = begin(&resampler, sound->rate, rate, count);
    for (int64_t at = 0; at < count && status == TUTTI_OK; at += resampler.at_once) {
        const int64_t block = count - at < resampler.at_once ? count - at : resampler.at_once;
        status = read_block(&resampler, sound, first + at, block, mono + at);
    }
    end(&resampler);
    return status;
}
