/* Rows of the table of models for networks for texts: NAME_config, NAME_build() and NAME_build_for() of each. */
#ifndef MODELS_TEXT_MODELS_H
#define MODELS_TEXT_MODELS_H

#include "models/models.h"

/* Each with the function that builds it. */
#define TEXT_MODELS(X)    \
    X(lstm, recurrent)    \
    X(gru, recurrent)     \
    X(fasttext, fasttext) \
    X(bert_tiny, bert)    \
    X(bert_mini, bert)    \
    X(bert_small, bert)   \
    X(bert_base, bert)    \
    X(distilbert, bert)   \
    X(roberta_base, bert) \
    X(gpt, gpt)           \
    X(gpt2, gpt)          \
    X(llama, llama)

#define TEXT_MODEL_DECLARATION(name, builder)                                         \
    extern const struct model_config name##_config;                                   \
    tutti_tensor name##_build(tutti_network *network, tutti_tensor ids, int classes); \
    tutti_tensor name##_build_for(                                                    \
        tutti_network *network, tutti_tensor ids, int classes, const struct model_facts *facts);
TEXT_MODELS(TEXT_MODEL_DECLARATION)
#undef TEXT_MODEL_DECLARATION

#endif
