#include "plan/node.h"

#include "base/numbers.h"

#include <string.h>

static const enum compute_type compute_types[] = {
    [TUTTI_FP32] = COMPUTE_FP32, [TUTTI_BF16] = COMPUTE_BF16, [TUTTI_TF32] = COMPUTE_TF32, [TUTTI_FP16] = COMPUTE_FP16
};

enum compute_type plan_compute(const struct plan *plan)
{
    return compute_types[plan->options.precision];
}

void problem_of(const struct plan *plan, const struct node *node, struct problem *problem)
{
    memset(problem, 0, sizeof *problem);
    problem->node = node;
    problem->design = node->design;
    problem->device = &plan->device->can;
    problem->training = plan->options.mode == PLAN_TRAIN;
    problem->exact = plan->options.exact;
    problem->compute = plan_compute(plan);
    problem->channels_last = plan->channels_last;
    problem->synchronised = plan->options.synchronised && problem->training;
    problem->add = graph_at(&plan->graph, node_added(node));
    for (int i = 0; i < node->input_count; i++) problem->inputs[i] = graph_at(&plan->graph, node->inputs[i]);
    for (int i = 0; i < node->output_count; i++) problem->outputs[i] = graph_at(&plan->graph, node->outputs[i]);
}

bool node_is_constant(const struct graph *graph, const struct node *node)
{
    if (node_added(node) != NO_VALUE || node->operation->made_anew) return false;
    for (int i = 0; i < node->input_count; i++) {
        const struct value *v = graph_at(graph, node->inputs[i]);
        if (!v || v->role == ROLE_PARAMETER) continue;
        if (v->role != ROLE_TEMPORARY || !node_is_constant(graph, &graph->nodes[v->producer])) return false;
    }
    return true;
}

bool node_has_bf16(const struct graph *graph, const struct node *node)
{
    const struct value *add = graph_at(graph, node_added(node));
    bool any = add && add->type == TYPE_BF16;
    for (int i = 0; i < node->input_count; i++)
        any |= node->inputs[i] != NO_VALUE && graph_at(graph, node->inputs[i])->type == TYPE_BF16;
    for (int i = 0; i < node->output_count; i++)
        any |= node->outputs[i] != NO_VALUE && graph_at(graph, node->outputs[i])->type == TYPE_BF16;
    return any;
}

bool input_takes_bf16(const struct implementation *implementation, const struct node *node, int input)
{
    const bool same_layout = node_input_port(node, input)->flags & PORT_SAME_LAYOUT;
    return (same_layout ? implementation->bf16_outputs : implementation->bf16_inputs >> input) & 1;
}

bool output_takes_bf16(const struct implementation *implementation, const struct node *node, int output)
{
    const bool same_layout = node_output_port(node, output)->flags & PORT_SAME_LAYOUT;
    return implementation->bf16_outputs >> (same_layout ? 0 : output) & 1;
}

void implementation_key(
    const struct problem *problem, const struct implementation *implementation, bool bf16, char key[IMPLEMENTATION_KEY])
{
    char kind[IMPLEMENTATION_KIND] = "";
    bool bytes = false;
    for (int i = 0; i < problem->node->input_count; i++)
        bytes |= problem->inputs[i] && problem->inputs[i]->type == TYPE_INT8;
    if (implementation->kind) implementation->kind(problem, kind);
    key[0] = '\0';
    number_append(key, IMPLEMENTATION_KEY, "%s/%s%s%s%s%s", problem->node->operation->name, implementation->name,
        *kind ? "/" : "", kind, bytes ? "/int8" : "", bf16 ? "/bf16" : "");
}

static void append_sizes(char *name, const char *before, const int64_t *sizes, int count)
{
    for (int i = 0; i < count; i++) number_append(name, PROBLEM_NAME, "%s%lld", i ? "x" : before, (long long)sizes[i]);
}

/* Appends the shape without the number of samples, which stands at the end of the name: so problems that differ in it
 * alone can be recognised. */
static void append_shape(char *name, const struct value *value)
{
    const bool batched = value->batched && value->shape.rank > 0;
    append_sizes(name, batched ? "/Nx" : "/", value->shape.sizes + batched, value->shape.rank - batched);
    if (value->role == ROLE_PARAMETER && value->type == TYPE_BF16) number_append(name, PROBLEM_NAME, "bf16");
    if (value->type == TYPE_INT8) number_append(name, PROBLEM_NAME, "int8");
}

/* Appends "/k3x3": the first letter of the attribute's name, and its sizes. */
static void append_attributes(char *name, const struct node *node)
{
    for (const struct attribute *member = attribute_members(node->operation->attributes); member->name; member++) {
        const char before[] = { '/', member->name[0], '\0' };
        const void *sizes = node->attributes.bytes + member->offset;
        if (member->kind == ATTRIBUTE_SIZES) append_sizes(name, before, sizes, (int)(member->bytes / sizeof(int64_t)));
    }
}

void problem_name(const struct problem *problem, char name[PROBLEM_NAME])
{
    static const char *const computed[] = {
        [COMPUTE_FP32] = "", [COMPUTE_TF32] = "tf32/", [COMPUTE_BF16] = "bf16/", [COMPUTE_FP16] = "fp16/"
    };
    int64_t samples = 0;
    name[0] = '\0';
    number_append(name, PROBLEM_NAME, "%s%s%s%s", problem->training ? "" : "infer/", problem->exact ? "exact/" : "",
        computed[problem->compute], problem->node->operation->name);
    const struct value *const values[] = { problem->inputs[0], problem->inputs[1], problem->outputs[0] };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (!values[i]) continue;
        append_shape(name, values[i]);
        if (values[i]->batched) samples = value_samples(values[i]);
    }
    append_attributes(name, problem->node);
    append_sizes(name, "/n", &samples, 1);
}

/* Returns a handle that stands for a buffer. Launches only compare handles with NULL and with one another. */
static cl_mem stand_in(const struct memory_plan *memory, int value)
{
    while (memory && memory->slots[value].kind == SLOT_ALIAS) value = memory->slots[value].alias;
    return (cl_mem)(uintptr_t)(value + 1);
}

size_t workspace_bytes(const struct implementation *implementation, const struct problem *problem)
{
    return implementation->workspace ? implementation->workspace(problem) : 0;
}

void stand_in_operands(const struct memory_plan *memory, const struct problem *problem,
    const struct implementation *implementation, struct operands *operands)
{
    const struct node *node = problem->node;
    for (int i = 0; i < node->input_count; i++)
        if (problem->inputs[i]) operands->inputs[i] = stand_in(memory, node->inputs[i]);
    for (int i = 0; i < node->output_count; i++)
        if (problem->outputs[i]) operands->outputs[i] = stand_in(memory, node->outputs[i]);
    if (problem->add) operands->add = stand_in(memory, node_added(node));
    if (workspace_bytes(implementation, problem)) operands->workspace = (cl_mem)(uintptr_t)-1;
    if (implementation->prepared && implementation->prepared(problem)) operands->prepared = (cl_mem)(uintptr_t)-2;
}
