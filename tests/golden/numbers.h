/* The pseudo-random numbers of make.py. */
#ifndef TESTS_GOLDEN_NUMBERS_H
#define TESTS_GOLDEN_NUMBERS_H

#include <stdint.h>

static inline uint32_t name_hash(const char *prefix, const char *name)
{
    uint32_t value = 2166136261u;
    for (; *prefix; prefix++) value = (value ^ (unsigned char)*prefix) * 16777619u;
    for (; *name; name++) value = (value ^ (unsigned char)*name) * 16777619u;
    return value;
}

static inline uint32_t golden_bits(uint32_t hash, int64_t index)
{
    uint32_t value = (uint32_t)index * 0x9E3779B1u + hash;
    value ^= value >> 16;
    value *= 0x7FEB352Du;
    value ^= value >> 15;
    value *= 0x846CA68Bu;
    return value ^ value >> 16;
}

static inline double uniform(uint32_t hash, int64_t index)
{
    return (golden_bits(hash, index) >> 16) / 32768.0 - 1;
}

#endif
