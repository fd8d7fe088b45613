/* The weights of conv2d as conv2d_implicit_gemm.cl reads them: [group][tap][source channels, up to a multiple of BK][result
 * channels, up to one of BM], padded with zeros. flat: the padding is after the last tap only. gradient: source and result
 * change places. Launched by layers/conv2d/conv2d_implicit_gemm.c with one work-item for each element.
 *
 * w [K][C][taps], K over all groups, C of one; CS, CR: channels of source and result of a group; CSP, CRP: padded. */
#include "parameters.h"
#include "arguments/conv2d_pack_gpu.h"
kernel void pack(PACK_ARGUMENTS(PARAMETER))
{
    const int i = get_global_id(0);
    if (i >= count) return;
    const int to = i % CRP, row = i / CRP;
    const int group = flat ? row / CSP : row / (CSP * taps), tap = flat ? row % CSP / CS : row / CSP % taps;
    const int from = flat ? row % CSP % CS : row % CSP;
    const bool exists = tap < taps && from < CS && to < CR;
    const long at = gradient ? ((long)group * CS + from) * CR + to : ((long)group * CR + to) * CS + from;
    packed[i] = exists ? w[at * taps + tap] : 0.0f;
}
