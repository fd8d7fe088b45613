/* Integers in files that store the lowest byte first, at any alignment, on every machine. */
#ifndef FORMATS_LITTLE_ENDIAN_H
#define FORMATS_LITTLE_ENDIAN_H

#include <stdint.h>

static inline uint32_t read_le16(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static inline uint32_t read_le24(const unsigned char *at)
{
    return read_le16(at) | (uint32_t)at[2] << 16;
}

static inline uint32_t read_le32(const unsigned char *at)
{
    return read_le24(at) | (uint32_t)at[3] << 24;
}

static inline uint64_t read_le64(const unsigned char *at)
{
    return read_le32(at) | (uint64_t)read_le32(at + 4) << 32;
}

#endif
