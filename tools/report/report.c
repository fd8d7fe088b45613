#include "tools/report/report.h"

#include "base/clock.h"
#include "base/status.h"
#include "tools/report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_S = 5, PAUSE_EPOCH_S = 1, WRITING_PART = 50 };

/* Writes the page under its name, whole at any moment. */
static tutti_status write_page(struct report *report, bool finished)
{
    json_t *facts;
    const double started = clock_seconds();
    tutti_status status = report_page(report, finished, &facts);
    if (status == TUTTI_OK) status = page_write(facts, report->options.page);
    report->written = clock_seconds();
    report->least_pause = WRITING_PART * (report->written - started);
    return status;
}

static tutti_status open_all(struct report *report)
{
    tutti_status status = TUTTI_OK;
    TRY(history_begin(&report->history, tutti_device_count(report->session->runtime)));
    if (report->options.log) TRY(metrics_log_open(&report->log, report->options.log));
    if (report->options.tensorboard) TRY(tensorboard_open(&report->board, report->options.tensorboard));
    if (report->options.page) TRY(report_samples(report, &report->samples)); /* the same on each page */
    if (report->options.page) TRY(write_page(report, false));                /* now, not after an epoch */
done:
    return status;
}

int report_open(struct report *report, const struct report_options *options, const struct report_facts *facts,
    const struct session *session)
{
    report->options = *options;
    report->facts = *facts;
    report->session = session;
    if (!options->page && !options->log && !options->tensorboard) return EXIT_DONE;
    const tutti_status status = open_all(report);
    return status == TUTTI_OK ? EXIT_DONE : work_failed("train", status, status_message());
}

/* Reports the first failure. The training goes on without the report. */
static void note_failure(struct report *report, tutti_status status)
{
    if (status == TUTTI_OK || report->reported) return;
    report->reported = true;
    fprintf(stderr, "tutti train: %s; training goes on\n", status_message());
}

static void report_step(struct report *report, const struct moment *step)
{
    if (report->log) metrics_log_step(report->log, step);
    if (!report->board) return;
    tensorboard_scalar(report->board, "step/loss", step->step, step->loss);
    tensorboard_scalar(report->board, "step/accuracy", step->step, step->accuracy);
    tensorboard_scalar(report->board, "step/learning_rate", step->step, step->rate);
    tensorboard_scalar(report->board, "step/samples_per_s", step->step, step->samples_per_s);
}

static tutti_status board_epoch(struct tensorboard *board, const struct epoch *epoch)
{
    const tutti_scores_summary *scores = &epoch->scores;
    const struct {
        const char *tag;
        double value;
    } scored[] = { { "test/top_accuracy", scores->top_accuracy }, { "test/precision", scores->precision },
        { "test/recall", scores->recall }, { "test/f1", scores->f1 }, { "test/iou", scores->iou },
        { "test/r2", scores->r2 }, { "test/mae", scores->mae }, { "test/rmse", scores->rmse } };
    tensorboard_scalar(board, "epoch/loss", epoch->epoch, epoch->train.loss);
    tensorboard_scalar(board, "epoch/accuracy", epoch->epoch, epoch->train.accuracy);
    if (epoch->test.samples) {
        tensorboard_scalar(board, "test/loss", epoch->epoch, epoch->test.loss);
        tensorboard_scalar(board, "test/accuracy", epoch->epoch, epoch->test.accuracy);
    }
    for (size_t i = 0; epoch->scores.samples && i < sizeof(scored) / sizeof(scored[0]); i++)
        tensorboard_scalar(board, scored[i].tag, epoch->epoch, scored[i].value);
    return tensorboard_flush(board);
}

static tutti_status add_epoch(struct report *report, const tutti_progress *progress)
{
    tutti_status status = TUTTI_OK;
    TRY(history_epoch(&report->history, progress, report->session->trainer, report->facts.scores));
    const struct epoch *epoch = &report->history.epochs[report->history.epoch_count - 1];
    if (report->log) TRY(metrics_log_epoch(report->log, epoch, report->options.log));
    if (report->board) TRY(board_epoch(report->board, epoch));
    if (!report->options.page || !epoch->scores.samples) goto done;
    json_decref(report->results);
    report->results = NULL;
    TRY(report_results(report, &report->results));
done:
    return status;
}

void report_progress(struct report *report, const tutti_progress *progress)
{
    tutti_status status = TUTTI_OK;
    if (!report->history.moments) return;
    report->last = *progress;
    const bool due =
        clock_seconds() - report->written > fmax(report->least_pause, progress->end_of_epoch ? PAUSE_EPOCH_S : PAUSE_S);
    if (progress->end_of_epoch) {
        status = add_epoch(report, progress);
    } else {
        struct moment step;
        history_step(&report->history, progress, report->session->trainer, &step);
        report_step(report, &step);
    }
    if (status == TUTTI_OK && due && report->options.page) status = write_page(report, false);
    note_failure(report, status);
}

int report_finish(struct report *report)
{
    tutti_status status = TUTTI_OK;
    if (!report->history.moments) return EXIT_DONE;
    if (report->log && (fflush(report->log) != 0 || ferror(report->log)))
        status = fail(TUTTI_FILE, "cannot write %s", report->options.log);
    if (report->board && status == TUTTI_OK) status = tensorboard_flush(report->board);
    if (report->options.page && status == TUTTI_OK) {
        if (costs_find(&report->costs, report->session->trainer, report->session->network, 0, true) != TUTTI_OK)
            costs_free(&report->costs); /* a device that is lost, or no step: the page does without */
        status = write_page(report, true);
    }
    if (status != TUTTI_OK) return work_failed("train", status, status_message());
    if (report->options.page) fprintf(stderr, "report: %s\n", report->options.page);
    return EXIT_DONE;
}

void report_close(struct report *report)
{
    if (report->log) fclose(report->log);
    tensorboard_close(report->board);
    history_free(&report->history);
    costs_free(&report->costs);
    json_decref(report->samples);
    json_decref(report->results);
    memset(report, 0, sizeof(*report));
}
