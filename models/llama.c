/* LLaMA (Touvron et al. 2023) and the networks like it, Mistral, Qwen2, Qwen3 and SmolLM, with transformers' names of
 * parameters: RMS norms, rotary embeddings, queries in groups, SwiGLU. */
#include "models/text.h"
#include "tutti_sequences.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static tutti_tensor dense(
    tutti_network *network, tutti_tensor x, const char *name, int64_t units, bool bias, const struct model_config *c)
{
    return text_dense(network, x, name, units, bias, c->deviation);
}

static tutti_tensor rms_norm(
    tutti_network *network, tutti_tensor x, const char *name, int64_t width, const struct model_config *config)
{
    char weight[64], text[64];
    const int exponent = config->epsilon > 0 ? (int)floor(log10((double)config->epsilon)) - 8 : 0;
    const long long digits = llround((double)config->epsilon * pow(10, -exponent));
    snprintf(weight, sizeof(weight), "%s.weight", name);
    snprintf(text, sizeof(text), "epsilon=%llde%d", digits, exponent); /* no point, which depends on the locale */
    const tutti_tensor inputs[] = { x, text_ones(network, weight, width) };
    return tutti_op(network, "rms_norm", inputs, 2, text);
}

/* ----------------------------------------------------------------------------------------------------- rotary ---- */

/* LLaMA 3.1: waves longer than the texts of the first training turn more slowly, short ones as before. */
static double scale_frequency(double frequency, const struct model_rotary *rotary)
{
    const double turns = rotary->original * frequency / (2 * 3.14159265358979323846);
    if (rotary->kind == ROTARY_LINEAR) return frequency / rotary->factor;
    if (rotary->kind == ROTARY_DEFAULT || turns > rotary->high) return frequency;
    if (turns < rotary->low) return frequency / rotary->factor;
    const double part = (turns - rotary->low) / (rotary->high - rotary->low);
    return (1 - part) * frequency / rotary->factor + part * frequency;
}

/* Cosines and sines [length, head_width / 2]. */
struct angles {
    tutti_tensor cosines, sines;
};

static tutti_tensor add_table(
    tutti_network *network, const struct model_config *config, int64_t length, double (*function)(double))
{
    const int64_t half = config->head_width / 2;
    float *values = malloc((size_t)length * (size_t)half * sizeof *values);
    if (!values) return (tutti_tensor) { -1 };
    for (int64_t i = 0; i < half; i++) {
        double frequency = pow(config->rotary.theta, -2.0 * (double)i / (double)config->head_width);
        frequency = scale_frequency(frequency, &config->rotary);
        for (int64_t p = 0; p < length; p++) values[p * half + i] = (float)function((double)p * frequency);
    }
    const tutti_tensor made = tutti_constant(network, NULL, TUTTI_SHAPE(length, half), values);
    free(values);
    return made;
}

static struct angles add_angles(tutti_network *network, const struct model_facts *facts)
{
    const int64_t length = facts->length > 0 ? facts->length : facts->config->positions;
    return (struct angles) { text_positions(network, add_table(network, facts->config, length, cos)),
        text_positions(network, add_table(network, facts->config, length, sin)) };
}

static tutti_tensor turn(tutti_network *network, tutti_tensor x, const struct angles *angles, int64_t heads)
{
    char text[48];
    const tutti_tensor inputs[] = { x, angles->cosines, angles->sines };
    snprintf(text, sizeof(text), "heads=%lld", (long long)heads);
    return tutti_op(network, "rotary_embedding", inputs, 3, text);
}

/* ----------------------------------------------------------------------------------------------------- layers ---- */

/* Qwen3 normalises queries and keys, each head by itself. */
static tutti_tensor norm_of_heads(
    tutti_network *network, tutti_tensor x, const char *name, int64_t heads, const struct model_config *config)
{
    const int64_t width = config->head_width;
    if (!config->norm_of_queries) return x;
    x = tutti_reshape(network, x, TUTTI_SHAPE(TUTTI_SEQUENCE, heads, width));
    x = rms_norm(network, x, name, width, config);
    return tutti_reshape(network, x, TUTTI_SHAPE(TUTTI_SEQUENCE, heads * width));
}

static tutti_tensor attention(tutti_network *network, tutti_tensor x, const struct angles *angles, int64_t layer,
    const struct model_config *config)
{
    const struct model_window *window = &config->window;
    const int64_t width = config->head_width, heads = config->heads, kv_heads = config->kv_heads;
    tutti_scope_push(network, "self_attn");
    tutti_tensor q = dense(network, x, "q_proj", heads * width, config->bias.queries, config);
    tutti_tensor k = dense(network, x, "k_proj", kv_heads * width, config->bias.queries, config);
    const tutti_tensor v = dense(network, x, "v_proj", kv_heads * width, config->bias.queries, config);
    q = turn(network, norm_of_heads(network, q, "q_norm", heads, config), angles, heads);
    k = turn(network, norm_of_heads(network, k, "k_norm", kv_heads, config), angles, kv_heads);
    x = tutti_attention(network, q, k, v,
        &(tutti_attention_options) { .heads = heads,
            .kv_heads = kv_heads,
            .causal = true,
            .window_before = window->layers[layer] ? window->size : 0,
            .dropout = config->dropout.attention });
    x = dense(network, x, "o_proj", config->width, config->bias.output, config);
    tutti_scope_pop(network);
    return x;
}

static tutti_tensor mlp(tutti_network *network, tutti_tensor x, const struct model_config *config)
{
    tutti_scope_push(network, "mlp");
    const tutti_tensor both[] = { dense(network, x, "gate_proj", config->hidden, config->bias.mlp, config),
        dense(network, x, "up_proj", config->hidden, config->bias.mlp, config) };
    x = dense(
        network, tutti_op(network, "swiglu", both, 2, NULL), "down_proj", config->width, config->bias.mlp, config);
    tutti_scope_pop(network);
    return x;
}

tutti_tensor model_llama(tutti_network *network, tutti_tensor ids, int classes, const struct model_facts *facts)
{
    const struct model_config *config = facts->config;
    const struct angles angles = add_angles(network, facts);
    tutti_scope_push(network, "model");
    const tutti_tensor table = text_table(network, "embed_tokens.weight", text_vocabulary(facts), config);
    const tutti_tensor both[] = { ids, table };
    tutti_tensor x = tutti_op(network, "embedding", both, 2, NULL);
    for (int64_t i = 0; i < config->layers; i++) {
        text_push(network, "layers", i);
        const tutti_tensor y = rms_norm(network, x, "input_layernorm", config->width, config);
        x = tutti_add(network, x, attention(network, y, &angles, i, config));
        const tutti_tensor z = rms_norm(network, x, "post_attention_layernorm", config->width, config);
        x = tutti_add(network, x, mlp(network, z, config));
        tutti_scope_pop(network);
    }
    x = rms_norm(network, x, "norm", config->width, config);
    tutti_scope_pop(network);
    if (!facts->tokens_are_classes) return text_score(network, x, ids, classes, config->deviation);
    return text_logits(network, x, table, facts);
}
