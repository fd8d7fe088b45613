/* dense n k units [rows cols image nobias act low high residual then]
 *   rows      samples are [rows][k] instead of [k]
 *   cols      and with it: [rows][cols][k]
 *   image     a convolution before makes an image of these samples
 *   act       an activation follows (enum activation), which plans fuse
 *   residual  the input is added to the output (needs units = k): additions fused forward and backward
 *   then      a second layer comes after, with that many units: its data gradient is multiplied by the activation's
 * derivative */
#include "tests/layers/cases.h"

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    const int64_t k = case_get(c, "k", 1), rows = case_get(c, "rows", 0), cols = case_get(c, "cols", 0);
    tutti_tensor x = tutti_input(network, "x",
        cols       ? TUTTI_SHAPE(rows, cols, k)
            : rows ? TUTTI_SHAPE(rows, k)
                   : TUTTI_SHAPE(k));
    if (case_get(c, "image", 0)) x = tutti_conv2d(network, x, rows, 1, &(tutti_conv2d_options) { .no_bias = true });
    tutti_tensor y = tutti_dense(
        network, x, case_get(c, "units", 1), &(tutti_dense_options) { .no_bias = case_get(c, "nobias", 0) });
    if (case_get(c, "residual", 0)) y = tutti_add(network, y, x);
    y = test_activation(network, c, y);
    const int64_t then = case_get(c, "then", 0);
    return then ? tutti_dense(network, y, then, &(tutti_dense_options) { .no_bias = true }) : y;
}

static int64_t length(const struct test_case *c)
{
    const int64_t sums[] = { case_get(c, "k", 1), case_get(c, "units", 1), case_get(c, "then", 0),
        case_get(c, "n", 1) * case_get(c, "rows", 1) * case_get(c, "cols", 1) };
    int64_t most = 0;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) most = sums[i] > most ? sums[i] : most;
    return most;
}

/* Batches around those that the skinny products take (8), sizes around the vectors and tiles. */
static const char *const cases[] = {
    "dense n1 k1 units1",
    "dense n3 k1 units1 nobias1",
    "dense n2 k3 units5",
    "dense n8 k70 units37",
    "dense n9 k16 units10 act1",
    "dense n7 k129 units16 residual0 act2 low0 high6",
    "dense n13 k33 units17 act1",
    "dense n32 k10 units100 nobias1",
    "dense n5 k31 units31 residual1 act1",
    "dense n16 k48 units48 residual1",
    "dense n4 k64 units515",
    "dense n2 k2512 units2512", /* the weight gradient is larger than the caches */
    "dense n1 k600 units10",
    "dense n65 k40 units67 act3 low0.25",
    "dense n33 k7 units1",
    "dense n3 k6 units9 rows5 act1",
    "dense n2 k20 units20 rows9 residual1",
    "dense n2 k6 units9 rows5 cols3 act1",
    "dense n3 k20 units20 rows4 cols2 residual1",
    "dense n2 k6 units6 rows16 cols3 image1 residual1 act1",
    "dense n6 k19 units12 act4",
    "dense n12 k19 units6 act5 nobias1",
    /* gradients after an activation, on edges of tiles and in parts of a deep sum */
    "dense n19 k21 units67 act1 then35",
    "dense n9 k5 units33 act3 low0.25 then530",
    "dense n24 k18 units32 rows2 act5 then16",
    "dense n17 k6 units20 act2 low-0.5 high6.5 nobias1 then9",
    /* sums in parts: outputs, gradients of weights and bias, and a gradient after an activation */
    "dense n9 k12817 units10 act1",
    "dense n12811 k5 units9 act1",
    "dense n9 k5 units17 act1 then12817",
    NULL,
};

static const struct operation_test test_dense = {
    .name = "dense",
    .build = build,
    .cases = cases,
    .length = length,
};

OPERATION_TESTS(test_dense, &test_dense)
