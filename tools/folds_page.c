#include "tools/folds_page.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "tools/report/page.h"
#include "tools/report/run_curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { REFRESH_S = 10, PAUSE_S = 2 };

/* --------------------------------------------------------------------------------------------------- names ---- */

/* "a/b.html" of the fold 0: "a/b.fold1.html". NULL stays NULL. */
static bool name_file(char *name, size_t size, const char **path, int fold)
{
    if (!*path) return true;
    const size_t at = folds_position(*path);
    const int length = snprintf(name, size, "%.*s.fold%d%s", (int)at, *path, fold + 1, *path + at);
    *path = name;
    return length >= 0 && (size_t)length < size;
}

bool folds_page_begin(struct folds_page *page, int fold, struct report_options *options)
{
    page->path = options->page;
    if (!name_file(page->page, sizeof(page->page), &options->page, fold)) return false;
    if (!name_file(page->log, sizeof(page->log), &options->log, fold)) return false;
    if (!options->tensorboard) return true;
    const int length =
        snprintf(page->tensorboard, sizeof(page->tensorboard), "%s/fold%d", options->tensorboard, fold + 1);
    (void)mkdir(options->tensorboard, 0777); /* if it fails, opening a file below tells why */
    options->tensorboard = page->tensorboard;
    return length >= 0 && (size_t)length < sizeof(page->tensorboard);
}

/* ------------------------------------------------------------------------------------------------- results ---- */

/* Copies all epochs of the fold again, because the history may have thinned them out. */
static tutti_status take_epochs(
    struct folds_page *page, const struct folds *folds, int fold, const struct report *report)
{
    char name[32];
    struct json_line line;
    if (!page->runs) page->runs = memory_new((size_t)folds->count, sizeof(*page->runs));
    if (!page->runs) return TUTTI_NO_MEMORY;
    struct run *run = &page->runs[fold];
    snprintf(name, sizeof(name), "fold %d", fold + 1);
    if (!run->name && !(run->name = memory_copy_text(name))) return TUTTI_NO_MEMORY;
    run->count = 0;
    json_line_begin(&line, NULL);
    report_epochs(&line, &report->history);
    json_t *epochs = page_facts(&line);
    const tutti_status status = epochs ? run_epochs(run, json_object_get(epochs, "epochs")) : TUTTI_NO_MEMORY;
    json_decref(epochs);
    return status;
}

static tutti_status add_confusion(struct folds_page *page, const struct report_facts *facts)
{
    const int64_t *counts = tutti_scores_confusion(facts->scores);
    const size_t classes = (size_t)facts->classes;
    if (!counts || classes == 0) return TUTTI_OK;
    if (!page->confusion) page->confusion = memory_new(classes * classes, sizeof(*page->confusion));
    if (!page->confusion) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < classes * classes; i++) page->confusion[i] += counts[i];
    return TUTTI_OK;
}

/* Adds mistakes as pictures, which are read while the fold's data are open. */
static tutti_status add_mistakes(struct folds_page *page, const struct report_facts *facts)
{
    tutti_mistake mistake = { .size = sizeof(mistake) };
    for (int i = 0; tutti_scores_mistake(facts->scores, i, &mistake) == TUTTI_OK; i++) {
        json_t *figure;
        int at = page->mistakes;
        if (at == FOLDS_MISTAKES && mistake.loss <= page->worst[at - 1].loss) return TUTTI_OK;
        const tutti_status status = report_figure(facts, &mistake, &figure);
        if (status != TUTTI_OK) return status;
        if (!figure) continue; /* it cannot be shown */
        if (at == FOLDS_MISTAKES)
            json_decref(page->worst[--at].figure);
        else
            page->mistakes++;
        for (; at > 0 && page->worst[at - 1].loss < mistake.loss; at--) page->worst[at] = page->worst[at - 1];
        page->worst[at].loss = mistake.loss;
        page->worst[at].figure = figure;
    }
    return TUTTI_OK;
}

/* ---------------------------------------------------------------------------------------------------- page ---- */

static void add_row(struct json_line *line, const char *heading, double accuracy, double loss)
{
    json_line_print(line, "{ row %s accuracy %g loss %g }", heading, accuracy, loss);
}

static void add_folds(struct json_line *line, const struct folds *folds, int complete)
{
    char name[32];
    double of_accuracy, of_loss;
    json_line_print(line, "folds { complete %d count %d accurate %hhd divisor %d rows [", complete, (int)folds->count,
        complete > 0 && isfinite(folds->accuracies[0]), complete > 1 ? complete - 1 : 1);
    for (int i = 0; i < complete; i++) {
        snprintf(name, sizeof(name), "fold %d", i + 1);
        add_row(line, name, folds->accuracies[i], folds->losses[i]);
    }
    if (complete > 1) {
        const double accuracy = folds_mean(folds->accuracies, complete, &of_accuracy);
        const double loss = folds_mean(folds->losses, complete, &of_loss);
        add_row(line, "mean", accuracy, loss);
        add_row(line, "deviation", of_accuracy, of_loss);
    }
    json_line_print(line, "] }");
}

/* Adds the worst mistakes to the facts of the page. */
static bool show_mistakes(const struct folds_page *page, json_t *facts)
{
    json_t *list = json_array(), *mistakes = json_pack("{s:o}", "list", list);
    bool good = facts && mistakes;
    for (int i = 0; i < page->mistakes && good; i++) good = json_array_append(list, page->worst[i].figure) == 0;
    if (good) return json_object_set_new(facts, "mistakes", mistakes) == 0;
    json_decref(mistakes);
    return false;
}

static tutti_status write(
    struct folds_page *page, const struct folds *folds, int complete, int begun, const struct report *report)
{
    const struct report_facts *known = &report->facts;
    const struct run *runs = page->runs;
    struct json_line line;
    char title[160];
    snprintf(title, sizeof(title), "%s on %s, %lld folds", known->model, known->data, (long long)folds->count);
    json_line_begin(&line, NULL);
    json_line_text(&line, "title", title);
    if (complete < folds->count) json_line_integer(&line, "refresh", REFRESH_S);
    add_folds(&line, folds, complete);
    json_line_print(&line, "curves [");
    run_curves(&line, runs, begun, RUN_TEST_ACCURACY,
        (struct chart) { .title = "Test accuracy", .factor = 100, .unit = " %" });
    run_curves(&line, runs, begun, RUN_TEST_LOSS, (struct chart) { .title = "Test loss", .logarithm = true });
    run_curves(&line, runs, begun, RUN_LOSS, (struct chart) { .title = "Training loss", .logarithm = true });
    json_line_print(&line, "]");
    if (page->confusion) report_confusion(&line, known, page->confusion);
    report_made_by(&line, report);
    json_t *facts = page_facts(&line);
    if (page->mistakes > 0 && !show_mistakes(page, facts)) {
        json_decref(facts);
        facts = NULL;
    }
    const tutti_status status = page_write(facts, page->path);
    page->written = clock_seconds();
    return status;
}

void folds_page_epoch(struct folds_page *page, const struct folds *folds, int fold, const struct report *report)
{
    if (!page->path || clock_seconds() - page->written < PAUSE_S) return;
    tutti_status status = take_epochs(page, folds, fold, report);
    if (status == TUTTI_OK) status = write(page, folds, fold, fold + 1, report);
    if (status == TUTTI_OK || page->reported) return;
    page->reported = true;
    fprintf(stderr, "tutti train: %s; training goes on\n", status_message());
}

int folds_page_complete(struct folds_page *page, const struct folds *folds, int fold, const struct report *report)
{
    if (!page->path) return EXIT_DONE;
    tutti_status status = take_epochs(page, folds, fold, report);
    if (status == TUTTI_OK) status = add_confusion(page, &report->facts);
    if (status == TUTTI_OK) status = add_mistakes(page, &report->facts);
    if (status == TUTTI_OK) status = write(page, folds, fold + 1, fold + 1, report);
    if (status != TUTTI_OK) return work_failed("train", status, status_message());
    if (fold + 1 == folds->count) fprintf(stderr, "report: %s\n", page->path);
    return EXIT_DONE;
}

void folds_page_free(struct folds_page *page, const struct folds *folds)
{
    for (int64_t i = 0; page->runs && i < folds->count; i++) run_free(&page->runs[i]);
    free(page->runs);
    free(page->confusion);
    for (int i = 0; i < page->mistakes; i++) json_decref(page->worst[i].figure);
}
