/* Kernels that are written for a node: a loop over up to six axes, whose operands are read by strides. Each element is
 * computed by a few expressions (layers/pointwise.h), and then stored, or joined with others along some of the axes. */
#ifndef LAYERS_LOOP_H
#define LAYERS_LOOP_H

#include "layers/pointwise.h"

enum { LOOP_OPERANDS = 8, LOOP_STEPS = 8 };
/* What a step's variable is: an operand, by its number; or the result of an earlier step; or nothing. */
enum { LOOP_STEP = LOOP_OPERANDS, LOOP_UNUSED = -1 };

struct loop_operand {
    cl_mem buffer;
    enum value_type type;                    /* F32 or BF16 */
    int64_t offset, strides[TUTTI_MAX_RANK]; /* elements; stride 0: the same element all along the axis */
};

struct loop_step {
    const char *expression;
    float low, high;
    int variables[POINTWISE_VARIABLES]; /* 2: operand 2; LOOP_STEP + 1: the result of step 1 */
};

enum loop_join { JOIN_NONE, JOIN_SUM, JOIN_MAX };

struct loop {
    int rank;
    int64_t sizes[TUTTI_MAX_RANK];
    struct loop_operand operands[LOOP_OPERANDS], out;
    int operand_count;
    struct loop_step steps[LOOP_STEPS]; /* the last one's result is the element; none: operand 0 is */
    int step_count;
    /* JOIN_NONE: an element is stored. Else those along the axes in `joined` (bits; strides of `out` are 0 there)
     * become one number, which is stored times `scale`. */
    enum loop_join join;
    unsigned joined;
    double scale;
};

/* An operand in the plain layout that a loop of this shape reads by numpy's rules: axes are counted from the last one,
 * and those that the value lacks, or where its size is 1, have stride 0. The batch's axis goes with that of the loop.
 */
struct loop_operand loop_operand(const struct value *value, cl_mem buffer, const tutti_shape *shape, bool batched);
/* A step of which no variable is set. */
struct loop_step loop_step(const char *expression, float low, float high);
/* Appends an epilogue's addition, of values that lie as the output does, and its activation as further steps. */
void loop_add_epilogue(struct loop *loop, const struct epilogue *epilogue, cl_mem add, enum value_type add_type);
/* That of the problem's node. */
void loop_add_epilogue_of(struct loop *loop, const struct problem *problem, cl_mem add);
/* Bytes of scratch that the launches need. */
size_t loop_workspace(const struct loop *loop, const struct capabilities *device);
/* Appends the launches. */
void loop_emit(struct loop *loop, cl_mem workspace, struct launch_list *list);

#endif
