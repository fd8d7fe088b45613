/* VGG (Simonyan, Zisserman: Very deep convolutional networks for large-scale image recognition, 2014), configuration D
 * without batch normalisation. Names of parameters, initial values and dropout are torchvision's. */
#include "models/models.h"

#include <stdio.h>

#define POOL 0

static tutti_tensor features(tutti_network *network, tutti_tensor x)
{
    static const int channels[] = { 64, 64, POOL, 128, 128, POOL, 256, 256, 256, POOL, 512, 512, 512, POOL, 512, 512,
        512, POOL };
    int position = 0; /* in torchvision's sequence, where each ReLU and pooling counts too */
    for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
        if (channels[i] == POOL) {
            x = tutti_max_pool(network, x, 2, NULL);
            position += 1;
            continue;
        }
        char name[32];
        snprintf(name, sizeof(name), "features.%d", position);
        x = tutti_conv2d(network, x, channels[i], 3,
            &(tutti_conv2d_options) { .name = name, .padding = 1, .init = TUTTI_INIT_HE_NORMAL_FAN_OUT });
        x = tutti_relu(network, x);
        position += 2;
    }
    return x;
}

static tutti_tensor dense(tutti_network *network, tutti_tensor x, int units, const char *name)
{
    return tutti_dense(
        network, x, units, &(tutti_dense_options) { .name = name, .init = TUTTI_INIT_NORMAL, .init_scale = 0.01f });
}

tutti_tensor model_vgg16(tutti_network *network, tutti_tensor x, int classes)
{
    x = features(network, x);
    x = tutti_flatten(network, tutti_adaptive_average_pool(network, x, 7, 7));
    x = tutti_dropout(network, tutti_relu(network, dense(network, x, 4096, "classifier.0")), 0.5f);
    x = tutti_dropout(network, tutti_relu(network, dense(network, x, 4096, "classifier.3")), 0.5f);
    return dense(network, x, classes, "classifier.6");
}
