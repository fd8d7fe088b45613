/* MobileNetV2 (Sandler, Howard, Zhu, Zhmoginov, Chen: Inverted residuals and linear bottlenecks, 2018), width 1.0.
 * Names of parameters, initial values and dropout are torchvision's. */
#include "models/models.h"

#include <stdio.h>

/* A convolution without bias and its batch normalisation, named "conv_name" and "norm_name" in the open scope. */
static tutti_tensor conv_norm(tutti_network *network, tutti_tensor x, int channels, int kernel, int stride, int groups,
    const char *conv_name, const char *norm_name)
{
    x = tutti_conv2d(network, x, channels, kernel,
        &(tutti_conv2d_options) { .name = conv_name,
            .stride = stride,
            .padding = kernel / 2,
            .groups = groups,
            .no_bias = true,
            .init = TUTTI_INIT_HE_NORMAL_FAN_OUT });
    return tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = norm_name });
}

/* 1x1 to `expansion` times the channels, depthwise 3x3, 1x1 back without activation; a shortcut where shapes allow. */
static tutti_tensor inverted_residual(
    tutti_network *network, tutti_tensor x, int inputs, int outputs, int expansion, int stride)
{
    tutti_tensor shortcut = x;
    int hidden = inputs * expansion;
    tutti_scope_push(network, "conv");
    if (expansion == 1) {
        x = tutti_relu6(network, conv_norm(network, x, hidden, 3, stride, hidden, "0.0", "0.1"));
        x = conv_norm(network, x, outputs, 1, 1, 1, "1", "2");
    } else {
        x = tutti_relu6(network, conv_norm(network, x, hidden, 1, 1, 1, "0.0", "0.1"));
        x = tutti_relu6(network, conv_norm(network, x, hidden, 3, stride, hidden, "1.0", "1.1"));
        x = conv_norm(network, x, outputs, 1, 1, 1, "2", "3");
    }
    tutti_scope_pop(network);
    return stride == 1 && inputs == outputs ? tutti_add(network, shortcut, x) : x;
}

tutti_tensor model_mobilenet_v2(tutti_network *network, tutti_tensor x, int classes)
{
    /* Table 2 of the paper. */
    static const struct {
        int expansion, channels, blocks, stride;
    } stages[] = { { 1, 16, 1, 1 }, { 6, 24, 2, 2 }, { 6, 32, 3, 2 }, { 6, 64, 4, 2 }, { 6, 96, 3, 1 },
        { 6, 160, 3, 2 }, { 6, 320, 1, 1 } };
    int channels = 32, position = 1;
    tutti_scope_push(network, "features");
    x = tutti_relu6(network, conv_norm(network, x, channels, 3, 2, 1, "0.0", "0.1"));
    for (size_t s = 0; s < sizeof(stages) / sizeof(stages[0]); s++) {
        for (int i = 0; i < stages[s].blocks; i++) {
            char name[32];
            snprintf(name, sizeof(name), "%d", position++);
            tutti_scope_push(network, name);
            x = inverted_residual(
                network, x, channels, stages[s].channels, stages[s].expansion, i == 0 ? stages[s].stride : 1);
            tutti_scope_pop(network);
            channels = stages[s].channels;
        }
    }
    x = tutti_relu6(network, conv_norm(network, x, 1280, 1, 1, 1, "18.0", "18.1"));
    tutti_scope_pop(network);
    x = tutti_flatten(network, tutti_global_average_pool(network, x));
    x = tutti_dropout(network, x, 0.2f);
    return tutti_dense(network, x, classes,
        &(tutti_dense_options) { .name = "classifier.1", .init = TUTTI_INIT_NORMAL, .init_scale = 0.01f });
}
