/* Sums over a work-group by shuffles within its subgroups: proven where they are right, refused where not; the same to
 * the bit as by local memory alone. PROVEN in the environment: devices have them; else tests/emulation's layer says
 * that they do. */
#include "base/random.h"
#include "runtime/launch.h"
#include "runtime/memory.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 3, GROUP_MOST = 256 };

static tutti_runtime *open_gpu(void)
{
    ck_assert_int_eq(setenv("TUTTI_DEVICE_CLASS", "gpu", 1), 0);
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .cache_folder = "" });
    ck_assert_msg(runtime != NULL, "%s", tutti_message(NULL));
    return runtime;
}

/* Sums and maxima of each group, by what device->can.shuffle says. */
static void reduce(struct device *device, int group, const float *numbers, float *results)
{
    const size_t count = (size_t)group * GROUPS;
    cl_mem in, out;
    struct launch_list list;
    launch_list_init(&list, device);
    ck_assert_int_eq(buffer_new(device, 4 * count, &in), TUTTI_OK);
    ck_assert_int_eq(buffer_new(device, 8 * count, &out), TUTTI_OK);
    ck_assert_int_eq(buffer_write(device, in, 0, numbers, 4 * count), TUTTI_OK);
    ck_assert_int_eq(buffer_fill(device, out, 0, 8 * count, 0x7fc00000), TUTTI_OK);
    struct launch *launch =
        launch_add(&list, "shuffle", "shuffle_trial", "-DSHUFFLE=%d -DGROUP=%d", (int)device->can.shuffle, group);
    launch_buffer(launch, in);
    launch_buffer(launch, out);
    launch_grid(launch, 1, count, 1, 1, (size_t)group, 1, 1);
    ck_assert_msg(launch_list_realise(&list, NULL, NULL) == TUTTI_OK, "%s", tutti_message(NULL));
    ck_assert_int_eq(launch_list_enqueue(&list, 0, list.count, NULL), TUTTI_OK);
    ck_assert_int_eq(buffer_read(device, out, 0, results, 8 * count), TUTTI_OK);
    launch_list_free(&list);
    buffer_free(&in);
    buffer_free(&out);
}

static void expect_same_bits(struct device *device)
{
    static float numbers[GROUP_MOST * GROUPS], shuffled[2 * GROUP_MOST * GROUPS], local[2 * GROUP_MOST * GROUPS];
    const enum shuffle_form proven = device->can.shuffle;
    for (size_t i = 0; i < GROUP_MOST * GROUPS; i++) numbers[i] = random_uniform(3, 1, i) - 0.5f;
    for (int group = 1; group <= GROUP_MOST; group *= 2) {
        const size_t bytes = sizeof(float) * 2 * (size_t)group * GROUPS;
        reduce(device, group, numbers, shuffled);
        device->can.shuffle = SHUFFLE_NONE;
        reduce(device, group, numbers, local);
        device->can.shuffle = proven;
        ck_assert_msg(!memcmp(shuffled, local, bytes), "groups of %d have other sums by shuffles", group);
        for (int g = 0; g < GROUPS; g++) {
            const size_t first = (size_t)g * (size_t)group;
            double sum = 0, most = -1;
            for (size_t i = first; i < first + (size_t)group; i++) {
                sum += (double)numbers[i];
                if (most < (double)numbers[i]) most = (double)numbers[i];
            }
            ck_assert_msg(fabs((double)local[2 * first] - sum) < 1e-5, "group %d of %d work-items: a sum of %g, not %g",
                g, group, (double)local[2 * first], sum);
            ck_assert_double_eq((double)local[2 * first + 1], most);
        }
    }
}

START_TEST(test_proven)
{
    tutti_runtime *runtime = open_gpu();
    const char *proven = getenv("PROVEN");
    for (int d = 0; d < runtime->count; d++) {
        const struct capabilities *can = &runtime->devices[d].can;
        if (proven)
            ck_assert_msg(can->shuffle == SHUFFLE_KHR, "device %d, '%s' (%s), has the shuffles of form %d", d,
                can->name, can->platform, can->shuffle);
        expect_same_bits(&runtime->devices[d]);
    }
    tutti_close(runtime);
}
END_TEST

/* A device that names the extension, and whose shuffles do not build or give wrong results, does without. */
START_TEST(test_refused)
{
    static const char *const faults[] = { "build", "result" };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        ck_assert_int_eq(setenv("EMULATED_SHUFFLE", faults[i], 1), 0);
        tutti_runtime *runtime = open_gpu();
        for (int d = 0; d < runtime->count; d++) ck_assert_int_eq(runtime->devices[d].can.shuffle, SHUFFLE_NONE);
        expect_same_bits(&runtime->devices[0]);
        tutti_close(runtime);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shuffle");
    TCase *test = tcase_create("shuffle");
    tcase_add_test(test, test_proven);
    if (!getenv("PROVEN")) tcase_add_test(test, test_refused);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
