/* Shapes of operations on values of different shapes, by numpy's rules. Axes of samples are aligned at the last one; an
 * axis that is missing or has size 1 is repeated to any size. The batch axis corresponds to the batch axis only. */
#ifndef LAYERS_BROADCAST_H
#define LAYERS_BROADCAST_H

#include "graph/graph.h"

/* Sets the output of a node whose inputs are broadcast: float32. Errors: TUTTI_SHAPE. */
tutti_status broadcast_infer(const struct graph *graph, struct node *node, struct value *output);
/* Appends the nodes that make the gradient of `value` from the gradient of its broadcast form: sums over the axes
 * that it lacks. Returns their result, or `gradient` where nothing is to be done. */
int broadcast_gradient(struct graph *graph, int gradient, int value, int layer);
/* Writes the sizes of a sample: "6, 5, 7". */
enum { BROADCAST_TEXT = TUTTI_MAX_RANK * (SIZE_TEXT + 2) };
void broadcast_print(const struct value *value, char text[BROADCAST_TEXT]);

#endif
