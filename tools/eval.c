/* tutti eval: how good saved weights are on one part of the data. */
#include "base/clock.h"
#include "formats/json_lines.h"
#include "tools/commands.h"
#include "tools/files.h"
#include "tools/saved.h"
#include "tools/scores.h"

#include <math.h>

static enum parsed parse(struct saved_options *s, struct judge *judge, int argc, char **argv)
{
    const struct option options[] = {
        SAVED_OPTIONS(*s),
        SCORES_OPTION(*judge),
        { "json", OPTION(s->json), NULL, "print the result as a JSON object" },
        SAVED_MORE_OPTIONS(*s),
    };
    const struct usage usage = { .command = "eval",
        .summary = "Measures the loss and accuracy of saved weights, and scores of each class",
        MODEL_ARGUMENT,
        .from_options = { "weights" },
        OPTION_ROWS(options) };
    return options_parse(&usage, argc, argv, &s->model);
}

static int report(
    const struct saved_options *s, const struct judge *judge, const tutti_metrics *metrics, double seconds)
{
    double rate = seconds > 0 ? (double)metrics->samples / seconds : NAN;
    if (!s->json) {
        printf("loss %.6g", metrics->loss);
        if (judge->tokens) printf("  perplexity %.6g", judge_perplexity(judge, metrics->loss));
        if (isfinite(metrics->accuracy)) printf("  accuracy %.2f %%", 100 * metrics->accuracy);
        printf("  %lld samples, %.0f samples/s\n", (long long)metrics->samples, rate);
        judge_text(stdout, judge);
        return EXIT_DONE;
    }
    struct json_line line;
    json_line_begin(&line, stdout);
    json_line_print(&line, "model %s weights %s data %s part %s samples %lld loss %g accuracy %g samples_per_s %g",
        s->model, s->weights, s->data, s->part, (long long)metrics->samples, metrics->loss, metrics->accuracy, rate);
    if (judge->tokens) json_line_number(&line, "perplexity", judge_perplexity(judge, metrics->loss));
    judge_json_all(&line, judge);
    return json_line_end(&line) == TUTTI_OK ? EXIT_DONE : EXIT_WORK_FAILED;
}

static int evaluate(struct saved_options *s, struct session *session, struct data *data, struct judge *judge)
{
    struct samples *part = NULL;
    int result = saved_open("eval", s, true, session, data, &part);
    if (result == EXIT_DONE) result = judge_open(judge, session, data, part);
    if (result != EXIT_DONE) return result;
    tutti_metrics metrics;
    double started = clock_seconds();
    tutti_status status = judge_evaluate(judge, session->trainer, &part->source, &metrics);
    if (status != TUTTI_OK) return work_failed("eval", status, tutti_message(session->runtime));
    const double seconds = clock_seconds() - started;
    data_report_left_out(part, metrics.samples);
    result = judge_write(judge, "eval");
    return result == EXIT_DONE ? report(s, judge, &metrics, seconds) : result;
}

int command_eval(int argc, char **argv)
{
    struct saved_options settings = SAVED_DEFAULTS;
    struct session session = { 0 };
    struct data data = { 0 };
    struct judge judge = { 0 };
    enum parsed parsed = parse(&settings, &judge, argc, argv);
    if (parsed != PARSED_RUN) return parsed_exit(parsed);
    int result = saved_choose("eval", &settings);
    if (result == EXIT_DONE) result = evaluate(&settings, &session, &data, &judge);
    judge_close(&judge);
    session_close(&session);
    data_free(&data);
    saved_free(&settings);
    return result;
}
