/* NaN is never hidden: one in the input reaches every output that depends on it and no other. */
#include "tests/feeds.h"
#include <check.h>
#include <math.h>
#undef fail /* base/status.h has its own */

#include "tests/layers/device_suite.h"
#include "tutti.h"

enum { SAMPLES = 2, CHANNELS = 5, SIZE = 6, PIXELS = SIZE * SIZE };
/* Where the NaN is. */
enum { AT_SAMPLE = 1, AT_CHANNEL = 3, AT_Y = 2, AT_X = 3 };

static tutti_runtime *runtime;

static tutti_tensor relu(tutti_network *n, tutti_tensor x)
{
    return tutti_relu(n, x);
}
static tutti_tensor relu6(tutti_network *n, tutti_tensor x)
{
    return tutti_relu6(n, x);
}
static tutti_tensor leaky(tutti_network *n, tutti_tensor x)
{
    return tutti_leaky_relu(n, x, 0.5f);
}
static tutti_tensor sigmoid(tutti_network *n, tutti_tensor x)
{
    return tutti_sigmoid(n, x);
}
static tutti_tensor add(tutti_network *n, tutti_tensor x)
{
    return tutti_relu(n, tutti_add(n, x, tutti_relu(n, x)));
}
static tutti_tensor norm(tutti_network *n, tutti_tensor x)
{
    return tutti_relu(n, tutti_batch_norm(n, x, NULL));
}
static tutti_tensor max_pool(tutti_network *n, tutti_tensor x)
{
    return tutti_max_pool(n, x, 2, NULL);
}
static tutti_tensor average_pool(tutti_network *n, tutti_tensor x)
{
    return tutti_average_pool(n, x, 2, NULL);
}
static tutti_tensor global_max(tutti_network *n, tutti_tensor x)
{
    return tutti_global_max_pool(n, x);
}

static const struct {
    const char *name;
    tutti_tensor (*build)(tutti_network *network, tutti_tensor x); /* NULL: tutti_op() by the name */
    int window; /* an output pixel depends on window x window pixels */
} cases[] = {
    { "relu", relu, 1 },
    { "relu6", relu6, 1 },
    { "leaky relu", leaky, 1 },
    { "sigmoid", sigmoid, 1 },
    { "sign", NULL, 1 },
    { "round", NULL, 1 },
    { "mish", NULL, 1 },
    { "gelu_tanh", NULL, 1 },
    { "selu", NULL, 1 },
    { "celu", NULL, 1 },
    { "thresholded_relu", NULL, 1 },
    { "add", add, 1 },
    { "batch_norm", norm, 1 },
    { "max_pool", max_pool, 2 },
    { "average_pool", average_pool, 2 },
    { "global max_pool", global_max, SIZE },
};

START_TEST(test_nan_is_not_hidden)
{
    int window = cases[_i].window, out = SIZE / window;
    float input[SAMPLES * CHANNELS * PIXELS], output[SAMPLES * CHANNELS * PIXELS];
    for (int i = 0; i < SAMPLES * CHANNELS * PIXELS; i++) input[i] = (float)(i % 13) - 6;
    input[((AT_SAMPLE * CHANNELS + AT_CHANNEL) * SIZE + AT_Y) * SIZE + AT_X] = NAN;
    tutti_network *network = tutti_network_new(runtime);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(CHANNELS, SIZE, SIZE));
    x = tutti_max_pool(network, x, 1, NULL); /* CPU-class devices go on in the blocked layout */
    const tutti_tensor y =
        cases[_i].build ? cases[_i].build(network, x) : tutti_op(network, cases[_i].name, &x, 1, NULL);
    tutti_trainer *trainer = tutti_compile(network, y, &(tutti_training) { .loss = TUTTI_LOSS_NONE, .batch = SAMPLES });
    ck_assert_msg(trainer != NULL, "%s: %s", cases[_i].name, tutti_message(NULL));
    ck_assert_msg(tutti_infer(trainer, FEED_ONE(input), SAMPLES, FETCH_ONE(y, output)) == TUTTI_OK, "%s: %s",
        cases[_i].name, tutti_message(NULL));
    for (int i = 0; i < SAMPLES * CHANNELS * out * out; i++) {
        bool depends = i / (out * out) == AT_SAMPLE * CHANNELS + AT_CHANNEL && i / out % out == AT_Y / window &&
            i % out == AT_X / window;
        ck_assert_msg(!!isnan(output[i]) == depends, "%s: output %d is %g", cases[_i].name, i, (double)output[i]);
    }
    tutti_trainer_free(trainer);
    tutti_network_free(network);
}
END_TEST

/* Squares that overflow give no variance to normalise by: the result is not 0, as if all were well. */
START_TEST(test_overflow_is_not_hidden)
{
    enum { WIDTH = 6, VALUES = 2 * WIDTH };
    static const char *const names[] = { "layer_norm", "batch_norm", "rms_norm", "group_norm", "instance_norm" };
    const char *name = names[_i];
    float input[SAMPLES * VALUES], output[SAMPLES * VALUES], targets[SAMPLES * VALUES] = { 0 };
    for (int i = 0; i < SAMPLES * VALUES; i++) input[i] = (i + i / VALUES) % 2 ? 3e38f : -3e38f;
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor x = tutti_input(network, "x", _i == 1 ? TUTTI_SHAPE(VALUES) : TUTTI_SHAPE(2, WIDTH));
    const tutti_tensor moved = tutti_add(network, x,
        tutti_parameter(network, "p", TUTTI_SHAPE(1), &(tutti_parameter_options) { .init = TUTTI_INIT_ZEROS }));
    const tutti_tensor y = _i == 0 ? tutti_layer_norm(network, NULL, moved, 0)
        : _i == 1                  ? tutti_batch_norm(network, moved, NULL)
                                   : tutti_op(network, name, &moved, 1, _i == 3 ? "groups=1" : NULL);
    tutti_trainer *trainer =
        tutti_compile(network, y, &(tutti_training) { .loss = TUTTI_MSE, .batch = SAMPLES, .fetch_in_training = true });
    ck_assert_msg(trainer != NULL, "%s: %s", name, tutti_message(NULL));
    const tutti_status status =
        tutti_train_fetch(trainer, FEED_PAIR(input, targets), SAMPLES, FETCH_ONE(y, output), NULL);
    ck_assert_msg(status == TUTTI_NOT_FINITE, "%s: %s", name, tutti_message(NULL));
    if (_i != 1) /* in inference batch_norm has other statistics */
        ck_assert(tutti_infer(trainer, FEED_ONE(input), SAMPLES, FETCH_ONE(y, output)) == TUTTI_OK);
    for (int i = 0; i < SAMPLES * VALUES && _i != 1; i++)
        ck_assert_msg(isnan(output[i]), "%s: output %d is %g", name, i, (double)output[i]);
    tutti_trainer_free(trainer);
    tutti_network_free(network);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, test_nan_is_not_hidden, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(tcase, test_overflow_is_not_hidden, 0, 5);
}

int main(void)
{
    return device_suite_run("nan", "all", &runtime, add_tests);
}
