#include "models/models.h"

#include <string.h>

/* What models for text are made of, with their two functions. */
static const struct model_config lstm_config = { .family = FAMILY_LSTM,
    .vocabulary = 32000,
    .width = 256,
    .hidden = 256,
    .layers = 2,
    .bidirectional = true,
    .dropout = { .hidden = 0.3f } };
static const struct model_config gru_config = { .family = FAMILY_GRU,
    .vocabulary = 32000,
    .width = 256,
    .hidden = 256,
    .layers = 2,
    .bidirectional = true,
    .dropout = { .hidden = 0.3f } };
/* nanoGPT's, for the characters of Shakespeare. */
static const struct model_config gpt_config = { .family = FAMILY_GPT,
    .vocabulary = 65,
    .positions = 256,
    .width = 384,
    .hidden = 1536,
    .layers = 6,
    .heads = 6,
    .dropout = { 0.2f, 0.2f, 0.2f, 0 },
    .deviation = 0.02f };

static bool is_language(enum model_family family)
{
    return family == FAMILY_GPT;
}

#define TEXT_MODEL(name, builder)                                                                     \
    static tutti_tensor name##_for(                                                                   \
        tutti_network *network, tutti_tensor ids, int classes, const struct model_facts *given)       \
    {                                                                                                 \
        struct model_facts facts = *given;                                                            \
        if (!facts.config) facts.config = &name##_config;                                             \
        return model_##builder(network, ids, classes, &facts);                                        \
    }                                                                                                 \
    static tutti_tensor name(tutti_network *network, tutti_tensor ids, int classes)                   \
    {                                                                                                 \
        const struct model_facts facts = { .tokens_are_classes = is_language(name##_config.family) }; \
        return name##_for(network, ids, classes, &facts);                                             \
    }
TEXT_MODEL(lstm, recurrent)
TEXT_MODEL(gru, recurrent)
TEXT_MODEL(gpt, gpt)
#define TEXT(name) .takes = MODEL_TAKES_TEXT, .config = &name##_config, .build = name, .build_for = name##_for

/* What networks for ImageNet take and give. */
#define IMAGENET .takes = MODEL_TAKES_IMAGES, .input = { 3, { 3, 224, 224 } }, .classes = 1000

/* The learning rates of the large networks are those of their papers and of torchvision's training scripts, scaled to
 * the batch given here: linearly for SGD, by the square root for AdamW. Warm-up, cosine schedules, label smoothing and
 * augmentation are left to the program. */
static const struct model models[] = {
    { .name = "linear",
        .description = "one dense unit, mean squared error",
        .input = { 1, { 1 } },
        .classes = 1,
        .loss = TUTTI_MSE,
        .learning_rate = 0.2f,
        .table_rate = 0.01f,
        .table_weight_decay = 0.01f,
        .batch = 32,
        .build = model_linear },
    { .name = "mlp",
        .description = "784-512-512-10 dense units with ReLU",
        .input = { 3, { 1, 28, 28 } },
        .classes = 10,
        .learning_rate = 0.05f,
        .momentum = 0.9f,
        .table_rate = 0.001f,
        .table_weight_decay = 0.3f,
        .batch = 64,
        .build = model_mlp },
    { .name = "tabular",
        .description = "residual network for tables (Gorishniy et al. 2021), with hinges of each column",
        .input = { 1, { 64 } },
        .classes = 10,
        .optimizer = TUTTI_ADAMW,
        .learning_rate = 0.001f,
        .weight_decay = 0.3f,
        .table_rate = 0.001f,
        .table_weight_decay = 0.3f,
        .few_epochs = 40,
        .batch = 64,
        .build = model_tabular,
        .build_for = model_tabular_for },
    { .name = "lenet",
        .description = "two 5x5 convolutions with pooling, two dense layers",
        .takes = MODEL_TAKES_IMAGES,
        .input = { 3, { 1, 28, 28 } },
        .classes = 10,
        .learning_rate = 0.05f,
        .momentum = 0.9f,
        .batch = 64,
        .build = model_lenet },
    { .name = "vgg16",
        .description = "VGG, 16 layers, configuration D (Simonyan, Zisserman 2014)",
        IMAGENET,
        .learning_rate = 0.001f,
        .momentum = 0.9f,
        .weight_decay = 5e-4f,
        .batch = 16,
        .build = model_vgg16 },
    { .name = "resnet18",
        .description = "residual network, 18 layers (He et al. 2015)",
        IMAGENET,
        .learning_rate = 0.0125f,
        .momentum = 0.9f,
        .weight_decay = 1e-4f,
        .batch = 32,
        .build = model_resnet18 },
    { .name = "resnet50",
        .description = "residual network, 50 layers, bottlenecks, stride in the 3x3 convolution",
        IMAGENET,
        .learning_rate = 0.0125f,
        .momentum = 0.9f,
        .weight_decay = 1e-4f,
        .batch = 32,
        .build = model_resnet50 },
    { .name = "mobilenet_v2",
        .description = "inverted residuals, depthwise convolutions (Sandler et al. 2018)",
        IMAGENET,
        .learning_rate = 0.006f,
        .momentum = 0.9f,
        .weight_decay = 4e-5f,
        .batch = 32,
        .build = model_mobilenet_v2 },
    /* The paper's optimizer is RMSProp, with another learning rate. */
    { .name = "efficientnet_b0",
        .description = "inverted residuals with squeeze and excitation (Tan, Le 2019)",
        IMAGENET,
        .learning_rate = 0.0125f,
        .momentum = 0.9f,
        .weight_decay = 1e-5f,
        .batch = 32,
        .build = model_efficientnet_b0 },
    { .name = "convnext_tiny",
        .description = "depthwise 7x7 convolutions and dense layers at each pixel (Liu et al. 2022)",
        IMAGENET,
        .optimizer = TUTTI_ADAMW,
        .learning_rate = 2.5e-4f,
        .weight_decay = 0.05f,
        .batch = 16,
        .build = model_convnext_tiny },
    { .name = "vit_b_16",
        .description = "vision transformer, base, patches of 16x16 (Dosovitskiy et al. 2020)",
        IMAGENET,
        .optimizer = TUTTI_ADAMW,
        .learning_rate = 1.9e-4f,
        .weight_decay = 0.3f,
        .batch = 16,
        .build = model_vit_b_16 },
    { .name = "unet",
        .description = "U-Net: classes for each pixel (Ronneberger et al. 2015)",
        .takes = MODEL_TAKES_IMAGES,
        .input = { 3, { 3, 128, 128 } },
        .classes = 2,
        .learning_rate = 0.001f,
        .momentum = 0.99f,
        .batch = 4,
        .build = model_unet },
    { .name = "lstm",
        .description = "two LSTM layers in both directions, attention pooling; classes of texts",
        TEXT(lstm),
        .input = { 1, { 128 } },
        .classes = 2,
        .optimizer = TUTTI_ADAMW,
        .learning_rate = 0.001f,
        .weight_decay = 0.01f,
        .batch = 32 },
    { .name = "gru",
        .description = "two GRU layers in both directions, attention pooling; classes of texts",
        TEXT(gru),
        .input = { 1, { 128 } },
        .classes = 2,
        .optimizer = TUTTI_ADAMW,
        .learning_rate = 0.001f,
        .weight_decay = 0.01f,
        .batch = 32 },
    { .name = "gpt",
        .description = "nanoGPT, 6 layers of 384 units; predicts the next token of a text",
        TEXT(gpt),
        .input = { 1, { 256 } },
        .classes = 65,
        .optimizer = TUTTI_ADAMW,
        .learning_rate = 0.001f,
        .weight_decay = 0.1f,
        .batch = 12 },
};
#define MODEL_COUNT ((int)(sizeof(models) / sizeof(models[0])))

bool model_predicts_tokens(const struct model *model)
{
    return model->config && is_language(model->config->family);
}

const struct model *model_find(const char *name)
{
    for (int i = 0; i < MODEL_COUNT; i++) {
        if (strcmp(models[i].name, name) == 0) return &models[i];
    }
    return NULL;
}

const struct model *model_at(int position)
{
    return position >= 0 && position < MODEL_COUNT ? &models[position] : NULL;
}
