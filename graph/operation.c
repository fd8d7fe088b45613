#include "graph/operation.h"

const struct port *operation_input(const struct operation *operation, int i)
{
    const struct port *ports = operation->inputs;
    for (int k = 0; k < i; k++)
        if (ports[k].flags & PORT_REPEATED) return &ports[k];
    return i < GRAPH_MAX_INPUTS && ports[i].name ? &ports[i] : NULL;
}
