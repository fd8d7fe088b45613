/* U-Net (Ronneberger, Fischer, Brox: U-Net: convolutional networks for biomedical image segmentation, 2015): classes
 * for each pixel. Names of parameters and details are those of github.com/milesial/Pytorch-UNet: convolutions are
 * padded, so that the output has the size of the image, and batch normalisation follows each. Initial values are
 * PyTorch's. */
#include "models/models.h"

#include <stdio.h>

enum { LEVELS = 4, CHANNELS = 64 }; /* each level has twice the channels of the one above */

/* Two 3x3 convolutions, each with batch normalisation and ReLU. */
static tutti_tensor double_conv(tutti_network *network, tutti_tensor x, int channels)
{
    static const char *const names[][2] = { { "0", "1" }, { "3", "4" } };
    tutti_scope_push(network, "double_conv");
    for (int i = 0; i < 2; i++) {
        x = tutti_conv2d(
            network, x, channels, 3, &(tutti_conv2d_options) { .name = names[i][0], .padding = 1, .no_bias = true });
        x = tutti_relu(network, tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = names[i][1] }));
    }
    tutti_scope_pop(network);
    return x;
}

/* Zeros around x, as many as it lacks to the size of `like`: poolings have rounded odd sizes down. */
static tutti_tensor pad(tutti_network *network, tutti_tensor x, tutti_tensor like)
{
    tutti_shape have = { 0 }, want = { 0 };
    char text[96];
    tutti_shape_of(network, x, &have);
    tutti_shape_of(network, like, &want);
    const int height = (int)(want.sizes[1] - have.sizes[1]), width = (int)(want.sizes[2] - have.sizes[2]);
    if (height == 0 && width == 0) return x;
    snprintf(text, sizeof(text), "before=0,%d,%d after=0,%d,%d", height / 2, width / 2, height - height / 2,
        width - width / 2);
    return tutti_op(network, "pad", &x, 1, text);
}

tutti_tensor model_unet(tutti_network *network, tutti_tensor x, int classes)
{
    tutti_tensor skips[LEVELS];
    char name[32];
    tutti_scope_push(network, "inc");
    x = double_conv(network, x, CHANNELS);
    tutti_scope_pop(network);
    for (int level = 0; level < LEVELS; level++) {
        skips[level] = x;
        snprintf(name, sizeof(name), "down%d.maxpool_conv.1", level + 1);
        tutti_scope_push(network, name);
        x = double_conv(network, tutti_max_pool(network, x, 2, NULL), CHANNELS << (level + 1));
        tutti_scope_pop(network);
    }
    for (int level = LEVELS - 1; level >= 0; level--) {
        snprintf(name, sizeof(name), "up%d", LEVELS - level);
        tutti_scope_push(network, name);
        x = tutti_conv_transpose(
            network, x, CHANNELS << level, TUTTI_SHAPE(2, 2), &(tutti_conv_options) { .name = "up", .stride = { 2 } });
        const tutti_tensor both[] = { skips[level], pad(network, x, skips[level]) };
        tutti_scope_push(network, "conv");
        x = double_conv(network, tutti_concat(network, both, 2, 0), CHANNELS << level);
        tutti_scope_pop(network);
        tutti_scope_pop(network);
    }
    return tutti_conv2d(network, x, classes, 1, &(tutti_conv2d_options) { .name = "outc.conv" });
}
