/* dropout: in training, zeroes with a probability and scales the rest so that the mean stays. Inference drops the node.
 * The gradient is the same operation, with the same random numbers, on dy. */
#include "clkernels/arguments/dropout.h"
#include "base/memory.h"
#include "base/random.h"
#include "graph/network.h"
#include "layers/append.h"
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "runtime/arguments.h"

ATTRIBUTES_DESCRIBE(dropout, ATTRIBUTE(dropout, NUMBER, probability), ATTRIBUTE(dropout, OTHER, stream))

static tutti_status check_probability(double probability)
{
    if (probability >= 0 && probability < 1) return TUTTI_OK;
    return fail(TUTTI_INVALID, "dropout: probability is %g: it must be at least 0 and less than 1", probability);
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = x->shape, .axes = x->axes };
    return check_probability((double)dropout_attributes(node)->probability);
}

static tutti_status in_inference(struct graph *graph, size_t *n, int *same)
{
    *same = graph->nodes[*n].inputs[0];
    return TUTTI_OK;
}

int append_dropout(const struct append_context *c, int x, float probability)
{
    const int inputs[] = { x, graph_constants(c->graph) };
    const struct dropout_attributes attributes = { .probability = probability, .stream = c->network->dropout_count++ };
    return graph_append(c->graph, &operation_dropout, &attributes, inputs, 2, c->layer);
}

tutti_tensor tutti_dropout(tutti_network *network, tutti_tensor x, float probability)
{
    if (!network_value(network, x)) return (tutti_tensor) { NO_VALUE };
    const tutti_status status = check_probability((double)probability);
    if (status != TUTTI_OK) return network_fail(network, status);
    const struct append_context c = { network, &network->graph, network_layer_begin(network, NULL, "dropout") };
    return network_close(network, c.layer, append_dropout(&c, x.id, probability));
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

ARGUMENTS(dropout, DROPOUT_ARGUMENTS)
ARGUMENTS(task, TASK_ARGUMENTS)

static struct launch *add(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const char *kernel, int vectors)
{
    const struct value *x = problem->inputs[0];
    const struct dropout_attributes *a = dropout_attributes(problem->node);
    const int64_t total = value_elements(x), samples = value_samples(x);
    const double probability = (double)a->probability; /* below 1, so that the threshold fits 32 bits */
    struct launch *launch = launch_add(list, "dropout", kernel, "-DVECTORS=%d", vectors);
    ARGUMENTS_SET(launch, dropout, .x = operands->inputs[0], .constants = operands->inputs[1],
        .y = operands->outputs[0], .elements_of_sample = x->batched ? total / samples : 0, .total = total,
        .threshold = (uint32_t)(probability * 0x1p32), .scale = 1 / (1 - probability),
        .stream = (uint32_t)RANDOM_DROPOUT + (uint32_t)a->stream);
    launch_work(launch, (double)total, 8 * (double)total);
    return launch;
}

/* Chunks of 64 positions that touch `total` elements, wherever the first one lies in its chunk. */
static int64_t chunks_of(const struct problem *problem)
{
    return value_elements(problem->inputs[0]) / 64 + 2;
}

static void emit_vectors(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const int64_t chunks = chunks_of(problem), each = 64;
    struct launch *launch = add(problem, operands, list, "dropout_vectors", 1);
    ARGUMENTS_SET(launch, task, .each = each);
    launch_tasks(launch, (size_t)divide_up(chunks, each), 1, 1);
}

static void emit_items(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct launch *launch = add(problem, operands, list, "dropout_items", 0);
    items_launch(launch, problem->device, 256, chunks_of(problem) * 16, 0);
}

static const struct implementation vectors = {
    .name = "vectors",
    .fits = fits_cpu_class,
    .in_place = in_place_first,
    .emit = emit_vectors,
};
static const struct implementation items = {
    .name = "items",
    .in_place = in_place_first,
    .emit = emit_items,
};
static const struct implementation *const implementations[] = { &vectors, &items, NULL };

const struct operation operation_dropout = {
    .name = "dropout",
    .inputs = { { "x" }, { "constants" } },
    .outputs = { { "y" } },
    .attributes = &dropout_attributes_type,
    .infer = infer,
    .gradient = gradient_by_itself,
    .inference = in_inference,
    .reference = interpret_dropout,
    .implementations = implementations,
};
