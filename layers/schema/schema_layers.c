/* Schemas of layers and losses that have a public function, which tutti_op() calls. */
#include "layers/batch_norm/batch_norm.h"
#include "layers/schema/schema.h"
#include "tutti_sequences.h"

#include <limits.h>

/* Returns input i for a member of options; NULL: it was not given. */
static const tutti_tensor *optional(const tutti_tensor *inputs, int count, int i)
{
    return i < count ? &inputs[i] : NULL;
}

/* Returns the number as an int. A number that does not fit becomes the nearest int, which is never an axis or a label.
 */
static int fitted(int64_t number)
{
    return (int)(number > INT_MAX ? INT_MAX : number < INT_MIN ? INT_MIN : number);
}

/* ---- shapes, pooling, normalisation ---- */

struct pixels_options {
    int64_t height, width;
};
struct batch_norm_options {
    float epsilon, momentum;
    bool biased_variance;
};
struct normalise_options {
    struct reals mean, std;
    float scale;
};
struct einsum_options {
    char equation[OP_TEXT];
};

/* Refuses 0, which a text would state as a value: in the options of layers, 0 means the default. */
static bool is_not_zero(
    tutti_network *network, const char *operation, const char *attribute, float number, const char *wanted)
{
    if (number == 0)
        network_fail(network, fail(TUTTI_INVALID, "%s: %s is 0: it must be %s", operation, attribute, wanted));
    return number != 0;
}

LAYER(flatten, tutti_flatten(network, inputs[0]))
LAYER(relu6, tutti_relu6(network, inputs[0]))
LAYER(global_average_pool, tutti_global_average_pool(network, inputs[0]))
LAYER(global_max_pool, tutti_global_max_pool(network, inputs[0]))
LAYER(adaptive_average_pool, tutti_adaptive_average_pool(network, inputs[0], READ(pixels)->height, READ(pixels)->width))
LAYER(einsum, tutti_einsum(network, READ(einsum)->equation, inputs, count))

static tutti_tensor batch_norm(tutti_network *network, const tutti_tensor *inputs, int count, const void *options)
{
    const float epsilon = READ(batch_norm)->epsilon, momentum = READ(batch_norm)->momentum;
    if (!is_not_zero(network, "batch_norm", "epsilon", epsilon, "positive") ||
        !is_not_zero(network, "batch_norm", "momentum", momentum, "above 0 and at most 1"))
        return (tutti_tensor) { NO_VALUE };
    return batch_norm_build(network, inputs[0],
        &(tutti_batch_norm_options) { .epsilon = epsilon,
            .momentum = momentum,
            .weight = optional(inputs, count, 1),
            .bias = optional(inputs, count, 2) },
        READ(batch_norm)->biased_variance);
}

static tutti_tensor normalise(tutti_network *network, const tutti_tensor *inputs, int count, const void *options)
{
    const struct reals *means = &READ(normalise)->mean, *deviations = &READ(normalise)->std;
    float mean[REALS] = { 0 }, std[REALS] = { 0 };
    (void)count;
    if (means->count && deviations->count && means->count != deviations->count)
        return network_fail(network,
            fail(TUTTI_INVALID, "normalise: it got %d means and %d deviations: pass one of both for each channel",
                means->count, deviations->count));
    if (!is_not_zero(network, "normalise", "scale", READ(normalise)->scale, "another number"))
        return (tutti_tensor) { NO_VALUE };
    for (int c = 0; c < means->count; c++) mean[c] = (float)means->numbers[c];
    for (int c = 0; c < deviations->count; c++) std[c] = (float)deviations->numbers[c];
    return tutti_normalise(network, inputs[0],
        &(tutti_normalise_options) { .scale = READ(normalise)->scale,
            .mean = means->count ? mean : NULL,
            .std = deviations->count ? std : NULL,
            .channels = means->count ? means->count : deviations->count });
}

/* ---- sequences and spectra ---- */

struct attention_options {
    int64_t heads, kv_heads, window_before, window_after;
    float scale, softcap, dropout;
    bool causal, mask_is_boolean;
};
struct recurrent_options {
    int64_t hidden;
    float clip;
    bool bidirectional, reverse, reset_before, input_forget;
};
struct spectrum_options {
    int64_t axis, length, rows, columns;
};

LAYER(attention,
    tutti_attention(network, inputs[0], inputs[1], inputs[2],
        &(tutti_attention_options) { .heads = READ(attention)->heads,
            .kv_heads = READ(attention)->kv_heads,
            .scale = READ(attention)->scale,
            .softcap = READ(attention)->softcap,
            .causal = READ(attention)->causal,
            .window_before = READ(attention)->window_before,
            .window_after = READ(attention)->window_after,
            .mask = optional(inputs, count, 3),
            .mask_is_boolean = READ(attention)->mask_is_boolean,
            .dropout = READ(attention)->dropout }))

#define RECURRENT_LAYER(name)                                                             \
    LAYER(name,                                                                           \
        tutti_##name(network, inputs[0], READ(recurrent)->hidden,                         \
            &(tutti_recurrent_options) { .bidirectional = READ(recurrent)->bidirectional, \
                .reverse = READ(recurrent)->reverse,                                      \
                .clip = READ(recurrent)->clip,                                            \
                .reset_before = READ(recurrent)->reset_before,                            \
                .input_forget = READ(recurrent)->input_forget,                            \
                .w = optional(inputs, count, 1),                                          \
                .r = optional(inputs, count, 2),                                          \
                .b = optional(inputs, count, 3) }))
RECURRENT_LAYER(lstm)
RECURRENT_LAYER(gru)
RECURRENT_LAYER(rnn)

LAYER(rfft, tutti_rfft(network, inputs[0], fitted(READ(spectrum)->axis), READ(spectrum)->length))
LAYER(irfft, tutti_irfft(network, inputs[0], fitted(READ(spectrum)->axis), READ(spectrum)->length))
LAYER(rfft2, tutti_rfft2(network, inputs[0]))
LAYER(irfft2, tutti_irfft2(network, inputs[0], READ(spectrum)->columns))
LAYER(rfft2_modes, tutti_rfft2_modes(network, inputs[0], READ(spectrum)->rows, READ(spectrum)->columns))
LAYER(irfft2_modes, tutti_irfft2_modes(network, inputs[0], READ(spectrum)->rows, READ(spectrum)->columns))

/* ---- losses ---- */

struct class_loss_options {
    int64_t class_axis, ignored;
    float label_smoothing;
};
struct loss_options {
    float delta;
};
struct ctc_options {
    int64_t blank;
    bool zero_infinity, sum;
};

#define CLASS_LOSS(name)                                                                \
    LAYER(name,                                                                         \
        tutti_##name(network, inputs[0], inputs[1],                                     \
            &(tutti_loss_options) { .class_axis = fitted(READ(class_loss)->class_axis), \
                .label_smoothing = READ(class_loss)->label_smoothing,                   \
                .has_ignored = READ(class_loss)->ignored >= 0,                          \
                .ignored = fitted(READ(class_loss)->ignored) }))
#define LOSS(name) LAYER(name, tutti_##name(network, inputs[0], inputs[1], NULL))
CLASS_LOSS(cross_entropy)
CLASS_LOSS(nll)
LOSS(bce_with_logits)
LOSS(mse)
LOSS(l1)
LAYER(mean_loss, tutti_mean(network, inputs[0], &(tutti_mean_options) { .weights = optional(inputs, count, 1) }))

LAYER(ctc,
    tutti_ctc(network, inputs[0], inputs[1],
        &(tutti_ctc_options) { .blank = fitted(READ(ctc)->blank),
            .lengths = optional(inputs, count, 2),
            .zero_infinity = READ(ctc)->zero_infinity,
            .sum = READ(ctc)->sum }))

static tutti_tensor huber(tutti_network *network, const tutti_tensor *inputs, int count, const void *options)
{
    const float delta = READ(loss)->delta;
    (void)count;
    if (!is_not_zero(network, "huber", "delta", delta, "positive and finite")) return (tutti_tensor) { NO_VALUE };
    return tutti_huber(network, inputs[0], inputs[1], &(tutti_loss_options) { .delta = delta });
}

/* ---- the tables ---- */

#define NUMBER(name, of, member, value, text) ROW(NUMBER, name, OPTION_OF(of, member), value, text)
#define NUMBERS(name, of, member, text) ROW(NUMBERS, name, OPTION_OF(of, member), NULL, text)
#define INTEGER(name, of, member, value, text) ROW(INTEGER, name, OPTION_OF(of, member), value, text)
#define REQUIRED(name, of, member, text) ROW(INTEGER, name, OPTION_OF(of, member), NULL, text, .required = true)
#define FLAG(name, of, member, text) ROW(FLAG, name, OPTION_OF(of, member), "0", text)

#define PLAIN(name, text, shape)                           \
    {                                                      \
#name, text, INPUTS({ "x", shape }), .layer = name \
    }
#define RECURRENT(name, text, gates, biases, ...)                                                                     \
    {                                                                                                                 \
#name, text,                                                                                                  \
            INPUTS({ "x", "[length, features]" },                                                                     \
                { "w", "[directions, " gates "hidden, features], gates in ONNX's order; default: the layer's own",    \
                    true },                                                                                           \
                { "r", "[directions, " gates "hidden, hidden]; with w", true },                                       \
                { "b", "[directions, " biases "hidden]: those of w, then those of r; with w, default: none", true }), \
            OP_ATTRIBUTES(REQUIRED("hidden", recurrent, hidden, "size of the state"),                                 \
                FLAG("bidirectional", recurrent, bidirectional, "1: a second direction, from the last step on"),      \
                FLAG("reverse", recurrent, reverse,                                                                   \
                    "1: only the direction from the last step on; not with bidirectional"),                           \
                NUMBER("clip", recurrent, clip, "0", "bound of the functions' arguments; 0: none") __VA_ARGS__),      \
            .layer = name                                                                                             \
    }
#define AXIS_AND_LENGTH(axis_text, text) \
    OP_ATTRIBUTES(INTEGER("axis", spectrum, axis, "-1", axis_text), INTEGER("length", spectrum, length, "0", text))
static const struct op_schema layers[] = {
    PLAIN(flatten, "the elements of a sample along one axis", NULL),
    PLAIN(relu6, "min(max(x, 0), 6)", NULL),
    PLAIN(global_average_pool, "the mean of each channel", "[C, H, W]"),
    PLAIN(global_max_pool, "the maximum of each channel", "[C, H, W]"),
    { "adaptive_average_pool", "means of windows, as many as asked for: PyTorch's adaptive_avg_pool2d",
        INPUTS({ "x", "[C, H, W]" }),
        OP_ATTRIBUTES(
            REQUIRED("height", pixels, height, "of the result"), REQUIRED("width", pixels, width, "of the result")),
        .layer = adaptive_average_pool },
    { "batch_norm",
        "(x - mean) / sqrt(variance + epsilon) weight + bias for each channel: over the batch in training, by running "
        "statistics in inference",
        INPUTS({ "x", "[C, H, W] or [C]" }, { "weight", "[C]; default: the layer's own", true },
            { "bias", "as weight", true }),
        OP_ATTRIBUTES(NUMBER("epsilon", batch_norm, epsilon, "1e-5", "added to the variance; positive"),
            NUMBER("momentum", batch_norm, momentum, "0.1",
                "weight of the newest batch in the running statistics: above 0, at most 1"),
            FLAG("biased_variance", batch_norm, biased_variance,
                "1: the running variance is of the batch's biased variance; 0: of the unbiased one")),
        .layer = batch_norm },
    { "normalise", "(scale x - mean) / std as floats, for each of at most 16 channels",
        INPUTS({ "x", "[C, ...], an input of the network, of any type" }),
        OP_ATTRIBUTES(NUMBERS("mean", normalise, mean, "for each channel; default: 0"),
            NUMBERS("std", normalise, std, "for each channel; default: 1"),
            NUMBER("scale", normalise, scale, "1", "factor of x, such as 1/255 = 0.00392156863 for bytes")),
        .layer = normalise },
    { "einsum", "Einstein's summation, as numpy's einsum; letters name the axes of samples, without the batch",
        INPUTS({ "a", .repeated = true }),
        OP_ATTRIBUTES({ "equation", TUTTI_ATTRIBUTE_TEXT, OPTION_OF(einsum, equation), NULL, "such as ij,jk->ik",
            .required = true }),
        .layer = einsum },
    { "attention", "softmax(q k^T scale + mask) v for each head: scaled dot-product attention",
        INPUTS({ "q", "[heads, length, width], or with `heads` [length, heads width]" },
            { "k", "[kv_heads, keys, width], or [keys, kv_heads width]" },
            { "v", "as k; its width may be another one" },
            { "mask", "broadcast to [heads, length, keys], and added to the scores, if it is not boolean", true }),
        OP_ATTRIBUTES(INTEGER("heads", attention, heads, "0", "0: heads are an axis of q, k and v"),
            INTEGER("kv_heads", attention, kv_heads, "0", "with heads: those of k and v; 0: as many as q"),
            NUMBER("scale", attention, scale, "0", "of the products; 0: 1 / sqrt(width)"),
            NUMBER("softcap", attention, softcap, "0", "scores become softcap tanh(scores / softcap); 0: they stay"),
            FLAG("causal", attention, causal, "1: a query sees no key after its own position"),
            INTEGER("window_before", attention, window_before, "0",
                "1 + number of keys before its position that a query sees; 0: all"),
            INTEGER("window_after", attention, window_after, "0",
                "1 + number of keys after its position that a query sees; 0: all; without causal"),
            FLAG("mask_is_boolean", attention, mask_is_boolean,
                "1: the mask is not added; keys where it is 0 are not seen"),
            NUMBER("dropout", attention, dropout, "0",
                "in training, the share of probabilities that become 0; the others are divided by 1 - dropout")),
        .layer = attention },
    RECURRENT(lstm, "PyTorch's LSTM of one layer, with batch_first", "4 ", "8 ", ,
        FLAG("input_forget", recurrent, input_forget, "1: the forget gate is 1 less the input gate")),
    RECURRENT(gru, "PyTorch's GRU of one layer, with batch_first", "3 ", "6 ", ,
        FLAG("reset_before", recurrent, reset_before, "1: the reset gate multiplies h before its product")),
    RECURRENT(rnn, "PyTorch's RNN of one layer, with batch_first and tanh", "", "2 "),
    { "rfft", "the Fourier transform of real numbers: length / 2 + 1 bins, and an axis of size 2 after",
        INPUTS({ "x" }), AXIS_AND_LENGTH("the axis to transform", "x is padded or cut to it; 0: the axis's"),
        .layer = rfft },
    { "irfft", "the inverse of rfft", INPUTS({ "x", "[..., bins, ..., 2]" }),
        AXIS_AND_LENGTH("the axis of the bins, counted without the last one", "of the result; 0: 2 (bins - 1)"),
        .layer = irfft },
    PLAIN(rfft2, "rfft over the last two axes", "[..., height, width]"),
    { "irfft2", "the inverse of rfft2", INPUTS({ "x", "[..., height, bins, 2]" }),
        OP_ATTRIBUTES(INTEGER("width", spectrum, columns, "0", "of the result; 0: 2 (bins - 1)")), .layer = irfft2 },
    { "rfft2_modes", "the lowest frequencies of rfft2", INPUTS({ "x", "[..., height, width]" }),
        OP_ATTRIBUTES(REQUIRED("rows", spectrum, rows, "number of frequencies of the height, around 0"),
            REQUIRED("columns", spectrum, columns, "number of frequencies of the width, from 0 on")),
        .layer = rfft2_modes },
    { "irfft2_modes", "the inverse of rfft2_modes; other frequencies are 0", INPUTS({ "x", "[..., rows, columns, 2]" }),
        OP_ATTRIBUTES(
            REQUIRED("height", spectrum, rows, "of the result"), REQUIRED("width", spectrum, columns, "of the result")),
        .layer = irfft2_modes },
    { 0 },
};

#define CLASSES(targets_text) INPUTS({ "x", "[classes, ...]" }, { "targets", targets_text })
#define CLASS_ARGUMENTS                                                                                           \
    OP_ATTRIBUTES(INTEGER("class_axis", class_loss, class_axis, "0", "axis of the classes"),                      \
        NUMBER("label_smoothing", class_loss, label_smoothing, "0", "part of the target that all classes share"), \
        INTEGER("ignored", class_loss, ignored, "-1",                                                             \
            "a label whose loss is 0, as that of negative labels is; it counts in the mean"))
#define SAME INPUTS({ "x" }, { "targets", "t, as x" })
static const struct op_schema losses[] = {
    { "cross_entropy", "-log(softmax(x)[label]), the mean", CLASSES("[...] of int32: labels; or probabilities, as x"),
        CLASS_ARGUMENTS, .layer = cross_entropy },
    { "nll", "-x[label] of logarithms of probabilities, the mean", CLASSES("[...] of int32: labels"), CLASS_ARGUMENTS,
        .layer = nll },
    { "bce_with_logits", "-t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x)) for targets t from 0 to 1, the mean", SAME,
        .layer = bce_with_logits },
    { "mse", "(x - t)^2, the mean", SAME, .layer = mse },
    { "l1", "|x - t|, the mean", SAME, .layer = l1 },
    { "huber", "(x - t)^2 / 2 where |x - t| <= delta, else delta (|x - t| - delta / 2), the mean", SAME,
        OP_ATTRIBUTES(NUMBER("delta", loss, delta, "1", "the error from which the loss is linear; positive")),
        .layer = huber },
    { "ctc", "connectionist temporal classification: labels in order, whose frames are not known; over their number",
        INPUTS({ "x", "[frames, classes], logits" },
            { "targets", "[labels] of int32, which end at the first one below 0" },
            { "lengths", "frames of each sample, one number; default: all", true }),
        OP_ATTRIBUTES(INTEGER("blank", ctc, blank, "0", "the class of a frame without a label"),
            FLAG("zero_infinity", ctc, zero_infinity,
                "1: samples with more labels than their frames can have lose 0, not infinity"),
            FLAG("sum", ctc, sum, "1: the loss is not divided by the number of labels")),
        .layer = ctc },
    { "mean_loss", "the mean of x, or of x times weights", INPUTS({ "x" }, { "weights", "broadcast with x", true }),
        .layer = mean_loss },
    { 0 },
};

const struct op_group schema_layers = { "Layers", layers };
const struct op_group schema_losses = { "Losses", losses };
