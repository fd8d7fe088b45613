/* A model of characters, two transformer blocks that are built from tutti_op() alone, is trained for some steps on the
 * text in shakespeare.txt: the losses are those that characters.py recorded from PyTorch. */
#include "tests/golden/numbers.h"
#include <check.h>
#undef fail

#include "tutti.h"
#include "tutti_finetune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As in characters.py. */
enum { CLASSES = 128, LENGTH = 24, WIDTH = 32, HEADS = 2, HIDDEN = 128, BLOCKS = 2, BATCH = 8, STEPS = 60 };
enum { STRIDE = 37, TEXT = 4096 };
#define RATE 0.01f

/* PyTorch itself is off by up to 5.2e-7 in single precision, we by up to 1.1e-6. */
#define LIMIT 5e-6

#define GOOD(call) ck_assert_msg((call) == TUTTI_OK, "%s", tutti_message(NULL))

static tutti_tensor op1(tutti_network *network, const char *operation, tutti_tensor x, const char *attributes)
{
    return tutti_op(network, operation, &x, 1, attributes);
}

static tutti_tensor op2(
    tutti_network *network, const char *operation, tutti_tensor a, tutti_tensor b, const char *attributes)
{
    return tutti_op(network, operation, (tutti_tensor[]) { a, b }, 2, attributes);
}

/* Scales of normalisations are near 1, everything else near 0. */
static tutti_tensor parameter(tutti_network *network, const char *layer, const char *name, tutti_shape shape)
{
    float values[CLASSES * WIDTH];
    char full[64];
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++) count *= shape.sizes[i];
    snprintf(full, sizeof full, "%s%s", layer, name);
    const float base = strstr(full, "norm") && strstr(full, "weight") ? 1 : 0;
    for (int64_t i = 0; i < count; i++) values[i] = base + (float)uniform(name_hash("", full), i) / 8;
    return tutti_parameter(
        network, full, shape, &(tutti_parameter_options) { .size = sizeof(tutti_parameter_options), .values = values });
}

static tutti_tensor norm(tutti_network *network, tutti_tensor x, const char *layer)
{
    const tutti_tensor inputs[] = { x, parameter(network, layer, ".weight", TUTTI_SHAPE(WIDTH)),
        parameter(network, layer, ".bias", TUTTI_SHAPE(WIDTH)) };
    return tutti_op(network, "layer_norm", inputs, 3, "epsilon=1e-5");
}

static tutti_tensor linear(
    tutti_network *network, tutti_tensor x, const char *layer, int64_t inputs, int64_t units, bool bias)
{
    x = op2(network, "matmul", x, parameter(network, layer, ".weight", TUTTI_SHAPE(units, inputs)), "transpose_b=1");
    return bias ? op2(network, "add", x, parameter(network, layer, ".bias", TUTTI_SHAPE(units)), NULL) : x;
}

static tutti_tensor heads(tutti_network *network, tutti_tensor x)
{
    char shape[64];
    snprintf(shape, sizeof shape, "shape=%d,%d,%d", LENGTH, HEADS, WIDTH / HEADS);
    return op1(network, "transpose", op1(network, "reshape", x, shape), "perm=1,0,2");
}

/* Zero; at future positions, a value that softmax turns into zero. */
static tutti_tensor causal_mask(tutti_network *network)
{
    float mask[LENGTH * LENGTH];
    for (int i = 0; i < LENGTH * LENGTH; i++) mask[i] = i % LENGTH > i / LENGTH ? -1e9f : 0;
    return tutti_parameter(network, "mask", TUTTI_SHAPE(LENGTH, LENGTH),
        &(tutti_parameter_options) { .size = sizeof(tutti_parameter_options), .values = mask, .frozen = true });
}

static tutti_tensor attention(tutti_network *network, tutti_tensor x, tutti_tensor mask, const char *const names[4])
{
    char text[64];
    const tutti_tensor query = heads(network, linear(network, x, names[0], WIDTH, WIDTH, false)),
                       key = heads(network, linear(network, x, names[1], WIDTH, WIDTH, false)),
                       value = heads(network, linear(network, x, names[2], WIDTH, WIDTH, false));
    snprintf(text, sizeof text, "factor=%.9g", 1 / sqrt((double)WIDTH / HEADS));
    tutti_tensor scores = op1(network, "scale", op2(network, "matmul", query, key, "transpose_b=1"), text);
    scores = op1(network, "softmax", op2(network, "add", scores, mask, NULL), NULL);
    snprintf(text, sizeof text, "shape=%d,%d", LENGTH, WIDTH);
    x = op1(network, "transpose", op2(network, "matmul", scores, value, NULL), "perm=1,0,2");
    return linear(network, op1(network, "reshape", x, text), names[3], WIDTH, WIDTH, true);
}

static tutti_tensor block(tutti_network *network, tutti_tensor x, tutti_tensor mask, int number)
{
    static const char *const parts[] = { "query", "key", "value", "project", "norm1", "norm2", "up", "down" };
    enum { PARTS = sizeof parts / sizeof *parts };
    char text[PARTS][32];
    const char *names[PARTS];
    for (int i = 0; i < PARTS; i++) {
        snprintf(text[i], sizeof text[i], "blocks.%d.%s", number, parts[i]);
        names[i] = text[i];
    }
    x = op2(network, "add", x, attention(network, norm(network, x, names[4]), mask, names), NULL);
    tutti_tensor y = linear(network, norm(network, x, names[5]), names[6], WIDTH, HIDDEN, true);
    return op2(network, "add", x, linear(network, op1(network, "gelu", y, NULL), names[7], HIDDEN, WIDTH, true), NULL);
}

/* The table of characters is the weight of the output layer, too. */
static tutti_tensor build(tutti_network *network, tutti_tensor ids)
{
    const tutti_tensor table = parameter(network, "characters", ".weight", TUTTI_SHAPE(CLASSES, WIDTH));
    const tutti_tensor positions = parameter(network, "positions", "", TUTTI_SHAPE(LENGTH, WIDTH));
    const tutti_tensor mask = causal_mask(network);
    tutti_tensor x = op2(network, "add", op2(network, "embedding", ids, table, NULL), positions, NULL);
    for (int i = 0; i < BLOCKS; i++) x = block(network, x, mask, i);
    return op2(network, "matmul", norm(network, x, "norm"), table, "transpose_b=1 name=logits");
}

static FILE *open_file(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/golden/%s", getenv("TUTTI_SOURCE"), name);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    return file;
}

static void make_batch(int step, int64_t *ids, int32_t *targets)
{
    static unsigned char text[TEXT];
    static int64_t length;
    if (length == 0) {
        FILE *file = open_file("shakespeare.txt");
        length = (int64_t)fread(text, 1, sizeof text, file);
        fclose(file);
        ck_assert_int_gt(length, LENGTH + 1);
    }
    for (int i = 0; i < BATCH; i++) {
        const int64_t first = (int64_t)(step * BATCH + i) * STRIDE % (length - LENGTH - 1);
        for (int k = 0; k < LENGTH; k++) {
            ids[i * LENGTH + k] = text[first + k];
            targets[i * LENGTH + k] = text[first + k + 1];
        }
    }
}

/* Freezes the parameters that would make the input of the first normalisation need a gradient; both parameters of
 * some other normalisations, and one parameter of another. */
static void freeze(tutti_network *network)
{
    static const char *const frozen[] = { "characters.weight", "positions", "blocks.0.norm2.weight", "blocks.1.norm*" };
    for (size_t i = 0; i < sizeof frozen / sizeof *frozen; i++) GOOD(tutti_freeze(network, frozen[i]));
}

/* With every parameter trained, and with some frozen. */
START_TEST(test_losses)
{
    static const int64_t length = LENGTH;
    const bool frozen = _i == 1;
    tutti_runtime *runtime = tutti_open(NULL);
    ck_assert_msg(runtime, "%s", tutti_message(NULL));
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor logits = build(network, tutti_input_typed(network, "ids", TUTTI_DTYPE_I64, &length, 1)),
                       labels = tutti_input_typed(network, "labels", TUTTI_DTYPE_I32, &length, 1);
    const tutti_tensor loss = tutti_cross_entropy(
        network, logits, labels, &(tutti_loss_options) { .size = sizeof(tutti_loss_options), .class_axis = -1 });
    if (frozen) freeze(network);
    tutti_trainer *trainer = tutti_compile(network, logits,
        &(tutti_training) { .optimizer = TUTTI_ADAM,
            .learning_rate = RATE,
            .batch = BATCH,
            .losses = &loss,
            .loss_count = 1,
            .sharing = TUTTI_SHARES_EQUAL });
    ck_assert_msg(trainer, "%s", tutti_message(runtime));
    FILE *file = open_file("characters.txt");
    double first = 0, last = 0, most = 0;
    for (int step = 0; step < STEPS; step++) {
        int64_t ids[BATCH * LENGTH];
        int32_t targets[BATCH * LENGTH];
        double recorded[4];
        tutti_metrics metrics;
        make_batch(step, ids, targets);
        const tutti_feed feeds[] = { { "ids", TUTTI_DTYPE_I64, ids }, { "labels", TUTTI_DTYPE_I32, targets } };
        GOOD(tutti_train_step(trainer, feeds, 2, BATCH, &metrics));
        for (int i = 0; i < 4; i++) ck_assert_int_eq(fscanf(file, "%lf", &recorded[i]), 1);
        const double wanted = recorded[frozen ? 2 : 0];
        ck_assert_msg(
            fabs(metrics.loss - wanted) <= LIMIT * wanted, "step %d: loss %.9g, not %.9g", step, metrics.loss, wanted);
        most = fmax(most, fabs(metrics.loss / wanted - 1));
        last = metrics.loss;
        if (step == 0) first = last;
    }
    fclose(file);
    printf("losses are off by %.1e at most\n", most);
    ck_assert_msg(last < 0.9 * first, "nothing was learnt: the loss was %g and is %g", first, last);
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    tutti_close(runtime);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("characters");
    TCase *test_case = tcase_create("losses");
    tcase_set_timeout(test_case, 900);
    tcase_add_loop_test(test_case, test_losses, 0, 2);
    suite_add_tcase(suite, test_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
