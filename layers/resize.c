/* Resize: a table for each axis whose size changes. */
#include "layers/resize.h"

#include <math.h>

#include "layers/schema/op_builders.h"

/* Position of output j in the input. Where the scale gives a size that is not whole, formulas with a size use the
 * output's own size, as ONNX's text, onnxruntime and PyTorch do. Formulas with a scale use the scale. */
static double coordinate(const struct resize *how, const struct resize_axis *a, double j)
{
    const double from = (double)a->from, to = (double)a->to;
    switch (how->coordinates) {
    case RESIZE_ALIGN_CORNERS: return to == 1 ? 0 : j * (from - 1) / (to - 1);
    case RESIZE_ASYMMETRIC: return j / a->scale;
    case RESIZE_TF_CROP_AND_RESIZE:
        if (to == 1) return (a->begin + a->end) / 2 * (from - 1);
        return a->begin * (from - 1) + j * (a->end - a->begin) * (from - 1) / (to - 1);
    case RESIZE_PYTORCH_HALF_PIXEL: return to == 1 ? 0 : (j + 0.5) / a->scale - 0.5;
    case RESIZE_HALF_PIXEL_SYMMETRIC: return from / 2 * (1 - to / (a->scale * from)) + (j + 0.5) / a->scale - 0.5;
    default: return (j + 0.5) / a->scale - 0.5;
    }
}

/* Weight of an element at `distance` from the coordinate. right: it is the second one of two. */
static double weight_of(const struct resize *how, double distance, double ratio, bool right)
{
    const double d = fabs(distance), a = (double)how->cubic_coeff_a;
    if (how->mode == RESIZE_LINEAR) return d < 1 ? 1 - d : 0;
    if (how->mode == RESIZE_CUBIC) {
        if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
        return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
    }
    if (ratio == 1) return right;
    switch (how->nearest) {
    case RESIZE_ROUND_PREFER_FLOOR: return right == (ratio > 0.5);
    case RESIZE_ROUND_PREFER_CEIL: return right == (ratio >= 0.5);
    case RESIZE_FLOOR: return !right;
    default: return right;
    }
}

static int64_t clamp(int64_t at, int64_t size)
{
    return at < 0 ? 0 : at >= size ? size - 1 : at;
}

/* The elements that an output can read: `count` from `first` on. A whole coordinate counts as the right one of two
 * neighbours, at ratio 1, as in ONNX's reference. */
struct support {
    int64_t first, count;
    double at, ratio, squeeze; /* squeeze: what distances are multiplied by, less than 1 with antialias */
};

static struct support support_of(const struct resize *how, const struct resize_axis *a, double at)
{
    const double below = floor(at), left = below == at ? below - 1 : below, reach = how->mode == RESIZE_CUBIC ? 2 : 1;
    const double squeeze = how->antialias && a->scale < 1 ? a->scale : 1;
    const int64_t start = (int64_t)floor(-reach / squeeze) + 1;
    return (struct support) { (int64_t)left + start, 2 - 2 * start, at, at - left, squeeze };
}

static double support_weight(
    const struct resize *how, const struct resize_axis *a, const struct support *s, int64_t number)
{
    const int64_t element = s->first + number;
    if (how->exclude_outside && (element < 0 || element >= a->from)) return 0;
    return weight_of(how, ((double)element - s->at) * s->squeeze, s->ratio, number > 0);
}

/* Adds the taps of an output. Elements outside are those at the edge, with their weights added up. */
static tutti_status add_row(
    const struct resize *how, const struct resize_axis *a, const struct support *s, struct taps *taps)
{
    tutti_status status = TUTTI_OK;
    double sum = 0, weight = 0;
    const bool divide = how->exclude_outside || (how->antialias && how->mode != RESIZE_NEAREST);
    for (int64_t i = 0; i < s->count; i++) sum += support_weight(how, a, s, i);
    if (!divide || sum == 0) sum = 1;
    for (int64_t i = 0; i < s->count && status == TUTTI_OK; i++) {
        const int64_t at = clamp(s->first + i, a->from);
        weight += support_weight(how, a, s, i) / sum;
        if (i + 1 < s->count && clamp(s->first + i + 1, a->from) == at) continue;
        status = taps_add(taps, at, weight);
        weight = 0;
    }
    return status;
}

tutti_status resize_taps(const struct resize *how, const struct resize_axis *axis, struct taps *taps)
{
    tutti_status status = taps_new(taps, axis->from, axis->to);
    if (status == TUTTI_OK && !(axis->scale > 0 && axis->scale * (double)axis->from >= 0.5))
        status = fail(
            TUTTI_INVALID, "resize: the scale %g leaves nothing of %lld elements", axis->scale, (long long)axis->from);
    for (int64_t j = 0; j < axis->to && status == TUTTI_OK; j++) {
        const double at = coordinate(how, axis, (double)j);
        if (!(fabs(at) < 1e15)) status = fail(TUTTI_INVALID, "resize: element %lld lies nowhere", (long long)j);
        const bool extrapolated =
            how->coordinates == RESIZE_TF_CROP_AND_RESIZE && (at < 0 || at > (double)(axis->from - 1));
        const struct support support = status == TUTTI_OK ? support_of(how, axis, at) : (struct support) { 0 };
        if (status == TUTTI_OK && !extrapolated) status = add_row(how, axis, &support, taps);
        taps_end_row(taps);
    }
    return status;
}

/* --------------------------------------------------------------------------------------------------- builder ---- */

static tutti_status check(const struct value *x, const struct resize_options *o)
{
    const int rank = x->shape.rank - x->batched;
    const struct integers *axes = &o->axes;
    const int count = axes->count ? axes->count : rank, given = o->scales.count + o->sizes.count;
    if (o->how.mode == RESIZE_NEAREST && o->how.antialias)
        return fail(TUTTI_INVALID, "resize: the mode nearest has no antialias");
    if (given != count || (o->scales.count && o->sizes.count))
        return fail(TUTTI_INVALID, "resize: it needs either scales or sizes, one for each of %d axes", count);
    if (o->roi.count && o->roi.count != 2 * count)
        return fail(
            TUTTI_INVALID, "resize: roi needs %d numbers: where each axis begins, then where each ends", 2 * count);
    if (o->how.coordinates == RESIZE_TF_CROP_AND_RESIZE && !o->roi.count)
        return fail(TUTTI_INVALID, "resize: the coordinates tf_crop_and_resize need a roi");
    return TUTTI_OK;
}

/* Returns the scale of all axes by a policy that keeps their ratio; 0: each axis has its own. */
static double common_scale(const struct value *x, const struct resize_options *o, const int *axes, int count)
{
    double scale = 0;
    if (o->how.policy == RESIZE_STRETCH || !o->sizes.count) return 0;
    for (int i = 0; i < count; i++) {
        const double own = (double)o->sizes.numbers[i] / (double)x->shape.sizes[axes[i]];
        const bool better = o->how.policy == RESIZE_NOT_LARGER ? own < scale : own > scale;
        if (i == 0 || better) scale = own;
    }
    return scale;
}

static tutti_status axis_of(const struct value *x, const struct resize_options *o, int axis, int number, double common,
    struct resize_axis *made)
{
    const int64_t from = x->shape.sizes[axis];
    const int count = o->roi.count / 2;
    *made = (struct resize_axis) { .from = from, .end = 1 };
    made->scale = o->scales.count ? o->scales.numbers[number] : (double)o->sizes.numbers[number] / (double)from;
    if (common > 0) made->scale = common;
    const double to = o->scales.count ? floor((double)((float)made->scale * (float)from))
        : common > 0                  ? floor(common * (double)from + 0.5)
                                      : (double)o->sizes.numbers[number];
    if (count) {
        made->begin = o->roi.numbers[number];
        made->end = o->roi.numbers[count + number];
    }
    if (from < 1 || !(to >= 1 && to < INT32_MAX))
        return fail(TUTTI_SHAPE, "resize: axis %d cannot become one of %g elements", axis - x->batched, to);
    made->to = (int64_t)to;
    return TUTTI_OK;
}

static tutti_status resize_one(
    const struct append_context *c, const struct resize *how, const struct resize_axis *sizes, int axis, int *y)
{
    struct taps taps = { 0 };
    const tutti_status status = resize_taps(how, sizes, &taps);
    if (status == TUTTI_OK) *y = resample(c, *y, axis, &taps, how->extrapolation_value);
    taps_free(&taps);
    return status;
}

tutti_status op_resize(const struct append_context *c, const struct op_call *call, int *y)
{
    const struct value x = *graph_at(c->graph, call->inputs[0]); /* appending moves values */
    int axes[TUTTI_MAX_RANK];
    const struct resize_options *o = call->options;
    tutti_status status = check(&x, o);
    const int axis_count = o->axes.count ? o->axes.count : x.shape.rank - x.batched;
    *y = call->inputs[0];
    for (int i = 0; i < axis_count && status == TUTTI_OK; i++) {
        axes[i] = op_axis(&x, o->axes.count ? o->axes.numbers[i] : i);
        if (axes[i] < 0) status = fail(TUTTI_INVALID, "resize: axis %d of its axes does not exist", i);
    }
    const double common = status == TUTTI_OK ? common_scale(&x, o, axes, axis_count) : 0;
    for (int i = 0; i < axis_count && status == TUTTI_OK; i++) {
        struct resize_axis a;
        status = axis_of(&x, o, axes[i], i, common, &a);
        const bool same = a.to == a.from && fabs(a.scale - 1) < 1e-9 && a.begin == 0 && a.end == 1;
        if (status == TUTTI_OK && !same) status = resize_one(c, &o->how, &a, axes[i], y);
    }
    return status;
}
