/* Shapes of a file that is written: sizes that are known when it runs, and nodes that change a shape. */
#include "onnx/export/export.h"
#include "tutti_inspect.h"

#include <string.h>

/* [1] of int64 */
static const char *size_of(struct source *source, const char *tensor, int64_t axis)
{
    const char *size = source_temporary(source);
    const struct made made = source_node(source, "Shape", tensor, NULL, NULL, size);
    made_integer(made, "start", axis);
    made_integer(made, "end", axis + 1);
    return size;
}

/* The size of the first input that has this symbol. */
static const char *size_with(struct source *source, const char *symbol, const char *what)
{
    const struct export *export = source->export;
    for (size_t i = 0; i < export->inputs.count; i++) {
        const Onnx__ValueInfoProto *input = export->inputs.items[i];
        const Onnx__TensorShapeProto *shape = input->type->tensor_type->shape;
        for (size_t k = 0; k < shape->n_dim; k++)
            if (shape->dim[k] && shape->dim[k]->dim_param && !strcmp(shape->dim[k]->dim_param, symbol))
                return size_of(source, input->name, (int64_t)k);
    }
    source_refuse(source, what);
    return "";
}

const char *source_batch(struct source *source)
{
    const char **batch = &source->export->batch;
    if (!*batch) *batch = size_with(source, "N", "the number of samples is not known without an input");
    return *batch;
}

const char *source_length(struct source *source)
{
    const char **length = &source->export->length;
    if (!*length) *length = size_with(source, "T", "no input has the length of sequences");
    return *length;
}

const char *source_sizes(struct source *source, const char *batch, const int64_t *sizes, int count)
{
    const char *parts[TUTTI_MAX_RANK + 2];
    int filled = 0;
    if (batch) parts[filled++] = batch;
    for (int i = 0, next; i < count; i = next) {
        for (next = i; next < count && sizes[next] != TUTTI_SEQUENCE; next++) continue;
        parts[filled++] = next > i ? source_integers(source, sizes + i, next - i) : source_length(source);
        next += next == i;
    }
    if (filled == 0) return source_integers(source, NULL, 0);
    if (filled == 1) return parts[0];
    const char *joined = source_temporary(source);
    made_integer(source_node_of(source, "Concat", parts, filled, joined), "axis", 0);
    return joined;
}

/* Repeats the input as many times as another input has samples; there may be several rows of each. */
const char *source_for_each_sample(struct source *source, int input)
{
    static const int64_t ones[TUTTI_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    _Static_assert(TUTTI_MAX_RANK == 8, "so many ones");
    const tutti_tensor_info info = source_tensor(source, source->info.inputs[input]);
    const char *name = source_input(source, input), *batch = NULL;
    if (info.for_each_sample) return name;
    for (int i = 0; i < source->info.input_count && !batch; i++)
        if (source_is(source, i) && source_tensor(source, source->info.inputs[i]).for_each_sample)
            batch = size_of(source, source_input(source, i), 0);
    return source_step(
        source, "Expand", name, source_sizes(source, batch ? batch : source_batch(source), ones, info.shape.rank));
}

static int64_t elements_of(const tutti_shape *shape)
{
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++)
        if (shape->sizes[i] != TUTTI_SEQUENCE) elements *= shape->sizes[i];
    return elements;
}

/* The number of samples is copied (0), unless rows of samples join the batch or leave it. Only one size may be open
 * (-1). If the length of sequences moves to another axis there would be two: then the length is computed. */
void source_reshape(struct source *source, const char *from)
{
    const tutti_tensor_info *x = &source->x, *y = &source->y;
    int64_t sizes[TUTTI_MAX_RANK + 1], lengths[TUTTI_MAX_RANK + 1];
    int count = 0;
    const bool same = elements_of(&x->shape) == elements_of(&y->shape);
    int open = !same;
    if (y->for_each_sample) lengths[0] = sizes[count++] = same ? 0 : -1;
    for (int i = 0; i < y->shape.rank; i++) {
        const bool length = y->shape.sizes[i] == TUTTI_SEQUENCE;
        const bool copied = length && i < x->shape.rank && x->shape.sizes[i] == TUTTI_SEQUENCE;
        open += length && !copied;
        lengths[count] = copied ? 0 : y->shape.sizes[i];
        sizes[count++] = !length ? y->shape.sizes[i] : copied ? 0 : -1;
    }
    const char *shape = source_sizes(source, NULL, open > 1 ? lengths : sizes, count);
    (void)source_node(source, "Reshape", from, shape, NULL, source_output(source));
}

const char *source_transpose(struct source *source, const char *from, const int64_t *order, int rank, const char *to)
{
    if (!to) to = source_temporary(source);
    made_integers(source_node(source, "Transpose", from, NULL, NULL, to), "perm", order, rank);
    return to;
}

const char *source_slice(
    struct source *source, const char *from, int64_t axis, int64_t start, int64_t end, const char *to)
{
    if (!to) to = source_temporary(source);
    const char *const inputs[] = { from, source_integers(source, &start, 1), source_integers(source, &end, 1),
        source_integers(source, &axis, 1), source_integers(source, (int64_t[]) { start <= end ? 1 : -1 }, 1) };
    (void)source_node_of(source, "Slice", inputs, start <= end ? 4 : 5, to);
    return to;
}
