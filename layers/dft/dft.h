/* The discrete Fourier transform along one axis, and what its implementations read of it.
 *
 *   y[k] = scale * w(k) * sum over j of v(j) x[j] e^(-+ 2 pi i (j + from) (k + to) / length)
 *
 * The sign is + where `inverse` is set. j counts the elements of x, k the `count` elements of y: both may be fewer than
 * `length`. Elements that x does not have are 0, and those that y does not have are not computed. A complex number is
 * two floats on a last axis of size 2. `doubled`: the complex side is one half of a symmetric spectrum, and weights
 * its elements (w or v) by 2 where the other half has an equal one; else they are 1.
 *
 * The gradient is such a transform with the other sign, where x and y have changed sides. */
#ifndef LAYERS_DFT_H
#define LAYERS_DFT_H

#include "layers/operations.h"

enum dft_form {
    DFT_COMPLEX,         /* complex x and y */
    DFT_REAL_TO_COMPLEX, /* real x */
    DFT_COMPLEX_TO_REAL, /* real y: the real part of the sum */
};

struct dft_attributes {
    int axis; /* of x and y */
    enum dft_form form;
    int64_t length, count;
    int64_t from, to; /* positions of the first elements of x and y, from 0 to length - 1 */
    bool inverse, doubled;
    bool unit; /* real values have a last axis of size 1 where complex ones have their size of 2 */
    float scale;
};
ATTRIBUTES(dft)

enum { DFT_MOST = 1 << 24 }; /* the longest: positions are exact in floats */

/* A value is [outer][elements along the axis][inner], each element one or two floats. */
struct dft_sizes {
    int64_t outer, inner;
    int in, out, length;
};
struct dft_sizes dft_sizes_of(const struct problem *problem);
/* For the interpreter. */
struct node_arrays;
tutti_status dft_interpret(const struct problem *problem, const struct node_arrays *arrays);

/* dft_kernels.c */
extern const struct implementation *const dft_implementations[];

#endif
