/* cast TYPE n c [h w] [whole] [over]: an input of TYPE, which is u8, bool1, i32, f16 or bf16, as floats.
 *   whole1   as int32 first, which `convert` makes of u8, bool1 and i32
 *   over     less its sum over the last axis (1) or over the first one of a sample (2): both read the type itself
 * Every sum is exact. */
#include "tests/layers/cases.h"

static tutti_dtype dtype_of(const struct test_case *c)
{
    if (case_get(c, "u", 0)) return TUTTI_DTYPE_U8;
    if (case_get(c, "bool", 0)) return TUTTI_DTYPE_BOOL;
    if (case_get(c, "bf", 0)) return TUTTI_DTYPE_BF16;
    return case_get(c, "f", 0) ? TUTTI_DTYPE_F16 : TUTTI_DTYPE_I32;
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    const int64_t sizes[] = { case_get(c, "c", 1), case_get(c, "h", 1), case_get(c, "w", 1) };
    const int over = (int)case_get(c, "over", 0);
    tutti_tensor x = tutti_input_typed(network, "x", dtype_of(c), sizes, case_get(c, "h", 0) ? 3 : 1);
    if (case_get(c, "whole", 0)) x = tutti_cast(network, x, TUTTI_DTYPE_I32);
    x = tutti_cast(network, x, TUTTI_DTYPE_F32);
    if (!over) return x;
    const tutti_tensor sum = tutti_op(network, "reduce_sum", &x, 1, over == 1 ? "axes=-1" : "axes=0");
    return tutti_op(network, "sub", (tutti_tensor[]) { x, sum }, 2, NULL);
}

/* The ends of each type, and what lies around the middle of the bytes; other numbers than 0 and 1 are true, too. */
static void fill(const struct test_case *c, float *input, int64_t count)
{
    static const float bytes[] = { 0, 1, 127, 128, 255, 2 }, wholes[] = { 0, -1, 0x1p31f - 128, -0x1p31f, 255, 256 },
                       halves[] = { 0.5f, -1.5f, 65504, -0x1p-14f, 0x1p-24f, -2047 },
                       brains[] = { 0.5f, -1.5f, 0x1.fep127f, -0x1p-126f, 0x1.02p-126f, -255 };
    const bool over = case_get(c, "over", 0);
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = (i * i + 5 * i / 3) % 6;
        switch (dtype_of(c)) {
        case TUTTI_DTYPE_F16: input[i] = over ? test_integer(1, i, 2000) : halves[k]; break;
        case TUTTI_DTYPE_BF16: input[i] = over ? test_integer(1, i, 200) : brains[k]; break;
        case TUTTI_DTYPE_I32: input[i] = over ? test_integer(1, i, 2000) : wholes[k]; break;
        default: input[i] = bytes[k]; break;
        }
    }
}

static void reference(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const bool boolean = dtype_of(c) == TUTTI_DTYPE_BOOL;
    const int64_t width = case_get(c, "w", 1), n = case_get(c, "n", 1),
                  sample = case_get(c, "c", 1) * case_get(c, "h", 1) * case_get(c, "w", 1);
    const int over = (int)case_get(c, "over", 0);
    const int64_t joined = over == 1 ? width : case_get(c, "c", 1), stride = over == 1 ? 1 : sample / joined;
    (void)parameters;
    for (int64_t i = 0; i < n * sample; i++) {
        const double *x = inputs[0];
        const int64_t first = over == 1 ? i / width * width : i / sample * sample + i % stride;
        double sum = 0;
        for (int64_t k = 0; over && k < joined; k++) {
            const double number = x[first + k * stride];
            sum += boolean ? number != 0 : number;
        }
        y[i] = (boolean ? x[i] != 0 : x[i]) - sum;
    }
}

static const char *const cases[] = {
    "cast u8 n3 c37",
    "cast u8 n2 c3 h5 w7",
    "cast u8 n2 c3 h5 w7 whole1",
    "cast u8 n3 c5 h3 w37 over1",
    "cast u8 n2 c9 h5 w19 over2",
    "cast bool1 n3 c37",
    "cast bool1 n2 c3 h5 w7",
    "cast bool1 n2 c3 h5 w7 whole1",
    "cast bool1 n3 c5 h3 w37 over1",
    "cast bool1 n2 c9 h5 w19 over2",
    "cast i32 n3 c37",
    "cast i32 n2 c3 h5 w7 whole1",
    "cast i32 n3 c5 h3 w37 over1",
    "cast i32 n2 c9 h5 w19 over2",
    "cast f16 n3 c37",
    "cast f16 n2 c3 h5 w7",
    "cast f16 n3 c5 h3 w37 over1",
    "cast f16 n2 c9 h5 w19 over2",
    "cast bf16 n3 c37",
    "cast bf16 n2 c3 h5 w7",
    "cast bf16 n3 c5 h3 w37 over1",
    "cast bf16 n2 c9 h5 w19 over2",
    NULL,
};

static const struct operation_test test_cast = {
    .name = "cast",
    .build = build,
    .cases = cases,
    .fill = fill,
    .reference = reference,
};

OPERATION_TESTS(test_cast, &test_cast)
