/* How the elements of a node's tensors are stored, as options for clkernels/element.h. */
#ifndef LAYERS_ELEMENT_H
#define LAYERS_ELEMENT_H

#include "graph/operation.h"

/* Bytes that element_options() needs. */
enum { ELEMENT_OPTIONS = 20 * (GRAPH_MAX_INPUTS + GRAPH_MAX_OUTPUTS + 1) };

/* " -DIN0_TYPE=bf16 ...": one for each input, output and addition that is not float; "" where all are. Written into the
 * buffer, which is also returned. */
const char *element_options(const struct problem *problem, char *buffer, size_t size);

#endif
