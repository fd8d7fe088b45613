/* Curves of several trainings in one chart. */
#ifndef TOOLS_RUN_CURVES_H
#define TOOLS_RUN_CURVES_H

#include "tools/report/chart.h"
#include "tools/report/run_file.h"

/* Adds a picture to a list of facts, with the chart's title; nothing if no run has the column. The
 * picture shows the first CHART_SERIES runs. */
void run_curves(struct json_line *facts, const struct run *runs, int count, enum run_column column, struct chart chart);
/* Returns whether some run has numbers in the column. */
bool run_any(const struct run *runs, int count, enum run_column column);
/* Returns the least or the largest value; NaN: there is none. *at: its epoch. */
double run_best(const struct run *run, enum run_column column, bool largest, double *at);

#endif
