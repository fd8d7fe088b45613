/* Philox 4x32-10: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC11, section 3.2.
 * base/random.c has the same function. T is uint, or a vector of them: that many blocks at once. */
#define PHILOX(name, T)                                                                                                \
    static void name(uint k0, uint k1, T c0, T c1, T c2, T c3, T out[4])                                               \
    {                                                                                                                  \
        for (int round = 0; round < 10; round++) {                                                                     \
            const T high0 = mul_hi((T)(0xD2511F53u), c0), low0 = (T)(0xD2511F53u) * c0;                                \
            const T high1 = mul_hi((T)(0xCD9E8D57u), c2), low1 = (T)(0xCD9E8D57u) * c2;                                \
            c0 = high1 ^ c1 ^ (T)(k0);                                                                                 \
            c1 = low1;                                                                                                 \
            c2 = high0 ^ c3 ^ (T)(k1);                                                                                 \
            c3 = low0;                                                                                                 \
            k0 += 0x9E3779B9u;                                                                                         \
            k1 += 0xBB67AE85u;                                                                                         \
        }                                                                                                              \
        out[0] = c0;                                                                                                   \
        out[1] = c1;                                                                                                   \
        out[2] = c2;                                                                                                   \
        out[3] = c3;                                                                                                   \
    }

/* The same for vectors of CPUs, which multiply the 32-bit numbers of every second lane into 64-bit ones: even and odd
 * blocks are computed apart, each in the lower half of a 64-bit lane. What upper halves hold is never read. W: a vector
 * of ulong. c: the counter, then the result. */
#define PHILOX_HALF(name, W)                                                                                           \
    INLINE void name(uint k0, uint k1, W c[4])                                                                         \
    {                                                                                                                  \
        for (int round = 0; round < 10; round++) {                                                                     \
            const W p0 = (c[0] & 0xFFFFFFFFul) * 0xD2511F53ul, p1 = (c[2] & 0xFFFFFFFFul) * 0xCD9E8D57ul;              \
            c[0] = (p1 >> 32) ^ c[1] ^ (W)(k0);                                                                        \
            c[1] = p1;                                                                                                 \
            c[2] = (p0 >> 32) ^ c[3] ^ (W)(k1);                                                                        \
            c[3] = p0;                                                                                                 \
            k0 += 0x9E3779B9u;                                                                                         \
            k1 += 0xBB67AE85u;                                                                                         \
        }                                                                                                              \
    }
