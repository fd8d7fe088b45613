/* Before devices meet at a batch normalisation (launch_meeting): the statistics of all parts of this device's samples
 * become one, which is then exchanged. in: [parts][numbers][stride]; out: [numbers][stride], the first part of `in` or
 * another buffer. One work-item per channel; launched by layers/batch_norm.c. */

/* Count, mean, sum of squared deviations (Chan, Golub, LeVeque 1979, as in batch_norm_cpu.cl). */
kernel void join_moments(global const float *in, global float *out, int parts, int stride)
{
    const int c = get_global_id(0);
    if (c >= stride) return;
    float count = 0.0f, mean = 0.0f, squares = 0.0f;
    for (int p = 0; p < parts; p++) {
        global const float *part = in + (size_t)p * 3 * stride + c;
        const float more = part[0], both = count + more, d = part[stride] - mean, w = more / both;
        mean = fma(d, w, mean);
        squares += fma(d * d, count * w, part[2 * stride]);
        count = both;
    }
    out[c] = count;
    out[stride + c] = mean;
    out[2 * stride + c] = squares;
}

/* Two sums. */
kernel void join_sums(global const float *in, global float *out, int parts, int stride)
{
    const int c = get_global_id(0);
    if (c >= stride) return;
    float a = 0.0f, b = 0.0f;
    for (int p = 0; p < parts; p++) {
        a += in[(size_t)p * 2 * stride + c];
        b += in[((size_t)p * 2 + 1) * stride + c];
    }
    out[c] = a;
    out[stride + c] = b;
}
