/* The page of a training. */
#include "base/memory.h"
#include "base/numbers.h"
#include "formats/json_lines.h"
#include "tools/chart.h"
#include "tools/network_svg.h"
#include "tools/page.h"
#include "tools/report.h"
#include "tutti_inspect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { REFRESH_S = 10, SHOWN_OPERATIONS = 12, SHOWN_STEPS = 150 };

const char *report_class(const struct report_facts *facts, int64_t number, char *buffer, size_t size)
{
    if (facts->class_names && number >= 0 && number < facts->classes) return facts->class_names[number];
    snprintf(buffer, size, "%lld", (long long)number);
    return buffer;
}

static void fact(struct text *page, const char *name, const char *value)
{
    text_append(page, "<div><dt>%s</dt><dd>", name);
    page_text(page, value);
    text_append(page, "</dd></div>\n");
}

static void fact_number(struct text *page, const char *name, double value, const char *format)
{
    char text[48];
    if (!isfinite(value)) return;
    number_print(text, sizeof(text), format, value);
    fact(page, name, text);
}

/* Appends the results of the last epoch. */
static void facts_of_results(struct text *page, const struct report *report)
{
    char text[48];
    const struct history *history = &report->history;
    const struct epoch *epoch = history->epoch_count ? &history->epochs[history->epoch_count - 1] : NULL;
    if (epoch && epoch->test.samples && isfinite(epoch->test.accuracy)) {
        number_print(text, sizeof(text), "%.2f %%", 100 * epoch->test.accuracy);
        fact(page, "Test accuracy", text);
    }
    if (epoch && epoch->test.samples) fact_number(page, "Test loss", epoch->test.loss, "%.4f");
    if (epoch && epoch->scores.samples) {
        if (isfinite(epoch->scores.f1)) fact_number(page, "F1", epoch->scores.f1, "%.4f");
        if (isfinite(epoch->scores.r2)) fact_number(page, "R\xc2\xb2", epoch->scores.r2, "%.4f");
        if (isfinite(epoch->scores.mae)) fact_number(page, "Mean abs. error", epoch->scores.mae, "%.4g");
    }
    if (report->last.epoch) fact_number(page, "Training loss", report->last.train.loss, "%.4f");
}

static void facts_of_training(struct text *page, const struct report *report, bool finished)
{
    char text[64], count[48];
    const struct history *history = &report->history;
    const tutti_progress *last = &report->last;
    const double seconds = history->count ? history->moments[history->count - 1].seconds : 0;
    if (last->epoch && last->epochs < (int64_t)1 << 40) {
        snprintf(text, sizeof(text), "%lld of %lld", (long long)last->epoch, (long long)last->epochs);
        fact(page, "Epoch", text);
    } else if (last->epoch) {
        fact(page, "Step", format_count((double)last->total_steps, count, sizeof(count)));
    }
    fact(page, finished ? "Took" : "So far", format_seconds(seconds, count, sizeof(count)));
    if (last->samples_per_s > 0) fact(page, "Samples/s", format_count(last->samples_per_s, count, sizeof(count)));
    fact(page, "Parameters",
        format_count((double)tutti_network_parameters(report->session->network), count, sizeof(count)));
}

static void header(struct text *page, const struct report *report, bool finished)
{
    const struct report_facts *facts = &report->facts;
    char date[64] = "";
    const time_t now = time(NULL);
    struct tm parts;
    if (localtime_r(&now, &parts)) strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &parts);
    text_append(page, "<header>\n<h1>");
    page_text(page, facts->model);
    text_append(page, " on ");
    page_text(page, facts->data);
    text_append(page, "</h1>\n<p class=\"soft\">%s, %s. %lld training and %lld test samples, batch %lld.</p>\n",
        finished ? "Training is over" : "Training goes on", date, (long long)facts->train_samples,
        (long long)facts->test_samples, (long long)facts->batch);
    text_append(page, "<dl class=\"facts\">\n");
    facts_of_results(page, report);
    facts_of_training(page, report, finished);
    text_append(page, "</dl>\n</header>\n");
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
static void curve(struct text *page, const struct columns *c, int step, int train, int test, struct chart chart)
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
    chart_lines(page, &chart);
}

static void cell(struct text *page, double value, const char *format)
{
    char text[48] = "";
    if (isfinite(value)) number_print(text, sizeof(text), format, value);
    text_append(page, "<td class=\"n\">%s</td>", text);
}

static void epochs_table(struct text *page, const struct history *history)
{
    page_table(page, "All epochs as a table", "#epoch|#loss|#accuracy|#test loss|#test accuracy|#rate|#samples/s");
    for (size_t i = 0; i < history->epoch_count; i++) {
        const struct epoch *epoch = &history->epochs[i];
        const bool tested = epoch->test.samples > 0;
        text_append(page, "<tr><td class=\"n\">%lld</td>", (long long)epoch->epoch);
        cell(page, epoch->train.loss, "%.4f");
        cell(page, 100 * epoch->train.accuracy, "%.2f %%");
        cell(page, tested ? epoch->test.loss : NAN, "%.4f");
        cell(page, tested ? 100 * epoch->test.accuracy : NAN, "%.2f %%");
        cell(page, epoch->rate, "%.3g");
        cell(page, epoch->samples_per_s, "%.0f");
        text_append(page, "</tr>\n");
    }
    page_table_end(page);
}

static void curves(struct text *page, const struct report *report, const struct columns *c)
{
    page_section(page, "Loss", true);
    curve(page, c, 1, 1, 3, (struct chart) { .title = "Loss", .logarithm = true });
    epochs_table(page, &report->history);
    page_section_end(page);
    if (any(c->steps[2], c->shown)) {
        page_section(page, "Accuracy", true);
        curve(page, c, 2, 2, 4, (struct chart) { .title = "Accuracy", .factor = 100, .unit = " %" });
        page_section_end(page);
    }
}

static void rate(struct text *page, const struct columns *c)
{
    page_section(page, "Learning rate", true);
    struct chart rate = { .title = "Learning rate", .x_label = "epoch", .from_zero = true, .count = 1 };
    rate.series[0] =
        (struct series) { .name = "rate", .x = c->steps[0], .y = c->steps[3], .count = c->shown, .colour = 2 };
    chart_lines(page, &rate);
    page_section_end(page);
}

/* ------------------------------------------------------------------------------------------------- devices ---- */

static const char *device_name(const struct report *report, int device, char *buffer, size_t size)
{
    tutti_device_report info;
    if (tutti_report(report->session->trainer, device, &info) == TUTTI_OK)
        snprintf(buffer, size, "device %d", info.index);
    else
        snprintf(buffer, size, "device");
    return buffer;
}

static void shares(struct text *page, const struct report *report, const struct columns *c)
{
    char names[CHART_SERIES][32];
    struct chart chart = { .title = "Share of the batch", .x_label = "epoch", .unit = " %" };
    const int devices = report->history.devices;
    if (devices < 2 || !c->count) return;
    for (int d = 0; d < devices && d < CHART_SERIES; d++)
        chart.series[chart.count++] = (struct series) { .name = device_name(report, d, names[d], sizeof(names[d])),
            .x = c->places,
            .y = c->parts + (size_t)d * c->count,
            .count = c->count,
            .colour = d % 8 };
    page_section(page, "Shares of the batch", true);
    chart_stacked(page, &chart);
    page_section_end(page);
}

static void device_bar(struct text *page, const double *ms, double longest, int y)
{
    double x = 0;
    for (int k = 0; k < 3; k++) {
        const double width = longest > 0 ? 360 * ms[k] / longest : 0;
        text_append(page, "<rect class=\"f%d\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"14\"/>", k == 2 ? 6 : k, x,
            y, width > 1.5 ? width - 1 : width);
        x += width;
    }
}

/* Compute, transfer and waiting of a step, on each device. */
static void devices_bars(struct text *page, const struct report *report)
{
    const int devices = report->history.devices;
    tutti_device_times times[HISTORY_DEVICES];
    double longest = 0;
    for (int d = 0; d < devices; d++) {
        times[d] = (tutti_device_times) { .size = sizeof(times[d]) };
        if (tutti_report_times(report->session->trainer, d, &times[d]) != TUTTI_OK || !times[d].steps)
            times[d].steps = 1;
        longest = fmax(longest, times[d].step_s / (double)times[d].steps);
    }
    text_append(page,
        "<ul class=\"legend\"><li><span class=\"key k0\"></span>compute</li><li><span class=\"key "
        "k1\"></span>transfer</li>"
        "<li><span class=\"key k6\"></span>waiting</li></ul>\n"
        "<svg role=\"img\" viewBox=\"0 0 360 %d\" aria-label=\"Milliseconds of a step on each device\">\n",
        devices * 46);
    for (int d = 0; d < devices; d++) {
        char name[32];
        const double steps = (double)times[d].steps,
                     ms[] = { 1000 * times[d].compute_s / steps, 1000 * times[d].transfer_s / steps,
                         1000 * times[d].idle_s / steps };
        text_append(page,
            "<text class=\"small\" x=\"0\" y=\"%d\">%s</text><text class=\"small end\" x=\"360\" y=\"%d\">%.2f "
            "ms</text>\n",
            d * 46 + 14, device_name(report, d, name, sizeof(name)), d * 46 + 14, 1000 * times[d].step_s / steps);
        device_bar(page, ms, 1000 * longest, d * 46 + 20);
    }
    text_append(page, "</svg>\n");
}

static void devices_table(struct text *page, const struct report *report)
{
    page_table(page, "Devices as a table",
        "device|#share|#samples|#samples/s|#compute, ms|#transfer, ms|#waiting, ms|#memory");
    for (int d = 0; d < report->history.devices; d++) {
        tutti_device_report info;
        tutti_device_times times = { .size = sizeof(times) };
        char bytes[32];
        if (tutti_report(report->session->trainer, d, &info) != TUTTI_OK) continue;
        if (tutti_report_times(report->session->trainer, d, &times) != TUTTI_OK) continue;
        const double steps = times.steps ? (double)times.steps : 1;
        text_append(page, "<tr><td class=\"name\">%d: ", info.index);
        page_text(page, info.name);
        text_append(page, "</td><td class=\"n\">%lld</td><td class=\"n\">%lld</td>", (long long)info.share,
            (long long)info.samples);
        cell(page, info.samples_per_s, "%.0f");
        cell(page, 1000 * times.compute_s / steps, "%.3f");
        cell(page, 1000 * times.transfer_s / steps, "%.3f");
        cell(page, 1000 * times.idle_s / steps, "%.3f");
        text_append(
            page, "<td class=\"n\">%s</td></tr>\n", format_bytes((double)info.memory_bytes, bytes, sizeof(bytes)));
    }
    page_table_end(page);
}

static void devices(struct text *page, const struct report *report, const struct columns *c)
{
    tutti_device_report info;
    struct rusage usage;
    char bytes[32];
    shares(page, report, c);
    page_section(page, "A step on each device", true);
    devices_bars(page, report);
    text_append(page, "<dl class=\"facts\">\n");
    for (int d = 0; tutti_report(report->session->trainer, d, &info) == TUTTI_OK; d++) {
        text_append(page, "<div><dt>Memory of device %d", info.index);
        text_append(page, "</dt><dd>%s</dd></div>\n", format_bytes((double)info.memory_bytes, bytes, sizeof(bytes)));
    }
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        fact(page, "Host memory, at most", format_bytes(1024.0 * (double)usage.ru_maxrss, bytes, sizeof(bytes)));
    text_append(page, "</dl>\n");
    devices_table(page, report);
    page_section_end(page);
}

static void operations(struct text *page, const struct costs *costs)
{
    if (!(costs->seconds > 0)) return;
    const int count = costs->operation_count < SHOWN_OPERATIONS ? costs->operation_count : SHOWN_OPERATIONS;
    const double slowest = costs->operations[0].seconds;
    page_section(page, "Where a step's time goes", true);
    text_append(page,
        "<svg role=\"img\" viewBox=\"0 0 360 %d\" aria-label=\"Time of a step by operation; the slowest is ",
        count * 34);
    page_text(page, costs->operations[0].name);
    text_append(page, ", %.0f %% of %.3g ms\">\n", 100 * slowest / costs->seconds, 1000 * costs->seconds);
    for (int i = 0; i < count; i++) {
        const struct operation_cost *operation = &costs->operations[i];
        text_append(page, "<text class=\"small\" x=\"0\" y=\"%d\">", i * 34 + 13);
        page_text_cut(page, operation->name, 40);
        text_append(page,
            "</text><text class=\"small end\" x=\"360\" y=\"%d\">%.3g ms, %.1f %%</text>"
            "<rect class=\"f0\" x=\"0\" y=\"%d\" width=\"%.1f\" height=\"8\" rx=\"2\"/>\n",
            i * 34 + 13, 1000 * operation->seconds, 100 * operation->seconds / costs->seconds, i * 34 + 18,
            fmax(1, 360 * operation->seconds / slowest));
    }
    text_append(page, "</svg>\n");
    page_table(page, "All operations as a table", "operation|#launches|#time, ms|#part");
    for (int i = 0; i < costs->operation_count; i++) {
        text_append(page, "<tr><td class=\"name\">");
        page_text(page, costs->operations[i].name);
        text_append(page, "</td><td class=\"n\">%d</td>", costs->operations[i].launches);
        cell(page, 1000 * costs->operations[i].seconds, "%.3f");
        cell(page, 100 * costs->operations[i].seconds / costs->seconds, "%.1f %%");
        text_append(page, "</tr>\n");
    }
    page_table_end(page);
    page_section_end(page);
}

void report_command(struct text *page, char **words)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./=,:+%@";
    text_append(page, "tutti");
    for (; *words; words++) {
        const bool quoted = !**words || (*words)[strspn(*words, plain)];
        text_append(page, " %s%s%s", quoted ? "'" : "", *words, quoted ? "'" : "");
    }
}

static void made_by(struct text *page, const struct report *report)
{
    struct text command = { 0 };
    tutti_device_info device;
    page_section(page, "Made by", false);
    report_command(&command, report->facts.command);
    text_append(page, "<pre><code>");
    if (!command.failed) page_text(page, command.data);
    text_append(page, "</code></pre>\n<p class=\"soft\" style=\"margin-top:10px\">tutti %s", tutti_version());
    for (int i = 0; i < tutti_device_count(report->session->runtime); i++) {
        if (tutti_device_get(report->session->runtime, i, &device) != TUTTI_OK) continue;
        text_append(page, ". Device %d: ", device.index);
        page_text(page, device.name);
        text_append(page, ", ");
        page_text(page, device.platform);
        text_append(page, ", driver ");
        page_text(page, device.driver);
    }
    text_append(page, ".</p>\n");
    page_section_end(page);
    text_free(&command);
}

static tutti_status network(struct text *page, const struct report *report)
{
    const struct costs *costs = report->costs.layers ? &report->costs : NULL;
    page_section(page, "The network", false);
    text_append(page, "<p class=\"soft\">Shapes are those of a sample%s.</p>\n",
        costs ? ", times those of a training step on the first device, forward and backward" : "");
    tutti_status status = network_svg(page, report->session->network, costs, report->facts.model, false);
    if (status == TUTTI_OK) status = network_table(page, report->session->network, costs);
    page_section_end(page);
    return status;
}

/* ---------------------------------------------------------------------------------------------------- data ---- */

static void json_epochs(struct json_line *line, const struct history *history)
{
    json_line_list(line, "epochs");
    for (size_t i = 0; i < history->epoch_count; i++) {
        const struct epoch *epoch = &history->epochs[i];
        const bool tested = epoch->test.samples > 0, scored = epoch->scores.samples > 0;
        json_line_object(line, NULL);
        json_line_integer(line, "epoch", epoch->epoch);
        json_line_integer(line, "step", epoch->step);
        json_line_number(line, "seconds", epoch->seconds);
        json_line_number(line, "learning_rate", epoch->rate);
        json_line_number(line, "samples_per_s", epoch->samples_per_s);
        json_line_number(line, "loss", epoch->train.loss);
        json_line_number(line, "accuracy", epoch->train.accuracy);
        json_line_number(line, "test_loss", tested ? epoch->test.loss : NAN);
        json_line_number(line, "test_accuracy", tested ? epoch->test.accuracy : NAN);
        json_line_number(line, "f1", scored ? epoch->scores.f1 : NAN);
        json_line_number(line, "iou", scored ? epoch->scores.iou : NAN);
        json_line_number(line, "r2", scored ? epoch->scores.r2 : NAN);
        json_line_number(line, "mae", scored ? epoch->scores.mae : NAN);
        json_line_close(line);
    }
    json_line_close(line);
}

static void json_steps(struct json_line *line, const struct history *history)
{
    json_line_list(line, "steps");
    for (size_t i = 0; i < history->count; i++) {
        const struct moment *moment = &history->moments[i];
        json_line_list(line, NULL);
        json_line_number(line, NULL, moment->epoch);
        json_line_integer(line, NULL, moment->step);
        json_line_number(line, NULL, moment->loss);
        json_line_number(line, NULL, moment->accuracy);
        json_line_number(line, NULL, moment->rate);
        json_line_close(line);
    }
    json_line_close(line);
}

void report_json(const struct report *report, struct text *page)
{
    struct json_line line;
    struct text command = { 0 };
    report_command(&command, report->facts.command);
    json_line_begin(&line, NULL);
    json_line_integer(&line, "tutti_report", 1);
    json_line_text(&line, "model", report->facts.model);
    json_line_text(&line, "data", report->facts.data);
    json_line_text(&line, "command", command.data);
    json_line_text(&line, "version", tutti_version());
    json_line_integer(&line, "batch", report->facts.batch);
    json_line_integer(&line, "parameters", tutti_network_parameters(report->session->network));
    json_epochs(&line, &report->history);
    json_steps(&line, &report->history);
    json_line_close(&line);
    page->failed |= line.text.failed || command.failed || line.misused;
    if (!page->failed) page_json(page, line.text.data);
    text_free(&line.text);
    text_free(&command);
}

tutti_status report_page(const struct report *report, bool finished, struct text *page)
{
    struct columns columns = { 0 };
    char title[160];
    tutti_status status = columns_make(&columns, &report->history);
    if (status != TUTTI_OK) return status;
    snprintf(title, sizeof(title), "%s on %s", report->facts.model, report->facts.data);
    page_begin(page, title, finished ? 0 : REFRESH_S);
    header(page, report, finished);
    if (columns.count) curves(page, report, &columns);
    if (report->results) text_append(page, "%s", report->results);
    if (report->samples) text_append(page, "%s", report->samples);
    if (columns.count) rate(page, &columns);
    if (columns.count) devices(page, report, &columns);
    operations(page, &report->costs);
    status = network(page, report);
    made_by(page, report);
    report_json(report, page);
    page_end(page);
    free(columns.memory);
    return status;
}
