/* Elements of one axis from others, by tables.
 *
 * resample n c h w axis to [empty outside last]
 *   along axis 0, 1 or 2 of [c, h, w], `to` elements of up to 4 products each; empty: every such output has none and is
 *   `outside`; last1: all outputs read the last element, too. */
#include "layers/resample.h"
#include "tests/layers/cases.h"

enum { MOST = 5 };
struct row {
    int count;
    int64_t positions[MOST];
    double weights[MOST];
};

static struct row row_of(const struct test_case *c, int64_t from, int64_t j)
{
    struct row row = { 0 };
    const int64_t empty = case_get(c, "empty", 0);
    if (empty && j % empty == 1) return row;
    row.count = (int)(1 + j % 4);
    for (int t = 0; t < row.count; t++) {
        row.positions[t] = (j * 5 + t * t * 3) % from;
        row.weights[t] = (double)((j + t) % 5 - 2); /* 0 is left out */
    }
    if (row.count == 1) row.weights[0] = 3;
    if (!case_get(c, "last", 0)) return row;
    row.positions[row.count] = from - 1;
    row.weights[row.count++] = 2;
    return row;
}

static tutti_status fill_taps(const struct test_case *c, struct taps *taps)
{
    tutti_status status = TUTTI_OK;
    for (int64_t j = 0; j < taps->to; j++) {
        const struct row row = row_of(c, taps->from, j);
        for (int t = 0; t < row.count && status == TUTTI_OK; t++)
            status = taps_add(taps, row.positions[t], row.weights[t]);
        taps_end_row(taps);
    }
    return status;
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    const tutti_shape shape = TUTTI_SHAPE(case_get(c, "c", 1), case_get(c, "h", 1), case_get(c, "w", 1));
    const int axis = (int)case_get(c, "axis", 0);
    const tutti_tensor x = tutti_input(network, "x", shape);
    const int layer = network_layer_begin(network, NULL, "resample");
    struct taps taps = { 0 };
    tutti_status status = taps_new(&taps, shape.sizes[axis], case_get(c, "to", 1));
    if (status == TUTTI_OK) status = fill_taps(c, &taps);
    if (status != TUTTI_OK) network_fail(network, status);
    const struct append_context context = { network, &network->graph, layer };
    const int y = resample(&context, x.id, axis + 1, &taps, (float)case_get_real(c, "outside", 0));
    taps_free(&taps);
    return y == NO_VALUE ? (tutti_tensor) { NO_VALUE } : network_close(network, layer, y);
}

static void reference(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    (void)parameters;
    const int64_t sizes[] = { case_get(c, "n", 1), case_get(c, "c", 1), case_get(c, "h", 1), case_get(c, "w", 1) };
    const int64_t axis = case_get(c, "axis", 0) + 1, from = sizes[axis], to = case_get(c, "to", 1);
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < 4; i++) *(i < axis ? &outer : &inner) *= i == axis ? 1 : sizes[i];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t j = 0; j < to; j++) {
            const struct row row = row_of(c, from, j);
            for (int64_t i = 0; i < inner; i++, y++) {
                *y = row.count ? 0 : case_get_real(c, "outside", 0);
                for (int t = 0; t < row.count; t++)
                    *y += row.weights[t] * inputs[0][(o * from + row.positions[t]) * inner + i];
            }
        }
}

static int64_t length(const struct test_case *c)
{
    return case_get(c, "last", 0) ? case_get(c, "to", 1) + MOST : 4 * MOST;
}

static const char *const cases[] = {
    "resample n2 c3 h5 w19 axis1 to7",
    "resample n2 c3 h4 w9 axis2 to23 empty5 outside2",
    "resample n3 c7 h1 w1 axis0 to3 empty2",
    "resample n1 c2 h33 w70 axis1 to5 last1",
    "resample n2 c5 h3 w130 axis2 to37 last1 empty7 outside-1",
    "resample n2 c4 h6 w35 axis0 to9",
    "resample n1 c1 h1 w1 axis2 to2 empty1",
    NULL,
};

static const struct operation_test test_resample = {
    .name = "resample",
    .build = build,
    .reference = reference,
    .cases = cases,
    .length = length,
};

OPERATION_TESTS(test_resample, &test_resample)
