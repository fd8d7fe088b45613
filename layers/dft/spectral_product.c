/* spectral_product: at each frequency, the product of the channels with a complex matrix of its own, as the layers of
 * Fourier neural operators have it (Li et al. 2021). P counts the floats of the frequencies, two for each.
 *
 *   y[n, o, p] = sum over i of x[n, i, p] w[i, o, p]               forward
 *   dx[n, i, p] = sum over o of conj(w[i, o, p]) dy[n, o, p]       gradients, as of real and imaginary parts
 *   dw[i, o, p] = sum over n of conj(x[n, i, p]) dy[n, o, p] */
#include "layers/dft/arguments/spectral_product.h"
#include "base/memory.h"
#include "layers/elementwise.h"
#include "layers/loop/loop.h"
#include "layers/operations.h"
#include "runtime/arguments.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------------------ shapes ---- */

struct sizes {
    int64_t samples, ins, outs, floats; /* floats: two of each frequency */
};

static bool is_weight_gradient(const struct node *node)
{
    return node->operation == &operation_spectral_product_weight_gradient;
}

/* Samples, channels, then frequencies and the two parts. */
static int64_t channels_of(const struct value *value)
{
    return value->shape.sizes[value->batched];
}

static int64_t floats_of(const struct value *value, int before)
{
    int64_t floats = 1;
    for (int i = before; i < value->shape.rank; i++) floats *= value->shape.sizes[i];
    return floats;
}

static struct sizes sizes_of(const struct problem *problem)
{
    const struct value *x = problem->inputs[0];
    const bool weights = is_weight_gradient(problem->node);
    const struct value *w = weights ? problem->outputs[0] : problem->inputs[1];
    return (struct sizes) { .samples = x->batched ? x->shape.sizes[0] : 1,
        .ins = w->shape.sizes[0],
        .outs = w->shape.sizes[1],
        .floats = floats_of(x, x->batched + 1) };
}

static bool same_frequencies(const struct value *x, int from_x, const struct value *w, int from_w)
{
    bool same = x->shape.rank - from_x == w->shape.rank - from_w;
    for (int i = from_x; same && i < x->shape.rank; i++)
        same = x->shape.sizes[i] == w->shape.sizes[i - from_x + from_w];
    return same;
}

/* The output has x's samples and frequencies, and the channels of the weights' axis 1; of the gradient axis 0. */
static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]), *w = graph_at(graph, node->inputs[1]);
    const bool data = node->operation == &operation_spectral_product_data_gradient;
    if (x->shape.rank - x->batched < 2 || value_size(x, 0) != 2)
        return fail(TUTTI_SHAPE,
            "spectral_product: x has %d axes, the last one of size %lld: it must be "
            "[channels, ..., 2]",
            x->shape.rank - x->batched, (long long)value_size(x, 0));
    if (w->batched || w->shape.rank < 3 || !same_frequencies(x, x->batched + 1, w, 2))
        return fail(TUTTI_SHAPE,
            "spectral_product: the weights must be [channels of x, channels of the result, ...], "
            "with the frequencies of x after them, and without a batch");
    if (channels_of(x) != w->shape.sizes[data])
        return fail(TUTTI_SHAPE, "spectral_product: x has %lld channels, but the weights %lld",
            (long long)channels_of(x), (long long)w->shape.sizes[data]);
    outputs[0] =
        (struct value) { .type = TYPE_F32, .batched = x->batched, .rows = x->rows, .shape = x->shape, .axes = x->axes };
    outputs[0].shape.sizes[x->batched] = w->shape.sizes[!data];
    return TUTTI_OK;
}

static tutti_status infer_weight_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]), *dy = graph_at(graph, node->inputs[1]);
    const int frequencies = x->shape.rank - x->batched - 1;
    if (frequencies < 1 || x->batched != dy->batched || !same_frequencies(x, x->batched + 1, dy, dy->batched + 1) ||
        frequencies + 2 > TUTTI_MAX_RANK)
        return fail(TUTTI_SHAPE, "spectral_product: x and the gradient must have the same frequencies");
    outputs[0] = (struct value) { .type = TYPE_F32, .shape = { .rank = frequencies + 2 } };
    outputs[0].shape.sizes[0] = channels_of(x);
    outputs[0].shape.sizes[1] = channels_of(dy);
    for (int i = 0; i < frequencies; i++) outputs[0].shape.sizes[2 + i] = x->shape.sizes[x->batched + 1 + i];
    return TUTTI_OK;
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    const int x = node->inputs[0], w = node->inputs[1], dy = g->outputs[0];
    if (dy == NO_VALUE) return TUTTI_OK;
    if (g->wanted[0])
        g->inputs[0] =
            graph_append(graph, &operation_spectral_product_data_gradient, NULL, (int[]) { dy, w }, 2, node->layer);
    if (g->wanted[1])
        g->inputs[1] =
            graph_append(graph, &operation_spectral_product_weight_gradient, NULL, (int[]) { x, dy }, 2, node->layer);
    return graph->status;
}

/* -------------------------------------------------------------------------------------------------------- loop ---- */

enum { N, I, O, FREQUENCY, PART, AXES };

/* Steps between elements of a value, from sample to sample and so on; 0: it has no such axis. */
struct steps {
    int64_t sample, in, out;
};

/* The three values' steps, in this order: the one whose parts multiply, the other one, the result. */
static void steps_of(const struct problem *problem, struct steps steps[3])
{
    const struct sizes z = sizes_of(problem);
    const struct steps x = { z.ins * z.floats, z.floats, 0 }, w = { 0, z.outs * z.floats, z.floats },
                       y = { z.outs * z.floats, 0, z.floats };
    const struct operation *operation = problem->node->operation;
    steps[0] = operation == &operation_spectral_product_data_gradient ? y : x;
    steps[1] = is_weight_gradient(problem->node) ? y : w;
    steps[2] = operation == &operation_spectral_product ? y : is_weight_gradient(problem->node) ? w : x;
}

static struct loop_operand operand(int input, const struct steps *steps, int64_t offset, int64_t part)
{
    return (struct loop_operand) {
        .input = input, .type = TYPE_F32, .offset = offset, .strides = { steps->sample, steps->in, steps->out, 2, part }
    };
}

static void add_product(struct loop *loop, const struct expression *formula, int a, int b)
{
    struct loop_expression *expression = loop_add_expression(loop, formula, 0, 0);
    expression->variables[VARIABLE_A] = a;
    expression->variables[VARIABLE_B] = b;
}

/* a = x or dy, b = w or dy, of which the conjugate of one is multiplied in gradients. Each part of the result sums
 *   re(a) part(b) + im(a) (other part of b) (-1 or 1),
 * where the sign comes of two operands: im(a) where the sign is 1, else 0, and the other way round. */
static void describe(const struct problem *problem, struct loop *loop)
{
    const struct operation *operation = problem->node->operation;
    const struct sizes z = sizes_of(problem);
    struct steps steps[3];
    steps_of(problem, steps);
    *loop = (struct loop) {
        .rank = AXES, .sizes = { z.samples, z.ins, z.outs, z.floats / 2, 2 }, .reduction = REDUCE_SUM, .scale = 1
    };
    loop->out = operand(0, &steps[2], 0, 1);
    loop->reduced = 1u << (operation == &operation_spectral_product ? I : is_weight_gradient(problem->node) ? N : O);
    /* The data gradient takes the conjugate of w, which then is what is divided into its parts. */
    const int a = operation == &operation_spectral_product_data_gradient;
    const bool positive_first = operation != &operation_spectral_product;
    loop->operands[0] = operand(a, &steps[a], 0, 0);
    loop->operands[1] = operand(!a, &steps[!a], 0, 1);
    loop->operands[2] = loop->operands[3] = operand(a, &steps[a], 1, 0);
    loop->operands[4] = operand(!a, &steps[!a], 1, -1);
    loop->operand_count = 5;
    loop_guard(&loop->operands[2], PART, !positive_first, positive_first ? 1 : 2, 2);
    loop_guard(&loop->operands[3], PART, positive_first, positive_first ? 2 : 1, 2);
    add_product(loop, &operation_mul.pointwise->y, 0, 1);
    add_product(loop, &operation_sub.pointwise->y, 2, 3);
    add_product(loop, &operation_mul.pointwise->y, LOOP_EXPRESSION + 1, 4);
    add_product(loop, &operation_add.pointwise->y, LOOP_EXPRESSION, LOOP_EXPRESSION + 2);
}

/* -------------------------------------------------------------------------------------------------- the kernel ---- */

enum { TILE_B = 4, CHUNK = 2 }; /* channels b that a task computes, and vectors of frequencies */

ARGUMENTS(product, SPECTRAL_PRODUCT_ARGUMENTS)

static int64_t pick(const struct steps *steps, int axis)
{
    return axis == N ? steps->sample : axis == I ? steps->in : steps->out;
}

/* The kernel computes r[a, b] = sum over k of l[a, k] r[k, b]. */
static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct sizes z = sizes_of(problem);
    const int64_t counts[] = { z.samples, z.ins, z.outs };
    const bool weights = is_weight_gradient(problem->node);
    const int form = weights ? 2 : problem->node->operation != &operation_spectral_product;
    const int a = weights ? I : N, k = weights ? N : form ? O : I, b = form == 1 ? I : O;
    struct steps steps[3];
    steps_of(problem, steps);
    struct launch *launch = launch_add(
        list, "spectral_product_cpu", "spectral_product", "-DFORM=%d -DTA=2 -DTB=%d -DCHUNK=%d", form, TILE_B, CHUNK);
    ARGUMENTS_SET(launch, product, .left = operands->inputs[0], .right = operands->inputs[1],
        .result = operands->outputs[0], .floats = z.floats, .as = counts[a], .bs = counts[b], .ks = counts[k],
        .left_a = pick(&steps[0], a), .left_k = pick(&steps[0], k), .right_k = pick(&steps[1], k),
        .right_b = pick(&steps[1], b), .result_a = pick(&steps[2], a), .result_b = pick(&steps[2], b));
    launch_tasks(launch, (size_t)divide_up(counts[b], TILE_B),
        (size_t)divide_up(z.floats, CHUNK * problem->device->vector_width), 1);
    launch_work(launch, problem->node->operation->flops(problem), problem->node->operation->bytes(problem));
}

static const struct implementation vectors = { .name = "vectors", .fits = fits_cpu_class, .emit = emit };
static const struct implementation *const implementations[] = { &vectors, &loop_generated, NULL };

static double flops(const struct problem *problem)
{
    const struct sizes z = sizes_of(problem);
    return 4.0 * (double)(z.samples * z.ins) * (double)(z.outs * z.floats);
}

static double bytes(const struct problem *problem)
{
    const struct sizes z = sizes_of(problem);
    return 4.0 * (double)z.floats * (double)(z.samples * (z.ins + z.outs) + z.ins * z.outs);
}

#define COMMON .loop = describe, .implementations = implementations, .flops = flops, .bytes = bytes

const struct operation operation_spectral_product = {
    .name = "spectral_product",
    .inputs = { { "x" }, { "weights" } },
    .outputs = { { "y" } },
    .infer = infer,
    .gradient = gradient,
    COMMON,
};
const struct operation operation_spectral_product_data_gradient = {
    .name = "spectral_product_data_gradient",
    .inputs = { { "dy" }, { "weights" } },
    .outputs = { { "dx" } },
    .infer = infer,
    COMMON,
};
const struct operation operation_spectral_product_weight_gradient = {
    .name = "spectral_product_weight_gradient",
    .inputs = { { "x" }, { "dy" } },
    .outputs = { { "dw" } },
    .infer = infer_weight_gradient,
    COMMON,
};
