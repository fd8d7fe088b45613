/* dropout n c [p first]: probability p percent, on samples [c] of which `first` precede in the whole batch. The
 * reference draws the same numbers, by the definition at the head of clkernels/dropout.cl. */
#include "base/random.h"
#include "tests/layers/cases.h"

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(case_get(c, "c", 1)));
    const float probability = (float)case_get_real(c, "p", 0.5);
    if (case_get(c, "twice", 0)) x = tutti_dropout(network, x, probability);
    return tutti_dropout(network, x, probability);
}

static bool kept(const struct step_constants *s, uint32_t stream, uint64_t position, double probability)
{
    const uint32_t key[2] = { s->seed_low, s->seed_high ^ s->step_high };
    const uint64_t block = position / 64 * 16 + position % 16;
    const uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32), s->step_low,
        (uint32_t)RANDOM_DROPOUT + stream };
    uint32_t out[4];
    philox4x32(key, counter, out);
    return out[position % 64 / 16] >= (uint32_t)(probability * 0x1p32);
}

static void reference(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    (void)parameters;
    const int64_t width = case_get(c, "c", 1), count = case_get(c, "n", 1) * width;
    const double probability = (double)(float)case_get_real(c, "p", 0.5);
    const uint32_t layers = case_get(c, "twice", 0) ? 2 : 1;
    for (int64_t i = 0; i < count; i++) {
        y[i] = inputs[0][i];
        const uint64_t position = (uint64_t)c->constants.first_sample * (uint64_t)width + (uint64_t)i;
        for (uint32_t stream = 0; c->training && stream < layers; stream++)
            y[i] *= kept(&c->constants, stream, position, probability) ? (double)(float)(1 / (1 - probability)) : 0;
    }
}

static const char *const cases[] = {
    "dropout n1 c1 p0.25",
    "dropout n2 c3 p0.25",
    "dropout n3 c64",
    "dropout n5 c37 p0.1",
    "dropout n4 c1000 p0.75",
    "dropout n2 c5000 p0.5 twice1",
    "dropout n7 c9 p0",
    NULL,
};

const struct operation_test test_dropout = {
    .name = "dropout",
    .build = build,
    .reference = reference,
    .cases = cases,
    .reals = true,
    .tolerance = TOLERANCE_SUM,
    .inference = true,
};
