/* ConvNeXt-T (Liu et al.: A ConvNet for the 2020s, 2022). Names of parameters, initial values and stochastic depth are
 * torchvision's. */
#include "models/models.h"
#include "models/stochastic_depth.h"

#include <stdio.h>

#define EPSILON 1e-6f
enum { WIDEST = 768 };

static tutti_tensor channels_last(tutti_network *network, tutti_tensor x)
{
    return tutti_op(network, "transpose", &x, 1, "perm=1,2,0");
}

static tutti_tensor channels_first(tutti_network *network, tutti_tensor x)
{
    return tutti_op(network, "transpose", &x, 1, "perm=2,0,1");
}

/* Layer normalisation over the channels of each pixel. */
static tutti_tensor norm(tutti_network *network, tutti_tensor x, const char *name)
{
    return channels_first(network, tutti_layer_norm(network, name, channels_last(network, x), EPSILON));
}

/* One factor for each channel, which begins so small that the block is the identity. */
static tutti_tensor layer_scale(tutti_network *network, int channels)
{
    float values[WIDEST];
    for (int i = 0; i < channels; i++) values[i] = 1e-6f;
    return tutti_parameter(
        network, "layer_scale", TUTTI_SHAPE(channels, 1, 1), &(tutti_parameter_options) { .values = values });
}

/* A depthwise convolution, then two dense layers at each pixel. */
static tutti_tensor branch(tutti_network *network, tutti_tensor x, int channels)
{
    tutti_dense_options options = { .name = "block.3", .init = TUTTI_INIT_NORMAL, .init_scale = 0.02f };
    x = tutti_conv2d(network, x, channels, 7,
        &(tutti_conv2d_options) {
            .name = "block.0", .padding = 3, .groups = channels, .init = TUTTI_INIT_NORMAL, .init_scale = 0.02f });
    x = tutti_layer_norm(network, "block.2", channels_last(network, x), EPSILON);
    x = tutti_dense(network, x, 4 * channels, &options);
    x = tutti_op(network, "gelu", &x, 1, NULL);
    options.name = "block.5";
    return channels_first(network, tutti_dense(network, x, channels, &options));
}

/* A convolution whose windows do not overlap. */
static tutti_tensor shrink(tutti_network *network, tutti_tensor x, int channels, int size, const char *name)
{
    return tutti_conv2d(network, x, channels, size,
        &(tutti_conv2d_options) { .name = name, .stride = size, .init = TUTTI_INIT_NORMAL, .init_scale = 0.02f });
}

static tutti_tensor features(tutti_network *network, tutti_tensor x)
{
    static const struct {
        int channels, blocks;
    } stages[] = { { 96, 3 }, { 192, 3 }, { 384, 9 }, { WIDEST, 3 } };
    enum { STAGES = sizeof(stages) / sizeof(stages[0]), BLOCKS = 18 };
    int position = 0;
    x = norm(network, shrink(network, x, stages[0].channels, 4, "0.0"), "0.1");
    const tutti_tensor one = one_per_sample(network, x);
    for (int s = 0; s < STAGES; s++) {
        char name[32], conv[32];
        for (int i = 0; i < stages[s].blocks; i++, position++) {
            snprintf(name, sizeof(name), "%d.%d", 2 * s + 1, i);
            tutti_scope_push(network, name);
            const tutti_tensor scale = layer_scale(network, stages[s].channels);
            tutti_tensor y = tutti_mul(network, branch(network, x, stages[s].channels), scale);
            x = tutti_add(network, x, drop_samples(network, y, one, 0.1f * (float)position / (BLOCKS - 1)));
            tutti_scope_pop(network);
        }
        if (s + 1 == STAGES) break;
        snprintf(name, sizeof(name), "%d.0", 2 * s + 2);
        snprintf(conv, sizeof(conv), "%d.1", 2 * s + 2);
        x = shrink(network, norm(network, x, name), stages[s + 1].channels, 2, conv);
    }
    return x;
}

tutti_tensor model_convnext_tiny(tutti_network *network, tutti_tensor x, int classes)
{
    tutti_scope_push(network, "features");
    x = features(network, x);
    tutti_scope_pop(network);
    x = tutti_flatten(network, tutti_global_average_pool(network, x));
    x = tutti_layer_norm(network, "classifier.0", x, EPSILON);
    return tutti_dense(network, x, classes,
        &(tutti_dense_options) { .name = "classifier.2", .init = TUTTI_INIT_NORMAL, .init_scale = 0.02f });
}
