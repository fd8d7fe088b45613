/* What each compiler has to refuse, or to report as spilled: proves that the test can fail. */
#ifdef REFUSED
kernel void faulty(global float *x)
{
    x[0] = no_such_function(x[1]);
}
#else
kernel void faulty(global const float *restrict x, global float *restrict y, int rows)
{
    float sums[384]; /* all of them live from row to row: more than any chip has registers for */
    const int i = get_global_id(0);
#pragma unroll
    for (int k = 0; k < 384; k++) sums[k] = x[i + k];
    for (int row = 0; row < rows; row++)
#pragma unroll
        for (int k = 0; k < 384; k++) sums[k] = fma(sums[k], x[row], sums[(k * 7 + 1) % 384]);
#pragma unroll
    for (int k = 0; k < 384; k++) y[i * 384 + k] = sums[k];
}
#endif
