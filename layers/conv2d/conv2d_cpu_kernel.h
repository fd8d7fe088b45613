/* Shared by the convolutions of CPU-class devices. One work-item is one task; accumulators are registers.
 *
 * Activations are blocked, [N][ceil(C/V)][H][W][V], and lanes past C are zero; a first layer's image is plain (XV 1).
 * Products broadcast single floats of the source; output channels are in the lanes.
 *
 * Scratch: local memory, which on a CPU is one buffer for each thread and stays in that core's cache from one task to
 * the next. Where the device has too little of it (SCRATCH_GLOBAL 1), a slice of a global buffer for each task. */
#include "arguments/conv2d_groups.h"
#include "arguments/conv2d_same_layout.h"
#include "channels.h"
#include "derivative.h"
#include "element.h"
#include "epilogue.h"

#ifndef SCRATCH_GLOBAL
#define SCRATCH_GLOBAL 0
#endif
#if SCRATCH_GLOBAL
#define SCRATCH global
#define SCRATCH_LOAD VLOAD
#define SCRATCH_STORE VSTORE
#define TASK_SCRATCH(base, floats)                                                                                \
    ((base) +                                                                                                     \
        (size_t)((get_group_id(2) * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0)) * \
            (floats))
#else
#define SCRATCH local
#define SCRATCH_LOAD LOCAL_LOAD
#define SCRATCH_STORE LOCAL_STORE
#define TASK_SCRATCH(base, floats) (base)
#endif

/* Prefetches what is read soon into the first-level cache. */
#if defined(__clang__)
#define PREFETCH_NEAR(p) __builtin_prefetch((const void *)(uintptr_t)(p), 0, 3)
#else
#define PREFETCH_NEAR(p)
#endif

/* STREAM 1: outputs larger than the last cache are written around it. */
#ifndef STREAM
#define STREAM 0
#endif
#if STREAM
#define STORE(p, v) STREAM_AS(OUT0_TYPE, v, 0, p)
#else
#define STORE(p, v) STORE_AS(OUT0_TYPE, v, 0, p)
#endif

/* HALVES 1: a group of channels may begin or end in the middle of a block, and its neighbour stores the other half.
 * `lanes` says which ones are its own. STORE_LANES stores results, STORE_OWN the i-th vector of floats after p. */
#ifndef HALVES
#define HALVES 0
#endif
enum lanes { ALL_LANES, LOWER_LANES, UPPER_LANES };
#if HALVES
#if V == 16
typedef float8 half_vector;
#else
typedef float4 half_vector;
#endif
typedef half_vector half_unaligned __attribute__((aligned(4)));
INLINE void store_lanes(global float *p, VF v, enum lanes lanes)
{
    if (lanes == ALL_LANES)
        STORE(p, v);
    else if (lanes == LOWER_LANES)
        *(global half_unaligned *)p = v.lo;
    else
        *(global half_unaligned *)(p + V / 2) = v.hi;
}
INLINE void store_own(global float *p, VF v, enum lanes lanes)
{
    if (lanes != UPPER_LANES) *(global half_unaligned *)p = v.lo;
    if (lanes != LOWER_LANES) *(global half_unaligned *)(p + V / 2) = v.hi;
}
#define STORE_LANES(p, v, lanes) store_lanes(p, v, lanes)
#define STORE_OWN(v, i, p, lanes) store_own((p) + (size_t)(i)*V, v, lanes)
#else
#define STORE_LANES(p, v, lanes) STORE(p, v)
#define STORE_OWN(v, i, p, lanes) VSTORE(v, i, p)
#endif

/* What a group with `channels` channels has of the blocks of a tensor, counted from the block where it begins. The last
 * group also has the lanes past the last channel. */
struct share {
    int block, begin, end; /* its first block; its first lane, and the one after its last, counted from that block */
};

INLINE struct share share_of(int group, int groups, int channels)
{
    struct share share;
    share.block = group * channels / V;
    share.begin = HALVES ? group * channels % V : 0;
    share.end = group + 1 < groups ? share.begin + channels : share.begin + (channels + V - 1) / V * V;
    return share;
}

/* The lanes of block `block` of a share. */
INLINE enum lanes lanes_of(struct share share, int block)
{
    if (!HALVES) return ALL_LANES;
    return share.begin > block * V ? UPPER_LANES : share.end < (block + 1) * V ? LOWER_LANES : ALL_LANES;
}

#ifndef STATISTICS
#define STATISTICS 0
#endif
#ifndef GATE
#define GATE 0
#endif
#ifndef NORMALISE
#define NORMALISE 0
#endif

/* FINISH: what is stored of a sum. The bias is already in the sum; `at` is an index of elements into add and y. */
#if ADD
#define ADDED(sum, add, at) ((sum) + LOAD_AS(ADD_TYPE, 0, (add) + (at)))
#else
#define ADDED(sum, add, at) (sum)
#endif
#if GATE /* tally_take() has added */
#define FINISH(sum, add, at) (sum)
#elif NORMALISE /* ACTIVATION is what the source goes through */
#define FINISH(sum, add, at) ADDED(sum, add, at)
#else
#define FINISH(sum, add, at) ACTIVATION(ADDED(sum, add, at))
#endif

/* What a task tallies of a block of channels as its results leave the registers: nothing, or with STATISTICS or GATE
 * what follows. All three forms have a struct tally and
 *
 *   TALLY_OF(block)                          one without results
 *   tally_tile(all, first)                   one for a tile whose first number this is: shorter sums round less
 *   tally_take(tile, v, add, at)             takes a result and gives what is to be stored, but for FINISH
 *   tally_prefetch(all, add, at)             what it will read there
 *   tally_join(all, tile)
 *   TALLY_STORE_LANES(all, part, blocks, block, lanes)
 *   TALLY_STORE(all, part, blocks, block)    of all lanes
 *
 * STATISTICS 1: the task also gives count, mean and sum of squared deviations of what it stored for each channel, as
 * its part of [parts][3][blocks][V]. Sums are of differences from the first number, so that a large mean does not
 * cancel. */
#if STATISTICS
#define STATISTICS_PARAMETER STATISTICS_ARGUMENTS(PARAMETER)
#define STATISTICS_ARGUMENT STATISTICS_ARGUMENTS(NAME)
#elif GATE
#define STATISTICS_PARAMETER GATE_ARGUMENTS(PARAMETER)
#define STATISTICS_ARGUMENT GATE_ARGUMENTS(NAME)
#else
#define STATISTICS_PARAMETER
#define STATISTICS_ARGUMENT
#endif

#define TALLY_STORE(m, part, blocks, block) TALLY_STORE_LANES(m, part, blocks, block, ALL_LANES)

/* Returns a result as it is read again once it is stored. */
INLINE VF as_stored(VF v)
{
#if IS_BF16(OUT0_TYPE)
    return AS_VF(TO_VU(round_to_bf16(v)) << 16);
#else
    return v;
#endif
}

#if STATISTICS
struct tally {
    VF shift, sum, lost, squares; /* lost: what the sum has too much, Kahan's compensation */
    int count;
};

#define TALLY_OF(block) tally_from((VF)(0.0f))
INLINE struct tally tally_from(VF shift)
{
    const struct tally none = { shift, (VF)(0.0f), (VF)(0.0f), (VF)(0.0f), 0 };
    return none;
}

INLINE struct tally tally_tile(const struct tally *all, VF first)
{
    return tally_from(all->count ? all->shift : first);
}

INLINE VF tally_take(struct tally *m, VF v, const global add_t *add, size_t at)
{
    const VF stored = as_stored(v), d = stored - m->shift;
    m->sum += d;
    m->squares = fma(d, d, m->squares);
    m->count++;
    return stored;
}

/* Adds the sums of `more`, which has the same shift unless m is empty. (moments_join_parts() of moments.h joins
 * moments about two means.) If the first number lies far from the mean, the sum grows with each tile; without `lost`,
 * what each addition rounds away would grow with it. */
INLINE void tally_join(struct tally *m, const struct tally *more)
{
    const VF term = more->sum - m->lost, sum = m->sum + term;
    m->lost = (sum - m->sum) - term;
    m->sum = sum;
    m->shift = more->shift;
    m->squares += more->squares;
    m->count += more->count;
}

#define TALLY_STORE_LANES(m, part, blocks, block, lanes) tally_store(m, statistics, part, blocks, block, lanes)
INLINE void tally_store(
    const struct tally *m, global float *statistics, int part, int blocks, int block, enum lanes lanes)
{
    const VF count = (VF)((float)m->count), mean = m->sum / count;
    STORE_OWN(count, (size_t)(part * 3) * blocks + block, statistics, lanes);
    STORE_OWN(m->shift + mean, (size_t)(part * 3 + 1) * blocks + block, statistics, lanes);
    STORE_OWN(m->squares - m->sum * mean, (size_t)(part * 3 + 2) * blocks + block, statistics, lanes);
}
#endif

/* GATE 1: the result is the gradient of ACTIVATION(gamma (x - mean) rstd + beta) with x in the result's layout. What is
 * stored is g, that gradient of the activation's input, and the task gives the sums of g and g (x - mean) as its part
 * of [parts][2][blocks][V]. GATE 2: the same, but ACTIVATION is of a sum with something else, and `output` is what it
 * gave. GATE 3: x is the activation's output itself, and there are no sums and no other arguments. An epilogue's
 * addition comes before all that. */
#if GATE
#define TALLY_OF(block) tally_of(x, gamma, beta, mean, rstd, output, channels, block)
#define TALLY_STORE_LANES(m, part, blocks, block, lanes) tally_store(m, statistics, part, blocks, block, lanes)
struct tally {
    const global in2_t *x;
    const global in7_t *output;
    VF a, b, mean, sum, products;
};

INLINE struct tally tally_of(const global in2_t *x, const global float *gamma, const global float *beta,
    const global float *mean, const global float *rstd, const global in7_t *output, int channels, int block)
{
    struct tally gate = { .x = x, .output = output };
    gate.sum = gate.products = (VF)(0.0f);
#if GATE == 3
    gate.a = gate.b = gate.mean = (VF)(0.0f);
#else
    gate.mean = channels_load(mean, block, channels);
    gate.a = channels_load(gamma, block, channels) * channels_load(rstd, block, channels);
    gate.b = beta ? fma(-gate.mean, gate.a, channels_load(beta, block, channels)) : (VF)(0.0f);
#endif
    return gate;
}

/* Returns the gradient at `at`, after the activation, and adds it to the sums. */
INLINE VF tally_take(struct tally *gate, VF sum, const global add_t *add, size_t at)
{
    const VF gradient = ADDED(sum, add, at), x = LOAD_AS(IN2_TYPE, 0, gate->x + at);
#if GATE == 3
    return MASKED(x, gradient);
#else
#if GATE == 2
    const VF output = LOAD_AS(IN7_TYPE, 0, gate->output + at);
#else
    const VF output = fma(x, gate->a, gate->b); /* as batch_norm_cpu.cl makes the output: the same bits */
#endif
    const VF g = as_stored(MASKED(output, gradient));
    gate->sum += g;
    gate->products = fma(g, x - gate->mean, gate->products);
    return g;
#endif
}

/* Returns what the forward convolution had read at `at`. */
INLINE VF tally_source(const struct tally *gate, size_t at)
{
    const VF v = fma(LOAD_AS(IN2_TYPE, 0, gate->x + at), gate->a, gate->b);
    return ACTIVATION(v);
}

INLINE void tally_prefetch(const struct tally *gate, const global add_t *add, size_t at)
{
    PREFETCH_NEAR(gate->x + at);
#if GATE == 2
    PREFETCH_NEAR(gate->output + at);
#endif
#if ADD
    PREFETCH_NEAR(add + at);
#endif
}

INLINE struct tally tally_tile(const struct tally *all, VF first)
{
    struct tally tile = *all;
    tile.sum = tile.products = (VF)(0.0f);
    return tile;
}

INLINE void tally_join(struct tally *all, const struct tally *tile)
{
    all->sum += tile->sum;
    all->products += tile->products;
}

INLINE void tally_store(
    const struct tally *gate, global float *statistics, int part, int blocks, int block, enum lanes lanes)
{
#if GATE < 3
    STORE_OWN(gate->sum, (size_t)(part * 2) * blocks + block, statistics, lanes);
    STORE_OWN(gate->products, (size_t)(part * 2 + 1) * blocks + block, statistics, lanes);
#endif
}
#endif

#if !STATISTICS && !GATE
#define TALLY_OF(block) ((struct tally) { 0 })
#define TALLY_STORE_LANES(m, part, blocks, block, lanes)
struct tally {
    int none;
};

INLINE struct tally tally_tile(const struct tally *all, VF first)
{
    return *all;
}

INLINE VF tally_take(struct tally *m, VF v, const global add_t *add, size_t at)
{
    return v;
}

INLINE void tally_join(struct tally *m, const struct tally *more) { }
#endif
#if !GATE
INLINE void tally_prefetch(const struct tally *m, const global add_t *add, size_t at) { }
#endif

/* NORMALISE 1: the convolution's source is ACTIVATION(gamma (x - mean) rstd + beta), made of x as that is loaded. */
#if NORMALISE
#define NORM_PARAMETERS NORMALISE_ARGUMENTS(PARAMETER)
#define NORM_ARGUMENTS NORMALISE_ARGUMENTS(NAME)
struct norm {
    VF a, b;
};
#define NORM_OF(block) norm_of(gamma, beta, mean, rstd, channels, block)
#define NORMALISED(norm, x) norm_take(norm, x)

INLINE struct norm norm_of(const global float *gamma, const global float *beta, const global float *mean,
    const global float *rstd, int channels, int block)
{
    struct norm norm;
    norm.a = channels_load(gamma, block, channels) * channels_load(rstd, block, channels);
    norm.b = fma(-channels_load(mean, block, channels), norm.a, channels_load(beta, block, channels));
    return norm;
}

INLINE VF norm_take(const struct norm *norm, VF x)
{
    const VF v = fma(x, norm->a, norm->b); /* as batch_norm_cpu.cl makes its output: the same bits */
    return ACTIVATION(v);
}
#else
#define NORM_PARAMETERS
#define NORM_ARGUMENTS
struct norm {
    int none;
};
#define NORM_OF(block) \
    {                  \
        0              \
    }
#define NORMALISED(norm, x) (x)
#endif

/* to[2i], to[2i + 1] = from[i] and from[i + V/2] interleaved. */
INLINE void interleave(const VF *from, VF *to)
{
    UNROLL for (int i = 0; i < V / 2; i++)
    {
        const VF a = from[i], b = from[i + V / 2];
        VF first, second;
        first.even = a.lo;
        first.odd = b.lo;
        second.even = a.hi;
        second.odd = b.hi;
        to[2 * i] = first;
        to[2 * i + 1] = second;
    }
}

/* r[0 .. V-1] becomes its transpose: log2(V) rounds, two at a time, since the code of all takes half a second to
 * compile. */
INLINE void transpose(VF *r)
{
    VF t[V];
    LOOP for (int round = 1; 2 * round < V; round *= 4)
    {
        interleave(r, t);
        interleave(t, r);
    }
#if V == 8
    interleave(r, t);
    LOOP for (int i = 0; i < V; i++) r[i] = t[i];
#endif
}
