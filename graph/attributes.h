/* Attributes of operations. Each operation has its own struct (layers/) and a description of its members. With the
 * description, graphs and plans bind, print, name and compare attributes of which they know nothing else. */
#ifndef GRAPH_ATTRIBUTES_H
#define GRAPH_ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The type of a member, and what is done with it. */
enum attribute_kind {
    ATTRIBUTE_OTHER,      /* of any type */
    ATTRIBUTE_POINTER,    /* to the network's memory; neither compared nor hashed: another member stands for it */
    ATTRIBUTE_NUMBER,     /* float */
    ATTRIBUTE_NUMBERS,    /* float[] */
    ATTRIBUTE_FLAG,       /* bool */
    ATTRIBUTE_INT,        /* int, or int[] */
    ATTRIBUTE_LONG,       /* int64_t */
    ATTRIBUTE_AXIS,       /* int: an axis of the first input, the batch's included; negative: none */
    ATTRIBUTE_AXES,       /* unsigned: a set of such axes, as bits */
    ATTRIBUTE_ORDER,      /* int[TUTTI_MAX_RANK]: all of them in another order */
    ATTRIBUTE_PLACES,     /* int64_t[TUTTI_MAX_RANK]: a number for each of them */
    ATTRIBUTE_SHAPE,      /* tutti_shape, batch included: graph_bind() replaces its symbols */
    ATTRIBUTE_SIZES,      /* int64_t[]: stand in the names of tuning tables, after the first letter of the member's */
    ATTRIBUTE_ACTIVATION, /* enum activation: printed after the operation's name */
};

struct attribute {
    const char *name;
    enum attribute_kind kind;
    size_t offset, bytes;
};

enum { ATTRIBUTE_MEMBERS = 12 };
struct attribute_type {
    size_t bytes;                                    /* of the struct */
    struct attribute members[ATTRIBUTE_MEMBERS + 1]; /* all; the last one has no name */
};

/* The attributes of a node of any operation. They are stored by value because nodes are copied by assignment. */
enum { ATTRIBUTE_BYTES = 152 };
struct attribute_values {
    _Alignas(int64_t) unsigned char bytes[ATTRIBUTE_BYTES];
};

/* Follows `struct NAME_attributes` in a header. Declares its description, NAME_attributes_type, and the function
 * NAME_attributes(node), which returns the attributes of a node whose operation has this struct. */
#define ATTRIBUTES(name)                                                                     \
    extern const struct attribute_type name##_attributes_type;                               \
    static inline const struct name##_attributes *name##_attributes(const struct node *node) \
    {                                                                                        \
        return node_attributes(node, &name##_attributes_type);                               \
    }
/* Defines the description, in one .c file. */
#define ATTRIBUTES_DESCRIBE(of, ...)                                                                          \
    _Static_assert(sizeof(struct of##_attributes) <= ATTRIBUTE_BYTES, "attributes of " #of " are too large"); \
    const struct attribute_type of##_attributes_type = { sizeof(struct of##_attributes), { __VA_ARGS__ } };
#define ATTRIBUTE(of, kind, member) ATTRIBUTE_NAMED(of, kind, member, #member)
#define ATTRIBUTE_NAMED(of, kind, member, name)                           \
    {                                                                     \
        name, ATTRIBUTE_##kind, offsetof(struct of##_attributes, member), \
            sizeof(((const struct of##_attributes *)NULL)->member)        \
    }

struct node;
struct operation;
/* Sets the node's operation and its attributes, a copy of the operation's struct. NULL: all attributes are 0. */
void node_set_operation(struct node *node, const struct operation *operation, const void *attributes);
const void *node_attributes(const struct node *node, const struct attribute_type *type);
/* Returns the members; the one after the last has no name. type: NULL has no members. */
const struct attribute *attribute_members(const struct attribute_type *type);
bool attributes_equal(
    const struct attribute_type *type, const struct attribute_values *a, const struct attribute_values *b);

#endif
