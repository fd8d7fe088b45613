/* The convolution that results are compared with. Finite differences want it dozens of times for each case. */
#include "tests/layers/cases.h"

/* A row of outputs at a time, of which the compiler makes vectors. */
static void convolve_row(
    const struct convolution *z, const double *x, const double *w, int64_t n, int64_t k, int64_t oh, double *restrict y)
{
    const int64_t c_group = z->c / z->groups, first = k / (z->k / z->groups) * c_group;
    for (int64_t ow = 0; ow < z->ow; ow++) y[ow] = 0;
    for (int64_t s = 0; s < z->s; s++) {
        const int64_t left = s * z->dil_w - z->pad_w; /* the column that this tap meets in the first output */
        int64_t begin = 0, end = z->ow;
        while (begin < end && left + begin * z->stride_w < 0) begin++;
        while (begin < end && left + (end - 1) * z->stride_w >= z->w) end--;
        for (int64_t c = 0; c < c_group; c++)
            for (int64_t r = 0; r < z->r; r++) {
                const int64_t ih = oh * z->stride_h - z->pad_h + r * z->dil_h;
                if (ih < 0 || ih >= z->h) continue;
                const double *image = x + ((n * z->c + first + c) * z->h + ih) * z->w;
                const double weight = w[((k * c_group + c) * z->r + r) * z->s + s];
                for (int64_t ow = begin; ow < end; ow++) y[ow] += image[left + ow * z->stride_w] * weight;
            }
    }
}

void test_convolve(const struct convolution *z, const double *x, const double *w, double *y)
{
    for (int64_t i = 0; i < z->n * z->k * z->oh; i++) {
        const int64_t plane = i / z->oh;
        convolve_row(z, x, w, plane / z->k, plane % z->k, i % z->oh, y + i * z->ow);
    }
}
