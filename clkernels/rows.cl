/* Copies `rows` rows of `width` floats between two arrays whose rows are further apart: joining and cutting tensors.
 *
 *   out[r * out_stride + i] = ACTIVATION(in[r * in_stride + i] + add[r * out_stride + i])     i < width
 *
 * The caller has added the offsets of the first row: in_first, out_first. `add` may be `out`.
 * Launched by layers/concat.c. CPU class: get_global_id(0) is a piece of `chunk` floats of a row, (1) the first of the rows
 * that this task copies, of which there are get_global_size(1) in parallel. GPU class: the same, with groups of 64
 * work-items on neighbouring floats. */
#include "parameters.h"
#include "arguments/rows.h"
#include "vector.h"
#include "epilogue.h"

kernel void copy_rows(COPY_ARGUMENTS(PARAMETER))
{
    for (long r = get_global_id(1); r < rows; r += get_global_size(1)) {
        global const float *from = in + in_first + r * in_stride;
        global float *to = out + out_first + r * out_stride;
#if TUTTI_GPU
        const long i = get_global_id(0);
        if (i < width) {
            float v = from[i] PLUS_ADDED(out_first + r * out_stride + i);
            to[i] = ACTIVATION(v);
        }
#else
        long i = get_global_id(0) * chunk;
        const long end = min(width, i + chunk);
        for (; i + V <= end; i += V) {
            VF v = *(global const VF_unaligned *)(from + i);
#if ADD
            v += *(global const VF_unaligned *)(add + out_first + r * out_stride + i);
#endif
            *(global VF_unaligned *)(to + i) = ACTIVATION(v);
        }
        for (; i < end; i++) {
            float v = from[i] PLUS_ADDED(out_first + r * out_stride + i);
            to[i] = ACTIVATION(v);
        }
#endif
    }
}
