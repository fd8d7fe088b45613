/* Attention on CPU-class devices, in one pass over blocks of keys, and its gradient, which computes the probabilities again:
 *   s = scale q k^T + bias;   p = exp(s - most) / sum;   y = drop(p) v;   softmax = (most, sum): the largest s of a query, and
 *   the sum of exp(s - most);   dv = drop(p)^T dy;   ds = p (drop(dy v^T) - sum of dy y);   dq = scale ds k;   dk = scale ds^T q
 * for each head of each sample; attention_layout.h says where elements lie. Neither s nor p is in memory: a task holds MR rows of
 * them, and the gradient `rows` x `block` of them. Keys that no row of a register tile sees (bias: minus infinity) at the
 * end of a block are not multiplied, and blocks without any are not read.
 *
 * Launched by layers/attention/attention_blocks.c, one work-item per group: attention_blocks with (blocks of queries,
 * samples * heads) groups, attention_blocks_gradient with (1, samples * heads). rows: queries of a block, a multiple of MR;
 * block: keys of a block, a multiple of V. All operands of products are in `scratch`: rows of q, dy, v and k padded with
 * zeros to whole vectors, and k and v transposed. A product is made of register tiles of MR x NV vectors, as in gemm_packed.cl.
 * SOFTMAX 0: nobody reads softmax. DQ, DK, DV 0: nobody reads that gradient.
 * Algorithm: Milakov, Gimelshein: Online normalizer calculation for softmax, 2018; Dao: FlashAttention-2, 2023. */
#include "parameters.h"
#include "step.h"
#include "arguments/attention.h"
#include "vector.h"
#include "exponential.h"
#include "random.h"
#define DROPOUT_VECTORS DROP
#include "dropout.h"
#include "transpose.h"
#include "attention_layout.h"

TRANSPOSE(transpose, VF)
#define PADDED(width) (((width) + V - 1) / V * V)
#define WHOLE_TILES(rows) (((rows) + MR - 1) / MR * MR)

/* ------------------------------------------------------------------------------------------------------- products ---- */

/* c = a b, or c += a b: MR rows of `depth` numbers times `depth` rows of `vectors`. Element (i, k) of a is a[i * a_row + k
 * * a_k]. */
#define TILE(name, vectors)                                                                                            \
    INLINE void name(local const float *a, int a_row, int a_k, local const float *b, int ldb, int depth, bool added,   \
        local float *c, int ldc)                                                                                       \
    {                                                                                                                  \
        VF sum[MR][vectors];                                                                                           \
        UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = (VF)(0.0f);           \
        for (int k = 0; k < depth; k++) {                                                                              \
            VF x[vectors];                                                                                             \
            UNROLL for (int j = 0; j < vectors; j++) x[j] = LOCAL_LOAD(j, b + k * ldb);                                \
            UNROLL for (int i = 0; i < MR; i++)                                                                        \
            {                                                                                                          \
                const VF f = (VF)(a[i * a_row + k * a_k]);                                                             \
                UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = fma(f, x[j], sum[i][j]);                          \
                IN_ORDER;                                                                                              \
            }                                                                                                          \
        }                                                                                                              \
        if (added)                                                                                                     \
            UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] +=                  \
                LOCAL_LOAD(j, c + i * ldc);                                                                            \
        UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < vectors; j++)                                   \
            LOCAL_STORE(sum[i][j], j, c + i * ldc);                                                                    \
    }
TILE(tile_wide, NV)
#if NV > 2
TILE(tile_two, 2)
#endif
TILE(tile_one, 1)

#define PRODUCT(a_row, a_k)                                                                               \
    int v = 0;                                                                                            \
    LOOP for (; v + NV <= vectors; v += NV) tile_wide(a, a_row, a_k, b + v * V, ldb, depth, added, c + v * V, ldc); \
    PRODUCT_TWO(a_row, a_k)                                                                               \
    LOOP for (; v < vectors; v++) tile_one(a, a_row, a_k, b + v * V, ldb, depth, added, c + v * V, ldc);
#if NV > 2
#define PRODUCT_TWO(a_row, a_k) \
    LOOP for (; v + 2 <= vectors; v += 2) tile_two(a, a_row, a_k, b + v * V, ldb, depth, added, c + v * V, ldc);
#else
#define PRODUCT_TWO(a_row, a_k)
#endif

/* MR rows of a, whose numbers lie next to each other; and MR columns of a, of which those in one row do. */
OUTLINE void product_rows(local const float *a, int lda, local const float *b, int ldb, int depth, int vectors, int added,
    local float *c, int ldc)
{
    PRODUCT(lda, 1)
}

OUTLINE void product_columns(local const float *a, int lda, local const float *b, int ldb, int depth, int vectors, int added,
    local float *c, int ldc)
{
    PRODUCT(1, lda)
}

/* -------------------------------------------------------------------------------------------------------- operands ---- */

/* to[i] = factor * row i of `count`, of `width` numbers, padded with zeros to whole vectors; zeros up to row `whole`. */
INLINE void pack_rows(global const float *from, int ld, int count, int whole, int width, float factor, local float *to)
{
    const int ldt = PADDED(width);
    LOOP for (int i = 0; i < count; i++) {
        int f = 0;
        LOOP for (; f + V <= width; f += V) LOCAL_STORE(VLOAD(0, from + (size_t)i * ld + f) * factor, 0, to + i * ldt + f);
        LOOP for (; f < ldt; f++) to[i * ldt + f] = f < width ? from[(size_t)i * ld + f] * factor : 0.0f;
    }
    LOOP for (int i = count * ldt; i < whole * ldt; i += V) LOCAL_STORE((VF)(0.0f), 0, to + i);
}

/* to[f][j] = element f of row j of `count`. Columns up to the next whole vector repeat the last row. */
INLINE void pack_across(global const float *from, int ld, int count, int width, local float *to, int ldt)
{
    LOOP for (int j = 0; j < count; j += V) {
        int f = 0;
        LOOP for (; f + V <= width; f += V) {
            VF r[V];
            UNROLL for (int l = 0; l < V; l++) r[l] = VLOAD(0, from + (size_t)min(j + l, count - 1) * ld + f);
            transpose(r);
            UNROLL for (int l = 0; l < V; l++) LOCAL_STORE(r[l], 0, to + (f + l) * ldt + j);
        }
        LOOP for (; f < width; f++)
            LOOP for (int l = 0; l < V; l++) to[f * ldt + j + l] = from[(size_t)min(j + l, count - 1) * ld + f];
    }
}

INLINE void store_row(local const float *from, global float *to, int width, float factor)
{
    int f = 0;
    LOOP for (; f + V <= width; f += V) VSTORE(LOCAL_LOAD(0, from + f) * factor, 0, to + f);
    LOOP for (; f < width; f++) to[f] = from[f] * factor;
}

INLINE void clear(local float *to, int count)
{
    LOOP for (int i = 0; i < count; i += V) LOCAL_STORE((VF)(0.0f), 0, to + i);
}

/* The bias of V keys from j on, of `count`; minus infinity past them. */
INLINE VF bias_vector(global const float *row, int j, int count, local float *edge)
{
    if (j + V <= count) return VLOAD(0, row + j);
    LOOP for (int l = 0; l < V; l++) edge[l] = j + l < count ? row[j + l] : -INFINITY;
    return LOCAL_LOAD(0, edge);
}

/* Whether any lane of a comparison's result is set. */
INLINE int any_lane(VI v)
{
#if V == 16
    const int8 h = v.lo | v.hi;
    const int4 q = h.lo | h.hi;
#elif V == 8
    const int4 q = v.lo | v.hi;
#else
    const int4 q = v;
#endif
    return (q.x | q.y) | (q.z | q.w);
}

/* Returns up to which of `count` keys any of `rows` queries sees one. */
INLINE int seen_keys(global const float *bias, long ld, int rows, int count, local float *edge)
{
    int end = PADDED(count);
    LOOP for (; end > 0; end -= V) {
        VI seen = (VI)(0);
        LOOP for (int i = 0; i < rows; i++) seen |= bias_vector(bias + i * ld, end - V, count, edge) != (VF)(-INFINITY);
        if (any_lane(seen)) break;
    }
    return min(end, count);
}

#if DROP
/* factors[i] = what the probability at `position` / 64 * 64 + i is multiplied by: 0 or drop_scale (dropout.cl). */
OUTLINE void drop_factors(global const step_constants *constants, uint stream, uint threshold, float drop_scale,
    ulong position, int count, local float *factors)
{
    const uint low = KEY_LOW, high = KEY_HIGH;
    const ulong end = position + count;
    LOOP for (ulong chunk = position / 64; chunk * 64 < end; chunk++, factors += 64)
        LOOP for (int lane = 0; lane < 16; lane += V) {
            const ulong block = chunk * 16 + lane;
            HALF even[4] = { (HALF)(block) + HALF_NUMBERS, (HALF)(block >> 32), (HALF)(constants->step_low), (HALF)(stream) };
            HALF odd[4] = { even[0] + 1, even[1], even[2], even[3] };
            philox(low, high, even);
            philox(low, high, odd);
            UNROLL for (int word = 0; word < 4; word++)
            {
                const VU numbers = CONCATENATE(as_, VU)((even[word] & 0xFFFFFFFFul) | odd[word] << 32);
                LOCAL_STORE(select((VF)(0.0f), (VF)(drop_scale), numbers >= threshold), 0, factors + 16 * word + lane);
            }
        }
}
#endif
#define FACTORS(block) ((block) + 128) /* of `block` positions that begin anywhere */

/* --------------------------------------------------------------------------------------------------------- forward ---- */

/* The state of a query: the largest score so far, and the sum of exp(score - that). */
INLINE void update_row(local float *s, int count, global const float *bias, local const float *factors, local float *most,
    local float *sum, local float *o, int ldv, local float *edge)
{
    VF largest = (VF)(-INFINITY), total = (VF)(0.0f);
    LOOP for (int j = 0; j < count; j += V) {
        VF x = LOCAL_LOAD(0, s + j);
        if (BIAS) x += bias_vector(bias, j, count, edge);
        else if (j + V > count) x = select((VF)(-INFINITY), x, LANE_NUMBERS(VI) + j < count);
        largest = fmax(largest, x);
        LOCAL_STORE(x, 0, s + j);
    }
    const float before = *most, now = fmax(before, vector_max(largest)), zero = now > -INFINITY ? now : 0.0f;
    LOOP for (int j = 0; j < count; j += V) {
        const VF p = vector_exp(LOCAL_LOAD(0, s + j) - zero);
        total += p;
        LOCAL_STORE(DROP ? p * LOCAL_LOAD(0, factors + j) : p, 0, s + j);
    }
    const float less = scalar_exp(before - zero);
    *sum = *sum * less + vector_sum(total);
    *most = now;
    if (now > before && before > -INFINITY)
        LOOP for (int f = 0; f < ldv; f += V) LOCAL_STORE(LOCAL_LOAD(0, o + f) * less, 0, o + f);
}

OUTLINE void attention_body(ATTENTION_ARGUMENTS(PARAMETER) BLOCKS_ARGUMENTS(PARAMETER), int task, long pair)
{
    const long sample = pair / heads, head = pair % heads;
    const int first = task * rows, count = min(rows, length - first), ldq = PADDED(width), ldv = PADDED(width_v);
    const int row_q = ROW_OF(Q_JOINED, heads, width), row_k = ROW_OF(K_JOINED, heads, width);
    const int row_v = ROW_OF(V_JOINED, heads, width_v), row_y = ROW_OF(Y_JOINED, heads, width_v);
    local float *const packed_q = scratch, *const across = packed_q + rows * ldq, *const packed_v = across + block * width;
    local float *const o = packed_v + block * ldv, *const s = o + rows * ldv, *const most = s + MR * block;
    local float *const sum = most + rows, *const factors = sum + rows, *const edge = factors + FACTORS(block);
    q = HEAD_OF(q, Q_JOINED, heads, length, width) + (long)first * row_q;
    k = HEAD_OF(k, K_JOINED, heads, keys, width);
    v = HEAD_OF(v, V_JOINED, heads, keys, width_v);
    y = HEAD_OF(y, Y_JOINED, heads, length, width_v) + (long)first * row_y;
    bias += sample * bias_sample + head * bias_head + first * bias_row;

    pack_rows(q, row_q, count, WHOLE_TILES(count), width, scale, packed_q);
    clear(o, WHOLE_TILES(count) * ldv);
    LOOP for (int i = 0; i < count; i++) {
        most[i] = -INFINITY;
        sum[i] = 0.0f;
    }
    LOOP for (int j = 0; j < keys; j += block) {
        const int there = min(block, keys - j);
        bool packed = false;
        LOOP for (int i = 0; i < count; i += MR) {
            const int of_tile = min(MR, count - i);
            const int seen = BIAS ? seen_keys(bias + i * bias_row + j, bias_row, of_tile, there, edge) : there;
            if (!seen) continue;
            if (!packed) {
                pack_across(k + (long)j * row_k, row_k, there, width, across, block);
                pack_rows(v + (long)j * row_v, row_v, there, there, width_v, 1.0f, packed_v);
                packed = true;
            }
            product_rows(packed_q + i * ldq, ldq, across, block, width, PADDED(seen) / V, 0, s, block);
            LOOP for (int r = i; r < i + of_tile; r++) {
                local const float *kept = factors;
#if DROP
                const ulong position = FIRST_POSITION(first + r) + j;
                drop_factors(constants, stream, threshold, drop_scale, position, seen, factors);
                kept += position % 64;
#endif
                update_row(s + (r - i) * block, seen, bias + r * bias_row + j, kept, most + r, sum + r, o + r * ldv, ldv, edge);
            }
            product_rows(s, block, packed_v, ldv, seen, ldv / V, 1, o + i * ldv, ldv);
        }
    }
    LOOP for (int i = 0; i < count; i++) {
        const bool closed = OPEN && sum[i] == 0.0f;
        store_row(o + i * ldv, y + (long)i * row_y, width_v, closed ? 0.0f : 1.0f / sum[i]);
        global float *to = softmax + 2 * (pair * length + first + i);
        if (!SOFTMAX) continue;
        to[0] = closed ? 0.0f : most[i];
        to[1] = closed ? INFINITY : sum[i];
    }
}

TASK void attention_blocks(ATTENTION_ARGUMENTS(PARAMETER) BLOCKS_ARGUMENTS(PARAMETER))
{
    attention_body(ATTENTION_ARGUMENTS(NAME) BLOCKS_ARGUMENTS(NAME), get_group_id(0), get_group_id(1));
}

/* -------------------------------------------------------------------------------------------------------- gradient ---- */

/* s, t: scores and dy v^T of V keys each; become drop(p) and ds. The rest of `block` becomes 0. */
INLINE void gradient_row(local float *s, local float *t, int count, int block, global const float *bias,
    local const float *factors, global const float *softmax, float delta, local float *edge)
{
    const float most = softmax[0], less = 1.0f / softmax[1];
    int j = 0;
    LOOP for (; j < count; j += V) {
        VF x = LOCAL_LOAD(0, s + j);
        if (BIAS) x += bias_vector(bias, j, count, edge);
        else if (j + V > count) x = select((VF)(-INFINITY), x, LANE_NUMBERS(VI) + j < count);
        const VF p = vector_exp(x - most) * less, factor = DROP ? LOCAL_LOAD(0, factors + j) : (VF)(1.0f);
        LOCAL_STORE(p * factor, 0, s + j);
        LOCAL_STORE(p * (LOCAL_LOAD(0, t + j) * factor - delta), 0, t + j);
    }
    clear(s + j, block - j);
    clear(t + j, block - j);
}

/* The sum of a[f] b[f]. */
INLINE float dot_row(global const float *a, global const float *b, int width)
{
    VF sums = (VF)(0.0f);
    float sum = 0.0f;
    int f = 0;
    LOOP for (; f + V <= width; f += V) sums = fma(VLOAD(0, a + f), VLOAD(0, b + f), sums);
    LOOP for (; f < width; f++) sum = fma(a[f], b[f], sum);
    return sum + vector_sum(sums);
}

/* to[i] = or += factor * row i of `count`. */
INLINE void add_rows(local const float *from, int ldf, int count, int width, float factor, bool added, global float *to, int ld)
{
    LOOP for (int i = 0; i < count; i++) {
        global float *row = to + (long)i * ld;
        int f = 0;
        LOOP for (; f + V <= width; f += V) {
            const VF x = LOCAL_LOAD(0, from + i * ldf + f) * factor;
            VSTORE(added ? VLOAD(0, row + f) + x : x, 0, row + f);
        }
        LOOP for (; f < width; f++) row[f] = (added ? row[f] : 0.0f) + from[i * ldf + f] * factor;
    }
}

OUTLINE void gradient_body(ATTENTION_GRADIENT_ARGUMENTS(PARAMETER) BLOCKS_ARGUMENTS(PARAMETER), long pair)
{
    const long sample = pair / heads, head = pair % heads;
    const int ldq = PADDED(width), ldv = PADDED(width_v), whole = WHOLE_TILES(block);
    const int row_q = ROW_OF(Q_JOINED, heads, width), row_k = ROW_OF(K_JOINED, heads, width);
    const int row_v = ROW_OF(V_JOINED, heads, width_v), row_y = ROW_OF(Y_JOINED, heads, width_v);
    local float *const k_across = scratch, *const v_across = k_across + block * width, *const k_rows = v_across + block * width_v;
    local float *const dk_sum = k_rows + block * ldq, *const dv_sum = dk_sum + whole * ldq;
    local float *const q_rows = dv_sum + whole * ldv, *const dy_rows = q_rows + rows * ldq, *const dq_rows = dy_rows + rows * ldv;
    local float *const s = dq_rows + rows * ldq, *const t = s + rows * block, *const delta = t + rows * block + MR;
    local float *const factors = delta + rows, *const edge = factors + FACTORS(block);
    local int *const seen = (local int *)(edge + V);
    q = HEAD_OF(q, Q_JOINED, heads, length, width);
    dq = HEAD_OF(dq, Q_JOINED, heads, length, width);
    k = HEAD_OF(k, K_JOINED, heads, keys, width);
    dk = HEAD_OF(dk, K_JOINED, heads, keys, width);
    v = HEAD_OF(v, V_JOINED, heads, keys, width_v);
    dv = HEAD_OF(dv, V_JOINED, heads, keys, width_v);
    y = HEAD_OF(y, Y_JOINED, heads, length, width_v);
    dy = HEAD_OF(dy, Y_JOINED, heads, length, width_v);
    bias += sample * bias_sample + head * bias_head;
    softmax += 2 * pair * length;

    LOOP for (int j = 0; j < keys; j += block) {
        const int there = min(block, keys - j);
        bool packed = false;
        clear(dk_sum, whole * ldq);
        clear(dv_sum, whole * ldv);
        LOOP for (int i0 = 0; i0 < length; i0 += rows) {
            const int count = min(rows, length - i0), tiles = (count + MR - 1) / MR;
            int most = 0;
            LOOP for (int tile = 0; tile < tiles; tile++) {
                const int i = i0 + tile * MR;
                seen[tile] = BIAS ? seen_keys(bias + i * bias_row + j, bias_row, min(MR, i0 + count - i), there, edge) : there;
                most = max(most, seen[tile]);
            }
            if (most == 0) {
                clear(dq_rows, count * ldq);
                if (DQ && j == 0) add_rows(dq_rows, ldq, count, width, scale, false, dq + (long)i0 * row_q, row_q);
                continue;
            }
            if (!packed) {
                pack_across(k + (long)j * row_k, row_k, there, width, k_across, block);
                pack_across(v + (long)j * row_v, row_v, there, width_v, v_across, block);
                pack_rows(k + (long)j * row_k, row_k, there, there, width, 1.0f, k_rows);
                packed = true;
            }
            pack_rows(q + (long)i0 * row_q, row_q, count, tiles * MR, width, scale, q_rows);
            pack_rows(dy + (long)i0 * row_y, row_y, count, tiles * MR, width_v, 1.0f, dy_rows);
            LOOP for (int tile = 0; tile < tiles; tile++) {
                const int i = tile * MR, now = seen[tile], vectors = PADDED(now) / V;
                product_rows(q_rows + i * ldq, ldq, k_across, block, width, vectors, 0, s + i * block, block);
                product_rows(dy_rows + i * ldv, ldv, v_across, block, width_v, vectors, 0, t + i * block, block);
                LOOP for (int r = i; r < min(i + MR, count); r++) {
                    const long at = (long)(i0 + r) * row_y;
                    local const float *kept = factors;
#if DROP
                    const ulong position = FIRST_POSITION(i0 + r) + j;
                    drop_factors(constants, stream, threshold, drop_scale, position, now, factors);
                    kept += position % 64;
#endif
                    gradient_row(s + r * block, t + r * block, now, block, bias + (long)(i0 + r) * bias_row + j, kept,
                        softmax + 2 * (i0 + r), dot_row(dy + at, y + at, width_v), edge);
                }
                if (DQ) product_rows(t + i * block, block, k_rows, ldq, now, ldq / V, 0, dq_rows + i * ldq, ldq);
            }
            if (DQ) add_rows(dq_rows, ldq, count, width, scale, j > 0, dq + (long)i0 * row_q, row_q);
            LOOP for (int key = 0; key < most; key += MR) {
                int from = 0, to = tiles;
                LOOP while (seen[from] <= key && from < tiles - 1) from++;
                LOOP while (seen[to - 1] <= key && to > from + 1) to--;
                const int begin = from * MR, depth = min(to * MR, count) - begin;
                if (DV) product_columns(s + begin * block + key, block, dy_rows + begin * ldv, ldv, depth, ldv / V, 1,
                    dv_sum + key * ldv, ldv);
                if (DK) product_columns(t + begin * block + key, block, q_rows + begin * ldq, ldq, depth, ldq / V, 1,
                    dk_sum + key * ldq, ldq);
            }
        }
        if (DK) add_rows(dk_sum, ldq, there, width, 1.0f, false, dk + (long)j * row_k, row_k);
        if (DV) add_rows(dv_sum, ldv, there, width_v, 1.0f, false, dv + (long)j * row_v, row_v);
    }
}

TASK void attention_blocks_gradient(ATTENTION_GRADIENT_ARGUMENTS(PARAMETER) BLOCKS_ARGUMENTS(PARAMETER))
{
    gradient_body(ATTENTION_GRADIENT_ARGUMENTS(NAME) BLOCKS_ARGUMENTS(NAME), get_group_id(1));
}
