#include "tools/report/costs.h"

#include "base/memory.h"
#include "tutti_inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct operation_cost *operation_of(struct costs *costs, const char *name)
{
    for (int i = 0; i < costs->operation_count; i++)
        if (!strncmp(costs->operations[i].name, name, COSTS_NAME - 1)) return &costs->operations[i];
    if (costs->operation_count == COSTS_OPERATIONS - 1) name = "others";
    if (costs->operation_count == COSTS_OPERATIONS) return &costs->operations[COSTS_OPERATIONS - 1];
    struct operation_cost *added = &costs->operations[costs->operation_count++];
    snprintf(added->name, sizeof(added->name), "%s", name);
    return added;
}

static void add_launch(void *user, const tutti_launch *launch)
{
    struct costs *costs = user;
    struct operation_cost *operation = operation_of(costs, launch->operation);
    operation->seconds += launch->seconds;
    operation->launches++;
    costs->seconds += launch->seconds;
    if (launch->layer < 0 || launch->layer >= costs->layer_count) return;
    struct layer_cost *layer = &costs->layers[launch->layer];
    layer->seconds += launch->seconds;
    if (layer->kernel[0]) return;
    snprintf(
        layer->kernel, sizeof(layer->kernel), "%s", *launch->implementation ? launch->implementation : launch->kernel);
}

static int slower_first(const void *a, const void *b)
{
    const struct operation_cost *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

tutti_status costs_find(
    struct costs *costs, tutti_trainer *trainer, const tutti_network *network, int position, bool time)
{
    memset(costs, 0, sizeof(*costs));
    costs->layer_count = tutti_network_layers(network);
    costs->layers = memory_new((size_t)costs->layer_count + 1, sizeof(*costs->layers));
    if (!costs->layers) return TUTTI_NO_MEMORY;
    const tutti_status status = tutti_launches(trainer, position, time, add_launch, costs);
    qsort(costs->operations, (size_t)costs->operation_count, sizeof(costs->operations[0]), slower_first);
    return status;
}

void costs_free(struct costs *costs)
{
    free(costs->layers);
    memset(costs, 0, sizeof(*costs));
}
