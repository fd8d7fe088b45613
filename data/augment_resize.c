/* Antialiased bilinear resampling, first across, then down, with bytes in between: as Pillow's ImagingResample, within
 * a level of it. Eight rows or eight pixels are one vector. Weights are whole numbers in floats, and all sums stay
 * below 2^24: the results are exact, and so the same on every machine. */
#include "base/memory.h"
#include "base/status.h"
#include "data/augment_steps.h"

#include <math.h>
#include <string.h>

enum { LANES = 8, ACROSS = 32 /* pixels of a row that are summed at once */ };
typedef float floats __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef int32_t whole __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef int16_t halves __attribute__((vector_size(LANES * sizeof(int16_t))));
typedef unsigned char bytes __attribute__((vector_size(LANES), aligned(1), may_alias));
#define INLINE static inline __attribute__((always_inline))

struct range range_of(double start, double length, bool cut, bool reversed, int picture, int decoded)
{
    const double scale = (double)decoded / picture;
    return (struct range) { start * scale, length * scale, decoded, cut, reversed };
}

/* ------------------------------------------------------------------------------------------------ weights ---- */

static double triangle(double x)
{
    return fabs(x) < 1 ? 1 - fabs(x) : 0;
}

static int within(double number, int low, int high)
{
    return number < low ? low : number > high ? high : (int)number;
}

/* The weights of one output whose centre is `centre`. They are rounded so that they add up to WEIGHT_ONE. */
static void weigh(struct taps *taps, int output, double centre, double support, float *weights)
{
    const int first = within(centre - support + 0.5, taps->low, taps->high - 1);
    const int end = within(centre + support + 0.5, first + 1, taps->high);
    double sum = 0, part = 0, before = 0;
    for (int i = first; i < end; i++) sum += triangle((i + 0.5 - centre) / support);
    for (int i = first; i < end; i++) {
        part += sum > 0 ? triangle((i + 0.5 - centre) / support) / sum : 1.0 / (end - first);
        const double rounded = i + 1 < end ? rint(part * WEIGHT_ONE) : WEIGHT_ONE;
        weights[i - first] = (float)(rounded - before);
        before = rounded;
    }
    taps->firsts[output] = first - taps->low;
    taps->counts[output] = end - first;
}

static tutti_status taps_make(struct taps *taps, const struct range *range, int outputs)
{
    const double step = range->length / outputs, support = step < 1 ? 1 : step;
    const size_t most = (size_t)(2 * support) + 3;
    size_t weights;
    void *indexes = taps->firsts, *numbers = taps->weights;
    tutti_status status = TUTTI_OK;
    if (!size_multiply(most, (size_t)outputs, &weights)) return fail(TUTTI_NO_MEMORY, "too many weights");
    TRY(memory_grow(&indexes, &taps->room, 3 * (size_t)outputs, sizeof(*taps->firsts)));
    taps->firsts = indexes;
    TRY(memory_grow(&numbers, &taps->weights_room, weights, sizeof(*taps->weights)));
    taps->weights = numbers;
    taps->counts = taps->firsts + outputs;
    taps->starts = taps->counts + outputs;
    taps->outputs = outputs;
    taps->low = range->cut ? within(floor(range->start + 1e-6), 0, range->size - 1) : 0;
    taps->high =
        range->cut ? within(ceil(range->start + range->length - 1e-6), taps->low + 1, range->size) : range->size;
    for (int i = 0; i < outputs; i++) {
        const int output = range->reversed ? outputs - 1 - i : i;
        taps->starts[output] = i * (int)most;
        weigh(taps, output, range->start + (i + 0.5) * step, support, taps->weights + (size_t)i * most);
    }
    /* Inputs that no output reads are left out. */
    const int ends[] = { range->reversed ? outputs - 1 : 0, range->reversed ? 0 : outputs - 1 };
    const int skipped = taps->firsts[ends[0]];
    taps->high = taps->low + taps->firsts[ends[1]] + taps->counts[ends[1]];
    taps->low += skipped;
    for (int i = 0; i < outputs; i++) taps->firsts[i] -= skipped;
done:
    return status;
}

/* ------------------------------------------------------------------------------------------------ passes ---- */

/* Exchanges the upper parts of words with the lower parts of those `apart` words further on. */
#define EXCHANGE(i, apart, mask)                                                     \
    do {                                                                             \
        const uint64_t differ = ((w[i] >> 8 * (apart)) ^ w[(i) + (apart)]) & (mask); \
        w[i] ^= differ << 8 * (apart);                                               \
        w[(i) + (apart)] ^= differ;                                                  \
    } while (0)
#define EXCHANGE_4(a, b, c, d, apart, mask) \
    do {                                    \
        EXCHANGE(a, apart, mask);           \
        EXCHANGE(b, apart, mask);           \
        EXCHANGE(c, apart, mask);           \
        EXCHANGE(d, apart, mask);           \
    } while (0)

/* Turns 8 x 8 bytes: byte j of word i becomes byte i of word j. */
INLINE void turn(uint64_t w[8])
{
    EXCHANGE_4(0, 2, 4, 6, 1, 0x00ff00ff00ff00ff);
    EXCHANGE_4(0, 1, 4, 5, 2, 0x0000ffff0000ffff);
    EXCHANGE_4(0, 1, 2, 3, 4, 0x00000000ffffffff);
}

/* Pointers: vectors as parameters depend on what a caller is compiled for. In two steps, which gcc translates well. */
INLINE void read_floats(const void *from, floats *to)
{
    bytes read;
    memcpy(&read, from, sizeof(read));
    *to = __builtin_convertvector(__builtin_convertvector(__builtin_convertvector(read, halves), whole), floats);
}

INLINE void write_rounded(const floats *sum, void *to)
{
    const halves high = __builtin_convertvector(__builtin_convertvector(*sum, whole) >> 16, halves);
    const bytes rounded = __builtin_convertvector(high, bytes);
    memcpy(to, &rounded, sizeof(rounded));
}

/* Eight rows of `count` bytes each as columns of eight floats. */
INLINE void to_columns(const unsigned char *const rows[LANES], int count, float *columns)
{
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        uint64_t words[8];
        for (int row = 0; row < LANES; row++) memcpy(words + row, rows[row] + i, 8);
        turn(words);
        for (int j = 0; j < 8; j++) read_floats(words + j, (floats *)(columns + (i + j) * LANES));
    }
    for (; i < count; i++)
        for (int row = 0; row < LANES; row++) columns[i * LANES + row] = rows[row][i];
}

/* Eight rows become narrower or wider; row r of channel c begins at `to` + (r * channels + c) * stride. */
INLINE void pass_across(const struct taps *taps, const float *columns, int channels, unsigned char *to, int stride)
{
    for (int x = 0; x < taps->outputs; x += LANES) {
        const int some = taps->outputs - x < LANES ? taps->outputs - x : LANES;
        uint64_t words[3][LANES];
        if (some < LANES) memset(words, 0, sizeof(words));
        for (int i = 0; i < some; i++) {
            const int count = taps->counts[x + i];
            const float *weights = taps->weights + taps->starts[x + i];
            const float *from = columns + (size_t)taps->firsts[x + i] * (size_t)(channels * LANES);
            floats sums[3];
            for (int c = 0; c < channels; c++) sums[c] = (floats) { 0 } + WEIGHT_ONE / 2;
            for (int k = 0; k < count; k++, from += channels * LANES)
                for (int c = 0; c < channels; c++) sums[c] += weights[k] * *(const floats *)(from + c * LANES);
            for (int c = 0; c < channels; c++) write_rounded(&sums[c], &words[c][i]);
        }
        for (int c = 0; c < channels; c++) {
            turn(words[c]);
            for (int row = 0; row < LANES; row++) memcpy(to + (row * channels + c) * stride + x, &words[c][row], 8);
        }
    }
}

/* One row of one channel, from rows that are `stride` bytes apart. */
INLINE void pass_down(
    const unsigned char *rows, size_t stride, const float *weights, int count, int width, unsigned char *to)
{
    for (int x = 0; x < width; x += ACROSS) {
        const unsigned char *from = rows + x;
        unsigned char result[ACROSS];
        float sums[ACROSS];
        for (int i = 0; i < ACROSS; i++) sums[i] = WEIGHT_ONE / 2;
        for (int k = 0; k < count; k++, from += stride)
            for (int i = 0; i < ACROSS; i++) sums[i] += weights[k] * from[i];
        for (int i = 0; i < ACROSS; i++) result[i] = (unsigned char)((int)sums[i] >> 16);
        memcpy(to + x, result, (size_t)(width - x < ACROSS ? width - x : ACROSS));
    }
}

struct passes {
    const struct image *image;
    const struct taps *across, *down;
    float *columns;
    unsigned char *rows, *sample;
    int stride; /* bytes of a row of one channel in `rows` */
};

INLINE void both_passes(const struct passes *p, int channels)
{
    const int high = p->down->high - p->down->low, width = p->across->outputs, height = p->down->outputs;
    const int count = (p->across->high - p->across->low) * channels;
    const size_t row = (size_t)p->stride * (size_t)channels;
    for (int y = 0; y < high; y += LANES) {
        const unsigned char *from[LANES];
        for (int i = 0; i < LANES; i++) {
            const size_t at = (size_t)(p->down->low + (y + i < high ? y + i : high - 1));
            from[i] = p->image->pixels + (at * (size_t)p->image->width + (size_t)p->across->low) * (size_t)channels;
        }
        to_columns(from, count, p->columns);
        pass_across(p->across, p->columns, channels, p->rows + (size_t)y * row, p->stride);
    }
    for (int y = 0; y < height; y++) {
        const unsigned char *from = p->rows + (size_t)p->down->firsts[y] * row;
        for (int c = 0; c < channels; c++)
            pass_down(from + c * p->stride, row, p->down->weights + p->down->starts[y], p->down->counts[y], width,
                p->sample + ((size_t)c * (size_t)height + (size_t)y) * (size_t)width);
    }
}

INLINE void passes_of(const struct passes *passes)
{
    if (passes->image->channels == 1)
        both_passes(passes, 1);
    else
        both_passes(passes, 3);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void passes_avx2(const struct passes *passes)
{
    passes_of(passes);
}
#endif

static void passes_any(const struct passes *passes)
{
    passes_of(passes);
}

tutti_status resize(const struct image *image, const struct range *across, const struct range *down, int to_width,
    int to_height, struct augment_scratch *scratch, unsigned char *sample)
{
    tutti_status status = TUTTI_OK;
    TRY(taps_make(&scratch->across, across, to_width));
    TRY(taps_make(&scratch->down, down, to_height));
    const size_t channels = (size_t)image->channels, stride = size_round_up((size_t)to_width, ACROSS);
    const size_t wide = (size_t)(scratch->across.high - scratch->across.low);
    const size_t high = size_round_up((size_t)(scratch->down.high - scratch->down.low), LANES);
    size_t bytes_of_rows;
    if (!size_multiply(stride * channels, high, &bytes_of_rows)) FAIL(TUTTI_NO_MEMORY, "the image is too large");
    TRY(memory_grow(&scratch->columns, &scratch->columns_room, wide * channels * LANES, sizeof(float)));
    TRY(memory_grow(&scratch->rows, &scratch->rows_room, bytes_of_rows, 1));
    const struct passes passes = { image, &scratch->across, &scratch->down, scratch->columns, scratch->rows, sample,
        (int)stride };
    void (*run)(const struct passes *) = passes_any;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) run = passes_avx2;
#endif
    run(&passes);
done:
    return status;
}

/* The input nearest to an output. */
static int nearest(const struct range *range, int outputs, int output)
{
    const int i = range->reversed ? outputs - 1 - output : output;
    return within(floor(range->start + (i + 0.5) * (range->length / outputs)), 0, range->size - 1);
}

void resize_nearest(const struct image *image, const struct range *across, const struct range *down, int to_width,
    int to_height, int32_t *classes)
{
    for (int y = 0; y < to_height; y++) {
        const unsigned char *row =
            image->pixels + (size_t)nearest(down, to_height, y) * (size_t)image->width * (size_t)image->channels;
        for (int x = 0; x < to_width; x++) *classes++ = row[nearest(across, to_width, x) * image->channels];
    }
}
