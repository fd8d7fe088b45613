/* Queries of programs about a network's tensors, inputs and outputs. */
#include "graph/network.h"

#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "tutti_inspect.h"

#include <stdlib.h>
#include <string.h>

static tutti_tensor_kind kind_of(const struct parameter *parameter)
{
    return parameter->kind == PARAMETER_CONSTANT ? TUTTI_TENSOR_CONSTANT
        : parameter->kind == PARAMETER_STATISTIC ? TUTTI_TENSOR_STATISTIC
                                                 : TUTTI_TENSOR_PARAMETER;
}

tutti_status tutti_network_tensor(const tutti_network *network, tutti_tensor tensor, tutti_tensor_info *info)
{
    tutti_tensor_info known = { 0 };
    const struct value *value = graph_at(&network->graph, tensor.id);
    if (!value || value->role == ROLE_CONSTANTS) return network_no_tensor(network, tensor);
    known.dtype = input_dtype(value->type);
    known.for_each_sample = value->batched;
    known.shape.rank = value->shape.rank - value->batched;
    memcpy(known.shape.sizes, value->shape.sizes + value->batched, (size_t)known.shape.rank * sizeof(int64_t));
    known.name = value->name;
    if (value->role == ROLE_INPUT) known.kind = TUTTI_TENSOR_INPUT;
    if (value->role == ROLE_PARAMETER) {
        const struct parameter *parameter = &network->parameters[value->parameter];
        known.kind = kind_of(parameter);
        known.name = parameter->name;
        if (known.kind == TUTTI_TENSOR_CONSTANT) known.values = parameter->values;
    }
    return RESULT_WRITE(info, &known, tutti_tensor_info);
}

tutti_status tutti_network_input(const tutti_network *network, int position, tutti_tensor *input)
{
    int count = 0;
    for (size_t v = 0; v < network->graph.value_count; v++) {
        if (network->graph.values[v].role != ROLE_INPUT || count++ != position) continue;
        *input = (tutti_tensor) { (int)v };
        return TUTTI_OK;
    }
    return fail(TUTTI_INVALID, "input %d does not exist: the network has %d, counted from 0", position, count);
}

/* ------------------------------------------------------------------------------------------------- outputs ---- */

static tutti_status check_output(const tutti_network *network, const char *name, tutti_tensor tensor)
{
    if (!graph_at(&network->graph, tensor.id)) return network_no_tensor(network, tensor);
    if (!name || !*name || !text_is_utf8(name))
        return fail(TUTTI_INVALID, "an output has no name, or one that is not UTF-8: pass valid UTF-8");
    for (size_t i = 0; i < network->output_count; i++)
        if (!strcmp(network->outputs[i].name, name))
            return fail(TUTTI_INVALID, "two outputs have the name \"%s\": give them different names", name);
    return TUTTI_OK;
}

tutti_status tutti_output(tutti_network *network, const char *name, tutti_tensor tensor)
{
    tutti_status status = TUTTI_OK;
    if (!network) return fail(TUTTI_INVALID, "output %s has no network: pass one", name ? name : "");
    TRY(tutti_network_status(network));
    TRY(check_output(network, name, tensor));
    TRY(memory_grow(
        (void **)&network->outputs, &network->output_capacity, network->output_count + 1, sizeof *network->outputs));
    char *copy = memory_copy_text(name);
    if (!copy) return TUTTI_NO_MEMORY;
    network->outputs[network->output_count++] = (struct named_output) { copy, tensor.id };
done:
    return status;
}

tutti_status tutti_network_output(const tutti_network *network, int position, const char **name, tutti_tensor *output)
{
    if (position < 0 || (size_t)position >= network->output_count)
        return fail(TUTTI_INVALID, "output %d does not exist: the network has %zu with names, counted from 0", position,
            network->output_count);
    if (name) *name = network->outputs[position].name;
    if (output) *output = (tutti_tensor) { network->outputs[position].value };
    return TUTTI_OK;
}
