/* Along an axis of x [c, h, w], one element after the other; axes from 1 on.
 *
 * argmax KIND1 n c h w axis [last drop pairs]: KIND is argmax, argmin or hardmax. With `pairs` each number stands twice
 *   along all axes; last1: the last of these; drop1: without the axis.
 *
 * topk n c h w axis k [least pairs indices]: indices1: the indices are the result.
 *
 * scan KIND1 n c h w axis [exclusive reverse zeros]: KIND is cumsum or cumprod; with `zeros` every so manieth number is
 * 0.
 *
 * one_hot n c h w axis depth: x is whole.
 *
 * trilu n c h w [lower k]
 *
 * reverse n c h w axis [batch own]: the lengths are those of samples; with `batch` a number for each place along that
 * axis, of the samples with own1, else a constant. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/layers/cases.h"

/* x as lines along the axis. */
struct lines {
    int axis;
    int64_t count, length, inner, all;
};

static int64_t size_at(const struct test_case *c, int axis)
{
    return case_get(c, axis == 0 ? "c" : axis == 1 ? "h" : "w", 1);
}

static struct lines lines_of(const struct test_case *c)
{
    struct lines z = { .axis = (int)case_get(c, "axis", 1) - 1, .count = case_get(c, "n", 1), .inner = 1 };
    z.length = size_at(c, z.axis);
    for (int i = 0; i < z.axis; i++) z.count *= size_at(c, i);
    for (int i = z.axis + 1; i < 3; i++) z.inner *= size_at(c, i);
    z.count *= z.inner;
    z.all = z.count * z.length;
    return z;
}

static int64_t place(const struct lines *z, int64_t length, int64_t line, int64_t i)
{
    return (line / z->inner * length + i) * z->inner + line % z->inner;
}

static tutti_tensor input(tutti_network *network, const struct test_case *c)
{
    return tutti_input(network, "x", TUTTI_SHAPE(size_at(c, 0), size_at(c, 1), size_at(c, 2)));
}

/* All numbers of a tensor are different, or, with `pairs`, two of each. */
static void fill_ranks(const struct test_case *c, float *x, int64_t count)
{
    const int64_t pairs = 1 + case_get(c, "pairs", 0);
    for (int64_t i = 0; i < count; i++) {
        const int64_t mixed = (i * 7919 + i * i % 31 * count / 31) % (2 * count);
        x[i] = (float)(mixed / pairs) + (pairs > 1 ? 0 : (float)i / (float)(4 * count));
    }
}

/* ---------------------------------------------------------------------------------------------------- argmax ---- */

static const char *kind_of(const struct test_case *c, const char *const *kinds)
{
    while (kinds[1] && !case_get(c, kinds[0], 0)) kinds++;
    return kinds[0];
}

static const char *const extremes[] = { "argmax", "argmin", "hardmax", NULL };

static tutti_tensor build_argmax(tutti_network *network, const struct test_case *c)
{
    const tutti_tensor x = input(network, c);
    const char *kind = kind_of(c, extremes);
    char text[96];
    size_t used = (size_t)snprintf(text, sizeof text, "axis=%d", lines_of(c).axis);
    if (strcmp(kind, "hardmax") != 0)
        snprintf(text + used, sizeof text - used, " keepdims=%d select_last_index=%d", !case_get(c, "drop", 0),
            (int)case_get(c, "last", 0));
    return tutti_op(network, kind, &x, 1, text);
}

static void reference_argmax(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const struct lines z = lines_of(c);
    const char *kind = kind_of(c, extremes);
    (void)parameters;
    for (int64_t line = 0; line < z.count; line++) {
        int64_t best = -1;
        double found = 0;
        for (int64_t i = 0; i < z.length; i++) {
            const double x = inputs[0][place(&z, z.length, line, i)] * (strcmp(kind, "argmin") ? 1 : -1);
            if (best < 0 || x > found || (x >= found && case_get(c, "last", 0))) found = x, best = i;
        }
        if (strcmp(kind, "hardmax") != 0) y[line] = (double)best;
        for (int64_t i = 0; i < z.length && !strcmp(kind, "hardmax"); i++) y[place(&z, z.length, line, i)] = i == best;
    }
}

static int64_t length(const struct test_case *c)
{
    return lines_of(c).length;
}

static const char *const argmaxes[] = {
    "argmax argmax1 n2 c3 h4 w5 axis1",
    "argmax argmax1 n2 c3 h7 w5 axis2 drop1",
    "argmax argmax1 n3 c2 h3 w37 axis3 pairs1",
    "argmax argmax1 n3 c2 h3 w37 axis3 pairs1 last1",
    "argmax argmin1 n2 c9 h3 w17 axis1 pairs1 drop1",
    "argmax argmin1 n2 c3 h5 w7 axis2 pairs1 last1",
    "argmax hardmax1 n2 c3 h4 w19 axis3",
    "argmax hardmax1 n2 c5 h4 w9 axis1 pairs1",
    NULL,
};
static const struct operation_test test_argmax = {
    .name = "argmax",
    .build = build_argmax,
    .fill = fill_ranks,
    .reference = reference_argmax,
    .cases = argmaxes,
    .length = length,
    .no_gradient = true,
};

/* ------------------------------------------------------------------------------------------------------ topk ---- */

static tutti_tensor build_topk(tutti_network *network, const struct test_case *c)
{
    const struct lines z = lines_of(c);
    tutti_tensor x = input(network, c), indices;
    x = tutti_topk(network, x, case_get(c, "k", 1), z.axis - 3, !case_get(c, "least", 0), &indices);
    return case_get(c, "indices", 0) ? indices : x;
}

static void reference_topk(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const struct lines z = lines_of(c);
    const int64_t k = case_get(c, "k", 1);
    const double sign = case_get(c, "least", 0) ? -1 : 1;
    (void)parameters;
    for (int64_t line = 0; line < z.count; line++)
        for (int64_t i = 0; i < z.length; i++) {
            const double x = inputs[0][place(&z, z.length, line, i)];
            int64_t rank = 0; /* how many are better */
            for (int64_t j = 0; j < z.length; j++) {
                const double other = inputs[0][place(&z, z.length, line, j)];
                rank += other * sign > x * sign || (other == x && j < i);
            }
            if (rank < k) y[place(&z, k, line, rank)] = case_get(c, "indices", 0) ? (double)i : x;
        }
}

static const char *const topks[] = {
    "topk n2 c7 h4 w5 axis1 k3",
    "topk n2 c3 h9 w5 axis2 k9 least1",
    "topk n3 c2 h3 w37 axis3 k5",
    "topk n2 c2 h3 w70 axis3 k33 least1",
    "topk n2 c2 h3 w9 axis3 k1",
    NULL,
};
static const struct operation_test test_topk = {
    .name = "topk",
    .build = build_topk,
    .fill = fill_ranks,
    .reference = reference_topk,
    .cases = topks,
    .length = length,
    .reals = true,
};
static const char *const ranks[] = {
    "topk_indices n2 c7 h4 w5 axis1 k3 pairs1 indices1",
    "topk_indices n2 c3 h9 w5 axis2 k9 least1 pairs1 indices1",
    "topk_indices n3 c2 h3 w37 axis3 k15 indices1",
    NULL,
};
static const struct operation_test test_topk_indices = {
    .name = "topk_indices",
    .build = build_topk,
    .fill = fill_ranks,
    .reference = reference_topk,
    .cases = ranks,
    .length = length,
    .no_gradient = true,
};

/* ------------------------------------------------------------------------------------------------------ scan ---- */

static const char *const scans[] = { "cumsum", "cumprod", NULL };

static tutti_tensor build_scan(tutti_network *network, const struct test_case *c)
{
    const tutti_tensor x = input(network, c);
    char text[96];
    snprintf(text, sizeof text, "axis=%d exclusive=%d reverse=%d", lines_of(c).axis, (int)case_get(c, "exclusive", 0),
        (int)case_get(c, "reverse", 0));
    return tutti_op(network, kind_of(c, scans), &x, 1, text);
}

/* Products of powers of 2 are exact, and so are sums of a few. */
static void fill_scan(const struct test_case *c, float *x, int64_t count)
{
    static const float factors[] = { 1, -2, 0.5f, 2, -1, -0.5f };
    const int64_t zeros = case_get(c, "zeros", 0);
    for (int64_t i = 0; i < count && case_get(c, "cumprod", 0); i++)
        x[i] = zeros && i % zeros == 2 ? 0 : factors[(i * i + i / 3) % 6];
}

static void reference_scan(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const struct lines z = lines_of(c);
    const bool product = case_get(c, "cumprod", 0), exclusive = case_get(c, "exclusive", 0);
    const bool reverse = case_get(c, "reverse", 0);
    (void)parameters;
    for (int64_t line = 0; line < z.count; line++)
        for (int64_t i = 0; i < z.length; i++) {
            double all = product;
            for (int64_t j = 0; j < z.length; j++) {
                const bool counts = j == i ? !exclusive : reverse ? j > i : j < i;
                const double x = inputs[0][place(&z, z.length, line, j)];
                if (counts) all = product ? all * x : all + x;
            }
            y[place(&z, z.length, line, i)] = all;
        }
}

static const char *const scan_cases[] = {
    "scan cumsum1 n2 c3 h4 w5 axis1",
    "scan cumsum1 n2 c3 h9 w17 axis2 exclusive1",
    "scan cumsum1 n3 c2 h3 w37 axis3 reverse1",
    "scan cumsum1 n2 c3 h4 w19 axis3 exclusive1 reverse1",
    "scan cumprod1 n2 c5 h4 w5 axis1",
    "scan cumprod1 n2 c3 h6 w17 axis2 exclusive1",
    "scan cumprod1 n3 c2 h3 w7 axis3 reverse1 zeros5",
    "scan cumprod1 n2 c3 h4 w6 axis3 exclusive1 reverse1 zeros4",
    NULL,
};
static const struct operation_test test_scan = {
    .name = "scan",
    .build = build_scan,
    .fill = fill_scan,
    .reference = reference_scan,
    .cases = scan_cases,
    .length = length,
};

/* --------------------------------------------------------------------------------------- one_hot, trilu, reverse ----
 */

static tutti_tensor build_one_hot(tutti_network *network, const struct test_case *c)
{
    const tutti_tensor x = input(network, c);
    char text[96];
    snprintf(text, sizeof text, "axis=%d depth=%d off=-1 on=3", (int)case_get(c, "axis", 1) - 1,
        (int)case_get(c, "depth", 1));
    return tutti_op(network, "one_hot", &x, 1, text);
}

static void fill_whole(const struct test_case *c, float *x, int64_t count)
{
    const int64_t depth = case_get(c, "depth", 1);
    for (int64_t i = 0; i < count; i++) x[i] = (float)((i * i + 2 * i) % (2 * depth + 2) - depth - 1);
}

static void reference_one_hot(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const int64_t depth = case_get(c, "depth", 1),
                  all = case_get(c, "n", 1) * size_at(c, 0) * size_at(c, 1) * size_at(c, 2);
    int64_t inner = 1;
    (void)parameters;
    for (int i = (int)case_get(c, "axis", 1) - 1; i < 3; i++) inner *= size_at(c, i);
    for (int64_t e = 0; e < all * depth; e++) {
        const int64_t i = e / inner % depth;
        const double x = inputs[0][e / inner / depth * inner + e % inner];
        y[e] = x == (double)i || x == (double)(i - depth) ? 3 : -1;
    }
}

static const char *const hots[] = {
    "one_hot n2 c3 h4 w5 axis4 depth6",
    "one_hot n2 c3 h4 w17 axis2 depth5",
    "one_hot n3 c2 h3 w9 axis1 depth1",
    NULL,
};
static const struct operation_test test_one_hot = {
    .name = "one_hot",
    .build = build_one_hot,
    .fill = fill_whole,
    .reference = reference_one_hot,
    .cases = hots,
    .length = length,
    .no_gradient = true,
};

static tutti_tensor build_trilu(tutti_network *network, const struct test_case *c)
{
    const tutti_tensor x = input(network, c);
    char text[64];
    snprintf(text, sizeof text, "upper=%d k=%d", !case_get(c, "lower", 0), (int)case_get(c, "k", 0));
    return tutti_op(network, "trilu", &x, 1, text);
}

static void reference_trilu(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const int64_t h = size_at(c, 1), w = size_at(c, 2), k = case_get(c, "k", 0);
    (void)parameters;
    for (int64_t p = 0; p < case_get(c, "n", 1) * size_at(c, 0); p++)
        for (int64_t i = 0; i < h; i++)
            for (int64_t j = 0; j < w; j++, y++)
                *y = (case_get(c, "lower", 0) ? j <= i + k : j >= i + k) ? inputs[0][(p * h + i) * w + j] : 0;
}

static const char *const triangles[] = {
    "trilu n2 c3 h4 w5",
    "trilu n2 c3 h7 w19 k3",
    "trilu n2 c1 h9 w3 k-2",
    "trilu n2 c3 h4 w5 lower1",
    "trilu n2 c2 h5 w33 lower1 k-1",
    NULL,
};
static const struct operation_test test_trilu = {
    .name = "trilu",
    .build = build_trilu,
    .reference = reference_trilu,
    .cases = triangles,
    .length = length,
};

/* Length number i of sequences of `times` elements. */
static float length_at(int64_t i, int64_t times)
{
    return (float)((i * i + 3 * i + 1) % (times + 1));
}

static int64_t lengths_of(const struct test_case *c)
{
    const int batch = (int)case_get(c, "batch", 0) - 1;
    return batch < 0 ? 1 : case_get(c, "own", 0) ? size_at(c, batch) : 0;
}

static tutti_tensor build_reverse(tutti_network *network, const struct test_case *c)
{
    const int64_t each = size_at(c, 0) * size_at(c, 1) * size_at(c, 2), own = lengths_of(c);
    const int batch = (int)case_get(c, "batch", 0) - 1;
    const tutti_tensor all = tutti_input(network, "x", TUTTI_SHAPE(each + own));
    char text[96];
    float fixed[64] = { 0 };
    snprintf(text, sizeof text, "starts=0 ends=%d", (int)each);
    tutti_tensor inputs[2] = { tutti_op(network, "slice", &all, 1, text) };
    snprintf(text, sizeof text, "shape=%d,%d,%d", (int)size_at(c, 0), (int)size_at(c, 1), (int)size_at(c, 2));
    inputs[0] = tutti_op(network, "reshape", &inputs[0], 1, text);
    for (int64_t i = 0; i < 64; i++) fixed[i] = length_at(i, lines_of(c).length);
    snprintf(text, sizeof text, "starts=%d ends=%d", (int)each, (int)(each + own));
    inputs[1] = own ? tutti_op(network, "slice", &all, 1, text)
                    : tutti_constant(network, "lengths", TUTTI_SHAPE(size_at(c, batch)), fixed);
    snprintf(text, sizeof text, "time_axis=%d batch_axis=%d", lines_of(c).axis, batch);
    return tutti_op(network, "reverse_sequence", inputs, 2, text);
}

static void fill_reverse(const struct test_case *c, float *x, int64_t count)
{
    const int64_t each = size_at(c, 0) * size_at(c, 1) * size_at(c, 2), own = lengths_of(c);
    for (int64_t i = 0; i < count; i++)
        if (i % (each + own) >= each)
            x[i] = length_at(i / (each + own) * own + i % (each + own) - each, lines_of(c).length);
}

static void reference_reverse(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const int64_t sizes[] = { size_at(c, 0), size_at(c, 1), size_at(c, 2) }, each = sizes[0] * sizes[1] * sizes[2];
    const int64_t own = lengths_of(c), times = lines_of(c).length;
    const int axis = lines_of(c).axis, batch = (int)case_get(c, "batch", 0) - 1;
    (void)parameters;
    for (int64_t n = 0; n < case_get(c, "n", 1); n++)
        for (int64_t i = 0; i < each; i++, y++) {
            int64_t at[] = { i / sizes[2] / sizes[1], i / sizes[2] % sizes[1], i % sizes[2] };
            const int64_t of = batch < 0 ? 0 : at[batch];
            const int64_t number = (int64_t)(own ? length_at(n * own + of, times) : length_at(of, times));
            if (at[axis] < number) at[axis] = number - 1 - at[axis];
            *y = inputs[0][n * (each + own) + (at[0] * sizes[1] + at[1]) * sizes[2] + at[2]];
        }
}

static const char *const reverses[] = {
    "reverse n3 c5 h4 w3 axis1",
    "reverse n2 c3 h7 w19 axis2",
    "reverse n2 c3 h4 w9 axis3 batch1",
    "reverse n2 c6 h4 w5 axis1 batch2 own1",
    NULL,
};
static const struct operation_test test_reverse = {
    .name = "reverse",
    .build = build_reverse,
    .fill = fill_reverse,
    .reference = reference_reverse,
    .cases = reverses,
    .length = length,
};

OPERATION_TESTS(
    test_lines, &test_argmax, &test_topk, &test_topk_indices, &test_scan, &test_one_hot, &test_trilu, &test_reverse)
