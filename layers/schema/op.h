/* The names that tutti_op() has for operations and their attributes. */
#ifndef LAYERS_OP_H
#define LAYERS_OP_H

#include "graph/operation.h"

/* Returns the name of a node's operation; for an activation, that of its function. */
const char *op_name(const struct node *node);
/* Returns an attribute's name: the operation's own if tutti_op() has none. NULL: a number that is not used.
 * *choices: the words that its numbers stand for (struct op_attribute); NULL: it is not a choice. */
const char *op_attribute_name(const struct node *node, const struct attribute *attribute, const char **choices);

#endif
