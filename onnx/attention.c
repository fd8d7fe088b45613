/* Attention, RotaryEmbedding and SwiGLU. */
#include "onnx/operators.h"
#include "tutti_sequences.h"

#include <inttypes.h>

enum { QUERY, KEY, VALUE, MASK, PAST_KEY, PAST_VALUE, KEY_COUNTS, ATTENTION_INPUTS };

/* Reads an input whose first axis is the batch, unless the file has none. An input that does not depend on the
 * samples has size 1 there. */
static tutti_status read_with_batch(const struct step *step, size_t position, int rank, struct operand *x)
{
    tutti_status status = step_operand(step, position, x);
    if (status != TUTTI_OK) return status;
    if (x->place.batched && (x->place.axis > 0 || x->place.rows != 1 || x->place.ahead != 1))
        return step_refuse("the batch is not the first axis of input %zu", position);
    if (!x->place.batched && x->shape.rank == rank && rank > 0 && !step->import->options->whole)
        status = step_drop_axis(step, position, 0, 1, x);
    return status;
}

static tutti_status read_inputs(const struct step *step, struct operand *inputs)
{
    tutti_status status = read_with_batch(step, QUERY, -1, &inputs[QUERY]);
    const int rank = status == TUTTI_OK ? operand_rank(&inputs[QUERY]) : 0;
    const int ranks[ATTENTION_INPUTS] = { rank, rank, rank, 4, 4, 4, 1 };
    if (status == TUTTI_OK && (!inputs[QUERY].place.batched || rank < 3 || rank > 4))
        return step_refuse("its first input must depend on the samples, and have 3 or 4 axes");
    for (size_t i = KEY; i < ATTENTION_INPUTS && status == TUTTI_OK; i++)
        if (step_input(step, i) || i <= VALUE) status = read_with_batch(step, i, ranks[i], &inputs[i]);
    return status;
}

/* A bound of -1 means none. */
static tutti_status read_windows(const struct step *step, tutti_attention_options *options)
{
    const int64_t left = step_integer(step, "left_window_size", -1),
                  right = step_integer(step, "right_window_size", -1);
    if (left < -1 || right < -1 || left > INT32_MAX || right > INT32_MAX)
        return fail(TUTTI_FORMAT, "a window is %" PRId64 " or %" PRId64, left, right);
    options->window_before = left + 1;
    options->window_after = right + 1;
    return TUTTI_OK;
}

static tutti_status finish_attention(
    const struct step *step, tutti_tensor y, const tutti_tensor *others, struct place place)
{
    tutti_status status = step_done(step, y, place);
    for (size_t i = 0; i < 3 && status == TUTTI_OK; i++)
        if (step_output(step, i + 1)) status = step_made(step, i + 1, others[i], place);
    return status;
}

tutti_status build_attention(struct step *step)
{
    struct operand x[ATTENTION_INPUTS];
    tutti_tensor others[3];
    const struct value *mask = step_input(step, MASK);
    const int64_t stage = step_integer(step, "qk_matmul_output_mode", 0);
    tutti_attention_options options = { .scale = step_number(step, "scale", 0),
        .softcap = step_number(step, "softcap", 0),
        .causal = step_integer(step, "is_causal", 0) != 0,
        .mask = mask ? &x[MASK].tensor : NULL,
        .mask_is_boolean = mask && mask->type == ONNX_BOOL,
        .past_key = step_input(step, PAST_KEY) ? &x[PAST_KEY].tensor : NULL,
        .past_value = step_input(step, PAST_VALUE) ? &x[PAST_VALUE].tensor : NULL,
        .key_counts = step_input(step, KEY_COUNTS) ? &x[KEY_COUNTS].tensor : NULL,
        .present_key = &others[0],
        .present_value = &others[1],
        .scores = &others[2] };
    tutti_status status = read_inputs(step, x);
    if (step_attribute(step, "scale") && options.scale == 0) return step_refuse("its scale is 0");
    if (status == TUTTI_OK) status = read_windows(step, &options);
    if (status != TUTTI_OK) return status;
    if (stage < 0 || stage > TUTTI_SCORES_SOFTMAX)
        return fail(TUTTI_FORMAT, "qk_matmul_output_mode is %" PRId64, stage);
    options.scores_stage = (tutti_attention_stage)stage;
    if (operand_rank(&x[QUERY]) == 3) {
        options.heads = step_integer(step, "q_num_heads", 0);
        options.kv_heads = step_integer(step, "kv_num_heads", 0);
        if (options.heads < 1 || options.kv_heads < 1)
            return fail(TUTTI_FORMAT, "it needs q_num_heads and kv_num_heads for inputs of 3 axes");
    }
    const tutti_tensor y =
        tutti_attention(step->import->network, x[QUERY].tensor, x[KEY].tensor, x[VALUE].tensor, &options);
    return finish_attention(step, y, others, x[QUERY].place);
}

/* --------------------------------------------------------------------------------------------- RotaryEmbedding ---- */

/* Reads rows of a table that each sample has of its own, by a product with a matrix that has a 1 for each row that is
 * read. */
static tutti_tensor rows_of_own_table(const struct step *step, const struct operand *ids, const struct operand *table)
{
    float positions[1024];
    const int64_t rows = table->shape.sizes[0];
    tutti_shape column = ids->shape, matrix = { .rank = 3, .sizes = { 1, rows, table->shape.sizes[1] } };
    column.sizes[column.rank++] = 1;
    for (int64_t i = 0; i < rows; i++) positions[i] = (float)i;
    const tutti_tensor pair[] = { step_reshape(step, ids->tensor, &column),
        tutti_constant(step->import->network, NULL, TUTTI_SHAPE(rows), positions) };
    const tutti_tensor read = step_plain(step, "equal", pair, 2);
    const tutti_tensor tables = step_reshape(step, table->tensor, &matrix);
    return step_plain(step, "matmul", (tutti_tensor[]) { read, tables }, 2);
}

static tutti_status read_tables(const struct step *step, struct operand *tables, tutti_tensor *inputs, int *count)
{
    struct operand ids;
    tutti_status status = TUTTI_OK;
    const bool has_ids = step_input(step, 3) != NULL;
    for (size_t i = 0; i < 2 && status == TUTTI_OK; i++)
        status = read_with_batch(step, i + 1, has_ids ? -1 : 3, &tables[i]);
    inputs[1] = tables[0].tensor;
    inputs[2] = tables[1].tensor;
    *count = 3;
    if (status != TUTTI_OK || !has_ids) return status;
    const bool own = tables[0].place.batched && tables[1].place.batched;
    status = own ? step_operand(step, 3, &ids) : step_indices(step, 3, &ids);
    if (status != TUTTI_OK) return status;
    inputs[3] = ids.tensor;
    *count = 4;
    if (!own) return TUTTI_OK;
    *count = 3;
    if (tables[0].place.axis != HIDDEN || ids.shape.rank != 2 || tables[0].shape.rank != 2 ||
        tables[1].shape.rank != 2 || tables[0].shape.sizes[0] > 1024 || tables[1].shape.sizes[0] > 1024)
        return step_refuse("cos_cache and sin_cache depend on the samples, and have position_ids");
    for (int i = 0; i < 2; i++) inputs[i + 1] = rows_of_own_table(step, &ids, &tables[i]);
    return TUTTI_OK;
}

tutti_status build_rotary_embedding(struct step *step)
{
    struct operand x, tables[2];
    tutti_tensor inputs[4];
    int count;
    tutti_status status = read_with_batch(step, 0, -1, &x);
    if (status == TUTTI_OK) status = read_tables(step, tables, inputs, &count);
    if (status != TUTTI_OK) return status;
    const int64_t heads = operand_rank(&x) == 3 ? step_integer(step, "num_heads", 0) : 0;
    if (operand_rank(&x) == 3 && heads < 1) return fail(TUTTI_FORMAT, "it needs num_heads for an input of 3 axes");
    inputs[0] = x.tensor;
    const tutti_tensor y =
        step_op(step, "rotary_embedding", inputs, count, "heads=%" PRId64 " width=%" PRId64 " interleaved=%d", heads,
            step_integer(step, "rotary_embedding_dim", 0), step_integer(step, "interleaved", 0) != 0);
    return step_done(step, y, x.place);
}

tutti_status build_swiglu(struct step *step)
{
    tutti_tensor pair[2];
    struct place place;
    const double alpha = (double)step_number(step, "alpha", 1);
    const tutti_status status = step_broadcast(step, pair, 2, &place);
    if (status != TUTTI_OK) return status;
    return step_done(step, step_op(step, "swiglu", pair, 2, "alpha=%.9g", alpha), place);
}
