/* Another last layer for a file: its weights get a new number of outputs, and new initial values. */
#include "onnx/head.h"

#include "base/memory.h"
#include "base/random.h"
#include "onnx/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static Onnx__TensorProto *initialiser(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (!strcmp(graph->initializer[i]->name, name)) return graph->initializer[i];
    return NULL;
}

static const Onnx__NodeProto *producer(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_output; k++)
            if (!strcmp(graph->node[i]->output[k], name)) return graph->node[i];
    return NULL;
}

/* The output that can be trained: the first one that the file does not declare as another type than floats, else the
 * first one. */
static const char *head_output(const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_output; i++) {
        const Onnx__TypeProto *type = graph->output[i]->type;
        const int of = type && type->tensor_type ? type->tensor_type->elem_type : 0;
        if (of == 0 || onnx_type_is_float(of)) return graph->output[i]->name;
    }
    return graph->output[0]->name;
}

/* Operators whose numbers are used as logits as they are. */
static bool makes_scores(const char *type)
{
    return !strcmp(type, "Gemm") || !strcmp(type, "MatMul") || !strcmp(type, "Add");
}

tutti_status head_find_logits(const Onnx__GraphProto *graph, const char **logits, const char **normalised)
{
    const char *output = head_output(graph), *at = output;
    const Onnx__NodeProto *node = producer(graph, at);
    *logits = *normalised = NULL;
    for (size_t steps = 0; steps <= graph->n_node && node && node->n_input > 0; steps++, node = producer(graph, at)) {
        if (strcmp(node->op_type, "Identity") && strcmp(node->op_type, "Normalizer") && strcmp(node->op_type, "ZipMap"))
            break;
        if (!strcmp(node->op_type, "Normalizer")) *normalised = at;
        at = node->input[0];
    }
    const char *type = node ? node->op_type : "an input";
    if (strstr(type, "Softmax") || !strcmp(type, "LinearClassifier")) {
        *logits = at;
        return TUTTI_OK;
    }
    *normalised = NULL;
    if (!strcmp(output, graph->output[0]->name) || makes_scores(type)) return TUTTI_OK;
    return fail(TUTTI_UNSUPPORTED,
        "output '%s' is made by %s '%s', not by a Softmax or LinearClassifier: the scores that it was made of, which "
        "classes train with, are not known: export the classifier with its scores (raw_scores)",
        output, type, node ? proto_text(node->name) : "");
}

/* Operators that a network may have after its last layer. */
static bool is_after(const char *type)
{
    static const char *const types[] = { "Softmax", "LogSoftmax", "Sigmoid", "Identity", "Dropout", "Flatten",
        "Normalizer" };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(type, types[i])) return true;
    return false;
}

struct head {
    Onnx__TensorProto *weight, *bias; /* bias: or NULL */
    int units;                        /* axis of the weight */
};

static tutti_status refuse_head(const Onnx__GraphProto *graph, const Onnx__NodeProto *node)
{
    const char *type = node ? node->op_type : "an input", *name = node ? proto_text(node->name) : "";
    if (node && !strcmp(proto_text(node->domain), "ai.onnx.ml")) /* LinearClassifier, LinearRegressor, ZipMap */
        return fail(TUTTI_UNSUPPORTED,
            "its last layer cannot be replaced: output '%s' comes from %s '%s', which lists its classes or targets "
            "itself: export a model with as many as you need, or train this one without a new head",
            head_output(graph), type, name);
    return fail(TUTTI_UNSUPPORTED,
        "its last layer cannot be replaced: output '%s' comes from %s '%s', not from Gemm, or MatMul and Add, with "
        "initialisers",
        head_output(graph), type, name);
}

/* Finds a Gemm, or MatMul and Add, with initialisers, after which only operators of is_after() follow. */
static tutti_status find_head(const Onnx__GraphProto *graph, struct head *head)
{
    const char *at = head_output(graph);
    const Onnx__NodeProto *node = NULL;
    *head = (struct head) { .units = 1 };
    for (size_t steps = 0; steps <= graph->n_node && (node = producer(graph, at)) && node->n_input > 0; steps++) {
        const bool gemm = !strcmp(node->op_type, "Gemm"), product = gemm || !strcmp(node->op_type, "MatMul");
        if (product) {
            if (node->n_input > 1) head->weight = initialiser(graph, node->input[1]);
            if (gemm && node->n_input > 2) head->bias = initialiser(graph, node->input[2]);
            const Onnx__AttributeProto *transposed = proto_attribute(node->attribute, node->n_attribute, "transB");
            if (gemm && transposed && transposed->i) head->units = 0;
            break;
        }
        if (!strcmp(node->op_type, "Add") && node->n_input == 2) {
            const size_t fixed = initialiser(graph, node->input[0]) ? 0 : 1;
            head->bias = initialiser(graph, node->input[fixed]);
            at = node->input[1 - fixed];
        } else if (is_after(node->op_type)) {
            at = node->input[0];
        } else {
            break;
        }
    }
    const bool good = head->weight && head->weight->n_dims == 2 && (!head->bias || head->bias->n_dims == 1);
    return good ? TUTTI_OK : refuse_head(graph, node);
}

/* An initialiser that another layer reads, too, is not the last layer's own. */
static tutti_status check_alone(const Onnx__GraphProto *graph, const Onnx__TensorProto *tensor)
{
    int count = 0;
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_input; k++) count += !strcmp(graph->node[i]->input[k], tensor->name);
    return count == 1
        ? TUTTI_OK
        : fail(TUTTI_UNSUPPORTED, "its last layer cannot be replaced: other layers share '%s'", tensor->name);
}

/* New values: uniform within 1 / sqrt(fan_in), as those of a dense layer. */
static tutti_status renew(Onnx__TensorProto *tensor, int64_t fan_in, uint32_t stream)
{
    size_t count, bytes;
    if (!array_count((int)tensor->n_dims, tensor->dims, &count) || !size_multiply(count, sizeof(float), &bytes) ||
        bytes > INT32_MAX)
        return fail(TUTTI_INVALID, "its last layer would be too large: '%s'", tensor->name);
    float *values = memory_new(count, sizeof *values);
    if (!values) return TUTTI_NO_MEMORY;
    const float most = 1 / sqrtf((float)fan_in);
    for (size_t i = 0; i < count; i++) values[i] = most * (2 * random_uniform(0, RANDOM_WEIGHTS + stream, i) - 1);
    free(tensor->raw_data.data);
    free(tensor->float_data);
    tensor->float_data = NULL;
    tensor->n_float_data = 0;
    tensor->has_raw_data = true;
    tensor->raw_data = (ProtobufCBinaryData) { bytes, (uint8_t *)values };
    tensor->data_type = ONNX_FLOAT;
    tensor->data_location = 0;
    return TUTTI_OK;
}

tutti_status head_replace(const Onnx__GraphProto *graph, int64_t units)
{
    tutti_status status = TUTTI_OK;
    struct head head;
    if (units < 1) return fail(TUTTI_INVALID, "head is %lld: it must be at least 1", (long long)units);
    TRY(find_head(graph, &head));
    const int64_t fan_in = head.weight->dims[1 - head.units];
    if (fan_in < 1) FAIL(TUTTI_FORMAT, "its last layer has no inputs");
    TRY(check_alone(graph, head.weight));
    if (head.bias) TRY(check_alone(graph, head.bias));
    head.weight->dims[head.units] = units;
    TRY(renew(head.weight, fan_in, 0));
    if (!head.bias) goto done;
    head.bias->dims[0] = units;
    status = renew(head.bias, fan_in, 1);
done:
    return status;
}
