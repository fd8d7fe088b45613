/* max_pool, average_pool n c h w r [s stride stridew pad padw ceil exclude global adaptive oh ow both leaky]
 *   global    the whole image;  adaptive: output size oh x ow
 *   both      leaky relu of x is pooled too and added, so that x's gradient has two parts
 *   leaky     leaky relu of x is what is pooled
 *   ramp      pixels grow towards the end, so that large windows that overlap have maxima in different places */
#include "tests/layers/cases.h"

static const double slope = 0.25;

struct sizes {
    int64_t n, c, h, w, r, s, stride_h, stride_w, pad_h, pad_w, oh, ow;
    bool ceil, exclude, adaptive;
};

static struct sizes sizes_of(const struct test_case *c)
{
    struct sizes z = { .n = case_get(c, "n", 1), .c = case_get(c, "c", 1), .h = case_get(c, "h", 1) };
    bool global = case_get(c, "global", 0);
    z.w = case_get(c, "w", z.h);
    z.r = global ? z.h : case_get(c, "r", 2);
    z.s = global ? z.w : case_get(c, "s", z.r);
    z.stride_h = case_get(c, "stride", z.r);
    z.stride_w = case_get(c, "stridew", case_get(c, "stride", z.s));
    z.pad_h = case_get(c, "pad", 0);
    z.pad_w = case_get(c, "padw", z.pad_h);
    z.ceil = case_get(c, "ceil", 0);
    z.exclude = case_get(c, "exclude", 0);
    z.adaptive = case_get(c, "adaptive", 0);
    z.oh = case_get(c, "oh", 1);
    z.ow = case_get(c, "ow", z.oh);
    return z;
}

static tutti_tensor pool(tutti_network *network, const struct test_case *c, tutti_tensor x, bool max)
{
    struct sizes z = sizes_of(c);
    tutti_pool_options options = { .kernel_w = z.s,
        .stride = z.stride_h,
        .stride_w = z.stride_w,
        .padding = z.pad_h,
        .padding_w = z.pad_w ? z.pad_w : -1,
        .ceil_mode = z.ceil,
        .exclude_padding = z.exclude };
    if (z.adaptive) return tutti_adaptive_average_pool(network, x, z.oh, z.ow);
    if (case_get(c, "global", 0))
        return max ? tutti_global_max_pool(network, x) : tutti_global_average_pool(network, x);
    return max ? tutti_max_pool(network, x, z.r, &options) : tutti_average_pool(network, x, z.r, &options);
}

static tutti_tensor build(tutti_network *network, const struct test_case *c, bool max)
{
    struct sizes z = sizes_of(c);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(z.c, z.h, z.w));
    if (case_get(c, "leaky", 0)) x = tutti_leaky_relu(network, x, (float)slope);
    tutti_tensor y = pool(network, c, x, max);
    if (!case_get(c, "both", 0)) return y;
    return tutti_add(network, y, pool(network, c, tutti_leaky_relu(network, x, (float)slope), max));
}

static tutti_tensor build_max(tutti_network *network, const struct test_case *c)
{
    return build(network, c, true);
}

static tutti_tensor build_average(tutti_network *network, const struct test_case *c)
{
    return build(network, c, false);
}

static int64_t length(const struct test_case *c)
{
    struct sizes z = sizes_of(c);
    return z.adaptive ? z.h * z.w : 2 * z.r * z.s;
}

/* All different, so that no two pixels compete for a maximum within the step of the differences. whole: whole numbers,
 * which bfloat16 holds up to 256. */
static void fill(const struct test_case *c, float *input, int64_t count)
{
    int64_t step = case_get(c, "ramp", 0) ? 1 : 7919;
    bool whole = case_get(c, "whole", 0);
    for (int64_t i = 0; i < count; i++) {
        float place = (float)(i * step % count);
        input[i] = whole ? place - (float)(count / 2) : (place + 0.5f) / (float)count * 4 - 2;
    }
}

static const char *const max_cases[] = {
    "max_pool n1 c1 h2 r2",
    "max_pool n2 c3 h7 w9 r2",
    "max_pool n2 c17 h8 w6 r2",
    "max_pool n2 c5 h8 w7 r3 stride2 pad1",
    "max_pool n2 c16 h11 w12 r3 stride2 pad1",
    "max_pool n1 c20 h11 w12 r3 stride2 pad1 both1",
    "max_pool n2 c4 h8 w8 r3 stride2 pad1 ceil1",
    "max_pool n2 c4 h8 w7 r3 stride2 ceil1",
    "max_pool n2 c3 h6 w7 r2 stride2 ceil1",
    "max_pool n2 c6 h5 w6 r3 stride1 pad1",
    "max_pool n1 c7 h9 w8 r3 s2 stride1 stridew3 pad1 padw0",
    "max_pool n1 c3 h7 r5 stride2 pad2 both1",
    "max_pool n2 c6 h5 w3 r1",
    "max_pool n1 c5 h7 r1 stride3",
    "max_pool n2 c18 h3 w5 global1",
    "max_pool n3 c16 h4 global1 both1",
    "max_pool n1 c2 h24 w25 r17 s16 stride1 ramp1",
    "max_pool n2 c5 h9 r3",
    "max_pool n2 c5 h10 w11 r3 both1",
    "max_pool n2 c18 h8 w7 r3 stride2 pad1 leaky1",
    "max_pool n2 c16 h7 w9 r2 leaky1",
    NULL,
};

static const char *const average_cases[] = {
    "average_pool n1 c1 h2 r2",
    "average_pool n2 c3 h7 w9 r2",
    "average_pool n2 c17 h8 w6 r2 both1",
    "average_pool n2 c5 h8 w7 r3 stride2 pad1",
    "average_pool n2 c16 h8 w7 r3 stride2 pad1 exclude1",
    "average_pool n2 c4 h8 w8 r3 stride2 pad1 ceil1",
    "average_pool n2 c4 h8 w7 r3 stride2 pad1 ceil1 exclude1",
    "average_pool n2 c3 h6 w7 r2 stride2 ceil1",
    "average_pool n1 c7 h9 w8 r3 s2 stride1 stridew3 pad1 padw1",
    "average_pool n2 c6 h5 w3 r1",
    "average_pool n2 c18 h7 global1",
    "average_pool n3 c32 h7 w5 global1 both1",
    "average_pool n1 c3 h33 w31 global1",
    "average_pool n2 c5 h7 w10 adaptive1 oh3 ow4",
    "average_pool n1 c17 h5 w6 adaptive1 oh7 ow4 both1",
    "average_pool n2 c4 h8 w9 adaptive1 oh4 ow3",
    "average_pool n2 c4 h8 w9 adaptive1 oh1",
    "average_pool n2 c5 h7 w9 r2 leaky1",
    NULL,
};

static const char *const max_bf16_cases[] = {
    "max_pool n1 c17 h5 w6 r2 whole1",
    "max_pool n2 c5 h8 w6 r3 stride2 pad1 whole1",
    "max_pool n1 c6 h9 w8 r3 stride1 pad1 both1 whole1",
    NULL,
};
static const char *const average_bf16_cases[] = {
    "average_pool n2 c17 h8 w6 r2 both1",
    "average_pool n2 c5 h8 w7 r3 stride2 pad1",
    "average_pool n3 c33 h7 w5 global1 both1",
    "average_pool n1 c17 h5 w6 adaptive1 oh7 ow4 both1",
    NULL,
};

static const struct operation_test test_max_pool = {
    .name = "max_pool",
    .build = build_max,
    .cases = max_cases,
    .bf16_cases = max_bf16_cases,
    .tolerance = TOLERANCE_SUM,
    .length = length,
    .fill = fill,
};
static const struct operation_test test_average_pool = {
    .name = "average_pool",
    .build = build_average,
    .cases = average_cases,
    .bf16_cases = average_bf16_cases,
    .tolerance = TOLERANCE_SUM,
    .length = length,
};

OPERATION_TESTS(test_pool, &test_max_pool, &test_average_pool)
