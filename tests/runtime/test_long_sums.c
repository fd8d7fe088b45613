/* Products of equal numbers with long sums, by every implementation: the result is right within 1e-6, or within 3e-4
 * where a GPU-class device has one chain in each part. A single chain of additions would be off by 1e-4 with 10,000
 * terms, and by 1e-2 with ten million. */
#include "base/memory.h"
#include "runtime/memory.h"
#include "runtime/tile.h"
#include "tests/runtime/products.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 4, N = 4 };
static const float value = 0.1f;
static int64_t terms = 16387;
/* From so many on, A alone is transposed, as rows may be too long else; packed terms may take too much memory. */
enum { MANY = 1000000 };

static void check(tutti_status status, const char *what)
{
    ck_assert_msg(status == TUTTI_OK, "%s: %s", what, tutti_message(NULL));
}

static cl_mem filled(struct device *device, int64_t count)
{
    uint32_t bits;
    cl_mem buffer;
    memcpy(&bits, &value, sizeof bits);
    check(buffer_new(device, (size_t)count * sizeof(float), &buffer), "buffer");
    check(buffer_fill(device, buffer, 0, (size_t)count * sizeof(float), bits), "fill");
    return buffer;
}

static void compare(struct device *device, cl_mem c, const char *name)
{
    float found[M * N];
    const double want = (double)value * (double)value * (double)terms;
    double off = 0;
    check(buffer_read(device, c, 0, found, sizeof found), name);
    for (int i = 0; i < M * N; i++) off = fmax(off, fabs((double)found[i] / want - 1));
    /* Below, a GPU-class device adds each part in one chain. */
    const double most_off = device->can.class == DEVICE_GPU && terms < TILE_LONG ? 3e-4 : 1e-6;
    ck_assert_msg(off <= most_off, "%s: %lld terms are off by %g", name, (long long)terms, off);
}

/* Returns whether the implementation takes the product. */
static bool product(
    struct device *device, const struct gemm_implementation *implementation, bool transpose_a, bool transpose_b)
{
    const struct gemm gemm = { .m = M,
        .n = N,
        .k = terms,
        .transpose_a = transpose_a,
        .transpose_b = transpose_b,
        .tile = implementation == &gemm_bf16 };
    const char *name = name_of(implementation);
    if (gemm_refusal(implementation, &gemm, &device->can)) return false;
    cl_mem a = filled(device, M * terms), b = filled(device, N * terms), c = filled(device, M * N), workspace = NULL;
    const size_t bytes = gemm_workspace(implementation, &gemm, &device->can);
    if (bytes) check(buffer_new(device, bytes, &workspace), name);
    struct launch_list list;
    launch_list_init(&list, device);
    gemm_emit(implementation, &gemm, a, b, c, NULL, workspace, &list);
    check(launch_list_realise(&list, NULL, NULL), name);
    check(launch_list_enqueue(&list, 0, list.count, NULL), name);
    check(device_wait(device), name);
    compare(device, c, name);
    launch_list_free(&list);
    buffer_free(&a);
    buffer_free(&b);
    buffer_free(&c);
    buffer_free(&workspace);
    return true;
}

static tutti_runtime *open_as(const char *class, const char *width, const char *bf16)
{
    ck_assert_int_eq(setenv("TUTTI_DEVICE_CLASS", class, 1), 0);
    ck_assert_int_eq(setenv("TUTTI_VECTOR_WIDTH", width, 1), 0);
    ck_assert_int_eq(bf16 ? setenv("TUTTI_BF16_DOTS", bf16, 1) : unsetenv("TUTTI_BF16_DOTS"), 0);
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "0" });
    ck_assert_msg(runtime != NULL, "%s", tutti_message(NULL));
    return runtime;
}

/* Each implementation that is named takes a product. Of many terms, only the first: "skinny" does not take this
 * transposition, and "plain" computes 64 x 64 results for the 16, which takes minutes. */
static void run(const char *class, const char *width, const char *names)
{
    tutti_runtime *runtime = open_as(class, width, "off");
    for (int i = 0; i < PRODUCTS; i++) {
        const struct gemm_implementation *implementation = products[i].implementation;
        const char *name = products[i].name;
        const char *found = strstr(names, name);
        if (!found || (terms >= MANY && found != names)) continue;
        bool taken = false;
        for (int transposed = terms >= MANY; transposed < 4;
             transposed += terms < MANY ? 1 + (implementation == &gemm_tiled) : 4)
            taken |= product(&runtime->devices[0], implementation, transposed & 1, transposed & 2);
        ck_assert_msg(taken, "%s takes nothing", name);
    }
    tutti_close(runtime);
}

/* "plain" is the same kernel at every width. */
START_TEST(test_cpu)
{
    static const char *const widths[] = { "16", "8", "4" };
    run("cpu", widths[_i], _i == 0 ? "packed skinny plain" : "packed skinny");
}
END_TEST
START_TEST(test_gpu)
{
    run("gpu", "4", "tiled plain");
}
END_TEST
/* Numbers as sums of three of bfloat16, by C and by what the processor has: its tiles, and its dot products. */
START_TEST(test_bf16)
{
    tutti_runtime *runtime = open_as("cpu", "16", _i == 0 ? "plain" : NULL);
    struct device *device = &runtime->devices[0];
    enum bf16_form *form = &device->can.bf16[COMPUTE_FP32].form;
    if (*form == BF16_NONE) *form = device->can.bf16[COMPUTE_TF32].form; /* others would be slower */
    if (_i == 2 && *form == BF16_TILES) *form = BF16_DOTS;
    ck_assert(product(device, &gemm_bf16, true, false) || _i > 0 || terms >= MANY);
    tutti_close(runtime);
}
END_TEST

/* The number of terms as its argument. */
int main(int argc, char **argv)
{
    if (argc > 1) terms = atoll(argv[1]);
    if (terms < 1) return 2;
    Suite *suite = suite_create("long sums");
    TCase *tests = tcase_create("floats"), *bf16 = tcase_create("bf16");
    tcase_add_loop_test(tests, test_cpu, 0, 3);
    tcase_add_test(tests, test_gpu);
    tcase_add_loop_test(bf16, test_bf16, 0, 3);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, bf16);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
