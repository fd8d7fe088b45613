/* Sequences of tensors, whose lengths are known when the file is read. PyTorch's exporter writes them for parts of a
 * tensor. */
#include "onnx/operators.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Limit for all sequences of a file together, so that a small file cannot ask for much memory and time. */
enum { MOST_ELEMENTS = 1 << 16 };

/* Makes room for a sequence as the node's output. It owns `own` new values: the first elements. */
static tutti_status begin_sequence(const struct onnx_node *node, size_t count, size_t own, struct sequence **made)
{
    struct onnx_value *output = node_output(node, 0);
    if (!output) return fail(TUTTI_FORMAT, "output 0 is missing");
    if (count > MOST_ELEMENTS - node->import->sequence_elements)
        return node_refuse("the file's sequences would have more than %d elements", MOST_ELEMENTS);
    node->import->sequence_elements += count;
    struct sequence *sequence = &output->sequence;
    sequence->elements = memory_new(count + 1, sizeof *sequence->elements);
    sequence->own = memory_new(own + 1, sizeof *sequence->own);
    if (!sequence->elements || !sequence->own) return TUTTI_NO_MEMORY;
    sequence->count = count;
    for (size_t i = 0; i < own; i++) {
        sequence->own[i].name = output->name;
        sequence->own[i].floats.id = sequence->own[i].statistic.id = -1;
        sequence->elements[i] = &sequence->own[i];
    }
    *made = sequence;
    return TUTTI_OK;
}

static tutti_status read_sequence(const struct onnx_node *node, const struct sequence **sequence)
{
    const struct onnx_value *value = node_input(node, 0);
    if (!value || !value->sequence.elements) return node_refuse("input 0 is not a sequence whose length is known");
    *sequence = &value->sequence;
    return TUTTI_OK;
}

/* A position, counted from the end if it is negative; `fallback` if the input is absent. */
static tutti_status read_position(
    const struct onnx_node *node, size_t input, size_t count, size_t fallback, size_t *position)
{
    int64_t list[1];
    int known = 0;
    const tutti_status status = node_list(node, input, list, 1, &known);
    *position = fallback;
    if (status != TUTTI_OK || !known) return status;
    const int64_t found = list[0] < 0 ? list[0] + (int64_t)count : list[0];
    if (found < 0 || found >= (int64_t)count)
        return fail(TUTTI_FORMAT, "there is no element %" PRId64 " of %zu", list[0], count);
    *position = (size_t)found;
    return TUTTI_OK;
}

/* -------------------------------------------------------------------------------------------- SplitToSequence ---- */

/* Reads the sizes of the parts; *keeps: each part keeps the axis. The caller frees *sizes. */
static tutti_status read_parts(const struct onnx_node *node, int64_t size, int64_t **sizes, size_t *count, bool *keeps)
{
    const struct array *split = NULL;
    int64_t each = 1;
    const bool says = node_input(node, 1) != NULL;
    const tutti_status status = says ? node_array(node, 1, &split) : TUTTI_OK;
    if (status != TUTTI_OK) return status;
    *keeps = says || node_integer(node, "keepdims", 1);
    if (says && (!split->integers || split->count < 1)) return fail(TUTTI_FORMAT, "its parts must be integers");
    if (says && split->rank == 0) each = split->integers[0].number;
    if (each < 1) return fail(TUTTI_FORMAT, "parts of size %" PRId64, each);
    const bool listed = says && split->rank > 0;
    *count = listed ? split->count : (size_t)((size - 1) / each + 1);
    if (*count > MOST_ELEMENTS) return node_refuse("its sequence would have more than %d elements", MOST_ELEMENTS);
    int64_t *list = memory_new(*count, sizeof *list), rest = size;
    if (!list) return TUTTI_NO_MEMORY;
    *sizes = list;
    for (size_t i = 0; i < *count; i++) {
        list[i] = listed ? split->integers[i].number : each < rest ? each : rest;
        if (list[i] < 1 || list[i] > rest || (listed && split->integers[i].batches))
            return fail(TUTTI_FORMAT, "its parts do not fit %" PRId64, size);
        rest -= list[i];
    }
    return rest ? fail(TUTTI_FORMAT, "its parts do not fit %" PRId64, size) : TUTTI_OK;
}

tutti_status build_split_to_sequence(struct onnx_node *node)
{
    struct operand x;
    struct sequence *sequence = NULL;
    int64_t *sizes = NULL, start = 0, asked = node_integer(node, "axis", 0);
    size_t count = 0;
    int axis = 0;
    bool keeps = true;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = operand_axis(&x, asked, &axis);
    if (status == TUTTI_OK) status = read_parts(node, x.shape.sizes[axis], &sizes, &count, &keeps);
    if (status == TUTTI_OK) status = begin_sequence(node, count, count, &sequence);
    asked = asked < 0 ? asked + operand_rank(&x) : asked;
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) {
        struct onnx_value *part = &sequence->own[i];
        part->type = node_input(node, 0)->type;
        part->tensor = node_cut(node, x.tensor, axis, start, start + sizes[i]);
        if (!keeps) part->tensor = node_without_axis(node, &x, part->tensor, axis);
        part->batch = keeps ? x.batch : batch_axis_moved(x.batch, asked < x.batch.axis ? -1 : 0);
        if (part->tensor.id < 0) status = tutti_network_status(node->import->network);
        start += sizes[i];
    }
    free(sizes);
    return status;
}

/* --------------------------------------------------------------------------------------------- other operators ---- */

tutti_status build_sequence_construct(struct onnx_node *node)
{
    struct sequence *sequence = NULL;
    const size_t count = node->proto->n_input;
    const tutti_status status = begin_sequence(node, count, 0, &sequence);
    for (size_t i = 0; i < count && status == TUTTI_OK; i++)
        if (!(sequence->elements[i] = node_input(node, i))) return fail(TUTTI_FORMAT, "input %zu is missing", i);
    return status;
}

tutti_status build_sequence_at(struct onnx_node *node)
{
    const struct sequence *sequence = NULL;
    size_t position = 0;
    tutti_status status = read_sequence(node, &sequence);
    if (status == TUTTI_OK) status = read_position(node, 1, sequence->count, 0, &position);
    if (status != TUTTI_OK) return status;
    if (position >= sequence->count) return fail(TUTTI_FORMAT, "its sequence is empty");
    return node_copy(node, sequence->elements[position]);
}

tutti_status build_sequence_length(struct onnx_node *node)
{
    const struct sequence *sequence = NULL;
    const tutti_status status = read_sequence(node, &sequence);
    if (status != TUTTI_OK) return status;
    struct array *length = array_new(0, NULL, false);
    if (length) length->integers[0].number = (int64_t)sequence->count;
    return node_set_array(node, length);
}

/* SequenceInsert and SequenceErase: a copy with one element more, or with one less. */
tutti_status build_sequence_insert(struct onnx_node *node)
{
    const bool insert = !strcmp(node->proto->op_type, "SequenceInsert");
    const struct sequence *from = NULL;
    struct sequence *to = NULL;
    struct onnx_value *more = node_input(node, 1);
    size_t position = 0;
    tutti_status status = read_sequence(node, &from);
    if (status == TUTTI_OK && insert && !more) status = fail(TUTTI_FORMAT, "input 1 is missing");
    if (status == TUTTI_OK && !insert && from->count == 0) status = fail(TUTTI_FORMAT, "its sequence is empty");
    if (status != TUTTI_OK) return status;
    const size_t positions = from->count + insert, count = insert ? positions : positions - 1;
    status = read_position(node, insert ? 2 : 1, positions, positions - 1, &position);
    if (status == TUTTI_OK) status = begin_sequence(node, count, 0, &to);
    for (size_t i = 0; status == TUTTI_OK && i < count; i++)
        to->elements[i] = !insert ? from->elements[i + (i >= position)]
            : i == position       ? more
                                  : from->elements[i - (i > position)];
    return status;
}
