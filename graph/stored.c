#include "graph/stored.h"

#include "base/bf16.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

/* Where the scales of a row begin, in bytes. */
static size_t scales_of(int64_t length)
{
    return size_round_up((size_t)length, sizeof(float));
}

size_t stored_row_bytes(enum value_type type, int64_t length)
{
    if (type == TYPE_INT8) return scales_of(length) + (size_t)divide_up(length, STORED_BLOCK) * sizeof(float);
    return (size_t)length * (type == TYPE_BF16 ? sizeof(uint16_t) : sizeof(float));
}

/* Returns the scale of a block. */
static float scale_of(const float *numbers, int64_t count)
{
    float largest = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(numbers[i])) return NAN;
        largest = fmaxf(largest, fabsf(numbers[i]));
    }
    const float scale = largest / 127;
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    bits = (bits + 0xff) & ~(uint32_t)0xff;
    float rounded;
    memcpy(&rounded, &bits, sizeof rounded);
    return rounded;
}

static void write_block(const float *from, int64_t count, int8_t *to, float *scale)
{
    const float factor = *scale = scale_of(from, count);
    for (int64_t i = 0; i < count; i++) to[i] = factor > 0 ? (int8_t)rintf(from[i] / factor) : 0;
}

static void read_row(const unsigned char *from, int64_t length, float *to)
{
    const size_t scales = scales_of(length);
    for (int64_t i = 0; i < length; i++) {
        float scale;
        memcpy(&scale, from + scales + (size_t)(i / STORED_BLOCK) * sizeof scale, sizeof scale);
        to[i] = scale * (float)(int8_t)from[i];
    }
}

void stored_write(enum value_type type, int64_t length, int64_t first, int64_t count, const float *from, void *row)
{
    const size_t scales = scales_of(length);
    unsigned char *bytes = row;
    uint16_t *halves = row;
    if (type == TYPE_F32) memcpy(bytes + (size_t)first * sizeof(float), from, (size_t)count * sizeof(float));
    for (int64_t i = 0; type == TYPE_BF16 && i < count; i++) halves[first + i] = bf16_from_float(from[i]);
    for (int64_t i = 0; type == TYPE_INT8 && i < count; i += STORED_BLOCK) {
        const int64_t left = count - i, block = (first + i) / STORED_BLOCK;
        float scale;
        write_block(from + i, left < STORED_BLOCK ? left : STORED_BLOCK, (int8_t *)bytes + first + i, &scale);
        memcpy(bytes + scales + (size_t)block * sizeof scale, &scale, sizeof scale);
    }
}

void stored_read(enum value_type type, int64_t rows, int64_t length, const void *from, float *to)
{
    const uint16_t *halves = from;
    if (type == TYPE_F32) memcpy(to, from, (size_t)(rows * length) * sizeof(float));
    for (int64_t i = 0; type == TYPE_BF16 && i < rows * length; i++) to[i] = bf16_to_float(halves[i]);
    for (int64_t r = 0; type == TYPE_INT8 && r < rows; r++)
        read_row((const unsigned char *)from + (size_t)r * stored_row_bytes(type, length), length, to + r * length);
}
