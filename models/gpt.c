/* GPT-2 (Radford et al. 2019) with transformers' names of parameters, and nanoGPT (github.com/karpathy/nanoGPT) with
 * its own, which are nearly the same. The logits of the next token share the weights of the embeddings. */
#include "models/text.h"
#include "tutti_sequences.h"

#include <math.h>
#include <stdio.h>

/* GPT-2's weights are [inputs, units], as transformers' Conv1D has them; nanoGPT's are those of a dense layer. */
static tutti_tensor dense(tutti_network *network, tutti_tensor x, const char *name, int64_t units,
    const struct model_config *config, float deviation)
{
    tutti_shape shape = { 0 };
    if (config->family == FAMILY_GPT) return text_dense(network, x, name, units, config->bias.mlp, deviation);
    (void)tutti_shape_of(network, x, &shape);
    tutti_scope_push(network, name);
    const tutti_tensor weight = tutti_parameter(network, "weight", TUTTI_SHAPE(shape.sizes[shape.rank - 1], units),
        &(tutti_parameter_options) { .init = TUTTI_INIT_NORMAL, .init_scale = deviation });
    const tutti_tensor bias =
        tutti_parameter(network, "bias", TUTTI_SHAPE(units), &(tutti_parameter_options) { .init = TUTTI_INIT_ZEROS });
    x = tutti_add(network, tutti_matmul(network, NULL, x, weight, false, false), bias);
    tutti_scope_pop(network);
    return x;
}

static tutti_tensor normalise(
    tutti_network *network, tutti_tensor x, const char *name, const struct model_config *config)
{
    char weight[64];
    if (config->bias.mlp) return tutti_layer_norm(network, name, x, config->epsilon);
    snprintf(weight, sizeof(weight), "%s.weight", name);
    const tutti_tensor inputs[] = { x, text_ones(network, weight, config->width) };
    return tutti_op(network, "layer_norm", inputs, 2, NULL); /* with the epsilon 1e-5, as nanoGPT */
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
    x = text_activation(network, x, config->activation);
    x = dense(network, x, "c_proj", config->width, config, deviation);
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
    tutti_scope_push(network, "transformer");
    const tutti_tensor table = text_table(network, "wte.weight", text_vocabulary(facts), config);
    const tutti_tensor positions = text_table(network, "wpe.weight", config->positions, config);
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
    return text_logits(network, x, table, facts);
}
