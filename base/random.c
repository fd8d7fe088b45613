#include "base/random.h"

#include <math.h>
#include <string.h>

/* Constants and rounds of Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11,
 * section 3.2. */
static inline __attribute__((always_inline)) void rounds(
    const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void philox4x32(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    rounds(key, counter, out);
}

/* The last word of the counter keeps the three kinds of draws apart, so that they may share a stream and an index. */
enum draw { DRAW_BITS, DRAW_NORMAL, DRAW_BELOW };

static void block(uint64_t seed, uint32_t stream, uint64_t index, enum draw draw, uint32_t out[4])
{
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    const uint32_t counter[4] = { (uint32_t)index, (uint32_t)(index >> 32), stream, (uint32_t)draw };
    philox4x32(key, counter, out);
}

uint32_t random_bits(uint64_t seed, uint32_t stream, uint64_t index)
{
    uint32_t out[4];
    block(seed, stream, index / 4, DRAW_BITS, out);
    return out[index % 4];
}

float random_uniform(uint64_t seed, uint32_t stream, uint64_t index)
{
    return (float)(random_bits(seed, stream, index) >> 8) * 0x1p-24f;
}

/* ------------------------------------------------------------------------------------------ normal numbers ---- */

/* Logarithm and cosine by their series, in sums and products alone: the compiler makes vectors of them, and every
 * machine gets the same numbers. Within some 1e-15 of the true ones. */
#define NUMBER static inline __attribute__((always_inline)) double

/* -log((bits + 1) / 2^32), with x = (bits + 1) / 2^n in [0.7, 1.4) and log(x) = 2 atanh((x - 1) / (x + 1)). */
NUMBER minus_log(uint32_t bits)
{
    const double number = (double)bits + 1;
    const uint64_t below = 0x3fe6a09e00000000; /* the square root of 1/2 */
    uint64_t image;
    double x, sum = 0;
    memcpy(&image, &number, sizeof(image));
    const uint64_t above = image - below;
    const int32_t n = (int32_t)(above >> 52) - 32;
    image = (above & 0xfffffffffffff) + below;
    memcpy(&x, &image, sizeof(x));
    const double s = (x - 1) / (x + 1), z = s * s;
    for (int i = 21; i > 1; i -= 2) sum = (sum + 1.0 / i) * z;
    return n * -0.6931471805599453 - 2 * (s + s * sum);
}

/* cos(2 pi bits / 2^32), by the distance to the nearest quarter of a turn. */
NUMBER cosine(uint32_t bits)
{
    const uint32_t quarter = (bits + (1u << 29)) >> 30;
    const double x = 0x1.921fb54442d18p-30 * (int32_t)(bits - (quarter << 30)), z = x * x;
    double even = 0, odd = 0;
    for (int i = 16; i > 0; i -= 2) {
        even = -(even + 1) * z * (1.0 / (i * (i - 1)));
        odd = -(odd + 1) * z * (1.0 / (i * (i + 1)));
    }
    const double value = quarter & 1 ? x + x * odd : 1 + even;
    return ((quarter + 1) & 2) ? -value : value;
}

float random_normal(uint64_t seed, uint32_t stream, uint64_t index)
{
    uint32_t out[4];
    block(seed, stream, index, DRAW_NORMAL, out);
    return (float)(sqrt(2 * minus_log(out[0])) * cosine(out[1]));
}

enum { AT_ONCE = 256 };

static inline __attribute__((always_inline)) void normals(
    uint64_t seed, uint32_t stream, uint64_t first, int count, float *numbers)
{
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    double squares[AT_ONCE], cosines[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        const uint64_t index = first + (uint64_t)i;
        const uint32_t counter[4] = { (uint32_t)index, (uint32_t)(index >> 32), stream, (uint32_t)DRAW_NORMAL };
        uint32_t out[4];
        rounds(key, counter, out);
        squares[i] = 2 * minus_log(out[0]);
        cosines[i] = cosine(out[1]);
    }
    for (int i = 0; i < count; i++) numbers[i] = (float)(sqrt(squares[i]) * cosines[i]);
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512dq"))) static void normals_avx512(
    uint64_t seed, uint32_t stream, uint64_t first, int count, float *numbers)
{
    normals(seed, stream, first, count, numbers);
}
#endif

static void normals_any(uint64_t seed, uint32_t stream, uint64_t first, int count, float *numbers)
{
    normals(seed, stream, first, count, numbers);
}

void random_normals(uint64_t seed, uint32_t stream, uint64_t first, size_t count, float *numbers)
{
    void (*fill)(uint64_t, uint32_t, uint64_t, int, float *) = normals_any;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) fill = normals_avx512;
#endif
    for (size_t done = 0; done < count; done += AT_ONCE)
        fill(seed, stream, first + done, count - done < AT_ONCE ? (int)(count - done) : AT_ONCE, numbers + done);
}

/* The upper 64 bits of a 64 x 64 bit product. */
static uint64_t multiply_high(uint64_t a, uint64_t b)
{
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
    uint64_t other = a0 * b1 + (uint32_t)middle;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

uint64_t random_below(uint64_t seed, uint32_t stream, uint64_t index, uint64_t bound)
{
    uint32_t out[4];
    block(seed, stream, index, DRAW_BELOW, out);
    return multiply_high((uint64_t)out[1] << 32 | out[0], bound);
}
