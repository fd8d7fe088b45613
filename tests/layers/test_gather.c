/* Elements by their numbers. The first of `parts` parts of a sample, along its first axis, are the data, the others are
 * numbers and updates; or data and numbers are the same for all samples.
 *
 * gather c h w by axis [kind of shared fixed whole]
 *   of data [c, h, w], for each sample unless `shared`, the elements of `by` numbers along the axis, from 1 on. kind0:
 *   slices; kind1: elements; kind2: of `axis` numbers for each element, after `of` leading axes that both have. With
 *   `fixed`, the numbers are the same for all samples, and with `whole` of int32.
 *
 * scatter: the same, with updates for each sample; reduction: 0 to 4, none, add, mul, max, min. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/layers/cases.h"

/* Shapes of data, numbers and results, without the samples. */
struct shapes {
    int kind, axis, rank, numbers;
    int64_t data[3], indices[4], made[6];
    int index_rank, made_rank;
};

static int64_t product(const int64_t *sizes, int rank)
{
    int64_t all = 1;
    for (int i = 0; i < rank; i++) all *= sizes[i];
    return all;
}

static struct shapes shapes_of(const struct test_case *c)
{
    struct shapes s = { .kind = (int)case_get(c, "kind", 0), .axis = (int)case_get(c, "axis", 1) - 1, .rank = 3 };
    const int64_t by = case_get(c, "by", 3), of = case_get(c, "of", 0);
    s.data[0] = case_get(c, "c", 1), s.data[1] = case_get(c, "h", 1), s.data[2] = case_get(c, "w", 1);
    if (s.kind == 0) {
        s.indices[0] = 2, s.indices[1] = by, s.index_rank = 2;
        for (int i = 0; i < s.axis; i++) s.made[s.made_rank++] = s.data[i];
        s.made[s.made_rank++] = 2, s.made[s.made_rank++] = by;
        for (int i = s.axis + 1; i < 3; i++) s.made[s.made_rank++] = s.data[i];
    } else if (s.kind == 1) {
        memcpy(s.indices, s.data, sizeof s.data);
        s.indices[s.axis] = by, s.index_rank = s.made_rank = 3;
        memcpy(s.made, s.indices, sizeof s.data);
    } else {
        s.numbers = s.axis + 1;
        for (int i = 0; i < of; i++) s.made[s.made_rank++] = s.indices[s.index_rank++] = s.data[i];
        s.made[s.made_rank++] = s.indices[s.index_rank++] = by;
        s.indices[s.index_rank++] = s.numbers;
        for (int i = (int)of + s.numbers; i < 3; i++) s.made[s.made_rank++] = s.data[i];
    }
    return s;
}

/* Number i of the indices: negative ones, some twice, and once in a while of no element. */
static float number_at(const struct test_case *c, const struct shapes *s, int64_t i)
{
    const int64_t of = case_get(c, "of", 0);
    const int64_t size = s->data[s->kind == 2 ? of + i % s->numbers : s->axis];
    if (i % 17 == 11) return (float)(i % 2 ? size : -size - 1);
    return (float)((i * i + 3 * i + i / 5) % (2 * size) - size);
}

static tutti_tensor part(tutti_network *network, tutti_tensor x, int64_t *from, const int64_t *shape, int rank)
{
    char text[128];
    const int64_t end = *from + product(shape, rank);
    snprintf(text, sizeof text, "starts=%d ends=%d", (int)*from, (int)end);
    x = tutti_op(network, "slice", &x, 1, text);
    *from = end;
    size_t used = (size_t)snprintf(text, sizeof text, "shape=%d", (int)shape[0]);
    for (int i = 1; i < rank; i++) used += (size_t)snprintf(text + used, sizeof text - used, ",%d", (int)shape[i]);
    return tutti_op(network, "reshape", &x, 1, text);
}

static tutti_tensor fixed_numbers(tutti_network *network, const struct test_case *c, const struct shapes *s)
{
    float floats[4096];
    int32_t wholes[4096];
    for (int64_t i = 0; i < product(s->indices, s->index_rank); i++)
        wholes[i] = (int32_t)(floats[i] = number_at(c, s, i));
    const bool whole = case_get(c, "whole", 0);
    return tutti_constant_typed(network, "numbers", whole ? TUTTI_DTYPE_I32 : TUTTI_DTYPE_F32, s->indices,
        s->index_rank, whole ? (const void *)wholes : (const void *)floats);
}

/* data, indices, and, of scatter, updates, of a sample of the input. */
static int64_t sample_of(const struct test_case *c, const struct shapes *s, bool updates)
{
    const int64_t data = case_get(c, "shared", 0) ? 0 : product(s->data, 3);
    const int64_t indices = case_get(c, "fixed", 0) ? 0 : product(s->indices, s->index_rank);
    return data + indices + (updates ? product(s->made, s->made_rank) : 0);
}

static int read_inputs(tutti_network *network, const struct test_case *c, bool updates, tutti_tensor inputs[3])
{
    const struct shapes s = shapes_of(c);
    const int64_t sample = sample_of(c, &s, updates);
    int64_t from = 0;
    if (case_get(c, "shared", 0))
        inputs[0] = tutti_parameter(network, "data", TUTTI_SHAPE(s.data[0], s.data[1], s.data[2]), NULL);
    if (!updates &&
        sample_of(c, &s, updates) == product(s.indices, s.index_rank)) { /* of int32: floats would need a gradient */
        inputs[1] = tutti_input_typed(network, "x", TUTTI_DTYPE_I32, s.indices, s.index_rank);
        return 2;
    }
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(sample));
    if (!case_get(c, "shared", 0)) inputs[0] = part(network, x, &from, s.data, 3);
    inputs[1] =
        case_get(c, "fixed", 0) ? fixed_numbers(network, c, &s) : part(network, x, &from, s.indices, s.index_rank);
    if (updates) inputs[2] = part(network, x, &from, s.made, s.made_rank);
    return 2 + updates;
}

static void text_of(const struct test_case *c, const struct shapes *s, bool scatters, char *text, size_t size)
{
    static const char *const reductions[] = { "none", "add", "mul", "max", "min" };
    size_t used = 0;
    text[0] = '\0';
    if (s->kind < 2) used = (size_t)snprintf(text, size, "axis=%d ", s->axis);
    if (s->kind == 2 && !scatters) used = (size_t)snprintf(text, size, "batch_dims=%d ", (int)case_get(c, "of", 0));
    if (scatters) snprintf(text + used, size - used, "reduction=%s", reductions[case_get(c, "reduction", 0)]);
}

static tutti_tensor build_gather(tutti_network *network, const struct test_case *c)
{
    static const char *const names[] = { "gather", "gather_elements", "gather_nd" };
    const struct shapes s = shapes_of(c);
    tutti_tensor inputs[3];
    char text[64];
    const int count = read_inputs(network, c, false, inputs);
    text_of(c, &s, false, text, sizeof text);
    return tutti_op(network, names[s.kind], inputs, count, text);
}

static tutti_tensor build_scatter(tutti_network *network, const struct test_case *c)
{
    const struct shapes s = shapes_of(c);
    tutti_tensor inputs[3];
    char text[64];
    const int count = read_inputs(network, c, true, inputs);
    text_of(c, &s, true, text, sizeof text);
    return tutti_op(network, s.kind == 1 ? "scatter_elements" : "scatter_nd", inputs, count, text);
}

static void fill_with(const struct test_case *c, float *input, int64_t count, bool updates)
{
    const struct shapes s = shapes_of(c);
    const int64_t sample = sample_of(c, &s, updates), data = case_get(c, "shared", 0) ? 0 : product(s.data, 3);
    const int64_t end = data + (case_get(c, "fixed", 0) ? 0 : product(s.indices, s.index_rank));
    for (int64_t i = 0; i < count && sample; i++)
        if (i % sample >= data && i % sample < end) input[i] = number_at(c, &s, i % sample - data + i / sample);
}

static void fill_gather(const struct test_case *c, float *input, int64_t count)
{
    fill_with(c, input, count, false);
}

static void fill_scatter(const struct test_case *c, float *input, int64_t count)
{
    fill_with(c, input, count, true);
}

/* The place in data of element `at` of the result; -1: it has none. */
static int64_t place_of(const struct test_case *c, const struct shapes *s, const double *indices, const int64_t *at)
{
    int64_t coordinates[3], of = case_get(c, "of", 0), first = 0;
    if (s->kind == 0) {
        for (int i = 0; i < 3; i++) coordinates[i] = at[i <= s->axis ? i : i + 1];
        coordinates[s->axis] = (int64_t)indices[at[s->axis] * s->indices[1] + at[s->axis + 1]];
    } else if (s->kind == 1) {
        memcpy(coordinates, at, sizeof coordinates);
        coordinates[s->axis] = (int64_t)indices[(at[0] * s->indices[1] + at[1]) * s->indices[2] + at[2]];
    } else {
        for (int i = 0; i <= of; i++) first = first * s->indices[i] + at[i];
        for (int64_t i = 0; i < of; i++) coordinates[i] = at[i];
        for (int64_t i = 0; i < s->numbers; i++) coordinates[of + i] = (int64_t)indices[first * s->numbers + i];
        for (int64_t i = of + s->numbers; i < 3; i++) coordinates[i] = at[of + 1 + i - of - s->numbers];
    }
    for (int i = 0; i < 3; i++) {
        if (coordinates[i] < 0) coordinates[i] += s->data[i];
        if (coordinates[i] < 0 || coordinates[i] >= s->data[i]) return -1;
    }
    return (coordinates[0] * s->data[1] + coordinates[1]) * s->data[2] + coordinates[2];
}

/* Where parts of sample n lie. */
struct sample {
    const double *data, *indices, *updates;
};

static struct sample read_sample(const struct test_case *c, const struct shapes *s, bool updates,
    const double *const *inputs, const double *const *parameters, int64_t n)
{
    const bool shared = case_get(c, "shared", 0), fixed = case_get(c, "fixed", 0);
    const double *x = inputs[0] + n * sample_of(c, s, updates);
    struct sample made;
    made.data = shared ? parameters[0] : x;
    x += shared ? 0 : product(s->data, 3);
    made.indices = fixed ? parameters[shared] : x;
    x += fixed ? 0 : product(s->indices, s->index_rank);
    made.updates = x;
    return made;
}

static void coordinates_of(const struct shapes *s, int64_t element, int64_t *at)
{
    for (int i = s->made_rank - 1; i >= 0; i--) {
        at[i] = element % s->made[i];
        element /= s->made[i];
    }
}

static void reference_gather(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const struct shapes s = shapes_of(c);
    const int64_t each = product(s.made, s.made_rank);
    for (int64_t e = 0; e < case_get(c, "n", 1) * each; e++) {
        const struct sample from = read_sample(c, &s, false, inputs, parameters, e / each);
        int64_t at[6];
        coordinates_of(&s, e % each, at);
        const int64_t place = place_of(c, &s, from.indices, at);
        y[e] = place < 0 ? 0 : from.data[place];
    }
}

static void reference_scatter(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const struct shapes s = shapes_of(c);
    const int64_t each = product(s.made, s.made_rank), reduction = case_get(c, "reduction", 0);
    for (int64_t n = 0; n < case_get(c, "n", 1); n++, y += product(s.data, 3)) {
        const struct sample from = read_sample(c, &s, true, inputs, parameters, n);
        memcpy(y, from.data, (size_t)product(s.data, 3) * sizeof *y);
        for (int64_t e = 0; e < each; e++) {
            int64_t at[6];
            coordinates_of(&s, e, at);
            const int64_t place = place_of(c, &s, from.indices, at);
            if (place < 0) continue;
            const double a = y[place], b = from.updates[e];
            y[place] = reduction == 0 ? b
                : reduction == 1      ? a + b
                : reduction == 2      ? a * b
                : reduction == 3      ? fmax(a, b)
                                      : fmin(a, b);
        }
    }
}

static int64_t length(const struct test_case *c)
{
    const struct shapes s = shapes_of(c);
    return case_get(c, "n", 1) * product(s.indices, s.index_rank);
}

static const char *const gathers[] = {
    "gather n2 c3 h4 w5 by3 axis1",
    "gather n3 c2 h5 w37 by4 axis2",
    "gather n2 c3 h2 w19 by5 axis3",
    "gather n2 c3 h4 w5 by3 axis2 fixed1 whole1",
    "gather n2 c7 h1 w33 by9 axis1 shared1",
    "gather n3 c2 h6 w5 by4 axis2 shared1",
    "gather n2 c70 h3 w17 by40 axis1 shared1",
    "gather n2 c3 h4 w5 by6 axis1 kind1",
    "gather n2 c3 h7 w21 by4 axis2 kind1",
    "gather n3 c2 h3 w9 by17 axis3 kind1 fixed1 whole1",
    "gather n3 c2 h3 w9 by5 axis3 kind1 shared1",
    "gather n2 c3 h4 w5 by6 axis1 kind2",
    "gather n2 c3 h4 w25 by7 axis2 kind2",
    "gather n2 c3 h4 w5 by7 axis3 kind2 fixed1",
    "gather n2 c3 h4 w5 by6 axis1 kind2 of1",
    "gather n2 c3 h4 w5 by6 axis1 kind2 of2 fixed1 whole1",
    "gather n2 c5 h4 w3 by6 axis2 kind2 shared1",
    "gather n2 c3 h2 w5 by513 axis1 shared1", /* with rounding errors */
    NULL,
};
static const struct operation_test test_gather = {
    .name = "gather",
    .build = build_gather,
    .fill = fill_gather,
    .reference = reference_gather,
    .cases = gathers,
    .length = length,
};

static const char *const scatters[] = {
    "scatter n2 c3 h4 w5 by6 axis1 kind1",
    "scatter n2 c3 h7 w21 by4 axis2 kind1 reduction1",
    "scatter n3 c2 h3 w9 by13 axis3 kind1 reduction2",
    "scatter n2 c3 h6 w9 by9 axis2 kind1 fixed1 whole1",
    "scatter n2 c3 h4 w5 by6 axis1 kind1 shared1 reduction1",
    "scatter n2 c3 h4 w5 by5 axis1 kind1 shared1 fixed1 reduction2",
    "scatter n2 c3 h4 w25 by7 axis2 kind2",
    "scatter n2 c5 h4 w5 by7 axis1 kind2 reduction1 fixed1",
    "scatter n2 c3 h4 w5 by9 axis3 kind2 reduction2 shared1",
    /* with rounding errors */
    "scatter n2 c3 h2 w3 by1025 axis1 kind1 reduction1",
    "scatter n2 c5 h4 w3 by513 axis1 kind2 reduction1 shared1",
    NULL,
};
static const struct operation_test test_scatter = {
    .name = "scatter",
    .build = build_scatter,
    .fill = fill_scatter,
    .reference = reference_scatter,
    .cases = scatters,
    .length = length,
};

/* On real numbers, since two equal numbers are a kink. */
static const char *const extremes[] = {
    "scatter_extreme n2 c3 h4 w5 by6 axis1 kind1 reduction3",
    "scatter_extreme n2 c3 h7 w21 by5 axis2 kind1 reduction4",
    "scatter_extreme n2 c3 h4 w25 by7 axis2 kind2 reduction3 shared1",
    "scatter_extreme n2 c5 h4 w5 by7 axis1 kind2 reduction4 fixed1",
    NULL,
};
static const struct operation_test test_scatter_extreme = {
    .name = "scatter_extreme",
    .build = build_scatter,
    .fill = fill_scatter,
    .reference = reference_scatter,
    .cases = extremes,
    .length = length,
    .reals = true,
};

OPERATION_TESTS(test_gather, &test_gather, &test_scatter, &test_scatter_extreme)
