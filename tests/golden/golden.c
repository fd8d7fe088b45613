#include "tests/golden/golden.h"

#include <check.h>
#undef fail

#include "models/models.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* PyTorch's dropout draws other numbers than ours (tests/layers compares that); the recorded networks have none. */
#define tutti_dropout(network, x, probability) ((void)(probability), (x))
#define model_mobilenet_v2 golden_mobilenet_v2
tutti_tensor golden_mobilenet_v2(tutti_network *network, tutti_tensor x, int classes);
#define conv_norm mobilenet_conv_norm
#include "models/mobilenet_v2.c"
#undef conv_norm
#define model_efficientnet_b0 golden_efficientnet_b0
tutti_tensor golden_efficientnet_b0(tutti_network *network, tutti_tensor x, int classes);
#define branch efficientnet_branch
#include "models/efficientnet.c"
#undef branch
#define model_convnext_tiny golden_convnext_tiny
tutti_tensor golden_convnext_tiny(tutti_network *network, tutti_tensor x, int classes);
#include "models/convnext.c"

const struct golden cases[CASES] = {
    { "mlp", model_mlp, { 3, { 1, 28, 28 } }, 0, "input 84", false },
    { "mlp_smooth", model_mlp, { 3, { 1, 28, 28 } }, 0, "input 84", true },
    { "lenet", model_lenet, { 3, { 1, 28, 28 } }, 0, "input 156", false },
    { "lenet_smooth", model_lenet, { 3, { 1, 28, 28 } }, 0, "input 156", true },
    { "resnet18", model_resnet18, { 3, { 3, 64, 64 } }, 1.5, "input 68", false },
    { "resnet18_smooth", model_resnet18, { 3, { 3, 64, 64 } }, 1.5, "input 68", true },
    { "mobilenet_v2", golden_mobilenet_v2, { 3, { 3, 64, 64 } }, 2.5, "input 153", false },
    { "mobilenet_v2_smooth", golden_mobilenet_v2, { 3, { 3, 64, 64 } }, 2.5, "input 153", true },
    { "efficientnet_b0", golden_efficientnet_b0, { 3, { 3, 40, 40 } }, 0, "input 0", false },
    { "convnext_tiny", golden_convnext_tiny, { 3, { 3, 40, 36 } }, 0, "input 0", false },
    { "unet_smooth", model_unet, { 3, { 3, 16, 18 } }, 0, "input 0", true, .pixels = true },
};

int64_t golden_labels(const struct golden *golden)
{
    return golden->pixels ? golden->shape.sizes[1] * golden->shape.sizes[2] : 1;
}

tutti_tensor golden_loss(tutti_network *network, const struct golden *golden, tutti_tensor output)
{
    const tutti_tensor targets =
        tutti_input_typed(network, "targets", TUTTI_DTYPE_I32, golden->shape.sizes + 1, golden->pixels ? 2 : 0);
    return tutti_cross_entropy(network, output, targets, NULL);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

int64_t golden_elements(const tutti_shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) count *= shape->sizes[i];
    return count;
}

double golden_initial(const struct golden *golden, const char *name, const tutti_shape *shape, int64_t index)
{
    bool smooth = golden->smooth;
    double value = uniform(name_hash("", name), index);
    if (ends_with(name, "running_mean")) return 0;
    if (ends_with(name, "running_var")) return 1;
    if (shape->rank > 1) {
        double fan_in = (double)(golden_elements(shape) / shape->sizes[0]);
        return value * exp2(nearbyint(log2(sqrt(6 / fan_in)))) / (smooth ? 8 : 1);
    }
    if (ends_with(name, "weight")) return smooth ? 0.375 + value / 32 : 1 + value / 4;
    return smooth ? 3 + value / 16 : golden->shift + value / 4;
}

int32_t golden_target(int64_t index)
{
    return (int32_t)(golden_bits(name_hash("", "target"), index) % CLASSES);
}

FILE *golden_open(const struct golden *golden, double *loss, int *correct, int *arrays)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/tests/golden/%s.txt", getenv("TUTTI_SOURCE"), golden->name);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    ck_assert_int_eq(fscanf(file, "loss %lf correct %d arrays %d", loss, correct, arrays), 3);
    return file;
}

void golden_read(FILE *file, struct array *array)
{
    int read = fscanf(file, "%15s %127s %" SCNd64 " %lf %lf %lf %lf %d", array->kind, array->name, &array->size,
        &array->norm, &array->projection, &array->off, &array->off_most, &array->samples);
    ck_assert_msg(read == 8 && array->samples <= MAX_SAMPLES, "a golden file is damaged near %s", array->name);
    for (int i = 0; i < array->samples; i++) ck_assert_int_eq(fscanf(file, "%lf", &array->sample[i]), 1);
}

int64_t golden_position(const struct array *array, int i)
{
    return array->size > array->samples ? i * array->size / array->samples : i;
}
