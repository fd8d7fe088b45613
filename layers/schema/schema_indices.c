/* Schemas of operations by indices. */
#include "layers/indices.h"
#include "layers/layers.h"
#include "layers/lines.h"
#include "layers/schema/schema.h"

/* ----------------------------------------------------------------------------------------------- completions ---- */

struct nd_options {
    int64_t batch_dims;
};
struct one_hot_options {
    int64_t axis;
};
struct reverse_options {
    int64_t batch_axis;
};

static tutti_status complete_elements(const struct value *x, const void *options, void *attributes)
{
    (void)x, (void)options;
    ((struct indexed_attributes *)attributes)->kind = INDEXED_ELEMENTS;
    return TUTTI_OK;
}

/* batch_dims: the number of leading axes that data and indices share. */
static tutti_status complete_nd(const struct value *x, const void *options, void *attributes)
{
    struct indexed_attributes *a = attributes;
    const int64_t shared = ((const struct nd_options *)options)->batch_dims;
    if (shared < 0 || shared >= x->shape.rank - x->batched)
        return fail(TUTTI_INVALID, "gather_nd: batch_dims is %lld: it must be from 0 to less than the %d axes",
            (long long)shared, x->shape.rank - x->batched);
    a->kind = INDEXED_ND;
    a->axis = x->batched + (int)shared;
    return TUTTI_OK;
}

/* Sets the axis of the result, which has one more than the input. */
static tutti_status complete_one_hot(const struct value *x, const void *options, void *attributes)
{
    const int64_t axis = ((const struct one_hot_options *)options)->axis, rank = x->shape.rank - x->batched + 1;
    if (axis < -rank || axis >= rank)
        return fail(
            TUTTI_INVALID, "one_hot: axis %lld does not exist: the result has %lld", (long long)axis, (long long)rank);
    ((struct one_hot_attributes *)attributes)->axis = x->batched + (int)(axis < 0 ? axis + rank : axis);
    return TUTTI_OK;
}

/* batch_axis -1: none. */
static tutti_status complete_reverse(const struct value *x, const void *options, void *attributes)
{
    const int64_t axis = ((const struct reverse_options *)options)->batch_axis, rank = x->shape.rank - x->batched;
    if (axis < -1 || axis >= rank)
        return fail(TUTTI_INVALID, "reverse_sequence: batch_axis %lld does not exist: the input has %lld",
            (long long)axis, (long long)rank);
    ((struct reverse_sequence_attributes *)attributes)->batch_axis = axis < 0 ? -1 : x->batched + (int)axis;
    return TUTTI_OK;
}

/* --------------------------------------------------------------------------------------------------- schemas ---- */

#define AXIS(name, of, value, text) ROW(AXIS, name, ATTRIBUTE_OF(of, axis), value, text)
#define REDUCTION                                                                                         \
    ROW(CHOICE, "reduction", ATTRIBUTE_OF(indexed, reduction), "none", "how data and updates are joined", \
        SCATTER_REDUCTIONS)

static const struct op_schema schemas[] = {
    { "gather", "the slices at these indices along an axis, which becomes the axes of the indices",
        INPUTS({ "data" }, { "indices" }), OP_ATTRIBUTES(AXIS("axis", indexed, "0", "of data")), &operation_gather },
    { "gather_elements", "for each index the element there along an axis; the other axes are equal",
        INPUTS({ "data" }, { "indices", "[..., k, ...]" }), OP_ATTRIBUTES(AXIS("axis", indexed, "0", "along it")),
        &operation_gather, .complete = complete_elements },
    { "gather_nd", "the slices at k indices, along the first k axes after the shared ones",
        INPUTS({ "data" }, { "indices", "[..., k]" }),
        OP_ATTRIBUTES({ "batch_dims", TUTTI_ATTRIBUTE_INTEGER, OPTION_OF(nd, batch_dims), "0",
            "number of first axes that data and indices share" }),
        &operation_gather, .complete = complete_nd },
    { "scatter_elements", "data, joined with the updates where gather_elements would read, one after the other",
        INPUTS({ "data" }, { "indices", "[..., k, ...]" }, { "updates", "[..., k, ...]" }),
        OP_ATTRIBUTES(AXIS("axis", indexed, "0", "along it"), REDUCTION), &operation_scatter,
        .complete = complete_elements },
    { "scatter_nd", "data, joined with the updates where gather_nd would read, one after the other",
        INPUTS({ "data" }, { "indices", "[..., k]" }, { "updates" }), OP_ATTRIBUTES(REDUCTION), &operation_scatter,
        .complete = complete_nd },
    { "one_hot", "a new axis, with `on` where the index is, else `off`; no gradient", INPUTS({ "indices" }),
        OP_ATTRIBUTES({ "depth", TUTTI_ATTRIBUTE_INTEGER, ATTRIBUTE_OF(one_hot, depth), NULL, "size of the new axis",
                          .required = true },
            { "axis", TUTTI_ATTRIBUTE_INTEGER, OPTION_OF(one_hot, axis), "-1", "the new axis, of the result" },
            { "off", TUTTI_ATTRIBUTE_NUMBER, ATTRIBUTE_OF(one_hot, off), "0", "elsewhere" },
            { "on", TUTTI_ATTRIBUTE_NUMBER, ATTRIBUTE_OF(one_hot, on), "1", "at the index" }),
        &operation_one_hot, .complete = complete_one_hot },
    { "reverse_sequence", "x with its first elements along an axis in reverse order",
        INPUTS({ "x" }, { "lengths", "a number for each sample, or as many as batch_axis is long" }),
        OP_ATTRIBUTES(AXIS("time_axis", reverse_sequence, "0", "along it"),
            { "batch_axis", TUTTI_ATTRIBUTE_INTEGER, OPTION_OF(reverse, batch_axis), "-1",
                "the axis that has a length for each position; -1: none" }),
        &operation_reverse_sequence, .complete = complete_reverse },
    { "embedding", "row ids[p] of the table for each p; zeros where there is no such row",
        INPUTS({ "ids", "of int32" }, { "table", "[rows, width]" }),
        OP_ATTRIBUTES(
            ROW(FLAG, "from_end", ATTRIBUTE_OF(embedding, from_end), "0", "1: negative ids count from the end")),
        &operation_embedding },
    { 0 },
};

const struct op_group schema_indices = { "By index", schemas };
