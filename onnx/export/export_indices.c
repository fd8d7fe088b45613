/* gather, scatter and one_hot in ONNX. Indices are floats or int32 here, and int64 there. */
#include "onnx/export/export.h"
#include "tutti_inspect.h"

#include <string.h>

enum { OF_AXIS, OF_ELEMENTS, OF_ND }; /* enum indexed_kind of layers/indices.h */

static const char *indices(struct source *source, const char *from)
{
    return source_cast(source, from, ONNX_INT64);
}

/* Adds an axis after all others: [.., 1]. */
static const char *with_last(struct source *source, const char *from, int rank)
{
    return source_step(source, "Unsqueeze", from, source_integers(source, &(int64_t) { rank }, 1));
}

/* Moves `count` axes of the array from one position to another; the others keep their order. */
static const char *move_axes(struct source *source, const char *from, int rank, int first, int count, int to)
{
    int64_t order[2 * TUTTI_MAX_RANK + 1];
    if (first == to || count == 0 || rank > 2 * TUTTI_MAX_RANK) return from;
    for (int i = 0, next = 0; i < rank; i++) {
        if (next == first) next += count;
        order[i] = i >= to && i < to + count ? first + i - to : next++;
    }
    return source_transpose(source, from, order, rank, NULL);
}

/* Gathers slices along an axis. If samples have indices of their own: by GatherND, with the axis moved to the
 * front. */
static void gather_slices(struct source *source, int axis)
{
    const tutti_tensor_info *x = &source->x, at = source_tensor(source, source->info.inputs[1]);
    const char *data = source_input(source, 0), *numbers = indices(source, source_input(source, 1));
    const int rank = array_rank(x) - 1 + at.shape.rank; /* of the result */
    const char *y = source_temporary(source);
    if (!x->for_each_sample || !at.for_each_sample) {
        made_integer(source_node(source, "Gather", data, numbers, NULL, y), "axis", axis + x->for_each_sample);
        if (at.for_each_sample) y = move_axes(source, y, rank + 1, axis, 1, 0);
    } else {
        data = move_axes(source, data, array_rank(x), axis + 1, 1, 1);
        made_integer(source_node(source, "GatherND", data, with_last(source, numbers, array_rank(&at)), NULL, y),
            "batch_dims", 1);
        y = move_axes(source, y, rank, 1, at.shape.rank, axis + 1);
    }
    source_finish(source, y);
}

void export_gather(struct source *source)
{
    const int kind = (int)source_number(source, "kind", 0), axis = (int)source_number(source, "axis", 0);
    const bool batched = source->y.for_each_sample;
    if (kind == OF_AXIS) {
        gather_slices(source, axis);
        return;
    }
    const bool plain = kind == OF_ND && !source->x.for_each_sample && axis == 0; /* the data are one table */
    const char *data = batched && !plain ? source_for_each_sample(source, 0) : source_input(source, 0);
    const char *numbers =
        indices(source, batched && !plain ? source_for_each_sample(source, 1) : source_input(source, 1));
    const struct made made =
        source_node(source, kind == OF_ND ? "GatherND" : "GatherElements", data, numbers, NULL, source_output(source));
    made_integer(made, kind == OF_ND ? "batch_dims" : "axis", axis + (batched && !plain));
}

/* data as [samples, elements, rest], for indices [.., k] along the first k axes of a sample. */
struct flat_axes {
    int64_t count, numbers, rest; /* count: of indices */
    int64_t sizes[TUTTI_MAX_RANK], strides[TUTTI_MAX_RANK];
};

/* False where a size is the length of sequences. */
static bool find_flat_axes(const tutti_shape *data, const tutti_shape *at, struct flat_axes *p)
{
    bool known = true;
    *p = (struct flat_axes) { 1, at->sizes[at->rank - 1], 1 };
    for (int i = 0; i < data->rank; i++) known &= data->sizes[i] != TUTTI_SEQUENCE;
    for (int i = 0; i < at->rank; i++) known &= at->sizes[i] != TUTTI_SEQUENCE;
    for (int i = 0; i < at->rank - 1; i++) p->count *= at->sizes[i];
    for (int i = (int)p->numbers; i < data->rank; i++) p->rest *= data->sizes[i];
    for (int64_t i = p->numbers - 1, stride = 1; i >= 0; stride *= p->sizes[i--]) {
        p->sizes[i] = data->sizes[i];
        p->strides[i] = stride;
    }
    return known;
}

static const char *as_rows(struct source *source, const char *from, int64_t rows, int64_t columns)
{
    return source_step(source, "Reshape", from, source_integers(source, (int64_t[]) { 0, rows, columns }, 3));
}

/* Joins the numbers along several axes to one index of an element; negative ones count from the end of their
 * axis. */
static const char *one_number(struct source *source, const struct flat_axes *p, const char *numbers)
{
    const char *sizes = source_integers(source, p->sizes, (int)p->numbers);
    const char *negative = source_step(source, "Less", numbers, source_integer(source, 0)), *from_end, *first;
    from_end = source_step(source, "Add", numbers, sizes);
    first = source_temporary(source);
    (void)source_node(source, "Where", negative, from_end, numbers, first);
    first = source_step(source, "Mul", first, source_integers(source, p->strides, (int)p->numbers));
    return source_step(source, "ReduceSum", first, source_integers(source, &(int64_t) { 2 }, 1));
}

/* ONNX's ScatterND has no axes that all inputs share, as the batch is here. ScatterElements along one axis of elements
 * does the same. */
static void scatter_elements(struct source *source, const char *reduction)
{
    struct flat_axes p;
    const tutti_tensor_info at = source_tensor(source, source->info.inputs[1]);
    if (!find_flat_axes(&source->x.shape, &at.shape, &p)) {
        source_refuse(source, "one of its axes has the length of sequences");
        return;
    }
    const char *data = as_rows(source, source_for_each_sample(source, 0), -1, p.rest);
    const char *numbers = as_rows(source, indices(source, source_for_each_sample(source, 1)), p.count, p.numbers);
    const char *updates = as_rows(source, source_for_each_sample(source, 2), p.count, p.rest);
    numbers = one_number(source, &p, numbers);
    numbers = source_step(source, "Expand", numbers, source_integers(source, (int64_t[]) { 1, 1, p.rest }, 3));
    const char *y = source_temporary(source);
    const struct made made = source_node(source, "ScatterElements", data, numbers, updates, y);
    made_integer(made, "axis", 1);
    made_text(made, "reduction", reduction);
    source_reshape(source, y);
}

void export_scatter(struct source *source)
{
    static const char *const reductions[] = { "none", "add", "mul", "max", "min" };
    const char *reduction = source_choice(source, "reduction", reductions, 5);
    const bool nd = (int)source_number(source, "kind", 0) == OF_ND, batched = source->y.for_each_sample;
    const char *inputs[3];
    if (nd && batched) {
        scatter_elements(source, reduction);
        return;
    }
    for (int i = 0; i < 3; i++) inputs[i] = batched ? source_for_each_sample(source, i) : source_input(source, i);
    inputs[1] = indices(source, inputs[1]);
    const struct made made =
        source_node_of(source, nd ? "ScatterND" : "ScatterElements", inputs, 3, source_output(source));
    if (!nd) made_integer(made, "axis", (int64_t)source_number(source, "axis", 0) + batched);
    made_text(made, "reduction", reduction);
}

void export_one_hot(struct source *source)
{
    const float values[] = { (float)source_number(source, "off", 0), (float)source_number(source, "on", 1) };
    const char *depth = source_integer(source, (int64_t)source_number(source, "depth", 1));
    const char *numbers = indices(source, source_input(source, 0));
    made_integer(source_node(source, "OneHot", numbers, depth, source_vector(source, values, 2), source_output(source)),
        "axis", array_axis(&source->y, (int64_t)source_number(source, "axis", 0)));
}
