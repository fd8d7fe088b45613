/* Networks with the same parameters: a trainer of one reads those of a trainer of the other. */
#ifndef GRAPH_TWIN_H
#define GRAPH_TWIN_H

#include "graph/network.h"

/* Makes a network with the parameters, constants and names of layers of another one, and no nodes. NULL without
 * memory, or if the other one has failed. */
tutti_network *network_twin(const tutti_network *of);
/* Whether both are of one runtime and have the same parameters in the same order, stored alike, and equal constants. */
bool network_are_twins(const tutti_network *a, const tutti_network *b);

#endif
