/* Schemas of operations without an input: constants. */
#include "layers/schema/schema.h"

struct arange_options {
    double start, end, step;
};
struct full_options {
    tutti_shape shape;
    float value;
};

LAYER(arange, tutti_arange(network, READ(arange)->start, READ(arange)->end, READ(arange)->step))
LAYER(full, tutti_full(network, READ(full)->shape.sizes, READ(full)->shape.rank, READ(full)->value))

static const struct op_input none[] = { { 0 } };

static const struct op_schema schemas[] = {
    { "arange", "the numbers start, start + step, ... before end, along an axis", none,
        OP_ATTRIBUTES(
            { "start", TUTTI_ATTRIBUTE_NUMBER, OPTION_OF(arange, start), "0", "the first number", .wide = true },
            { "end", TUTTI_ATTRIBUTE_NUMBER, OPTION_OF(arange, end), NULL, "all numbers are before it",
                .required = true, .wide = true },
            { "step", TUTTI_ATTRIBUTE_NUMBER, OPTION_OF(arange, step), "1", "from one number to the next; not 0",
                .wide = true }),
        .layer = arange },
    { "full", "the same number everywhere", none,
        OP_ATTRIBUTES(
            { "shape", TUTTI_ATTRIBUTE_SHAPE, OPTION_OF(full, shape), NULL, "of the result", .required = true },
            { "value", TUTTI_ATTRIBUTE_NUMBER, OPTION_OF(full, value), "0", "the number" }),
        .layer = full },
    { 0 },
};

const struct op_group schema_constants = { "Constants", schemas };
