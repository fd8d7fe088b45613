/* conv2d n c h w k r [s pad padw stride stridew dil dilw groups nobias act add residual then]
 *   act       an activation follows (enum activation), which plans fuse
 *   residual  the input is added to the output (needs equal shapes): additions fused forward and backward
 *   then      a second convolution comes after, with that many outputs and else as the first: its data gradient goes
 * after the activation */
#include "tests/layers/cases.h"

struct convolution {
    int64_t n, c, h, w, k, r, s, pad_h, pad_w, stride_h, stride_w, dil_h, dil_w, groups, oh, ow;
};

static struct convolution sizes_of(const struct test_case *c)
{
    struct convolution z = { .n = case_get(c, "n", 1),
        .c = case_get(c, "c", 1),
        .h = case_get(c, "h", 1),
        .w = case_get(c, "w", case_get(c, "h", 1)),
        .k = case_get(c, "k", 1),
        .r = case_get(c, "r", 1),
        .s = case_get(c, "s", case_get(c, "r", 1)),
        .pad_h = case_get(c, "pad", 0),
        .pad_w = case_get(c, "padw", case_get(c, "pad", 0)),
        .stride_h = case_get(c, "stride", 1),
        .stride_w = case_get(c, "stridew", case_get(c, "stride", 1)),
        .dil_h = case_get(c, "dil", 1),
        .dil_w = case_get(c, "dilw", case_get(c, "dil", 1)),
        .groups = case_get(c, "groups", 1) };
    z.oh = (z.h + 2 * z.pad_h - z.dil_h * (z.r - 1) - 1) / z.stride_h + 1;
    z.ow = (z.w + 2 * z.pad_w - z.dil_w * (z.s - 1) - 1) / z.stride_w + 1;
    return z;
}

static tutti_tensor convolution(
    tutti_network *network, tutti_tensor x, const struct convolution *z, int64_t channels, bool no_bias)
{
    return tutti_conv2d(network, x, channels, z->r,
        &(tutti_conv2d_options) { .kernel_w = z->s,
            .padding = z->pad_h,
            .padding_w = z->pad_w ? z->pad_w : -1,
            .stride = z->stride_h,
            .stride_w = z->stride_w,
            .dilation = z->dil_h,
            .dilation_w = z->dil_w,
            .groups = z->groups,
            .no_bias = no_bias });
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    const struct convolution z = sizes_of(c);
    const int64_t then = case_get(c, "then", 0);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(z.c, z.h, z.w));
    tutti_tensor y = convolution(network, x, &z, z.k, case_get(c, "nobias", 0));
    if (case_get(c, "residual", 0)) y = tutti_add(network, y, x);
    y = test_activation(network, c, y);
    return then ? convolution(network, y, &z, then, true) : y;
}

/* Forward, data gradient and weight gradient sum over different things: the longest of them. */
static int64_t length(const struct test_case *c)
{
    struct convolution z = sizes_of(c);
    int64_t forward = z.c / z.groups * z.r * z.s, data = z.k / z.groups * z.r * z.s, weights = z.n * z.oh * z.ow;
    int64_t most = forward > data ? forward : data;
    int64_t after = case_get(c, "then", 0) / z.groups * z.r * z.s;
    if (after > most) most = after;
    return weights > most ? weights : most;
}

static const char *const cases[] = {
    "conv2d n1 c1 h1 k1 r1",
    "conv2d n2 c3 h7 w9 k5 r3 s3 pad1 stride2",
    "conv2d n2 c3 h11 w8 k7 r3 pad1",
    "conv2d n3 c5 h6 w10 k18 r1",
    "conv2d n2 c17 h9 k33 r3 pad1 act1",
    "conv2d n2 c16 h13 w12 k16 r3 pad1 residual1 act1",
    "conv2d n1 c32 h14 k48 r3 pad1 nobias1",
    "conv2d n2 c3 h33 w35 k16 r7 pad3 stride2 nobias1",
    "conv2d n1 c4 h12 w15 k6 r5 s3 pad2 padw1 stride2 stridew3",
    "conv2d n2 c6 h13 w11 k5 r3 pad2 dil2",
    "conv2d n1 c3 h15 w9 k4 r2 s4 padw2 dil3 dilw1 stridew2",
    "conv2d n2 c6 h9 w8 k9 r3 pad1 groups3",
    "conv2d n2 c8 h7 w6 k4 r1 groups2 stride2",
    "conv2d n2 c12 h10 w37 k10 r3 s5 pad2 dil2 groups2 act1",
    "conv2d n2 c19 h9 w11 k19 r3 pad1 groups19",
    "conv2d n1 c16 h12 w13 k16 r3 pad1 stride2 groups16 act2 low0 high6",
    "conv2d n1 c6 h10 w9 k6 r5 pad2 groups6",
    "conv2d n2 c4 h8 w7 k8 r3 pad1 groups4",
    "conv2d n3 c20 h8 w9 k37 r1 stride2 nobias1",
    "conv2d n2 c40 h7 w7 k24 r1 act1",
    "conv2d n2 c24 h5 w6 k24 r1 residual1",
    "conv2d n5 c9 h3 w3 k10 r3",
    "conv2d n1 c2 h4 w4 k3 r4 pad3",
    "conv2d n2 c64 h8 w8 k70 r3 pad1 stride2",
    "conv2d n1 c130 h6 w5 k129 r3 pad1 nobias1",
    "conv2d n1 c3 h40 w24 k8 r11 pad2 stride4 act3 low0.25",
    "conv2d n2 c5 h6 w5 k6 r3 pad1 act4",
    "conv2d n2 c5 h6 w5 k6 r3 pad1 act5",
    /* winograd: odd tiles, tails of channels, each padding, deep layers, additions */
    "conv2d n3 c33 h14 w15 k70 r3 act1",
    "conv2d n2 c48 h10 w9 k20 r3 pad2 nobias1",
    "conv2d n1 c17 h7 k17 r3 pad1 residual1 act3 low0.25",
    "conv2d n2 c300 h7 k40 r3 pad1",
    "conv2d n1 c40 h7 k300 r3 pad1 nobias1",
    "conv2d n9 c20 h13 k20 r3 pad1 residual1",
    "conv2d n2 c33 h14 w15 k40 r5 pad2 act1",
    "conv2d n3 c17 h9 w6 k19 r5 nobias1",
    "conv2d n1 c16 h5 w8 k70 r5 pad4 padw3",
    "conv2d n2 c20 h7 w10 k20 r5 pad2 residual1 act3 low0.25",
    "conv2d n1 c300 h5 k20 r5 pad1",
    "conv2d n1 c20 h6 k300 r5 pad2 nobias1",
    /* the same with stride 2: even and odd sides, tiles partly outside, deep layers of both kinds, additions */
    "conv2d n2 c33 h17 w16 k40 r3 pad1 stride2 act1",
    "conv2d n3 c16 h9 w30 k19 r3 pad1 stride2 nobias1",
    "conv2d n2 c20 h8 w7 k48 r3 pad1 stride2 act3 low0.25",
    "conv2d n1 c300 h14 w13 k40 r3 pad1 stride2",
    "conv2d n1 c40 h14 k300 r3 pad1 stride2 nobias1",
    "conv2d n2 c36 h33 w16 k36 r3 pad1 stride2 act1 then36",
    /* gradients after an activation: each kind, with every implementation that takes them */
    "conv2d n2 c17 h9 w7 k20 r3 pad1 act1 then17",
    "conv2d n2 c16 h6 w9 k18 r5 pad2 act3 low0.25 then16",
    "conv2d n1 c16 h6 w7 k300 r3 pad1 act1 then18",
    "conv2d n2 c17 h9 w8 k20 r1 stride2 act5 then33",
    "conv2d n2 c18 h9 w10 k18 r3 pad1 groups18 act2 low0 high6 then18",
    "conv2d n1 c5 h15 w13 k19 r3 pad1 stride2 act1 then6",
    /* pointwise: short and long segments, runs that are cut, tails of vectors */
    "conv2d n2 c33 h16 w17 k70 r1 act1",
    "conv2d n1 c64 h15 w14 k33 r1 stride2",
    "conv2d n4 c70 h1 w1 k90 r1",
    "conv2d n1 c36 h5 w5 k36 r1 residual1 act1",
    "conv2d n3 c700 h9 w8 k33 r1 act1",
    "conv2d n2 c700 h5 w7 k530 r1 stride2",
    /* depthwise: first and last tiles, rows shorter than both, dilation, other strides */
    "conv2d n2 c33 h14 w29 k33 r3 pad1 groups33 residual1",
    "conv2d n1 c20 h15 w16 k20 r5 pad2 stride2 groups20",
    "conv2d n2 c18 h1 w2 k18 r3 pad1 groups18",
    "conv2d n1 c24 h13 w30 k24 r3 pad2 dil2 groups24 residual1",
    "conv2d n1 c17 h9 w20 k17 r3 s5 padw2 stridew3 groups17",
    "conv2d n1 c16 h12 w13 k16 r7 pad3 groups16 act2 low0 high6",
    /* direct: segments that overlap, classes of a stride without taps, images of few channels */
    "conv2d n2 c20 h9 w23 k40 r3 pad1 stride2 act1",
    "conv2d n1 c18 h10 w7 k24 r3 s5 pad2 padw1 stride2 stridew3 dil2 dilw1",
    "conv2d n2 c12 h12 k12 r2 stride3 pad1",
    "conv2d n1 c20 h4 w90 k20 r1 s9 padw4 residual1",
    "conv2d n2 c1 h28 k33 r5",
    "conv2d n2 c4 h13 w17 k50 r3 pad1 stride2 act1",
    "conv2d n1 c3 h9 w30 k18 r2 s17 padw8",
    "conv2d n2 c32 h5 k24 r5 pad4",
    "conv2d n1 c40 h15 w13 k70 r3 pad1 stride2 act1 then40",
    /* winograd_rows: odd lengths, kernels of 5 to 8 columns, tails of channels, several tiles and chunks */
    "conv2d n2 c3 h21 w37 k20 r7 pad3 stride2",
    "conv2d n1 c1 h19 w35 k33 r8 pad3 stride2 act1",
    "conv2d n3 c4 h12 w126 k40 r3 s6 padw2 stride1 stridew2 nobias1",
    "conv2d n1 c2 h23 w14 k65 r5 pad2 stride2 stridew2 act3 low0.25",
    "conv2d n2 c3 h64 w70 k64 r7 pad3 stride2",
    /* groups of whole blocks of channels; that begin at half of one, the last one ending there; merged to fill one */
    "conv2d n2 c48 h9 w11 k48 r3 pad1 groups3 residual1 act1",
    "conv2d n2 c72 h13 w9 k72 r3 pad1 groups3 residual1 act1",
    "conv2d n1 c112 h9 w14 k112 r3 pad1 stride2 groups2 act1",
    "conv2d n2 c80 h7 w10 k48 r3 pad1 groups2 nobias1",
    "conv2d n1 c240 h6 w7 k240 r3 pad1 groups2 act3 low0.25",
    "conv2d n2 c48 h10 w9 k48 r3 pad1 groups6 residual1 act1",
    "conv2d n1 c32 h8 w9 k48 r3 pad1 groups4 nobias1",
    "conv2d n2 c32 h9 k32 r3 pad1 stride2 groups8 act1",
    "conv2d n2 c24 h9 k24 r3 pad1 groups3",
    "conv2d n1 c48 h9 w8 k96 r5 pad2 groups3 act1",
    "conv2d n2 c72 h12 w9 k72 r3 pad2 dil2 groups3 act1",
    "conv2d n9 c48 h14 w5 k24 r3 s5 pad1 padw2 groups2 stride2 stridew1",
    "conv2d n2 c48 h5 w6 k32 r1 groups2 stride2",
    "conv2d n1 c48 h15 w13 k48 r3 pad1 stride2 groups2 act1 then48",
    "conv2d n2 c72 h8 w21 k72 r3 pad1 groups3 act1 then72",
    "conv2d n2 c32 h9 w7 k32 r3 s5 pad1 padw2 groups4 act1 then32",
    "conv2d n1 c36 h15 w13 k36 r3 pad1 stride2 groups3 act1 then36",
    "conv2d n2 c40 h9 w7 k40 r3 pad1 groups2 act1 then40",
    "conv2d n8 c32 h40 w41 k32 r3 pad1 groups4", /* gradients of weights in several parts */
    "conv2d n6 c48 h40 w41 k48 r3 pad1 groups2",
    NULL,
};

/* Pointwise and depthwise: strides, tails of vectors, planes that are cut, chunks of runs, additions. */
static const char *const bf16_cases[] = {
    "conv2d n2 c33 h16 w17 k70 r1 act1",
    "conv2d n3 c20 h8 w9 k37 r1 stride2 nobias1",
    "conv2d n4 c70 h1 w1 k90 r1",
    "conv2d n3 c36 h5 w5 k36 r1 residual1 act1",
    "conv2d n2 c700 h5 w6 k33 r1 act1",
    "conv2d n2 c33 h14 w29 k33 r3 pad1 groups33 residual1",
    "conv2d n1 c20 h15 w16 k20 r5 pad2 stride2 groups20",
    "conv2d n2 c18 h1 w2 k18 r3 pad1 groups18",
    "conv2d n1 c16 h12 w13 k16 r3 pad1 stride2 groups16 act2 low0 high6",
    NULL,
};

static const struct operation_test test_conv2d = {
    .name = "conv2d",
    .build = build,
    .cases = cases,
    .bf16_cases = bf16_cases,
    .length = length,
};

OPERATION_TESTS(test_conv2d, &test_conv2d)
