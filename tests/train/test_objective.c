/* Sums of losses that are nodes, metrics next to them, outputs of a step, and samples that are not floats. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"

#include "base/half.h"

#include <math.h>
#include <string.h>

enum { TABLE = 5, STEPS = 3, CHANNEL = 7 * 7 };
#define ROUNDING 2e-5
#define HUBER_WEIGHT 0.5f

static uint8_t bytes[SAMPLES * PIXELS];
static float floats[SAMPLES * PIXELS], tables[SAMPLES * TABLE];
static int64_t wide_labels[SAMPLES];
static const float mean[] = { 0.4f, 0.5f }, deviation[] = { 0.2f, 0.3f };

static void setup(void)
{
    data_make();
    for (int i = 0; i < SAMPLES * PIXELS; i++) {
        const int channel = i / CHANNEL % 2;
        bytes[i] = (uint8_t)(127 + 40 * fmaxf(-3, fminf(3, images[i])));
        floats[i] = ((float)bytes[i] / 255 - mean[channel]) / deviation[channel];
    }
    for (int i = 0; i < SAMPLES; i++) {
        wide_labels[i] = labels[i];
        for (int j = 0; j < TABLE; j++) tables[i * TABLE + j] = images[i * PIXELS + j];
    }
}

/* A trainer with two heads: classes, and a table. */
struct heads {
    struct session session;
    tutti_tensor classes, table, cross_entropy, huber, l1;
};

static tutti_tensor input(tutti_network *network, tutti_dtype dtype)
{
    const tutti_tensor x = tutti_input_typed(network, "images", dtype, (int64_t[]) { 2, 7, 7 }, 3);
    if (dtype == TUTTI_DTYPE_F32) return x;
    return tutti_normalise(network, x,
        &(tutti_normalise_options) {
            .size = sizeof(tutti_normalise_options),
            .scale = 1.0f / 255,
            .mean = mean,
            .std = deviation,
            .channels = 2,
        });
}

static void add_heads(struct heads *heads, tutti_dtype dtype, tutti_dtype label_dtype)
{
    tutti_network *network = heads->session.network = tutti_network_new(heads->session.runtime);
    tutti_tensor x = tutti_flatten(network, input(network, dtype));
    x = tutti_tanh(network, tutti_dense(network, x, 12, &(tutti_dense_options) { .name = "hidden" }));
    heads->classes = tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "classes" });
    heads->table = tutti_dense(network, x, TABLE, &(tutti_dense_options) { .name = "table" });
    const tutti_tensor label = tutti_input_typed(network, "label", label_dtype, NULL, 0);
    const tutti_tensor wanted = tutti_input(network, "wanted", TUTTI_SHAPE(TABLE));
    tutti_input(network, "unused", TUTTI_SHAPE(3));
    heads->cross_entropy = tutti_cross_entropy(network, heads->classes, label, NULL);
    heads->huber = tutti_huber(network, heads->table, wanted, NULL);
    heads->l1 = tutti_l1(network, heads->table, wanted, NULL);
}

static void compile(struct heads *heads, const char *devices, bool apart, tutti_training training, tutti_dtype dtype,
    tutti_dtype label_dtype)
{
    heads->session = (struct session) { .runtime = session_runtime(devices, apart) };
    add_heads(heads, dtype, label_dtype);
    if (training.momentum == 0) training.momentum = 0.9f;
    if (training.learning_rate == 0) training.learning_rate = 0.05f;
    training.batch = STEP_SAMPLES;
    training.seed = 7;
    training.losses = (tutti_tensor[]) { heads->cross_entropy, heads->huber, heads->l1 };
    training.loss_weights = (float[]) { 1, HUBER_WEIGHT, 0 };
    training.loss_count = 3;
    training.outputs = &heads->table;
    training.output_count = 1;
    heads->session.trainer = tutti_compile(heads->session.network, heads->classes, &training);
    ck_assert_msg(heads->session.trainer, "%s", tutti_message(NULL));
}

enum { FEEDS = 3 };

static void feed(tutti_feed *feeds, tutti_dtype dtype, tutti_dtype label_dtype, int step)
{
    const int first = step * STEP_SAMPLES;
    const bool wide = label_dtype == TUTTI_DTYPE_I64;
    const void *x = dtype == TUTTI_DTYPE_U8 ? (const void *)(bytes + first * PIXELS) : floats + first * PIXELS;
    feeds[0] = (tutti_feed) { "images", dtype, x };
    feeds[1] = (tutti_feed) { "label", label_dtype,
        wide ? (const void *)(wide_labels + first) : (const void *)(labels + first) };
    feeds[2] = (tutti_feed) { "wanted", TUTTI_DTYPE_F32, tables + first * TABLE };
}

static void step_with(struct heads *heads, tutti_dtype dtype, tutti_dtype label_dtype, int step, tutti_metrics *metrics)
{
    tutti_feed feeds[FEEDS];
    feed(feeds, dtype, label_dtype, step);
    ASSERT_OK(tutti_train_step(heads->session.trainer, feeds, FEEDS, STEP_SAMPLES, metrics));
}

/* The losses and the number of right classes of one step, from what it gave, in double precision. */
static void expect_metrics(
    const struct heads *heads, const tutti_metrics *all, const float *classes, const float *table, int step)
{
    double cross_entropy = 0, huber = 0, l1 = 0, right = 0;
    for (int n = 0; n < STEP_SAMPLES; n++) {
        const float *row = classes + n * CLASSES;
        const int label = labels[step * STEP_SAMPLES + n];
        double sum = 0;
        int best = 0;
        for (int i = 0; i < CLASSES; i++) {
            sum += exp(row[i]);
            if (row[i] > row[best]) best = i;
        }
        cross_entropy += (log(sum) - row[label]) / STEP_SAMPLES;
        right += best == label;
        for (int i = 0; i < TABLE; i++) {
            const double off = fabs((double)table[n * TABLE + i] - tables[(step * STEP_SAMPLES + n) * TABLE + i]);
            l1 += off / (STEP_SAMPLES * TABLE);
            huber += (off <= 1 ? off * off / 2 : off - 0.5) / (STEP_SAMPLES * TABLE);
        }
    }
    const struct {
        tutti_tensor loss;
        double value;
    } losses[] = { { heads->cross_entropy, cross_entropy }, { heads->huber, huber }, { heads->l1, l1 } };
    for (int i = 0; i < 3; i++) {
        tutti_metrics metrics;
        ASSERT_OK(tutti_loss_metrics(heads->session.trainer, losses[i].loss, &metrics));
        ck_assert_double_eq_tol(metrics.loss, losses[i].value, 1e-5 * losses[i].value);
        ck_assert_int_eq(metrics.samples, STEP_SAMPLES);
        ck_assert(i == 0 ? metrics.accuracy == right / STEP_SAMPLES : isnan(metrics.accuracy) != 0);
    }
    ck_assert_double_eq_tol(all->loss, cross_entropy + HUBER_WEIGHT * huber, 1e-5 * all->loss);
    ck_assert_double_eq(all->accuracy, right / STEP_SAMPLES);
}

/* On any devices, in any parts, the same parameters; each step tells each loss and gives both outputs. */
START_TEST(sum_of_losses_trains)
{
    struct heads one, other;
    tutti_training training = training_ways[_i].training;
    training.fetch_in_training = true;
    compile(&one, "0", false, training_ways[0].training, TUTTI_DTYPE_F32, TUTTI_DTYPE_I32);
    compile(&other, training_ways[_i].devices, training_ways[_i].apart, training, TUTTI_DTYPE_F32, TUTTI_DTYPE_I32);
    for (int step = 0; step < STEPS; step++) {
        float classes[STEP_SAMPLES * CLASSES], table[STEP_SAMPLES * TABLE];
        tutti_metrics metrics;
        tutti_feed feeds[FEEDS];
        const tutti_fetch fetches[] = { { other.table, TUTTI_DTYPE_F32, table },
            { other.classes, TUTTI_DTYPE_F32, classes } };
        memset(classes, 0xff, sizeof(classes));
        memset(table, 0xff, sizeof(table));
        feed(feeds, TUTTI_DTYPE_F32, TUTTI_DTYPE_I32, step);
        ASSERT_OK(tutti_train_fetch(other.session.trainer, feeds, FEEDS, STEP_SAMPLES, fetches, 2, &metrics));
        expect_metrics(&other, &metrics, classes, table, step);
        step_with(&one, TUTTI_DTYPE_F32, TUTTI_DTYPE_I32, step, NULL);
    }
    close_to(&one.session, &other.session, ROUNDING);
    session_close(&one.session);
    session_close(&other.session);
}
END_TEST

/* ---------------------------------------------------------------------------------------------- class weights ---- */

static const float class_weights[CLASSES] = { 0.25f, 2, 0, 1, 1.5f };

static void open_weighted(struct heads *heads, const struct way *way)
{
    heads->session = (struct session) { .runtime = session_runtime(way->devices, way->apart) };
    tutti_network *network = heads->session.network = tutti_network_new(heads->session.runtime);
    tutti_tensor x = tutti_flatten(network, tutti_input(network, "images", TUTTI_SHAPE(2, 7, 7)));
    x = tutti_tanh(network, tutti_dense(network, x, 12, &(tutti_dense_options) { .name = "hidden" }));
    heads->classes = tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "classes" });
    heads->cross_entropy =
        tutti_cross_entropy(network, heads->classes, tutti_input_typed(network, "label", TUTTI_DTYPE_I32, NULL, 0),
            &(tutti_loss_options) { .size = sizeof(tutti_loss_options),
                .label_smoothing = 0.2f,
                .class_weights = class_weights,
                .class_weight_count = CLASSES });
    tutti_training training = way->training;
    training.momentum = 0.9f;
    training.learning_rate = 0.05f;
    training.batch = STEP_SAMPLES;
    training.seed = 7;
    training.losses = &heads->cross_entropy;
    training.loss_count = 1;
    training.fetch_in_training = true;
    heads->session.trainer = tutti_compile(network, heads->classes, &training);
    ck_assert_msg(heads->session.trainer, "%s", tutti_message(NULL));
}

static double weighted_loss(const float *logits, int label)
{
    double sum = 0, all = 0;
    for (int i = 0; i < CLASSES; i++) sum += exp(logits[i]);
    for (int i = 0; i < CLASSES; i++) all += class_weights[i] * (log(sum) - logits[i]) / CLASSES;
    return 0.8 * class_weights[label] * (log(sum) - logits[label]) + 0.2 * all;
}

static void weighted_step(struct heads *heads, int step, float *logits, tutti_metrics *metrics)
{
    const int first = step * STEP_SAMPLES;
    const tutti_feed feeds[] = { { "images", TUTTI_DTYPE_F32, floats + first * PIXELS },
        { "label", TUTTI_DTYPE_I32, labels + first } };
    const tutti_fetch fetch = { heads->classes, TUTTI_DTYPE_F32, logits };
    ASSERT_OK(tutti_train_fetch(heads->session.trainer, feeds, 2, STEP_SAMPLES, &fetch, 1, metrics));
}

/* However a batch is divided, the loss and the parameters are the same: no part divides by its own labels' weights. */
START_TEST(class_weights_train)
{
    struct heads one, other;
    open_weighted(&one, &training_ways[0]);
    open_weighted(&other, &training_ways[_i]);
    for (int step = 0; step < STEPS; step++) {
        float logits[STEP_SAMPLES * CLASSES];
        double loss = 0;
        tutti_metrics metrics;
        weighted_step(&one, step, logits, NULL);
        weighted_step(&other, step, logits, &metrics);
        for (int i = 0; i < STEP_SAMPLES; i++)
            loss += weighted_loss(logits + i * CLASSES, labels[step * STEP_SAMPLES + i]) / STEP_SAMPLES;
        ck_assert_double_eq_tol(metrics.loss, loss, 1e-5 * loss);
    }
    close_to(&one.session, &other.session, ROUNDING);
    session_close(&one.session);
    session_close(&other.session);
}
END_TEST

static const struct {
    tutti_loss_options options;
    const char *message;
} wrong_weights[] = {
    { { .class_weights = class_weights, .class_weight_count = 4 }, "4 class weights are given" },
    { { .class_weight_count = CLASSES }, "0 class weights are given, and the predictions have 5 classes" },
    { { .class_weights = (const float[]) { 1, 2, -1, 4, 5 }, .class_weight_count = CLASSES },
        "class_weights[2] is -1" },
    { { .class_weights = (const float[]) { 1, 2, 3, 4, NAN }, .class_weight_count = CLASSES }, "class_weights[4] is" },
    { { .class_weights = class_weights, .class_weight_count = CLASSES }, "for tutti_cross_entropy() and tutti_nll()" },
};

START_TEST(wrong_class_weights_are_reported)
{
    tutti_loss_options options = wrong_weights[_i].options;
    options.size = sizeof(options);
    tutti_runtime *runtime = session_runtime("0", false);
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(CLASSES));
    if (_i == 4)
        tutti_mse(network, x, x, &options);
    else
        tutti_nll(network, x, tutti_input_typed(network, "label", TUTTI_DTYPE_I32, NULL, 0), &options);
    fails_with(tutti_network_status(network), TUTTI_INVALID, wrong_weights[_i].message);
    tutti_network_free(network);
}
END_TEST

/* ---------------------------------------------------------------------------------------- losses of one's own ---- */

/* tutti_mse(), the same by tutti_mean(), and with constant targets; a class that is fed, and a constant one. */
enum own { OWN_MSE, OWN_MEAN, OWN_CONSTANT, OWN_CLASS, OWN_CONSTANT_CLASS };
static const int32_t own_class = 2;
static const float wanted_table[TABLE] = { 0.5f, -1, 0.25f, 2, 0 };

static tutti_tensor own_loss(tutti_network *network, tutti_tensor table, enum own own)
{
    if (own == OWN_CONSTANT)
        return tutti_mse(network, table, tutti_constant(network, NULL, TUTTI_SHAPE(TABLE), wanted_table), NULL);
    if (own == OWN_CLASS)
        return tutti_cross_entropy(
            network, table, tutti_input_typed(network, "wanted", TUTTI_DTYPE_I32, NULL, 0), NULL);
    if (own == OWN_CONSTANT_CLASS)
        return tutti_cross_entropy(network, table,
            tutti_constant_typed(network, NULL, TUTTI_DTYPE_I32, (int64_t[]) { 1 }, 1, &own_class), NULL);
    const tutti_tensor wanted = tutti_input(network, "wanted", TUTTI_SHAPE(TABLE));
    if (own == OWN_MSE) return tutti_mse(network, table, wanted, NULL);
    const tutti_tensor weights = tutti_input_typed(network, "weights", TUTTI_DTYPE_F32, NULL, 0);
    const tutti_tensor off = tutti_op(network, "sub", (tutti_tensor[]) { table, wanted }, 2, NULL);
    return tutti_mean(network, tutti_mul(network, off, off),
        &(tutti_mean_options) { .size = sizeof(tutti_mean_options), .weights = &weights });
}

static void open_own(struct session *session, const struct way *way, enum own own)
{
    *session = (struct session) { .runtime = session_runtime(way->devices, way->apart) };
    tutti_network *network = session->network = tutti_network_new(session->runtime);
    tutti_tensor x = tutti_flatten(network, tutti_input(network, "images", TUTTI_SHAPE(2, 7, 7)));
    x = tutti_tanh(network, tutti_dense(network, x, 12, &(tutti_dense_options) { .name = "hidden" }));
    const tutti_tensor table = tutti_dense(network, x, TABLE, &(tutti_dense_options) { .name = "table" });
    const tutti_tensor loss = own_loss(network, table, own);
    tutti_training training = way->training;
    training.momentum = 0.9f;
    training.learning_rate = 0.05f;
    training.batch = STEP_SAMPLES;
    training.seed = 7;
    training.losses = &loss;
    training.loss_count = 1;
    session->trainer = tutti_compile(network, table, &training);
    ck_assert_msg(session->trainer, "%s", tutti_message(NULL));
}

static double own_step(const struct session *session, enum own own, int step, const void *table, const float *weights)
{
    tutti_metrics metrics;
    const tutti_feed feeds[] = { { "images", TUTTI_DTYPE_F32, floats + step * STEP_SAMPLES * PIXELS },
        { "wanted", own == OWN_CLASS ? TUTTI_DTYPE_I32 : TUTTI_DTYPE_F32, table },
        { "weights", TUTTI_DTYPE_F32, weights } };
    const int count[] = {
        [OWN_MSE] = 2, [OWN_MEAN] = 3, [OWN_CONSTANT] = 1, [OWN_CLASS] = 2, [OWN_CONSTANT_CLASS] = 1
    };
    ASSERT_OK(tutti_train_step(session->trainer, feeds, count[own], STEP_SAMPLES, &metrics));
    ck_assert(isnan(metrics.accuracy) == (own < OWN_CLASS));
    return metrics.loss;
}

/* With weights of 1 it trains as the library's loss does; with others, the same on any devices. */
START_TEST(own_loss_trains)
{
    struct session library, one, other;
    float weights[STEP_SAMPLES];
    open_own(&library, &training_ways[0], OWN_MSE);
    open_own(&one, &training_ways[0], OWN_MEAN);
    open_own(&other, &training_ways[_i], OWN_MEAN);
    for (int step = 0; step < STEPS; step++) {
        const float *table = tables + step * STEP_SAMPLES * TABLE;
        for (int i = 0; i < STEP_SAMPLES; i++) weights[i] = step == 0 ? 1 : (float)(i % 5) / 2;
        const double loss = own_step(&other, OWN_MEAN, step, table, weights);
        ck_assert_double_eq_tol(own_step(&one, OWN_MEAN, step, table, weights), loss, 1e-5 * loss);
        if (step > 0) continue;
        ck_assert_double_eq_tol(own_step(&library, OWN_MSE, step, table, NULL), loss, 1e-5 * loss);
        close_to(&library, &other, ROUNDING);
    }
    close_to(&one, &other, ROUNDING);
    session_close(&library);
    session_close(&one);
    session_close(&other);
}
END_TEST

/* Targets that are a constant train as those of each sample that are fed. */
START_TEST(constants_are_targets)
{
    struct session fed, constant;
    float table[STEP_SAMPLES * TABLE];
    for (int i = 0; i < STEP_SAMPLES * TABLE; i++) table[i] = wanted_table[i % TABLE];
    open_own(&fed, &training_ways[0], OWN_MSE);
    open_own(&constant, &training_ways[_i], OWN_CONSTANT);
    for (int step = 0; step < STEPS; step++) {
        const double loss = own_step(&fed, OWN_MSE, step, table, NULL);
        ck_assert_double_eq_tol(own_step(&constant, OWN_CONSTANT, step, NULL, NULL), loss, 1e-5 * loss);
    }
    close_to(&fed, &constant, ROUNDING);
    session_close(&fed);
    session_close(&constant);
}
END_TEST

START_TEST(constants_are_classes)
{
    struct session fed, constant;
    int32_t classes[STEP_SAMPLES];
    for (int i = 0; i < STEP_SAMPLES; i++) classes[i] = own_class;
    open_own(&fed, &training_ways[0], OWN_CLASS);
    open_own(&constant, &training_ways[_i], OWN_CONSTANT_CLASS);
    for (int step = 0; step < STEPS; step++) {
        const double loss = own_step(&fed, OWN_CLASS, step, classes, NULL);
        ck_assert_double_eq_tol(own_step(&constant, OWN_CONSTANT_CLASS, step, NULL, NULL), loss, 1e-5 * loss);
    }
    close_to(&fed, &constant, ROUNDING);
    session_close(&fed);
    session_close(&constant);
}
END_TEST

/* Labels of a constant that are excluded do not count in the accuracy, as those that are fed. */
START_TEST(constant_classes_are_excluded)
{
    enum { SITES = 4, HALF = 6 };
    static const int32_t classes[SITES] = { 0, -1, 2, 255 };
    static float numbers[HALF * CLASSES * SITES];
    const int64_t sizes[] = { CLASSES, SITES };
    int32_t given[HALF * SITES];
    tutti_runtime *runtime = session_runtime(training_ways[_i].devices, training_ways[_i].apart);
    tutti_metrics metrics[2];
    for (int i = 0; i < HALF * CLASSES * SITES; i++) numbers[i] = (float)(i * 37 % 101) / 50;
    for (int i = 0; i < HALF * SITES; i++) given[i] = classes[i % SITES];
    for (int fed = 0; fed < 2; fed++) {
        tutti_network *network = tutti_network_new(runtime);
        tutti_tensor x = tutti_input_typed(network, "x", TUTTI_DTYPE_F32, sizes, 2);
        x = tutti_mul(network, x, tutti_parameter(network, "scale", TUTTI_SHAPE(1), NULL));
        const tutti_tensor wanted = fed ? tutti_input_typed(network, "wanted", TUTTI_DTYPE_I32, sizes + 1, 1)
                                        : tutti_constant_typed(network, NULL, TUTTI_DTYPE_I32, sizes + 1, 1, classes);
        const tutti_tensor loss =
            tutti_cross_entropy(network, x, wanted, &(tutti_loss_options) { .has_ignored = true, .ignored = 255 });
        tutti_training training = training_ways[_i].training;
        training.batch = HALF;
        training.seed = 7;
        training.losses = &loss;
        training.loss_count = 1;
        tutti_trainer *trainer = tutti_compile(network, x, &training);
        ck_assert_msg(trainer, "%s", tutti_message(NULL));
        const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, numbers }, { "wanted", TUTTI_DTYPE_I32, given } };
        ASSERT_OK(tutti_train_step(trainer, feeds, 1 + fed, HALF, &metrics[fed]));
        ck_assert_double_eq_tol(metrics[fed].counted, HALF / 2.0, 1e-9);
        tutti_trainer_free(trainer);
        tutti_network_free(network);
    }
    ck_assert_double_eq_tol(metrics[0].accuracy, metrics[1].accuracy, 1e-9);
    ck_assert_double_eq_tol(metrics[0].loss, metrics[1].loss, 1e-5);
}
END_TEST

/* ------------------------------------------------------------------------------------------- lists of labels ---- */

/* "Recordings": each letter sounds for two frames as a tone of its own, with silence after it and at the end. */
enum { LISTS = 8, FRAMES = 14, TONES = 3, LETTERS = 4 };
static float sounds[LISTS * FRAMES * TONES], sounding[LISTS];
static int32_t letters[LISTS * LETTERS];

static void make_recordings(void)
{
    memset(sounds, 0, sizeof sounds);
    for (int n = 0; n < LISTS; n++) {
        const int count = n % (LETTERS + 1);
        sounding[n] = (float)(3 * count + 2);
        for (int i = 0; i < LETTERS; i++) {
            const int letter = (n * 5 + i * (n % 3) + i / 2) % TONES;
            letters[n * LETTERS + i] = i < count ? 1 + letter : -1;
            for (int t = 0; i < count && t < 2; t++) sounds[(n * FRAMES + 3 * i + t) * TONES + letter] = 1;
        }
    }
}

/* Compares the classes of the frames, equal neighbours as one and without blanks, with the letters. */
static void expect_letters(const float *scores, int n)
{
    int count = 0, before = 0;
    for (int t = 0; t < (int)sounding[n]; t++) {
        const float *x = scores + (n * FRAMES + t) * (TONES + 1);
        int best = 0;
        for (int c = 1; c <= TONES; c++)
            if (x[c] > x[best]) best = c;
        if (best && best != before) {
            ck_assert_int_lt(count, LETTERS);
            ck_assert_int_eq(best, letters[n * LETTERS + count++]);
        }
        before = best;
    }
    ck_assert(count == LETTERS || letters[n * LETTERS + count] < 0);
}

START_TEST(lists_of_labels_are_learned)
{
    float scores[LISTS * FRAMES * (TONES + 1)];
    tutti_runtime *runtime = session_runtime(training_ways[_i].devices, training_ways[_i].apart);
    tutti_network *network = tutti_network_new(runtime);
    const int64_t listed = LETTERS;
    const tutti_tensor x = tutti_dense(network, tutti_input(network, "x", TUTTI_SHAPE(FRAMES, TONES)), TONES + 1, NULL),
                       wanted = tutti_input_typed(network, "wanted", TUTTI_DTYPE_I32, &listed, 1),
                       lengths = tutti_input_typed(network, "lengths", TUTTI_DTYPE_F32, NULL, 0),
                       loss = tutti_ctc(network, x, wanted, &(tutti_ctc_options) { .lengths = &lengths });
    tutti_training training = training_ways[_i].training;
    training.optimizer = TUTTI_ADAM;
    training.learning_rate = 0.1f;
    training.momentum = 0;
    training.batch = LISTS;
    training.losses = &loss;
    training.loss_count = 1;
    tutti_trainer *trainer = tutti_compile(network, x, &training);
    ck_assert_msg(trainer, "%s", tutti_message(NULL));
    make_recordings();
    const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, sounds }, { "wanted", TUTTI_DTYPE_I32, letters },
        { "lengths", TUTTI_DTYPE_F32, sounding } };
    tutti_metrics first, last;
    ASSERT_OK(tutti_train_step(trainer, feeds, 3, LISTS, &first));
    for (int step = 0; step < 100; step++) ASSERT_OK(tutti_train_step(trainer, feeds, 3, LISTS, &last));
    ck_assert_double_lt(last.loss, first.loss / 4);
    ck_assert_double_eq(last.counted, LISTS);
    ASSERT_OK(tutti_infer(trainer, feeds, 1, LISTS, &(tutti_fetch) { x, TUTTI_DTYPE_F32, scores }, 1));
    for (int n = 0; n < LISTS; n++) expect_letters(scores, n);
    for (int32_t wrong = 0; wrong <= TONES + 1; wrong += TONES + 1) {
        letters[LETTERS] = wrong;
        fails_with(tutti_train_step(trainer, feeds, 3, LISTS, NULL), TUTTI_INVALID, "which no target has");
    }
    tutti_trainer_free(trainer);
    tutti_network_free(network);
}
END_TEST

START_TEST(wrong_own_losses_are_reported)
{
    tutti_runtime *runtime = session_runtime("0", false);
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(CLASSES));
    const tutti_tensor label = tutti_input_typed(network, "label", TUTTI_DTYPE_I32, NULL, 0);
    const tutti_tensor four = tutti_constant(network, NULL, TUTTI_SHAPE(4), wanted_table);
    if (_i == 0) tutti_mean(network, label, NULL);
    if (_i == 1) tutti_mean(network, x, &(tutti_mean_options) { .weights = &four });
    if (_i == 2) tutti_mean(network, four, NULL);
    if (_i == 3) tutti_mse(network, x, four, NULL);
    if (_i == 4) tutti_nll(network, x, four, NULL);
    const int32_t class = _i == 6 ? CLASSES : 1 << 25;
    const tutti_tensor number = tutti_constant_typed(network, NULL, TUTTI_DTYPE_I32, (int64_t[]) { 1 }, 1, &class);
    const tutti_loss_options ignoring = { .has_ignored = true, .ignored = 1 << 25 };
    if (_i >= 5) tutti_nll(network, x, number, _i == 5 ? &ignoring : NULL);
    static const char *const messages[] = { "not float32", "[5] and [4]", "constant", "cannot become", "constant",
        "at most 2^24", "is class 5, but the predictions have 5 classes" };
    fails_with(tutti_last_status(), _i == 1 || _i == 3 ? TUTTI_SHAPE : TUTTI_INVALID, messages[_i]);
    ck_assert_int_eq(tutti_network_status(network), tutti_last_status());
    tutti_network_free(network);
}
END_TEST

/* ------------------------------------------------------------------------------------- types, outputs, errors ---- */

/* Images that travel as bytes, and labels as int64, train as floats and int32 do. */
START_TEST(bytes_train_as_floats)
{
    struct heads one, other;
    compile(&one, "0", false, training_ways[0].training, TUTTI_DTYPE_F32, TUTTI_DTYPE_I32);
    compile(&other, training_ways[_i].devices, training_ways[_i].apart, training_ways[_i].training, TUTTI_DTYPE_U8,
        TUTTI_DTYPE_I64);
    for (int step = 0; step < STEPS; step++) {
        step_with(&one, TUTTI_DTYPE_F32, TUTTI_DTYPE_I32, step, NULL);
        step_with(&other, TUTTI_DTYPE_U8, step % 2 ? TUTTI_DTYPE_I32 : TUTTI_DTYPE_I64, step, NULL);
    }
    close_to(&one.session, &other.session, ROUNDING);
    session_close(&one.session);
    session_close(&other.session);
}
END_TEST

/* Inference needs the images alone, gives any outputs, and rounds them to a narrower type. */
START_TEST(inference_gives_outputs)
{
    static float classes[SAMPLES * CLASSES], table[SAMPLES * TABLE];
    static uint16_t halves[SAMPLES * TABLE], brains[SAMPLES * CLASSES];
    struct heads heads;
    compile(&heads, training_ways[_i].devices, training_ways[_i].apart, training_ways[_i].training, TUTTI_DTYPE_U8,
        TUTTI_DTYPE_I64);
    const tutti_feed x = { "images", TUTTI_DTYPE_U8, bytes };
    ASSERT_OK(tutti_infer(heads.session.trainer, &x, 1, SAMPLES,
        (tutti_fetch[]) { { heads.classes, TUTTI_DTYPE_F32, classes }, { heads.table, TUTTI_DTYPE_F32, table } }, 2));
    ASSERT_OK(tutti_infer(heads.session.trainer, &x, 1, SAMPLES,
        (tutti_fetch[]) { { heads.table, TUTTI_DTYPE_F16, halves }, { heads.classes, TUTTI_DTYPE_BF16, brains } }, 2));
    for (int i = 0; i < SAMPLES * TABLE; i++)
        ck_assert_float_eq_tol(half_to_float(halves[i]), table[i], 1e-3f * fabsf(table[i]) + 1e-6f);
    for (int i = 0; i < SAMPLES * CLASSES; i++) {
        const uint32_t bits = (uint32_t)brains[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof(value));
        ck_assert_float_eq_tol(value, classes[i], 8e-3f * fabsf(classes[i]) + 1e-6f);
    }
    session_close(&heads.session);
}
END_TEST

START_TEST(learning_rate_is_set)
{
    struct heads set, wanted;
    tutti_training fast = training_ways[0].training;
    fast.learning_rate = 0.2f;
    compile(&set, "0", false, training_ways[0].training, TUTTI_DTYPE_F32, TUTTI_DTYPE_I32);
    compile(&wanted, "0", false, fast, TUTTI_DTYPE_F32, TUTTI_DTYPE_I32);
    ck_assert_int_eq(tutti_set_learning_rate(set.session.trainer, -1), TUTTI_INVALID);
    ck_assert_int_eq(tutti_set_learning_rate(set.session.trainer, NAN), TUTTI_INVALID);
    ASSERT_OK(tutti_set_learning_rate(set.session.trainer, 0.2f));
    for (int step = 0; step < STEPS; step++) {
        step_with(&set, TUTTI_DTYPE_F32, TUTTI_DTYPE_I32, step, NULL);
        step_with(&wanted, TUTTI_DTYPE_F32, TUTTI_DTYPE_I32, step, NULL);
    }
    same_bytes(&set.session, &wanted.session);
    session_close(&set.session);
    session_close(&wanted.session);
}
END_TEST

/* ------------------------------------------------------------------------------------------ types of inputs ---- */

enum { PLANE = 5 * 7, ELEMENTS = 3 * PLANE, IMAGES = 9, COUNT = IMAGES * ELEMENTS };

static const tutti_dtype dtypes[] = { TUTTI_DTYPE_U8, TUTTI_DTYPE_BOOL, TUTTI_DTYPE_I32, TUTTI_DTYPE_I64,
    TUTTI_DTYPE_F16, TUTTI_DTYPE_BF16, TUTTI_DTYPE_F32 };

/* Writes element i of some data of a type, and returns its value. */
static double write_element(tutti_dtype dtype, void *data, int i)
{
    const int number = (int)(images[i % (SAMPLES * PIXELS)] * 50);
    const float real = (float)number / 64; /* exact in every type of floats */
    const uint16_t half = half_from_float(real);
    uint32_t bits;
    memcpy(&bits, &real, sizeof(bits));
    switch (dtype) {
    case TUTTI_DTYPE_U8: return ((uint8_t *)data)[i] = (uint8_t)number;
    case TUTTI_DTYPE_BOOL: return (((uint8_t *)data)[i] = (uint8_t)(number % 3)) != 0;
    case TUTTI_DTYPE_I32: return ((int32_t *)data)[i] = 1000 * number;
    case TUTTI_DTYPE_I64: return (double)(((int64_t *)data)[i] = -1000 * number);
    case TUTTI_DTYPE_F16: ((uint16_t *)data)[i] = half; return real;
    case TUTTI_DTYPE_BF16: ((uint16_t *)data)[i] = (uint16_t)(bits >> 16); return real;
    default: return ((float *)data)[i] = real;
    }
}

/* With statistics of each channel or of none, on every type. */
START_TEST(types_become_floats)
{
    static const float means[] = { 0.5f, -2, 3 }, deviations[] = { 0.25f, 3, 1.5f };
    static int64_t data[COUNT];
    static double wanted[COUNT];
    static float found[COUNT];
    const tutti_dtype dtype = dtypes[_i / 2];
    const bool statistics = _i % 2;
    struct session session = { .runtime = session_runtime("0,1", false) };
    session.network = tutti_network_new(session.runtime);
    const tutti_normalise_options options = { .size = sizeof(options),
        .scale = 0.125f,
        .mean = statistics ? means : NULL,
        .std = statistics ? deviations : NULL,
        .channels = statistics ? 3 : 0 };
    const tutti_tensor x = tutti_input_typed(session.network, "x", dtype, (int64_t[]) { 3, 5, 7 }, 3),
                       y = tutti_normalise(session.network, x, &options);
    session.trainer = tutti_compile(session.network, y, &(tutti_training) { .loss = TUTTI_LOSS_NONE });
    ck_assert_msg(session.trainer, "%s", tutti_message(NULL));
    for (int i = 0; i < COUNT; i++) {
        const int channel = i / PLANE % 3;
        wanted[i] = 0.125 * write_element(dtype, data, i);
        if (statistics) wanted[i] = (wanted[i] - means[channel]) / deviations[channel];
    }
    memset(found, 0xff, sizeof(found));
    const tutti_feed feeds[] = { { "x", dtype, data } };
    ASSERT_OK(tutti_infer(session.trainer, feeds, 1, IMAGES, FETCH_ONE(y, found)));
    for (int i = 0; i < COUNT; i++) ck_assert_double_eq_tol(found[i], wanted[i], 1e-6 * (3 + fabs(wanted[i])));
    session_close(&session);
}
END_TEST

START_TEST(wrong_calls_are_reported)
{
    struct heads heads;
    tutti_metrics metrics;
    tutti_feed feeds[FEEDS];
    float table[STEP_SAMPLES * TABLE];
    compile(&heads, "0", false, training_ways[0].training, TUTTI_DTYPE_F32, TUTTI_DTYPE_I64);
    tutti_trainer *trainer = heads.session.trainer;
    const tutti_fetch fetch = { heads.table, TUTTI_DTYPE_F32, table };
    feed(feeds, TUTTI_DTYPE_F32, TUTTI_DTYPE_I64, 0);
    fails_with(tutti_loss_metrics(trainer, heads.huber, &metrics), TUTTI_INVALID, "before the first step");
    fails_with(
        tutti_train_fetch(trainer, feeds, FEEDS, STEP_SAMPLES, &fetch, 1, NULL), TUTTI_INVALID, "fetch_in_training");
    wide_labels[3] = (int64_t)1 << 40;
    const tutti_status status = tutti_train_step(trainer, feeds, FEEDS, STEP_SAMPLES, NULL);
    wide_labels[3] = labels[3];
    fails_with(status, TUTTI_INVALID, "sample 3 of \"label\" has the number 1099511627776");
    fails_with(tutti_train_step(trainer, feeds, 2, STEP_SAMPLES, NULL), TUTTI_INVALID, "\"wanted\" is not fed");
    ASSERT_OK(tutti_train_step(trainer, feeds, FEEDS, STEP_SAMPLES, NULL));
    fails_with(tutti_loss_metrics(trainer, heads.table, &metrics), TUTTI_INVALID, "is not in tutti_training.losses");
    session_close(&heads.session);
}
END_TEST

Suite *suite_objective(void)
{
    Suite *suite = suite_create("objective");
    TCase *cases = cases_new(suite, "objective", setup, NULL);
    add_cases(cases, sum_of_losses_trains, WAYS);
    add_cases(cases, class_weights_train, WAYS);
    tcase_add_loop_test(
        cases, wrong_class_weights_are_reported, 0, (int)(sizeof(wrong_weights) / sizeof(*wrong_weights)));
    add_cases(cases, own_loss_trains, WAYS);
    add_cases(cases, constants_are_targets, WAYS);
    add_cases(cases, constants_are_classes, WAYS);
    add_cases(cases, constant_classes_are_excluded, WAYS);
    add_cases(cases, lists_of_labels_are_learned, WAYS);
    tcase_add_loop_test(cases, wrong_own_losses_are_reported, 0, 7);
    add_cases(cases, bytes_train_as_floats, WAYS);
    add_cases(cases, inference_gives_outputs, WAYS);
    add_cases(cases, types_become_floats, 2 * (int)(sizeof(dtypes) / sizeof(*dtypes)));
    tcase_add_test(cases, learning_rate_is_set);
    tcase_add_test(cases, wrong_calls_are_reported);
    return suite;
}
