/* What reads a parameter that is stored in fewer bits (graph/stored.h), besides products (product.c): `floats` makes
 * the floats of all of it, `embedding_stored` those of the rows of an embedding. Plans append both (plan/stored.c). */
#include "graph/stored.h"
#include "clkernels/arguments/stored_rows.h"
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "layers/lines.h"
#include "runtime/arguments.h"

static tutti_status infer_floats(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    outputs[0] = (struct value) { .type = TYPE_F32, .shape = x->shape, .axes = x->axes };
    return TUTTI_OK;
}

static tutti_status infer_embedding(const struct graph *graph, struct node *node, struct value *outputs)
{
    return operation_embedding.infer(graph, node, outputs);
}

ARGUMENTS(stored_rows, STORED_ROWS_ARGUMENTS)

/* ids: NULL for all rows in their order. */
static void emit_rows(const struct problem *problem, const struct value *from, cl_mem buffer, cl_mem ids,
    const char *options, const struct operands *operands, struct launch_list *list)
{
    const int64_t length = value_size(from, 0), elements = value_elements(problem->outputs[0]);
    const bool bytes = from->type == TYPE_INT8;
    struct launch *launch =
        launch_add(list, "stored_rows", "stored_rows", "-DSTORED=%d%s", bytes ? 2 : from->type == TYPE_BF16, options);
    ARGUMENTS_SET(launch, stored_rows, .from = buffer, .ids = ids ? ids : buffer, .y = operands->outputs[0],
        .elements = elements, .chunk = elements_chunk(problem->device, elements), .rows = value_elements(from) / length,
        .length = length, .ld = bytes ? (int64_t)stored_row_bytes(TYPE_INT8, length) : length);
    elements_launch(launch, problem->device, elements);
    launch_work(launch, 0, (4 + (bytes ? 1.0625 : 2)) * (double)elements);
}

static void emit_floats(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    emit_rows(problem, problem->inputs[0], operands->inputs[0], NULL, " -DINDEXED=0", operands, list);
}

static void emit_embedding(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const bool from_end = embedding_attributes(problem->node)->from_end;
    emit_rows(problem, problem->inputs[1], operands->inputs[1], operands->inputs[0],
        from_end ? " -DINDEXED=1 -DFROM_END=1" : " -DINDEXED=1 -DFROM_END=0", operands, list);
}

static const struct implementation floats_by_element = { .name = "elements", .emit = emit_floats };
static const struct implementation embedding_by_element = { .name = "elements", .emit = emit_embedding };

const struct operation operation_floats = {
    .name = "floats",
    .inputs = { { "x" } },
    .outputs = { { "y" } },
    .infer = infer_floats,
    .reference = interpret_copy,
    .implementations = ONE(floats_by_element),
    .made_anew = true,
};
const struct operation operation_embedding_stored = {
    .name = "embedding_stored",
    .inputs = { { "ids", PORT_ANY_TYPE }, { "table" } },
    .outputs = { { "y" } },
    .attributes = &embedding_attributes_type,
    .infer = infer_embedding,
    .reference = interpret_embedding,
    .implementations = ONE(embedding_by_element),
};
