/* Rows of the table of models for networks for texts: NAME_config, NAME_build() and NAME_build_for() of each. */
#ifndef MODELS_TEXT_MODELS_H
#define MODELS_TEXT_MODELS_H

#include "models/models.h"

/* Each with the function that builds it. */
#define TEXT_MODELS(X)          \
    X(lstm, model_recurrent)    \
    X(gru, model_recurrent)     \
    X(fasttext, model_fasttext) \
    X(bert_tiny, model_bert)    \
    X(bert_mini, model_bert)    \
    X(bert_small, model_bert)   \
    X(bert_base, model_bert)    \
    X(distilbert, model_bert)   \
    X(roberta_base, model_bert) \
    X(gpt, model_gpt)           \
    X(gpt2, model_gpt)          \
    X(llama, model_llama)

#define TEXT_MODEL_DECLARATION(name, builder)                                         \
    extern const struct model_config name##_config;                                   \
    tutti_tensor name##_build(tutti_network *network, tutti_tensor ids, int classes); \
    tutti_tensor name##_build_for(                                                    \
        tutti_network *network, tutti_tensor ids, int classes, const struct model_facts *facts);
TEXT_MODELS(TEXT_MODEL_DECLARATION)
#undef TEXT_MODEL_DECLARATION

#endif
