/* Bf16 dot products, by the processor's own instructions where it has them and by C, which stands
 * in for tiles: how exact sums of parts are, what becomes of infinities, NaN and tiny numbers, that tiles and C agree,
 * and what is told of them. */
#include "base/memory.h"
#include "base/random.h"
#include "runtime/gemm.h"
#include "runtime/memory.h"
#include "runtime/peak.h"
#include "tests/tiles.h"
#include "tutti_inspect.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 67, N = 45, K = 420 };

struct product {
    float a[M * K], b[K * N], c[M * N];
};

static void check(tutti_status status)
{
    ck_assert_msg(status == TUTTI_OK, "%s", tutti_message(NULL));
}

/* form: "plain", "tiles" (emulated where the processor has none), or NULL for the processor's own. */
static tutti_runtime *open_cpu(const char *form)
{
    const bool tiles = form && !strcmp(form, "tiles");
    if (tiles) form = "off";
    ck_assert_int_eq(setenv("TUTTI_DEVICE_CLASS", "cpu", 1), 0);
    ck_assert_int_eq(setenv("TUTTI_VECTOR_WIDTH", "16", 1), 0);
    ck_assert_int_eq(form ? setenv("TUTTI_BF16_DOTS", form, 1) : unsetenv("TUTTI_BF16_DOTS"), 0);
    tutti_runtime *runtime = tutti_open(NULL);
    ck_assert_msg(runtime != NULL, "%s", tutti_message(NULL));
    const char *refusal = tiles ? tiles_use(runtime) : NULL;
    ck_assert_msg(!refusal, "%s", refusal ? refusal : "");
    return runtime;
}

static void multiply(struct device *device, const struct gemm_implementation *implementation, enum compute_type compute,
    struct product *p)
{
    const struct gemm gemm = { .m = M, .n = N, .k = K, .compute = compute, .tile = 1 };
    cl_mem buffers[4] = { 0 };
    struct launch_list list;
    launch_list_init(&list, device);
    const char *refusal = gemm_refusal(implementation, &gemm, &device->can);
    ck_assert_msg(!refusal, "%s", refusal ? refusal : "");
    const size_t workspace = gemm_workspace(implementation, &gemm, &device->can);
    check(buffer_new(device, sizeof p->a, &buffers[0]));
    check(buffer_new(device, sizeof p->b, &buffers[1]));
    check(buffer_new(device, sizeof p->c, &buffers[2]));
    if (workspace) check(buffer_new(device, workspace, &buffers[3]));
    if (workspace) check(buffer_fill(device, buffers[3], 0, workspace, 0x7fc07fc0)); /* pairs of NaN */
    check(buffer_write(device, buffers[0], 0, p->a, sizeof p->a));
    check(buffer_write(device, buffers[1], 0, p->b, sizeof p->b));
    check(buffer_fill(device, buffers[2], 0, sizeof p->c, 0x7fc00000));
    gemm_emit(implementation, &gemm, buffers[0], buffers[1], buffers[2], NULL, buffers[3], &list);
    check(launch_list_realise(&list, NULL, NULL));
    check(launch_list_enqueue(&list, 0, list.count, NULL));
    check(buffer_read(device, buffers[2], 0, p->c, sizeof p->c));
    launch_list_free(&list);
    for (int i = 0; i < 4; i++) buffer_free(&buffers[i]);
}

static struct product *product_new(void)
{
    struct product *p = memory_new(1, sizeof *p);
    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < M * K; i++) p->a[i] = (float)(2 * random_uniform(7, 1, i) - 1);
    for (size_t i = 0; i < K * N; i++) p->b[i] = (float)(2 * random_uniform(7, 2, i) - 1);
    return p;
}

static double exact(const struct product *p, int i, int j)
{
    double sum = 0;
    for (int l = 0; l < K; l++) sum += (double)p->a[i * K + l] * (double)p->b[l * N + j];
    return sum;
}

/* Root mean square of the errors, relative to that of the results. */
static double error_of(const struct product *p)
{
    double errors = 0, all = 0;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            const double want = exact(p, i, j);
            errors += pow((double)p->c[i * N + j] - want, 2);
            all += want * want;
        }
    return sqrt(errors / all);
}

/* Floats by floats, one after the other. */
static double error_of_chain(struct product *p)
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int l = 0; l < K; l++) sum = fmaf(p->a[i * K + l], p->b[l * N + j], sum);
            p->c[i * N + j] = sum;
        }
    return error_of(p);
}

static const char *const forms[] = { "plain", "tiles", NULL };
enum { FORMS = sizeof forms / sizeof *forms };

START_TEST(test_errors)
{
    const char *form = forms[_i];
    tutti_runtime *runtime = open_cpu(form);
    struct product *p = product_new();
    const double chain = error_of_chain(p),
                 limits[] = { [COMPUTE_FP32] = chain, [COMPUTE_TF32] = 1e-5, [COMPUTE_BF16] = 4e-3 };
    for (int d = 0; d < runtime->count; d++)
        for (enum compute_type compute = COMPUTE_FP32; compute <= COMPUTE_BF16; compute++) {
            struct device *device = &runtime->devices[d];
            if (!form && !device->can.bf16[compute].form) continue;
            multiply(device, &gemm_bf16, compute, p);
            const double error = error_of(p);
            ck_assert_msg(error <= limits[compute], "type %d: an error of %g, allowed are %g", (int)compute, error,
                limits[compute]);
            ck_assert_msg(error > 0, "type %d: no error at all", (int)compute);
        }
    free(p);
    tutti_close(runtime);
}
END_TEST

/* Checks that a result is of the kind that IEEE arithmetic gives. */
static void expect_kind(const struct product *p, int i, int j, enum compute_type compute)
{
    const double want = exact(p, i, j), found = (double)p->c[i * N + j];
    const double limit = compute == COMPUTE_BF16 ? 0.3 : 1e-3;
    const bool same = isnan(want) ? isnan(found) : isinf(want) ? found == want : fabs(found - want) <= limit * 10;
    ck_assert_msg(same, "type %d: C[%d][%d] is %g, not %g", (int)compute, i, j, found, want);
}

START_TEST(test_specials)
{
    const char *form = forms[_i];
    tutti_runtime *runtime = open_cpu(form);
    struct device *device = &runtime->devices[0];
    struct product *p = product_new();
    p->a[3 * K + 17] = INFINITY; /* a row of infinities, but where a column has a zero there */
    p->b[17 * N + 5] = 0;        /* infinity times zero */
    p->b[17 * N + 6] = 1;        /* whose second part is zero */
    p->a[20 * K + 200] = -INFINITY;
    p->a[40 * K + 299] = NAN;
    p->b[100 * N + 44] = INFINITY;
    p->a[50 * K + 100] = 0x1p-60f;      /* positive times infinity */
    p->a[60 * K + 1] = 0x1.ffff00p+60f; /* large, and others next to it */
    p->a[61 * K + 2] = 0x1p-130f;       /* subnormal: counts as zero */
    for (enum compute_type compute = COMPUTE_FP32; compute <= COMPUTE_BF16; compute++) {
        if (!form && !device->can.bf16[compute].form) continue;
        multiply(device, &gemm_bf16, compute, p);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++)
                if (i != 60) expect_kind(p, i, j, compute);
        for (int j = 0; j < N - 1; j++) {
            const double want = exact(p, 60, j), found = (double)p->c[60 * N + j];
            ck_assert_msg(fabs(found - want) <= 0.02 * fabs(want), "C[60][%d] is %g, not %g", j, found, want);
        }
    }
    free(p);
    tutti_close(runtime);
}
END_TEST

/* The largest float has no bfloat16 number above it but infinity: parts make up for the lower one. */
START_TEST(test_largest)
{
    tutti_runtime *runtime = open_cpu("plain");
    struct product *p = product_new();
    const float largest = 0x1.fffffep+127f;
    memset(p->b, 0, sizeof p->b);
    p->b[0] = 1;
    for (int i = 0; i < M; i++) p->a[i * K] = i % 2 ? largest : -largest;
    multiply(&runtime->devices[0], &gemm_bf16, COMPUTE_FP32, p);
    for (int i = 0; i < M; i++) ck_assert_float_eq(p->c[i * N], i % 2 ? largest : -largest);
    multiply(&runtime->devices[0], &gemm_bf16, COMPUTE_BF16, p); /* the nearest number is infinity */
    for (int i = 0; i < M; i++) ck_assert_float_eq(p->c[i * N], i % 2 ? INFINITY : -INFINITY);
    free(p);
    tutti_close(runtime);
}
END_TEST

/* Tiles and C give the same bits. */
START_TEST(test_bits)
{
    tutti_runtime *tiles = open_cpu("tiles"), *plain = open_cpu("plain");
    struct product *p = product_new(), *q = product_new();
    for (enum compute_type compute = COMPUTE_FP32; compute <= COMPUTE_BF16; compute++) {
        multiply(&tiles->devices[0], &gemm_bf16, compute, p);
        multiply(&plain->devices[0], &gemm_bf16, compute, q);
        ck_assert_int_eq(memcmp(p->c, q->c, sizeof p->c), 0);
    }
    free(p);
    free(q);
    tutti_close(tiles);
    tutti_close(plain);
}
END_TEST

/* The measurement itself checks that all products were computed. */
START_TEST(test_peaks)
{
    static const char *const asked[] = { "plain", NULL, "off" };
    tutti_runtime *runtime = open_cpu(asked[_i]);
    struct device *device = &runtime->devices[0];
    const bool some = device->can.bf16[COMPUTE_BF16].form != BF16_NONE;
    double flops = -1;
    check(peak_measure_bf16(device, &flops));
    ck_assert_msg(some ? flops > 1e8 && flops < 1e16 : flops == 0, "%g FLOP/s", flops);
    tutti_device_peaks peaks = { 0 };
    check(tutti_device_measure(runtime, 0, &peaks));
    ck_assert_msg(peaks.flops > 1e8 && peaks.flops < 1e16, "%g FLOP/s", peaks.flops);
    ck_assert_msg(peaks.bytes > 1e8 && peaks.bytes < 1e14, "%g B/s", peaks.bytes);
    ck_assert_msg(some == (peaks.bf16_flops > 0), "%g FLOP/s", peaks.bf16_flops);
    device->can.class = DEVICE_GPU;
    check(peak_measure_bf16(device, &flops));
    ck_assert_double_eq(flops, 0);
    device->can.class = DEVICE_CPU;
    ck_assert_int_eq(tutti_device_measure(runtime, 1, &peaks), TUTTI_NO_DEVICE);
    ck_assert_int_eq(tutti_device_measure(runtime, 0, NULL), TUTTI_INVALID);
    peaks.size = 1;
    ck_assert_int_eq(tutti_device_measure(runtime, 0, &peaks), TUTTI_INVALID);
    tutti_close(runtime);
}
END_TEST

static void expect_told(const tutti_runtime *runtime, tutti_precision precision, const char *form, const char *refusal)
{
    const char *told = "none", *why = "none";
    check(tutti_device_bf16(runtime, 0, precision, &told, &why));
    ck_assert_pstr_eq(told, form);
    ck_assert_msg(refusal ? why && strstr(why, refusal) : !why, "precision %d: %s", (int)precision, why ? why : "NULL");
}

/* By the public interface. */
START_TEST(test_told)
{
    const char *form, *refusal;
    tutti_runtime *runtime = open_cpu("plain");
    for (tutti_precision precision = TUTTI_FP32; precision <= TUTTI_FP16; precision++)
        if (precision == TUTTI_FP16)
            expect_told(runtime, precision, NULL, "half precision");
        else
            expect_told(runtime, precision, "plain", NULL);
    ck_assert_int_eq(tutti_device_bf16(runtime, 0, (tutti_precision)4, &form, &refusal), TUTTI_INVALID);
    ck_assert_int_eq(tutti_device_bf16(runtime, 0, (tutti_precision)-1, &form, &refusal), TUTTI_INVALID);
    ck_assert_int_eq(tutti_device_bf16(runtime, 0, TUTTI_BF16, NULL, &refusal), TUTTI_INVALID);
    ck_assert_int_eq(tutti_device_bf16(runtime, 1, TUTTI_BF16, &form, &refusal), TUTTI_NO_DEVICE);
    runtime->devices[0].can.class = DEVICE_GPU;
    expect_told(runtime, TUTTI_BF16, NULL, "CPU-class");
    runtime->devices[0].can.class = DEVICE_CPU;
    struct bf16_ability *ability = runtime->devices[0].can.bf16;
    ability[COMPUTE_FP32].form = BF16_TILES;
    ability[COMPUTE_BF16].form = BF16_DOTS;
    ability[COMPUTE_TF32] = (struct bf16_ability) { BF16_NONE, "no permission" };
    expect_told(runtime, TUTTI_FP32, "tiles", NULL);
    expect_told(runtime, TUTTI_TF32, NULL, "no permission");
    expect_told(runtime, TUTTI_BF16, "dots", NULL);
    tutti_close(runtime);
    runtime = open_cpu("off");
    expect_told(runtime, TUTTI_BF16, NULL, "TUTTI_BF16_DOTS is off");
    tutti_close(runtime);
}
END_TEST

/* Requests are followed, and missing instructions are reported. */
START_TEST(test_refusals)
{
    const struct gemm gemm = { .m = 256, .n = 256, .k = 256, .compute = COMPUTE_BF16 },
                      half = { .m = 256, .n = 256, .k = 256, .compute = COMPUTE_FP16 },
                      small = { .m = 16, .n = 4096, .k = 256, .compute = COMPUTE_BF16 };
    tutti_runtime *runtime = open_cpu("off");
    const char *refusal = gemm_refusal(&gemm_bf16, &gemm, &runtime->devices[0].can);
    ck_assert_msg(refusal && strstr(refusal, "TUTTI_BF16_DOTS"), "%s", refusal ? refusal : "it is taken");
    tutti_close(runtime);
    runtime = open_cpu("plain");
    ck_assert_ptr_null(gemm_refusal(&gemm_bf16, &gemm, &runtime->devices[0].can));
    ck_assert_ptr_nonnull(gemm_refusal(&gemm_bf16, &half, &runtime->devices[0].can));
    tutti_close(runtime);
    runtime = open_cpu(NULL);
    refusal = gemm_refusal(&gemm_bf16, &small, &runtime->devices[0].can);
    if (runtime->devices[0].can.bf16[COMPUTE_BF16].form)
        ck_assert_msg(refusal && strstr(refusal, "too small"), "%s", refusal ? refusal : "it is taken");
    else
        ck_assert_ptr_nonnull(refusal);
    tutti_close(runtime);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bf16");
    TCase *tests = tcase_create("bf16");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, test_errors, 0, FORMS);
    tcase_add_loop_test(tests, test_specials, 0, FORMS);
    tcase_add_test(tests, test_largest);
    tcase_add_test(tests, test_bits);
    tcase_add_test(tests, test_refusals);
    tcase_add_loop_test(tests, test_peaks, 0, 3);
    tcase_add_test(tests, test_told);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
