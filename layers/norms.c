/* Normalisations that are chains of reductions and elementwise operations, or layer_norm where that is the same. */
#include "layers/decompose.h"

#include <inttypes.h>
#include <math.h>

#include "base/memory.h"

ATTRIBUTES_DESCRIBE(norm, ATTRIBUTE(norm, AXIS, axis), ATTRIBUTE(norm, AXES, axes), ATTRIBUTE(norm, NUMBER, epsilon),
    ATTRIBUTE(norm, LONG, count), ATTRIBUTE(norm, NUMBER, alpha), ATTRIBUTE(norm, NUMBER, beta),
    ATTRIBUTE(norm, NUMBER, bias))

static unsigned axes_from(const struct value *x, int axis)
{
    return ((1u << x->shape.rank) - 1) & ~((1u << axis) - 1);
}

static int optional(const int *inputs, int count, int number)
{
    return number < count ? inputs[number] : NO_VALUE;
}

static int check_epsilon(const struct append_context *c, const char *name, float epsilon, int x)
{
    if (epsilon > 0 && !isinf(epsilon)) return x;
    return append_fail(
        c, fail(TUTTI_INVALID, "%s: epsilon is %g: it must be positive and finite", name, (double)epsilon));
}

/* Returns d / sqrt(mean of d² + epsilon) over the axes. d / infinity is 0, which would hide an overflow of the mean.
 * So 0 times the mean is added, which is NaN then. */
static int by_deviation(const struct append_context *c, int d, unsigned axes, float epsilon)
{
    const int variance = append_reduce(c, &operation_reduce_mean, append_one(c, &operation_square, d), axes);
    const int root = append_one(c, &operation_sqrt, append_number(c, &operation_shift, variance, epsilon));
    const int nothing = append_number(c, &operation_scale, variance, 0);
    return append_two(c, &operation_div, d, append_two(c, &operation_add, root, nothing));
}

static int normalised(const struct append_context *c, int x, unsigned axes, float epsilon)
{
    const int mean = append_reduce(c, &operation_reduce_mean, x, axes);
    return by_deviation(c, append_two(c, &operation_sub, x, mean), axes, epsilon);
}

/* Returns scale y + bias, without those that are absent. Both are broadcast to y. */
static int scaled(const struct append_context *c, const char *name, int y, int scale, int bias)
{
    const int before = y;
    if (scale != NO_VALUE) y = append_two(c, &operation_mul, y, scale);
    if (bias != NO_VALUE) y = append_two(c, &operation_add, y, bias);
    const struct value *from = graph_at(c->graph, before), *to = graph_at(c->graph, y);
    if (!from || !to) return NO_VALUE;
    if (shape_equal(from->shape, to->shape)) return y;
    return append_fail(c, fail(TUTTI_SHAPE, "%s: scale and bias must have the input's axes or fewer", name));
}

/* -------------------------------------------------------------------------------------------------- layer_norm ---- */

/* Whether the value has exactly the last axes of x, from `axis` on, for all samples. */
static bool has_last_axes(const struct value *x, int axis, const struct value *value)
{
    bool has = value && !value->batched && value->shape.rank == x->shape.rank - axis;
    for (int i = axis; has && i < x->shape.rank; i++)
        has = x->shape.sizes[i] == value->shape.sizes[i - axis] && x->shape.sizes[i] != TUTTI_SEQUENCE;
    return has;
}

static int zeros(const struct append_context *c, int64_t width)
{
    float *values = memory_new((size_t)width, sizeof *values);
    if (!values) return append_fail(c, TUTTI_NO_MEMORY);
    const int made = network_constant(c->network, NULL, TYPE_F32, TUTTI_SHAPE(width), values);
    free(values);
    return made;
}

/* The axes as one row. */
static int norm_of_rows(const struct append_context *c, int x, int axis, int gamma, int beta, float epsilon)
{
    const tutti_shape whole = graph_at(c->graph, x)->shape;
    tutti_shape rows = { .rank = axis + 1 };
    rows.sizes[axis] = 1;
    for (int i = 0; i < whole.rank; i++)
        rows.sizes[i < axis ? i : axis] = i <= axis ? whole.sizes[i] : rows.sizes[axis] * whole.sizes[i];
    const tutti_shape width = TUTTI_SHAPE(rows.sizes[axis]);
    const struct layer_norm_attributes attributes = { axis, epsilon };
    const int inputs[] = { append_reshape(c, x, rows), append_reshape(c, gamma, width),
        beta == NO_VALUE ? zeros(c, width.sizes[0]) : append_reshape(c, beta, width) };
    const int y = graph_append(c->graph, &operation_layer_norm, &attributes, inputs, 3, c->layer);
    return append_reshape(c, y, whole);
}

int decompose_layer_norm(const struct append_context *c, const void *attributes, const int *inputs, int count)
{
    const struct norm_attributes *a = attributes;
    const struct value *x = graph_at(c->graph, inputs[0]);
    const int gamma = optional(inputs, count, 1), beta = optional(inputs, count, 2);
    const bool of_rows = has_last_axes(x, a->axis, graph_at(c->graph, gamma)) &&
        (beta == NO_VALUE || has_last_axes(x, a->axis, graph_at(c->graph, beta)));
    if (check_epsilon(c, "layer_norm", a->epsilon, inputs[0]) == NO_VALUE) return NO_VALUE;
    if (of_rows) return norm_of_rows(c, inputs[0], a->axis, gamma, beta, a->epsilon);
    return scaled(c, "layer_norm", normalised(c, inputs[0], axes_from(x, a->axis), a->epsilon), gamma, beta);
}

int decompose_rms_norm(const struct append_context *c, const void *attributes, const int *inputs, int count)
{
    const struct norm_attributes *a = attributes;
    const unsigned axes = axes_from(graph_at(c->graph, inputs[0]), a->axis);
    if (check_epsilon(c, "rms_norm", a->epsilon, inputs[0]) == NO_VALUE) return NO_VALUE;
    return scaled(c, "rms_norm", by_deviation(c, inputs[0], axes, a->epsilon), optional(inputs, count, 1), NO_VALUE);
}

/* ------------------------------------------------------------------------------------- groups of channels ---- */

/* [channels, ...] as [groups, the rest]; the length of sequences stays an axis. */
static tutti_shape grouped(const struct value *x, int64_t groups)
{
    const int first = x->batched;
    tutti_shape shape = { .rank = first + 2, .sizes = { x->shape.sizes[0] } };
    shape.sizes[first] = groups;
    shape.sizes[first + 1] = x->shape.sizes[first] / groups;
    for (int i = first + 1; i < x->shape.rank; i++)
        if (shape_sequences(&x->shape))
            shape.sizes[shape.rank++] = x->shape.sizes[i];
        else
            shape.sizes[first + 1] *= x->shape.sizes[i];
    return shape;
}

/* A number for each channel or group as a factor of x: its other axes have size 1. */
static int for_channels(const struct append_context *c, int value, int x)
{
    const struct value *number = graph_at(c->graph, value), *of = graph_at(c->graph, x);
    if (!number || !of) return NO_VALUE;
    tutti_shape shape = number->shape;
    for (int i = of->batched + 1; i < of->shape.rank && shape.rank < TUTTI_MAX_RANK; i++) shape.sizes[shape.rank++] = 1;
    return append_reshape(c, value, shape);
}

static int scaled_channels(const struct append_context *c, const char *name, int y, int scale, int bias)
{
    scale = scale == NO_VALUE ? NO_VALUE : for_channels(c, scale, y);
    bias = bias == NO_VALUE ? NO_VALUE : for_channels(c, bias, y);
    return scaled(c, name, y, scale, bias);
}

static int norm_of_groups(
    const struct append_context *c, const char *name, int64_t groups, float epsilon, const int *inputs, int count)
{
    const struct value *x = graph_at(c->graph, inputs[0]);
    const tutti_shape whole = x->shape;
    const int first = x->batched, scale = optional(inputs, count, 1), bias = optional(inputs, count, 2);
    const struct value *factor = graph_at(c->graph, scale);
    const tutti_shape shape = grouped(x, groups);
    if (check_epsilon(c, name, epsilon, inputs[0]) == NO_VALUE) return NO_VALUE;
    if (shape.rank > TUTTI_MAX_RANK)
        return append_fail(c, fail(TUTTI_SHAPE, "%s: the input has too many axes besides sequences", name));
    const unsigned axes = ((1u << shape.rank) - 1) & ~((2u << first) - 1);
    const bool of_groups = factor && value_size(factor, 0) == groups && groups != whole.sizes[first];
    int y = normalised(c, append_reshape(c, inputs[0], shape), axes, epsilon);
    if (of_groups) y = scaled_channels(c, name, y, scale, bias);
    y = append_reshape(c, y, whole);
    return of_groups ? y : scaled_channels(c, name, y, scale, bias);
}

static tutti_status check_channels(const struct value *x, const char *name, int64_t groups)
{
    const int64_t channels = x->shape.rank > x->batched ? x->shape.sizes[x->batched] : 0;
    if (channels < 1) return fail(TUTTI_SHAPE, "%s: the first axis of a sample must be a number of channels", name);
    if (groups >= 1 && channels % groups == 0) return TUTTI_OK;
    return fail(TUTTI_INVALID, "%s: groups is %lld, which does not divide the %lld channels", name, (long long)groups,
        (long long)channels);
}

int decompose_group_norm(const struct append_context *c, const void *attributes, const int *inputs, int count)
{
    const struct norm_attributes *a = attributes;
    const tutti_status status = check_channels(graph_at(c->graph, inputs[0]), "group_norm", a->count);
    if (status != TUTTI_OK) return append_fail(c, status);
    return norm_of_groups(c, "group_norm", a->count, a->epsilon, inputs, count);
}

int decompose_instance_norm(const struct append_context *c, const void *attributes, const int *inputs, int count)
{
    const struct norm_attributes *a = attributes;
    const struct value *x = graph_at(c->graph, inputs[0]);
    const tutti_status status = check_channels(x, "instance_norm", 1);
    if (status != TUTTI_OK) return append_fail(c, status);
    return norm_of_groups(c, "instance_norm", x->shape.sizes[x->batched], a->epsilon, inputs, count);
}

/* --------------------------------------------------------------------------------------------------- others ---- */

/* (x - mean) / deviation. The number below gives ONNX's 1e-9 for a deviation of 0, and has a gradient there. */
int decompose_mean_variance_norm(const struct append_context *c, const void *attributes, const int *inputs, int count)
{
    const struct norm_attributes *a = attributes;
    const struct value *x = graph_at(c->graph, inputs[0]);
    const unsigned others = ((1u << x->shape.rank) - 1) & ~((2u << x->batched) - 1);
    (void)count;
    return normalised(c, inputs[0], a->axes ? a->axes : others, 1e-18f);
}

/* x / norm, and 0 where the norm is 0. */
int decompose_lp_norm(const struct append_context *c, const void *attributes, const int *inputs, int count)
{
    const struct norm_attributes *a = attributes;
    const struct reduce_attributes axes = { .axes = 1u << a->axis };
    (void)count;
    if (a->count != 1 && a->count != 2)
        return append_fail(c, fail(TUTTI_UNSUPPORTED, "lp_norm: p is %" PRId64 ": it can be 1 or 2", a->count));
    const int norm =
        a->count == 1 ? decompose_reduce_l1(c, &axes, inputs, 1) : decompose_reduce_l2(c, &axes, inputs, 1);
    const int zero = append_one(c, &operation_not, norm);
    return append_two(c, &operation_div, inputs[0], append_two(c, &operation_add, norm, zero));
}

/* Sums the squares of `size` channels around each one, as so many windows of the squares. */
static int sum_of_neighbours(const struct append_context *c, int squares, int axis, int64_t size)
{
    const int64_t channels = graph_at(c->graph, squares)->shape.sizes[axis];
    int sum = NO_VALUE;
    for (int64_t i = -((size - 1) / 2); i <= size / 2; i++) {
        if (i <= -channels || i >= channels) continue;
        const int window = i == 0 ? squares : append_slice(c, squares, axis, i, channels);
        sum = sum == NO_VALUE ? window : append_two(c, &operation_add, sum, window);
    }
    return sum;
}

int decompose_lrn(const struct append_context *c, const void *attributes, const int *inputs, int count)
{
    enum { MOST = 255 };
    const struct norm_attributes *a = attributes;
    const struct value *x = graph_at(c->graph, inputs[0]);
    const int axis = x->batched;
    const tutti_status status = check_channels(x, "lrn", 1);
    (void)count;
    if (status != TUTTI_OK) return append_fail(c, status);
    if (a->count < 1 || a->count > MOST)
        return append_fail(
            c, fail(TUTTI_INVALID, "lrn: size is %" PRId64 ": it must be from 1 to %d", a->count, (int)MOST));
    const int squares = append_one(c, &operation_square, inputs[0]);
    if (squares == NO_VALUE) return NO_VALUE;
    const int sum = sum_of_neighbours(c, squares, axis, a->count);
    const int mean = append_number(c, &operation_scale, sum, a->alpha / (float)a->count);
    const int root = append_number(c, &operation_power, append_number(c, &operation_shift, mean, a->bias), -a->beta);
    return append_two(c, &operation_mul, inputs[0], root);
}
