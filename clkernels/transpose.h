/* transpose(r): r[i][j] = r[j][i] of V vectors of V elements, in log2(V) rounds, each interleaving vector i with vector
 * i + V / 2. TRANSPOSE(name, VT) makes one for vectors VT of V elements of 32 bits. */
#ifndef TRANSPOSE_H
#define TRANSPOSE_H
#include "vector.h"

#define TRANSPOSE(name, VT)                                                                                            \
    INLINE void name(VT r[V])                                                                                          \
    {                                                                                                                  \
        UNROLL for (int round = 1; round < V; round *= 2)                                                              \
        {                                                                                                              \
            VT t[V];                                                                                                   \
            UNROLL for (int i = 0; i < V / 2; i++)                                                                     \
            {                                                                                                          \
                t[2 * i].even = r[i].lo;                                                                               \
                t[2 * i].odd = r[i + V / 2].lo;                                                                        \
                t[2 * i + 1].even = r[i].hi;                                                                           \
                t[2 * i + 1].odd = r[i + V / 2].hi;                                                                    \
            }                                                                                                          \
            UNROLL for (int i = 0; i < V; i++) r[i] = t[i];                                                            \
        }                                                                                                              \
    }
#endif
