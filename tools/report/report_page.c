/* The page of a training. */
#include "base/memory.h"
#include "base/status.h"
#include "tools/report/chart.h"
#include "tools/report/network_svg.h"
#include "tools/report/page.h"
#include "tools/report/report.h"
#include "tutti_inspect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { REFRESH_S = 10, SHOWN_OPERATIONS = 12, SHOWN_STEPS = 150, DEVICE_HEIGHT = 46, OPERATION_HEIGHT = 34 };

const char *report_class(const struct report_facts *facts, int64_t number, char *buffer, size_t size)
{
    if (facts->class_names && number >= 0 && number < facts->classes) return facts->class_names[number];
    snprintf(buffer, size, "%lld", (long long)number);
    return buffer;
}

/* Adds the numbers at the top: the results of the last epoch, and how far training is. */
static void add_training(struct json_line *line, const struct report *report, bool finished)
{
    const struct history *history = &report->history;
    const struct epoch *epoch = history->epoch_count ? &history->epochs[history->epoch_count - 1] : NULL;
    const bool tested = epoch && epoch->test.samples, scored = epoch && epoch->scores.samples;
    const tutti_progress *last = &report->last;
    char date[64] = "";
    const time_t now = time(NULL);
    struct tm parts;
    if (localtime_r(&now, &parts)) strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &parts);
    json_line_print(line, "training { over %hhd date %s train_samples %lld test_samples %lld batch %lld", finished,
        date, (long long)report->facts.train_samples, (long long)report->facts.test_samples,
        (long long)report->facts.batch);
    json_line_print(line, "test_accuracy %g test_loss %g loss %g", tested ? epoch->test.accuracy : NAN,
        tested ? epoch->test.loss : NAN, last->epoch ? last->train.loss : NAN);
    if (scored) json_line_print(line, "f1 %g r2 %g mae %g", epoch->scores.f1, epoch->scores.r2, epoch->scores.mae);
    if (last->epoch && last->epochs < (int64_t)1 << 40)
        json_line_print(line, "epoch %lld epochs %lld", (long long)last->epoch, (long long)last->epochs);
    else if (last->epoch)
        json_line_integer(line, "step", last->total_steps);
    json_line_print(line, "seconds %g samples_per_s %g parameters %lld }",
        history->count ? history->moments[history->count - 1].seconds : 0.0,
        last->samples_per_s > 0 ? last->samples_per_s : NAN,
        (long long)tutti_network_parameters(report->session->network));
}

/* Columns of the history, for charts. */
struct columns {
    double *steps[4], *epochs[6]; /* epoch, loss, accuracy, rate; epoch, loss, accuracy, test's, rate */
    double *parts;                /* [device][moment]: shares */
    double *memory;
    double *places; /* of the moments, for the shares */
    size_t count, epoch_count;
    size_t shown; /* in `steps` */
};

/* Adds means over a few moments each: more points than the line has pixels would only be a band. */
static void add_steps(struct columns *columns, const struct history *history)
{
    const size_t group = (history->count + SHOWN_STEPS - 1) / SHOWN_STEPS;
    for (size_t i = 0; i < history->count; i += group) {
        const size_t end = i + group < history->count ? i + group : history->count;
        double loss = 0, accuracy = 0;
        for (size_t k = i; k < end; k++) {
            loss += history->moments[k].loss / (double)(end - i);
            accuracy += history->moments[k].accuracy / (double)(end - i);
        }
        const double values[] = { history->moments[end - 1].epoch, loss, accuracy, history->moments[end - 1].rate };
        for (int k = 0; k < 4; k++) columns->steps[k][columns->shown] = values[k];
        columns->shown++;
    }
}

static tutti_status columns_make(struct columns *columns, const struct history *history)
{
    const size_t n = history->count, e = history->epoch_count, devices = (size_t)history->devices;
    columns->memory = memory_new(5 * n + 6 * e + devices * n + 1, sizeof(double));
    if (!columns->memory) return TUTTI_NO_MEMORY;
    for (int i = 0; i < 4; i++) columns->steps[i] = columns->memory + (size_t)i * n;
    for (int i = 0; i < 6; i++) columns->epochs[i] = columns->memory + 4 * n + (size_t)i * e;
    columns->places = columns->memory + 4 * n + 6 * e;
    columns->parts = columns->places + n;
    columns->count = n, columns->epoch_count = e;
    add_steps(columns, history);
    for (size_t i = 0; i < n; i++) {
        columns->places[i] = history->moments[i].epoch;
        for (size_t d = 0; d < devices; d++) columns->parts[d * n + i] = history->parts[i * devices + d].share;
    }
    for (size_t i = 0; i < e; i++) {
        const struct epoch *epoch = &history->epochs[i];
        const bool tested = epoch->test.samples > 0;
        const double values[] = { (double)epoch->epoch, epoch->train.loss, epoch->train.accuracy,
            tested ? epoch->test.loss : NAN, tested ? epoch->test.accuracy : NAN, epoch->rate };
        for (int k = 0; k < 6; k++) columns->epochs[k][i] = values[k];
    }
    return TUTTI_OK;
}

static bool any(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i])) return true;
    return false;
}

/* Draws the steps faintly, and the means of the epochs: of training, and of the test. */
static void add_curve(
    struct json_line *line, const char *key, const struct columns *c, int step, int train, int test, struct chart chart)
{
    const bool epochs = c->epoch_count > 0, tested = any(c->epochs[test], c->epoch_count);
    chart.x_label = "epoch";
    chart.series[chart.count++] = (struct series) {
        .name = epochs ? NULL : "steps", .x = c->steps[0], .y = c->steps[step], .count = c->shown, .colour = 0
    };
    if (epochs)
        chart.series[chart.count++] = (struct series) { .name = "training",
            .x = c->epochs[0],
            .y = c->epochs[train],
            .count = c->epoch_count,
            .colour = 0,
            .points = true };
    if (tested)
        chart.series[chart.count++] = (struct series) { .name = "test",
            .x = c->epochs[0],
            .y = c->epochs[test],
            .count = c->epoch_count,
            .colour = 1,
            .dashes = 1,
            .points = true };
    chart_lines(line, key, &chart);
}

static void add_curves(struct json_line *line, const struct columns *c)
{
    struct chart rate = { .title = "Learning rate", .x_label = "epoch", .from_zero = true, .count = 1 };
    rate.series[0] =
        (struct series) { .name = "rate", .x = c->steps[0], .y = c->steps[3], .count = c->shown, .colour = 2 };
    add_curve(line, "loss_svg", c, 1, 1, 3, (struct chart) { .title = "Loss", .logarithm = true });
    if (any(c->steps[2], c->shown))
        add_curve(
            line, "accuracy_svg", c, 2, 2, 4, (struct chart) { .title = "Accuracy", .factor = 100, .unit = " %" });
    chart_lines(line, "rate_svg", &rate);
}

/* ------------------------------------------------------------------------------------------------- devices ---- */

static void add_shares(struct json_line *line, const struct report *report, const struct columns *c)
{
    char names[CHART_SERIES][32];
    tutti_device_report info;
    struct chart chart = { .title = "Share of the batch", .x_label = "epoch", .unit = " %" };
    const int devices = report->history.devices;
    if (devices < 2) return;
    for (int d = 0; d < devices && d < CHART_SERIES; d++) {
        const bool known = tutti_report(report->session->trainer, d, &info) == TUTTI_OK;
        snprintf(names[d], sizeof(names[d]), "device %d", known ? info.index : d);
        chart.series[chart.count++] = (struct series) {
            .name = names[d], .x = c->places, .y = c->parts + (size_t)d * c->count, .count = c->count, .colour = d % 8
        };
    }
    chart_stacked(line, "shares_svg", &chart);
}

/* Milliseconds of a step on a device: all of it; computing, copying and waiting. */
struct step_times {
    double all, compute, transfer, waiting;
};

static struct step_times times_of(const struct report *report, int device)
{
    tutti_device_times times = { .size = sizeof(times) };
    if (tutti_report_times(report->session->trainer, device, &times) != TUTTI_OK) return (struct step_times) { 0 };
    const double ms = 1000 / (times.steps ? (double)times.steps : 1);
    return (struct step_times) { ms * times.step_s, ms * times.compute_s, ms * times.transfer_s, ms * times.idle_s };
}

static void add_devices(struct json_line *line, const struct report *report)
{
    const int devices = report->history.devices;
    tutti_device_report info;
    struct rusage usage;
    double longest = 0;
    for (int d = 0; d < devices; d++) longest = fmax(longest, times_of(report, d).all);
    json_line_print(line, "devices { height %d list [", devices * DEVICE_HEIGHT);
    for (int d = 0; d < devices && tutti_report(report->session->trainer, d, &info) == TUTTI_OK; d++) {
        const struct step_times t = times_of(report, d);
        json_line_print(line, "{ index %d device %s share %lld samples %lld samples_per_s %g memory %g", info.index,
            info.name, (long long)info.share, (long long)info.samples, info.samples_per_s, (double)info.memory_bytes);
        json_line_print(
            line, "step_ms %g compute_ms %g transfer_ms %g waiting_ms %g", t.all, t.compute, t.transfer, t.waiting);
        json_line_print(line, "top %d scale %g waiting_x %g }", d * DEVICE_HEIGHT, longest > 0 ? 360 / longest : 0.0,
            t.compute + t.transfer);
    }
    json_line_print(line, "]");
    if (getrusage(RUSAGE_SELF, &usage) == 0) json_line_number(line, "host_memory", 1024.0 * (double)usage.ru_maxrss);
    json_line_print(line, "}");
}

static void add_operations(struct json_line *line, const struct costs *costs)
{
    if (!(costs->seconds > 0)) return;
    const int count = costs->operation_count < SHOWN_OPERATIONS ? costs->operation_count : SHOWN_OPERATIONS;
    const struct operation_cost *slowest = &costs->operations[0];
    json_line_print(line, "operations { height %d slowest %s slowest_part %g step_ms %g list [",
        count * OPERATION_HEIGHT, slowest->name, slowest->seconds / costs->seconds, 1000 * costs->seconds);
    for (int i = 0; i < costs->operation_count; i++) {
        const struct operation_cost *operation = &costs->operations[i];
        json_line_print(line, "{ operation %s launches %d ms %g part %g bar %hhd top %d width %g }", operation->name,
            operation->launches, 1000 * operation->seconds, operation->seconds / costs->seconds, i < SHOWN_OPERATIONS,
            i * OPERATION_HEIGHT, fmax(1, 360 * operation->seconds / slowest->seconds));
    }
    json_line_print(line, "] }");
}

/* ---------------------------------------------------------------------------------------------------- data ---- */

/* Adds the command as a shell takes it. */
static void add_command(struct json_line *line, char **words)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./=,:+%@";
    struct text command = { 0 };
    text_append(&command, "tutti");
    for (; *words; words++) {
        const bool quoted = !**words || (*words)[strspn(*words, plain)];
        text_append(&command, " %s%s%s", quoted ? "'" : "", *words, quoted ? "'" : "");
    }
    page_member(line, "command", &command);
}

void report_made_by(struct json_line *line, const struct report *report)
{
    tutti_device_info device;
    json_line_print(line, "made_by {");
    add_command(line, report->facts.command);
    json_line_print(line, "version %s opened [", tutti_version());
    for (int i = 0; i < tutti_device_count(report->session->runtime); i++)
        if (tutti_device_get(report->session->runtime, i, &device) == TUTTI_OK)
            json_line_print(line, "{ index %d device %s platform %s driver %s }", device.index, device.name,
                device.platform, device.driver);
    json_line_print(line, "] }");
}

void report_epochs(struct json_line *line, const struct history *history)
{
    json_line_print(line, "epochs [");
    for (size_t i = 0; i < history->epoch_count; i++) {
        const struct epoch *epoch = &history->epochs[i];
        const tutti_scores_summary *scores = &epoch->scores;
        const bool tested = epoch->test.samples > 0, scored = scores->samples > 0;
        json_line_print(line, "{ epoch %lld step %lld seconds %g learning_rate %g samples_per_s %g loss %g accuracy %g",
            (long long)epoch->epoch, (long long)epoch->step, epoch->seconds, epoch->rate, epoch->samples_per_s,
            epoch->train.loss, epoch->train.accuracy);
        json_line_print(line, "test_loss %g test_accuracy %g f1 %g iou %g r2 %g mae %g }",
            tested ? epoch->test.loss : NAN, tested ? epoch->test.accuracy : NAN, scored ? scores->f1 : NAN,
            scored ? scores->iou : NAN, scored ? scores->r2 : NAN, scored ? scores->mae : NAN);
    }
    json_line_print(line, "]");
}

/* Adds what `tutti report` reads of a page. */
static void add_run(struct json_line *line, const struct report *report)
{
    const struct history *history = &report->history;
    json_line_print(line, "run { tutti_report %d model %s data %s", 1, report->facts.model, report->facts.data);
    add_command(line, report->facts.command);
    json_line_print(line, "version %s batch %lld parameters %lld", tutti_version(), (long long)report->facts.batch,
        (long long)tutti_network_parameters(report->session->network));
    report_epochs(line, history);
    json_line_print(line, "steps [");
    for (const struct moment *m = history->moments; m < history->moments + history->count; m++)
        json_line_print(line, "[ %g %lld %g %g %g ]", m->epoch, (long long)m->step, m->loss, m->accuracy, m->rate);
    json_line_print(line, "] }");
}

static bool add_all(json_t *facts, json_t *more)
{
    return !more || json_object_update(facts, more) == 0;
}

tutti_status report_page(const struct report *report, bool finished, json_t **facts)
{
    struct columns columns = { 0 };
    struct json_line line;
    struct text title = { 0 };
    tutti_status status = columns_make(&columns, &report->history);
    if (status != TUTTI_OK) return status;
    text_append(&title, "%s on %s", report->facts.model, report->facts.data);
    json_line_begin(&line, NULL);
    page_member(&line, "title", &title);
    if (!finished) json_line_integer(&line, "refresh", REFRESH_S);
    add_training(&line, report, finished);
    if (columns.count) {
        add_curves(&line, &columns);
        add_shares(&line, report, &columns);
        add_devices(&line, report);
    }
    add_operations(&line, &report->costs);
    status = network_facts(
        &line, report->session->network, report->costs.layers ? &report->costs : NULL, report->facts.model);
    report_made_by(&line, report);
    add_run(&line, report);
    free(columns.memory);
    json_t *all = page_facts(&line);
    if (status == TUTTI_OK && (!all || !add_all(all, report->results) || !add_all(all, report->samples)))
        status = fail(TUTTI_NO_MEMORY, "there is no memory for the report");
    if (status == TUTTI_OK) *facts = json_incref(all);
    json_decref(all);
    return status;
}
