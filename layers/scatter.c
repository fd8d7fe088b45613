/* scatter_elements, scatter_nd: elements of a tensor are joined with updates, in the order of the updates. The gradient
 * of gather is such a sum, of updates onto zeros. */
#include "base/memory.h"
#include "clkernels/arguments/gather.h"
#include "layers/broadcast.h"
#include "layers/elementwise.h"
#include "layers/indices.h"
#include "layers/interpreter/interpreter.h"
#include "runtime/arguments.h"

/* Inputs of scatter; inputs and outputs of scatter_gradient. gather_gradient has the first two inputs and the first
 * output of scatter_gradient. */
enum { SCATTER_DATA, SCATTER_INDICES, SCATTER_UPDATES };
enum { GRADIENT_INDICES, GRADIENT_DY, GRADIENT_DATA, GRADIENT_UPDATES };
enum { GRADIENT_DDATA, GRADIENT_DUPDATES };

/* Whether samples of both values have the same sizes. */
static bool same_samples(const struct value *a, const struct value *b)
{
    if (a->shape.rank - a->batched != b->shape.rank - b->batched) return false;
    for (int i = a->batched; i < a->shape.rank; i++)
        if (a->shape.sizes[i] != b->shape.sizes[i - a->batched + b->batched]) return false;
    return true;
}

/* Sets y to the form of data, with the batch if indices or updates have it. */
static tutti_status with_batch(const struct value *data, const struct value *of, struct value *y)
{
    *y = (struct value) { .type = TYPE_F32, .batched = data->batched, .shape = data->shape };
    if (data->batched || !of->batched) return TUTTI_OK;
    if (data->shape.rank == TUTTI_MAX_RANK)
        return fail(TUTTI_SHAPE, "scatter: the result would have %d axes besides the batch's: %d are possible",
            TUTTI_MAX_RANK, TUTTI_MAX_RANK - 1);
    y->batched = true;
    y->shape = (tutti_shape) { .rank = data->shape.rank + 1, .sizes = { of->shape.sizes[0] } };
    for (int i = 0; i < data->shape.rank; i++) y->shape.sizes[i + 1] = data->shape.sizes[i];
    return TUTTI_OK;
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    tutti_status status = TUTTI_OK;
    const struct value *data = graph_at(graph, node->inputs[SCATTER_DATA]),
                       *indices = graph_at(graph, node->inputs[SCATTER_INDICES]),
                       *updates = graph_at(graph, node->inputs[SCATTER_UPDATES]);
    struct value gathered;
    TRY(indexed_shape(node, data, indices, &gathered));
    if (!same_samples(&gathered, updates)) {
        char wanted[BROADCAST_TEXT], given[BROADCAST_TEXT];
        broadcast_print(&gathered, wanted);
        broadcast_print(updates, given);
        FAIL(TUTTI_SHAPE, "scatter: the updates have the shape [%s], and for these indices need [%s]", given, wanted);
    }
    TRY(with_batch(data, indices->batched ? indices : updates, &outputs[0]));
done:
    return status;
}

static tutti_status infer_gather_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    tutti_status status = TUTTI_OK;
    const struct value *indices = graph_at(graph, node->inputs[GRADIENT_INDICES]),
                       *dy = graph_at(graph, node->inputs[GRADIENT_DY]);
    const struct indexed_attributes *a = indexed_attributes(node);
    struct value gathered;
    outputs[GRADIENT_DDATA] = (struct value) { .type = TYPE_F32, .batched = a->batched, .shape = a->shape };
    TRY(indexed_shape(node, &outputs[GRADIENT_DDATA], indices, &gathered));
    if (!same_samples(&gathered, dy) || gathered.batched != dy->batched)
        FAIL(TUTTI_SHAPE, "gather_gradient: the gradient has another shape than the gathered elements");
done:
    return status;
}

static tutti_status infer_scatter_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *indices = graph_at(graph, node->inputs[GRADIENT_INDICES]),
                       *dy = graph_at(graph, node->inputs[GRADIENT_DY]);
    outputs[GRADIENT_DDATA] = (struct value) { .type = TYPE_F32, .batched = dy->batched, .shape = dy->shape };
    node->output_count = 2;
    return indexed_shape(node, dy, indices, &outputs[GRADIENT_DUPDATES]);
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    const int dy = g->outputs[0], layer = node->layer, reduction = indexed_attributes(node)->reduction;
    const int data = node->inputs[SCATTER_DATA], indices = node->inputs[SCATTER_INDICES],
              updates = node->inputs[SCATTER_UPDATES];
    if (dy == NO_VALUE || (!g->wanted[SCATTER_DATA] && !g->wanted[SCATTER_UPDATES])) return TUTTI_OK;
    struct indexed_attributes attributes = *indexed_attributes(node);
    attributes.axis += graph_at(graph, dy)->batched - graph_at(graph, data)->batched;
    const bool reads = reduction > SCATTER_ADD;
    const int inputs[] = { indices, dy, reads ? data : NO_VALUE, reads ? updates : NO_VALUE };
    int ddata = dy, dupdates = NO_VALUE;
    if (reduction == SCATTER_ADD) {
        if (g->wanted[SCATTER_UPDATES])
            dupdates = graph_append(graph, &operation_gather, &attributes, (int[]) { dy, indices }, 2, layer);
    } else {
        ddata = graph_append(graph, &operation_scatter_gradient, &attributes, inputs, 4, layer);
        if (graph->status == TUTTI_OK) dupdates = graph_last(graph)->outputs[GRADIENT_DUPDATES];
    }
    if (g->wanted[SCATTER_DATA]) g->inputs[SCATTER_DATA] = broadcast_gradient(graph, ddata, data, layer);
    if (g->wanted[SCATTER_UPDATES]) g->inputs[SCATTER_UPDATES] = broadcast_gradient(graph, dupdates, updates, layer);
    return graph->status;
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

ARGUMENTS(scatter, SCATTER_ARGUMENTS)

enum { GROUP = 64, LINE = 16, ENOUGH_ITEMS = 16384, MOST_BLOCKS = 64, TASKS = 4 };
/* Up to this many updates of an element are added without their rounding errors. */
enum { SHORT = 1024 };

/* The updates of a tensor. */
struct scatter {
    const struct indexed_attributes *attributes;
    struct indexed_sizes z;
    const struct value *indices, *made, *updates;             /* made: y; updates: NULL if none are read */
    cl_mem of_indices, of_updates, of_made, dupdates, errors; /* errors: NULL if none are carried along */
    bool together;                                            /* updates of all samples go to the same elements */
};

/* Division of columns, and of elements of each, over work-items. */
struct division {
    int64_t columns, pieces, slices, each, blocks; /* slices: [axis][inner] of y, which have updates of their own */
};

/* Divides columns first; elements only where there are too few columns, since each block reads all indices. */
static struct division divide(const struct scatter *s, const struct capabilities *device)
{
    const struct indexed_sizes *z = &s->z;
    const bool cpu = device->class == DEVICE_CPU;
    const int64_t units = device->units > 0 ? device->units : 1, enough = cpu ? TASKS * units : ENOUGH_ITEMS;
    struct division d = { .columns = 1, .slices = z->outer * (s->together ? 1 : z->samples) };
    if (cpu) d.columns = (int64_t)size_round_up((size_t)divide_up(z->inner, divide_up(enough, d.slices)), LINE);
    d.pieces = divide_up(z->inner, d.columns);
    int64_t blocks = divide_up(enough, d.pieces * d.slices);
    if (blocks > MOST_BLOCKS) blocks = MOST_BLOCKS;
    d.each = divide_up(z->axis, blocks);
    d.blocks = divide_up(z->axis, d.each);
    return d;
}

static void emit_begin(const struct scatter *s, const struct value *data, cl_mem from, struct launch_list *list)
{
    const struct capabilities *device = &list->device->can;
    const int64_t all = value_elements(s->made), chunk = elementwise_task_floats(device, all);
    struct launch *launch = launch_add(list, "scatter", "scatter_begin",
        "%s -DREDUCTION=1 -DMODE=FORWARD -DREADS=1 -DTOGETHER=0 -DDATA=%d -DERRORS=%d", indexed_options(s->indices),
        data != NULL, s->errors != NULL);
    LAUNCH_BUFFERS(launch, data ? from : s->of_made, s->of_made, s->errors ? s->errors : s->of_made);
    launch_long(launch, data ? value_elements(data) : all);
    launch_long(launch, all);
    launch_long(launch, device->class == DEVICE_CPU ? chunk : 1);
    if (device->class == DEVICE_CPU)
        launch_tasks(launch, (size_t)divide_up(all, chunk), 1, 1);
    else
        items_launch(launch, device, 4 * GROUP, all, 0);
    launch_work(launch, 0, (data ? 8 : 4) * (double)all);
}

/* MODE in clkernels/scatter.cl. */
enum mode { FORWARD, FORWARD_SAVING, BACKWARD };
static const char *const modes[] = { "FORWARD", "FORWARD_SAVING", "BACKWARD" };

static void emit_updates(const struct scatter *s, enum mode mode, struct launch_list *list)
{
    const struct capabilities *device = &list->device->can;
    const struct division d = divide(s, device);
    const struct indexed_sizes *z = &s->z;
    const int64_t updates = z->samples * z->outer * z->count * z->inner;
    struct launch *launch = launch_add(list, "scatter", "scatter",
        "%s -DREDUCTION=%d -DMODE=%s -DREADS=%d -DTOGETHER=%d -DDATA=1 -DERRORS=%d", indexed_options(s->indices),
        s->attributes->reduction, modes[mode], s->updates != NULL, s->together, s->errors != NULL);
    ARGUMENTS_SET(launch, scatter, .indices = s->of_indices, .updates = s->updates ? s->of_updates : s->of_made,
        .y = s->of_made, .errors = s->errors ? s->errors : s->of_made,
        .dupdates = mode != FORWARD ? s->dupdates : s->of_made, .samples = z->samples,
        .update_sample = s->updates && s->updates->batched ? z->outer * z->count * z->inner : 0, .columns = d.columns,
        .outer = d.slices, .each = d.each);
    indexed_arguments(launch, z);
    if (device->class == DEVICE_CPU)
        launch_tasks(launch, (size_t)(d.pieces * d.slices), (size_t)d.blocks, 1);
    else
        items_launch(launch, device, GROUP, d.pieces * d.slices, d.blocks);
    launch_work(launch, 0, 12 * (double)updates);
}

/* Describes the updates of `data`, without buffers. */
static struct scatter sizes_of(const struct problem *problem, const struct value *data, int indices, int updates)
{
    struct scatter s = { .attributes = indexed_attributes(problem->node),
        .indices = problem->inputs[indices],
        .made = problem->outputs[0],
        .updates = problem->inputs[updates] };
    s.z = indexed_sizes_of(s.attributes, data, s.indices);
    if (s.made->batched) s.z.samples = s.made->shape.sizes[0];
    s.together = !s.made->batched;
    return s;
}

static struct scatter scatter_of(
    const struct problem *problem, const struct operands *operands, const struct value *data, int indices, int updates)
{
    struct scatter s = sizes_of(problem, data, indices, updates);
    s.of_indices = operands->inputs[indices];
    s.of_updates = operands->inputs[updates];
    s.of_made = operands->outputs[0];
    s.errors = operands->workspace;
    return s;
}

/* Bytes of rounding errors: as many as elements, where many updates may be added to one. */
static size_t errors_of(const struct scatter *s)
{
    const int64_t most = s->z.count * (s->together ? s->z.samples : 1);
    return s->attributes->reduction == SCATTER_ADD && most > SHORT ? sizeof(float) * (size_t)value_elements(s->made)
                                                                   : 0;
}

static size_t workspace(const struct problem *problem)
{
    const struct scatter s = sizes_of(problem, problem->inputs[SCATTER_DATA], SCATTER_INDICES, SCATTER_UPDATES);
    return errors_of(&s);
}

static size_t workspace_of_gather_gradient(const struct problem *problem)
{
    const struct scatter s = sizes_of(problem, problem->outputs[GRADIENT_DDATA], GRADIENT_INDICES, GRADIENT_DY);
    return errors_of(&s);
}

static bool in_place(const struct problem *problem, int input)
{
    return input == SCATTER_DATA && problem->inputs[SCATTER_DATA]->batched == problem->outputs[0]->batched;
}

static bool replaces(const struct problem *problem)
{
    return indexed_attributes(problem->node)->reduction == SCATTER_NONE;
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct scatter s =
        scatter_of(problem, operands, problem->inputs[SCATTER_DATA], SCATTER_INDICES, SCATTER_UPDATES);
    if (s.errors || operands->inputs[SCATTER_DATA] != s.of_made)
        emit_begin(&s, problem->inputs[SCATTER_DATA], operands->inputs[SCATTER_DATA], list);
    emit_updates(&s, FORWARD, list);
}

static void emit_gather_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct scatter s =
        scatter_of(problem, operands, problem->outputs[GRADIENT_DDATA], GRADIENT_INDICES, GRADIENT_DY);
    emit_begin(&s, NULL, NULL, list);
    emit_updates(&s, FORWARD, list);
}

static void emit_scatter_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct scatter s =
        scatter_of(problem, operands, problem->outputs[GRADIENT_DDATA], GRADIENT_INDICES, GRADIENT_UPDATES);
    s.dupdates = operands->outputs[GRADIENT_DUPDATES];
    if (s.attributes->reduction > SCATTER_ADD) {
        emit_begin(&s, problem->inputs[GRADIENT_DATA], operands->inputs[GRADIENT_DATA], list);
        emit_updates(&s, FORWARD_SAVING, list);
    }
    emit_begin(&s, problem->inputs[GRADIENT_DY], operands->inputs[GRADIENT_DY], list);
    emit_updates(&s, BACKWARD, list);
}

static const struct implementation columns = {
    .name = "columns", .workspace = workspace, .in_place = in_place, .repeatable = replaces, .emit = emit
};
static const struct implementation gather_columns = {
    .name = "columns", .workspace = workspace_of_gather_gradient, .emit = emit_gather_gradient
};
static const struct implementation *const gather_gradients[] = { &gather_gradient_rows, &gather_columns, NULL };
static const struct implementation gradient_columns = { .name = "columns", .emit = emit_scatter_gradient };

const struct operation operation_scatter = {
    .name = "scatter",
    .inputs = { { "data" }, { "indices", PORT_ANY_TYPE | PORT_INDEX }, { "updates" } },
    .outputs = { { "y" } },
    .attributes = &indexed_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .reference = interpret_scatter,
    .implementations = ONE(columns),
};
const struct operation operation_gather_gradient = {
    .name = "gather_gradient",
    .inputs = { { "indices", PORT_ANY_TYPE | PORT_INDEX }, { "dy" } },
    .outputs = { { "ddata" } },
    .attributes = &indexed_attributes_type,
    .infer = infer_gather_gradient,
    .reference = interpret_gather_gradient,
    .implementations = gather_gradients,
};
const struct operation operation_scatter_gradient = {
    .name = "scatter_gradient",
    .inputs = { { "indices", PORT_ANY_TYPE | PORT_INDEX }, { "dy" }, { "data", PORT_OPTIONAL },
        { "updates", PORT_OPTIONAL } },
    .outputs = { { "ddata", PORT_OWN }, { "dupdates", PORT_OWN } },
    .attributes = &indexed_attributes_type,
    .infer = infer_scatter_gradient,
    .reference = interpret_scatter_gradient,
    .implementations = ONE(gradient_columns),
};
