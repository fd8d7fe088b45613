/* A text's class from the mean of embeddings of its tokens and of pairs of neighbours, as fastText (Joulin et al.
 * 2016): a pair has a row of a second table, which a hash of its tokens gives. The hash is computed in whole numbers
 * that a float has exactly: factors are small, and each product is below 2^24. */
#include "models/text.h"
#include "tutti_sequences.h"

#include <stdio.h>

static tutti_tensor number(tutti_network *network, float value)
{
    return tutti_constant(network, NULL, TUTTI_SHAPE(1), &value);
}

static tutti_tensor two(tutti_network *network, const char *operation, tutti_tensor a, tutti_tensor b)
{
    const tutti_tensor both[] = { a, b };
    return tutti_op(network, operation, both, 2, NULL);
}

/* factor x + y modulo the number of buckets, a power of two up to 2^18, where factor < 64. */
static tutti_tensor mix(tutti_network *network, tutti_tensor x, float factor, tutti_tensor y, tutti_tensor buckets)
{
    x = two(network, "fmod", two(network, "mul", x, number(network, factor)), buckets);
    return two(network, "fmod", tutti_add(network, x, y), buckets);
}

/* x [TUTTI_SEQUENCE] -> the element after each; 0 after the last. */
static tutti_tensor shift(tutti_network *network, tutti_tensor x)
{
    const tutti_tensor ones = two(network, "equal", x, x);
    const tutti_tensor next[] = { x, tutti_op(network, "cumsum", &ones, 1, "axis=0") };
    return tutti_op(network, "gather", next, 2, "axis=0");
}

/* The sum of the rows of pairs. A token that has no next one has a row that is not in the table: zeros. */
static tutti_tensor sum_pairs(
    tutti_network *network, tutti_tensor ids, tutti_tensor mask, const struct model_config *config)
{
    const tutti_tensor buckets = number(network, (float)config->buckets);
    const tutti_tensor first = two(network, "fmod", tutti_cast(network, ids, TUTTI_DTYPE_F32), buckets);
    const tutti_tensor second = shift(network, first), both = tutti_mul(network, mask, shift(network, mask));
    tutti_tensor hash = mix(network, first, 61, number(network, 1), buckets);
    hash = mix(network, hash, 53, second, buckets);
    hash = mix(network, hash, 59, number(network, 3), buckets);
    const tutti_tensor valid[] = { both, hash, buckets };
    const tutti_tensor table = tutti_parameter(network, "pairs.weight", TUTTI_SHAPE(config->buckets, config->width),
        &(tutti_parameter_options) { .init = TUTTI_INIT_NORMAL, .init_scale = config->deviation });
    const tutti_tensor rows = two(network, "gather", table, tutti_op(network, "where", valid, 3, NULL));
    return tutti_op(network, "reduce_sum", &rows, 1, "axes=0 keepdims=0");
}

tutti_tensor model_fasttext(tutti_network *network, tutti_tensor ids, int classes, const struct model_facts *facts)
{
    const struct model_config *config = facts->config;
    const tutti_tensor words[] = { ids, text_table(network, "embedding.weight", text_vocabulary(facts), config) };
    const tutti_tensor rows = tutti_op(network, "embedding", words, 2, NULL), mask = text_mask(network, ids);
    tutti_tensor count = tutti_op(network, "reduce_sum", &mask, 1, "axes=0");
    tutti_tensor x = tutti_op(network, "reduce_sum", &rows, 1, "axes=0 keepdims=0");
    if (config->buckets > 0) {
        x = tutti_add(network, x, sum_pairs(network, ids, mask, config));
        count = two(network, "sub", tutti_add(network, count, count), number(network, 1));
    }
    x = two(network, "div", x, two(network, "max", count, number(network, 1)));
    return tutti_dense(network, x, classes, &(tutti_dense_options) { .name = "classifier" });
}
