/* A multilayer perceptron: inputs - 512 - 512 - classes. */
#include "models/models.h"

tutti_tensor model_mlp(tutti_network *network, tutti_tensor x, int classes)
{
    x = tutti_flatten(network, x);
    x = tutti_relu(network, tutti_dense(network, x, 512, &(tutti_dense_options) { .name = "fc1" }));
    x = tutti_relu(network, tutti_dense(network, x, 512, &(tutti_dense_options) { .name = "fc2" }));
    return tutti_dense(network, x, classes, &(tutti_dense_options) { .name = "fc3" });
}
