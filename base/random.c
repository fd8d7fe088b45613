#include "base/random.h"

#include <math.h>

/* Constants and rounds of Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11,
 * section 3.2. */
void philox4x32(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
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

float random_normal(uint64_t seed, uint32_t stream, uint64_t index)
{
    uint32_t out[4];
    block(seed, stream, index, DRAW_NORMAL, out);
    double u = ((double)out[0] + 1) * 0x1p-32; /* (0, 1]: its logarithm is finite */
    double angle = 6.283185307179586 * ((double)out[1] * 0x1p-32);
    return (float)(sqrt(-2 * log(u)) * cos(angle));
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
