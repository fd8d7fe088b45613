/* Every implementation of the matrix product, in every transposition, at odd sizes, with every epilogue, on every
 * device and class and with every vector width. The data are small integers, so that sums are exact and equal means
 * equal. Outputs are poisoned with NaN; what lies around every buffer is a sentinel for outputs and NaN for inputs. */
#include "base/memory.h"
#include "base/random.h"
#include "runtime/memory.h"
#include "runtime/tile.h"
#include "tests/runtime/products.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 1024 }; /* floats; a multiple of any alignment of sub-buffers */
static const uint32_t sentinel = 0x12345678u, not_a_number = 0x7fc00000u;

struct matrix {
    cl_mem whole, part;
    float *host;
    size_t floats;
};

static void check(tutti_status status, const char *what)
{
    ck_assert_msg(status == TUTTI_OK, "%s: %s", what, tutti_message(NULL));
}

static struct matrix matrix_new(struct device *device, size_t floats, uint32_t stream, uint32_t around)
{
    struct matrix matrix = { .floats = floats, .host = memory_new(floats, sizeof(float)) };
    ck_assert_ptr_nonnull(matrix.host);
    for (size_t i = 0; i < floats; i++) matrix.host[i] = (float)(random_bits(7, stream, i) % 9) - 4;
    check(buffer_new(device, 4 * (floats + 2 * GUARD), &matrix.whole), "buffer");
    check(buffer_fill(device, matrix.whole, 0, 4 * (floats + 2 * GUARD), around), "fill");
    check(buffer_cut(device, matrix.whole, 4 * GUARD, 4 * floats, &matrix.part), "cut");
    check(buffer_write(device, matrix.part, 0, matrix.host, 4 * floats), "write");
    return matrix;
}

static void matrix_free(struct matrix *matrix)
{
    buffer_free(&matrix->part);
    buffer_free(&matrix->whole);
    free(matrix->host);
}

static enum compute_type computed; /* what the products that are made round their operands to */
static enum matrix_form form;      /* of the matrix instructions that are emulated for them */

/* Changes the numbers on the device by so little that rounding restores the host's numbers, but by more than a type
 * with more bits would round away. */
static void disturb(struct device *device, const struct matrix *matrix)
{
    const double by = computed == COMPUTE_TF32 ? 1 + 0x1p-12 : 1 + 0x1p-9;
    float *host = memory_new(matrix->floats, sizeof(float));
    ck_assert_ptr_nonnull(host);
    for (size_t i = 0; i < matrix->floats; i++) host[i] = (float)(matrix->host[i] * by);
    check(buffer_write(device, matrix->part, 0, host, 4 * matrix->floats), "write");
    free(host);
}

struct test {
    struct gemm gemm;
    bool other; /* what is added does not lie in C */
    struct matrix a, b, c, bias, add;
    cl_mem workspace;
    char name[256];
};

static double activate(const char *activation, double x)
{
    if (!activation) return x;
    if (strstr(activation, "ACTIVATE=1")) return fmax(x, 0);
    if (strstr(activation, "ACTIVATE=2")) return fmin(fmax(x, 0), 6);
    return x < 0 ? 0.25 * x : x;
}

static double element(const struct test *test, int64_t p, int64_t i, int64_t j)
{
    const struct gemm *g = &test->gemm;
    double sum = 0;
    for (int64_t l = 0; l < g->k; l++)
        sum += (double)test->a.host[p * g->a.stride + (g->transpose_a ? l * g->a.ld + i : i * g->a.ld + l)] *
            (double)test->b.host[p * g->b.stride + (g->transpose_b ? j * g->b.ld + l : l * g->b.ld + j)];
    if (g->bias) sum += (double)test->bias.host[j];
    const struct matrix *added = test->other ? &test->add : &test->c;
    if (g->accumulate) sum += (double)added->host[p * g->c.stride + i * g->c.ld + j];
    return activate(g->activation, sum);
}

static void compare(struct device *device, const struct test *test)
{
    const struct gemm *g = &test->gemm;
    const size_t total = test->c.floats + 2 * GUARD;
    float *found = memory_new(total, sizeof(float));
    ck_assert_ptr_nonnull(found);
    check(buffer_read(device, test->c.whole, 0, found, 4 * total), test->name);
    size_t touched = 0;
    for (int64_t p = 0; p < g->batch; p++)
        for (int64_t i = 0; i < g->m; i++)
            for (int64_t j = 0; j < g->n; j++) {
                float *at = &found[GUARD + p * g->c.stride + i * g->c.ld + j];
                const double expected = element(test, p, i, j);
                ck_assert_msg((double)*at == expected, "%s: C[%d][%d][%d] is %g, not %g", test->name, (int)p, (int)i,
                    (int)j, (double)*at, expected);
                memcpy(at, &sentinel, 4);
                touched++;
            }
    ck_assert_uint_gt(touched, 0);
    for (size_t i = 0; i < total; i++)
        ck_assert_msg(!memcmp(&found[i], &sentinel, 4), "%s: wrote outside of C, at %d", test->name, (int)i - GUARD);
    free(found);
}

/* C's own memory: the sentinel between its rows; inside, NaN or what is added. */
static void fill_c(struct device *device, struct test *test)
{
    const struct gemm *g = &test->gemm;
    float *host = memory_new(test->c.floats, sizeof(float));
    ck_assert_ptr_nonnull(host);
    for (size_t i = 0; i < test->c.floats; i++) memcpy(&host[i], &sentinel, 4);
    for (int64_t p = 0; p < g->batch; p++)
        for (int64_t i = 0; i < g->m; i++)
            for (int64_t j = 0; j < g->n; j++) {
                const int64_t at = p * g->c.stride + i * g->c.ld + j;
                if (g->accumulate && !test->other)
                    host[at] = test->c.host[at];
                else
                    memcpy(&host[at], &not_a_number, 4);
            }
    check(buffer_write(device, test->c.part, 0, host, 4 * test->c.floats), test->name);
    free(host);
}

struct sizes {
    int64_t m, n, k, batch, padding;
};

/* The last tile of a form is small, and so compiles quickly. */
static int tile_of(int number)
{
    const struct tile *list[TILES];
    if (form) return tile_list(form, computed, list);
    return computed ? 3 : number / 4 % TILES + 1;
}

/* The memory that a product gets: the matrix alone, or all of its buffer, in which it begins after the guard. */
static cl_mem memory_of(const struct test *test, const struct matrix *matrix)
{
    return test->gemm.c.from ? matrix->whole : matrix->part;
}

static void test_new(struct device *device, const struct gemm_implementation *implementation, const struct sizes *s,
    int number, struct test *test)
{
    static const char *const activations[] = { NULL, "-DACTIVATE=1", "-DACTIVATE=2 -DLOW=0.0f -DHIGH=6.0f",
        "-DACTIVATE=3 -DLOW=0.25f" };
    const int transposition = number % 4, epilogue = (number / 4 + number) % 8;
    struct gemm *g = &test->gemm;
    *g = (struct gemm) { .m = s->m,
        .n = s->n,
        .k = s->k,
        .batch = s->batch,
        .transpose_a = transposition & 1,
        .transpose_b = transposition & 2,
        .bias = epilogue & 1,
        .accumulate = epilogue & 2,
        .compute = computed,
        .tile = tile_of(number),
        .splits = 1 + number % 3 };
    g->activation = activations[epilogue & 3];
    test->other = (epilogue & 4) && g->accumulate;
    g->a.ld = (g->transpose_a ? s->m : s->k) + s->padding;
    g->b.ld = (g->transpose_b ? s->k : s->n) + s->padding;
    g->c.ld = s->n + s->padding;
    g->a.stride = g->a.ld * (g->transpose_a ? s->k : s->m) + 3 * s->padding;
    g->b.stride = g->b.ld * (g->transpose_b ? s->n : s->k) + 3 * s->padding;
    g->c.stride = g->c.ld * s->m + 3 * s->padding;
    const bool begins_later =
        implementation == &gemm_pipelined || implementation == &gemm_matrix || implementation == &gemm_tiled;
    if (begins_later && number % 2) g->a.from = g->b.from = g->c.from = GUARD;
    snprintf(test->name, sizeof test->name,
        "gemm %s %s m%d n%d k%d batch%d padding%d ta%d tb%d epilogue%d tile%d splits%d", device->can.name,
        name_of(implementation), (int)s->m, (int)s->n, (int)s->k, (int)s->batch, (int)s->padding, g->transpose_a,
        g->transpose_b, epilogue, g->tile, g->splits);
    test->a = matrix_new(device, (size_t)(g->a.stride * s->batch), 1, not_a_number);
    test->b = matrix_new(device, (size_t)(g->b.stride * s->batch), 2, not_a_number);
    if (computed && !(implementation == &gemm_bf16 && computed == COMPUTE_TF32)) { /* two parts restore the numbers */
        disturb(device, &test->a);
        disturb(device, &test->b);
    }
    test->c = matrix_new(device, (size_t)(g->c.stride * s->batch), 3, sentinel);
    test->add = matrix_new(device, (size_t)(g->c.stride * s->batch), 4, not_a_number);
    test->bias = matrix_new(device, (size_t)s->n, 5, not_a_number);
    if (test->other) g->add = memory_of(test, &test->add);
    const size_t bytes = gemm_workspace(implementation, g, &device->can);
    if (bytes) check(buffer_new(device, bytes, &test->workspace), test->name);
}

static void test_free(struct test *test)
{
    matrix_free(&test->a);
    matrix_free(&test->b);
    matrix_free(&test->c);
    matrix_free(&test->add);
    matrix_free(&test->bias);
    buffer_free(&test->workspace);
}

static bool few; /* each size in one transposition instead of all four: the next size in the next one */

/* With matrix instructions, which compile slowly, each form has one transposition. */
static bool is_wanted(int number)
{
    if (form) return number % 4 == (int)form % 4;
    return !few || number % 4 == number / 4 % 4;
}

/* All that one implementation takes; returns how many. */
static int run(
    struct device *device, const struct gemm_implementation *implementation, const struct sizes *sizes, int size_count)
{
    struct launch_list list;
    launch_list_init(&list, device);
    const int most = size_count * 4;
    struct test *tests = memory_new((size_t)most, sizeof *tests);
    ck_assert_ptr_nonnull(tests);
    int count = 0;
    for (int i = 0; i < most; i++) {
        struct test *test = &tests[count];
        if (!is_wanted(i)) continue;
        test_new(device, implementation, &sizes[i / 4], i, test);
        if (gemm_refusal(implementation, &test->gemm, &device->can)) {
            test_free(test);
            *test = (struct test) { 0 };
            continue;
        }
        gemm_emit(implementation, &test->gemm, memory_of(test, &test->a), memory_of(test, &test->b),
            memory_of(test, &test->c), test->bias.part, test->workspace, &list);
        count++;
    }
    check(launch_list_realise(&list, NULL, NULL), name_of(implementation));
    for (int i = 0; i < count; i++) fill_c(device, &tests[i]);
    check(launch_list_enqueue(&list, 0, list.count, NULL), name_of(implementation));
    check(device_wait(device), name_of(implementation));
    for (int i = 0; i < count; i++) {
        compare(device, &tests[i]);
        test_free(&tests[i]);
    }
    free(tests);
    launch_list_free(&list);
    return count;
}

static const struct sizes odd_sizes[] = {
    { 1, 1, 1, 1, 0 },
    { 7, 5, 3, 1, 0 },
    { 13, 33, 17, 1, 1 },
    { 100, 10, 257, 1, 0 },
    { 65, 129, 1030, 1, 0 },
    { 31, 67, 513, 1, 3 },
    { 64, 64, 64, 1, 0 },
    { 8, 130, 70, 1, 0 },
    { 3, 515, 37, 1, 5 },
    { 1, 1000, 19, 1, 0 },
    { 130, 70, 8, 1, 0 },
    { 515, 45, 5, 1, 2 },
    { 1, 6, 1100, 1, 0 },
    { 17, 3, 5, 4, 0 },
    { 24, 48, 40, 3, 1 },
    { 33, 16, 128, 2, 0 },
    { 2, 9, 4, 1, 0 },
    { 300, 1, 20, 1, 0 },
};
enum { SIZES = sizeof odd_sizes / sizeof *odd_sizes };
/* Around the lengths from which on a sum is made in short chains, and in parts, on a CPU. */
static const struct sizes long_sizes[] = {
    { 8, 17, 12800, 1, 0 },
    { 9, 10, 4095, 1, 0 },
    { 13, 19, 4096, 1, 3 },
    { 3, 33, 4161, 2, 1 },
    { 9, 10, 12801, 1, 3 },
    { 5, 35, 25607, 2, 1 },
};
enum { LONG_SIZES = sizeof long_sizes / sizeof *long_sizes };
/* One for each shape of a work-group's tile, which each kind of fours and edges should meet. */
static const struct sizes tile_sizes[TILES] = {
    { 260, 132, 36, 1, 0 },
    { 67, 131, 9, 2, 1 },
    { 72, 64, 40, 2, 4 },
    { 33, 67, 130, 1, 0 },
    { 31, 44, 70, 1, 0 },
    { 20, 33, 64, 3, 0 },
    { 8, 260, 257, 1, 3 },
    { 132, 8, 100, 1, 0 },
};

/* Every implementation that is named takes some product. */
static void run_all(const char *class, const char *width, const char *names, const struct sizes *sizes, int size_count)
{
    ck_assert_int_eq(setenv("TUTTI_DEVICE_CLASS", class, 1), 0);
    ck_assert_int_eq(setenv("TUTTI_VECTOR_WIDTH", width, 1), 0);
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "all" });
    ck_assert_msg(runtime != NULL, "%s", tutti_message(NULL));
    for (int d = 0; d < runtime->count; d++)
        for (int i = 0; i < PRODUCTS; i++) {
            if (!strstr(names, products[i].name)) continue;
            const int done = run(&runtime->devices[d], products[i].implementation, sizes, size_count);
            ck_assert_msg(done > 0, "%s takes nothing on a device of class %s", products[i].name, class);
        }
    tutti_close(runtime);
}

START_TEST(test_cpu_16)
{
    run_all("cpu", "16", "packed skinny plain", odd_sizes, SIZES);
}
END_TEST
/* Narrower vectors are the same code: half of the sizes each, since every kernel takes a while to compile. */
START_TEST(test_cpu_8)
{
    run_all("cpu", "8", "packed skinny", odd_sizes, SIZES / (few ? 4 : 2));
}
END_TEST
START_TEST(test_cpu_4)
{
    run_all("cpu", "4", "packed skinny", odd_sizes + SIZES / 2, SIZES / (few ? 4 : 2));
}
END_TEST
START_TEST(test_long)
{
    static const char *const widths[] = { "16", "8", "4" };
    run_all("cpu", widths[_i], "packed skinny plain", long_sizes, LONG_SIZES);
}
END_TEST
START_TEST(test_bf16)
{
    ck_assert_int_eq(setenv("TUTTI_BF16_DOTS", "plain", 1), 0);
    for (computed = COMPUTE_FP32; computed <= COMPUTE_BF16; computed++) {
        if (few) /* each compute type has a third of the sizes */
            run_all("cpu", "16", "bf16", odd_sizes + SIZES / 3 * (computed - COMPUTE_FP32), SIZES / 3);
        else
            run_all("cpu", "16", "bf16", odd_sizes, SIZES);
        run_all("cpu", "16", "bf16", &long_sizes[2], few ? 1 : LONG_SIZES - 2);
    }
    ck_assert_int_eq(unsetenv("TUTTI_BF16_DOTS"), 0);
}
END_TEST
START_TEST(test_gpu)
{
    run_all("gpu", "4", "plain", odd_sizes, SIZES);
    if (few) /* one product, not a batch of them: CLBlast compiles many large kernels for each of the two */
        run_all("gpu", "4", "clblast", odd_sizes + SIZES - 6, 1);
    else
        run_all("gpu", "4", "clblast", odd_sizes, SIZES);
}
END_TEST
START_TEST(test_tiled)
{
    run_all("gpu", "4", "tiled", tile_sizes, TILES);
    run_all("gpu", "4", "tiled", &long_sizes[3], few ? 1 : LONG_SIZES - 3);
    for (computed = COMPUTE_TF32; computed <= COMPUTE_BF16; computed++) run_all("gpu", "4", "tiled", &tile_sizes[3], 1);
}
END_TEST

/* The first device as a GPU, whose verdicts nobody else sees. */
static tutti_runtime *open_gpu(void)
{
    ck_assert_int_eq(setenv("TUTTI_DEVICE_CLASS", "gpu", 1), 0);
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .cache_folder = "" });
    ck_assert_msg(runtime != NULL, "%s", tutti_message(NULL));
    return runtime;
}

/* Opens a device with the instructions that tests/emulation's layer gives it; fault: the layer's name of a fault, or
 * NULL. */
static tutti_runtime *open_emulated(enum matrix_form matrix_form, const char *fault)
{
    char number[16];
    snprintf(number, sizeof number, "%d", (int)matrix_form);
    ck_assert_int_eq(setenv("EMULATED_MATRIX", number, 1), 0);
    if (fault) ck_assert_int_eq(setenv("EMULATED_FAULT", fault, 1), 0);
    return open_gpu();
}

/* Halves have fewer exponents than floats: the ends of their range, and what lies in the middle between two of them. */
START_TEST(test_half)
{
    enum { COUNT = 9 };
    static const float numbers[COUNT] = { 1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 65519, 65520, -65520, -0x1.8p-24f, 0x1p-25f,
        0x1.ffcp-15f, NAN },
                       halves[COUNT] = { 1, 1 + 0x1p-9f, 65504, INFINITY, -INFINITY, -0x1p-23f, 0, 0x1p-14f, NAN };
    tutti_runtime *runtime = open_gpu();
    struct device *device = &runtime->devices[0];
    const struct gemm gemm = { .m = COUNT, .n = 1, .k = 1, .compute = COMPUTE_FP16, .splits = 1 };
    const float one = 1;
    float found[COUNT];
    cl_mem a, b, c;
    struct launch_list list;
    launch_list_init(&list, device);
    check(buffer_new(device, sizeof numbers, &a), "a");
    check(buffer_new(device, sizeof one, &b), "b");
    check(buffer_new(device, sizeof found, &c), "c");
    check(buffer_write(device, a, 0, numbers, sizeof numbers), "a");
    check(buffer_write(device, b, 0, &one, sizeof one), "b");
    ck_assert_ptr_null(gemm_refusal(&gemm_tiled, &gemm, &device->can));
    gemm_emit(&gemm_tiled, &gemm, a, b, c, NULL, NULL, &list);
    check(launch_list_realise(&list, NULL, NULL), "tiled");
    check(launch_list_enqueue(&list, 0, list.count, NULL), "tiled");
    check(buffer_read(device, c, 0, found, sizeof found), "c");
    for (int i = 0; i < COUNT; i++)
        ck_assert_msg(isnan(halves[i]) ? isnan(found[i]) : found[i] == halves[i], "%a becomes %a, not %a",
            (double)numbers[i], (double)found[i], (double)halves[i]);
    launch_list_free(&list);
    buffer_free(&a);
    buffer_free(&b);
    buffer_free(&c);
    tutti_close(runtime);
}
END_TEST

/* few: the first form and the last; between them only the instruction is another one. */
START_TEST(test_matrix)
{
    for (form = MATRIX_MMA; form < MATRIX_FORMS; form += few ? MATRIX_FORMS - 1 - MATRIX_MMA : 1) {
        tutti_runtime *runtime = open_emulated(form, NULL);
        struct device *device = &runtime->devices[0];
        for (computed = COMPUTE_TF32; computed <= COMPUTE_BF16; computed++) {
            const struct tile *list[TILES];
            const bool has = tile_list(form, computed, list) > 0;
            ck_assert_int_eq(device->can.matrix[computed].form, has ? form : MATRIX_NONE);
            ck_assert_int_eq(run(device, &gemm_matrix, &tile_sizes[3], 1), has);
        }
        tutti_close(runtime);
    }
}
END_TEST

/* Fewer steps than are under way at a time, and more; parts of a tile, and more than one; from copies of whole fours,
 * and of single floats. */
static const struct sizes pipelined_sizes[] = {
    { 133, 71, 149, 1, 0 },
    { 260, 132, 64, 1, 0 },
    { 67, 131, 9, 2, 1 },
    { 72, 64, 40, 2, 4 },
};

START_TEST(test_pipelined)
{
    tutti_runtime *runtime = open_emulated(MATRIX_MMA_LDMATRIX, NULL);
    struct device *device = &runtime->devices[0];
    const struct gemm small = { .m = 64, .n = 64, .k = 64, .compute = COMPUTE_BF16 };
    const char *refusal = gemm_refusal(&gemm_pipelined, &small, &device->can);
    ck_assert_msg(refusal && strstr(refusal, "too small"), "%s", refusal ? refusal : "it is taken");
    for (computed = COMPUTE_TF32; computed <= COMPUTE_BF16; computed++)
        ck_assert_int_gt(run(device, &gemm_pipelined, pipelined_sizes, 4), 3);
    tutti_close(runtime);
}
END_TEST

/* Checks a device without matrix instructions for these products: it gives the reason, and takes the next product. */
static void expect_none(tutti_runtime *runtime, const char *reason)
{
    const struct capabilities *can = &runtime->devices[0].can;
    const struct gemm gemm = { .m = 64, .n = 64, .k = 64, .compute = COMPUTE_BF16 };
    const char *refusal = gemm_refusal(&gemm_matrix, &gemm, can);
    ck_assert_int_eq(can->matrix[COMPUTE_BF16].form, MATRIX_NONE);
    ck_assert_msg(refusal && strstr(refusal, reason), "%s", refusal ? refusal : "it is taken");
    ck_assert_ptr_null(gemm_refusal(&gemm_tiled, &gemm, can));
    tutti_close(runtime);
}

START_TEST(test_unproven)
{
    expect_none(open_gpu(), "no extension");
    expect_none(open_emulated(MATRIX_WMMA, "build"), "do not compile");
    expect_none(open_emulated(MATRIX_WMMA, "result"), "an element of its product is");
}
END_TEST

/* "few" as its argument: an eighth of the products. */
int main(int argc, char **argv)
{
    few = argc > 1 && !strcmp(argv[1], "few");
    Suite *suite = suite_create("gemm");
    TCase *tests = tcase_create("cpu"), *gpu = tcase_create("gpu"), *tiled = tcase_create("tiled"),
          *matrix = tcase_create("matrix");
    tcase_add_test(tests, test_cpu_16);
    tcase_add_test(tests, test_bf16);
    tcase_add_test(tests, test_cpu_8);
    tcase_add_test(tests, test_cpu_4);
    tcase_add_loop_test(tests, test_long, 0, few ? 1 : 3);
    tcase_add_test(gpu, test_gpu);
    tcase_add_test(tiled, test_tiled);
    tcase_add_test(tiled, test_half);
    tcase_add_test(matrix, test_matrix);
    tcase_add_test(matrix, test_pipelined);
    tcase_add_test(matrix, test_unproven);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, gpu);
    suite_add_tcase(suite, tiled);
    suite_add_tcase(suite, matrix);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
