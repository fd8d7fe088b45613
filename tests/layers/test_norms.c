/* norm KIND1 n c [h w scale bias axis groups p size of_groups row]: tutti_op() of samples [c] or [c][h][w].
 *   KIND        layer, rms, group, instance, lp, mvn, lrn
 *   scale, bias parameters of the shape that is normalised, or for each channel
 *   of_groups   scale and bias are for each group
 *   row         scale and bias have the last axis alone */
#include <math.h>
#include <stdio.h>

#include "tests/layers/cases.h"

enum { MOST_AXES = 3 };

static bool is(const struct test_case *c, const char *kind)
{
    return case_get(c, kind, 0);
}

static bool of_last_axes(const struct test_case *c)
{
    return is(c, "layer") || is(c, "rms");
}

static int sizes_of(const struct test_case *c, int64_t sizes[MOST_AXES])
{
    sizes[0] = case_get(c, "c", 1);
    sizes[1] = case_get(c, "h", 1);
    sizes[2] = case_get(c, "w", 1);
    return case_get(c, "h", 0) ? 3 : 1;
}

static int64_t groups_of(const struct test_case *c)
{
    return is(c, "instance") || is(c, "mvn") ? case_get(c, "c", 1) : case_get(c, "groups", 1);
}

static tutti_shape shape_of_scale(const struct test_case *c)
{
    int64_t sizes[MOST_AXES];
    const int rank = sizes_of(c, sizes), axis = (int)case_get(c, "axis", rank - 1);
    if (!of_last_axes(c)) return TUTTI_SHAPE(is(c, "of_groups") ? groups_of(c) : sizes[0]);
    tutti_shape shape = { 0 };
    for (int i = is(c, "row") ? rank - 1 : axis; i < rank; i++) shape.sizes[shape.rank++] = sizes[i];
    return shape;
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    static const char *const kinds[][2] = { { "layer", "layer_norm" }, { "rms", "rms_norm" }, { "group", "group_norm" },
        { "instance", "instance_norm" }, { "lp", "lp_norm" }, { "mvn", "mean_variance_norm" }, { "lrn", "lrn" } };
    int64_t sizes[MOST_AXES];
    const int rank = sizes_of(c, sizes), axis = (int)case_get(c, "axis", rank - 1);
    char attributes[64] = "";
    const char *name = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is(c, kinds[i][0])) name = kinds[i][1];
    if (of_last_axes(c)) snprintf(attributes, sizeof attributes, "axis=%d epsilon=0.01", axis);
    if (is(c, "instance")) snprintf(attributes, sizeof attributes, "epsilon=0.01");
    if (is(c, "group"))
        snprintf(attributes, sizeof attributes, "groups=%d epsilon=0.01", (int)case_get(c, "groups", 1));
    if (is(c, "lp")) snprintf(attributes, sizeof attributes, "axis=%d p=%d", axis, (int)case_get(c, "p", 2));
    if (is(c, "lrn"))
        snprintf(attributes, sizeof attributes, "size=%d alpha=0.5 beta=0.75 bias=1.5", (int)case_get(c, "size", 3));
    tutti_tensor inputs[3] = { tutti_input(
        network, "x", rank == 1 ? TUTTI_SHAPE(sizes[0]) : TUTTI_SHAPE(sizes[0], sizes[1], sizes[2])) };
    int count = 1;
    if (is(c, "scale")) inputs[count++] = tutti_parameter(network, "scale", shape_of_scale(c), NULL);
    if (is(c, "bias")) inputs[count++] = tutti_parameter(network, "bias", shape_of_scale(c), NULL);
    return tutti_op(network, name, inputs, count, attributes);
}

/* Whether elements i and j of a sample are normalised together. */
static bool together(const struct test_case *c, int64_t i, int64_t j)
{
    int64_t sizes[MOST_AXES];
    const int rank = sizes_of(c, sizes), axis = (int)case_get(c, "axis", rank - 1);
    const int64_t at[] = { i / sizes[2] / sizes[1], i / sizes[2] % sizes[1], i % sizes[2] };
    const int64_t other[] = { j / sizes[2] / sizes[1], j / sizes[2] % sizes[1], j % sizes[2] };
    if (is(c, "lrn")) {
        const int64_t size = case_get(c, "size", 3), distance = other[0] - at[0];
        return at[1] == other[1] && at[2] == other[2] && distance >= -((size - 1) / 2) && distance <= size / 2;
    }
    if (!of_last_axes(c) && !is(c, "lp"))
        return at[0] / (sizes[0] / groups_of(c)) == other[0] / (sizes[0] / groups_of(c));
    for (int a = 0; a < MOST_AXES; a++)
        if ((is(c, "lp") ? a != axis : a < axis) && at[a] != other[a]) return false;
    return true;
}

static double normal(const struct test_case *c, const double *x, int64_t i, int64_t count)
{
    double number = 0, sum = 0, squares = 0, absolute = 0;
    for (int64_t j = 0; j < count; j++) {
        if (!together(c, i, j)) continue;
        number++;
        sum += x[j];
        squares += x[j] * x[j];
        absolute += fabs(x[j]);
    }
    const double mean = sum / number, epsilon = is(c, "mvn") ? 0 : (double)0.01f;
    if (is(c, "rms")) return x[i] / sqrt(squares / number + epsilon);
    if (is(c, "lrn")) return x[i] / pow(1.5 + squares * (double)(0.5f / (float)case_get(c, "size", 3)), 0.75);
    if (is(c, "lp")) return absolute == 0 ? 0 : x[i] / (case_get(c, "p", 2) == 1 ? absolute : sqrt(squares));
    return (x[i] - mean) / sqrt(squares / number - mean * mean + epsilon);
}

static int64_t place_of_scale(const struct test_case *c, int64_t i)
{
    int64_t sizes[MOST_AXES], each = 1;
    sizes_of(c, sizes);
    const int64_t channel = i / sizes[2] / sizes[1];
    const tutti_shape shape = shape_of_scale(c);
    for (int a = 0; a < shape.rank; a++) each *= shape.sizes[a];
    if (of_last_axes(c)) return i % each;
    return is(c, "of_groups") ? channel / (sizes[0] / groups_of(c)) : channel;
}

static void reference(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    int64_t sizes[MOST_AXES];
    sizes_of(c, sizes);
    const int64_t each = sizes[0] * sizes[1] * sizes[2];
    for (int64_t i = 0; i < case_get(c, "n", 1) * each; i++) {
        y[i] = normal(c, inputs[0] + i / each * each, i % each, each);
        if (is(c, "scale")) y[i] *= parameters[0][place_of_scale(c, i % each)];
        if (is(c, "bias")) y[i] += parameters[is(c, "scale")][place_of_scale(c, i % each)];
    }
}

static const char *const cases[] = {
    "norm layer1 n3 c17",
    "norm layer1 n2 c3 h5 w7 axis1 scale1 bias1",
    "norm layer1 n2 c3 h5 w7 axis0 scale1",
    "norm layer1 n2 c3 h5 w7 axis1 scale1 bias1 row1",
    "norm layer1 n2 c3 h5 w33 scale1",
    "norm rms1 n3 c37 scale1",
    "norm rms1 n2 c3 h5 w7 axis1 scale1",
    "norm rms1 n2 c3 h5 w7",
    "norm group1 n2 c6 h3 w5 groups2 scale1 bias1",
    "norm group1 n2 c6 h3 w5 groups3 scale1 bias1 of_groups1",
    "norm group1 n3 c12 groups4",
    "norm instance1 n2 c3 h5 w7 scale1 bias1",
    "norm instance1 n1 c19 h2 w3",
    "norm lp1 n2 c3 h5 w7 axis1",
    "norm lp1 n3 c19 p1",
    "norm mvn1 n2 c3 h5 w7",
    "norm lrn1 n2 c7 h3 w5",
    "norm lrn1 n2 c3 h3 w5 size4",
    "norm lrn1 n3 c19 size5",
    NULL,
};

static const struct operation_test test_norm = {
    .name = "norm",
    .build = build,
    .reference = reference,
    .cases = cases,
    .tolerance = TOLERANCE_NORMALISED,
};

OPERATION_TESTS(test_norms, &test_norm)
