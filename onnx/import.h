/* What the files of this room share while a network is made: the values that the file's names stand for, and the node
 * whose layer is added. */
#ifndef ONNX_IMPORT_H
#define ONNX_IMPORT_H

#include "onnx/functions.h"
#include "onnx/tensor.h"
#include "tutti_onnx.h"

/* The batch is an axis as others in a file. In a network it is not written. So a place says which axis of the file it
 * is; the others are those of a sample, in order. */
enum { HIDDEN = -1 };
struct place {
    bool batched;
    int axis; /* of the file; HIDDEN: a sample is the whole value (tutti_onnx_options.whole) */
    /* The file's axis has `ahead` times the number of samples times `rows` elements. The tensor has `rows` for each
     * sample (the operation "fold"). If `ahead` is not 1, the sample has an axis of this size with the number `axis`.
     */
    int64_t rows, ahead;
};

/* Numbers in which samples are counted, as indices along the batch are: those in the file are larger than those in the
 * network by `factor` times the number of the sample. factor 0: they do not count samples. */
struct counting {
    int64_t factor;
    int component; /* along the file's last axis, of the numbers that count; EACH: all do; SIZES: only sizes are known
                    */
};
enum { EACH = -1, SIZES = -2 };

/* An initialiser whose elements are those of another tensor in another order of its axes: without axes of size 1, axis
 * i is axis order[i] of that one, or of some of its rows. */
struct view {
    struct value *of; /* NULL: it is a tensor of its own */
    int order[ARRAY_MAX_RANK];
    int64_t first, rows; /* rows 0: all */
};

/* What a name of the file stands for: numbers, a tensor of the network, or both. */
struct value {
    const char *name;
    int type;                        /* ONNX's number of the type of its elements; 0: not known yet */
    int declared;                    /* the type that the file says; 0: it says none */
    const Onnx__TensorProto *stored; /* the numbers as the file has them, or NULL */
    bool initialiser;                /* of the graph, not of a Constant: it can be a parameter */
    bool trains;                     /* a known input that is a parameter, whatever its size */
    bool copied;                     /* by Identity, of an initialiser or such an input */
    struct array *array;             /* numbers that were read or computed, or NULL */
    tutti_tensor tensor;             /* id < 0: not in the network yet */
    tutti_tensor statistic;          /* a running statistic with these numbers; id < 0: none */
    tutti_tensor floats;             /* the tensor as float32; id < 0: it is, or nobody has asked */
    bool converts;                   /* the tensor is not of float32 */
    struct place place;              /* of the tensor */
    struct counting counting;        /* of the tensor */
    /* The tensor where its axis `place.axis` is not the batch, of which only a size told that it is. id < 0: none */
    tutti_tensor alike;
    unsigned repeated;       /* bits of axes along which a value without a batch has the same elements, as of Expand */
    int uses;                /* by nodes */
    const char *kind;        /* "PARAMETER", "BUFFER" and so on, if the file says it; else NULL */
    const char *folded_from; /* list of the names it was computed from, if the file says it; else NULL */
    int reads;               /* so far, while initialisers are taken apart (merged.c) */
    bool apart;              /* the exporter had merged it with another initialiser, whose numbers it has */
    bool is_weight;          /* some layer reads it as its weights */
    bool constant;           /* an initialiser that is not trained */
    int demand;              /* how nodes use it in the end (owned.c) */
    char *state_name;        /* name in the state dict, where the file has another one; NULL: none is known */
    char *renamed;           /* the parameter's own name; the file has it in another form. NULL: as in the file */
    char *label;             /* the parameter's name, if it is not the value's, or NULL */
    bool ambiguous;          /* several initialisers would get the name `renamed` */
    struct view view;        /* of another initialiser, or of the parameter `renamed` */
    struct value **elements; /* of a sequence, whose number is known; NULL: it is none */
    size_t element_count;
    struct value *own_elements; /* those that no name of the file stands for */
};

struct import {
    tutti_network *network;
    tutti_onnx *made;
    const tutti_onnx_options *options;
    Onnx__ModelProto *model; /* functions of it are written out */
    char *folder;            /* of the file */
    int64_t opset;
    struct expanded expanded;                /* functions and branches */
    int64_t fixed_batch;                     /* number of samples that the file is for; 0: it says none */
    const Onnx__ValueInfoProto *first_input; /* that is not known; NULL: not found yet */
    bool stands_in;                          /* integers that count samples were made for STAND_IN samples */
    struct counting counted; /* in a constant input of the node: its factor, and as component the input's position */
    tutti_tensor like;       /* one number of each sample; id < 0: no node has needed it yet */
    struct value *values;
    size_t value_count;
    size_t training_norms;     /* batch normalisations with training_mode 1 */
    const char *training_norm; /* the first one's name */
    size_t sequence_elements;  /* of all sequences so far */
    size_t computed;           /* bytes of arrays that nodes made, and of copies of initialisers */
    void *names;               /* tree of tsearch() over values */
    void *renamed;             /* the same, over names that parameters get */
    bool paths, scopes;        /* names of nodes are paths ("/fc/MatMul"); nodes tell their scopes */
    const char *logits;        /* value whose softmax is left out, or NULL */
    const char *normalised;    /* made of it by a Normalizer, which is left out, too; or NULL */
};

/* " (model.py:8: x = self.fc(x))", where the file has the stack of the exported program; else "". */
struct source {
    char text[256];
};
struct source node_source(const Onnx__NodeProto *node);
/* Tells the caller, for `tutti show --why`. */
void import_note(const struct import *import, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The first names of a list, for a note: "a, b", and behind them ", ..." if there are more. */
struct name_list {
    char names[256];
    size_t length, count;
};
void name_list_add(struct name_list *list, const char *name);
const char *name_list_end(const struct name_list *list);
/* merged.c, cut.c, names.c, owned.c: before the first node, in this order. */
struct signature;
tutti_status import_take_apart(struct import *import, const struct signature *signature);
tutti_status import_join_cut(struct import *import);
tutti_status import_restore_names(struct import *import);
tutti_status import_find_constants(struct import *import, const struct signature *signature);
/* Adds a name that stands for no value yet. It must outlive the import. */
tutti_status import_add_name(struct import *import, const char *name, struct value **made);
/* The layer that a node is of: "block.fc1", by its scopes or its path. NULL: not known, or of the whole module. */
char *import_layer(const Onnx__NodeProto *node);
/* A layer's second call is "attention_1" in paths, and its first one "attention": the length of this. */
size_t import_length_of_first(const struct import *import, const char *call);
bool import_has_scopes(const Onnx__NodeProto *node);
/* The initialiser that one of the next nodes adds to what node n makes, as a bias. NULL: none. */
struct value *import_added_to(const struct import *import, size_t n);
/* names.c: whether an exporter made this name up. */
bool import_is_nameless(const struct import *import, const struct value *value);
/* Whether all elements are equal. */
tutti_status import_is_uniform(const struct import *import, struct value *value, bool *uniform);
void import_note_quantised(const struct import *import);  /* quantised.c */
void import_note_batch_norm(const struct import *import); /* layers.c */
void import_note_folded(const struct import *import);
/* Reads the numbers of an initialiser, if they were not. */
tutti_status import_load(const struct import *import, struct value *value);
/* sizes.c: of an axis that the file leaves open. `asked`: the shape of a sample of this input, or rank 0. Errors:
 * TUTTI_SHAPE if the caller does not say it, or says two sizes. */
tutti_status import_open_size(
    const struct import *import, const Onnx__ValueInfoProto *input, const tutti_shape *asked, int axis, int64_t *size);
/* The axis of an input that is the batch, or HIDDEN. */
int import_batch_axis(const struct import *import, const char *input);
/* NULL if the file does not have the name. */
struct value *import_find(const struct import *import, const char *name);
/* The sizes of a value as the file has them. */
tutti_status value_extents(const struct import *import, const struct value *value, struct extent *sizes, int *rank);
/* The tensor's shape: of a sample, if it has a batch. */
tutti_status value_shape(const struct import *import, const struct value *value, tutti_shape *shape);

/* The node whose layer is added. Functions on it give a message that a caller may return as it is. */
struct step {
    struct import *import;
    const Onnx__NodeProto *node;
    const char *operation; /* of tutti_op(), from the table of operators */
};
typedef tutti_status step_function(struct step *step);

/* An input, or NULL if the node does not have it. step_output(): of an output that the node need not have. */
struct value *step_input(const struct step *step, size_t position);
struct value *step_output(const struct step *step, size_t position);

/* Attributes, or `otherwise` if the node does not have them. Lists are NULL then. */
int64_t step_integer(const struct step *step, const char *name, int64_t otherwise);
float step_number(const struct step *step, const char *name, float otherwise);
bool step_says(const struct step *step, const char *name, const char *text); /* whether a text is this one */
const int64_t *step_integers(const struct step *step, const char *name, size_t *count);
const Onnx__AttributeProto *step_attribute(const struct step *step, const char *name);

/* The numbers of an input, which is no tensor of the network. Errors: TUTTI_UNSUPPORTED if it is not known when the
 * file is read. */
tutti_status step_array(const struct step *step, size_t position, const struct array **array);
/* The same as at most `most` integers without symbols, as axes and pads. *count is 0 if the input is absent. */
tutti_status step_list(const struct step *step, size_t position, int64_t *list, int most, int *count);
/* A list that older opsets have as an attribute, and newer ones as an input. */
tutti_status step_list_or_attribute(
    const struct step *step, const char *name, size_t position, int64_t *list, int most, int *count);
/* One number; `otherwise` if the input is absent. */
tutti_status step_scalar(const struct step *step, size_t position, float otherwise, float *scalar);
/* Whether all inputs are numbers that are known when the file is read, and do not train. */
bool step_is_known(const struct step *step);

/* An input as a tensor of float32; parameters and constants are added at their first use. The axes of `shape` are the
 * tensor's: of a sample, if it has a batch. */
struct operand {
    tutti_tensor tensor;
    tutti_shape shape;
    struct place place;
};
tutti_status step_operand(const struct step *step, size_t position, struct operand *operand);
/* The same as int32, if it is an input or a constant of integers; else of float32, with whole numbers. */
tutti_status step_indices(const struct step *step, size_t position, struct operand *operand);
/* One that has a batch; one that has none, as weights. */
tutti_status step_batched(const struct step *step, size_t position, struct operand *operand);
tutti_status step_batched_if_whole(const struct step *step, size_t position, struct operand *operand);
tutti_status step_fixed(const struct step *step, size_t position, struct operand *operand);
/* One for operations on rows [C, ...]: the file's first axis is the batch, or becomes part of it. step_done_rows()
 * takes their result; `rows` is this operand. */
tutti_status step_rows(const struct step *step, size_t position, struct operand *operand);
tutti_status operand_as_rows(const struct step *step, size_t position, struct operand *operand); /* of step_batched() */
tutti_status step_done_rows(const struct step *step, size_t output, tutti_tensor tensor, const struct operand *rows);
/* The number of axes in the file; whether none of them is the batch. */
int operand_rank(const struct operand *operand);
bool operand_is_whole(const struct operand *operand);
/* The tensor's axis for an axis of the file, which may be negative. Refuses the batch. */
tutti_status operand_axis(const struct operand *operand, int64_t axis, int *of_tensor);
/* The same tensor for each sample; the same with the operand's shape, also if this is one number. */
tutti_status step_spread(const struct step *step, tutti_tensor *tensor);
tutti_status step_spread_operand(const struct step *step, struct operand *operand);
/* The place of a result with other axes in the file: `change` more or less in front of the batch's. */
struct place place_moved(struct place place, int change);

/* Adds an operation of tutti_op(), with the node's name; step_plain(): without attributes. */
tutti_tensor step_plain(const struct step *step, const char *operation, const tutti_tensor *inputs, int count);
tutti_tensor step_op(const struct step *step, const char *operation, const tutti_tensor *inputs, int count,
    const char *attributes, ...) __attribute__((format(printf, 5, 6)));
/* The same element by element, of any inputs or two; a constant of one number, which adds no axis to the others. */
tutti_tensor step_elements(const struct step *step, const char *operation, const tutti_tensor *inputs, int count);
tutti_tensor step_binary(const struct step *step, const char *operation, tutti_tensor a, tutti_tensor b);
tutti_tensor step_constant(const struct step *step, float number);
/* step_wrapped(): whole numbers as this type has them; types of at most 16 bits and those without a sign wrap around.
 * step_truncated(): without the fraction of a power, which may be off by 16 units of its last bit. */
tutti_tensor step_wrapped(const struct step *step, tutti_tensor x, int type);
tutti_tensor step_truncated(const struct step *step, tutti_tensor x);
/* The first output is the first input; another value. A type that step_type() set before stays. */
tutti_status step_same(const struct step *step);
tutti_status step_copy(const struct step *step, struct value *value);
/* What the node makes. A tensor with a negative id is the failure of the function that returned it. The type is that of
 * the first input, until step_type() says another one. */
tutti_status step_done(const struct step *step, tutti_tensor tensor, struct place place);
tutti_status step_made(const struct step *step, size_t output, tutti_tensor tensor, struct place place);
void step_type(const struct step *step, size_t output, int type);
/* The node's first output is this array, which is freed with the import. NULL: TUTTI_NO_MEMORY. Refuses more than 1 GiB
 * in all, with the copies of uniform initialisers. */
tutti_status step_known(const struct step *step, struct array *array);
tutti_status step_known_at(const struct step *step, size_t output, struct array *array); /* another output */
/* TUTTI_UNSUPPORTED; the caller of the step's function puts the node's name in front. */
tutti_status step_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
