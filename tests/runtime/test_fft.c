/* The library's Fourier transforms (runtime/fft.h): rows and columns, complex and real, on every device as one of the
 * GPU class, against sums in double precision. Inputs stay as they are. FFT_REFUSED names the transforms that the
 * driver's compiler refuses. */
#include "base/memory.h"
#include "runtime/fft.h"
#include "runtime/memory.h"
#include "tests/tolerance.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(tutti_status status)
{
    ck_assert_msg(status == TUTTI_OK, "%s", tutti_message(NULL));
}

struct transform {
    const char *name;
    int length, rows;
    bool real, inverse, across; /* across: elements lie `rows` apart */
};

static const struct transform transforms[] = {
    { "complex rows", 16, 5, false, false, false },
    { "complex back, rows", 30, 3, false, true, false },
    { "complex columns", 12, 7, false, false, true },
    { "complex back, columns", 26, 4, false, true, true },
    { "real rows", 20, 6, true, false, false },
    { "real rows, odd", 21, 3, true, false, false },
    { "real columns", 14, 5, true, false, true },
    { "one long", 4096, 1, false, false, false },
};
enum { TRANSFORMS = sizeof transforms / sizeof *transforms };

static struct fft fft_of(const struct transform *t)
{
    const int out = t->real ? t->length / 2 + 1 : t->length;
    return (struct fft) { .real = t->real,
        .inverse = t->inverse,
        .length = t->length,
        .count = t->rows,
        .in_stride = t->across ? t->rows : 1,
        .in_distance = t->across ? 1 : t->length,
        .out_stride = t->across ? t->rows : 1,
        .out_distance = t->across ? 1 : out,
        .scale = 0.5f };
}

/* Element k of transform r. */
static void sum(const struct transform *t, const float *x, int r, int k, double *re, double *im)
{
    *re = *im = 0;
    for (int j = 0; j < t->length; j++) {
        const int at = t->across ? j * t->rows + r : r * t->length + j;
        const double angle = (t->inverse ? 2 : -2) * acos(-1) * (double)((int64_t)j * k % t->length) / t->length;
        const double a = (double)x[t->real ? at : 2 * at], b = t->real ? 0 : (double)x[2 * at + 1];
        *re += 0.5 * (a * cos(angle) - b * sin(angle));
        *im += 0.5 * (a * sin(angle) + b * cos(angle));
    }
}

static void compare(const struct transform *t, const float *x, const float *y)
{
    const int out = t->real ? t->length / 2 + 1 : t->length;
    const double limit = tolerance(TOLERANCE_SUM, t->length) * sqrt((double)t->length);
    for (int r = 0; r < t->rows; r++)
        for (int k = 0; k < out; k++) {
            double re, im;
            const int at = t->across ? k * t->rows + r : r * out + k;
            sum(t, x, r, k, &re, &im);
            ck_assert_msg(fabs((double)y[2 * at] - re) <= limit && fabs((double)y[2 * at + 1] - im) <= limit,
                "%s: element %d of transform %d is %g %+g i, and must be %g %+g i", t->name, k, r, (double)y[2 * at],
                (double)y[2 * at + 1], re, im);
        }
}

static bool is_refused(const char *name)
{
    const char *refused = getenv("FFT_REFUSED");
    return refused && strstr(refused, name);
}

/* Whether it could be run, as it must be. */
static bool enqueued(struct launch_list *list, const char *name)
{
    const tutti_status status = launch_list_enqueue(list, 0, list->count, NULL);
    if (!is_refused(name)) {
        check(status);
        return true;
    }
    ck_assert_int_eq(status, TUTTI_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "does not compile clFFT's kernels"));
    return false;
}

static void run(struct device *device, const struct transform *t)
{
    const struct fft fft = fft_of(t);
    const size_t in = (size_t)(t->rows * t->length * (t->real ? 1 : 2)), out = (size_t)(t->rows * t->length * 2);
    float *x = memory_new(in, sizeof *x), *kept = memory_new(in, sizeof *kept), *y = memory_new(out, sizeof *y);
    cl_mem from = NULL, to = NULL;
    struct launch_list list;
    ck_assert(x && kept && y);
    for (size_t i = 0; i < in; i++) x[i] = (float)((int)(i * 7 % 17) - 8) / 8;
    check(buffer_new(device, in * sizeof *x, &from));
    check(buffer_new(device, out * sizeof *y, &to));
    check(buffer_write(device, from, 0, x, in * sizeof *x));
    launch_list_init(&list, device);
    ck_assert_msg(!fft_refusal(&fft, &device->can), "%s: %s", t->name, fft_refusal(&fft, &device->can));
    fft_emit(&fft, from, to, &list);
    check(launch_list_realise(&list, NULL, NULL));
    check(launch_list_realise(&list, NULL, NULL)); /* nothing is left to do */
    for (int runs = 0; runs < 2; runs++) {
        check(buffer_fill(device, to, 0, out * sizeof *y, 0x7fc00000u));
        if (!enqueued(&list, t->name)) break;
        check(buffer_read(device, to, 0, y, out * sizeof *y));
        compare(t, x, y);
    }
    check(buffer_read(device, from, 0, kept, in * sizeof *x));
    ck_assert_msg(!memcmp(x, kept, in * sizeof *x), "%s: the input has changed", t->name);
    launch_list_free(&list);
    buffer_free(&from);
    buffer_free(&to);
    free(x);
    free(kept);
    free(y);
}

START_TEST(transforms_are_right)
{
    setenv("TUTTI_DEVICE_CLASS", "gpu", 1);
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "all" });
    ck_assert_msg(runtime != NULL, "%s", tutti_message(NULL));
    for (int d = 0; d < runtime->count; d++) run(&runtime->devices[d], &transforms[_i]);
    tutti_close(runtime);
}
END_TEST

static void count_warnings(void *user, tutti_log_level level, const char *line)
{
    (void)level;
    *(int *)user += strstr(line, "'dft/clfft/4096 rows'") != NULL;
}

/* A network has the transform, too; it uses its own kernels where the library's do not compile. */
START_TEST(networks_have_the_transform)
{
    enum { LENGTH = 4096, AT = 5 };
    char folder[] = "/tmp/tutti-fft-XXXXXX", table[64];
    FILE *file;
    int warnings = 0;
    float *x = memory_new(2 * LENGTH, sizeof *x), *y = memory_new(2 * LENGTH, sizeof *y);
    ck_assert(x && y && mkdtemp(folder));
    snprintf(table, sizeof table, "%s/table", folder);
    ck_assert((file = fopen(table, "w")) && fputs("[class gpu]\ninfer/dft/* clfft\n", file) >= 0 && !fclose(file));
    setenv("TUTTI_CACHE_DIR", folder, 1); /* without verdicts */
    setenv("TUTTI_TUNING", table, 1);     /* the rule prefers kernels in local memory */
    setenv("TUTTI_DEVICE_CLASS", "gpu", 1);
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .log = count_warnings, .log_user = &warnings });
    tutti_network *network = tutti_network_new(runtime);
    tutti_tensor in = tutti_input(network, "x", TUTTI_SHAPE(LENGTH, 2));
    tutti_tensor out = tutti_op(network, "dft", &in, 1, NULL);
    tutti_trainer *trainer = tutti_compile(network, out, &(tutti_training) { .loss = TUTTI_LOSS_NONE, .batch = 1 });
    ck_assert_msg(trainer != NULL, "%s", tutti_message(NULL));
    x[2 * AT] = 1;
    check(tutti_infer(
        trainer, &(tutti_feed) { "x", TUTTI_DTYPE_F32, x }, 1, 1, &(tutti_fetch) { out, TUTTI_DTYPE_F32, y }, 1));
    for (int k = 0; k < LENGTH; k++) {
        const double angle = -2 * acos(-1) * (double)AT * k / LENGTH;
        ck_assert(fabs((double)y[2 * k] - cos(angle)) < 1e-5 && fabs((double)y[2 * k + 1] - sin(angle)) < 1e-5);
    }
    ck_assert_int_eq(warnings, is_refused("network"));
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    tutti_close(runtime);
    free(x);
    free(y);
}
END_TEST

START_TEST(refusals_say_why)
{
    struct capabilities can = { .class = DEVICE_GPU };
    struct fft fft = fft_of(&transforms[0]);
    ck_assert_ptr_null(fft_refusal(&fft, &can));
    fft.length = 17;
    ck_assert_ptr_nonnull(strstr(fft_refusal(&fft, &can), "factors"));
    fft.length = 64;
    fft.real = fft.inverse = true;
    ck_assert_ptr_nonnull(strstr(fft_refusal(&fft, &can), "forward"));
    fft.real = false;
    can.class = DEVICE_CPU;
    ck_assert_ptr_nonnull(strstr(fft_refusal(&fft, &can), "GPU-class"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fft");
    TCase *cases = tcase_create("fft");
    tcase_add_loop_test(cases, transforms_are_right, 0, TRANSFORMS);
    tcase_add_test(cases, networks_have_the_transform);
    tcase_add_test(cases, refusals_say_why);
    tcase_set_timeout(cases, 600);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
