/* Forward pass and data gradient by Winograd: products and results.
 *
 * Macros besides winograd.h's: WEIGHTS (address space of transformed weights), MT (tiles in registers: MT x NV
 * vectors), KU (source channels unrolled), PREFETCH_NEXT (1: tiles of the next matrix), WEIGHTS_AHEAD (vectors of
 * prefetch of the weights; 0: none). */
/* m[NV, `apart` vectors apart][MT tiles] = (or +=) v[MT tiles][channels] u[channels][NV]; v advances by v_block vectors
 * from one block of V channels to the next. The channels begin at lane `begin` of the first one. */
INLINE void tile_product(const TILES vec *restrict v, int v_block, int begin, const WEIGHTS vec *restrict u,
    int channels, SCRATCH vec *restrict m, int apart, bool add)
{
    VF acc[MT][NV];
    UNROLL for (int i = 0; i < MT; i++) UNROLL for (int k = 0; k < NV; k++) acc[i][k] =
        add ? m[k * apart + i] : (VF)(0.0f);
    for (int left = channels, lane = begin, here; left > 0; left -= here, lane = 0) {
#if PREFETCH_NEXT
        UNROLL for (int i = 0; i < MT; i++) PREFETCH(v + (channels + V - 1) / V * v_block + i);
#endif
        const TILES float *a = (const TILES float *)v + lane;
        here = min(V - lane, left);
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
                    IN_ORDER;
                }
            }
            u += KU * NV;
            a += KU;
        }
        v += v_block;
    }
    UNROLL for (int i = 0; i < MT; i++) UNROLL for (int k = 0; k < NV; k++) m[k * apart + i] = acc[i][k];
}

/* NUMBERS vectors `step` apart into the RESULTS x RESULTS results at (y, x); pixels outside the plane are dropped.
 * `at`: the plane's first float in add and result. */
INLINE void output_tile(const SCRATCH vec *restrict m, int step, VF bias, const global float *add, global float *result,
    size_t at, enum lanes lanes, struct tiling g, struct tile tile, struct tally *tally)
{
    VF t[POINTS][RESULTS];
    LOOP for (int j = 0; j < POINTS; j++)
    {
        VF c[POINTS];
        UNROLL for (int i = 0; i < POINTS; i++) c[i] = m[(POINTS * i + j) * step];
        RESULTS_1D(c, t[j]);
    }
    at += ((size_t)tile.y * g.result_width + tile.x) * V;
    const int rows = min(RESULTS, g.result_height - tile.y), columns = min(RESULTS, g.result_width - tile.x);
#if STATISTICS /* sums of each column, since one chain of additions would be waited for */
    VF sum[RESULTS], products[RESULTS], shift;
    UNROLL for (int j = 0; j < RESULTS; j++) sum[j] = products[j] = (VF)(0.0f);
#elif GATE
    struct tally columns_of[RESULTS];
    UNROLL for (int j = 0; j < RESULTS; j++) columns_of[j] = tally_tile(tally, bias);
    LOOP for (int i = 0; i < RESULTS; i++) /* the pixels of the tile after the next one */
        UNROLL for (int j = 0; j < RESULTS; j++)
            tally_prefetch(tally, add, at + ((size_t)i * g.result_width + 2 * RESULTS + j) * V);
#endif
    LOOP for (int i = 0; i < rows; i++, at += (size_t)g.result_width * V)
    {
        VF c[POINTS], y[RESULTS];
        UNROLL for (int j = 0; j < POINTS; j++) c[j] = t[j][i];
        RESULTS_1D(c, y);
        UNROLL for (int j = 0; j < RESULTS; j++) y[j] += bias;
#if STATISTICS
        if (i == 0) shift = tally->count ? tally->shift : y[0];
#endif
        UNROLL for (int j = 0; j < RESULTS; j++) if (j < columns)
        {
#if STATISTICS
            const VF d = y[j] - shift;
            sum[j] += d;
            products[j] = fma(d, d, products[j]);
#elif GATE
            y[j] = tally_take(&columns_of[j], y[j], add, at + j * V);
#endif
            STORE_LANES(result + at + j * V, FINISH(y[j], add, at + j * V), lanes);
        }
    }
#if STATISTICS
    UNROLL for (int j = 1; j < RESULTS; j++)
    {
        sum[0] += sum[j];
        products[0] += products[j];
    }
    const struct tally here = {
        .shift = shift, .sum = sum[0], .lost = (VF)(0.0f), .squares = products[0], .count = rows * columns
    };
    tally_join(tally, &here);
#elif GATE
    UNROLL for (int j = 0; j < RESULTS; j++) tally_join(tally, &columns_of[j]);
#endif
}

/* The results of panel `panel` of a group in tiles first .. last-1, whose products m are; with the statistics of part
 * `part`. `own`: the group's share of the result's blocks. */
INLINE void output_panel(const SCRATCH vec *restrict m, int step, int T, const global float *restrict bias,
    const global float *add, global float *result, int panel, int group_blocks, int result_blocks, struct share own,
    int first, int last, struct tiling g, int part STATISTICS_PARAMETER)
{
    for (int k = 0; k < NV; k++) {
        const int block = panel * NV + k;
        if (block >= group_blocks) break;
        const enum lanes lanes = lanes_of(own, block);
        struct tally tally = TALLY_OF(own.block + block);
        for (int t = first; t < last; t++) {
            const struct tile tile = tile_at(t, g);
            const size_t at =
                (size_t)(tile.image * result_blocks + own.block + block) * g.result_height * g.result_width * V;
            output_tile(m + k * T + (t - first), step, VLOAD(block, bias), add, result, at, lanes, g, tile, &tally);
        }
        TALLY_STORE_LANES(&tally, part, result_blocks, own.block + block, lanes);
    }
}
