/* Operators that go along an axis, element after element. */
#include "onnx/operators.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Reads an input and the attribute `axis`: as an axis of the file, and as one of the tensor. */
static tutti_status read_axis(const struct step *step, int64_t otherwise, struct operand *x, int *of_file, int *axis)
{
    tutti_status status = step_operand(step, 0, x);
    if (status != TUTTI_OK) return status;
    const int64_t asked = step_integer(step, "axis", otherwise);
    *of_file = (int)(asked < 0 ? asked + operand_rank(x) : asked);
    return operand_axis(x, asked, axis);
}

tutti_status build_arg(struct step *step)
{
    struct operand x;
    int of_file = 0, axis = 0;
    const bool keeps = step_integer(step, "keepdims", 1) != 0, last = step_integer(step, "select_last_index", 0) != 0;
    const tutti_status status = read_axis(step, 0, &x, &of_file, &axis);
    if (status != TUTTI_OK) return status;
    return step_done(step,
        step_op(step, step->operation, &x.tensor, 1, "axis=%d keepdims=%d select_last_index=%d", axis, keeps, last),
        place_moved(x.place, keeps || of_file > x.place.axis ? 0 : -1));
}

tutti_status build_hardmax(struct step *step)
{
    struct operand x;
    tutti_shape shape;
    int axis = 0;
    const tutti_status status = step_softmax_axis(step, &x, &shape, &axis);
    if (status != TUTTI_OK) return status;
    return step_softmax_done(step, step_op(step, "hardmax", &x.tensor, 1, "axis=%d", axis), &x, &shape);
}

tutti_status build_top_k(struct step *step)
{
    struct operand x;
    int of_file = 0, axis = 0, count = 0;
    int64_t k[1] = { 0 };
    tutti_tensor indices;
    tutti_status status = read_axis(step, -1, &x, &of_file, &axis);
    if (status == TUTTI_OK) status = step_list(step, 1, k, 1, &count);
    if (status != TUTTI_OK) return status;
    const bool largest = step_integer(step, "largest", 1) != 0;
    const tutti_tensor values = tutti_topk(step->import->network, x.tensor, k[0], axis, largest, &indices);
    status = step_made(step, 0, values, x.place);
    if (status == TUTTI_OK) status = step_made(step, 1, indices, x.place);
    step_type(step, 1, ONNX_INT64);
    return status;
}

/* The axis is an input. */
tutti_status build_scan(struct step *step)
{
    struct operand x;
    int axis = 0, count = 0;
    int64_t asked[1] = { 0 };
    tutti_status status = step_operand(step, 0, &x);
    if (status == TUTTI_OK) status = step_list(step, 1, asked, 1, &count);
    if (status == TUTTI_OK) status = operand_axis(&x, asked[0], &axis);
    if (status != TUTTI_OK) return status;
    return step_done(step,
        step_op(step, step->operation, &x.tensor, 1, "axis=%d exclusive=%d reverse=%d", axis,
            step_integer(step, "exclusive", 0) != 0, step_integer(step, "reverse", 0) != 0),
        x.place);
}

/* off + hot (on - off), of two values that are not known. */
static tutti_status mix(const struct step *step, tutti_tensor hot, const struct place *place)
{
    struct operand values;
    const tutti_status status = step_operand(step, 2, &values);
    if (status != TUTTI_OK) return status;
    if (values.shape.rank != 1 || values.shape.sizes[0] != 2) return fail(TUTTI_FORMAT, "its values are not two");
    const tutti_tensor off = step_op(step, "slice", &values.tensor, 1, "starts=0 ends=1"),
                       on = step_op(step, "slice", &values.tensor, 1, "starts=1 ends=2"),
                       more = step_plain(step, "sub", (tutti_tensor[]) { on, off }, 2),
                       scaled = step_plain(step, "mul", (tutti_tensor[]) { hot, more }, 2);
    return step_done(step, step_plain(step, "add", (tutti_tensor[]) { scaled, off }, 2), *place);
}

/* The new axis is in front of the batch axis, or behind it. */
tutti_status build_one_hot(struct step *step)
{
    struct operand x;
    float depth = 0;
    const struct value *values = step_input(step, 2);
    tutti_status status = values ? step_indices(step, 0, &x) : fail(TUTTI_FORMAT, "input 2 is missing");
    if (status == TUTTI_OK) status = step_scalar(step, 1, 0, &depth);
    if (status != TUTTI_OK) return status;
    const int rank = operand_rank(&x) + 1;
    const int64_t asked = step_integer(step, "axis", -1), of_file = asked < 0 ? asked + rank : asked;
    if (of_file < 0 || of_file >= rank) return fail(TUTTI_FORMAT, "axis %" PRId64 " does not exist", asked);
    if (x.place.batched && x.place.ahead != 1) return step_refuse("the batch is part of an axis");
    const bool own = x.place.batched && x.place.axis != HIDDEN;
    const int axis = (int)of_file - (own && of_file > x.place.axis);
    const struct place place = place_moved(x.place, of_file <= x.place.axis ? 1 : 0);
    if (x.shape.rank == 0 && !x.place.batched) return step_refuse("its indices are one number for all samples");
    step_type(step, 0, values->type);
    const tutti_tensor hot = step_op(step, "one_hot", &x.tensor, 1, "axis=%d depth=%.9g", axis, (double)depth);
    return mix(step, hot, &place);
}

tutti_status build_trilu(struct step *step)
{
    struct operand x;
    int64_t k[1] = { 0 };
    int count = 0, row = 0, column = 0;
    tutti_status status = step_operand(step, 0, &x);
    if (status == TUTTI_OK) status = step_list(step, 1, k, 1, &count);
    if (status == TUTTI_OK) status = operand_axis(&x, -1, &column);
    if (status == TUTTI_OK) status = operand_axis(&x, -2, &row);
    if (status != TUTTI_OK) return status;
    return step_done(step,
        step_op(step, "trilu", &x.tensor, 1, "upper=%d k=%" PRId64, step_integer(step, "upper", 1) != 0, k[0]),
        x.place);
}

/* The batch of the operator is Tutti's, or another axis. */
tutti_status build_reverse_sequence(struct step *step)
{
    struct operand x, lengths;
    int time = 0, batch = -1;
    const int64_t of_file = step_integer(step, "batch_axis", 1);
    tutti_status status = step_operand(step, 0, &x);
    if (status == TUTTI_OK) status = step_indices(step, 1, &lengths);
    if (status == TUTTI_OK) status = operand_axis(&x, step_integer(step, "time_axis", 0), &time);
    const bool own = x.place.batched && of_file == x.place.axis && x.place.ahead == 1;
    if (status == TUTTI_OK && !own) status = operand_axis(&x, of_file, &batch);
    if (status != TUTTI_OK) return status;
    if (own != (lengths.place.batched && lengths.place.axis == 0))
        return step_refuse("its lengths must have the batch of its data");
    const tutti_tensor pair[] = { x.tensor, lengths.tensor };
    return step_done(
        step, step_op(step, "reverse_sequence", pair, 2, "time_axis=%d batch_axis=%d", time, batch), x.place);
}
