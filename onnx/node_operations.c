/* Operations of the network that are added for a node. */
#include "onnx/operators.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "tutti_inspect.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tutti_tensor node_op(const struct onnx_node *node, const char *operation, const tutti_tensor *inputs, int count,
    const char *attributes, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, attributes);
    const int length = number_print_list(text, sizeof text, attributes, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text)
        return tutti_op(node->import->network, operation, inputs, count, "attributes-longer-than-1023-bytes");
    /* A name with a space would be two words. */
    const char *name = proto_text(node->proto->name);
    if (*name && !strpbrk(name, " ") && strlen(name) + 7 < sizeof text - (size_t)length)
        number_print(text + length, sizeof text - (size_t)length, " name=%s", name);
    return tutti_op(node->import->network, operation, inputs, count, text);
}

tutti_tensor node_plain(const struct onnx_node *node, const char *operation, const tutti_tensor *inputs, int count)
{
    return node_op(node, operation, inputs, count, " ");
}

tutti_tensor node_constant(const struct onnx_node *node, float number)
{
    return tutti_constant(node->import->network, NULL, TUTTI_SHAPE(1), &number);
}

tutti_tensor node_integer_constant(
    const struct onnx_node *node, size_t output, const char *suffix, tutti_shape shape, const int32_t *numbers)
{
    const Onnx__NodeProto *proto = node->proto;
    char *name = memory_format("%s~%s", proto->n_output > output ? proto->output[output] : "", suffix);
    const tutti_tensor made = name
        ? tutti_constant_typed(node->import->network, name, TUTTI_DTYPE_I32, shape.sizes, shape.rank, numbers)
        : (tutti_tensor) { -1 };
    free(name);
    return made;
}

tutti_tensor node_binary(const struct onnx_node *node, const char *operation, tutti_tensor a, tutti_tensor b)
{
    return node_elements(node, operation, (tutti_tensor[]) { a, b }, 2);
}

/* node_constant() has an axis. It is removed from a result that is one number of each sample. */
tutti_tensor node_elements(const struct onnx_node *node, const char *operation, const tutti_tensor *inputs, int count)
{
    const tutti_network *network = node->import->network;
    const tutti_tensor y = node_plain(node, operation, inputs, count);
    tutti_tensor_info info = { .size = sizeof info };
    bool is_number = false;
    if (y.id < 0 || tutti_network_tensor(network, y, &info) != TUTTI_OK || !info.for_each_sample) return y;
    if (info.shape.rank != 1 || info.shape.sizes[0] != 1) return y;
    for (int i = 0; i < count; i++)
        is_number |= tutti_network_tensor(network, inputs[i], &info) == TUTTI_OK && info.shape.rank == 0;
    return is_number ? node_op(node, "reshape", &y, 1, "shape=") : y;
}

tutti_tensor node_wrapped(const struct onnx_node *node, tutti_tensor x, int type)
{
    const float bits = type == ONNX_UINT8 || type == ONNX_INT8 ? 8
        : type == ONNX_UINT16 || type == ONNX_INT16            ? 16
        : type == ONNX_UINT32                                  ? 32
        : type == ONNX_UINT64                                  ? 64
                                                               : 0;
    const bool has_sign = type == ONNX_INT8 || type == ONNX_INT16;
    if (bits == 0) return x;
    const tutti_tensor all = node_constant(node, exp2f(bits));
    if (!has_sign) return node_binary(node, "mod", x, all);
    const tutti_tensor half = node_constant(node, exp2f(bits - 1));
    x = node_binary(node, "mod", node_binary(node, "add", x, half), all);
    return node_binary(node, "sub", x, half);
}

tutti_tensor node_truncated(const struct onnx_node *node, tutti_tensor x)
{
    const tutti_tensor rounded = node_plain(node, "round", &x, 1), apart = node_binary(node, "sub", x, rounded);
    const tutti_tensor size = node_plain(node, "abs", &x, 1);
    const tutti_tensor limit = node_op(node, "scale", &size, 1, "factor=%.9g", (double)(FLT_EPSILON * 16));
    const tutti_tensor is_integer = node_binary(node, "less_or_equal", node_plain(node, "abs", &apart, 1), limit);
    return node_elements(node, "where", (tutti_tensor[]) { is_integer, rounded, node_plain(node, "trunc", &x, 1) }, 3);
}

struct list_text list_print(const int64_t *numbers, int count)
{
    struct list_text list = { "" };
    size_t used = 0;
    for (int i = 0; i < count && used < sizeof list.text; i++)
        used += (size_t)snprintf(list.text + used, sizeof list.text - used, "%s%" PRId64, i ? "," : "", numbers[i]);
    return list;
}

tutti_tensor node_reshape(const struct onnx_node *node, tutti_tensor x, const tutti_shape *shape)
{
    return node_op(node, "reshape", &x, 1, "shape=%s", list_print(shape->sizes, shape->rank).text);
}

tutti_tensor node_permuted(const struct onnx_node *node, tutti_tensor x, const int *order, int rank)
{
    int64_t perm[TUTTI_MAX_RANK];
    bool moves = false;
    for (int i = 0; i < rank; i++) {
        perm[i] = order[i];
        moves |= order[i] != i;
    }
    return moves ? node_op(node, "transpose", &x, 1, "perm=%s", list_print(perm, rank).text) : x;
}

tutti_tensor node_cut(const struct onnx_node *node, tutti_tensor x, int axis, int64_t start, int64_t end)
{
    return node_op(node, "slice", &x, 1, "axes=%d starts=%" PRId64 " ends=%" PRId64, axis, start, end);
}
