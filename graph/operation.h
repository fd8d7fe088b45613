/* What the rest of Tutti knows of an operation: its shapes, its gradient, and its implementations, best first. */
#ifndef GRAPH_OPERATION_H
#define GRAPH_OPERATION_H

#include "graph/graph.h"
#include "runtime/compute.h"
#include "runtime/launch.h"

/* Written by the trainer before each step into the value with ROLE_CONSTANTS; clkernels/step.h has the same struct.
 * Losses multiply each sample's gradient by gradient_weight. That is 1 / (samples of the whole step), so that gradients
 * of replicas and micro-batches only need to be added, whatever their shares are. With --precision fp16 the weight
 * includes the loss scale (parallel/loss_scale.h), which `unscale` removes. */
struct step_constants {
    uint32_t seed_low, seed_high;
    uint32_t step_low, step_high;
    uint32_t first_sample; /* of this micro-batch, in the global batch: dropout's position */
    float gradient_weight;
    float learning_rate;                      /* for the optimizer's launch */
    float bias_correction1, bias_correction2; /* Adam: 1 - beta^t */
    uint32_t micro_batches;                   /* of this step; the optimizer reads the sum of losses of each */
    /* Factor of the gradients in the update: 1 / loss scale. On a device, gradient_clip (clip.cl) then multiplies the
     * clip factor into it; the host keeps that factor in host_update.clip. */
    float unscale;
    uint32_t not_finite;  /* 0; a launch before the optimizer's sets it where gradients are not finite */
    uint32_t loss_floats; /* from the losses of one micro-batch to those of the next; 0: 2 */
    uint32_t reserved[3];
};

/* One node with its values resolved, on one device: what implementations look at. */
struct problem {
    const struct node *node;
    const struct value *inputs[GRAPH_MAX_INPUTS];   /* NULL where absent */
    const struct value *outputs[GRAPH_MAX_OUTPUTS]; /* NULL where nobody wants it */
    const struct value *add;                        /* of FUSION_ADD; NULL where there is none */
    const void *design;                             /* made by the implementation's design(); NULL before */
    const struct capabilities *device;
    bool training;
    bool exact; /* --exact: no Winograd */
    /* --precision: the type that products may round their operands to. A kernel may also keep full precision. */
    enum compute_type compute;
    /* Values may have channels last. On devices with matrix instructions, true in the first run of the passes; false
     * in the second, which plan_run_passes() makes if channels last does not pay. Elsewhere false. */
    bool channels_last;
    /* --sync-batchnorm: the samples are only a part of the batch, and statistics are exchanged (launch_sync). */
    bool synchronised;
};

/* The buffers of a problem's values. */
struct operands {
    cl_mem inputs[GRAPH_MAX_INPUTS], outputs[GRAPH_MAX_OUTPUTS]; /* NULL where absent */
    cl_mem add;                                                  /* of FUSION_ADD, or NULL */
    cl_mem workspace;                                            /* as many bytes as asked for; NULL for 0 */
    cl_mem prepared;                                             /* the same for prepared data */
};

/* One input or output of an operation or a fusion. A port without a name does not exist. */
struct port {
    const char *name;
    unsigned flags;
};
enum {
    PORT_OPTIONAL = 1 << 0, /* an input that may be absent: NO_VALUE. Unwanted outputs always are */
    PORT_REPEATED = 1 << 1, /* the last input: there may be more of it, up to GRAPH_MAX_INPUTS */
    PORT_ANY_TYPE = 1 << 2, /* an input that may be other than floats: infer() checks its type */
    PORT_OWN = 1 << 3,      /* an output that the node's own launches read: it is kept if no other node reads it */
    /* An input that is 0 in trials, so that what it normalises stays positive and its mask is 1 everywhere. */
    PORT_ZERO_IN_TRIALS = 1 << 4,
    PORT_SAME_LAYOUT = 1 << 5, /* of a fusion: a tensor that is read or written together with the first output */
    /* A matrix that is divided by its rows in trials, so that what it multiplies in each of many steps stays finite. */
    PORT_SMALL_IN_TRIALS = 1 << 6,
    PORT_INDEX = 1 << 7, /* whole numbers that select: they are computed without rounding to bfloat16 */
};

/* Bits of `any_layout`. */
enum {
    IN_PLAIN = 1 << LAYOUT_PLAIN,
    IN_BLOCKED = 1 << LAYOUT_BLOCKED,
    IN_CHANNELS_LAST = 1 << LAYOUT_CHANNELS_LAST,
    IN_ANY_LAYOUT = IN_PLAIN | IN_BLOCKED | IN_CHANNELS_LAST,
    WHERE_FLAT = 1 << 8 /* only for loops that read all values in memory order (loop_is_flat); otherwise plain */
};

struct text;
enum { IMPLEMENTATION_KIND = 48 };
struct implementation {
    const char *name; /* "winograd"; printed, and a key of the blacklist together with the operation's name */
    /* Returns NULL, or why it does not take this problem: a sentence that names the attribute. Depends on shapes,
     * attributes and the device, not on layouts. NULL: it takes every one. */
    const char *(*fits)(const struct problem *problem);
    /* For a problem that it takes: returns NULL, or why the rule passes it over, so that only a tuning table or force
     * selects it where another implementation takes the problem. May be NULL. */
    const char *(*passed_over)(const struct problem *problem);
    /* Appends a sentence on what its name does not tell of this problem, such as the instructions that multiply
     * (layers/remark.h), or nothing. Called for problems that it takes, once the node has its final form, types,
     * fusions and design. `tutti show MODEL --why` prints it. May be NULL. */
    void (*remark)(const struct problem *problem, struct text *text);
    /* For a library that generates kernels for each problem: writes the kind of kernels for this problem; each kind
     * is checked separately. NULL: a check with one problem holds for all. */
    void (*kind)(const struct problem *problem, char text[IMPLEMENTATION_KIND]);
    /* Sets the layouts that it wants for each input and output that exists. NULL: plain everywhere. `any_layout`,
     * bits of layouts, is the alternative: if an input has one of these layouts, every value of the node with that
     * input's axes has it, too. */
    void (*layouts)(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs);
    unsigned any_layout;
    /* Returns in how many parts it can compute, besides its first output, the statistics that the reader of that
     * output begins with; 0 or NULL: it cannot. Reads the design, before the node has its final form. The output
     * `statistics` is float [parts][numbers][channels up to a multiple of V]; numbers: 3 of FUSION_STATISTICS, 2 of
     * FUSION_GATE (graph/fusion.h). */
    int64_t (*statistics)(const struct problem *problem);
    /* The kinds of fusions that it supports (graph/fusion.h); others remain nodes. */
    unsigned fusions;
    /* NULL, or why it cannot apply the functions of the node's fusions. May be NULL: it applies every one. */
    const char *(*cannot_fuse)(const struct problem *problem);
    bool leaves_normalising; /* a batch_norm's: can leave out its first output and give the statistics alone */
    /* The inputs and outputs of the operation that it can also load and store as bfloat16: bit i for number i. The
     * bit of the first output includes the added tensor and the ports with PORT_SAME_LAYOUT. Its kernels get the types
     * by element_options(). */
    unsigned bf16_inputs, bf16_outputs;
    /* Decides how the work is divided into tiles, tasks and parts of sums, in `design_bytes` of zeroed memory. It is
     * called once for all nodes of a plan with the same problem, and sees only what defines such a problem
     * (plan/design.c): the first three inputs of the operation and its first output, attributes, fusions, the device,
     * precision. If there is statistics(), which is called before fusions, types and layouts are known, design() does
     * not see these. The functions below, and statistics(), find the design as problem->design. NULL: none. */
    size_t design_bytes;
    void (*design)(const struct problem *problem, void *design);
    /* Bytes of scratch for the duration of the node. NULL: none. */
    size_t (*workspace)(const struct problem *problem);
    /* Bytes of data made from parameters alone (packed or transformed weights) and the launches that make it: run
     * before the node in training, once after loading in inference. NULL: none. */
    size_t (*prepared)(const struct problem *problem);
    void (*emit_prepare)(const struct problem *problem, const struct operands *operands, struct launch_list *list);
    /* Whether the first output may lie where this input lies (elementwise). NULL: never. */
    bool (*in_place)(const struct problem *problem, int input);
    /* Whether the first output, written over the first input, is the same if that is done again: elements are replaced,
     * none is read. State that a device carries (tutti_carry) is overwritten only then, as a call that fails is
     * repeated. NULL: it is not. */
    bool (*repeatable)(const struct problem *problem);
    /* Appends the launches. Allocates nothing on the device. */
    void (*emit)(const struct problem *problem, const struct operands *operands, struct launch_list *list);
};

/* A list of implementations with one. */
#define ONE(only) ((const struct implementation *const[]) { &(only), NULL })

struct loop;
struct node_arrays; /* layers/interpreter/interpreter.h */
typedef tutti_status operation_reference(const struct problem *problem, const struct node_arrays *arrays);
/* Gradients of a node's outputs, NO_VALUE where there is none; and of its inputs, which are NO_VALUE until set. */
struct node_gradients {
    const int *outputs;
    const bool *wanted; /* of each input */
    int *inputs;
};
struct operation {
    const char *name; /* of the node; op_name() and the schemas have the names of tutti_op() */
    /* In the order of a node's inputs and outputs; layers/layers.h, or the header of the family (layers/indices.h,
     * layers/conv2d/conv2d.h), says what they hold. */
    struct port inputs[GRAPH_MAX_INPUTS], outputs[GRAPH_MAX_OUTPUTS];
    const struct pointwise *pointwise;       /* of work on each element by itself (layers/pointwise.h); else NULL */
    const struct attribute_type *attributes; /* of its nodes; NULL: they have none */
    /* Sets the shape, axes, type and batched of outputs[0 .. output_count-1] from the inputs and attributes, and the
     * node's output_count unless it is 1; or fails with a message that names the attribute and its value. */
    tutti_status (*infer)(const struct graph *graph, struct node *node, struct value *outputs);
    /* Appends the nodes that compute the gradient of each wanted input. `node` is a copy: appending moves the graph's
     * nodes. NULL: the operation has none (integer inputs, gradient nodes). */
    tutti_status (*gradient)(struct graph *graph, const struct node *node, const struct node_gradients *g);
    /* Inference: rewrites node *n to its inference form, and sets *n to the last node that is done. Or sets *same to
     * the value that replaces its first output; the plan then drops the node. NULL: the node stays as it is. */
    tutti_status (*inference)(struct graph *graph, size_t *n, int *same);
    /* Describes the node as a loop over values in the plain layout (layers/loop/loop.h). NULL: the node is not a loop.
     */
    void (*loop)(const struct problem *problem, struct loop *loop);
    /* Computes the outputs on the host, by straight loops in double precision: kernels are compared with it. NULL: the
     * interpreter runs the loop. */
    operation_reference *reference;
    /* Ends with NULL; the last one fits every problem on every device. */
    const struct implementation *const *implementations;
    /* The first-use check of kernels that a program gave, before a plan uses them. Returns TUTTI_OK if they passed one
     * before. NULL: the kernels are Tutti's, which plan/verify.h checks. */
    tutti_status (*check)(struct device *device, const struct problem *problem);
    /* Least possible FLOPs and bytes for the node as it is: its shapes include the number of samples. NULL: 0 FLOPs,
     * the bytes of all operands. */
    double (*flops)(const struct problem *problem);
    double (*bytes)(const struct problem *problem);
    /* Inputs that some implementations read as parameters of types BF16 and INT8 (graph/stored.h): bit i for number i.
     * `fits` refuses others. */
    unsigned stored_inputs;
    /* The operation, with the same ports and attributes, that takes this one's place for such parameters. NULL: none.
     */
    const struct operation *from_stored;
    /* The result is made of parameters, but takes too much memory to be kept between runs. */
    bool made_anew;
    /* In training, each sample's result depends on the others of the batch. */
    bool whole_batch;
    /* A loss: inputs are predictions, targets and constants, outputs are metrics and the predictions' gradient. */
    bool is_loss;
    bool counts_correct; /* a loss's: the second of its metrics means something */
    bool of_classes;     /* a loss's: predictions have an axis of classes */
    bool takes_classes;  /* a loss's: targets are class numbers */
    bool takes_lists;    /* such a loss's: a list for each sample, without the blank (loss_attributes.blank) */
    /* The output is the input's memory (reshape, flatten). No launches; plain layout. */
    bool alias;
};

/* The port of input i; NULL if the operation has none there. */
const struct port *operation_input(const struct operation *operation, int i);

/* layers/operations.c: every operation, one line each; ends with NULL. */
extern const struct operation *const operations[];

/* The operations that passes append, by their purpose; also defined in layers/operations.c. */
struct structural_operations {
    const struct operation *sum;     /* of two gradients of one value */
    const struct operation *scale;   /* of statistics that several nodes give: struct pointwise_attributes */
    const struct operation *copy;    /* of a gradient that needs memory of its own */
    const struct operation *total;   /* of several losses: struct loss_total_attributes (layers/loss/loss.h) */
    const struct operation *reorder; /* to another layout: struct reorder_attributes (layers/layers.h) */
    const struct operation *floats;  /* of a parameter that is stored in fewer bits */
    const struct operation *loop;    /* several nodes in one: struct loop_attributes (layers/loop/loop.h) */
};
extern const struct structural_operations structural;

#endif
