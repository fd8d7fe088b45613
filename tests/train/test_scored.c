/* Evaluations that fill scores: the scores are those of inference's outputs, on every device and division, with each
 * kind of targets; the loss is that of an evaluation without scores. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"
#include "tutti_scores.h"

#include <math.h>
#include <string.h>

static float soft[SAMPLES * CLASSES];

static void setup(void)
{
    data_make();
    labels[3] = labels[44] = -1;
    memset(soft, 0, sizeof soft);
    for (int i = 0; i < SAMPLES * CLASSES; i++) {
        const int32_t label = labels[i / CLASSES];
        soft[i] = i % CLASSES == (label < 0 ? 0 : label) ? 0.6f : 0.1f;
    }
}

/* A source of the images with labels, or with any other targets. */
struct held {
    const void *targets;
    size_t bytes; /* of a sample */
};

static int read_held(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    const struct held *held = user;
    if (buffer_count != 2 || buffers[1].bytes != held->bytes) return 1;
    for (int64_t i = 0; i < count; i++) {
        memcpy((float *)buffers[0].data + i * PIXELS, images + indices[i] * PIXELS, PIXELS * sizeof(float));
        memcpy((char *)buffers[1].data + (size_t)i * held->bytes,
            (const char *)held->targets + (size_t)indices[i] * held->bytes, held->bytes);
    }
    return 0;
}

static tutti_scores *scores_of(tutti_scores_options options)
{
    tutti_scores *scores = tutti_scores_new(&options);
    ck_assert_msg(scores, "%s", tutti_message(NULL));
    return scores;
}

static void are_close(double a, double b, double tolerance, const char *what)
{
    ck_assert_msg(
        (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * (1 + fabs(b)), "%s: %.12g and %.12g", what, a, b);
}

/* Two scores of the same predictions, but for rounding of the outputs. */
static void same_scores(const tutti_scores *a, const tutti_scores *b, int classes)
{
    tutti_scores_summary x = { .size = sizeof x }, y = { .size = sizeof y };
    ASSERT_OK(tutti_scores_summarise(a, &x));
    ASSERT_OK(tutti_scores_summarise(b, &y));
    ck_assert_int_eq(x.samples, y.samples);
    ck_assert_int_eq(x.labels, y.labels);
    const double given[] = { x.loss, x.accuracy, x.top_accuracy, x.precision, x.recall, x.f1, x.iou, x.r2, x.mae },
                 wanted[] = { y.loss, y.accuracy, y.top_accuracy, y.precision, y.recall, y.f1, y.iou, y.r2, y.mae };
    for (int i = 0; i < 9; i++) are_close(given[i], wanted[i], 1e-4, "a number of the summary");
    const int64_t *matrix = tutti_scores_confusion(a), *other = tutti_scores_confusion(b);
    for (int i = 0; i < classes * classes; i++) ck_assert_int_eq(matrix[i], other[i]);
    tutti_mistake one = { .size = sizeof one }, two = { .size = sizeof two };
    for (int i = 0; tutti_scores_mistake(b, i, &two) == TUTTI_OK; i++) {
        ASSERT_OK(tutti_scores_mistake(a, i, &one));
        ck_assert_int_eq(one.index, two.index);
        ck_assert_int_eq(one.predicted, two.predicted);
        are_close(one.loss, two.loss, 1e-4, "a mistake's loss");
    }
}

/* The scores of what inference gives. */
static tutti_scores *expected(struct session *session, const void *targets, tutti_scores_options options)
{
    static float outputs[SAMPLES * CLASSES];
    tutti_scores *scores = scores_of(options);
    ASSERT_OK(tutti_infer(session->trainer, FEED_ONE(images), SAMPLES, FETCH_FIRST(session->trainer, outputs)));
    ASSERT_OK(tutti_scores_add(scores, outputs, targets, NULL, SAMPLES));
    return scores;
}

static void check_evaluation(
    struct session *session, const tutti_source *source, const tutti_scores *wanted, tutti_scores_options options)
{
    tutti_scores *scores = scores_of(options);
    tutti_metrics with, without;
    for (int i = 0; i < 2; i++) ASSERT_OK(tutti_evaluate_scores(session->trainer, source, scores, &with));
    same_scores(scores, wanted, (int)options.classes);
    ASSERT_OK(tutti_evaluate_source(session->trainer, source, &without));
    ck_assert_int_eq(with.samples, without.samples);
    are_close(with.loss, without.loss, 1e-6, "the loss with scores");
    are_close(with.accuracy, without.accuracy, 1e-9, "the accuracy with scores");
    if (options.classes) {
        tutti_scores_summary all = { .size = sizeof all };
        ASSERT_OK(tutti_scores_summarise(scores, &all));
        are_close(with.accuracy, all.accuracy, 1e-6, "the accuracy of what counts");
        are_close(
            with.counted * (double)(options.labels ? options.labels : 1), (double)all.labels, 1e-6, "what counts");
    }
    tutti_scores_free(scores);
}

static const tutti_scores_options of_classes = { .classes = CLASSES, .top = 2 };

START_TEST(classes_on_every_division)
{
    const struct way *way = &training_ways[_i];
    struct session session;
    const struct held held = { labels, sizeof *labels };
    const tutti_source source = { .samples = SAMPLES, .read = read_held, .user = (void *)&held };
    session = (struct session) { .runtime = session_runtime(way->devices, way->apart) };
    session_compile(&session, KIND_DROPOUT, &way->training);
    ck_assert_msg(session.trainer, "%s", tutti_message(NULL));
    session_steps(&session, 3);
    tutti_scores *wanted = expected(&session, labels, of_classes);
    check_evaluation(&session, &source, wanted, of_classes);
    tutti_scores_free(wanted);
    session_close(&session);
}
END_TEST

static int on_progress(void *user, const tutti_progress *progress)
{
    tutti_scores **pair = user;
    tutti_scores_summary all = { .size = sizeof all };
    if (!progress->end_of_epoch) return 0;
    ASSERT_OK(tutti_scores_summarise(pair[0], &all));
    ck_assert_int_eq(all.samples, SAMPLES - 2);
    are_close(all.accuracy, progress->test.accuracy, 1e-6, "right ones");
    return 0;
}

/* Each epoch of a fit fills them. */
START_TEST(epochs_fill_scores)
{
    struct session session;
    const struct held held = { labels, sizeof *labels };
    const tutti_source source = { .samples = SAMPLES, .read = read_held, .user = (void *)&held };
    tutti_scores *scores = scores_of(of_classes);
    session_open(&session, "0,1", KIND_PLAIN, NULL);
    ASSERT_OK(tutti_fit_source(session.trainer, &source,
        &(tutti_fitting) { .epochs = 2, .test = &source, .scores = scores, .progress = on_progress, .user = &scores }));
    tutti_scores *wanted = expected(&session, labels, of_classes);
    same_scores(scores, wanted, CLASSES);
    tutti_scores_free(wanted);
    tutti_scores_free(scores);
    session_close(&session);
}
END_TEST

enum targets { SOFT, IGNORED, NUMBERS, BINARY, TARGETS };

/* A dense layer with a loss that is a node. */
static void open_node(struct session *session, enum targets targets)
{
    session->runtime = session_runtime("0,1", false);
    tutti_network *network = session->network = tutti_network_new(session->runtime);
    const tutti_tensor x = tutti_dense(network, tutti_flatten(network, tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7))),
                           CLASSES, NULL),
                       t = targets == IGNORED ? tutti_input_typed(network, "t", TUTTI_DTYPE_I32, NULL, 0)
                                              : tutti_input(network, "t", TUTTI_SHAPE(CLASSES));
    tutti_tensor loss;
    if (targets == NUMBERS)
        loss = tutti_mse(network, x, t, NULL);
    else if (targets == BINARY)
        loss = tutti_bce_with_logits(network, x, t, NULL);
    else
        loss = tutti_cross_entropy(network, x, t, &(tutti_loss_options) { .has_ignored = true, .ignored = 2 });
    session->trainer = tutti_compile(network, x,
        &(tutti_training) { .losses = &loss, .loss_count = 1, .batch = STEP_SAMPLES, .sharing = TUTTI_SHARES_EQUAL });
    ck_assert_msg(session->trainer, "%s", tutti_message(NULL));
}

START_TEST(losses_as_nodes)
{
    const enum targets targets = (enum targets)_i;
    const bool whole = targets == IGNORED;
    struct session session;
    const struct held held = { whole ? (const void *)labels : soft, whole ? sizeof *labels : CLASSES * sizeof *soft };
    const tutti_source source = { .samples = SAMPLES, .read = read_held, .user = (void *)&held };
    const tutti_scores_options options = targets == NUMBERS ? (tutti_scores_options) { .labels = CLASSES } : of_classes;
    int32_t likeliest[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        likeliest[i] = whole && labels[i] == 2 ? -1 : labels[i];
        if (targets == SOFT && labels[i] < 0) likeliest[i] = 0;
    }
    open_node(&session, targets);
    if (targets == BINARY) {
        tutti_scores *scores = scores_of(options);
        fails_with(tutti_evaluate_scores(session.trainer, &source, scores, NULL), TUTTI_INVALID,
            "scores need a cross-entropy");
        tutti_scores_free(scores);
    } else {
        tutti_scores *wanted = expected(&session, targets == NUMBERS ? (const void *)soft : likeliest, options);
        check_evaluation(&session, &source, wanted, options);
        tutti_scores_free(wanted);
    }
    session_close(&session);
}
END_TEST

START_TEST(scores_of_something_else)
{
    struct session session;
    const struct held held = { labels, sizeof *labels };
    const tutti_source source = { .samples = SAMPLES, .read = read_held, .user = (void *)&held };
    const tutti_scores_options wrong[] = { { .classes = CLASSES + 1 }, { .classes = CLASSES, .labels = 2 },
        { .labels = CLASSES } };
    session_open(&session, "0", KIND_PLAIN, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tutti_scores *scores = scores_of(wrong[i]);
        fails_with(tutti_evaluate_scores(session.trainer, &source, scores, NULL), TUTTI_INVALID, "the scores are for");
        tutti_scores_free(scores);
    }
    fails_with(tutti_evaluate_scores(session.trainer, &source, NULL, NULL), TUTTI_INVALID, "NULL");
    session_close(&session);
}
END_TEST

Suite *suite_scored(void)
{
    Suite *suite = suite_create("scored");
    TCase *cases = cases_new(suite, "scored", setup, NULL);
    add_cases(cases, classes_on_every_division, WAYS);
    tcase_add_test(cases, epochs_fill_scores);
    tcase_add_loop_test(cases, losses_as_nodes, 0, TARGETS);
    tcase_add_test(cases, scores_of_something_else);
    return suite;
}
