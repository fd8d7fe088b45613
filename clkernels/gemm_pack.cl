/* Packs op(A)'s rows or op(B)'s columns for gemm_pipelined.cl as pipeline.h says, rounded as COMPUTE says (compute.h). The
 * tile and its options: tile_product.h, of as many rows as columns, and form 6.
 *
 *   BY_LINE 1: the steps of a line follow one another in the matrix; else the lines of a step. FOURS 1: these are multiples
 *   of four floats. A matrix begins `first` floats into its buffer and `stride` after the one before it, the packed ones
 *   first_to chunks into theirs. Launched over (BM * CHUNKS * steps, line tiles, products). */
#include "parameters.h"
#include "arguments/gemm_pack.h"
#include "pipeline.h"

SUBGROUPS kernel void gemm_pack(PACK_ARGUMENTS(PARAMETER))
{
    const int step = get_global_id(0) / (BM * CHUNKS), place = get_global_id(0) % (BM * CHUNKS);
    const int chunk = place % CHUNKS, tile = get_global_id(1), product = get_global_id(2);
    const int line = tile * BM + place / CHUNKS, begin = step * BK + chunk * IN_FOUR;
    float x[IN_FOUR];
    from += first + product * stride + (BY_LINE ? (long)line * ld + begin : (long)begin * ld + line);
    UNROLL_GPU for (int i = 0; i < IN_FOUR; i += 4)
    {
        const int left = line < lines ? k - begin - i : 0;
#if BY_LINE && FOURS
        const float4 four = left > 0 ? *(global const float4 *)(from + i) : (float4)(0.0f);
        x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
#else
        UNROLL_GPU for (int l = 0; l < 4; l++) x[i + l] = l < left ? from[BY_LINE ? i + l : (long)(i + l) * ld] : 0.0f;
#endif
    }
    to += first_to + ((product * (long)get_global_size(1) + tile) * steps + step) * (BM * CHUNKS);
    to += place - chunk + SWIZZLED(place / CHUNKS, chunk);
#if COMPUTE == 1
    *to = as_uint4(ROUNDED(float4, (float4)(x[0], x[1], x[2], x[3])));
#else
    *to = (uint4)(PAIR(x[0], x[1]), PAIR(x[2], x[3]), PAIR(x[4], x[5]), PAIR(x[6], x[7]));
#endif
}
