/* Queries about one node of a plan's graph. */
#ifndef PLAN_NODE_H
#define PLAN_NODE_H

#include "plan/passes.h"

/* The type that the plan's products may round their operands to. */
enum compute_type plan_compute(const struct plan *plan);
void problem_of(const struct plan *plan, const struct node *node, struct problem *problem);
/* Writes the problem's name in tuning tables, without spaces: operation, shapes, attributes and the number of
 * samples, as "conv2d/Nx64x56x56/64x64x3x3/Nx64x56x56/k3x3/s1x1/p1x1/d1x1/g1/n16". */
enum { PROBLEM_NAME = 1024 };
void problem_name(const struct problem *problem, char name[PROBLEM_NAME]);
/* Whether every input of the node is a parameter or made from parameters alone. */
bool node_is_constant(const struct graph *graph, const struct node *node);
/* Whether the node loads or stores values as bfloat16, so that its kernels are others than those for floats. */
bool node_has_bf16(const struct graph *graph, const struct node *node);
/* Whether kernels of the implementation can load or store this input or output of the node as bfloat16. */
bool input_takes_bf16(const struct implementation *implementation, const struct node *node, int input);
bool output_takes_bf16(const struct implementation *implementation, const struct node *node, int output);
/* Writes the key of an implementation for the first-use check and the blacklist, such as "conv2d/winograd". The
 * suffix "/bf16" denotes its kernels that load or store bfloat16 values, "/int8" those that load stored parameters.
 * "dft/clfft/1024 rows" includes the kind of the problem. */
enum { IMPLEMENTATION_KEY = 96 + IMPLEMENTATION_KIND };
void implementation_key(const struct problem *problem, const struct implementation *implementation, bool bf16,
    char key[IMPLEMENTATION_KEY]);
/* Bytes of struct operands.workspace; 0: it is NULL. */
size_t workspace_bytes(const struct implementation *implementation, const struct problem *problem);
/* Sets handles that stand for buffers, only for emitting launches. memory: NULL, or tells which values share
 * buffers. */
void stand_in_operands(const struct memory_plan *memory, const struct problem *problem,
    const struct implementation *implementation, struct operands *operands);

#endif
