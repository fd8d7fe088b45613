/* Residual networks (He, Zhang, Ren, Sun: Deep residual learning for image recognition, 2015). Names of parameters and
 * initial values are torchvision's; a bottleneck strides in its 3x3 convolution ("v1.5"), as torchvision's does. */
#include "models/models.h"

#include <stdio.h>

/* A convolution without bias, and the batch normalisation after it. */
static tutti_tensor conv_norm(tutti_network *network, tutti_tensor x, int channels, int kernel, int stride,
    const char *conv_name, const char *norm_name)
{
    x = tutti_conv2d(network, x, channels, kernel,
        &(tutti_conv2d_options) { .name = conv_name,
            .stride = stride,
            .padding = kernel / 2,
            .no_bias = true,
            .init = TUTTI_INIT_HE_NORMAL_FAN_OUT });
    return tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = norm_name });
}

/* Two 3x3 convolutions. */
static tutti_tensor basic_branch(tutti_network *network, tutti_tensor x, int width, int stride)
{
    x = tutti_relu(network, conv_norm(network, x, width, 3, stride, "conv1", "bn1"));
    return conv_norm(network, x, width, 3, 1, "conv2", "bn2");
}

/* 1x1 to fewer channels, 3x3, 1x1 to four times as many. */
static tutti_tensor bottleneck_branch(tutti_network *network, tutti_tensor x, int width, int stride)
{
    x = tutti_relu(network, conv_norm(network, x, width, 1, 1, "conv1", "bn1"));
    x = tutti_relu(network, conv_norm(network, x, width, 3, stride, "conv2", "bn2"));
    return conv_norm(network, x, width * 4, 1, 1, "conv3", "bn3");
}

struct block {
    tutti_tensor (*branch)(tutti_network *network, tutti_tensor x, int width, int stride);
    int expansion; /* output channels of a block / its width */
};

static const struct block basic = { basic_branch, 1 };
static const struct block bottleneck = { bottleneck_branch, 4 };

static tutti_tensor residual(
    tutti_network *network, tutti_tensor x, const struct block *block, int width, int stride, bool reshaped)
{
    tutti_tensor shortcut = x;
    x = block->branch(network, x, width, stride);
    if (reshaped)
        shortcut = conv_norm(network, shortcut, width * block->expansion, 1, stride, "downsample.0", "downsample.1");
    return tutti_relu(network, tutti_add(network, x, shortcut));
}

static tutti_tensor resnet(
    tutti_network *network, tutti_tensor x, const struct block *block, const int blocks[4], int classes)
{
    int channels = 64;
    x = tutti_relu(network, conv_norm(network, x, channels, 7, 2, "conv1", "bn1"));
    x = tutti_max_pool(network, x, 3, &(tutti_pool_options) { .stride = 2, .padding = 1 });
    for (int stage = 0; stage < 4; stage++) {
        int width = 64 << stage;
        char name[32];
        snprintf(name, sizeof(name), "layer%d", stage + 1);
        tutti_scope_push(network, name);
        for (int i = 0; i < blocks[stage]; i++) {
            int stride = i == 0 && stage > 0 ? 2 : 1;
            snprintf(name, sizeof(name), "%d", i);
            tutti_scope_push(network, name);
            x = residual(network, x, block, width, stride, stride != 1 || channels != width * block->expansion);
            tutti_scope_pop(network);
            channels = width * block->expansion;
        }
        tutti_scope_pop(network);
    }
    x = tutti_flatten(network, tutti_global_average_pool(network, x));
    return tutti_dense(network, x, classes, &(tutti_dense_options) { .name = "fc" });
}

tutti_tensor model_resnet18(tutti_network *network, tutti_tensor x, int classes)
{
    return resnet(network, x, &basic, (const int[4]) { 2, 2, 2, 2 }, classes);
}

tutti_tensor model_resnet50(tutti_network *network, tutti_tensor x, int classes)
{
    return resnet(network, x, &bottleneck, (const int[4]) { 3, 4, 6, 3 }, classes);
}
