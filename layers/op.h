/* The names that tutti_op() has for operations and their attributes. */
#ifndef LAYERS_OP_H
#define LAYERS_OP_H

#include "graph/operation.h"

/* The name of a node's operation; of an activation, that of its function. */
const char *op_name(const struct node *node);
/* The name of an attribute: the operation's own if tutti_op() has none. NULL: a number that the operation does not
 * use. */
const char *op_attribute(const struct node *node, const struct attribute *attribute);

#endif
