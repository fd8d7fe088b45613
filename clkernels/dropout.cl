/* Dropout:   y[i] = random number of i >= threshold ? x[i] * scale : 0;   its gradient is the same on dy. y may be x.
 *
 * The random number of an element depends on seed, step, stream and its position in the whole batch alone:
 *   position p = (first_sample + n) * elements of a sample + i
 *   number     = word (p % 64) / 16 of Philox with the counter (p / 64 * 16 + p % 16, step, stream)
 * so that 16 consecutive blocks give 64 consecutive numbers: vectors of blocks need no shuffle. Threshold and scale:
 * probability * 2^32 and 1 / (1 - probability), from layers/dropout.c, which launches
 *   dropout_vectors  CPU class: tasks of `each` times 64 positions
 *   dropout_items    any device: a work-item for each block of Philox, four positions */
#include "parameters.h"
#include "arguments/dropout.h"
#include "random.h"
#include "step.h"
#if VECTORS
#include "vector.h"
#endif
#define DROPOUT_VECTORS VECTORS
#include "dropout.h"

#if VECTORS
TASK void dropout_vectors(DROPOUT_ARGUMENTS(PARAMETER) TASK_ARGUMENTS(PARAMETER))
{
    const ulong begin = (ulong)constants->first_sample * elements_of_sample;
    for (int part = 0; part < each; part++) {
        const ulong chunk = begin / 64 + get_group_id(0) * each + part; /* of 64 positions */
        for (int lane = 0; lane < 16; lane += V) {
            const ulong block = chunk * 16 + lane; /* its lower word cannot overflow within a chunk */
            HALF even[4] = { (HALF)(block) + HALF_NUMBERS, (HALF)(block >> 32), (HALF)(constants->step_low), (HALF)(stream) };
            HALF odd[4] = { even[0] + 1, even[1], even[2], even[3] };
            philox(KEY_LOW, KEY_HIGH, even);
            philox(KEY_LOW, KEY_HIGH, odd);
            UNROLL for (int word = 0; word < 4; word++)
            {
                const VU numbers = CONCATENATE(as_, VU)((even[word] & 0xFFFFFFFFul) | odd[word] << 32);
                const long at = (long)(chunk * 64 + 16 * word + lane - begin);
                if (at >= 0 && at + V <= total) {
                    const VF v = VLOAD(0, x + at) * scale;
                    VSTORE(select((VF)(0.0f), v, numbers >= threshold), 0, y + at);
                } else {
                    uint number[V];
                    CONCATENATE(vstore, V)(numbers, 0, number);
                    for (int i = 0; i < V; i++)
                        if (at + i >= 0 && at + i < total) y[at + i] = number[i] >= threshold ? x[at + i] * scale : 0.0f;
                }
            }
        }
    }
}
#else
PHILOX(philox, uint)

kernel void dropout_items(DROPOUT_ARGUMENTS(PARAMETER))
{
    const ulong begin = (ulong)constants->first_sample * elements_of_sample;
    const ulong block = begin / 64 * 16 + get_global_id(0);
    uint numbers[4];
    philox(KEY_LOW, KEY_HIGH, (uint)block, (uint)(block >> 32), constants->step_low, stream, numbers);
    for (int word = 0; word < 4; word++) {
        const long at = (long)(block / 16 * 64 + 16 * word + block % 16 - begin);
        if (at >= 0 && at < total) y[at] = numbers[word] >= threshold ? x[at] * scale : 0.0f;
    }
}
#endif
