/* Weight gradient by Winograd: functions that both of its forms share. It is the exact transpose of the forward
 * algorithm:
 * dW = G^T [ sum over tiles of (A dY A^T) * (B^T x B) ] G.
 *
 * Macros besides winograd.h's: PRODUCTS (address space of the sums), CT (channels in registers: CT x NV vectors). */
/* An M x M tile of output gradients at (y, x) into NUMBERS vectors `step` apart; outside the plane they are zero. */
INLINE void gradient_tile(
    const global vec *restrict plane, int height, int width, int y, int x, TILES vec *restrict out, int step)
{
    VF t[M][POINTS];
    const bool inside = y + M <= height && x + M <= width;
    LOOP for (int i = 0; i < M; i++)
    {
        const global vec *p = plane + (y + i) * width + x;
        VF d[M];
        if (inside) {
            UNROLL for (int j = 0; j < M; j++) PREFETCH(p + 2 * M + j);
            UNROLL for (int j = 0; j < M; j++) d[j] = p[j];
        } else {
            UNROLL for (int j = 0; j < M; j++) d[j] = y + i < height && x + j < width ? p[j] : (VF)(0.0f);
        }
        RESULT_GRADIENTS_1D(d, t[i]);
    }
    UNROLL for (int j = 0; j < POINTS; j++, out += step)
    {
        VF c[M], r[POINTS];
        UNROLL for (int i = 0; i < M; i++) c[i] = t[i][j];
        RESULT_GRADIENTS_1D(c, r);
        UNROLL for (int i = 0; i < POINTS; i++) out[POINTS * i * step] = r[i];
    }
}

/* m[CT channels][NV] (+)= v[count][CT]^T d[NV, d_block apart][count], summed over the numbers of tiles that number n of
 * a kernel multiplies, which lie v_step and d_step vectors apart; the sums that follow are prefetched meanwhile. The
 * chain of multiply-adds begins with 0, so that a large sum does not round each of them. */
INLINE void outer_product(int n, const TILES vec *restrict v, int v_step, const TILES vec *restrict d, int d_step,
    int d_block, int channel, int count, PRODUCTS vec *restrict m, bool add)
{
    VF acc[CT][NV];
    UNROLL for (int i = 0; i < CT; i++) UNROLL for (int k = 0; k < NV; k++) acc[i][k] = 0.0f;
    EACH_NUMBER(number, n)
    {
        const TILES float *a = (const TILES float *)(v + number * v_step) + channel;
        const TILES vec *line = d + number * d_step;
        for (int t = 0; t < count; t++, a += V) {
            VF b[NV];
            if (t < CT * NV) PREFETCH_SUMS(m + CT * NV + t);
            UNROLL for (int k = 0; k < NV; k++) b[k] = line[k * d_block + t];
            UNROLL for (int i = 0; i < CT; i++)
            {
                const VF s = (VF)(a[i]);
                UNROLL for (int k = 0; k < NV; k++) acc[i][k] = fma(s, b[k], acc[i][k]);
            }
        }
    }
    UNROLL for (int i = 0; i < CT; i++) UNROLL for (int k = 0; k < NV; k++) m[i * NV + k] =
        add ? m[i * NV + k] + acc[i][k] : acc[i][k];
}

/* g[TAPS]: the gradient of one kernel for V output channels, from KERNEL_NUMBERS sums `step` apart; those of four
 * channels further on are prefetched. */
INLINE void kernel_gradient(const PRODUCTS vec *restrict p, int step, VF *g)
{
    VF t[KERNEL_POINTS][R];
    UNROLL for (int j = 0; j < KERNEL_POINTS; j++)
    {
        VF c[KERNEL_POINTS];
        UNROLL for (int i = 0; i < KERNEL_POINTS; i++)
        {
            PREFETCH(p + (KERNEL_POINTS * i + j) * step + 4 * NV);
            c[i] = p[(KERNEL_POINTS * i + j) * step];
        }
        WEIGHT_GRADIENTS_1D(c, t[j]);
    }
    UNROLL for (int i = 0; i < R; i++)
    {
        VF c[KERNEL_POINTS];
        UNROLL for (int j = 0; j < KERNEL_POINTS; j++) c[j] = t[j][i];
        WEIGHT_GRADIENTS_1D(c, g + R * i);
    }
}

/* V output channels x `length` numbers (TAPS of each channel), plain: at dw, rows `row` floats apart. */
INLINE void write_plain(
    const VF *g, int length, const global float *add, global float *dw, size_t at, size_t row, int rows)
{
    int e = 0;
    LOOP for (; e + V <= length; e += V)
    {
        VF r[V];
        LOOP for (int i = 0; i < V; i++) r[i] = g[e + i];
        transpose(r);
        LOOP for (int l = 0; l < rows; l++) VSTORE(FINISH(r[l], add, at + l * row + e), 0, dw + at + l * row + e);
    }
    LOOP for (; e < length; e++) LOOP for (int l = 0; l < rows; l++) dw[at + l * row + e] =
        ((const float *)(g + e))[l] + (ADD ? add[at + l * row + e] : 0.0f);
}

/* The gradients of a block of V channels' kernels for output block k, plain, or as part `split` of the workspace. */
INLINE void finish_block(const PRODUCTS vec *restrict m, int step, const global float *add, global float *dw,
    global vec *parts, int split, int splits, int k, int c, int C, int K)
{
    const int here = min(V, C - c), KB = (K + V - 1) / V;
    VF w[TAPS * V];
    LOOP for (int i = 0; i < here; i++) kernel_gradient(m + i * NV, step, w + TAPS * i);
    if (splits == 1)
        write_plain(w, TAPS * here, add, dw, ((size_t)k * V * C + c) * TAPS, (size_t)C * TAPS, min(V, K - k * V));
    else
        LOOP for (int i = 0; i < TAPS * here; i++) parts[(((size_t)split * KB + k) * C + c) * TAPS + i] = w[i];
}
