/* Probes of a device and driver, launched by runtime/check.c with one group of 64 work-items: known answers for
 * arithmetic on floats and ints, for copies, and for local memory with barriers. The host computes the same and compares. */

/* out[i] = in[i]: a driver that cannot do this cannot do anything. */
kernel void check_copy(global const float *in, global float *out)
{
    int i = get_global_id(0);
    out[i] = in[i];
}

/* Exact on the small integers that the host sends: products, sums, vectors of four, integer division and remainder. */
kernel void check_arithmetic(global const float *in, global float *out)
{
    int i = get_global_id(0);
    float4 v = (float4)(in[i], in[(i + 1) % 64], in[(i + 2) % 64], in[(i + 3) % 64]);
    float4 w = fma(v, (float4)(2.f), (float4)(1.f, 2.f, 3.f, 4.f));
    float sum = w.x + w.y + w.z + w.w;
    int whole = convert_int(in[i]) * 1000 / 7 % 13;
    out[i] = fmax(sum, 0.f) + (float)whole;
}

/* Within the single precision that OpenCL C promises: exp 3 ulp, log 3 ulp, sqrt 3 ulp, division 2.5 ulp. */
kernel void check_functions(global const float *in, global float *out)
{
    int i = get_global_id(0);
    float x = (in[i] + 1.f) / 64.f;
    out[i] = exp(x) + log(x) + sqrt(x) + 1.f / (x + 1.f);
}

/* out[0] = the sum of all, by a tree in local memory; out[i] for i > 0: the element mirrored within the group. */
kernel void check_local(global const float *in, global float *out, local float *tree)
{
    int i = get_local_id(0);
    tree[i] = in[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    float mirrored = tree[63 - i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = 32; width > 0; width /= 2) {
        if (i < width) tree[i] += tree[i + width];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[i] = i == 0 ? tree[0] : mirrored;
}
