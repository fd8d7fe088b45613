/* How a length is divided into passes, for kernels and for the host. A transform of L elements has a pass for each
 * factor: the radix of the next one follows from what is left of L. */
#ifndef DFT_RADIX_H
#define DFT_RADIX_H
static inline int dft_radix(int rest)
{
    if (rest % 8 == 0 && rest != 16) return 8;
    if (rest % 4 == 0) return 4;
    for (int factor = 2; factor * factor <= rest; factor++)
        if (rest % factor == 0) return factor;
    return rest;
}
#endif
