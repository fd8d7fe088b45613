/* All metrics as CSV: a line per step and per epoch. */
#ifndef TOOLS_METRICS_LOG_H
#define TOOLS_METRICS_LOG_H

#include "tools/report/history.h"

#include <stdio.h>

/* Writes the names of the columns into a new file. */
tutti_status metrics_log_open(FILE **file, const char *path);
void metrics_log_step(FILE *file, const struct moment *step);
/* Also flushes: what was written before is in the file. */
tutti_status metrics_log_epoch(FILE *file, const struct epoch *epoch, const char *path);

#endif
