#include "tools/scores.h"

#include "base/memory.h"
#include "base/status.h"
#include "tools/transcript.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOP = 5,
    MATRIX_CLASSES = 20, /* whose matrix fits a terminal */
    TABLE_CLASSES = 50,  /* that are shown one by one */
    JSON_CLASSES = 1000, /* whose matrix is written as JSON */
    WORST = 5,           /* mistakes for people */
    NAME_WIDTH = 20,
    SAMPLE_NAME = 1100
};

/* Transcripts have no classes for people: characters and words are compared. */
static int open_transcripts(
    struct judge *judge, const struct session *session, const struct data *data, const struct samples *samples)
{
    if (judge->file) return wrong_use(session->command, "--scores: transcripts have no classes: leave it out");
    judge->tokenizer = tutti_tokenizer_parse(data->info.tokenizer);
    const tutti_scores_options options = { .classes = session->classes,
        .labels = session->facts.length,
        .transcript = session->facts.transcript,
        .text = transcript_text,
        .user = judge->tokenizer };
    judge->data = data->opened;
    judge->part = samples->part;
    judge->scores = judge->tokenizer ? tutti_scores_new(&options) : NULL;
    return judge->scores ? EXIT_DONE : work_failed(session->command, TUTTI_NO_MEMORY, tutti_message(NULL));
}

int judge_open(
    struct judge *judge, const struct session *session, const struct data *data, const struct samples *samples)
{
    const bool numbers = data->numbers;
    float *units = NULL;
    judge->tokens = data->info.tokens_are_classes;
    if (data_is_speech(data)) return open_transcripts(judge, session, data, samples);
    if (judge->tokens && judge->file)
        return wrong_use(session->command, "--scores: a language model has a loss and a perplexity: leave it out");
    if (judge->tokens) return EXIT_DONE;
    tutti_scores_options options = { .classes = numbers ? 0 : session->classes,
        .labels = numbers ? session->classes * session->labels : session->labels };
    if (numbers && options.labels != data_outputs(data))
        return wrong_use(session->command, "%s gives %lld numbers for a sample, but the data have %d",
            session->model->name, (long long)options.labels, data_outputs(data));
    judge->data = data->opened;
    judge->part = samples->part;
    judge->classes = options.classes;
    judge->names = numbers ? NULL : data->info.class_names;
    judge->tags = data->info.tags;
    if (judge->tags) options.tags = judge->names;
    if (numbers && data->info.target_std) {
        options.units = units = memory_new((size_t)options.labels, sizeof *units);
        if (!units) return work_failed(session->command, TUTTI_NO_MEMORY, status_message());
        for (int64_t i = 0; i < options.labels; i++) units[i] = (float)data->info.target_std[i];
    }
    judge->scores = tutti_scores_new(&options);
    free(units);
    return judge->scores ? EXIT_DONE : work_failed(session->command, TUTTI_NO_MEMORY, tutti_message(NULL));
}

static tutti_scores_summary summary_of(const struct judge *judge)
{
    tutti_scores_summary summary = { .size = sizeof(summary) };
    (void)tutti_scores_summarise(judge->scores, &summary);
    return summary;
}

tutti_status judge_evaluate(
    const struct judge *judge, tutti_trainer *trainer, const tutti_source *source, tutti_metrics *metrics)
{
    if (!judge->scores) return tutti_evaluate_source(trainer, source, metrics);
    const tutti_status status = tutti_evaluate_scores(trainer, source, judge->scores, metrics);
    if (status == TUTTI_OK && judge->tags) metrics->loss = summary_of(judge).loss;
    return status;
}

double judge_perplexity(const struct judge *judge, double loss)
{
    return judge->tokens ? exp(loss) : NAN;
}

void judge_close(struct judge *judge)
{
    tutti_scores_free(judge->scores);
    tutti_tokenizer_close(judge->tokenizer);
}

static tutti_class_scores class_of(const struct judge *judge, int64_t number)
{
    tutti_class_scores of_class = { .size = sizeof(of_class) };
    (void)tutti_scores_class(judge->scores, number, &of_class);
    return of_class;
}

/* Returns a class's name, or its number. */
static const char *name_of(const struct judge *judge, int64_t number, char *buffer, size_t size)
{
    if (judge->names && judge->names[number]) return judge->names[number];
    snprintf(buffer, size, "%" PRId64, number);
    return buffer;
}

/* ----------------------------------------------------------------------------------------------- for people ---- */

void judge_line(FILE *file, const struct judge *judge)
{
    if (judge->tokens) return;
    const tutti_scores_summary s = summary_of(judge);
    if (judge->tokenizer) {
        fprintf(file, "CER %.2f %%  WER %.2f %%\n", 100 * s.cer, 100 * s.wer);
        return;
    }
    if (judge->classes == 0) {
        fprintf(file, "R2 %.4f  MAE %.6g  RMSE %.6g\n", s.r2, s.mae, s.rmse);
        return;
    }
    if (judge->classes > TOP) fprintf(file, "top-%d %.2f %%  ", TOP, 100 * s.top_accuracy);
    fprintf(file, "precision %.4f  recall %.4f  F1 %.4f  IoU %.4f\n", s.precision, s.recall, s.f1, s.iou);
    if (!isnan(s.span_f1))
        fprintf(file, "spans: precision %.4f  recall %.4f  F1 %.4f\n", s.span_precision, s.span_recall, s.span_f1);
}

/* Characters of the longest name, at most NAME_WIDTH. */
static int name_width(const struct judge *judge)
{
    size_t width = 5; /* "class" */
    char buffer[24];
    for (int64_t i = 0; i < judge->classes; i++) {
        const size_t length = strlen(name_of(judge, i, buffer, sizeof(buffer)));
        if (length > width) width = length;
    }
    return width < NAME_WIDTH ? (int)width : NAME_WIDTH;
}

static void print_classes(FILE *file, const struct judge *judge)
{
    const int width = name_width(judge);
    char buffer[24];
    if (judge->classes > TABLE_CLASSES) {
        fprintf(file, "%" PRId64 " classes: --scores FILE writes each\n", judge->classes);
        return;
    }
    fprintf(file, "%-*s  support  precision  recall      F1     IoU\n", width, "class");
    for (int64_t i = 0; i < judge->classes; i++) {
        const tutti_class_scores c = class_of(judge, i);
        fprintf(file, "%-*.*s %8" PRId64, width, width, name_of(judge, i, buffer, sizeof(buffer)), c.support);
        if (isnan(c.f1))
            fprintf(file, "          -       -       -       -\n");
        else
            fprintf(file, "     %.4f  %.4f  %.4f  %.4f\n", c.precision, c.recall, c.f1, c.iou);
    }
}

static void print_confusion(FILE *file, const struct judge *judge)
{
    const int64_t *matrix = tutti_scores_confusion(judge->scores), classes = judge->classes;
    const int width = name_width(judge);
    int64_t most = 0;
    char buffer[24];
    if (!matrix || classes > MATRIX_CLASSES) return;
    for (int64_t i = 0; i < classes * classes; i++) most = matrix[i] > most ? matrix[i] : most;
    int cell = snprintf(buffer, sizeof(buffer), "%" PRId64, most);
    if (cell < 2) cell = 2; /* the columns' numbers */
    fprintf(file, "%-*s  predicted as\n", width, "class");
    fprintf(file, "%*s ", width, "");
    for (int64_t i = 0; i < classes; i++) fprintf(file, " %*" PRId64, cell, i);
    fprintf(file, "\n");
    for (int64_t i = 0; i < classes; i++) {
        fprintf(file, "%-*.*s ", width, width, name_of(judge, i, buffer, sizeof(buffer)));
        for (int64_t k = 0; k < classes; k++) {
            const int64_t count = matrix[i * classes + k];
            if (count)
                fprintf(file, " %*" PRId64, cell, count);
            else
                fprintf(file, " %*s", cell, ".");
        }
        fprintf(file, "\n");
    }
}

/* What a person calls the sample: its file, or its row. */
static const char *sample_of(const struct judge *judge, int64_t index, char *buffer, size_t size)
{
    if (tutti_data_name(judge->data, judge->part, index, buffer, size) != TUTTI_OK)
        snprintf(buffer, size, "sample %" PRId64, index);
    return buffer;
}

static void print_mistakes(FILE *file, const struct judge *judge)
{
    tutti_mistake m = { .size = sizeof(m) };
    char right[24], wrong[24], name[SAMPLE_NAME];
    for (int i = 0; i < WORST && tutti_scores_mistake(judge->scores, i, &m) == TUTTI_OK; i++) {
        fprintf(file, "%s %s: ", i == 0 ? "worst:" : "      ", sample_of(judge, m.index, name, sizeof(name)));
        if (judge->classes)
            fprintf(file, "%s taken for %s (%.1f %%), ", name_of(judge, m.target, right, sizeof(right)),
                name_of(judge, m.predicted, wrong, sizeof(wrong)), 100 * m.probability);
        else if (!judge->tokenizer)
            fprintf(file, "off by %.6g, ", m.error);
        if (judge->tokenizer) {
            fprintf(file, "CER %.2f %%\n", 100 * m.loss);
            continue;
        }
        fprintf(file, "loss %.4g\n", m.loss);
    }
}

void judge_text(FILE *file, const struct judge *judge)
{
    if (judge->tokens) return;
    judge_line(file, judge);
    if (judge->classes) {
        print_classes(file, judge);
        print_confusion(file, judge);
    }
    print_mistakes(file, judge);
}

/* ----------------------------------------------------------------------------------------------------- JSON ---- */

static void summary_json(struct json_line *line, const struct judge *judge)
{
    const tutti_scores_summary s = summary_of(judge);
    if (judge->tokenizer) {
        json_line_print(
            line, "characters %lld cer %g wer %g accuracy %g", (long long)s.labels, s.cer, s.wer, s.accuracy);
        return;
    }
    json_line_print(line, "labels %lld loss %g", (long long)s.labels, s.loss);
    if (judge->classes == 0)
        json_line_print(line, "r2 %g mae %g rmse %g", s.r2, s.mae, s.rmse);
    else
        json_line_print(line, "accuracy %g top_accuracy %g precision %g recall %g f1 %g iou %g", s.accuracy,
            s.top_accuracy, s.precision, s.recall, s.f1, s.iou);
    if (!isnan(s.span_f1))
        json_line_print(
            line, "span_precision %g span_recall %g span_f1 %g", s.span_precision, s.span_recall, s.span_f1);
}

static void classes_json(struct json_line *line, const struct judge *judge)
{
    json_line_print(line, "classes [");
    for (int64_t i = 0; i < judge->classes; i++) {
        const tutti_class_scores c = class_of(judge, i);
        json_line_print(line, "{ class %lld", (long long)i);
        if (judge->names) json_line_text(line, "name", judge->names[i]);
        json_line_print(line, "support %lld precision %g recall %g f1 %g iou %g }", (long long)c.support, c.precision,
            c.recall, c.f1, c.iou);
    }
    json_line_print(line, "]");
    const int64_t *matrix = tutti_scores_confusion(judge->scores);
    if (!matrix || judge->classes > JSON_CLASSES) return;
    json_line_print(line, "confusion [");
    for (int64_t i = 0; i < judge->classes; i++) {
        json_line_print(line, "[");
        for (int64_t k = 0; k < judge->classes; k++) json_line_integer(line, NULL, matrix[i * judge->classes + k]);
        json_line_print(line, "]");
    }
    json_line_print(line, "]");
}

static void mistakes_json(struct json_line *line, const struct judge *judge)
{
    tutti_mistake m = { .size = sizeof(m) };
    char name[SAMPLE_NAME];
    json_line_print(line, "worst [");
    for (int i = 0; tutti_scores_mistake(judge->scores, i, &m) == TUTTI_OK; i++) {
        json_line_print(line, "{ index %lld", (long long)m.index);
        json_line_text(line, "sample", sample_of(judge, m.index, name, sizeof(name)));
        if (judge->tokenizer) {
            json_line_print(line, "cer %g }", m.loss);
            continue;
        }
        if (judge->classes)
            json_line_print(line, "label %lld class %lld probability %g", (long long)m.target, (long long)m.predicted,
                m.probability);
        else
            json_line_number(line, "error", m.error);
        json_line_print(line, "loss %g }", m.loss);
    }
    json_line_print(line, "]");
}

void judge_json(struct json_line *line, const struct judge *judge)
{
    if (judge->tokens) return;
    json_line_print(line, "scores {");
    summary_json(line, judge);
    json_line_print(line, "}");
}

void judge_json_all(struct json_line *line, const struct judge *judge)
{
    if (judge->tokens) return;
    json_line_print(line, "scores {");
    summary_json(line, judge);
    if (judge->classes) classes_json(line, judge);
    mistakes_json(line, judge);
    json_line_print(line, "}");
}

/* ------------------------------------------------------------------------------------------------------ CSV ---- */

/* A field: in quotes, which are doubled (RFC 4180). */
static void print_field(FILE *file, const char *text)
{
    fputc('"', file);
    for (const char *c = text; *c; c++) {
        if (*c == '"') fputc('"', file);
        fputc(*c, file);
    }
    fputc('"', file);
}

/* NaN: an empty field. */
static void print_number(FILE *file, double number)
{
    fputc(',', file);
    if (!isnan(number)) fprintf(file, "%.9g", number);
}

static void write_classes(FILE *file, const struct judge *judge)
{
    const int64_t *matrix = tutti_scores_confusion(judge->scores), classes = judge->classes;
    char buffer[24];
    fprintf(file, "class,name,support,precision,recall,f1,iou");
    for (int64_t i = 0; matrix && i < classes; i++) fprintf(file, ",as_%" PRId64, i);
    fprintf(file, "\n");
    for (int64_t i = 0; i < classes; i++) {
        const tutti_class_scores c = class_of(judge, i);
        fprintf(file, "%" PRId64 ",", i);
        print_field(file, name_of(judge, i, buffer, sizeof(buffer)));
        fprintf(file, ",%" PRId64, c.support);
        print_number(file, c.precision);
        print_number(file, c.recall);
        print_number(file, c.f1);
        print_number(file, c.iou);
        for (int64_t k = 0; matrix && k < classes; k++) fprintf(file, ",%" PRId64, matrix[i * classes + k]);
        fprintf(file, "\n");
    }
}

static void write_numbers(FILE *file, const struct judge *judge)
{
    const tutti_scores_summary s = summary_of(judge);
    fprintf(file, "samples,r2,mae,rmse\n%" PRId64, s.samples);
    print_number(file, s.r2);
    print_number(file, s.mae);
    print_number(file, s.rmse);
    fprintf(file, "\n");
}

int judge_write(const struct judge *judge, const char *command)
{
    char message[512];
    if (!judge->file) return EXIT_DONE;
    FILE *file = fopen(judge->file, "w");
    bool written = file != NULL;
    if (file) {
        if (judge->classes)
            write_classes(file, judge);
        else
            write_numbers(file, judge);
        written = !ferror(file);
        written &= fclose(file) == 0;
    }
    if (written) return EXIT_DONE;
    snprintf(message, sizeof(message), "cannot write '%s': %s", judge->file, strerror(errno));
    return work_failed(command, TUTTI_FILE, message);
}
