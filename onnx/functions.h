/* Functions of a model are inlined: nodes that call them are replaced by their nodes. */
#ifndef ONNX_FUNCTIONS_H
#define ONNX_FUNCTIONS_H

#include "onnx/proto.h"

/* The condition of a branch: its nodes exist if the value `condition` is true (`wanted`), or false. */
struct guard {
    char *condition;
    bool wanted;
    int around; /* the guard of the If itself; -1: none */
};

/* Describes the graph's nodes after functions and branches were inlined; members are NULL if the model has
 * neither. */
struct expanded {
    int64_t *opsets; /* of each node of the graph */
    int *guard_of;   /* of each node: an element of guards, or -1 */
    struct guard *guards;
    int guard_count;
};
void expanded_free(struct expanded *made);

/* Replaces each node of the graph that calls a function of the model, also within functions. A node of domain ""
 * whose operator Tutti has is not replaced. Both branches of an If are inlined, with guards; of the If, a node for
 * each output remains, with the condition and the results of the branches as inputs. `opset` is the model's. The
 * caller frees *made, also after a failure. Errors: TUTTI_FORMAT: two functions of one name, a function that calls
 * itself, a call that does not fit its function; TUTTI_UNSUPPORTED: the inlined graph is too large;
 * TUTTI_NO_MEMORY. */
tutti_status functions_expand(Onnx__ModelProto *model, int64_t opset, struct expanded *made);

#endif
