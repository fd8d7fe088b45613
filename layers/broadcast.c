#include "layers/broadcast.h"

#include "base/numbers.h"
#include "layers/layers.h"
#include <string.h>

/* Size of the sample's axis `from_last`, counted from the last one; 1 where the value lacks it. */
static int64_t sample_size(const struct value *value, int from_last)
{
    const int rank = value->shape.rank - value->batched;
    return from_last < rank ? value->shape.sizes[value->shape.rank - 1 - from_last] : 1;
}

void broadcast_print(const struct value *value, char text[BROADCAST_TEXT])
{
    char one[SIZE_TEXT];
    text[0] = '\0';
    for (int i = value->batched; i < value->shape.rank; i++)
        number_append(
            text, BROADCAST_TEXT, "%s%s", i > value->batched ? ", " : "", size_print(value->shape.sizes[i], one));
}

/* Broadcasts the output's shape with that of the input. */
static tutti_status join(const char *name, const struct value *input, struct value *output)
{
    const int rank = output->shape.rank, more = input->shape.rank - input->batched;
    struct value joined = { .type = TYPE_F32, .batched = input->batched || output->batched };
    joined.shape.rank = more > rank - output->batched ? more : rank - output->batched;
    for (int i = 0; i < joined.shape.rank; i++) {
        const int64_t a = sample_size(output, i), b = sample_size(input, i);
        joined.shape.sizes[joined.shape.rank - 1 - i] = a == 1 ? b : a;
        if (a == b || a == 1 || b == 1) continue;
        char one[BROADCAST_TEXT], other[BROADCAST_TEXT];
        broadcast_print(output, one);
        broadcast_print(input, other);
        return fail(TUTTI_SHAPE,
            "%s: the inputs have the shapes [%s] and [%s]: sizes must be equal, or one of them 1, from the last axis "
            "on",
            name, one, other);
    }
    if (joined.batched) {
        if (joined.shape.rank == TUTTI_MAX_RANK)
            return fail(TUTTI_SHAPE, "%s: the result would have %d axes besides the batch's: %d are possible", name,
                joined.shape.rank, TUTTI_MAX_RANK - 1);
        memmove(joined.shape.sizes + 1, joined.shape.sizes, (size_t)joined.shape.rank * sizeof *joined.shape.sizes);
        joined.shape.sizes[0] = output->batched ? output->shape.sizes[0] : input->shape.sizes[0];
        joined.shape.rank++;
    }
    *output = joined;
    return TUTTI_OK;
}

tutti_status broadcast_infer(const struct graph *graph, struct node *node, struct value *output)
{
    tutti_status status = TUTTI_OK;
    *output = (struct value) { .type = TYPE_F32 };
    for (int i = 0; i < node->input_count; i++) {
        const struct value *input = graph_at(graph, node->inputs[i]);
        if (input) TRY(join(node->operation->name, input, output));
    }
    if (output->shape.rank == 0) output->shape = TUTTI_SHAPE(1);
    infer_axes(graph, node, output);
done:
    return status;
}

int broadcast_gradient(struct graph *graph, int gradient, int value, int layer)
{
    const struct value *from = graph_at(graph, gradient), *to = graph_at(graph, value);
    if (!from) return NO_VALUE;
    if (shape_equal(from->shape, to->shape) && from->batched == to->batched) return gradient;
    struct reduce_attributes attributes = { .shape = to->shape, .kinds = to->axes };
    const int rank = from->shape.rank;
    for (int i = 0; i < rank; i++) {
        const bool batch = from->batched && i == 0;
        const bool missing = batch ? !to->batched : sample_size(to, rank - 1 - i) == 1;
        if (missing && (batch || from->shape.sizes[i] != 1)) attributes.axes |= 1u << i;
    }
    return graph_append(graph, &operation_reduce_sum, &attributes, &gradient, 1, layer);
}
