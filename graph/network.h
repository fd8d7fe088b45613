/* The public tutti_network: a graph with a symbolic batch, its parameters and their names, the first error kept. */
#ifndef GRAPH_NETWORK_H
#define GRAPH_NETWORK_H

#include "graph/graph.h"

#include <stdatomic.h>

/* In floats: 1 KiB, no smaller than the sub-buffer alignment of any known device. */
#define PARAMETER_ALIGNMENT 256

enum { NETWORK_MAX_INPUTS = 255 };

/* STATISTIC: updated as p = (1 - momentum) p + momentum g where g, in the gradient arena, is the batch's statistic
 * weighted by its part of the whole batch. If several nodes use it, each one updates it, in their order. FROZEN: has
 * no gradient, and lies in a separate arena, which a device is given once. CONSTANT: lies in that arena, too, but
 * callers do not see it as a parameter, and files do not contain it. */
enum parameter_kind { PARAMETER_TRAINED, PARAMETER_STATISTIC, PARAMETER_FROZEN, PARAMETER_CONSTANT };

struct parameter {
    char *name;        /* "layer1.0.conv1.weight" */
    int layer;         /* that made it; -1: the caller did */
    tutti_shape shape; /* PyTorch's */
    int64_t elements;
    enum parameter_kind kind;
    enum value_type type;   /* F32; a constant can also be I32 */
    enum value_type stored; /* by tutti_store(): F32, BF16 or INT8 (graph/stored.h) */
    int64_t offset;         /* floats from the start of its arena; multiples of PARAMETER_ALIGNMENT */
    float momentum;         /* of a statistic, for each use */
    /* Set by tutti_group(): factor of the learning rate (0: 1), and replacement of tutti_training.weight_decay. */
    float rate_factor, weight_decay;
    bool has_weight_decay;
    int value; /* in the network's graph */
    tutti_initialiser init;
    float init_scale, init_constant; /* TUTTI_INIT_ZEROS: filled with init_constant */
    int64_t fan_in, fan_out;
    float *values; /* the initial ones, instead of `init`; or NULL; a constant has the bits of its type */
};

/* The momentum of `uses` updates of a statistic combined: p = (1 - m)^uses p + ... */
float parameter_momentum(float momentum, int uses);

/* Whether the parameter lies in the frozen arena. */
static inline bool parameter_is_fixed(const struct parameter *parameter)
{
    return parameter->kind == PARAMETER_FROZEN || parameter->kind == PARAMETER_CONSTANT;
}

struct layer {
    char *name, *operation;
    int value; /* first output */
};

/* An output named by tutti_output(). */
struct named_output {
    char *name;
    int value;
};

/* Low-rank adapters (tutti_lora()): numbers of parameters. weight += scale * up down, or its transpose. */
struct adapters {
    struct adapter {
        int weight, down, up;
        bool transposed;
        float scale, dropout;
    } * list;
    size_t count, capacity;
};

struct tutti_network {
    struct tutti_runtime *runtime;
    bool held; /* by a thread that is stuck in a driver: never freed */
    struct graph graph;
    struct parameter *parameters; /* in the order of the builder's calls */
    size_t parameter_count, parameter_capacity;
    /* Sizes of the arenas in floats, set by network_layout(). The arena of parameters has the trained ones first, in
     * order, then the statistics. The frozen arena has the frozen parameters and the constants. */
    int64_t trained_floats, total_floats, frozen_floats;
    struct layer *layers;
    size_t layer_count, layer_capacity;
    struct named_output *outputs;
    size_t output_count, output_capacity;
    struct adapters adapters;
    struct network_scope {
        char *text;   /* "layer1.0." or NULL: the beginning of names */
        size_t *ends; /* its length before each push */
        size_t depth, capacity;
    } scope;
    const char *layer_name; /* of the next layer if it gets none; NULL: none */
    int dropout_count, input_count;
    int64_t table_entries; /* of all tables of layers/resample.h */
    atomic_int trainers;   /* that use it now */
    tutti_status status;   /* the first failure */
    char *message;
};
/* Returns how many of the arena's floats first .. first + count - 1 are trained. */
static inline int64_t network_trained_in(const tutti_network *network, int64_t first, int64_t count)
{
    const int64_t left = network->trained_floats - first;
    return left < 0 ? 0 : left < count ? left : count;
}

/* Builders call these. All do nothing after a failure and then give NO_VALUE / a negative tensor. */
bool network_ok(tutti_network *network);
/* Like network_ok(), for functions that add values to the graph. Fails while a trainer uses the network: a trainer
 * has arrays as long as the network's, and its threads read the graph. */
bool network_grows(tutti_network *network);
/* Keeps the status and the thread's message, which gets the name of the layer that is being built. */
tutti_tensor network_fail(tutti_network *network, tutti_status status);
/* Begins a layer before any of it is checked, so that failures name it. Its full name consists of the scope and
 * `name`, or the operation and a number. Returns its number. */
int network_layer_begin(tutti_network *network, const char *name, const char *operation);
/* Adds a parameter and takes over its name, also on failure. Returns its value in the graph. values: copied, or
 * NULL. */
int network_add_parameter(tutti_network *network, struct parameter parameter, const void *values);
/* Adds a constant and returns its value in the graph. Copies the name and the values. */
int network_constant(
    tutti_network *network, const char *name, enum value_type type, tutti_shape shape, const void *values);
/* Adds a parameter "layer.suffix"; returns its value in the graph. */
int network_parameter(
    tutti_network *network, int layer, const char *suffix, tutti_shape shape, const struct parameter *how);
/* Like network_parameter(), unless the layer was `given` a parameter that others use as well. Then checks the shape
 * of that parameter and returns its value. */
int network_weight(tutti_network *network, int layer, const tutti_tensor *given, const char *suffix, tutti_shape shape,
    const struct parameter *how);
/* Appends the node and closes the layer. */
tutti_tensor network_append(tutti_network *network, int layer, const struct operation *operation,
    const void *attributes, const int *inputs, int input_count);
/* Closes a layer of several nodes, whose result is `value`; NO_VALUE: the graph has failed. */
tutti_tensor network_close(tutti_network *network, int layer, int value);
/* The type of the arrays that are passed for an input of this type. */
tutti_dtype input_dtype(enum value_type type);
/* The status for a tensor that the network does not have: the failure that caused it, if there was one. */
tutti_status network_no_tensor(const tutti_network *network, tutti_tensor tensor);
/* Checks a tensor and returns its value; NULL after a failure, which the network keeps. */
const struct value *network_operand(tutti_network *network, tutti_tensor tensor);
/* Like network_operand(), but fails for parameters and constants, which only some layers take as an input. */
const struct value *network_value(tutti_network *network, tutti_tensor tensor);
/* Sets the offsets of the parameters in their arenas; called by tutti_compile. */
tutti_status network_layout(tutti_network *network);
/* Host memory of the arena of parameters, and of the frozen arena, which may be NULL if it is empty. */
struct parameter_arenas {
    float *parameters, *frozen;
};
float *parameter_in(const struct parameter *parameter, const struct parameter_arenas *arenas);
/* Writes the initial values of every parameter. */
tutti_status network_initialise(const tutti_network *network, uint64_t seed, const struct parameter_arenas *arenas);
struct tutti_group_options;
/* TUTTI_INVALID while a trainer uses the network; its first failure, if there was one. */
tutti_status network_check_idle(const tutti_network *network);
/* Read options of tutti_group(); whether the parameter's name matches a pattern, as there. */
tutti_status network_read_group(struct tutti_group_options *options, const struct tutti_group_options *given);
bool parameter_matches(const struct parameter *parameter, const char *pattern);
/* Whether a parameter is a factor of an adapter. */
bool network_is_factor(const tutti_network *network, int parameter);
/* Counts each parameter's readers among the nodes that any of the `count` values needs. NULL without memory. */
int *network_count_uses(const tutti_network *network, const int *values, int count);
/* Finds a parameter by its name; does not find constants. */
const struct parameter *network_find(const tutti_network *network, const char *name);

#endif
