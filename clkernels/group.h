/* Sums and maxima over the GROUP work-items of a group (a power of two), in a fixed order. Every work-item calls, with
 * `scratch` of GROUP floats, and gets the result. */
static float group_sum(float value, local float *scratch)
{
    const int item = get_local_id(0);
    scratch[item] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = GROUP / 2; step > 0; step /= 2) {
        if (item < step) scratch[item] += scratch[item + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float sum = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE); /* scratch is free again */
    return sum;
}

/* NaN only where all are. */
static float group_max(float value, local float *scratch)
{
    const int item = get_local_id(0);
    scratch[item] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = GROUP / 2; step > 0; step /= 2) {
        if (item < step) scratch[item] = fmax(scratch[item], scratch[item + step]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float most = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return most;
}
