/* A Fourier neural operator on a grid (Li et al. 2021: Fourier neural operator for parametric partial differential
 * equations): images [C, H, W] to images [outputs, H, W] of numbers. Names of parameters and details are those of the
 * authors' fourier_2d.py: the positions are two more channels, and each layer adds a product of the channels at the
 * lowest 2 modes x modes frequencies to one at each pixel. weights1 are of rows of frequencies from 0 on, weights2 of
 * those below 0; a last axis has real and imaginary parts. Images are not padded. */
#include "models/fno.h"

#include <stdio.h>
#include <stdlib.h>

#include "tutti_sequences.h"

const struct model_config fno2d_config = { .family = FAMILY_FNO, .width = 32, .modes = 12, .layers = 4, .hidden = 128 };

/* A dense layer of the channels at each pixel, with a dense layer's shape of weights. */
static tutti_tensor pixel_dense(tutti_network *network, tutti_tensor x, const char *name, int64_t units)
{
    tutti_shape shape = { 0 };
    char text[64];
    tutti_shape_of(network, x, &shape);
    const tutti_parameter_options options = { .fan_in = shape.sizes[0] };
    tutti_scope_push(network, name);
    tutti_tensor weight = tutti_parameter(network, "weight", TUTTI_SHAPE(units, shape.sizes[0]), &options);
    const tutti_tensor bias = tutti_parameter(network, "bias", TUTTI_SHAPE(units), &options);
    tutti_scope_pop(network);
    snprintf(text, sizeof text, "shape=%lld,%lld,1,1", (long long)units, (long long)shape.sizes[0]);
    weight = tutti_op(network, "reshape", &weight, 1, text);
    return tutti_conv2d(network, x, units, 1, &(tutti_conv2d_options) { .weight = &weight, .bias = &bias });
}

/* Appends the rows' and columns' positions, from 0 to 1, as two channels. */
static tutti_tensor add_grid(tutti_network *network, tutti_tensor x)
{
    tutti_shape shape = { 0 };
    tutti_shape_of(network, x, &shape);
    const int64_t channels = shape.sizes[0], height = shape.sizes[1], width = shape.sizes[2], pixels = height * width;
    float *grid = shape.rank == 3 ? (float *)calloc((size_t)((channels + 2) * pixels), sizeof(float)) : NULL;
    if (!grid) return (tutti_tensor) { -1 }; /* which the next layer refuses */
    float *rows = grid + channels * pixels, *columns = rows + pixels;
    for (int64_t i = 0; i < pixels; i++) {
        rows[i] = height > 1 ? (float)(i / width) / (float)(height - 1) : 0;
        columns[i] = width > 1 ? (float)(i % width) / (float)(width - 1) : 0;
    }
    const tutti_tensor positions = tutti_constant(network, "grid", TUTTI_SHAPE(channels + 2, height, width), grid);
    free(grid);
    return tutti_add(network, tutti_op(network, "pad", &x, 1, "before=0,0,0 after=2,0,0"), positions);
}

static tutti_tensor spectral_layer(
    tutti_network *network, tutti_tensor x, const char *name, const struct model_config *config)
{
    const int64_t width = config->width, modes = config->modes;
    tutti_shape shape = { 0 };
    tutti_shape_of(network, x, &shape);
    /* Uniform within 1 / width^2. The authors' are from 0 on. */
    const tutti_parameter_options options = { .init = TUTTI_INIT_HE_UNIFORM,
        .fan_in = 6 * width * width * width * width };
    const tutti_shape weights = TUTTI_SHAPE(width, width, modes, modes, 2);
    tutti_scope_push(network, name);
    const tutti_tensor positive = tutti_parameter(network, "weights1", weights, &options),
                       negative = tutti_parameter(network, "weights2", weights, &options);
    tutti_scope_pop(network);
    const tutti_tensor parts[] = { negative, positive };
    const tutti_tensor both[] = { tutti_rfft2_modes(network, x, 2 * modes, modes),
        tutti_op(network, "concat", parts, 2, "axis=2") };
    x = tutti_op(network, "spectral_product", both, 2, NULL);
    return tutti_irfft2_modes(network, x, shape.sizes[1], shape.sizes[2]);
}

static tutti_tensor gelu(tutti_network *network, tutti_tensor x)
{
    return tutti_op(network, "gelu", &x, 1, NULL);
}

tutti_tensor model_fno2d_for(tutti_network *network, tutti_tensor x, int outputs, const struct model_facts *facts)
{
    const struct model_config *config = facts && facts->config ? facts->config : &fno2d_config;
    char spectral[32], pointwise[32];
    x = pixel_dense(network, add_grid(network, x), "fc0", config->width);
    for (int i = 0; i < (int)config->layers; i++) {
        snprintf(spectral, sizeof spectral, "conv%d", i);
        snprintf(pointwise, sizeof pointwise, "w%d", i);
        const tutti_tensor far = spectral_layer(network, x, spectral, config);
        const tutti_tensor near =
            tutti_conv2d(network, x, config->width, 1, &(tutti_conv2d_options) { .name = pointwise });
        x = tutti_add(network, near, far);
        if (i + 1 < (int)config->layers) x = gelu(network, x);
    }
    return pixel_dense(network, gelu(network, pixel_dense(network, x, "fc1", config->hidden)), "fc2", outputs);
}

tutti_tensor model_fno2d(tutti_network *network, tutti_tensor x, int outputs)
{
    return model_fno2d_for(network, x, outputs, NULL);
}
