/* What fno2d is made of, unless a config.json says otherwise. */
#ifndef MODELS_FNO_H
#define MODELS_FNO_H

#include "models/models.h"

extern const struct model_config fno2d_config;

#endif
