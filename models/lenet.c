/* After LeNet-5 (LeCun, Bottou, Bengio, Haffner 1998), wider, with ReLU and maxima as today's MNIST examples have it:
 * 454,922 parameters for images of 1 x 28 x 28 and 10 classes. */
#include "models/models.h"

tutti_tensor model_lenet(tutti_network *network, tutti_tensor x, int classes)
{
    x = tutti_conv2d(network, x, 32, 5, &(tutti_conv2d_options) { .name = "conv1", .padding = 2 });
    x = tutti_max_pool(network, tutti_relu(network, x), 2, NULL);
    x = tutti_conv2d(network, x, 64, 5, &(tutti_conv2d_options) { .name = "conv2", .padding = 2 });
    x = tutti_max_pool(network, tutti_relu(network, x), 2, NULL);
    x = tutti_flatten(network, x);
    x = tutti_relu(network, tutti_dense(network, x, 128, &(tutti_dense_options) { .name = "fc1" }));
    return tutti_dense(network, x, classes, &(tutti_dense_options) { .name = "fc2" });
}
