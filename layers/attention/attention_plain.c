/* Kernels for any device: attention_plain_cpu.cl. They are here because the last implementation of a list takes every
 * problem; products with a softmax between them are faster. */
#include "base/memory.h"
#include "base/numbers.h"
#include "layers/attention/arguments/attention.h"
#include "layers/attention/attention.h"
#include "layers/elementwise.h"
#include "runtime/arguments.h"

ARGUMENTS(forward, ATTENTION_ARGUMENTS)
ARGUMENTS(backward, ATTENTION_GRADIENT_ARGUMENTS)

static void set_items(const struct problem *problem, struct launch *launch, int64_t items)
{
    const struct attention_sizes z = attention_sizes(problem);
    items_launch(launch, problem->device, 64, items, z.samples * z.heads);
    launch_work(launch, attention_flops(problem), attention_bytes(problem));
}

static void emit_gradient(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const char *kernel, int64_t items, const char *options)
{
    const struct attention_sizes z = attention_sizes(problem);
    const struct dropping drop = attention_dropping(problem, &z);
    struct launch *launch = launch_add(list, "attention_plain_cpu", kernel, "%s", options);
    ARGUMENTS_SET(
        launch, backward, ATTENTION_GRADIENT_VALUES(operands), ATTENTION_VALUES(operands, z, drop, problem->node));
    set_items(problem, launch, items);
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct attention_sizes z = attention_sizes(problem);
    const struct dropping drop = attention_dropping(problem, &z);
    char options[ATTENTION_OPTIONS];
    attention_options(problem, options);
    if (!attention_is_gradient(problem)) {
        struct launch *launch = launch_add(list, "attention_plain_cpu", "attention_plain", "%s", options);
        ARGUMENTS_SET(
            launch, forward, ATTENTION_FORWARD_VALUES(operands), ATTENTION_VALUES(operands, z, drop, problem->node));
        set_items(problem, launch, z.length);
        return;
    }
    if (operands->outputs[0]) emit_gradient(problem, operands, list, "attention_plain_queries", z.length, options);
    if (operands->outputs[1] || operands->outputs[2])
        emit_gradient(problem, operands, list, "attention_plain_keys", z.keys, options);
}

/* Where attention_blocks refuses the problem, attention_pattern.c makes no node for these kernels. So they run only
 * where attention_blocks was found wrong (plan/verify.c), or where force or a tuning table names them. */
static const char *passed_over(const struct problem *problem)
{
    const char *reason = attention_blocks_refusal(problem);
    return reason ? "products are faster" : NULL;
}

const struct implementation attention_plain = {
    .name = "plain",
    .passed_over = passed_over,
    .emit = emit,
};
