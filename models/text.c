#include "models/text.h"

#include <stdio.h>
#include <stdlib.h>

static tutti_tensor number(tutti_network *network, float value)
{
    return tutti_constant(network, NULL, TUTTI_SHAPE(1), &value);
}

static tutti_tensor two(tutti_network *network, const char *operation, tutti_tensor a, tutti_tensor b)
{
    const tutti_tensor both[] = { a, b };
    return tutti_op(network, operation, both, 2, NULL);
}

tutti_tensor text_mask(tutti_network *network, tutti_tensor ids)
{
    return two(network, "greater_or_equal", tutti_cast(network, ids, TUTTI_DTYPE_F32), number(network, 0));
}

tutti_tensor text_count(tutti_network *network, tutti_tensor ids)
{
    const tutti_tensor mask = text_mask(network, ids);
    return tutti_op(network, "reduce_sum", &mask, 1, "axes=0 keepdims=0");
}

/* Summed from the end, the mask is 1 at the last token: 0 after it, and more than 1 before it. */
tutti_tensor text_last(tutti_network *network, tutti_tensor x, tutti_tensor ids)
{
    const tutti_tensor mask = text_mask(network, ids);
    tutti_tensor left = tutti_op(network, "cumsum", &mask, 1, "axis=0 reverse=1");
    left = two(network, "equal", left, number(network, 1));
    left = two(network, "mul", left, mask);
    x = tutti_mul(network, x, tutti_reshape(network, left, TUTTI_SHAPE(TUTTI_SEQUENCE, 1)));
    return tutti_op(network, "reduce_sum", &x, 1, "axes=0 keepdims=0");
}

int64_t text_vocabulary(const struct model_facts *facts)
{
    return facts->vocabulary > 0 ? facts->vocabulary : facts->config->vocabulary;
}

tutti_tensor text_dense(
    tutti_network *network, tutti_tensor x, const char *name, int64_t units, bool bias, float deviation)
{
    return tutti_dense(network, x, units,
        &(tutti_dense_options) { .name = name,
            .no_bias = !bias,
            .init = TUTTI_INIT_NORMAL,
            .init_scale = deviation,
            .bias_init = TUTTI_INIT_ZEROS });
}

tutti_tensor text_activation(tutti_network *network, tutti_tensor x, enum model_activation activation)
{
    static const char *const names[] = {
        [MODEL_GELU] = "gelu", [MODEL_GELU_TANH] = "gelu_tanh", [MODEL_RELU] = "relu", [MODEL_SILU] = "silu"
    };
    return tutti_op(network, names[activation], &x, 1, NULL);
}

tutti_tensor text_table(tutti_network *network, const char *name, int64_t rows, const struct model_config *config)
{
    return tutti_parameter(network, name, TUTTI_SHAPE(rows, config->width),
        &(tutti_parameter_options) { .init = TUTTI_INIT_NORMAL, .init_scale = config->deviation });
}

tutti_tensor text_rows(tutti_network *network, tutti_tensor table, int64_t first, int64_t count)
{
    char text[96];
    snprintf(text, sizeof(text), "axes=0 starts=%lld ends=%lld", (long long)first, (long long)(first + count));
    return tutti_op(network, "slice", &table, 1, text);
}

tutti_tensor text_logits(tutti_network *network, tutti_tensor x, tutti_tensor table, const struct model_facts *facts)
{
    return tutti_dense(network, x, text_vocabulary(facts),
        &(tutti_dense_options) { .name = "lm_head",
            .no_bias = true,
            .init = TUTTI_INIT_NORMAL,
            .init_scale = facts->config->deviation,
            .weight = facts->config->tied ? &table : NULL });
}

/* Where there is no memory, the next layer fails for a tensor that does not exist. */
tutti_tensor text_ones(tutti_network *network, const char *name, int64_t width)
{
    float *ones = malloc((size_t)width * sizeof *ones);
    if (!ones) return (tutti_tensor) { -1 };
    for (int64_t i = 0; i < width; i++) ones[i] = 1;
    const tutti_tensor made =
        tutti_parameter(network, name, TUTTI_SHAPE(width), &(tutti_parameter_options) { .values = ones });
    free(ones);
    return made;
}

tutti_tensor text_score(tutti_network *network, tutti_tensor x, tutti_tensor ids, int classes, float deviation)
{
    return tutti_dense(network, text_last(network, x, ids), classes,
        &(tutti_dense_options) {
            .name = "score", .no_bias = true, .init = TUTTI_INIT_NORMAL, .init_scale = deviation });
}

tutti_tensor text_columns(tutti_network *network, tutti_tensor x, int64_t first, int64_t count)
{
    char text[96];
    snprintf(text, sizeof(text), "axes=-1 starts=%lld ends=%lld", (long long)first, (long long)(first + count));
    return tutti_op(network, "slice", &x, 1, text);
}

tutti_tensor text_dropout(tutti_network *network, tutti_tensor x, float probability)
{
    return probability > 0 ? tutti_dropout(network, x, probability) : x;
}

tutti_tensor text_positions(tutti_network *network, tutti_tensor table)
{
    return tutti_op(network, "prefix", &table, 1, "axes=0");
}

void text_push(tutti_network *network, const char *name, int64_t number)
{
    char text[64];
    snprintf(text, sizeof(text), "%s.%lld", name, (long long)number);
    tutti_scope_push(network, text);
}
