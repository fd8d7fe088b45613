/* Normalisations and products. */
#include "onnx/operators.h"

#include "base/memory.h"
#include "tutti_inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------- normalisations ---- */

enum { NORM_PARTS = 4 };
static const char *const norm_parts[NORM_PARTS] = { "weight", "bias", "running_mean", "running_var" };

static bool has_parameter(const struct step *step, const char *name)
{
    const char *found = NULL;
    for (int i = 0; tutti_parameter_info(step->import->network, i, &found, NULL, NULL) == TUTTI_OK; i++)
        if (!strcmp(found, name)) return true;
    return false;
}

/* LAYER of an initialiser LAYER.weight, LAYER.bias and so on, if the network has no parameter of this name yet: the
 * exporter may have merged equal initialisers of several layers. Else the node's name. NULL: no memory. */
static char *norm_name(const struct step *step)
{
    for (size_t i = 0; i < NORM_PARTS; i++) {
        const char *name = proto_text(step->node->input[i + 1]);
        const size_t all = strlen(name), part = strlen(norm_parts[i]) + 1;
        if (all <= part || name[all - part] != '.' || strcmp(name + all - part + 1, norm_parts[i])) continue;
        char *layer = memory_format("%.*s", (int)(all - part), name);
        bool is_free = layer != NULL;
        for (size_t k = 0; k < NORM_PARTS && is_free; k++) {
            char *own = memory_format("%s.%s", layer, norm_parts[k]);
            is_free = own && !has_parameter(step, own);
            free(own);
        }
        if (is_free) return layer;
        free(layer);
    }
    return memory_format("%s.%d", *proto_text(step->node->name) ? step->node->name : step->node->output[0],
        tutti_network_layers(step->import->network));
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

static bool is_own_weight(const struct value *value)
{
    return value->initialiser && value->tensor.id < 0 && !value->view.of && !value->renamed && !value->constant;
}

static tutti_status find_part(const struct step *step, struct norm *norm, size_t part, int64_t channels)
{
    struct value *value = step_input(step, part + 1);
    struct operand operand;
    tutti_status status = TUTTI_OK;
    norm->tensors[part] = (tutti_tensor) { -1 };
    if (!value) return fail(TUTTI_FORMAT, "its %s is missing", norm_parts[part]);
    if (is_statistic(part) && value->statistic.id >= 0) {
        norm->tensors[part] = value->statistic;
    } else if (is_statistic(part) || is_own_weight(value)) {
        const struct array **array = &norm->arrays[part];
        status = step_array(step, part + 1, array);
        if (status == TUTTI_OK && (!(*array)->floats || (*array)->count != (size_t)channels))
            return fail(TUTTI_FORMAT, "its %s needs %" PRId64 " floats", norm_parts[part], channels);
    } else if ((status = step_fixed(step, part + 1, &operand)) == TUTTI_OK) {
        const tutti_shape shape = TUTTI_SHAPE(channels);
        norm->tensors[part] = operand.shape.rank == 1 ? operand.tensor : step_reshape(step, operand.tensor, &shape);
    }
    return status;
}

/* The layer's own parts get the file's values. Nodes that read the same initialiser share them. */
static tutti_status set_part(const struct step *step, const struct norm *norm, size_t part)
{
    tutti_network *network = step->import->network;
    const struct array *array = norm->arrays[part];
    struct value *value = step_input(step, part + 1);
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
static tutti_tensor swap_front(const struct step *step, tutti_tensor x, int rank)
{
    int order[TUTTI_MAX_RANK] = { 1, 0 };
    for (int i = 2; i < rank; i++) order[i] = i;
    return step_permuted(step, x, order, rank);
}

/* Normalises x as [C, all other elements], over the samples and these elements, which are those of all rows of a
 * sample. */
static tutti_status batch_norm(struct step *step, struct operand *x, const tutti_batch_norm_options *options)
{
    const bool whole = x->place.axis == HIDDEN, rows = x->place.rows > 1;
    tutti_shape front = x->shape, flat = { .rank = 3, .sizes = { 0, 1, 1 } };
    if (whole && x->shape.rank > 1) {
        x->tensor = swap_front(step, x->tensor, x->shape.rank);
        front.sizes[0] = x->shape.sizes[1];
        front.sizes[1] = x->shape.sizes[0];
    }
    if (rows) x->tensor = step_with_rows(step, x->tensor, &front, 1, x->place.rows);
    flat.sizes[0] = front.sizes[0];
    for (int i = 1; i < front.rank; i++) flat.sizes[2] *= front.sizes[i];
    const bool image = !whole && !rows && (front.rank == 1 || front.rank == 3);
    tutti_tensor y = image ? x->tensor : step_reshape(step, x->tensor, &flat);
    y = tutti_batch_norm(step->import->network, y, options);
    if (!image) y = step_reshape(step, y, &front);
    if (whole && x->shape.rank > 1) y = swap_front(step, y, x->shape.rank);
    if (rows) y = step_without_rows(step, y, 1);
    return step_done(step, y, x->place);
}

static tutti_status trained_batch_norm(struct step *step, struct operand *x, int64_t channels)
{
    struct norm norm = { .layer = NULL };
    const tutti_tensor *given[NORM_PARTS] = { NULL };
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < NORM_PARTS && status == TUTTI_OK; i++) {
        status = find_part(step, &norm, i, channels);
        if (norm.tensors[i].id >= 0) given[i] = &norm.tensors[i];
    }
    if (status != TUTTI_OK) return status;
    norm.layer = norm_name(step);
    if (!norm.layer) return TUTTI_NO_MEMORY;
    status = batch_norm(step, x,
        &(tutti_batch_norm_options) { .name = norm.layer,
            .epsilon = step_number(step, "epsilon", 1e-5f),
            .momentum = 1 - step_number(step, "momentum", 0.9f),
            .weight = given[0],
            .bias = given[1],
            .running_mean = given[2],
            .running_var = given[3] });
    for (size_t i = 0; i < NORM_PARTS && status == TUTTI_OK; i++) status = set_part(step, &norm, i);
    free(norm.layer);
    return status;
}

/* momentum a + (1 - momentum) b */
static tutti_tensor moving_mean(const struct step *step, tutti_tensor old, tutti_tensor now)
{
    const float momentum = step_number(step, "momentum", 0.9f);
    const tutti_tensor parts[] = { step_binary(step, "mul", old, step_constant(step, momentum)),
        step_binary(step, "mul", now, step_constant(step, 1 - momentum)) };
    return step_plain(step, "add", parts, 2);
}

/* Normalises a weight, or a sample that is the file's whole input. Training uses its own statistics, and the moving
 * ones are outputs. Inference uses those that the file computes. */
static tutti_status batch_norm_of_sample(const struct step *step, const struct operand *x, bool training)
{
    struct operand parts[NORM_PARTS];
    tutti_status status = TUTTI_OK;
    tutti_tensor aligned[NORM_PARTS];
    tutti_shape channels = { .rank = x->shape.rank };
    char axes[64] = "0";
    for (int i = 0; i < x->shape.rank; i++) channels.sizes[i] = i == 1 ? x->shape.sizes[1] : 1;
    for (int i = 2; i < x->shape.rank; i++) snprintf(axes + 2 * i - 3, sizeof axes - 2 * (size_t)i + 3, ",%d", i);
    for (size_t i = 0; i < NORM_PARTS; i++) {
        if (i > 1 && training && !step_output(step, i - 1)) continue;
        if ((status = step_operand(step, i + 1, &parts[i])) != TUTTI_OK) return status;
        aligned[i] = step_reshape(step, parts[i].tensor, &channels);
    }
    const tutti_tensor mean =
        training ? step_op(step, "reduce_mean", &x->tensor, 1, "axes=%s keepdims=1", axes) : aligned[2];
    const tutti_tensor apart = step_binary(step, "sub", x->tensor, mean);
    const tutti_tensor square = step_plain(step, "square", &apart, 1);
    const tutti_tensor variance =
        training ? step_op(step, "reduce_mean", &square, 1, "axes=%s keepdims=1", axes) : aligned[3];
    const float epsilon = step_number(step, "epsilon", 1e-5f);
    const tutti_tensor sum = step_binary(step, "add", variance, step_constant(step, epsilon));
    tutti_tensor y = step_binary(step, "div", apart, step_plain(step, "sqrt", &sum, 1));
    y = step_binary(step, "add", step_binary(step, "mul", y, aligned[0]), aligned[1]);
    const struct place hidden = x->place;
    const tutti_shape flat = { .rank = 1, .sizes = { x->shape.sizes[1] } };
    const tutti_tensor now[] = { step_reshape(step, mean, &flat), step_reshape(step, variance, &flat) };
    status = step_done(step, y, hidden);
    for (size_t i = 0; i < 2 && status == TUTTI_OK && training; i++)
        if (step_output(step, i + 1))
            status = step_made(step, i + 1, moving_mean(step, parts[i + 2].tensor, now[i]), hidden);
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

static bool is_computed(const struct step *step, size_t input)
{
    const struct value *value = step_input(step, input);
    return value && !value->initialiser && !value->copied;
}

tutti_status build_batch_normalization(struct step *step)
{
    struct operand x;
    const float momentum = 1 - step_number(step, "momentum", 0.9f);
    const bool training = step_integer(step, "training_mode", 0) != 0;
    tutti_status status = step_operand(step, 0, &x);
    /* A weight that is normalised before it is used: its gradient passes the statistics. */
    const bool of_weight = status == TUTTI_OK && !x.place.batched && !step->import->options->whole;
    if (of_weight && x.shape.rank > 1 && (training || (is_computed(step, 3) && is_computed(step, 4))))
        return batch_norm_of_sample(step, &x, training);
    if (status == TUTTI_OK) status = step_batched(step, 0, &x);
    if (status != TUTTI_OK) return status;
    if ((x.place.axis != HIDDEN && x.place.axis != 0) || x.place.ahead != 1 || x.shape.rank < 1)
        return step_refuse("the batch must be its first axis");
    const int64_t channels = x.shape.sizes[x.place.axis == HIDDEN && x.shape.rank > 1];
    if (step->node->n_input != NORM_PARTS + 1) return fail(TUTTI_FORMAT, "it needs 5 inputs");
    if (step_integer(step, "spatial", 1) != 1) return step_refuse("spatial must be 1");
    if (training && x.place.axis == HIDDEN && x.shape.rank > 1) return batch_norm_of_sample(step, &x, true);
    if (training && step->import->training_norms++ == 0) step->import->training_norm = proto_text(step->node->name);
    if (!(momentum > 0)) return step_refuse("its momentum must be less than 1");
    if (!(step_number(step, "epsilon", 1e-5f) > 0)) return step_refuse("its epsilon must be positive");
    return trained_batch_norm(step, &x, channels);
}

/* --------------------------------------------------------------------------------------------------- products ---- */

static tutti_tensor scaled(const struct step *step, tutti_tensor x, float factor)
{
    return factor == 1 ? x : step_op(step, "scale", &x, 1, "factor=%.9g", (double)factor);
}

/* y = alpha A B, as a dense layer, where only A depends on the samples. *biased: `bias` was added. */
static tutti_status gemm_dense(
    struct step *step, const struct operand *a, struct operand *b, const struct operand *bias, tutti_tensor *y)
{
    if (step_integer(step, "transA", 0))
        return step_refuse("its first input is transposed, and depends on the samples");
    if (!step_integer(step, "transB", 0)) b->tensor = step_permuted(step, b->tensor, (int[]) { 1, 0 }, b->shape.rank);
    const tutti_tensor list[] = { a->tensor, b->tensor, bias ? bias->tensor : b->tensor };
    *y = step_plain(step, "dense", list, bias ? 3 : 2);
    return y->id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

/* y = alpha A B + beta C */
tutti_status build_gemm(struct step *step)
{
    struct operand a, b, c = { .shape = { 0 } };
    const float alpha = step_number(step, "alpha", 1), beta = step_number(step, "beta", 1);
    const int transposed_a = step_integer(step, "transA", 0) != 0, transposed_b = step_integer(step, "transB", 0) != 0;
    const bool has_c = step_input(step, 2) != NULL;
    tutti_status status = step_operand(step, 0, &a);
    if (status == TUTTI_OK) status = step_operand(step, 1, &b);
    if (status == TUTTI_OK && has_c) status = step_operand(step, 2, &c);
    if (status != TUTTI_OK) return status;
    if (operand_rank(&a) != 2 || operand_rank(&b) != 2) return step_refuse("its inputs must be matrices");
    if (!transposed_a && !b.place.batched) status = step_initial_state(step, 0, &a);
    if (status != TUTTI_OK) return status;
    struct place place = a.place.batched ? a.place : b.place;
    tutti_tensor y;
    const bool rows = a.place.batched && a.place.axis != HIDDEN;
    if (rows && (b.place.batched || a.place.axis != 0))
        return step_refuse("only its first input may depend on the samples, along its first axis");
    if (!rows && b.place.batched && b.place.axis != HIDDEN)
        return step_refuse("its second input must not depend on the samples");
    const bool direct = rows && has_c && alpha == 1 && beta == 1 && !c.place.batched && c.shape.rank == 1 &&
        c.shape.sizes[0] == b.shape.sizes[!transposed_b];
    if (rows)
        status = gemm_dense(step, &a, &b, direct ? &c : NULL, &y);
    else
        y = step_op(step, "matmul", (tutti_tensor[]) { a.tensor, b.tensor }, 2, "transpose_a=%d transpose_b=%d",
            transposed_a, transposed_b);
    if (status != TUTTI_OK) return status;
    y = scaled(step, y, alpha);
    if (!has_c || direct) return step_done(step, y, place);
    if (rows && !c.place.batched && c.shape.rank == 2 &&
        (status = step_drop_axis(step, 2, 0, a.place.rows, &c)) != TUTTI_OK)
        return status;
    if (!place.batched) place = c.place;
    y = step_plain(step, "add", (tutti_tensor[]) { y, scaled(step, c.tensor, beta) }, 2);
    return step_done(step, y, place);
}

/* The batch must be an axis in front of the matrices, and the same axis of both, counted from the last one. */
static tutti_status check_product(const struct operand *a, const struct operand *b)
{
    const bool hidden = a->place.axis == HIDDEN && b->place.axis == HIDDEN;
    if (a->place.batched && b->place.batched && !hidden &&
        (!place_equal(&a->place, &b->place) || a->shape.rank != b->shape.rank))
        return step_refuse("its inputs have different numbers of axes, or the batch in different places");
    if ((a->place.batched && a->place.axis == operand_rank(a) - 1) ||
        (b->place.batched && b->place.axis != HIDDEN && b->place.axis >= operand_rank(b) - 2) ||
        (a->place.batched && a->place.axis != HIDDEN && a->place.axis == operand_rank(a) - 2 && b->shape.rank > 2))
        return step_refuse("the batch is an axis of its matrices");
    return TUTTI_OK;
}

/* An operand without a batch may have an axis for it. */
static tutti_status without_batch(
    const struct step *step, size_t position, const struct operand *batched, struct operand *x)
{
    const bool whole = !batched->place.batched || batched->place.axis == HIDDEN;
    if (x->place.batched || whole || x->shape.rank < operand_rank(batched) || operand_rank(batched) < 3)
        return TUTTI_OK;
    if (x->shape.rank > operand_rank(batched) || batched->place.axis != 0)
        return step_refuse("input %zu has an axis in front of the batch", position);
    return step_drop_axis(step, position, 0, batched->place.rows, x);
}

tutti_status step_matmul(const struct step *step, struct operand *a, struct operand *b, size_t second)
{
    tutti_status status = check_product(a, b);
    if (status == TUTTI_OK) status = without_batch(step, second, a, b);
    if (status == TUTTI_OK) status = without_batch(step, 0, b, a);
    if (status != TUTTI_OK) return status;
    const tutti_tensor y = step_plain(step, "matmul", (tutti_tensor[]) { a->tensor, b->tensor }, 2);
    return step_done(step, y, a->place.batched ? a->place : b->place);
}

tutti_status build_matmul(struct step *step)
{
    struct operand a, b;
    tutti_status status = step_operand(step, 0, &a);
    if (status == TUTTI_OK) status = step_operand(step, 1, &b);
    return status == TUTTI_OK ? step_matmul(step, &a, &b, 1) : status;
}
