/* EfficientNet-B0 (Tan, Le: EfficientNet: rethinking model scaling for convolutional neural networks, 2019). Names of
 * parameters, initial values, dropout and stochastic depth are torchvision's. */
#include "models/models.h"
#include "models/stochastic_depth.h"

#include <stdio.h>

/* A convolution without bias and its batch normalisation: "NAME.0" and "NAME.1". */
static tutti_tensor conv_norm(
    tutti_network *network, tutti_tensor x, int channels, int kernel, int stride, int groups, const char *name)
{
    tutti_scope_push(network, name);
    x = tutti_conv2d(network, x, channels, kernel,
        &(tutti_conv2d_options) { .name = "0",
            .stride = stride,
            .padding = kernel / 2,
            .groups = groups,
            .no_bias = true,
            .init = TUTTI_INIT_HE_NORMAL_FAN_OUT });
    x = tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = "1" });
    tutti_scope_pop(network);
    return x;
}

static tutti_tensor silu(tutti_network *network, tutti_tensor x)
{
    return tutti_op(network, "silu", &x, 1, NULL);
}

/* Squeeze and excitation (Hu et al. 2017): each channel is multiplied by a number that the means of all channels
 * determine. */
static tutti_tensor excite(
    tutti_network *network, tutti_tensor x, int channels, int squeezed, const char *first, const char *second)
{
    tutti_conv2d_options options = { .name = first, .init = TUTTI_INIT_HE_NORMAL_FAN_OUT };
    tutti_tensor y = tutti_global_average_pool(network, x);
    y = silu(network, tutti_conv2d(network, y, squeezed, 1, &options));
    options.name = second;
    y = tutti_sigmoid(network, tutti_conv2d(network, y, channels, 1, &options));
    return tutti_mul(network, x, y);
}

/* 1x1 to `expansion` times the channels, depthwise, squeeze and excitation, 1x1 back without activation. */
static tutti_tensor branch(
    tutti_network *network, tutti_tensor x, int inputs, int outputs, int expansion, int kernel, int stride)
{
    const int hidden = inputs * expansion, squeezed = inputs / 4;
    tutti_scope_push(network, "block");
    if (expansion == 1) {
        x = silu(network, conv_norm(network, x, hidden, kernel, stride, hidden, "0"));
        x = excite(network, x, hidden, squeezed, "1.fc1", "1.fc2");
        x = conv_norm(network, x, outputs, 1, 1, 1, "2");
    } else {
        x = silu(network, conv_norm(network, x, hidden, 1, 1, 1, "0"));
        x = silu(network, conv_norm(network, x, hidden, kernel, stride, hidden, "1"));
        x = excite(network, x, hidden, squeezed, "2.fc1", "2.fc2");
        x = conv_norm(network, x, outputs, 1, 1, 1, "3");
    }
    tutti_scope_pop(network);
    return x;
}

static tutti_tensor blocks(tutti_network *network, tutti_tensor x)
{
    /* Table 1 of the paper. */
    static const struct {
        int expansion, kernel, stride, channels, blocks;
    } stages[] = { { 1, 3, 1, 16, 1 }, { 6, 3, 2, 24, 2 }, { 6, 5, 2, 40, 2 }, { 6, 3, 2, 80, 3 }, { 6, 5, 1, 112, 3 },
        { 6, 5, 2, 192, 4 }, { 6, 3, 1, 320, 1 } };
    enum { BLOCKS = 16 };
    int channels = 32, position = 0;
    const tutti_tensor one = one_per_sample(network, x);
    for (size_t s = 0; s < sizeof(stages) / sizeof(stages[0]); s++) {
        for (int i = 0; i < stages[s].blocks; i++, position++) {
            char name[32];
            const int stride = i == 0 ? stages[s].stride : 1;
            snprintf(name, sizeof(name), "%zu.%d", s + 1, i);
            tutti_scope_push(network, name);
            tutti_tensor y =
                branch(network, x, channels, stages[s].channels, stages[s].expansion, stages[s].kernel, stride);
            if (stride == 1 && channels == stages[s].channels)
                y = tutti_add(network, x, drop_samples(network, y, one, 0.2f * (float)position / BLOCKS));
            tutti_scope_pop(network);
            channels = stages[s].channels;
            x = y;
        }
    }
    return x;
}

tutti_tensor model_efficientnet_b0(tutti_network *network, tutti_tensor x, int classes)
{
    tutti_scope_push(network, "features");
    x = silu(network, conv_norm(network, x, 32, 3, 2, 1, "0"));
    x = blocks(network, x);
    x = silu(network, conv_norm(network, x, 1280, 1, 1, 1, "8"));
    tutti_scope_pop(network);
    x = tutti_flatten(network, tutti_global_average_pool(network, x));
    x = tutti_dropout(network, x, 0.2f);
    /* Uniform within 1 / sqrt(classes). */
    const tutti_tensor weight = tutti_parameter(
        network, "classifier.1.weight", TUTTI_SHAPE(classes, 1280), &(tutti_parameter_options) { .fan_in = classes });
    return tutti_dense(network, x, classes,
        &(tutti_dense_options) { .name = "classifier.1", .weight = &weight, .bias_init = TUTTI_INIT_ZEROS });
}
