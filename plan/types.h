/* A plan: the commands of one network on one device, for one mode, number of samples and length of sequences. The
 * passes work on it, and it runs. */
#ifndef PLAN_TYPES_H
#define PLAN_TYPES_H

#include "graph/network.h"
#include "graph/operation.h"
#include "runtime/memory.h"

/* Bytes of poison after each value, where `guards` is set. */
#define PLAN_GUARD_BYTES 256

/* Results of a plan. TRAIN: gradients and metrics. EVALUATE: metrics. SCORE: metrics and the first output, which a
 * loss reads. INFER: all outputs. */
enum plan_mode { PLAN_TRAIN, PLAN_EVALUATE, PLAN_SCORE, PLAN_INFER };

enum { PLAN_MAX_FEEDS = NETWORK_MAX_INPUTS + 1 /* targets */, PLAN_MAX_LOSSES = 8, PLAN_MAX_OUTPUTS = 256 };

/* The results that a network is run for: values of its graph. */
struct objective {
    /* Outputs of inference; of training, too, where `keeps_outputs`. At least one. */
    int outputs[PLAN_MAX_OUTPUTS], output_count;
    bool keeps_outputs;
    /* For each output, 1 + the number of the feed that it is in the next inference (tutti_carry): it may lie in the
     * memory of that feed. 0: none. */
    int carried[PLAN_MAX_OUTPUTS];
    /* Inputs whose gradients are outputs of training, after the others. */
    int gradient_inputs[PLAN_MAX_OUTPUTS], gradient_input_count;
    /* Metrics of loss nodes. Their sum with these weights is trained; a loss of weight 0 is only reported. */
    int losses[PLAN_MAX_LOSSES], loss_count;
    float weights[PLAN_MAX_LOSSES];
    /* If there are none: a loss of the first output and an input "targets", which the plan appends; or NULL. */
    const struct operation *loss;
};

struct plan_options {
    enum plan_mode mode;
    struct bound_sizes sizes;
    struct objective objective;
    bool exact;
    bool recompute;
    bool synchronised; /* training: other devices have the rest of the batch, whose statistics count too
                          (launch_sync) */
    /* FP32 and TF32: values are stored as floats. BF16: temporary values are stored as bfloat16 where every kernel
     * that touches them can. It is also what products round their operands to. */
    tutti_precision precision;
    /* Tests: gradients start from an input value "seed" of the output's shape instead of a loss; input gradients too.
     */
    bool seeded;
    /* Tests: implementations to force, "conv2d=winograd|direct,dense=clblast", or NULL. Also TUTTI_IMPLEMENTATION. */
    const char *force;
    /* Tests: every value has memory of its own, followed by PLAN_GUARD_BYTES of poison (tests/layers/guards.c). */
    bool guards;
    /* Device buffers that the plan's launches use; the replica owns them. gradients is NULL unless training,
     * and frozen where the network has no frozen parameters and no constants. */
    cl_mem parameters, gradients, frozen;
    struct arena *arena; /* shared with other plans if it is large enough; NULL: an own one is made */
    bool explain;        /* keep texts for plan_explain */
    bool cold;           /* leave the warm-up, which writes to all buffers, to plan_warm_up() */
    void (*progress)(void *user, int built, int total);
    void *user;
};

enum command_kind {
    COMMAND_PREPARE,     /* not in training: a launch that depends on parameters only; plan_prepare() enqueues it */
    COMMAND_FEED,        /* copy: a feed to the device */
    COMMAND_CONSTANTS,   /* copy: the step's constants to the device */
    COMMAND_COPIES_DONE, /* the copies before it are complete; nothing waits, as the queue is in order */
    COMMAND_KERNEL,      /* a launch of the step */
    COMMAND_PIECE,       /* training: launches from here on may read a range of parameters, a piece; none before does */
    COMMAND_SYNC,        /* merges numbers of this device with those of all devices (struct sync_point) */
    COMMAND_BUCKET,  /* training: the gradients of a range, a bucket, are complete; its parameters are read no more */
    COMMAND_METRICS, /* copy on the device: sums of losses, from where the next run overwrites them */
    COMMAND_OUTPUT,  /* copy: an output from the device */
    COMMAND_KINDS
};

struct command {
    enum command_kind kind;
    size_t number;        /* of the feed, output, launch or sync point; PIECE, BUCKET: among its kind */
    int64_t first, count; /* PIECE, BUCKET: floats of the arena, at least one */
};

/* The device's buffers that the launches use. */
struct plan_memory {
    struct arena *arena; /* of all values without memory of their own */
    size_t arena_bytes;  /* needed, also when the arena is larger */
    cl_mem *buffers;     /* per value; NULL where it has none */
    size_t buffer_count;
    cl_mem *prepared; /* per node; NULL where it has none */
    size_t prepared_count;
    cl_mem workspace;
    bool redirected[PLAN_MAX_FEEDS]; /* launches may read the feed from another buffer than its own */
};

/* The designs of implementations, one for all nodes with equal problems: plan/design.c. */
struct plan_designs {
    struct plan_design *items;
    size_t count, capacity;
};

/* What tutti_explain() returns, NULL unless options.explain: the chosen implementation of each node and why others were
 * refused, and the graph after each pass. Remarks are inserted into `choices` after all passes, at `places` in order.
 */
struct plan_explanation {
    char *choices, *passes;
    struct remark_place {
        size_t at;
        int value; /* its node's implementation makes the remark */
        const struct implementation *implementation;
    } * places;
    size_t count, capacity;
};

struct plan {
    struct device *device;
    const tutti_network *network;
    struct plan_options options;
    struct graph graph;
    bool channels_last;         /* see struct problem */
    struct launch_list prepare; /* before `launches`, see plan_prepare(); in training empty */
    struct launch_list launches;
    struct plan_memory memory;
    struct plan_designs designs;
    struct plan_explanation explanation;
    /* Values of interest, NO_VALUE where absent. metrics: pairs of floats, each the sum of a loss over the plan's
     * samples and the number of correct ones; the first pair is what is trained, and if there are several losses, a
     * pair for each follows. seed, input gradients: tests. */
    int constants, metrics, seed, input_gradient;
    int outputs[PLAN_MAX_OUTPUTS]; /* of the objective; in training, the gradients of its gradient_inputs follow */
    int feeds[PLAN_MAX_FEEDS]; /* what is uploaded before the step: the network's inputs, in their order, then targets
                                */
    int feed_count, input_count;
    size_t forward_values;    /* of the graph before pass_gradient() */
    struct command *commands; /* in the order in which they are enqueued */
    size_t command_count;
    double build_seconds;
};

#endif
