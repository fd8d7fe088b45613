/* Shared by the files of this folder and of parameters/ while a network is made from a file: the values that names
 * stand for, and the node whose layer is added. */
#ifndef ONNX_IMPORT_H
#define ONNX_IMPORT_H

#include "onnx/functions.h"
#include "onnx/tensor.h"
#include "tutti_onnx.h"

/* In a file, the batch is an axis like any other. In a network, it is implied. This struct says which axis of the file
 * is the batch; the other axes are those of a sample, in order. */
enum { NO_AXIS = -1 };
struct batch_axis {
    bool batched; /* each sample has elements of its own */
    /* Number in the file. NO_AXIS with `batched`: a sample is the whole value (tutti_onnx_options.whole); without: the
     * value has no batch. */
    int axis;
    /* The file's axis has `outer` times the number of samples times `rows_per_sample` elements. The tensor has
     * `rows_per_sample` rows for each sample (the operation `fold`, which merges an axis into the batch). If `outer` is
     * not 1, the sample has an axis of this size with the number `axis`. Example: [T*N*R, C] with N samples, axis 0:
     * outer T, rows_per_sample R; the tensor has N*R samples of shape [T, C]. The usual case, [N, C]: both are 1. */
    int64_t rows_per_sample, outer;
};
#define NO_BATCH ((struct batch_axis) { .axis = NO_AXIS, .rows_per_sample = 1, .outer = 1 })

/* Indices that grow with the sample. In the file, sample s has the index i + s * factor; the network stores i. Example:
 * rows of a flattened [N x T] table, factor T. factor 0: the indices do not grow. */
struct batch_index {
    int64_t factor;
    /* Along the file's last axis, the position of the index that grows. ALL_COMPONENTS: all grow. SIZES_ONLY: of the
     * value, only the sizes are known. */
    int component;
};
enum { ALL_COMPONENTS = -1, SIZES_ONLY = -2 };
/* A constant input of a node, of indices that grow with the sample. factor 0: there is none. */
struct constant_index {
    int64_t factor;
    size_t position; /* of the input */
};
/* In a file for any number of samples, arrays with an integer for each sample are computed for this number of samples:
 * a prime, which no other axis has as its size. */
enum { PLACEHOLDER_BATCH = 53 };

/* An initialiser that has the elements of another tensor, or of some of its rows, with the axes in another order.
 * Axes of size 1 are left out: axis i of the initialiser is axis order[i] of the other tensor. */
struct view {
    struct onnx_value *of; /* NULL: the initialiser is not a view */
    int order[ARRAY_MAX_RANK];
    int64_t first, rows; /* rows 0: all */
};

/* How the file's nodes use a value. */
struct node_usage {
    int nodes; /* number of inputs of nodes that read its elements */
    int reads; /* inputs so far for which parameters/merged.c found no name of their own; `nodes` shrinks by the others
                */
    bool is_weight; /* some layer reads it as its weights */
    int demand;     /* what its elements affect in the end (parameters/trained.c) */
};

/* The exported module's parameter or buffer that an initialiser holds, and its names; NULL: not known. Examples:
 *   initialiser                  state_name    renamed      label         parameter of the network
 *   fc.weight                    fc.weight     -            -             fc.weight
 *   val_3, fc.weight transposed  fc.weight     fc.weight    -             fc.weight, in the state dict's shape
 *   out.weight, tied to in       out.weight    -            in.weight     in.weight: PyTorch has the first name
 *   val_5, of two parameters     -             -            -             val_5 */
struct origin {
    const char *kind;        /* "PARAMETER", "BUFFER" and so on */
    const char *folded_from; /* list of the names that the exporter computed it from */
    char *state_name;        /* the only entry of the state dict that it is or was computed from */
    const char *merged_name; /* state_name of the initialiser with which it was merged, whose folded_from it has */
    char *renamed;           /* name of the parameter that the initialiser holds in another form */
    char *label;             /* name of the parameter, if the initialiser has its form, but another name */
    bool ambiguous;          /* several initialisers would get the name `renamed` */
};

struct sequence {
    struct onnx_value **elements; /* NULL: the value is not a sequence */
    size_t count;
    struct onnx_value *own; /* elements that no name of the file stands for */
};

/* What is known of the floats that the file has for a value. */
enum finiteness { NOT_EXAMINED, FINITE, NOT_FINITE };

/* The value that a name of the file stands for: numbers, a tensor of the network, or both. */
struct onnx_value {
    const char *name;
    int type;                        /* ONNX's number of the type of its elements; 0: not known yet */
    int declared;                    /* the type that the file declares; 0: none */
    const Onnx__TensorProto *stored; /* the numbers as the file has them, or NULL */
    bool initialiser;                /* of the graph, not of a Constant: it can be a parameter */
    bool forced_parameter;           /* a parameter, although it is a known input, or one number (trained.c) */
    bool copied;                     /* by Identity, of an initialiser or such an input */
    struct array *array;             /* known numbers; NULL: not read or computed yet, or not known */
    tutti_tensor tensor;             /* id < 0: not in the network yet */
    tutti_tensor statistic;          /* a running statistic with these numbers; id < 0: none */
    tutti_tensor floats;             /* the tensor as float32; id < 0: it is float32, or was not converted yet */
    bool converts;                   /* the tensor is not of float32 */
    struct batch_axis batch;         /* of the tensor */
    struct batch_index index;        /* of the tensor */
    /* If only a size suggests that the axis `batch.axis` is the batch: the tensor in which it is not. id < 0: none. */
    tutti_tensor unbatched;
    unsigned repeated; /* bits of axes along which a value without a batch repeats its elements, as by Expand */
    struct node_usage usage;
    struct origin origin;
    bool apart;                 /* the exporter merged it with another initialiser, whose numbers it has */
    bool constant;              /* an initialiser that was found not to be a parameter; see value_trains(), too */
    bool noted;                 /* a note says why it is not trained */
    enum finiteness floats_are; /* value_is_finite() sets it */
    struct view view;           /* of another initialiser, or of the parameter `origin.renamed` */
    struct sequence sequence;   /* of known length */
};

struct import {
    tutti_network *network;
    tutti_onnx *made;
    const tutti_onnx_options *options;
    Onnx__ModelProto *model; /* its functions are inlined */
    char *folder;            /* of the file */
    int64_t opset;
    struct expanded expanded;                /* functions and branches */
    int64_t fixed_batch;                     /* number of samples that the file is made for; 0: any */
    const Onnx__ValueInfoProto *first_input; /* first input whose values are not known; NULL: not found yet */
    bool uses_placeholder_batch;             /* arrays were computed for PLACEHOLDER_BATCH samples */
    struct constant_index constant_index;    /* of the node at hand */
    tutti_tensor per_sample;                 /* one number for each sample; id < 0: no node has needed it yet */
    struct onnx_value *values;
    size_t value_count;
    size_t training_norms;     /* batch normalisations with training_mode 1 */
    const char *training_norm; /* the first one's name */
    size_t sequence_elements;  /* of all sequences so far */
    size_t computed;           /* bytes of arrays that nodes made, and of copies of initialisers */
    void *names;               /* tree of tsearch() over values */
    void *renamed;             /* tree of tsearch() over the names `origin.renamed` */
    bool paths, scopes;        /* names of nodes are paths ("/fc/MatMul"); nodes tell their scopes */
    const char *logits;        /* value whose softmax is left out, or NULL */
    const char *normalised;    /* output of a Normalizer of `logits`, which is left out, too; or NULL */
};

/* " (model.py:8: x = self.fc(x))", where the file has the stack of the exported program; else "". */
struct source_line {
    char text[256];
};
struct source_line node_source(const Onnx__NodeProto *node);
/* messages.c: passes a line to the caller's note(), for `tutti show --why`. */
void import_note(const struct import *import, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The first names of a list, for a note: "a, b", and after them ", ..." if there are more. */
struct name_list {
    char names[256];
    size_t length, count;
};
void name_list_add(struct name_list *list, const char *name);
const char *name_list_end(const struct name_list *list);
/* linear.c: before the names are read. */
tutti_status import_read_classes(const struct import *import);
/* Steps of read_parameters(), before the first node, in this order; signature_read() is the first. */
struct signature;
/* parameters/merged.c: finds whether names are paths, and whether nodes tell scopes. */
void import_find_paths(struct import *import);
/* parameters/biases.c: gives layers the biases of zeros that the exporter left out. Called before import_take_apart(),
 * so that no merged initialiser gets the name of such a bias, and after it, for layers whose weight was merged. */
tutti_status import_restore_biases(struct import *import, const struct signature *signature);
tutti_status import_take_apart(struct import *import, const struct signature *signature);     /* parameters/merged.c */
tutti_status import_join_cut(struct import *import);                                          /* parameters/cut.c */
tutti_status import_restore_names(struct import *import);                                     /* parameters/names.c */
tutti_status import_find_constants(struct import *import, const struct signature *signature); /* parameters/trained.c */
void import_note_left_out(const struct import *import, const struct signature *signature);    /* parameters/biases.c */
/* parameters/layer_names.c: the layer of a node: "block.fc1", by its scopes or its path. NULL: not known, or the whole
 * module. */
char *import_layer(const Onnx__NodeProto *node);
char *import_layer_in_path(const char *path);
const char *import_scopes(const Onnx__NodeProto *node);                               /* a list of texts; NULL: none */
const Onnx__StringStringEntryProto *import_scopes_entry(const Onnx__NodeProto *node); /* where the node has them */
/* In paths, a layer's first call is "attention" and its second one "attention_1". Returns the length of the first. */
size_t import_length_of_first(const struct import *import, const char *call);
/* "fc1.weight" for the product that node n is. NULL: not known, or no memory. */
char *import_weight_name(const struct import *import, size_t n);
/* The initialiser that one of the next nodes adds to what node n makes, as a bias. NULL: none. */
struct onnx_value *import_added_to(const struct import *import, size_t n);
void import_note_quantised(const struct import *import);  /* quantised.c */
void import_note_batch_norm(const struct import *import); /* batch_norm.c */
/* sizes.c: finds the size of an axis that the file leaves open. `asked`: the shape of a sample of this input, or rank
 * 0. Errors: TUTTI_SHAPE if the caller gives no size, or two. */
tutti_status import_open_size(
    const struct import *import, const Onnx__ValueInfoProto *input, const tutti_shape *asked, int axis, int64_t *size);
/* values.c: NULL if the file does not have the name. */
struct onnx_value *import_find(const struct import *import, const char *name);
/* Adds a name that stands for no value yet. It must outlive the import. */
tutti_status import_add_name(struct import *import, const char *name, struct onnx_value **made);
/* Reads the numbers of an initialiser, unless they were read already. */
tutti_status import_load(const struct import *import, struct onnx_value *value);
/* The number of elements that the file has; 0: none, or not known. */
size_t stored_elements(const struct onnx_value *value);
/* Whether it has elements of an integer type or bool that are known. */
bool value_is_integers(const struct onnx_value *value);
/* Whether no float is infinite or NaN. Reads those that the file has at the first question. */
bool value_is_finite(const struct import *import, struct onnx_value *value);
/* Whether it is a parameter, or a copy of one. An initialiser is, unless import_find_constants() found that it is a
 * constant, or it is of integers, one number that is not `forced_parameter`, or not finite. */
bool value_trains(const struct import *import, struct onnx_value *value);
/* The tensor's shape: of a sample, if it has a batch. */
tutti_status value_shape(const struct import *import, const struct onnx_value *value, tutti_shape *shape);
/* The number of samples that the file is made for, or PLACEHOLDER_BATCH if arrays were computed for it; 0: neither. */
int64_t import_samples(const struct import *import);
/* Counts memory that the file has no bytes for, so that many nodes of a small file cannot take the host's memory.
 * Refuses more than 1 GiB in total, including the copies of uniform initialisers. */
tutti_status import_count_bytes(struct import *import, size_t bytes);
/* batch_axis.c: whether an axis of the file is the batch; whether a sample is the whole value. */
bool batch_has_axis(const struct batch_axis *batch_axis);
bool batch_is_whole(const struct batch_axis *batch_axis);
/* The batch axis of an input; NO_AXIS: a sample is all of it. */
int import_batch_axis(const struct import *import, const char *input);
/* The sizes of a value as the file has them. */
tutti_status value_sizes(
    const struct import *import, const struct onnx_value *value, struct symbolic_integer *sizes, int *rank);

/* node.c. The node whose layer is added. Functions on it give a message that a caller may return as it is. */
struct onnx_node {
    struct import *import;
    const Onnx__NodeProto *proto;
    const char *operation; /* of tutti_op(): the table's (struct onnx_operator), or NULL */
    int type;              /* of the first output's elements, from that table; 0: that of the first input */
    bool broadcasts;       /* its first output has the elements of its inputs, which are broadcast, one by one */
};
typedef tutti_status node_function(struct onnx_node *node);

/* Whether a node's type is in a list that ends with NULL. */
bool type_is_among(const char *type, const char *const *list);
/* Return an input or an output; NULL if the node does not have it. */
struct onnx_value *node_input(const struct onnx_node *node, size_t position);
struct onnx_value *node_output(const struct onnx_node *node, size_t position);

/* Attributes, or `fallback` if the node does not have them. Lists are NULL then. */
int64_t node_integer(const struct onnx_node *node, const char *name, int64_t fallback);
float node_number(const struct onnx_node *node, const char *name, float fallback);
bool node_attribute_is(
    const struct onnx_node *node, const char *name, const char *text); /* whether the attribute is this text */
const int64_t *node_integers(const struct onnx_node *node, const char *name, size_t *count);
const Onnx__AttributeProto *node_attribute(const struct onnx_node *node, const char *name);
/* The type to which Cast or CastLike converts. */
tutti_status node_cast_type(const struct onnx_node *node, int *type);

/* Reads the numbers of an input that is not a tensor of the network. Errors: TUTTI_UNSUPPORTED if they are not known
 * when the file is read. */
tutti_status node_array(const struct onnx_node *node, size_t position, const struct array **array);
/* Reads the numbers of an input as at most `most` integers without symbols, such as axes and pads. *count is 0 if the
 * input is absent. */
tutti_status node_list(const struct onnx_node *node, size_t position, int64_t *list, int most, int *count);
/* Like node_list(), but the input must exist, and symbols become numbers of samples. For arrays with an axis of
 * samples. */
tutti_status node_sizes(const struct onnx_node *node, size_t position, int64_t *list, int most, int *count);
/* Reads a list that older opsets have as an attribute, and newer ones as an input. */
tutti_status node_list_or_attribute(
    const struct onnx_node *node, const char *name, size_t position, int64_t *list, int most, int *count);
/* One number; `fallback` if the input is absent. */
tutti_status node_scalar(const struct onnx_node *node, size_t position, float fallback, float *scalar);
/* Reads axes of the file as bits. */
tutti_status axes_read(const int64_t *axes, int count, int rank, unsigned *bits);
/* Whether all inputs are numbers that are known now. Floats of initialisers with several elements are not, whether they
 * train or not; nor is what has `forced_parameter`. */
bool node_inputs_are_known(const struct onnx_node *node);

/* operands.c: an input as a tensor of float32; parameters and constants are added at their first use. The axes of
 * `shape` are the tensor's: of a sample, if it has a batch. */
struct operand {
    tutti_tensor tensor;
    tutti_shape shape;
    struct batch_axis batch;
};
tutti_status node_operand(const struct onnx_node *node, size_t position, struct operand *operand);
/* Reads an input in its own type; node_operand() converts it to float32. Integers are int32 if they are an input of the
 * network or a constant; otherwise they are float32 already. */
tutti_status node_operand_as_is(const struct onnx_node *node, size_t position, struct operand *operand);
/* batch_axis.c. node_batched(): the operand must have a batch; with the option `whole`, an operand without one is
 * repeated for each sample. node_batched_if_whole(): like node_batched() with `whole`; without it, accepts any operand.
 * node_fixed(): the operand must not have a batch, such as weights. */
tutti_status node_batched(const struct onnx_node *node, size_t position, struct operand *operand);
tutti_status node_batched_if_whole(const struct onnx_node *node, size_t position, struct operand *operand);
tutti_status node_fixed(const struct onnx_node *node, size_t position, struct operand *operand);
/* Reads an operand for operations on samples [C, ...]: the file's first axis must be the batch; if a sample is the
 * whole value, its first axis becomes part of the batch. operand_batch_first(): for an operand of node_batched().
 * node_set_output_batch_first() takes the result of the operation; `x` is this operand. */
tutti_status node_batch_first(const struct onnx_node *node, size_t position, struct operand *operand);
tutti_status operand_batch_first(const struct onnx_node *node, size_t position, struct operand *operand);
tutti_status node_set_output_batch_first(
    const struct onnx_node *node, size_t output, tutti_tensor tensor, const struct operand *x);
/* The number of axes in the file; whether one of them is the batch. */
int operand_rank(const struct operand *operand);
bool operand_has_batch_axis(const struct operand *operand);
/* The tensor's axis for an axis of the file, which may be negative. Refuses the batch. */
tutti_status operand_axis(const struct operand *operand, int64_t axis, int *tensor_axis);
/* node_spread(): repeats a tensor for each sample. node_spread_operand(): keeps the operand's shape, also that of one
 * number. */
tutti_status node_spread(const struct onnx_node *node, tutti_tensor *tensor);
tutti_status node_spread_operand(const struct onnx_node *node, struct operand *operand);
/* The batch axis of a result with `change` more axes before the batch axis; negative: fewer. */
struct batch_axis batch_axis_moved(struct batch_axis batch_axis, int change);

/* node_operations.c: adds an operation of tutti_op(), with the node's name; node_plain(): without attributes. */
tutti_tensor node_plain(const struct onnx_node *node, const char *operation, const tutti_tensor *inputs, int count);
tutti_tensor node_op(const struct onnx_node *node, const char *operation, const tutti_tensor *inputs, int count,
    const char *attributes, ...) __attribute__((format(printf, 5, 6)));
/* node_elements(), node_binary(): add an elementwise operation. node_constant(): a constant of one number; as their
 * input, it adds no axis to the result. */
tutti_tensor node_elements(const struct onnx_node *node, const char *operation, const tutti_tensor *inputs, int count);
tutti_tensor node_binary(const struct onnx_node *node, const char *operation, tutti_tensor a, tutti_tensor b);
tutti_tensor node_constant(const struct onnx_node *node, float number);
/* A constant of int32, named after one of the node's outputs. */
tutti_tensor node_integer_constant(
    const struct onnx_node *node, size_t output, const char *suffix, tutti_shape shape, const int32_t *numbers);
/* node_wrapped(): converts integers to this type; types of at most 16 bits and unsigned types wrap around.
 * node_truncated(): removes the fraction of a power, which may be off by 16 units of its last bit. */
tutti_tensor node_wrapped(const struct onnx_node *node, tutti_tensor x, int type);
tutti_tensor node_truncated(const struct onnx_node *node, tutti_tensor x);
/* list_print(): a list as "2,0,1", for attributes. */
struct list_text {
    char text[8 * 21 + 1]; /* TUTTI_MAX_RANK numbers of up to 20 characters */
};
struct list_text list_print(const int64_t *numbers, int count);
/* Give a tensor another shape, of a sample if it has a batch; or another order of its axes. */
tutti_tensor node_reshape(const struct onnx_node *node, tutti_tensor x, const tutti_shape *shape);
tutti_tensor node_permuted(const struct onnx_node *node, tutti_tensor x, const int *order, int rank);
/* Elements `start` to `end` - 1 along an axis of a sample. */
tutti_tensor node_cut(const struct onnx_node *node, tutti_tensor x, int axis, int64_t start, int64_t end);
/* operands.c: make the first output the first input (node_same()) or another value. A type that node_set_type() set
 * before stays. */
tutti_status node_same(const struct onnx_node *node);
tutti_status node_copy(const struct onnx_node *node, struct onnx_value *value);
/* node.c: set the first output of the node, or another one. A tensor with a negative id stands for the failure of the
 * function that returned it. The type is that of the first input, until node_set_type() sets another one. */
tutti_status node_set_output(const struct onnx_node *node, tutti_tensor tensor, struct batch_axis batch_axis);
tutti_status node_set_output_at(
    const struct onnx_node *node, size_t output, tutti_tensor tensor, struct batch_axis batch_axis);
void node_set_type(const struct onnx_node *node, size_t output, int type);
/* Makes this array, which is freed with the import, the node's first output. NULL: TUTTI_NO_MEMORY. Refuses what
 * import_count_bytes() refuses. */
tutti_status node_set_array(const struct onnx_node *node, struct array *array);
tutti_status node_set_array_at(const struct onnx_node *node, size_t output, struct array *array); /* another output */
/* messages.c: returns TUTTI_UNSUPPORTED with this message; the caller of the node's function puts the node's name
 * before it. */
tutti_status node_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
