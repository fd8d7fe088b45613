/* LSTM, GRU and simple layers, in both directions, with PyTorch's parameters give PyTorch's results. */
#include <check.h>
#include <math.h>
#undef fail /* base/status.h has its own */

#include "runtime/device.h"
#include "tests/layers/device_suite.h"
#include "tests/layers/recurrent_values.h"
#include "tutti_sequences.h"

enum { FEATURES = 2, HIDDEN = 3, STEPS = 3, SAMPLES = 2, DIRECTIONS = 2, MOST = 64 };

static tutti_runtime *runtime;

static void fill(float *to, int64_t count, int number)
{
    for (int64_t i = 0; i < count; i++) to[i] = (float)(sin(0.7 * (double)i + number) / 2);
}

/* In PyTorch's order, which is that of the layer. */
static void set_parameters(tutti_network *network)
{
    const char *name;
    tutti_shape shape;
    float values[MOST];
    for (int p = 0; tutti_parameter_info(network, p, &name, &shape, NULL) == TUTTI_OK; p++) {
        const int64_t count = shape.sizes[0] * (shape.rank > 1 ? shape.sizes[1] : 1);
        ck_assert_int_le(count, MOST);
        fill(values, count, p);
        ck_assert_int_eq(tutti_set_initial(network, name, values, count), TUTTI_OK);
    }
}

static void compare(const char *what, const float *is, const float *must, int count)
{
    for (int i = 0; i < count; i++)
        ck_assert_msg(fabsf(is[i] - must[i]) < 2e-6f, "%s[%d] is %.7f, and PyTorch's is %.7f", what, i, (double)is[i],
            (double)must[i]);
}

typedef tutti_tensor builder(
    tutti_network *network, tutti_tensor x, int64_t hidden, const tutti_recurrent_options *options);
static const struct {
    const char *name;
    builder *build;
    const float *y, *last_h, *last_c;
} layers[] = { { "lstm", tutti_lstm, lstm_y, lstm_last_h, lstm_last_c }, { "gru", tutti_gru, gru_y, gru_last_h, NULL },
    { "rnn", tutti_rnn, rnn_y, rnn_last_h, NULL } };

START_TEST(test_results_are_pytorchs)
{
    tutti_network *network = tutti_network_new(runtime);
    tutti_tensor last_h, last_c, y;
    float x[SAMPLES * STEPS * FEATURES], out[SAMPLES * STEPS * DIRECTIONS * HIDDEN], h[SAMPLES * DIRECTIONS * HIDDEN],
        c[SAMPLES * DIRECTIONS * HIDDEN];
    const bool cells = layers[_i].last_c != NULL;
    tutti_recurrent_options options = { .name = "layer", .bidirectional = true, .last_h = &last_h };
    if (cells) options.last_c = &last_c;
    y = layers[_i].build(network, tutti_input(network, "x", TUTTI_SHAPE(STEPS, FEATURES)), HIDDEN, &options);
    ck_assert_msg(y.id >= 0, "%s", tutti_message(NULL));
    set_parameters(network);
    tutti_tensor outputs[] = { y, last_h, cells ? last_c : last_h };
    tutti_training training = { .loss = TUTTI_LOSS_NONE, .outputs = outputs, .output_count = 2 + cells };
    tutti_trainer *trainer = tutti_compile(network, y, &training);
    ck_assert_msg(trainer != NULL, "%s", tutti_message(NULL));
    fill(x, SAMPLES * STEPS * FEATURES, 9);
    const tutti_feed feed = { "x", TUTTI_DTYPE_F32, x };
    const tutti_fetch fetches[] = { { y, TUTTI_DTYPE_F32, out }, { last_h, TUTTI_DTYPE_F32, h },
        { outputs[2], TUTTI_DTYPE_F32, c } };
    ck_assert_msg(tutti_infer(trainer, &feed, 1, SAMPLES, fetches, 2 + cells) == TUTTI_OK, "%s", tutti_message(NULL));
    compare("y", out, layers[_i].y, SAMPLES * STEPS * DIRECTIONS * HIDDEN);
    compare("last_h", h, layers[_i].last_h, SAMPLES * DIRECTIONS * HIDDEN);
    if (cells) compare("last_c", c, layers[_i].last_c, SAMPLES * DIRECTIONS * HIDDEN);
    tutti_trainer_free(trainer);
    tutti_network_free(network);
}
END_TEST

static void add_tests(TCase *cases)
{
    tcase_add_loop_test(cases, test_results_are_pytorchs, 0, (int)(sizeof layers / sizeof *layers));
}

int main(void)
{
    return device_suite_run("recurrent values", NULL, &runtime, add_tests);
}
