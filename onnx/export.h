/* What the files of this room share while a network is written: the file's messages, the names that tensors have there,
 * and the node whose form in ONNX is added. */
#ifndef ONNX_EXPORT_H
#define ONNX_EXPORT_H

#include "onnx/proto.h"
#include "onnx/tensor.h"
#include "tutti_onnx.h"

/* Lists that grow; `items` are pointers. */
struct export_list {
    void **items;
    size_t count, capacity;
};

struct export
{
    const tutti_network *network;
    tutti_trainer *trainer;
    const char **tensor_names; /* by the tensors' ids; NULL: it has none yet */
    bool *needed;              /* by the tensors' ids */
    size_t tensor_count;
    void *names, *node_names; /* trees of tsearch(): those that the file's tensors and nodes have */
    struct export_list nodes, initialisers, inputs, outputs;
    struct export_list owned; /* memory that lives until the file is written */
    tutti_status status;      /* the first failure; later calls do nothing that can be seen */
    Onnx__NodeProto no_node;  /* what those fill in */
    Onnx__AttributeProto no_attribute;
};

/* Zeroed memory that lives as long as the export; NULL after a failure, which is kept. */
void *export_new(struct export *export, size_t count, size_t size);
/* False after a failure. */
bool export_add(struct export *export, struct export_list *list, void *item);
void export_fail(struct export *export, tutti_status status);
/* A name that no tensor of the file has yet: the text, or the text with a number. "" after a failure. */
const char *export_name(struct export *export, const char *text);
/* Writes the messages as a file. */
tutti_status export_write(struct export *export, const char *path, uint64_t external_bytes);

/* A node of the network. Functions on it do nothing after a failure of the export. */
struct source {
    struct export *export;
    tutti_node_info info;
    const char *attributes; /* as text */
    tutti_tensor_info x, y; /* the first input and the first output */
    const struct export_row *row;
};
typedef void export_function(struct source *source);

/* A line of the table, which export_layers.c has. */
struct export_row {
    const char *operation;
    export_function *write;
    const char *type;                /* of ONNX's operator, for `write` */
    bool takes_truths, gives_truths; /* bool where the network has floats */
};
const struct export_row *export_find(const char *operation);

/* Up to `most` numbers of an attribute. Returns how many there are; 0: the node does not have it. */
int source_numbers(const struct source *source, const char *name, double *numbers, int most);
double source_number(const struct source *source, const char *name, double otherwise);
int source_whole(const struct source *source, const char *name, int64_t *numbers, int most);
tutti_tensor_info source_tensor(struct source *source, tutti_tensor tensor);
bool source_is(const struct source *source, int input); /* whether the input is there */
/* The name that the file has for an input. */
const char *source_input(struct source *source, int input);
/* The same where shapes are broadcast, as samples in the network, and as arrays with a batch in ONNX. */
const char *source_aligned(struct source *source, int input);
const char *source_output(struct source *source); /* of the first output */
const char *source_temporary(struct source *source);

/* Arrays of the file's own. */
const char *source_integers(struct source *source, const int64_t *numbers, int count);
const char *source_scalar(struct source *source, float number);
const char *source_matrix(struct source *source, const float *values, int64_t rows, int64_t columns);

/* Adds a node of ONNX; returns it for its attributes, never NULL. Inputs that are "" are absent, those at the end that
 * are NULL are left out. */
struct made {
    struct export *export;
    Onnx__NodeProto *node;
};
struct made source_node(
    struct source *source, const char *type, const char *a, const char *b, const char *c, const char *output);
/* The same with any number of inputs. */
struct made source_node_of(
    struct source *source, const char *type, const char *const *inputs, int count, const char *output);
/* The same of one or two inputs, with an output that gets a name, which is returned. */
const char *source_step(struct source *source, const char *type, const char *a, const char *b);
const char *source_cast(struct source *source, const char *from, enum onnx_type type);
void made_integer(struct made made, const char *name, int64_t number);
void made_integers(struct made made, const char *name, const int64_t *numbers, int count);
void made_number(struct made made, const char *name, float number);
void made_text(struct made made, const char *name, const char *text);

/* export_pointwise.c */
export_function export_plain, export_alpha, export_scale, export_clip, export_square, export_silu, export_gelu_tanh,
    export_hard_sigmoid, export_mod, export_fmod, export_trunc, export_prelu, export_where;

#endif
