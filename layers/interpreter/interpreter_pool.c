/* Poolings of images, and their gradients. */
#include "layers/interpreter/interpreter.h"

#include "layers/layers.h"
#include "layers/pool/pool.h"

#include <math.h>
#include <string.h>

/* The pixels of window o along an axis (0: rows): first, last + 1, and what they count in an average. */
struct span {
    int64_t begin, end, count, start; /* start: where the window begins, perhaps outside */
};

static struct span span_of(const struct problem *problem, int axis, int64_t o)
{
    const struct pool_sizes z = pool_sizes_of(problem);
    const struct window *a = &pool_attributes(problem->node)->window;
    const int64_t in = axis ? z.w : z.h, out = axis ? z.ow : z.oh;
    struct span w = { .begin = o * in / out, .end = ((o + 1) * in + out - 1) / out };
    const bool adaptive = pool_is_adaptive(problem->node);
    if (!adaptive) {
        w.start = o * a->stride[axis] - a->padding[axis];
        w.begin = w.start < 0 ? 0 : w.start;
        w.end = w.start + a->kernel[axis] < in ? w.start + a->kernel[axis] : in;
        const int64_t padded = in + a->padding[axis];
        w.count = (w.start + a->kernel[axis] < padded ? w.start + a->kernel[axis] : padded) - w.start;
    }
    if (adaptive || pool_attributes(problem->node)->exclude_padding) w.count = w.end - w.begin;
    return w;
}

tutti_status interpret_max_pool(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct pool_sizes z = pool_sizes_of(problem);
    for (int64_t o = 0; o < z.n * z.c * z.oh * z.ow; o++) {
        const struct span h = span_of(problem, 0, o / z.ow % z.oh), w = span_of(problem, 1, o % z.ow);
        const double *image = arrays->inputs[0] + o / (z.oh * z.ow) * z.h * z.w;
        const int64_t width = pool_attributes(problem->node)->window.kernel[1];
        double most = -INFINITY;
        int64_t place = (h.begin - h.start) * width + w.begin - w.start;
        for (int64_t y = h.begin; y < h.end; y++)
            for (int64_t x = w.begin; x < w.end; x++)
                if (image[y * z.w + x] > most || isnan(image[y * z.w + x])) {
                    most = image[y * z.w + x];
                    place = (y - h.start) * width + x - w.start;
                }
        arrays->outputs[0][o] = most;
        write_if(arrays->outputs[1], o, (double)place);
    }
    return TUTTI_OK;
}

tutti_status interpret_max_pool_gradient(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct pool_sizes z = pool_sizes_of(problem);
    memset(arrays->outputs[0], 0, (size_t)value_elements(problem->outputs[0]) * sizeof(double));
    for (int64_t o = 0; o < z.n * z.c * z.oh * z.ow; o++) {
        const struct span h = span_of(problem, 0, o / z.ow % z.oh), w = span_of(problem, 1, o % z.ow);
        const int64_t place = (int64_t)arrays->inputs[1][o], width = pool_attributes(problem->node)->window.kernel[1];
        const int64_t y = h.start + place / width, x = w.start + place % width;
        if (y < 0 || y >= z.h || x < 0 || x >= z.w) continue; /* positions in trials are made up, and may lie outside */
        arrays->outputs[0][(o / (z.oh * z.ow) * z.h + y) * z.w + x] += arrays->inputs[0][o];
    }
    return TUTTI_OK;
}

/* average_pool and its gradient. */
tutti_status interpret_average_pool(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct pool_sizes z = pool_sizes_of(problem);
    const bool gradient = pool_is_gradient(problem->node);
    double *images = gradient ? arrays->outputs[0] : arrays->inputs[0];
    if (gradient) memset(images, 0, (size_t)value_elements(problem->outputs[0]) * sizeof *images);
    for (int64_t o = 0; o < z.n * z.c * z.oh * z.ow; o++) {
        const struct span h = span_of(problem, 0, o / z.ow % z.oh), w = span_of(problem, 1, o % z.ow);
        const double count = (double)(h.count * w.count), share = gradient ? arrays->inputs[0][o] / count : 0;
        double *image = images + o / (z.oh * z.ow) * z.h * z.w, sum = 0;
        for (int64_t y = h.begin; y < h.end; y++)
            for (int64_t x = w.begin; x < w.end; x++)
                if (gradient)
                    image[y * z.w + x] += share;
                else
                    sum += image[y * z.w + x];
        if (!gradient) arrays->outputs[0][o] = sum / count;
    }
    return TUTTI_OK;
}
