/* Functions of a model: nodes that call them are replaced by their nodes. */
#ifndef ONNX_FUNCTIONS_H
#define ONNX_FUNCTIONS_H

#include "onnx/proto.h"

/* A node of a branch is there if a value is true or false. */
struct guard {
    char *condition;
    bool wanted;
    int around; /* the guard of the If itself; -1: none */
};

/* What is known of the nodes that were written out: NULL if the model has no functions and no branches. */
struct expanded {
    int64_t *opsets; /* of each node of the graph */
    int *guard_of;   /* of each node: an element of guards, or -1 */
    struct guard *guards;
    int guard_count;
};
void expanded_free(struct expanded *made);

/* Replaces each node of the graph that calls a function of the model, also within functions. A node of domain "" whose
 * operator Tutti has is none of them. Of an If, both branches are written out, with guards; what remains of it is a
 * node for each output, with the condition and the results of the branches as inputs. `opset` is the model's. The
 * caller frees *made, also after a failure. Errors: TUTTI_FORMAT: two functions of one name, one that calls itself, a
 * call that does not fit its function; TUTTI_UNSUPPORTED: what is written out is too large; TUTTI_NO_MEMORY. */
tutti_status functions_expand(Onnx__ModelProto *model, int64_t opset, struct expanded *made);

#endif
