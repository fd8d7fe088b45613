/* Tensors of fixed values. They lie with the frozen parameters, which a device is given once. */
#include "graph/network.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static tutti_status check(const char *name, tutti_dtype dtype, const void *values)
{
    if (!text_is_utf8(name)) return fail(TUTTI_INVALID, "a constant has a name that is not UTF-8: pass valid UTF-8");
    if (dtype != TUTTI_DTYPE_F32 && dtype != TUTTI_DTYPE_I32)
        return fail(
            TUTTI_INVALID, "constant %s has type %d: pass TUTTI_DTYPE_F32 or TUTTI_DTYPE_I32", name, (int)dtype);
    return values ? TUTTI_OK : fail(TUTTI_INVALID, "the values of constant %s are NULL: pass an array", name);
}

int network_constant(
    tutti_network *network, const char *name, enum value_type type, tutti_shape shape, const void *values)
{
    return network_add_parameter(network,
        (struct parameter) {
            .name = memory_copy_text(name), .layer = -1, .shape = shape, .kind = PARAMETER_CONSTANT, .type = type },
        values);
}

tutti_tensor tutti_constant_typed(
    tutti_network *network, const char *name, tutti_dtype dtype, const int64_t *sizes, int rank, const void *values)
{
    if (!network_grows(network)) return (tutti_tensor) { NO_VALUE };
    if (!name) name = "constant";
    tutti_shape shape;
    tutti_status status = check(name, dtype, values);
    if (status == TUTTI_OK && !shape_read(sizes, rank, &shape))
        status = fail(TUTTI_SHAPE, "constant %s has %d dimensions%s: 1 to %d are possible", name, rank,
            sizes ? "" : " at NULL", TUTTI_MAX_RANK);
    if (status != TUTTI_OK) return network_fail(network, status);
    char *full = memory_format("%s%s", network->scope.text ? network->scope.text : "", name);
    if (!full) return network_fail(network, TUTTI_NO_MEMORY);
    const int value = network_constant(network, full, dtype == TUTTI_DTYPE_I32 ? TYPE_I32 : TYPE_F32, shape, values);
    free(full);
    return (tutti_tensor) { value };
}

tutti_tensor tutti_constant(tutti_network *network, const char *name, tutti_shape shape, const float *values)
{
    return tutti_constant_typed(network, name, TUTTI_DTYPE_F32, shape.sizes, shape.rank, values);
}
