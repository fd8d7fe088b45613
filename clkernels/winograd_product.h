/* Forward pass and data gradient by Winograd: weights, products and results. The data gradient is the forward pass with
 * C and K exchanged and the kernels rotated by 180 degrees; GRADIENT 1 reads the plain weights that way.
 *
 * Macros beside winograd.h's: GRADIENT, WEIGHTS (address space of transformed weights), MT (tiles in registers: MT x NV
 * vectors), KU (source channels unrolled), PREFETCH_NEXT (1: tiles of the next of the 36 matrices), WEIGHTS_AHEAD
 * (vectors of prefetch of the weights; 0: none). */
#if STATISTICS
#define TALLY_PARAMETER , struct moments *tally
#define TALLY_ARGUMENT , &tally
#elif GATE
#define TALLY_PARAMETER , struct gate *tally
#define TALLY_ARGUMENT , &tally
#else
#define TALLY_PARAMETER
#define TALLY_ARGUMENT
#endif

/* g[V source channels from `first` on][TAPS] for one block of results; zero where there is no such channel. */
INLINE void load_kernels(const global float *restrict w, int sources, int results, int block, int first, VF *g)
{
#if GRADIENT
    const int lanes = min(V, results - block * V), end = sources * results * TAPS;
    for (int k = 0; k < V; k++) {
        if (first + k >= sources) {
            for (int i = 0; i < TAPS; i++) g[k * TAPS + i] = (VF)(0.0f);
            continue;
        }
        const int from = ((first + k) * results + block * V) * TAPS;
        UNROLL for (int t = 0; t < TAPS; t += V)
        { /* lanes x TAPS become TAPS x lanes, V taps at a time */
            VF row[V];
            if (from + (lanes - 1) * TAPS + t + V <= end) {
                UNROLL for (int l = 0; l < V; l++) row[l] =
                    l < lanes ? VLOAD(0, w + from + l * TAPS + t) : (VF)(0.0f);
            } else { /* vectors would reach beyond the last kernel */
                for (int l = 0; l < V; l++) {
                    float tap[V];
                    for (int i = 0; i < V; i++) tap[i] = l < lanes && t + i < TAPS ? w[from + l * TAPS + t + i] : 0.0f;
                    row[l] = *(VF_unaligned *)tap;
                }
            }
            transpose(row);
            UNROLL for (int i = 0; i < V; i++) if (t + i < TAPS) g[k * TAPS + TAPS - 1 - t - i] = row[i];
        }
    }
#else
    const int length = sources * TAPS, begin = first * TAPS;
    if (first + V > sources)
        for (int i = 0; i < TAPS * V; i++) g[i] = 0.0f;
    for (int e = begin; e < min(begin + TAPS * V, length); e += V) {
        const int from = min(e, length - V); /* the last one overlaps the one before */
        VF row[V];
        UNROLL for (int l = 0; l < V; l++) row[l] = block * V + l < results
            ? VLOAD(0, w + (size_t)min(block * V + l, results - 1) * length + from)
            : (VF)(0.0f);
        transpose(row);
        UNROLL for (int i = 0; i < V; i++) if (from + i >= begin) g[from + i - begin] = row[i];
    }
#endif
}

/* One kernel into 36 vectors `step` apart. */
INLINE void weight_tile(const VF *g, WEIGHTS vec *restrict u, int step)
{
    VF t[R][6];
    UNROLL for (int i = 0; i < R; i++) WEIGHTS_1D(g + i * R, t[i]);
    UNROLL for (int j = 0; j < 6; j++, u += step)
    {
        VF c[R], r[6];
        UNROLL for (int i = 0; i < R; i++) c[i] = t[i][j];
        WEIGHTS_1D(c, r);
        UNROLL for (int i = 0; i < 6; i++) u[6 * i * step] = r[i];
    }
}

/* m[NV, `apart` vectors apart][MT tiles] = (or +=) v[MT tiles][channels] u[channels][NV]; v advances by v_block vectors
 * from one block of V channels to the next. */
INLINE void tile_product(const TILES vec *restrict v, int v_block, const WEIGHTS vec *restrict u, int channels,
    SCRATCH vec *restrict m, int apart, bool add)
{
    VF acc[MT][NV];
    UNROLL for (int i = 0; i < MT; i++) UNROLL for (int k = 0; k < NV; k++) acc[i][k] =
        add ? m[k * apart + i] : (VF)(0.0f);
    for (int left = channels; left > 0; left -= V) {
#if PREFETCH_NEXT
        UNROLL for (int i = 0; i < MT; i++) PREFETCH(v + (channels + V - 1) / V * v_block + i);
#endif
        const TILES float *a = (const TILES float *)v;
        const int here = min(V, left);
        _Pragma("unroll 1") for (int c = 0; c < here; c += KU)
        {
            UNROLL for (int d = 0; d < KU; d++)
            {
                VF b[NV];
                UNROLL for (int k = 0; k < NV; k++)
                {
                    if (WEIGHTS_AHEAD) PREFETCH(u + d * NV + k + WEIGHTS_AHEAD);
                    b[k] = u[d * NV + k];
                }
                UNROLL for (int i = 0; i < MT; i++)
                {
                    const VF s = (VF)(a[i * V + d]);
                    UNROLL for (int k = 0; k < NV; k++) acc[i][k] = fma(s, b[k], acc[i][k]);
                }
            }
            u += KU * NV;
            a += KU;
        }
        v += v_block;
    }
    UNROLL for (int i = 0; i < MT; i++) UNROLL for (int k = 0; k < NV; k++) m[k * apart + i] = acc[i][k];
}

/* 36 vectors `step` apart into the M x M results at (y, x); pixels outside the plane are dropped. `at`: the plane's
 * first float in add and result. */
INLINE void output_tile(const SCRATCH vec *restrict m, int step, VF bias, const global float *add, global float *result,
    size_t at, struct tiling g, struct tile tile TALLY_PARAMETER)
{
    VF t[6][M];
    UNROLL for (int j = 0; j < 6; j++)
    {
        VF c[6];
        UNROLL for (int i = 0; i < 6; i++) c[i] = m[(6 * i + j) * step];
        RESULTS_1D(c, t[j]);
    }
    at += ((size_t)tile.y * g.result_width + tile.x) * V;
    const int rows = min(M, g.result_height - tile.y), columns = min(M, g.result_width - tile.x);
#if STATISTICS /* sums of each column, since one chain of additions would be waited for */
    VF sum[M], products[M], shift;
    UNROLL for (int j = 0; j < M; j++) sum[j] = products[j] = (VF)(0.0f);
#elif GATE
    struct gate columns_of[M];
    UNROLL for (int j = 0; j < M; j++) columns_of[j] = gate_tile(tally);
    UNROLL for (int i = 0; i < M; i++) /* the pixels of the tile after the next one */
        UNROLL for (int j = 0; j < M; j++)
            gate_prefetch(tally, add, at + ((size_t)i * g.result_width + 2 * M + j) * V);
#endif
    UNROLL for (int i = 0; i < M; i++, at += (size_t)g.result_width * V)
    {
        VF c[6], y[M];
        UNROLL for (int j = 0; j < 6; j++) c[j] = t[j][i];
        RESULTS_1D(c, y);
        UNROLL for (int j = 0; j < M; j++) y[j] += bias;
#if STATISTICS
        if (i == 0) shift = tally->count ? tally->shift : y[0];
#endif
        if (i < rows) {
            UNROLL for (int j = 0; j < M; j++) if (j < columns)
            {
#if STATISTICS
                const VF d = y[j] - shift;
                sum[j] += d;
                products[j] = fma(d, d, products[j]);
#elif GATE
                y[j] = gate_take(&columns_of[j], at + j * V, ADDED(y[j], add, at + j * V));
#endif
                STORE(result + at + j * V, FINISH(y[j], add, at + j * V));
            }
        }
    }
#if STATISTICS
    UNROLL for (int j = 1; j < M; j++)
    {
        sum[0] += sum[j];
        products[0] += products[j];
    }
    const struct moments here = { shift, sum[0], products[0], rows * columns };
    moments_join(tally, &here);
#elif GATE
    UNROLL for (int j = 0; j < M; j++) gate_join(tally, &columns_of[j]);
#endif
}

/* The results of panel `panel` in tiles first .. last-1, whose products m are; with the statistics of part `part`. */
INLINE void output_panel(const SCRATCH vec *restrict m, int step, int T, const global float *restrict prepared,
    const global float *add, global float *result, int panel, int result_blocks, int first, int last,
    struct tiling g, int part STATISTICS_PARAMETER)
{
    for (int k = 0; k < NV; k++) {
        const int block = panel * NV + k;
        if (block >= result_blocks) break;
        const VF bias = VLOAD(block, prepared);
#if STATISTICS
        struct moments tally = moments_from((VF)(0.0f));
#elif GATE
        struct gate tally = GATE_OF(block);
#endif
        for (int t = first; t < last; t++) {
            const struct tile tile = tile_at(t, g);
            const size_t at = (size_t)(tile.image * result_blocks + block) * g.result_height * g.result_width * V;
            output_tile(m + k * T + (t - first), step, bias, add, result, at, g, tile TALLY_ARGUMENT);
        }
#if STATISTICS
        moments_store(&tally, statistics, part, result_blocks, block);
#elif GATE
        gate_store(&tally, statistics, part, result_blocks, block);
#endif
    }
}
