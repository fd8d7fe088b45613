/* A residual network for tables, as the ResNet of Gorishniy et al. (Revisiting deep learning models for tabular data,
 * 2021). Before it, each column becomes hinges max(0, slope x + offset) besides itself, as in their work on embeddings
 * of numbers (2022): a network of dense layers alone finds it hard to bend at a value of one column. Dropout and batch
 * normalisation are for tables of some hundred rows. */
#include "models/models.h"

#include <stdio.h>

enum { WIDTH = 256, BLOCKS = 2, HINGES = 8, MOST_COLUMNS = 128 };

/* Probabilities: many numbers to predict are not learned by heart, and dropout would blur them; classes are, if they
 * are often wrong. Numbers of few samples are, too. */
struct dropouts {
    float columns, units;
};
enum { SOME_SAMPLES = 2000, MANY_SAMPLES = 10000 };
static struct dropouts choose_dropouts(int64_t samples, int classes)
{
    if (samples < MODEL_FEW_SAMPLES && classes == 1) return (struct dropouts) { 0.1f, 0.5f };
    if (samples < SOME_SAMPLES) return (struct dropouts) { 0.1f, 0.2f };
    return (struct dropouts) { 0, samples >= MANY_SAMPLES && classes == 1 ? 0.05f : 0.2f };
}

/* x [columns] -> [columns * (1 + HINGES)] */
static tutti_tensor append_hinges(tutti_network *network, tutti_tensor x, int64_t columns)
{
    const tutti_parameter_options normal = { .init = TUTTI_INIT_NORMAL, .init_scale = 1 };
    tutti_scope_push(network, "hinges");
    const tutti_tensor slope = tutti_parameter(network, "slope", TUTTI_SHAPE(columns, HINGES), &normal);
    const tutti_tensor offset = tutti_parameter(network, "offset", TUTTI_SHAPE(columns, HINGES), &normal);
    tutti_tensor y = tutti_reshape(network, x, TUTTI_SHAPE(columns, 1));
    y = tutti_relu(network, tutti_add(network, tutti_mul(network, y, slope), offset));
    tutti_scope_pop(network);
    const tutti_tensor both[] = { x, tutti_flatten(network, y) };
    return tutti_concat(network, both, 2, 0);
}

static tutti_tensor take(tutti_network *network, tutti_tensor x, int64_t first, int64_t count)
{
    char range[96];
    snprintf(range, sizeof(range), "starts=%lld ends=%lld", (long long)first, (long long)(first + count));
    return tutti_op(network, "slice", &x, 1, range);
}

/* x [1], a code below `values` -> [WIDTH], what the code adds to the units of the first layer. Narrower embeddings, as
 * inputs of that layer, learn worse: they were two points below one-hot texts where those had 316 values. */
static tutti_tensor embed(tutti_network *network, tutti_tensor x, int number, int64_t values)
{
    char name[32];
    const tutti_parameter_options normal = { .init = TUTTI_INIT_NORMAL, .init_scale = 0.03f };
    snprintf(name, sizeof(name), "embeddings.%d", number);
    tutti_scope_push(network, name);
    const tutti_tensor table = tutti_parameter(network, "weight", TUTTI_SHAPE(values, WIDTH), &normal);
    tutti_scope_pop(network);
    const tutti_tensor both[] = { table, x };
    return tutti_flatten(network, tutti_op(network, "gather", both, 2, NULL));
}

static tutti_tensor dense(tutti_network *network, tutti_tensor x, int64_t units, const char *name)
{
    return tutti_dense(network, x, units, &(tutti_dense_options) { .name = name });
}

static tutti_tensor batch_norm(tutti_network *network, tutti_tensor x)
{
    return tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = "bn" });
}

static tutti_tensor residual_block(tutti_network *network, tutti_tensor x, int number, float dropout)
{
    char name[32];
    snprintf(name, sizeof(name), "blocks.%d", number);
    tutti_scope_push(network, name);
    tutti_tensor y = tutti_relu(network, dense(network, batch_norm(network, x), WIDTH, "fc1"));
    y = dense(network, tutti_dropout(network, y, dropout), WIDTH, "fc2");
    tutti_scope_pop(network);
    return tutti_add(network, x, y);
}

/* x [columns] with codes last -> [WIDTH] */
static tutti_tensor first_layer(tutti_network *network, tutti_tensor x, const struct model_facts *facts, float dropout)
{
    tutti_tensor sum = { -1 };
    tutti_shape shape = { 0 };
    x = tutti_flatten(network, x);
    (void)tutti_shape_of(network, x, &shape);
    const int64_t columns = shape.sizes[0] - facts->code_count;
    if (columns > 0) {
        tutti_tensor numbers = facts->code_count > 0 ? take(network, x, 0, columns) : x;
        if (columns <= MOST_COLUMNS) numbers = append_hinges(network, numbers, columns);
        sum = dense(network, tutti_dropout(network, numbers, dropout), WIDTH, "first");
    }
    for (int i = 0; i < facts->code_count; i++) {
        tutti_tensor y = embed(network, take(network, x, columns + i, 1), i, facts->codes[i]);
        y = tutti_dropout(network, y, dropout);
        sum = columns > 0 || i > 0 ? tutti_add(network, sum, y) : y;
    }
    return sum;
}

tutti_tensor model_tabular_for(tutti_network *network, tutti_tensor x, int classes, const struct model_facts *facts)
{
    const struct dropouts dropouts = choose_dropouts(facts->samples, classes);
    x = first_layer(network, x, facts, dropouts.columns);
    for (int i = 0; i < BLOCKS; i++) x = residual_block(network, x, i, dropouts.units);
    x = tutti_dropout(network, tutti_relu(network, batch_norm(network, x)), dropouts.units);
    return dense(network, x, classes, "last");
}

tutti_tensor model_tabular(tutti_network *network, tutti_tensor x, int classes)
{
    return model_tabular_for(network, x, classes, &(struct model_facts) { .samples = 0 });
}
