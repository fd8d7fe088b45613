/* Windows that slide along one to three axes, compared with straight loops. Axes are d, h and w, of which the last
 * `axes` exist. Of each, as d: its size d, kernel kd (1), stride sd (1), dilation dd (1), pads pd before and ed
 * after (0), and output padding od (0).
 *
 * conv n c k axes [group bias1 ...]
 * conv_transpose n c k axes [group bias1 ...]
 * max_pool_axes, average_pool_axes, lp_pool n c axes [ceil1 include1 p ...] */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/layers/cases.h"

enum { AXES = 3 };
static const char names[] = "dhw";
struct axis {
    int64_t size, kernel, stride, dilation, before, after, more, out;
};
struct geometry {
    int64_t n, c, k, groups;
    struct axis axis[AXES]; /* those that do not exist have size 1 */
};

static int64_t get(const struct test_case *c, const char *kind, int axis, int64_t fallback)
{
    const char key[] = { kind[0] ? kind[0] : names[axis], kind[0] ? names[axis] : '\0', '\0' };
    return axis < AXES - case_get(c, "axes", 2) ? fallback : case_get(c, key, fallback);
}

static struct geometry geometry_of(const struct test_case *c, bool transposed)
{
    struct geometry g = { case_get(c, "n", 1), case_get(c, "c", 1), case_get(c, "k", 1), case_get(c, "group", 1),
        { { 0 } } };
    for (int i = 0; i < AXES; i++) {
        struct axis *a = &g.axis[i];
        *a = (struct axis) { get(c, "", i, 1), get(c, "k", i, 1), get(c, "s", i, 1), get(c, "d", i, 1),
            get(c, "p", i, 0), get(c, "e", i, 0), get(c, "o", i, 0), 0 };
        const int64_t reach = a->dilation * (a->kernel - 1) + 1, room = a->size + a->before + a->after - reach;
        a->out = transposed ? (a->size - 1) * a->stride + reach + a->more - a->before - a->after : room / a->stride + 1;
        if (case_get(c, "ceil", 0) && room % a->stride && a->out * a->stride < a->size + a->before) a->out++;
    }
    return g;
}

static void append_list(struct text *text, const char *name, const struct geometry *g, int axes, size_t member)
{
    text_append(text, " %s=", name);
    for (int i = AXES - axes; i < AXES; i++)
        text_append(
            text, "%s%d", i > AXES - axes ? "," : "", (int)*(const int64_t *)((const char *)&g->axis[i] + member));
}

static tutti_tensor build(tutti_network *network, const struct test_case *c, const char *operation,
    const tutti_tensor *inputs, int count, const char *more)
{
    const int axes = (int)case_get(c, "axes", 2);
    const struct geometry g = geometry_of(c, false);
    struct text text = { 0 };
    text_append(&text, "%s", more);
    append_list(&text, "strides", &g, axes, offsetof(struct axis, stride));
    append_list(&text, "dilations", &g, axes, offsetof(struct axis, dilation));
    append_list(&text, "pads", &g, axes, offsetof(struct axis, before));
    for (int i = AXES - axes; i < AXES; i++) text_append(&text, ",%d", (int)g.axis[i].after);
    if (!strcmp(operation, "conv_transpose"))
        append_list(&text, "output_padding", &g, axes, offsetof(struct axis, more));
    if (strstr(operation, "pool")) append_list(&text, "kernel_shape", &g, axes, offsetof(struct axis, kernel));
    const tutti_tensor y = tutti_op(network, operation, inputs, count, text.data);
    text_free(&text);
    return y;
}

static tutti_tensor input(tutti_network *network, const struct test_case *c)
{
    const int axes = (int)case_get(c, "axes", 2);
    tutti_shape shape = { .rank = 1 + axes, .sizes = { case_get(c, "c", 1) } };
    for (int i = 0; i < axes; i++) shape.sizes[1 + i] = geometry_of(c, false).axis[AXES - axes + i].size;
    return tutti_input(network, "x", shape);
}

static tutti_tensor build_conv(tutti_network *network, const struct test_case *c)
{
    const bool transposed = c->line[4] == '_';
    const int axes = (int)case_get(c, "axes", 2);
    const struct geometry g = geometry_of(c, transposed);
    const int64_t in = transposed ? g.k / g.groups : g.c / g.groups, out = transposed ? g.c : g.k;
    tutti_shape shape = { .rank = 2 + axes, .sizes = { out, in } };
    for (int i = 0; i < axes; i++) shape.sizes[2 + i] = g.axis[AXES - axes + i].kernel;
    tutti_tensor inputs[3] = { input(network, c) };
    inputs[1] = tutti_parameter(network, "w", shape, NULL);
    if (case_get(c, "bias", 0)) inputs[2] = tutti_parameter(network, "b", TUTTI_SHAPE(g.k), NULL);
    char more[32];
    snprintf(more, sizeof more, "group=%d", (int)g.groups);
    return build(network, c, transposed ? "conv_transpose" : "conv", inputs, case_get(c, "bias", 0) ? 3 : 2, more);
}

static tutti_tensor build_pool(tutti_network *network, const struct test_case *c)
{
    const tutti_tensor x = input(network, c);
    const bool max = !strncmp(c->line, "max", 3), lp = !strncmp(c->line, "lp", 2);
    char more[64];
    snprintf(more, sizeof more, "ceil_mode=%d", (int)case_get(c, "ceil", 0));
    if (lp) snprintf(more + strlen(more), sizeof more - strlen(more), " p=%d", (int)case_get(c, "p", 2));
    if (!lp && !max)
        snprintf(
            more + strlen(more), sizeof more - strlen(more), " count_include_pad=%d", (int)case_get(c, "include", 0));
    return build(network, c, max ? "max_pool" : lp ? "lp_pool" : "average_pool", &x, 1, more);
}

/* ------------------------------------------------------------------------------------------------ references ---- */

/* Calls `visit` for each output place and each tap: with both positions, or -1 for an element in the padding; `counts`:
 * it lies in the padded axis. */
struct visit {
    int64_t small, large, tap; /* positions among the windows, in what they slide over, in the kernel */
    bool counts;
};
typedef void visitor(const struct visit *visit, void *state);

static void visit_windows(
    const int64_t *windows, const int64_t *sizes, const struct axis *a, visitor *visit, void *state)
{
    int64_t o[AXES], t[AXES];
    for (o[0] = 0; o[0] < windows[0]; o[0]++)
        for (o[1] = 0; o[1] < windows[1]; o[1]++)
            for (o[2] = 0; o[2] < windows[2]; o[2]++)
                for (t[0] = 0; t[0] < a[0].kernel; t[0]++)
                    for (t[1] = 0; t[1] < a[1].kernel; t[1]++)
                        for (t[2] = 0; t[2] < a[2].kernel; t[2]++) {
                            struct visit v = { .counts = true };
                            bool inside = true;
                            for (int i = 0; i < AXES; i++) {
                                const int64_t at = o[i] * a[i].stride - a[i].before + t[i] * a[i].dilation;
                                v.small = v.small * windows[i] + o[i];
                                v.large = v.large * sizes[i] + at;
                                v.tap = v.tap * a[i].kernel + t[i];
                                inside &= at >= 0 && at < sizes[i];
                                v.counts &= at < sizes[i] + a[i].after;
                            }
                            if (!inside) v.large = -1;
                            visit(&v, state);
                        }
}

/* One channel of x, one of y and their kernel. */
struct plane {
    const double *x, *w;
    double *y;
    double p, *counts;
    bool include;
};

static void add_forward(const struct visit *v, void *state)
{
    struct plane *plane = state;
    if (v->large >= 0) plane->y[v->small] += plane->x[v->large] * plane->w[v->tap];
}

static void add_transposed(const struct visit *v, void *state)
{
    struct plane *plane = state;
    if (v->large >= 0) plane->y[v->large] += plane->x[v->small] * plane->w[v->tap];
}

static void reference_conv(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const bool transposed = c->line[4] == '_';
    const struct geometry g = geometry_of(c, transposed);
    int64_t in = 1, out = 1, taps = 1, sizes[AXES], outs[AXES];
    for (int i = 0; i < AXES; i++) {
        sizes[i] = g.axis[i].size;
        outs[i] = g.axis[i].out;
        in *= sizes[i];
        out *= outs[i];
        taps *= g.axis[i].kernel;
    }
    const int64_t of_c = g.c / g.groups, of_k = g.k / g.groups;
    for (int64_t i = 0; i < g.n * g.k; i++) {
        for (int64_t j = 0; j < out; j++) y[i * out + j] = case_get(c, "bias", 0) ? parameters[1][i % g.k] : 0;
        for (int64_t j = 0; j < of_c; j++) {
            const int64_t k = i % g.k, channel = k / of_k * of_c + j;
            const int64_t kernel = transposed ? channel * of_k + k % of_k : k * of_c + j;
            struct plane plane = {
                .x = inputs[0] + (i / g.k * g.c + channel) * in, .w = parameters[0] + kernel * taps, .y = y + i * out
            };
            if (transposed)
                visit_windows(sizes, outs, g.axis, add_transposed, &plane);
            else
                visit_windows(outs, sizes, g.axis, add_forward, &plane);
        }
    }
}

static void pool_max(const struct visit *v, void *state)
{
    struct plane *plane = state;
    if (v->large >= 0) plane->y[v->small] = fmax(plane->y[v->small], plane->x[v->large]);
}

static void pool_sum(const struct visit *v, void *state)
{
    struct plane *plane = state;
    if (v->large >= 0) plane->y[v->small] += plane->p ? pow(fabs(plane->x[v->large]), plane->p) : plane->x[v->large];
    plane->counts[v->small] += plane->include ? v->counts : v->large >= 0;
}

static void reference_pool(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    enum { MOST = 4096 };
    static double counts[MOST];
    const bool max = !strncmp(c->line, "max", 3), lp = !strncmp(c->line, "lp", 2);
    const struct geometry g = geometry_of(c, false);
    int64_t in = 1, out = 1, sizes[AXES], outs[AXES];
    (void)parameters;
    for (int i = 0; i < AXES; i++) {
        in *= sizes[i] = g.axis[i].size;
        out *= outs[i] = g.axis[i].out;
    }
    for (int64_t i = 0; i < g.n * g.c && out <= MOST; i++) {
        struct plane plane = { .x = inputs[0] + i * in,
            .y = y + i * out,
            .counts = counts,
            .p = lp ? (double)case_get(c, "p", 2) : 0,
            .include = case_get(c, "include", 0) };
        memset(counts, 0, sizeof counts);
        for (int64_t j = 0; j < out; j++) plane.y[j] = max ? -DBL_MAX : 0;
        visit_windows(outs, sizes, g.axis, max ? pool_max : pool_sum, &plane);
        for (int64_t j = 0; j < out && !max; j++)
            plane.y[j] = lp ? pow(plane.y[j], 1 / plane.p) : plane.y[j] / counts[j];
    }
}

/* ----------------------------------------------------------------------------------------------------- cases ---- */

static int64_t length(const struct test_case *c)
{
    const struct geometry g = geometry_of(c, true);
    int64_t taps = 1, windows = 1;
    for (int i = 0; i < AXES; i++) {
        taps *= g.axis[i].kernel;
        windows *= g.axis[i].size > g.axis[i].out ? g.axis[i].size : g.axis[i].out;
    }
    const int64_t channels = g.c > g.k ? g.c : g.k;
    return channels * taps > g.n * windows ? channels * taps : g.n * windows;
}

static const char *const convs[] = {
    "conv n2 c3 k5 axes1 w17 kw3 pw1 ew1 bias1",
    "conv n1 c4 k6 axes1 w19 kw4 sw2 dw2 pw3 ew1 group2",
    "conv n2 c3 k4 axes2 h7 w9 kh3 kw3 ph1 eh2 pw0 ew1 sh2 bias1",
    "conv n1 c5 k3 axes2 h6 w19 kh2 kw5 ph2 eh2 pw4 ew4 dw2",
    "conv n2 c3 k4 axes3 d5 h6 w7 kd3 kh3 kw3 pd1 ed1 ph1 eh1 pw1 ew1 bias1",
    "conv n1 c4 k6 axes3 d7 h5 w6 kd2 kh3 kw2 sd2 sh2 dd2 dw2 pd2 ed1 ew1 group2 bias1",
    "conv n3 c2 k3 axes3 d4 h3 w5 kd4 kh1 kw1 sd4",
    NULL,
};
static const struct operation_test test_conv = {
    .name = "conv",
    .build = build_conv,
    .reference = reference_conv,
    .cases = convs,
    .length = length,
    .tolerance = TOLERANCE_WINOGRAD,
};

static const char *const transposed_convs[] = {
    "conv_transpose n2 c3 k5 axes1 w9 kw3 sw2 pw1 ew1 ow1 bias1",
    "conv_transpose n1 c4 k6 axes1 w7 kw4 sw3 dw2 pw2 ew0 group2",
    "conv_transpose n2 c3 k4 axes2 h5 w6 kh3 kw3 sh2 sw2 ph1 eh1 pw1 ew1 oh1 bias1",
    "conv_transpose n1 c6 k4 axes2 h4 w7 kh2 kw5 sh3 sw1 eh1 pw2 ew3 group2",
    "conv_transpose n1 c3 k2 axes2 h5 w5 kh1 kw1 sh2 sw2 oh1 ow1",
    "conv_transpose n2 c3 k4 axes3 d3 h4 w5 kd3 kh3 kw3 sd2 sh2 sw2 pd1 ed1 ph1 eh1 pw1 ew1 bias1",
    "conv_transpose n1 c4 k6 axes3 d4 h3 w5 kd2 kh3 kw2 dd2 sh2 pd1 od0 eh1 group2 bias1",
    NULL,
};
static const struct operation_test test_conv_transpose = {
    .name = "conv_transpose",
    .build = build_conv,
    .reference = reference_conv,
    .cases = transposed_convs,
    .length = length,
    .tolerance = TOLERANCE_WINOGRAD,
};

static const char *const max_pools[] = {
    "max_pool_axes n2 c3 axes1 w17 kw3 sw2 pw1 ew1",
    "max_pool_axes n2 c3 axes2 h7 w9 kh3 kw2 sh2 sw2 ph1 eh2 ew1 ceil1",
    "max_pool_axes n1 c2 axes2 h9 w8 kh3 kw2 dh2 dw3 ph1 eh1",
    "max_pool_axes n2 c3 axes3 d5 h6 w7 kd2 kh3 kw3 sd2 sh2 sw2 ph1 eh1 pw1 ew1",
    "max_pool_axes n1 c2 axes3 d7 h5 w6 kd3 kh2 kw2 dd2 pd1 ed2 sw2",
    "max_pool_axes n2 c2 axes1 w40 kw5 dw3 sw2 pw2 ew2",
    NULL,
};
static const struct operation_test test_max_pool_axes = {
    .name = "max_pool_axes",
    .build = build_pool,
    .reference = reference_pool,
    .cases = max_pools,
    .tolerance = TOLERANCE_SUM,
    .length = length,
};

/* Windows that tables sum have 1, 2 or 4 elements along an axis: floats hold the weights exactly. */
static const char *const average_pools[] = {
    "average_pool_axes n2 c3 axes1 w17 kw3 sw2 pw1 ew1",
    "average_pool_axes n2 c3 axes2 h6 w9 kh2 kw2 sh2 sw2 ph1 eh2 ew1 ceil1",
    "average_pool_axes n2 c3 axes2 h7 w9 kh2 kw2 sh2 sw2 ph1 eh0 ew1 ceil1 include1",
    "average_pool_axes n1 c2 axes2 h9 w12 kh2 kw4 dh2 dw3 ph1 eh1 pw1 include1",
    "average_pool_axes n2 c3 axes3 d5 h6 w7 kd2 kh3 kw3 sd2 sh2 sw2 ph1 eh1 pw1 ew1",
    "average_pool_axes n1 c2 axes3 d7 h5 w6 kd2 kh2 kw2 dd2 pd1 ed2 sw2",
    NULL,
};
static const struct operation_test test_average_pool_axes = {
    .name = "average_pool_axes",
    .build = build_pool,
    .reference = reference_pool,
    .cases = average_pools,
    .tolerance = TOLERANCE_SUM,
    .length = length,
};

/* No element is 0, where the powers have a kink. */
static void fill(const struct test_case *c, float *x, int64_t count)
{
    (void)c;
    for (int64_t i = 0; i < count; i++) x[i] = (float)(i % 2 ? 0.5 : -0.5) + (float)(i * 7 % 11 - 5) / 16;
}

static const char *const lp_pools[] = {
    "lp_pool n2 c3 axes1 w17 kw3 sw2 pw1 ew1 p4",
    "lp_pool n2 c3 axes2 h7 w9 kh3 kw2 sh2 sw2 ph1 eh2 ew1 ceil1",
    "lp_pool n1 c2 axes2 h9 w8 kh3 kw2 dh2 dw3 p1",
    "lp_pool n1 c2 axes3 d7 h5 w6 kd3 kh2 kw2 sw2",
    NULL,
};
static const struct operation_test test_lp_pool = {
    .name = "lp_pool",
    .build = build_pool,
    .reference = reference_pool,
    .fill = fill,
    .cases = lp_pools,
    .tolerance = TOLERANCE_FUNCTION,
    .length = length,
};

OPERATION_TESTS(
    test_sliding, &test_conv, &test_conv_transpose, &test_max_pool_axes, &test_average_pool_axes, &test_lp_pool)
