/* What a network for text is made of: sizes and choices, as the config.json of published models has them. */
#ifndef MODELS_CONFIG_H
#define MODELS_CONFIG_H

#include "tutti.h"

/* Networks with the same layers and names of parameters. */
enum model_family {
    FAMILY_FASTTEXT,
    FAMILY_LSTM,
    FAMILY_GRU,
    FAMILY_BERT,
    FAMILY_ROBERTA,
    FAMILY_DISTILBERT,
    FAMILY_FNO,    /* of images, not of texts */
    FAMILY_SPEECH, /* of recordings */
    FAMILY_GPT,    /* nanoGPT's */
    FAMILY_GPT2,
    FAMILY_LLAMA, /* and Mistral's, Qwen2's and Qwen3's */
};
enum model_pooling { POOLING_ATTENTION, POOLING_MEAN, POOLING_MAX, POOLING_LAST };
enum model_activation { MODEL_GELU, MODEL_GELU_TANH, MODEL_RELU, MODEL_SILU };

/* Probabilities: of sums and layers, of attention's weights, of embeddings, and before the classes. */
struct model_dropouts {
    float hidden, attention, embedding, head;
};
struct model_biases {
    bool queries, output, mlp; /* queries: and keys and values; output: of attention */
};
enum { MODEL_MOST_LAYERS = 256 };
/* A query sees so many keys, itself included, in some layers; 0: all. */
struct model_window {
    int64_t size;
    bool layers[MODEL_MOST_LAYERS];
};
enum model_rotary_kind { ROTARY_DEFAULT, ROTARY_LINEAR, ROTARY_LLAMA3 };
/* Frequencies theta^(-2 i / head_width). LINEAR divides them by the factor, LLAMA3 those of long waves. */
struct model_rotary {
    enum model_rotary_kind kind;
    double theta, factor, low, high, original;
};

struct model_config {
    enum model_family family;
    int64_t vocabulary;
    int64_t positions; /* most tokens of a text; 0: any number */
    int64_t types;     /* kinds of tokens */
    int64_t width;     /* of embeddings, and of a transformer's states */
    int64_t hidden;    /* recurrent layers: of a direction's state; transformers: of the layers between */
    int64_t layers, heads, kv_heads, head_width;
    int64_t buckets; /* of n-grams */
    int64_t modes;   /* frequencies of each axis */
    bool bidirectional;
    enum model_pooling pooling;
    enum model_activation activation;
    struct model_dropouts dropout;
    struct model_biases bias;
    float deviation;      /* of initial values */
    float epsilon;        /* of norms */
    bool tied;            /* the logits of tokens have the weights of the embeddings */
    bool norm_of_queries; /* and of keys, of each head by itself */
    struct model_window window;
    struct model_rotary rotary;
};

/* Reads a config.json, for a model whose own configuration is `own`: what it does not say is as transformers has it or,
 * for networks that transformers does not have, as in `own`. Returns false if it is of another family, or has what
 * these networks do not: `message` then says so in a sentence. */
bool model_config_read(
    const char *json, const struct model_config *own, struct model_config *config, char *message, size_t bytes);

#endif
