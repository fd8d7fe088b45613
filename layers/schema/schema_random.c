/* Schemas of operations with random numbers. */
#include "layers/layers.h"
#include "layers/schema/schema.h"

#define RANDOM(name_, text_)                                                                                          \
    {                                                                                                                 \
        .name = #name_, .text = text_, .inputs = INPUTS({ "x", "its elements are not read" }),                        \
        .attributes = OP_ATTRIBUTES({ "offset", TUTTI_ATTRIBUTE_NUMBER, ATTRIBUTE_OF(random, offset), "0", "added" }, \
            { "scale", TUTTI_ATTRIBUTE_NUMBER, ATTRIBUTE_OF(random, scale), "1", "the factor" }),                     \
        .operation = &operation_##name_, .random = true                                                               \
    }

static const struct op_schema schemas[] = {
    { "dropout", "tutti_dropout(): 0 with this probability in training, else x / (1 - ratio); x in inference",
        INPUTS({ "x" }),
        OP_ATTRIBUTES(
            { "ratio", TUTTI_ATTRIBUTE_NUMBER, ATTRIBUTE_OF(dropout, probability), "0.5", "the probability" }),
        &operation_dropout, .random = true },
    RANDOM(random_uniform, "offset + scale times uniform numbers in [0, 1), in the shape of x; also in inference"),
    RANDOM(random_normal, "offset + scale times normal numbers, in the shape of x; also in inference"),
    { 0 },
};

const struct op_group schema_random = { "Random numbers", schemas };
