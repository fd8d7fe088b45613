/* grid n c [d] h w to [mode padding align shared]: an image at `to` x 2 places of each sample, or with `shared` of all.
 * Mode and padding are 0 to 2, as in docs/operations.md. The input of a sample is the image, and after it the grid.
 * What must come out is PyTorch's: tests/onnx has results of its formulas. */
#include <math.h>
#include <stdio.h>

#include "tests/layers/cases.h"

static int64_t image_of(const struct test_case *c)
{
    return case_get(c, "c", 1) * case_get(c, "d", 1) * case_get(c, "h", 1) * case_get(c, "w", 1);
}

static int axes_of(const struct test_case *c)
{
    return case_get(c, "d", 0) ? 3 : 2;
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    static const char *const modes[] = { "linear", "nearest", "cubic" },
                             *const paddings[] = { "zeros", "border", "reflection" };
    const int axes = axes_of(c), to = (int)case_get(c, "to", 1), image = (int)image_of(c);
    const bool shared = case_get(c, "shared", 0);
    const tutti_tensor all = tutti_input(network, "x", TUTTI_SHAPE(image + (shared ? 0 : 2 * to * axes)));
    char text[128];
    snprintf(text, sizeof text, "starts=0 ends=%d", image);
    tutti_tensor inputs[] = { tutti_op(network, "slice", &all, 1, text), all };
    const int c_size = (int)case_get(c, "c", 1), h = (int)case_get(c, "h", 1), w = (int)case_get(c, "w", 1);
    if (axes == 3)
        snprintf(text, sizeof text, "shape=%d,%d,%d,%d", c_size, (int)case_get(c, "d", 1), h, w);
    else
        snprintf(text, sizeof text, "shape=%d,%d,%d", c_size, h, w);
    inputs[0] = tutti_op(network, "reshape", inputs, 1, text);
    snprintf(text, sizeof text, "starts=%d ends=%d", image, image + 2 * to * axes);
    inputs[1] = shared ? tutti_parameter(network, "grid", TUTTI_SHAPE(to, 2, axes), NULL)
                       : tutti_op(network, "slice", &all, 1, text);
    snprintf(text, sizeof text, "shape=%d,2,%d", to, axes);
    if (!shared) inputs[1] = tutti_op(network, "reshape", &inputs[1], 1, text);
    snprintf(text, sizeof text, "mode=%s padding_mode=%s align_corners=%d", modes[case_get(c, "mode", 0)],
        paddings[case_get(c, "padding", 0)], (int)case_get(c, "align", 0));
    return tutti_op(network, "grid_sample", inputs, 2, text);
}

/* Places reach beyond the image. */
static void fill(const struct test_case *c, float *x, int64_t count)
{
    const int64_t each = count / case_get(c, "n", 1);
    for (int64_t i = 0; i < count; i++)
        if (i % each >= image_of(c)) x[i] = 1.75f * test_real(7, i);
}

/* An element of an image, or what stands for it outside. */
static double element(const struct test_case *c, const double *image, const int64_t *sizes, const int64_t *at)
{
    int64_t place = 0;
    for (int axis = 0; axis < 3; axis++) {
        const int64_t size = sizes[axis], last = size - 1;
        int64_t i = at[axis];
        while (case_get(c, "padding", 0) == 2 && size > 1 && (i < 0 || i > last))
            i = i < 0 ? -i - !case_get(c, "align", 0) : 2 * last - i + !case_get(c, "align", 0);
        if (case_get(c, "padding", 0)) i = i < 0 ? 0 : i > last ? last : i;
        if (i < 0 || i > last) return 0;
        place = place * size + i;
    }
    return image[place];
}

static double weight_of(int64_t mode, double distance)
{
    const double x = fabs(distance), a = -0.75;
    if (mode == 0) return x < 1 ? 1 - x : 0;
    if (x >= 2) return 0;
    return x < 1 ? 1 - (a + 3) * x * x + (a + 2) * x * x * x : a * (x * x * x - 5 * x * x + 8 * x - 4);
}

/* The sum over all elements around, padded ones too, by their distances. */
static double sample(const struct test_case *c, const double *image, const int64_t *sizes, const double *place)
{
    const int64_t mode = case_get(c, "mode", 0);
    double p[3], sum = 0;
    for (int axis = 0; axis < 3; axis++) {
        const double size = (double)sizes[axis];
        p[axis] = case_get(c, "align", 0) ? (place[axis] + 1) / 2 * (size - 1) : ((place[axis] + 1) * size - 1) / 2;
        if (axis == 0 && axes_of(c) == 2) p[0] = 0;
        if (mode == 1) p[axis] = rint(p[axis]);
    }
    for (int64_t i = -1; i < 3; i++)
        for (int64_t j = -1; j < 3; j++)
            for (int64_t k = -1; k < 3; k++) {
                const int64_t at[] = { (int64_t)floor(p[0]) + i, (int64_t)floor(p[1]) + j, (int64_t)floor(p[2]) + k };
                double weight = 1;
                for (int axis = 0; axis < 3; axis++)
                    weight *= weight_of(mode == 1 ? 0 : mode, p[axis] - (double)at[axis]);
                if (weight != 0) sum += weight * element(c, image, sizes, at);
            }
    return sum;
}

static void reference(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const int64_t sizes[] = { case_get(c, "d", 1), case_get(c, "h", 1), case_get(c, "w", 1) };
    const int64_t outputs = 2 * case_get(c, "to", 1), channels = case_get(c, "c", 1), axes = axes_of(c);
    const bool shared = case_get(c, "shared", 0);
    const int64_t each = image_of(c) + (shared ? 0 : outputs * axes);
    for (int64_t e = 0; e < case_get(c, "n", 1) * channels * outputs; e++) {
        const double *all = inputs[0] + e / outputs / channels * each;
        const double *grid = (shared ? parameters[0] : all + image_of(c)) + e % outputs * axes;
        const double place[] = { axes == 3 ? grid[2] : 0, grid[1], grid[0] };
        y[e] = sample(c, all + e / outputs % channels * sizes[0] * sizes[1] * sizes[2], sizes, place);
    }
}

static int64_t length(const struct test_case *c)
{
    return case_get(c, "n", 1) * case_get(c, "to", 1) * 64;
}

static const char *const cases[] = {
    "grid n2 c3 h5 w7 to9",
    "grid n2 c2 h4 w5 to6 align1 padding1",
    "grid n1 c3 h6 w3 to7 padding2",
    "grid n2 c2 h5 w6 to5 align1 padding2 shared1",
    "grid n2 c2 h5 w7 to6 mode2",
    "grid n2 c2 h4 w6 to5 mode2 align1 padding1",
    "grid n1 c2 h5 w4 to7 mode2 padding2",
    "grid n2 c2 d3 h4 w5 to6",
    "grid n1 c2 d4 h3 w5 to5 padding2 align1",
    "grid n1 c2 d4 h3 w5 to4 mode2 padding1 shared1",
    NULL,
};
static const struct operation_test test_grid = {
    .name = "grid",
    .build = build,
    .fill = fill,
    .reference = reference,
    .cases = cases,
    .length = length,
    .tolerance = TOLERANCE_NORMALISED,
    .reals = true,
};

/* The nearest element, of which the grid has no gradient. */
static const char *const nearest[] = {
    "grid_nearest n2 c3 h5 w7 to9 mode1",
    "grid_nearest n2 c2 h4 w5 to6 mode1 align1 padding1",
    "grid_nearest n2 c2 d3 h4 w5 to6 mode1 padding2",
    NULL,
};
static const struct operation_test test_grid_nearest = {
    .name = "grid_nearest",
    .build = build,
    .fill = fill,
    .reference = reference,
    .cases = nearest,
    .length = length,
    .reals = true,
    .tolerance = TOLERANCE_SUM,
};

/* affine_grid n [d] h w [align]: the places of an image of this size; the input of a sample is its theta. */
static tutti_tensor build_affine(tutti_network *network, const struct test_case *c)
{
    char text[96];
    const int axes = axes_of(c), d = (int)case_get(c, "d", 1), h = (int)case_get(c, "h", 1),
              w = (int)case_get(c, "w", 1);
    const tutti_tensor theta = tutti_input(network, "theta", TUTTI_SHAPE(axes, axes + 1));
    const int used = axes == 3 ? snprintf(text, sizeof text, "size=%d,%d,%d", d, h, w)
                               : snprintf(text, sizeof text, "size=%d,%d", h, w);
    snprintf(text + used, sizeof text - (size_t)used, " align_corners=%d", (int)case_get(c, "align", 0));
    return tutti_op(network, "affine_grid", &theta, 1, text);
}

/* The place of element i, a float: PyTorch's linspace(-1, 1, size), which it shrinks by (size - 1) / size without
 * `align`. */
static double base_of(const struct test_case *c, int64_t i, int64_t size)
{
    const double x = size > 1 ? -1 + (double)i * (2 / (double)(size - 1)) : 0;
    return (double)(float)(case_get(c, "align", 0) ? x : x * (double)(size - 1) / (double)size);
}

static void affine_reference(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const int64_t d = case_get(c, "d", 1), h = case_get(c, "h", 1), w = case_get(c, "w", 1), axes = axes_of(c);
    (void)parameters;
    for (int64_t e = 0; e < case_get(c, "n", 1) * d * h * w * axes; e++) {
        const int64_t place = e / axes;
        const double *row = inputs[0] + (place / (d * h * w) * axes + e % axes) * (axes + 1);
        const double at[] = { base_of(c, place % w, w), base_of(c, place / w % h, h),
            base_of(c, place / w / h % d, d) };
        y[e] = row[axes];
        for (int k = 0; k < axes; k++) y[e] += row[k] * at[k];
    }
}

static const char *const affine_cases[] = {
    "affine_grid n3 h5 w7",
    "affine_grid n2 h3 w1 align1",
    "affine_grid n2 h13 w6 align1",
    "affine_grid n1 d3 h1 w5",
    "affine_grid n3 d2 h5 w3 align1",
    NULL,
};
static const struct operation_test test_affine_grid = {
    .name = "affine_grid",
    .build = build_affine,
    .reference = affine_reference,
    .cases = affine_cases,
    .tolerance = TOLERANCE_SUM,
    .reals = true,
};

OPERATION_TESTS(test_grid, &test_grid, &test_grid_nearest, &test_affine_grid)
