/* Vision transformer (Dosovitskiy et al.: An image is worth 16x16 words, 2020), base size with patches of 16x16 pixels.
 * Names of parameters and initial values are torchvision's, which has no dropout either. The image can have any size:
 * it determines the number of positions. */
#include "models/models.h"
#include "tutti_sequences.h"

#include <math.h>
#include <stdio.h>

enum { PATCH = 16, WIDTH = 768, HEADS = 12, HIDDEN = 3072, BLOCKS = 12 };
#define EPSILON 1e-6f

static tutti_tensor columns(tutti_network *network, tutti_tensor x, int first)
{
    char text[64];
    snprintf(text, sizeof(text), "axes=-1 starts=%d ends=%d", first, first + WIDTH);
    return tutti_op(network, "slice", &x, 1, text);
}

/* One parameter makes queries, keys and values: its initial values are those of one large layer. */
static tutti_tensor attention(tutti_network *network, tutti_tensor x)
{
    const tutti_parameter_options uniform = {
        .init = TUTTI_INIT_GLOROT_UNIFORM, .fan_in = WIDTH, .fan_out = 3 * WIDTH
    };
    tutti_scope_push(network, "self_attention");
    const tutti_tensor weight = tutti_parameter(network, "in_proj_weight", TUTTI_SHAPE(3 * WIDTH, WIDTH), &uniform);
    const tutti_tensor bias = tutti_parameter(
        network, "in_proj_bias", TUTTI_SHAPE(3 * WIDTH), &(tutti_parameter_options) { .init = TUTTI_INIT_ZEROS });
    x = tutti_dense(network, x, 3 * WIDTH, &(tutti_dense_options) { .weight = &weight, .bias = &bias });
    x = tutti_attention(network, columns(network, x, 0), columns(network, x, WIDTH), columns(network, x, 2 * WIDTH),
        &(tutti_attention_options) { .heads = HEADS });
    x = tutti_dense(network, x, WIDTH, &(tutti_dense_options) { .name = "out_proj", .bias_init = TUTTI_INIT_ZEROS });
    tutti_scope_pop(network);
    return x;
}

static tutti_tensor mlp(tutti_network *network, tutti_tensor x)
{
    tutti_dense_options options = {
        .name = "mlp.0", .init = TUTTI_INIT_GLOROT_UNIFORM, .bias_init = TUTTI_INIT_NORMAL, .init_scale = 1e-6f
    };
    x = tutti_dense(network, x, HIDDEN, &options);
    x = tutti_op(network, "gelu", &x, 1, NULL);
    options.name = "mlp.3";
    return tutti_dense(network, x, WIDTH, &options);
}

/* The class token before the patches, and a position's parameter added to each. */
static tutti_tensor embed(tutti_network *network, tutti_tensor x, tutti_tensor class_token)
{
    tutti_shape grid = { 0 };
    char text[64];
    tutti_shape_of(network, x, &grid);
    const int64_t patches = grid.sizes[1] * grid.sizes[2];
    x = tutti_reshape(network, x, TUTTI_SHAPE(1, WIDTH, patches));
    x = tutti_op(network, "transpose", &x, 1, "perm=0,2,1");
    x = tutti_op(network, "pad", &x, 1, "before=0,1,0 after=0,0,0");
    snprintf(text, sizeof(text), "before=0,0,0 after=0,%lld,0", (long long)patches);
    class_token = tutti_op(network, "pad", &class_token, 1, text);
    const tutti_tensor positions = tutti_parameter(network, "encoder.pos_embedding", TUTTI_SHAPE(1, patches + 1, WIDTH),
        &(tutti_parameter_options) { .init = TUTTI_INIT_NORMAL, .init_scale = 0.02f });
    x = tutti_add(network, x, tutti_add(network, class_token, positions));
    return tutti_reshape(network, x, TUTTI_SHAPE(patches + 1, WIDTH));
}

tutti_tensor model_vit_b_16(tutti_network *network, tutti_tensor x, int classes)
{
    const tutti_tensor class_token = tutti_parameter(
        network, "class_token", TUTTI_SHAPE(1, 1, WIDTH), &(tutti_parameter_options) { .init = TUTTI_INIT_ZEROS });
    tutti_shape image = { 0 };
    tutti_shape_of(network, x, &image);
    x = tutti_conv2d(network, x, WIDTH, PATCH,
        &(tutti_conv2d_options) { .name = "conv_proj",
            .stride = PATCH,
            .init = TUTTI_INIT_NORMAL,
            .init_scale = 1 / sqrtf((float)(image.sizes[0] * PATCH * PATCH)) });
    x = embed(network, x, class_token);
    for (int i = 0; i < BLOCKS; i++) {
        char name[48];
        snprintf(name, sizeof(name), "encoder.layers.encoder_layer_%d", i);
        tutti_scope_push(network, name);
        x = tutti_add(network, x, attention(network, tutti_layer_norm(network, "ln_1", x, EPSILON)));
        x = tutti_add(network, x, mlp(network, tutti_layer_norm(network, "ln_2", x, EPSILON)));
        tutti_scope_pop(network);
    }
    x = tutti_op(network, "slice", &x, 1, "axes=0 starts=0 ends=1");
    x = tutti_flatten(network, tutti_layer_norm(network, "encoder.ln", x, EPSILON));
    return tutti_dense(network, x, classes, &(tutti_dense_options) { .name = "heads.head", .init = TUTTI_INIT_ZEROS });
}
