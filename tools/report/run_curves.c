#include "tools/report/run_curves.h"

#include <math.h>

double run_best(const struct run *run, enum run_column column, bool largest, double *at)
{
    double found = NAN;
    *at = NAN;
    for (size_t i = 0; i < run->count; i++) {
        const double value = run->values[column][i];
        if (!isfinite(value) || (isfinite(found) && (largest ? value <= found : value >= found))) continue;
        found = value;
        *at = run->values[RUN_EPOCH][i];
    }
    return found;
}

bool run_any(const struct run *runs, int count, enum run_column column)
{
    double at;
    for (int i = 0; i < count; i++)
        if (isfinite(run_best(&runs[i], column, true, &at))) return true;
    return false;
}

void run_curves(struct json_line *facts, const struct run *runs, int count, enum run_column column, struct chart chart)
{
    if (!run_any(runs, count, column)) return;
    chart.x_label = "epoch";
    for (int i = 0; i < count && i < CHART_SERIES; i++) {
        if (runs[i].count == 0) continue;
        chart.series[chart.count++] = (struct series) { .name = runs[i].name,
            .x = runs[i].values[RUN_EPOCH],
            .y = runs[i].values[column],
            .count = runs[i].count,
            .colour = i % 8,
            .dashes = i % 3,
            .points = true };
    }
    json_line_print(facts, "{ title %s", chart.title);
    chart_lines(facts, "svg", &chart);
    json_line_print(facts, "}");
}
