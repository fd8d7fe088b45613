/* tutti report: compares trainings on a page. */
#include "base/numbers.h"
#include "base/status.h"
#include "tools/commands.h"
#include "tools/report/page.h"
#include "tools/report/run_curves.h"
#include "tools/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RUNS = 8 };

struct comparison {
    const char *output, *path;
    const char *paths[MOST_RUNS];
    struct run runs[MOST_RUNS];
    int count, more; /* more: paths after the first */
};

static enum parsed parse(struct comparison *c, int argc, char **argv)
{
    const struct option options[] = {
        { "output", OPTION(c->output), "FILE.html", "page to write", .file = OPTION_WRITES },
    };
    const struct usage usage = { .command = "report",
        .summary = "Compares trainings: lays their curves over one another, with a table of their results",
        .argument = "FILE",
        .more = "FILE",
        .more_count = &c->more,
        .details = "FILEs are pages of tutti train --report or tables of tutti train --log, at most eight.",
        OPTION_ROWS(options) };
    return options_parse(&usage, argc, argv, &c->path);
}

static double last(const struct run *run, enum run_column column)
{
    return run->count ? run->values[column][run->count - 1] : NAN;
}

struct result {
    const char *heading, *format;
    enum run_column column;
    double factor;
    bool best, largest; /* over the epochs, and which is better; else of the last epoch */
    bool judged;        /* the best run is marked */
};

static const struct result results[] = {
    { "Best test accuracy", "%.2f %%", RUN_TEST_ACCURACY, 100, true, true, true },
    { "Test accuracy", "%.2f %%", RUN_TEST_ACCURACY, 100, false, true, true },
    { "Best test loss", "%.4f", RUN_TEST_LOSS, 1, true, false, true },
    { "Test loss", "%.4f", RUN_TEST_LOSS, 1, false, false, true },
    { "Training loss", "%.4f", RUN_LOSS, 1, false, false, true },
    { "F1", "%.4f", RUN_F1, 1, false, true, true },
    { "R\xc2\xb2", "%.4f", RUN_R2, 1, false, true, true },
    { "Mean absolute error", "%.4g", RUN_MAE, 1, false, false, true },
    { "Epochs", "%.0f", RUN_EPOCH, 1, false, true, false },
    { "Samples per second", "%.0f", RUN_SAMPLES_PER_S, 1, false, true, true },
    { "Seconds", "%.1f", RUN_SECONDS, 1, false, false, true },
};

static double value_of(const struct run *run, const struct result *result)
{
    double at;
    return result->best ? run_best(run, result->column, result->largest, &at) : last(run, result->column);
}

static void result_row(struct json_line *facts, const struct comparison *c, const struct result *result)
{
    double champion = NAN;
    if (!run_any(c->runs, c->count, result->column)) return;
    for (int i = 0; i < c->count; i++) {
        const double value = value_of(&c->runs[i], result);
        if (isfinite(value) && (!isfinite(champion) || (result->largest ? value > champion : value < champion)))
            champion = value;
    }
    json_line_print(facts, "{ row %s values [", result->heading);
    for (int i = 0; i < c->count; i++) {
        char text[48] = "";
        const double value = value_of(&c->runs[i], result);
        if (isfinite(value)) number_print(text, sizeof(text), result->format, value * result->factor);
        json_line_print(facts, "{ value %s best %hhd }", text,
            result->judged && c->count > 1 && isfinite(value) && !(value < champion) && !(value > champion));
    }
    json_line_print(facts, "] }");
}

static void add_runs(struct json_line *facts, const struct comparison *c)
{
    json_line_print(facts, "comparison { runs [");
    for (int i = 0; i < c->count; i++)
        json_line_print(facts, "{ name %s colour %d command %s }", c->runs[i].name, i,
            c->runs[i].command ? c->runs[i].command : c->paths[i]);
    json_line_print(facts, "] rows [");
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) result_row(facts, c, &results[i]);
    json_line_print(facts, "] }");
}

static tutti_status write(const struct comparison *c)
{
    struct json_line line;
    char heading[32];
    snprintf(heading, sizeof(heading), "%d training%s", c->count, c->count == 1 ? "" : "s");
    json_line_begin(&line, NULL);
    json_line_print(&line, "title %s heading %s", "Comparison of trainings", heading);
    add_runs(&line, c);
    json_line_print(&line, "curves [");
    run_curves(&line, c->runs, c->count, RUN_TEST_ACCURACY,
        (struct chart) { .title = "Test accuracy", .factor = 100, .unit = " %" });
    run_curves(&line, c->runs, c->count, RUN_TEST_LOSS, (struct chart) { .title = "Test loss", .logarithm = true });
    run_curves(&line, c->runs, c->count, RUN_LOSS, (struct chart) { .title = "Training loss", .logarithm = true });
    run_curves(&line, c->runs, c->count, RUN_RATE, (struct chart) { .title = "Learning rate", .from_zero = true });
    return page_write(page_facts(&line), c->output);
}

static void print_results(const struct comparison *c)
{
    printf("%-28s %14s %14s %14s\n", "run", "test accuracy", "test loss", "loss");
    for (int i = 0; i < c->count; i++) {
        const double accuracy = 100 * last(&c->runs[i], RUN_TEST_ACCURACY);
        printf("%-28s", c->runs[i].name);
        if (isfinite(accuracy))
            printf(" %12.2f %%", accuracy);
        else
            printf(" %14s", "-");
        printf(" %14.4f %14.4f\n", last(&c->runs[i], RUN_TEST_LOSS), last(&c->runs[i], RUN_LOSS));
    }
    fprintf(stderr, "wrote %s\n", c->output);
}

int command_report(int argc, char **argv)
{
    struct comparison c = { .output = "comparison.html" };
    const enum parsed parsed = parse(&c, argc, argv);
    if (parsed != PARSED_RUN) return parsed_exit(parsed);
    if (c.more >= MOST_RUNS)
        return wrong_use("report", "%d files are too many: compare at most %d", c.more + 1, MOST_RUNS);
    tutti_status status = TUTTI_OK;
    while (status == TUTTI_OK && c.count <= c.more) {
        c.paths[c.count] = c.count ? argv[c.count] : c.path;
        status = run_read(&c.runs[c.count], c.paths[c.count]);
        c.count++;
    }
    if (status == TUTTI_OK) status = write(&c);
    if (status == TUTTI_OK) print_results(&c);
    for (int i = 0; i < c.count; i++) run_free(&c.runs[i]);
    return status == TUTTI_OK ? EXIT_DONE : work_failed("report", status, status_message());
}
