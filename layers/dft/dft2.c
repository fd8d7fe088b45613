/* dft2: the operation, its gradient and its reference. dft2.h has the formula. */
#include "layers/dft/dft2.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "layers/dft/dft.h"
#include "layers/interpreter/interpreter.h"

ATTRIBUTES_DESCRIBE(dft2, ATTRIBUTE(dft2, LONG, height), ATTRIBUTE(dft2, LONG, width), ATTRIBUTE(dft2, LONG, rows),
    ATTRIBUTE(dft2, LONG, columns), ATTRIBUTE(dft2, LONG, first), ATTRIBUTE(dft2, FLAG, inverse),
    ATTRIBUTE(dft2, FLAG, doubled), ATTRIBUTE(dft2, NUMBER, scale))

int64_t dft2_images(const struct problem *problem)
{
    const struct dft2_attributes *a = dft2_attributes(problem->node);
    return value_elements(problem->inputs[0]) / (a->inverse ? 2 * a->rows * a->columns : a->height * a->width);
}

int64_t dft2_half_rows(const struct dft2_attributes *a)
{
    int64_t most = 0;
    for (int64_t r = 0; r < a->rows; r++) {
        const int64_t k = (a->first + r) % a->height, half = k < a->height - k ? k : a->height - k;
        if (half > most) most = half;
    }
    return most + 1;
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    const struct dft2_attributes *a = dft2_attributes(node);
    const int rank = x->shape.rank - a->inverse;
    const int64_t height = a->inverse ? a->rows : a->height, width = a->inverse ? a->columns : a->width;
    if (a->height < 1 || a->width < 1 || a->height > DFT_MOST || a->width > DFT_MOST || a->rows < 1 ||
        a->rows > a->height || a->columns < 1 || a->columns > a->width / 2 + 1 || a->first < 0 ||
        a->first >= a->height || !isfinite(a->scale))
        return fail(TUTTI_INVALID, "dft2: the frequencies must lie in the lengths of the axes");
    if (rank < 2 + x->batched || rank >= TUTTI_MAX_RANK || x->shape.sizes[rank - 2] != height ||
        x->shape.sizes[rank - 1] != width || (a->inverse && value_size(x, 0) != 2))
        return fail(TUTTI_SHAPE, "dft2: the input must be [..., %lld, %lld%s]", (long long)height, (long long)width,
            a->inverse ? ", 2" : "");
    outputs[0] =
        (struct value) { .type = TYPE_F32, .batched = x->batched, .rows = x->rows, .shape = x->shape, .axes = x->axes };
    outputs[0].shape.sizes[rank - 2] = a->inverse ? a->height : a->rows;
    outputs[0].shape.sizes[rank - 1] = a->inverse ? a->width : a->columns;
    outputs[0].shape.sizes[rank] = a->inverse ? 0 : 2;
    outputs[0].shape.rank = rank + !a->inverse;
    outputs[0].axes.kinds[rank] = AXIS_NONE;
    return TUTTI_OK;
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[0] == NO_VALUE || !g->wanted[0]) return TUTTI_OK;
    struct dft2_attributes a = *dft2_attributes(node);
    a.inverse = !a.inverse;
    g->inputs[0] = graph_append(graph, &operation_dft2, &a, g->outputs, 1, node->layer);
    return graph->status;
}

/* ---------------------------------------------------------------------------------------------------- reference ----
 */

/* e^(-2 pi i n / length), times -1 or 1 for the imaginary part. */
struct turn {
    double re, im;
};

static struct turn turn_of(int64_t n, int64_t length, bool inverse)
{
    const double angle = 2 * acos(-1) * (double)(n % length) / (double)length;
    return (struct turn) { cos(angle), inverse ? sin(angle) : -sin(angle) };
}

static double weight_of(const struct dft2_attributes *a, int64_t l)
{
    return a->doubled && l != 0 && 2 * l != a->width ? 2 : 1;
}

/* work: [height][columns][2] */
static void interpret_forward(const struct dft2_attributes *a, const double *x, double *work, double *y)
{
    for (int64_t h = 0; h < a->height; h++)
        for (int64_t l = 0; l < a->columns; l++) {
            double re = 0, im = 0;
            for (int64_t v = 0; v < a->width; v++) {
                const struct turn t = turn_of(l * v, a->width, false);
                re += x[h * a->width + v] * t.re;
                im += x[h * a->width + v] * t.im;
            }
            work[(h * a->columns + l) * 2] = re;
            work[(h * a->columns + l) * 2 + 1] = im;
        }
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t l = 0; l < a->columns; l++, y += 2) {
            double re = 0, im = 0;
            for (int64_t h = 0; h < a->height; h++) {
                const struct turn t = turn_of((a->first + r) % a->height * h, a->height, false);
                const double *z = work + (h * a->columns + l) * 2;
                re += z[0] * t.re - z[1] * t.im;
                im += z[0] * t.im + z[1] * t.re;
            }
            y[0] = (double)a->scale * weight_of(a, l) * re;
            y[1] = (double)a->scale * weight_of(a, l) * im;
        }
}

static void interpret_inverse(const struct dft2_attributes *a, const double *x, double *work, double *y)
{
    for (int64_t h = 0; h < a->height; h++)
        for (int64_t l = 0; l < a->columns; l++) {
            double re = 0, im = 0;
            for (int64_t r = 0; r < a->rows; r++) {
                const struct turn t = turn_of((a->first + r) % a->height * h, a->height, true);
                const double *z = x + (r * a->columns + l) * 2;
                re += z[0] * t.re - z[1] * t.im;
                im += z[0] * t.im + z[1] * t.re;
            }
            work[(h * a->columns + l) * 2] = re * weight_of(a, l);
            work[(h * a->columns + l) * 2 + 1] = im * weight_of(a, l);
        }
    for (int64_t h = 0; h < a->height; h++)
        for (int64_t v = 0; v < a->width; v++) {
            double sum = 0;
            for (int64_t l = 0; l < a->columns; l++) {
                const struct turn t = turn_of(l * v, a->width, true);
                const double *z = work + (h * a->columns + l) * 2;
                sum += z[0] * t.re - z[1] * t.im;
            }
            y[h * a->width + v] = (double)a->scale * sum;
        }
}

tutti_status dft2_interpret(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct dft2_attributes *a = dft2_attributes(problem->node);
    const int64_t pixels = a->height * a->width, numbers = a->rows * a->columns * 2;
    double *work = memory_new((size_t)(a->height * a->columns * 2), sizeof *work);
    if (!work) return TUTTI_NO_MEMORY;
    for (int64_t i = 0; i < dft2_images(problem); i++)
        if (a->inverse)
            interpret_inverse(a, arrays->inputs[0] + i * numbers, work, arrays->outputs[0] + i * pixels);
        else
            interpret_forward(a, arrays->inputs[0] + i * pixels, work, arrays->outputs[0] + i * numbers);
    free(work);
    return TUTTI_OK;
}

/* FLOPs of fast transforms, as they are usually counted; or of products, if these are fewer. */
static double flops(const struct problem *problem)
{
    const struct dft2_attributes *a = dft2_attributes(problem->node);
    const double pixels = (double)(a->height * a->width), columns = (double)a->columns;
    const double fast = 2.5 * pixels * log2(pixels);
    const double products = 2 * pixels * columns + 4 * (double)(a->height * dft2_half_rows(a)) * columns;
    return (double)dft2_images(problem) * (fast < products ? fast : products);
}

static const struct implementation *const implementations[] = { &dft2_products, &dft2_passes, NULL };

const struct operation operation_dft2 = {
    .name = "dft2",
    .inputs = { { "x" } },
    .outputs = { { "y" } },
    .attributes = &dft2_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .reference = dft2_interpret,
    .implementations = implementations,
    .flops = flops,
};
