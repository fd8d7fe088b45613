/* Generated reductions: sizes around every number of parts at which they are divided otherwise, and long sums. */
#include <check.h>
#undef fail /* base/status.h has its own */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "layers/loop/loop.h"
#include "runtime/launch.h"
#include "runtime/memory.h"
#include "tests/layers/device_suite.h"

static tutti_runtime *runtime;

static void check(tutti_status status, const char *what)
{
    ck_assert_msg(status == TUTTI_OK, "%s: %s", what, tutti_message(NULL));
}

/* A loop that reduces the terms of [terms][kept], or of [kept][terms] if `inner`. */
static struct loop reduction(enum loop_reduction kind, int64_t terms, int64_t kept, bool inner)
{
    struct loop loop = { .rank = 2,
        .sizes = { inner ? kept : terms, inner ? terms : kept },
        .operand_count = 1,
        .reduction = kind,
        .reduced = inner ? 2 : 1,
        .scale = 1 };
    loop.operands[0].strides[0] = loop.sizes[1];
    loop.operands[0].strides[1] = 1;
    loop.out.strides[inner ? 0 : 1] = 1;
    return loop;
}

static int64_t parts_of(const struct device *device, int64_t terms, int64_t kept, bool inner)
{
    const struct loop loop = reduction(REDUCE_SUM, terms, kept, inner);
    const size_t bytes = loop_workspace(&loop, &device->can);
    return bytes ? (int64_t)(bytes / sizeof(float)) / kept : 1;
}

static void run(struct device *device, enum loop_reduction kind, int64_t terms, int64_t kept, bool inner,
    const float *from, float *to)
{
    cl_mem x = NULL, y = NULL, workspace = NULL;
    struct launch_list list;
    struct loop loop = reduction(kind, terms, kept, inner);
    const size_t bytes = (size_t)(terms * kept) * sizeof(float), after = (size_t)kept * sizeof(float);
    const size_t needed = loop_workspace(&loop, &device->can);
    launch_list_init(&list, device);
    check(buffer_new(device, bytes, &x), "buffer");
    check(buffer_new(device, after, &y), "buffer");
    if (needed) check(buffer_new(device, needed, &workspace), "buffer");
    check(buffer_write(device, x, 0, from, bytes), "write");
    loop.operands[0].buffer = x;
    loop.out.buffer = y;
    loop_emit(&loop, workspace, &list);
    check(launch_list_realise(&list, NULL, NULL), "build");
    check(launch_list_enqueue(&list, 0, list.count, NULL), "run");
    check(buffer_read(device, y, 0, to, after), "read");
    launch_list_free(&list);
    buffer_free(&x);
    buffer_free(&y);
    buffer_free(&workspace);
}

/* Small integers: results are exact. */
static void check_division(struct device *device, int64_t terms, int64_t kept, bool inner)
{
    float *from = memory_new((size_t)(terms * kept), sizeof *from), *to = memory_new((size_t)kept, sizeof *to);
    ck_assert(from && to);
    for (int64_t i = 0; i < terms * kept; i++) from[i] = (float)(i * 7 % 19 - 8);
    for (enum loop_reduction kind = REDUCE_SUM; kind <= REDUCE_MAX; kind += REDUCE_MAX - REDUCE_SUM) {
        run(device, kind, terms, kept, inner, from, to);
        for (int64_t k = 0; k < kept; k++) {
            double want = (double)reductions[kind].start;
            for (int64_t i = 0; i < terms; i++) {
                const double next = (double)from[inner ? k * terms + i : i * kept + k];
                want = kind == REDUCE_SUM ? want + next : fmax(want, next);
            }
            ck_assert_msg((double)to[k] == want, "%s, join %d of %lld terms, %lld kept, inner %d: %lld is %g, not %g",
                device->can.name, (int)kind, (long long)terms, (long long)kept, inner, (long long)k, (double)to[k],
                want);
        }
    }
    free(from);
    free(to);
}

/* The smallest number of terms that is divided into this many parts; -1: there is none. */
static int64_t terms_of_parts(const struct device *device, int64_t parts, int64_t kept, bool inner)
{
    int64_t low = 1, high = (int64_t)1 << 19;
    if (high * kept > 1 << 22) high = (1 << 22) / kept;
    if (parts_of(device, high, kept, inner) < parts) return -1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (parts_of(device, middle, kept, inner) >= parts)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The parts are reduced by a second loop, of as many terms as there are parts: it would be divided, too, from so many
 * on
 * as a loop of so few terms is. */
START_TEST(test_divisions)
{
    static const int64_t widths[] = { 1, 3, 40, 256, 300 };
    for (int d = 0; d < runtime->count; d++) {
        struct device *device = &runtime->devices[d];
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (int inner = 0; inner < 2; inner++) {
                const int64_t kept = widths[w], least = terms_of_parts(device, 2, kept, inner);
                if (least < 0) continue;
                for (int64_t parts = 2; parts > 0; parts = parts < least ? least : parts < 2 * least ? 2 * least : -1) {
                    const int64_t terms = terms_of_parts(device, parts, kept, inner);
                    for (int64_t more = -1; terms > 0 && more <= 1; more++)
                        check_division(device, terms + more, kept, inner);
                }
            }
    }
}
END_TEST

START_TEST(test_long_sums)
{
    enum { TERMS = 1 << 22 };
    static const int64_t widths[] = { 1, 3, 16, 40 };
    float *from = memory_new(TERMS, sizeof *from), to[40];
    ck_assert(from);
    for (int64_t i = 0; i < TERMS; i++) from[i] = 0.1f;
    for (int d = 0; d < runtime->count; d++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (int inner = 0; inner < 2; inner++) {
                const int64_t kept = widths[w], terms = TERMS / kept;
                const double want = (double)0.1f * (double)terms;
                run(&runtime->devices[d], REDUCE_SUM, terms, kept, inner, from, to);
                for (int64_t k = 0; k < kept; k++)
                    ck_assert_msg(fabs((double)to[k] / want - 1) < 6e-7, "%lld of %lld, inner %d: off by %g",
                        (long long)terms, (long long)kept, inner, (double)to[k] / want - 1);
            }
    free(from);
}
END_TEST

/* An overflow stays infinite: its rounding error is not a number. */
START_TEST(test_overflow)
{
    enum { TERMS = 1000 };
    float from[TERMS], to;
    for (int i = 0; i < TERMS; i++) from[i] = 3e38f;
    for (int d = 0; d < runtime->count; d++)
        for (int inner = 0; inner < 2; inner++) {
            run(&runtime->devices[d], REDUCE_SUM, TERMS, 1, inner, from, &to);
            ck_assert_msg(isinf(to), "%g", (double)to);
        }
}
END_TEST

static void add_tests(TCase *cases)
{
    tcase_add_test(cases, test_divisions);
    tcase_add_test(cases, test_long_sums);
    tcase_add_test(cases, test_overflow);
}

int main(void)
{
    return device_suite_run("loops", "all", &runtime, add_tests);
}
