/* Operators of ai.onnx.ml that are linear: what scikit-learn's regressions, classifications and scalers become. */
#include "onnx/operators.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const float *floats_of(const struct step *step, const char *name, size_t *count)
{
    const Onnx__AttributeProto *attribute = step_attribute(step, name);
    *count = attribute ? attribute->n_floats : 0;
    return attribute ? attribute->floats : NULL;
}

/* Rows [features] that depend on the samples: [N, features] in the file. */
static tutti_status read_rows(const struct step *step, struct operand *x)
{
    const tutti_status status = step_batched(step, 0, x);
    if (status != TUTTI_OK) return status;
    if (x->place.axis == HIDDEN ? x->shape.rank == 2 : x->shape.rank == 1 && x->place.axis == 0 && x->place.ahead == 1)
        return TUTTI_OK;
    return step_refuse("its input must have an axis of samples and one of features");
}

/* A parameter of the node: NODE.weight and so on. */
static tutti_tensor parameter(const struct step *step, const char *part, tutti_shape shape, const float *values)
{
    const char *node = *proto_text(step->node->name) ? step->node->name : step->node->output[0];
    char *name = memory_format("%s.%s", node, part);
    if (!name) return (tutti_tensor) { -1 };
    const tutti_tensor made =
        tutti_parameter(step->import->network, name, shape, &(tutti_parameter_options) { .values = values });
    free(name);
    return made;
}

/* x W' + b, with `rows` rows of coefficients. */
static tutti_status linear(const struct step *step, struct operand *x, int64_t rows)
{
    size_t count, intercepts;
    const float *weight = floats_of(step, "coefficients", &count), *bias = floats_of(step, "intercepts", &intercepts);
    const int64_t features = x->shape.sizes[x->shape.rank - 1];
    if (rows < 1 || count % (size_t)rows || (int64_t)count / rows != features ||
        (intercepts && intercepts != (size_t)rows))
        return fail(TUTTI_FORMAT,
            "it has %zu coefficients and %zu intercepts for %" PRId64 " rows of %" PRId64 " features", count,
            intercepts, rows, features);
    tutti_tensor list[] = { x->tensor, parameter(step, "weight", TUTTI_SHAPE(rows, features), weight), { -1 } };
    if (bias) list[2] = parameter(step, "bias", TUTTI_SHAPE(rows), bias);
    if (list[1].id < 0 || (bias && list[2].id < 0)) return tutti_network_status(step->import->network);
    x->tensor = step_plain(step, "dense", list, bias ? 3 : 2);
    x->shape.sizes[x->shape.rank - 1] = rows;
    return x->tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

static bool transforms(const struct step *step, const char *name)
{
    return step_says(step, "post_transform", name);
}

tutti_status build_linear_regressor(struct step *step)
{
    struct operand x;
    tutti_status status = read_rows(step, &x);
    if (step_attribute(step, "post_transform") && !transforms(step, "NONE"))
        return step_refuse("its post_transform must be NONE");
    if (status == TUTTI_OK) status = linear(step, &x, step_integer(step, "targets", 1));
    return status == TUTTI_OK ? step_done(step, x.tensor, x.place) : status;
}

/* Computes logits of the probabilities that transform() makes: the inputs of a softmax, or logarithms of
 * probabilities. */
static tutti_status as_logits(const struct step *step, struct operand *x, bool both)
{
    const int axis = x->shape.rank - 1;
    if (both) {
        const tutti_tensor other = step_plain(step, "neg", &x->tensor, 1);
        x->tensor = step_op(step, "concat", (tutti_tensor[]) { other, x->tensor }, 2, "axis=%d", axis);
    }
    if (transforms(step, "LOGISTIC")) {
        x->tensor = step_plain(step, "neg", &x->tensor, 1);
        x->tensor = step_plain(step, "softplus", &x->tensor, 1);
        x->tensor = step_plain(step, "neg", &x->tensor, 1);
    }
    return x->tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

/* Computes the scores of classes as post_transform asks. both: one row of coefficients gives the scores of two
 * classes. */
static tutti_status transform(const struct step *step, struct operand *x, bool both)
{
    const struct value *scores = step_output(step, 1);
    if (scores && step->import->logits && !strcmp(scores->name, step->import->logits)) return as_logits(step, x, both);
    const tutti_tensor one = step_constant(step, 1);
    const int axis = x->shape.rank - 1;
    if (transforms(step, "SOFTMAX") && !both)
        x->tensor = step_plain(step, "softmax", &x->tensor, 1);
    else if (transforms(step, "LOGISTIC"))
        x->tensor = step_plain(step, "sigmoid", &x->tensor, 1);
    else if (step_attribute(step, "post_transform") && !transforms(step, "NONE"))
        return step_refuse("its post_transform must be NONE, SOFTMAX or LOGISTIC");
    if (both) {
        const tutti_tensor other = transforms(step, "LOGISTIC") ? step_binary(step, "sub", one, x->tensor)
                                                                : step_plain(step, "neg", &x->tensor, 1);
        x->tensor = step_op(step, "concat", (tutti_tensor[]) { other, x->tensor }, 2, "axis=%d", axis);
    }
    return x->tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

/* Adds the label of the largest score: its number, or its place among texts. */
static tutti_status add_label(const struct step *step, const struct operand *scores)
{
    size_t count = 0;
    const int64_t *labels = step_integers(step, "classlabels_ints", &count);
    struct place place = scores->place;
    bool counts = true;
    tutti_tensor y = step_op(step, "argmax", &scores->tensor, 1, "axis=%d keepdims=0", scores->shape.rank - 1);
    float *numbers = memory_new(count + 1, sizeof *numbers);
    if (!numbers) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (float)labels[i];
        counts &= labels[i] == (int64_t)i;
    }
    if (!counts) {
        const tutti_tensor list = tutti_constant(step->import->network, NULL, TUTTI_SHAPE((int64_t)count), numbers);
        y = step_op(step, "gather", (tutti_tensor[]) { list, y }, 2, "axis=0");
    }
    free(numbers);
    step_type(step, 0, ONNX_INT64);
    return step_made(step, 0, y, place);
}

tutti_status build_linear_classifier(struct step *step)
{
    struct operand x;
    size_t coefficients, labels = 0;
    (void)floats_of(step, "coefficients", &coefficients);
    (void)step_integers(step, "classlabels_ints", &labels);
    const Onnx__AttributeProto *texts = step_attribute(step, "classlabels_strings");
    if (texts && !labels) labels = texts->n_strings;
    tutti_status status = read_rows(step, &x);
    if (status != TUTTI_OK) return status;
    const int64_t features = x.shape.sizes[x.shape.rank - 1], rows = (int64_t)coefficients / features;
    const bool both = rows == 1 && labels == 2;
    if (labels < 2 || (!both && rows != (int64_t)labels))
        return fail(TUTTI_FORMAT, "it has %zu labels for %" PRId64 " rows of coefficients", labels, rows);
    status = linear(step, &x, rows);
    if (status == TUTTI_OK) status = transform(step, &x, both);
    if (status == TUTTI_OK && step_output(step, 0)) status = add_label(step, &x);
    if (step_output(step, 1)) step_type(step, 1, ONNX_FLOAT);
    return status == TUTTI_OK ? step_made(step, 1, x.tensor, x.place) : status;
}

/* (x - offset) scale, for each feature or one for all. These numbers do not train. */
tutti_status build_scaler(struct step *step)
{
    struct operand x;
    static const char *const names[] = { "offset", "scale" }, *const operations[] = { "sub", "mul" };
    const tutti_status status = read_rows(step, &x);
    if (status != TUTTI_OK) return status;
    for (int i = 0; i < 2; i++) {
        size_t count;
        const float *numbers = floats_of(step, names[i], &count);
        if (count == 0) continue;
        if (count != 1 && (int64_t)count != x.shape.sizes[x.shape.rank - 1])
            return fail(TUTTI_FORMAT, "its %s has %zu numbers", names[i], count);
        const tutti_tensor list = tutti_constant(step->import->network, NULL, TUTTI_SHAPE((int64_t)count), numbers);
        x.tensor = step_binary(step, operations[i], x.tensor, list);
    }
    step_type(step, 0, ONNX_FLOAT);
    return step_done(step, x.tensor, x.place);
}

/* Divides each row by its largest absolute number, its sum of absolute numbers, or its length; a row of zeros stays. */
tutti_status build_normalizer(struct step *step)
{
    struct operand x;
    const tutti_status status = read_rows(step, &x);
    if (status != TUTTI_OK) return status;
    const bool sum = step_says(step, "norm", "L1"), length = step_says(step, "norm", "L2");
    const int axis = x.shape.rank - 1;
    tutti_tensor size = sum || length ? x.tensor : step_plain(step, "abs", &x.tensor, 1);
    size = step_op(step, length ? "reduce_l2" : sum ? "reduce_l1" : "reduce_max", &size, 1, "axes=%d keepdims=1", axis);
    const tutti_tensor one = step_constant(step, 1);
    const tutti_tensor none = step_binary(step, "equal", size, step_constant(step, 0));
    size = step_elements(step, "where", (tutti_tensor[]) { none, one, size }, 3);
    step_type(step, 0, ONNX_FLOAT);
    return step_done(step, step_binary(step, "div", x.tensor, size), x.place);
}

/* Some features, or one for each sample of a constant row: Gather along the last axis. */
tutti_status build_array_feature_extractor(struct step *step)
{
    struct operand x, indices;
    tutti_status status = step_operand(step, 0, &x);
    if (status == TUTTI_OK) status = step_indices(step, 1, &indices);
    if (status != TUTTI_OK) return status;
    const int last = x.shape.rank - 1;
    if (last < 0 || (x.place.batched && indices.place.batched))
        return step_refuse("its inputs must be features and known indices, or known numbers and indices");
    int64_t count = 1, before = 1;
    for (int i = 0; i < indices.shape.rank; i++) count *= indices.shape.sizes[i];
    for (int i = 0; i < last; i++) before *= x.shape.sizes[i];
    const bool whole = indices.place.axis == HIDDEN;
    const bool one_each = indices.place.axis == 0 && count == 1 && indices.place.rows == 1;
    if (indices.place.batched && (before != 1 || !(whole || one_each)))
        return step_refuse("only a row of known numbers can have indices that depend on the samples, one for each");
    if (!indices.place.batched) {
        if (x.place.batched && x.place.axis > last) return step_refuse("the batch is its last axis");
        indices.tensor = step_reshape(step, indices.tensor, &TUTTI_SHAPE(count));
        const tutti_tensor y =
            step_op(step, "gather", (tutti_tensor[]) { x.tensor, indices.tensor }, 2, "axis=%d", last);
        return step_done(step, y, x.place);
    }
    /* The result is [1, N]: the batch is the second axis. */
    const tutti_tensor row = step_reshape(step, x.tensor, &TUTTI_SHAPE(x.shape.sizes[last]));
    tutti_tensor y = step_op(step, "gather", (tutti_tensor[]) { row, indices.tensor }, 2, "axis=0");
    y = step_reshape(step, y, whole ? &TUTTI_SHAPE(1, count) : &TUTTI_SHAPE(1));
    if (whole) return step_done(step, y, indices.place);
    return step_done(step, y, (struct place) { .batched = true, .axis = 1, .rows = 1, .ahead = 1 });
}

/* Numbers for numbers; texts become their places in the list. */
tutti_status build_label_encoder(struct step *step)
{
    struct operand x;
    size_t key_count = 0, value_count = 0;
    const int64_t *keys = step_integers(step, "keys_int64s", &key_count);
    const int64_t *values = step_integers(step, "values_int64s", &value_count);
    const Onnx__AttributeProto *texts = step_attribute(step, "values_strings"),
                               *reals = step_attribute(step, "values_floats");
    const size_t count = values ? value_count : texts ? texts->n_strings : reals ? reals->n_floats : 0;
    tutti_status status = step_operand(step, 0, &x);
    if (status != TUTTI_OK) return status;
    if (!keys || count != key_count || key_count > 4096)
        return step_refuse("its keys must be integers, at most 4096, and its values integers, floats or texts");
    const float otherwise = texts ? -1
        : reals                   ? step_number(step, "default_float", 0)
                                  : (float)step_integer(step, "default_int64", -1);
    tutti_tensor y = step_constant(step, otherwise);
    for (size_t i = 0; i < key_count; i++) {
        const float value = values ? (float)values[i] : reals ? reals->floats[i] : (float)i;
        const tutti_tensor is_it = step_binary(step, "equal", x.tensor, step_constant(step, (float)keys[i]));
        y = step_elements(step, "where", (tutti_tensor[]) { is_it, step_constant(step, value), y }, 3);
    }
    step_type(step, 0, reals ? ONNX_FLOAT : ONNX_INT64);
    return step_done(step, y, x.place);
}
