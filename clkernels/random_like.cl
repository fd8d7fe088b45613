/* Random numbers:   y[i] = offset + scale * a number that is uniform in [0, 1), or with -DNORMAL=1 normal.
 *
 * As with dropout.cl, the number of an element depends on seed, step, stream and its position in the whole batch alone:
 *   position p = first_sample * elements_of_sample + i;   words = Philox with the counter (p / 4, step, stream)
 *   uniform    = the upper 24 bits of word p % 4, over 2^24
 *   normal     = Box and Muller (A note on the generation of random normal deviates, 1958) of words 0 and 1, or 2 and 3:
 *                sqrt(-2 log(1 - u)) times the cosine or the sine of 2 pi v, for their uniform numbers u and v
 * A value that is not of each sample has elements_of_sample 0. layers/random.c launches random_like with a work-item for
 * each block of Philox: four positions. */
#include "parameters.h"
#include "arguments/random_like.h"
#include "random.h"
#include "step.h"

#define TURN 6.28318531f
PHILOX(philox, uint)

static float uniform_of(uint word)
{
    return (float)(word >> 8) * 0x1p-24f; /* exact */
}

kernel void random_like(RANDOM_ARGUMENTS(PARAMETER))
{
    const ulong begin = (ulong)constants->first_sample * elements_of_sample;
    const ulong block = begin / 4 + get_global_id(0);
    uint words[4];
    float numbers[4];
    philox(constants->seed_low, constants->seed_high ^ constants->step_high, (uint)block, (uint)(block >> 32),
        constants->step_low, stream, words);
    for (int i = 0; i < 4; i += 2) {
        const float u = uniform_of(words[i]), v = uniform_of(words[i + 1]);
#if NORMAL
        const float radius = sqrt(-2.0f * log(1.0f - u)); /* 1 - u is exact, and not 0 */
        numbers[i] = radius * cos(TURN * v);
        numbers[i + 1] = radius * sin(TURN * v);
#else
        numbers[i] = u;
        numbers[i + 1] = v;
#endif
    }
    for (int i = 0; i < 4; i++) {
        const long at = (long)(block * 4 + i - begin);
        if (at >= 0 && at < total) y[at] = offset + scale * numbers[i];
    }
}
