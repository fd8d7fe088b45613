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

/* `length` numbers (TAPS of each channel) of the lanes from `least` on, `rows` of them at most, plain: at dw, rows
 * `row` floats apart, the first of lane `least`. */
INLINE void write_plain(
    const VF *g, int length, const global float *add, global float *dw, size_t at, size_t row, int least, int rows)
{
    int e = 0;
    LOOP for (; e + V <= length; e += V)
    {
        VF r[V];
        LOOP for (int i = 0; i < V; i++) r[i] = g[e + i];
        transpose(r);
        LOOP for (int l = 0; l < rows; l++)
            VSTORE(FINISH(r[least + l], add, at + l * row + e), 0, dw + at + l * row + e);
    }
    LOOP for (; e < length; e++) LOOP for (int l = 0; l < rows; l++) dw[at + l * row + e] =
        ((const float *)(g + e))[least + l] + (ADD ? add[at + l * row + e] : 0.0f);
}

/* Where the gradients of kernels go: plain, or as part `split` of the workspace. */
struct kernels_out {
    const global float *add;
    global float *dw, *parts;
    int split, splits;
    int blocks; /* of all output channels */
    int C;      /* input channels of one of the problem's groups */
};

/* The gradients of `here` channels' kernels, from channel c of a group on, for output block `block` of those of the
 * group, `own`, whose K channels are `merged` of the problem's groups. */
INLINE void finish_block(const PRODUCTS vec *restrict m, int step, struct kernels_out out, int c, int here,
    struct share own, int block, int group, int K, int merged)
{
    VF w[TAPS * V];
    LOOP for (int i = 0; i < here; i++) kernel_gradient(m + i * NV, step, w + TAPS * i);
    const int first = block * V - own.begin, least = max(-first, 0), end = min(V, K - first); /* first: of lane 0 */
    const size_t row = (size_t)out.C * TAPS, k = (size_t)group * K + first + least;
    global float *part = out.parts + ((size_t)out.split * out.blocks + own.block + block) * row * V;
    if (merged > 1) LOOP for (int i = 0; i < here; i++)
        { /* of the lanes that are of the same one of the problem's groups as this channel */
            const int each = K / merged, of = (c + i) / out.C, channel = (c + i) % out.C;
            const int from = max(of * each - first, least), to = min((of + 1) * each - first, end);
            if (from >= to) continue;
            if (out.splits == 1)
                write_plain(w + TAPS * i, TAPS, out.add, out.dw, (k + from - least) * row + channel * TAPS, row, from,
                    to - from);
            else
                LOOP for (int t = 0; t < TAPS; t++) LOOP for (int l = from; l < to; l++)
                    part[(channel * TAPS + t) * V + l] = ((const float *)(w + TAPS * i + t))[l];
        }
    else if (out.splits == 1)
        write_plain(w, TAPS * here, out.add, out.dw, k * row + (size_t)c * TAPS, row, least, end - least);
    else
        LOOP for (int i = 0; i < TAPS * here; i++) STORE_OWN(w[i], (size_t)c * TAPS + i, part, lanes_of(own, block));
}
