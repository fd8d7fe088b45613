/* batch_norm n c [h w] [conv r stride depthwise nobias act low high residual two then thenr thenstride shortcut offset]
 *   h absent  features instead of images
 *   conv      a convolution r x r (or a dense layer) with that many outputs comes before: inference folds
 *   depthwise a depthwise convolution 3x3 comes before
 *   then      1: a depthwise convolution 3x3 comes after, else one of thenr x thenr with that many outputs: the
 *             gradient of the output arrives through its data gradient
 *   r, stride, thenr, thenstride: of these convolutions, 1 if absent; padding is half of the kernel
 *   shortcut  1: what the convolution after reads is added to its result: its data gradient has an addition
 *   twice     1: a second convolution like the one after reads the same, and the results are added
 *   residual  1: the input, 2: leaky relu of the input is added to the output. With 2 the addition and the activation
 *             are fused forward, and backward the mask and the gradient of the addition's other branch
 *   two       a second normalisation of the same input is added, so that gradients are added where they are made
 *   offset    added to every input: statistics must not cancel
 *
 * fold_batch_norm: the same, forward only: the gradient of a bias before a normalisation is zero but for rounding */
#include "tests/layers/cases.h"

#define EPSILON 1e-3
static const double slope = 0.25;

/* A convolution before or after the normalisation, with padding r / 2. */
struct side {
    int64_t in, out, groups, r, stride, h, w, oh, ow; /* out 0: there is none */
};

static struct side side_of(int64_t in, int64_t out, bool depthwise, int64_t r, int64_t stride, int64_t h, int64_t w)
{
    struct side l = { in, out, depthwise ? in : 1, r, stride, h, w, h, w };
    if (h) l.oh = (h + r / 2 * 2 - r) / stride + 1;
    if (h) l.ow = (w + r / 2 * 2 - r) / stride + 1;
    return l;
}

struct sizes {
    int64_t n, c, pixels; /* of the normalisation */
    struct side before, after;
};

static struct sizes sizes_of(const struct test_case *c)
{
    int64_t in = case_get(c, "c", 1), h = case_get(c, "h", 0), then = case_get(c, "then", 0);
    bool apart = case_get(c, "depthwise", 0);
    struct sizes z = { .n = case_get(c, "n", 1) };
    z.before = side_of(in, apart ? in : case_get(c, "conv", 0), apart, case_get(c, "r", apart ? 3 : 1),
        case_get(c, "stride", 1), h, case_get(c, "w", h));
    z.c = z.before.out ? z.before.out : in;
    z.pixels = h ? z.before.oh * z.before.ow : 1;
    z.after = side_of(z.c, then == 1 ? z.c : then, then == 1, case_get(c, "thenr", then == 1 ? 3 : 1),
        case_get(c, "thenstride", 1), z.before.oh, z.before.ow);
    return z;
}

static tutti_tensor append_layer(tutti_network *network, const struct side *l, bool no_bias, tutti_tensor x)
{
    if (!l->out) return x;
    if (!l->h) return tutti_dense(network, x, l->out, &(tutti_dense_options) { .no_bias = no_bias });
    return tutti_conv2d(network, x, l->out, l->r,
        &(tutti_conv2d_options) { .padding = l->r / 2, .stride = l->stride, .groups = l->groups, .no_bias = no_bias });
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    struct sizes z = sizes_of(c);
    const struct side *l = &z.before;
    tutti_tensor x = tutti_input(network, "x", l->h ? TUTTI_SHAPE(l->in, l->h, l->w) : TUTTI_SHAPE(l->in));
    x = append_layer(network, l, case_get(c, "nobias", 0), x);
    tutti_batch_norm_options options = { .epsilon = (float)EPSILON, .momentum = 0.25f };
    tutti_tensor other = case_get(c, "residual", 0) == 2 ? tutti_leaky_relu(network, x, (float)slope) : x;
    tutti_tensor y = tutti_batch_norm(network, x, &options);
    if (case_get(c, "residual", 0)) y = tutti_add(network, y, other);
    if (case_get(c, "two", 0)) y = tutti_add(network, y, tutti_batch_norm(network, x, &options));
    y = test_activation(network, c, y);
    tutti_tensor last = append_layer(network, &z.after, true, y);
    if (case_get(c, "twice", 0)) last = tutti_add(network, last, append_layer(network, &z.after, true, y));
    return case_get(c, "shortcut", 0) ? tutti_add(network, last, y) : last;
}

static void fill(const struct test_case *c, float *input, int64_t count)
{
    for (int64_t i = 0; i < count; i++) input[i] = test_real(1, i) + (float)case_get_real(c, "offset", 0);
}

static int64_t length(const struct test_case *c)
{
    struct sizes z = sizes_of(c);
    return z.n * z.pixels + z.before.in * z.before.r * z.before.r;
}

static const char *const cases[] = {
    "batch_norm n4 c3 h5 w7",
    "batch_norm n2 c1 h3",
    "batch_norm n1 c16 h9 w5 act1",
    "batch_norm n3 c17 h6 w4 act1",
    "batch_norm n2 c32 h7 act2 low-0.5 high0.75",
    "batch_norm n2 c5 h6 act2 low0.25 high1.5",
    "batch_norm n2 c5 h6 act2 low-inf high0.75",
    "batch_norm n2 c20 h5 w6 residual1 act1",
    "batch_norm n3 c16 h8 w7 residual1 act1",
    "batch_norm n2 c6 h4 w5 residual1 act2 low-0.5 high0.75",
    "batch_norm n2 c18 h5 residual1",
    "batch_norm n2 c20 h5 w6 residual2 act1",
    "batch_norm n3 c16 h8 w7 residual2 act1",
    "batch_norm n2 c6 h4 w5 residual2 act2 low-0.5 high0.75",
    "batch_norm n1 c5 h30 w27 residual2 act1",
    "batch_norm n6 c32 residual2 act1",
    "batch_norm n2 c12 h5 w4 two1",
    "batch_norm n2 c33 h4 w5 two1 act3 low0.25",
    "batch_norm n2 c7 h5 act4",
    "batch_norm n2 c19 h5 act5",
    "batch_norm n16 c3 h1",
    "batch_norm n9 c40 h1 act1",
    "batch_norm n3 c4 h33 w31 act1",
    "batch_norm n1 c3 h67 w61",
    "batch_norm n4 c8 h20 w19 residual1 act1",
    "batch_norm n2 c10 h8 w9 offset100",
    "batch_norm n8 c3",
    "batch_norm n7 c32 act1",
    "batch_norm n19 c50 act2 low-0.4 high0.65",
    "batch_norm n64 c16",
    "batch_norm n5 c48 residual1 act1",
    "batch_norm n2 c5 h6 conv7 nobias1",
    "batch_norm n3 c3 h5 w4 conv18 nobias1 act1",
    "batch_norm n3 c5 h23 w19 conv35 nobias1",
    "batch_norm n2 c5 h9 w6 conv17 nobias1 residual2 act1",
    "batch_norm n2 c6 h17 w19 conv70 nobias1",
    "batch_norm n2 c8 h5 conv16 nobias1 two1",
    "batch_norm n3 c18 h7 w5 depthwise1 nobias1 act2 low0 high6",
    "batch_norm n2 c5 h31 w33 depthwise1 nobias1",
    "batch_norm n3 c18 h7 w5 act2 low-0.5 high0.75 then1",
    "batch_norm n2 c5 h13 w9 act1 then20",
    /* not stored: the depthwise convolution after normalises what it loads; the activation is not 0 at 0, where the
     * padding is; statistics of a convolution and its own; an activation that would cost too much */
    "batch_norm n2 c32 h11 w17 depthwise1 nobias1 act2 low0.25 high1.5 then1 thenstride2",
    "batch_norm n3 c17 h9 w8 depthwise1 nobias1 act1 then1 thenr5",
    "batch_norm n2 c17 h9 w30 act3 low0.25 then1 thenstride2",
    "batch_norm n1 c16 h1 w2 then1",
    "batch_norm n2 c35 h13 w33 offset50 then1",
    "batch_norm n2 c18 h13 w11 depthwise1 stride2 nobias1 act1 then1 thenr5 thenstride2",
    "batch_norm n2 c9 h8 w15 act4 then1",
    "batch_norm n2 c18 h8 w9 act1 then1 twice1 thenstride2",
    "batch_norm n3 c35 h9 w14 then7",
    "batch_norm n2 c20 h5 w6 act1 residual2 then1",
    "batch_norm n2 c18 h9 w13 conv20 r3 stride2 nobias1 act1",
    "batch_norm n3 c40 h8 w7 conv70 r3 stride2 nobias1",
    "batch_norm n2 c3 h33 w35 conv24 r7 stride2 nobias1 act1",
    "batch_norm n1 c4 h22 w19 conv16 r5 stride2 nobias1",
    "batch_norm n2 c3 h13 w16 conv9 r3 nobias1",
    /* winograd: tiles past the border, tails of channels, several chunks of tiles, deep layers */
    "batch_norm n3 c16 h14 w13 conv33 nobias1 r3 then17 thenr3",
    "batch_norm n2 c20 h7 w6 conv35 nobias1 r5 then16 thenr5",
    "batch_norm n2 c18 h9 w13 act1 then20 thenr3 thenstride2",
    "batch_norm n3 c40 h8 w7 act2 low-0.5 high0.75 then20 thenr3 thenstride2",
    "batch_norm n1 c20 h11 w90 then17 thenr5 thenstride3",
    "batch_norm n2 c20 h5 w6 act1 then20 shortcut1",
    "batch_norm n2 c18 h7 w13 act1 residual2 then18 shortcut1",
    "batch_norm n3 c33 h6 w7 act2 low-0.5 high0.75 residual2 then1 shortcut1",
    "batch_norm n2 c17 h6 w9 act1 residual2 then17 thenr7 shortcut1",
    "batch_norm n2 c20 h9 w7 act1 residual2 then20 thenr3 shortcut1",
    "batch_norm n2 c18 h9 w8 act1 residual2 then20 thenr3 thenstride2",
    "batch_norm n2 c700 h6 w7 conv20 nobias1",
    "batch_norm n2 c18 h9 w8 act1 residual2 then700",
    "batch_norm n6 c9 conv20 nobias1",
    "batch_norm n6 c9 conv13 nobias1 act1",
    NULL,
};

/* The input as it is, and rounded by a convolution; with each mask, each addition, and each place where statistics
 * are made. */
static const char *const bf16_cases[] = {
    "batch_norm n3 c4 h33 w31 act1",
    "batch_norm n4 c8 h20 w19 residual1 act1",
    "batch_norm n3 c5 h23 w19 conv35 nobias1",
    "batch_norm n2 c8 h5 conv16 nobias1 two1",
    "batch_norm n2 c5 h31 w33 depthwise1 nobias1",
    "batch_norm n3 c18 h7 w5 act2 low-0.5 high0.75 then1",
    "batch_norm n2 c5 h13 w9 act1 then20",
    "batch_norm n2 c20 h5 w6 act1 residual2 then1",
    "batch_norm n2 c18 h7 w13 act1 residual2 then18 shortcut1",
    "batch_norm n3 c33 h6 w7 act1 residual2 then1 shortcut1",
    NULL,
};

static const struct operation_test test_batch_norm = {
    .name = "batch_norm",
    .build = build,
    .cases = cases,
    .bf16_cases = bf16_cases,
    .tolerance = TOLERANCE_NORMALISED,
    .length = length,
    .inference = true,
    .fill = fill,
};

static const char *const fold_cases[] = {
    "fold_batch_norm n2 c5 h6 conv7",
    "fold_batch_norm n2 c4 h6 conv16 act2 low0 high6",
    "fold_batch_norm n1 c17 h3 w5 conv33 act1",
    "fold_batch_norm n6 c9 conv20",
    "fold_batch_norm n2 c7 h16 w15 conv20 offset50",
    "fold_batch_norm n2 c20 h16 w15 depthwise1 offset50 act2 low0 high6",
    "fold_batch_norm n6 c9 conv16 act1",
    NULL,
};

static const struct operation_test test_fold_batch_norm = {
    .name = "fold_batch_norm",
    .build = build,
    .cases = fold_cases,
    .tolerance = TOLERANCE_NORMALISED,
    .length = length,
    .inference = true,
    .no_gradient = true,
};

OPERATION_TESTS(test_batch_norm, &test_batch_norm, &test_fold_batch_norm)
