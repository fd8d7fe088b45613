/* What tutti_op() knows of each operation: its name, inputs and attributes, and how it becomes nodes. The reflection of
 * tutti_inspect.h and the command `tutti op` read the same tables. */
#ifndef LAYERS_SCHEMA_H
#define LAYERS_SCHEMA_H

#include "layers/decompose.h"
#include "layers/schema/op_builders.h"
#include "tutti_inspect.h"

/* An input. Those after the first optional one are optional, too. */
struct op_input {
    const char *name, *text; /* text: shape and type; NULL: any */
    bool optional;
    bool repeated; /* the last one: it may be given again, up to OP_INPUTS inputs */
    bool any;      /* the last one: it may be given again any number of times, as tutti_concat() takes them */
};
enum { OP_INPUTS = 8 };

/* An attribute sets a member of the node's attributes (`is_attribute`) or of the options of a builder. */
struct op_attribute {
    const char *name;
    tutti_attribute_type
        type; /* the member's type: float (`wide`: double), struct reals, bool, int64_t, struct integers,
               * int (axis), unsigned (axes), int[], tutti_shape, int (choice), char[OP_TEXT] */
    bool is_attribute;
    size_t offset;
    const char *default_value; /* as a caller would write it; NULL: the member is 0, which `text` explains */
    const char *text;          /* one line */
    const char *choices;       /* words for the numbers 0, 1, ... of a choice, with a space between; else NULL */
    bool required;
    bool wide;
    const char *onnx; /* its name in ONNX, where value and default mean the same; NULL: there is none. Its type is a
                       * number, flag, integer or axis, or the axes of a reduction. */
};

/* The ONNX operator to which the operation maps directly, with the attributes that have a name there. */
struct op_onnx {
    const char *name;
    int opset; /* the first one with it; 0: all that Tutti writes have it */
    tutti_onnx_form form;
    bool overflows; /* its result can leave the integer type of its inputs */
};

/* Sets members of the node's attributes from others, from the options and from x, the first input. */
typedef tutti_status op_completion(const struct value *x, const void *options, void *attributes);

/* Adds a layer, which gets the network's layer_name. */
typedef tutti_tensor op_layer(tutti_network *network, const tutti_tensor *inputs, int count, const void *options);

struct op_schema {
    const char *name, *text;               /* text: one line; x, a, b, c: the inputs */
    const struct op_input *inputs;         /* ends with one without a name */
    const struct op_attribute *attributes; /* likewise; NULL: none */
    const struct operation *operation;     /* whose attributes are set; NULL: none */
    const struct op_onnx *onnx;            /* NULL: none, or the tables in onnx/ map it by a function */
    enum activation activation;            /* of operation_activation */
    bool random;                           /* takes the step's constants, and a stream of random numbers */
    op_completion *complete;               /* NULL: all attributes are as they were read */
    /* Options: values of the text that the node does not store.
     * Exactly one way makes the nodes. `layer`: calls a public builder with the options. `decompose`: appends several
     * nodes from the attributes. `build`: appends several nodes from the options. None of these: appends one node of
     * `operation`. */
    op_layer *layer;
    decomposition *decompose;
    const struct attribute_type *decomposed; /* the attributes of `decompose`; NULL: those of `operation` */
    op_builder *build;
};

/* Operations of one kind. */
struct op_group {
    const char *title;
    const struct op_schema *schemas; /* ends with one without a name */
};
extern const struct op_group schema_elementwise, schema_axes, schema_windows, schema_indices, schema_norms,
    schema_products, schema_random, schema_constants, schema_layers, schema_losses;

/* Returns the schema at `position`, and its group unless `group` is NULL; NULL: there are no more. */
const struct op_schema *schema_at(int position, const struct op_group **group);
/* Returns the schema of a name, and its position unless `position` is NULL; NULL: there is none. */
const struct op_schema *schema_find(const char *name, int *position);
/* Like schema_find(), by the name of the ONNX operator. */
const struct op_schema *schema_find_onnx(const char *name, int *position);
/* Returns the attribute at a position; NULL: there are no more. */
const struct op_attribute *schema_attribute(const struct op_schema *schema, int position);
/* Returns what a value of this type is, for messages: "a number". */
const char *schema_type_text(tutti_attribute_type type);
/* Counts the inputs. */
int schema_min_inputs(const struct op_schema *schema);
int schema_max_inputs(const struct op_schema *schema);

/* For the tables. ATTRIBUTE_OF() names a member of struct NAME_attributes, OPTION_OF() one of struct NAME_options
 * (layers/schema/op_builders.h, or in the schema's file). */
#define INPUTS(...)           \
    (const struct op_input[]) \
    {                         \
        __VA_ARGS__,          \
        {                     \
            0                 \
        }                     \
    }
#define OP_ATTRIBUTES(...)        \
    (const struct op_attribute[]) \
    {                             \
        __VA_ARGS__,              \
        {                         \
            0                     \
        }                         \
    }
/* An attribute. where: ATTRIBUTE_OF() or OPTION_OF(); after the text, the other members of struct op_attribute. */
#define ROW(type, name, where, value, text, ...)                      \
    {                                                                 \
        name, TUTTI_ATTRIBUTE_##type, where, value, text, __VA_ARGS__ \
    }
#define ATTRIBUTE_OF(of, member) true, offsetof(struct of##_attributes, member)
enum { OPTIONS_SIZE = 1024 }; /* struct NAME_options is at most this large */
#define OPTION_OF(of, member) \
    false,                    \
        offsetof(struct of##_options, member) + 0 * sizeof(char[sizeof(struct of##_options) <= OPTIONS_SIZE ? 1 : -1])

/* Defines an op_layer that returns the value of an expression of network, inputs, count and options. */
#define LAYER(name, ...)                                                                                         \
    static tutti_tensor name(tutti_network *network, const tutti_tensor *inputs, int count, const void *options) \
    {                                                                                                            \
        (void)inputs, (void)count, (void)options;                                                                \
        return __VA_ARGS__;                                                                                      \
    }
#define READ(of) ((const struct of##_options *)options)

#endif
