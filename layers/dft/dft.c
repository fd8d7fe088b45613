/* dft: discrete Fourier transforms along an axis, and the builders of those of real images and signals. */
#include "layers/dft/dft.h"

#include <math.h>

#include "graph/network.h"
#include "layers/layers.h"
#include "layers/schema/op_builders.h"
#include "tutti_sequences.h"

ATTRIBUTES_DESCRIBE(dft, ATTRIBUTE(dft, AXIS, axis), ATTRIBUTE(dft, INT, form), ATTRIBUTE(dft, LONG, length),
    ATTRIBUTE(dft, LONG, count), ATTRIBUTE(dft, LONG, from), ATTRIBUTE(dft, LONG, to), ATTRIBUTE(dft, FLAG, inverse),
    ATTRIBUTE(dft, FLAG, doubled), ATTRIBUTE(dft, FLAG, unit), ATTRIBUTE(dft, NUMBER, scale))

static bool real_input(const struct dft_attributes *a)
{
    return a->form == DFT_REAL_TO_COMPLEX;
}

/* The shape and the axes of y, for x of a rank that allows them. */
static void shape_output(const struct value *x, const struct dft_attributes *a, struct value *y)
{
    *y =
        (struct value) { .type = TYPE_F32, .batched = x->batched, .rows = x->rows, .shape = x->shape, .axes = x->axes };
    y->shape.sizes[a->axis] = a->count;
    if (!a->unit && a->form == DFT_REAL_TO_COMPLEX) y->axes.kinds[y->shape.rank++] = AXIS_NONE;
    if (!a->unit && a->form == DFT_COMPLEX_TO_REAL) y->shape.rank--;
    const int last = y->shape.rank - 1;
    if (a->form != DFT_COMPLEX_TO_REAL) y->shape.sizes[last] = 2;
    if (a->form == DFT_COMPLEX_TO_REAL && a->unit) y->shape.sizes[last] = 1;
    if (a->form != DFT_COMPLEX_TO_REAL || a->unit) y->axes.kinds[last] = AXIS_NONE;
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    const struct dft_attributes *a = dft_attributes(node);
    const bool pairs = !real_input(a) || a->unit;
    const int rank = x->shape.rank, axes = rank - pairs;
    if (axes <= x->batched || rank + (real_input(a) && !a->unit) > TUTTI_MAX_RANK)
        return fail(TUTTI_SHAPE, "dft: the input has %d axes: too few or too many", rank - x->batched);
    if (pairs && value_size(x, 0) != (real_input(a) ? 1 : 2))
        return fail(TUTTI_SHAPE, "dft: the last axis of the input has size %lld: complex numbers need 2",
            (long long)value_size(x, 0));
    if (a->axis < x->batched || a->axis >= axes)
        return fail(TUTTI_INVALID, "dft: axis %d does not exist: the input has %d that can be transformed",
            a->axis - x->batched, axes - x->batched);
    const int64_t size = x->shape.sizes[a->axis];
    if (size < 1) return fail(TUTTI_SHAPE, "dft: the axis has the length of sequences: it needs a number");
    if (a->length < 1 || a->length > DFT_MOST || size > a->length || a->count < 1 || a->count > a->length)
        return fail(TUTTI_INVALID,
            "dft: the length is %lld, of %lld elements and for %lld: it must be at least as many, and at most %d",
            (long long)a->length, (long long)size, (long long)a->count, (int)DFT_MOST);
    if (a->from < 0 || a->from >= a->length || a->to < 0 || a->to >= a->length || !isfinite(a->scale))
        return fail(TUTTI_INVALID, "dft: the first positions must lie in the length, and the scale must be finite");
    shape_output(x, a, &outputs[0]);
    return TUTTI_OK;
}

/* The gradient is a transform with the other sign, in which x and y have changed sides. */
static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[0] == NO_VALUE || !g->wanted[0]) return TUTTI_OK;
    struct dft_attributes a = *dft_attributes(node);
    const int64_t from = a.from;
    a.count = graph_at(graph, node->inputs[0])->shape.sizes[a.axis];
    a.from = a.to;
    a.to = from;
    a.inverse = !a.inverse;
    if (a.form != DFT_COMPLEX) a.form = real_input(&a) ? DFT_COMPLEX_TO_REAL : DFT_REAL_TO_COMPLEX;
    g->inputs[0] = graph_append(graph, &operation_dft, &a, g->outputs, 1, node->layer);
    return graph->status;
}

/* FLOPs of fast transforms, as they are usually counted. */
static double flops(const struct problem *problem)
{
    const struct dft_sizes s = dft_sizes_of(problem);
    const double n = (double)s.length, complex = dft_attributes(problem->node)->form == DFT_COMPLEX ? 5 : 2.5;
    return (double)(s.outer * s.inner) * complex * n * log2(n);
}

const struct operation operation_dft = {
    .name = "dft",
    .inputs = { { "x" } },
    .outputs = { { "y" } },
    .attributes = &dft_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .reference = dft_interpret,
    .implementations = dft_implementations,
    .flops = flops,
};

/* -------------------------------------------------------------------------------------------------- builders ---- */

/* Sets the attributes of ONNX's DFT of x, whose last axis has size 1 or 2. axis: of x; length: 0 for that of x. */
static tutti_status dft_resolve(
    const struct value *x, int axis, bool inverse, bool onesided, int64_t length, struct dft_attributes *attributes)
{
    const bool real = value_size(x, 0) == 1, to_real = inverse && onesided;
    const int64_t size = x->shape.sizes[axis];
    if (onesided && !inverse && !real)
        return fail(TUTTI_INVALID, "dft: onesided needs a real input, whose last axis has size 1");
    if (length < 0 || (length == 0 && size < 1))
        return fail(TUTTI_INVALID, "dft: the length is %lld, of an axis of %lld", (long long)length, (long long)size);
    *attributes = (struct dft_attributes) { .axis = axis,
        .inverse = inverse,
        .unit = true,
        .form = to_real ? DFT_COMPLEX_TO_REAL
            : real      ? DFT_REAL_TO_COMPLEX
                        : DFT_COMPLEX,
        .length = length ? length
            : to_real    ? 2 * (size - 1)
                         : size,
        .doubled = to_real };
    attributes->count = onesided && !inverse ? attributes->length / 2 + 1 : attributes->length;
    attributes->scale = inverse ? 1.0f / (float)attributes->length : 1.0f;
    return TUTTI_OK;
}

/* Cuts x to the elements that the transform reads, by a node; returns x if it reads all. */
static int dft_cut(struct graph *graph, int layer, const struct dft_attributes *a, int x)
{
    const struct value *value = graph_at(graph, x);
    const int64_t most = a->form == DFT_COMPLEX_TO_REAL ? a->length / 2 + 1 : a->length;
    if (!value || value->shape.sizes[a->axis] <= most) return x;
    struct window_attributes window = { .shape = value->shape };
    window.shape.sizes[a->axis] = most;
    return graph_append(graph, &operation_window, &window, &x, 1, layer);
}

static int append(struct graph *graph, int layer, const struct dft_attributes *attributes, int x)
{
    return graph_append(graph, &operation_dft, attributes, &x, 1, layer);
}

/* The axis of the value; -1 if it does not exist. Counted within a sample without the last `pairs` axes. */
static int axis_at(const struct value *x, int dimension, int pairs)
{
    const int rank = x->shape.rank - x->batched - pairs, axis = dimension < 0 ? dimension + rank : dimension;
    return axis >= 0 && axis < rank ? axis + x->batched : -1;
}

/* Begins a layer whose input has at least so many axes; NULL after a failure. */
static const struct value *begin(tutti_network *network, tutti_tensor x, const char *name, int axes, int *layer)
{
    const struct value *value = network_operand(network, x);
    if (!value) return NULL;
    *layer = network_layer_begin(network, NULL, name);
    if (value->shape.rank - value->batched >= axes) return value;
    network_fail(network,
        fail(TUTTI_SHAPE, "%s: the input has %d axes: it needs %d at least", name, value->shape.rank - value->batched,
            axes));
    return NULL;
}

/* length and columns: 0 for the default. */
static struct dft_attributes to_spectrum(int axis, int64_t length, int64_t columns)
{
    return (struct dft_attributes) { .axis = axis,
        .form = DFT_REAL_TO_COMPLEX,
        .length = length,
        .count = columns ? columns : length / 2 + 1,
        .scale = 1 };
}

static struct dft_attributes from_spectrum(int axis, int64_t length)
{
    return (struct dft_attributes) { .axis = axis,
        .form = DFT_COMPLEX_TO_REAL,
        .length = length,
        .count = length,
        .inverse = true,
        .doubled = true,
        .scale = 1.0f / (float)length };
}

/* Builder of tutti_op() for ONNX's DFT. */
tutti_status op_dft(const struct append_context *c, const struct op_call *call, int *y)
{
    struct dft_attributes a;
    const struct dft_options *o = call->options;
    const tutti_status status =
        dft_resolve(graph_at(c->graph, call->inputs[0]), o->axis, o->inverse, o->onesided, o->length, &a);
    if (status == TUTTI_OK) *y = append(c->graph, c->layer, &a, dft_cut(c->graph, c->layer, &a, call->inputs[0]));
    return status;
}

static tutti_tensor transform(
    tutti_network *network, tutti_tensor x, const char *name, int dimension, int64_t length, bool inverse)
{
    int layer = -1;
    const struct value *value = begin(network, x, name, inverse ? 2 : 1, &layer);
    if (!value) return (tutti_tensor) { NO_VALUE };
    const int axis = axis_at(value, dimension, inverse);
    if (axis < 0) return network_fail(network, fail(TUTTI_INVALID, "%s: axis %d does not exist", name, dimension));
    const int64_t size = value->shape.sizes[axis];
    const struct dft_attributes a =
        inverse ? from_spectrum(axis, length ? length : 2 * (size - 1)) : to_spectrum(axis, length ? length : size, 0);
    struct graph *graph = &network->graph;
    return network_close(network, layer, append(graph, layer, &a, dft_cut(graph, layer, &a, x.id)));
}

tutti_tensor tutti_rfft(tutti_network *network, tutti_tensor x, int dimension, int64_t length)
{
    return transform(network, x, "rfft", dimension, length, false);
}

tutti_tensor tutti_irfft(tutti_network *network, tutti_tensor x, int dimension, int64_t length)
{
    return transform(network, x, "irfft", dimension, length, true);
}

/* `rows` of the spectrum, from the frequency -rows / 2 on; 0: all, from 0 on. */
static tutti_tensor forward2(tutti_network *network, tutti_tensor x, const char *name, int64_t rows, int64_t columns)
{
    int layer = -1;
    const struct value *value = begin(network, x, name, 2, &layer);
    if (!value) return (tutti_tensor) { NO_VALUE };
    const int last = value->shape.rank - 1;
    const int64_t height = value->shape.sizes[last - 1];
    const struct dft_attributes of_rows = to_spectrum(last, value->shape.sizes[last], columns);
    const struct dft_attributes of_columns = { .axis = last - 1,
        .length = height,
        .count = rows ? rows : height,
        .to = rows > 1 ? height - rows / 2 : 0,
        .scale = 1 };
    struct graph *graph = &network->graph;
    return network_close(network, layer, append(graph, layer, &of_columns, append(graph, layer, &of_rows, x.id)));
}

/* The inverse of forward2(). length: of the rows of the result. */
static tutti_tensor inverse2(
    tutti_network *network, tutti_tensor x, const char *name, int64_t height, int64_t length, bool modes)
{
    int layer = -1;
    const struct value *value = begin(network, x, name, 3, &layer);
    if (!value) return (tutti_tensor) { NO_VALUE };
    const int last = value->shape.rank - 2;
    const int64_t rows = value->shape.sizes[last - 1];
    const struct dft_attributes of_columns = { .axis = last - 1,
        .length = height ? height : rows,
        .count = height ? height : rows,
        .from = modes && rows > 1 ? height - rows / 2 : 0,
        .inverse = true,
        .scale = 1.0f / (float)(height ? height : rows) };
    const struct dft_attributes of_rows = from_spectrum(last, length ? length : 2 * (value->shape.sizes[last] - 1));
    struct graph *graph = &network->graph;
    const int kept = dft_cut(graph, layer, &of_rows, x.id);
    return network_close(network, layer, append(graph, layer, &of_rows, append(graph, layer, &of_columns, kept)));
}

tutti_tensor tutti_rfft2(tutti_network *network, tutti_tensor x)
{
    return forward2(network, x, "rfft2", 0, 0);
}

tutti_tensor tutti_irfft2(tutti_network *network, tutti_tensor x, int64_t length)
{
    return inverse2(network, x, "irfft2", 0, length, false);
}

tutti_tensor tutti_rfft2_modes(tutti_network *network, tutti_tensor x, int64_t rows, int64_t columns)
{
    if (network_ok(network) && (rows < 1 || columns < 1))
        return network_fail(network,
            fail(TUTTI_INVALID, "rfft2_modes: %lld rows and %lld columns of modes: each must be positive",
                (long long)rows, (long long)columns));
    return forward2(network, x, "rfft2_modes", rows, columns);
}

tutti_tensor tutti_irfft2_modes(tutti_network *network, tutti_tensor x, int64_t height, int64_t width)
{
    if (network_ok(network) && (height < 1 || width < 1))
        return network_fail(network,
            fail(TUTTI_INVALID, "irfft2_modes: the result has %lld rows and %lld columns: each must be positive",
                (long long)height, (long long)width));
    return inverse2(network, x, "irfft2_modes", height, width, true);
}
