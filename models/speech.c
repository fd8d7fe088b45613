/* A small recogniser of speech: a convolution over time, which is a dense layer as the data come in steps of several
 * frames; LSTM layers in both directions; and the logits of the labels of each step, for CTC (Graves et al. 2006;
 * Amodei et al. 2015). */
#include "models/speech.h"
#include "models/text.h"
#include "tutti_sequences.h"

#include <stdio.h>
#include <stdlib.h>

const struct model_config speech_config = {
    .family = FAMILY_SPEECH, .width = 192, .hidden = 192, .layers = 2, .bidirectional = true, .dropout.hidden = 0.1f
};

/* Steps of padding give the blank alone, so that whoever reads the logits needs no lengths. */
static tutti_tensor exclude_padding(tutti_network *network, tutti_tensor x, tutti_tensor mask, int classes)
{
    const float far = -1e4f;
    float *row = malloc((size_t)classes * sizeof *row);
    if (!row) return (tutti_tensor) { -1 };
    for (int i = 0; i < classes; i++) row[i] = i == 0 ? 0 : far;
    const tutti_tensor three[] = { mask, x, tutti_constant(network, NULL, TUTTI_SHAPE(classes), row) };
    free(row);
    return tutti_op(network, "where", three, 3, NULL);
}

static tutti_tensor columns(tutti_network *network, tutti_tensor x, int64_t first, int64_t end)
{
    char text[96];
    snprintf(text, sizeof text, "axes=1 starts=%lld ends=%lld", (long long)first, (long long)end);
    return tutti_op(network, "slice", &x, 1, text);
}

tutti_tensor speech_lengths(tutti_network *network, tutti_tensor x)
{
    tutti_shape shape = { .rank = 0 };
    (void)tutti_shape_of(network, x, &shape);
    const tutti_tensor mask = columns(network, x, shape.sizes[1] - 1, shape.sizes[1]);
    return tutti_op(network, "reduce_sum", &mask, 1, "axes=0,1 keepdims=0");
}

tutti_tensor model_speech_for(tutti_network *network, tutti_tensor x, int classes, const struct model_facts *facts)
{
    const struct model_config *config = facts->config ? facts->config : &speech_config;
    char name[32];
    tutti_shape shape = { .rank = 0 };
    (void)tutti_shape_of(network, x, &shape);
    const tutti_tensor lengths = speech_lengths(network, x);
    const tutti_tensor mask = columns(network, x, shape.sizes[1] - 1, shape.sizes[1]);
    const tutti_recurrent_options options = {
        .name = name, .bidirectional = config->bidirectional, .lengths = &lengths
    };
    tutti_tensor y = columns(network, x, 0, shape.sizes[1] - 1);
    y = tutti_dense(network, y, config->width, &(tutti_dense_options) { .name = "frames" });
    y = text_dropout(network, tutti_relu(network, y), config->dropout.hidden);
    for (int64_t i = 0; i < config->layers; i++) {
        snprintf(name, sizeof name, "layers.%lld", (long long)i);
        y = text_dropout(network, tutti_lstm(network, y, config->hidden, &options), config->dropout.hidden);
    }
    y = tutti_dense(network, y, classes, &(tutti_dense_options) { .name = "classifier" });
    return exclude_padding(network, y, mask, classes);
}

tutti_tensor model_speech(tutti_network *network, tutti_tensor x, int classes)
{
    return model_speech_for(network, x, classes, &(struct model_facts) { .config = NULL });
}
