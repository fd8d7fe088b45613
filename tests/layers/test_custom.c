/* Custom operations (include/tutti_custom.h): results and gradients, on one device and on all, and what is refused. */
#include "tests/feeds.h"
#include <check.h>
#include <math.h>
#include <string.h>
#undef fail /* base/status.h has its own */

#include "tests/layers/device_suite.h"
#include "tutti.h"
#include "tutti_custom.h"
#include "tutti_steps.h"

enum { SAMPLES = 7, ROWS = 3, COLUMNS = 5, NUMBERS = ROWS * COLUMNS };

static tutti_runtime *runtime; /* all devices */
#define ASSERT_OK(call) ck_assert_msg((call) == TUTTI_OK, "%s", tutti_message(NULL))

/* y = w[column] sin(x) + offset. An item of the backward is a column. */
static void reference(void *user, const double *const *inputs, double *y)
{
    const double offset = *(const double *)user;
    for (int i = 0; i < NUMBERS; i++) y[i] = inputs[1][i % COLUMNS] * sin(inputs[0][i]) + offset;
}

static double offset = 0.25;
static const tutti_custom_options waves = {
    .operation = "waves",
    .input_names = "x w",
    .attributes = "offset=0.25 rows=3",
    .source = "float wave(float x) { return sin(x); }",
    .forward = "y[i] = w[i % x_size1] * wave(x[i]) + offset;",
    .backward = "float sum = 0;\n"
                "for (int k = i; k < rows * x_size1; k += x_size1) {\n"
                "    dx[k] = dy[k] * w[i] * cos(x[k]);\n"
                "    sum += dy[k] * (y[k] - offset) / w[i];\n"
                "}\n"
                "dw[i] = sum;",
    .backward_items = COLUMNS,
    .low = 0.5f,
    .high = 1.5f,
    .reference = reference,
    .user = &offset,
};

static float numbers(int i)
{
    return 0.1f + (float)(i * 37 % 101) / 101;
}

struct training {
    tutti_network *network;
    tutti_trainer *trainer;
    tutti_tensor x, y;
};

static void make(struct training *t, tutti_runtime *on, const tutti_custom_options *options, bool trains)
{
    float w[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) w[i] = numbers(i + 50);
    *t = (struct training) { .network = tutti_network_new(on) };
    t->x = tutti_input(t->network, "x", TUTTI_SHAPE(ROWS, COLUMNS));
    const tutti_tensor both[] = { t->x,
        tutti_parameter(t->network, "w", TUTTI_SHAPE(COLUMNS), &(tutti_parameter_options) { .values = w }) };
    const tutti_tensor scaled = tutti_mul(t->network, both[0], both[1]);
    t->y = options->input_names ? tutti_custom(t->network, both, 2, options)
                                : tutti_custom(t->network, &scaled, 1, options);
    t->trainer = tutti_compile(t->network, t->y,
        &(tutti_training) { .loss = trains ? TUTTI_MSE : TUTTI_LOSS_NONE,
            .batch = SAMPLES,
            .gradient_inputs = trains ? &t->x : NULL,
            .gradient_input_count = trains });
}

static void free_training(struct training *t)
{
    tutti_trainer_free(t->trainer);
    tutti_network_free(t->network);
}

/* The results and gradients, in double precision. */
static void expect(const float *x, const float *targets, double *y, double *dx, double dw[COLUMNS])
{
    memset(dw, 0, COLUMNS * sizeof *dw);
    for (int i = 0; i < SAMPLES * NUMBERS; i++) {
        const double w = (double)numbers(i % COLUMNS + 50);
        y[i] = w * sin((double)x[i]) + offset;
        const double dy = 2 * (y[i] - (double)targets[i]) / (SAMPLES * NUMBERS);
        dx[i] = dy * w * cos((double)x[i]);
        dw[i % COLUMNS] += dy * sin((double)x[i]);
    }
}

static void close_to(const char *name, const float *found, const double *expected, int count)
{
    for (int i = 0; i < count; i++)
        ck_assert_msg(fabs((double)found[i] - expected[i]) < 1e-6, "%s %d: %g instead of %g", name, i, (double)found[i],
            expected[i]);
}

static void compare(tutti_runtime *on)
{
    float x[SAMPLES * NUMBERS], targets[SAMPLES * NUMBERS], y[SAMPLES * NUMBERS], dx[SAMPLES * NUMBERS], dw[COLUMNS];
    double of_y[SAMPLES * NUMBERS], of_dx[SAMPLES * NUMBERS], of_dw[COLUMNS];
    struct training t;
    for (int i = 0; i < SAMPLES * NUMBERS; i++) {
        x[i] = numbers(i) * 2 - 1;
        targets[i] = numbers(i + 7);
    }
    make(&t, on, &waves, true);
    ck_assert_msg(t.trainer != NULL, "%s", tutti_message(NULL));
    expect(x, targets, of_y, of_dx, of_dw);
    ASSERT_OK(tutti_infer(t.trainer, FEED_ONE(x), SAMPLES, FETCH_ONE(t.y, y)));
    close_to("y", y, of_y, SAMPLES * NUMBERS);
    ASSERT_OK(tutti_backward(t.trainer, FEED_PAIR(x, targets), SAMPLES, NULL));
    ASSERT_OK(tutti_get_input_gradient(t.trainer, t.x, dx, SAMPLES * NUMBERS));
    ASSERT_OK(tutti_get_gradient(t.trainer, "w", dw, COLUMNS));
    close_to("dx", dx, of_dx, SAMPLES * NUMBERS);
    close_to("dw", dw, of_dw, COLUMNS);
    free_training(&t);
}

START_TEST(test_agrees_with_reference)
{
    compare(runtime);
    tutti_runtime *one = tutti_open(&(tutti_runtime_options) { .devices = "0" });
    ck_assert_msg(one != NULL, "%s", tutti_message(NULL));
    compare(one);
    tutti_close(one);
}
END_TEST

/* Between layers whose values have another layout; an output of another shape; lengths of sequences. */
START_TEST(test_shapes)
{
    static const tutti_custom_options halves = {
        .operation = "halves",
        .forward = "y[i] = x[2 * i] + x[2 * i + 1];",
        .backward = "dx[i] = dy[i / 2];",
        .shape = { .rank = 3, .sizes = { 5, 6, 4 } },
    };
    static const tutti_custom_options turn = { .operation = "turn", .forward = "y[i] = x[x_size0 - 1 - i];" };
    float images[SAMPLES * 2 * 6 * 8] = { 0 }, targets[SAMPLES] = { 0 }, out[SAMPLES * 6];
    tutti_network *network = tutti_network_new(runtime);
    tutti_tensor x = tutti_conv2d(network, tutti_input(network, "x", TUTTI_SHAPE(2, 6, 8)), 5, 1, NULL);
    x = tutti_custom(network, &x, 1, &halves);
    x = tutti_dense(network, tutti_flatten(network, tutti_conv2d(network, x, 3, 3, NULL)), 1, NULL);
    tutti_trainer *trainer = tutti_compile(network, x, &(tutti_training) { .loss = TUTTI_MSE, .batch = SAMPLES });
    ck_assert_msg(trainer != NULL, "%s", tutti_message(NULL));
    ASSERT_OK(tutti_train_step(trainer, FEED_PAIR(images, targets), SAMPLES, NULL));
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    network = tutti_network_new(runtime);
    x = tutti_input(network, "x", TUTTI_SHAPE(TUTTI_SEQUENCE));
    x = tutti_custom(network, &x, 1, &turn);
    trainer = tutti_compile(network, x, &(tutti_training) { .loss = TUTTI_LOSS_NONE, .batch = SAMPLES, .sequence = 6 });
    ck_assert_msg(trainer != NULL, "%s", tutti_message(NULL));
    for (int length = 4; length <= 6; length++) {
        tutti_feed feed = { "x", TUTTI_DTYPE_F32, images, .length = length };
        for (int i = 0; i < 2 * length; i++) images[i] = (float)i;
        ASSERT_OK(tutti_infer(trainer, &feed, 1, 2, FETCH_ONE(x, out)));
        for (int i = 0; i < 2 * length; i++)
            ck_assert_int_eq((int)out[i], i / length * length + length - 1 - i % length);
    }
    tutti_trainer_free(trainer);
    tutti_network_free(network);
}
END_TEST

#define LINEAR .operation = "linear", .forward = "y[i] = 2 * x[i];",
static void reference_3x(void *user, const double *const *inputs, double *y)
{
    (void)user;
    for (int i = 0; i < NUMBERS; i++) y[i] = 3 * inputs[0][i];
}

static void reference_mask(void *user, const double *const *inputs, double *y)
{
    (void)user;
    (void)inputs;
    for (int i = 0; i < NUMBERS; i++) y[i] = i == 4 ? -INFINITY : 0;
}

static const struct {
    tutti_custom_options options;
    bool trains;
    tutti_status status;
    const char *says;
} wrong[] = {
    { { LINEAR.backward = "dx[i] = 3 * dy[i];" }, true, TUTTI_WRONG_RESULT, "finite differences of its forward give" },
    { { LINEAR.backward = "if (i != 4) dx[i] = 2 * dy[i];" }, true, TUTTI_WRONG_RESULT,
        "element 4 of dx in sample 0 is not written" },
    { { LINEAR.backward = "dx[i == 3 ? 4 : i] = 2 * dy[i == 3 ? 4 : i];" }, true, TUTTI_WRONG_RESULT,
        "element 3 of dx in sample 0 is not written" },
    { { LINEAR }, true, TUTTI_INVALID, "custom operation 'linear' has no backward" },
    { { LINEAR.reference = reference_3x }, false, TUTTI_WRONG_RESULT, "the reference gives" },
    { { .operation = "mask", .forward = "y[i] = 0;", .reference = reference_mask }, false, TUTTI_WRONG_RESULT,
        "is 0: the reference gives -inf" },
    { { .operation = "log", .forward = "y[i] = log(x[i]);" }, false, TUTTI_WRONG_RESULT,
        "NaN for numbers from -2 to 2" },
    { { .operation = "past", .forward = "y[i] = x[i]; if (i == x_elements - 1) y[i + 2 * x_elements + 2] = 1;" }, false,
        TUTTI_WRONG_RESULT, "it writes past the end of y" },
    { { .operation = "typo", .forward = "const int j = i;\ny[j] = xx[j];" }, false, TUTTI_BUILD, "forward of typo:2:" },
    { { .operation = "typo", .source = "float f(float a) { return b; }", .forward = "y[i] = f(x[i]);" }, false,
        TUTTI_BUILD, "source of typo:1:" },
};

START_TEST(test_wrong_texts_are_refused)
{
    struct training t;
    make(&t, runtime, &wrong[_i].options, wrong[_i].trains);
    ck_assert_ptr_null(t.trainer);
    ck_assert_msg(tutti_last_status() == wrong[_i].status, "%d: %s", tutti_last_status(), tutti_message(NULL));
    ck_assert_msg(strstr(tutti_message(NULL), wrong[_i].says) != NULL, "%s", tutti_message(NULL));
    free_training(&t);
}
END_TEST

START_TEST(test_check_can_be_left_out)
{
    tutti_custom_options options = wrong[0].options;
    struct training t;
    options.no_check = true;
    make(&t, runtime, &options, true);
    ck_assert_msg(t.trainer != NULL, "%s", tutti_message(NULL));
    free_training(&t);
}
END_TEST

static const struct {
    tutti_custom_options options;
    int inputs;
    const char *says;
} invalid[] = {
    { { .size = 3 }, 1, "tutti_custom_options" },
    { { .forward = "y[i] = 0;" }, 1, "operation is NULL" },
    { { .operation = "a b", .forward = "y[i] = 0;" }, 1, "must consist of letters" },
    { { .operation = "none" }, 1, "has no forward" },
    { { LINEAR }, 2, "it got 2 inputs: it has names for 1" },
    { { LINEAR.input_names = "a b c d e f g" }, 1, "at most 6" },
    { { LINEAR.input_names = "x x" }, 2, "cannot be the name of an input" },
    { { LINEAR.input_names = "x dx" }, 2, "cannot be the name of an input" },
    { { LINEAR.input_names = "y" }, 1, "cannot be the name of an input" },
    { { LINEAR.input_names = "x-" }, 1, "cannot be the name of an input" },
    { { LINEAR.input_names = "" }, 1, "has no inputs" },
    { { LINEAR.input_names = "x x_size0" }, 2, "cannot be the name of an input" },
    { { LINEAR.input_names = "custom_at" }, 1, "cannot be the name of an input" },
    { { LINEAR.input_names = "CUSTOM_ITEMS" }, 1, "cannot be the name of an input" },
    { { LINEAR.attributes = "a" }, 1, "the attribute 'a'" },
    { { LINEAR.attributes = "a=1 b=x" }, 1, "the attribute 'b=x'" },
    { { LINEAR.attributes = "a=0x10" }, 1, "the attribute 'a=0x10'" },
    { { LINEAR.attributes = "a=1e39" }, 1, "with a number of float32" },
    { { LINEAR.attributes = "\x1b[31m" }, 1, "the attribute '?[31m'" },
    { { LINEAR.attributes = "a=1 b=2 a=1" }, 1, "'a=1' has a name that is taken" },
    { { LINEAR.attributes = "x=1" }, 1, "has a name that is taken" },
    { { LINEAR.attributes = "dx=1" }, 1, "has a name that is taken" },
    { { LINEAR.attributes = "i=1" }, 1, "has a name that is taken" },
    { { LINEAR.attributes = "y_elements=1" }, 1, "has a name that is taken" },
    { { LINEAR.attributes = "x_size0=1" }, 1, "has a name that is taken" },
    { { LINEAR.attributes = "CUSTOM_ITEMS=1" }, 1, "has a name that is taken" },
    { { LINEAR.input_names = "float" }, 1, "the input 'float' is named as a word or function of OpenCL C" },
    { { LINEAR.input_names = "uchar16" }, 1, "the input 'uchar16' is named" },
    { { LINEAR.input_names = "x global" }, 2, "the input 'global' is named" },
    { { LINEAR.input_names = "fabs" }, 1, "the input 'fabs' is named" },
    { { LINEAR.input_names = "__private" }, 1, "the input '__private' is named" },
    { { LINEAR.input_names = "ot" }, 1, "the gradient of the input 'ot' would be called 'dot'" },
    { { LINEAR.input_names = "ouble2" }, 1, "would be called 'double2'" },
    { { LINEAR.attributes = "a=1 int=2" }, 1, "the attribute 'int=2' is named as a word or function of OpenCL C" },
    { { LINEAR.attributes = "return=2" }, 1, "the attribute 'return=2' is named" },
    { { LINEAR.attributes = "M_PI_F=3" }, 1, "the attribute 'M_PI_F=3' is named" },
    { { LINEAR.attributes = "step=2" }, 1, "the attribute 'step=2' is named" },
    { { LINEAR.attributes = "native_exp=2" }, 1, "the attribute 'native_exp=2' is named" },
    { { LINEAR.attributes = "vload4=2" }, 1, "the attribute 'vload4=2' is named" },
    { { LINEAR.attributes = "atomic_add=2" }, 1, "the attribute 'atomic_add=2' is named" },
    { { LINEAR.attributes = "as_int=2" }, 1, "the attribute 'as_int=2' is named" },
    { { LINEAR.attributes = "convert_uchar4_sat_rte=2" }, 1, "the attribute 'convert_uchar4_sat_rte=2' is named" },
    { { LINEAR.shape = { .rank = 2, .sizes = { 65536, 32768 } } }, 1,
        "a sample would have 2147483648 items in the forward" },
    { { LINEAR.shape = { .rank = 8 } }, 1, "the shape has 8 axes" },
    { { LINEAR.shape = { .rank = 1 } }, 1, "size 0 of the shape is 0" },
    { { LINEAR.forward_items = -1 }, 1, "forward_items is -1" },
    { { LINEAR.low = 1, .high = 1 }, 1, "low must be smaller" },
};

START_TEST(test_invalid_options_are_refused)
{
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2)), both[] = { x, x };
    ck_assert_int_lt(tutti_custom(network, both, invalid[_i].inputs, &invalid[_i].options).id, 0);
    ck_assert_msg(strstr(tutti_message(NULL), invalid[_i].says) != NULL, "%s", tutti_message(NULL));
    tutti_network_free(network);
}
END_TEST

/* Words that only resemble those of OpenCL C, and as many items as an int counts. */
START_TEST(test_other_words_are_names)
{
    static const tutti_custom_options options = { LINEAR.input_names = "floats half_width",
        .attributes = "int5=1 vload=2 native=3 as_is=4 M_P=5 steps=6 atomic_sum=7 convert_int_sat_up=8 _x=9",
        .shape = { .rank = 1, .sizes = { INT32_MAX } } };
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2)), both[] = { x, x };
    ck_assert_msg(tutti_custom(network, both, 2, &options).id >= 0, "%s", tutti_message(NULL));
    tutti_network_free(network);
}
END_TEST

/* The forward has few items, the backward would have one for each of 2^31 elements. */
START_TEST(test_too_many_items_backward)
{
    static const tutti_custom_options options = { .operation = "sums",
        .input_names = "x p",
        .forward = "y[0] = p[0] * x[i];",
        .backward = "dx[i] = dy[0] * p[0]; dp[0] = dy[0] * x[0];",
        .forward_items = 1,
        .shape = { .rank = 1, .sizes = { 1 } } };
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor inputs[] = { tutti_input(network, "x", TUTTI_SHAPE(65536, 32768)),
        tutti_parameter(network, "p", TUTTI_SHAPE(1), NULL) };
    const tutti_tensor y = tutti_custom(network, inputs, 2, &options);
    ck_assert_msg(y.id >= 0, "%s", tutti_message(NULL));
    ck_assert_ptr_null(tutti_compile(network, y, &(tutti_training) { .loss = TUTTI_MSE, .batch = 1 }));
    ck_assert_msg(strstr(tutti_message(NULL), "2147483648 items in the backward, one for each element of x") != NULL,
        "%s", tutti_message(NULL));
    tutti_network_free(network);
}
END_TEST

START_TEST(test_invalid_tensors_are_refused)
{
    static const char *const says[] = { "all inputs are parameters", "set tutti_custom_options.shape", "is not float32",
        "options that are NULL" };
    static const tutti_custom_options first = { LINEAR.input_names = "p x" };
    tutti_network *network = tutti_network_new(runtime);
    tutti_tensor inputs[] = { tutti_parameter(network, "p", TUTTI_SHAPE(2), NULL),
        tutti_input(network, "x", TUTTI_SHAPE(2)),
        tutti_input_typed(network, "n", TUTTI_DTYPE_I32, (int64_t[]) { 2 }, 1) };
    if (_i == 0) inputs[1] = inputs[0];
    if (_i == 2) inputs[0] = inputs[2];
    ck_assert_int_lt(tutti_custom(network, inputs, 2, _i == 3 ? NULL : &first).id, 0);
    ck_assert_msg(strstr(tutti_message(NULL), says[_i]) != NULL, "%s", tutti_message(NULL));
    tutti_network_free(network);
}
END_TEST

/* Attributes mean their decimal numbers; infinite results are compared. */
static void reference_of_numbers(void *user, const double *const *inputs, double *y)
{
    static const double attributes[] = { 10, 8, -10, 0, 1e20, -7.5, 3e9, 0.5 };
    (void)user;
    for (int i = 0; i < NUMBERS; i++) y[i] = i < 8 ? attributes[i] : i == 8 ? -INFINITY : inputs[0][i];
}

START_TEST(test_numbers_of_attributes)
{
    const tutti_custom_options options = {
        .operation = "numbers",
        .attributes = "a=010 b=+08 c=-010 d=000 e=100000000000000000000 f=-07.5 g=3000000000 h=.5",
        .forward = "const float all[] = { a, b, c, d, e, f, g, h };\n"
                   "y[i] = i < 8 ? all[i] : i == 8 ? -INFINITY : x[i];",
        .reference = reference_of_numbers,
    };
    struct training t;
    make(&t, runtime, &options, false);
    ck_assert_msg(t.trainer != NULL, "%s", tutti_message(NULL));
    float x[NUMBERS] = { 0 }, y[NUMBERS];
    ASSERT_OK(tutti_infer(t.trainer, FEED_ONE(x), 1, FETCH_ONE(t.y, y)));
    double expected[NUMBERS];
    const double *const inputs[] = { (double[NUMBERS]) { 0 } };
    reference_of_numbers(NULL, inputs, expected);
    for (int i = 0; i < 8; i++) ck_assert_msg(y[i] == (float)expected[i], "attribute %d: %g", i, (double)y[i]);
    free_training(&t);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_agrees_with_reference);
    tcase_add_test(tcase, test_shapes);
    tcase_add_loop_test(tcase, test_wrong_texts_are_refused, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(tcase, test_numbers_of_attributes);
    tcase_add_test(tcase, test_check_can_be_left_out);
    tcase_add_test(tcase, test_other_words_are_names);
    tcase_add_test(tcase, test_too_many_items_backward);
    tcase_add_loop_test(tcase, test_invalid_options_are_refused, 0, sizeof invalid / sizeof *invalid);
    tcase_add_loop_test(tcase, test_invalid_tensors_are_refused, 0, 4);
}

int main(void)
{
    return device_suite_run("custom", "all", &runtime, add_tests);
}
