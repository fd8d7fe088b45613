/* Attention as one node, which stores no scores: attention_cpu.cl has the formulas. tutti_attention() does not make it;
 * a pattern does, of the products and the softmax between them (attention_pattern.c), where a device's kernels profit.
 */
#ifndef LAYERS_ATTENTION_H
#define LAYERS_ATTENTION_H

#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"

/* q [N, heads, length, width], k [N, heads, keys, width], v [N, heads, keys, width_v], y as q with width_v; or, if
 * joined, [N, length, heads, width]. bias: broadcast to [N, heads, length, keys]. softmax [N, heads, length, 2]:
 * the largest score of a query, and the sum of exp(score - that). One number, the logarithm, would lose the sum next
 * to a mask of -1e9. The gradient's inputs are those of the node, then y, softmax and dy; it has none of the bias. */
struct attention_attributes {
    bool q_joined, k_joined, v_joined, y_joined;
    bool open; /* queries that see no key give 0 instead of NaN */
    float scale;
    float probability; /* of dropout; 0: none */
    int stream;        /* as dropout's */
};
ATTRIBUTES(attention)
/* Read the shape of a query, key or value. */
static inline int64_t attention_heads(const struct value *x, bool joined)
{
    return value_size(x, joined ? 1 : 2);
}
static inline int64_t attention_length(const struct value *x, bool joined)
{
    return value_size(x, joined ? 2 : 1);
}

/* Inputs, of the node up to ATTENTION_CONSTANTS: it has ATTENTION_Y of them. */
enum {
    ATTENTION_Q,
    ATTENTION_K,
    ATTENTION_V,
    ATTENTION_BIAS,
    ATTENTION_CONSTANTS,
    ATTENTION_Y,
    ATTENTION_SOFTMAX,
    ATTENTION_DY,
    ATTENTION_INPUTS
};

struct attention_sizes {
    int64_t samples, heads, length, keys, width, width_v;
    int64_t bias_sample, bias_head, bias_row; /* elements from one to the next; 0: the bias is repeated */
};
struct attention_sizes attention_sizes(const struct problem *problem);
bool attention_is_gradient(const struct problem *problem);
double attention_flops(const struct problem *problem), attention_bytes(const struct problem *problem);

/* What dropout's random numbers depend on, as dropout.cl's for probabilities [N, heads, length, keys]. */
struct dropping {
    uint32_t threshold, stream;
    double scale;
    int64_t elements_of_sample;
};
struct dropping attention_dropping(const struct problem *problem, const struct attention_sizes *sizes);

/* The build options that both kernels have. */
enum { ATTENTION_OPTIONS = 192 };
const char *attention_options(const struct problem *problem, char text[ATTENTION_OPTIONS]);

/* The values of both lists of arguments (arguments/attention.h). Absent buffers are never read nor written. */
#define ATTENTION_VALUES(o, sizes, drop, node)                                                                   \
    .q = (o)->inputs[ATTENTION_Q], .k = (o)->inputs[ATTENTION_K], .v = (o)->inputs[ATTENTION_V],                 \
    .bias = (o)->inputs[ATTENTION_BIAS] ? (o)->inputs[ATTENTION_BIAS] : (o)->inputs[ATTENTION_Q],                \
    .constants = (o)->inputs[ATTENTION_CONSTANTS] ? (o)->inputs[ATTENTION_CONSTANTS] : (o)->inputs[ATTENTION_Q], \
    .heads = (sizes).heads, .length = (sizes).length, .keys = (sizes).keys, .width = (sizes).width,              \
    .width_v = (sizes).width_v, .bias_sample = (sizes).bias_sample, .bias_head = (sizes).bias_head,              \
    .bias_row = (sizes).bias_row, .scale = (double)attention_attributes(node)->scale,                            \
    .elements_of_sample = (drop).elements_of_sample, .threshold = (drop).threshold, .drop_scale = (drop).scale,  \
    .stream = (drop).stream
#define ATTENTION_FORWARD_VALUES(o) .y = (o)->outputs[0], .softmax = (o)->outputs[1] ? (o)->outputs[1] : (o)->outputs[0]
#define ATTENTION_GRADIENT_VALUES(o)                                                                           \
    .y = (o)->inputs[ATTENTION_Y], .softmax = (o)->inputs[ATTENTION_SOFTMAX], .dy = (o)->inputs[ATTENTION_DY], \
    .dq = attention_any(o, 0), .dk = attention_any(o, 1), .dv = attention_any(o, 2)
/* Output i, or another one where nobody wants it. */
cl_mem attention_any(const struct operands *operands, int i);

extern const struct implementation attention_blocks, attention_plain;
/* Why the CPU class's kernels do not take the problem; NULL: they do. */
const char *attention_blocks_refusal(const struct problem *problem);
operation_reference attention_interpret, attention_interpret_gradient;

#endif
