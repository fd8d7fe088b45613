/* The transform by its formula, in double precision: the interpreter's. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "layers/dft/dft.h"
#include "layers/interpreter/interpreter.h"

struct spectrum {
    const struct dft_attributes *a;
    struct dft_sizes sizes;
    const double *cosines; /* of the length's angles, followed by their sines */
    double *x, *y;
};

/* Weight of the complex side's element at a position. */
static double weight(const struct dft_attributes *a, int64_t position)
{
    position %= a->length;
    return a->doubled && position != 0 && 2 * position != a->length ? 2 : 1;
}

/* Computes element k of one transform; i: its position between the elements. */
static void element(const struct spectrum *s, int64_t o, int64_t k, int64_t i)
{
    const struct dft_attributes *a = s->a;
    const struct dft_sizes z = s->sizes;
    const double *sines = s->cosines + a->length;
    double re = 0, im = 0;
    for (int64_t j = 0; j < z.in; j++) {
        const int64_t at = (o * z.in + j) * z.inner + i, angle = (j + a->from) * (k + a->to) % a->length;
        const double c = s->cosines[angle], sine = a->inverse ? sines[angle] : -sines[angle];
        const double v = a->form == DFT_COMPLEX_TO_REAL ? weight(a, j + a->from) : 1;
        const double x = a->form == DFT_REAL_TO_COMPLEX ? s->x[at] : s->x[2 * at];
        const double ix = a->form == DFT_REAL_TO_COMPLEX ? 0 : s->x[2 * at + 1];
        re += v * (x * c - ix * sine);
        im += v * (x * sine + ix * c);
    }
    const int64_t at = (o * z.out + k) * z.inner + i;
    const double w = (double)a->scale * (a->form == DFT_REAL_TO_COMPLEX ? weight(a, k + a->to) : 1);
    if (a->form == DFT_COMPLEX_TO_REAL) {
        s->y[at] = w * re;
    } else {
        s->y[2 * at] = w * re;
        s->y[2 * at + 1] = w * im;
    }
}

tutti_status dft_interpret(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct dft_attributes *a = dft_attributes(problem->node);
    double *angles = memory_new((size_t)a->length * 2, sizeof *angles);
    if (!angles) return TUTTI_NO_MEMORY;
    for (int64_t n = 0; n < a->length; n++) {
        const double angle = 2 * acos(-1) * (double)n / (double)a->length;
        angles[n] = cos(angle);
        angles[a->length + n] = sin(angle);
    }
    const struct spectrum s = { a, dft_sizes_of(problem), angles, arrays->inputs[0], arrays->outputs[0] };
    for (int64_t o = 0; o < s.sizes.outer; o++)
        for (int64_t k = 0; k < s.sizes.out; k++)
            for (int64_t i = 0; i < s.sizes.inner; i++) element(&s, o, k, i);
    free(angles);
    return TUTTI_OK;
}
