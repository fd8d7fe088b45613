/* Fusions: work that a node does besides its own operation, in a list on the node. Patterns (graph/pattern.h) append
 * to it. Kernels get build options and arguments from it, and the interpreter reads it. */
#ifndef GRAPH_FUSION_H
#define GRAPH_FUSION_H

#include <stdbool.h>

enum activation {
    ACTIVATION_NONE,
    ACTIVATION_RELU,
    ACTIVATION_CLIP,
    ACTIVATION_LEAKY_RELU,
    ACTIVATION_SIGMOID,
    ACTIVATION_TANH
};
struct nonlinearity {
    enum activation activation;
    float low, high; /* clip; slope of leaky relu in low */
};

/* In the order in which they are done. graph/fusion.c names the inputs and outputs of each. */
enum fusion_kind {
    FUSION_NORMALISED, /* the first input is normalised as it is loaded, and goes through `function` */
    FUSION_MASKED,     /* of batch_norm_gradient: dy is multiplied by the derivative of `function` as it is loaded */
    FUSION_GIVEN,      /* reads statistics that another node computes */
    /* Adds `added`, which has the shape and layout of the first output. Adding to a gradient that already exists is
     * the same thing: the memory pass then places both at one address. */
    FUSION_ADD,
    FUSION_ACTIVATION, /* `function` of the result */
    FUSION_MASK,       /* multiplies the result by the derivative of `function`, whose output is y */
    /* Like FUSION_MASK, where `function` follows a batch normalisation of x; y is present if something was added
     * between. Also sums up the result g, and g (x - mean): the gradient of that normalisation begins with these. */
    FUSION_GATE,
    FUSION_STATISTICS, /* computes count, mean and sum of squared deviations of the result */
    FUSION_BIAS,       /* a weight gradient: computes the bias's gradient, too */
    FUSION_WEIGHTS,    /* a data gradient after a gate: computes the weights' gradient, too */
    FUSION_KINDS
};
#define FUSED(kind) (1u << FUSION_##kind) /* in sets of kinds */

/* Inputs of FUSION_NORMALISED, FUSION_MASKED and FUSION_GATE, from the first one on. */
enum { NORMALISED_GAMMA, NORMALISED_BETA, NORMALISED_MEAN, NORMALISED_RSTD, NORMALISED_INPUTS };
enum { MASKED_Y, MASKED_BETA, MASKED_INPUTS };
enum { GATE_X, GATE_GAMMA, GATE_BETA, GATE_MEAN, GATE_RSTD, GATE_Y, GATE_INPUTS };

struct fusion {
    enum fusion_kind kind;
    struct nonlinearity function;
    int added;         /* value */
    int input, output; /* its first input and its output on the node, after those of the operation */
};

struct node;
struct port;
/* Inserts the fusion into the list, in the order of kinds. inputs: as many values as the kind has, or NULL if it has
 * none; output: NO_VALUE if it has none. A node has each kind at most once. */
void node_fuse(struct node *node, struct fusion fusion, const int *inputs, int output);
/* Removes all fusions except those of the kinds in `kept`. */
void node_separate(struct node *node, unsigned kept);
const struct fusion *node_fusion(const struct node *node, enum fusion_kind kind); /* NULL: it is not fused */
unsigned node_fusions(const struct node *node);                                   /* the set of kinds */
/* The function of the node's fusion of this kind; ACTIVATION_NONE if it has none. */
struct nonlinearity node_function(const struct node *node, enum fusion_kind kind);
/* The name of a kind; NULL for FUSION_ACTIVATION, which is named by its function. */
const char *fusion_name(enum fusion_kind kind);
const char *activation_name(enum activation activation);
int node_added(const struct node *node);           /* the value that FUSION_ADD adds, or NO_VALUE */
void node_set_added(struct node *node, int value); /* nothing where it is not fused */
/* The port of a node's input or output i, of its operation or a fusion; NULL if there is none. */
const struct port *node_input_port(const struct node *node, int i);
const struct port *node_output_port(const struct node *node, int i);

#endif
