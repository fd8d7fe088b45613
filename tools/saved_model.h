/* What weights say of their network, in their text "model", so that MODEL may be left out where they are given. What
 * they say of their data, such as the tokenizer, is in their text "data" (user_data.h). Both have a member "text" for
 * texts. */
#ifndef TOOLS_SAVED_MODEL_H
#define TOOLS_SAVED_MODEL_H

#include "tools/session.h"

enum { SAVED_MODEL_NAME = 4096 };

struct saved_model {
    char name[SAVED_MODEL_NAME]; /* of a model, or the path of a file; "": they do not say */
    tutti_shape shape;           /* of a sample; rank 0: unknown */
    int64_t outputs;             /* of a sample; 0: unknown */
    struct model_facts facts;    /* without the number of samples; `config` is read by text_config_read() */
    struct lora lora;            /* adapters; rank 0: none */
    char lora_layers[SAVED_MODEL_NAME], lora_others[SAVED_MODEL_NAME]; /* its texts */
};

/* Reads it; what is unknown stays empty. Errors: TUTTI_FORMAT if it is damaged. */
tutti_status saved_model_read(const char *weights, struct saved_model *saved);
/* The shape of a sample and the number of outputs to build the model for: those of its weights, else the model's own.
 * A file has its own. */
tutti_shape saved_model_shape(const struct saved_model *saved, const struct model *model);
int64_t saved_model_outputs(const struct saved_model *saved, const struct model *model);
/* Adds the session's network to what its trainer saves. */
tutti_status saved_model_keep(const struct session *session);
/* Reads what weights, those of the option, say of their network, and sets *model to its name if that is NULL. Refuses
 * another model than theirs, and weights that do not say. `saved` must outlive *model. Weights NULL: no change. Returns
 * an exit status. */
int saved_model_choose(
    const char *command, const char *option, const char *weights, const char **model, struct saved_model *saved);

#endif
