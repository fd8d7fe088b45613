#include "tests/interpreted.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plan/outputs.h"
#include "plan/passes.h"

/* ---------------------------------------------------------------------------------------------------- graphs ---- */

tutti_status interpreter_new(const struct graph *graph, struct interpreter *interpreter)
{
    *interpreter = (struct interpreter) { .graph = graph };
    interpreter->values = memory_new(graph->value_count + 1, sizeof *interpreter->values);
    if (!interpreter->values) return TUTTI_NO_MEMORY;
    for (size_t v = 0; v < graph->value_count; v++) {
        interpreter->values[v] = memory_new((size_t)value_elements(&graph->values[v]), sizeof(double));
        if (!interpreter->values[v]) return TUTTI_NO_MEMORY;
    }
    return TUTTI_OK;
}

static double *array_of(const struct interpreter *interpreter, int value)
{
    return value == NO_VALUE ? NULL : interpreter->values[value];
}

tutti_status interpreter_run(const struct interpreter *interpreter, size_t nodes)
{
    tutti_status status = TUTTI_OK;
    const struct graph *graph = interpreter->graph;
    for (size_t n = 0; n < nodes && status == TUTTI_OK; n++) {
        const struct node *node = &graph->nodes[n];
        struct problem problem = { .node = node, .training = !interpreter->inference };
        struct node_arrays arrays = { .constants = &interpreter->constants, .inference = interpreter->inference };
        for (int i = 0; i < node->input_count; i++) {
            problem.inputs[i] = graph_at(graph, node->inputs[i]);
            arrays.inputs[i] = array_of(interpreter, node->inputs[i]);
        }
        for (int i = 0; i < node->output_count; i++) {
            problem.outputs[i] = graph_at(graph, node->outputs[i]);
            arrays.outputs[i] = array_of(interpreter, node->outputs[i]);
        }
        problem.add = graph_at(graph, node_added(node));
        arrays.add = array_of(interpreter, node_added(node));
        status = interpret_node(&problem, &arrays);
    }
    return status;
}

void interpreter_free(struct interpreter *interpreter)
{
    for (size_t v = 0; interpreter->values && v < interpreter->graph->value_count; v++) free(interpreter->values[v]);
    free(interpreter->values);
    *interpreter = (struct interpreter) { 0 };
}

/* -------------------------------------------------------------------------------------------------- networks ---- */

/* As plan_run_passes(), up to the gradients. */
static tutti_status append_gradients(struct interpreted *made)
{
    tutti_status status = TUTTI_OK;
    struct plan *plan = made->plan;
    TRY(graph_bind(&plan->network->graph, plan->options.sizes, &plan->graph));
    memcpy(plan->outputs, plan->options.objective.outputs, sizeof plan->outputs);
    TRY(plan_find_inputs(&plan->graph, plan->feeds, &plan->input_count));
    plan->feed_count = plan->input_count;
    plan_keep_outputs(plan, true);
    TRY(pass_loss(plan));
    made->forward = plan->graph.node_count;
    TRY(pass_gradient(plan));
    TRY(graph_validate(&plan->graph));
done:
    return status;
}

/* The host memory of a constant holds the bits of its type. */
static void write_constants(const struct interpreted *made)
{
    const tutti_network *network = made->plan->network;
    for (size_t p = 0; p < network->parameter_count; p++) {
        const struct parameter *how = &network->parameters[p];
        double *to = interpreted_parameter(made, (int)p);
        if (how->kind != PARAMETER_CONSTANT || !to) continue;
        for (int64_t i = 0; i < how->elements; i++) {
            int32_t whole;
            memcpy(&whole, &how->values[i], sizeof whole);
            to[i] = how->type == TYPE_I32 ? (double)whole : (double)how->values[i];
        }
    }
}

tutti_status interpreted_new(struct device *device, const tutti_network *network, const struct plan_options *options,
    bool fused, struct interpreted *made)
{
    tutti_status status = TUTTI_OK;
    *made = (struct interpreted) { .plan = plan_start(device, network, options) };
    if (!made->plan) return TUTTI_NO_MEMORY;
    TRY(fused ? plan_run_passes(made->plan) : append_gradients(made));
    if (fused) made->forward = made->plan->graph.node_count;
    TRY(interpreter_new(&made->plan->graph, &made->interpreter));
    write_constants(made);
done:
    return status;
}

double *interpreted_input(const struct interpreted *made, const char *name, int64_t *elements)
{
    const struct plan *plan = made->plan;
    for (int i = 0; i < plan->feed_count; i++) {
        const struct value *value = graph_at(&plan->graph, plan->feeds[i]);
        if (!value->name || strcmp(value->name, name)) continue;
        *elements = value_elements(value);
        return made->interpreter.values[plan->feeds[i]];
    }
    return NULL;
}

void interpreted_start(const struct interpreted *made)
{
    const tutti_network *network = made->plan->network;
    for (size_t p = 0; p < network->parameter_count; p++) {
        const struct parameter *how = &network->parameters[p];
        double *to = interpreted_parameter(made, (int)p);
        if (how->kind == PARAMETER_CONSTANT || !to) continue;
        for (int64_t i = 0; i < how->elements; i++) to[i] = (double)(how->values ? how->values[i] : how->init_constant);
    }
}

int interpreted_find(const struct interpreted *made, const char *name)
{
    const tutti_network *network = made->plan->network;
    for (size_t p = 0; p < network->parameter_count; p++)
        if (!strcmp(network->parameters[p].name, name)) return (int)p;
    return -1;
}

double *interpreted_parameter(const struct interpreted *made, int parameter)
{
    const struct graph *graph = &made->plan->graph;
    for (size_t v = 0; v < graph->value_count; v++)
        if (graph->values[v].parameter == parameter) return made->interpreter.values[v];
    return NULL;
}

double *interpreted_gradient(const struct interpreted *made, int parameter)
{
    const struct graph *graph = &made->plan->graph;
    for (size_t v = 0; v < graph->value_count; v++)
        if (graph->values[v].gradient_of == parameter) return made->interpreter.values[v];
    return NULL;
}

void interpreted_free(struct interpreted *made)
{
    if (made->interpreter.graph) interpreter_free(&made->interpreter);
    plan_free(made->plan);
    *made = (struct interpreted) { 0 };
}
