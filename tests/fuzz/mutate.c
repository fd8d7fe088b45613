/* Changes ONNX files as files of ONNX: other operators, attributes, shapes, numbers and edges. Bytes are changed now
 * and then, too. */
#include "base/random.h"
#include "names.h"
#include "onnx/onnx.pb-c.h"
#include "tests/fuzz/target.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* libFuzzer calls these two. An input is changed, to at most `most` bytes; two are joined in `out`. Both return the new
 * size. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(
    const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out, size_t most, unsigned seed);

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { ELEMENTS = 64, INT32 = 6, INT64 = 7, FLOAT = 1, NAME = 24 };

/* ------------------------------------------------------------------------------------------------------ random ---- */

static uint64_t seed, drawn;

static size_t below(size_t bound)
{
    return bound ? (size_t)random_below(seed, 0, drawn++, bound) : 0;
}

static int64_t number(void)
{
    static const int64_t edges[] = { INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
        16, 31, 64, 100, 1 << 16, (int64_t)1 << 32, (int64_t)1 << 40, (int64_t)1 << 62 };
    return below(4) ? (int64_t)below(7) - 1 : edges[below(COUNT(edges))];
}

static float real(void)
{
    static const float edges[] = { 0, 1, -1, 0.5f, 1e-30f, 1e30f, -1e38f, INFINITY, -INFINITY, NAN };
    return below(2) ? edges[below(COUNT(edges))] : (float)number() / 4;
}

/* ------------------------------------------------------------------------------------------------------ memory ---- */

/* Memory that protobuf-c frees with the model. */
static void *memory(void *old, size_t bytes)
{
    void *made = realloc(old, bytes + 1);
    if (!made) abort();
    return made;
}

static void set_text(char **text, const char *to)
{
    char *made = strcpy(memory(NULL, strlen(to)), to);
    free(*text);
    *text = made;
}

/* A list of pointers gets room for one more. */
#define GROW(list, count) ((list) = memory((list), ((count) + 1) * sizeof *(list)), (count)++)

static void *copy(const ProtobufCMessage *message)
{
    uint8_t *bytes = memory(NULL, protobuf_c_message_get_packed_size(message));
    const size_t size = protobuf_c_message_pack(message, bytes);
    ProtobufCMessage *made = protobuf_c_message_unpack(message->descriptor, NULL, size, bytes);
    free(bytes);
    if (!made) abort();
    return made;
}

/* ------------------------------------------------------------------------------------------------------- names ---- */

/* The name of a value: an initialiser, an input, the output of a node, or none. */
static const char *any_value(const Onnx__GraphProto *graph)
{
    const size_t at = below(graph->n_initializer + graph->n_input + graph->n_node + 1);
    const char *name = NULL;
    if (at < graph->n_initializer)
        name = graph->initializer[at]->name;
    else if (at < graph->n_initializer + graph->n_input)
        name = graph->input[at - graph->n_initializer]->name;
    else if (at < graph->n_initializer + graph->n_input + graph->n_node) {
        const Onnx__NodeProto *node = graph->node[at - graph->n_initializer - graph->n_input];
        if (node->n_output) name = node->output[below(node->n_output)];
    }
    return name ? name : "";
}

static void new_name(char **text)
{
    char name[NAME] = "v";
    for (int i = 1; i < 8; i++) name[i] = (char)('a' + below(26));
    set_text(text, name);
}

/* -------------------------------------------------------------------------------------------------- attributes ---- */

static void change_integers(int64_t **list, size_t *count)
{
    const size_t way = below(8);
    if (way == 0 && *count) {
        --*count;
    } else if (way == 1 && *count < ELEMENTS) {
        const size_t at = GROW(*list, *count);
        (*list)[at] = number();
    } else if (*count) {
        int64_t *element = &(*list)[below(*count)];
        *element = below(3) ? number() : (int64_t)((uint64_t)*element + below(3) - 1);
    }
}

static void change_text(ProtobufCBinaryData *text)
{
    const char *word = words[below(COUNT(words))];
    free(text->data);
    text->len = strlen(word);
    text->data = memcpy(memory(NULL, text->len), word, text->len);
    if (below(8) == 0) text->data[below(text->len)] = (uint8_t)below(256);
}

static void change_attribute(Onnx__AttributeProto *attribute)
{
    switch (below(8)) {
    case 0: set_text(&attribute->name, words[below(COUNT(words))]); break;
    case 1: attribute->type = (int32_t)below(9); break;
    default:
        if (attribute->n_ints) {
            change_integers(&attribute->ints, &attribute->n_ints);
        } else if (attribute->has_s) {
            change_text(&attribute->s);
        } else if (attribute->has_f) {
            attribute->f = real();
        } else {
            attribute->has_i = true;
            attribute->i = number();
        }
    }
}

static void add_attribute(Onnx__NodeProto *node)
{
    Onnx__AttributeProto *made = memory(NULL, sizeof *made);
    onnx__attribute_proto__init(made);
    set_text(&made->name, words[below(COUNT(words))]);
    made->has_type = true;
    const size_t kind = below(4);
    made->type = (int32_t[]) { 2, 1, 3, 7 }[kind];
    made->has_i = kind == 0;
    made->has_f = kind == 1;
    made->has_s = kind == 2;
    made->i = number();
    made->f = real();
    if (kind == 2) change_text(&made->s);
    for (size_t i = kind == 3 ? 1 + below(4) : 0; i > 0; i--) {
        const size_t at = GROW(made->ints, made->n_ints);
        made->ints[at] = number();
    }
    const size_t at = GROW(node->attribute, node->n_attribute);
    node->attribute[at] = made;
}

static void drop_attribute(Onnx__NodeProto *node)
{
    if (!node->n_attribute) return;
    const size_t at = below(node->n_attribute);
    onnx__attribute_proto__free_unpacked(node->attribute[at], NULL);
    node->attribute[at] = node->attribute[--node->n_attribute];
}

/* ----------------------------------------------------------------------------------------------------- tensors ---- */

/* A shape of few elements, and as many of them. */
static void change_shape(Onnx__TensorProto *tensor)
{
    size_t count = 1;
    change_integers(&tensor->dims, &tensor->n_dims);
    for (size_t i = 0; i < tensor->n_dims; i++) {
        if (tensor->dims[i] < 0 || tensor->dims[i] > ELEMENTS || count * (size_t)tensor->dims[i] > 4 * ELEMENTS)
            return; /* a shape that does not fit */
        count *= (size_t)tensor->dims[i];
    }
    const size_t bytes = count * (tensor->data_type == INT64 ? 8 : 4);
    if (tensor->data_type != FLOAT && tensor->data_type != INT64 && tensor->data_type != INT32) return;
    const size_t before = tensor->has_raw_data ? tensor->raw_data.len : 0;
    tensor->raw_data.data = memory(tensor->raw_data.data, bytes);
    if (bytes > before) memset(tensor->raw_data.data + before, 0, bytes - before);
    tensor->raw_data.len = bytes;
    tensor->has_raw_data = true;
}

static void change_element(Onnx__TensorProto *tensor)
{
    const size_t size = tensor->data_type == INT64 ? 8 : 4;
    const int64_t integer = number();
    const int32_t narrow = (int32_t)integer;
    const float single = real();
    if (tensor->has_raw_data && tensor->raw_data.len >= size) {
        const void *from = tensor->data_type == INT64 ? (const void *)&integer
            : tensor->data_type == FLOAT              ? (const void *)&single
                                                      : &narrow;
        memcpy(tensor->raw_data.data + below(tensor->raw_data.len / size) * size, from, size);
    } else if (tensor->n_int64_data) {
        tensor->int64_data[below(tensor->n_int64_data)] = integer;
    } else if (tensor->n_float_data) {
        tensor->float_data[below(tensor->n_float_data)] = single;
    }
}

static void change_tensor(Onnx__TensorProto *tensor)
{
    switch (below(8)) {
    case 0:
    case 1: change_shape(tensor); break;
    case 2: tensor->data_type = (int32_t)below(17); break;
    default: change_element(tensor);
    }
}

/* A list of integers, as of axes, or a float tensor. */
static void add_initialiser(Onnx__GraphProto *graph)
{
    Onnx__TensorProto *made = memory(NULL, sizeof *made);
    onnx__tensor_proto__init(made);
    new_name(&made->name);
    made->has_data_type = true;
    made->data_type = below(3) ? INT64 : FLOAT;
    for (size_t i = 0, rank = below(3); i < rank; i++) {
        const size_t at = GROW(made->dims, made->n_dims);
        made->dims[at] = 1 + (int64_t)below(4);
    }
    change_shape(made);
    for (int i = 0; i < 4; i++) change_element(made);
    const size_t at = GROW(graph->initializer, graph->n_initializer);
    graph->initializer[at] = made;
}

static void change_port(Onnx__ValueInfoProto *port)
{
    if (!port->type || !port->type->tensor_type) return;
    Onnx__TypeProto__Tensor *type = port->type->tensor_type;
    if (below(6) == 0) type->elem_type = (int32_t)below(17);
    if (!type->shape || !type->shape->n_dim) return;
    if (below(6) == 0) {
        protobuf_c_message_free_unpacked(&type->shape->dim[--type->shape->n_dim]->base, NULL);
        return;
    }
    Onnx__TensorShapeProto__Dimension *size = type->shape->dim[below(type->shape->n_dim)];
    if (below(6) == 0) {
        Onnx__TensorShapeProto__Dimension *made = copy(&size->base);
        const size_t at = GROW(type->shape->dim, type->shape->n_dim);
        type->shape->dim[at] = made;
    } else {
        size->has_dim_value = below(4) > 0;
        size->dim_value = size->has_dim_value ? number() : 0;
        if (!size->has_dim_value) set_text(&size->dim_param, below(2) ? "length" : "T");
    }
}

/* ------------------------------------------------------------------------------------------------------- nodes ---- */

static void change_edge(const Onnx__GraphProto *graph, Onnx__NodeProto *node)
{
    const size_t way = below(8);
    if (way == 0 && node->n_input) {
        free(node->input[--node->n_input]);
    } else if (way == 1 && node->n_input < 8) {
        const size_t at = GROW(node->input, node->n_input);
        node->input[at] = NULL;
        set_text(&node->input[at], any_value(graph));
    } else if (way == 2 && node->n_output < 8) {
        const size_t at = GROW(node->output, node->n_output);
        node->output[at] = NULL;
        new_name(&node->output[at]);
    } else if (way == 3 && node->n_input) {
        const size_t a = below(node->n_input), b = below(node->n_input);
        char *name = node->input[a];
        node->input[a] = node->input[b];
        node->input[b] = name;
    } else if (node->n_input) {
        set_text(&node->input[below(node->n_input)], any_value(graph));
    }
}

/* A node becomes the last one: it reads what was the model's output, and makes it anew. */
static void append(Onnx__GraphProto *graph, Onnx__NodeProto *node)
{
    if (graph->n_output && node->n_input && below(4))
        set_text(&node->input[0], graph->output[0]->name ? graph->output[0]->name : "");
    for (size_t i = 1; i < node->n_input; i++)
        if (below(2)) set_text(&node->input[i], any_value(graph));
    for (size_t i = 0; i < node->n_output; i++) new_name(&node->output[i]);
    const size_t at = GROW(graph->node, graph->n_node);
    graph->node[at] = node;
    if (graph->n_output && node->n_output) set_text(&graph->output[0]->name, node->output[0]);
}

static void change_node(Onnx__GraphProto *graph, size_t at)
{
    Onnx__NodeProto *node = graph->node[at];
    switch (below(10)) {
    case 0: append(graph, copy(&node->base)); break;
    case 1: set_text(&node->op_type, operators[below(COUNT(operators))]); break;
    case 2:
        node = copy(&node->base);
        set_text(&node->op_type, operators[below(COUNT(operators))]);
        append(graph, node);
        break;
    case 3: add_attribute(node); break;
    case 4: drop_attribute(node); break;
    case 5:
    case 6: change_edge(graph, node); break;
    default:
        if (node->n_attribute)
            change_attribute(node->attribute[below(node->n_attribute)]);
        else
            add_attribute(node);
        if (node->attribute[0]->t && below(2)) change_tensor(node->attribute[0]->t);
    }
}

/* A function's nodes change as a graph's, with names of their own. */
static void change_function(Onnx__FunctionProto *function)
{
    Onnx__GraphProto body = ONNX__GRAPH_PROTO__INIT;
    body.n_node = function->n_node;
    body.node = function->node;
    if (body.n_node) change_node(&body, below(body.n_node));
    function->n_node = body.n_node;
    function->node = body.node;
}

static void drop_node(Onnx__GraphProto *graph)
{
    if (graph->n_node < 2) return;
    onnx__node_proto__free_unpacked(graph->node[--graph->n_node], NULL);
    const Onnx__NodeProto *last = graph->node[graph->n_node - 1];
    if (graph->n_output && last->n_output) set_text(&graph->output[0]->name, last->output[0]);
}

static void change_model(Onnx__ModelProto *model)
{
    Onnx__GraphProto *graph = model->graph;
    switch (below(12)) {
    case 0:
        model->has_ir_version = true;
        model->ir_version ^= (int64_t)16 << below(11);
        break;
    case 1:
        if (model->n_opset_import) model->opset_import[0]->version = 7 + (int64_t)below(22);
        break;
    case 2: add_initialiser(graph); break;
    case 3:
        if (graph->n_input) change_port(graph->input[below(graph->n_input)]);
        break;
    case 4: drop_node(graph); break;
    case 5:
    case 6:
        if (graph->n_initializer) change_tensor(graph->initializer[below(graph->n_initializer)]);
        break;
    default:
        if (model->n_functions && below(2))
            change_function(model->functions[below(model->n_functions)]);
        else if (graph->n_node)
            change_node(graph, below(graph->n_node));
    }
}

/* ----------------------------------------------------------------------------------------------------- the file ----
 */

/* Writes the model if it fits, and frees it. Returns 0 if it does not. */
static size_t pack(Onnx__ModelProto *model, uint8_t *out, size_t most)
{
    size_t size = onnx__model_proto__get_packed_size(model);
    if (size <= most)
        onnx__model_proto__pack(model, out);
    else
        size = 0;
    onnx__model_proto__free_unpacked(model, NULL);
    return size;
}

static Onnx__ModelProto *unpack(const uint8_t *data, size_t size)
{
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, size, data);
    if (model && model->graph) return model;
    if (model) onnx__model_proto__free_unpacked(model, NULL);
    return NULL;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned with)
{
    seed = with;
    drawn = 0;
    Onnx__ModelProto *model = below(12) ? unpack(data, size) : NULL;
    if (!model) return LLVMFuzzerMutate(data, size, most);
    for (size_t changes = 1 + below(4); changes > 0; changes--) change_model(model);
    const size_t made = pack(model, data, most);
    return made ? made : size;
}

/* Nodes and initialisers of the second model come after those of the first. */
size_t LLVMFuzzerCustomCrossOver(
    const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out, size_t most, unsigned with)
{
    seed = with;
    drawn = 0;
    Onnx__ModelProto *model = unpack(a, a_size), *other = unpack(b, b_size);
    size_t size = 0;
    if (model && other) {
        Onnx__GraphProto *graph = model->graph;
        for (size_t i = 0; i < other->graph->n_initializer; i++) {
            const size_t at = GROW(graph->initializer, graph->n_initializer);
            graph->initializer[at] = copy(&other->graph->initializer[i]->base);
        }
        const size_t first = below(other->graph->n_node), count = 1 + below(3);
        for (size_t i = first; i < other->graph->n_node && i < first + count; i++)
            append(graph, copy(&other->graph->node[i]->base));
        size = pack(model, out, most);
        model = NULL;
    }
    if (model) onnx__model_proto__free_unpacked(model, NULL);
    if (other) onnx__model_proto__free_unpacked(other, NULL);
    return size;
}
