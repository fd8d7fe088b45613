/* BERT (Devlin et al. 2018), RoBERTa (Liu et al. 2019) and DistilBERT (Sanh et al. 2019) with the names of parameters
 * of transformers' *ForSequenceClassification; with a class for each token, as *ForTokenClassification. */
#include "models/text.h"
#include "tutti_sequences.h"

/* Names of one block's layers. */
struct names {
    const char *block, *query, *key, *value, *output, *output_norm, *inner, *outer, *outer_norm;
};
static const struct names bert_names = { "encoder.layer", "attention.self.query", "attention.self.key",
    "attention.self.value", "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense",
    "output.dense", "output.LayerNorm" };
static const struct names distilbert_names = { "transformer.layer", "attention.q_lin", "attention.k_lin",
    "attention.v_lin", "attention.out_lin", "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm" };

static tutti_tensor dense(
    tutti_network *network, tutti_tensor x, const char *name, int64_t units, const struct model_config *config)
{
    return text_dense(network, x, name, units, true, config->deviation);
}

static tutti_tensor attention(tutti_network *network, tutti_tensor x, tutti_tensor count, const struct names *names,
    const struct model_config *config)
{
    const int64_t width = config->width;
    const tutti_tensor q = dense(network, x, names->query, width, config);
    const tutti_tensor k = dense(network, x, names->key, width, config);
    const tutti_tensor v = dense(network, x, names->value, width, config);
    x = tutti_attention(network, q, k, v,
        &(tutti_attention_options) {
            .heads = config->heads, .key_counts = &count, .dropout = config->dropout.attention });
    return dense(network, x, names->output, width, config);
}

static tutti_tensor block(tutti_network *network, tutti_tensor x, tutti_tensor count, const struct names *names,
    const struct model_config *config)
{
    tutti_tensor y = text_dropout(network, attention(network, x, count, names, config), config->dropout.hidden);
    x = tutti_layer_norm(network, names->output_norm, tutti_add(network, x, y), config->epsilon);
    y = text_activation(network, dense(network, x, names->inner, config->hidden, config), config->activation);
    y = text_dropout(network, dense(network, y, names->outer, config->width, config), config->dropout.hidden);
    return tutti_layer_norm(network, names->outer_norm, tutti_add(network, x, y), config->epsilon);
}

/* Without a second text, all tokens are of the type 0. */
static tutti_tensor embed_types(tutti_network *network, const struct model_facts *facts)
{
    const struct model_config *config = facts->config;
    const tutti_tensor table = text_table(network, "token_type_embeddings.weight", config->types, config);
    if (!facts->types || config->types < 2) return tutti_op(network, "slice", &table, 1, "axes=0 starts=0 ends=1");
    const tutti_tensor both[] = { *facts->types, table };
    return tutti_op(network, "embedding", both, 2, NULL);
}

/* RoBERTa's table has two rows before that of the first token. */
static tutti_tensor embed(tutti_network *network, tutti_tensor ids, const struct model_facts *facts)
{
    const struct model_config *config = facts->config;
    const int64_t first = config->family == FAMILY_ROBERTA ? 2 : 0;
    tutti_scope_push(network, "embeddings");
    const tutti_tensor words[] = { ids, text_table(network, "word_embeddings.weight", text_vocabulary(facts), config) };
    tutti_tensor x = tutti_op(network, "embedding", words, 2, NULL);
    tutti_tensor positions = text_table(network, "position_embeddings.weight", config->positions + first, config);
    if (first > 0) positions = text_rows(network, positions, first, config->positions);
    if (config->types > 0) x = tutti_add(network, x, embed_types(network, facts));
    x = tutti_add(network, x, text_positions(network, positions));
    x = tutti_layer_norm(network, "LayerNorm", x, config->epsilon);
    tutti_scope_pop(network);
    return text_dropout(network, x, config->dropout.embedding);
}

/* The state of the first token, [width]. */
static tutti_tensor first_state(tutti_network *network, tutti_tensor x)
{
    return tutti_flatten(network, tutti_op(network, "slice", &x, 1, "axes=0 starts=0 ends=1"));
}

/* BERT's pooler is a part of the network without the classes. */
static tutti_tensor pool(tutti_network *network, tutti_tensor x, const struct model_config *config)
{
    return tutti_tanh(network, dense(network, first_state(network, x), "pooler.dense", config->width, config));
}

static tutti_tensor head(tutti_network *network, tutti_tensor x, int classes, const struct model_config *config)
{
    const char *last = "classifier";
    if (config->family == FAMILY_ROBERTA) {
        last = "classifier.out_proj";
        x = text_dropout(network, first_state(network, x), config->dropout.head);
        x = tutti_tanh(network, dense(network, x, "classifier.dense", config->width, config));
    } else if (config->family == FAMILY_DISTILBERT) {
        x = dense(network, first_state(network, x), "pre_classifier", config->width, config);
        x = tutti_relu(network, x);
    }
    return dense(network, text_dropout(network, x, config->dropout.head), last, classes, config);
}

tutti_tensor model_bert(tutti_network *network, tutti_tensor ids, int classes, const struct model_facts *facts)
{
    const struct model_config *config = facts->config;
    const bool distilled = config->family == FAMILY_DISTILBERT;
    const struct names *names = distilled ? &distilbert_names : &bert_names;
    const tutti_tensor count = text_count(network, ids);
    tutti_scope_push(network, distilled ? "distilbert" : config->family == FAMILY_ROBERTA ? "roberta" : "bert");
    tutti_tensor x = embed(network, ids, facts);
    for (int64_t i = 0; i < config->layers; i++) {
        text_push(network, names->block, i);
        x = block(network, x, count, names, config);
        tutti_scope_pop(network);
    }
    const bool of_tokens = facts->tokens_are_classes || facts->tags;
    if (config->family == FAMILY_BERT && !of_tokens) x = pool(network, x, config);
    tutti_scope_pop(network);
    if (!of_tokens) return head(network, x, classes, config);
    return dense(network, text_dropout(network, x, config->dropout.head), "classifier", classes, config);
}
