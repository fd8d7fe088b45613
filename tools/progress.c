#include "tools/progress.h"

#include "base/clock.h"
#include "base/text.h"
#include "tutti_inspect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR_CELLS = 24, PERIOD_LINES_S = 10, COLUMNS_UNKNOWN = 100, MOST_DEVICES = 16 };
#define PERIOD_BAR_S 0.1

void progress_begin(struct progress *progress, const tutti_trainer *trainer, int64_t step_limit)
{
    struct winsize window = { .ws_col = 0 };
    const char *kind = getenv("TERM");
    *progress = (struct progress) { .terminal = isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb"),
        .step_limit = step_limit,
        .trainer = trainer,
        .first_step = -1,
        .started = clock_seconds() };
    progress->columns =
        ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col ? window.ws_col : COLUMNS_UNKNOWN;
}

void progress_clear(struct progress *progress)
{
    if (progress->bar_shown) fputs(progress->lines ? "\r\033[J" : "\r\033[K", stderr);
    progress->lines = 0;
    progress->bar_shown = false;
}

static void note(struct progress *progress, const char *text)
{
    if (!progress->terminal) return;
    fprintf(stderr, "\r\033[K%.*s", progress->columns - 1, text);
    fflush(stderr);
    progress->bar_shown = true;
}

/* A line per device below the bar; the cursor goes back to the bar. */
static void note_devices(struct progress *progress)
{
    tutti_device_report report;
    if (!progress->terminal || !progress->trainer || tutti_report(progress->trainer, 1, &report) != TUTTI_OK) return;
    for (int i = 0; tutti_report(progress->trainer, i, &report) == TUTTI_OK && i < MOST_DEVICES; i++) {
        tutti_device_times times = { .size = sizeof(times) };
        struct text text = { 0 };
        text_append(&text, "  device %d  share %lld  %.0f samples/s", report.index, (long long)report.share,
            report.samples_per_s);
        if (tutti_report_times(progress->trainer, i, &times) == TUTTI_OK && times.step_s > 0)
            text_append(&text, "  computes %.0f %%  waits %.0f %%", 100 * times.compute_s / times.step_s,
                100 * times.idle_s / times.step_s);
        text_append(&text, "  %s", report.name);
        if (!text.failed) fprintf(stderr, "\n\033[K%.*s", progress->columns - 1, text.data);
        text_free(&text);
        progress->lines = i + 1;
    }
    fprintf(stderr, "\033[%dA\r", progress->lines);
    fflush(stderr);
}

/* Seconds until the end of the training, by the rate of the steps so far; negative: unknown. */
static double seconds_left(const struct progress *progress, const tutti_progress *step, double now)
{
    int64_t done = step->total_steps - progress->first_step;
    int64_t left = (step->epochs - step->epoch + 1) * step->steps_in_epoch - step->step;
    if (progress->step_limit && progress->step_limit - done < left) left = progress->step_limit - done;
    if (done < 1 || left < 0) return -1;
    return (now - progress->started) / (double)done * (double)left;
}

static void append_metrics(struct text *text, const tutti_metrics *metrics, const char *prefix)
{
    text_append(text, fabs(metrics->loss) < 1e5 ? "  %sloss %.4f" : "  %sloss %.5g", prefix, metrics->loss);
    if (isfinite(metrics->accuracy)) text_append(text, "  %saccuracy %.2f %%", prefix, 100 * metrics->accuracy);
}

/* Appends what the loss does not show: the mean error of predicted numbers in the units of the data, and wrong
 * characters of transcripts. */
static void append_error(struct text *text, const tutti_scores *scores)
{
    tutti_scores_summary summary = { .size = sizeof(summary) };
    if (!scores || tutti_scores_summarise(scores, &summary) != TUTTI_OK) return;
    if (isfinite(summary.mae)) text_append(text, "  test MAE %.5g", summary.mae);
    if (isfinite(summary.cer)) text_append(text, "  test CER %.2f %%", 100 * summary.cer);
}

static void append_epoch(struct text *text, const tutti_progress *step)
{
    text_append(text, "epoch %lld", (long long)step->epoch);
    if (step->epochs < PROGRESS_ENDLESS) text_append(text, "/%lld", (long long)step->epochs);
    text_append(text, " ");
}

static void append_time(struct text *text, double seconds)
{
    if (seconds < 0) return;
    long long whole = (long long)(seconds + 0.5);
    if (whole >= 3600)
        text_append(text, "  %lld:%02lld:%02lld left", whole / 3600, whole / 60 % 60, whole % 60);
    else
        text_append(text, "  %lld:%02lld left", whole / 60, whole % 60);
}

static void show_step(struct progress *progress, const tutti_progress *step, double now)
{
    struct text text = { 0 };
    append_epoch(&text, step);
    if (progress->terminal) {
        int full = (int)(BAR_CELLS * step->step / (step->steps_in_epoch ? step->steps_in_epoch : 1));
        text_append(&text, "[");
        for (int i = 0; i < BAR_CELLS; i++) text_append(&text, "%s", i < full ? "=" : i == full ? ">" : " ");
        text_append(&text, "] ");
    }
    text_append(&text, "%s%lld/%lld", progress->terminal ? "" : " step ", (long long)step->step,
        (long long)step->steps_in_epoch);
    if (progress->terminal) append_time(&text, seconds_left(progress, step, now)); /* a narrow one has room for it */
    append_metrics(&text, &step->train, "");
    text_append(&text, "  %.0f samples/s", step->samples_per_s);
    if (!progress->terminal) append_time(&text, seconds_left(progress, step, now));
    if (!text.failed && progress->terminal) {
        note(progress, text.data);
        note_devices(progress);
    } else if (!text.failed) {
        fprintf(stderr, "%s\n", text.data);
    }
    text_free(&text);
}

static void show_epoch(struct progress *progress, const tutti_progress *step)
{
    struct text text = { 0 };
    progress_clear(progress);
    append_epoch(&text, step);
    append_metrics(&text, &step->train, "");
    if (step->test.samples) append_metrics(&text, &step->test, "test ");
    if (step->test.samples) append_error(&text, progress->scores);
    text_append(&text, "  %.0f samples/s", step->samples_per_s);
    if (!text.failed) fprintf(stderr, "%s\n", text.data);
    text_free(&text);
}

void progress_show(struct progress *progress, const tutti_progress *step)
{
    double now = clock_seconds();
    if (progress->first_step < 0) progress->first_step = step->total_steps - (step->end_of_epoch ? 0 : 1);
    if (step->end_of_epoch) {
        show_epoch(progress, step);
        progress->shown = now;
    } else if (now - progress->shown >= (progress->terminal ? PERIOD_BAR_S : PERIOD_LINES_S)) {
        if (progress->terminal || progress->shown != 0) show_step(progress, step, now);
        progress->shown = now;
    }
}

void progress_line(struct progress *progress, const char *text)
{
    const double now = clock_seconds(), last = progress->shown != 0 ? progress->shown : progress->started;
    if (now - last < (progress->terminal ? PERIOD_BAR_S : PERIOD_LINES_S)) return;
    progress->shown = now;
    if (progress->terminal)
        note(progress, text);
    else
        fprintf(stderr, "%s\n", text);
}

void progress_building(struct progress *progress, int built, int total)
{
    char text[64];
    snprintf(text, sizeof(text), "compiling kernels: %d of %d programs", built, total);
    if (built == total)
        progress_clear(progress);
    else
        progress_line(progress, text);
}
