/* The losses: cross_entropy (softmax included) and mean_squared_error. Each gives the metrics of its samples and the
 * gradient of its first input. */
#include "base/memory.h"
#include "layers/elementwise.h"
#include "layers/layers.h"

/* inputs: predictions, targets, constants; outputs: metrics [2], the predictions' gradient. */
static void outputs_of(const struct value *predictions, struct node *node, struct value *outputs)
{
    outputs[0] = (struct value) { .type = TYPE_F32, .shape = TUTTI_SHAPE(2) };
    outputs[1] = (struct value) { .type = TYPE_F32, .batched = predictions->batched, .shape = predictions->shape };
    node->output_count = 2;
}

static tutti_status infer_cross_entropy(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]), *labels = graph_at(graph, node->inputs[1]);
    if (x->shape.rank != 2)
        return fail(TUTTI_SHAPE,
            "cross_entropy: the output must be logits [classes], but it has %d dimensions: flatten it",
            x->shape.rank - 1);
    if (labels->type != TYPE_I32 || labels->shape.rank != 1 || labels->shape.sizes[0] != x->shape.sizes[0])
        return fail(TUTTI_SHAPE, "cross_entropy: the targets must be one class number for each sample");
    outputs_of(x, node, outputs);
    return TUTTI_OK;
}

static tutti_status infer_mean_squared_error(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]), *targets = graph_at(graph, node->inputs[1]);
    if (targets->type != TYPE_F32 || !shape_equal(x->shape, targets->shape))
        return fail(TUTTI_SHAPE, "mean_squared_error: the targets must be floats of the output's shape");
    outputs_of(x, node, outputs);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

static int64_t rows_of(const struct problem *problem)
{
    return problem->inputs[0]->shape.sizes[0];
}

static int64_t width_of(const struct problem *problem)
{
    return value_elements(problem->inputs[0]) / rows_of(problem);
}

/* A sample's loss, and 1 or 0 for correct. */
static size_t workspace(const struct problem *problem)
{
    return 2 * sizeof(float) * (size_t)rows_of(problem);
}

/* The launch over the samples, but for its sizes. */
static struct launch *add(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const char *source, int group)
{
    const bool wanted = operands->outputs[1] != NULL, classes = problem->node->operation == &operation_cross_entropy;
    struct launch *launch = launch_add(
        list, source, classes ? "cross_entropy" : "mean_squared_error", "-DGRADIENT=%d -DGROUP=%d", wanted, group);
    launch_buffer(launch, operands->inputs[0]);
    launch_buffer(launch, operands->inputs[1]);
    launch_buffer(launch, operands->inputs[2]);
    launch_buffer(launch, wanted ? operands->outputs[1] : operands->workspace); /* an argument must be something */
    launch_buffer(launch, operands->workspace);
    const double elements = (double)value_elements(problem->inputs[0]);
    launch_work(launch, (classes ? 10 : 4) * elements, 4 * ((wanted ? 2 : 1) + (classes ? 0 : 1)) * elements);
    return launch;
}

static void add_sum(
    const struct problem *problem, const struct operands *operands, struct launch_list *list, size_t group)
{
    struct launch *launch = launch_add(list, "loss_sum", "loss_sum", "-DGROUP=%d", (int)group);
    launch_buffer(launch, operands->workspace);
    launch_buffer(launch, operands->outputs[0]);
    launch_int(launch, rows_of(problem));
    launch_grid(launch, 1, group, 1, 1, group, 1, 1);
    launch_work(launch, 2 * (double)rows_of(problem), 8 * (double)rows_of(problem));
}

static void emit_rows(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const int64_t rows = rows_of(problem), width = width_of(problem);
    const int64_t each = divide_up(2048, width); /* floats that are worth a task */
    struct launch *launch = add(problem, operands, list, "loss_cpu", 1);
    launch_int(launch, rows);
    launch_int(launch, width);
    launch_int(launch, each);
    launch_tasks(launch, (size_t)divide_up(rows, each), 1, 1);
    add_sum(problem, operands, list, 1);
}

static void emit_groups(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const int64_t rows = rows_of(problem), width = width_of(problem);
    const size_t group = group_size(problem->device, width > 64 ? 256 : 64);
    struct launch *launch = add(problem, operands, list, "loss_gpu", (int)group);
    launch_int(launch, width);
    launch_grid(launch, 1, (size_t)rows * group, 1, 1, group, 1, 1);
    add_sum(problem, operands, list, group_size(problem->device, 256));
}

static const struct implementation rows = {
    .name = "rows",
    .fits = fits_cpu_class,
    .workspace = workspace,
    .emit = emit_rows,
};
static const struct implementation groups = {
    .name = "groups",
    .fits = fits_everything,
    .workspace = workspace,
    .emit = emit_groups,
};
static const struct implementation *const implementations[] = { &rows, &groups, NULL };

const struct operation operation_cross_entropy = {
    .name = "cross_entropy",
    .infer = infer_cross_entropy,
    .implementations = implementations,
};
const struct operation operation_mean_squared_error = {
    .name = "mean_squared_error",
    .infer = infer_mean_squared_error,
    .implementations = implementations,
};

const struct loss *loss_find(tutti_loss loss)
{
    static const struct loss losses[] = { [TUTTI_CROSS_ENTROPY] = { &operation_cross_entropy, true },
        [TUTTI_MSE] = { &operation_mean_squared_error, false } };
    const size_t count = sizeof losses / sizeof *losses;
    return (size_t)loss < count && losses[loss].operation ? &losses[loss] : NULL;
}

struct value loss_targets(const struct loss *loss, const struct value *predictions)
{
    struct value targets = { .type = TYPE_F32, .shape = predictions->shape, .batched = true };
    if (!loss->classes) return targets;
    targets.type = TYPE_I32;
    targets.shape = (tutti_shape) { 1, { predictions->shape.sizes[0] } };
    return targets;
}
