/* Curves of several trainings in one chart. */
#ifndef TOOLS_RUN_CURVES_H
#define TOOLS_RUN_CURVES_H

#include "tools/chart.h"
#include "tools/run_file.h"

/* A section of the page, under the chart's title; nothing where no run has the column. Of more than CHART_SERIES runs,
 * the first are shown. */
void run_curves(struct text *page, const struct run *runs, int count, enum run_column column, struct chart chart);
/* Whether some run has numbers there. */
bool run_any(const struct run *runs, int count, enum run_column column);
/* The least or the largest value; *at: of which epoch. NaN: there is none. */
double run_best(const struct run *run, enum run_column column, bool largest, double *at);

#endif
