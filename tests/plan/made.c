#include "tests/plan/made.h"

#include <string.h>

#include "runtime/store.h"
#include "runtime/tuning.h"

struct device device;
struct tutti_runtime runtime;
bool bf16, recompute;

void free_device(void)
{
    stores_free(&device);
    tuning_free(&device);
}

void make_device(enum device_class class, size_t allocation_max)
{
    free_device();
    bf16 = recompute = false;
    memset(&device, 0, sizeof device);
    memset(&runtime, 0, sizeof runtime);
    device.runtime = &runtime;
    device.can = (struct capabilities) { .class = class,
        .units = 2,
        .vector_width = 16,
        .local_bytes = 512 << 10,
        .allocation_max = allocation_max,
        .memory_bytes = (size_t)4 << 30,
        .alignment = 128,
        .group_max = 1024 };
    runtime.devices = &device;
    runtime.count = 1;
}

tutti_tensor residual(tutti_network *net)
{
    tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(3, 12, 12));
    x = tutti_conv2d(net, x, 20, 3, &(tutti_conv2d_options) { .name = "stem", .padding = 1, .no_bias = true });
    x = tutti_relu(net, tutti_batch_norm(net, x, &(tutti_batch_norm_options) { .name = "bn0" }));
    tutti_tensor y =
        tutti_conv2d(net, x, 20, 3, &(tutti_conv2d_options) { .name = "conv1", .padding = 1, .no_bias = true });
    y = tutti_relu(net, tutti_batch_norm(net, y, &(tutti_batch_norm_options) { .name = "bn1" }));
    y = tutti_conv2d(net, y, 20, 3, &(tutti_conv2d_options) { .name = "conv2", .padding = 1, .no_bias = true });
    y = tutti_batch_norm(net, y, &(tutti_batch_norm_options) { .name = "bn2" });
    x = tutti_relu(net, tutti_add(net, y, x));
    x = tutti_flatten(net, tutti_max_pool(net, x, 2, NULL));
    x = tutti_relu(net, tutti_dense(net, x, 32, &(tutti_dense_options) { .name = "fc1" }));
    x = tutti_dropout(net, x, 0.5f);
    return tutti_dense(net, x, 10, &(tutti_dense_options) { .name = "fc2" });
}

tutti_tensor perceptron(tutti_network *net)
{
    tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(8, 24)); /* 8 rows of a sample: more than skinny products take */
    x = tutti_relu(net, tutti_dense(net, x, 64, &(tutti_dense_options) { .name = "fc1" }));
    x = tutti_relu(net, tutti_dense(net, x, 48, &(tutti_dense_options) { .name = "fc2" }));
    return tutti_flatten(net, tutti_dense(net, x, 10, &(tutti_dense_options) { .name = "fc3" }));
}

tutti_tensor pooled(tutti_network *net)
{
    tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(3, 12, 12));
    x = tutti_relu(net, tutti_conv2d(net, x, 20, 3, &(tutti_conv2d_options) { .name = "conv1", .padding = 1 }));
    x = tutti_max_pool(net, x, 2, NULL);
    x = tutti_relu(net, tutti_conv2d(net, x, 20, 3, &(tutti_conv2d_options) { .name = "conv2", .padding = 1 }));
    tutti_tensor y = tutti_max_pool(net, x, 3, &(tutti_pool_options) { .stride = 1, .padding = 1 });
    x = tutti_flatten(net, tutti_add(net, x, y));
    return tutti_dense(net, x, 10, &(tutti_dense_options) { .name = "fc" });
}

tutti_tensor separable(tutti_network *net)
{
    tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(8, 12, 12));
    x = tutti_conv2d(net, x, 20, 3, &(tutti_conv2d_options) { .name = "stem", .padding = 1, .no_bias = true });
    x = tutti_conv2d(net, x, 24, 1, &(tutti_conv2d_options) { .name = "wide", .no_bias = true });
    tutti_tensor other = tutti_batch_norm(net, x, &(tutti_batch_norm_options) { .name = "other" });
    x = tutti_relu(net, tutti_batch_norm(net, x, &(tutti_batch_norm_options) { .name = "bn0" }));
    x = tutti_conv2d(
        net, x, 24, 3, &(tutti_conv2d_options) { .name = "apart", .padding = 1, .groups = 24, .no_bias = true });
    x = tutti_add(net, tutti_batch_norm(net, x, &(tutti_batch_norm_options) { .name = "bn1" }), other);
    return tutti_flatten(net, tutti_global_average_pool(net, x));
}

void make(struct made *made, enum plan_mode mode, tutti_tensor (*build)(tutti_network *))
{
    memset(made, 0, sizeof *made);
    made->network = tutti_network_new(&runtime);
    const tutti_tensor output = build(made->network);
    ck_assert_msg(tutti_network_status(made->network) == TUTTI_OK, "%s", tutti_message(NULL));
    ck_assert_int_eq(network_layout(made->network), TUTTI_OK);
    const struct plan_options options = { .mode = mode,
        .sizes.samples = 5,
        .objective = objective_of(output, TUTTI_CROSS_ENTROPY),
        .recompute = recompute,
        .precision = bf16 ? TUTTI_BF16 : TUTTI_FP32,
        .guards = true };
    made->plan = plan_start(&device, made->network, &options);
    ck_assert_ptr_nonnull(made->plan);
    ck_assert_msg(plan_run_passes(made->plan) == TUTTI_OK, "%s", tutti_message(NULL));
    made->plan->options.guards = false; /* they keep values from sharing memory */
    ck_assert_msg(pass_memory(made->plan, &made->memory) == TUTTI_OK, "%s", tutti_message(NULL));
}

void drop(struct made *made)
{
    memory_plan_free(&made->memory);
    plan_free(made->plan);
    tutti_network_free(made->network);
}
