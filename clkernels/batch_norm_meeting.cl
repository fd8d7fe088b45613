/* Before devices meet at a batch normalisation (launch_meeting): the statistics of all parts of this device's samples
 * become one, which is then exchanged. in: [parts][numbers][stride]; out: [numbers][stride], the first part of `in` or
 * another buffer. A group of GROUP work-items takes JOINED channels; launched by layers/batch_norm_kernels.c. */
#include "moments.h"

/* This work-item's channel, of the first ones of the group. */
#define CHANNEL                                                                                                        \
    const int c = get_group_id(0) * JOINED + get_local_id(0);                                                          \
    if (get_local_id(0) >= JOINED || c >= stride) return;

kernel void join_moments(global const float *in, global float *out, int parts, int stride)
{
    local float4 scratch[GROUP];
    const float4 all = moments_of_parts(in, parts, stride, stride, JOINED, scratch);
    CHANNEL
    out[c] = all.x;
    out[stride + c] = all.y;
    out[2 * stride + c] = all.z;
}

/* Two sums. */
kernel void join_sums(global const float *in, global float *out, int parts, int stride)
{
    CHANNEL
    float a = 0.0f, b = 0.0f;
    for (int p = 0; p < parts; p++) {
        a += in[(size_t)p * 2 * stride + c];
        b += in[((size_t)p * 2 + 1) * stride + c];
    }
    out[c] = a;
    out[stride + c] = b;
}
