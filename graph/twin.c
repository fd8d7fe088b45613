#include "graph/twin.h"

#include "base/memory.h"

#include <string.h>

static void add_parameter(tutti_network *network, const struct parameter *of)
{
    struct parameter parameter = *of;
    parameter.name = memory_copy_text(of->name);
    parameter.values = NULL; /* those of `of` are copied */
    (void)network_add_parameter(network, parameter, of->values);
}

tutti_network *network_twin(const tutti_network *of)
{
    if (tutti_network_status(of) != TUTTI_OK) return NULL;
    tutti_network *network = tutti_network_new(of->runtime);
    if (!network) return NULL;
    for (size_t i = 0; i < of->layer_count && network->status == TUTTI_OK; i++) {
        const int layer = network_layer_begin(network, of->layers[i].name, of->layers[i].operation);
        if (layer >= 0) network->layers[layer].value = 0; /* closed: failures do not name it */
    }
    for (size_t i = 0; i < of->parameter_count && network->status == TUTTI_OK; i++)
        add_parameter(network, &of->parameters[i]);
    if (network->status == TUTTI_OK) return network;
    tutti_network_free(network);
    return NULL;
}

static bool same_values(const struct parameter *a, const struct parameter *b)
{
    if (a->kind != PARAMETER_CONSTANT) return true;
    return a->values && b->values && memcmp(a->values, b->values, (size_t)a->elements * sizeof(*a->values)) == 0;
}

bool network_are_twins(const tutti_network *a, const tutti_network *b)
{
    if (a->runtime != b->runtime || a->parameter_count != b->parameter_count) return false;
    for (size_t i = 0; i < a->parameter_count; i++) {
        const struct parameter *x = &a->parameters[i], *y = &b->parameters[i];
        const bool named = x->kind == PARAMETER_CONSTANT || strcmp(x->name, y->name) == 0;
        if (!named || x->kind != y->kind || x->type != y->type || x->stored != y->stored ||
            !shape_equal(x->shape, y->shape) || !same_values(x, y))
            return false;
    }
    return true;
}
