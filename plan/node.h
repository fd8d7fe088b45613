/* What is asked of one node of a plan's graph. */
#ifndef PLAN_NODE_H
#define PLAN_NODE_H

#include "plan/passes.h"

/* What the plan's products may round their operands to. */
enum compute_type plan_compute(const struct plan *plan);
void problem_of(const struct plan *plan, const struct node *node, struct problem *problem);
/* The problem's name in tuning tables, without spaces: operation, shapes, attributes and the number of samples, as
 * "conv2d/Nx64x56x56/64x64x3x3/Nx64x56x56/k3x3/s1x1/p1x1/d1x1/g1/n16". */
enum { PROBLEM_NAME = 256 };
void problem_name(const struct problem *problem, char name[PROBLEM_NAME]);
/* Whether every input of the node is a parameter or made from parameters alone. */
bool node_is_constant(const struct graph *graph, const struct node *node);
/* Whether the node loads or stores values as bfloat16, so that its kernels are others than those for floats. */
bool node_has_bf16(const struct graph *graph, const struct node *node);
/* Whether kernels of the implementation can load or store this input or output of the node as bfloat16. */
bool input_takes_bf16(const struct implementation *implementation, const struct node *node, int input);
bool output_takes_bf16(const struct implementation *implementation, const struct node *node, int output);
/* "conv2d/winograd": by which an implementation is known to the first-use check and the blacklist; with "/bf16" behind
 * it those of its kernels that load or store such values. "dft/clfft/1024 rows": with the kind of the problem. */
enum { IMPLEMENTATION_KEY = 96 + IMPLEMENTATION_KIND };
void implementation_key(const struct problem *problem, const struct implementation *implementation, bool bf16,
    char key[IMPLEMENTATION_KEY]);
/* What struct operands.workspace has; 0: it is NULL. */
size_t workspace_bytes(const struct implementation *implementation, const struct problem *problem);
/* Handles that stand for buffers: good for emitting launches, and for nothing else. memory: NULL, or tells which values
 * share theirs. */
void stand_in_operands(const struct memory_plan *memory, const struct problem *problem,
    const struct implementation *implementation, struct operands *operands);

#endif
