/* nanoGPT (github.com/karpathy/nanoGPT), with its names of parameters and initial values. The logits of the next token
 * share the weights of the embeddings. */
#include "models/text.h"
#include "tutti_sequences.h"

#include <math.h>
#include <stdio.h>

#define EPSILON 1e-5f

static tutti_tensor dense(tutti_network *network, tutti_tensor x, const char *name, int64_t units,
    const struct model_config *config, float deviation)
{
    return tutti_dense(network, x, units,
        &(tutti_dense_options) { .name = name,
            .no_bias = !config->bias.mlp,
            .init = TUTTI_INIT_NORMAL,
            .init_scale = deviation,
            .bias_init = TUTTI_INIT_ZEROS });
}

static tutti_tensor normalise(
    tutti_network *network, tutti_tensor x, const char *name, const struct model_config *config)
{
    char weight[64];
    if (config->bias.mlp) return tutti_layer_norm(network, name, x, EPSILON);
    snprintf(weight, sizeof(weight), "%s.weight", name);
    const tutti_tensor inputs[] = { x, text_ones(network, weight, config->width) };
    return tutti_op(network, "layer_norm", inputs, 2, NULL);
}

static tutti_tensor attention(
    tutti_network *network, tutti_tensor x, const struct model_config *config, float deviation)
{
    const int64_t width = config->width;
    tutti_scope_push(network, "attn");
    x = dense(network, x, "c_attn", 3 * width, config, config->deviation);
    x = tutti_attention(network, text_columns(network, x, 0, width), text_columns(network, x, width, width),
        text_columns(network, x, 2 * width, width),
        &(tutti_attention_options) { .heads = config->heads, .causal = true, .dropout = config->dropout.attention });
    x = dense(network, x, "c_proj", width, config, deviation);
    tutti_scope_pop(network);
    return text_dropout(network, x, config->dropout.hidden);
}

static tutti_tensor mlp(tutti_network *network, tutti_tensor x, const struct model_config *config, float deviation)
{
    tutti_scope_push(network, "mlp");
    x = dense(network, x, "c_fc", config->hidden, config, config->deviation);
    x = dense(network, tutti_op(network, "gelu", &x, 1, NULL), "c_proj", config->width, config, deviation);
    tutti_scope_pop(network);
    return text_dropout(network, x, config->dropout.hidden);
}

/* What is added to a state begins smaller, as there are two sums in each block. */
static tutti_tensor block(tutti_network *network, tutti_tensor x, const struct model_config *config)
{
    const float deviation = config->deviation / sqrtf(2 * (float)config->layers);
    x = tutti_add(network, x, attention(network, normalise(network, x, "ln_1", config), config, deviation));
    return tutti_add(network, x, mlp(network, normalise(network, x, "ln_2", config), config, deviation));
}

tutti_tensor model_gpt(tutti_network *network, tutti_tensor ids, int classes, const struct model_facts *facts)
{
    const struct model_config *config = facts->config;
    const tutti_parameter_options normal = { .init = TUTTI_INIT_NORMAL, .init_scale = config->deviation };
    tutti_scope_push(network, "transformer");
    const tutti_tensor table =
        tutti_parameter(network, "wte.weight", TUTTI_SHAPE(text_vocabulary(facts), config->width), &normal);
    const tutti_tensor positions =
        tutti_parameter(network, "wpe.weight", TUTTI_SHAPE(config->positions, config->width), &normal);
    const tutti_tensor both[] = { ids, table };
    tutti_tensor x = tutti_op(network, "embedding", both, 2, NULL);
    x = text_dropout(network, tutti_add(network, x, text_positions(network, positions)), config->dropout.embedding);
    for (int64_t i = 0; i < config->layers; i++) {
        text_push(network, "h", i);
        x = block(network, x, config);
        tutti_scope_pop(network);
    }
    x = normalise(network, x, "ln_f", config);
    tutti_scope_pop(network);
    if (!facts->tokens_are_classes) return text_score(network, x, ids, classes, config->deviation);
    return tutti_dense(network, x, text_vocabulary(facts),
        &(tutti_dense_options) { .name = "lm_head", .no_bias = true, .weight = &table });
}
