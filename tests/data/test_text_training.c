/* Texts train networks as users' data do: sentences to classes by an LSTM, a text to its next characters. */
#include "files.h"
#include "models/text.h"
#include "tutti_layers.h"
#include "tutti_scores.h"
#include "tutti_sequences.h"

#include "base/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOOD(call) ck_assert_msg((call) == TUTTI_OK, "%s", tutti_message(NULL))

static const char *pick(const char *const *words, int count, uint64_t index)
{
    return words[random_below(5, RANDOM_BENCH, index, (uint64_t)count)];
}

/* The class is that of one word, wherever it stands. */
static void write_sentences(const char *path, int count)
{
    static const char *const good[] = { "good", "lovely", "superb" }, *const bad[] = { "bad", "awful", "dull" };
    static const char *const things[] = { "film", "plot", "actor", "music" };
    static const char *const forms[][3] = { { "the ", " was ", "" }, { "a ", ", ", " it is" }, { "", ": ", "" },
        { "what a ", ", how ", " indeed" } };
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "text\tlabel\n");
    for (int i = 0; i < count; i++) {
        const uint64_t at = (uint64_t)i * 4;
        const bool positive = random_below(5, RANDOM_BENCH, at, 2);
        const char *const *form = forms[random_below(5, RANDOM_BENCH, at + 1, 4)];
        fprintf(file, "%s%s%s%s%s\t%s\n", form[0], pick(things, 4, at + 2), form[1],
            pick(positive ? good : bad, 3, at + 3), form[2], positive ? "yes" : "no");
    }
    ck_assert_int_eq(fclose(file), 0);
}

static tutti_data *open_texts(const char *path, const tutti_data_options *options, tutti_data_info *info)
{
    tutti_data *data = tutti_data_open(path, options);
    ck_assert_msg(data != NULL, "%s", tutti_message(NULL));
    *info = (tutti_data_info) { .size = sizeof *info };
    GOOD(tutti_data_describe(data, info));
    return data;
}

/* A network of ids to the class of a text, or to those of its next tokens or of its words. */
static tutti_tensor build(tutti_network *network, const tutti_data_info *info)
{
    enum { WIDTH = 12, HIDDEN = 24 };
    const int64_t length = TUTTI_SEQUENCE;
    const tutti_tensor ids = tutti_input_typed(network, "ids", TUTTI_DTYPE_I32, &length, 1);
    const tutti_tensor count = text_count(network, ids);
    tutti_tensor x = tutti_embedding(network, "embedding", ids, info->vocabulary, WIDTH);
    x = tutti_lstm(network, x, HIDDEN,
        &(tutti_recurrent_options) { .name = "lstm", .bidirectional = info->tags, .lengths = &count });
    if (!info->tokens_are_classes && !info->tags) x = text_last(network, x, ids);
    return tutti_dense(network, x, info->classes, &(tutti_dense_options) { .name = "classes" });
}

/* Scores count each word once, in batches of several lengths. */
static void check_scores(
    tutti_trainer *trainer, const tutti_data *data, const tutti_data_info *info, const tutti_metrics *metrics)
{
    const tutti_source *val = tutti_data_source(data, TUTTI_DATA_VAL);
    const tutti_scores_options options = {
        .classes = info->classes, .labels = info->length, .tags = info->class_names
    };
    tutti_scores_summary summary = { .size = sizeof summary };
    tutti_metrics again;
    int64_t words = 0, word;
    tutti_scores *scores = tutti_scores_new(&options);
    ck_assert_ptr_nonnull(scores);
    ck_assert_msg(tutti_evaluate_scores(trainer, val, scores, &again) == TUTTI_OK, "%s", tutti_message(NULL));
    GOOD(tutti_scores_summarise(scores, &summary));
    for (int64_t i = 0; i < val->samples; i++) {
        for (word = 0; tutti_data_word(data, TUTTI_DATA_VAL, i, word, NULL); word++) continue;
        words += word;
    }
    ck_assert_int_eq(summary.labels, words);
    ck_assert_int_eq(summary.samples, val->samples);
    ck_assert_double_eq_tol(again.accuracy, metrics->accuracy, 1e-9);
    ck_assert_msg(summary.accuracy > 0.95 && summary.span_f1 > 0.9, "accuracy %g, F1 of spans %g", summary.accuracy,
        summary.span_f1);
    tutti_scores_free(scores);
}

static tutti_metrics train(tutti_data *data, const tutti_data_info *info, int epochs)
{
    const int64_t length = TUTTI_SEQUENCE;
    tutti_metrics metrics;
    tutti_training training = TUTTI_OPTIONS(tutti_training);
    tutti_fitting fitting = TUTTI_OPTIONS(tutti_fitting);
    tutti_runtime *runtime = tutti_open(NULL);
    ck_assert_msg(runtime != NULL, "%s", tutti_message(NULL));
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor output = build(network, info);
    training.batch = 32;
    training.optimizer = TUTTI_ADAM;
    training.learning_rate = 0.02f;
    training.sequence = info->length;
    training.loss = TUTTI_CROSS_ENTROPY;
    tutti_tensor loss = { -1 };
    if (info->tokens_are_classes || info->tags) {
        const tutti_loss_options options = { .class_axis = -1 };
        const tutti_tensor targets = tutti_input_typed(network, "targets", TUTTI_DTYPE_I32, &length, 1);
        loss = tutti_cross_entropy(network, output, targets, &options);
        training.losses = &loss;
        training.loss_count = 1;
    }
    tutti_trainer *trainer = tutti_compile(network, output, &training);
    ck_assert_msg(trainer != NULL, "%s", tutti_message(runtime));
    fitting.epochs = epochs;
    ck_assert_msg(tutti_fit_source(trainer, tutti_data_source(data, TUTTI_DATA_TRAIN), &fitting) == TUTTI_OK, "%s",
        tutti_message(runtime));
    ck_assert_msg(tutti_evaluate_source(trainer, tutti_data_source(data, TUTTI_DATA_VAL), &metrics) == TUTTI_OK, "%s",
        tutti_message(runtime));
    if (info->tags) check_scores(trainer, data, info, &metrics);
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    tutti_close(runtime);
    return metrics;
}

START_TEST(learns_classes)
{
    tutti_data_info info;
    tutti_data_options options = TUTTI_OPTIONS(tutti_data_options);
    options.text = "text";
    options.target = "label";
    write_sentences(in_files("sentences.tsv"), 400);
    tutti_data *data = open_texts(in_files("sentences.tsv"), &options, &info);
    const tutti_metrics metrics = train(data, &info, 10);
    ck_assert_int_eq(metrics.samples, 80);
    ck_assert_msg(metrics.accuracy > 0.95, "accuracy %g, loss %g", metrics.accuracy, metrics.loss);
    tutti_data_free(data);
}
END_TEST

/* In a text of three words in random order, most letters follow from those before: the loss is far below that of
 * letters by themselves. */
START_TEST(learns_tokens)
{
    static const char *const words[] = { "alpha ", "beta ", "gamma " };
    enum { WORDS = 3000, LENGTH = 16 };
    tutti_data_info info;
    tutti_data_options options = TUTTI_OPTIONS(tutti_data_options);
    options.length = LENGTH;
    FILE *file = fopen(in_files("words.txt"), "w");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < WORDS; i++) fputs(pick(words, 3, (uint64_t)i), file);
    ck_assert_int_eq(fclose(file), 0);
    tutti_data *data = open_texts(in_files("words.txt"), &options, &info);
    ck_assert(info.tokens_are_classes);
    const tutti_metrics metrics = train(data, &info, 6);
    ck_assert_msg(metrics.loss < 0.5, "loss %g", metrics.loss);
    ck_assert_msg(metrics.accuracy > 0.8, "accuracy %g", metrics.accuracy);
    tutti_data_free(data);
}
END_TEST

/* Who does something is known only by the word after it: "x" is a name before "runs", and a place before "shines". */
START_TEST(learns_tags)
{
    static const char *const coins[] = { "0", "1" };
    static const char *const fillers[] = { "so O\n", "now O\n", "then O\nand O\nthere O\n" };
    tutti_data_info info;
    tutti_data_options options = TUTTI_OPTIONS(tutti_data_options);
    FILE *file = fopen(in_files("words.conll"), "w");
    ck_assert_ptr_nonnull(file);
    for (uint64_t i = 0; i < 400; i++) {
        const bool person = pick(coins, 2, 3 * i)[0] == '1', longer = pick(coins, 2, 3 * i + 1)[0] == '1';
        fputs(pick(fillers, 3, 3 * i + 2), file);
        fprintf(file, "x B-%s\n", person ? "PER" : "LOC");
        if (longer) fprintf(file, "y I-%s\n", person ? "PER" : "LOC");
        fprintf(file, "%s O\n\n", person ? "runs" : "shines");
    }
    ck_assert_int_eq(fclose(file), 0);
    tutti_data *data = open_texts(in_files("words.conll"), &options, &info);
    ck_assert(info.tags);
    ck_assert_int_eq(info.classes, 5);
    const tutti_metrics metrics = train(data, &info, 10);
    ck_assert_msg(metrics.accuracy > 0.95, "accuracy %g, loss %g", metrics.accuracy, metrics.loss);
    tutti_data_free(data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text training");
    TCase *test = tcase_create("text training");
    tcase_add_checked_fixture(test, files_begin, files_end);
    tcase_set_timeout(test, 600);
    tcase_add_test(test, learns_classes);
    tcase_add_test(test, learns_tokens);
    tcase_add_test(test, learns_tags);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
