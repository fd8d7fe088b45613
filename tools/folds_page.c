#include "tools/folds_page.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"
#include "base/threads.h"
#include "tools/page.h"
#include "tools/run_curves.h"

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
    const char *slash = strrchr(*path, '/'), *base = slash ? slash + 1 : *path, *dot = strrchr(base, '.');
    if (!dot || dot == base) dot = base + strlen(base);
    const int length = snprintf(name, size, "%.*s.fold%d%s", (int)(dot - *path), *path, fold + 1, dot);
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
    if (!page->runs) page->runs = memory_new((size_t)folds->count, sizeof(*page->runs));
    if (!page->runs) return TUTTI_NO_MEMORY;
    struct run *run = &page->runs[fold];
    snprintf(name, sizeof(name), "fold %d", fold + 1);
    if (!run->name && !(run->name = memory_copy_text(name))) return TUTTI_NO_MEMORY;
    run->count = 0;
    for (size_t i = 0; i < report->history.epoch_count; i++) {
        const struct epoch *epoch = &report->history.epochs[i];
        const bool tested = epoch->test.samples > 0, scored = epoch->scores.samples > 0;
        const double row[RUN_COLUMNS] = { [RUN_EPOCH] = (double)epoch->epoch,
            [RUN_LOSS] = epoch->train.loss,
            [RUN_ACCURACY] = epoch->train.accuracy,
            [RUN_TEST_LOSS] = tested ? epoch->test.loss : NAN,
            [RUN_TEST_ACCURACY] = tested ? epoch->test.accuracy : NAN,
            [RUN_RATE] = epoch->rate,
            [RUN_SECONDS] = epoch->seconds,
            [RUN_SAMPLES_PER_S] = epoch->samples_per_s,
            [RUN_F1] = scored ? epoch->scores.f1 : NAN,
            [RUN_R2] = scored ? epoch->scores.r2 : NAN,
            [RUN_MAE] = scored ? epoch->scores.mae : NAN };
        const tutti_status status = run_add(run, row);
        if (status != TUTTI_OK) return status;
    }
    return TUTTI_OK;
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
        struct text figure = { 0 };
        int at = page->mistakes;
        if (at == FOLDS_MISTAKES && mistake.loss <= page->worst[at - 1].loss) return TUTTI_OK;
        const tutti_status status = report_figure(facts, &mistake, &figure);
        char *html = status == TUTTI_OK && !figure.failed && figure.size > 0 ? text_take(&figure) : NULL;
        text_free(&figure);
        if (status != TUTTI_OK) return status;
        if (!html) continue; /* it cannot be shown */
        if (at == FOLDS_MISTAKES)
            free(page->worst[--at].html);
        else
            page->mistakes++;
        for (; at > 0 && page->worst[at - 1].loss < mistake.loss; at--) page->worst[at] = page->worst[at - 1];
        page->worst[at].loss = mistake.loss;
        page->worst[at].html = html;
    }
    return TUTTI_OK;
}

/* ---------------------------------------------------------------------------------------------------- page ---- */

static void cell(struct text *page, const char *format, double value)
{
    char text[48] = "";
    if (isfinite(value)) number_print(text, sizeof(text), format, value);
    text_append(page, "<td class=\"n\">%s</td>", text);
}

static void result_row(struct text *page, const char *heading, double accuracy, double loss, bool accurate)
{
    text_append(page, "<tr><th scope=\"row\">%s</th>", heading);
    if (accurate) cell(page, "%.2f %%", 100 * accuracy);
    cell(page, "%.4g", loss);
    text_append(page, "</tr>\n");
}

static void results(struct text *page, const struct folds *folds, int complete)
{
    char name[32];
    double of_accuracy, of_loss;
    const bool accurate = complete > 0 && isfinite(folds->accuracies[0]);
    page_section(page, "Results", false);
    text_append(page,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Results\"><table><thead><tr><td></td>%s"
        "<th scope=\"col\" class=\"n\">Test loss</th></tr></thead><tbody>\n",
        accurate ? "<th scope=\"col\" class=\"n\">Test accuracy</th>" : "");
    for (int i = 0; i < complete; i++) {
        snprintf(name, sizeof(name), "fold %d", i + 1);
        result_row(page, name, folds->accuracies[i], folds->losses[i], accurate);
    }
    if (complete > 1) {
        const double accuracy = folds_mean(folds->accuracies, complete, &of_accuracy);
        const double loss = folds_mean(folds->losses, complete, &of_loss);
        result_row(page, "mean", accuracy, loss, accurate);
        result_row(page, "deviation", of_accuracy, of_loss, accurate);
    }
    text_append(page,
        "</tbody></table></div><p class=\"soft\" style=\"margin-top:10px\">Of the last epochs. Deviations are those of "
        "a sample, divided by %d.</p>\n",
        complete > 1 ? complete - 1 : 1);
    page_section_end(page);
}

static void made_by(struct text *page, const struct report *report)
{
    struct text command = { 0 };
    page_section(page, "Made by", false);
    report_command(&command, report->facts.command);
    text_append(page, "<pre><code>");
    if (!command.failed) page_text(page, command.data);
    text_append(page, "</code></pre>\n<p class=\"soft\" style=\"margin-top:10px\">tutti %s</p>\n", tutti_version());
    page_section_end(page);
    text_free(&command);
}

static void write_page(const struct folds_page *folds_page, const struct folds *folds, int complete, int begun,
    const struct report *report, struct text *page)
{
    const struct report_facts *facts = &report->facts;
    const struct run *runs = folds_page->runs;
    char title[160];
    snprintf(title, sizeof(title), "%s on %s, %lld folds", facts->model, facts->data, (long long)folds->count);
    page_begin(page, title, complete < folds->count ? REFRESH_S : 0);
    text_append(page, "<header><h1>");
    page_text(page, title);
    text_append(page,
        "</h1><p class=\"soft\">%d of %lld trainings are complete. Each sample is in the test of one.</p></header>\n",
        complete, (long long)folds->count);
    results(page, folds, complete);
    run_curves(
        page, runs, begun, RUN_TEST_ACCURACY, (struct chart) { .title = "Test accuracy", .factor = 100, .unit = " %" });
    run_curves(page, runs, begun, RUN_TEST_LOSS, (struct chart) { .title = "Test loss", .logarithm = true });
    run_curves(page, runs, begun, RUN_LOSS, (struct chart) { .title = "Training loss", .logarithm = true });
    if (folds_page->confusion) report_confusion(page, facts, folds_page->confusion);
    if (folds_page->mistakes > 0) {
        page_section(page, "The worst mistakes", false);
        text_append(page, "<div class=\"mistakes\">\n");
        for (int i = 0; i < folds_page->mistakes; i++) text_append(page, "%s", folds_page->worst[i].html);
        text_append(page, "</div>\n");
        page_section_end(page);
    }
    made_by(page, report);
    page_end(page);
}

static tutti_status write(
    struct folds_page *folds_page, const struct folds *folds, int complete, int begun, const struct report *report)
{
    struct text page = { 0 };
    write_page(folds_page, folds, complete, begun, report, &page);
    tutti_status status = page.failed ? fail(TUTTI_NO_MEMORY, "there is no memory for the page") : TUTTI_OK;
    if (status == TUTTI_OK) status = file_write(folds_page->path, page.data, page.size);
    text_free(&page);
    folds_page->written = clock_seconds();
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
    for (int i = 0; i < page->mistakes; i++) free(page->worst[i].html);
}
