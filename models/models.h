/* Well-known networks, written with the public builder as any user would write them. */
#ifndef MODELS_MODELS_H
#define MODELS_MODELS_H

#include "models/config.h"

enum model_input {
    MODEL_TAKES_NUMBERS, /* of any shape: tables, arrays, images, recordings */
    MODEL_TAKES_IMAGES,  /* [C, H, W], spectrograms of recordings too */
    /* Numbers of tokens, int32 [TUTTI_SEQUENCE], each below the vocabulary. Numbers below 0 are padding, at the end. */
    MODEL_TAKES_TEXT,
    /* Recordings in steps, [TUTTI_SEQUENCE, numbers]: the last number is 1, or 0 in padding at the end. */
    MODEL_TAKES_SPEECH,
};

enum { MODEL_CODES = 64 };
/* To predict a number from fewer training samples, networks for tables may have more dropout, and train longer for it.
 */
enum { MODEL_FEW_SAMPLES = 300 };

/* What networks depend on besides the shape of their inputs. */
struct model_facts {
    int64_t samples; /* to train with; 0: none, or not known: parameters do not depend on it */
    /* The last inputs are codes, whole numbers from 0 to less than these. */
    int64_t codes[MODEL_CODES];
    int code_count;
    /* What follows is for networks that take text; 0 and NULL: as the configuration says. */
    int64_t vocabulary;        /* tokens are below it */
    int64_t length;            /* tokens of the longest text, or steps of the longest recording */
    int64_t transcript;        /* labels of the longest transcript; 0: there are none */
    const tutti_tensor *types; /* pairs of texts: 0 for tokens of the first, 1 for those of the second */
    bool pairs;                /* samples are pairs of texts: `types` is given */
    bool tokens_are_classes;   /* the network predicts each next token: [TUTTI_SEQUENCE, vocabulary] */
    bool tags;                 /* it gives each token a class: [TUTTI_SEQUENCE, classes] */
    const struct model_config *config;
};

struct model {
    const char *name, *description;
    enum model_input takes;
    /* What the network was made for, and what `tutti bench` feeds it: data of other sizes and classes are fine where
     * the network's poolings leave something of the image. Of text: the length. */
    tutti_shape input;
    int classes;
    /* How `tutti train` trains the network unless the user says otherwise. */
    tutti_loss loss;
    tutti_optimizer optimizer;
    float learning_rate, momentum, weight_decay;
    /* For tables, by AdamW; rate 0: tables are trained as other data. */
    float table_rate, table_weight_decay;
    int64_t few_epochs; /* ... to predict a number from less than MODEL_FEW_SAMPLES rows; 0: as from more */
    int64_t batch;
    /* What networks that take text are made of; NULL for others. */
    const struct model_config *config;
    /* Appends the layers to x and returns the logits (linear: the outputs) [classes], [classes, H, W] of each pixel, or
     * [TUTTI_SEQUENCE, classes] of each token. Errors stay in the network. */
    tutti_tensor (*build)(tutti_network *network, tutti_tensor x, int classes);
    /* Builds it for these facts about the data; NULL: it ignores them, and inputs cannot be codes. Networks for text
     * have it. */
    tutti_tensor (*build_for)(tutti_network *network, tutti_tensor x, int classes, const struct model_facts *facts);
};

/* Returns whether it is a language model: without other targets, its classes are the tokens. */
bool model_predicts_tokens(const struct model *model);
/* Returns whether it can give each token a class, from the tokens before and after it. */
bool model_gives_tags(const struct model *model);
/* Returns whether a state depends on no later token when tokens are the classes. */
bool model_is_causal(const struct model *model);
/* Finds a model by its name; NULL where there is none. */
const struct model *model_find(const char *name);
/* Returns the position-th model, from 0 on; NULL past the last. */
const struct model *model_at(int position);

tutti_tensor model_linear(tutti_network *network, tutti_tensor x, int outputs);
tutti_tensor model_mlp(tutti_network *network, tutti_tensor x, int classes);
tutti_tensor model_tabular(tutti_network *network, tutti_tensor x, int classes);
tutti_tensor model_tabular_for(tutti_network *network, tutti_tensor x, int classes, const struct model_facts *facts);
tutti_tensor model_lenet(tutti_network *network, tutti_tensor x, int classes);
tutti_tensor model_vgg16(tutti_network *network, tutti_tensor x, int classes);
tutti_tensor model_resnet18(tutti_network *network, tutti_tensor x, int classes);
tutti_tensor model_resnet50(tutti_network *network, tutti_tensor x, int classes);
tutti_tensor model_mobilenet_v2(tutti_network *network, tutti_tensor x, int classes);
tutti_tensor model_efficientnet_b0(tutti_network *network, tutti_tensor x, int classes);
tutti_tensor model_convnext_tiny(tutti_network *network, tutti_tensor x, int classes);
tutti_tensor model_vit_b_16(tutti_network *network, tutti_tensor x, int classes);
tutti_tensor model_unet(tutti_network *network, tutti_tensor x, int classes);
tutti_tensor model_fno2d(tutti_network *network, tutti_tensor x, int outputs);
tutti_tensor model_fno2d_for(tutti_network *network, tutti_tensor x, int outputs, const struct model_facts *facts);
/* Networks for text, of facts->config, which is not NULL. */
tutti_tensor model_recurrent(tutti_network *network, tutti_tensor ids, int classes, const struct model_facts *facts);
tutti_tensor model_fasttext(tutti_network *network, tutti_tensor ids, int classes, const struct model_facts *facts);
tutti_tensor model_bert(tutti_network *network, tutti_tensor ids, int classes, const struct model_facts *facts);
tutti_tensor model_gpt(tutti_network *network, tutti_tensor ids, int classes, const struct model_facts *facts);
tutti_tensor model_llama(tutti_network *network, tutti_tensor ids, int classes, const struct model_facts *facts);

#endif
