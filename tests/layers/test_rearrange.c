/* Operations of several nodes that move elements: every output is one element of the input.
 *
 * slice n c h w start end step from until by: of h, and of w
 * pad n c h w mode before after left right: of h, and of w; mode 1 reflect, 2 edge, 3 wrap
 * tile n c h w times second third: of c, h and w
 * blocks n c h w block [crd1] [depth1]: space_to_depth with depth1, else depth_to_space
 * resize n c h w rows columns mode [coordinates nearest antialias exclude]: numbers of the enums in layers/resize.h */
#include <stdio.h>

#include "tests/layers/cases.h"

enum { AXES = 4 };
struct place {
    int64_t at[AXES];
};

static struct place sizes_of(const struct test_case *c)
{
    return (struct place) { { case_get(c, "n", 1), case_get(c, "c", 1), case_get(c, "h", 1), case_get(c, "w", 1) } };
}

static tutti_tensor input(tutti_network *network, const struct test_case *c)
{
    const struct place s = sizes_of(c);
    return tutti_input(network, "x", TUTTI_SHAPE(s.at[1], s.at[2], s.at[3]));
}

/* y, of these sizes, where each element is the input's at `from` of its own place. */
static void gather(const struct test_case *c, struct place to, const double *x, double *y,
    struct place (*from)(const struct test_case *c, struct place at))
{
    const struct place s = sizes_of(c);
    struct place p;
    int64_t *at = p.at;
    for (at[0] = 0; at[0] < to.at[0]; at[0]++)
        for (at[1] = 0; at[1] < to.at[1]; at[1]++)
            for (at[2] = 0; at[2] < to.at[2]; at[2]++)
                for (at[3] = 0; at[3] < to.at[3]; at[3]++) {
                    const struct place f = from(c, p);
                    *y++ = x[((f.at[0] * s.at[1] + f.at[1]) * s.at[2] + f.at[2]) * s.at[3] + f.at[3]];
                }
}

static int64_t length(const struct test_case *c)
{
    const struct place s = sizes_of(c);
    return 4 * (s.at[2] + s.at[3]);
}

/* ---------------------------------------------------------------------------------------------------- slice ---- */

struct range {
    int64_t start, end, step, first, count;
};

/* As Python's range(), along h or w; -100 stands for an end before the first element. */
static struct range range_of(const struct test_case *c, bool columns)
{
    const int64_t size = sizes_of(c).at[columns ? 3 : 2];
    struct range r = { case_get(c, columns ? "from" : "start", 0), case_get(c, columns ? "until" : "end", size),
        case_get(c, columns ? "by" : "step", 1), 0, 0 };
    int64_t stop = r.end < 0 ? r.end + size : r.end;
    if (stop < -1) stop = -1;
    r.first = r.start < 0 ? r.start + size : r.start;
    for (int64_t i = r.first; r.step > 0 ? i < stop && i < size : i > stop; i += r.step) r.count++;
    return r;
}

static tutti_tensor build_slice(tutti_network *network, const struct test_case *c)
{
    const tutti_tensor x = input(network, c);
    const struct range rows = range_of(c, false), columns = range_of(c, true);
    char text[160];
    snprintf(text, sizeof text, "axes=1,-1 starts=%d,%d ends=%d,%d steps=%d,%d", (int)rows.start, (int)columns.start,
        (int)rows.end, (int)columns.end, (int)rows.step, (int)columns.step);
    return tutti_op(network, "slice", &x, 1, text);
}

static struct place sliced_from(const struct test_case *c, struct place p)
{
    const struct range rows = range_of(c, false), columns = range_of(c, true);
    p.at[2] = rows.first + p.at[2] * rows.step;
    p.at[3] = columns.first + p.at[3] * columns.step;
    return p;
}

static void reference_slice(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    (void)parameters;
    struct place to = sizes_of(c);
    to.at[2] = range_of(c, false).count;
    to.at[3] = range_of(c, true).count;
    gather(c, to, inputs[0], y, sliced_from);
}

static const char *const slices[] = {
    "slice n2 c3 h7 w9 start1 end8 step2 from-1 until-100 by-1",
    "slice n2 c5 h6 w18 from16 until1 by-3",
    "slice n1 c2 h9 w33 end9 step4 from-1 until-100 by-2",
    "slice n2 c2 h3 w17 from2 by5",
    "slice n3 c4 h5 w1 start-1 end-100 step-1",
    "slice n1 c2 h2 w40 start1 end2 step7 from2 until36 by2",
    NULL,
};
static const struct operation_test test_slice = {
    .name = "slice",
    .build = build_slice,
    .reference = reference_slice,
    .cases = slices,
    .length = length,
};

/* ------------------------------------------------------------------------------------------------------- pad ---- */

static tutti_tensor build_pad(tutti_network *network, const struct test_case *c)
{
    static const char *const modes[] = { "constant", "reflect", "edge", "wrap" };
    const tutti_tensor x = input(network, c);
    char text[120];
    snprintf(text, sizeof text, "mode=%s before=0,%d,%d after=0,%d,%d", modes[case_get(c, "mode", 1)],
        (int)case_get(c, "before", 0), (int)case_get(c, "left", 0), (int)case_get(c, "after", 0),
        (int)case_get(c, "right", 0));
    return tutti_op(network, "pad", &x, 1, text);
}

static int64_t padded_from(int64_t mode, int64_t at, int64_t size)
{
    while (at < 0 || at >= size) {
        if (mode == 1) at = size == 1 ? 0 : at < 0 ? -at : 2 * (size - 1) - at;
        if (mode == 2) at = at < 0 ? 0 : size - 1;
        if (mode == 3) at += at < 0 ? size : -size;
    }
    return at;
}

static struct place pad_from(const struct test_case *c, struct place p)
{
    const struct place s = sizes_of(c);
    const int64_t mode = case_get(c, "mode", 1);
    p.at[2] = padded_from(mode, p.at[2] - case_get(c, "before", 0), s.at[2]);
    p.at[3] = padded_from(mode, p.at[3] - case_get(c, "left", 0), s.at[3]);
    return p;
}

static void reference_pad(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    (void)parameters;
    struct place to = sizes_of(c);
    to.at[2] += case_get(c, "before", 0) + case_get(c, "after", 0);
    to.at[3] += case_get(c, "left", 0) + case_get(c, "right", 0);
    gather(c, to, inputs[0], y, pad_from);
}

static const char *const pads[] = {
    "pad n2 c3 h4 w7 mode1 before2 after1 left3 right2",
    "pad n2 c3 h4 w7 mode1 before7 after9",
    "pad n2 c2 h5 w19 mode2 before3 after1 right4",
    "pad n1 c3 h1 w6 mode1 before2 right3",
    "pad n2 c3 h3 w5 mode3 before4 right7",
    "pad n2 c1 h6 w5 mode2 before-2 after3",
    NULL,
};
static const struct operation_test test_pad = {
    .name = "pad",
    .build = build_pad,
    .reference = reference_pad,
    .cases = pads,
    .length = length,
};

/* ------------------------------------------------------------------------------------------------------ tile ---- */

static tutti_tensor build_tile(tutti_network *network, const struct test_case *c)
{
    const tutti_tensor x = input(network, c);
    char text[64];
    snprintf(text, sizeof text, "repeats=%d,%d,%d", (int)case_get(c, "times", 1), (int)case_get(c, "second", 1),
        (int)case_get(c, "third", 1));
    return tutti_op(network, "tile", &x, 1, text);
}

static struct place tiled_from(const struct test_case *c, struct place p)
{
    for (int i = 0; i < AXES; i++) p.at[i] %= sizes_of(c).at[i];
    return p;
}

static void reference_tile(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    (void)parameters;
    struct place to = sizes_of(c);
    to.at[1] *= case_get(c, "times", 1);
    to.at[2] *= case_get(c, "second", 1);
    to.at[3] *= case_get(c, "third", 1);
    gather(c, to, inputs[0], y, tiled_from);
}

static const char *const tiles[] = {
    "tile n2 c3 h4 w5 times2 second3 third2",
    "tile n3 c2 h1 w17 second4",
    "tile n1 c5 h3 w2 times3",
    NULL,
};
static const struct operation_test test_tile = {
    .name = "tile",
    .build = build_tile,
    .reference = reference_tile,
    .cases = tiles,
    .length = length,
};

/* ---------------------------------------------------------------------------------------------------- blocks ---- */

static tutti_tensor build_blocks(tutti_network *network, const struct test_case *c)
{
    const tutti_tensor x = input(network, c);
    const bool depth = case_get(c, "depth", 0);
    char text[64];
    snprintf(
        text, sizeof text, "blocksize=%d%s", (int)case_get(c, "block", 2), case_get(c, "crd", 0) ? " mode=crd" : "");
    return tutti_op(network, depth ? "space_to_depth" : "depth_to_space", &x, 1, text);
}

static struct place block_from(const struct test_case *c, struct place p)
{
    const int64_t b = case_get(c, "block", 2), channels = sizes_of(c).at[1];
    if (case_get(c, "depth", 0)) { /* channel (row of the block, column, channel) */
        const bool crd = case_get(c, "crd", 0);
        const int64_t in_block = crd ? p.at[1] % (b * b) : p.at[1] / channels;
        const int64_t channel = crd ? p.at[1] / b / b : p.at[1] % channels;
        return (struct place) { { p.at[0], channel, p.at[2] * b + in_block / b, p.at[3] * b + in_block % b } };
    }
    const int64_t in_block = p.at[2] % b * b + p.at[3] % b;
    const int64_t channel =
        case_get(c, "crd", 0) ? p.at[1] * b * b + in_block : in_block * (channels / b / b) + p.at[1];
    return (struct place) { { p.at[0], channel, p.at[2] / b, p.at[3] / b } };
}

static void reference_blocks(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    (void)parameters;
    const int64_t b = case_get(c, "block", 2);
    const bool depth = case_get(c, "depth", 0);
    struct place to = sizes_of(c);
    to.at[1] = depth ? to.at[1] * b * b : to.at[1] / b / b;
    for (int i = 2; i < AXES; i++) to.at[i] = depth ? to.at[i] / b : to.at[i] * b;
    gather(c, to, inputs[0], y, block_from);
}

static const char *const blocks[] = {
    "blocks n2 c12 h3 w5 block2",
    "blocks n1 c18 h2 w7 block3 crd1",
    "blocks n2 c3 h4 w6 block2 depth1",
    "blocks n1 c1 h9 w3 block3 depth1",
    "blocks n1 c4 h2 w6 block2 depth1 crd1",
    NULL,
};
static const struct operation_test test_blocks = {
    .name = "blocks",
    .build = build_blocks,
    .reference = reference_blocks,
    .cases = blocks,
    .length = length,
};

/* ---------------------------------------------------------------------------------------------------- resize ---- */

static tutti_tensor build_resize(tutti_network *network, const struct test_case *c)
{
    static const char *const modes[] = { "nearest", "linear", "cubic" },
                             *const coordinates[] = { "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                 "align_corners", "asymmetric", "tf_crop_and_resize" },
                             *const nearest[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil" };
    const tutti_tensor x = input(network, c);
    char text[320];
    snprintf(text, sizeof text,
        "axes=-2,-1 sizes=%d,%d mode=%s coordinate_transformation_mode=%s nearest_mode=%s antialias=%d "
        "exclude_outside=%d extrapolation_value=3%s",
        (int)case_get(c, "rows", 1), (int)case_get(c, "columns", 1), modes[case_get(c, "mode", 0)],
        coordinates[case_get(c, "coordinates", 0)], nearest[case_get(c, "nearest", 0)],
        (int)case_get(c, "antialias", 0), (int)case_get(c, "exclude", 0),
        case_get(c, "coordinates", 0) == 5 ? " roi=0.25,-0.5,1.25,0.75" : "");
    return tutti_op(network, "resize", &x, 1, text);
}

static const char *const resizes[] = {
    "resize n2 c3 h4 w7 rows9 columns5",
    "resize n2 c3 h5 w6 rows10 columns18 mode1",
    "resize n1 c2 h6 w19 rows4 columns7 mode1 antialias1",
    "resize n2 c2 h5 w4 rows8 columns9 mode2 exclude1",
    "resize n1 c3 h9 w5 rows4 columns11 mode2 coordinates3",
    "resize n2 c1 h7 w8 rows5 columns6 mode1 coordinates5",
    "resize n1 c5 h1 w3 rows2 columns1 coordinates4 nearest3",
    NULL,
};
static const struct operation_test test_resize = {
    .name = "resize",
    .build = build_resize,
    .tolerance = TOLERANCE_SUM,
    .cases = resizes,
    .length = length,
};

OPERATION_TESTS(test_rearrange, &test_slice, &test_pad, &test_tile, &test_blocks, &test_resize)
