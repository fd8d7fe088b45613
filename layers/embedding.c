/* embedding: rows of a table by their indices, and the gradient of the table. */

#include "clkernels/arguments/embedding.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "graph/network.h"
#include "layers/elementwise.h"
#include "layers/indices.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "layers/loop/loop.h"
#include "runtime/arguments.h"
#include "tutti_sequences.h"

ATTRIBUTES_DESCRIBE(embedding, ATTRIBUTE(embedding, FLAG, from_end))
ATTRIBUTES_DESCRIBE(
    embedding_gradient, ATTRIBUTE(embedding_gradient, FLAG, from_end), ATTRIBUTE(embedding_gradient, SHAPE, shape))

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *ids = graph_at(graph, node->inputs[0]), *table = graph_at(graph, node->inputs[1]);
    if (ids->type != TYPE_I32)
        return fail(TUTTI_INVALID,
            "embedding: the first input must be of int32, the indices of rows: tutti_input_typed() makes such an "
            "input, "
            "and tutti_cast() makes it from bytes");
    if (table->batched || table->shape.rank != 2)
        return fail(TUTTI_SHAPE, "embedding: the table has %d dimensions%s: it must be [rows, width] for all samples",
            table->shape.rank - table->batched, table->batched ? " for each sample" : "");
    if (ids->shape.rank == TUTTI_MAX_RANK)
        return fail(TUTTI_SHAPE, "embedding: the result would have %d dimensions besides the batch's: %d are possible",
            TUTTI_MAX_RANK + 1 - ids->batched, TUTTI_MAX_RANK - ids->batched);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = ids->batched, .shape = ids->shape };
    outputs[0].shape.sizes[outputs[0].shape.rank++] = table->shape.sizes[1];
    outputs[0].axes = axes_with_features(ids, outputs[0].shape.rank);
    /* Indices in a row are a sequence. */
    const int row = ids->shape.rank - 1;
    if (row >= 0 && value_axis(ids, row) == AXIS_NONE) outputs[0].axes.kinds[row] = AXIS_SEQUENCE;
    return TUTTI_OK;
}

/* Inputs: ids, dy. */
static tutti_status infer_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *ids = graph_at(graph, node->inputs[0]), *dy = graph_at(graph, node->inputs[1]);
    const tutti_shape table = embedding_gradient_attributes(node)->shape;
    if (table.rank != 2 || dy->shape.rank != ids->shape.rank + 1 ||
        dy->shape.sizes[dy->shape.rank - 1] != table.sizes[1])
        return fail(TUTTI_SHAPE, "embedding_gradient: the gradient, of %d dimensions, does not match the table",
            dy->shape.rank);
    outputs[0] = (struct value) { .type = TYPE_F32, .shape = table };
    return TUTTI_OK;
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[0] == NO_VALUE || !g->wanted[1]) return TUTTI_OK;
    const struct embedding_gradient_attributes attributes = {
        .from_end = embedding_attributes(node)->from_end,
        .shape = graph_at(graph, node->inputs[1])->shape,
    };
    const int inputs[] = { node->inputs[0], g->outputs[0] };
    g->inputs[1] = graph_append(graph, &operation_embedding_gradient, &attributes, inputs, 2, node->layer);
    return graph->status;
}

/* --------------------------------------------------------------------------------------------------- builder ---- */

tutti_tensor tutti_embedding(tutti_network *network, const char *name, tutti_tensor ids, int64_t rows, int64_t width)
{
    if (!network_value(network, ids)) return (tutti_tensor) { NO_VALUE };
    const int layer = network_layer_begin(network, name, "embedding");
    if (rows < 1 || rows > INT32_MAX || width < 1 || width > INT32_MAX)
        return network_fail(network,
            fail(TUTTI_INVALID, "embedding: the table is %lld x %lld: both must be at least 1 and less than 2^31",
                (long long)rows, (long long)width));
    const struct parameter how = { .init = TUTTI_INIT_NORMAL, .init_scale = 1 };
    int inputs[] = { ids.id, NO_VALUE };
    inputs[1] = network_parameter(network, layer, "weight", TUTTI_SHAPE(rows, width), &how);
    return network_append(network, layer, &operation_embedding, NULL, inputs, 2);
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

/* LEAST: floats of a row that a task has, four cache lines: rows lie at random places. TASKS: for each unit. */
enum { LEAST = 64, TASKS = 4, GROUP = 64 };
/* Up to this many rows of dy are added without their rounding errors. */
enum { SHORT = 1024 };

struct sizes {
    int64_t count, rows, width;
};

/* Of embedding_gradient, and of gather_gradient along the first axis. */
static struct sizes sizes_of(const struct problem *problem)
{
    const struct value *table = problem->outputs[0];
    const int64_t rows = table->shape.sizes[0];
    return (struct sizes) { value_elements(problem->inputs[0]), rows, value_elements(table) / rows };
}

/* Returns the buffer of the added tensor. Without one, returns the output: a buffer argument must not be NULL. */
static cl_mem added(const struct operands *operands)
{
    return operands->add ? operands->add : operands->outputs[0];
}

static bool from_end(const struct problem *problem)
{
    return problem->node->operation == &operation_gather_gradient ||
        embedding_gradient_attributes(problem->node)->from_end;
}

static struct launch *add(
    const struct problem *problem, struct launch_list *list, const char *kernel, const char *options)
{
    const struct sizes s = sizes_of(problem);
    const double moved = (double)(s.count * s.width);
    struct launch *launch = launch_add(list, "embedding", kernel, "%s", options);
    launch_work(launch, 0, 8 * moved);
    return launch;
}

ARGUMENTS(tasks, TASKS_ARGUMENTS)

static size_t errors_of_blocks(const struct problem *problem)
{
    const struct sizes s = sizes_of(problem);
    return s.count > SHORT ? sizeof(float) * (size_t)(s.rows * s.width) : 0;
}

/* Divides the columns into blocks of one size, whatever the indices are. Rows are divided only where there are too
 * few columns, since each task reads all indices. */
static void emit_blocks(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct sizes s = sizes_of(problem);
    const int64_t units = problem->device->units > 0 ? problem->device->units : 1;
    const int64_t columns = (int64_t)size_round_up((size_t)divide_up(s.width, TASKS * units), LEAST);
    const int64_t blocks = divide_up(s.width, columns);
    int64_t parts = 1;
    while (blocks * parts < units * (blocks < units ? TASKS : 1)) parts *= 2;
    const bool errors = errors_of_blocks(problem) > 0;
    char options[64] = "";
    number_append(options, sizeof options, "%s -DROWS=1 -DADD=%d -DERRORS=%d -DFROM_END=%d",
        indexed_options(problem->inputs[0]), operands->add != NULL, errors, from_end(problem));
    struct launch *launch = add(problem, list, "embedding_gradient", options);
    ARGUMENTS_SET(launch, tasks, .ids = operands->inputs[0], .dy = operands->inputs[1], .dtable = operands->outputs[0],
        .added = added(operands), .errors = errors ? operands->workspace : operands->outputs[0], .count = s.count,
        .rows = s.rows, .width = s.width, .columns = columns, .parts = parts);
    launch_tasks(launch, (size_t)blocks, (size_t)parts, 1);
}

static size_t options_of(const struct problem *problem, const struct operands *operands, char *options, size_t size)
{
    const size_t group = group_size(problem->device, GROUP);
    options[0] = '\0';
    number_append(options, size, "-DWHOLE=1 -DROWS=0 -DADD=%d -DGROUP=%zu -DFROM_END=%d", operands->add != NULL, group,
        from_end(problem));
    return group;
}

static void emit_groups(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    char options[64];
    const size_t group = options_of(problem, operands, options, sizeof options);
    const struct sizes s = sizes_of(problem);
    struct launch *launch = launch_add(list, "embedding", "embedding_begin", "%s", options);
    LAUNCH_BUFFERS(launch, operands->outputs[0], added(operands));
    launch_long(launch, s.rows * s.width);
    launch_grid(launch, 1, size_round_up((size_t)(s.rows * s.width), group), 1, 1, group, 1, 1);
    launch_work(launch, 0, 4 * (double)(s.rows * s.width));
    launch = add(problem, list, "embedding_gradient", options);
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->inputs[1], operands->outputs[0]);
    LAUNCH_INTS(launch, s.count, s.rows, s.width);
    launch_grid(launch, 1, (size_t)s.count * group, 1, 1, group, 1, 1);
}

static const struct implementation blocks = {
    .name = "blocks", .fits = fits_cpu_class, .fusions = FUSED(ADD), .workspace = errors_of_blocks, .emit = emit_blocks
};

static const char *fits_rows(const struct problem *problem)
{
    const struct indexed_attributes *a = indexed_attributes(problem->node);
    if (a->kind != INDEXED_AXIS || a->axis != 0 || a->batched)
        return "gathers from one axis of many, or from another table in each sample";
    return fits_cpu_class(problem);
}

const struct implementation gather_gradient_rows = {
    .name = "rows", .fits = fits_rows, .fusions = FUSED(ADD), .workspace = errors_of_blocks, .emit = emit_blocks
};
static const struct implementation groups = { .name = "groups", .fusions = FUSED(ADD), .emit = emit_groups };
static const struct implementation *const backward[] = { &blocks, &groups, NULL };

/* Operand 0 is the table, operand 1 the indices. */
static void describe(const struct problem *problem, struct loop *loop)
{
    const struct value *ids = problem->inputs[0], *table = problem->inputs[1];
    struct value indices = *ids; /* one for each row of the output */
    indices.shape.sizes[indices.shape.rank++] = 1;
    loop_begin(loop, problem->outputs[0]);
    struct loop_operand *row = &loop->operands[0], *index = &loop->operands[1];
    loop->operand_count = 2;
    row->input = 1;
    row->strides[loop->rank - 1] = table->shape.sizes[1] == 1 ? 0 : 1;
    row->indexed = true;
    row->index = 1;
    row->index_stride = table->shape.sizes[1];
    row->index_size = table->shape.sizes[0];
    row->index_from_end = embedding_attributes(problem->node)->from_end;
    *index = loop_operand_of(&indices, &problem->outputs[0]->shape, indices.batched);
    index->input = 0;
}

const struct operation operation_embedding = {
    .name = "embedding",
    .inputs = { { "ids", PORT_ANY_TYPE }, { "table" } },
    .outputs = { { "y" } },
    .attributes = &embedding_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .loop = describe,
    .reference = interpret_embedding,
    .implementations = loop_implementations,
    .from_stored = &operation_embedding_stored,
};
const struct operation operation_embedding_gradient = {
    .name = "embedding_gradient",
    .inputs = { { "ids", PORT_ANY_TYPE }, { "dy" } },
    .outputs = { { "dtable" } },
    .attributes = &embedding_gradient_attributes_type,
    .infer = infer_gradient,
    .reference = interpret_embedding_gradient,
    .implementations = backward,
};
