/* The public tutti_network: a graph with a symbolic batch, its parameters and their names, the first error kept. */
#ifndef GRAPH_NETWORK_H
#define GRAPH_NETWORK_H

#include "graph/graph.h"

#include <stdatomic.h>

/* Floats: 1 KiB, no smaller than any device's alignment of sub-buffers that is known. */
#define PARAMETER_ALIGNMENT 256

/* STATISTIC: updated as p = (1 - momentum) p + momentum g where g, in the gradient arena, is the batch's statistic
 * weighted by its part of the whole batch. If several nodes use it, each one updates it, in their order. FROZEN: has no
 * gradient, and lies in an arena of its own, which a device is given once. CONSTANT: lies there too, but no caller sees
 * it as a parameter, and no file has it. */
enum parameter_kind { PARAMETER_TRAINED, PARAMETER_STATISTIC, PARAMETER_FROZEN, PARAMETER_CONSTANT };

struct parameter {
    char *name;        /* "layer1.0.conv1.weight" */
    int layer;         /* that made it; -1: the caller did */
    tutti_shape shape; /* PyTorch's */
    int64_t elements;
    enum parameter_kind kind;
    enum value_type type; /* F32; a constant can also be I32 */
    int64_t offset;       /* floats from the start of its arena; multiples of PARAMETER_ALIGNMENT */
    float momentum;       /* of a statistic, for each use */
    /* What tutti_group() set: of the learning rate, 0: 1; and instead of tutti_training.weight_decay. */
    float rate_factor, weight_decay;
    bool has_weight_decay;
    int value; /* in the network's graph */
    tutti_initialiser init;
    float init_scale, init_constant; /* TUTTI_INIT_ZEROS: filled with init_constant */
    int64_t fan_in, fan_out;
    float *values; /* the initial ones, instead of `init`; or NULL. Of a constant: the bits of its type */
};

/* Of `uses` updates of a statistic together: p = (1 - m)^uses p + ... */
float parameter_momentum(float momentum, int uses);

/* Whether it lies in the arena of frozen ones. */
static inline bool parameter_is_fixed(const struct parameter *parameter)
{
    return parameter->kind == PARAMETER_FROZEN || parameter->kind == PARAMETER_CONSTANT;
}

struct layer {
    char *name, *operation;
    int value; /* first output */
};

/* What tutti_output() names. */
struct named_output {
    char *name;
    int value;
};

struct tutti_network {
    struct tutti_runtime *runtime;
    bool held; /* by a thread that is stuck in a driver: never freed */
    struct graph graph;
    struct parameter *parameters; /* in the order of the builder's calls */
    size_t parameter_count, parameter_capacity;
    /* Floats of the arenas, set by network_layout(): of parameters, the trained ones first, in order, then statistics;
     * and of fixed ones, which are frozen or constant. */
    int64_t trained_floats, total_floats, frozen_floats;
    struct layer *layers;
    size_t layer_count, layer_capacity;
    struct named_output *outputs;
    size_t output_count, output_capacity;
    char *scope;        /* "layer1.0." or NULL */
    size_t *scope_ends; /* length of the scope before each push */
    size_t scope_depth, scope_capacity;
    int dropout_count, input_count;
    int64_t table_entries; /* of all tables of layers/resample.h */
    atomic_int trainers;   /* that use it now */
    tutti_status status;   /* the first failure */
    char *message;
};

/* Builders call these. All do nothing after a failure and then give NO_VALUE / a negative tensor. */
bool network_ok(tutti_network *network);
/* Like network_ok(), for what adds values to the graph: a trainer has arrays as long as the network's, and its threads
 * read the graph, so the network fails while it has one. */
bool network_grows(tutti_network *network);
/* Keeps the status and the thread's message, which gets the name of the layer that is being built. */
tutti_tensor network_fail(tutti_network *network, tutti_status status);
/* Begins a layer, before anything of it is checked, so that failures name it: its full name from the scope, and `name`
 * or operation + number. Returns its number. */
int network_layer_begin(tutti_network *network, const char *name, const char *operation);
/* Adds a parameter, whose name it takes, also on failure; returns its value in the graph. values: copied; or NULL. */
int network_add_parameter(tutti_network *network, struct parameter parameter, const void *values);
/* Adds a constant, of which the name and the values are copied; returns its value in the graph. */
int network_constant(
    tutti_network *network, const char *name, enum value_type type, tutti_shape shape, const void *values);
/* Adds a parameter "layer.suffix"; returns its value in the graph. */
int network_parameter(
    tutti_network *network, int layer, const char *suffix, tutti_shape shape, const struct parameter *how);
/* The same, unless the layer was `given` a parameter that others use as well: checks its shape and returns its value.
 */
int network_weight(tutti_network *network, int layer, const tutti_tensor *given, const char *suffix, tutti_shape shape,
    const struct parameter *how);
/* Appends the node and closes the layer. */
tutti_tensor network_append(tutti_network *network, int layer, const struct operation *operation,
    const void *attributes, const int *inputs, int input_count);
/* Closes a layer of several nodes, whose result is `value`; NO_VALUE: the graph has failed. */
tutti_tensor network_close(tutti_network *network, int layer, int value);
/* How arrays for an input of this type are passed. */
tutti_dtype input_dtype(enum value_type type);
/* What to answer for a tensor that the network does not have: its first failure, which made the tensor, if it has one.
 */
tutti_status network_no_tensor(const tutti_network *network, tutti_tensor tensor);
/* The value behind a tensor, checked. NULL after a failure, which is then kept. */
const struct value *network_operand(tutti_network *network, tutti_tensor tensor);
/* The same, but for parameters and constants, which only some layers take as an input. */
const struct value *network_value(tutti_network *network, tutti_tensor tensor);
/* Offsets of the parameters in the arena; called by tutti_compile. */
tutti_status network_layout(tutti_network *network);
/* Host memory: the arena of parameters, and of frozen ones, which may be NULL if there are none. */
struct parameter_arenas {
    float *parameters, *frozen;
};
float *parameter_in(const struct parameter *parameter, const struct parameter_arenas *arenas);
/* Writes the initial values of every parameter. */
tutti_status network_initialise(const tutti_network *network, uint64_t seed, const struct parameter_arenas *arenas);
/* For each parameter, how many nodes read it of those on which some of `count` values depend. NULL without memory. */
int *network_count_uses(const tutti_network *network, const int *values, int count);
void network_free_outputs(tutti_network *network);
/* Not a constant. */
const struct parameter *network_find(const tutti_network *network, const char *name);

#endif
