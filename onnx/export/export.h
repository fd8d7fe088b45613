/* Shared by the files of this folder while a network is written: the file's messages, the names of tensors in it, and
 * the node that is converted to ONNX. */
#ifndef ONNX_EXPORT_H
#define ONNX_EXPORT_H

#include "onnx/proto.h"
#include "onnx/tensor.h"
#include "tutti_inspect.h"
#include "tutti_onnx.h"

/* Lists that grow; `items` are pointers. */
struct export_list {
    void **items;
    size_t count, capacity;
};

/* A column of a table that is an input, as tutti_data_json() describes it. */
struct export_column {
    const struct json_t *object;
    const char *name, *port; /* port: in the file */
    enum { COLUMN_NUMBER, COLUMN_TRUTH, COLUMN_CATEGORY } is;
    bool indicator; /* its last feature says whether the value is missing */
    bool code;      /* its only feature is the number of the category */
    size_t categories;
};

/* The training's data. */
struct export_data {
    struct json_t *object; /* NULL: nothing is known of the data */
    const char *text, *kind;
    bool prepares;                 /* nodes prepare inputs as for the training, and convert outputs */
    const char *begin, *end;       /* if it prepares: names of the network's own input and output */
    struct export_column *columns; /* of a table */
    size_t column_count;
    bool numbers; /* all columns are numbers */
};

struct export
{
    const tutti_network *network;
    tutti_trainer *trainer;
    const char **tensor_names; /* by the tensors' ids; NULL: it has none yet */
    bool *needed;              /* by the tensors' ids */
    size_t tensor_count;
    void *names, *node_names; /* trees of tsearch(): names of the file's tensors and nodes */
    struct export_list nodes, initialisers, inputs, outputs;
    struct export_list values;  /* where the network begins and ends within the graph */
    struct export_list owned;   /* memory that lives until the file is written */
    const char *batch, *length; /* [1]: the number of samples, the length of sequences; NULL: not written yet */
    int64_t opset;              /* the lowest opset that has all operators of the file */
    tutti_status status;        /* the first failure; later calls do nothing that can be seen */
    Onnx__NodeProto no_node;    /* filled in by calls after a failure */
    Onnx__AttributeProto no_attribute;
    Onnx__ValueInfoProto no_port;
    struct export_data data;
    bool uses_ml; /* operators of ai.onnx.ml */
};

/* Zeroed memory that lives as long as the export; NULL after a failure, which is kept. */
void *export_new(struct export *export, size_t count, size_t size);
/* False after a failure. */
bool export_add(struct export *export, struct export_list *list, void *item);
void export_fail(struct export *export, tutti_status status);
/* A name that no tensor of the file has yet: the text, or the text with a number. "" after a failure. */
const char *export_name(struct export *export, const char *text);
/* Makes an input or an output of the file; never NULL. */
Onnx__ValueInfoProto *export_port(
    struct export *export, const char *name, enum onnx_type type, const tutti_shape *sample, bool for_each_sample);
void export_add_port(struct export *export, struct export_list *list, const char *name, const tutti_tensor_info *info);
/* Writes the messages as a file. */
tutti_status export_write(struct export *export, const char *path, uint64_t external_bytes);

struct source;
typedef void export_function(struct source *source);

/* How nodes of an operation are written. */
struct export_row {
    const char *operation;
    export_function *write;
    const char *type;  /* of ONNX's operator, for `write` */
    int opset;         /* the first one with what it writes; 0: LEAST_OPSET */
    bool takes_truths; /* bool where the network has floats */
    bool casts;        /* its result is of bool or int64 there */
};
enum { LEAST_OPSET = 17 };
/* Copies the line of the table, which export_layers.c has, or the one that follows from what the operation itself says
 * (tutti_operation_info.onnx). False: it has no form in ONNX. */
bool export_find(const char *operation, struct export_row *row);

/* A node of the network. Functions on it do nothing after a failure of the export. */
struct source {
    struct export *export;
    tutti_node_info info;
    const char *attributes; /* as text */
    tutti_tensor_info x, y; /* the first input and the first output */
    struct export_row row;
    size_t first; /* the number of its first node in the file */
};

/* For a recurrent node: *dense is the dense layer of its products, which becomes part of ONNX's operator. False:
 * there is none, or the node is another operation. */
bool export_absorbed(const struct export *export, const tutti_node_info *node, tutti_node_info *dense);

/* Up to `most` numbers of an attribute. Returns how many there are; 0: the node does not have it. */
int source_numbers(const struct source *source, const char *name, double *numbers, int most);
double source_number(const struct source *source, const char *name, double fallback);
/* Returns which of the words an attribute has; the first one where the node does not have it, or another. */
const char *source_choice(const struct source *source, const char *name, const char *const *words, size_t count);
int source_list(const struct source *source, const char *name, int64_t *numbers, int most);
tutti_tensor_info source_tensor(struct source *source, tutti_tensor tensor);
bool source_is(const struct source *source, int input); /* whether the input is there */
/* The name that the file has for an input. */
const char *source_input(struct source *source, int input);
/* The name of an input that is broadcast, with axes of size 1 inserted after its batch: ONNX broadcasts whole arrays,
 * the network shapes of samples. */
const char *source_aligned(struct source *source, int input);
const char *source_output(struct source *source); /* of the first output */
/* The name of another output; NULL: nothing needs it. */
const char *source_output_at(struct source *source, int output);
const char *source_temporary(struct source *source);
/* Fails: what the operation does has no form in ONNX. */
void source_refuse(struct source *source, const char *why);

/* Add constants to the file, and return their names. */
const char *source_integers(struct source *source, const int64_t *numbers, int count);
const char *source_integer(struct source *source, int64_t number); /* without axes */
const char *source_scalar(struct source *source, float number);
const char *source_vector(struct source *source, const float *values, int64_t count);
const char *source_matrix(struct source *source, const float *values, int64_t rows, int64_t columns);
/* As a node, which no program takes for a parameter. */
const char *source_constant(struct source *source, enum onnx_type type, const tutti_shape *shape, const void *values);

/* Adds a node of ONNX; returns it for its attributes, never NULL. Inputs that are "" are absent, those at the end that
 * are NULL are left out. */
struct made {
    struct export *export;
    Onnx__NodeProto *node;
};
struct made source_node(
    struct source *source, const char *type, const char *a, const char *b, const char *c, const char *output);
/* Adds a node with any number of inputs. */
struct made source_node_of(
    struct source *source, const char *type, const char *const *inputs, int count, const char *output);
/* Adds a node with one or two inputs and an output that gets a new name, which is returned. */
const char *source_step(struct source *source, const char *type, const char *a, const char *b);
const char *source_cast(struct source *source, const char *from, enum onnx_type type);
void made_integer(struct made made, const char *name, int64_t number);
void made_integers(struct made made, const char *name, const int64_t *numbers, int count);
void made_number(struct made made, const char *name, float number);
void made_text(struct made made, const char *name, const char *text);
void made_texts(struct made made, const char *name, const char *const *texts, int count); /* texts that stay */
void made_output(struct made made, const char *name);                                     /* one more; "": absent */

/* Parts that several functions write. */
const char *source_batch(struct source *source);  /* [1] of int64: the number of samples */
const char *source_length(struct source *source); /* [1] of int64: the length of sequences */
/* A list of sizes, after a batch if it is not NULL; TUTTI_SEQUENCE becomes the length. */
const char *source_sizes(struct source *source, const char *batch, const int64_t *sizes, int count);
/* An input with a leading batch axis: one that is the same for all samples is repeated. */
const char *source_for_each_sample(struct source *source, int input);
/* Makes `from`, which no node has read yet, the first output of the source. */
void source_finish(struct source *source, const char *from);
/* Reshapes `from` to the shape of the first output. */
void source_reshape(struct source *source, const char *from);
/* Permutes axes: axis i of the result is axis order[i] of `from`. to: the result's name, which is returned; NULL: a
 * new one. */
const char *source_transpose(struct source *source, const char *from, const int64_t *order, int rank, const char *to);
/* Elements along the axis from `start` to before `end`, in steps of 1, or -1 to go backwards. */
const char *source_slice(
    struct source *source, const char *from, int64_t axis, int64_t start, int64_t end, const char *to);

/* The axis of the array for one of a sample. */
static inline int64_t array_axis(const tutti_tensor_info *info, int64_t axis)
{
    return axis + info->for_each_sample;
}
static inline int array_rank(const tutti_tensor_info *info)
{
    return info->shape.rank + info->for_each_sample;
}

/* export_pointwise.c */
export_function export_plain, export_scale, export_shift, export_power, export_clip, export_square, export_swish,
    export_swiglu, export_gelu_tanh, export_hard_sigmoid, export_mod, export_fmod, export_trunc, export_prelu,
    export_where;
/* export_movement.c */
export_function export_reshape, export_expand, export_transpose, export_window, export_concat, export_convert;
/* export_images.c */
export_function export_conv2d, export_conv2d_transposed, export_pool, export_adaptive_pool, export_resample,
    export_grid_sample;
/* export_indices.c */
export_function export_gather, export_scatter, export_one_hot;
/* export_lines.c */
export_function export_topk, export_cumsum, export_cumprod, export_trilu, export_reverse_sequence;
/* export_recurrent.c, export_spectral.c */
export_function export_recurrent, export_dft;

/* ---- of the training's data; after a failure of the export, functions do nothing ---- */

/* export_data.c: reads what tutti_data_json() says, NULL: nothing; with `prepares` for nodes. */
tutti_status export_data_open(struct export *export, const char *text, bool prepares);
void export_data_close(struct export *export);
/* `count` numbers of a list, deviations above 0; NULL after a failure. */
const double *export_data_numbers(
    struct export *export, const struct json_t *object, const char *name, size_t count, bool deviations);
/* export_columns.c: export_name_columns() reserves the names of a table's inputs. export_columns() adds these inputs,
 * and nodes whose last output is the network's features. */
void export_name_columns(struct export *export);
void export_columns(struct export *export);
/* export_recordings.c: adds the input for samples of recordings, and the nodes that make spectrograms of this shape of
 * them, before these are standardised. Returns the name of the result. */
const char *export_spectrogram(struct source *source, const tutti_shape *shape);
/* export_preparation.c: export_prepare() adds inputs for raw data and nodes up to the network's input, export_finish()
 * nodes after its output. */
void export_prepare(struct export *export);
void export_finish(struct export *export);

#endif
