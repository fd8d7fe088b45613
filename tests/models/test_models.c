/* The models against torchvision's, unet and gpt against those in PyTorch, recurrent ones against PyTorch's layers:
 * names, shapes, order and numbers of
 * parameters; and images of other sizes. No device. */
#include "base/status.h"
#include "graph/network.h"
#include "models/models.h"
#include "runtime/device.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Building a network asks nothing of its runtime. */
static struct tutti_runtime runtime;

static tutti_tensor add_input(tutti_network *network, const struct model *model, tutti_shape input)
{
    const int64_t length = TUTTI_SEQUENCE;
    if (model->takes == MODEL_TAKES_TEXT) return tutti_input_typed(network, "ids", TUTTI_DTYPE_I32, &length, 1);
    if (model->takes == MODEL_TAKES_SPEECH) input.sizes[0] = TUTTI_SEQUENCE;
    return tutti_input(network, "x", input);
}

static tutti_network *build(const char *name, tutti_shape input, int classes, tutti_tensor *logits)
{
    const struct model *model = model_find(name);
    ck_assert_msg(model != NULL, "no model %s", name);
    tutti_network *network = tutti_network_new(&runtime);
    *logits = model->build(network, add_input(network, model, input), classes);
    return network;
}

static tutti_network *must_build(const char *name, tutti_shape input, int classes)
{
    tutti_tensor logits;
    tutti_shape shape;
    tutti_network *network = build(name, input, classes, &logits);
    ck_assert_msg(tutti_network_status(network) == TUTTI_OK, "%s: %s", name, tutti_message(NULL));
    ck_assert_int_eq(tutti_shape_of(network, logits, &shape), TUTTI_OK);
    if (model_predicts_tokens(model_find(name))) {
        ck_assert_int_eq(shape.rank, 2);
        ck_assert_int_eq(shape.sizes[0], TUTTI_SEQUENCE);
        ck_assert_int_eq(shape.sizes[1], model_find(name)->config->vocabulary);
        return network;
    }
    if (model_find(name)->takes == MODEL_TAKES_SPEECH) {
        ck_assert_int_eq(shape.rank, 2);
        ck_assert_int_eq(shape.sizes[0], TUTTI_SEQUENCE);
        ck_assert_int_eq(shape.sizes[1], classes);
        return network;
    }
    ck_assert_int_eq(shape.sizes[0], classes);
    ck_assert_int_eq(shape.rank, strcmp(name, "unet") && strcmp(name, "fno2d") ? 1 : 3);
    for (int i = 1; i < shape.rank; i++) ck_assert_int_eq(shape.sizes[i], input.sizes[i]);
    return network;
}

static const struct {
    const char *name;
    int64_t numbers;
    int tensors; /* trained ones */
} sizes[] = {
    { "linear", 2, 2 },
    { "mlp", 669706, 6 },
    { "tabular", 416010, 20 },
    { "lenet", 454922, 8 },
    { "vgg16", 138357544, 32 },
    { "resnet18", 11689512, 62 },
    { "resnet50", 25557032, 161 },
    { "mobilenet_v2", 3504872, 158 },
    { "efficientnet_b0", 5288548, 213 },
    { "convnext_tiny", 28589128, 182 },
    { "vit_b_16", 86567656, 152 },
    { "unet", 31037698, 64 },
    { "fno2d", 2368001, 22 },
    { "speech", 1522781, 20 },
    { "lstm", 10823171, 21 },
    { "gru", 10165763, 21 },
    { "fasttext", 6242434, 4 },
    { "bert_tiny", 4386178, 41 },
    { "bert_mini", 11171074, 73 },
    { "bert_small", 28764674, 73 },
    { "bert_base", 109483778, 201 },
    { "distilbert", 66955010, 104 },
    { "roberta_base", 124647170, 201 },
    { "gpt", 10745088, 39 },
    { "gpt2", 124439808, 148 },
    { "llama", 134515008, 272 },
};

START_TEST(numbers_of_parameters)
{
    const struct model *model = model_at(_i);
    ck_assert_ptr_nonnull(model);
    ck_assert_str_eq(model->name, sizes[_i].name);
    tutti_network *network = must_build(model->name, model->input, model->classes);
    ck_assert_int_eq(tutti_network_parameters(network), sizes[_i].numbers);
    int tensors = 0;
    for (size_t i = 0; i < network->parameter_count; i++) tensors += network->parameters[i].kind == PARAMETER_TRAINED;
    ck_assert_int_eq(tensors, sizes[_i].tensors);
    tutti_network_free(network);
}
END_TEST

START_TEST(table_ends)
{
    ck_assert_ptr_null(model_at(sizeof(sizes) / sizeof(sizes[0])));
    ck_assert_ptr_null(model_at(-1));
    ck_assert_ptr_null(model_find("alexnet"));
}
END_TEST

/* Trained parameters only, counted from 0, negative positions from the end. The standard deviation is that of
 * PyTorch's initial values; 0 stands for a constant. */
static const struct {
    const char *model;
    int position;
    const char *name;
    tutti_shape shape;
    float deviation;
} torchvision[] = {
    { "vgg16", 0, "features.0.weight", { 4, { 64, 3, 3, 3 } }, 0.0589f },
    { "vgg16", 1, "features.0.bias", { 1, { 64 } }, 0 },
    { "vgg16", 24, "features.28.weight", { 4, { 512, 512, 3, 3 } }, 0.0208f },
    { "vgg16", 26, "classifier.0.weight", { 2, { 4096, 25088 } }, 0.01f },
    { "vgg16", 28, "classifier.3.weight", { 2, { 4096, 4096 } }, 0.01f },
    { "vgg16", -1, "classifier.6.bias", { 1, { 1000 } }, 0 },
    { "resnet18", 0, "conv1.weight", { 4, { 64, 3, 7, 7 } }, 0.0253f },
    { "resnet18", 1, "bn1.weight", { 1, { 64 } }, 0 },
    { "resnet18", 3, "layer1.0.conv1.weight", { 4, { 64, 64, 3, 3 } }, 0.0589f },
    { "resnet18", 15, "layer2.0.conv1.weight", { 4, { 128, 64, 3, 3 } }, 0.0417f },
    { "resnet18", 21, "layer2.0.downsample.0.weight", { 4, { 128, 64, 1, 1 } }, 0.125f },
    { "resnet18", 23, "layer2.0.downsample.1.bias", { 1, { 128 } }, 0 },
    { "resnet18", -2, "fc.weight", { 2, { 1000, 512 } }, 0.0255f },
    { "resnet50", 9, "layer1.0.conv3.weight", { 4, { 256, 64, 1, 1 } }, 0.0884f },
    { "resnet50", 12, "layer1.0.downsample.0.weight", { 4, { 256, 64, 1, 1 } }, 0.0884f },
    { "resnet50", -1, "fc.bias", { 1, { 1000 } }, 0.0128f },
    { "mobilenet_v2", 0, "features.0.0.weight", { 4, { 32, 3, 3, 3 } }, 0.0833f },
    { "mobilenet_v2", 3, "features.1.conv.0.0.weight", { 4, { 32, 1, 3, 3 } }, 0.0833f },
    { "mobilenet_v2", 6, "features.1.conv.1.weight", { 4, { 16, 32, 1, 1 } }, 0.3536f },
    { "mobilenet_v2", 12, "features.2.conv.1.0.weight", { 4, { 96, 1, 3, 3 } }, 0.0481f },
    { "mobilenet_v2", -5, "features.18.0.weight", { 4, { 1280, 320, 1, 1 } }, 0.0395f },
    { "mobilenet_v2", -2, "classifier.1.weight", { 2, { 1000, 1280 } }, 0.01f },
    { "mobilenet_v2", -1, "classifier.1.bias", { 1, { 1000 } }, 0 },
    { "efficientnet_b0", 3, "features.1.0.block.0.0.weight", { 4, { 32, 1, 3, 3 } }, 0.0833f },
    { "efficientnet_b0", 6, "features.1.0.block.1.fc1.weight", { 4, { 8, 32, 1, 1 } }, 0.5f },
    { "efficientnet_b0", 9, "features.1.0.block.1.fc2.bias", { 1, { 32 } }, 0 },
    { "efficientnet_b0", 19, "features.2.0.block.2.fc1.weight", { 4, { 4, 96, 1, 1 } }, 0.7071f },
    { "efficientnet_b0", 42, "features.3.0.block.1.0.weight", { 4, { 144, 1, 5, 5 } }, 0.0236f },
    { "efficientnet_b0", -5, "features.8.0.weight", { 4, { 1280, 320, 1, 1 } }, 0.0395f },
    { "efficientnet_b0", -2, "classifier.1.weight", { 2, { 1000, 1280 } }, 0.01826f },
    { "efficientnet_b0", -1, "classifier.1.bias", { 1, { 1000 } }, 0 },
    { "convnext_tiny", 0, "features.0.0.weight", { 4, { 96, 3, 4, 4 } }, 0.02f },
    { "convnext_tiny", 4, "features.1.0.layer_scale", { 3, { 96, 1, 1 } }, 0 },
    { "convnext_tiny", 5, "features.1.0.block.0.weight", { 4, { 96, 1, 7, 7 } }, 0.02f },
    { "convnext_tiny", 7, "features.1.0.block.2.weight", { 1, { 96 } }, 0 },
    { "convnext_tiny", 9, "features.1.0.block.3.weight", { 2, { 384, 96 } }, 0.02f },
    { "convnext_tiny", 33, "features.2.1.weight", { 4, { 192, 96, 2, 2 } }, 0.02f },
    { "convnext_tiny", -4, "classifier.0.weight", { 1, { 768 } }, 0 },
    { "convnext_tiny", -2, "classifier.2.weight", { 2, { 1000, 768 } }, 0.02f },
    { "vit_b_16", 0, "class_token", { 3, { 1, 1, 768 } }, 0 },
    { "vit_b_16", 1, "conv_proj.weight", { 4, { 768, 3, 16, 16 } }, 0.0361f },
    { "vit_b_16", 2, "conv_proj.bias", { 1, { 768 } }, 0 },
    { "vit_b_16", 3, "encoder.pos_embedding", { 3, { 1, 197, 768 } }, 0.02f },
    { "vit_b_16", 6, "encoder.layers.encoder_layer_0.self_attention.in_proj_weight", { 2, { 2304, 768 } }, 0.02552f },
    { "vit_b_16", 7, "encoder.layers.encoder_layer_0.self_attention.in_proj_bias", { 1, { 2304 } }, 0 },
    { "vit_b_16", 8, "encoder.layers.encoder_layer_0.self_attention.out_proj.weight", { 2, { 768, 768 } }, 0.02083f },
    { "vit_b_16", 9, "encoder.layers.encoder_layer_0.self_attention.out_proj.bias", { 1, { 768 } }, 0 },
    { "vit_b_16", 12, "encoder.layers.encoder_layer_0.mlp.0.weight", { 2, { 3072, 768 } }, 0.02282f },
    { "vit_b_16", 13, "encoder.layers.encoder_layer_0.mlp.0.bias", { 1, { 3072 } }, 1e-6f },
    { "vit_b_16", -2, "heads.head.weight", { 2, { 1000, 768 } }, 0 },
    { "unet", 0, "inc.double_conv.0.weight", { 4, { 64, 3, 3, 3 } }, 0.1111f },
    { "unet", 4, "inc.double_conv.4.weight", { 1, { 64 } }, 0 },
    { "unet", 6, "down1.maxpool_conv.1.double_conv.0.weight", { 4, { 128, 64, 3, 3 } }, 0.02406f },
    { "unet", 30, "up1.up.weight", { 4, { 1024, 512, 2, 2 } }, 0.01276f },
    { "unet", 31, "up1.up.bias", { 1, { 512 } }, 0.01276f },
    { "unet", 32, "up1.conv.double_conv.0.weight", { 4, { 512, 1024, 3, 3 } }, 0.006014f },
    { "unet", -2, "outc.conv.weight", { 4, { 2, 64, 1, 1 } }, 0.07217f },
    { "fno2d", 0, "fc0.weight", { 2, { 32, 3 } }, 0.3333f },
    { "fno2d", 2, "conv0.weights1", { 5, { 32, 32, 12, 12, 2 } }, 0.0005638f },
    { "fno2d", 3, "conv0.weights2", { 5, { 32, 32, 12, 12, 2 } }, 0.0005638f },
    { "fno2d", 4, "w0.weight", { 4, { 32, 32, 1, 1 } }, 0.1021f },
    { "fno2d", -4, "fc1.weight", { 2, { 128, 32 } }, 0.1021f },
    { "fno2d", -1, "fc2.bias", { 1, { 1 } }, 0.05103f },
    { "lstm", 0, "embedding.weight", { 2, { 32000, 256 } }, 1 },
    { "lstm", 1, "layers.0.weight_ih_l0", { 2, { 1024, 256 } }, 0.03608f },
    { "lstm", 8, "layers.0.bias_hh_l0_reverse", { 1, { 1024 } }, 0.03608f },
    { "lstm", 9, "layers.1.weight_ih_l0", { 2, { 1024, 512 } }, 0.03608f },
    { "lstm", -4, "attention.weight", { 2, { 1, 512 } }, 0.02552f },
    { "lstm", -2, "classifier.weight", { 2, { 2, 512 } }, 0.02552f },
    { "gru", 2, "layers.0.weight_hh_l0", { 2, { 768, 256 } }, 0.03608f },
    { "gpt", 0, "transformer.wte.weight", { 2, { 65, 384 } }, 0.02f },
    { "gpt", 1, "transformer.wpe.weight", { 2, { 256, 384 } }, 0.02f },
    { "gpt", 2, "transformer.h.0.ln_1.weight", { 1, { 384 } }, 0 },
    { "gpt", 3, "transformer.h.0.attn.c_attn.weight", { 2, { 1152, 384 } }, 0.02f },
    { "gpt", 4, "transformer.h.0.attn.c_proj.weight", { 2, { 384, 384 } }, 0.005774f },
    { "gpt", 6, "transformer.h.0.mlp.c_fc.weight", { 2, { 1536, 384 } }, 0.02f },
    { "gpt", 7, "transformer.h.0.mlp.c_proj.weight", { 2, { 384, 1536 } }, 0.005774f },
    { "gpt", -1, "transformer.ln_f.weight", { 1, { 384 } }, 0 },
    { "fasttext", 1, "pairs.weight", { 2, { 65536, 64 } }, 0.01f },
    { "bert_tiny", 0, "bert.embeddings.word_embeddings.weight", { 2, { 30522, 128 } }, 0.02f },
    { "bert_tiny", 1, "bert.embeddings.position_embeddings.weight", { 2, { 512, 128 } }, 0.02f },
    { "bert_tiny", 7, "bert.encoder.layer.0.attention.self.key.weight", { 2, { 128, 128 } }, 0.02f },
    { "bert_tiny", 15, "bert.encoder.layer.0.intermediate.dense.weight", { 2, { 512, 128 } }, 0.02f },
    { "bert_tiny", -4, "bert.pooler.dense.weight", { 2, { 128, 128 } }, 0.02f },
    { "bert_tiny", -1, "classifier.bias", { 1, { 2 } }, 0 },
    { "distilbert", 4, "distilbert.transformer.layer.0.attention.q_lin.weight", { 2, { 768, 768 } }, 0.02f },
    { "distilbert", -4, "pre_classifier.weight", { 2, { 768, 768 } }, 0.02f },
    { "roberta_base", 1, "roberta.embeddings.position_embeddings.weight", { 2, { 514, 768 } }, 0.02f },
    { "roberta_base", -2, "classifier.out_proj.weight", { 2, { 2, 768 } }, 0.02f },
    { "gpt2", 4, "transformer.h.0.attn.c_attn.weight", { 2, { 768, 2304 } }, 0.02f },
    { "gpt2", 12, "transformer.h.0.mlp.c_proj.weight", { 2, { 3072, 768 } }, 0.004082f },
    { "gpt2", -1, "transformer.ln_f.bias", { 1, { 768 } }, 0 },
    { "llama", 0, "model.embed_tokens.weight", { 2, { 49152, 576 } }, 0.04167f },
    { "llama", 3, "model.layers.0.self_attn.k_proj.weight", { 2, { 192, 576 } }, 0.04167f },
    { "llama", -2, "model.layers.29.mlp.down_proj.weight", { 2, { 576, 1536 } }, 0.04167f },
};

static const struct parameter *trained_at(const tutti_network *network, int position)
{
    int count = 0, seen = 0;
    for (size_t i = 0; i < network->parameter_count; i++) count += network->parameters[i].kind == PARAMETER_TRAINED;
    if (position < 0) position += count;
    for (size_t i = 0; i < network->parameter_count; i++) {
        if (network->parameters[i].kind == PARAMETER_TRAINED && seen++ == position) return &network->parameters[i];
    }
    return NULL;
}

static double deviation(const float *values, int64_t count)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += values[i];
        squares += (double)values[i] * values[i];
    }
    double variance = squares / (double)count - sum / (double)count * (sum / (double)count);
    return variance > 0 ? sqrt(variance) : 0;
}

START_TEST(parameters_are_torchvisions)
{
    const struct model *model = model_find(torchvision[_i].model);
    tutti_network *network = must_build(model->name, model->input, model->classes);
    const struct parameter *parameter = trained_at(network, torchvision[_i].position);
    ck_assert_ptr_nonnull(parameter);
    ck_assert_str_eq(parameter->name, torchvision[_i].name);
    ck_assert_int_eq(parameter->shape.rank, torchvision[_i].shape.rank);
    for (int i = 0; i < parameter->shape.rank; i++)
        ck_assert_int_eq(parameter->shape.sizes[i], torchvision[_i].shape.sizes[i]);
    tutti_network_free(network);
}
END_TEST

static const char *const initialised[] = { "resnet18", "mobilenet_v2", "efficientnet_b0", "convnext_tiny", "vit_b_16",
    "unet", "lstm", "gru", "gpt", "fasttext", "bert_tiny" };

START_TEST(initial_values_are_torchvisions)
{
    const struct model *model = model_find(initialised[_i]);
    tutti_network *network = must_build(model->name, model->input, model->classes);
    ck_assert_int_eq(network_layout(network), TUTTI_OK);
    float *arena = calloc((size_t)network->total_floats, sizeof(*arena));
    float *frozen = calloc((size_t)network->frozen_floats + 1, sizeof(*frozen));
    ck_assert_int_eq(network_initialise(network, 3, &(struct parameter_arenas) { arena, frozen }), TUTTI_OK);
    for (size_t i = 0; i < sizeof(torchvision) / sizeof(torchvision[0]); i++) {
        if (strcmp(torchvision[i].model, model->name) != 0) continue;
        const struct parameter *parameter = network_find(network, torchvision[i].name);
        double found = deviation(arena + parameter->offset, parameter->elements);
        /* The deviation of n normal numbers has a relative error of 1 / sqrt(2 n): four times that is allowed. */
        double slack = 4 / sqrt(2 * (double)parameter->elements) + 0.005;
        ck_assert_msg(fabs(found - torchvision[i].deviation) <= slack * torchvision[i].deviation, "%s: %g, not %g",
            parameter->name, found, torchvision[i].deviation);
    }
    free(arena);
    free(frozen);
    tutti_network_free(network);
}
END_TEST

static const struct {
    const char *name;
    tutti_shape input;
    int classes;
} others[] = {
    { "mlp", { 3, { 3, 32, 32 } }, 100 },
    { "lenet", { 3, { 3, 32, 32 } }, 100 },
    { "lenet", { 3, { 1, 7, 5 } }, 2 },
    { "vgg16", { 3, { 3, 32, 32 } }, 10 },
    { "resnet18", { 3, { 1, 28, 28 } }, 10 },
    { "resnet50", { 3, { 3, 33, 65 } }, 3 },
    { "mobilenet_v2", { 3, { 3, 32, 32 } }, 100 },
    { "efficientnet_b0", { 3, { 1, 28, 28 } }, 10 },
    { "convnext_tiny", { 3, { 1, 32, 45 } }, 3 },
    { "vit_b_16", { 3, { 1, 28, 40 } }, 10 },
    { "unet", { 3, { 1, 28, 45 } }, 5 },
    { "linear", { 1, { 13 } }, 4 },
    { "tabular", { 1, { 1 } }, 2 },
    { "tabular", { 1, { 1000 } }, 1 },
};

START_TEST(other_sizes)
{
    tutti_network_free(must_build(others[_i].name, others[_i].input, others[_i].classes));
}
END_TEST

/* A table's row builds exactly the models that say so. */
START_TEST(takes_what_it_says)
{
    tutti_tensor logits;
    const struct model *model = model_at(_i);
    if (model->takes == MODEL_TAKES_TEXT || model->takes == MODEL_TAKES_SPEECH) return;
    tutti_network *network = build(model->name, (tutti_shape) { 1, { 13 } }, 4, &logits);
    ck_assert_int_eq(tutti_network_status(network) == TUTTI_OK, model->takes == MODEL_TAKES_NUMBERS);
    tutti_network_free(network);
}
END_TEST

/* Weights that were trained for many samples are loaded into the network that is built without a number. */
START_TEST(samples_change_no_parameter)
{
    const struct model *model = model_find("tabular");
    const struct {
        int64_t samples;
        int classes;
    } trained[] = { { 1, 1 }, { 5000, 1 }, { 1000000, 1 }, { 1000000, 3 } };
    for (size_t i = 0; i < sizeof(trained) / sizeof(trained[0]); i++) {
        tutti_tensor logits;
        tutti_network *plain = build("tabular", (tutti_shape) { 1, { 13 } }, trained[i].classes, &logits);
        tutti_network *network = tutti_network_new(&runtime);
        const tutti_tensor x = tutti_input(network, "x", (tutti_shape) { 1, { 13 } });
        const struct model_facts facts = { .samples = trained[i].samples };
        (void)model->build_for(network, x, trained[i].classes, &facts);
        ck_assert_int_eq(tutti_network_status(network), TUTTI_OK);
        ck_assert_uint_eq(network->parameter_count, plain->parameter_count);
        for (size_t k = 0; k < network->parameter_count; k++) {
            ck_assert_str_eq(network->parameters[k].name, plain->parameters[k].name);
            ck_assert_int_eq(network->parameters[k].elements, plain->parameters[k].elements);
        }
        tutti_network_free(network);
        tutti_network_free(plain);
    }
}
END_TEST

/* The last inputs may be codes, which are embedded; also if there are no others. */
START_TEST(codes_are_embedded)
{
    const struct model *model = model_find("tabular");
    const struct model_facts facts = { .codes = { 41, 7 }, .code_count = 2 };
    for (int64_t numbers = 0; numbers < 4; numbers += 3) {
        tutti_shape shape;
        tutti_network *network = tutti_network_new(&runtime);
        const tutti_tensor x = tutti_input(network, "x", (tutti_shape) { 1, { numbers + 2 } });
        const tutti_tensor logits = model->build_for(network, x, 5, &facts);
        ck_assert_msg(tutti_network_status(network) == TUTTI_OK, "%s", tutti_message(NULL));
        ck_assert_int_eq(tutti_shape_of(network, logits, &shape), TUTTI_OK);
        ck_assert_int_eq(shape.sizes[0], 5);
        int found = 0;
        for (size_t k = 0; k < network->parameter_count; k++) {
            const struct parameter *parameter = &network->parameters[k];
            if (!strcmp(parameter->name, "embeddings.0.weight")) ck_assert_int_eq(parameter->elements, 41 * 256);
            found += !strncmp(parameter->name, "embeddings.", 11);
        }
        ck_assert_int_eq(found, 2);
        tutti_network_free(network);
    }
}
END_TEST

static tutti_network *build_text(const char *name, int classes, const struct model_facts *facts, tutti_shape *shape)
{
    const struct model *model = model_find(name);
    tutti_network *network = tutti_network_new(&runtime);
    const tutti_tensor logits = model->build_for(network, add_input(network, model, model->input), classes, facts);
    ck_assert_msg(tutti_network_status(network) == TUTTI_OK, "%s: %s", name, tutti_message(NULL));
    ck_assert_int_eq(tutti_shape_of(network, logits, shape), TUTTI_OK);
    return network;
}

/* Each network for text has classes of texts, or of tokens; the vocabulary is that of the data. */
START_TEST(texts_have_both_targets)
{
    const struct model *model = model_at(_i);
    const struct model_facts tokens = { .vocabulary = 97, .tokens_are_classes = true }, texts = { .vocabulary = 97 };
    tutti_shape shape;
    if (model->takes != MODEL_TAKES_TEXT || !strcmp(model->name, "fasttext")) return;
    tutti_network_free(build_text(model->name, 3, &texts, &shape));
    ck_assert_int_eq(shape.rank, 1);
    ck_assert_int_eq(shape.sizes[0], 3);
    tutti_network *network = build_text(model->name, 97, &tokens, &shape);
    ck_assert_int_eq(shape.rank, 2);
    ck_assert_int_eq(shape.sizes[0], TUTTI_SEQUENCE);
    ck_assert_int_eq(shape.sizes[1], 97);
    ck_assert_int_eq(trained_at(network, 0)->shape.sizes[0], 97);
    tutti_network_free(network);
}
END_TEST

/* What a config.json says, and what is refused, with a part of the message. */
static const struct {
    const char *model, *json, *refused;
} configs[] = {
    { "llama", "{\"model_type\": \"qwen2\", \"num_hidden_layers\": 3, \"tie_word_embeddings\": true}", NULL },
    { "llama", "{\"model_type\": \"gemma\"}", "\"gemma\"" },
    { "llama", "{\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"yarn\"}}", "\"yarn\"" },
    { "llama", "{\"hidden_act\": \"gelu\"}", "silu" },
    { "llama", "{\"partial_rotary_factor\": 0.5}", "partial_rotary_factor" },
    { "gpt2", "{\"model_type\": \"bert\"}", "and not of gpt2" },
    { "gpt2", "{\"scale_attn_by_inverse_layer_idx\": true}", "scale_attn_by_inverse_layer_idx" },
    { "gpt2", "{\"n_layer\": 1.5}", "n_layer" },
    { "bert_base", "{\"hidden_size\": 100}", "cannot be divided" },
    { "bert_base", "{\"position_embedding_type\": \"relative_key\"}", "relative_key" },
    { "roberta_base", "{\"pad_token_id\": 0}", "pad_token_id" },
    { "fasttext", "{\"buckets\": 1000}", "power of two" },
    { "lstm", "{\"pooling\": \"sum\"}", "\"sum\"" },
    { "lstm", "[1]", "not an object" },
};

START_TEST(configurations_are_read_or_refused)
{
    char message[256] = "";
    struct model_config config;
    const struct model *model = model_find(configs[_i].model);
    const bool read = model_config_read(configs[_i].json, model->config, &config, message, sizeof message);
    ck_assert_int_eq(read, configs[_i].refused == NULL);
    if (!read) ck_assert_msg(strstr(message, configs[_i].refused) != NULL, "%s", message);
    if (!read) return;
    ck_assert_int_eq(config.layers, 3);
    ck_assert_int_eq(config.kv_heads, 32);
    ck_assert(config.tied && config.bias.queries && !config.bias.output && !config.norm_of_queries);
    ck_assert_int_eq(config.window.size, 0);
}
END_TEST

/* What a config.json leaves out is as in transformers. */
START_TEST(configurations_have_published_defaults)
{
    static const struct {
        const char *model, *type;
        int64_t vocabulary, positions, hidden, layers;
    } defaults[] = {
        { "bert_tiny", "bert", 30522, 512, 3072, 12 },
        { "roberta_base", "roberta", 50265, 510, 3072, 12 },
        { "distilbert", "distilbert", 30522, 512, 3072, 6 },
        { "gpt2", "gpt2", 50257, 1024, 3072, 12 },
        { "llama", "llama", 32000, 2048, 11008, 32 },
        { "llama", "mistral", 32000, 131072, 14336, 32 },
        { "llama", "qwen3", 151936, 32768, 22016, 32 },
    };
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        char json[64], message[256] = "";
        struct model_config config;
        snprintf(json, sizeof json, "{\"model_type\": \"%s\"}", defaults[i].type);
        ck_assert_msg(model_config_read(json, model_find(defaults[i].model)->config, &config, message, sizeof message),
            "%s", message);
        ck_assert_int_eq(config.vocabulary, defaults[i].vocabulary);
        ck_assert_int_eq(config.positions, defaults[i].positions);
        ck_assert_int_eq(config.hidden ? config.hidden : 4 * config.width, defaults[i].hidden);
        ck_assert_int_eq(config.layers, defaults[i].layers);
    }
}
END_TEST

START_TEST(image_too_small_is_one_clear_line)
{
    tutti_tensor logits;
    tutti_network *network = build("vgg16", TUTTI_SHAPE(1, 28, 28), 10, &logits);
    ck_assert_int_lt(logits.id, 0);
    ck_assert_int_eq(tutti_network_status(network), TUTTI_SHAPE);
    ck_assert_ptr_null(strchr(tutti_message(NULL), '\n'));
    tutti_network_free(network);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("models");
    TCase *group = tcase_create("models");
    tcase_add_loop_test(group, numbers_of_parameters, 0, (int)(sizeof(sizes) / sizeof(sizes[0])));
    tcase_add_test(group, table_ends);
    tcase_add_loop_test(group, parameters_are_torchvisions, 0, (int)(sizeof(torchvision) / sizeof(torchvision[0])));
    tcase_add_loop_test(group, initial_values_are_torchvisions, 0, (int)(sizeof(initialised) / sizeof(initialised[0])));
    tcase_add_loop_test(group, other_sizes, 0, (int)(sizeof(others) / sizeof(others[0])));
    tcase_add_loop_test(group, takes_what_it_says, 0, (int)(sizeof(sizes) / sizeof(sizes[0])));
    tcase_add_test(group, samples_change_no_parameter);
    tcase_add_test(group, codes_are_embedded);
    tcase_add_loop_test(group, texts_have_both_targets, 0, (int)(sizeof(sizes) / sizeof(sizes[0])));
    tcase_add_test(group, configurations_have_published_defaults);
    tcase_add_loop_test(group, configurations_are_read_or_refused, 0, (int)(sizeof(configs) / sizeof(configs[0])));
    tcase_add_test(group, image_too_small_is_one_clear_line);
    suite_add_tcase(suite, group);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
