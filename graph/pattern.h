/* Patterns of nodes that are rewritten, each declared in layers/ by the operation that profits, and the queries that
 * they make to the plan whose graph they rewrite. */
#ifndef GRAPH_PATTERN_H
#define GRAPH_PATTERN_H

#include "graph/operation.h"

struct rewriting {
    struct graph *graph;
    void *plan;
    /* Returns the implementation that will be chosen for the node as it is now; NULL: there is none. Sets *problem to
     * what the implementation reads. */
    const struct implementation *(*choose)(
        const struct rewriting *rewriting, const struct node *node, struct problem *problem);
    /* Sets problem->design to the implementation's design, if it has one. False: no memory (the graph's status). */
    bool (*design)(
        const struct rewriting *rewriting, const struct implementation *implementation, struct problem *problem);
    /* Whether the plan will append the gradient of this value of the forward graph. */
    bool (*needs_gradient)(const struct rewriting *rewriting, int value);
};

/* A node of `operation`, and the node that makes one of its inputs. */
struct pattern {
    const struct operation *operation;
    int input;                        /* its number */
    const struct operation *producer; /* of the node whose first output that input is; NULL: any, or none */
    bool sole;                        /* such a node exists, and nobody else reads its first output */
    /* Rewrites the nodes around node n, and returns whether it changed the graph. producer: the node, or -1. A node
     * that is no longer needed gets the operation NULL. Sets only what the chosen implementation supports: rewriting
     * is never undone. */
    bool (*apply)(const struct rewriting *rewriting, size_t n, int producer);
};

/* layers/patterns.c: in the order in which they are tried; ends with NULL. Forward patterns are tried before gradients
 * are appended: the gradient of several nodes then is that of one. */
extern const struct pattern *const patterns[], *const forward_patterns[];

/* Whether node n matches the pattern; sets *producer. */
bool pattern_matches(const struct pattern *pattern, const struct graph *graph, size_t n, int *producer);
/* The node whose first output is `value`, if there is only one reader and the host does not read it; else -1. */
int pattern_sole_producer(const struct graph *graph, int value);
/* Whether the implementation of the node takes a fusion of this kind. */
bool pattern_supports(const struct rewriting *rewriting, const struct node *node, enum fusion_kind kind);
/* Adds the fusion to node n, if the implementation that the node then has supports it. Inputs as of node_fuse(). */
bool pattern_fuse(const struct rewriting *rewriting, int n, struct fusion fusion, const int *inputs, int output);
/* Node `producer` now makes what node n made; n is dropped. */
void pattern_take_output(struct graph *graph, int producer, size_t n);

#endif
