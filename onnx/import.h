/* What the files of this room share while a network is made: the values that the file's names stand for, and the node
 * whose layer is added. */
#ifndef ONNX_IMPORT_H
#define ONNX_IMPORT_H

#include "onnx/tensor.h"
#include "tutti_onnx.h"

/* What a name of the file stands for: numbers, a tensor of the network, or both. */
struct value {
    const char *name;
    const Onnx__TensorProto *stored; /* the numbers as the file has them, or NULL */
    bool initialiser;                /* of the graph, not of a Constant: it can be a parameter */
    struct array *array;             /* numbers that were read or computed, or NULL */
    tutti_tensor tensor;             /* id < 0: not in the network yet */
    bool batched;                    /* of the tensor: its first axis in the file is the batch */
    int parameters;                  /* that were made of it: several if it is uniform */
    bool uniform;                    /* an initialiser whose elements are all equal */
    bool integers;                   /* an input of another type than float */
};

struct import {
    tutti_network *network;
    tutti_onnx *made;
    const Onnx__ModelProto *model;
    char *folder; /* of the file */
    int64_t opset;
    int64_t fixed_batch; /* number of samples that the file is for; 0: it says none */
    struct value *values;
    size_t value_count;
    void *names;        /* tree of tsearch() over values */
    const char *logits; /* output whose softmax is left out, or NULL */
};

/* NULL if the file does not have the name. */
struct value *import_find(const struct import *import, const char *name);

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
/* One number; `otherwise` if the input is absent. */
tutti_status step_scalar(const struct step *step, size_t position, float otherwise, float *scalar);
/* Whether all inputs are integers that are known when the file is read. */
bool step_is_whole(const struct step *step);
/* The shape of a value: of a sample, if it has a batch. */
tutti_status value_shape(const struct import *import, const struct value *value, tutti_shape *shape);

/* An input as a tensor of the network: parameters and constants are added at their first use. */
tutti_status step_tensor(const struct step *step, size_t position, tutti_tensor *tensor);
/* An input that has a batch, and the shape of a sample. */
tutti_status step_sample(const struct step *step, size_t position, tutti_tensor *tensor, tutti_shape *shape);
/* An axis of the file as one of a sample that has `rank` axes. */
tutti_status step_axis(int64_t axis, int rank, int *of_sample);

/* Adds an operation of tutti_op(), with the node's name; step_plain(): without attributes. */
tutti_tensor step_plain(const struct step *step, const char *operation, const tutti_tensor *inputs, int count);
tutti_tensor step_op(const struct step *step, const char *operation, const tutti_tensor *inputs, int count,
    const char *attributes, ...) __attribute__((format(printf, 5, 6)));
/* The first output is the first input. */
tutti_status step_same(const struct step *step);
/* What the node makes. A tensor with a negative id is the failure of the function that returned it. */
tutti_status step_done(const struct step *step, tutti_tensor tensor, bool batched);
tutti_status step_made(const struct step *step, size_t output, tutti_tensor tensor, bool batched);
/* The node's first output is this array, which is freed with the import. NULL: TUTTI_NO_MEMORY. */
tutti_status step_known(const struct step *step, struct array *array);
/* TUTTI_UNSUPPORTED; the caller of the step's function puts the node's name in front. */
tutti_status step_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
