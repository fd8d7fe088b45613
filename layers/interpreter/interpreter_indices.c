/* gather, scatter and their gradients. */
#include "layers/interpreter/interpreter.h"

#include "base/memory.h"
#include "layers/indices.h"

#include <math.h>
#include <string.h>

/* The updates of all elements, in their order: update u of element e. */
struct walk {
    struct indexed_sizes z;
    const double *indices;
    int64_t updates; /* of all samples */
    bool together;   /* the elements are the same of all samples */
};

static struct walk walk_of(
    const struct problem *problem, const struct value *data, int indices, const double *numbers, int64_t samples)
{
    struct walk w = { .z = indexed_sizes_of(indexed_attributes(problem->node), data, problem->inputs[indices]),
        .indices = numbers };
    if (samples) w.z.samples = samples;
    w.updates = w.z.samples * w.z.outer * w.z.count * w.z.inner;
    return w;
}

/* Returns the element that update u changes; -1: there is none. */
static int64_t element_of(const struct walk *w, int64_t u)
{
    const struct indexed_sizes *z = &w->z;
    const int64_t i = u % z->inner, k = u / z->inner % z->count, outer = u / z->inner / z->count % z->outer,
                  sample = u / z->inner / z->count / z->outer;
    const double *at =
        w->indices + sample * z->index_sample + outer * z->index_outer + k * z->index_next + i * z->index_inner;
    int64_t element = 0;
    for (int j = 0; j < z->index_length; j++) {
        double number = floor(at[j] + 0.5); /* as clkernels/indices.h */
        if (!(number >= -(double)z->sizes[j] && number < (double)z->sizes[j])) return -1;
        if (number < 0) number += (double)z->sizes[j];
        element = element * z->sizes[j] + (int64_t)number;
    }
    return (((w->together ? 0 : sample) * z->outer + outer) * z->axis + element) * z->inner + i;
}

tutti_status interpret_gather(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct value *data = problem->inputs[0];
    struct walk w = walk_of(problem, data, 1, arrays->inputs[1], 0);
    w.together = !data->batched;
    for (int64_t u = 0; u < w.updates; u++) {
        const int64_t element = element_of(&w, u);
        arrays->outputs[0][u] = element < 0 ? 0 : arrays->inputs[0][element];
    }
    return TUTTI_OK;
}

tutti_status interpret_gather_gradient(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct value *data = problem->outputs[0];
    struct walk w = walk_of(problem, data, 0, arrays->inputs[0], 0);
    w.together = !data->batched;
    memset(arrays->outputs[0], 0, (size_t)value_elements(data) * sizeof(double));
    for (int64_t u = 0; u < w.updates; u++) {
        const int64_t element = element_of(&w, u);
        if (element >= 0) arrays->outputs[0][element] += arrays->inputs[1][u];
    }
    return TUTTI_OK;
}

static bool wins(int reduction, double e, double u)
{
    return !isnan(e) && (reduction == SCATTER_MAX ? !(u <= e) : !(u >= e));
}

static double joined(int reduction, double e, double u)
{
    switch (reduction) {
    case SCATTER_NONE: return u;
    case SCATTER_ADD: return e + u;
    case SCATTER_MUL: return e * u;
    default: return wins(reduction, e, u) ? u : e;
    }
}

/* Sets y to data with all updates. before, if not NULL: each update's element as it was. */
static void scatter(const struct problem *problem, const struct walk *w, const struct value *data, const double *from,
    const struct value *updates, const double *of, double *y, double *before)
{
    const int reduction = indexed_attributes(problem->node)->reduction;
    const int64_t count = value_elements(data), all = value_elements(problem->outputs[0]);
    for (int64_t i = 0; i < all; i++) y[i] = from[i % count];
    for (int64_t u = 0; u < w->updates; u++) {
        const int64_t element = element_of(w, u);
        if (before) before[u] = element < 0 ? 0 : y[element];
        if (element >= 0) y[element] = joined(reduction, y[element], of[u % value_elements(updates)]);
    }
}

tutti_status interpret_scatter(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct value *y = problem->outputs[0];
    const struct walk w =
        walk_of(problem, problem->inputs[0], 1, arrays->inputs[1], y->batched ? y->shape.sizes[0] : 1);
    scatter(problem, &w, problem->inputs[0], arrays->inputs[0], problem->inputs[2], arrays->inputs[2],
        arrays->outputs[0], NULL);
    return TUTTI_OK;
}

/* From the last update to the first: where an update replaced an element, what came before it no longer counts. */
tutti_status interpret_scatter_gradient(const struct problem *problem, const struct node_arrays *arrays)
{
    enum { INDICES, DY, DATA, UPDATES };
    const int reduction = indexed_attributes(problem->node)->reduction;
    const struct value *dy = problem->inputs[DY], *updates = problem->inputs[UPDATES];
    const struct walk w = walk_of(problem, dy, INDICES, arrays->inputs[INDICES], 0);
    double *ddata = arrays->outputs[0], *dupdates = arrays->outputs[1];
    if (reduction > SCATTER_ADD)
        scatter(problem, &w, problem->inputs[DATA], arrays->inputs[DATA], updates, arrays->inputs[UPDATES], ddata,
            dupdates);
    memcpy(ddata, arrays->inputs[DY], (size_t)value_elements(dy) * sizeof *ddata);
    for (int64_t u = w.updates - 1; u >= 0; u--) {
        const int64_t element = element_of(&w, u);
        const double update = updates ? arrays->inputs[UPDATES][u % value_elements(updates)] : 0;
        const double g = element < 0 ? 0 : ddata[element], before = dupdates[u];
        const bool taken = reduction == SCATTER_NONE || (reduction > SCATTER_MUL && wins(reduction, before, update));
        dupdates[u] = reduction == SCATTER_MUL ? g * before : reduction == SCATTER_ADD || taken ? g : 0;
        if (element < 0) continue;
        ddata[element] = reduction == SCATTER_MUL ? g * update : taken ? 0 : g;
    }
    return TUTTI_OK;
}
