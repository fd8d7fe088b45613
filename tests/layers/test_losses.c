/* Losses that are nodes of the network. The predictions are a dense layer's of k features, reshaped to [c] or, with h
 * and w, to [c, h, w], or with axis-1 to [h, w, c].
 *
 * cross_entropy_node, nll n c [k h w axis smoothing ignored weights]: every fourth label is negative, or `ignored`;
 *   weights1: classes have weights
 * soft_cross_entropy n c [k h w axis smoothing weights]: the same with probabilities as targets
 * ctc n c t s [k blank lengths zero_infinity sum]: t frames, at most s labels; lengths1: samples have several lengths
 * l1, huber, bce_with_logits n c [k h w delta]
 * mean_loss n c [k h w]: the targets are its weights */
#include <string.h>

#include "tests/layers/cases.h"

static bool has_positions(const struct test_case *c)
{
    return case_get(c, "h", 0) > 0;
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    const int64_t classes = case_get(c, "c", 1), h = case_get(c, "h", 1), w = case_get(c, "w", 1);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(case_get(c, "k", 4))),
                       y = tutti_dense(network, x, classes * h * w, NULL);
    if (!has_positions(c)) return y;
    return tutti_reshape(
        network, y, case_get(c, "axis", 0) < 0 ? TUTTI_SHAPE(h, w, classes) : TUTTI_SHAPE(classes, h, w));
}

/* Class 2 has none. */
static const float *class_weights(const struct test_case *c)
{
    enum { CLASSES = 1024 };
    static float weights[CLASSES];
    for (int64_t u = 0; u < case_get(c, "c", 1); u++)
        weights[u] = (float)(u * 5 % 7 * 3 % 9) / 4 + (u != 2 ? 0.25f : 0);
    return case_get(c, "weights", 0) ? weights : NULL;
}

static tutti_loss_options options_of(const struct test_case *c)
{
    return (tutti_loss_options) { .size = sizeof(tutti_loss_options),
        .class_axis = (int)case_get(c, "axis", 0),
        .label_smoothing = (float)case_get_real(c, "smoothing", 0),
        .has_ignored = case_get(c, "ignored", -1) >= 0,
        .ignored = (int32_t)case_get(c, "ignored", 0),
        .delta = (float)case_get_real(c, "delta", 0),
        .class_weights = class_weights(c),
        .class_weight_count = case_get(c, "weights", 0) ? (int)case_get(c, "c", 1) : 0 };
}

/* --------------------------------------------------------------------------------------------------- classes ---- */

static int32_t label_of(const struct test_case *c, int64_t i)
{
    const int64_t classes = case_get(c, "c", 1), ignored = case_get(c, "ignored", -1);
    if (i % 4 == 3) return ignored >= 0 ? (int32_t)ignored : -1 - (int32_t)(i % 100);
    return (int32_t)((i * 7 + 3) % classes);
}

static void labels(const struct test_case *c, void *targets, int64_t count)
{
    const int64_t each = count / case_get(c, "c", 1);
    for (int64_t i = 0; i < each; i++) ((int32_t *)targets)[i] = label_of(c, i);
}

static tutti_tensor label_input(tutti_network *network, const struct test_case *c)
{
    const int64_t sizes[] = { case_get(c, "h", 1), case_get(c, "w", 1) };
    return tutti_input_typed(network, "labels", TUTTI_DTYPE_I64, sizes, has_positions(c) ? 2 : 0);
}

static tutti_tensor cross_entropy_loss(tutti_network *network, tutti_tensor output, const struct test_case *c)
{
    const tutti_loss_options options = options_of(c);
    return tutti_cross_entropy(network, output, label_input(network, c), &options);
}

static tutti_tensor nll_loss(tutti_network *network, tutti_tensor output, const struct test_case *c)
{
    const tutti_loss_options options = options_of(c);
    return tutti_nll(network, output, label_input(network, c), &options);
}

static const char *const cross_entropy_cases[] = {
    "cross_entropy_node n3 c5",
    "cross_entropy_node n5 c3 h3 w7 k2",
    "cross_entropy_node n3 c19 h1 w33 k2",
    "cross_entropy_node n2 c7 h5 w3 k2 axis-1",
    "cross_entropy_node n9 c10 smoothing0.1",
    "cross_entropy_node n2 c21 h4 w5 k2 smoothing0.25",
    "cross_entropy_node n6 c65 smoothing0.1 ignored2",
    "cross_entropy_node n2 c4 h9 w5 k2 ignored1",
    "cross_entropy_node n2 c3 h41 w53 k2",
    "cross_entropy_node n3 c5 weights1",
    "cross_entropy_node n5 c3 h3 w7 k2 weights1",
    "cross_entropy_node n9 c67 smoothing0.1 weights1",
    "cross_entropy_node n2 c19 h3 w11 k2 smoothing0.25 ignored2 weights1",
    "cross_entropy_node n2 c7 h5 w3 k2 axis-1 smoothing0.5 weights1",
    NULL,
};
static const struct operation_test test_cross_entropy_node = {
    .name = "cross_entropy_node",
    .build = build,
    .cases = cross_entropy_cases,
    .tolerance = TOLERANCE_FUNCTION,
    .loss = cross_entropy_loss,
    .targets = labels,
};

static const char *const nll_cases[] = {
    "nll n3 c5",
    "nll n5 c33 k3",
    "nll n2 c300 k2 smoothing0.1",
    "nll n3 c6 h5 w7 k2",
    "nll n3 c6 h3 w5 k2 smoothing0.3 ignored4",
    "nll n3 c5 weights1",
    "nll n5 c33 k3 smoothing0.2 weights1",
    "nll n3 c6 h5 w7 k2 weights1",
    "nll n2 c6 h3 w5 k2 smoothing0.3 ignored4 weights1",
    NULL,
};
static const struct operation_test test_nll = {
    .name = "nll",
    .build = build,
    .cases = nll_cases,
    .tolerance = TOLERANCE_SUM,
    .loss = nll_loss,
    .targets = labels,
};

/* -------------------------------------------------------------------------------------------------- elements ---- */

static double target_of(const struct test_case *c, int64_t i)
{
    const double real = (double)test_real(77, i);
    return strncmp(c->line, "bce", 3) ? real : (double)(float)(0.5 * real + 0.5);
}

static void floats(const struct test_case *c, void *targets, int64_t count)
{
    for (int64_t i = 0; i < count; i++) ((float *)targets)[i] = (float)target_of(c, i);
}

static tutti_tensor element_input(tutti_network *network, const struct test_case *c)
{
    const int64_t sizes[] = { case_get(c, "c", 1), case_get(c, "h", 1), case_get(c, "w", 1) };
    return tutti_input_typed(network, "targets", TUTTI_DTYPE_F32, sizes, has_positions(c) ? 3 : 1);
}

static tutti_tensor l1_loss(tutti_network *network, tutti_tensor output, const struct test_case *c)
{
    return tutti_l1(network, output, element_input(network, c), NULL);
}

static tutti_tensor huber_loss(tutti_network *network, tutti_tensor output, const struct test_case *c)
{
    const tutti_loss_options options = options_of(c);
    return tutti_huber(network, output, element_input(network, c), &options);
}

static tutti_tensor bce_loss(tutti_network *network, tutti_tensor output, const struct test_case *c)
{
    return tutti_bce_with_logits(network, output, element_input(network, c), NULL);
}

/* Their sums are not 1: the gradient depends on them. Every third is 0. */
static void probabilities(const struct test_case *c, void *targets, int64_t count)
{
    const float scale = 2 / (float)case_get(c, "c", 1);
    for (int64_t i = 0; i < count; i++)
        ((float *)targets)[i] = i % 3 == 2 ? 0 : scale * (0.5f + 0.5f * test_real(78, i));
}

static tutti_tensor soft_loss(tutti_network *network, tutti_tensor output, const struct test_case *c)
{
    tutti_shape shape;
    const tutti_loss_options options = options_of(c);
    (void)tutti_shape_of(network, output, &shape);
    return tutti_cross_entropy(
        network, output, tutti_input_typed(network, "targets", TUTTI_DTYPE_F32, shape.sizes, shape.rank), &options);
}

static const char *const soft_cases[] = {
    "soft_cross_entropy n3 c5",
    "soft_cross_entropy n130 c3 k2",
    "soft_cross_entropy n2 c1001 k2",
    "soft_cross_entropy n9 c67 smoothing0.1",
    "soft_cross_entropy n5 c3 h3 w7 k2 weights1",
    "soft_cross_entropy n2 c19 h3 w11 k2 smoothing0.25 weights1",
    "soft_cross_entropy n2 c7 h5 w3 k2 axis-1 smoothing0.5 weights1",
    NULL,
};
static const struct operation_test test_soft_cross_entropy = {
    .name = "soft_cross_entropy",
    .build = build,
    .cases = soft_cases,
    .tolerance = TOLERANCE_FUNCTION,
    .loss = soft_loss,
    .targets = probabilities,
};

/* ------------------------------------------------------------------------------------------------------- ctc ---- */

static tutti_tensor build_frames(tutti_network *network, const struct test_case *c)
{
    const int64_t frames = case_get(c, "t", 1), classes = case_get(c, "c", 2);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(case_get(c, "k", 4)));
    return tutti_reshape(network, tutti_dense(network, x, frames * classes, NULL), TUTTI_SHAPE(frames, classes));
}

/* Labels of sample n: as many as its frames have room for, with repeated ones, from none on. */
static int64_t labels_of_sample(const struct test_case *c, int64_t n, int32_t *to)
{
    const int64_t listed = case_get(c, "s", 1), classes = case_get(c, "c", 2), blank = case_get(c, "blank", 0);
    const int64_t frames = case_get(c, "t", 1) - (case_get(c, "lengths", 0) ? 2 : 0);
    int64_t count = 0, needed = 0;
    while (count < listed && count < n * 3 % (listed + 2)) {
        const int32_t label = (int32_t)((blank + 1 + (n + count / 2) % (classes - 1)) % classes);
        needed += 1 + (count && to[count - 1] == label);
        if (needed > frames && !case_get(c, "zero_infinity", 0)) break;
        to[count++] = label;
    }
    return count;
}

static void lists(const struct test_case *c, void *targets, int64_t count)
{
    const int64_t listed = case_get(c, "s", 1);
    (void)count;
    for (int64_t n = 0; n < case_get(c, "n", 1); n++) {
        int32_t *to = (int32_t *)targets + n * listed;
        for (int64_t i = labels_of_sample(c, n, to); i < listed; i++) to[i] = -1 - (int32_t)(i % 3);
    }
}

/* Lengths are made of the targets, the only input that tests fill with whole numbers: 2 less where the first label is
 * the smallest one. */
static tutti_tensor ctc_loss(tutti_network *network, tutti_tensor output, const struct test_case *c)
{
    const int64_t listed = case_get(c, "s", 1);
    const int blank = (int)case_get(c, "blank", 0);
    const tutti_tensor targets = tutti_input_typed(network, "targets", TUTTI_DTYPE_I32, &listed, 1);
    tutti_ctc_options options = { .size = sizeof options,
        .blank = blank,
        .zero_infinity = case_get(c, "zero_infinity", 0) != 0,
        .sum = case_get(c, "sum", 0) != 0 };
    tutti_tensor lengths = tutti_cast(network, targets, TUTTI_DTYPE_F32);
    lengths = tutti_op(network, "slice", &lengths, 1, "starts=0 ends=1 axes=0");
    const float smallest = blank == 0 ? 1 : 0, frames = (float)case_get(c, "t", 1), fewer = -2;
    const tutti_tensor compared[] = { lengths, tutti_constant(network, NULL, TUTTI_SHAPE(1), &smallest) };
    lengths = tutti_mul(
        network, tutti_op(network, "equal", compared, 2, NULL), tutti_constant(network, NULL, TUTTI_SHAPE(1), &fewer));
    lengths = tutti_add(network, lengths, tutti_constant(network, NULL, TUTTI_SHAPE(1), &frames));
    lengths = tutti_reshape(network, lengths, (tutti_shape) { 0 });
    if (case_get(c, "lengths", 0)) options.lengths = &lengths;
    return tutti_ctc(network, output, targets, &options);
}

static const char *const ctc_cases[] = {
    "ctc n3 c5 t7 s3",
    "ctc n1 c2 t1 s1",
    "ctc n5 c3 t13 s6 sum1",
    "ctc n7 c29 t31 s11 k2 lengths1",
    "ctc n9 c17 t9 s9 k3 blank16 zero_infinity1",
    "ctc n4 c130 t40 s35 k1 blank7 lengths1 zero_infinity1",
    "ctc n2 c70 t257 s33 k1",
    NULL,
};
static const struct operation_test test_ctc = {
    .name = "ctc",
    .build = build_frames,
    .cases = ctc_cases,
    .tolerance = TOLERANCE_FUNCTION,
    .loss = ctc_loss,
    .targets = lists,
};

static const char *const l1_cases[] = { "l1 n3 c5", "l1 n33 c1", "l1 n2 c3 h5 w7 k2", "l1 n700 c7 k2", NULL };
static const struct operation_test test_l1 = {
    .name = "l1",
    .build = build,
    .cases = l1_cases,
    .tolerance = TOLERANCE_SUM,
    .loss = l1_loss,
    .targets = floats,
};

static const char *const huber_cases[] = { "huber n3 c5", "huber n7 c37 delta0.5", "huber n2 c3 h5 w7 k2 delta0.25",
    NULL };
static const struct operation_test test_huber = {
    .name = "huber",
    .build = build,
    .cases = huber_cases,
    .tolerance = TOLERANCE_SUM,
    .loss = huber_loss,
    .targets = floats,
};

static const char *const bce_cases[] = { "bce_with_logits n3 c5", "bce_with_logits n33 c1",
    "bce_with_logits n2 c3 h5 w7 k2", "bce_with_logits n700 c7 k2", NULL };
static const struct operation_test test_bce_with_logits = {
    .name = "bce_with_logits",
    .build = build,
    .cases = bce_cases,
    .tolerance = TOLERANCE_FUNCTION,
    .loss = bce_loss,
    .targets = floats,
};

static tutti_tensor mean_loss(tutti_network *network, tutti_tensor output, const struct test_case *c)
{
    const tutti_tensor weights = element_input(network, c);
    return tutti_mean(
        network, output, &(tutti_mean_options) { .size = sizeof(tutti_mean_options), .weights = &weights });
}

static const char *const mean_cases[] = { "mean_loss n3 c5", "mean_loss n33 c1", "mean_loss n2 c3 h5 w7 k2",
    "mean_loss n700 c7 k2", NULL };
static const struct operation_test test_mean_loss = {
    .name = "mean_loss",
    .build = build,
    .cases = mean_cases,
    .tolerance = TOLERANCE_SUM,
    .loss = mean_loss,
    .targets = floats,
};

OPERATION_TESTS(test_losses, &test_cross_entropy_node, &test_nll, &test_soft_cross_entropy, &test_ctc, &test_l1,
    &test_huber, &test_bce_with_logits, &test_mean_loss)
