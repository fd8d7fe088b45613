/* Attention, RotaryEmbedding and SwiGLU. */
#include "onnx/operators.h"
#include "tutti_sequences.h"

#include <inttypes.h>

enum { QUERY, KEY, VALUE, MASK, PAST_KEY, PAST_VALUE, KEY_COUNTS, ATTENTION_INPUTS };

/* Reads an input whose first axis is the batch, unless the file has none. An input that does not depend on the
 * samples has size 1 there. */
static tutti_status read_with_batch(const struct onnx_node *node, size_t position, int rank, struct operand *x)
{
    tutti_status status = node_operand(node, position, x);
    if (status != TUTTI_OK) return status;
    if (x->batch.batched && (x->batch.axis > 0 || x->batch.rows_per_sample != 1 || x->batch.outer != 1))
        return node_refuse("the batch is not the first axis of input %zu", position);
    if (!x->batch.batched && x->shape.rank == rank && rank > 0 && !node->import->options->whole)
        status = node_drop_axis(node, position, 0, 1, x);
    return status;
}

static tutti_status read_inputs(const struct onnx_node *node, struct operand *inputs)
{
    tutti_status status = read_with_batch(node, QUERY, -1, &inputs[QUERY]);
    const int rank = status == TUTTI_OK ? operand_rank(&inputs[QUERY]) : 0;
    const int ranks[ATTENTION_INPUTS] = { rank, rank, rank, 4, 4, 4, 1 };
    if (status == TUTTI_OK && (!inputs[QUERY].batch.batched || rank < 3 || rank > 4))
        return node_refuse("its first input must depend on the samples, and have 3 or 4 axes");
    for (size_t i = KEY; i < ATTENTION_INPUTS && status == TUTTI_OK; i++)
        if (node_input(node, i) || i <= VALUE) status = read_with_batch(node, i, ranks[i], &inputs[i]);
    if (status == TUTTI_OK && node_input(node, MASK) && operand_has_batch_axis(&inputs[MASK]) &&
        operand_rank(&inputs[MASK]) != ranks[MASK])
        return node_refuse("the batch is another axis of its mask");
    return status;
}

/* A bound of -1 means none. */
static tutti_status read_windows(const struct onnx_node *node, tutti_attention_options *options)
{
    const int64_t left = node_integer(node, "left_window_size", -1),
                  right = node_integer(node, "right_window_size", -1);
    if (left < -1 || right < -1 || left > INT32_MAX || right > INT32_MAX)
        return fail(TUTTI_FORMAT, "a window is %" PRId64 " or %" PRId64, left, right);
    options->window_before = left + 1;
    options->window_after = right + 1;
    return TUTTI_OK;
}

static tutti_status finish_attention(
    const struct onnx_node *node, tutti_tensor y, const tutti_tensor *others, struct batch_axis batch_axis)
{
    tutti_status status = node_set_output(node, y, batch_axis);
    for (size_t i = 0; i < 3 && status == TUTTI_OK; i++)
        if (node_output(node, i + 1)) status = node_set_output_at(node, i + 1, others[i], batch_axis);
    return status;
}

tutti_status build_attention(struct onnx_node *node)
{
    struct operand x[ATTENTION_INPUTS];
    tutti_tensor others[3];
    const struct onnx_value *mask = node_input(node, MASK);
    const int64_t stage = node_integer(node, "qk_matmul_output_mode", 0);
    tutti_attention_options options = { .scale = node_number(node, "scale", 0),
        .softcap = node_number(node, "softcap", 0),
        .causal = node_integer(node, "is_causal", 0) != 0,
        .mask = mask ? &x[MASK].tensor : NULL,
        .mask_is_boolean = mask && mask->type == ONNX_BOOL,
        .past_key = node_input(node, PAST_KEY) ? &x[PAST_KEY].tensor : NULL,
        .past_value = node_input(node, PAST_VALUE) ? &x[PAST_VALUE].tensor : NULL,
        .key_counts = node_input(node, KEY_COUNTS) ? &x[KEY_COUNTS].tensor : NULL,
        .present_key = &others[0],
        .present_value = &others[1],
        .scores = &others[2] };
    tutti_status status = read_inputs(node, x);
    if (node_attribute(node, "scale") && options.scale == 0) return node_refuse("its scale is 0");
    if (status == TUTTI_OK) status = read_windows(node, &options);
    if (status != TUTTI_OK) return status;
    if (stage < 0 || stage > TUTTI_SCORES_SOFTMAX)
        return fail(TUTTI_FORMAT, "qk_matmul_output_mode is %" PRId64, stage);
    options.scores_stage = (tutti_attention_stage)stage;
    if (operand_rank(&x[QUERY]) == 3) {
        options.heads = node_integer(node, "q_num_heads", 0);
        options.kv_heads = node_integer(node, "kv_num_heads", 0);
        if (options.heads < 1 || options.kv_heads < 1)
            return fail(TUTTI_FORMAT, "it needs q_num_heads and kv_num_heads for inputs of 3 axes");
    }
    const tutti_tensor y =
        tutti_attention(node->import->network, x[QUERY].tensor, x[KEY].tensor, x[VALUE].tensor, &options);
    return finish_attention(node, y, others, x[QUERY].batch);
}

/* --------------------------------------------------------------------------------------------- RotaryEmbedding ---- */

/* Reads rows of a table that differs between samples, by a product with a matrix that has a 1 for each row to read. */
static tutti_tensor rows_of_own_table(
    const struct onnx_node *node, const struct operand *ids, const struct operand *table)
{
    const int64_t rows = table->shape.sizes[0];
    const tutti_shape matrix = { .rank = 3, .sizes = { 1, rows, table->shape.sizes[1] } };
    const tutti_tensor read = node_op(node, "one_hot", &ids->tensor, 1, "depth=%" PRId64, rows);
    const tutti_tensor tables = node_reshape(node, table->tensor, &matrix);
    return node_plain(node, "matmul", (tutti_tensor[]) { read, tables }, 2);
}

static tutti_status read_tables(const struct onnx_node *node, struct operand *tables, tutti_tensor *inputs, int *count)
{
    struct operand ids;
    tutti_status status = TUTTI_OK;
    const bool has_ids = node_input(node, 3) != NULL;
    for (size_t i = 0; i < 2 && status == TUTTI_OK; i++)
        status = read_with_batch(node, i + 1, has_ids ? -1 : 3, &tables[i]);
    inputs[1] = tables[0].tensor;
    inputs[2] = tables[1].tensor;
    *count = 3;
    if (status != TUTTI_OK || !has_ids) return status;
    const bool own = tables[0].batch.batched && tables[1].batch.batched;
    status = own ? node_operand(node, 3, &ids) : node_operand_as_is(node, 3, &ids);
    if (status != TUTTI_OK) return status;
    inputs[3] = ids.tensor;
    *count = 4;
    if (!own) return TUTTI_OK;
    *count = 3;
    if (!batch_is_whole(&tables[0].batch) || ids.shape.rank != 2 || tables[0].shape.rank != 2 ||
        tables[1].shape.rank != 2 || tables[0].shape.sizes[0] > 1024 || tables[1].shape.sizes[0] > 1024)
        return node_refuse("cos_cache and sin_cache depend on the samples, and have position_ids");
    for (int i = 0; i < 2; i++) inputs[i + 1] = rows_of_own_table(node, &ids, &tables[i]);
    return TUTTI_OK;
}

tutti_status build_rotary_embedding(struct onnx_node *node)
{
    struct operand x, tables[2];
    tutti_tensor inputs[4];
    int count;
    tutti_status status = read_with_batch(node, 0, -1, &x);
    if (status == TUTTI_OK) status = read_tables(node, tables, inputs, &count);
    if (status != TUTTI_OK) return status;
    const int64_t heads = operand_rank(&x) == 3 ? node_integer(node, "num_heads", 0) : 0;
    if (operand_rank(&x) == 3 && heads < 1) return fail(TUTTI_FORMAT, "it needs num_heads for an input of 3 axes");
    inputs[0] = x.tensor;
    const tutti_tensor y =
        node_op(node, "rotary_embedding", inputs, count, "heads=%" PRId64 " width=%" PRId64 " interleaved=%d", heads,
            node_integer(node, "rotary_embedding_dim", 0), node_integer(node, "interleaved", 0) != 0);
    return node_set_output(node, y, x.batch);
}

tutti_status build_swiglu(struct onnx_node *node)
{
    tutti_tensor pair[2];
    struct batch_axis batch_axis;
    const double alpha = (double)node_number(node, "alpha", 1);
    const tutti_status status = node_broadcast(node, pair, 2, &batch_axis);
    if (status != TUTTI_OK) return status;
    return node_set_output(node, node_op(node, "swiglu", pair, 2, "alpha=%.9g", alpha), batch_axis);
}
