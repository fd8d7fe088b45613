/* A training of a network of speech: padding changes neither loss nor gradient. */
#include "models/speech.h"
#include "tutti_layers.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

#define GOOD(call) ck_assert_msg((call) == TUTTI_OK, "%s", tutti_message(NULL))

enum { SAMPLES = 3, NUMBERS = 6, CLASSES = 5, LABELS = 4, LONGEST = 24 };
static const int64_t lengths[SAMPLES] = { 7, 9, 0 }; /* 0: what stands in for a damaged sample */
static const int32_t targets[SAMPLES * LABELS] = { 1, 2, 2, -1, 4, 3, 1, 2, -1, -1, -1, -1 };

/* Trains one step in batches of so many steps. Returns the loss, and the parameters after it. */
static double train_step(int64_t length, float *parameters)
{
    static const struct model_config small = {
        .family = FAMILY_SPEECH, .width = 7, .hidden = 5, .layers = 2, .bidirectional = true
    };
    static const char *const names[] = { "frames.weight", "layers.0.weight_ih_l0", "layers.1.weight_hh_l0_reverse",
        "classifier.weight", "classifier.bias" };
    static const int64_t counts[] = { 35, 140, 100, 50, 5 };
    const int64_t listed = LABELS;
    float x[SAMPLES * LONGEST * NUMBERS] = { 0 };
    tutti_training training = TUTTI_OPTIONS(tutti_training);
    tutti_metrics metrics;
    for (int64_t s = 0; s < SAMPLES; s++)
        for (int64_t t = 0; t < lengths[s]; t++)
            for (int64_t i = 0; i < NUMBERS; i++)
                x[(s * length + t) * NUMBERS + i] = i == NUMBERS - 1 ? 1 : (float)sin((double)(31 * s + 7 * t + 3 * i));
    tutti_runtime *runtime = tutti_open(NULL);
    ck_assert_msg(runtime, "%s", tutti_message(NULL));
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor input = tutti_input(network, "input", TUTTI_SHAPE(TUTTI_SEQUENCE, NUMBERS));
    const tutti_tensor output = model_speech_for(network, input, CLASSES, &(struct model_facts) { .config = &small });
    const tutti_tensor steps = speech_lengths(network, input);
    const tutti_tensor labels = tutti_input_typed(network, "targets", TUTTI_DTYPE_I32, &listed, 1);
    const tutti_tensor loss = tutti_ctc(network, output, labels, &(tutti_ctc_options) { .lengths = &steps });
    training.batch = SAMPLES;
    training.sequence = LONGEST;
    training.learning_rate = 0.5f;
    training.seed = 3;
    training.losses = &loss;
    training.loss_count = 1;
    tutti_trainer *trainer = tutti_compile(network, output, &training);
    ck_assert_msg(trainer, "%s", tutti_message(NULL));
    const tutti_feed feeds[] = { { "input", TUTTI_DTYPE_F32, x, length }, { "targets", TUTTI_DTYPE_I32, targets } };
    GOOD(tutti_train_step(trainer, feeds, 2, SAMPLES, &metrics));
    for (size_t i = 0; i < sizeof names / sizeof *names; parameters += counts[i++])
        GOOD(tutti_get_parameter(trainer, names[i], parameters, counts[i]));
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    tutti_close(runtime);
    return metrics.loss;
}

START_TEST(padding_changes_nothing)
{
    enum { COUNT = 330 };
    float near[COUNT], far[COUNT];
    const double loss = train_step(9, near);
    ck_assert_msg(isfinite(loss) && loss > 0.5, "the loss is %g", loss);
    ck_assert_double_eq_tol(train_step(LONGEST, far), loss, 1e-6 * loss);
    for (int i = 0; i < COUNT; i++)
        ck_assert_msg(fabsf(near[i] - far[i]) <= 2e-6f, "number %d is %g and %g", i, (double)near[i], (double)far[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("padding");
    TCase *test = tcase_create("padding");
    tcase_set_timeout(test, 600);
    tcase_add_test(test, padding_changes_nothing);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
