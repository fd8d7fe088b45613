/* Operations that move elements without changing them.
 *
 * transpose n c h w order: the axes of a sample, from 1 on, as digits.
 *
 * expand n c h w
 *
 * window n c h w up left down right [value then]
 *   x without `up` rows above, `down` below, `left` columns left and `right` right; negative: as many more, of `value`.
 * then1: a second one pads what the first one cut, and its mean over the rows is subtracted. */
#include <stdio.h>

#include "tests/layers/cases.h"

static tutti_tensor build_transpose(tutti_network *network, const struct test_case *c)
{
    const tutti_tensor x =
        tutti_input(network, "x", TUTTI_SHAPE(case_get(c, "c", 1), case_get(c, "h", 1), case_get(c, "w", 1)));
    const int64_t order = case_get(c, "order", 321);
    char text[64];
    snprintf(
        text, sizeof text, "perm=%d,%d,%d", (int)(order / 100) - 1, (int)(order / 10 % 10) - 1, (int)(order % 10) - 1);
    return tutti_op(network, "transpose", &x, 1, text);
}

static void reference_transpose(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    (void)parameters;
    const int64_t sizes[] = { case_get(c, "c", 1), case_get(c, "h", 1), case_get(c, "w", 1) };
    const int64_t strides[] = { sizes[1] * sizes[2], sizes[2], 1 }, order = case_get(c, "order", 321);
    const int64_t axes[] = { order / 100 - 1, order / 10 % 10 - 1, order % 10 - 1 };
    const int64_t each = sizes[0] * sizes[1] * sizes[2];
    for (int64_t n = 0; n < case_get(c, "n", 1); n++)
        for (int64_t i = 0; i < sizes[axes[0]]; i++)
            for (int64_t j = 0; j < sizes[axes[1]]; j++)
                for (int64_t k = 0; k < sizes[axes[2]]; k++)
                    *y++ = inputs[0][n * each + i * strides[axes[0]] + j * strides[axes[1]] + k * strides[axes[2]]];
}

static int64_t length(const struct test_case *c)
{
    (void)c;
    return 1;
}

static const char *const transposes[] = {
    "transpose n2 c3 h4 w5 order321",
    "transpose n2 c3 h4 w37 order213",
    "transpose n1 c18 h5 w3 order132",
    "transpose n2 c3 h4 w5 order312",
    "transpose n2 c3 h4 w5 order123",
    "transpose n3 c33 h1 w40 order321",
    NULL,
};
static const struct operation_test test_transpose = {
    .name = "transpose",
    .build = build_transpose,
    .reference = reference_transpose,
    .cases = transposes,
    .length = length,
};

static tutti_tensor build_expand(tutti_network *network, const struct test_case *c)
{
    const int64_t h = case_get(c, "h", 1), w = case_get(c, "w", 1);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(case_get(c, "c", 1), 1));
    char text[64];
    snprintf(text, sizeof text, "shape=%d,%d,%d", (int)h, (int)case_get(c, "c", 1), (int)w);
    return tutti_op(network, "expand", &x, 1, text);
}

static void reference_expand(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    (void)parameters;
    const int64_t channels = case_get(c, "c", 1), h = case_get(c, "h", 1), w = case_get(c, "w", 1);
    for (int64_t i = 0; i < case_get(c, "n", 1) * channels * h * w; i++)
        y[i] = inputs[0][i / w / channels / h * channels + i / w % channels];
}

static const char *const expansions[] = {
    "expand n2 c5 h3 w19",
    "expand n3 c40 h2 w1",
    NULL,
};
static const struct operation_test test_expand = {
    .name = "expand",
    .build = build_expand,
    .reference = reference_expand,
    .cases = expansions,
    .length = length,
};

/* ---------------------------------------------------------------------------------------------------- window ---- */

/* Rows and columns that are cut or, if negative, added. */
struct edges {
    int up, left, down, right;
    double value;
};

static struct edges edges_of(const struct test_case *c)
{
    return (struct edges) { (int)case_get(c, "up", 0), (int)case_get(c, "left", 0), (int)case_get(c, "down", 0),
        (int)case_get(c, "right", 0), case_get_real(c, "value", 0) };
}

static int at_least_0(int x)
{
    return x > 0 ? x : 0;
}

static tutti_tensor window(tutti_network *network, tutti_tensor x, int h, int w, struct edges e)
{
    char text[96];
    snprintf(text, sizeof text, "axes=-2,-1 starts=%d,%d ends=%d,%d", at_least_0(e.up), at_least_0(e.left),
        h - at_least_0(e.down), w - at_least_0(e.right));
    x = tutti_op(network, "slice", &x, 1, text);
    snprintf(text, sizeof text, "before=0,%d,%d after=0,%d,%d value=%g", at_least_0(-e.up), at_least_0(-e.left),
        at_least_0(-e.down), at_least_0(-e.right), e.value);
    return tutti_op(network, "pad", &x, 1, text);
}

static tutti_tensor build_window(tutti_network *network, const struct test_case *c)
{
    const int h = (int)case_get(c, "h", 1), w = (int)case_get(c, "w", 1);
    const struct edges e = edges_of(c), back = { -e.up, -e.left, -e.down, -e.right, e.value };
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(case_get(c, "c", 1), h, w));
    tutti_tensor y = window(network, x, h, w, e);
    if (!case_get(c, "then", 0)) return y;
    y = window(network, y, h - e.up - e.down, w - e.left - e.right, back);
    const tutti_tensor mean = tutti_op(network, "reduce_sum", &y, 1, "axes=-2");
    return tutti_op(network, "sub", (tutti_tensor[]) { y, mean }, 2, NULL);
}

/* Each of `planes` images of h x w pixels. */
static void reference_edges(const double *x, double *y, int64_t planes, int64_t h, int64_t w, struct edges e)
{
    for (int64_t p = 0; p < planes; p++, x += h * w)
        for (int64_t i = e.up; i < h - e.down; i++)
            for (int64_t j = e.left; j < w - e.right; j++)
                *y++ = i >= 0 && i < h && j >= 0 && j < w ? x[i * w + j] : e.value;
}

static void reference_window(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    (void)parameters;
    const int64_t planes = case_get(c, "n", 1) * case_get(c, "c", 1), h = case_get(c, "h", 1), w = case_get(c, "w", 1);
    struct edges e = edges_of(c);
    if (!case_get(c, "then", 0)) {
        reference_edges(inputs[0], y, planes, h, w, e);
        return;
    }
    for (int64_t i = 0; i < planes * h * w; i++) { /* inside both windows it is x */
        const int64_t row = i / w % h, column = i % w;
        const bool inside = row >= e.up && row < h - e.down && column >= e.left && column < w - e.right;
        y[i] = inside ? inputs[0][i] : e.value;
    }
    for (int64_t p = 0; p < planes; p++)
        for (int64_t j = 0; j < w; j++) {
            double sum = 0;
            for (int64_t i = 0; i < h; i++) sum += y[(p * h + i) * w + j];
            for (int64_t i = 0; i < h; i++) y[(p * h + i) * w + j] -= sum;
        }
}

static const char *const windows[] = {
    "window n2 c3 h7 w9 up1 left2 down3 right1",
    "window n2 c3 h5 w33 up-1 left-2 down0 right-3 value2",
    "window n3 c2 h6 w18 up2 left-1 down-4 right3 value-1",
    "window n1 c5 h5 w16 up1 down1", /* oclgrind has no integers of 2 bits, which LLVM makes of a size of 4 */
    "window n2 c2 h7 w19 up1 left2 down2 right3 value3 then1",
    "window n2 c3 h5 w16 up2 value1 then1",
    NULL,
};
static const struct operation_test test_window = {
    .name = "window",
    .build = build_window,
    .reference = reference_window,
    .cases = windows,
    .length = length,
};

OPERATION_TESTS(test_movement, &test_transpose, &test_expand, &test_window)
