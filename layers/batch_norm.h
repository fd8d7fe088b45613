/* What the implementations of batch normalisation share. */
#ifndef LAYERS_BATCH_NORM_H
#define LAYERS_BATCH_NORM_H

#include "layers/layers.h"

/* x as [n][c][pixels]; rank 2: one pixel. */
struct batch_norm_sizes {
    int64_t n, c, pixels;
};

/* Places of inputs and outputs, see layers.h. */
enum { NORM_X, NORM_GAMMA, NORM_BETA, NORM_MEAN, NORM_VAR, NORM_CONSTANTS, NORM_STATISTICS = STATISTICS_INPUT };
enum { NORM_Y, NORM_SAVED_MEAN, NORM_SAVED_RSTD, NORM_BATCH_MEAN, NORM_BATCH_VAR };
enum {
    GRADIENT_X,
    GRADIENT_DY,
    GRADIENT_GAMMA,
    GRADIENT_MEAN,
    GRADIENT_RSTD,
    GRADIENT_Y,
    GRADIENT_STATISTICS = STATISTICS_INPUT,
    GRADIENT_BETA
};
enum { GRADIENT_DX, GRADIENT_DGAMMA, GRADIENT_DBETA, GRADIENT_DADD };

struct batch_norm_sizes batch_norm_sizes_of(const struct problem *problem);
/* Build options of the gradient's kernels: mask and outputs; and those of epilogue.h for the addition to dx. */
enum { NORM_OPTIONS = 320 };
const char *batch_norm_gradient_options(const struct problem *problem, char *buffer, size_t size);
/* relu and clip can be undone in the gradient's pass. */
unsigned batch_norm_gradient_epilogues(const struct problem *problem);

/* Joins the statistics of all parts, [parts][numbers][stride], to one in `joined`, which may be the same buffer, and
 * has the devices meet there. */
void batch_norm_meet(const struct problem *problem, struct launch_list *list, enum meeting_kind kind, cl_mem statistics,
    int64_t parts, int64_t stride, cl_mem joined);

/* batch_norm_patterns.c: the node moves into the weights of the layer before it, or becomes a scale and a shift. */
tutti_status batch_norm_in_inference(struct graph *graph, size_t *n, int *same);

extern const struct implementation batch_norm_cpu_forward, batch_norm_cpu_gradient, batch_norm_cpu_inference;
extern const struct implementation batch_norm_plain_forward, batch_norm_plain_gradient, batch_norm_plain_inference;

#endif
