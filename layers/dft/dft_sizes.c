/* The sizes of a node, for implementations and the reference. */
#include "layers/dft/dft.h"

struct dft_sizes dft_sizes_of(const struct problem *problem)
{
    const struct dft_attributes *a = dft_attributes(problem->node);
    const struct planes planes = value_planes(problem->inputs[0], a->axis);
    return (struct dft_sizes) {
        .outer = planes.n,
        .inner = a->form == DFT_REAL_TO_COMPLEX ? planes.pixels : planes.pixels / 2,
        .in = (int)planes.c,
        .out = (int)a->count,
        .length = (int)a->length,
    };
}
