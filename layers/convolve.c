/* Convolutions along one to three axes, and their transposition, by conv2d and its data gradient. One axis is an image
 * of height 1. With three axes, im2col along the first makes its kernel positions channels, and its output positions
 * part of the batch. */
#include "base/options.h"
#include "layers/conv2d/conv2d.h"
#include "layers/sliding.h"

/* An image's two axes: the last ones of `s`, or one after a height of 1. */
static struct conv2d_attributes attributes_of(const struct sliding *s)
{
    static const struct sliding_axis one = { 1, 1, 1, 1, 1, 0, 0, 1 };
    struct conv2d_attributes a = { .window.groups = s->groups };
    for (int i = 0; i < IMAGE_SPACE; i++) {
        const int at = s->axes - IMAGE_SPACE + i;
        const struct sliding_axis *from = at < 0 ? &one : &s->axis[at];
        a.window.kernel[i] = from->kernel;
        a.window.stride[i] = from->stride;
        a.window.padding[i] = from->before;
        a.window.dilation[i] = from->dilation;
    }
    return a;
}

/* Whether padding of `before` at both ends gives the same number of windows: conv2d knows no other padding. */
static bool symmetric_padding_suffices(const struct sliding_axis *a)
{
    const int64_t room = a->in + 2 * a->before - a->reach;
    return room >= 0 && room / a->stride + 1 == a->out;
}

/* Merges axis 1 of [N, size, ...] into the batch, or undoes it. size 0: merges. */
static int refold(const struct append_context *c, int x, int64_t size)
{
    struct reshape_attributes attributes = { 0 };
    if (x == NO_VALUE) return NO_VALUE;
    const struct value *from = graph_at(c->graph, x);
    if (c->graph->status == TUTTI_OK)
        c->graph->status = size ? reshape_unfold(from, size, &attributes) : reshape_fold(from, &attributes);
    return graph_append(c->graph, &operation_reshape, &attributes, &x, 1, c->layer);
}

/* The step on images in which both kinds of convolution differ. Values are in `graph`; w [K, C / groups, r, s]. */
typedef int image_function(const struct append_context *c, int x, int w, int bias, struct sliding *s);

static int convolve_image(const struct append_context *c, int x, int w, int bias, struct sliding *s)
{
    bool symmetric = true;
    for (int i = 0; i < s->axes; i++) symmetric &= symmetric_padding_suffices(&s->axis[i]);
    if (!symmetric) x = sliding_pad(c, x, s, 0);
    if (x == NO_VALUE || w == NO_VALUE) return NO_VALUE;
    const struct conv2d_attributes a = attributes_of(s);
    return graph_append(c->graph, &operation_conv2d, &a, (int[]) { x, w, bias }, bias == NO_VALUE ? 2 : 3, c->layer);
}

/* Adds a bias of shape [channels] to an image. */
static int add_bias(const struct append_context *c, int y, int bias)
{
    if (y == NO_VALUE || bias == NO_VALUE) return y;
    const int64_t channels = graph_at(c->graph, bias)->shape.sizes[0];
    bias = append_reshape(c, bias, TUTTI_SHAPE(channels, 1, 1));
    return append_two(c, &operation_add, y, bias);
}

/* Transposed convolution: the data gradient of a convolution of an image with these sizes. Where that would not have
 * as many windows, it is the data gradient for an image without padding, from which the wanted part is cut. */
static int transpose_image(const struct append_context *c, int x, int w, int bias, struct sliding *s)
{
    bool symmetric = true;
    struct sliding whole = *s;
    if (x == NO_VALUE || w == NO_VALUE) return NO_VALUE;
    for (int i = 0; i < s->axes; i++) symmetric &= symmetric_padding_suffices(&s->axis[i]);
    for (int i = 0; i < s->axes && !symmetric; i++) {
        whole.axis[i].in = (s->axis[i].out - 1) * s->axis[i].stride + s->axis[i].reach;
        whole.axis[i].before = 0;
    }
    struct conv2d_attributes a = attributes_of(&whole);
    const struct value *from = graph_at(c->graph, x);
    a.shape = from->shape;
    a.shape.sizes[CHANNEL_AXIS] = graph_at(c->graph, w)->shape.sizes[1] * s->groups;
    for (int i = 0; i < s->axes; i++) a.shape.sizes[IMAGE_RANK - s->axes + i] = whole.axis[i].in;
    int y = graph_append(c->graph, &operation_conv2d_data_gradient, &a, (int[]) { x, w }, 2, c->layer);
    struct window_attributes part = { .shape = a.shape };
    for (int i = 0; i < s->axes; i++) {
        part.begins[IMAGE_RANK - s->axes + i] = s->axis[i].before - whole.axis[i].before;
        part.shape.sizes[IMAGE_RANK - s->axes + i] = s->axis[i].in;
    }
    if (!symmetric && y != NO_VALUE) y = append_window(c, y, &part);
    return add_bias(c, y, bias);
}

/* [N, C, W] as [N, C, 1, W], and back. */
static int along_one(const struct append_context *c, int x, int w, int bias, struct sliding *s, image_function *image)
{
    if (image == convolve_image && !symmetric_padding_suffices(&s->axis[0])) x = sliding_pad(c, x, s, 0);
    x = append_split(c, x, SPACE_AXIS, 1);
    w = append_split(c, w, SPACE_AXIS, 1);
    return append_join(c, image(c, x, w, bias, s), SPACE_AXIS);
}

static struct sliding of_image(const struct sliding *s)
{
    return (struct sliding) { 2, { s->axis[1], s->axis[2] }, s->groups };
}

/* x [N, C, D, H, W] -> [N, D', C r, H, W], whose D' become part of the batch. */
static tutti_status convolve_volume(
    const struct append_context *c, int x, int w, int bias, const struct sliding *s, int *y)
{
    static const int to_batch[] = { 0, 2, 1, 3, 4, 5 }, from_batch[] = { 0, 2, 1, 3, 4 };
    struct sliding image = of_image(s);
    const int64_t depth = s->axis[0].out;
    const tutti_status status = sliding_im2col(c, &s->axis[0], SPACE_AXIS, 0, &x);
    if (status != TUTTI_OK) return status;
    x = append_transpose(c, append_split(c, x, SPACE_AXIS, depth), to_batch);
    x = refold(c, append_join(c, x, SPACE_AXIS), 0);
    x = convolve_image(c, x, append_join(c, w, 1), bias, &image);
    *y = append_transpose(c, refold(c, x, depth), from_batch);
    return TUTTI_OK;
}

/* Reverses sliding_im2col() (col2im): adds windows where they overlap, by the transposed table. */
static tutti_status overlap_add(const struct append_context *c, const struct sliding_axis *a, int axis, int *y)
{
    struct taps windows = { 0 }, taps = { 0 };
    if (*y == NO_VALUE) return TUTTI_OK;
    tutti_status status = sliding_taps(a, &windows);
    if (status == TUTTI_OK) status = taps_transpose(&windows, &taps);
    if (status == TUTTI_OK) *y = resample(c, *y, axis, &taps, 0);
    taps_free(&windows);
    taps_free(&taps);
    return status;
}

/* x [N, C, D', H', W'] -> [N D', M r, H, W] -> [N, M, D' r, H, W] -> [N, M, D, H, W]. */
static tutti_status transpose_volume(
    const struct append_context *c, int x, int w, int bias, const struct sliding *s, int *y)
{
    static const int to_batch[] = { 0, 2, 1, 3, 4 }, from_batch[] = { 0, 2, 1, 3, 4, 5 };
    struct sliding image = of_image(s);
    const int64_t depth = s->axis[0].out, channels = graph_at(c->graph, w)->shape.sizes[1] * s->groups;
    x = refold(c, append_transpose(c, x, to_batch), 0);
    x = transpose_image(c, x, append_join(c, w, 1), NO_VALUE, &image);
    x = append_split(c, refold(c, x, depth), 2, channels);
    *y = append_join(c, append_transpose(c, x, from_batch), SPACE_AXIS);
    const tutti_status status = overlap_add(c, &s->axis[0], SPACE_AXIS, y);
    if (bias == NO_VALUE || *y == NO_VALUE || status != TUTTI_OK) return status;
    bias = append_reshape(c, bias, TUTTI_SHAPE(channels, 1, 1, 1));
    *y = append_two(c, &operation_add, *y, bias);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------------ operations ---- */

/* Checks w: [C, channels / groups, ...] of a transposition, [channels, C / groups, ...] of a convolution. */
static tutti_status check_weights(
    const char *name, const struct graph *graph, const int *inputs, int count, int64_t groups, bool transposed)
{
    const struct value *x = graph_at(graph, inputs[0]), *w = graph_at(graph, inputs[1]);
    const int64_t channels = x->shape.sizes[CHANNEL_AXIS], *sizes = w->shape.sizes;
    const int64_t in = transposed ? sizes[0] : sizes[1] * groups, out = transposed ? sizes[1] * groups : sizes[0];
    const struct value *bias = count > 2 ? graph_at(graph, inputs[2]) : NULL;
    if (w->batched || w->shape.rank != x->shape.rank || in != channels || sizes[0] % groups != 0)
        return fail(TUTTI_SHAPE,
            "%s: weights of %d axes and %lld x %lld channels do not fit an input of %d axes and %lld "
            "channels in %lld groups",
            name, w->shape.rank, (long long)sizes[0], (long long)(w->shape.rank > 1 ? sizes[1] : 0), x->shape.rank,
            (long long)channels, (long long)groups);
    if (bias && (bias->batched || bias->shape.rank != 1 || bias->shape.sizes[0] != out))
        return fail(TUTTI_SHAPE, "%s: the bias must have a number for each of the %lld channels", name, (long long)out);
    return TUTTI_OK;
}

static tutti_status build(const struct append_context *c, const struct op_call *call, bool transposed, int *y)
{
    struct sliding s;
    const int *inputs = call->inputs;
    const char *name = transposed ? "conv_transpose" : "conv";
    const struct graph *graph = c->graph;
    const struct value *x = graph_at(graph, inputs[0]), *w = graph_at(graph, inputs[1]);
    const int bias = call->count > 2 ? inputs[2] : NO_VALUE;
    image_function *image = transposed ? transpose_image : convolve_image;
    tutti_status status = (transposed ? sliding_resolve_transposed : sliding_resolve)(
        name, x, call->options, w->shape.sizes + SPACE_AXIS, &s);
    if (status == TUTTI_OK && (s.groups < 1 || s.groups > INT32_MAX))
        status = fail(TUTTI_INVALID, "%s: group is %lld: it must be at least 1", name, (long long)s.groups);
    if (status == TUTTI_OK) status = check_weights(name, graph, inputs, call->count, s.groups, transposed);
    if (status != TUTTI_OK) return status;
    if (s.axes == 3) return (transposed ? transpose_volume : convolve_volume)(c, inputs[0], inputs[1], bias, &s, y);
    *y = s.axes == 1 ? along_one(c, inputs[0], inputs[1], bias, &s, image) : image(c, inputs[0], inputs[1], bias, &s);
    return TUTTI_OK;
}

tutti_status op_conv(const struct append_context *c, const struct op_call *call, int *y)
{
    return build(c, call, false, y);
}

tutti_status op_conv_transpose(const struct append_context *c, const struct op_call *call, int *y)
{
    return build(c, call, true, y);
}
