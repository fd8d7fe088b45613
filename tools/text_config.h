/* What a network for texts is made of: the config.json that --config names, what weights say of themselves, or the
 * config.json in their folder. */
#ifndef TOOLS_TEXT_CONFIG_H
#define TOOLS_TEXT_CONFIG_H

#include "models/models.h"

enum { TEXT_CONFIG_BYTES = 1 << 14 };

struct text_config {
    const char *file;             /* of --config; NULL: none */
    const char *weights;          /* those that will be loaded; NULL: none */
    char json[TEXT_CONFIG_BYTES]; /* "": none */
    struct model_config made_of;  /* what it says; without it, the model's own */
};

/* Reads it for the model. Returns an exit status. */
int text_config_read(const char *command, const struct model *model, struct text_config *config);

#endif
