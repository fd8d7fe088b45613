/* Messages of builders for wrong attributes and shapes: the first error stays in the network, with the attribute and
 * its value in the message. Needs no device. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#undef fail /* base/status.h has its own */

#include "runtime/device.h"
#include "tutti.h"
#include "tutti_advanced.h"
#include "tutti_hosts.h"
#include "tutti_inspect.h"

struct wrong_conv2d {
    int64_t channels, kernel;
    tutti_conv2d_options options;
    tutti_status status;
    const char *says[2]; /* parts of the message */
};

/* Options of a size that no version has. */
static void use_sized(int number, tutti_network *network, tutti_tensor x)
{
    tutti_device_info *list;
    int count;
    switch (number) {
    case 0: tutti_dense(network, x, 1, &(tutti_dense_options) { .size = 3 }); break;
    case 1: tutti_conv2d(network, x, 1, 1, &(tutti_conv2d_options) { .size = 3 }); break;
    case 2: tutti_max_pool(network, x, 1, &(tutti_pool_options) { .size = 3 }); break;
    case 3: tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .size = 3 }); break;
    case 4: ck_assert_ptr_null(tutti_open(&(tutti_runtime_options) { .size = 3 })); break;
    case 5:
        ck_assert(tutti_devices_list(&(tutti_runtime_options) { .size = 3 }, &list, &count) == TUTTI_INVALID);
        break;
    case 6: ck_assert_ptr_null(tutti_hosts_open(&(tutti_hosts_options) { .size = 3 })); break;
    case 7: ck_assert_ptr_null(tutti_compile(network, x, &(tutti_training) { .size = 3 })); break;
    case 8: ck_assert_ptr_null(tutti_tuner_new(network, x, &(tutti_training) { .size = 3 }, 0)); break;
    default: ck_assert(tutti_fit_source(NULL, NULL, &(tutti_fitting) { .size = 3 }) == TUTTI_INVALID); break;
    }
}

/* What 0 would mean in the options of the layer is not what the text says. */
START_TEST(test_zeros_in_texts_are_no_defaults)
{
    static const struct {
        const char *operation, *text, *says;
    } wrong[] = {
        { "batch_norm", "momentum=0", "batch_norm: momentum is 0: it must be above 0" },
        { "batch_norm", "epsilon=0", "batch_norm: epsilon is 0: it must be positive" },
        { "normalise", "scale=0", "normalise: scale is 0" },
        { "huber", "delta=0", "huber: delta is 0: it must be positive" },
    };
    struct tutti_runtime runtime = { 0 };
    tutti_network *network = tutti_network_new(&runtime);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(3, 4, 4)), both[] = { x, x };
    (void)tutti_op(network, wrong[_i].operation, both, strcmp(wrong[_i].operation, "huber") ? 1 : 2, wrong[_i].text);
    ck_assert_int_eq(tutti_network_status(network), TUTTI_INVALID);
    ck_assert_msg(strstr(tutti_message(NULL), wrong[_i].says) != NULL, "%s", tutti_message(NULL));
    tutti_network_free(network);
}
END_TEST

static const char *const sized[] = { "tutti_dense_options", "tutti_conv2d_options", "tutti_pool_options",
    "tutti_batch_norm_options", "tutti_runtime_options", "tutti_runtime_options", "tutti_hosts_options",
    "tutti_training", "tutti_training", "tutti_fitting" };
enum { SIZED = sizeof sized / sizeof *sized };

START_TEST(test_options_say_their_size)
{
    char wanted[64];
    struct tutti_runtime runtime = { 0 };
    tutti_network *network = tutti_network_new(&runtime);
    use_sized(_i, network, tutti_input(network, "x", TUTTI_SHAPE(6, 5, 7)));
    snprintf(wanted, sizeof wanted, "%s.size is 3: set it to sizeof(%s)", sized[_i], sized[_i]);
    ck_assert_msg(strstr(tutti_message(NULL), wanted) != NULL, "'%s' does not say '%s'", tutti_message(NULL), wanted);
    tutti_network_free(network);
}
END_TEST

/* All on an input of 6 channels and 5 x 7 pixels. */
static const struct wrong_conv2d wrong[] = {
    { 0, 3, { 0 }, TUTTI_INVALID, { "channels is 0", "at least 1" } },
    { 8, 0, { 0 }, TUTTI_INVALID, { "kernel is 0 (height)", "at least 1" } },
    { 8, -3, { 0 }, TUTTI_INVALID, { "kernel is -3", "at least 1" } },
    { 8, 3, { .kernel_w = -1 }, TUTTI_INVALID, { "kernel is -1 (width)", "at least 1" } },
    { 8, 3, { .stride = -2 }, TUTTI_INVALID, { "stride is -2 (height)", "at least 1" } },
    { 8, 3, { .stride_w = -1 }, TUTTI_INVALID, { "stride is -1 (width)", "at least 1" } },
    { 8, 3, { .padding = -1 }, TUTTI_INVALID, { "padding is -1 (height)", "negative" } },
    { 8, 3, { .padding_w = -2 }, TUTTI_INVALID, { "padding is -2 (width)", "negative" } },
    { 8, 3, { .dilation = -4 }, TUTTI_INVALID, { "dilation is -4 (height)", "at least 1" } },
    { 8, 3, { .groups = 4 }, TUTTI_SHAPE, { "groups 4", "6 channels" } },
    { 8, 3, { .groups = 3 }, TUTTI_SHAPE, { "groups 3", "output's 8" } },
    { 8, 3, { .groups = -1 }, TUTTI_SHAPE, { "groups -1", "6 channels" } },
    { 8, 6, { 0 }, TUTTI_SHAPE, { "kernel 6", "only 5" } },
    { 8, 3, { .dilation = 3 }, TUTTI_SHAPE, { "dilation 3 spans 7", "only 5" } },
    { INT64_MAX, 3, { 0 }, TUTTI_INVALID, { "channels is 9223372036854775807", NULL } },
    { 8, INT64_MAX, { 0 }, TUTTI_INVALID, { "kernel is 9223372036854775807", NULL } },
    { 8, 3, { .padding = INT64_MAX }, TUTTI_INVALID, { "padding is 9223372036854775807", NULL } },
};

START_TEST(test_conv2d_says_what_is_wrong)
{
    const struct wrong_conv2d *w = &wrong[_i];
    struct tutti_runtime runtime = { 0 };
    tutti_network *network = tutti_network_new(&runtime);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(6, 5, 7));
    tutti_tensor y = tutti_conv2d(network, x, w->channels, w->kernel, &w->options);
    ck_assert_int_lt(y.id, 0);
    ck_assert_int_eq(tutti_network_status(network), w->status);
    for (int i = 0; i < 2 && w->says[i]; i++)
        ck_assert_msg(
            strstr(tutti_message(NULL), w->says[i]) != NULL, "'%s' does not say '%s'", tutti_message(NULL), w->says[i]);
    tutti_network_free(network);
}
END_TEST

START_TEST(test_conv2d_wants_an_image)
{
    struct tutti_runtime runtime = { 0 };
    tutti_network *network = tutti_network_new(&runtime);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(6));
    ck_assert_int_lt(tutti_conv2d(network, x, 8, 3, NULL).id, 0);
    ck_assert_int_eq(tutti_network_status(network), TUTTI_SHAPE);
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "must be an image [C, H, W]"));
    /* The first error stays, whatever follows. */
    tutti_conv2d(network, (tutti_tensor) { 99 }, 0, 0, NULL);
    ck_assert_ptr_nonnull(strstr((tutti_network_status(network), tutti_message(NULL)), "must be an image [C, H, W]"));
    tutti_network_free(network);
}
END_TEST

START_TEST(test_conv2d_shapes_and_names)
{
    struct tutti_runtime runtime = { 0 };
    tutti_network *network = tutti_network_new(&runtime);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(6, 5, 7));
    tutti_tensor y = tutti_conv2d(network, x, 9, 3,
        &(tutti_conv2d_options) {
            .name = "a", .padding = 2, .padding_w = -1, .stride = 2, .stride_w = 3, .groups = 3 });
    tutti_shape shape, weights;
    const char *name;
    bool trained;
    ck_assert_int_eq(tutti_shape_of(network, y, &shape), TUTTI_OK);
    ck_assert_int_eq(shape.rank, 3);
    ck_assert_int_eq(shape.sizes[0], 9);
    ck_assert_int_eq(shape.sizes[1], 4);
    ck_assert_int_eq(shape.sizes[2], 2);
    ck_assert_int_eq(tutti_parameter_info(network, 0, &name, &weights, &trained), TUTTI_OK);
    ck_assert_str_eq(name, "a.weight");
    ck_assert(trained && weights.rank == 4 && weights.sizes[1] == 2 && weights.sizes[3] == 3);
    ck_assert_int_eq(tutti_parameter_info(network, 1, &name, &weights, &trained), TUTTI_OK);
    ck_assert_str_eq(name, "a.bias");
    tutti_layer_info info;
    ck_assert_int_eq(tutti_network_layer(network, 0, &info), TUTTI_OK);
    ck_assert_double_eq(info.flops, 2.0 * 9 * 4 * 2 * 2 * 3 * 3);
    ck_assert_int_eq(info.parameters, 9 * 2 * 3 * 3 + 9);
    tutti_network_free(network);
}
END_TEST

/* A tensor of the caller's belongs to the first layer that reads it. */
START_TEST(test_shared_parameters_count_once)
{
    struct tutti_runtime runtime = { 0 };
    tutti_network *network = tutti_network_new(&runtime);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(5));
    const tutti_tensor unread = tutti_parameter(network, "unread", TUTTI_SHAPE(7), NULL);
    const tutti_tensor weight = tutti_parameter(network, "weight", TUTTI_SHAPE(5, 5), NULL);
    const tutti_dense_options options = { .weight = &weight, .no_bias = true };
    x = tutti_relu(network, tutti_dense(network, x, 5, &options));
    x = tutti_dense(network, x, 5, &options);
    ck_assert(unread.id >= 0 && x.id >= 0);
    ck_assert_int_eq(tutti_network_layers(network), 3);
    for (int i = 0; i < 3; i++) {
        tutti_layer_info info;
        ck_assert_int_eq(tutti_network_layer(network, i, &info), TUTTI_OK);
        ck_assert_int_eq(info.parameters, i == 0 ? 25 : 0);
        int from;
        ck_assert_int_eq(tutti_network_layer_input(network, i, 0, &from), TUTTI_OK);
        ck_assert_int_eq(from, i - 1);
        ck_assert_int_eq(tutti_network_layer_input(network, i, 1, &from), TUTTI_INVALID);
    }
    tutti_network_free(network);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("messages");
    TCase *tcase = tcase_create("conv2d");
    tcase_add_loop_test(tcase, test_zeros_in_texts_are_no_defaults, 0, 4);
    tcase_add_loop_test(tcase, test_options_say_their_size, 0, SIZED);
    tcase_add_loop_test(tcase, test_conv2d_says_what_is_wrong, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(tcase, test_conv2d_wants_an_image);
    tcase_add_test(tcase, test_conv2d_shapes_and_names);
    tcase_add_test(tcase, test_shared_parameters_count_once);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
