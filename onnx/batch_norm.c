/* Batch normalisation. */
#include "onnx/operators.h"

#include "base/memory.h"
#include "tutti_inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NORM_PARTS = 4 };
static const char *const norm_parts[NORM_PARTS] = { "weight", "bias", "running_mean", "running_var" };

static bool has_parameter(const struct onnx_node *node, const char *name)
{
    const char *found = NULL;
    for (int i = 0; tutti_parameter_info(node->import->network, i, &found, NULL, NULL) == TUTTI_OK; i++)
        if (!strcmp(found, name)) return true;
    return false;
}

/* The layer's name: LAYER of an initialiser LAYER.weight, LAYER.bias and so on. The node's name if there is none, or if
 * the network has such a parameter already: the exporter may have merged equal initialisers of several layers. NULL: no
 * memory. */
static char *norm_name(const struct onnx_node *node)
{
    for (size_t i = 0; i < NORM_PARTS; i++) {
        const char *name = proto_text(node->proto->input[i + 1]);
        const size_t all = strlen(name), part = strlen(norm_parts[i]) + 1;
        if (all <= part || name[all - part] != '.' || strcmp(name + all - part + 1, norm_parts[i])) continue;
        char *layer = memory_format("%.*s", (int)(all - part), name);
        bool is_free = layer != NULL;
        for (size_t k = 0; k < NORM_PARTS && is_free; k++) {
            char *own = memory_format("%s.%s", layer, norm_parts[k]);
            is_free = own && !has_parameter(node, own);
            free(own);
        }
        if (is_free) return layer;
        free(layer);
    }
    return memory_format("%s.%d", *proto_text(node->proto->name) ? node->proto->name : node->proto->output[0],
        tutti_network_layers(node->import->network));
}

/* Inputs of a batch normalisation: tensors that are constants or that other nodes read, too; and the file's values
 * for its own parameters. */
struct norm {
    tutti_tensor tensors[NORM_PARTS]; /* id < 0: its own */
    const struct array *arrays[NORM_PARTS];
    char *layer;
};

static bool is_statistic(size_t part)
{
    return part >= 2;
}

static bool is_own_weight(const struct onnx_value *value)
{
    return value->initialiser && value->tensor.id < 0 && !value->view.of && !value->origin.renamed && !value->constant;
}

static tutti_status find_part(const struct onnx_node *node, struct norm *norm, size_t part, int64_t channels)
{
    struct onnx_value *value = node_input(node, part + 1);
    struct operand operand;
    tutti_status status = TUTTI_OK;
    norm->tensors[part] = (tutti_tensor) { -1 };
    if (!value) return fail(TUTTI_FORMAT, "its %s is missing", norm_parts[part]);
    if (is_statistic(part) && value->statistic.id >= 0) {
        norm->tensors[part] = value->statistic;
    } else if (is_statistic(part) || is_own_weight(value)) {
        const struct array **array = &norm->arrays[part];
        status = node_array(node, part + 1, array);
        if (status == TUTTI_OK && (!(*array)->floats || (*array)->count != (size_t)channels))
            return fail(TUTTI_FORMAT, "its %s needs %" PRId64 " floats", norm_parts[part], channels);
    } else if ((status = node_fixed(node, part + 1, &operand)) == TUTTI_OK) {
        const tutti_shape shape = TUTTI_SHAPE(channels);
        norm->tensors[part] = operand.shape.rank == 1 ? operand.tensor : node_reshape(node, operand.tensor, &shape);
    }
    return status;
}

/* The layer's own parts get the file's values. Nodes that read the same initialiser share them. */
static tutti_status set_part(const struct onnx_node *node, const struct norm *norm, size_t part)
{
    tutti_network *network = node->import->network;
    const struct array *array = norm->arrays[part];
    struct onnx_value *value = node_input(node, part + 1);
    if (!array) return TUTTI_OK;
    char *name = memory_format("%s.%s", norm->layer, norm_parts[part]);
    if (!name) return TUTTI_NO_MEMORY;
    const tutti_status status = tutti_set_initial(network, name, array->floats, (int64_t)array->count);
    if (status == TUTTI_OK && is_statistic(part)) value->statistic = tutti_find_parameter(network, name);
    if (status == TUTTI_OK && !is_statistic(part)) value->tensor = tutti_find_parameter(network, name);
    free(name);
    return status;
}

/* A sample [rows, C, ...] as [C, rows, ...] and back: normalised channels come first. */
static tutti_tensor swap_front(const struct onnx_node *node, tutti_tensor x, int rank)
{
    int order[TUTTI_MAX_RANK] = { 1, 0 };
    for (int i = 2; i < rank; i++) order[i] = i;
    return node_permuted(node, x, order, rank);
}

/* Normalises x as [C, all other elements], over the samples and these elements, which are those of all rows of a
 * sample. */
static tutti_status batch_norm(struct onnx_node *node, struct operand *x, const tutti_batch_norm_options *options)
{
    const bool whole = batch_is_whole(&x->batch), rows = x->batch.rows_per_sample > 1;
    tutti_shape front = x->shape, flat = { .rank = 3, .sizes = { 0, 1, 1 } };
    if (whole && x->shape.rank > 1) {
        x->tensor = swap_front(node, x->tensor, x->shape.rank);
        front.sizes[0] = x->shape.sizes[1];
        front.sizes[1] = x->shape.sizes[0];
    }
    if (rows) x->tensor = node_with_rows(node, x->tensor, &front, 1, x->batch.rows_per_sample);
    flat.sizes[0] = front.sizes[0];
    for (int i = 1; i < front.rank; i++) flat.sizes[2] *= front.sizes[i];
    const bool image = !whole && !rows && (front.rank == 1 || front.rank == 3);
    tutti_tensor y = image ? x->tensor : node_reshape(node, x->tensor, &flat);
    y = tutti_batch_norm(node->import->network, y, options);
    if (!image) y = node_reshape(node, y, &front);
    if (whole && x->shape.rank > 1) y = swap_front(node, y, x->shape.rank);
    if (rows) y = node_without_rows(node, y, 1);
    return node_set_output(node, y, x->batch);
}

static tutti_status trained_batch_norm(struct onnx_node *node, struct operand *x, int64_t channels)
{
    struct norm norm = { .layer = NULL };
    const tutti_tensor *given[NORM_PARTS] = { NULL };
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < NORM_PARTS && status == TUTTI_OK; i++) {
        status = find_part(node, &norm, i, channels);
        if (norm.tensors[i].id >= 0) given[i] = &norm.tensors[i];
    }
    if (status != TUTTI_OK) return status;
    norm.layer = norm_name(node);
    if (!norm.layer) return TUTTI_NO_MEMORY;
    status = batch_norm(node, x,
        &(tutti_batch_norm_options) { .name = norm.layer,
            .epsilon = node_number(node, "epsilon", 1e-5f),
            .momentum = 1 - node_number(node, "momentum", 0.9f),
            .weight = given[0],
            .bias = given[1],
            .running_mean = given[2],
            .running_var = given[3] });
    for (size_t i = 0; i < NORM_PARTS && status == TUTTI_OK; i++) status = set_part(node, &norm, i);
    free(norm.layer);
    return status;
}

/* momentum a + (1 - momentum) b */
static tutti_tensor moving_mean(const struct onnx_node *node, tutti_tensor old, tutti_tensor now)
{
    const float momentum = node_number(node, "momentum", 0.9f);
    const tutti_tensor parts[] = { node_binary(node, "mul", old, node_constant(node, momentum)),
        node_binary(node, "mul", now, node_constant(node, 1 - momentum)) };
    return node_plain(node, "add", parts, 2);
}

/* Normalises a weight, or a sample that is the file's whole input. Training uses its own statistics, and the moving
 * ones are outputs. Inference uses those that the file computes. */
static tutti_status batch_norm_of_sample(const struct onnx_node *node, const struct operand *x, bool training)
{
    struct operand parts[NORM_PARTS];
    tutti_status status = TUTTI_OK;
    tutti_tensor aligned[NORM_PARTS];
    tutti_shape channels = { .rank = x->shape.rank };
    char axes[64] = "0";
    for (int i = 0; i < x->shape.rank; i++) channels.sizes[i] = i == 1 ? x->shape.sizes[1] : 1;
    for (int i = 2; i < x->shape.rank; i++) snprintf(axes + 2 * i - 3, sizeof axes - 2 * (size_t)i + 3, ",%d", i);
    for (size_t i = 0; i < NORM_PARTS; i++) {
        if (i > 1 && training && !node_output(node, i - 1)) continue;
        if ((status = node_operand(node, i + 1, &parts[i])) != TUTTI_OK) return status;
        aligned[i] = node_reshape(node, parts[i].tensor, &channels);
    }
    const tutti_tensor mean =
        training ? node_op(node, "reduce_mean", &x->tensor, 1, "axes=%s keepdims=1", axes) : aligned[2];
    const tutti_tensor apart = node_binary(node, "sub", x->tensor, mean);
    const tutti_tensor square = node_plain(node, "square", &apart, 1);
    const tutti_tensor variance =
        training ? node_op(node, "reduce_mean", &square, 1, "axes=%s keepdims=1", axes) : aligned[3];
    const float epsilon = node_number(node, "epsilon", 1e-5f);
    const tutti_tensor sum = node_binary(node, "add", variance, node_constant(node, epsilon));
    tutti_tensor y = node_binary(node, "div", apart, node_plain(node, "sqrt", &sum, 1));
    y = node_binary(node, "add", node_binary(node, "mul", y, aligned[0]), aligned[1]);
    const tutti_shape flat = { .rank = 1, .sizes = { x->shape.sizes[1] } };
    const tutti_tensor now[] = { node_reshape(node, mean, &flat), node_reshape(node, variance, &flat) };
    status = node_set_output(node, y, x->batch);
    for (size_t i = 0; i < 2 && status == TUTTI_OK && training; i++)
        if (node_output(node, i + 1))
            status = node_set_output_at(node, i + 1, moving_mean(node, parts[i + 2].tensor, now[i]), x->batch);
    return status;
}

void import_note_batch_norm(const struct import *import)
{
    const size_t count = import->training_norms;
    if (count)
        import_note(import,
            "warning: %zu batch normalisation%s (the first: '%s') %s training_mode 1: other runtimes normalise by the "
            "batch's statistics in inference, Tutti by the moving ones, as a trained network does; export the network "
            "in eval()",
            count, count == 1 ? "" : "s", import->training_norm, count == 1 ? "has" : "have");
}

static bool is_computed(const struct onnx_node *node, size_t input)
{
    const struct onnx_value *value = node_input(node, input);
    return value && !value->initialiser && !value->copied;
}

tutti_status build_batch_normalization(struct onnx_node *node)
{
    struct operand x;
    const float momentum = 1 - node_number(node, "momentum", 0.9f);
    const bool training = node_integer(node, "training_mode", 0) != 0;
    tutti_status status = node_operand(node, 0, &x);
    /* A weight is normalised before a layer uses it: its gradient passes through the statistics. */
    const bool of_weight = status == TUTTI_OK && !x.batch.batched && !node->import->options->whole;
    if (of_weight && x.shape.rank > 1 && (training || (is_computed(node, 3) && is_computed(node, 4))))
        return batch_norm_of_sample(node, &x, training);
    if (status == TUTTI_OK) status = node_batched(node, 0, &x);
    if (status != TUTTI_OK) return status;
    if ((operand_has_batch_axis(&x) && x.batch.axis != 0) || x.batch.outer != 1 || x.shape.rank < 1)
        return node_refuse("the batch must be its first axis");
    const int64_t channels = x.shape.sizes[batch_is_whole(&x.batch) && x.shape.rank > 1];
    if (node->proto->n_input != NORM_PARTS + 1) return fail(TUTTI_FORMAT, "it needs 5 inputs");
    if (node_integer(node, "spatial", 1) != 1) return node_refuse("spatial must be 1");
    if (training && batch_is_whole(&x.batch) && x.shape.rank > 1) return batch_norm_of_sample(node, &x, true);
    if (training && node->import->training_norms++ == 0) node->import->training_norm = proto_text(node->proto->name);
    if (!(momentum > 0)) return node_refuse("its momentum must be less than 1");
    if (!(node_number(node, "epsilon", 1e-5f) > 0)) return node_refuse("its epsilon must be positive");
    return trained_batch_norm(node, &x, channels);
}
