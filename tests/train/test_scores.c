/* Scores against scikit-learn's, in any division of the samples; what is excluded, what is refused. */
#include "tests/train/scores.h"

#include "tests/train/test_train.h"
#include "train/scores.h"
#include "tutti_scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float logits[SCORE_SAMPLES * SCORE_CLASSES], wanted[SCORE_SAMPLES * SCORE_NUMBERS],
    given[SCORE_SAMPLES * SCORE_NUMBERS];
static int32_t labels[SCORE_SAMPLES];

static void setup(void)
{
    for (int i = 0; i < SCORE_SAMPLES; i++) labels[i] = (7 * i + i / 5) % 6;
    for (int i = 0; i < SCORE_SAMPLES * SCORE_CLASSES; i++) {
        const int sample = i / SCORE_CLASSES;
        const double more = sample % 2 == 1 && i % SCORE_CLASSES == labels[sample] ? 1.5 : 0;
        logits[i] = (float)(sin(1.3 * i) + sin(0.37 * i * i) + more);
    }
    for (int i = 0; i < SCORE_SAMPLES * SCORE_NUMBERS; i++) {
        wanted[i] = (float)(3 * sin(i) + 100);
        given[i] = (float)((double)wanted[i] + cos(2.1 * i));
    }
}

static void is_near(double found, double expected, const char *what)
{
    ck_assert_msg(
        fabs(found - expected) <= 1e-12 * fabs(expected) + 1e-15, "%s is %.17g, not %.17g", what, found, expected);
}

static tutti_scores *scores_of(tutti_scores_options options)
{
    tutti_scores *scores = tutti_scores_new(&options);
    ck_assert_msg(scores, "%s", tutti_message(NULL));
    return scores;
}

static void add(tutti_scores *scores, const float *outputs, const void *targets, int64_t samples)
{
    ck_assert_msg(tutti_scores_add(scores, outputs, targets, NULL, samples) == TUTTI_OK, "%s", tutti_message(NULL));
}

/* Each class, and the matrix. */
static void check_classes(const tutti_scores *scores)
{
    for (int i = 0; i < SCORE_CLASSES; i++) {
        tutti_class_scores of_class = { .size = sizeof(of_class) };
        ck_assert_int_eq(tutti_scores_class(scores, i, &of_class), TUTTI_OK);
        ck_assert_int_eq(of_class.support, class_support[i]);
        is_near(of_class.precision, class_precision[i], "a precision");
        is_near(of_class.recall, class_recall[i], "a recall");
        is_near(of_class.f1, class_f1[i], "an F1");
        is_near(of_class.iou, class_iou[i], "an IoU");
    }
    ck_assert_int_eq(memcmp(tutti_scores_confusion(scores), confusion, sizeof(confusion)), 0);
}

static void check_mistakes(const tutti_scores *scores)
{
    tutti_mistake mistake = { .size = sizeof(mistake) };
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(tutti_scores_mistake(scores, i, &mistake), TUTTI_OK);
        ck_assert_int_eq(mistake.index, worst_index[i]);
        ck_assert_int_eq(mistake.target, labels[worst_index[i]]);
        ck_assert_int_eq(mistake.predicted, worst_predicted[i]);
        is_near(mistake.loss, worst_loss[i], "a mistake's loss");
        is_near(mistake.probability, worst_probability[i], "a mistake's probability");
    }
    ck_assert_int_eq(tutti_scores_mistake(scores, 5, &mistake), TUTTI_INVALID);
}

static void check_summary(const tutti_scores *scores)
{
    tutti_scores_summary all = { .size = sizeof(all) };
    ck_assert_int_eq(tutti_scores_summarise(scores, &all), TUTTI_OK);
    ck_assert_int_eq(all.samples, SCORE_SAMPLES);
    ck_assert_int_eq(all.labels, SCORE_SAMPLES);
    const double found[] = { all.loss, all.accuracy, all.top_accuracy, all.precision, all.recall, all.f1, all.iou };
    for (int i = 0; i < 7; i++) is_near(found[i], summary[i], "a number of the summary");
    ck_assert(isnan(all.r2) && isnan(all.mae) && isnan(all.rmse));
}

/* At once, in pieces, and twice after a reset. */
START_TEST(classes_as_scikit_learn)
{
    tutti_scores *scores = scores_of((tutti_scores_options) { .classes = SCORE_CLASSES, .top = 3, .worst = 5 });
    for (int piece = 1; piece <= SCORE_SAMPLES; piece = 7 * piece + 3) {
        tutti_scores_reset(scores);
        for (int first = 0; first < SCORE_SAMPLES; first += piece)
            add(scores, logits + first * SCORE_CLASSES, labels + first,
                SCORE_SAMPLES - first < piece ? SCORE_SAMPLES - first : piece);
        check_classes(scores);
        check_mistakes(scores);
        check_summary(scores);
    }
    tutti_scores_free(scores);
}
END_TEST

/* The samples as positions of two samples of a mask: classes first, or, as scores_take() has it, last. */
START_TEST(labels_of_masks)
{
    enum { EACH = SCORE_SAMPLES / 2 };
    static float turned[2 * EACH * SCORE_CLASSES];
    for (int i = 0; i < 2 * EACH * SCORE_CLASSES; i++) {
        const int sample = i / (EACH * SCORE_CLASSES), at = i / SCORE_CLASSES % EACH, c = i % SCORE_CLASSES;
        turned[(sample * SCORE_CLASSES + c) * EACH + at] = logits[i];
    }
    const tutti_scores_options options = { .classes = SCORE_CLASSES, .labels = EACH };
    tutti_scores *plain = scores_of((tutti_scores_options) { .classes = SCORE_CLASSES }), *first = scores_of(options),
                 *last = scores_of(options);
    add(plain, logits, labels, 2 * EACH);
    add(first, turned, labels, 2);
    ck_assert_int_eq(
        scores_take(last, logits, (struct score_layout) { 1, SCORE_CLASSES, EACH }, labels, NULL, 2), TUTTI_OK);
    tutti_scores_summary a = { .size = sizeof(a) }, b = a, c = a;
    ck_assert_int_eq(tutti_scores_summarise(plain, &a), TUTTI_OK);
    ck_assert_int_eq(tutti_scores_summarise(first, &b), TUTTI_OK);
    ck_assert_int_eq(tutti_scores_summarise(last, &c), TUTTI_OK);
    ck_assert_int_eq(b.samples, 2);
    ck_assert_int_eq(b.labels, 2 * EACH);
    is_near(b.loss, a.loss, "the loss");
    is_near(b.iou, a.iou, "the IoU");
    is_near(c.loss, b.loss, "the loss with classes last");
    const size_t bytes = sizeof(int64_t) * SCORE_CLASSES * SCORE_CLASSES;
    ck_assert_int_eq(memcmp(tutti_scores_confusion(plain), tutti_scores_confusion(first), bytes), 0);
    ck_assert_int_eq(memcmp(tutti_scores_confusion(plain), tutti_scores_confusion(last), bytes), 0);
    tutti_mistake mistake = { .size = sizeof(mistake) };
    ck_assert_int_eq(tutti_scores_mistake(first, 1, &mistake), TUTTI_OK);
    ck_assert_int_eq(tutti_scores_mistake(first, 2, &mistake), TUTTI_INVALID);
    tutti_scores_free(plain);
    tutti_scores_free(first);
    tutti_scores_free(last);
}
END_TEST

START_TEST(numbers_as_scikit_learn)
{
    tutti_scores *scores = scores_of((tutti_scores_options) { .labels = SCORE_NUMBERS });
    tutti_scores_summary all = { .size = sizeof(all) };
    for (int i = 0; i < SCORE_SAMPLES; i++) add(scores, given + i * SCORE_NUMBERS, wanted + i * SCORE_NUMBERS, 1);
    ck_assert_int_eq(tutti_scores_summarise(scores, &all), TUTTI_OK);
    const double found[] = { all.loss, all.r2, all.mae, all.rmse };
    for (int i = 0; i < 4; i++) is_near(found[i], number_summary[i], "a number of the summary");
    ck_assert(isnan(all.accuracy) && isnan(all.f1));
    ck_assert_ptr_null(tutti_scores_confusion(scores));
    tutti_scores_free(scores);
}
END_TEST

/* Errors are told in the units of each number; loss and R2 stay. */
START_TEST(errors_have_units)
{
    const float units[] = { 100, 10 }, outputs[] = { 1, 2, 3, 4 }, targets[] = { 1, 1, 0, 4 };
    tutti_scores *scores = scores_of((tutti_scores_options) { .labels = 2, .units = units });
    tutti_scores *plain = scores_of((tutti_scores_options) { .labels = 2 });
    tutti_scores_summary all = { .size = sizeof(all) }, other = { .size = sizeof(other) };
    tutti_mistake mistake = { .size = sizeof(mistake) };
    add(scores, outputs, targets, 2);
    add(plain, outputs, targets, 2);
    ck_assert_int_eq(tutti_scores_summarise(scores, &all), TUTTI_OK);
    ck_assert_int_eq(tutti_scores_summarise(plain, &other), TUTTI_OK);
    is_near(all.loss, 2.5, "the loss");
    is_near(all.r2, other.r2, "R2");
    is_near(all.mae, 310.0 / 4, "the mean absolute error");
    is_near(all.rmse, sqrt(90100.0 / 4), "the root of the mean squared error");
    is_near(other.rmse, sqrt(2.5), "the root without units");
    ck_assert_int_eq(tutti_scores_mistake(scores, 0, &mistake), TUTTI_OK);
    ck_assert_int_eq(mistake.index, 1);
    is_near(mistake.loss, 4.5, "the loss of a mistake");
    is_near(mistake.error, sqrt(90000.0 / 2), "the error of a mistake");
    tutti_scores_free(scores);
    tutti_scores_free(plain);
}
END_TEST

/* Targets far from 0 lose nothing, and moments that were counted apart are joined to the same. */
START_TEST(moments_are_stable)
{
    tutti_scores *scores = scores_of((tutti_scores_options) { 0 }), *other = scores_of((tutti_scores_options) { 0 });
    tutti_scores_summary all = { .size = sizeof(all) };
    for (int i = 0; i < 1000; i++) {
        const float target = 16777216.0f + (float)(2 * (i % 5)), output = target + 2;
        add(scores, &output, &target, 1);
        if (i >= 300) add(other, &output, &target, 1);
    }
    ck_assert_int_eq(tutti_scores_summarise(scores, &all), TUTTI_OK);
    ck_assert_msg(fabs(all.r2 - 0.5) < 1e-9, "R2 is %.17g", all.r2); /* variance 8, error 4 */
    struct moments joined = { 0 };
    tutti_scores_reset(scores);
    for (int i = 0; i < 300; i++) {
        const float target = 16777216.0f + (float)(2 * (i % 5)), output = target + 2;
        add(scores, &output, &target, 1);
    }
    moments_join(&joined, &scores->moments[0]);
    moments_join(&joined, &other->moments[0]);
    moments_join(&joined, &(struct moments) { 0 });
    is_near(joined.mean, 16777220, "the mean");
    ck_assert_msg(fabs(joined.spread - 8000) < 1e-5, "the spread is %.17g", joined.spread);
    is_near(joined.count, 1000, "the count");
    tutti_scores_free(scores);
    tutti_scores_free(other);
}
END_TEST

/* Labels below 0 do not count, nor do samples without others. */
START_TEST(labels_below_0)
{
    const float x[] = { 2, 1, 1, 2, 0, 9 };
    const int32_t wrong[] = { 0, -1, -100 };
    tutti_scores *scores = scores_of((tutti_scores_options) { .classes = 2 });
    tutti_scores_summary all = { .size = sizeof(all) };
    ck_assert_int_eq(tutti_scores_summarise(scores, &all), TUTTI_OK);
    ck_assert(all.samples == 0 && isnan(all.accuracy) && isnan(all.loss));
    add(scores, x, wrong, 3);
    ck_assert_int_eq(tutti_scores_summarise(scores, &all), TUTTI_OK);
    ck_assert_int_eq(all.samples, 1);
    ck_assert_int_eq(all.labels, 1);
    is_near(all.accuracy, 1, "the accuracy");
    is_near(all.loss, log1p(exp(-1)), "the loss");
    tutti_scores_free(scores);
}
END_TEST

/* Equal logits: the first class, also among the likeliest. NaN is the largest. Equal losses: the first sample. */
START_TEST(ties)
{
    const float x[] = { 1, 1, 1, 1, 1, 1, 0, NAN, 5 };
    const int32_t targets[] = { 1, 2, 2 };
    tutti_scores *scores = scores_of((tutti_scores_options) { .classes = 3, .top = 2 });
    tutti_scores_summary all = { .size = sizeof(all) };
    tutti_mistake mistake = { .size = sizeof(mistake) };
    add(scores, x, targets, 3);
    ck_assert_int_eq(tutti_scores_summarise(scores, &all), TUTTI_OK);
    is_near(all.accuracy, 0, "the accuracy");
    is_near(all.top_accuracy, 2.0 / 3, "the top-2 accuracy");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(tutti_scores_mistake(scores, i, &mistake), TUTTI_OK);
        ck_assert_int_eq(mistake.index, (i + 2) % 3);
        ck_assert_int_eq(mistake.predicted, i == 0 ? 1 : 0);
    }
    tutti_scores_free(scores);
}
END_TEST

/* A span: its type, its first and its last word. */
struct span {
    char type;
    int first, last;
};

/* Lists the spans of tags one by one, as conlleval divides them. */
static int list_spans(const char *const *tags, int count, struct span *spans)
{
    int found = 0;
    bool open = false;
    for (int i = 0; i < count; i++) {
        const char *tag = tags[i];
        const bool inside = tag[0] == 'I' || tag[0] == 'E';
        if (tag[0] == 'O') {
            open = false;
            continue;
        }
        if (inside && open && spans[found - 1].type == tag[2])
            spans[found - 1].last = i;
        else
            spans[found++] = (struct span) { tag[2], i, i };
        open = tag[0] == 'B' || tag[0] == 'I';
    }
    return found;
}

START_TEST(spans_of_tags)
{
    enum { TAGS = 9, SAMPLES = 400, WORDS = 13 };
    static const char *const names[TAGS] = { "B-X", "B-Y", "E-X", "I-X", "I-Y", "O", "S-X", "S-Y", "E-Y" };
    static int32_t targets[SAMPLES * WORDS];
    static float outputs[SAMPLES * WORDS * TAGS];
    int64_t all = 0, guessed = 0, right = 0;
    uint32_t state = 1;
    for (int i = 0; i < SAMPLES; i++) {
        const char *tags[2][WORDS];
        struct span spans[2][WORDS];
        int counts[2], words = 0;
        for (int k = 0; k < WORDS; k++) {
            state = state * 1664525 + 1013904223;
            const int target = (int)(state >> 16) % TAGS,
                      guess = (state >> 28) < 11 ? target : (int)(state >> 8) % TAGS;
            const bool none = (state >> 27) % 8 == 7;
            targets[i * WORDS + k] = none ? -1 : target;
            outputs[(i * TAGS + guess) * WORDS + k] = 1;
            if (none) continue;
            tags[0][words] = names[target];
            tags[1][words++] = names[guess];
        }
        for (int s = 0; s < 2; s++) counts[s] = list_spans(tags[s], words, spans[s]);
        all += counts[0];
        guessed += counts[1];
        for (int a = 0; a < counts[0]; a++)
            for (int b = 0; b < counts[1]; b++)
                right += spans[0][a].type == spans[1][b].type && spans[0][a].first == spans[1][b].first &&
                    spans[0][a].last == spans[1][b].last;
    }
    tutti_scores *scores = scores_of((tutti_scores_options) { .classes = TAGS, .labels = WORDS, .tags = names });
    add(scores, outputs, targets, SAMPLES / 2);
    add(scores, outputs + SAMPLES / 2 * WORDS * TAGS, targets + SAMPLES / 2 * WORDS, SAMPLES / 2);
    tutti_scores_summary sums = { .size = sizeof(sums) };
    ck_assert_int_eq(tutti_scores_summarise(scores, &sums), TUTTI_OK);
    ck_assert_int_gt(right, 500);
    is_near(sums.span_precision, (double)right / (double)guessed, "the precision of spans");
    is_near(sums.span_recall, (double)right / (double)all, "the recall of spans");
    is_near(sums.span_f1, 2.0 * (double)right / (double)(all + guessed), "the F1 of spans");
    tutti_scores_free(scores);
    /* Parts of speech are no spans. */
    static const char *const speech[] = { "NOUN", "O", "VERB" };
    scores = scores_of((tutti_scores_options) { .classes = 3, .tags = speech });
    ck_assert_int_eq(tutti_scores_summarise(scores, &sums), TUTTI_OK);
    ck_assert(isnan(sums.span_f1));
    tutti_scores_free(scores);
}
END_TEST

/* Logits [steps][classes] whose likeliest class is each of these. */
static void say(const int *classes, int steps, int count, float *to)
{
    for (int i = 0; i < steps * count; i++) to[i] = classes[i / count] == i % count ? 2 : 0;
}

/* 0 is the blank, 1 a blank between words, 2 and 3 letters. */
static char *letters_of(void *user, const int32_t *list, int64_t count)
{
    char *text = malloc((size_t)(2 * count) + 1), *to = text;
    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_eq(user, labels);
    for (int64_t i = 0; i < count; i++) {
        ck_assert(list[i] >= 1 && list[i] <= 3);
        memcpy(to, &" a\xc3\xa4"[list[i] - 1], list[i] == 3 ? 2 : 1);
        to += list[i] == 3 ? 2 : 1;
    }
    *to = '\0';
    return text;
}

/* Repeats are one label, but with a blank between them; characters, also of two bytes, and words are compared. */
START_TEST(transcripts)
{
    enum { STEPS = 8, KINDS = 4, LISTED = 6, TEXTS = 3 };
    static const int heard[TEXTS][STEPS] = { { 2, 2, 0, 2, 1, 1, 3, 0 }, { 0, 0, 3, 3, 0, 0, 0, 0 },
        { 2, 1, 2, 1, 3, 1, 3, 3 } };
    static const int32_t meant[TEXTS][LISTED] = { { 2, 2, 1, 3, -1, -1 }, { 2, 1, 3, -1, 7, 7 },
        { 3, 1, 3, -1, -1, -1 } };
    float outputs[TEXTS * STEPS * KINDS];
    int32_t list[STEPS];
    tutti_scores_summary all = { .size = sizeof(all) };
    tutti_mistake mistake = { .size = sizeof(mistake) };
    for (int i = 0; i < TEXTS; i++) say(heard[i], STEPS, KINDS, outputs + i * STEPS * KINDS);
    ck_assert_int_eq(tutti_ctc_labels(outputs, STEPS, KINDS, 0, list), 4);
    ck_assert_int_eq(memcmp(list, meant[0], 4 * sizeof(*list)), 0);
    ck_assert_int_eq(tutti_ctc_labels(outputs, 0, KINDS, 0, list), 0);
    const tutti_scores_options options = {
        .classes = KINDS, .labels = STEPS, .transcript = LISTED, .text = letters_of, .user = labels
    };
    ck_assert_ptr_null(tutti_scores_new(&(tutti_scores_options) { .classes = 4, .transcript = 6, .blank = 4 }));
    tutti_scores *scores = scores_of(options);
    ck_assert_int_eq(tutti_scores_add(scores, outputs, meant, NULL, TEXTS), TUTTI_INVALID); /* class 7 */
    int32_t good[TEXTS][LISTED];
    memcpy(good, meant, sizeof(good));
    good[1][4] = good[1][5] = -1;
    add(scores, outputs, good, TEXTS);
    ck_assert_int_eq(tutti_scores_summarise(scores, &all), TUTTI_OK);
    ck_assert_int_eq(all.samples, TEXTS);
    ck_assert_int_eq(all.labels, 4 + 3 + 3);
    /* "aa \u00e4" is right; "\u00e4" lacks "a "; "a a \u00e4 \u00e4" begins with four characters too many. */
    is_near(all.cer, (0 + 2 + 4) / 10.0, "CER");
    is_near(all.wer, (0 + 1 + 2) / 6.0, "WER");
    is_near(all.accuracy, 1 / 3.0, "the share of right transcripts");
    ck_assert(isnan(all.f1) && isnan(all.loss));
    ck_assert_int_eq(tutti_scores_mistake(scores, 0, &mistake), TUTTI_OK);
    ck_assert_int_eq(mistake.index, 2);
    is_near(mistake.loss, 4 / 3.0, "the share of wrong characters");
    ck_assert_int_eq(tutti_scores_mistake(scores, 2, &mistake), TUTTI_INVALID);
    tutti_scores_free(scores);
    scores = scores_of((tutti_scores_options) { .classes = KINDS, .labels = STEPS, .transcript = LISTED });
    add(scores, outputs, good, TEXTS);
    ck_assert_int_eq(tutti_scores_summarise(scores, &all), TUTTI_OK);
    is_near(all.cer, 0.6, "the share of wrong labels");
    ck_assert(isnan(all.wer));
    tutti_scores_free(scores);
}
END_TEST

START_TEST(wrong_uses)
{
    const tutti_scores_options bad[] = { { .classes = -1 }, { .labels = -1 }, { .classes = 3, .top = 4 },
        { .worst = -1 }, { .labels = 2, .units = (float[]) { 1, 0 } }, { .units = (float[]) { NAN } } };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) ck_assert_ptr_null(tutti_scores_new(&bad[i]));
    tutti_scores *scores = scores_of((tutti_scores_options) { .classes = SCORE_CLASSES });
    const int32_t past[] = { 1, SCORE_CLASSES };
    ck_assert_int_eq(tutti_scores_add(scores, logits, past, NULL, 2), TUTTI_INVALID);
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "sample 1 has the class 7"));
    ck_assert_int_eq(scores->counts[SCORES_SAMPLES], 0); /* all or nothing */
    ck_assert_int_eq(tutti_scores_add(scores, logits, NULL, NULL, 2), TUTTI_INVALID);
    ck_assert_int_eq(tutti_scores_add(scores, logits, labels, NULL, -1), TUTTI_INVALID);
    tutti_class_scores of_class = { .size = sizeof(of_class) };
    ck_assert_int_eq(tutti_scores_class(scores, SCORE_CLASSES, &of_class), TUTTI_INVALID);
    tutti_scores_free(scores);
    scores = scores_of((tutti_scores_options) { .classes = SCORES_MATRIX_CLASSES + 1 });
    ck_assert_ptr_null(tutti_scores_confusion(scores)); /* it would be too large */
    tutti_scores_free(scores);
    tutti_scores_free(NULL);
}
END_TEST

Suite *suite_scores(void)
{
    Suite *suite = suite_create("scores");
    TCase *cases = tcase_create("scores");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, classes_as_scikit_learn);
    tcase_add_test(cases, labels_of_masks);
    tcase_add_test(cases, numbers_as_scikit_learn);
    tcase_add_test(cases, errors_have_units);
    tcase_add_test(cases, moments_are_stable);
    tcase_add_test(cases, labels_below_0);
    tcase_add_test(cases, ties);
    tcase_add_test(cases, spans_of_tags);
    tcase_add_test(cases, transcripts);
    tcase_add_test(cases, wrong_uses);
    suite_add_tcase(suite, cases);
    return suite;
}
