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
