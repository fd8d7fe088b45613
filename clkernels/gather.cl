/* y [samples][rows][count][inner]: elements of data by index (indices.h); 0 where there is no such element.
 * Launched by layers/gather.c; a slice is `inner` floats of y. data_sample: from one sample of data to the next; 0: all
 * have the same.
 * CPU class: a task is `piece` floats of each of `each` slices. GPU class: a work-item is one float. */
#include "indices.h"
#include "parameters.h"
#include "arguments/gather.h"
#include "vector.h"

kernel void gather(GATHER_ARGUMENTS(PARAMETER) INDICES_ARGUMENTS(PARAMETER))
{
    const int sizes[] = SIZES;
#if TUTTI_GPU
    const long begin = get_global_id(0) / inner, end = min(begin + 1, slices);
    const int first = get_global_id(0) % inner, last = first + 1;
#else
    const long begin = (long)get_group_id(1) * each, end = min(begin + each, slices);
    const int first = get_group_id(0) * piece, last = min(first + piece, inner);
#endif
    for (long slice = begin; slice < end; slice++) {
        const long k = slice % count, row = slice / count % rows, sample = slice / count / rows;
        global const INDEX *at = indices + sample * index_sample + row * index_row + k * index_next;
        global const float *from = data + sample * data_sample + row * axis * inner;
        global float *to = y + slice * inner;
        if (index_inner == 0) {
            const int element = element_of(at, numbers, sizes);
            for (int i = first; i < last; i++) to[i] = element < 0 ? 0.0f : from[(long)element * inner + i];
        } else {
            for (int i = first; i < last; i++) {
                const int element = element_of(at + (long)i * index_inner, numbers, sizes);
                to[i] = element < 0 ? 0.0f : from[(long)element * inner + i];
            }
        }
    }
}
