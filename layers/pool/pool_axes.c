/* Pooling along one to three axes in tutti_op(). Uses the pooling of images where that is possible: one axis as an
 * image of height 1, three axes by two images. Otherwise each axis is pooled by itself: a maximum of its windows, or
 * a mean or a sum by a table. */
#include <float.h>

#include "layers/layers.h"
#include "layers/pool/pool.h"
#include "layers/sliding.h"

/* --------------------------------------------------------------------------------------------------- images ---- */

/* Operation and attributes of the pooling of images. */
struct image_pool {
    const struct operation *operation;
    bool ceil_mode, exclude_padding;
};

/* Whether an image with `before` at both ends has as many windows. */
static bool is_plain(const struct sliding_axis *a, bool ceil_mode)
{
    const int64_t room = a->in + 2 * a->before - a->reach;
    int64_t out = (room + (ceil_mode ? a->stride - 1 : 0)) / a->stride + 1;
    if (ceil_mode && (out - 1) * a->stride >= a->in + a->before) out--;
    return a->dilation == 1 && a->before <= a->kernel / 2 && room >= 0 && out == a->out;
}

/* Whether is_plain() holds for all axes, with the number of windows rounded down or up. Rounded up, means that count
 * the padding need the same padding at both ends. */
static bool all_plain(const struct sliding *s, struct image_pool *pool)
{
    bool down = true, up = true;
    for (int i = 0; i < s->axes; i++) {
        down &= is_plain(&s->axis[i], false);
        up &= is_plain(&s->axis[i], true) && (pool->exclude_padding || s->axis[i].before == s->axis[i].after);
    }
    pool->ceil_mode = !down;
    return down || up;
}

/* Pools along the two axes of an image. NULL: all windows of that axis have one element. */
static int pool_image(const struct append_context *c, const struct image_pool *pool, const struct sliding_axis *rows,
    const struct sliding_axis *columns, int x)
{
    const struct sliding_axis *axes[] = { rows, columns };
    struct pool_attributes a = { .exclude_padding = pool->exclude_padding, .ceil_mode = pool->ceil_mode };
    for (int i = 0; i < IMAGE_SPACE; i++) {
        a.window.kernel[i] = axes[i] ? axes[i]->kernel : 1;
        a.window.stride[i] = axes[i] ? axes[i]->stride : 1;
        a.window.padding[i] = axes[i] ? axes[i]->before : 0;
    }
    return x == NO_VALUE ? NO_VALUE : graph_append(c->graph, pool->operation, &a, &x, 1, c->layer);
}

static int pool_images(const struct append_context *c, const struct image_pool *pool, const struct sliding *s, int x)
{
    const struct sliding_axis *a = s->axis;
    if (s->axes == 1) {
        x = append_split(c, x, SPACE_AXIS, 1);
        return append_join(c, pool_image(c, pool, NULL, &a[0], x), SPACE_AXIS);
    }
    if (s->axes == 2) return pool_image(c, pool, &a[0], &a[1], x);
    /* [N, C D, H, W], then [N, C, D, H' W']. */
    if (x == NO_VALUE) return NO_VALUE;
    const int64_t channels = graph_at(c->graph, x)->shape.sizes[CHANNEL_AXIS];
    x = pool_image(c, pool, &a[1], &a[2], append_join(c, x, CHANNEL_AXIS));
    x = append_join(c, append_split(c, x, CHANNEL_AXIS, channels), SPACE_AXIS + 1);
    x = pool_image(c, pool, &a[0], NULL, x);
    return append_split(c, x, SPACE_AXIS + 1, a[1].out);
}

/* --------------------------------------------------------------------------------------------- axis by axis ---- */

static tutti_status max_axis(const struct append_context *c, const struct sliding_axis *a, int axis, int *y)
{
    const struct reduce_attributes windows = { .axes = 1u << (axis + 1) };
    const tutti_status status = sliding_im2col(c, a, axis, -FLT_MAX, y);
    *y = append_split(c, *y, axis, a->out);
    if (*y != NO_VALUE) *y = graph_append(c->graph, &operation_reduce_max, &windows, y, 1, c->layer);
    *y = append_join(c, *y, axis);
    return status;
}

/* Weights of a sum of a window's elements: 1, or 1 by the number of elements, with the padding's or without. */
enum weights { WEIGHTS_ONE, WEIGHTS_ALL, WEIGHTS_INSIDE };

static tutti_status add_window(const struct sliding_axis *a, enum weights weights, int64_t window, struct taps *taps)
{
    const int64_t begin = window * a->stride - a->before, d = a->dilation;
    /* Bounds of the window's elements that lie in the axis, and in the axis with its padding. */
    const int64_t first = ((begin < 0 ? -begin : 0) + d - 1) / d;
    int64_t inside = begin < a->in ? (a->in - 1 - begin) / d + 1 : 0, all = (a->in + a->after - 1 - begin) / d + 1;
    tutti_status status = TUTTI_OK;
    inside = inside < a->kernel ? inside : a->kernel;
    all = all < a->kernel ? all : a->kernel;
    const double divisor = weights == WEIGHTS_ONE ? 1 : (double)(weights == WEIGHTS_ALL ? all : inside - first);
    for (int64_t k = first; k < inside && status == TUTTI_OK; k++) status = taps_add(taps, begin + k * d, 1 / divisor);
    return status;
}

static tutti_status sum_axis(
    const struct append_context *c, const struct sliding_axis *a, enum weights weights, int axis, int *y)
{
    struct taps taps = { 0 };
    tutti_status status = taps_new(&taps, a->in, a->out);
    for (int64_t j = 0; j < a->out && status == TUTTI_OK; j++) {
        status = add_window(a, weights, j, &taps);
        taps_end_row(&taps);
    }
    if (status == TUTTI_OK) *y = resample(c, *y, axis, &taps, 0);
    taps_free(&taps);
    return status;
}

static tutti_status sum_axes(const struct append_context *c, const struct sliding *s, enum weights weights, int *y)
{
    tutti_status status = TUTTI_OK;
    for (int i = s->axes - 1; i >= 0 && status == TUTTI_OK; i--)
        status = sum_axis(c, &s->axis[i], weights, SPACE_AXIS + i, y);
    return status;
}

/* ------------------------------------------------------------------------------------------------ operations ---- */

tutti_status op_max_pool(const struct append_context *c, const struct op_call *call, int *y)
{
    struct sliding s;
    tutti_status status = sliding_resolve("max_pool", graph_at(c->graph, call->inputs[0]), call->options, NULL, &s);
    bool dilated = false;
    *y = call->inputs[0];
    for (int i = 0; i < s.axes && status == TUTTI_OK; i++) dilated |= s.axis[i].dilation > 1;
    if (status == TUTTI_OK && !dilated) {
        struct image_pool pool = { &operation_max_pool, false, true };
        if (!all_plain(&s, &pool)) {
            *y = sliding_pad(c, *y, &s, -FLT_MAX);
            pool.ceil_mode = false;
        }
        pool.exclude_padding = false;
        *y = pool_images(c, &pool, &s, *y);
        return TUTTI_OK;
    }
    for (int i = s.axes - 1; i >= 0 && status == TUTTI_OK; i--) status = max_axis(c, &s.axis[i], SPACE_AXIS + i, y);
    return status;
}

tutti_status op_average_pool(const struct append_context *c, const struct op_call *call, int *y)
{
    struct sliding s;
    const tutti_status status =
        sliding_resolve("average_pool", graph_at(c->graph, call->inputs[0]), call->options, NULL, &s);
    const bool all = ((const struct sliding_options *)call->options)->count_include_pad;
    *y = call->inputs[0];
    if (status != TUTTI_OK) return status;
    struct image_pool pool = { &operation_average_pool, false, !all };
    if (!all_plain(&s, &pool)) return sum_axes(c, &s, all ? WEIGHTS_ALL : WEIGHTS_INSIDE, y);
    *y = pool_images(c, &pool, &s, *y);
    return TUTTI_OK;
}

static int constant(const struct append_context *c, const char *name, float value)
{
    return network_constant(c->network, name, TYPE_F32, TUTTI_SHAPE(1), &value);
}

/* (sum of |x|^p)^(1 / p). Where the sum is 0, 1 less 1, as in decompose_reduce_l2(), so that the gradient is 0. */
tutti_status op_lp_pool(const struct append_context *c, const struct op_call *call, int *y)
{
    struct sliding s;
    const float p = ((const struct sliding_options *)call->options)->p;
    tutti_status status = sliding_resolve("lp_pool", graph_at(c->graph, call->inputs[0]), call->options, NULL, &s);
    if (status == TUTTI_OK && !(p >= 1 && p <= 1e6f))
        status = fail(TUTTI_INVALID, "lp_pool: p is %g: it must be from 1 to 1e6", (double)p);
    if (status != TUTTI_OK) return status;
    *y = append_one(c, p == 2 ? &operation_square : &operation_abs, call->inputs[0]);
    if (p != 1 && p != 2) *y = append_two(c, &operation_pow, *y, constant(c, "p", p));
    status = sum_axes(c, &s, WEIGHTS_ONE, y);
    if (status != TUTTI_OK || p == 1) return status;
    const int zero = append_one(c, &operation_not, *y);
    *y = append_two(c, &operation_add, *y, zero);
    *y = p == 2 ? append_one(c, &operation_sqrt, *y) : append_two(c, &operation_pow, *y, constant(c, "1 / p", 1 / p));
    *y = append_two(c, &operation_sub, *y, zero);
    return TUTTI_OK;
}
