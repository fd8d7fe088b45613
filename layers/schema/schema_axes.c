/* Schemas of operations along axes: reductions, scans, and those that move elements. */
#include "layers/layers.h"
#include "layers/lines.h"
#include "layers/schema/schema.h"

#define X INPUTS({ "x" })

/* ----------------------------------------------------------------------------------------------- completions ---- */

struct reduce_options {
    bool keepdims;
};
struct unfold_options {
    int64_t size;
};
struct prefix_options {
    unsigned axes;
};

static tutti_status complete_reduction(const struct value *x, const void *options, void *attributes)
{
    struct reduce_attributes *a = attributes;
    const unsigned all = ((1u << x->shape.rank) - 1) & ~(unsigned)x->batched;
    if (a->axes == 0) a->axes = all;
    if (((const struct reduce_options *)options)->keepdims) return TUTTI_OK;
    for (int i = 0; i < x->shape.rank; i++) {
        if (a->axes >> i & 1) continue;
        a->kinds.kinds[a->shape.rank] = x->axes.kinds[i];
        a->shape.sizes[a->shape.rank++] = x->shape.sizes[i];
    }
    if (a->shape.rank == 0) a->shape = TUTTI_SHAPE(1);
    return TUTTI_OK;
}

/* Without `perm`, the axes are reversed, as by numpy. */
static tutti_status complete_transpose(const struct value *x, const void *options, void *attributes)
{
    int *order = ((struct transpose_attributes *)attributes)->order, rank = x->shape.rank;
    bool given = false;
    (void)options;
    for (int i = x->batched; i < rank; i++) given |= order[i] != 0;
    for (int i = x->batched; i < rank && !given; i++) order[i] = rank - 1 - i + x->batched;
    return TUTTI_OK;
}

static tutti_status complete_expand(const struct value *x, const void *options, void *attributes)
{
    (void)x, (void)options;
    ((struct expand_attributes *)attributes)->factor = 1;
    return TUTTI_OK;
}

static tutti_status complete_reshape(const struct value *x, const void *options, void *attributes)
{
    (void)options;
    return reshape_resolve(x, attributes);
}

static tutti_status complete_fold(const struct value *x, const void *options, void *attributes)
{
    (void)options;
    return reshape_fold(x, attributes);
}

static tutti_status complete_unfold(const struct value *x, const void *options, void *attributes)
{
    return reshape_unfold(x, ((const struct unfold_options *)options)->size, attributes);
}

/* Takes the first elements, as many as sequences are long, along the given axes, or all if none is given. */
static tutti_status complete_prefix(const struct value *x, const void *options, void *attributes)
{
    struct window_attributes *a = attributes;
    const unsigned axes = ((const struct prefix_options *)options)->axes;
    a->shape = x->shape;
    a->within = true;
    for (int i = x->batched; i < x->shape.rank; i++)
        if (axes == 0 || axes >> i & 1) a->shape.sizes[i] = TUTTI_SEQUENCE;
    return TUTTI_OK;
}

/* --------------------------------------------------------------------------------------------------- schemas ---- */

#define AXIS(of, value, text) ROW(AXIS, "axis", ATTRIBUTE_OF(of, axis), value, text, .onnx = "axis")
#define FLAG(name, of, member, value, text) ROW(FLAG, name, ATTRIBUTE_OF(of, member), value, text, .onnx = name)

#define REDUCTION(name_, onnx_, opset_, grows_, of, text_, decompose_)                                             \
    {                                                                                                              \
        .name = #name_, .text = text_, .inputs = X, .operation = &operation_##of,                                  \
        .attributes = OP_ATTRIBUTES(                                                                               \
            { "axes", TUTTI_ATTRIBUTE_AXES, ATTRIBUTE_OF(reduce, axes), NULL, "default: all", .onnx = "axes" },    \
            { "keepdims", TUTTI_ATTRIBUTE_FLAG, OPTION_OF(reduce, keepdims), "1", "1: the axes stay, with size 1", \
                .onnx = "keepdims" }),                                                                             \
        .onnx = &(const struct op_onnx) { #onnx_, opset_, TUTTI_ONNX_REDUCTION, grows_ },                          \
        .complete = complete_reduction, .decompose = decompose_                                                    \
    }
#define ARGMAX(name_, onnx_, text_)                                                                            \
    {                                                                                                          \
        .name = #name_, .text = text_, .inputs = X, .operation = &operation_##name_,                           \
        .onnx = &(const struct op_onnx) { #onnx_, 0, TUTTI_ONNX_POSITION, false },                             \
        .attributes = OP_ATTRIBUTES(AXIS(argmax, "0", "along it"),                                             \
            FLAG("keepdims", argmax, keepdims, "1", "1: the axis stays, with size 1"),                         \
            FLAG("select_last_index", argmax, last, "0", "1: of equal elements the last one, else the first")) \
    }
#define SCAN(name_, text_)                                                            \
    {                                                                                 \
        .name = #name_, .text = text_, .inputs = X, .operation = &operation_##name_,  \
        .attributes = OP_ATTRIBUTES(AXIS(scan, "0", "along it"),                      \
            FLAG("exclusive", scan, exclusive, "0", "1: without the element itself"), \
            FLAG("reverse", scan, reverse, "0", "1: from the last element on"))       \
    }
#define BLOCKS(name_, text_)                                                                                 \
    {                                                                                                        \
        .name = #name_, .text = text_, .inputs = INPUTS({ "x", "[C, H, W]" }),                               \
        .attributes = OP_ATTRIBUTES({ "blocksize", TUTTI_ATTRIBUTE_INTEGER, OPTION_OF(block, size), NULL,    \
                                        "height and width of a block", .required = true },                   \
            { "mode", TUTTI_ATTRIBUTE_CHOICE, OPTION_OF(block, mode), "dcr",                                 \
                "in the depth, the position in a block comes before the channel, or after it", "dcr crd" }), \
        .build = op_##name_                                                                                  \
    }
#define LISTED(name, of, member, text) name, TUTTI_ATTRIBUTE_INTEGERS, OPTION_OF(of, member), NULL, text
#define SHAPED(of, text) ROW(SHAPE, "shape", ATTRIBUTE_OF(of, shape), NULL, text, .required = true)

static const struct op_schema schemas[] = {
    REDUCTION(reduce_sum, ReduceSum, 0, true, reduce_sum, "the sum over axes", NULL),
    REDUCTION(reduce_mean, ReduceMean, 18, false, reduce_mean, "the mean over axes", NULL),
    REDUCTION(reduce_max, ReduceMax, 18, false, reduce_max,
        "the maximum over axes; equal maxima get equal parts of the gradient", NULL),
    REDUCTION(reduce_min, ReduceMin, 18, false, reduce_min,
        "the minimum over axes; equal minima get equal parts of the gradient", NULL),
    REDUCTION(reduce_prod, ReduceProd, 18, true, reduce_prod, "the product over axes", NULL),
    REDUCTION(reduce_l1, ReduceL1, 18, true, reduce_sum, "the sum of absolute values over axes", decompose_reduce_l1),
    REDUCTION(reduce_l2, ReduceL2, 18, false, reduce_sum, "the square root of the sum of squares over axes",
        decompose_reduce_l2),
    REDUCTION(reduce_sum_square, ReduceSumSquare, 18, true, reduce_sum, "the sum of squares over axes",
        decompose_reduce_sum_square),
    REDUCTION(reduce_log_sum, ReduceLogSum, 18, false, reduce_sum, "the logarithm of the sum over axes",
        decompose_reduce_log_sum),
    REDUCTION(reduce_log_sum_exp, ReduceLogSumExp, 18, false, reduce_sum,
        "log(sum(exp(x))) over axes, also where exp(x) would overflow", decompose_reduce_log_sum_exp),
    { "softmax", "exp(x) / sum(exp(x)) over the last axis", X, .operation = &operation_softmax },
    { "log_softmax", "x - log(sum(exp(x))) along an axis, also where exp(x) would overflow", X,
        OP_ATTRIBUTES(AXIS(axis, "-1", "along it")), .decompose = decompose_log_softmax,
        .decomposed = &axis_attributes_type },
    ARGMAX(argmax, ArgMax, "the position of the largest element along an axis, as a float; no gradient"),
    ARGMAX(argmin, ArgMin, "the position of the smallest element along an axis, as a float; no gradient"),
    { "hardmax", "1 at the first largest element along an axis, else 0; no gradient", X,
        OP_ATTRIBUTES(AXIS(argmax, "-1", "along it")), &operation_hardmax,
        &(const struct op_onnx) { "Hardmax", .form = TUTTI_ONNX_TENSOR } },
    { "topk", "the k largest or smallest elements along an axis, best first; tutti_topk() also returns their positions",
        X,
        OP_ATTRIBUTES(
            { "k", TUTTI_ATTRIBUTE_INTEGER, ATTRIBUTE_OF(topk, k), NULL, "number of elements", .required = true },
            AXIS(topk, "-1", "along it"), FLAG("largest", topk, largest, "1", "0: the smallest ones")),
        &operation_topk },
    SCAN(cumsum, "for each element the sum of those up to it along an axis"),
    SCAN(cumprod, "for each element the product of those up to it along an axis"),
    { "trilu", "x on one side of a diagonal of the last two axes, 0 on the other side", X,
        OP_ATTRIBUTES(FLAG("upper", trilu, upper, "1", "1: x on and above the diagonal; 0: on and below it"),
            { "k", TUTTI_ATTRIBUTE_INTEGER, ATTRIBUTE_OF(trilu, k), "0",
                "the diagonal: 0 the main one, 1 the one above it" }),
        &operation_trilu },
    { "expand", "x, repeated along axes where its size is 1 or missing", X,
        OP_ATTRIBUTES(SHAPED(expand, "of the result")), &operation_expand, .complete = complete_expand },
    { "transpose", "axis i of the result is axis perm[i] of x", X,
        OP_ATTRIBUTES({ "perm", TUTTI_ATTRIBUTE_ORDER, ATTRIBUTE_OF(transpose, order), NULL, "default: reversed" }),
        &operation_transpose, .complete = complete_transpose },
    { "slice", "the elements from a start to before an end along axes; along the length of sequences only 0 to 1", X,
        OP_ATTRIBUTES(
            { LISTED("starts", slice, starts, "first element of each axis; negative: from the end"), .required = true },
            { LISTED("ends", slice, ends, "end of each axis, as starts"), .required = true },
            { LISTED("axes", slice, axes, "default: the first ones") },
            { LISTED("steps", slice, steps, "default: 1; negative: backwards") }),
        &operation_window, .build = op_slice },
    { "prefix", "the first elements of x along axes, as many as sequences are long (TUTTI_SEQUENCE)", X,
        OP_ATTRIBUTES({ "axes", TUTTI_ATTRIBUTE_AXES, OPTION_OF(prefix, axes), NULL, "default: all" }),
        &operation_window, .complete = complete_prefix },
    { "pad", "x with more elements at the ends of its axes", X,
        OP_ATTRIBUTES({ LISTED("before", pad, before, "how many before, for each axis; default: 0") },
            { LISTED("after", pad, after, "how many after the last, for each axis; default: 0") },
            { "value", TUTTI_ATTRIBUTE_NUMBER, ATTRIBUTE_OF(window, outside), "0", "the elements, with mode constant" },
            { "mode", TUTTI_ATTRIBUTE_CHOICE, OPTION_OF(pad, mode), "constant",
                "value, x mirrored at its first and last element, these two, or x again",
                "constant reflect edge wrap" }),
        &operation_window, .build = op_pad },
    { "tile", "x repeated along its axes", X,
        OP_ATTRIBUTES({ LISTED("repeats", tile, repeats, "how often, for each axis"), .required = true }),
        .build = op_tile },
    BLOCKS(depth_to_space, "blocks of pixels from groups of channels"),
    BLOCKS(space_to_depth, "groups of channels from blocks of pixels"),
    { "cast", "an input of any type as floats", X, .operation = &operation_cast },
    { "reshape", "the same elements in another shape", X,
        OP_ATTRIBUTES(SHAPED(reshape, "one size may be -1: it follows from the others; empty: a sample is one number")),
        &operation_reshape, .complete = complete_reshape },
    { "fold",
        "the first axis of samples becomes part of the batch: what follows takes each row for a sample; PyTorch's Fold "
        "is another operation",
        X, .operation = &operation_reshape, .complete = complete_fold },
    { "unfold", "the reverse of fold; losses and outputs need it; PyTorch's Unfold is another operation", X,
        OP_ATTRIBUTES(
            { "size", TUTTI_ATTRIBUTE_INTEGER, OPTION_OF(unfold, size), NULL, "rows of a sample", .required = true }),
        &operation_reshape, .complete = complete_unfold },
    { "concat", "one or more inputs, joined along an axis", INPUTS({ "x", .repeated = true, .any = true }),
        OP_ATTRIBUTES(AXIS(axis, "0", "the only one whose sizes may differ")), &operation_concat },
    { 0 },
};

const struct op_group schema_axes = { "Along axes", schemas };
