/* Kernels that are written for a node: a loop over up to six axes, whose operands are read by strides. Each element is
 * computed by a few expressions (layers/pointwise.h), and then stored, or joined with others along some of the axes. */
#ifndef LAYERS_LOOP_H
#define LAYERS_LOOP_H

#include "layers/pointwise.h"

enum { LOOP_OPERANDS = 8, LOOP_STEPS = 12 };
/* What a step's variable is: an operand, by its number; or the result of an earlier step; or nothing. */
enum { LOOP_STEP = LOOP_OPERANDS, LOOP_UNUSED = -1 };
enum { LOOP_ADDED = -1 }; /* the operand is what the node's epilogue adds */

struct loop_operand {
    int input;                               /* of the node; or LOOP_ADDED. While loops are composed: the value */
    int64_t offset, strides[TUTTI_MAX_RANK]; /* elements; stride 0: the same element all along the axis */
    /* Axes (bits) along which the operand exists from `low` to below `high` only; elsewhere it is `outside`. */
    unsigned guarded;
    int64_t low[TUTTI_MAX_RANK], high[TUTTI_MAX_RANK];
    float outside;
    /* The element lies index_stride times the number that operand `index` has there further on; no number from 0 to
     * below index_size: it is 0. */
    bool indexed;
    int index;
    int64_t index_stride, index_size;
    /* Set when launches are made. */
    cl_mem buffer;
    enum value_type type;
};

struct loop_step {
    const struct expression *expression;
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

/* For operations that describe themselves as loops (struct operation). loop_begin(): over the axes of a value, which is
 * also the output. The others return the operand's number, or the step, whose variables are unused yet. */
void loop_begin(struct loop *loop, const struct value *over);
int loop_add_operand(struct loop *loop, const struct problem *problem, int input);
/* The operand exists from `low` to below `high` along an axis with `size` elements: both are cut to these. */
void loop_guard(struct loop_operand *operand, int axis, int64_t low, int64_t high, int64_t size);
struct loop_step *loop_add_step(struct loop *loop, const struct expression *expression, float low, float high);
/* An operand that a loop of this shape reads by numpy's rules: axes are counted from the last one, and those that the
 * value lacks, or where its size is 1, have stride 0. The batch's axis goes with that of the loop. */
struct loop_operand loop_operand(const struct value *value, const tutti_shape *shape, bool batched);
/* Appends an epilogue's addition, of values that lie as the output does, and its activation as further steps. */
void loop_add_epilogue(struct loop *loop, const struct epilogue *epilogue);
/* The result of the last step, as a variable of another. */
int loop_result(const struct loop *loop);
/* The node as a loop, with its epilogue. False: it is none. */
bool loop_of(const struct problem *problem, struct loop *loop);
/* Whether the node is a loop whose values are all read as they lie, whatever the layout is. */
bool loop_is_flat(const struct problem *problem);

static inline bool operand_is_guarded(const struct loop_operand *operand, int axis)
{
    return operand->guarded >> axis & 1;
}

/* Whether elements along this axis become one. */
static inline bool loop_joins(const struct loop *loop, int axis)
{
    return loop->joined >> axis & 1;
}

/* As few axes as say the same; at least one. */
void loop_simplify(struct loop *loop);
/* `made` is the consumer with operand `read`, which is what the producer makes, computed where it is read. False: it
 * cannot be: the producer joins, elements are read that are no regular part of what it makes, or there is no room. */
bool loop_compose(const struct loop *consumer, int read, const struct loop *producer, struct loop *made);
/* Whether CPU-class devices have vectors along the innermost axis. */
bool loop_has_vectors(const struct loop *loop);

/* Appends the launches; loop_workspace(): bytes of scratch that they need. */
void loop_emit(struct loop *loop, cl_mem workspace, struct launch_list *list);
size_t loop_workspace(const struct loop *loop, const struct capabilities *device);
/* For loop_launch.c: the name of the text with the kernel run() of a loop as it stands; NULL without memory. */
const char *loop_source(const struct loop *loop, const struct capabilities *device);
enum { LOOP_VECTORS = 4 }; /* of a row at a time, where CPU-class devices join columns */

/* A node that is a loop as its attributes say, which passes make of several nodes. */
extern const struct operation operation_loop;
/* Of every operation that is a loop; and a list that has nothing else. */
extern const struct implementation loop_generated;
extern const struct implementation *const loop_implementations[];
double loop_flops(const struct problem *problem);

#endif
