/* Makes one node of the transforms of both axes of images, before gradients are appended, where kernels profit. */
#include "graph/edit.h"
#include "layers/dft/dft.h"
#include "layers/dft/dft2.h"
#include "layers/patterns.h"

/* The rows are transformed first, then the columns. */
static bool read_forward(const struct value *x, const struct dft_attributes *rows, const struct dft_attributes *columns,
    struct dft2_attributes *a)
{
    const int last = x->shape.rank - 1;
    *a = (struct dft2_attributes) { .height = columns->length,
        .width = rows->length,
        .rows = columns->count,
        .columns = rows->count,
        .first = columns->to,
        .doubled = rows->doubled,
        .scale = rows->scale * columns->scale };
    return rows->form == DFT_REAL_TO_COMPLEX && columns->form == DFT_COMPLEX && rows->axis == last &&
        columns->axis == last - 1 && !rows->inverse && !columns->inverse && x->shape.sizes[last] == rows->length &&
        x->shape.sizes[last - 1] == columns->length && rows->from == 0 && rows->to == 0 && columns->from == 0;
}

/* The columns are transformed first, then the rows. x: the spectrum, whose last axis has both parts. */
static bool read_inverse(const struct value *x, const struct dft_attributes *columns, const struct dft_attributes *rows,
    struct dft2_attributes *a)
{
    const int last = x->shape.rank - 2;
    *a = (struct dft2_attributes) { .height = columns->length,
        .width = rows->length,
        .rows = x->shape.sizes[last - 1],
        .columns = x->shape.sizes[last],
        .first = columns->from,
        .inverse = true,
        .doubled = rows->doubled,
        .scale = rows->scale * columns->scale };
    return columns->form == DFT_COMPLEX && rows->form == DFT_COMPLEX_TO_REAL && columns->axis == last - 1 &&
        rows->axis == last && columns->inverse && rows->inverse && columns->count == columns->length &&
        rows->count == rows->length && columns->to == 0 && rows->to == 0 && rows->from == 0;
}

static bool profits(const struct rewriting *rewriting, const struct node *node)
{
    struct value outputs[GRAPH_MAX_OUTPUTS] = { 0 };
    struct problem problem;
    struct node copy = *node;
    if (node->operation->infer(rewriting->graph, &copy, outputs) != TUTTI_OK) return false;
    copy.output_count = 0;
    return rewriting->choose(rewriting, &copy, &problem) != NULL;
}

static bool fuse(const struct rewriting *rewriting, size_t n, int producer)
{
    struct graph *graph = rewriting->graph;
    const struct node second = graph->nodes[n], first = graph->nodes[producer]; /* copies: appending moves the array */
    const struct dft_attributes *one = dft_attributes(&first), *other = dft_attributes(&second);
    const struct value *x = graph_at(graph, first.inputs[0]);
    struct dft2_attributes a;
    if (one->unit || other->unit || x->shape.rank - x->batched < 2) return false;
    if (one->form == DFT_REAL_TO_COMPLEX ? !read_forward(x, one, other, &a) : !read_inverse(x, one, other, &a))
        return false;
    struct node node = { .input_count = 1, .layer = second.layer };
    node_set_operation(&node, &operation_dft2, &a);
    node.inputs[0] = first.inputs[0];
    if (!profits(rewriting, &node)) return false;
    if (graph_append(graph, &operation_dft2, &a, first.inputs, 1, second.layer) == NO_VALUE) return false;
    graph_last(graph)->outputs[0] = second.outputs[0];
    graph->nodes[n].operation = graph->nodes[producer].operation = NULL;
    edit_move_last(graph, n);
    return true;
}

const struct pattern pattern_dft2 = {
    .operation = &operation_dft,
    .producer = &operation_dft,
    .sole = true,
    .apply = fuse,
};
