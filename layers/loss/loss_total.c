/* loss_total: the weighted sum of several losses, and each of them, in one array for the host. */
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "layers/loss/loss.h"

ATTRIBUTES_DESCRIBE(loss_total, ATTRIBUTE(loss_total, OTHER, weights), ATTRIBUTE(loss_total, OTHER, counted))

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    (void)graph;
    outputs[0] = (struct value) { .type = TYPE_F32, .shape = TUTTI_SHAPE(2 + 2 * (int64_t)node->input_count) };
    return TUTTI_OK;
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct loss_total_attributes *a = loss_total_attributes(problem->node);
    for (int i = 0; i < problem->node->input_count; i++) {
        struct launch *launch = launch_add(list, "loss_sum", "loss_add", "-DGROUP=1");
        launch_buffer(launch, operands->inputs[i]);
        launch_buffer(launch, operands->outputs[0]);
        launch_float(launch, (double)a->weights[i]);
        LAUNCH_INTS(launch, i, i == a->counted);
        launch_tasks(launch, 1, 1, 1);
        launch_work(launch, 2, 4 * 4);
    }
}

static const struct implementation one = {
    .name = "one",
    .emit = emit,
};

const struct operation operation_loss_total = {
    .name = "loss_total",
    .inputs = { { "metrics", PORT_REPEATED } },
    .outputs = { { "y" } },
    .attributes = &loss_total_attributes_type,
    .infer = infer,
    .reference = interpret_loss_total,
    .implementations = ONE(one),
};
