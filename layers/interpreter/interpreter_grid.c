/* grid_sample and its gradients. */
#include "layers/interpreter/interpreter.h"

#include "layers/grid_sample.h"

#include <math.h>
#include <string.h>

/* Up to four elements along an axis, their weights, and the slopes of these by the coordinate. */
struct taps {
    int count;
    int64_t places[4]; /* -1: none */
    double weights[4], slopes[4];
};

/* Reflects p at the borders as often as it is outside; a place outside by half an element remains. */
static double reflected(double p, double size, bool align, double *slope)
{
    const double low = align ? 0 : -0.5, span = align ? size - 1 : size;
    *slope = 0;
    if (span == 0) return 0;
    const double period = fmod(fmod(p - low, 2 * span) + 2 * span, 2 * span);
    *slope = period <= span ? 1 : -1;
    return low + (period <= span ? period : 2 * span - period);
}

static double clipped(double p, double size, double *slope)
{
    if (p < 0 || p > size - 1 || isnan(p)) *slope = 0;
    return p < 0 ? 0 : p <= size - 1 ? p : size - 1;
}

static double padded(double p, double size, const struct grid_sample_attributes *a, double *slope)
{
    if (a->padding == GRID_REFLECTION) p = reflected(p, size, a->align_corners, slope);
    return a->padding == GRID_ZEROS ? p : clipped(p, size, slope);
}

/* Keys' function and its derivative at distance d. */
static double cubic(double d, double *slope)
{
    const double a = -0.75, x = fabs(d), sign = d < 0 ? -1 : 1;
    *slope = sign * (x < 1 ? 3 * (a + 2) * x * x - 2 * (a + 3) * x : a * (3 * x * x - 10 * x + 8));
    return x < 1 ? (a + 2) * x * x * x - (a + 3) * x * x + 1 : a * (x * x * x - 5 * x * x + 8 * x - 4);
}

static struct taps taps_of(const struct grid_sample_attributes *a, double coordinate, double size)
{
    struct taps t = { .count = a->mode == GRID_LINEAR ? 2 : a->mode == GRID_NEAREST ? 1 : 4 };
    const double scale = (a->align_corners ? size - 1 : size) / 2;
    double p = (coordinate + 1) * scale - (a->align_corners ? 0 : 0.5), slope = 1, ignored;
    if (a->mode != GRID_CUBIC) p = padded(p, size, a, &slope);
    const double first = a->mode == GRID_NEAREST ? rint(p) : floor(p) - (a->mode == GRID_CUBIC);
    for (int i = 0; i < t.count; i++) {
        double place = first + i;
        t.weights[i] = a->mode == GRID_LINEAR ? 1 - fabs(p - place) : 1;
        t.slopes[i] = a->mode == GRID_LINEAR ? (i ? slope : -slope) * scale : 0;
        if (a->mode == GRID_CUBIC) {
            t.weights[i] = cubic(p - place, &t.slopes[i]);
            t.slopes[i] *= scale;
            place = padded(place, size, a, &ignored);
        }
        t.places[i] = place >= 0 && place < size ? (int64_t)place : -1;
    }
    return t;
}

static struct taps taps_along(const struct problem *problem, const struct grid_sizes *z, const double *place, int axis)
{
    const int64_t sizes[] = { z->width, z->height, z->depth };
    if (axis < z->axes) return taps_of(grid_sample_attributes(problem->node), place[axis], (double)sizes[axis]);
    return (struct taps) { .count = 1, .weights = { 1 } };
}

/* Visits what place o of sample n reads: with the weight, and its slopes by the coordinates. */
typedef void visit_function(void *argument, int64_t pixel, double weight, const double slopes[3]);

static void visit_place(const struct problem *problem, const struct grid_sizes *z, const double *grid, int64_t n,
    int64_t o, visit_function *visit, void *argument)
{
    const double *place = grid + n * z->grid_stride + o * z->axes;
    const struct taps w = taps_along(problem, z, place, 0), h = taps_along(problem, z, place, 1),
                      d = taps_along(problem, z, place, 2);
    for (int i = 0; i < d.count; i++)
        for (int j = 0; j < h.count; j++)
            for (int k = 0; k < w.count; k++) {
                if (d.places[i] < 0 || h.places[j] < 0 || w.places[k] < 0) continue;
                const double slopes[] = { d.weights[i] * h.weights[j] * w.slopes[k],
                    d.weights[i] * h.slopes[j] * w.weights[k], d.slopes[i] * h.weights[j] * w.weights[k] };
                visit(argument, (d.places[i] * z->height + h.places[j]) * z->width + w.places[k],
                    d.weights[i] * h.weights[j] * w.weights[k], slopes);
            }
}

/* The sampling of all channels of a sample at one place. */
struct sampling {
    const struct grid_sizes *z;
    double *x, *y; /* the sample's; y: at the place */
    double *dgrid;
};

static void read_pixel(void *argument, int64_t pixel, double weight, const double slopes[3])
{
    const struct sampling *s = argument;
    const int64_t pixels = s->z->depth * s->z->height * s->z->width;
    (void)slopes;
    for (int64_t c = 0; c < s->z->channels; c++) s->y[c * s->z->outputs] += weight * s->x[c * pixels + pixel];
}

static void write_pixel(void *argument, int64_t pixel, double weight, const double slopes[3])
{
    const struct sampling *s = argument;
    const int64_t pixels = s->z->depth * s->z->height * s->z->width;
    (void)slopes;
    for (int64_t c = 0; c < s->z->channels; c++) s->x[c * pixels + pixel] += weight * s->y[c * s->z->outputs];
}

static void slope_pixel(void *argument, int64_t pixel, double weight, const double slopes[3])
{
    const struct sampling *s = argument;
    const int64_t pixels = s->z->depth * s->z->height * s->z->width;
    (void)weight;
    for (int64_t c = 0; c < s->z->channels; c++)
        for (int axis = 0; axis < s->z->axes; axis++)
            s->dgrid[axis] += slopes[axis] * s->x[c * pixels + pixel] * s->y[c * s->z->outputs];
}

static tutti_status run(const struct problem *problem, const struct grid_sizes *z, double *x, const double *grid,
    double *y, double *dgrid, visit_function *visit)
{
    const int64_t pixels = z->depth * z->height * z->width;
    for (int64_t n = 0; n < z->samples; n++)
        for (int64_t o = 0; o < z->outputs; o++) {
            struct sampling s = { z, x + n * z->channels * pixels, y + n * z->channels * z->outputs + o,
                dgrid ? dgrid + (n * z->outputs + o) * z->axes : NULL };
            visit_place(problem, z, grid, n, o, visit, &s);
        }
    return TUTTI_OK;
}

tutti_status interpret_grid_sample(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct grid_sizes z = grid_sizes_of(problem->inputs[0], problem->inputs[1]);
    memset(arrays->outputs[0], 0, (size_t)value_elements(problem->outputs[0]) * sizeof(double));
    return run(problem, &z, arrays->inputs[0], arrays->inputs[1], arrays->outputs[0], NULL, read_pixel);
}

tutti_status interpret_grid_data_gradient(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct grid_sizes z = grid_sizes_of(problem->outputs[0], problem->inputs[0]);
    memset(arrays->outputs[0], 0, (size_t)value_elements(problem->outputs[0]) * sizeof(double));
    return run(problem, &z, arrays->outputs[0], arrays->inputs[0], arrays->inputs[1], NULL, write_pixel);
}

tutti_status interpret_grid_grid_gradient(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct grid_sizes z = grid_sizes_of(problem->inputs[0], problem->inputs[1]);
    memset(arrays->outputs[0], 0, (size_t)value_elements(problem->outputs[0]) * sizeof(double));
    return run(problem, &z, arrays->inputs[0], arrays->inputs[1], arrays->inputs[2], arrays->outputs[0], slope_pixel);
}
