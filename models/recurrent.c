/* Recurrent networks for text: embeddings, LSTM or GRU layers, and a class of the whole text from what a pooling keeps
 * of the states; or the class of each token; or, in one direction, the next token at each position. */
#include "models/text.h"
#include "tutti_sequences.h"

#include <stdio.h>

static tutti_tensor recurrent_layers(
    tutti_network *network, tutti_tensor x, const struct model_config *config, bool both, tutti_tensor count)
{
    char name[32];
    const tutti_recurrent_options options = { .name = name, .bidirectional = both, .lengths = &count };
    for (int64_t i = 0; i < config->layers; i++) {
        snprintf(name, sizeof(name), "layers.%lld", (long long)i);
        x = config->family == FAMILY_GRU ? tutti_gru(network, x, config->hidden, &options)
                                         : tutti_lstm(network, x, config->hidden, &options);
        x = text_dropout(network, x, config->dropout.hidden);
    }
    return x;
}

/* [TUTTI_SEQUENCE] -> the same, far below 0 for padding. */
static tutti_tensor exclude_padding(tutti_network *network, tutti_tensor x, tutti_tensor mask)
{
    const float far = -1e9f;
    const tutti_tensor three[] = { mask, x, tutti_constant(network, NULL, TUTTI_SHAPE(1), &far) };
    return tutti_op(network, "where", three, 3, NULL);
}

static tutti_tensor sum(tutti_network *network, tutti_tensor x, tutti_tensor weights)
{
    x = tutti_mul(network, x, tutti_reshape(network, weights, TUTTI_SHAPE(TUTTI_SEQUENCE, 1)));
    return tutti_op(network, "reduce_sum", &x, 1, "axes=0 keepdims=0");
}

/* The weight of each state is the softmax of a learned product. */
static tutti_tensor pool_attention(tutti_network *network, tutti_tensor x, tutti_tensor mask)
{
    tutti_tensor scores = tutti_dense(network, x, 1, &(tutti_dense_options) { .name = "attention" });
    scores = exclude_padding(network, tutti_reshape(network, scores, TUTTI_SHAPE(TUTTI_SEQUENCE)), mask);
    return sum(network, x, tutti_softmax(network, scores));
}

static tutti_tensor pool_mean(tutti_network *network, tutti_tensor x, tutti_tensor mask, tutti_tensor count)
{
    const float one = 1; /* of an empty text */
    const tutti_tensor counts[] = { tutti_reshape(network, count, TUTTI_SHAPE(1)),
        tutti_constant(network, NULL, TUTTI_SHAPE(1), &one) };
    const tutti_tensor quotient[] = { sum(network, x, mask), tutti_op(network, "max", counts, 2, NULL) };
    return tutti_op(network, "div", quotient, 2, NULL);
}

static tutti_tensor pool_max(tutti_network *network, tutti_tensor x, tutti_tensor mask)
{
    x = exclude_padding(network, x, tutti_reshape(network, mask, TUTTI_SHAPE(TUTTI_SEQUENCE, 1)));
    return tutti_op(network, "reduce_max", &x, 1, "axes=0 keepdims=0");
}

static tutti_tensor pool(
    tutti_network *network, tutti_tensor x, tutti_tensor ids, tutti_tensor count, enum model_pooling pooling)
{
    const tutti_tensor mask = text_mask(network, ids);
    switch (pooling) {
    case POOLING_MEAN: return pool_mean(network, x, mask, count);
    case POOLING_MAX: return pool_max(network, x, mask);
    case POOLING_LAST: return text_last(network, x, ids);
    default: return pool_attention(network, x, mask);
    }
}

tutti_tensor model_recurrent(tutti_network *network, tutti_tensor ids, int classes, const struct model_facts *facts)
{
    const struct model_config *config = facts->config;
    const bool both = config->bidirectional && !facts->tokens_are_classes;
    const tutti_tensor count = text_count(network, ids);
    tutti_tensor x = tutti_embedding(network, "embedding", ids, text_vocabulary(facts), config->width);
    x = text_dropout(network, x, config->dropout.hidden);
    x = recurrent_layers(network, x, config, both, count);
    if (!facts->tokens_are_classes && !facts->tags) x = pool(network, x, ids, count, config->pooling);
    return tutti_dense(network, x, classes, &(tutti_dense_options) { .name = "classifier" });
}
