/* Graphs and networks that are run by layers/interpreter/interpreter.h, for tests that compare with it. */
#ifndef TESTS_INTERPRETED_H
#define TESTS_INTERPRETED_H

#include "layers/interpreter/interpreter.h"
#include "plan/pipeline.h"

struct interpreter {
    const struct graph *graph;
    double **values; /* of each value; the caller writes inputs and parameters */
    struct step_constants constants;
    bool inference;
};

/* Allocates the values, which are 0. The graph is bound (graph_bind()) and stays as it is until interpreter_free(). */
tutti_status interpreter_new(const struct graph *graph, struct interpreter *interpreter);
/* Runs the first `nodes` nodes. */
tutti_status interpreter_run(const struct interpreter *interpreter, size_t nodes);
void interpreter_free(struct interpreter *interpreter);

struct interpreted {
    struct plan *plan; /* its graph is run; the plan says which values are inputs, outputs and gradients */
    struct interpreter interpreter;
    size_t forward; /* nodes before the gradients */
};

/* With the loss, and the gradients if the options train, as the passes for these append them. fused: with all passes,
 * so that nodes are fused as the device wants them. Constants have their values. Free after a failure, too. */
tutti_status interpreted_new(struct device *device, const tutti_network *network, const struct plan_options *options,
    bool fused, struct interpreted *made);
/* The array of an input, by its name, and the number of its elements; NULL: the network has no such input. */
double *interpreted_input(const struct interpreted *made, const char *name, int64_t *elements);
/* Writes what parameters start with, where the network has it: values, or one number for all elements. */
void interpreted_start(const struct interpreted *made);
/* The number of the parameter, constant or statistic with this name; -1: there is none. */
int interpreted_find(const struct interpreted *made, const char *name);
/* The array of a parameter, by its number, and of its gradient; NULL: there is none. */
double *interpreted_parameter(const struct interpreted *made, int parameter);
double *interpreted_gradient(const struct interpreted *made, int parameter);
void interpreted_free(struct interpreted *made);

#endif
