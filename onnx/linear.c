/* Operators of ai.onnx.ml that are linear: what scikit-learn's regressions, classifications and scalers become. */
#include "onnx/operators.h"

#include "base/memory.h"
#include "onnx/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const float *floats_of(const struct onnx_node *node, const char *name, size_t *count)
{
    const Onnx__AttributeProto *attribute = node_attribute(node, name);
    *count = attribute ? attribute->n_floats : 0;
    return attribute ? attribute->floats : NULL;
}

/* Rows [features] that depend on the samples: [N, features] in the file. */
static tutti_status read_rows(const struct onnx_node *node, struct operand *x)
{
    const tutti_status status = node_batched(node, 0, x);
    if (status != TUTTI_OK) return status;
    if (batch_is_whole(&x->batch) ? x->shape.rank == 2
                                  : x->shape.rank == 1 && x->batch.axis == 0 && x->batch.outer == 1)
        return TUTTI_OK;
    return node_refuse("its input must have an axis of samples and one of features");
}

/* A parameter of the node: NODE.weight and so on. */
static tutti_tensor parameter(const struct onnx_node *node, const char *part, tutti_shape shape, const float *values)
{
    const char *layer = *proto_text(node->proto->name) ? node->proto->name : node->proto->output[0];
    char *name = memory_format("%s.%s", layer, part);
    if (!name) return (tutti_tensor) { -1 };
    const tutti_tensor made =
        tutti_parameter(node->import->network, name, shape, &(tutti_parameter_options) { .values = values });
    free(name);
    return made;
}

/* x W' + b, with `rows` rows of coefficients. */
static tutti_status linear(const struct onnx_node *node, struct operand *x, int64_t rows)
{
    size_t count, intercepts;
    const float *weight = floats_of(node, "coefficients", &count), *bias = floats_of(node, "intercepts", &intercepts);
    const int64_t features = x->shape.sizes[x->shape.rank - 1];
    if (rows < 1 || count % (size_t)rows || (int64_t)count / rows != features ||
        (intercepts && intercepts != (size_t)rows))
        return fail(TUTTI_FORMAT,
            "it has %zu coefficients and %zu intercepts for %" PRId64 " rows of %" PRId64 " features", count,
            intercepts, rows, features);
    tutti_tensor list[] = { x->tensor, parameter(node, "weight", TUTTI_SHAPE(rows, features), weight), { -1 } };
    if (bias) list[2] = parameter(node, "bias", TUTTI_SHAPE(rows), bias);
    if (list[1].id < 0 || (bias && list[2].id < 0)) return tutti_network_status(node->import->network);
    x->tensor = node_plain(node, "dense", list, bias ? 3 : 2);
    x->shape.sizes[x->shape.rank - 1] = rows;
    return x->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

static bool transforms(const struct onnx_node *node, const char *name)
{
    return node_attribute_is(node, "post_transform", name);
}

tutti_status build_linear_regressor(struct onnx_node *node)
{
    struct operand x;
    tutti_status status = read_rows(node, &x);
    if (node_attribute(node, "post_transform") && !transforms(node, "NONE"))
        return node_refuse("its post_transform must be NONE");
    if (status == TUTTI_OK) status = linear(node, &x, node_integer(node, "targets", 1));
    return status == TUTTI_OK ? node_set_output(node, x.tensor, x.batch) : status;
}

/* Computes logits of the probabilities that transform() makes: the inputs of a softmax, or logarithms of
 * probabilities. */
static tutti_status as_logits(const struct onnx_node *node, struct operand *x, bool both)
{
    const int axis = x->shape.rank - 1;
    if (both) {
        const tutti_tensor other = node_plain(node, "neg", &x->tensor, 1);
        x->tensor = node_op(node, "concat", (tutti_tensor[]) { other, x->tensor }, 2, "axis=%d", axis);
    }
    if (transforms(node, "LOGISTIC")) {
        x->tensor = node_plain(node, "neg", &x->tensor, 1);
        x->tensor = node_plain(node, "softplus", &x->tensor, 1);
        x->tensor = node_plain(node, "neg", &x->tensor, 1);
    }
    return x->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

/* Computes the scores of classes by post_transform. both: one row of coefficients gives the scores of two classes. */
static tutti_status transform(const struct onnx_node *node, struct operand *x, bool both)
{
    const struct onnx_value *scores = node_output(node, 1);
    if (scores && node->import->logits && !strcmp(scores->name, node->import->logits)) return as_logits(node, x, both);
    const tutti_tensor one = node_constant(node, 1);
    const int axis = x->shape.rank - 1;
    if (transforms(node, "SOFTMAX") && !both)
        x->tensor = node_plain(node, "softmax", &x->tensor, 1);
    else if (transforms(node, "LOGISTIC"))
        x->tensor = node_plain(node, "sigmoid", &x->tensor, 1);
    else if (node_attribute(node, "post_transform") && !transforms(node, "NONE"))
        return node_refuse("its post_transform must be NONE, SOFTMAX or LOGISTIC");
    if (both) {
        const tutti_tensor other = transforms(node, "LOGISTIC") ? node_binary(node, "sub", one, x->tensor)
                                                                : node_plain(node, "neg", &x->tensor, 1);
        x->tensor = node_op(node, "concat", (tutti_tensor[]) { other, x->tensor }, 2, "axis=%d", axis);
    }
    return x->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

/* Tells which texts the labels 0, 1, ... stand for. */
static void note_texts(const struct import *import, const char *of, const ProtobufCBinaryData *texts, size_t count)
{
    enum { LONGEST = 64 };
    struct name_list list = { 0 };
    for (size_t i = 0; i < count; i++) {
        const int length = (int)(texts[i].len < LONGEST ? texts[i].len : LONGEST);
        char *name = memory_format("%.*s", length, length ? (const char *)texts[i].data : "");
        name_list_add(&list, name && proto_is_plain(name) ? name : "?");
        free(name);
    }
    import_note(import, "labels of %s are numbers from 0 on, for: %s%s", of, list.names, name_list_end(&list));
}

/* Adds the label of the largest score: its number, or its index among texts. */
static tutti_status add_label(const struct onnx_node *node, const struct operand *scores)
{
    size_t count = 0;
    const int64_t *labels = node_integers(node, "classlabels_ints", &count);
    struct batch_axis batch_axis = scores->batch;
    bool counts = true;
    tutti_tensor y = node_op(node, "argmax", &scores->tensor, 1, "axis=%d keepdims=0", scores->shape.rank - 1);
    float *numbers = memory_new(count + 1, sizeof *numbers);
    if (!numbers) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (float)labels[i];
        counts &= labels[i] == (int64_t)i;
    }
    if (!counts) {
        const tutti_tensor list = tutti_constant(node->import->network, NULL, TUTTI_SHAPE((int64_t)count), numbers);
        y = node_op(node, "gather", (tutti_tensor[]) { list, y }, 2, "axis=0");
    }
    free(numbers);
    node_set_type(node, 0, ONNX_INT64);
    return node_set_output_at(node, 0, y, batch_axis);
}

tutti_status build_linear_classifier(struct onnx_node *node)
{
    struct operand x;
    size_t coefficients, labels = 0;
    (void)floats_of(node, "coefficients", &coefficients);
    (void)node_integers(node, "classlabels_ints", &labels);
    const Onnx__AttributeProto *texts = node_attribute(node, "classlabels_strings");
    if (texts && !labels) labels = texts->n_strings;
    if (texts) note_texts(node->import, node->proto->output[0], texts->strings, texts->n_strings);
    tutti_status status = read_rows(node, &x);
    if (status != TUTTI_OK) return status;
    const int64_t features = x.shape.sizes[x.shape.rank - 1], rows = (int64_t)coefficients / features;
    const bool both = rows == 1 && labels == 2;
    if (labels < 2 || (!both && rows != (int64_t)labels))
        return fail(TUTTI_FORMAT, "it has %zu labels for %" PRId64 " rows of coefficients", labels, rows);
    status = linear(node, &x, rows);
    if (status == TUTTI_OK) status = transform(node, &x, both);
    if (status == TUTTI_OK && node_output(node, 0)) status = add_label(node, &x);
    if (node_output(node, 1)) node_set_type(node, 1, ONNX_FLOAT);
    return status == TUTTI_OK ? node_set_output_at(node, 1, x.tensor, x.batch) : status;
}

/* The map from labels to probabilities that each sample gets is the row of these probabilities, in the labels' order.
 */
tutti_status build_zip_map(struct onnx_node *node)
{
    struct operand x;
    size_t labels = 0;
    const tutti_status status = read_rows(node, &x);
    const Onnx__AttributeProto *texts = node_attribute(node, "classlabels_strings");
    (void)node_integers(node, "classlabels_int64s", &labels);
    if (texts && !labels) labels = texts->n_strings;
    if (status != TUTTI_OK) return status;
    if ((int64_t)labels != x.shape.sizes[x.shape.rank - 1])
        return fail(
            TUTTI_FORMAT, "it has %zu labels for %" PRId64 " probabilities", labels, x.shape.sizes[x.shape.rank - 1]);
    return node_set_output(node, x.tensor, x.batch);
}

/* (x - offset) scale, for each feature or one for all. These numbers do not train. */
tutti_status build_scaler(struct onnx_node *node)
{
    struct operand x;
    static const char *const names[] = { "offset", "scale" }, *const operations[] = { "sub", "mul" };
    const tutti_status status = read_rows(node, &x);
    if (status != TUTTI_OK) return status;
    for (int i = 0; i < 2; i++) {
        size_t count;
        const float *numbers = floats_of(node, names[i], &count);
        if (count == 0) continue;
        if (count != 1 && (int64_t)count != x.shape.sizes[x.shape.rank - 1])
            return fail(TUTTI_FORMAT, "its %s has %zu numbers", names[i], count);
        const tutti_tensor list = tutti_constant(node->import->network, NULL, TUTTI_SHAPE((int64_t)count), numbers);
        x.tensor = node_binary(node, operations[i], x.tensor, list);
    }
    node_set_type(node, 0, ONNX_FLOAT);
    return node_set_output(node, x.tensor, x.batch);
}

/* Divides each row by its largest absolute number, its sum of absolute numbers, or its length; a row of zeros stays. */
tutti_status build_normalizer(struct onnx_node *node)
{
    struct operand x;
    const tutti_status status = read_rows(node, &x);
    if (status != TUTTI_OK) return status;
    const bool sum = node_attribute_is(node, "norm", "L1"), length = node_attribute_is(node, "norm", "L2");
    const int axis = x.shape.rank - 1;
    tutti_tensor size = sum || length ? x.tensor : node_plain(node, "abs", &x.tensor, 1);
    size = node_op(node, length ? "reduce_l2" : sum ? "reduce_l1" : "reduce_max", &size, 1, "axes=%d keepdims=1", axis);
    const tutti_tensor one = node_constant(node, 1);
    const tutti_tensor none = node_binary(node, "equal", size, node_constant(node, 0));
    size = node_elements(node, "where", (tutti_tensor[]) { none, one, size }, 3);
    node_set_type(node, 0, ONNX_FLOAT);
    return node_set_output(node, node_binary(node, "div", x.tensor, size), x.batch);
}

/* Some features, or one for each sample of a constant row: Gather along the last axis. */
tutti_status build_array_feature_extractor(struct onnx_node *node)
{
    struct operand x, indices;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = node_operand_as_is(node, 1, &indices);
    if (status != TUTTI_OK) return status;
    const int last = x.shape.rank - 1;
    if (last < 0 || (x.batch.batched && indices.batch.batched))
        return node_refuse("its inputs must be features and known indices, or known numbers and indices");
    int64_t count = 1, before = 1;
    for (int i = 0; i < indices.shape.rank; i++) count *= indices.shape.sizes[i];
    for (int i = 0; i < last; i++) before *= x.shape.sizes[i];
    const bool whole = batch_is_whole(&indices.batch);
    const bool one_each = indices.batch.axis == 0 && count == 1 && indices.batch.rows_per_sample == 1;
    if (indices.batch.batched && (before != 1 || !(whole || one_each)))
        return node_refuse("only a row of known numbers can have indices that depend on the samples, one for each");
    if (!indices.batch.batched) {
        if (x.batch.batched && x.batch.axis > last) return node_refuse("the batch is its last axis");
        indices.tensor = node_reshape(node, indices.tensor, &TUTTI_SHAPE(count));
        const tutti_tensor y =
            node_op(node, "gather", (tutti_tensor[]) { x.tensor, indices.tensor }, 2, "axis=%d", last);
        return node_set_output(node, y, x.batch);
    }
    /* The result is [1, N]: the batch is the second axis. */
    const tutti_tensor row = node_reshape(node, x.tensor, &TUTTI_SHAPE(x.shape.sizes[last]));
    tutti_tensor y = node_op(node, "gather", (tutti_tensor[]) { row, indices.tensor }, 2, "axis=0");
    y = node_reshape(node, y, whole ? &TUTTI_SHAPE(1, count) : &TUTTI_SHAPE(1));
    if (whole) return node_set_output(node, y, indices.batch);
    return node_set_output(
        node, y, (struct batch_axis) { .batched = true, .axis = 1, .rows_per_sample = 1, .outer = 1 });
}

/* Whether nodes read a tensor, and only as the list of classes from which ArrayFeatureExtractor selects. */
static bool is_list_of_classes(const Onnx__GraphProto *graph, const char *name)
{
    size_t reads = 0, selects = 0;
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_input; k++) {
            if (strcmp(graph->node[i]->input[k], name) != 0) continue;
            reads++;
            selects += k == 0 && !strcmp(proto_text(graph->node[i]->op_type), "ArrayFeatureExtractor");
        }
    return reads > 0 && reads == selects;
}

/* Makes texts that are a list of classes their indices in this list. tensor_check() refuses other texts. */
tutti_status import_read_classes(const struct import *import)
{
    const Onnx__GraphProto *graph = import->model->graph;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        Onnx__TensorProto *tensor = graph->initializer[i];
        const size_t count = tensor->n_string_data;
        if (tensor->data_type != ONNX_STRING || tensor->n_int64_data || tensor->has_raw_data ||
            !is_list_of_classes(graph, proto_text(tensor->name)))
            continue;
        int64_t *numbers = memory_new(count + 1, sizeof *numbers);
        if (!numbers) return TUTTI_NO_MEMORY;
        for (size_t k = 0; k < count; k++) numbers[k] = (int64_t)k;
        note_texts(import, proto_text(tensor->name), tensor->string_data, count);
        tensor->int64_data = numbers;
        tensor->n_int64_data = count;
        tensor->data_type = ONNX_INT64;
    }
    return TUTTI_OK;
}

/* Maps numbers to numbers; texts become their indices in the list. */
tutti_status build_label_encoder(struct onnx_node *node)
{
    struct operand x;
    size_t key_count = 0, value_count = 0;
    const int64_t *keys = node_integers(node, "keys_int64s", &key_count);
    const int64_t *values = node_integers(node, "values_int64s", &value_count);
    const Onnx__AttributeProto *texts = node_attribute(node, "values_strings"),
                               *reals = node_attribute(node, "values_floats");
    const size_t count = values ? value_count : texts ? texts->n_strings : reals ? reals->n_floats : 0;
    tutti_status status = node_operand(node, 0, &x);
    if (status != TUTTI_OK) return status;
    if (!keys || count != key_count || key_count > 4096)
        return node_refuse("its keys must be integers, at most 4096, and its values integers, floats or texts");
    const float fallback = texts ? -1
        : reals                  ? node_number(node, "default_float", 0)
                                 : (float)node_integer(node, "default_int64", -1);
    tutti_tensor y = node_constant(node, fallback);
    for (size_t i = 0; i < key_count; i++) {
        const float value = values ? (float)values[i] : reals ? reals->floats[i] : (float)i;
        const tutti_tensor is_it = node_binary(node, "equal", x.tensor, node_constant(node, (float)keys[i]));
        y = node_elements(node, "where", (tutti_tensor[]) { is_it, node_constant(node, value), y }, 3);
    }
    node_set_type(node, 0, reals ? ONNX_FLOAT : ONNX_INT64);
    return node_set_output(node, y, x.batch);
}
