/* What each layer and each operation of a plan costs on a device: its kernel and its time. */
#ifndef TOOLS_COSTS_H
#define TOOLS_COSTS_H

#include "tutti.h"

enum { COSTS_NAME = 48, COSTS_OPERATIONS = 48 };

struct layer_cost {
    double seconds;          /* of all its launches, forward and backward; 0: not measured, or part of another layer */
    char kernel[COSTS_NAME]; /* implementation of its first launch; "": it has none */
};

struct operation_cost {
    char name[COSTS_NAME];
    double seconds;
    int launches;
};

struct costs {
    struct layer_cost *layers; /* [layers] */
    int layer_count;
    struct operation_cost operations[COSTS_OPERATIONS]; /* slowest first; the last one may be "others" */
    int operation_count;
    double seconds; /* of all launches; 0: not measured */
};

/* Finds the costs on the opened device at `position`. time: also measures times, which runs the plan a few times.
 * Free with costs_free(). */
tutti_status costs_find(
    struct costs *costs, tutti_trainer *trainer, const tutti_network *network, int position, bool time);
void costs_free(struct costs *costs);

#endif
