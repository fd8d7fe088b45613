/* Custom operations: bodies of functions in OpenCL C that a program gave (include/tutti_custom.h). */
#ifndef LAYERS_CUSTOM_H
#define LAYERS_CUSTOM_H

#include "layers/operations.h"
#include "tutti_custom.h"

enum { CUSTOM_INPUTS = TUTTI_CUSTOM_INPUTS, CUSTOM_NAME = 48 };

/* What a program gave, without shapes. Lies in the network's graph, with its texts. */
struct custom {
    char operation[CUSTOM_NAME], names[CUSTOM_INPUTS][CUSTOM_NAME];
    int inputs;
    const char *attributes, *source, *forward, *backward; /* "": none */
    int64_t items[2];                                     /* of the forward and the backward; 0: the default */
    float low, high;                                      /* numbers of the check */
    void (*reference)(void *user, const double *const *inputs, double *y);
    void *user;
    bool no_check;
};

/* custom.c
 *
 * custom           x ... -> y
 * custom_gradient  y, dy, x ... -> dx ...; dx of an input without the batch has the gradient of each sample */
struct custom_attributes {
    int64_t hash;                /* of the definition, which stands for it where nodes are compared */
    tutti_shape shape;           /* of y, with the batch; rank 0: as the first input */
    const struct custom *custom; /* the network's */
};
ATTRIBUTES(custom)

/* Positions of the gradient's inputs. */
enum { CUSTOM_Y, CUSTOM_DY, CUSTOM_X };

/* The values of a node of either operation. */
struct custom_values {
    const struct custom *custom;
    const struct value *x[CUSTOM_INPUTS], *y;
    bool backward; /* it is the gradient's */
};
static inline struct custom_values custom_values(const struct problem *problem)
{
    const bool backward = problem->node->operation == &operation_custom_gradient;
    struct custom_values values = { .custom = custom_attributes(problem->node)->custom, .backward = backward };
    for (int i = 0; i < values.custom->inputs; i++) values.x[i] = problem->inputs[i + (backward ? CUSTOM_X : 0)];
    values.y = backward ? problem->inputs[CUSTOM_Y] : problem->outputs[0];
    return values;
}
/* Returns how many numbers a sample has: all of a value without the batch. */
static inline int64_t custom_sample_elements(const struct value *value)
{
    int64_t elements = 1;
    for (int i = value->batched; i < value->shape.rank; i++) elements *= value->shape.sizes[i];
    return elements;
}

/* custom_text.c: */
/* Fails unless these are words that a text can use. */
tutti_status custom_check_names(const struct custom *custom);
/* Makes the text of the forward's or the backward's kernel, and returns its name (runtime/source.h). NULL with a
 * message. */
const char *custom_text(const struct custom_values *values, bool backward);
/* Appends its launch for `samples` samples. Buffers: x ..., y, or x ..., y, dy, dx .... */
void custom_launch(const struct custom_values *values, bool backward, int64_t samples, const cl_mem *buffers,
    struct launch_list *list);

/* custom_words.c: tells whether a word has a meaning in OpenCL C, as a type, keyword, constant or function. */
bool custom_is_reserved(const char *word, size_t length);

/* custom_check.c: compares the kernels of a node with the reference, or finite differences, unless they passed before.
 */
tutti_status custom_check(struct device *device, const struct problem *problem);

#endif
