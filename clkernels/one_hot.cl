/* y [..][depth][inner]: `on` where the number along the axis is that of indices [..][inner], else `off`. Launched by
 * layers/one_hot.c: a work-item or task has `chunk` elements. Negative indices count from the end (indices.h). */
#include "indices.h"
#include "parameters.h"
#include "arguments/one_hot.h"
#include "vector.h"

kernel void one_hot(ONE_HOT_ARGUMENTS(PARAMETER))
{
    const long begin = (long)get_global_id(0) * chunk, end = min(begin + chunk, elements);
    for (long e = begin; e < end; e++) {
        const long line = e / inner;
        const int number = number_in(indices[line / depth * inner + e % inner], depth);
        y[e] = number == (int)(line % depth) ? on : off;
    }
}
