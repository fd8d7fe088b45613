/* Transformed weights of Winograd's convolutions. The data gradient is the forward pass with C and K exchanged and the
 * kernels rotated by 180 degrees; GRADIENT 1 reads the plain weights that way.
 *
 * Macros besides winograd.h's: GRADIENT, WEIGHTS (address space of transformed weights). */
/* g[V source channels from `first` on][TAPS] for one block of results; zero where there is no such channel. The first
 * result is lane `begin` of block 0. */
INLINE void load_kernels(
    const global float *restrict w, int sources, int results, int block, int begin, int first, VF *g)
{
    const int result = block * V - begin; /* of lane 0 */
#if GRADIENT
    const int least = max(-result, 0), lanes = min(V, results - result), end = sources * results * TAPS;
    LOOP for (int k = 0; k < V; k++)
    {
        if (first + k >= sources) {
            LOOP for (int i = 0; i < TAPS; i++) g[k * TAPS + i] = (VF)(0.0f);
            continue;
        }
        const int from = ((first + k) * results + result) * TAPS;
        UNROLL for (int t = 0; t < TAPS; t += V)
        { /* lanes x TAPS become TAPS x lanes, V taps at a time */
            VF row[V];
            if (from + (lanes - 1) * TAPS + t + V <= end) {
                LOOP for (int l = 0; l < V; l++) row[l] =
                    l >= least && l < lanes ? VLOAD(0, w + (from + l * TAPS + t)) : (VF)(0.0f);
            } else { /* vectors would reach beyond the last kernel */
                LOOP for (int l = 0; l < V; l++)
                {
                    float tap[V];
                    LOOP for (int i = 0; i < V; i++) tap[i] =
                        l >= least && l < lanes && t + i < TAPS ? w[from + l * TAPS + t + i] : 0.0f;
                    row[l] = *(VF_unaligned *)tap;
                }
            }
            transpose(row);
            LOOP for (int i = 0; i < min(V, TAPS - t); i++) g[k * TAPS + TAPS - 1 - t - i] = row[i];
        }
    }
#else
    const int length = sources * TAPS, at = first * TAPS;
    if (first + V > sources) LOOP for (int i = 0; i < TAPS * V; i++) g[i] = 0.0f;
    LOOP for (int e = at; e < min(at + TAPS * V, length); e += V)
    {
        const int from = min(e, length - V); /* the last one overlaps the one before */
        VF row[V];
        UNROLL for (int l = 0; l < V; l++) row[l] = result + l >= 0 && result + l < results
            ? VLOAD(0, w + (size_t)clamp(result + l, 0, results - 1) * length + from)
            : (VF)(0.0f);
        transpose(row);
        LOOP for (int i = max(at - from, 0); i < V; i++) g[from + i - at] = row[i];
    }
#endif
}

/* The same of `merged` groups, between which there are no weights: sources and results are those of all. */
INLINE void load_merged(
    const global float *restrict w, int sources, int results, int merged, int block, int begin, int first, VF *g)
{
    const int each = sources / merged, each_results = results / merged;
    LOOP for (int c = 0; c < V; c++) LOOP for (int t = 0; t < TAPS; t++)
    {
        float lane[V];
        LOOP for (int l = 0; l < V; l++)
        {
            const int from = first + c, to = block * V + l - begin;
            const bool same = from < sources && to >= 0 && to < results && from / each == to / each_results;
#if GRADIENT
            const int at = from * each_results + to % each_results;
#else
            const int at = to * each + from % each;
#endif
            lane[l] = same ? w[at * TAPS + t] : 0.0f;
        }
        g[c * TAPS + (GRADIENT ? TAPS - 1 - t : t)] = *(VF_unaligned *)lane;
    }
}

/* One kernel into KERNEL_NUMBERS vectors `step` apart. */
INLINE void weight_tile(const VF *g, WEIGHTS vec *restrict u, int step)
{
    VF t[R][KERNEL_POINTS];
    UNROLL for (int i = 0; i < R; i++) WEIGHTS_1D(g + i * R, t[i]);
    UNROLL for (int j = 0; j < KERNEL_POINTS; j++, u += step)
    {
        VF c[R], r[KERNEL_POINTS];
        UNROLL for (int i = 0; i < R; i++) c[i] = t[i][j];
        WEIGHTS_1D(c, r);
        UNROLL for (int i = 0; i < KERNEL_POINTS; i++) u[KERNEL_POINTS * i * step] = r[i];
    }
}
