/* Counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, SC11).
 * A value depends on its seed, stream and index only. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

void philox4x32(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);
/* Streams keep users of one seed apart: initial weights use the parameter's number, shuffling the epoch, and so on. */
enum random_stream {
    RANDOM_WEIGHTS = 1 << 24,
    RANDOM_SHUFFLE = 2 << 24,
    RANDOM_DROPOUT = 3 << 24,
    RANDOM_DIGITS = 4 << 24,
    RANDOM_BENCH = 5 << 24,
    RANDOM_AUGMENT = 6 << 24, /* and the epoch */
    RANDOM_SPLIT = 7 << 24,
    RANDOM_RECORDINGS = 8 << 24, /* and the epoch */
    RANDOM_NOISE = 9 << 24,      /* and the epoch */
    RANDOM_FOLDS = 10 << 24,
    RANDOM_LAYERS = 11 << 24,
    RANDOM_BUCKETS = 12 << 24, /* and the epoch */
    RANDOM_SAMPLING = 13 << 24
};
uint32_t random_bits(uint64_t seed, uint32_t stream, uint64_t index);
float random_uniform(uint64_t seed, uint32_t stream, uint64_t index); /* [0, 1), 24 bits */
float random_normal(uint64_t seed, uint32_t stream, uint64_t index);  /* Box-Muller */
/* Draws the normal numbers of `count` indexes from `first` on, several times faster than one by one. */
void random_normals(uint64_t seed, uint32_t stream, uint64_t first, size_t count, float *numbers);
/* 0 .. bound - 1, unbiased enough: the upper half of a 64-bit product. */
uint64_t random_below(uint64_t seed, uint32_t stream, uint64_t index, uint64_t bound);

#endif
