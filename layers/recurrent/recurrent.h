/* Operations of recurrent layers; recurrent.c has their formulas. */
#ifndef LAYERS_RECURRENT_H
#define LAYERS_RECURRENT_H

#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"

enum recurrent_kind { RECURRENT_LSTM = 1, RECURRENT_GRU, RECURRENT_SIMPLE };
struct recurrent_attributes {
    enum recurrent_kind kind;
    enum activation functions[3]; /* f, g, h: relu, sigmoid or tanh */
    bool reverse;                 /* from the last step to the first one */
    bool coupled;                 /* LSTM: the forget gate is 1 less the input gate */
    bool after;                   /* GRU: the reset gate multiplies the product of the state, not the state */
    bool torch;                   /* gates in PyTorch's order, as of parameters of its own; not ONNX's */
    float clip;                   /* 0: none */
};
ATTRIBUTES(recurrent)

enum {
    RECURRENT_GATES,
    RECURRENT_R,
    RECURRENT_BIAS,
    RECURRENT_H0,
    RECURRENT_C0,
    RECURRENT_PEEPHOLES,
    RECURRENT_LENGTHS
};
/* SAVED, of each step and unit: of an LSTM i, o, f, g, c'; of a GRU z, r, n, then r h, or with `after` R h and its
 * bias. */
enum { RECURRENT_Y, RECURRENT_LAST, RECURRENT_SAVED, RECURRENT_LAST_C };
/* Inputs and outputs of the gradient. PREVIOUS: the state before each step. OTHER: of an LSTM with peepholes the cell
 * before each step; of a GRU with `after` the gradients of R h, of which the last differs from those of the gates. */
enum {
    BACKWARD_R,
    BACKWARD_Y,
    BACKWARD_SAVED,
    BACKWARD_H0,
    BACKWARD_C0,
    BACKWARD_PEEPHOLES,
    BACKWARD_LENGTHS,
    BACKWARD_DY,
    BACKWARD_DLAST,
    BACKWARD_DLAST_C,
    BACKWARD_INPUTS
};
enum { BACKWARD_DGATES, BACKWARD_DH0, BACKWARD_PREVIOUS, BACKWARD_DC0, BACKWARD_OTHER };

/* Number of gates; numbers of each unit and step that are saved for the gradient; numbers that `other` has. */
int recurrent_gates(enum recurrent_kind kind);
int recurrent_saved(enum recurrent_kind kind);
int recurrent_others(enum recurrent_kind kind);
/* Position of a gate: of an LSTM i, o, f, c; of a GRU z, r, n. */
int recurrent_place(const struct recurrent_attributes *attributes, int gate);

static inline bool recurrent_is_backward(const struct problem *problem)
{
    return problem->node->operation == &operation_recurrent_gradient;
}
/* The weights of the states, r. */
static inline const struct value *recurrent_matrix(const struct problem *problem)
{
    return problem->inputs[recurrent_is_backward(problem) ? BACKWARD_R : RECURRENT_R];
}

/* Appends the build options of the layer's attributes that recurrent.cl reads and its head explains, -DKIND to -DCLIP.
 */
void recurrent_options(const struct recurrent_attributes *attributes, char *options, size_t size);

/* recurrent_panels.c: for CPU-class devices. */
extern const struct implementation recurrent_panels;

/* recurrent_reference.c: for the interpreter. */
tutti_status recurrent_interpret(const struct problem *problem, const struct node_arrays *arrays);
tutti_status recurrent_interpret_gradient(const struct problem *problem, const struct node_arrays *arrays);

#endif
