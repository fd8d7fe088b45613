/* random_uniform, random_normal: random numbers in the shape of a tensor whose elements are not read; new ones in each
 * step, in inference, too. There is no gradient. */
#include "base/random.h"
#include "base/memory.h"
#include "clkernels/arguments/random_like.h"
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "runtime/arguments.h"

#include <math.h>

ATTRIBUTES_DESCRIBE(
    random, ATTRIBUTE(random, NUMBER, offset), ATTRIBUTE(random, NUMBER, scale), ATTRIBUTE(random, OTHER, stream))

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    const struct random_attributes *a = random_attributes(node);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = x->shape, .axes = x->axes };
    if (isfinite(a->offset) && isfinite(a->scale)) return TUTTI_OK;
    return fail(TUTTI_INVALID, "%s: its numbers are %g and %g: they must be finite", node->operation->name,
        (double)a->offset, (double)a->scale);
}

ARGUMENTS(random, RANDOM_ARGUMENTS)

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct value *y = problem->outputs[0];
    const struct random_attributes *a = random_attributes(problem->node);
    const int64_t total = value_elements(y);
    struct launch *launch = launch_add(
        list, "random_like", "random_like", "-DNORMAL=%d", problem->node->operation == &operation_random_normal);
    ARGUMENTS_SET(launch, random, .constants = operands->inputs[1], .y = operands->outputs[0],
        .elements_of_sample = y->batched ? total / value_samples(y) : 0, .total = total, .offset = a->offset,
        .scale = a->scale, .stream = (uint32_t)RANDOM_LAYERS + (uint32_t)a->stream);
    launch_work(launch, (double)total, 4 * (double)total);
    items_launch(launch, problem->device, 256, total / 4 + 2, 0);
}

static const struct implementation items = { .name = "items", .emit = emit };

#define RANDOM(name_)                                          \
    const struct operation operation_##name_ = {               \
        .name = #name_,                                        \
        .inputs = { { "x", PORT_ANY_TYPE }, { "constants" } }, \
        .outputs = { { "y" } },                                \
        .attributes = &random_attributes_type,                 \
        .infer = infer,                                        \
        .reference = interpret_random,                         \
        .implementations = ONE(items),                         \
    };
RANDOM(random_uniform)
RANDOM(random_normal)
