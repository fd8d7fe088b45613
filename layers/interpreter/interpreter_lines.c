/* argmax, topk, cumsum and others along an axis, and operations that depend on the positions of elements. */
#include "layers/interpreter/interpreter.h"

#include "base/memory.h"
#include "layers/lines.h"

#include <math.h>
#include <stdlib.h>

/* Returns the position of element i of a line. */
static int64_t place_of(const struct planes *z, int64_t line, int64_t i)
{
    return (line / z->pixels * z->c + i) * z->pixels + line % z->pixels;
}

/* Returns 1 if x comes before y where the largest numbers come first (or the smallest, unless `largest`), 0 if they
 * are equal, else -1. NaN is the largest; with `first` it comes first in either case. */
static int compare(double x, double y, bool largest, bool first)
{
    if (isnan(x) || isnan(y)) return (isnan(x) - isnan(y)) * (largest || first ? 1 : -1);
    return ((x > y) - (x < y)) * (largest ? 1 : -1);
}

tutti_status interpret_argmax(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct operation *operation = problem->node->operation;
    const struct argmax_attributes *a = argmax_attributes(problem->node);
    const struct planes z = value_planes(problem->inputs[0], a->axis);
    const double *x = arrays->inputs[0];
    for (int64_t line = 0; line < z.n * z.pixels; line++) {
        int64_t best = 0;
        for (int64_t i = 1; i < z.c; i++) {
            const int order =
                compare(x[place_of(&z, line, i)], x[place_of(&z, line, best)], operation != &operation_argmin, true);
            if (order > 0 || (order == 0 && a->last)) best = i;
        }
        if (operation != &operation_hardmax) arrays->outputs[0][line] = (double)best;
        for (int64_t i = 0; i < z.c && operation == &operation_hardmax; i++)
            arrays->outputs[0][place_of(&z, line, i)] = i == best;
    }
    return TUTTI_OK;
}

struct ranked {
    double number;
    int64_t place;
    bool largest;
};

static int by_rank(const void *one, const void *other)
{
    const struct ranked *a = one, *b = other;
    const int order = compare(b->number, a->number, a->largest, false);
    return order ? order : (a->place > b->place) - (a->place < b->place);
}

tutti_status interpret_topk(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct topk_attributes *a = topk_attributes(problem->node);
    const struct planes z = value_planes(problem->inputs[0], a->axis), made = { z.n, a->k, z.pixels };
    struct ranked *all = memory_new((size_t)z.c, sizeof *all);
    if (!all) return TUTTI_NO_MEMORY;
    for (int64_t line = 0; line < z.n * z.pixels; line++) {
        for (int64_t i = 0; i < z.c; i++)
            all[i] = (struct ranked) { arrays->inputs[0][place_of(&z, line, i)], i, a->largest };
        qsort(all, (size_t)z.c, sizeof *all, by_rank);
        for (int64_t i = 0; i < a->k; i++) {
            if (arrays->outputs[0]) arrays->outputs[0][place_of(&made, line, i)] = all[i].number;
            if (arrays->outputs[1]) arrays->outputs[1][place_of(&made, line, i)] = (double)all[i].place;
        }
    }
    free(all);
    return TUTTI_OK;
}

tutti_status interpret_scan(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct scan_attributes *a = scan_attributes(problem->node);
    const struct planes z = value_planes(problem->inputs[0], a->axis);
    const bool product = problem->node->operation == &operation_cumprod;
    for (int64_t line = 0; line < z.n * z.pixels; line++) {
        double so_far = product;
        for (int64_t i = 0; i < z.c; i++) {
            const int64_t at = place_of(&z, line, a->reverse ? z.c - 1 - i : i);
            const double x = arrays->inputs[0][at], before = so_far;
            so_far = product ? so_far * x : so_far + x;
            arrays->outputs[0][at] = a->exclusive ? before : so_far;
        }
    }
    return TUTTI_OK;
}

/* An element's gradient sums over all products that contain it: its other factors times the gradient. */
tutti_status interpret_cumprod_gradient(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct scan_attributes *a = scan_attributes(problem->node);
    const struct planes z = value_planes(problem->inputs[0], a->axis);
    const double *x = arrays->inputs[0], *dy = arrays->inputs[1];
    for (int64_t line = 0; line < z.n * z.pixels; line++) {
        double before = 1;
        for (int64_t i = 0; i < z.c; i++) {
            double factor = before,
                   sum = a->exclusive ? 0 : before * dy[place_of(&z, line, a->reverse ? z.c - 1 - i : i)];
            for (int64_t k = i + 1; k < z.c; k++) {
                const int64_t at = place_of(&z, line, a->reverse ? z.c - 1 - k : k);
                if (a->exclusive) sum += factor * dy[at];
                factor *= x[at];
                if (!a->exclusive) sum += factor * dy[at];
            }
            const int64_t own = place_of(&z, line, a->reverse ? z.c - 1 - i : i);
            arrays->outputs[0][own] = sum;
            before *= x[own];
        }
    }
    return TUTTI_OK;
}

tutti_status interpret_one_hot(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct one_hot_attributes *a = one_hot_attributes(problem->node);
    const struct planes z = value_planes(problem->outputs[0], a->axis);
    for (int64_t line = 0; line < z.n * z.pixels; line++) {
        const double number = rint(arrays->inputs[0][line]);
        const double place = number < 0 ? number + (double)z.c : number;
        for (int64_t i = 0; i < z.c; i++)
            arrays->outputs[0][place_of(&z, line, i)] = place == (double)i ? (double)a->on : (double)a->off;
    }
    return TUTTI_OK;
}

tutti_status interpret_trilu(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct trilu_attributes *a = trilu_attributes(problem->node);
    const struct value *y = problem->outputs[0];
    const int64_t width = value_size(y, 0), height = value_size(y, 1);
    for (int64_t e = 0; e < value_elements(y); e++) {
        const int64_t diagonal = e % width - e / width % height;
        arrays->outputs[0][e] = (a->upper ? diagonal >= a->k : diagonal <= a->k) ? arrays->inputs[0][e] : 0;
    }
    return TUTTI_OK;
}

tutti_status interpret_reverse_sequence(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct reverse_sequence_attributes *a = reverse_sequence_attributes(problem->node);
    const struct value *x = problem->inputs[0], *lengths = problem->inputs[1];
    const struct planes z = value_planes(x, a->axis);
    const struct planes batch = a->batch_axis >= 0 ? value_planes(x, a->batch_axis) : (struct planes) { 1, 1, 1 };
    const int64_t elements = value_elements(x), each = x->batched ? elements / x->shape.sizes[0] : elements;
    for (int64_t e = 0; e < elements; e++) {
        const int64_t time = e / z.pixels % z.c, place = e / batch.pixels % batch.c;
        const double length =
            rint(arrays->inputs[1][(lengths->batched ? e / each * batch.c : 0) + (a->batch_axis >= 0 ? place : 0)]);
        const int64_t last = (int64_t)fmin(length, (double)z.c) - 1;
        arrays->outputs[0][e] = arrays->inputs[0][time <= last ? e + (last - 2 * time) * z.pixels : e];
    }
    return TUTTI_OK;
}
