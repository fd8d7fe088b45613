#include "graph/attributes.h"

#include <string.h>

#include "base/invariant.h"
#include "graph/operation.h"

void node_set_operation(struct node *node, const struct operation *operation, const void *attributes)
{
    node->operation = operation;
    memset(&node->attributes, 0, sizeof node->attributes);
    if (attributes && operation->attributes) memcpy(node->attributes.bytes, attributes, operation->attributes->bytes);
}

const void *node_attributes(const struct node *node, const struct attribute_type *type)
{
    INVARIANT(node->operation->attributes == type);
    (void)type;
    return node->attributes.bytes;
}

const struct attribute *attribute_members(const struct attribute_type *type)
{
    static const struct attribute none = { 0 };
    return type ? type->members : &none;
}

/* Compares member by member: padding of structs, and sizes past a shape's rank, may differ. */
bool attributes_equal(
    const struct attribute_type *type, const struct attribute_values *a, const struct attribute_values *b)
{
    for (const struct attribute *member = attribute_members(type); member->name; member++) {
        const void *of_a = a->bytes + member->offset, *of_b = b->bytes + member->offset;
        if (member->kind == ATTRIBUTE_POINTER) continue;
        const bool equal = member->kind == ATTRIBUTE_SHAPE
            ? shape_equal(*(const tutti_shape *)of_a, *(const tutti_shape *)of_b)
            : !memcmp(of_a, of_b, member->bytes);
        if (!equal) return false;
    }
    return true;
}
