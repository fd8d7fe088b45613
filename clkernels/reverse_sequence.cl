/* y is x, with the first elements along an axis in reverse order, as many as lengths says: `times` elements along it,
 * from one to the next `inner`. The length is that of the sample (`sample` elements of x; length_sample from one to the
 * next) and of the place along another axis (batches, batch_inner; length_next). Launched by layers/reverse_sequence.c:
 * a work-item or task has `chunk` elements. */
#include "indices.h"
#include "parameters.h"
#include "arguments/reverse_sequence.h"
#include "vector.h"

kernel void reverse_sequence(REVERSE_ARGUMENTS(PARAMETER))
{
    const long begin = (long)get_global_id(0) * chunk, end = min(begin + chunk, elements);
    for (long e = begin; e < end; e++) {
        const long time = e / inner % times, batch = e / batch_inner % batches;
        const INDEX length = lengths[e / sample * length_sample + batch * length_next];
        const long last = min(WHOLE ? (long)length : (long)(length + 0.5f), (long)times) - 1;
        y[e] = x[time <= last ? e + (last - 2 * time) * inner : e];
    }
}
