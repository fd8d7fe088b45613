/* Looking into devices, networks and trainers: what devices can do; layers, tensors and nodes, for programs that print,
 * draw or convert networks; what devices do, how long it takes, and why. The conventions are those of tutti.h. */
#ifndef TUTTI_INSPECT_H
#define TUTTI_INSPECT_H

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------------------------------------------- devices ---- */

/* Tells by which instructions an opened device of class "cpu" computes bf16 dot products in products with
 * this precision: *form is "tiles" (AMX), "dots" (dot products, AVX512_BF16) or "plain" (none, for tests). If the
 * device computes none, *form is NULL and *refusal says why. Both are valid until the runtime is closed. Errors:
 * TUTTI_NO_DEVICE; TUTTI_INVALID if there is no such precision. */
TUTTI_API tutti_status tutti_device_bf16(
    const tutti_runtime *runtime, int position, tutti_precision precision, const char **form, const char **refusal);

/* Calls each() for every kernel implementation, and every program ("compiler/..."), that an opened device does not
 * use because it failed a check or its driver could not compile it. The cache folder stores these results. The texts
 * are valid during the call. Errors: TUTTI_NO_DEVICE. */
TUTTI_API tutti_status tutti_device_refusals(const tutti_runtime *runtime, int position,
    void (*each)(void *user, const char *kernels, const char *reason), void *user);

/* What a device can do at most, per second. Products are multiply-adds, which count as two. */
typedef struct tutti_device_peaks {
    size_t size;       /* sizeof(tutti_device_peaks), or 0; set it before the call */
    double flops;      /* of floats, in registers */
    double bytes;      /* read and written, in memory larger than caches */
    double bf16_flops; /* of bfloat16 numbers, as tutti_device_bf16() tells; 0: none */
} tutti_device_peaks;
/* Measures the peaks of an opened device that has no other work meanwhile. It takes up to a few seconds, and up to
 * 512 MiB of the device. Errors: TUTTI_NO_DEVICE; TUTTI_DEVICE_MEMORY; the status of the OpenCL call that failed. */
TUTTI_API tutti_status tutti_device_measure(tutti_runtime *runtime, int position, tutti_device_peaks *peaks);

/* ----------------------------------------------------------------------------------------------- operations ---- */

/* The types of attributes of tutti_op(), and how their values are written. Axes are those of a sample, counted from the
 * end if negative. */
typedef enum tutti_attribute_type {
    TUTTI_ATTRIBUTE_NUMBER,   /* 0.5; also inf and -inf */
    TUTTI_ATTRIBUTE_NUMBERS,  /* 0.5,2 */
    TUTTI_ATTRIBUTE_FLAG,     /* 0 or 1 */
    TUTTI_ATTRIBUTE_INTEGER,  /* 3 */
    TUTTI_ATTRIBUTE_INTEGERS, /* 3,-1 */
    TUTTI_ATTRIBUTE_AXIS,     /* -1 */
    TUTTI_ATTRIBUTE_AXES,     /* 0,-1: different ones */
    TUTTI_ATTRIBUTE_ORDER,    /* 2,0,1: all of them, in another order */
    TUTTI_ATTRIBUTE_SHAPE,    /* 3,-1: of a sample; -2 is TUTTI_SEQUENCE */
    TUTTI_ATTRIBUTE_CHOICE,   /* one of several words */
    TUTTI_ATTRIBUTE_TEXT      /* without spaces */
} tutti_attribute_type;

/* How the ONNX operator to which an operation maps directly takes its inputs and attributes. */
typedef enum tutti_onnx_form {
    TUTTI_ONNX_NONE,        /* no operator, or not directly: its inputs or attributes differ */
    TUTTI_ONNX_ELEMENTWISE, /* inputs are broadcast */
    TUTTI_ONNX_COMPARISON,  /* the same, and the result is of bool there */
    TUTTI_ONNX_LOGIC,       /* the same, and the inputs are, too */
    TUTTI_ONNX_REDUCTION,   /* a tensor, and the axes as a second input */
    TUTTI_ONNX_TENSOR,  /* a tensor, and attributes by name; without an axis, the batch is the tensor's first axis */
    TUTTI_ONNX_POSITION /* the same, and the result is of int64 there */
} tutti_onnx_form;

/* The operations of tutti_op(), by groups of one kind, for programs that list, check or generate calls. Positions
 * count from 0 and may differ in another version of the library. Texts are valid as long as the program runs. These
 * functions need no device and may be called by several threads at once. */
typedef struct tutti_operation_info {
    size_t size;         /* sizeof(tutti_operation_info), or 0; set it before the call */
    const char *name;    /* for tutti_op() */
    const char *text;    /* what it computes, in one line; x, a, b, c are its inputs */
    const char *group;   /* "Elementwise" */
    int input_count;     /* inputs that have a name, for tutti_operation_input() */
    int attribute_count; /* for tutti_operation_attribute(); `name`, which all operations have, does not count */
    int min_inputs;      /* how many tensors tutti_op() takes at least, */
    int max_inputs;   /* and at most: more than input_count where the last one may be repeated; INT_MAX: any number */
    const char *onnx; /* the ONNX operator to which it maps directly (tutti_onnx_form); NULL: none, or other inputs or
                       * attributes, which tutti_import_onnx() and tutti_export_onnx() map by a function */
    tutti_onnx_form onnx_form;
    int onnx_opset;      /* the first one with this operator; 0: all that Tutti writes have it */
    bool onnx_overflows; /* its result can leave the integer type that its inputs have in ONNX */
} tutti_operation_info;
/* Returns the number of operations. */
TUTTI_API int tutti_operations(void);
/* Returns the position of an operation; -1 if there is none of this name. */
TUTTI_API int tutti_operation_find(const char *name);
/* Returns it by the name of ONNX's operator (tutti_operation_info.onnx). */
TUTTI_API int tutti_operation_find_onnx(const char *name);
/* Describes the operation at `position`. Errors: TUTTI_INVALID if there is no such operation. */
TUTTI_API tutti_status tutti_operation(int position, tutti_operation_info *info);

typedef struct tutti_operation_input_info {
    size_t size;      /* sizeof(tutti_operation_input_info), or 0; set it before the call */
    const char *name; /* "weight" */
    const char *text; /* type and shape of a sample, or of a parameter: "[units, features]"; NULL: any */
    bool optional;
    bool repeated; /* it may be given again */
} tutti_operation_input_info;
/* Describes input `index` of an operation. Errors: TUTTI_INVALID if there is no such operation or input. */
TUTTI_API tutti_status tutti_operation_input(int position, int index, tutti_operation_input_info *info);

typedef struct tutti_operation_attribute_info {
    size_t size;      /* sizeof(tutti_operation_attribute_info), or 0; set it before the call */
    const char *name; /* "axis", the KEY of KEY=VALUE */
    const char *text; /* what it does, in one line */
    tutti_attribute_type type;
    const char *values;        /* how values of this type are written: "a whole number" */
    const char *default_value; /* NULL: it is required, or `text` tells what happens without it */
    const char *choices;       /* of TUTTI_ATTRIBUTE_CHOICE: its words, with a space between; else NULL */
    bool required;
    const char *onnx; /* its name in ONNX, with the same values and default; NULL: there is none */
} tutti_operation_attribute_info;
/* Describes attribute `index` of an operation. Errors: TUTTI_INVALID if there is no such operation or attribute. */
TUTTI_API tutti_status tutti_operation_attribute(int position, int index, tutti_operation_attribute_info *info);

/* ------------------------------------------------------------------------------------------------- networks ---- */

/* One layer, as `tutti show` prints it. */
typedef struct tutti_layer_info {
    const char *name, *operation; /* valid until the network is freed */
    tutti_shape shape;            /* of a sample of the layer's first output */
    /* Number of trainable values of this layer; running statistics are not counted. A tutti_parameter() counts in the
     * first layer that reads it. */
    int64_t parameters;
    /* FLOPs of the forward pass of one sample, with sequences of length 1; a multiply-add counts as two. */
    double flops;
} tutti_layer_info;
/* Returns the number of layers. */
TUTTI_API int tutti_network_layers(const tutti_network *network);
/* Describes the layer at `position`, from 0, in the order of the calls that added them. Errors: TUTTI_INVALID if there
 * is no such layer. */
TUTTI_API tutti_status tutti_network_layer(const tutti_network *network, int position, tutti_layer_info *info);
/* Writes to *from the position of the layer that gives the layer's input `index`, from 0, or -1 for an input of the
 * network. A layer that is given twice counts once; parameters are not counted. Errors: TUTTI_INVALID if there is no
 * such layer, or past the last input. */
TUTTI_API tutti_status tutti_network_layer_input(const tutti_network *network, int position, int index, int *from);

/* Where the values of a tensor come from: a layer, the caller, the parameters, or tutti_constant(). */
typedef enum tutti_tensor_kind {
    TUTTI_TENSOR_LAYER,
    TUTTI_TENSOR_INPUT,
    TUTTI_TENSOR_PARAMETER,
    TUTTI_TENSOR_STATISTIC, /* a running statistic */
    TUTTI_TENSOR_CONSTANT
} tutti_tensor_kind;
typedef struct tutti_tensor_info {
    size_t size; /* sizeof(tutti_tensor_info), or 0; set it before the call */
    tutti_tensor_kind kind;
    tutti_dtype dtype;
    bool for_each_sample; /* it has a batch axis before the shape, as inputs and what depends on them */
    tutti_shape shape;    /* of a sample, or of the whole tensor */
    const char *name;     /* valid until the network is freed; NULL for those of layers */
    const void *values;   /* of a constant, valid until the network is freed; else NULL */
} tutti_tensor_info;
/* Describes a tensor. Errors: TUTTI_INVALID if it is not of this network. */
TUTTI_API tutti_status tutti_network_tensor(const tutti_network *network, tutti_tensor tensor, tutti_tensor_info *info);

/* The network as a list of nodes, for programs that write it in another form. A layer is one node or several; a node's
 * inputs come before it. docs/operations.md has the operations and their attributes. */
#define TUTTI_NODE_PORTS 16
typedef struct tutti_node_info {
    size_t size;           /* sizeof(tutti_node_info), or 0; set it before the call */
    const char *operation; /* valid until the network is freed, as `layer` is */
    const char *layer;     /* the name of its layer */
    int input_count, output_count;
    tutti_tensor inputs[TUTTI_NODE_PORTS], outputs[TUTTI_NODE_PORTS]; /* id negative: absent */
} tutti_node_info;
TUTTI_API int tutti_network_nodes(const tutti_network *network); /* the number of nodes */
/* Describes the node at `position`, from 0. Errors: TUTTI_INVALID if there is no such node. */
TUTTI_API tutti_status tutti_network_node(const tutti_network *network, int position, tutti_node_info *info);
/* Returns a node's attributes as text: "KEY=NUMBER,NUMBER ...", with one space between, as tutti_op() takes them where
 * it has the attribute. Axes and shapes are those of a sample. Free the text with free(). Returns NULL on failure. */
TUTTI_API char *tutti_network_attributes(const tutti_network *network, int position);

/* ------------------------------------------------------------------------------------------------- trainers ---- */

/* Work of one device since tutti_compile() or tutti_report_reset(). */
typedef struct tutti_device_report {
    int index;             /* of the device, as in tutti_device_info */
    const char *name;      /* valid until the runtime is closed */
    int64_t samples;       /* trained */
    double busy_s;         /* seconds spent computing them */
    double samples_per_s;  /* samples / busy_s; 0 before the first step */
    int64_t share;         /* samples of the device in a full batch */
    uint64_t memory_bytes; /* allocated on the device */
    double build_s;        /* seconds spent making plans: building programs and warming kernels up */
} tutti_device_report;
/* Writes the report of the opened device at `position`. Errors: TUTTI_INVALID if there is no such device. */
TUTTI_API tutti_status tutti_report(const tutti_trainer *trainer, int position, tutti_device_report *report);
/* Sets samples and busy_s of tutti_report() and all times of tutti_report_times() to 0. Accepts NULL. */
TUTTI_API void tutti_report_reset(tutti_trainer *trainer);

/* Times of one device, in seconds over all training steps since tutti_compile() or tutti_report_reset(), but not
 * tutti_backward(): compute_s + transfer_s + idle_s = step_s. */
typedef struct tutti_device_times {
    size_t size; /* sizeof(tutti_device_times), or 0; set it before the call */
    int64_t steps;
    double step_s;
    double compute_s;  /* from the device's first command to its last, without transfer_s */
    double transfer_s; /* copies between host and device, measured by the driver, that do not overlap with computing */
    double idle_s;     /* waiting for other devices and for the host's part of the exchange */
    /* Time of one step with the device and without it, if automatic shares leave the device out; else 0. */
    double with_s, without_s;
    /* automatic: shares follow the measured speed. settled: no other division of the batch is being tried or
     * prepared. */
    bool automatic, settled;
    /* Copies to the device (sent) and from it (received): bytes, seconds, and the seconds that overlap with computing.
     * All are 0 if host and device share memory. */
    double sent_bytes, sent_s, received_bytes, received_s, sent_overlapped_s, received_overlapped_s;
    double data_s; /* waiting for the samples of steps, in tutti_fit() and tutti_fit_source(); not a part of step_s */
} tutti_device_times;
/* Writes the times of the opened device at `position`. Errors: TUTTI_INVALID if there is no such device, or the size is
 * impossible. */
TUTTI_API tutti_status tutti_report_times(const tutti_trainer *trainer, int position, tutti_device_times *times);
/* Returns a text about the plan of a device, for training, or for inference if the loss is TUTTI_LOSS_NONE: the
 * kernel chosen for each node and why each other kernel was refused. With `passes` it returns the graph after each
 * pass instead, and then the plan's commands in the order in which they run, one per line. Free the text with free().
 * Returns NULL on failure. */
TUTTI_API char *tutti_explain(tutti_trainer *trainer, int position, bool passes);
/* Returns a text about the times of the last plan that ran on a device: by operation, by kernel and by command, with
 * the rates that the least possible FLOPs and bytes imply, and their share of the device's measured peak. It runs the
 * plan a few times; parameters and the last step's gradients stay as they are. `trace` names a file to write for
 * chrome://tracing, or is NULL. Free the text with free(). Returns NULL on failure, also before the first step,
 * evaluation or inference. */
TUTTI_API char *tutti_profile(tutti_trainer *trainer, int position, const char *trace);

/* One launch of a kernel in a plan. */
typedef struct tutti_launch {
    int layer;             /* its position in the network (tutti_network_layer()); -1: none, as of the update */
    const char *operation; /* of the plan's node, such as conv2d or conv2d_data_gradient */
    const char *implementation, *kernel;
    double seconds;      /* shortest of a few; 0 where time was not asked for */
    double flops, bytes; /* least possible; 0: not known */
} tutti_launch;
/* Calls each() for the launches of a device's last plan for training, or of its last plan where none trains, in their
 * order. With `time` it runs the plan a few times before, as tutti_profile(). The strings are valid during the call.
 * Errors: TUTTI_INVALID if there is no such device or it is lost. */
TUTTI_API tutti_status tutti_launches(
    tutti_trainer *trainer, int position, bool time, void (*each)(void *user, const tutti_launch *launch), void *user);

#ifdef __cplusplus
}
#endif
#endif
