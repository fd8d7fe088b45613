/* Quantised values: integers q that stand for (q - zero) scale. They are computed as floats. Gradients pass the
 * rounding as if it were not there, and are 0 where a number was saturated. */
#include "onnx/operators.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Notes how many operators of a model are quantised. */
void import_note_quantised(const struct import *import)
{
    const Onnx__GraphProto *graph = import->model->graph;
    size_t roundings = 0, parameters = 0;
    for (size_t i = 0; i < graph->n_node; i++) {
        const char *type = proto_text(graph->node[i]->op_type);
        const struct onnx_value *input = graph->node[i]->n_input ? import_find(import, graph->node[i]->input[0]) : NULL;
        roundings += !strcmp(type, "QuantizeLinear") || !strcmp(type, "QLinearConv") || !strcmp(type, "QLinearMatMul");
        parameters += !strcmp(type, "DequantizeLinear") && input && input->initialiser;
        parameters += !strcmp(type, "DynamicQuantizeLSTM") ? 2 : 0;
    }
    if (roundings + parameters)
        import_note(import,
            "the file is quantised: %zu parameters become float32, %zu values are rounded as in the file, and all is "
            "computed in float32; gradients pass the roundings",
            parameters, roundings);
}

/* ------------------------------------------------------------------------------------------ scales and zeros ---- */

/* The elements to which a scale or a zero point applies: an index of an axis, or a block of this size along the axis if
 * it is not 0. */
struct axis {
    int64_t file_axis, block;
};

static struct axis read_axis(const struct onnx_node *node)
{
    return (struct axis) { node_integer(node, "axis", 1), node_integer(node, "block_size", 0) };
}

/* Repeats each element `block` times along the axis, up to the size of x. */
static tutti_tensor repeated(
    const struct onnx_node *node, tutti_tensor t, const tutti_shape *x, int axis, int64_t blocks, int64_t block)
{
    tutti_shape apart = { .rank = x->rank + 1 }, joined = *x;
    for (int i = 0; i < apart.rank; i++) apart.sizes[i] = i <= axis ? x->sizes[i] : x->sizes[i - 1];
    apart.sizes[axis] = blocks;
    apart.sizes[axis + 1] = 1;
    joined.sizes[axis] = blocks * block;
    t = node_reshape(node, t, &apart);
    apart.sizes[axis + 1] = block;
    t = node_op(node, "expand", &t, 1, "shape=%s", list_print(apart.sizes, apart.rank).text);
    t = node_reshape(node, t, &joined);
    if (joined.sizes[axis] == x->sizes[axis]) return t;
    return node_cut(node, t, axis, 0, x->sizes[axis]);
}

/* A scale or a zero in a shape that broadcasts to x. */
static tutti_status aligned(
    const struct onnx_node *node, size_t position, const struct operand *x, struct axis along, tutti_tensor *tensor)
{
    struct operand t;
    int axis = 0;
    size_t count = 0;
    struct onnx_value *value = node_input(node, position);
    if (value && value->tensor.id < 0) value->initialiser = false; /* scales do not train */
    tutti_status status = node_operand(node, position, &t);
    if (status != TUTTI_OK) return status;
    *tensor = t.tensor;
    if (operand_has_batch_axis(&t)) return node_refuse("input %zu depends on the samples", position);
    if (!array_count(t.shape.rank, t.shape.sizes, &count)) return TUTTI_NO_MEMORY;
    if (count == 1) {
        *tensor = node_reshape(node, t.tensor, &TUTTI_SHAPE(1));
        return TUTTI_OK;
    }
    if ((status = operand_axis(x, along.file_axis, &axis)) != TUTTI_OK) return status;
    tutti_shape shape = { .rank = x->shape.rank };
    for (int i = 0; i < shape.rank; i++) shape.sizes[i] = i == axis ? x->shape.sizes[i] : 1;
    if (t.shape.rank == 1 && t.shape.sizes[0] == shape.sizes[axis]) {
        *tensor = node_reshape(node, t.tensor, &shape);
        return TUTTI_OK;
    }
    const int64_t size = x->shape.sizes[axis], block = along.block;
    bool fits = t.shape.rank == x->shape.rank && block > 0 && x->shape.rank < TUTTI_MAX_RANK && block <= size;
    for (int i = 0; i < t.shape.rank && fits; i++)
        fits = t.shape.sizes[i] == (i == axis ? (size - 1) / block + 1 : x->shape.sizes[i]);
    if (!fits)
        return node_refuse("input %zu is not a number, and has no number for each index along the axis", position);
    *tensor = repeated(node, t.tensor, &x->shape, axis, t.shape.sizes[axis], block);
    return TUTTI_OK;
}

/* (q - zero) scale; zero, scale: positions of inputs, 0 for none. */
static tutti_status dequantise(
    const struct onnx_node *node, struct operand *x, size_t scale, size_t zero, struct axis along)
{
    tutti_tensor t;
    tutti_status status = TUTTI_OK;
    if (zero && node_input(node, zero)) {
        if ((status = aligned(node, zero, x, along, &t)) != TUTTI_OK) return status;
        x->tensor = node_binary(node, "sub", x->tensor, t);
    }
    if (scale) {
        if ((status = aligned(node, scale, x, along, &t)) != TUTTI_OK) return status;
        x->tensor = node_binary(node, "mul", x->tensor, t);
    }
    return x->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------ QuantizeLinear ---- */

static bool range_of(int type, float *low, float *high)
{
    static const struct {
        int type;
        float low, high;
    } ranges[] = { { ONNX_UINT8, 0, 255 }, { ONNX_INT8, -128, 127 }, { ONNX_UINT16, 0, 65535 },
        { ONNX_INT16, -32768, 32767 }, { ONNX_UINT4, 0, 15 }, { ONNX_INT4, -8, 7 } };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (ranges[i].type != type) continue;
        *low = ranges[i].low;
        *high = ranges[i].high;
        return true;
    }
    return false;
}

/* round(x) + zero within the range, with the gradient of x where it is not saturated. Rounding has no gradient. So a
 * term is added that is 0 and has the gradient of x: the rest x - round(x), less the same number without a gradient,
 * which is a multiple of 2^-24. */
static tutti_tensor rounded(
    const struct onnx_node *node, tutti_tensor x, const tutti_tensor *zero, float low, float high)
{
    const float parts = 1 << 24;
    const tutti_tensor rounded = node_plain(node, "round", &x, 1), rest = node_binary(node, "sub", x, rounded);
    tutti_tensor same = node_binary(node, "mul", rest, node_constant(node, parts));
    same = node_plain(node, "round", &same, 1);
    same = node_binary(node, "mul", same, node_constant(node, 1 / parts));
    const tutti_tensor moved = zero ? node_binary(node, "add", rounded, *zero) : rounded;
    const tutti_tensor y = node_op(node, "clip", &moved, 1, "min=%.9g max=%.9g", (double)low, (double)high);
    const tutti_tensor inside = node_binary(node, "equal", y, moved);
    return node_binary(node, "add", y, node_binary(node, "mul", inside, node_binary(node, "sub", rest, same)));
}

/* round(x / scale) + zero, saturated to the type of the zero point, or to the type that the node states. */
static tutti_status quantise(
    const struct onnx_node *node, struct operand *x, size_t scale, size_t zero, struct axis along)
{
    tutti_tensor t;
    float low = 0, high = 0;
    const struct onnx_value *given = node_input(node, zero);
    const int asked = (int)node_integer(node, "output_dtype", 0), type = given ? given->type : asked;
    if (!range_of(type ? type : ONNX_UINT8, &low, &high)) return node_refuse("to type %d, which is not read", type);
    tutti_status status = aligned(node, scale, x, along, &t);
    if (status != TUTTI_OK) return status;
    const tutti_tensor divided = node_binary(node, "div", x->tensor, t);
    if (given && (status = aligned(node, zero, x, along, &t)) != TUTTI_OK) return status;
    x->tensor = rounded(node, divided, given ? &t : NULL, low, high);
    node_set_type(node, 0, type ? type : ONNX_UINT8);
    return x->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

tutti_status build_quantize_linear(struct onnx_node *node)
{
    struct operand x;
    tutti_status status = node_batched_if_whole(node, 0, &x);
    if (status == TUTTI_OK) status = quantise(node, &x, 1, 2, read_axis(node));
    return status == TUTTI_OK ? node_set_output(node, x.tensor, x.batch) : status;
}

/* ---------------------------------------------------------------------------------------- DequantizeLinear ---- */

/* Finds the position in a scale or zero point of the number for an element of x. */
static bool number_at(const struct array *t, const struct array *x, size_t element, int axis, int64_t block, size_t *at)
{
    size_t inner = 1;
    for (int i = axis + 1; i < x->rank; i++) inner *= (size_t)x->sizes[i];
    const size_t size = axis < x->rank ? (size_t)x->sizes[axis] : 1, index = element / inner % size;
    if (t->count == 1)
        *at = 0;
    else if (block == 0)
        *at = index;
    else
        *at = element / inner / size * inner * ((size - 1) / (size_t)block + 1) + index / (size_t)block * inner +
            element % inner;
    return *at < t->count;
}

static float number_of(const struct array *array, size_t at)
{
    return array->floats ? array->floats[at] : (float)array->integers[at].number;
}

/* The name of the parameter: that of the initialiser, without the suffix of onnxruntime. NULL: another value has this
 * name, or there is no memory. */
static char *name_of_parameter(const struct import *import, const struct onnx_value *from)
{
    static const char end[] = "_quantized";
    const size_t length = strlen(from->name), tail = sizeof end - 1;
    const bool ends = length > tail && !strcmp(from->name + length - tail, end);
    char *name = memory_format("%.*s", (int)(ends ? length - tail : length), from->name);
    const struct onnx_value *other = name ? import_find(import, name) : NULL;
    if (from->usage.nodes == 1 && (!other || other == from)) return name;
    free(name);
    return NULL;
}

/* An initialiser becomes a parameter of floats. */
static tutti_status dequantise_initialiser(const struct onnx_node *node, struct onnx_value *from, struct axis along)
{
    const struct array *scale = NULL, *zero = NULL, *x = NULL;
    struct onnx_value *output = node_output(node, 0);
    tutti_status status = node_array(node, 0, &x);
    if (status == TUTTI_OK) status = node_array(node, 1, &scale);
    if (status == TUTTI_OK && node_input(node, 2)) status = node_array(node, 2, &zero);
    if (status != TUTTI_OK || !output) return status;
    int64_t axis = along.file_axis < 0 ? along.file_axis + x->rank : along.file_axis;
    if (scale->count == 1) axis = 0;
    if (axis < 0 || (axis >= x->rank && scale->count != 1)) return fail(TUTTI_FORMAT, "its axis does not exist");
    if (along.block < 0 || (zero && zero->count != scale->count)) return fail(TUTTI_FORMAT, "its inputs do not fit");
    struct array *y = array_new(x->rank, x->sizes, true);
    if (!y) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < y->count; i++) {
        size_t at = 0;
        if (!number_at(scale, x, i, (int)axis, along.block, &at)) {
            array_free(y);
            return fail(TUTTI_FORMAT, "its scale has too few numbers");
        }
        y->floats[i] = (number_of(x, i) - (zero ? number_of(zero, at) : 0)) * number_of(scale, at);
    }
    output->array = y;
    output->initialiser = true;
    output->origin.label = name_of_parameter(node->import, from);
    if (from->stored && from->usage.nodes == 1) {
        array_free(from->array);
        from->array = NULL;
    }
    return TUTTI_OK;
}

/* [directions, inputs, gates] of integers as [directions, gates, inputs] of floats. There is a scale for each
 * direction, or for each of its gates. */
static struct array *gates_of(const struct array *x, const struct array *scale, const struct array *zero)
{
    const int64_t shape[] = { x->sizes[0], x->sizes[2], x->sizes[1] };
    struct array *y = array_new(3, shape, true);
    const size_t inputs = (size_t)x->sizes[1], gates = (size_t)x->sizes[2];
    for (size_t i = 0; y && i < y->count; i++) {
        const size_t direction = i / inputs / gates, gate = i / inputs % gates, input = i % inputs;
        const size_t at = scale->count == (size_t)x->sizes[0] ? direction : direction * gates + gate;
        const float q = number_of(x, (direction * inputs + input) * gates + gate);
        y->floats[i] = (q - (zero ? number_of(zero, at) : 0)) * number_of(scale, at);
    }
    return y;
}

tutti_status node_quantised_gates(const struct onnx_node *node, size_t position, size_t scale)
{
    const struct array *x = NULL, *scales = NULL, *zeros = NULL;
    struct onnx_value *from = node_input(node, position);
    tutti_status status = node_array(node, position, &x);
    if (status == TUTTI_OK) status = node_array(node, scale, &scales);
    if (status == TUTTI_OK && node_input(node, scale + 1)) status = node_array(node, scale + 1, &zeros);
    if (status != TUTTI_OK) return status;
    if (!from->initialiser || from->usage.nodes != 1)
        return node_refuse("'%s' is not an initialiser that only this node reads", from->name);
    if (x->rank != 3 || !x->integers || !scales->floats)
        return fail(TUTTI_FORMAT, "'%s' and its scale do not have their types and axes", from->name);
    const size_t directions = (size_t)x->sizes[0], gates = (size_t)x->sizes[2];
    const bool fits = scales->count == directions || scales->count == directions * gates;
    if (!fits || (zeros && (zeros->count != scales->count || !zeros->integers)))
        return fail(TUTTI_FORMAT, "the scale or the zero of '%s' has a wrong number of elements", from->name);
    struct array *y = gates_of(x, scales, zeros);
    if (!y) return TUTTI_NO_MEMORY;
    from->origin.label = name_of_parameter(node->import, from);
    array_free(from->array);
    from->array = y;
    from->stored = NULL;
    from->constant = false;
    from->type = ONNX_FLOAT;
    return TUTTI_OK;
}

tutti_status build_dequantize_linear(struct onnx_node *node)
{
    struct operand x;
    struct onnx_value *from = node_input(node, 0);
    const struct onnx_value *scale = node_input(node, 1), *zero = node_input(node, 2);
    const bool known = scale && (scale->stored || scale->array) && (!zero || zero->stored || zero->array);
    const int type = scale ? scale->type : ONNX_FLOAT;
    node_set_type(node, 0, onnx_type_is_float(type) ? type : ONNX_FLOAT);
    if (from && from->initialiser && from->stored && known && !onnx_type_is_float(from->type))
        return dequantise_initialiser(node, from, read_axis(node));
    tutti_status status = node_batched_if_whole(node, 0, &x);
    if (status == TUTTI_OK) status = dequantise(node, &x, 1, 2, read_axis(node));
    return status == TUTTI_OK ? node_set_output(node, x.tensor, x.batch) : status;
}

/* --------------------------------------------------------------------------------- of all elements at once ---- */

/* The range of the elements and of 0 becomes that of uint8. */
tutti_status build_dynamic_quantize_linear(struct onnx_node *node)
{
    struct operand x;
    tutti_status status = node_batched(node, 0, &x);
    if (status != TUTTI_OK) return status;
    if (operand_has_batch_axis(&x)) return node_refuse("its scale would depend on the other samples");
    const tutti_tensor none = node_constant(node, 0), most = node_constant(node, 255);
    tutti_tensor low = node_op(node, "reduce_min", &x.tensor, 1, "keepdims=0");
    tutti_tensor high = node_op(node, "reduce_max", &x.tensor, 1, "keepdims=0");
    low = node_binary(node, "min", low, none);
    high = node_binary(node, "max", high, none);
    const tutti_tensor scale = node_binary(node, "div", node_binary(node, "sub", high, low), most);
    tutti_tensor zero = node_binary(node, "div", node_plain(node, "neg", &low, 1), scale);
    zero = node_op(node, "clip", &zero, 1, "min=0 max=255");
    zero = node_plain(node, "round", &zero, 1);
    const tutti_tensor y = rounded(node, node_binary(node, "div", x.tensor, scale), &zero, 0, 255);
    const tutti_tensor made[] = { y, node_op(node, "reshape", &scale, 1, "shape="),
        node_op(node, "reshape", &zero, 1, "shape=") };
    for (size_t i = 0; i < 3 && status == TUTTI_OK; i++) {
        status = node_set_output_at(node, i, made[i], x.batch);
        node_set_type(node, i, i == 1 ? ONNX_FLOAT : ONNX_UINT8);
    }
    return status;
}

/* --------------------------------------------------------------------------------------- products, windows ---- */

/* Makes the node's output so far one of int32, or quantises it by inputs 6 and 7. */
static tutti_status finish_product(const struct onnx_node *node, bool scaled, struct axis along)
{
    const struct onnx_value *output = node_output(node, 0);
    node_set_type(node, 0, ONNX_INT32);
    if (!scaled || !output) return TUTTI_OK;
    struct operand y = { .tensor = output->tensor, .batch = output->batch };
    tutti_status status = tutti_shape_of(node->import->network, y.tensor, &y.shape);
    if (status == TUTTI_OK) status = quantise(node, &y, 6, 7, along);
    return status == TUTTI_OK ? node_set_output(node, y.tensor, y.batch) : status;
}

/* MatMulInteger: a, b, their zeros. QLinearMatMul: a, its scale and zero, the same of b, those of the result. */
tutti_status build_quantised_matmul(struct onnx_node *node)
{
    const bool scaled = !strcmp(node->proto->op_type, "QLinearMatMul");
    struct operand a, b;
    const size_t second = scaled ? 3 : 1;
    tutti_status status = node_batched_if_whole(node, 0, &a);
    if (status == TUTTI_OK) status = node_operand(node, second, &b);
    if (status == TUTTI_OK) status = dequantise(node, &a, scaled ? 1 : 0, 2, (struct axis) { -2, 0 });
    if (status == TUTTI_OK) status = dequantise(node, &b, scaled ? 4 : 0, scaled ? 5 : 3, (struct axis) { -1, 0 });
    if (status == TUTTI_OK) status = node_matmul(node, &a, &b, second);
    return status == TUTTI_OK ? finish_product(node, scaled, (struct axis) { -2, 0 }) : status;
}

/* The bias of QLinearConv has the scale of x times that of the weight. */
static tutti_status read_bias(const struct onnx_node *node, struct operand *bias)
{
    const struct axis channels = { 0, 0 };
    tutti_status status = node_fixed(node, 8, bias);
    if (status == TUTTI_OK) status = dequantise(node, bias, 1, 0, channels);
    return status == TUTTI_OK ? dequantise(node, bias, 4, 0, channels) : status;
}

/* ConvInteger: x, weight, their zeros. QLinearConv: as QLinearMatMul, and a bias. */
tutti_status build_quantised_conv(struct onnx_node *node)
{
    const bool scaled = !strcmp(node->proto->op_type, "QLinearConv");
    struct operand x, weight, bias;
    const bool biased = scaled && node_input(node, 8);
    tutti_status status = node_batched(node, 0, &x);
    if (status == TUTTI_OK) status = node_fixed(node, scaled ? 3 : 1, &weight);
    if (status == TUTTI_OK) status = dequantise(node, &x, scaled ? 1 : 0, 2, (struct axis) { 1, 0 });
    if (status == TUTTI_OK) status = dequantise(node, &weight, scaled ? 4 : 0, scaled ? 5 : 3, (struct axis) { 0, 0 });
    if (status == TUTTI_OK && biased) status = read_bias(node, &bias);
    if (status == TUTTI_OK) status = operand_batch_first(node, 0, &x);
    if (status == TUTTI_OK) status = node_conv(node, "conv", &x, &weight, biased ? &bias : NULL);
    return status == TUTTI_OK ? finish_product(node, scaled, (struct axis) { 1, 0 }) : status;
}
