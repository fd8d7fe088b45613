/* Inputs of a network. */
#include "graph/network.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* I64 arrives as int32: the trainer narrows it. */
static const enum value_type types[] = { [TUTTI_DTYPE_F32] = TYPE_F32,
    [TUTTI_DTYPE_F16] = TYPE_F16,
    [TUTTI_DTYPE_BF16] = TYPE_BF16_INPUT,
    [TUTTI_DTYPE_I32] = TYPE_I32,
    [TUTTI_DTYPE_I64] = TYPE_I32,
    [TUTTI_DTYPE_U8] = TYPE_U8,
    [TUTTI_DTYPE_BOOL] = TYPE_BOOL };

tutti_dtype input_dtype(enum value_type type)
{
    for (int i = 0; i <= TUTTI_DTYPE_BOOL; i++)
        if (types[i] == type) return (tutti_dtype)i;
    return TUTTI_DTYPE_F32;
}

static tutti_status check_name(const tutti_network *network, const char *name)
{
    for (size_t v = 0; v < network->graph.value_count; v++) {
        const struct value *value = &network->graph.values[v];
        if (value->role == ROLE_INPUT && !strcmp(value->name, name))
            return fail(TUTTI_INVALID, "two inputs have the name \"%s\": give them different names", name);
    }
    return TUTTI_OK;
}

static tutti_status check_sizes(const char *name, const int64_t *sizes, int rank)
{
    if (rank < 0 || rank >= TUTTI_MAX_RANK || (rank > 0 && !sizes))
        return fail(TUTTI_SHAPE, "input %s has %d dimensions: at most %d are possible", name, rank, TUTTI_MAX_RANK - 1);
    for (int i = 0; i < rank; i++)
        if (sizes[i] < 1 && sizes[i] != TUTTI_SEQUENCE)
            return fail(TUTTI_SHAPE,
                "input %s has size %" PRId64 " in dimension %d: it must be at least 1, or TUTTI_SEQUENCE", name,
                sizes[i], i);
    return TUTTI_OK;
}

tutti_tensor tutti_input_typed(
    tutti_network *network, const char *name, tutti_dtype dtype, const int64_t *sizes, int rank)
{
    tutti_status status = TUTTI_OK;
    char number[32] = "input";
    if (!network_grows(network)) return (tutti_tensor) { NO_VALUE };
    if (network->input_count > 0) snprintf(number, sizeof number, "input_%d", network->input_count);
    if (!name) name = number;
    if ((size_t)dtype >= sizeof types / sizeof *types)
        FAIL(TUTTI_INVALID, "input %s has type %d, which does not exist: pass one of tutti_dtype", name, (int)dtype);
    if (network->input_count == NETWORK_MAX_INPUTS)
        FAIL(TUTTI_INVALID, "input %s is one too many, a network has at most %d: make one input that holds several",
            name, (int)NETWORK_MAX_INPUTS);
    TRY(check_sizes(name, sizes, rank));
    TRY(check_name(network, name));
    tutti_shape batched = { .rank = rank + 1, .sizes = { BATCH } };
    for (int i = 0; i < rank; i++) batched.sizes[i + 1] = sizes[i];
    const int value = graph_value(&network->graph, ROLE_INPUT, types[dtype], batched, true, name);
    if (value == NO_VALUE) return network_fail(network, network->graph.status);
    /* Three sizes are [C, H, W] until an operation says otherwise, but not with TUTTI_SEQUENCE among them. */
    const bool image = rank == 3 && shape_sequences(&batched) == 0;
    graph_at(&network->graph, value)->axes =
        image ? axes_with_channels(batched.rank) : axes_with_sequences((struct axes) { 0 }, &batched);
    network->input_count++;
    return (tutti_tensor) { value };
done:
    return network_fail(network, status);
}

tutti_tensor tutti_input(tutti_network *network, const char *name, tutti_shape shape)
{
    if (network_ok(network) && shape.rank < 1)
        return network_fail(network,
            fail(TUTTI_SHAPE, "input %s has %d dimensions: 1 to %d are possible", name ? name : "", shape.rank,
                TUTTI_MAX_RANK - 1));
    return tutti_input_typed(network, name, TUTTI_DTYPE_F32, shape.sizes, shape.rank);
}
