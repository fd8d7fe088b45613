#include "layers/sliding.h"

#include "layers/layers.h"

/* Reads the number of an axis from a list; `fallback` where the list is empty. False: it is not a valid size. */
static bool read_number(const struct integers *list, int i, int64_t fallback, int64_t least, int64_t *number)
{
    *number = list->count ? list->numbers[i] : fallback;
    return *number >= least && *number <= INT32_MAX;
}

static tutti_status check_counts(const char *name, const struct sliding_options *o, int axes)
{
    const struct integers *lists[] = { &o->kernel, &o->strides, &o->dilations, &o->output_padding, &o->output_shape };
    bool good = o->pads.count == 0 || o->pads.count == 2 * axes;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) good &= lists[i]->count == 0 || lists[i]->count == axes;
    if (good) return TUTTI_OK;
    return fail(
        TUTTI_INVALID, "%s: each attribute needs a number for each of the %d axes, and pads need two", name, axes);
}

static tutti_status read_axis(
    const char *name, const struct sliding_options *o, const int64_t *kernel, int i, struct sliding *s)
{
    struct sliding_axis *a = &s->axis[i];
    const int64_t size = kernel ? kernel[i] : 0;
    if (!read_number(&o->kernel, i, size, 1, &a->kernel) || (kernel && a->kernel != size) ||
        !read_number(&o->strides, i, 1, 1, &a->stride) || !read_number(&o->dilations, i, 1, 1, &a->dilation) ||
        !read_number(&o->pads, i, 0, 0, &a->before) || !read_number(&o->pads, i + s->axes, 0, 0, &a->after))
        return fail(TUTTI_INVALID,
            "%s: along axis %d, kernel %lld, stride %lld, dilation %lld and pads %lld and %lld are impossible", name,
            i + 1, (long long)a->kernel, (long long)a->stride, (long long)a->dilation, (long long)a->before,
            (long long)a->after);
    a->reach = a->dilation * (a->kernel - 1) + 1;
    if (a->reach <= INT32_MAX) return TUTTI_OK;
    return fail(
        TUTTI_INVALID, "%s: a window of %lld elements along axis %d is too large", name, (long long)a->reach, i + 1);
}

static tutti_status read_axes(
    const char *name, const struct value *x, const struct sliding_options *o, const int64_t *kernel, struct sliding *s)
{
    *s = (struct sliding) { .axes = x->shape.rank - SPACE_AXIS, .groups = o->group };
    if (!x->batched || s->axes < 1 || s->axes > SLIDING_AXES)
        return fail(TUTTI_SHAPE, "%s: the input must have 2 to 4 axes, of which the first one is the channels", name);
    tutti_status status = shape_check_numbers(&x->shape, name);
    if (status == TUTTI_OK) status = check_counts(name, o, s->axes);
    for (int i = 0; i < s->axes && status == TUTTI_OK; i++) status = read_axis(name, o, kernel, i, s);
    return status;
}

/* Divides the padding between both ends of an axis. An odd element goes after if `more_after`, else before. */
static void divide_padding(struct sliding_axis *a, int64_t total, bool more_after)
{
    if (total < 0) total = 0;
    a->before = more_after ? total / 2 : total - total / 2;
    a->after = total - a->before;
}

tutti_status sliding_resolve(
    const char *name, const struct value *x, const struct sliding_options *o, const int64_t *kernel, struct sliding *s)
{
    tutti_status status = read_axes(name, x, o, kernel, s);
    for (int i = 0; i < s->axes && status == TUTTI_OK; i++) {
        struct sliding_axis *a = &s->axis[i];
        a->in = x->shape.sizes[SPACE_AXIS + i];
        if (o->auto_pad == AUTO_PAD_VALID) a->before = a->after = 0;
        if (o->auto_pad == AUTO_PAD_SAME_UPPER || o->auto_pad == AUTO_PAD_SAME_LOWER)
            divide_padding(
                a, ((a->in - 1) / a->stride) * a->stride + a->reach - a->in, o->auto_pad == AUTO_PAD_SAME_UPPER);
        const int64_t room = a->in + a->before + a->after - a->reach;
        if (room < 0)
            return fail(TUTTI_SHAPE, "%s: a window spans %lld elements along axis %d, which has %lld with its pads",
                name, (long long)a->reach, i + 1, (long long)(room + a->reach));
        a->out = (room + (o->ceil_mode ? a->stride - 1 : 0)) / a->stride + 1;
        /* As PyTorch: no window begins in the padding after. */
        if (o->ceil_mode && (a->out - 1) * a->stride >= a->in + a->before) a->out--;
    }
    return status;
}

tutti_status sliding_resolve_transposed(
    const char *name, const struct value *x, const struct sliding_options *o, const int64_t *kernel, struct sliding *s)
{
    tutti_status status = read_axes(name, x, o, kernel, s);
    const bool upper = o->auto_pad == AUTO_PAD_SAME_UPPER, same = upper || o->auto_pad == AUTO_PAD_SAME_LOWER;
    for (int i = 0; i < s->axes && status == TUTTI_OK; i++) {
        struct sliding_axis *a = &s->axis[i];
        int64_t more = 0, wanted = 0;
        a->out = x->shape.sizes[SPACE_AXIS + i];
        if (!read_number(&o->output_padding, i, 0, 0, &more) || !read_number(&o->output_shape, i, 0, 0, &wanted))
            return fail(TUTTI_INVALID, "%s: output_padding %lld or output_shape %lld is impossible", name,
                (long long)more, (long long)wanted);
        const int64_t all = a->stride * (a->out - 1) + more + a->reach;
        if (!wanted && same) wanted = a->out * a->stride;
        if (wanted) divide_padding(a, all - wanted, upper);
        if (o->auto_pad == AUTO_PAD_VALID) a->before = a->after = 0;
        a->in = wanted ? wanted : all - a->before - a->after;
        if (a->in < 1 || a->in > INT32_MAX)
            return fail(TUTTI_SHAPE, "%s: axis %d would become one of %lld elements", name, i + 1, (long long)a->in);
    }
    return status;
}

/* ----------------------------------------------------------------------------------------------------- nodes ---- */

int sliding_pad(const struct append_context *c, int x, struct sliding *s, float outside)
{
    if (x == NO_VALUE) return NO_VALUE;
    struct window_attributes a = { .shape = graph_at(c->graph, x)->shape, .outside = outside };
    bool same = true;
    for (int i = 0; i < s->axes; i++) {
        struct sliding_axis *axis = &s->axis[i];
        const int64_t need = (axis->out - 1) * axis->stride + axis->reach;
        same &= axis->before == 0 && need == axis->in;
        a.begins[SPACE_AXIS + i] = -axis->before;
        a.shape.sizes[SPACE_AXIS + i] = need;
        axis->in = need;
        axis->before = axis->after = 0;
    }
    return same ? x : append_window(c, x, &a);
}

tutti_status sliding_taps(const struct sliding_axis *a, struct taps *taps)
{
    tutti_status status = taps_new(taps, a->in, a->out * a->kernel);
    for (int64_t j = 0; j < taps->to && status == TUTTI_OK; j++) {
        const int64_t at = j / a->kernel * a->stride - a->before + j % a->kernel * a->dilation;
        if (at >= 0 && at < a->in) status = taps_add(taps, at, 1);
        taps_end_row(taps);
    }
    return status;
}

tutti_status sliding_im2col(
    const struct append_context *c, const struct sliding_axis *a, int axis, float outside, int *y)
{
    struct taps taps = { 0 };
    const bool same = a->before == 0 && a->stride == a->kernel && a->dilation == 1 && a->out * a->kernel == a->in;
    if (same || *y == NO_VALUE) return TUTTI_OK;
    const tutti_status status = sliding_taps(a, &taps);
    if (status == TUTTI_OK) *y = resample(c, *y, axis, &taps, outside);
    taps_free(&taps);
    return status;
}
