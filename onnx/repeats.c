/* Axes along which a value without a batch has equal parts, because Expand, or a constant, repeats them: in a file for
 * one number of samples, such an axis may be the batch. Expand sets the axes (movement.c); here they pass through the
 * operators that compute initial states. */
#include "onnx/operators.h"

#include <string.h>

bool value_repeats_along(const struct import *import, struct onnx_value *value, int axis)
{
    int64_t factor = 0;
    if (value->repeated >> axis & 1) return true;
    if (value->initialiser || value->copied || value->forced_parameter) return false;
    if (import_load(import, value) != TUTTI_OK || !value->array) return false;
    return array_is_linear(value->array, axis, &factor) && factor == 0;
}

/* Bits of the axes of a result of `rank` axes along which an input has the same part: broadcasting repeats it there, or
 * the input repeats itself. */
static unsigned input_repeats(const struct onnx_node *node, size_t position, int rank)
{
    struct onnx_value *value = node_input(node, position);
    tutti_shape shape = { 0 };
    unsigned bits = 0;
    if (!value) return ~0u;
    if (value->batch.batched || value_shape(node->import, value, &shape) != TUTTI_OK || shape.rank > rank) return 0;
    for (int i = 0; i < rank; i++) {
        const int own = i - (rank - shape.rank);
        if (own < 0 || shape.sizes[own] == 1 || value_repeats_along(node->import, value, own)) bits |= 1u << i;
    }
    return bits;
}

/* Returns the bits for a product of matrices [..., rows, inner] and [..., inner, columns]. */
static unsigned product_repeats(const struct onnx_node *node, int rank)
{
    tutti_shape first = { 0 }, second = { 0 };
    const struct onnx_value *a = node_input(node, 0), *b = node_input(node, 1);
    if (!a || !b || value_shape(node->import, a, &first) != TUTTI_OK ||
        value_shape(node->import, b, &second) != TUTTI_OK || first.rank < 2 || second.rank < 2)
        return 0;
    const unsigned matrix = 3u << (rank - 2), rows = 1u << (rank - 2);
    return input_repeats(node, 0, rank) & (input_repeats(node, 1, rank) | matrix) & (~matrix | rows);
}

/* Axes that are inserted or removed have the size 1. */
static unsigned squeezed_repeats(const struct onnx_node *node, int rank, bool insert)
{
    int64_t axes[TUTTI_MAX_RANK];
    int count = 0;
    unsigned changed = 0, bits = 0;
    tutti_shape from = { 0 };
    struct onnx_value *x = node_input(node, 0);
    if (!x || value_shape(node->import, x, &from) != TUTTI_OK) return 0;
    const int longer = insert ? rank : from.rank;
    if (node_list_or_attribute(node, "axes", 1, axes, TUTTI_MAX_RANK, &count) != TUTTI_OK || count == 0) return 0;
    if (axes_read(axes, count, longer, &changed) != TUTTI_OK) return 0;
    for (int i = 0, at = 0; i < longer; i++) {
        if (changed >> i & 1) continue;
        if (value_repeats_along(node->import, x, insert ? at : i)) bits |= 1u << (insert ? i : at);
        at++;
    }
    return bits;
}

static unsigned transposed_repeats(const struct onnx_node *node, int rank)
{
    size_t count = 0;
    unsigned bits = 0;
    struct onnx_value *x = node_input(node, 0);
    const int64_t *order = node_integers(node, "perm", &count);
    if (order && count != (size_t)rank) return 0;
    for (int i = 0; i < rank; i++) {
        const int from = order ? (int)order[i] : rank - 1 - i;
        if (value_repeats_along(node->import, x, from < 0 ? from + rank : from)) bits |= 1u << i;
    }
    return bits;
}

static bool drops(const struct onnx_node *node)
{
    float ratio = 0;
    if (strcmp(node->proto->op_type, "Dropout")) return false;
    return node_scalar(node, 1, node_number(node, "ratio", 0.5f), &ratio) != TUTTI_OK || ratio != 0;
}

/* Bits of all axes of the result along which its parts are equal. */
static unsigned result_repeats(const struct onnx_node *node, int rank)
{
    static const char *const first_alone[] = { "Identity", "Slice", "Cast", "Dropout", "Clip", "Gelu", NULL };
    static const char *const broadcast[] = { "Div", "Pow", "Max", "Min", NULL };
    const char *type = node->proto->op_type;
    unsigned bits = ~0u;
    if (drops(node)) return 0; /* its parts differ in training */
    if (type_is_among(type, first_alone)) return input_repeats(node, 0, rank);
    if (!strcmp(type, "MatMul") && rank >= 2) return product_repeats(node, rank);
    if (!strcmp(type, "Gemm") && !node_integer(node, "transA", 0))
        return input_repeats(node, 0, rank) & input_repeats(node, 2, rank) & 1;
    if (!strcmp(type, "Transpose")) return transposed_repeats(node, rank);
    if (!strcmp(type, "Squeeze") || !strcmp(type, "Unsqueeze")) return squeezed_repeats(node, rank, *type == 'U');
    if (!node->broadcasts && !type_is_among(type, broadcast)) return 0;
    for (size_t i = 0; i < node->proto->n_input; i++) bits &= input_repeats(node, i, rank);
    return bits;
}

void node_find_repeats(const struct onnx_node *node)
{
    struct onnx_value *y = node_output(node, 0);
    tutti_shape shape = { 0 };
    if (!y || y->batch.batched || y->tensor.id < 0 || y->array || y->stored || y->repeated) return;
    if (value_shape(node->import, y, &shape) != TUTTI_OK) return;
    const unsigned bits = result_repeats(node, shape.rank);
    for (int i = 0; i < shape.rank; i++)
        if (shape.sizes[i] > 1) y->repeated |= bits & 1u << i;
}
