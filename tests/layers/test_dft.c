/* dft n h w [axis inverse onesided length real]: ONNX's, of samples [h][w][1 or 2] along axis 0 or 1.
 * rfft n h w [dim length], irfft n h w [dim length]: of samples [h][w], spectra [h][w][2].
 * rfft2 n c h w [rows columns], irfft2 n c h w [height width]: of samples [c][h][w], spectra [c][h][w][2]; with rows or
 * height, the lowest frequencies alone.
 * modes n c h w rows columns: the lowest frequencies of what a convolution made, and back: images in blocks of
 * channels. */
#include <stdio.h>

#include "tests/layers/cases.h"
#include "tutti_sequences.h"

static tutti_tensor build_dft(tutti_network *network, const struct test_case *c)
{
    char text[96];
    const tutti_tensor x = tutti_input(
        network, "x", TUTTI_SHAPE(case_get(c, "h", 1), case_get(c, "w", 1), case_get(c, "real", 0) ? 1 : 2));
    const int64_t length = case_get(c, "length", 0);
    const int used = snprintf(text, sizeof text, "axis=%d inverse=%d onesided=%d", (int)case_get(c, "axis", 1),
        (int)case_get(c, "inverse", 0), (int)case_get(c, "onesided", 0));
    if (length) snprintf(text + used, sizeof text - (size_t)used, " length=%d", (int)length);
    return tutti_op(network, "dft", &x, 1, text);
}

static tutti_tensor build_rfft(tutti_network *network, const struct test_case *c)
{
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(case_get(c, "h", 1), case_get(c, "w", 1)));
    return tutti_rfft(network, x, (int)case_get(c, "dim", 1), case_get(c, "length", 0));
}

static tutti_tensor build_irfft(tutti_network *network, const struct test_case *c)
{
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(case_get(c, "h", 1), case_get(c, "w", 1), 2));
    return tutti_irfft(network, x, (int)case_get(c, "dim", 1), case_get(c, "length", 0));
}

static tutti_tensor build_rfft2(tutti_network *network, const struct test_case *c)
{
    const int64_t rows = case_get(c, "rows", 0);
    const tutti_tensor x =
        tutti_input(network, "x", TUTTI_SHAPE(case_get(c, "c", 1), case_get(c, "h", 1), case_get(c, "w", 1)));
    return rows ? tutti_rfft2_modes(network, x, rows, case_get(c, "columns", 1)) : tutti_rfft2(network, x);
}

static tutti_tensor build_irfft2(tutti_network *network, const struct test_case *c)
{
    const int64_t height = case_get(c, "height", 0), width = case_get(c, "width", 0);
    const tutti_tensor x =
        tutti_input(network, "x", TUTTI_SHAPE(case_get(c, "c", 1), case_get(c, "h", 1), case_get(c, "w", 1), 2));
    return height ? tutti_irfft2_modes(network, x, height, width) : tutti_irfft2(network, x, width);
}

static tutti_tensor build_modes(tutti_network *network, const struct test_case *c)
{
    const int64_t channels = case_get(c, "c", 1), h = case_get(c, "h", 1), w = case_get(c, "w", 1);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(1, h, w));
    x = tutti_conv2d(network, x, channels, 1, NULL);
    x = tutti_rfft2_modes(network, x, case_get(c, "rows", 1), case_get(c, "columns", 1));
    x = tutti_irfft2_modes(network, x, h, w);
    return tutti_conv2d(network, x, 1, 1, NULL);
}

/* Errors of fast transforms grow with the logarithm of the length. */
static int64_t length(const struct test_case *c)
{
    const int64_t h = case_get(c, "h", 1), w = case_get(c, "w", 1), given = case_get(c, "length", 0);
    const int64_t most = h > w ? h : w;
    return given > most ? given : most;
}

/* Two transforms that sum all pixels, and the sums over channels before and after them. */
static int64_t length_of_modes(const struct test_case *c)
{
    return 2 * (case_get(c, "h", 1) * case_get(c, "w", 1) + case_get(c, "c", 1));
}

/* Each radix, its products, lengths with large factors; real and complex, both axes, more transforms than lanes. */
static const char *const dfts[] = {
    "dft n2 h3 w8",
    "dft n1 h1 w1",
    "dft n2 h5 w6 axis0",
    "dft n3 h7 w12 inverse1",
    "dft n2 h3 w30 real1",
    "dft n2 h3 w15 real1 onesided1",
    "dft n2 h3 w9 inverse1 onesided1",
    "dft n2 h3 w9 inverse1 onesided1 length15",
    "dft n2 h3 w9 inverse1 onesided1 length8",
    "dft n1 h3 w17",
    "dft n2 h2 w85 axis1 real1",
    "dft n1 h37 w5 axis0",
    "dft n1 h2 w74 inverse1",
    "dft n1 h41 w3 axis0 real1 onesided1",
    "dft n2 h22 w41 axis1 inverse1 onesided1 length83",
    "dft n2 h10 w20 length32 real1",
    "dft n2 h10 w20 length12",
    "dft n2 h20 w3 axis0 length7 inverse1",
    "dft n3 h16 w128",
    "dft n1 h64 w40 axis0",
    "dft n2 h20 w20 axis0 inverse1 real1",
    "dft n1 h1 w2048",
    NULL,
};
static const char *const rffts[] = {
    "rfft n2 h3 w8",
    "rfft n20 h2 w16",
    "rfft n2 h9 w5 dim0",
    "rfft n1 h24 w80 dim0",
    "rfft n40 h2 w21",
    "rfft n9 h5 w64",
    "rfft n2 h4 w6 length10",
    "rfft n2 h4 w16 length9",
    "rfft n1 h67 w3 dim0",
    NULL,
};
static const char *const irffts[] = {
    "irfft n2 h3 w5",
    "irfft n20 h2 w9",
    "irfft n2 h9 w5 dim0",
    "irfft n1 h25 w80 dim0",
    "irfft n40 h2 w11 length21",
    "irfft n9 h5 w33",
    "irfft n2 h4 w6 length14",
    "irfft n2 h4 w16 length9",
    "irfft n1 h34 w3 dim0 length67",
    NULL,
};
static const char *const rfft2s[] = {
    "rfft2 n2 c2 h6 w8",
    "rfft2 n1 c3 h17 w34",
    "rfft2 n2 c3 h12 w10 rows4 columns3",
    "rfft2 n2 c2 h17 w19 rows5 columns4",
    "rfft2 n1 c8 h32 w32 rows8 columns8",
    "rfft2 n2 c9 h13 w18 rows13 columns10",
    "rfft2 n1 c33 h6 w37 rows5 columns3",
    "rfft2 n3 c6 h9 w16 rows1 columns1",
    "rfft2 n1 c1 h1 w1 rows1 columns1",
    "rfft2 n1 c2 h2 w130 rows2 columns50",
    "rfft2 n1 c2 h4 w64 rows4 columns33",
    "rfft2 n2 c2 h16 w16",
    "rfft2 n1 c3 h31 w29",
    "rfft2 n1 c2 h30 w135",
    "rfft2 n3 c1 h48 w64 rows33 columns32",
    "rfft2 n1 c2 h15 w98 rows15 columns45",
    "rfft2 n1 c2 h64 w37",
    NULL,
};
static const char *const irfft2s[] = {
    "irfft2 n2 c2 h6 w5",
    "irfft2 n1 c3 h17 w18 width34",
    "irfft2 n2 c3 h4 w3 height12 width10",
    "irfft2 n2 c2 h5 w4 height17 width19",
    "irfft2 n1 c8 h8 w8 height32 width32",
    "irfft2 n2 c9 h13 w10 height13 width18",
    "irfft2 n1 c33 h5 w3 height6 width37",
    "irfft2 n3 c6 h1 w1 height9 width16",
    "irfft2 n1 c1 h1 w1 height1 width1",
    "irfft2 n1 c2 h2 w50 height2 width130",
    "irfft2 n1 c2 h4 w33 height4 width64",
    "irfft2 n2 c2 h16 w9",
    "irfft2 n1 c3 h31 w15 width29",
    "irfft2 n1 c2 h30 w68 width135",
    "irfft2 n3 c1 h33 w32 height48 width64",
    "irfft2 n1 c2 h15 w45 height15 width98",
    "irfft2 n1 c2 h64 w19 width37",
    NULL,
};

static const char *const modes[] = {
    "modes n2 c16 h12 w10 rows4 columns3",
    "modes n1 c32 h7 w17 rows5 columns4",
    "modes n2 c18 h8 w8 rows3 columns2",
    NULL,
};

#define TEST(label, lines, sums)                        \
    static const struct operation_test test_##label = { \
        .name = #label,                                 \
        .build = build_##label,                         \
        .cases = lines,                                 \
        .tolerance = TOLERANCE_SUM,                     \
        .length = sums,                                 \
        .reals = true,                                  \
    };
TEST(dft, dfts, length)
TEST(rfft, rffts, length)
TEST(irfft, irffts, length)
TEST(rfft2, rfft2s, length)
TEST(irfft2, irfft2s, length)
TEST(modes, modes, length_of_modes)

OPERATION_TESTS(test_dft, &test_dft, &test_rfft, &test_irfft, &test_rfft2, &test_irfft2, &test_modes)
