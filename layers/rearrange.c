/* slice with steps, pad, tile, depth_to_space and space_to_depth: windows, reshapes, repetitions and tables. */
#include <stdlib.h>
#include <string.h>

#include "layers/image.h"
#include "layers/layers.h"
#include "layers/schema/op_builders.h"

int op_axis(const struct value *x, int64_t number)
{
    const int rank = x->shape.rank - x->batched;
    const int64_t axis = number < 0 ? number + rank : number;
    return axis >= 0 && axis < rank ? (int)axis + x->batched : -1;
}

/* ---------------------------------------------------------------------------------------------------- slice ---- */

/* The part that is left of an axis: `count` elements, every stride-th of the window. */
struct strided {
    int64_t count, stride;
};

/* tutti_op() limits numbers to OP_MAX_INTEGER: at the limit, they stand for INT64_MAX or INT64_MIN. */
static int64_t beyond(int64_t position)
{
    return position >= OP_MAX_INTEGER ? INT64_MAX : position <= -OP_MAX_INTEGER ? INT64_MIN : position;
}

/* From `start` on, every step-th element before `end`. Both are counted from the end of the axis if negative, and
 * clipped. A step below 0 goes backwards: the window is reversed. */
static tutti_status slice_axis(const struct value *x, int axis, int64_t start, int64_t end, int64_t step,
    struct window_attributes *a, struct strided *made)
{
    const int64_t have = x->shape.sizes[axis];
    const bool open = have == TUTTI_SEQUENCE, back = step < 0;
    start = beyond(start), end = beyond(end);
    const int64_t size = open ? INT64_MAX : have; /* window's infer() checks the request */
    if (step == 0 || step < -INT64_MAX || (open && step != 1))
        return fail(TUTTI_INVALID, "slice: the step along axis %d is %lld: it cannot be 0%s", axis - x->batched,
            (long long)step, open ? ", nor other than 1 along the length of sequences" : "");
    const int64_t first = start < 0 ? start + size : start, after = end < 0 ? end + size : end;
    const int64_t from = back && first >= size ? size - 1 : !back && first < 0 ? 0 : first;
    const int64_t until = back && after < -1 ? -1 : after > size ? size : after;
    const int64_t length = back ? from - until : until - from, stride = back ? -step : step;
    if (from < 0 || length < 1)
        return fail(TUTTI_INVALID, "slice: nothing lies from %lld to %lld: axis %d has %lld elements", (long long)first,
            (long long)after, axis - x->batched, (long long)have);
    *made = (struct strided) { (length - 1) / stride + 1, stride };
    if (made->count == 1) made->stride = 1;
    a->shape.sizes[axis] = open && length == size ? have : made->count * made->stride;
    a->begins[axis] = back ? from - a->shape.sizes[axis] + 1 : from;
    if (back) a->reversed |= 1u << axis;
    return TUTTI_OK;
}

/* Makes one window, then takes the first of each `stride` elements of it. */
tutti_status op_slice(const struct append_context *c, const struct op_call *call, int *y)
{
    tutti_status status = TUTTI_OK;
    const struct value x = *graph_at(c->graph, call->inputs[0]);
    const struct slice_options *o = call->options;
    const struct integers *axes = &o->axes, *starts = &o->starts, *ends = &o->ends, *steps = &o->steps;
    struct window_attributes a = { .shape = x.shape };
    struct strided strided[TUTTI_MAX_RANK] = { { 0 } };
    if (starts->count == 0 || starts->count != ends->count || (axes->count && axes->count != starts->count) ||
        (steps->count && steps->count != starts->count) || starts->count > x.shape.rank - x.batched)
        return fail(
            TUTTI_INVALID, "slice: it needs as many ends as starts, one for each axis, and as many steps if any");
    for (int i = 0; i < starts->count; i++) {
        const int axis = op_axis(&x, axes->count ? axes->numbers[i] : i);
        if (axis < 0)
            FAIL(TUTTI_INVALID, "slice: axis %lld does not exist: the input has %d", (long long)axes->numbers[i],
                x.shape.rank - x.batched);
        TRY(slice_axis(
            &x, axis, starts->numbers[i], ends->numbers[i], steps->count ? steps->numbers[i] : 1, &a, &strided[axis]));
    }
    *y = append_window(c, call->inputs[0], &a);
    for (int axis = 0; axis < x.shape.rank; axis++) {
        if (strided[axis].stride < 2) continue;
        *y = append_split(c, *y, axis, strided[axis].count);
        *y = append_join(c, append_slice(c, *y, axis + 1, 0, 1), axis);
    }
done:
    return status;
}

/* ------------------------------------------------------------------------------------------------------- pad ---- */

/* Returns which of the `size` elements has the value of position `at`, which may lie outside of the axis. */
static int64_t mirrored(enum pad_mode mode, int64_t at, int64_t size)
{
    const int64_t period = mode == PAD_WRAP ? size : size > 1 ? 2 * size - 2 : 1;
    if (mode == PAD_EDGE) return at < 0 ? 0 : at < size ? at : size - 1;
    const int64_t place = (at % period + period) % period;
    return place < size ? place : period - place;
}

static tutti_status pad_axis(
    const struct append_context *c, enum pad_mode mode, int axis, int64_t before, int64_t after, int *y)
{
    struct taps taps = { 0 };
    const int64_t size = graph_at(c->graph, *y)->shape.sizes[axis];
    tutti_status status = taps_new(&taps, size, size + before + after);
    for (int64_t j = 0; j < taps.to && status == TUTTI_OK; j++) {
        status = taps_add(&taps, mirrored(mode, j - before, size), 1);
        taps_end_row(&taps);
    }
    if (status == TUTTI_OK) *y = resample(c, *y, axis, &taps, 0);
    taps_free(&taps);
    return status;
}

/* `before` and `after`: the number of elements added at each end of each axis of a sample. */
tutti_status op_pad(const struct append_context *c, const struct op_call *call, int *y)
{
    tutti_status status = TUTTI_OK;
    const struct value x = *graph_at(c->graph, call->inputs[0]);
    const int rank = x.shape.rank - x.batched;
    const struct pad_options *o = call->options;
    const struct integers *before = &o->before, *after = &o->after;
    const enum pad_mode mode = (enum pad_mode)o->mode;
    struct window_attributes a = *(const struct window_attributes *)call->attributes;
    if ((before->count && before->count != rank) || (after->count && after->count != rank))
        return fail(TUTTI_INVALID, "pad: before and after need a number for each of the %d axes", rank);
    *y = call->inputs[0];
    a.shape = x.shape;
    for (int i = 0; i < rank; i++) {
        const int axis = i + x.batched;
        const int64_t first = before->numbers[i], last = after->numbers[i];
        if (first == 0 && last == 0) continue;
        if (x.shape.sizes[axis] == TUTTI_SEQUENCE)
            FAIL(
                TUTTI_SHAPE, "pad: axis %d has the length of sequences, TUTTI_SEQUENCE: nothing can be added to it", i);
        if (llabs(first) > INT32_MAX || llabs(last) > INT32_MAX)
            FAIL(TUTTI_INVALID, "pad: %lld and %lld elements along axis %d are too many", (long long)first,
                (long long)last, i);
        a.begins[axis] = -first;
        a.shape.sizes[axis] += first + last;
        if (mode != PAD_CONSTANT && *y != NO_VALUE) TRY(pad_axis(c, mode, axis, first, last, y));
    }
    if (mode == PAD_CONSTANT) *y = append_window(c, call->inputs[0], &a);
done:
    return status;
}

/* ------------------------------------------------------------------------------------------------------ tile ---- */

static int repeat(const struct append_context *c, int x, int axis, int64_t times)
{
    x = append_split(c, x, axis, 1);
    if (x == NO_VALUE) return NO_VALUE;
    tutti_shape shape = graph_at(c->graph, x)->shape;
    shape.sizes[axis] = times;
    return append_join(c, append_expand(c, x, shape, x), axis);
}

tutti_status op_tile(const struct append_context *c, const struct op_call *call, int *y)
{
    const struct value x = *graph_at(c->graph, call->inputs[0]);
    const struct integers *times = &((const struct tile_options *)call->options)->repeats;
    if (times->count != x.shape.rank - x.batched)
        return fail(TUTTI_INVALID, "tile: repeats need a number for each of the %d axes", x.shape.rank - x.batched);
    *y = call->inputs[0];
    for (int i = 0; i < times->count; i++) {
        const int64_t size = x.shape.sizes[i + x.batched];
        if (times->numbers[i] == 1) continue;
        if (times->numbers[i] < 1 || size == TUTTI_SEQUENCE || times->numbers[i] > INT32_MAX / size)
            return fail(TUTTI_SHAPE, "tile: axis %d of %s elements cannot be repeated %lld times", i,
                size_print(size, (char[SIZE_TEXT]) { 0 }), (long long)times->numbers[i]);
        *y = repeat(c, *y, i + x.batched, times->numbers[i]);
    }
    return TUTTI_OK;
}

/* ---------------------------------------------------------------------------------------------------- blocks ---- */

/* [N, b, b, C, H, W] or [N, C, b, b, H, W] -> [N, C, H, b, W, b], or the reverse. */
static tutti_status rearrange_blocks(
    const struct append_context *c, int input, const struct block_options *o, const char *name, bool to_space, int *y)
{
    static const int orders[][6] = { { 0, 3, 5, 1, 2, 4 }, { 0, 1, 3, 5, 2, 4 }, { 0, 3, 4, 1, 5, 2 },
        { 0, 1, 4, 2, 5, 3 } };
    const struct value x = *graph_at(c->graph, input);
    const bool dcr = o->mode == BLOCK_DCR;
    const int64_t b = o->size, *s = x.shape.sizes;
    const tutti_status status = image_check(name, &x);
    if (status != TUTTI_OK) return status;
    const bool fits =
        b >= 1 && b <= INT16_MAX && (to_space ? s[1] % (b * b) == 0 : s[2] % b == 0 && s[3] % b == 0) && x.batched;
    if (!fits)
        return fail(TUTTI_SHAPE, "%s: blocks of %lld do not divide an image of %lld x %lld pixels with %lld channels",
            name, (long long)b, (long long)s[2], (long long)s[3], (long long)s[1]);
    const int64_t channels = s[1] / b / b;
    *y = append_reshape(c, input,
        !to_space ? TUTTI_SHAPE(s[0], s[1], s[2] / b, b, s[3] / b, b)
            : dcr ? TUTTI_SHAPE(s[0], b, b, channels, s[2], s[3])
                  : TUTTI_SHAPE(s[0], channels, b, b, s[2], s[3]));
    *y = append_transpose(c, *y, orders[2 * to_space + !dcr]);
    *y = append_reshape(c, *y,
        to_space ? TUTTI_SHAPE(s[0], channels, s[2] * b, s[3] * b)
                 : TUTTI_SHAPE(s[0], s[1] * b * b, s[2] / b, s[3] / b));
    return TUTTI_OK;
}

tutti_status op_depth_to_space(const struct append_context *c, const struct op_call *call, int *y)
{
    return rearrange_blocks(c, call->inputs[0], call->options, "depth_to_space", true, y);
}

tutti_status op_space_to_depth(const struct append_context *c, const struct op_call *call, int *y)
{
    return rearrange_blocks(c, call->inputs[0], call->options, "space_to_depth", false, y);
}
