/* Indices of the largest elements of MaxPool's windows; and MaxUnpool, which puts elements at such indices. */
#include "onnx/operators.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_AXES = 3, MOST_ELEMENTS = 1 << 24 };

/* How windows of `kernel` elements lie along each axis of an image. */
struct windows {
    int axes;
    int64_t in[MOST_AXES], out[MOST_AXES], kernel[MOST_AXES], stride[MOST_AXES], dilation[MOST_AXES], before[MOST_AXES];
};

static void read_axis(const struct onnx_node *node, const char *name, const struct windows *w, int64_t *list)
{
    size_t count;
    const int64_t *given = node_integers(node, name, &count);
    for (int i = 0; i < w->axes; i++) list[i] = given && (size_t)i < count ? given[i] : 1;
}

/* Reads attributes that the operation max_pool has checked. */
static struct windows read_windows(const struct onnx_node *node, const tutti_shape *x, const tutti_shape *y)
{
    struct windows w = { .axes = x->rank - 1 };
    size_t count;
    const bool upper = node_attribute_is(node, "auto_pad", "SAME_UPPER"),
               lower = node_attribute_is(node, "auto_pad", "SAME_LOWER");
    const int64_t *pads = node_attribute_is(node, "auto_pad", "VALID") ? NULL : node_integers(node, "pads", &count);
    read_axis(node, "kernel_shape", &w, w.kernel);
    read_axis(node, "strides", &w, w.stride);
    read_axis(node, "dilations", &w, w.dilation);
    for (int i = 0; i < w.axes; i++) {
        w.in[i] = x->sizes[i + 1];
        w.out[i] = y->sizes[i + 1];
        w.before[i] = pads && (size_t)i < count ? pads[i] : 0;
        const int64_t over = (w.out[i] - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1 - w.in[i];
        if (upper || lower) w.before[i] = over > 0 ? (over + lower) / 2 : 0;
    }
    return w;
}

static void split(int64_t number, const int64_t *sizes, int count, int64_t *at)
{
    for (int i = count - 1; i >= 0; i--) {
        at[i] = number % sizes[i];
        number /= sizes[i];
    }
}

/* Index of the image's element at a position of a window, in row-major order; -1: there is none. *number: ONNX's index,
 * which can count the first axis fastest. */
static int64_t element_of(
    const struct windows *w, int64_t window, int64_t batch_axis, bool first_fastest, int32_t *number)
{
    int64_t out[MOST_AXES], in_window[MOST_AXES], at[MOST_AXES], element = 0, backwards = 0;
    split(window, w->out, w->axes, out);
    split(batch_axis, w->kernel, w->axes, in_window);
    for (int i = 0; i < w->axes; i++) {
        at[i] = out[i] * w->stride[i] + in_window[i] * w->dilation[i] - w->before[i];
        if (at[i] < 0 || at[i] >= w->in[i]) return -1;
        element = element * w->in[i] + at[i];
    }
    for (int i = w->axes - 1; i >= 0; i--) backwards = backwards * w->in[i] + at[i];
    *number = (int32_t)(first_fastest ? backwards : element);
    return element;
}

static int64_t product(const int64_t *sizes, int count)
{
    int64_t all = 1;
    for (int i = 0; i < count; i++)
        if (__builtin_mul_overflow(all, sizes[i], &all) || all > MOST_ELEMENTS) return INT64_MAX;
    return all;
}

/* Lists the elements of each window, and their numbers. A position in the padding repeats the window's first element,
 * with the number of this element. */
static bool fill(const struct windows *w, bool first_fastest, int32_t *elements, int32_t *numbers)
{
    const int64_t positions = product(w->kernel, w->axes), windows = product(w->out, w->axes);
    for (int64_t i = 0; i < windows; i++) {
        int32_t *own = elements + i * positions, *named = numbers + i * positions, first = -1, number = 0;
        for (int64_t k = 0; k < positions; k++) {
            const int64_t element = element_of(w, i, k, first_fastest, &named[k]);
            own[k] = (int32_t)element;
            if (element < 0 || first >= 0) continue;
            first = (int32_t)element;
            number = named[k];
        }
        if (first < 0) return false;
        for (int64_t k = 0; k < positions; k++) {
            if (own[k] < 0) named[k] = number;
            if (own[k] < 0) own[k] = first;
        }
    }
    return true;
}

/* i times `each`, as floats with the sizes of `shape`. */
static tutti_tensor multiples(
    const struct onnx_node *node, const char *suffix, int64_t count, int64_t each, tutti_shape shape)
{
    int32_t *numbers = memory_new((size_t)count + 1, sizeof *numbers);
    if (!numbers) return (tutti_tensor) { -1 };
    for (int64_t i = 0; i < count; i++) numbers[i] = (int32_t)(i * each);
    const tutti_tensor made = node_integer_constant(node, 1, suffix, shape, numbers);
    free(numbers);
    return tutti_cast(node->import->network, made, TUTTI_DTYPE_F32);
}

/* For x [C, elements]: the number of each window's largest element within its channel, [C, windows]. */
static tutti_tensor largest(const struct onnx_node *node, tutti_tensor x, int64_t windows, int64_t positions,
    const int32_t *elements, const int32_t *numbers)
{
    tutti_tensor pair[] = { x, node_integer_constant(node, 1, "elements", TUTTI_SHAPE(windows, positions), elements) };
    pair[0] = node_op(node, "gather", pair, 2, "axis=1");
    pair[0] = node_op(node, "argmax", pair, 1, "axis=-1 keepdims=0");
    pair[1] = multiples(node, "windows", windows, positions, TUTTI_SHAPE(1, windows));
    const tutti_tensor at = node_binary(node, "add", pair[0], pair[1]);
    const tutti_tensor table = tutti_cast(node->import->network,
        node_integer_constant(node, 1, "numbers", TUTTI_SHAPE(windows * positions), numbers), TUTTI_DTYPE_F32);
    return node_op(node, "gather", (tutti_tensor[]) { table, at }, 2, "axis=0");
}

/* Adds the indices as ONNX counts them: through all samples and channels. */
static tutti_status add_indices(const struct onnx_node *node, const struct operand *x, const tutti_shape *y,
    const int32_t *elements, const int32_t *numbers)
{
    const int64_t channels = x->shape.sizes[0], each = product(x->shape.sizes + 1, x->shape.rank - 1);
    const int64_t windows = product(y->sizes + 1, y->rank - 1);
    size_t rank;
    const int64_t *kernel = node_integers(node, "kernel_shape", &rank), positions = product(kernel, (int)rank);
    tutti_tensor made = largest(
        node, node_reshape(node, x->tensor, &TUTTI_SHAPE(channels, each)), windows, positions, elements, numbers);
    made = node_binary(node, "add", made, multiples(node, "channels", channels, each, TUTTI_SHAPE(channels, 1)));
    made = node_reshape(node, made, y);
    struct onnx_value *output = node_output(node, 1);
    node_set_type(node, 1, ONNX_INT64);
    if (operand_has_batch_axis(x)) {
        output->index = (struct batch_index) { channels * each, ALL_COMPONENTS };
        return node_set_output_at(node, 1, made, x->batch);
    }
    struct batch_axis batch_axis = x->batch;
    made = node_op(node, "unfold", &made, 1, "size=%" PRId64, batch_axis.rows_per_sample);
    tutti_shape apart = { .rank = y->rank + 1, .sizes = { batch_axis.rows_per_sample } };
    for (int i = 1; i < apart.rank; i++) apart.sizes[i] = 1;
    made =
        node_binary(node, "add", made, multiples(node, "samples", batch_axis.rows_per_sample, channels * each, apart));
    batch_axis.rows_per_sample = 1;
    return node_set_output_at(node, 1, made, batch_axis);
}

tutti_status node_max_pool_indices(const struct onnx_node *node, const struct operand *x, tutti_tensor pooled)
{
    tutti_shape y;
    tutti_status status =
        pooled.id < 0 ? tutti_network_status(node->import->network) : tutti_shape_of(node->import->network, pooled, &y);
    if (status != TUTTI_OK) return status;
    if (y.rank < 2 || y.rank > MOST_AXES + 1 || y.rank != x->shape.rank)
        return node_refuse("its indices are of 1 to 3 axes");
    if (operand_has_batch_axis(x) && x->batch.rows_per_sample != 1)
        return node_refuse("its indices would count rows of samples");
    const struct windows w = read_windows(node, &x->shape, &y);
    int64_t all = product(w.out, w.axes);
    const int64_t positions = product(w.kernel, w.axes);
    if (__builtin_mul_overflow(all, positions, &all) || all > MOST_ELEMENTS ||
        product(x->shape.sizes, x->shape.rank) > MOST_ELEMENTS / x->batch.rows_per_sample)
        return node_refuse("it has more than %d elements in its windows, or in its input", MOST_ELEMENTS);
    int32_t *elements = memory_new((size_t)all, sizeof *elements), *numbers = memory_new((size_t)all, sizeof *numbers);
    if (!elements || !numbers)
        status = TUTTI_NO_MEMORY;
    else if (!fill(&w, node_integer(node, "storage_order", 0) == 1, elements, numbers))
        status = node_refuse("a window has nothing but padding");
    else
        status = add_indices(node, x, &y, elements, numbers);
    free(elements);
    free(numbers);
    return status;
}

/* --------------------------------------------------------------------------------------------------- MaxUnpool ---- */

/* The shape [C, ...] of the image that the indices refer to: the one that the windows fill. */
static tutti_status filled_shape(const struct onnx_node *node, const tutti_shape *x, tutti_shape *filled)
{
    size_t kernels, strides, pads;
    const int64_t *kernel = node_integers(node, "kernel_shape", &kernels);
    const int64_t *stride = node_integers(node, "strides", &strides), *pad = node_integers(node, "pads", &pads);
    const size_t axes = (size_t)x->rank - 1;
    if (kernels != axes || (stride && strides != axes) || (pad && pads != 2 * axes) || axes < 1 || axes > MOST_AXES)
        return fail(TUTTI_FORMAT, "kernel_shape, strides and pads need a number for each of 1 to 3 axes");
    *filled = *x;
    for (size_t i = 0; i < axes; i++) {
        int64_t size;
        if (__builtin_mul_overflow(x->sizes[i + 1] - 1, stride ? stride[i] : 1, &size) || size > INT32_MAX ||
            size < 0 || kernel[i] < 1 || kernel[i] > INT32_MAX)
            return fail(TUTTI_FORMAT, "kernel_shape or strides are too large, or negative");
        for (size_t side = 0; pad && side < 2; side++)
            if (pad[i + side * axes] < 0 || pad[i + side * axes] > INT32_MAX)
                return fail(TUTTI_FORMAT, "pads are negative");
        size += kernel[i] - (pad ? pad[i] + pad[i + axes] : 0);
        if (size < 1) return fail(TUTTI_FORMAT, "pads leave nothing");
        filled->sizes[i + 1] = size;
    }
    return TUTTI_OK;
}

/* The output_shape of the file without the batch axis; if it has none, the filled shape. */
static tutti_status asked_shape(const struct onnx_node *node, const tutti_shape *filled, tutti_shape *asked)
{
    const struct array *array = NULL;
    *asked = *filled;
    if (!node_input(node, 2)) return TUTTI_OK;
    const tutti_status status = node_array(node, 2, &array);
    if (status != TUTTI_OK) return status;
    if (!array->integers || array->count != (size_t)filled->rank + 1)
        return fail(TUTTI_FORMAT, "output_shape needs a size for each axis");
    for (int i = 0; i < filled->rank; i++) {
        asked->sizes[i] = array->integers[i + 1].number;
        if (array->integers[i + 1].batches || asked->sizes[i] < filled->sizes[i] || asked->sizes[i] > INT32_MAX)
            return node_refuse("output_shape must be known, and not smaller than what the windows fill");
    }
    return TUTTI_OK;
}

/* x [C, ...] with zeros after it. */
static tutti_tensor enlarge(
    const struct onnx_node *node, tutti_tensor x, const tutti_shape *from, const tutti_shape *to)
{
    int64_t before[TUTTI_MAX_RANK] = { 0 }, after[TUTTI_MAX_RANK];
    bool more = false;
    for (int i = 0; i < from->rank; i++) {
        after[i] = to->sizes[i] - from->sizes[i];
        more |= after[i] > 0;
    }
    if (!more) return x;
    return node_op(node, "pad", &x, 1, "before=%s after=%s", list_print(before, from->rank).text,
        list_print(after, from->rank).text);
}

tutti_status build_max_unpool(struct onnx_node *node)
{
    struct operand x, indices;
    tutti_shape sample, filled, asked;
    tutti_status status = node_batched(node, 0, &x);
    if (status == TUTTI_OK) status = node_batched(node, 1, &indices);
    if (status != TUTTI_OK) return status;
    const bool whole = batch_is_whole(&x.batch);
    if (!batch_axis_equal(&x.batch, &indices.batch) ||
        (!whole && (x.batch.axis > 0 || x.batch.rows_per_sample != 1 || x.batch.outer != 1)) ||
        x.shape.rank < 2 + whole)
        return node_refuse("the batch must be the first axis of its inputs, which have channels after it");
    sample = x.shape;
    if (whole) sample = (tutti_shape) { .rank = x.shape.rank - 1 };
    for (int i = 0; whole && i < sample.rank; i++) sample.sizes[i] = x.shape.sizes[i + 1];
    status = filled_shape(node, &sample, &filled);
    if (status == TUTTI_OK) status = asked_shape(node, &filled, &asked);
    if (status != TUTTI_OK) return status;
    const int64_t factor = node_input(node, 1)->index.factor;
    if (!whole && factor == product(asked.sizes, asked.rank)) filled = asked; /* MaxPool's image was this one */
    const int64_t each = product(filled.sizes, filled.rank), count = product(x.shape.sizes, x.shape.rank);
    const int64_t samples = whole ? x.shape.sizes[0] : 1;
    if (each > MOST_ELEMENTS / samples || count > MOST_ELEMENTS)
        return node_refuse("it has more than %d elements", MOST_ELEMENTS);
    if (!whole && factor != each && node->import->fixed_batch != 1)
        return node_refuse("its indices must be those of MaxPool, of an image of %" PRId64 " elements", each);
    const tutti_tensor zero = node_constant(node, 0);
    const tutti_tensor parts[] = { node_op(node, "expand", &zero, 1, "shape=%" PRId64, samples * each),
        node_reshape(node, indices.tensor, &TUTTI_SHAPE(count)), node_reshape(node, x.tensor, &TUTTI_SHAPE(count)) };
    tutti_tensor y = node_plain(node, "scatter_elements", parts, 3);
    tutti_shape to = filled, wanted = asked;
    for (int i = filled.rank; whole && i > 0; i--) {
        to.sizes[i] = filled.sizes[i - 1];
        wanted.sizes[i] = asked.sizes[i - 1];
    }
    if (whole) to.sizes[0] = wanted.sizes[0] = samples;
    to.rank = wanted.rank += whole;
    return node_set_output(node, enlarge(node, node_reshape(node, y, &to), &to, &wanted), x.batch);
}
