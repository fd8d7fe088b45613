/* What networks for speech share with those that make their loss. */
#ifndef MODELS_SPEECH_H
#define MODELS_SPEECH_H

#include "models/models.h"

extern const struct model_config speech_config;
/* Samples are [TUTTI_SEQUENCE, numbers of a step], and the last number of a step is 1, or 0 in padding: the number of
 * steps of each sample, float32 []. */
tutti_tensor speech_lengths(tutti_network *network, tutti_tensor x);
tutti_tensor model_speech(tutti_network *network, tutti_tensor x, int classes);
tutti_tensor model_speech_for(tutti_network *network, tutti_tensor x, int classes, const struct model_facts *facts);

#endif
