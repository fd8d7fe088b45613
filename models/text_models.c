#include "models/text_models.h"

#define RECURRENT \
    .vocabulary = 32000, .width = 256, .hidden = 256, .layers = 2, .bidirectional = true, .dropout.hidden = 0.3f
const struct model_config lstm_config = { .family = FAMILY_LSTM, RECURRENT };
const struct model_config gru_config = { .family = FAMILY_GRU, RECURRENT };

const struct model_config fasttext_config = {
    .family = FAMILY_FASTTEXT, .vocabulary = 32000, .width = 64, .buckets = 1 << 16, .deviation = 0.01f
};

#define BERT(size, count)                                                                            \
    .vocabulary = 30522, .positions = 512, .width = (size), .hidden = 4 * (size), .layers = (count), \
    .heads = (size) / 64, .dropout = { 0.1f, 0.1f, 0.1f, 0.1f }, .deviation = 0.02f, .epsilon = 1e-12f
const struct model_config bert_tiny_config = { .family = FAMILY_BERT, BERT(128, 2), .types = 2 };
const struct model_config bert_mini_config = { .family = FAMILY_BERT, BERT(256, 4), .types = 2 };
const struct model_config bert_small_config = { .family = FAMILY_BERT, BERT(512, 4), .types = 2 };
const struct model_config bert_base_config = { .family = FAMILY_BERT, BERT(768, 12), .types = 2 };
const struct model_config distilbert_config = { .family = FAMILY_DISTILBERT,
    .vocabulary = 30522,
    .positions = 512,
    .width = 768,
    .hidden = 3072,
    .layers = 6,
    .heads = 12,
    .dropout = { 0.1f, 0.1f, 0.1f, 0.2f },
    .deviation = 0.02f,
    .epsilon = 1e-12f };
const struct model_config roberta_base_config = { .family = FAMILY_ROBERTA,
    .vocabulary = 50265,
    .positions = 512,
    .types = 1,
    .width = 768,
    .hidden = 3072,
    .layers = 12,
    .heads = 12,
    .dropout = { 0.1f, 0.1f, 0.1f, 0.1f },
    .deviation = 0.02f,
    .epsilon = 1e-5f };

/* As nanoGPT trains the characters of Shakespeare. */
const struct model_config gpt_config = { .family = FAMILY_GPT,
    .vocabulary = 65,
    .positions = 256,
    .width = 384,
    .hidden = 1536,
    .layers = 6,
    .heads = 6,
    .dropout = { 0.2f, 0.2f, 0.2f, 0 },
    .deviation = 0.02f,
    .epsilon = 1e-5f,
    .tied = true };
const struct model_config gpt2_config = { .family = FAMILY_GPT2,
    .vocabulary = 50257,
    .positions = 1024,
    .width = 768,
    .hidden = 3072,
    .layers = 12,
    .heads = 12,
    .activation = MODEL_GELU_TANH,
    .dropout = { 0.1f, 0.1f, 0.1f, 0 },
    .bias = { true, true, true },
    .deviation = 0.02f,
    .epsilon = 1e-5f,
    .tied = true };
/* SmolLM2-135M's. */
const struct model_config llama_config = { .family = FAMILY_LLAMA,
    .vocabulary = 49152,
    .positions = 8192,
    .width = 576,
    .hidden = 1536,
    .layers = 30,
    .heads = 9,
    .kv_heads = 3,
    .head_width = 64,
    .activation = MODEL_SILU,
    .deviation = 0.041666666f,
    .epsilon = 1e-5f,
    .tied = true,
    .rotary = { .theta = 100000, .factor = 1, .low = 1, .high = 4 } };

#define TEXT_MODEL_FUNCTIONS(name, builder)                                                                     \
    tutti_tensor name##_build_for(                                                                              \
        tutti_network *network, tutti_tensor ids, int classes, const struct model_facts *given)                 \
    {                                                                                                           \
        struct model_facts facts = *given;                                                                      \
        if (!facts.config) facts.config = &name##_config;                                                       \
        return builder(network, ids, classes, &facts);                                                          \
    }                                                                                                           \
    tutti_tensor name##_build(tutti_network *network, tutti_tensor ids, int classes)                            \
    {                                                                                                           \
        const bool tokens = model_predicts_tokens(model_find(#name));                                           \
        return name##_build_for(network, ids, classes, &(struct model_facts) { .tokens_are_classes = tokens }); \
    }
TEXT_MODELS(TEXT_MODEL_FUNCTIONS)
