/* Before a sync point of a batch normalisation (launch_sync): the statistics of all parts of this device's samples
 * become one, which is then exchanged. in: [parts][numbers][stride]; out: [numbers][stride], the first part of `in` or
 * another buffer. A group of GROUP work-items takes JOINED channels; launched by layers/batch_norm/batch_norm_kernels.c. */
#include "moments.h"
#include "sum.h"

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

/* Adds up two sums for each channel. */
kernel void join_sums(global const float *in, global float *out, int parts, int stride)
{
    CHANNEL
    float2 sum = (float2)(0.0f), error = (float2)(0.0f);
    for (int p = 0; p < parts; p++) {
        global const float *part = in + (size_t)p * 2 * stride + c;
        SUM_ADD(float2, sum, error, (float2)(part[0], part[stride]));
    }
    out[c] = sum.x;
    out[stride + c] = sum.y;
}
