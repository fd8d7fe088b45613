/* Generated kernels. A loop runs over up to eight axes and reads its operands by strides. It computes each element by a
 * few expressions (layers/pointwise.h), and stores it, or reduces it along some of the axes. The files:
 * loop.c describes nodes as loops, loop_compose.c makes one loop of two, loop_launch.c divides a loop over
 * work-items, loop_source.c writes the kernel's text. */
#ifndef LAYERS_LOOP_H
#define LAYERS_LOOP_H

#include "layers/pointwise.h"

enum { LOOP_OPERANDS = 8, LOOP_EXPRESSIONS = 12 };
/* A variable of an expression: i < LOOP_EXPRESSION is operand i, LOOP_EXPRESSION + i is the result of expression i,
 * LOOP_UNUSED is none. */
enum { LOOP_EXPRESSION = LOOP_OPERANDS, LOOP_UNUSED = -1 };
enum { LOOP_ADDED = -1 }; /* loop_operand.input: the tensor that FUSION_ADD adds */

struct loop_operand {
    int input; /* number of the node's input, or LOOP_ADDED; in plan/compose.c: number of the value */
    int64_t offset, strides[TUTTI_MAX_RANK]; /* in elements; 0: the element is the same along the whole axis */
    /* A set of axes (bits). Along these, the operand has elements from `low` to high - 1 only; others are `outside`. */
    unsigned guarded;
    int64_t low[TUTTI_MAX_RANK], high[TUTTI_MAX_RANK];
    float outside;
    /* Embedding: adds index_stride * (element of operand `index`) to the position. The element is 0 if the index is
     * not in [0, index_size); with index_from_end, negative ones count from the end. */
    bool indexed, index_from_end;
    int index;
    int64_t index_stride, index_size;
    /* Set by emit(). */
    cl_mem buffer;
    enum value_type type;
};

struct loop_expression {
    const struct expression *formula;
    float low, high;
    int variables[POINTWISE_VARIABLES]; /* 2: operand 2; LOOP_EXPRESSION + 1: the result of expression 1 */
};

enum loop_reduction { REDUCE_NONE, REDUCE_SUM, REDUCE_PRODUCT, REDUCE_MAX, REDUCE_MIN };
/* The number that a reduction begins with, and the operation that makes one of two numbers. */
struct reduction {
    float start;
    const struct operation *operation;
};
extern const struct reduction reductions[]; /* indexed by enum loop_reduction; the first entry is empty */

struct loop {
    int rank;
    int64_t sizes[TUTTI_MAX_RANK];
    struct loop_operand operands[LOOP_OPERANDS], out;
    int operand_count;
    struct loop_expression expressions[LOOP_EXPRESSIONS]; /* the element is the result of the last one, or operand 0 */
    int expression_count;
    /* REDUCE_NONE: each element is stored. Otherwise the elements along the axes in `reduced` (bits; strides of `out`
     * are 0 there) are reduced to one number, which is multiplied by `scale` and stored. */
    enum loop_reduction reduction;
    unsigned reduced;
    double scale;
};

/* For functions that describe a node as a loop (struct operation.loop). loop_begin(): the loop runs over the axes of
 * `over`, the output. loop_add_operand() returns the operand's number; loop_add_expression() returns an expression
 * whose variables are all unused. */
void loop_begin(struct loop *loop, const struct value *over);
int loop_add_operand(struct loop *loop, const struct problem *problem, int input);
/* The operand has elements from `low` to high - 1 along an axis of the loop with `size` elements. Both are clipped. */
void loop_guard(struct loop_operand *operand, int axis, int64_t low, int64_t high, int64_t size);
struct loop_expression *loop_add_expression(struct loop *loop, const struct expression *formula, float low, float high);
/* An operand that a loop of this shape reads by numpy's rules for broadcasting: axes are counted from the last one, and
 * an axis that is missing or has size 1 has stride 0. The batch axis of the value is the batch axis of the loop. */
struct loop_operand loop_operand_of(const struct value *value, const tutti_shape *shape, bool batched);
/* The loop's result, as a variable of the next expression. */
static inline int loop_result(const struct loop *loop)
{
    return loop->expression_count ? LOOP_EXPRESSION + loop->expression_count - 1 : 0;
}
/* Computes an element in double precision from the operands' elements. */
double loop_evaluate(const struct loop *loop, const double *operands);
/* Describes the node as a loop, with what is fused. False if the operation has no loop. */
bool loop_of(const struct problem *problem, struct loop *loop);
/* Whether all tensors of the node have equal shapes and are read in memory order, so that any layout will do. */
bool loop_is_flat(const struct problem *problem);

static inline bool operand_is_guarded(const struct loop_operand *operand, int axis)
{
    return operand->guarded >> axis & 1;
}

/* Whether elements along this axis are reduced. */
static inline bool loop_reduces(const struct loop *loop, int axis)
{
    return loop->reduced >> axis & 1;
}

/* Merges axes, and drops those of size 1, as far as possible. At least one axis remains. */
void loop_simplify(struct loop *loop);
/* Replaces operand `read` of the consumer, which is the producer's output, by the producer's operands and
 * expressions. False if this is impossible: the producer reduces, the consumer's strides cannot be expressed in the
 * producer's axes, or there are too many operands or expressions. */
bool loop_compose(const struct loop *consumer, int read, const struct loop *producer, struct loop *made);
/* Whether kernels of the CPU class use vectors along the innermost axis. */
bool loop_has_vectors(const struct loop *loop);
/* Whether a work-item of the GPU class makes four results that lie together. */
bool loop_has_fours(const struct loop *loop);

/* Appends the launches, which need loop_workspace() bytes. */
void loop_emit(struct loop *loop, cl_mem workspace, struct launch_list *list);
size_t loop_workspace(const struct loop *loop, const struct capabilities *device);
/* An argument of the kernel run(). One list, in order, gives both the parameters in the text and the arguments that
 * the launch sets. The body of the kernel uses their names. */
struct loop_argument {
    enum { LOOP_READ, LOOP_WRITTEN, LOOP_LONG, LOOP_FLOAT } kind;
    const char *name;
    const struct loop_operand *operand; /* of LOOP_READ and LOOP_WRITTEN: the buffer */
    int64_t integer;
    double real;
};
struct loop_arguments {
    struct loop_argument list[LOOP_OPERANDS + 1 + 8];
    int count;
};
/* For loop_launch.c: writes a loop's kernel run() and returns the name of the text, for launch_add(); or NULL. */
const char *loop_source(
    const struct loop *loop, const struct loop_arguments *arguments, const struct capabilities *device);
enum { LOOP_VECTORS = 4 }; /* CPU class, sums of columns: vectors of a row that are summed at the same time */

/* Attributes of a node that plan/compose.c makes of several ones. */
struct loop_attributes {
    const struct loop *loop; /* the graph's memory */
};
ATTRIBUTES(loop)
extern const struct operation operation_loop;
/* The implementation of every operation that has a loop, and a list with only this one. */
extern const struct implementation loop_generated;
extern const struct implementation *const loop_implementations[];
double loop_flops(const struct problem *problem);

#endif
